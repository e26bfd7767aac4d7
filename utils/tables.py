"""Kaldi's text tables and JSON files: read with checks, written atomically in C order."""

import errno
import itertools
import math
import os
import re
import shutil
import stat
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeVar

from utils.cli import UserError, refusing

# ---- Kaldi's text tables: read with checks that name file and line, written atomically in C order.
#
# Fields are separated by any run of blanks or tabs, and by nothing else that Unicode calls a space.
# Ids are opaque strings: `NA`, `007` and `1e3` are ids, never numbers. Files are UTF-8.

StrPath = str | os.PathLike[str]
_KEY_AND_REST = re.compile(r"[ \t]*([^ \t]+)[ \t]*(.*)", re.S)
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
ADVICE_FOR_MARK = (
    "begins with a byte-order mark; remove it with: sed -i '1s/^\\xEF\\xBB\\xBF//' on the file"
)


_TIMED = ".timed."  # and of the hidden file with a file's name which marks that it holds seconds
PARTIAL = "PSEUDOVOX_PARTIAL"  # in the environment: a folder of this recipe run alone
_LONGEST_NAME = 255  # bytes
_numbers = itertools.count()


@contextmanager
def replacing(path: StrPath) -> Iterator[Path]:
    """Open a temporary file that replaces `path` on success and is removed on failure.

    It is beside `path`, or, within a recipe, in a folder that the next run removes, so that
    leftovers of a killed run cannot replace anything. A device or a pipe is written to directly.
    """
    target = Path(path)
    if _is_device(target):
        yield target
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = os.environ.get(PARTIAL)
    own = f"{os.uname().nodename}.{os.getpid()}.{next(_numbers)}{target.suffix}"
    beside = Path(partial) / own if partial else _near(target, own)
    try:
        yield beside
        _put(beside, target)
    except OSError as error:
        if partial and not Path(partial).is_dir():
            raise UserError(
                f"{target}: not written: the run that began this has ended ({partial} is gone)"
            ) from error
        if error.filename in (None, beside, os.fspath(beside)):
            error.filename, error.filename2 = os.fspath(target), None
        raise
    finally:
        beside.unlink(missing_ok=True)


def _near(target: Path, own: str) -> Path:
    """Name of a temporary file beside the target, no longer than file systems allow."""
    kept = os.fsencode(target.name)[: max(0, _LONGEST_NAME - len(f".tmp.{own}"))]
    return target.parent / f"{os.fsdecode(kept)}.tmp.{own}"


def remove_unfinished(folder: Path) -> None:
    """Remove what killed runs had begun to write (`replacing`) anywhere in a folder."""
    for path in folder.rglob("*.tmp.*"):
        if re.search(r"\.tmp\..+\.[0-9]+\.[0-9]+(\.[^.]*)?$", path.name) and path.is_file():
            path.unlink(missing_ok=True)


def _is_device(target: Path) -> bool:
    """Also /dev/stdout, which may lead to a regular file."""
    if Path("/dev") == target.parent or target.is_relative_to("/dev/fd"):
        return True
    return target.exists() and not target.is_file() and not target.is_dir()


