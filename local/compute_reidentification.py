#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compute how often an attacker names the right one of the enrolled speakers, from scores.

TRIALS `<enrolled speaker> <utterance> target|nontarget` and SCORES as for compute_metrics.py; each
utterance's candidates are the speakers that it is scored against. OUT is a JSON file, or - for
standard output. Values are fractions, with chance levels (docs/metrics/reidentification.md).
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.metrics.output import write_figures
from local.metrics.reidentification import reidentification
from local.options import add_figures
from utils.cli import make_parser, run_program
from utils.options import add_utt2spk
from utils.tables import read_map
from utils.trials import join_scores, read_scores, read_trials


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    add_utt2spk(parser)
    add_figures(parser, "TRIALS", "SCORES")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    trials = read_trials(args.trials)
    score = join_scores(
        trials, read_scores(args.scores), trials_path=args.trials, scores_path=args.scores
    )
    report = reidentification(
        trials, score, read_map(args.utt2spk), trials_path=args.trials,
        n_bootstrap=args.bootstrap, seed=args.seed,
    )  # fmt: skip
    write_figures(args.out, report)
    return 0


if __name__ == "__main__":
    run_program(main)
