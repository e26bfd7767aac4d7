#!/usr/bin/env python3
"""Put together what was measured of the generators of pseudo-speakers.

OUT gets generators.csv (one figure a row), RESULTS.md (beside the figures of Liu et al. 2025),
capacity.pdf and capacity.svg (their Fig. 11), and run.json (command, commit, versions). THRESHOLD
is the file of local/find_threshold.py, REAL a folder with the capacity.tsv of real speakers.
Generators without --attacked are "not run".
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.options import add_collection, add_labelled
from utils.cli import make_parser, run_program
from utils.options import add_paths


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    add_collection(parser, "corpus-name", "encoder")
    parser.add_argument(
        "--generator", nargs=3, action="append", required=True,
        metavar=("NAME", "CAPACITY", "TIME"),
        help="A generator's name and its folders with capacity.tsv and time.json; may be given "
        "again",
    )  # fmt: skip
    add_labelled(parser, "--attacked")
    add_paths(parser, "threshold", "real", "out")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    from pandas import concat

    from local.report import generators as report

    threshold = report.read_threshold(args.threshold)
    names = [name for name, _, _ in args.generator]
    tables = [report.capacity_rows(report.REAL, args.real / "capacity.tsv")]
    for name, capacity, seconds in args.generator:
        tables.append(report.capacity_rows(name, Path(capacity) / "capacity.tsv"))
        tables.append(report.time_rows(name, Path(seconds) / "time.json"))
    tables.append(report.speech_rows(args.attacked))
    tables.append(report.published_rows(names))
    rows = concat(tables, ignore_index=True).astype({"value": float})
    report.STUDY.write(
        args.out, rows, args.command_log,
        corpus=args.corpus_name, encoder=args.encoder, threshold=threshold,
    )  # fmt: skip
    print(f"{len(rows)} figures of {len(names)} generators written to {args.out}")
    return 0


if __name__ == "__main__":
    run_program(main)
