"""Detection: error rates, C_llr, ZEBRA, linkability, and the threshold of equal errors."""

import math
from dataclasses import dataclass

import numpy as np

from utils.arrays import Bool, Float64, Int64

# ---- Detection: equal error rates, C_llr, and the oracle calibration behind all other figures.
#
# Sources: Noé et al. 2022, Eq. 4 and 5; Brümmer and du Preez 2006 for PAV and C_llr. Symbols: t and
# n are counts of target and of nontarget trials, T and N their sums. Scores are higher where the
# attacker believes more in the same speaker. LLR are natural logarithms.

LN2 = float(np.log(2.0))
WEAK = 0.05  # upper end of an unprotected EER above which an evaluator judges nothing
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
        """Targets and nontargets by run, (..., n_runs) each, exact whole numbers in float64.

        weight: (..., n_trials) in ascending order of score, how often each trial is drawn in a
        resample; None counts each once.
        """
        every = np.ones(len(self.score)) if weight is None else weight
        t = np.add.reduceat(every * self.target, self.start, axis=-1)
        return t, np.add.reduceat(every, self.start, axis=-1) - t

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

    @property
    def weighed(self) -> tuple[Float64, Float64, Float64]:
        """LLR, t and n, as `cllr`, `d_ece` and `ece` take them."""
        return self.llr, self.t, self.n

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
    for extreme in (0, -1):  # without the extra trials, and without blocks of nothing else
        block_t[extreme] -= 1.0
        block_n[extreme] -= 1.0
    real = (block_t > 0) | (block_n > 0)
    first = run[np.clip(start - 1, 0, len(run) - 1)]  # position 0 of the extended list is extra
    return Blocks(block_t[real], block_n[real], odds[real], first[real])


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
    return float(eers(np.cumsum(t)[None], np.cumsum(t + n)[None])[0])


def eer_speechbrain(score: Float64, target: Bool) -> float:
    """EER as SpeechBrain has it (`EER` of metric_stats), and VoicePrivacy since 2024: the mean of
    P_miss and P_fa at the threshold where they are closest, among the scores, in single precision,
    and the midpoints between them. A trial at the threshold is rejected.

    score, target: (n_trials,), of both kinds at least one. Of equally close thresholds the lowest.
    """
    scores = score.astype(np.float32)
    levels = np.unique(scores)
    thresholds = np.unique(np.concatenate([levels, (levels[1:] + levels[:-1]) / np.float32(2)]))
    own, others = np.sort(scores[target]), np.sort(scores[~target])
    missed = np.searchsorted(own, thresholds, side="right").astype(np.float32)
    passed = np.float32(len(others)) - np.searchsorted(others, thresholds, side="right")
    miss, false = missed / np.float32(len(own)), passed.astype(np.float32) / np.float32(len(others))
    # There a gap in single precision is compared with one in double: of equal ones, which is lower
    # may hang on it.
    gaps, exact = np.abs(false - miss).tolist(), np.abs(np.subtract(false, miss, dtype=np.float64))
    best = 0
    for place, gap in enumerate(gaps):
        if gap < exact[best]:
            best = place
    return (float(false[best]) + float(miss[best])) / 2


