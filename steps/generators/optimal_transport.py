# SPDX-License-Identifier: Apache-2.0
"""Exact optimal transport between two batches of the same size, with its dual potentials.

WGAN-QC (Liu et al. 2019; used for pseudo-speakers in Liu et al. 2025, II-C) trains its critic on
the solution of the linear programme

    maximise mean_i Hx_i - mean_j Hv_j   subject to   Hx_i - Hv_j <= c_ij,

c_ij = K/2 ||x_i - v_j||^2, where x are real and v generated vectors. The weights are equal, so an
optimal plan matches the vectors one to one. POT solves it (network simplex).
"""

from dataclasses import dataclass

import numpy as np
import ot
from scipy.spatial.distance import cdist

from utils.arrays import Float64, Int64


@dataclass(frozen=True)
class Duals:
    """Solution for n real and n generated vectors.

    real: (n,) Hx. fake: (n,) Hv. match: (n,) T, the real vector matched with each generated one.
    cost: mean cost of the matched pairs, which equals mean Hx - mean Hv.
    """

    real: Float64
    fake: Float64
    match: Int64
    cost: float


def quadratic_cost(real: Float64, fake: Float64) -> Float64:
    """Costs (n, n) c_ij = K/2 ||x_i - v_j||^2 with K = 1/d, of (n, d) and (n, d).

    >>> quadratic_cost(np.zeros((1, 2)), np.ones((1, 2)))
    array([[0.5]])
    """
    squared: Float64 = np.asarray(cdist(real, fake, "sqeuclidean"), dtype=np.float64)
    squared /= 2.0 * real.shape[1]
    return squared


def solve_duals(cost: Float64) -> Duals:
    """Find potentials and matching for a cost matrix (n, n): rows real, columns generated.

    The potentials are centred, mean Hx = -mean Hv: a common constant changes neither the constraint
    nor the objective, and would make the critic's target wander from batch to batch.
    ArithmeticError where the solver does not finish, or a cost is not finite.
    """
    if cost.ndim != 2 or cost.shape[0] != cost.shape[1] or not cost.size:
        raise ValueError(f"the cost matrix is {cost.shape}; as many real as generated are needed")
    if not np.isfinite(cost).all():
        raise ArithmeticError("optimal transport: a cost is not a finite number")
    plan, log = ot.emd([], [], np.ascontiguousarray(cost), log=True, numItermax=1_000_000)
    if log["warning"] is not None:
        raise ArithmeticError(f"optimal transport: {log['warning']}")
    real, fake = np.array(log["u"]), -np.array(log["v"])
    gauge = 0.5 * (real.mean() + fake.mean())
    match = np.asarray(plan).argmax(axis=0)
    matched = float(cost[match, np.arange(len(match))].mean())
    return Duals(real - gauge, fake - gauge, match, matched)
