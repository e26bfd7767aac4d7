# SPDX-License-Identifier: Apache-2.0
"""Curves behind the figures, for pictures of scores, small enough to keep with the results.

ECE profiles (Noé et al. 2022, Eq. 11 and 12, Fig. 7, 8 and 10), empirical calibration (Fig. 4),
score histograms with the local linkability (Champion et al. 2021, section 3.2). Everything rests on
the same functions as the single figures.
"""

import numpy as np

from local.metrics import calibration, detection, linkability, zebra
from utils.arrays import Bool, Float64

LOG_ODDS = np.linspace(-8.0, 8.0, 161)  # natural log-odds of the prior at which profiles are given
POSTERIOR_BINS = 10

Curve = list[float]


def _prior() -> Float64:
    return np.asarray(1.0 / (1.0 + np.exp(-LOG_ODDS)), np.float64)


def _profile(llr: Float64, t: Float64, n: Float64) -> Curve:
    profile: Curve = zebra.ece(llr, t, n, _prior()).tolist()
    return profile


def _oracle(score: Float64, target: Bool) -> Curve:
    blocks = detection.pav(*detection.rank(score, target).counts())
    return _profile(blocks.llr, blocks.t, blocks.n)


def prior_profile() -> dict[str, Curve]:
    """ECE of an attacker who hears nothing, over `log_odds` (Noé et al. 2022, Eq. 12)."""
    zero, one = np.zeros(1), np.ones(1)
    return {"log_odds": LOG_ODDS.tolist(), "prior": _profile(zero, one, one)}


def attack(target: Bool, score: Float64) -> dict[str, object]:
    """Oracle-calibrated ECE profile of a trial list, that of its scores as LLR (Noé et al. 2022,
    Fig. 7) with their empirical calibration (Fig. 4), and its score histogram.

    target, score: (n_trials,), both classes present. The histogram has the bins of `linkability`:
    share of mated and of non-mated scores by bin, and D↔; None below 20 mated scores.
    """
    y = target.astype(np.float64)
    return {
        "ece": _oracle(score, target),
        "ece_actual": _profile(score, y, 1.0 - y),
        "empirical": {"uncalibrated": empirical(target, score)},
        "histogram": _histogram(target, score),
    }


def _histogram(target: Bool, score: Float64) -> dict[str, Curve] | None:
    ranking = detection.rank(score, target)
    bins = linkability.histograms(ranking)
    if bins is None:
        return None
    low, high = ranking.score[0], ranking.score[-1]
    return {
        "edges": np.linspace(low, high, len(bins.mated) + 1).tolist(),
        "mated": (bins.mated / bins.mated.sum()).tolist(),
        "non_mated": (bins.non_mated / bins.non_mated.sum()).tolist(),
        "linkability": linkability.local_linkability(bins).tolist(),
    }


def calibrations(target: Bool, score_f0: Float64, score_f1: Float64) -> dict[str, object]:
    """ECE profiles of two runs of a safeguard, and of the mapping learnt on f0 and used on f1.

    target, score_f0, score_f1: (n_trials,), both classes present (Noé et al. 2022, 5.3, Fig. 8);
    the empirical calibration of the same mapped scores (Fig. 4).
    """
    linear = calibration.fit_linear(score_f0, target)(score_f1)
    isotonic = calibration.fit_isotonic(score_f0, target)(score_f1)
    y = target.astype(np.float64)
    mapped = {"linear": linear, "isotonic": isotonic, "uncalibrated": score_f1}
    return {
        "ece": {
            "f0": _oracle(score_f0, target),
            "f1": _oracle(score_f1, target),
            **{name: _profile(llr, y, 1.0 - y) for name, llr in mapped.items()},
        },
        "empirical": {name: empirical(target, llr) for name, llr in mapped.items()},
    }


def empirical(target: Bool, llr: Float64) -> dict[str, Curve]:
    """Share of targets among trials by the posterior that their LLR states (Noé et al. 2022, 3.3).

    The posterior is σ(llr + logit of the trials' own share of targets), in ten equal bins; bins
    without trials are left out. posterior: mean by bin; share, count: likewise.
    """
    share = target.mean()
    posterior = np.exp(-detection.softplus(-(llr + np.log(share) - np.log1p(-share))))
    which = np.minimum((posterior * POSTERIOR_BINS).astype(np.int64), POSTERIOR_BINS - 1)
    count = np.bincount(which, minlength=POSTERIOR_BINS).astype(np.float64)
    some = count > 0
    stated = np.bincount(which, posterior, POSTERIOR_BINS)[some] / count[some]
    found = np.bincount(which, target.astype(np.float64), POSTERIOR_BINS)[some] / count[some]
    return {"posterior": stated.tolist(), "share": found.tolist(), "count": count[some].tolist()}