def eer_kaldi(score: Float64, target: Bool) -> float:
    """EER as Kaldi's compute-eer has it, and VoicePrivacy 2020 and 2022: k of T targets are missed,
    with the least k at which the nontarget of that rank from above lies below the next target.

    score, target: (n_trials,), of both kinds at least one.
    """
    own, others = np.sort(score[target]), np.sort(score[~target])
    missed = np.arange(len(own))
    rank = np.maximum(len(others) - 1 - (len(others) * missed) // len(own), 0)
    below = np.flatnonzero(others[rank] < own)
    return float((below[0] if len(below) else len(own) - 1) / len(own))


def folded(eer: float) -> float:
    """EER of an attacker who may reverse their scores, at most 0.5."""
    return min(eer, 1.0 - eer)


def softplus(x: Float64) -> Float64:
    """Softplus ln(1 + eˣ) = −ln σ(−x), without overflow."""
    return np.logaddexp(0.0, x)


def mean(value: Float64, count: Float64) -> float:
    """Mean of `value` by `count`; values with a count of 0 may be infinite. No sum overflows."""
    some = count > 0
    return float(np.dot(value[some] / 2.0**64, count[some]) / count.sum() * 2.0**64)


def cllr(llr: Float64, t: Float64, n: Float64) -> float:
    """C_llr (Noé et al. 2022, Eq. 4) of LLRs with t targets, n nontargets: 0 best, 1 uninformative.

    On trials t and n are 1 and 0; on the blocks of `pav` the result is C_llr^min.
    """
    return (mean(softplus(-llr), t) + mean(softplus(llr), n)) / (2.0 * LN2)


# ---- Score at which an evaluator makes equally many errors of both kinds.


def eer_threshold(score: Float64, target: Bool) -> float:
    """Midpoint between the two neighbouring scores where P_miss and P_fa are closest.

    score, target: (n_trials,), of both kinds at least one. A trial above the threshold is accepted.
    Of several equally close midpoints it is the lowest. With one score only, it is that score.
    """
    levels, place = np.unique(score, return_inverse=True)
    if len(levels) == 1:
        return float(levels[0])
    n = len(levels)
    miss = np.cumsum(np.bincount(place[target], minlength=n))[:-1] * int((~target).sum())
    passed = np.cumsum(np.bincount(place[~target], minlength=n))[:-1]
    false = (int((~target).sum()) - passed) * int(target.sum())
    at = int(np.argmin(np.abs(miss - false)))  # whole numbers: P_miss and P_fa times T N
    return float((levels[at] + levels[at + 1]) / 2)


# ---- ZEBRA: expected and worst-case disclosure of identity.
#
# Source: Noé et al. 2022, section 5 (Eq. 11 to 13, Table 1), after Nautsch et al. 2020. LLR are
# natural logarithms; D_ECE is in bit; l_w in decades (base-10 LLR).

D_ECE_MAX = 0.5 / LN2  # bit, for perfect separation: 1/(2 ln 2) = 0.72135

# Taylor coefficients of Z at 0, from l⁰; the radius of convergence is 2π.
_Z_SERIES = (
    *(0.0, 1 / 3, -1 / 12, 1 / 180, 1 / 720, -1 / 5040, -1 / 30240, 1 / 151200, 1 / 1209600),
    *(-1 / 4790016, -1 / 47900160, 691 / 108972864000, 691 / 1307674368000),
    *(-1 / 5337446400, -1 / 74724249600, 3617 / 666913927680000),
)
_SERIES_BELOW = 0.5  # |l| under which the series is the more exact form (both to 1e-15 there)

# Table 1: lower bounds of l_w, inclusive; `0` is l_w = 0.
_TAGS = ((6.0, "F"), (5.0, "E"), (4.0, "D"), (2.0, "C"), (1.0, "B"))


def z(llr: Float64) -> Float64:
    """Z(l) = 1/2 + (l − (eˡ − 1))/(eˡ − 1)² (Noé et al. 2022, Eq. 13), for any l, ±inf included.

    llr: (...). The defining form loses all digits near 0 and overflows above 709, so: a series
    near 0, and for l > 0 the same fraction in v = e⁻ˡ.
    """
    x = np.asarray(llr, np.float64)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        u = np.expm1(x)
        below = 0.5 + (x - u) / u**2
        v = np.exp(-x)
        above = 0.5 + v * (np.where(v > 0, x, 0.0) * v + np.expm1(-x)) / np.expm1(-x) ** 2
    found: Float64 = np.where(x > 0, above, below)
    small = np.abs(x) < _SERIES_BELOW
    found[small] = np.polynomial.polynomial.polyval(x[small], _Z_SERIES)
    return found


def d_ece(llr: Float64, t: Float64, n: Float64) -> float:
    """D_ECE in bit (Noé et al. 2022, Eq. 13): (⟨Z(l)⟩ targets + ⟨Z(−l)⟩ nontargets) / (2 ln 2).

    llr: LLRs with t targets and n nontargets each. On PAV blocks: expected disclosure, 0 to
    `D_ECE_MAX`. On scores or on an attacker's calibration it may be negative: misleading evidence.
    """
    return (mean(z(llr), t) + mean(z(-llr), n)) / (2.0 * LN2)


def l_w(laplace: Blocks) -> float:
    """Worst-case disclosure: the largest |LLR| in decades, over `pav(..., laplace=True)`.

    Source: Noé et al. 2022, section 5.2. Taken as log10 of the odds, not as ln/ln 10, so that odds
    of 10, 100, ... lie exactly on the inclusive bounds of Table 1.
    """
    return max(math.log10(max(float(odds), 1.0 / float(odds))) for odds in laplace.odds)


def tag(worst: float) -> str:
    """Category of `l_w` (Noé et al. 2022, Table 1)."""
    if worst == 0.0:
        return "0"
    return next((letter for bound, letter in _TAGS if worst >= bound), "A")


def ece(llr: Float64, t: Float64, n: Float64, prior: Float64) -> Float64:
    """Posterior ECE profile in bit (Noé et al. 2022, Eq. 11) over prior probabilities of a target.

    llr, t, n: as for `d_ece`; prior: (p,) inside (0, 1). LLR of 0 give the prior profile (Eq. 12).
    """
    logit = np.log(prior) - np.log1p(-prior)
    miss = np.array([mean(softplus(-(llr + x)), t) for x in logit])
    fa = np.array([mean(softplus(llr + x), n) for x in logit])
    return np.asarray((prior * miss + (1.0 - prior) * fa) / LN2, np.float64)


# ---- Linkability D↔ and D_sys of Gomez-Barrero et al. 2017, as in Champion et al. 2021, 3.2.
#
# Mated scores compare two recordings of one person (targets), non-mated scores those of two
# persons. Densities are histograms on equal bins over the joint range; another density estimate is
# another metric and needs another name.

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
    """Histograms on min(⌊T/10⌋, 100) bins, T the number of mated scores; None below 20, and where
    scores differ by too little to part a bin from the next.

    weight: as for `Ranking.counts`. Bins are half-open, the last one closed. n_bins: so many,
    however few scores there are; None without mated or non-mated ones.
    """
    every = np.ones(len(ranking.score)) if weight is None else weight
    mated = every * ranking.target
    total = int(mated.sum())
    if total < (FEWEST_MATED if n_bins is None else 1) or total == every.sum():
        return None
    score, drawn = ranking.score, np.flatnonzero(every)
    low, high = score[drawn[0]], score[drawn[-1]]
    with np.errstate(over="ignore"):  # the range of huge scores overflows
        scale = 1.0 if np.isfinite(high - low) else 2.0
    number = (n_bins or min(total // 10, MOST_BINS)) + 1
    limit = scale * np.linspace(low / scale, high / scale, number)
    if low < high and len(np.unique(limit)) < number:
        return None
    edge = np.searchsorted(score, limit)
    edge[0], edge[-1] = drawn[0], drawn[-1] + 1
    upto_mated = np.concatenate(([0.0], np.cumsum(mated)))[edge]
    upto_every = np.concatenate(([0.0], np.cumsum(every)))[edge]
    return Histograms(np.diff(upto_mated), np.diff(upto_every - upto_mated), edge)


def local_linkability(bins: Histograms, omega: float = 1.0) -> Float64:
    """Local linkability D↔ by bin, (n_bins,): 0 where ω·LR ≤ 1, 1 where only mated scores fall,
    else 2ωLR/(1 + ωLR) − 1, with LR = p(s|mated)/p(s|non-mated). ω: prior odds of a mated pair."""
    both = (bins.non_mated > 0) & (bins.mated > 0)
    prior = bins.mated.sum() / bins.non_mated.sum()
    lr = omega * bins.mated / np.where(both, bins.non_mated, 1.0) / prior  # no widths
    d = np.where(both & (lr > 1.0), 2.0 * lr / (1.0 + lr) - 1.0, 0.0)
    return np.where((bins.non_mated == 0) & (bins.mated > 0), 1.0, d)


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
    return np.divide(total, count, out=np.full(n_speakers, np.nan), where=count > 0)


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


# ---- The same of many rows of counts or weights at once, such as those of all resamples.
#
# Counts are whole numbers, whose sums are exact in any order: each row gives, to the last bit, what
# it gives alone. NaN where a row has no targets or no nontargets.


def eers(targets: Float64, every: Float64, at: Int64 | None = None) -> Float64:
    """`eer` of each row, (n_rows,), by bisection.

    targets, every: (n_rows, n) numbers of targets, and of all trials, up to each in ascending order
    of score; at: (n_points,) of these the points of the ROC, such as the last of each tie.
    """
    points = np.arange(targets.shape[1]) if at is None else at
    row, every = np.arange(len(targets)), np.broadcast_to(every, targets.shape)
    total_t = targets[:, -1].astype(np.float64)
    total_n = every[:, -1] - total_t

    def look(k: Int64) -> tuple[Float64, Float64]:
        """Missed targets at the k-th point, and T·N·(P_miss − P_fa), whole and rising with k."""
        place = points[np.maximum(k, 0)]
        miss = np.where(k < 0, 0.0, targets[row, place])
        return miss, miss * total_n - (total_n - (every[row, place] * (k >= 0) - miss)) * total_t

    low, high = np.full(len(row), -1), np.full(len(row), len(points) - 1)
    for _ in range(len(points).bit_length()):
        middle = (low + high) // 2
        below = look(middle)[1] < 0.0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    (before, gap), (after, rest) = look(high - 1), look(high)
    with np.errstate(invalid="ignore"):
        return np.asarray((before + gap / (gap - rest) * (after - before)) / total_t, np.float64)


def d_eces(t: Float64, n: Float64) -> Float64:
    """`d_ece` on the blocks of `pav` of each row of counts by run, (n_rows, n_runs); (n_rows,)."""
    total_t, total_n = t.sum(axis=1), n.sum(axis=1)
    row, t, n = np.repeat(np.arange(len(t)), t.shape[1]), t.ravel(), n.ravel()
    if not (some := (t > 0) | (n > 0)).all():  # a resample leaves runs empty
        row, t, n = row[some], t[some], n[some]
    while True:
        rises = (row[1:] > row[:-1]) | (t[:-1] * n[1:] < t[1:] * n[:-1])
        if rises.all():
            break
        at = np.flatnonzero(np.append(True, rises))
        t, n, row = np.add.reduceat(t, at), np.add.reduceat(n, at), row[at]
    with np.errstate(divide="ignore", invalid="ignore"):
        llr = np.log((t * total_n[row]) / (n * total_t[row]))
    gain, loss, found = z(llr), z(-llr), np.full(len(total_t), math.nan)
    edge = np.searchsorted(row, np.arange(len(total_t) + 1))
    for i in np.flatnonzero((total_t > 0) & (total_n > 0)):
        own = slice(edge[i], edge[i + 1])
        found[i] = (mean(gain[own], t[own]) + mean(loss[own], n[own])) / (2.0 * LN2)
    return found
