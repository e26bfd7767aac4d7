#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gather the figures of a run: OUT/metrics.csv (one figure a row) and OUT/per_speaker.csv.

Each FOLDER is <system>/<attacker>.<evaluator>/<condition>/<split> with a metrics.json and a stamp.
Values are fractions (EER 0.05 is 5 %), gains dB, D_ECE bit; low and high bound the 95 % interval
over speakers; settings is the digest of everything that made the figure (see the folder's .done).
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.report.results import collect
from utils.cli import make_parser, run_program


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument("--corpus-name", required=True, metavar="NAME", help="stands in every row")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    n_figures = collect(args.folders, args.corpus_name, args.out)
    print(
        f"{n_figures} figures of {len(args.folders)} comparisons written to {args.out}/metrics.csv"
    )
    return 0


if __name__ == "__main__":
    run_program(main)
