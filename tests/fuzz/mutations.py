"""Changes that make a good file wrong, and those that may: of tables, JSON, YAML, archives, ..."""

import copy
import io
import math
import os
import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import yaml

from utils.settings import read_settings

Change = Callable[[bytes], bytes]


def _at(place: int, form: str, *values: int) -> Change:
    """Overwrite some bytes."""

    def change(data: bytes) -> bytes:
        new = struct.pack(form, *values)
        return data[:place] + new + data[place + len(new) :]

    return change


def _with(data: bytes, at: float, what: bytes) -> bytes:
    place = int(at * len(data))
    return data[:place] + what + data[place:]


EVERY: dict[str, Change] = {
    "empty": lambda _: b"",
    "noise": lambda _: random.Random(0).randbytes(999),
}
CUT: dict[str, Change] = {"half": lambda d: d[: len(d) // 2], "short": lambda d: d[:-1]}
WRONG: dict[str, dict[str, Change]] = {
    "table": {
        "nul": lambda d: _with(d, 0.5, b"\0"),
        "mark": lambda d: b"\xef\xbb\xbf" + d,
        "windows": lambda d: d.replace(b"\n", b"\r\n"),
        "latin": lambda d: _with(d, 0.5, b"\xe9\n"),
        "no-break space": lambda d: d.replace(b" ", b"\xc2\xa0", 1),
        "twice": lambda d: d + d.splitlines(keepends=True)[-1],
        "blank line": lambda d: d.replace(b"\n", b"\n\n", 1),
        "key alone": lambda d: d + b"zz\n",
        "field more": lambda d: d.replace(b"\n", b" zz\n", 1),
        "stranger": lambda d: d + b"zz" + d.splitlines(keepends=True)[-1],
        "row less": lambda d: d[d.index(b"\n") + 1 :],
    },
    "json": {
        "half": lambda d: d[: len(d) // 2],
        "short": lambda d: d.rstrip()[:-1],
        "null": lambda _: b"null",
        "list": lambda _: b"[]",
        "nested": lambda _: b"[" * 100_000,
        "nested objects": lambda _: b'{"a":' * 100_000,
        "digits": lambda _: b"9" * 5000,
        "latin": lambda d: b"\xe9" + d,
        "more": lambda d: d + b"}",
    },
    "yaml": {
        "null": lambda _: b"null\n",
        "list": lambda _: b"- a\n",
        "open": lambda d: d + b"zz: [\n",
        "nested": lambda _: b"a: " + b"[" * 400,
        "latin": lambda d: d + b"# \xe9\n",
        "unknown": lambda d: d + b"zz: 1\n",
        "twice": lambda d: d + b"zz: 1\nzz: 2\n",
        "object": lambda d: d + b"zz: !!python/object/apply:os.getcwd []\n",
        "itself": lambda d: d + b"zz: &a [*a]\n",
        "tab": lambda d: d + b"zz:\n\ta: 1\n",
        "digits": lambda d: d + b"zz: " + b"9" * 5000 + b"\n",
        "control": lambda d: d + b"zz: \x01\n",
        "date": lambda d: d + b"zz: !!timestamp 2024-02-30\n",
        "no number": lambda d: d + b"zz: !!int abc\n",
        "no float": lambda d: d + b"zz: !!float x\n",
    },
    "binary": {**CUT, "pickle": lambda d: b"\x80\x04cposix\ngetcwd\n(tR." + d[:8]},
    "archive": {**CUT, "key": lambda d: d.replace(b" \0B", b"\0B", 1), "twice": lambda d: d + d},
    "text": {"half": lambda d: d[: len(d) // 2], "word": lambda d: d.replace(b".", b"x", 1)},
    "wav": {
        **{f"{n} bytes": lambda d, n=n: d[:n] for n in (3, 11, 20, 43, 44, 100)},
        "half": lambda d: d[: len(d) // 2],
        "short": lambda d: d[:-2],
        "magic": _at(0, "<4s", b"XIFF"),  # type: ignore[arg-type]
        **{f"rate {n}": _at(24, "<I", n) for n in (0, 1, 2**31 - 1, 2**32 - 1)},
        **{f"{n} channels": _at(22, "<H", n) for n in (0, 2, 1025, 65535)},
        **{f"format {n}": _at(20, "<H", n) for n in (0, 0x55, 0xFFFE, 0xFFFF)},
        **{f"{n} bits": _at(34, "<H", n) for n in (0, 1, 7, 8, 65535)},
        "long": _at(40, "<I", 10**6),
    },
    "flac": CUT,
    "other audio": {"half": CUT["half"]},
    "csv": {},
}


def _flip(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 4, 16))):
        changed[rng.randrange(len(data))] = rng.choice((0, 255, 32, 10, rng.randrange(256)))
    return bytes(changed)


def _number(rng: random.Random, data: bytes) -> bytes:
    """An odd number where one stands, or anywhere."""
    digits = [place for place, byte in enumerate(data) if 48 <= byte < 58] or [0]
    place = rng.choice(digits)
    odd = (b"nan", b"-1", b"1e999", b"9" * 40, b"0", b"-inf", b"0x", b"1_0", "\u0663".encode())
    return data[:place] + rng.choice(odd) + data[place + 1 :]


def _slice(rng: random.Random, data: bytes) -> bytes:
    """Leave a piece out, or put it twice."""
    start, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return data[:start] + data[end:] if rng.random() < 0.5 else data[:end] + data[start:]


def _insert(rng: random.Random, data: bytes) -> bytes:
    odd = (b"\0", b"\n", b"\t", b"\xff", b"{", b"]", b":", b'"', b"\xe2\x80\xa8", b"..", b" " * 99)
    return _with(data, rng.random(), rng.choice(odd))


RANDOM = (_flip, _number, _slice, _insert)


# Leaves of settings, and what none of them may be.
_ODD_VALUES: dict[type, tuple[object, ...]] = {
    bool: ("x", 1, None, [True]),
    int: ("x", True, None, [1], {"a": 1}, math.nan),
    float: ("x", True, None, [1.0], math.nan, math.inf, 10**400),
    str: (1, None, ["x"], {"x": 1}, True),
    list: ({"a": 1}, [None], ["x", {}], 1e9),
    dict: (1, "x", [1], None),
}


def _leaves(value: object, way: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    if way:
        yield way, value
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, (*way, name))


def odd_settings(path: Path, skip: tuple[str, ...] = ()) -> list[tuple[str, Change]]:
    """Each setting of a YAML file with values of other kinds, `skip`ped names apart."""
    found: list[tuple[str, Change]] = []
    for way, value in _leaves(read_settings(path)):
        if way[0] in skip:
            continue
        for odd in _ODD_VALUES[type(value)]:
            found.append((f"{'.'.join(way)} {str(odd)[:9]}", _set(way, odd)))
    return found


def _set(way: tuple[str, ...], odd: object) -> Change:
    def change(data: bytes) -> bytes:
        values = yaml.safe_load(data)
        place = values
        for name in way[:-1]:
            place = place[name]
        place[way[-1]] = copy.deepcopy(odd)
        return yaml.safe_dump(values).encode()

    return change


class _Code:
    def __reduce__(self) -> tuple[object, ...]:
        return os.getcwd, ()


def _saved(change: Callable[[dict[str, Any]], object]) -> Change:
    """Weights that torch saved, changed."""

    def changed(data: bytes) -> bytes:
        stream = io.BytesIO()
        torch.save(change(torch.load(io.BytesIO(data), weights_only=True)), stream)
        return stream.getvalue()

    return changed


def odd_weights(path: Path) -> list[tuple[str, Change]]:
    """Saved weights of other names, shapes, types; the first, the last and one between."""
    names = list(torch.load(path, weights_only=True))
    found = [
        ("list", _saved(list)), ("none", _saved(lambda _: None)), ("empty", _saved(lambda _: {})),
        ("code", _saved(lambda _: {"a": _Code()})), ("number", _saved(lambda d: {1: 2, **d})),
    ]  # fmt: skip
    for name in {names[0], names[len(names) // 2], names[-1]}:
        found += [
            (f"{name} {what}", _saved(lambda d, n=name, f=f: {**d, n: f(d[n])}))
            for what, f in (
                ("word", lambda x: "x"),
                ("none", lambda x: None),
                ("shape", lambda x: x.new_zeros(x.numel() + 3)),
                ("scalar", lambda x: torch.tensor(1.0)),
                ("type", lambda x: x.to(torch.complex64)),
                ("flat", lambda x: x.new_zeros((0,))),
                ("sparse", lambda x: x.float().reshape(1, -1).to_sparse()),
            )
        ]
        found.append((f"{name} gone", _saved(lambda d, n=name: {k: d[k] for k in d if k != n})))
    for name in names:
        if torch.load(path, weights_only=True)[name].is_floating_point():
            nan = _saved(lambda d, n=name: {**d, n: torch.full_like(d[n], math.nan)})
            return [*found, (f"{name} nan", nan)]
    return found
