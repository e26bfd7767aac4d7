#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure EER and D_ECE against the number of speakers (004, Fig. 9) from counted plans.

FOLDER is one of local/make_populations.py, whose plans local/score_large.py has counted in --parts
parts. OUT is a table, a row for each population: what it is, figures, bounds of the exact EER
(_least, _most), and 95 % intervals (_low, _high) over groups of the speakers of this population.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.metrics.histograms import report
from local.options import add_bootstrap
from local.protocols.populations import Row, read_rows
from local.report.large import COLUMNS
from steps.speaker.large import read_total
from utils.cli import UserError, make_parser, run_program
from utils.progress import progress
from utils.tables import atomic_write


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument("--parts", type=int, default=1, metavar="N", help="The number of parts")
    add_bootstrap(parser, default=1000)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("out", type=Path, metavar="OUT")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    if min(args.parts, args.bootstrap) < 1:
        raise UserError("--parts and --bootstrap: from 1 on")
    lines = []
    for row in progress("measure_large", unit="populations")(read_rows(args.folder)):
        total = read_total(row.plan(args.folder), args.parts)
        lines.append(
            _line(row, report(total, n_bootstrap=args.bootstrap, seed=total.plan.info["seed"]))
        )
        print(lines[-1], flush=True)
    with atomic_write(args.out) as stream:
        stream.write("#" + "\t".join(COLUMNS) + "\n" + "".join(f"{line}\n" for line in lines))
    return 0


def _line(row: Row, made: dict[str, Any]) -> str:
    counted = [made[name] for name in ("n_enrol", "n_trial", "n_target", "n_nontarget")]
    figures = [made["eer"], *made["bounds"]["eer"], made["d_ece"]]
    for name in ("eer", "d_ece"):
        figures += made["intervals"][name] or (float("nan"),) * 2
    return "\t".join(map(str, (*astuple(row), *counted, *(f"{x:.6f}" for x in figures))))


if __name__ == "__main__":
    run_program(main)
