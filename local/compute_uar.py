#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compute the unweighted average recall of emotions and write it as JSON.

DATA needs utt2emotion (what was felt, or acted) and utt2spk; EMOTIONS is a table of the same
utterances (<utterance> <emotion>), such as steps/recognise_emotion.py or anybody's recogniser
writes. An emotion that DATA does not have counts as wrong. OUT, a file or - for standard output,
gets uar, accuracy, recall_<emotion>, chance_uar (of a guesser) and the confusions. Values are
fractions. docs/metrics/uar.md explains them.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.metrics.output import write_figures
from local.metrics.uar import recall_figures
from local.protocols.recognised import read_recognised
from utils.cli import make_parser, natural, run_program


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument(
        "--bootstrap", type=natural, default=0, metavar="N",
        help="resamples of the speakers for 95 %% intervals; 0: none",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the resamples")
    parser.add_argument(
        "--also", type=Path, nargs=2, action="append", default=[], metavar=("DATA", "EMOTIONS"),
        help="a further set, counted together with the first",
    )  # fmt: skip
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument("emotions", type=Path, metavar="EMOTIONS")
    parser.add_argument("out", metavar="OUT")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    named = [(args.data, args.emotions), *args.also]
    sets = read_recognised(named, "utt2emotion", "recognise them again")
    figures = recall_figures(
        sets.reference, sets.said, sets.utt2spk, n_bootstrap=args.bootstrap, seed=args.seed
    )
    write_figures(args.out, figures)
    return 0


if __name__ == "__main__":
    run_program(main)
