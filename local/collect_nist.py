#!/usr/bin/env python3
"""Put together the figures of the NIST study (Seo et al. 2025).

FOLDERs hold metrics.json of the families trial1, trial2 and leakage, whose attacker is the profile
(p1, p2, ...), cross, and trial2 of the system original without a profile. OUT gets metrics.csv (one
figure a row), run.json (where they came from, for keep_results.py) and RESULTS.md, laid out as the
paper's Tables 5 to 8, with the printed figures beside.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.options import add_collection, add_labelled
from utils.cli import make_parser, run_program


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    add_collection(parser, "corpus-name")
    add_labelled(parser, "--figures", required=True)
    parser.add_argument("out", type=Path, metavar="OUT")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    from pandas import DataFrame

    from local.report.frame import METRICS
    from local.report.gather import labelled, tabulate
    from local.report.nist import STUDY

    corpus = {"corpus": args.corpus_name}
    folders = labelled(args.figures)
    rows = [row for folder, of in folders.items() for row in tabulate(folder, corpus | of)[0]]
    figures = DataFrame(rows, columns=METRICS)
    STUDY.write(args.out, figures, args.command_log, corpus=args.corpus_name)
    print(f"{len(rows)} figures of {len(folders)} folders written to {args.out}")
    return 0


if __name__ == "__main__":
    run_program(main)