def _put(beside: Path, target: Path) -> None:
    try:
        beside.replace(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        near = _near(target, beside.name)  # on the target's file system
        try:
            shutil.copyfile(beside, near)
            near.replace(target)
        finally:
            near.unlink(missing_ok=True)


@contextmanager
def atomic_write(path: StrPath, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a file that replaces `path` on success (`replacing`)."""
    encoding = None if "b" in mode else "utf-8"
    with replacing(path) as beside, beside.open(mode, encoding=encoding) as stream:
        yield stream
        stream.flush()
        if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            os.fsync(stream.fileno())


def write_file(path: StrPath, content: str | bytes) -> None:
    """Write a file atomically."""
    with atomic_write(path, "wb" if isinstance(content, bytes) else "w") as stream:
        stream.write(content)


def write_json(path: StrPath, value: object, indent: int | None = 1, **how: Any) -> None:
    """Write a value as a JSON file atomically; how: options of json.dumps."""
    import json  # most tables need none

    write_file(path, json.dumps(value, indent=indent, **how) + "\n")


def write_timed(path: StrPath, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a table, with a header that starts with #, of measurements while a step computed.

    It holds seconds, which differ each time: a hidden file beside it marks this, and nothing made
    from the step becomes stale because of it (`timed_in`).
    """
    target = Path(path)
    with atomic_write(target) as stream:
        stream.write("#" + "\t".join(columns) + "\n")
        stream.writelines("\t".join(map(str, row)) + "\n" for row in rows)
    mark_timed(target)


def mark_timed(path: Path) -> None:
    """Mark a file as one that holds seconds."""
    path.with_name(_TIMED + path.name).touch()


def timed_in(folder: Path) -> set[str]:
    """Names of the files of a folder that hold seconds."""
    return {path.name.removeprefix(_TIMED) for path in folder.glob(f"{_TIMED}*")}


def is_there(path: StrPath) -> bool:
    """Whether an optional file exists; UserError for anything else of its name.

    A dangling link, a loop, a folder or a device is a mistake: to pass over it would silently
    ignore intended input.
    """
    if not os.path.lexists(path):
        return False
    if problem := file_problem(path):
        raise UserError(f"{path}: {problem}; correct or remove it")
    return True


def need_files(paths: Iterable[Path], mend: str) -> None:
    """Raise a UserError for a file that is missing. mend: what to do, for the message."""
    for path in paths:
        if not path.is_file():
            raise UserError(f"{path}: is missing; {mend}")


def need_ids(ids: Iterable[str], table: Container[str], where: StrPath, mend: str) -> None:
    """Raise a UserError for an id that a table lacks. where: its file; mend: what to do."""
    if missing := next((name for name in ids if name not in table), None):
        raise UserError(f"{where}: {missing} is not in it; {mend}")


def file_problem(path: StrPath) -> str:
    """Reason why a path cannot be read as a file (a FIFO would never end), or an empty string."""
    try:
        mode = Path(path).stat().st_mode
    except OSError as error:
        what = "is a link that leads nowhere" if Path(path).is_symlink() else "cannot be read"
        return f"{what}: {error.strerror}"
    return "" if stat.S_ISREG(mode) else "is not a regular file"


def read_bytes(path: StrPath) -> bytes:
    """Read all of a regular file; UserError for anything else."""
    with refusing(f"{path}: cannot be read: {{}}", OSError, ValueError):
        if problem := file_problem(path):
            raise UserError(f"{path}: {problem}")
        return Path(path).read_bytes()


def read_lines(path: StrPath) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file with their numbers from 1, without line ends.

    Blank lines at the end of the file are skipped. Raises UserError for a missing, unreadable,
    non-text (NUL byte, not UTF-8, byte-order mark) or CRLF file.
    """

    def refuse(number: int, kind: str, message: str) -> None:
        if kind != "end":
            raise UserError(f"{path}:{number}: {message}")

    return scan_lines(path, refuse)


def scan_lines(path: StrPath, tell: Callable[[int, str, str], None]) -> Iterator[tuple[int, str]]:
    """Yield the lines as `read_lines` does, and report each fault: its line, kind and message. Only
    a file that is not text ends at the fault. UserError for one that cannot be read.
    """
    blank: list[tuple[int, str]] = []
    number, raw = 0, b"\n"
    for number, raw in enumerate(_raw_lines(path), start=1):
        if number == 1 and raw.startswith(BYTE_ORDER_MARK):
            tell(number, "mark", ADVICE_FOR_MARK)
            raw = raw.removeprefix(BYTE_ORDER_MARK)
        line = raw.removesuffix(b"\n")
        if line.endswith(b"\r"):
            tell(number, "CRLF", f"Windows line end (CR LF); run: dos2unix {path}")
            line = line.removesuffix(b"\r")
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError:
            tell(number, "unreadable", "not a text file (not UTF-8)")
            return
        if "\0" in text:
            tell(number, "unreadable", "not a text file (it holds a NUL byte)")
            return
        if not text.strip(" \t"):
            blank.append((number, text))
            continue
        if blank:
            yield from blank
            blank = []
        yield number, text
    if not raw.endswith(b"\n"):
        tell(number, "end", "the last line has no line end")


def _raw_lines(path: StrPath) -> Iterator[bytes]:
    if problem := file_problem(path):
        raise UserError(f"{path}: {problem}")
    with refusing(f"{path}: cannot be read: {{}}", OSError), Path(path).open("rb") as stream:
        yield from stream


def split_fields(line: str) -> list[str]:
    """Split a line into fields.

    >>> split_fields("a\u00a0b \t c")
    ['a\xa0b', 'c']
    """
    return [field for field in line.replace("\t", " ").split(" ") if field]


def split_key(line: str) -> tuple[str, str]:
    """Split a line into its key and the rest; both empty for a blank line.

    >>> split_key("utt  a b ")
    ('utt', 'a b')
    """
    match = _KEY_AND_REST.match(line)
    return ("", "") if match is None else (match[1], match[2].rstrip(" \t"))


def to_number(text: str) -> float:
    """Number that a text stands for; NaN for any other, which no comparison holds for.
    Python alone reads 1_000 and other digits than 0 to 9."""
    with suppress(ValueError):
        if "_" not in text and text.isascii() and math.isfinite(value := float(text)):
            return value
    return math.nan


def read_rows(path: StrPath, n_fields: int) -> Iterator[tuple[int, list[str]]]:
    """Read rows of exactly `n_fields` fields with line numbers; UserError names the first other."""
    for number, line in read_lines(path):
        fields = split_fields(line)
        if len(fields) != n_fields:
            raise UserError(f"{path}:{number}: {len(fields)} fields where {n_fields} are expected")
        yield number, fields


def read_map(path: StrPath, *, rest_of_line: bool = False) -> dict[str, str]:
    """Read a two-column table such as utt2spk, in file order.

    With `rest_of_line` the value is everything after the key (wav.scp, text) and may be empty for
    `text`; without it, exactly two fields a line. Duplicate keys are an error.
    """
    if rest_of_line:
        return _without_duplicates(path, ((n, *split_key(line)) for n, line in read_lines(path)))
    return _without_duplicates(path, ((n, *fields) for n, fields in read_rows(path, 2)))


def _without_duplicates(path: StrPath, rows: Iterable[Any]) -> dict[str, Any]:
    """Values by key, of rows (line number, key, value)."""
    table: dict[str, Any] = {}
    for number, key, value in rows:
        if not key or key in table:
            what = f"{key} is listed twice; keep one line for it" if key else "empty line"
            raise UserError(f"{path}:{number}: {what}")
        table[key] = value
    return table


def read_headed(path: StrPath) -> dict[str, dict[str, str]]:
    """Read a table between tabs whose first line names the columns: id -> column -> value.

    The header begins with `#`; every line has a value, which may be empty, for each column.
    """
    lines = read_lines(path)
    _, header = next(lines, (1, ""))
    first, *columns = header.split("\t")
    if not first.startswith("#"):
        raise UserError(
            f"{path}:1: no header, such as #utt and the names of columns; make it again"
        )

    def rows() -> Iterator[tuple[int, str, dict[str, str]]]:
        for number, line in lines:
            key, *values = line.split("\t")
            if len(values) != len(columns):
                found, wanted = 1 + len(values), 1 + len(columns)
                raise UserError(f"{path}:{number}: {found} fields where the header has {wanted}")
            yield number, key, dict(zip(columns, values, strict=True))

    return _without_duplicates(path, rows())


def read_id_lists(path: StrPath) -> dict[str, list[str]]:
    """Read a table of lists such as spk2utt: always lists, also for one id."""
    rows = read_map(path, rest_of_line=True)
    return {key: split_fields(value) for key, value in rows.items()}


def write_map(path: StrPath, table: Mapping[str, object], *, blanks: bool = False) -> None:
    """Write `key value` lines sorted by key in C order (bytes), atomically.

    UserError for an empty key, and for one with blanks, unless it has several fields (`blanks`).
    """
    wrong = "\t\r\n\0" if blanks else " \t\r\n\0"
    with atomic_write(path) as stream:
        for key in sort_ids(table):
            if not key or not {*key}.isdisjoint(wrong):
                raise UserError(
                    f"{path}: {key!r} cannot be an id: ids have no blanks, and are not empty"
                )
            stream.write(f"{key} {table[key]}".rstrip() + "\n")


def write_id_lists(path: StrPath, table: Mapping[str, Sequence[str]]) -> None:
    """Write spk2utt-like lines, keys and lists sorted in C order."""
    write_map(path, {key: " ".join(sort_ids(ids)) for key, ids in table.items()})


def sort_ids(ids: Iterable[str]) -> list[str]:
    """Sort as `LC_ALL=C sort` does: UTF-8 sorts by its bytes as Unicode does by code points."""
    return sorted(ids)


def few(names: Sequence[str], most: int = 3) -> str:
    """`a b c and 2 more`."""
    return " ".join(names[:most]) + f" and {len(names) - most} more" * (len(names) > most)


def invert(utt2spk: Mapping[str, str]) -> dict[str, list[str]]:
    """Make spk2utt from utt2spk, both levels in C order."""
    spk2utt: dict[str, list[str]] = {}
    for utt in sort_ids(utt2spk):
        spk2utt.setdefault(utt2spk[utt], []).append(utt)
    return dict(sorted(spk2utt.items()))


# ---- JSON files of programs, read strictly. Apart from utils/settings.py, whose YAML takes longer
# to load than all else that utils/stamps.py does, several times a step.

Kind = TypeVar("Kind", dict[str, Any], list[Any])
JSON_KINDS = {dict: "object", list: "list"}


def read_json_object(path: StrPath, mend: str) -> dict[str, Any]:
    """Read the object in a JSON file of a program. UserError with `mend`, the remedy, for anything
    else."""
    return read_json(path, dict, mend)


def read_json(path: StrPath, kind: type[Kind], mend: str) -> Kind:
    """Read an object or a list, with the same errors."""
    import json  # most tables need none

    try:
        found = json.loads(read_bytes(path).decode("utf-8"))
    except UserError as error:
        raise UserError(f"{error}; {mend}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: cannot be read as JSON: {error}; {mend}") from error
    if not isinstance(found, kind):
        raise UserError(f"{path}: holds no JSON {JSON_KINDS[kind]}; {mend}")
    return found
