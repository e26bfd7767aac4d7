#!/usr/bin/env python3
"""Find the score at which an evaluator makes equally many errors of both kinds.

The trials of all lists count together. OUT is a JSON file: `threshold` (midway between the two
scores around it), `eer` (linear between points of the ROC, as local/compute_metrics.py has it), and
the numbers of trials.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.options import read_scored, write_figures
from utils.cli import UserError
from utils.commands import program
from utils.options import OutFile


@program
def main(
    out: OutFile, *,
    list: Annotated[
        Sequence[tuple[Path, Path]], "A trial list and its scores; may be given again",
        "TRIALS SCORES",
    ],
) -> None:  # fmt: skip
    import numpy as np

    from local.metrics.detection import eer, eer_threshold, rank
    from local.metrics.intervals import count_labels

    scored = [read_scored("kaldi", *paths) for paths in list]
    score = np.concatenate([score for _, score in scored])
    target = np.concatenate([trials.target for trials, _ in scored])
    if target.all() or not target.any():
        raise UserError(f"{list[0][0]}: target and nontarget trials are both needed")
    figures = {
        "threshold": eer_threshold(score, target),
        "eer": eer(*rank(score, target).counts()),
        **count_labels(target),
    }
    write_figures(out, figures)
    print(f"threshold {figures['threshold']:.4f} at an EER of {100 * figures['eer']:.1f} %")
