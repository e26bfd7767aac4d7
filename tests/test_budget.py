"""The budget of tokens: what counts, and who is told that a room is over it."""

from pathlib import Path

MODULE = '''"""A docstring
of two lines."""

import os  # a line of code


class A:
    """None."""

    text = """two lines,

    and not the blank one"""
    # why
    other = f(
        1,
    )
    """Also a docstring."""
'''
SCRIPT = """#!/usr/bin/env bash
# What it does.
set -eu

case $1 in # a line of code
  *) echo "$1" ;;
esac
"""


def write_tree(root: Path) -> None:
    for room in ("utils", "steps/speaker", "steps/asr", "egs/a", "egs/b"):
        (root / room).mkdir(parents=True)
    for path in ("utils/a.py", "steps/speaker/a.py", "steps/speaker/b.py", "steps/asr/a.py"):
        (root / path).write_text(MODULE)
    for path in ("utils/a.sh", "egs/a/run.sh", "egs/b/prepare.sh"):
        (root / path).write_text(SCRIPT)
    (root / "egs/b/run.sh").symlink_to(root / "egs/a/run.sh")


def test_a_room_over_its_budget_is_named(tmp_path, run_program):
    tree, budget = tmp_path / "tree", tmp_path / "budget.txt"
    write_tree(tree)
    written = run_program("utils/count_code.py", "--write", budget, tree)
    assert written.stdout.splitlines() == [
        "room\tfiles\ttokens\twords",
        "egs\t2\t0\t24",
        "floors\t5\t72\t12",
        "steps/asr\t1\t18\t0",
        "steps/speaker\t2\t36\t0",
        "utils\t2\t18\t12",
    ]
    kept = run_program("utils/count_code.py", "--check", budget, tree)
    assert (kept.returncode, kept.stdout, kept.stderr) == (0, "", "")
    with (tree / "steps/asr/a.py").open("a") as stream:
        stream.write("\n\n# a comment\n")
    assert run_program("utils/count_code.py", "--check", budget, tree).returncode == 0
    (tree / "steps/asr/b.py").write_text("a = 1\n")
    over = run_program("utils/count_code.py", "--check", budget, tree)
    assert over.returncode == 2
    assert "steps/asr: 21 tokens, 18 allowed by budget.txt; take out as m" in over.stderr
    assert "floors: 75 tokens, 72 allowed" in over.stderr
    assert len(over.stderr.splitlines()) == 2
    (tree / "steps/asr/page.css").write_text("/* wide */ table { width: 9em }\n")
    over = run_program("utils/count_code.py", "--check", budget, tree)
    assert "steps/asr: 4 words, 0 allowed by budget.txt" in over.stderr
