#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Score a list of trials.

ENROL_XVECTORS is a folder with spk_xvector.scp and num_utts.ark (steps/average_xvectors.py) when
the first column of TRIALS holds speakers, or an .scp/.ark file when it holds utterances.
TRIAL_XVECTORS is a folder with xvector.scp, or such a file. OUT gets `<enrol> <trial> <score>`
lines in C order; the higher the score, the more likely the same speaker.

cosine: of the raw vectors. A folder of steps/train_backend.py: log-likelihood ratio of the PLDA
(natural logarithm, not calibrated), knowing how many utterances each speaker enrolled.

A trial whose x-vector is missing is an error that names it; nothing is scored then.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from steps.options import add_backend
from steps.speaker.backends import load_normalised
from steps.speaker.scoring import read_enrolment, read_segments, score_trials
from utils.cli import make_parser, run_program
from utils.options import add_paths
from utils.trials import Scores, read_trials, write_scores


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    add_backend(parser)
    parser.add_argument("enrol", type=Path, metavar="ENROL_XVECTORS")
    parser.add_argument("trial", type=Path, metavar="TRIAL_XVECTORS")
    add_paths(parser, "trials", "out")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    backend = load_normalised(args.backend, args.asnorm)
    trials = read_trials(args.trials)
    scores = score_trials(backend, read_enrolment(args.enrol), read_segments(args.trial), trials)
    write_scores(args.out, Scores(trials.enrol, trials.trial, scores))
    n_target = int(trials.target.sum())
    print(
        f"read {len(trials)} trials ({n_target} target, {len(trials) - n_target} nontarget) / "
        f"written {len(scores)} / skipped 0"
    )
    return 0


if __name__ == "__main__":
    run_program(main)
