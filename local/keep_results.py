#!/usr/bin/env python3
"""Keep the figures of a finished run as data beside a page: what is committed of a run.

RESULTS is what collect_results.py (exp/results) or collect_generators.py wrote. OUT, for example
egs/an4/results/words, becomes metrics.csv or generators.csv as it is, command.txt (the run's
command) and origin.json (commit, date, machine, versions, the digest of the table). Tables are
rendered from it by render_tables.py.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.report.origin import keep
from utils.cli import UserError, make_parser, run_program
from utils.options import add_paths


def _renaming(text: str) -> tuple[str, str]:
    path, found, name = text.partition("=")
    if not (path and found and name):
        raise UserError(f"--name {text}: expected PATH=NAME, such as /data/LibriSpeech=LIBRISPEECH")
    return path, name


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument(
        "--name", type=_renaming, action="append", default=[], metavar="PATH=NAME",
        help="What to write in the command for a path of this machine; may be given again",
    )  # fmt: skip
    parser.add_argument(
        "--command", default="", metavar="TEXT", help="The command, where the run recorded none"
    )
    add_paths(parser, "results", "out")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    table = keep(args.results, args.out, dict(args.name), args.command)
    print(f"{args.out}: {table} command.txt origin.json")
    return 0


if __name__ == "__main__":
    run_program(main)
