#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Extract functionals of pitch, energy and spectrum, by which emotions are recognised.

DATA needs wav.scp and utt2spk. OUT gets functionals.{ark,scp}: a vector (64,) an utterance, NaN
where a value is not defined (steps/emotion/functionals.py names them); and, where utterances were
lost, skipped.txt (<utterance> <reason>).
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils.cli import make_parser, run_program
from utils.datadir import load_data_dir
from utils.options import add_allow_loss, add_paths
from utils.progress import progress


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    add_allow_loss(parser)
    add_paths(parser, "data", "out")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    from steps.emotion.functionals import functionals
    from steps.synthesis.extraction import measure_all

    data = load_data_dir(args.data)
    result = measure_all(
        data.wav, functionals, args.out / "functionals", args.allow_loss,
        progress("extract_functionals"),
    )  # fmt: skip
    print(
        f"read {result.n_written + len(result.skipped)} utterances / written {result.n_written} "
        f"vectors / skipped {len(result.skipped)}"
    )
    return 0


if __name__ == "__main__":
    run_program(main)
