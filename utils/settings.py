# SPDX-License-Identifier: Apache-2.0
"""Settings in YAML files, read strictly: a typo, a name given twice, a wrong kind is an error.

A file is a mapping of names to plain values; a dataclass says the names, kinds and defaults.
"""

import dataclasses
import json
import math
import re
import types
import typing
from collections.abc import Collection
from typing import Any, TypeVar

import yaml

from utils.cli import UserError
from utils.tables import StrPath, atomic_write, read_bytes

T = TypeVar("T")
Kind = TypeVar("Kind", dict[str, Any], list[Any])
LARGEST = 65536  # of a layer: channels, frames of a kernel
_DATE = "tag:yaml.org,2002:timestamp"
_NO_SEXAGESIMAL = {
    "tag:yaml.org,2002:int": re.compile(
        r"[-+]?(?:0b[0-1_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)$"
    ),
    "tag:yaml.org,2002:float": re.compile(
        r"(?:[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
        r"|\.(?:inf|Inf|INF))|\.(?:nan|NaN|NAN))$"
    ),
}
JSON_KINDS = {dict: "object", list: "list"}
KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a word"}


class _StrictLoader(yaml.SafeLoader):  # type: ignore[misc]
    """Refuses a name that stands twice in a mapping; YAML loaders keep the last in silence."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        names = [str(key.value) for key, _ in node.value]
        for number, (key, _) in enumerate(node.value):
            if str(key.value) in names[:number]:
                raise yaml.MarkedYAMLError(
                    problem=f"{key.value} is given twice", problem_mark=key.start_mark
                )
        return typing.cast(dict[Any, Any], super().construct_mapping(node, deep))


# YAML 1.1 reads 1:30 as 90 and 2024-02-30 as a date; here both are words.
_StrictLoader.yaml_implicit_resolvers = {
    first: [(tag, _NO_SEXAGESIMAL.get(tag, pattern)) for tag, pattern in found if tag != _DATE]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_json_object(path: StrPath, mend: str) -> dict[str, Any]:
    """The object in a JSON file that a program wrote. UserError with `mend`, what to do, for
    anything else."""
    return read_json(path, dict, mend)


def read_json(path: StrPath, kind: type[Kind], mend: str) -> Kind:
    """The same, for an object or a list."""
    try:
        found = json.loads(read_bytes(path).decode("utf-8"))
    except UserError as error:
        raise UserError(f"{error}; {mend}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: cannot be read as JSON: {error}; {mend}") from error
    if not isinstance(found, kind):
        raise UserError(f"{path}: holds no JSON {JSON_KINDS[kind]}; {mend}")
    return found


def read_settings(path: StrPath) -> dict[str, object]:
    """The mapping in a YAML file. UserError, with the line, for anything else."""
    try:
        data = yaml.load(read_bytes(path).decode("utf-8"), _StrictLoader)
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not a text file (not UTF-8)") from error
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UserError(f"{path}{line}: {error.problem}") from error
    except RecursionError as error:
        raise UserError(f"{path}: brackets or indents are nested too deeply") from error
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError) as error:
        raise UserError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(data, dict) or not all(isinstance(name, str) for name in data):
        raise UserError(f"{path}: settings are expected, one `name: value` a line")
    return data


def parse_settings(kind: type[T], values: object, path: StrPath, where: str = "") -> T:
    """A dataclass of bool, int, float, str, tuples of them, `| None`, and other such dataclasses.

    `where` is the name of the mapping in the file, for messages. UserError names the file, the
    setting, and what is known or expected.
    """
    if not isinstance(values, dict):
        raise UserError(f"{path}: {where}: settings are expected, one `name: value` a line")
    prefix = f"{where}." if where else ""
    hints = typing.get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for name in values:
        if name not in fields:
            raise UserError(f"{path}: {prefix}{name}: unknown setting; known: {', '.join(fields)}")
    for name, field in fields.items():
        no_default = dataclasses.MISSING is field.default is field.default_factory
        if no_default and name not in values:
            raise UserError(f"{path}: {prefix}{name}: is missing")
    return kind(
        **{name: _convert(hints[name], values[name], path, f"{prefix}{name}") for name in values}
    )


def _convert(hint: Any, value: object, path: StrPath, where: str) -> object:
    if isinstance(hint, types.UnionType):  # X | None: a setting that is given has to be an X
        (hint,) = (part for part in hint.__args__ if part is not types.NoneType)
    if dataclasses.is_dataclass(hint):
        return parse_settings(typing.cast(type[object], hint), value, path, where)
    if typing.get_origin(hint) is tuple:
        return _convert_list(typing.get_args(hint), value, path, where)
    accepted = (int, float) if hint is float else hint
    if not isinstance(value, accepted) or (isinstance(value, bool) and hint is not bool):
        raise UserError(f"{path}: {where}: {value!r}; {KINDS[hint]} is expected")
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"{path}: {where}: {value!r}; a finite number is expected")
    try:
        return hint(value)
    except OverflowError as error:
        raise UserError(f"{path}: {where}: a number beyond all bounds") from error


def check_sizes(
    settings: object, path: StrPath, where: str, may_be_0: Collection[str] = ()
) -> None:
    """Whole numbers of a dataclass that describes a network: no layer of nothing, and none that no
    memory holds. where: the name of `settings` in the file. UserError names the first other."""
    for name, value in vars(settings).items():
        sizes = value if isinstance(value, tuple) else (value,)
        if not all(isinstance(size, int) and not isinstance(size, bool) for size in sizes):
            continue
        least = 0 if name in may_be_0 else 1
        if not sizes or not all(least <= size <= LARGEST for size in sizes):
            raise UserError(f"{path}: {where}.{name}: sizes from {least} to {LARGEST} are needed")


def _convert_list(
    kinds: tuple[Any, ...], value: object, path: StrPath, where: str
) -> tuple[object, ...]:
    """A tuple of the kinds, or of any length where they end in `...`."""
    any_length = kinds[-1] is ...
    if not isinstance(value, list) or not (any_length or len(value) == len(kinds)):
        wanted = "a list" if any_length else f"[a, b] with {len(kinds)} values"
        raise UserError(f"{path}: {where}: {value!r}; {wanted} is expected")
    if any_length:
        kinds = kinds[:1] * len(value)
    return tuple(_convert(kind, item, path, where) for kind, item in zip(kinds, value, strict=True))


def to_plain(settings: object) -> dict[str, Any]:
    """A dataclass of settings as dicts, lists and numbers."""
    found: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(settings)))  # type: ignore[call-overload]
    return found


def write_settings(path: StrPath, settings: dict[str, Any], **more: object) -> None:
    """Write settings, and what else is to be known, as YAML."""
    with atomic_write(path) as stream:
        yaml.safe_dump({**settings, **more}, stream, sort_keys=False)
