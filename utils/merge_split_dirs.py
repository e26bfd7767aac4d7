#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Put together what N parallel jobs wrote to OUT/split<N>/1 ... N, and remove these parts.

Archives become one, OUT/<stem>.ark, in sorted order, so that what is in OUT does not depend on N;
an .scp is written after its .ark. Text tables (one key a line) are joined and sorted; a first line
that starts with `#` is a header and stays. JSON files must be the same in all parts. With --expect
the ids of every table are compared with the data directory that was split: a lost utterance is an
error (exit status 3) unless it is allowed.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils.cli import UserError, make_parser, run_program
from utils.datadir import load_data_dir
from utils.merging import check_parts, read_parts, remove_merged_parts, write_merged
from utils.options import add_allow_loss


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__)
    parser.add_argument("--expect", metavar="DATA", help="The data directory that was split")
    add_allow_loss(parser, "ids")
    parser.add_argument(
        "--pieces", action="store_true", help="Ids are <utt>-c<number>: utterances were cut"
    )
    parser.add_argument("out", metavar="OUT", type=Path, help="folder that has split<N>")
    parser.add_argument("n", metavar="N", type=int, help="number of jobs")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    if args.n < 1:
        raise UserError(f"{args.n} jobs: at least 1 is possible")
    if not (args.out / f"split{args.n}").is_dir():
        if args.out.is_dir() and remove_merged_parts(args.out):
            print(f"{args.out}: merged before; removed what was left of the parts")
            return 0
        raise UserError(f"{args.out / f'split{args.n}'}: is missing; run the jobs first")
    merged = read_parts(args.out, args.n)
    lost = 0
    if args.expect is not None:
        data = load_data_dir(args.expect, need=("utt2spk",), allow_segments=True)
        lost = check_parts(args.out, merged, data, args.allow_loss, pieces=args.pieces)
    write_merged(args.out, args.n, merged)
    counts = ", ".join(f"{name} {len(table)}" for name, table in sorted(merged.tables.items()))
    print(f"{args.out}: {args.n} parts merged: {counts}; {lost} lost")
    return 0


if __name__ == "__main__":
    run_program(main)
