#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare pitch, length and level of protected speech with its original.

DATA and PROTECTED are data directories (wav.scp, utt2spk); every utterance of DATA is compared with
the one of the same id in PROTECTED, which may hold more. OUT gets the table `prosody`, a line an
utterance: correlation of log F0 on frames voiced in both, share of frames with the same voicing
decision, relative change of duration, change of level (dB), share of clipped samples after and
before, frames, frames voiced in both; `-` where undefined. What was lost is in OUT/skipped.txt.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from steps.options import add_measuring, f0_range
from utils.cli import make_parser, run_program
from utils.datadir import load_data_dir
from utils.progress import progress


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    add_measuring(parser, "protected")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    from steps.synthesis.prosody import compare_all, write_prosody

    limits = f0_range(args)
    original, protected = load_data_dir(args.data), load_data_dir(args.protected)
    compared = compare_all(
        original.wav, protected.wav, limits, args.allow_loss, progress("compare_prosody")
    )
    write_prosody(args.out, compared)
    print(
        f"read {len(original.wav)} utterances / written {len(compared.prosody)} comparisons / "
        f"skipped {len(compared.skipped)}"
    )
    return 0


if __name__ == "__main__":
    run_program(main)
