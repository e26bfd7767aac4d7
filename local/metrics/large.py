"""Figures of scores in histograms, and bounds of the exact figures.

Every value takes the scores of a bin as tied. The true order inside the bins is unknown, but no
order separates targets from nontargets worse than that, and none better than all targets of each
bin above all its nontargets. Figures that depend only on the order (EER on the hull, C_llr^min,
D_ECE, l_w) are monotone in it, so both ends are computed and the exact figure is between.
"""

import math

import numpy as np

from local.metrics import detection
from local.metrics.intervals import Figures, interval_report, multiplicities, pair_weights
from steps.populations.pairs import COARSE, NONTARGET, TARGET, Bins, Total
from utils.arrays import Float64, Int64

Bounds = dict[str, tuple[float, float]]


def figures(t: Float64, n: Float64, edges: Float64) -> Figures | None:
    """All single figures; NaN where undefined, None without targets or nontargets.

    t, n: (b,) targets and nontargets by bin, ascending; edges: (b + 1,) of the bins.
    """
    if not (t.any() and n.any()):
        return None
    full = np.flatnonzero(t + n)
    pooled = _ordered(t[full], n[full])
    bins = _link_bins(t, n, edges)
    return {
        "eer": detection.eer(t[full], n[full]),
        **pooled,
        "linkability": detection.d_sys(bins) if bins else math.nan,
        "linkability_mean": detection.d_mean(bins) if bins else math.nan,
    }


def _ordered(t: Float64, n: Float64) -> Figures:
    """Figures that depend only on the order of the scores; t, n: counts that are not both 0."""
    plain, laplace = detection.pav(t, n), detection.pav(t, n, laplace=True)
    return {
        "eer_rocch": detection.eer(plain.t, plain.n),
        "cllr_min": detection.cllr(plain.llr, plain.t, plain.n),
        "d_ece": detection.d_ece(plain.llr, plain.t, plain.n),
        "l_w": detection.l_w(laplace),
    }


def bounds(t: Float64, n: Float64, edges: Float64) -> Bounds:
    """Bounds of the exact figures, whatever the order in the bins.

    t, n, edges: as for `figures`, with targets and nontargets. `linkability` and `linkability_mean`
    are absent where they are undefined.
    """
    full = np.flatnonzero(t + n)
    worst = _ordered(t[full], n[full])
    # All nontargets of a bin, then all its targets.
    apart_t, apart_n = (np.zeros(2 * len(full)) for _ in range(2))
    apart_n[0::2], apart_t[1::2] = n[full], t[full]
    some = (apart_t + apart_n) > 0
    best = _ordered(apart_t[some], apart_n[some])
    found: Bounds = {name: _sorted(worst[name], best[name]) for name in worst}
    found["eer"] = _eer_bounds(t[full], n[full])
    if (bins := _link_bins(t, n, edges)) is not None:
        found |= _link_bounds(t, n, edges, len(bins.mated))
    return found


def _sorted(a: float, b: float) -> tuple[float, float]:
    return (a, b) if a <= b else (b, a)


def _eer_bounds(t: Float64, n: Float64) -> tuple[float, float]:
    """Bounds of the EER: the ROC falls between both ends of the bin where P_miss meets P_fa."""
    total_t, total_n = t.sum(), n.sum()
    miss = np.concatenate(([0.0], np.cumsum(t))) / total_t
    fa = (total_n - np.concatenate(([0.0], np.cumsum(n)))) / total_n
    k = max(int(np.searchsorted(miss - fa, 0.0)), 1)
    return float(max(miss[k - 1], fa[k])), float(min(miss[k], fa[k - 1]))


def _link_edges(edges: Float64, n_bins: int) -> Float64:
    return np.linspace(edges[0], edges[-1], n_bins + 1)


