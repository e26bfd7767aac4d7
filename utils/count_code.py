#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Print the ledger of a checkout: files, tokens of Python and words of all else, of every room.

A room is a directory of the house; the scripts and settings of all corpora are one, `egs`. Tokens
are those of Python's own tokenizer, without comments and layout; a docstring is one. Words are of
scripts, templates, settings and tables, without comments. The row `floors` has local, steps and
utils together. With --check nothing is printed unless a room is over its budget; then the exit
status is 2.
"""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

from utils.cli import UserError
from utils.commands import program
from utils.tables import read_map, write_map

FLOORS = ("local", "steps", "utils")
WORDS = ":words"  # behind the room in a row of the budget
ADVICE = "take out as much as you add, or raise the budget in a commit that says why"
_OTHERS = (".sh", ".jinja", ".yaml", ".csv", ".css")
_LAYOUT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER,
}  # fmt: skip


class Count(NamedTuple):
    """Files of a room, tokens of its Python, and words of all else."""

    files: int
    tokens: int
    words: int


def tokens_of(text: str) -> int:
    """Tokens of a module.

    >>> tokens_of('def f():\\n    "Says it."\\n\\n    return (  # here\\n        1)')
    10
    """
    found = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(token.type not in _LAYOUT for token in found)


def words_of(text: str) -> int:
    """Words of a script, a template, settings or a table.

    >>> words_of("# why\\n\\nset -e  # also this\\n")
    4
    """
    lines = (line for line in text.split("\n") if not line.lstrip().startswith("#"))
    return sum(len(re.findall(r"\w+", line)) for line in lines)


def files_of(root: Path) -> Iterator[tuple[str, Path]]:
    """(room, file) of all that counts in a checkout and is not a link."""
    found = [*root.glob("egs/*/*.sh"), *root.glob("egs/*/conf/**/*.yaml")]
    for top in (*FLOORS, "tests", "benchmarks"):
        found += [path for path in root.glob(f"{top}/**/*") if path.suffix in (".py", *_OTHERS)]
    for path in (path for path in found if not path.is_symlink()):
        room = path.relative_to(root).parent
        yield "egs" if room.parts[0] == "egs" else str(room), path


def count_rooms(root: Path) -> dict[str, Count]:
    """Counts by room, in C order, and under `floors` their sum over the floors."""
    found: dict[str, list[Count]] = {}
    for room, path in files_of(root):
        text = path.read_text(encoding="utf-8")
        count = (
            Count(1, tokens_of(text), 0) if path.suffix == ".py" else Count(1, 0, words_of(text))
        )
        for name in (room, "floors") if room.split("/")[0] in FLOORS else (room,):
            found.setdefault(name, []).append(count)
    if "floors" not in found:
        raise UserError(f"{root}: has no {', '.join(FLOORS)}; name a checkout of the project")
    return {
        room: Count(*map(sum, zip(*counts, strict=True))) for room, counts in sorted(found.items())
    }


def budget_of(rooms: dict[str, Count]) -> dict[str, int]:
    """Budget that these rooms just keep: tokens of each, and words where it has any."""
    found = {room: count.tokens for room, count in rooms.items()}
    return found | {f"{room}{WORDS}": count.words for room, count in rooms.items() if count.words}


def over_budget(found: dict[str, int], path: Path) -> list[str]:
    """A line for each room that has more than the budget in `path` allows."""
    allowed = read_map(path)
    return [
        f"{name.removesuffix(WORDS)}: {count} {'words' if name.endswith(WORDS) else 'tokens'}, "
        f"{allowed.get(name, 0)} allowed by {path.name}; {ADVICE}"
        for name, count in found.items()
        if count > int(allowed.get(name, 0))
    ]


@program
def main(
    checkout: Annotated[Path, "The checkout to count in"] = Path(),
    *,
    check: Annotated[Path | None, "The budget that no room may be over", "BUDGET"] = None,
    write: Annotated[Path | None, "The budget to write, of what is there now", "BUDGET"] = None,
) -> None:
    rooms = count_rooms(checkout)
    found = budget_of(rooms)
    if write:
        write_map(write, found)
    if check and (wrong := over_budget(found, check)):
        raise UserError("\n".join(wrong))
    if not check:
        print("room", *Count._fields, sep="\t")
        for room, count in rooms.items():
            print(room, *count, sep="\t")
