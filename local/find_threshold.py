#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Find the score at which an evaluator makes equally many errors of both kinds.

The trials of all lists count together. OUT is a JSON file: `threshold` (midway between the two
scores around it), `eer` (linear between points of the ROC, as local/compute_metrics.py has it), and
the numbers of trials.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
import numpy as np

from local.metrics.detection import eer, rank
from local.metrics.threshold import eer_threshold
from utils.cli import UserError, make_parser, run_program
from utils.tables import atomic_write
from utils.trials import join_scores, read_scores, read_trials


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument(
        "--list", type=Path, nargs=2, action="append", required=True, metavar=("TRIALS", "SCORES"),
        help="A trial list and its scores; may be given again",
    )  # fmt: skip
    parser.add_argument("out", type=Path, metavar="OUT")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    scores, targets = [], []
    for trials_path, scores_path in args.list:
        trials = read_trials(trials_path)
        found = read_scores(scores_path)
        joined = join_scores(trials, found, trials_path=trials_path, scores_path=scores_path)
        scores.append(joined)
        targets.append(trials.target)
    score, target = np.concatenate(scores), np.concatenate(targets)
    if target.all() or not target.any():
        raise UserError(f"{args.list[0][0]}: target and nontarget trials are both needed")
    figures = {
        "threshold": eer_threshold(score, target),
        "eer": eer(*rank(score, target).counts()),
        "n_target": int(target.sum()),
        "n_nontarget": int((~target).sum()),
    }
    with atomic_write(args.out) as stream:
        stream.write(json.dumps(figures, indent=1) + "\n")
    print(f"threshold {figures['threshold']:.4f} at an EER of {100 * figures['eer']:.1f} %")
    return 0


if __name__ == "__main__":
    run_program(main)
