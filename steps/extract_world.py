#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""WORLD analysis: pitch, aperiodicity and spectral envelope of every utterance.

DATA needs wav.scp and utt2spk. OUT gets world.{ark,scp}: matrices (T, 42), a row every 10 ms
(T = 1 + samples // 160 at 16 kHz): F0 in Hz (DIO and StoneMask; 0 where unvoiced), the aperiodicity
in dB (D4C, one band), 40 values of the coded envelope (CheapTrick); and, where some were lost,
skipped.txt (<utterance> <reason>). steps/make_voice_pool.py makes target voices of them.
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
    from steps.synthesis.world import analyse, pack

    return measure(args, "world", "matrices", lambda *given: pack(analyse(*given)))


if __name__ == "__main__":
    run_program(main)
