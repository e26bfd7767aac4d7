#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Print the ledger of a checkout: files, lines and lines of code of every room.

A room is a directory of the house; the scripts of all corpora are one, `egs`. A line of code holds
more than blanks, a comment or a docstring. The row `floors` has local, steps and utils together.
With --check nothing is printed unless a room is over its budget; then the exit status is 2.
"""

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

from utils.cli import UserError
from utils.commands import program
from utils.tables import read_map, write_map

FLOORS = ("local", "steps", "utils")
MODULES = "floors:modules"  # a row of the budget beside the rooms
ADVICE = "take out as much as you add, or raise the budget in a commit that says why"
_NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER,
}  # fmt: skip


class Count(NamedTuple):
    """Python modules, all lines and the lines of code of a room; its scripts are in the lines."""

    modules: int
    lines: int
    code: int


def code_of_python(text: str) -> int:
    """Lines of code of a module; a string that is a statement, as a docstring is, counts as none.

    >>> code_of_python('def f():\\n    "Says it."\\n\\n    return (  # here\\n        1)')
    3
    """
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    spans = [(t.start[0], t.end[0]) for t in tokens if t.type not in _NO_CODE]
    code = {number for first, last in spans for number in range(first, last + 1)}
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str()), lineno=first, end_lineno=last):
                code.difference_update(range(first, (last or first) + 1))
    return sum(bool(line.strip()) for n, line in enumerate(text.split("\n"), 1) if n in code)


def code_of_shell(text: str) -> int:
    """Lines of code of a script.

    >>> code_of_shell("# why\\n\\nset -e  # also this\\n")
    1
    """
    return sum(not line.lstrip().startswith("#") for line in text.split("\n") if line.strip())


def files_of(root: Path) -> Iterator[tuple[str, Path]]:
    """(room, file) of all modules and scripts of a checkout that are no links."""
    found = list(root.glob("egs/*/*.sh"))
    for top in (*FLOORS, "tests", "benchmarks"):
        found += [path for path in root.glob(f"{top}/**/*") if path.suffix in (".py", ".sh")]
    for path in (path for path in found if not path.is_symlink()):
        room = path.relative_to(root).parent
        yield "egs" if room.parts[0] == "egs" else str(room), path


def count_rooms(root: Path) -> dict[str, Count]:
    """Room -> what it has, in C order, and `floors` -> what these have together."""
    found: dict[str, list[Count]] = {}
    for room, path in files_of(root):
        text, is_module = path.read_text(encoding="utf-8"), path.suffix == ".py"
        code = code_of_python(text) if is_module else code_of_shell(text)
        count = Count(int(is_module), text.count("\n"), code)
        for name in (room, "floors") if room.split("/")[0] in FLOORS else (room,):
            found.setdefault(name, []).append(count)
    if "floors" not in found:
        raise UserError(f"{root}: has no {', '.join(FLOORS)}; name a checkout of the project")
    return {
        room: Count(*map(sum, zip(*counts, strict=True))) for room, counts in sorted(found.items())
    }


def budget_of(rooms: dict[str, Count]) -> dict[str, int]:
    """The budget that these rooms just keep: lines of code of each, and modules of the floors."""
    return {room: count.code for room, count in rooms.items()} | {MODULES: rooms["floors"].modules}


def over_budget(found: dict[str, int], path: Path) -> list[str]:
    """A line for each row of which more was found than the budget in `path` allows."""
    allowed = read_map(path)
    return [
        f"{name}: {count} {'modules' if name == MODULES else 'lines of code'}, "
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
