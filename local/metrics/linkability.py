# SPDX-License-Identifier: Apache-2.0
"""Linkability D↔ and D_sys of Gomez-Barrero et al. 2017, as in Champion et al. 2021, 3.2.

Mated scores compare two recordings of one person (targets), non-mated scores those of two persons.
Densities are histograms on equal bins over the joint range; another density estimate is another
metric and needs another name.
"""

import math
from dataclasses import dataclass

import numpy as np

from local.metrics.detection import Ranking
from utils.arrays import Float64, Int64

MOST_BINS = 100
FEWEST_MATED = 20  # two bins


@dataclass(frozen=True, eq=False)
class Histograms:
    """Mated and non-mated scores in equal bins, and the bin of each trial.

    mated, non_mated: (n_bins,) counts; edge: (n_bins + 1,) positions in the ranking that begin and
    end the bins.
    """

    mated: Float64
    non_mated: Float64
    edge: Int64


def histograms(
    ranking: Ranking, weight: Float64 | None = None, n_bins: int | None = None
) -> Histograms | None:
    """Histograms on min(⌊T/10⌋, 100) bins, T the number of mated scores; None below 20.

    weight: as for `Ranking.counts`. Bins are half-open, the last one closed. n_bins: so many,
    however few scores there are; None without mated or non-mated ones.
    """
    every = np.ones(len(ranking.score)) if weight is None else weight
    mated = every * ranking.target
    total = int(mated.sum())
    if total < (FEWEST_MATED if n_bins is None else 1) or total == every.sum():
        return None
    drawn = np.flatnonzero(every)
    low, high = ranking.score[drawn[0]], ranking.score[drawn[-1]]
    n_bins = n_bins or min(total // 10, MOST_BINS)
    with np.errstate(over="ignore"):
        scale = 1.0 if np.isfinite(high - low) else 2.0  # the range of huge scores overflows
    edges = scale * np.linspace(low / scale, high / scale, n_bins + 1)
    edge = np.searchsorted(ranking.score, edges)
    edge[0], edge[-1] = drawn[0], drawn[-1] + 1
    upto_mated = np.concatenate(([0.0], np.cumsum(mated)))[edge]
    upto_every = np.concatenate(([0.0], np.cumsum(every)))[edge]
    return Histograms(np.diff(upto_mated), np.diff(upto_every - upto_mated), edge)


def local_linkability(bins: Histograms, omega: float = 1.0) -> Float64:
    """Local linkability D↔ by bin, (n_bins,): 0 where ω·LR ≤ 1, 1 where only mated scores fall,
    else 2ωLR/(1 + ωLR) − 1, with LR = p(s|mated)/p(s|non-mated). ω: prior odds of a mated pair."""
    d = np.zeros_like(bins.mated)
    both = (bins.non_mated > 0) & (bins.mated > 0)
    prior = bins.mated.sum() / bins.non_mated.sum()  # the width of the bins cancels
    lr = omega * bins.mated[both] / bins.non_mated[both] / prior
    d[both] = np.where(lr > 1.0, 2.0 * lr / (1.0 + lr) - 1.0, 0.0)
    d[(bins.non_mated == 0) & (bins.mated > 0)] = 1.0
    return d


def d_sys(bins: Histograms, omega: float = 1.0) -> float:
    """`linkability`: trapezoid rule of p(s|mated)·D↔(s) over bin centres, as published.

    With equal bins the width cancels: the sum of share·D↔ less half of the two end bins (so perfect
    separation does not give 1). NaN where all scores are one value and ω leaves something to link:
    a bin of no width has no density.
    """
    product = bins.mated * local_linkability(bins, omega)
    if bins.edge[-2] <= bins.edge[0] and product.any():
        return math.nan
    return float((product.sum() - 0.5 * (product[0] + product[-1])) / bins.mated.sum())


def d_mean(bins: Histograms, omega: float = 1.0) -> float:
    """`linkability_mean`: mean of D↔ over mated scores, as defined in Champion et al. 2021."""
    return float(np.dot(bins.mated, local_linkability(bins, omega)) / bins.mated.sum())


def by_speaker(bins: Histograms, ranking: Ranking, speaker: Int64, n_speakers: int) -> Float64:
    """Mean of D↔ over the mated scores of each speaker, (n_speakers,), ω = 1; NaN without any.

    D↔ comes from the pooled densities. speaker: (n_trials,) in input order, from 0.
    """
    d = np.repeat(local_linkability(bins), np.diff(bins.edge))
    who = speaker[ranking.order][ranking.target]
    total = np.bincount(who, weights=d[ranking.target], minlength=n_speakers)
    count = np.bincount(who, minlength=n_speakers)
    mean: Float64 = np.divide(total, count, out=np.full(n_speakers, np.nan), where=count > 0)
    return mean


def by_enrolment(ranking: Ranking, enrolled: Int64, n_speakers: int, n_bins: int) -> Float64:
    """D_sys of each speaker's trials alone, (n_speakers,), as Champion et al.'s code (50 bins).

    enrolled: (n_trials,) of the enrolment side, in input order, from 0. NaN without mated or
    non-mated scores. Few scores in many bins overlap little, so it is biased towards 1.
    """
    who = enrolled[ranking.order]
    found = np.full(n_speakers, np.nan)
    for speaker in range(n_speakers):
        bins = histograms(ranking, (who == speaker).astype(np.float64), n_bins)
        if bins is not None:
            found[speaker] = d_sys(bins)
    return found
