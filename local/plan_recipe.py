#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plan a recipe: what each of its stages makes, and by which arguments.

RECIPE is run, nist, whitebox, generators or large; NAME=VALUE the options of its script. FOLDER
then holds a table of each kind, <table>.tsv, with a step in each row: stage, output, further
outputs, `--`, and the command, where %name stands for the program of that name, which the script
gives. options.json is what a finished run is remembered by, notes what the log is to say: also what
was asked for and does not exist (a white-box attacker without a constant target, ...), with why.
Nothing else is made.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.plan.evaluators import train_again
from local.plan.options import Asked, follow_protocol
from local.plan.run import plan_run
from local.plan.studies import STUDIES
from utils.cli import UserError, make_parser, run_program
from utils.options import add_paths
from utils.tables import atomic_write

RECIPES = {"run": plan_run, **STUDIES}


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument("recipe", choices=RECIPES)
    add_paths(parser, "folder")
    parser.add_argument("options", nargs="*", metavar="NAME=VALUE")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    values = dict(word.split("=", 1) for word in args.options if "=" in word)
    if len(values) < len(args.options):
        raise UserError("NAME=VALUE is expected, each once; see --help")
    asked = follow_protocol(Asked(values))
    again = train_again(asked.words("evaluators"), asked.number("trainings"))
    planned = RECIPES[args.recipe](asked.changed({"evaluators": " ".join(again)}))
    planned.tables.write(args.folder)
    with atomic_write(args.folder / "options.json") as stream:
        json.dump(planned.remembered, stream, indent=1)
    with atomic_write(args.folder / "notes") as stream:
        stream.writelines(f"{note}\n" for note in planned.notes)
    return 0


if __name__ == "__main__":
    run_program(main)
