#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Extract F0, one contour an utterance.

DATA needs wav.scp and utt2spk. OUT gets f0.{ark,scp}: vectors (T,) of F0 in Hz, a value every 10 ms
(T = 1 + samples // 160 at 16 kHz), 0 where unvoiced, by DIO and StoneMask (WORLD); and, where
utterances were lost, skipped.txt (<utterance> <reason>).
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from steps.options import add_measuring, measure
from utils.cli import make_parser, run_program


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    add_measuring(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    from steps.synthesis.world import extract_f0

    return measure(args, "f0", "contours", extract_f0)


if __name__ == "__main__":
    run_program(main)
