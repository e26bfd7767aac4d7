#!/usr/bin/env python3
"""Plan a recipe: what each of its stages makes, and by which arguments.

RECIPE is run, nist, whitebox or generators; NAME=VALUE the options of its script. FOLDER
then holds a table of each kind, <table>.tsv, with a step in each row: stage, output, further
outputs, `--`, and the command, where %name stands for the program of that name, which the script
gives. options.json is what a finished run is remembered by, notes what the log is to say: also what
was asked for and does not exist (a white-box attacker without a constant target, ...), with why.
Nothing else is made.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.plan.options import Asked, follow_protocol, train_again
from local.plan.run import plan_run
from local.plan.studies import STUDIES
from utils.cli import UserError, run_program
from utils.commands import program
from utils.tables import atomic_write

RECIPES = {"run": plan_run, **STUDIES}


@program
def main(
    recipe: Annotated[str, "The recipe", (*RECIPES,)],
    folder: Annotated[Path, "The folder of the plan, which is written"],
    options: Annotated[Sequence[str], "The options of its script", "NAME=VALUE"] = (),
) -> None:  # fmt: skip
    values = dict(word.split("=", 1) for word in options if "=" in word)
    if len(values) < len(options):
        raise UserError("NAME=VALUE is expected, each once; see --help")
    asked = follow_protocol(Asked(values))
    again = train_again(asked.words("evaluators"), asked.number("trainings"))
    planned = RECIPES[recipe](asked.changed({"evaluators": " ".join(again)}))
    planned.tables.write(folder)
    with atomic_write(folder / "options.json") as stream:
        json.dump(planned.remembered, stream, indent=1)
    with atomic_write(folder / "notes") as stream:
        stream.writelines(f"{note}\n" for note in planned.notes)


if __name__ == "__main__":
    run_program(main)
