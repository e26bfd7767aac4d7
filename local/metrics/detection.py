# SPDX-License-Identifier: Apache-2.0
"""Detection: equal error rates, C_llr, and the oracle calibration behind all other figures.

Sources: Noé et al. 2022, Eq. 4 and 5; Brümmer and du Preez 2006 for PAV and C_llr. Symbols: t and n
are counts of target and of nontarget trials, T and N their sums. Scores are higher where the
attacker believes more in the same speaker. LLR are natural logarithms.
"""

from dataclasses import dataclass

import numpy as np

from utils.arrays import Bool, Float64, Int64

LN2 = float(np.log(2.0))
_VECTOR_PASSES = 40  # of pool_adjacent_violators before it turns to the sequential form


@dataclass(frozen=True, eq=False)
class Ranking:
    """Trials in ascending order of score, cut into runs; made by `rank`.

    A run is either one tied score, or neighbouring scores of one class only. No threshold inside a
    run is of interest: a tie moves together, and inside one class the ROC is a straight line. So
    counts by run give the ROC, its hull and the PAV blocks exactly, from far fewer points.

    score, target: (n_trials,) in ascending order of score; order: the row of each in the input;
    start: (n_runs,) first position of each run.
    """

    score: Float64
    target: Bool
    order: Int64
    start: Int64

    def counts(self, weight: Float64 | None = None) -> tuple[Float64, Float64]:
        """Targets and nontargets by run, (n_runs,) each, exact whole numbers in float64.

        weight: (n_trials,) in ascending order of score, how often each trial is drawn in a
        resample; None counts each once.
        """
        every = np.ones(len(self.score)) if weight is None else weight
        t = np.add.reduceat(every * self.target, self.start)
        return t, np.add.reduceat(every, self.start) - t

    def by_trial(self, by_run: Float64) -> Float64:
        """Values by run, (n_runs,), spread to the trials in ascending order of score."""
        return np.repeat(by_run, np.diff(self.start, append=len(self.score)))


def rank(score: Float64, target: Bool, cell: Int64 | None = None) -> Ranking:
    """Sort trials once for all metrics. score, target: (n_trials,), scores finite.

    cell: (n_trials,) groups of equal weight in a resample; with it the order of equal scores, and
    so the last digit of weighted sums, does not depend on the order of the trials.
    """
    order = np.argsort(score) if cell is None else np.lexsort((cell, target, score))
    s, y = score[order], target[order]
    tie = np.flatnonzero(np.concatenate(([True], s[1:] != s[:-1])))
    size = np.diff(tie, append=len(s))
    t = np.add.reduceat(y.astype(np.int64), tie)
    kind = np.where(t == 0, 0, np.where(t == size, 1, 2))  # nontargets only, targets only, mixed
    new = np.concatenate(([True], (kind[1:] != kind[:-1]) | (kind[1:] == 2)))
    return Ranking(s, y, order, tie[new])


@dataclass(frozen=True, eq=False)
class Blocks:
    """Blocks of a PAV fit in ascending order, each a range of runs with one LLR.

    t, n: trials in each block (without the extra ones of Laplace's rule); odds: (t/n)/(T/N), from 0
    to infinity; first: the run that each block begins with.
    """

    t: Float64
    n: Float64
    odds: Float64
    first: Int64

    @property
    def llr(self) -> Float64:
        """LLR ln(t/n) − ln(T/N) of each block (Noé et al. 2022, Eq. 5), −inf and inf included."""
        with np.errstate(divide="ignore"):
            return np.log(self.odds)

    def by_run(self, values: Float64, n_runs: int) -> Float64:
        """Values by block spread to runs, (n_runs,); runs before the first block take the first."""
        block = np.searchsorted(self.first, np.arange(n_runs), side="right") - 1
        return values[np.maximum(block, 0)]


