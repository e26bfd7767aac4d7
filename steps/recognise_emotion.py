#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recognise the emotion of each utterance of a data directory.

RECOGNISER is `functionals`, a linear classifier that is trained here on the sets of --train, for
each speaker of DATA without that speaker; or `hub:<model>`, a model of the Hugging Face hub for
SpeechBrain (which runs the code that comes with it) or transformers, or a folder of one. DATA needs
utt2spk, for a model of the hub wav.scp. The sets of --train need utt2emotion. OUT gets `emotions`
(<utterance> <emotion>), posteriors.tsv (a probability for each emotion) and recogniser.json (how it
was made).
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from steps.emotion.result import RECOGNISERS, Asked, write_recognised
from steps.options import add_device
from utils.cli import make_parser, run_program
from utils.options import add_paths, add_seed
from utils.progress import progress
from utils.registry import find


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument(
        "--features", type=Path, metavar="DIR",
        help="The folder of DATA's functionals (extract_functionals.py)",
    )  # fmt: skip
    parser.add_argument(
        "--train", type=Path, nargs=2, action="append", default=[], metavar=("DATA", "DIR"),
        help="A training set and its functionals; may be given again",
    )  # fmt: skip
    parser.add_argument(
        "--folds", type=int, default=0, metavar="N",
        help="The number of parts of DATA's speakers that are left out of training one after the "
        "other; 0: each speaker alone",
    )  # fmt: skip
    add_seed(parser)
    add_device(parser)
    parser.add_argument("recogniser", metavar="RECOGNISER")
    add_paths(parser, "data", "out")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    recognise, named = find(RECOGNISERS, args.recogniser, "recogniser")
    asked = Asked(
        args.features, args.train, args.folds, args.seed, args.device, progress("emotions")
    )
    found = recognise(args.data, asked, *named)
    write_recognised(args.out, found)
    print(f"{args.data}: {len(found.posteriors)} utterances, {len(found.labels)} emotions")
    return 0


if __name__ == "__main__":
    run_program(main)
