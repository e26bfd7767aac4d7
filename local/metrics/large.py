"""Figures of scores in histograms, and bounds of the exact figures.

Every value takes the scores of a bin as tied. The true order inside the bins is unknown, but no
order separates targets from nontargets worse than that, and none better than all targets of each
bin above all its nontargets. Figures that depend only on the order (EER on the hull, C_llr^min,
D_ECE, l_w) are monotone in it, so both ends are computed and the exact figure is between.
"""

import numpy as np

from local.metrics import detection
from local.metrics.intervals import Figures, Report, bootstrap, pair_weights
from steps.populations.pairs import NONTARGET, TARGET, Total
from utils.arrays import Float64

Bounds = dict[str, tuple[float, float]]


def figures(t: Float64, n: Float64) -> Figures | None:
    """All single figures; None without targets or nontargets. t, n: (b,) of these by bin,
    ascending."""
    if not (t.any() and n.any()):
        return None
    return {"eer": detection.eer(t, n), **_ordered(t, n)}


def _ordered(t: Float64, n: Float64) -> Figures:
    """Figures that depend only on the order of the scores; t, n: as for `figures`."""
    plain, laplace = detection.pav(t, n), detection.pav(t, n, laplace=True)
    return {
        "eer_rocch": detection.eer(plain.t, plain.n),
        "cllr_min": detection.cllr(*plain.weighed),
        "d_ece": detection.d_ece(*plain.weighed),
        "l_w": detection.l_w(laplace),
    }


def bounds(t: Float64, n: Float64) -> Bounds:
    """Bounds of the exact figures, whatever the order in the bins. t, n: as for `figures`, with
    targets and nontargets."""
    worst = _ordered(t, n)
    # All nontargets of a bin, then all its targets.
    apart_t, apart_n = np.zeros((2, 2 * len(t)))
    apart_n[0::2], apart_t[1::2] = n, t
    best = _ordered(apart_t, apart_n)
    found: Bounds = {"eer": _eer_bounds(t, n)}
    for name, ends in ((name, (worst[name], best[name])) for name in worst):
        found[name] = min(ends), max(ends)
    return found


def _eer_bounds(t: Float64, n: Float64) -> tuple[float, float]:
    """Bounds of the EER: the ROC falls between both ends of the bin where P_miss meets P_fa."""
    total_t, total_n = t.sum(), n.sum()
    miss = np.concatenate(([0.0], np.cumsum(t))) / total_t
    fa = (total_n - np.concatenate(([0.0], np.cumsum(n)))) / total_n
    k = max(int(np.searchsorted(miss - fa, 0.0)), 1)
    return float(max(miss[k - 1], fa[k])), float(min(miss[k], fa[k - 1]))


def report(total: Total, *, n_bootstrap: int = 0, seed: int = 0) -> Report:
    """All figures of all pairs of a plan, and their bounds (docs/populations.md).

    Values are those of `local.metrics.verification`, with `bounds` beside them: [low, high] of the
    exact tool's figure for the same scores.
    """
    plan, counts = total.plan, total.counts
    by_bin = counts.places.astype(np.float64)
    found = figures(by_bin[TARGET], by_bin[NONTARGET])
    if found is None:
        raise ValueError("targets and nontargets are needed")
    limits = bounds(by_bin[TARGET], by_bin[NONTARGET])
    outside = counts.places[:, [0, -1]].sum(axis=0)
    made: Report = {
        **plan.info,
        **found,
        "tag": detection.tag(found["l_w"]),
        "bounds": {name: list(limits[name]) for name in found},
        "extremes": {
            "nontarget": counts.extremes[NONTARGET].tolist(),
            "target": counts.extremes[TARGET].tolist(),
        },
        "bins": {"low": plan.bins.low, "high": plan.bins.high, "n": plan.bins.n},
        "n_below_bins": int(outside[0]),
        "n_above_bins": int(outside[1]),
    }
    if n_bootstrap:
        made |= _intervals(total, n_bootstrap, seed)
    return made


def _intervals(total: Total, n_bootstrap: int, seed: int) -> Report:
    """Bootstrap over groups of speakers, from the coarse histograms of pairs of groups."""
    n_groups, coarse = total.plan.n_groups, total.coarse.astype(np.float64)
    groups = np.array([planned.groups for planned in total.plan.cells])
    cell, own = groups[:, 0] * n_groups + groups[:, 1], groups[:, 0] == groups[:, 1]

    def evaluate(drawn: Float64) -> Figures | None:
        weight = pair_weights(drawn, cell)
        return figures(weight[own] @ coarse[own, TARGET], weight @ coarse[:, NONTARGET])

    return bootstrap(evaluate, n_groups, n_bootstrap, seed)
