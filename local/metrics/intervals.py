# SPDX-License-Identifier: Apache-2.0
"""Bootstrap intervals (95 %) over speakers.

A metric generalises to new people, so people are drawn: with replacement, as many as there are.
Resampling trials would treat thousands of comparisons of the same few voices as independent and
understate the interval. A speaker drawn w times counts w times, and is never compared with its own
copy as if the two were different people: a comparison within speaker s weighs w_s, one between
speakers a and b weighs w_a·w_b.
"""

import logging
import math
from collections.abc import Callable

import numpy as np

from utils.arrays import Float64
from utils.seeds import make_rng

LEVEL = 0.95

Figures = dict[str, float]  # NaN: undefined

logger = logging.getLogger(__name__)


def multiplicities(n_speakers: int, n_bootstrap: int, seed: int) -> Float64:
    """Draw the speakers: counts (n_bootstrap, n_speakers); speakers in C order of their ids, so
    that the draws do not depend on the order of any file."""
    rng = make_rng(seed, "bootstrap over speakers")
    return rng.multinomial(n_speakers, np.full(n_speakers, 1.0 / n_speakers), n_bootstrap).astype(
        np.float64
    )


def pair_weights(drawn: Float64) -> Float64:
    """Weight of comparisons between speakers, (n_speakers, n_speakers), when each is drawn
    `drawn[s]` times: w_a·w_b, and on the diagonal w_s."""
    weight = np.outer(drawn, drawn)
    np.fill_diagonal(weight, drawn)
    return weight


def interval_report(
    evaluate: Callable[[Float64], Figures | None], n_speakers: int, n_bootstrap: int, seed: int
) -> dict[str, object]:
    """Compute `intervals` of each figure, with the counts behind them, for a report.

    evaluate: figures of a resample from how often each speaker is drawn, (n_speakers,); None where
    nothing is defined (no target or no nontarget left, for example).
    """
    draws = multiplicities(n_speakers, n_bootstrap, seed)
    replicates = [figures for drawn in draws if (figures := evaluate(drawn)) is not None]
    left_out = n_bootstrap - len(replicates)
    if left_out:
        logger.warning(
            "%d of %d resamples of the speakers are undefined (no target or no nontarget left) "
            "and left out of the intervals",
            left_out,
            n_bootstrap,
        )
    names = replicates[0] if replicates else {}
    return {
        "n_bootstrap": n_bootstrap,
        "n_bootstrap_undefined": left_out,
        "intervals": {name: _interval(name, replicates) for name in names},
    }


def _interval(name: str, replicates: list[Figures]) -> list[float] | None:
    values = np.array([figures[name] for figures in replicates])
    defined = values[~np.isnan(values)]
    if len(defined) < len(values):
        logger.warning(
            "%s is undefined in %d of %d resamples; its interval is over the others",
            name,
            len(values) - len(defined),
            len(values),
        )
    return list(percentiles(defined)) if len(defined) else None


def percentiles(values: Float64) -> tuple[float, float]:
    """Central 95 % of replicates; rounded outwards to replicates, so infinite ones do no harm."""
    ordered = np.sort(values)
    tail = 0.5 * (1.0 - LEVEL) * (len(ordered) - 1)
    low, high = math.floor(tail + 1e-9), math.ceil(len(ordered) - 1 - tail - 1e-9)
    return float(ordered[low]), float(ordered[high])
