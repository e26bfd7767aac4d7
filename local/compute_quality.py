#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compute mean opinion scores over speakers, and their drop by protection, as JSON.

QUALITY is the table of steps/estimate_quality.py, of some or all utterances of DATA. OUT, a file or
- for standard output, gets mos (1 to 5) and, with --original, mos_original and mos_drop of the
utterances that have both scores; `n_undefined` counts those without, by reason.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.metrics.output import write_figures
from local.metrics.quality import quality_figures, read_quality
from local.options import add_figures
from utils.cli import UserError, make_parser, run_program
from utils.tables import read_map


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    add_figures(parser, "DATA", "QUALITY", also=True)
    parser.add_argument(
        "--original", type=Path, action="append", default=[], metavar="QUALITY",
        help="The scores of the original speech; may be given again, for the original of a further "
        "set",
    )  # fmt: skip
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    scores: dict[str, float | str] = {}
    utt2spk: dict[str, str] = {}
    for data, path in [(args.data, args.quality), *args.also]:
        found, speakers = read_quality(path), read_map(data / "utt2spk")
        for utt in found:
            if utt not in speakers:
                raise UserError(f"{path}: {utt} is not in {data}/utt2spk; estimate it again")
            if utt in scores:
                raise UserError(f"{path}: {utt} is in another set, too; name each set once")
        scores |= found
        utt2spk |= speakers
    before: dict[str, float | str] = {}
    for path in args.original:
        before |= read_quality(path)
    if args.original and (missing := [utt for utt in scores if utt not in before]):
        raise UserError(f"{args.original[0]}: has no {missing[0]}; estimate it again")
    figures = quality_figures(
        scores, utt2spk, before if args.original else None,
        n_bootstrap=args.bootstrap, seed=args.seed,
    )  # fmt: skip
    write_figures(args.out, figures)
    return 0


if __name__ == "__main__":
    run_program(main)
