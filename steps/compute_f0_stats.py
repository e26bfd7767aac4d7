#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compute the F0 statistics of the speakers of a data directory.

F0_DIR is a folder of steps/extract_f0.py, DATA the data directory (utt2spk; all its utterances
count). OUT gets spk_f0.{ark,scp}: for each speaker the number of voiced frames, mean and standard
deviation of their log F0, and its 101 quantiles from 0 to 1. A speaker without a voiced frame has
zeros, and F0 transforms leave their pitch as it is.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils.archives import ObjectReader
from utils.cli import LossError, UserError, make_parser, run_program
from utils.datadir import load_data_dir
from utils.options import add_allow_loss, add_paths


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    add_allow_loss(parser)
    add_paths(parser, "f0_dir", "data", "out")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    from steps.synthesis.f0 import speaker_f0_stats, write_f0_stats

    data = load_data_dir(args.data, need=("utt2spk",))
    path = args.f0_dir / "f0.scp"
    if not path.is_file():
        raise UserError(f"{path}: is missing; make it with steps/extract_f0.py")
    contours = ObjectReader(path)
    missing = [utt for utt in data.utt2spk if utt not in contours]
    if len(missing) > args.allow_loss:
        raise LossError(
            f"{path}: {len(missing)} of {len(data.utt2spk)} utterances are not in it (the first: "
            f"{missing[0]}); --allow-loss is {args.allow_loss}"
        )
    present = {spk: [utt for utt in utts if utt in contours] for spk, utts in data.spk2utt.items()}
    if lost := [spk for spk, utts in present.items() if not utts]:
        raise UserError(f"{path}: no utterance of speaker {lost[0]} is in it")
    stats = speaker_f0_stats(present, contours.vector)
    write_f0_stats(args.out, stats)
    n_unvoiced = sum(not s.n for s in stats.values())
    print(
        f"read {len(data.utt2spk) - len(missing)} contours / written {len(stats)} speakers "
        f"({n_unvoiced} without a voiced frame) / skipped {len(missing)}"
    )
    return 0


if __name__ == "__main__":
    run_program(main)
