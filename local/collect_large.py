#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Put together the curves of local/measure_large.py against the number of speakers (004, Fig. 9).

OUT gets large.csv (a population a row), RESULTS.md, large.pdf and large.svg. All speakers but those
of the curve `real` are simulated, and each of these files says so.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.options import add_collection
from local.report import large as report
from local.report.origin import origin
from utils.cli import make_parser, run_program
from utils.tables import atomic_write


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    add_collection(parser, "corpus-name", "encoder")
    parser.add_argument(
        "--scorer", required=True, metavar="NAME", help="The name of the back end that scored"
    )
    parser.add_argument(
        "--leak", type=float, default=0.0, metavar="A",
        help="The share of the source speaker that protected x-vectors keep",
    )  # fmt: skip
    parser.add_argument(
        "--curve", nargs=2, action="append", required=True, metavar=("SYSTEM", "TABLE"),
        help="A system's name and its table of local/measure_large.py; may be given again",
    )  # fmt: skip
    parser.add_argument("out", type=Path, metavar="OUT")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    points = [p for name, path in args.curve for p in report.read_points(name, Path(path))]
    args.out.mkdir(parents=True, exist_ok=True)
    report.draw_curves(points, args.out)
    text = report.render(
        args.corpus_name, args.encoder, args.scorer, args.leak, points, origin(args.command_log)
    )
    with atomic_write(args.out / "RESULTS.md") as stream:
        stream.write(text)
    report.write_rows(args.out / "large.csv", points)
    print(f"{len(points)} populations of {len(args.curve)} tables written to {args.out}")
    return 0


if __name__ == "__main__":
    run_program(main)