def pav(t: Float64, n: Float64, *, laplace: bool = False) -> Blocks:
    """Oracle calibration: isotonic regression of the label on the score.

    t, n: counts by run in ascending order of score, at least one target and one nontarget in all.
    `laplace` adds one target and one nontarget below all scores and above all scores before pooling
    (Laplace's rule of succession; Noé et al. 2022, footnote 6), so that every LLR is finite; the
    prior T/N stays that of the real trials.
    """
    total_t, total_n = t.sum(), n.sum()
    run = np.flatnonzero((t > 0) | (n > 0))  # a resample leaves runs empty
    t, n = t[run], n[run]
    if laplace:
        t, n = (np.concatenate(([1.0], x, [1.0])) for x in (t, n))
    start = pool_adjacent_violators(t, n)
    block_t, block_n = np.add.reduceat(t, start), np.add.reduceat(n, start)
    with np.errstate(divide="ignore"):
        odds = (block_t * total_n) / (block_n * total_t)  # of whole numbers: exactly 1 at chance
    if not laplace:
        return Blocks(block_t, block_n, odds, run[start])
    return _without_extra(block_t, block_n, odds, start, run)


def _without_extra(t: Float64, n: Float64, odds: Float64, start: Int64, run: Int64) -> Blocks:
    """Remove the extra trials from the counts, and blocks of nothing else from the list."""
    for extreme in (0, -1):
        t[extreme] -= 1.0
        n[extreme] -= 1.0
    real = (t > 0) | (n > 0)
    first = run[np.clip(start - 1, 0, len(run) - 1)]  # position 0 of the extended list is extra
    return Blocks(t[real], n[real], odds[real], first[real])


def pool_adjacent_violators(t: Float64, n: Float64) -> Int64:
    """First index of each block of the isotonic regression of t/(t + n), in O(length).

    t, n: counts that are not both 0 anywhere. Neighbours of equal share are pooled too, so the
    blocks are unique. Shares are compared as products of whole numbers, hence exactly (below 2^53).
    """
    start = np.arange(len(t))
    for _ in range(_VECTOR_PASSES):  # each pools every falling stretch at once
        keep = np.concatenate(([True], t[:-1] * n[1:] < t[1:] * n[:-1]))
        if keep.all():
            return start
        at = np.flatnonzero(keep)
        few = len(at) > 0.95 * len(t)
        t, n, start = np.add.reduceat(t, at), np.add.reduceat(n, at), start[at]
        if few:
            break
    return start[_pool_in_sequence(t.tolist(), n.tolist())]


def _pool_in_sequence(t: list[float], n: list[float]) -> list[int]:
    """Pool in the textbook form: append a point, pool backwards while the share does not rise."""
    start: list[int] = []
    ts: list[float] = []
    ns: list[float] = []
    for i, (ti, ni) in enumerate(zip(t, n, strict=True)):
        first = i
        while ts and ts[-1] * ni >= ti * ns[-1]:
            ti, ni, first = ti + ts.pop(), ni + ns.pop(), start.pop()
        start.append(first)
        ts.append(ti)
        ns.append(ni)
    return start


def eer(t: Float64, n: Float64) -> float:
    """Point where the ROC meets P_miss = P_fa, linear between its points.

    t, n: counts in ascending order of score. By run they give `eer` (above 0.5 for a reversed
    score); by PAV block, the corners of the convex hull, `eer_rocch` (never above 0.5).
    """
    total_t, total_n = t.sum(), n.sum()
    miss = np.concatenate(([0.0], np.cumsum(t)))  # targets below each threshold
    fa = total_n - np.concatenate(([0.0], np.cumsum(n)))  # nontargets above it
    gap = miss * total_n - fa * total_t  # T·N·(P_miss − P_fa): whole numbers, rising
    k = int(np.searchsorted(gap, 0.0))
    share = gap[k - 1] / (gap[k - 1] - gap[k])
    return float((miss[k - 1] + share * (miss[k] - miss[k - 1])) / total_t)


def folded(eer: float) -> float:
    """EER of an attacker who may reverse their scores, at most 0.5."""
    return min(eer, 1.0 - eer)


def softplus(x: Float64) -> Float64:
    """Softplus ln(1 + eˣ) = −ln σ(−x), without overflow."""
    return np.logaddexp(0.0, x)


def mean(value: Float64, count: Float64) -> float:
    """Mean of `value` by `count`; values with a count of 0 may be infinite."""
    some = count > 0
    return float(np.dot(value[some], count[some]) / count.sum())


def cllr(llr: Float64, t: Float64, n: Float64) -> float:
    """C_llr (Noé et al. 2022, Eq. 4) of LLRs with t targets, n nontargets: 0 best, 1 uninformative.

    On trials t and n are 1 and 0; on the blocks of `pav` the result is C_llr^min.
    """
    return (mean(softplus(-llr), t) + mean(softplus(llr), n)) / (2.0 * LN2)
