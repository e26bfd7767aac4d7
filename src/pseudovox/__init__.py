"""pseudovox from Python: what the command `pseudovox` does, for recordings and folders of them.

    from pseudovox import evidence, protect

    account = protect("recordings", "protected", key_file="key.txt")
    found = evidence("recordings", "protected", key_file="key.txt")

Options are those of the programs (`pseudovox protect --help`), which run as processes of their own.
"""

import json
import logging
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Literal, NamedTuple, TypedDict, TypeVar, Unpack

from pseudovox._programs import Error, find_version, start_of

__all__ = [
    "Account", "Error", "Evidence", "EvidenceOptions", "File", "LossError", "Progress",
    "ProtectOptions", "evidence", "protect",
]  # fmt: skip
__version__ = find_version()
Made = TypeVar("Made", bound="Account | Evidence")
_HOW_FAR = re.compile(r"([^:]+): ([\d.]+) of ([\d.]+) (\w+)")


class EvidenceOptions(TypedDict, total=False):
    """Options of `evidence`. key: the text, which no list of processes shows."""

    key: str
    system: str | Path
    per: Literal["file", "folder", "speaker"]
    speakers: str | Path
    key_file: str | Path
    turns: str | Path
    nj: int


class ProtectOptions(EvidenceOptions, total=False):
    """Options of `protect`."""

    write_key: str | Path
    channels: Literal["mix", "each"]
    level: Literal["one", "source"]
    time: Literal["keep", "map"]
    ends: Literal["one", "keep"]
    rename: bool
    people: int
    turns_only: bool
    protect: str
    keep: str
    redact: str | Path
    redact_by: Literal["tone", "silence"]
    texts: bool
    launcher: str
    shard: str


class Progress(NamedTuple):
    """How far a program is: `done` of `total`, in `unit`s."""

    stage: str
    done: float
    total: float
    unit: str


@dataclass(frozen=True)
class File:
    """Outcome for one file; `reason` says why it failed. Digests are SHA-256."""

    status: Literal["done", "failed"]
    seconds: float | None = None
    warnings: Sequence[str] = ()
    reason: str | None = None
    sha256: str | None = None
    source_sha256: str | None = None


@dataclass(frozen=True)
class Account:
    """Account of what was done: the main parts of `path`, of which `data` has all."""

    path: Path
    source: str
    out: str
    files: Mapping[str, File]
    limits: Sequence[str]
    data: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Evidence:
    """Findings of attackers: the main parts of `path`, of which `data` has all."""

    path: Path
    verdict: str
    decision: Mapping[str, str]
    attacks: Sequence[Mapping[str, Any]] = field(repr=False)
    recordings: Mapping[str, str] = field(repr=False)
    left_out: Mapping[str, str]
    wrong: Mapping[str, Mapping[str, Any]]
    data: Mapping[str, Any] = field(repr=False)


class LossError(Error):
    """Some files were lost, and the others are done: `result` tells which."""

    def __init__(self, message: str, result: Account | Evidence | None) -> None:
        super().__init__(message, 3)
        self.result = result


def protect(
    source: str | Path,
    out: str | Path | None = None,
    *,
    progress: Callable[[Progress], object] | None = None,
    **options: Unpack[ProtectOptions],
) -> Account:
    """Protect a folder of recordings, or one, and return the account.

    out: for a file `<name>.protected.<ending>` if left out. progress: called now and then. Error
    where nothing could be done, and LossError where some files failed. What else the program says
    goes to the log `pseudovox`.
    """
    ends = [str(source), *([] if out is None else [str(out)])]
    return _run("protect", ends, options, progress, Account)


def evidence(
    source: str | Path,
    out: str | Path,
    *,
    progress: Callable[[Progress], object] | None = None,
    **options: Unpack[EvidenceOptions],
) -> Evidence:
    """Measure what the protection of a folder hid; progress and errors as of `protect`."""
    return _run("evidence", [str(source), str(out)], options, progress, Evidence)


def _run(
    name: str,
    ends: Sequence[str],
    options: Mapping[str, object],
    progress: Callable[[Progress], object] | None,
    kind: type[Made],
) -> Made:
    given = {n: value for n, value in options.items() if value is not None and value is not False}
    with _hidden(given) as passed, TemporaryFile("w+", encoding="utf-8") as said:
        command, environment, _ = start_of(name, [*_words(given), "--", *ends])
        running = subprocess.Popen(
            command, env=environment, pass_fds=passed, stdin=subprocess.DEVNULL, stdout=said,
            stderr=subprocess.PIPE, encoding="utf-8", errors="backslashreplace",
        )  # fmt: skip
        said_by, last = f"{Path(command[0]).name}: ", ""

        def log(line: str) -> None:
            level = logging.WARNING if line.startswith(said_by) else logging.INFO
            if line:
                logging.getLogger("pseudovox").log(level, line)

        with running:
            try:
                for line in map(str.rstrip, running.stderr or ()):
                    if found := _HOW_FAR.match(line):
                        stage, done, total, unit = found.groups()
                        if progress:
                            progress(Progress(stage, float(done), float(total), unit))
                        continue
                    log(last)
                    last = line
            except BaseException:  # also where a notebook is interrupted
                running.terminate()
                raise
        status = running.returncode
        said.seek(0)
        told = said.read()
    result = _read(name, told, kind) if status in (0, 3) else None
    if status == 3:
        raise LossError(last.removeprefix(said_by), result)
    if result is None:
        raise Error(last.removeprefix(said_by) or "it was ended", status)
    log(last)
    return result


def _words(options: Mapping[str, object]) -> Iterator[str]:
    """Options as a command line has them; True is a flag."""
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        yield option if value is True else f"{option}={value}"


@contextmanager
def _hidden(options: dict[str, object]) -> Iterator[Sequence[int]]:
    """Pass a key by a pipe; yields what the program must inherit."""
    if (key := options.pop("key", None)) is None:
        yield ()
        return
    get, put = os.pipe()
    try:
        with open(put, "w", encoding="utf-8") as stream:  # noqa: PTH123 - a descriptor
            stream.write(f"{key}\n")
        options["key_file"] = f"/dev/fd/{get}"
        yield (get,)
    finally:
        os.close(get)


def _read(name: str, said: str, kind: type[Made]) -> Made | None:
    """Result in the file that the last words of a program name; None where there is none."""
    what = {"protect": "account", "evidence": "evidence"}[name]
    found = re.search(rf"^(.+\.{what})\.html: ", said, re.MULTILINE)
    if not found:
        return None
    path = Path(f"{found[1]}.json")
    data = json.loads(path.read_text("utf-8"))
    parts = {part.name: data[part.name] for part in fields(kind) if part.name in data}
    if "files" in parts:
        known = {part.name for part in fields(File)}
        rows = data["files"].items()
        parts["files"] = {n: File(**{k: row[k] for k in known & row.keys()}) for n, row in rows}
    return kind(path=path, data=data, **parts)
