#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Estimate what listeners would say of the quality of speech, from 1 (bad) to 5 (excellent).

The utterances of DATA are looked up in SPEECH (a data directory that may hold more: the original
or a protected set) and heard by DistillMOS, each by itself, at most 7.68 s from its middle. OUT
gets `quality`, a line an utterance: its estimated mean opinion score, or `-` and why there is none
(empty, short: under 0.2 s, silent, clipped). What could not be read is in OUT/skipped.txt.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils.cli import UserError, make_parser, run_program
from utils.datadir import load_data_dir
from utils.options import add_allow_loss, add_paths
from utils.progress import progress


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    add_allow_loss(parser)
    add_paths(parser, "data", "speech", "out")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    from steps.quality.estimate import estimate_all, write_quality

    wav = load_data_dir(args.speech).wav
    utts = load_data_dir(args.data, need=("utt2spk",)).utt2spk
    if missing := [utt for utt in utts if utt not in wav]:
        raise UserError(f"{args.speech}/wav.scp: has no {missing[0]}, which {args.data} names")
    found, skipped = estimate_all(
        {utt: wav[utt] for utt in utts}, args.allow_loss, progress("estimate_quality")
    )
    write_quality(args.out, found, skipped)
    undefined = {utt: q.problem for utt, q in found.items() if q.problem}
    for utt, problem in undefined.items():
        print(f"{utt}: not defined, its audio is {problem}: {wav[utt]}")
    print(
        f"read {len(utts)} utterances / written {len(found)} / not defined {len(undefined)} / "
        f"skipped {len(skipped)}"
    )
    return 0


if __name__ == "__main__":
    run_program(main)
