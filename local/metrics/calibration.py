# SPDX-License-Identifier: Apache-2.0
"""Calibration by the attacker: a mapping learnt on one run of a safeguard, used on another.

Source: Noé et al. 2022, section 5.3 (Eq. 15 and 16): the scores of run f1 are mapped to LLR by a
function learnt on run f0, and C_ECE is the D_ECE of the result: zero means a useless mapping, below
zero a misleading one. Not defined for a deterministic safeguard, whose two runs are one.
"""

import logging
from dataclasses import dataclass

import numpy as np

from local.metrics import detection, zebra
from utils.arrays import Bool, Float64

# Weight of slope²/2 for scores of unit spread: far below any reported digit, and enough to keep the
# slope finite where the classes of f0 are separable.
RIDGE = 1e-9
_NEWTON_STEPS = 200

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LinearMap:
    """Linear mapping LLR = slope·score + offset."""

    slope: float
    offset: float

    def __call__(self, score: Float64) -> Float64:
        """LLR of scores of any shape."""
        return self.slope * score + self.offset


@dataclass(frozen=True, eq=False)
class IsotonicMap:
    """Piecewise linear LLR of a score, constant beyond the ends. score, llr: corners, ascending."""

    score: Float64
    llr: Float64

    def __call__(self, score: Float64) -> Float64:
        """LLR of scores of any shape."""
        return np.interp(score, self.score, self.llr)


def fit_linear(score: Float64, target: Bool) -> LinearMap:
    """Fit the slope and offset that minimise C_llr on these trials (logistic regression).

    Each class weighs one half, so that no database prior is left in the offset. The slope may be
    negative (a reversed score). Newton's method on scores of zero mean and unit spread.
    """
    y = target.astype(np.float64)
    half = 0.5 * (y / y.sum() + (1.0 - y) / (1.0 - y).sum())  # weights of trials, sum 1
    if (score == score[0]).all():
        logger.warning("all scores of f0 are equal: the linear calibration is LLR = 0")
        return LinearMap(0.0, 0.0)
    largest = float(np.abs(score).max())  # squares of scores may overflow
    x = score / largest
    centre = float(half @ x)
    spread = float(np.sqrt(half @ (x - centre) ** 2))
    a, b = _newton((x - centre) / spread, np.where(target, 1.0, -1.0), half)
    return LinearMap(a / spread / largest, b - a * centre / spread)


def _newton(x: Float64, sign: Float64, half: Float64) -> tuple[float, float]:
    """Minimise Σ half·softplus(−sign·(a·x + b)) + RIDGE·a²/2 by damped Newton steps."""
    design = np.stack([x, np.ones_like(x)], axis=1)
    ridge = np.array([RIDGE, 0.0])

    def loss(w: Float64) -> float:
        return float(half @ detection.softplus(-sign * (design @ w)) + 0.5 * w @ (ridge * w))

    w, value = np.zeros(2), loss(np.zeros(2))
    for _ in range(_NEWTON_STEPS):
        wrong = np.exp(-detection.softplus(sign * (design @ w)))  # σ(−sign·l)
        gradient = -design.T @ (half * sign * wrong) + ridge * w
        curvature = (design.T * (half * wrong * (1.0 - wrong))) @ design + np.diag(ridge)
        curvature[1, 1] += 1e-300  # all LLR huge: keep the step defined
        step = np.linalg.solve(curvature, gradient)
        scale = 1.0
        while loss(w - scale * step) > value and scale > 1e-12:
            scale *= 0.5
        w = w - scale * step
        previous, value = value, loss(w)
        if previous - value <= 1e-16 * (1.0 + abs(value)) and abs(gradient).max() < 1e-11:
            break
    return float(w[0]), float(w[1])


def fit_isotonic(score: Float64, target: Bool) -> IsotonicMap:
    """Fit the BOSARIS mapping: PAV with one extra target below and one extra nontarget above all
    scores, straight lines between blocks.

    The extra trials make every LLR finite; they count in the prior too, as in BOSARIS: the LLR of a
    block is ln(t/n) − ln((T + 1)/(N + 1)).
    """
    ranking = detection.rank(score, target)
    t, n = ranking.counts()
    t, n = np.concatenate(([1.0], t, [0.0])), np.concatenate(([0.0], n, [1.0]))
    start = detection.pool_adjacent_violators(t, n)
    block_t, block_n = np.add.reduceat(t, start), np.add.reduceat(n, start)
    llr = np.log((block_t * n.sum()) / (block_n * t.sum()))
    first_run = np.maximum(start - 1, 0)  # run 0 stands at place 1, after the extra target
    last_run = np.append(start[1:] - 2, len(ranking.start) - 1)
    first = ranking.start[first_run]
    last = np.append(ranking.start[1:], len(ranking.score))[last_run] - 1
    corner = np.stack([ranking.score[first], ranking.score[last]], axis=1).ravel()
    new = np.concatenate(([True], corner[1:] > corner[:-1]))  # a block may be one score wide
    return IsotonicMap(corner[new], np.repeat(llr, 2)[new])


def calibration(
    target: Bool, score_f0: Float64, score_f1: Float64
) -> dict[str, int | float | str | None]:
    """All figures of two runs on one trial list (keys of the JSON: docs/metrics).

    target, score_f0, score_f1: (n_trials,), with targets and nontargets.
    """
    y = target.astype(np.float64)
    report: dict[str, int | float | str | None] = {
        "n_target": int(y.sum()),
        "n_nontarget": int(len(y) - y.sum()),
    }
    for run, score in (("f0", score_f0), ("f1", score_f1)):
        t, n = detection.rank(score, target).counts()
        plain, laplace = detection.pav(t, n), detection.pav(t, n, laplace=True)
        report[f"d_ece_{run}"] = zebra.d_ece(plain.llr, plain.t, plain.n)
        report[f"cllr_min_{run}"] = detection.cllr(plain.llr, plain.t, plain.n)
        report[f"l_w_{run}"] = zebra.l_w(laplace)
        report[f"tag_{run}"] = zebra.tag(zebra.l_w(laplace))
    linear = fit_linear(score_f0, target)
    learnt = {  # Eq. 15: calibrated scores of f1
        "linear": linear(score_f1),
        "isotonic": fit_isotonic(score_f0, target)(score_f1),
        "uncalibrated": score_f1,
    }
    for name, llr in learnt.items():
        report[f"c_ece_{name}"] = zebra.d_ece(llr, y, 1.0 - y)  # Eq. 16
        report[f"cllr_{name}"] = detection.cllr(llr, y, 1.0 - y)
    report["linear_slope"], report["linear_offset"] = linear.slope, linear.offset
    if np.array_equal(score_f0, score_f1):
        logger.warning(
            "f0 and f1 have the same scores: C_ECE is not defined for a deterministic safeguard, "
            "and these figures test the calibration on what it was learnt from"
        )
    return report
