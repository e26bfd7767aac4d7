"""Scores of several evaluators on the same trials, fused into one."""

from collections.abc import Sequence

import numpy as np

from utils.arrays import Float64
from utils.trials import Ids

EQUAL = 1e-12  # spread, beside the largest score, below which scores are equal but for rounding


def normalise(trial: Sequence[str], score: Float64) -> Float64:
    """Scores (n_trials,) less their mean over the candidates of the same trial utterance, over
    their deviation there; 0 for all where it has one candidate, or all are equally alike.

    >>> normalise(["u", "u", "v", "v"], np.array([1.0, 3.0, 2.0, 2.0])).tolist()
    [-1.0, 1.0, 0.0, 0.0]
    """
    codes = Ids.of(trial).codes
    count = np.bincount(codes)
    away = score - (np.bincount(codes, score) / count)[codes]
    spread = np.sqrt(np.bincount(codes, away**2) / count)[codes]
    some = spread > EQUAL * np.abs(score).max()
    found: Float64 = np.where(some, away / np.where(some, spread, 1.0), 0.0)
    return found


def fuse(trial: Sequence[str], scores: Sequence[Float64]) -> Float64:
    """Sum (n_trials,) of the normalised scores of each evaluator."""
    found: Float64 = np.sum([normalise(trial, score) for score in scores], axis=0)
    return found
