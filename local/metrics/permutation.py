# SPDX-License-Identifier: Apache-2.0
"""Permutation tests of a search against chance (identity leakage; Seo et al. 2025, 3.6).

The null hypothesis is that of the clustered chance level: the gallery's clusters stay as they are,
and the names under which the speakers' protected segments are searched are permuted. Several
systems are tested side by side, so their p values are corrected (Holm 1979).
"""

import logging
import math
from collections.abc import Sequence

import numpy as np

from local.metrics.intervals import Figures
from local.metrics.ranks import RANKS, Search
from utils.arrays import Float64
from utils.seeds import make_rng

N_PERMUTATIONS = 9999
TESTED = (*(f"cmc_{k}" for k in RANKS), "auc_cmc", "mean_rank")
_AT_ONCE = 500
_ROUNDING = 1e-9  # of sums over queries: a smaller difference is a tie, and counts for chance

logger = logging.getLogger(__name__)


def permutation_tests(
    found: Search, n_permutations: int = N_PERMUTATIONS, seed: int = 0
) -> Figures:
    """P values `p_value_<figure>`: for cmc_<k> and auc_cmc (higher leaks more), mean_rank (lower).

    p = (1 + permutations that leak as much or more) / (1 + permutations), so never 0. The same seed
    gives the same permutations whatever the order of the files. NaN without a query that has a
    mate, or with one speaker, for whom there is nothing to permute.
    """
    names = [f"p_value_{name}" for name in TESTED]
    queries = found.mates > 0
    if len(np.unique(found.own[queries])) < 2:
        logger.warning("p_value_* is undefined: a test needs queries of two speakers or more")
        return dict.fromkeys(names, math.nan)
    total = leakage_sums(found)
    n = total.shape[1]
    places = np.arange(n)
    observed = total[:, places, places].sum(axis=1)
    rng = make_rng(seed, "permutation test of speakers")
    as_much, left = np.zeros(len(total)), n_permutations
    while left > 0:
        size = min(left, _AT_ONCE)
        order = rng.permuted(np.tile(places, (size, 1)), axis=1)
        drawn = np.stack([one[places, order].sum(axis=1) for one in total])
        as_much += (drawn >= observed[:, None] - _ROUNDING).sum(axis=1)
        left -= size
    p = (1.0 + as_much) / (1.0 + n_permutations)
    return dict(zip(names, p.tolist(), strict=True))


def leakage_sums(found: Search) -> Float64:
    """Figures (TESTED, S, S) of the queries of speaker s under the name of speaker t.

    Sums over queries, mean_rank with its sign turned so that more is more leakage in all.
    """
    queries = found.mates > 0
    who, own = np.unique(found.own[queries], return_inverse=True)
    best = found.best[queries][:, who]
    top = int(min(RANKS[-1], found.gallery.min()))
    hits = [(best <= k).astype(np.float64) for k in RANKS]
    under_curve = np.maximum(top + 1 - best, 0.0) / top  # ranks 1..top at which it is a hit
    parts = [*hits, under_curve, -best]
    sums = np.zeros((len(parts), len(who), len(who)))
    for place, part in enumerate(parts):
        np.add.at(sums[place], own, part)
    return sums


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p values of several tests for their number (Holm 1979), in the given order.

    The i-th smallest of m, from 1, is multiplied by m + 1 - i; none is below one that was smaller,
    or above 1. NaN stays and does not count.
    """
    p = np.asarray(p_values, np.float64)
    defined = np.flatnonzero(~np.isnan(p))
    order = defined[np.argsort(p[defined], kind="stable")]
    corrected = p.copy()
    factors = np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0)
    return [float(value) for value in corrected]
