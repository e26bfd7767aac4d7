"""Names of files: which look like people's, and names that are drawn in their place."""

import hmac
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from steps.standalone.job import made_name, plain
from utils.cli import UserError
from utils.tables import StrPath, read_lines, replacing

_WORDS = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_BETWEEN = re.compile(r"[ _.,-]+")
TABLE = "names.tsv"  # beside the output
SALT = Path(".salt")  # a row of it, which is no recording: what is drawn is the salt of marks
_DIGITS = 16  # of a drawn name, hexadecimal


def like_people(paths: Iterable[Path]) -> list[Path]:
    """Files in whose name, or that of a folder above, two words in a row begin with a capital
    letter and go on in small ones: `Anna Schmidt`, `Schmidt_Anna-2`. No list of names is asked, so
    others are not found, nor names in scripts without capitals.

    >>> [str(p) for p in like_people(map(Path, ["Anna Li.wav", "anna-1.wav", "REC 01.wav"]))]
    ['Anna Li.wav']
    """
    return [path for path in paths if any(map(_has_pair, path.with_suffix("").parts))]


def _has_pair(text: str) -> bool:
    for one, other in pairwise(_WORDS.finditer(text)):
        capital = all(w[0][0].isupper() and w[0][1:].islower() for w in (one, other))
        if capital and _BETWEEN.fullmatch(text[one.end() : other.start()]):
            return True
    return False


def draw_name(key: str, path: Path) -> Path:
    """Name that a key draws for a file, whatever folder it is in; it ends as what the file becomes.
    Who has the key can find it out from the name before, and nobody else."""
    text = plain(path.as_posix()).encode("utf-8")
    drawn = hmac.new(key.encode("utf-8"), b"name of a file:" + text, "sha256").hexdigest()
    return Path(drawn[:_DIGITS] + made_name(path).suffix)


def draw_names(
    key: str, paths: Sequence[Path], table: Path, *, begun: bool = False
) -> dict[Path, Path]:
    """Names by file, those of an earlier run from its table; the table, `<before> TAB <now>`, is
    written for its owner alone. UserError for a damaged table, and a missing one where a run has
    begun."""
    if begun and not table.is_file():
        raise UserError(f"{table}: is missing, which says whose names are drawn; put it back")
    known = known_names(paths, table)
    found = {path: known.get(path) or draw_name(key, path) for path in paths}
    rows = _read_names(table) | {_cell(path): str(name) for path, name in found.items()}
    if len({*found.values()}) < len(paths) or len({*rows.values()}) < len(rows):
        raise UserError(f"{table}: two files have one name; remove it, or take another key")
    with replacing(table) as beside:
        beside.touch(0o600)
        beside.write_text("".join(f"{a}\t{b}\n" for a, b in sorted(rows.items())), "utf-8")
    return found


def known_names(paths: Iterable[Path], table: Path) -> dict[Path, Path]:
    """Names that a table has of files; none where there is no table."""
    known = _read_names(table)
    return {path: Path(known[_cell(path)]) for path in paths if _cell(path) in known}


def _cell(path: StrPath) -> str:
    """Name of a file as a cell of a table."""
    return plain(path).replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def _read_names(table: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, line in read_lines(table) if table.is_file() else ():
        before, tab, now = line.rstrip("\n").partition("\t")
        if not tab or "\t" in now or Path(now).name != now or not now or before in found:
            raise UserError(f"{table}:{number}: not `<before> TAB <now>`, or a file twice")
        found[before] = now
    return found
