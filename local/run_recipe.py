#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Plan and run a recipe; run.sh and the studies beside it call this (utils/recipe.sh).

  run_recipe.py SCRIPT RECIPE NAME=VALUE... -- LINE...

SCRIPT is its name in messages, RECIPE run, nist or generators, NAME=VALUE the
options of the script, LINE what it says of its stages. exp/plan then holds a table of each kind: a
step in each row, with its stage, output and command.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from local.plan.evaluators import check_trainings, train_instead
from local.plan.external import FOLDER
from local.plan.forecast import sum_up
from local.plan.options import Asked, follow_protocol
from local.plan.run import plan_run
from local.plan.studies import STUDIES
from utils.cli import run_program
from utils.driver import LOCK, Driver
from utils.orphans import lock_folder
from utils.recipe import Planned, read_script

RECIPES = {"run": plan_run, **STUDIES}


@contextmanager
def unchanged(asked: Asked) -> Iterator[None]:
    """Context after which the settings of speech of others, which a plan writes, are as before.
    UserError where jobs of a run may read them meanwhile."""
    if asked.get("external") or asked.get("external_command"):
        FOLDER.mkdir(parents=True, exist_ok=True)
        lock_folder(LOCK, asked["command_line"])
    before = {path: path.read_bytes() for path in FOLDER.glob("*.yaml")}
    try:
        yield
    finally:
        for path in FOLDER.glob("*.yaml"):
            path.write_bytes(before[path]) if path in before else path.unlink()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    words = list(sys.argv[1:] if argv is None else argv)
    if "--" not in words:
        print(__doc__)
        return 0
    recipe = words.pop(0)
    end = words.index("--")
    asked = follow_protocol(Asked(dict(word.split("=", 1) for word in words[:end])))

    def plan() -> Planned:
        words, trainings = asked.words("evaluators"), asked.number("trainings", 0)
        words = tuple(train_instead(words)) if trainings else words
        check_trainings(words, trainings)
        return RECIPES[recipe](asked.changed({"evaluators": " ".join(words)}))

    script = read_script(words[end + 1 :])
    options = asked.without(())  # those of a protocol are also columns of commands
    driver = Driver(Path(sys.argv[0]).name, recipe, options, script, plan, sum_up)
    with unchanged(asked) if driver.is_dry else nullcontext():
        return driver.run()


if __name__ == "__main__":
    if sys.argv[2:]:
        sys.argv.pop(0)  # SCRIPT is the name in messages
    run_program(main)