def _link_bins(t: Float64, n: Float64, edges: Float64) -> detection.Histograms | None:
    """Histograms on linkability's own equal bins over the range of the scores; inside a bin scores
    are taken as evenly spread. None below 20 targets."""
    if t.sum() < detection.FEWEST_MATED:
        return None
    n_bins = int(min(t.sum() // 10, detection.MOST_BINS))
    wanted = _link_edges(edges, n_bins)
    mated, non_mated = (
        np.diff(np.interp(wanted, edges, np.concatenate(([0.0], np.cumsum(x))))) for x in (t, n)
    )
    if edges[-1] <= edges[0]:  # all scores are one value
        mated, non_mated = (x.sum() * (np.arange(n_bins) == n_bins - 1) for x in (t, n))
        return detection.Histograms(mated, non_mated, np.zeros(n_bins + 1, np.int64))
    return detection.Histograms(mated, non_mated, np.arange(n_bins + 1))


def _link_bounds(t: Float64, n: Float64, edges: Float64, n_bins: int) -> Bounds:
    """Bounds by the scores of the bins that linkability's edges cut, on either side of them."""
    wanted = _link_edges(edges, n_bins)
    # Counts below each edge: at least those of whole bins below it, at most with the bin it cuts.
    at = np.clip(np.searchsorted(edges, wanted, side="right") - 1, 0, len(t) - 1)
    on_edge = wanted == edges[at]
    low, high = {}, {}
    for name, x in (("t", t), ("n", n)):
        upto = np.concatenate(([0.0], np.cumsum(x)))
        below, above = upto[at], np.where(on_edge, upto[at], upto[at + 1])
        below[0] = above[0] = 0.0
        below[-1] = above[-1] = upto[-1]
        low[name] = np.maximum(below[1:] - above[:-1], 0.0)
        high[name] = above[1:] - below[:-1]
    ends = []
    for a, b in ((low["t"], high["n"]), (high["t"], low["n"])):
        product = a * _local(a, b, t.sum() / n.sum())
        trapezoid = product.sum() - 0.5 * (product[0] + product[-1])
        ends.append((trapezoid / t.sum(), min(product.sum() / t.sum(), 1.0)))
    return {
        "linkability": (float(ends[0][0]), float(min(ends[1][0], 1.0))),
        "linkability_mean": (float(ends[0][1]), float(ends[1][1])),
    }


def _local(mated: Float64, non_mated: Float64, prior: float) -> Float64:
    """D↔ by bin (`detection.local_linkability`) with the prior of all scores."""
    with np.errstate(divide="ignore", invalid="ignore"):
        lr = mated / non_mated / prior
        d = np.where(lr > 1.0, 2.0 * lr / (1.0 + lr) - 1.0, 0.0)
    return np.where(non_mated > 0, d, (mated > 0).astype(np.float64))


def occupied(places: Int64, bins: Bins, low: float, high: float) -> tuple[Float64, Float64]:
    """Cut to the first to last place with a score: (2, b) counts and the (b + 1,) edges.

    places: (2, n + 2), see `steps.populations.pairs.ScoreCounts`; low, high: smallest and largest
    score.
    """
    edges = np.concatenate(([-np.inf], bins.edges, [np.inf]))
    full = np.flatnonzero(places.any(axis=0))
    first, last = int(full[0]), int(full[-1]) + 1
    counts, edges = places[:, first:last].astype(np.float64), edges[first : last + 1].copy()
    # Scores outside the bins lie between them and the extreme.
    edges[0], edges[-1] = low, high
    return counts, np.maximum.accumulate(edges)


def report(total: Total, *, n_bootstrap: int = 0, seed: int = 0) -> dict[str, object]:
    """All figures of all pairs of a plan, and their bounds (docs/populations.md).

    Values are those of `local.metrics.verification`, with `bounds` beside them: [low, high] of the
    exact tool's figure for the same scores.
    """
    plan, counts = total.plan, total.counts
    low, high = (float(f(counts.extremes[:, i])) for i, f in ((0, np.min), (1, np.max)))
    by_bin, edges = occupied(counts.places, plan.bins, low, high)
    found = figures(by_bin[TARGET], by_bin[NONTARGET], edges)
    if found is None:
        raise ValueError("targets and nontargets are needed")
    limits = bounds(by_bin[TARGET], by_bin[NONTARGET], edges)
    outside = counts.places[:, [0, -1]].sum(axis=0)
    made: dict[str, object] = {
        **plan.info,
        **found,
        "tag": detection.tag(found["l_w"]),
        "bounds": {name: list(limits[name]) if name in limits else None for name in found},
        "extremes": {
            "nontarget": counts.extremes[NONTARGET].tolist(),
            "target": counts.extremes[TARGET].tolist(),
        },
        "bins": {"low": plan.bins.low, "high": plan.bins.high, "n": plan.bins.n},
        "n_below_bins": int(outside[0]),
        "n_above_bins": int(outside[1]),
    }
    if n_bootstrap:
        made |= _intervals(total, low, high, n_bootstrap, seed)
    return made


def _intervals(
    total: Total, low: float, high: float, n_bootstrap: int, seed: int
) -> dict[str, object]:
    """Bootstrap over groups of speakers, from the coarse histograms of pairs of groups."""
    n_groups = total.plan.n_groups
    groups = np.array([planned.groups for planned in total.plan.cells])
    cell = groups[:, 0] * n_groups + groups[:, 1]
    width = (total.plan.bins.high - total.plan.bins.low) / total.plan.bins.n * COARSE
    n_coarse = total.coarse.shape[2] - 2
    bins = Bins(total.plan.bins.low, total.plan.bins.low + width * n_coarse, n_coarse)
    coarse = total.coarse.astype(np.float64)
    own = np.flatnonzero(groups[:, 0] == groups[:, 1])

    def evaluate(drawn: Float64) -> Figures | None:
        weight = pair_weights(drawn).ravel()[cell]
        n = weight @ coarse[:, NONTARGET]
        t = weight[own] @ coarse[own, TARGET]
        if not (t.any() and n.any()):
            return None
        by_bin, edges = occupied(np.stack([n, t]), bins, *_range(n + t, bins, low, high))
        return figures(by_bin[TARGET], by_bin[NONTARGET], edges)

    return interval_report(map(evaluate, multiplicities(n_groups, n_bootstrap, seed)), n_groups)


def _range(every: Float64, bins: Bins, low: float, high: float) -> tuple[float, float]:
    """Smallest and largest score of a resample, as far as its coarse bins show."""
    full = np.flatnonzero(every)
    edges = np.concatenate(([low], bins.edges, [high]))
    return max(low, float(edges[full[0]])), min(high, float(edges[full[-1] + 1]))
