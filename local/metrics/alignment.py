# SPDX-License-Identifier: Apache-2.0
"""Similarity of two embedding spaces: canonical correlation and Procrustes alignment.

Source: Seo et al. 2025, section 3.6.2 and Table 8. Both fit a map on the very pairs they report on,
so both rise with the number of dimensions and fall with the number of rows even where nothing is
shared: read them beside their chance level (the same rows, paired at random).
"""

import logging
import math

import numpy as np

from utils.arrays import Float64, Int64
from utils.seeds import make_rng

N_CORRELATIONS = 10
N_PERMUTATIONS = 5
N_FOLDS = 5  # of the speakers, for held-out figures

logger = logging.getLogger(__name__)


def alignment(x: Float64, y: Float64, speaker: Int64 | None = None) -> dict[str, object]:
    """Figures cca_top10, p_cos, p_mse, p_cos_held_out and their chance levels for n paired rows.

    x, y: (n, D), no zero rows. speaker: (n,) of the rows, for held-out figures; None: every row is
    another person. Undefined figures are NaN, with a warning.
    """
    names = ("cca_top10", "p_cos", "p_mse", "p_cos_held_out")
    undefined = dict.fromkeys((*names, *(f"chance_{name}" for name in names)), math.nan)
    report: dict[str, object] = {"n_paired": len(x), **undefined}
    if len(x) == 0:
        logger.warning("cca_top10, p_cos and p_mse are undefined: no utterance is in both sets")
        return report
    who = np.arange(len(x)) if speaker is None else speaker
    rng = make_rng(0, "chance pairing of x-vectors")
    permutations = [rng.permutation(len(x)) for _ in range(N_PERMUTATIONS)]
    u, v = basis(x), basis(y)
    if _check_ranks(u.shape[1], v.shape[1], len(x)):
        report["cca_top10"] = cca_top10(u, v)
        chance = [cca_top10(u, v[rows]) for rows in permutations]
        report["chance_cca_top10"] = float(np.mean(chance))
    xn, yn = (m / np.linalg.norm(m, axis=1, keepdims=True) for m in (x, y))
    cosines = {"p": procrustes_cosine(xn, yn)}
    cosines["chance_p"] = float(np.mean([procrustes_cosine(xn, yn[rows]) for rows in permutations]))
    for name, cosine in cosines.items():
        report[f"{name}_cos"] = cosine
        report[f"{name}_mse"] = 2.0 * (1.0 - cosine) / x.shape[1]  # of unit rows, mean of elements
    if len(np.unique(who)) < 2:
        logger.warning("p_cos_held_out is undefined: there is one speaker, and nobody to hold out")
        return report
    report["p_cos_held_out"] = held_out_cosine(xn, yn, who)
    chances = [held_out_cosine(xn, yn[rows], who) for rows in permutations]
    report["chance_p_cos_held_out"] = float(np.mean(chances))
    return report


def basis(x: Float64) -> Float64:
    """Orthonormal basis of the centred columns, (n, rank), by SVD. x: (n, D).

    Directions below the rounding error of the uncentred data do not count.
    """
    left, size, _ = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    tolerance = max(x.shape) * np.finfo(np.float64).eps * np.linalg.norm(x)
    return np.asarray(left[:, size > tolerance], np.float64)


def cca_top10(u: Float64, v: Float64) -> float:
    """Mean of the ten largest canonical correlations. u, v: `basis` of either side, (n, rank)."""
    correlations = np.linalg.svd(u.T @ v, compute_uv=False)
    return float(np.minimum(correlations[:N_CORRELATIONS], 1.0).mean())


def procrustes_cosine(x: Float64, y: Float64) -> float:
    """Mean cosine of rows after the best orthogonal map of x onto y, reflections included.

    x, y: (n, D) unit rows. The map is UVᵀ of the SVD of xᵀy, and the sum of the cosines after it
    is the sum of the singular values.
    """
    return float(np.linalg.svd(x.T @ y, compute_uv=False).sum() / len(x))


def held_out_cosine(x: Float64, y: Float64, speaker: Int64) -> float:
    """Mean cosine of rows after the orthogonal map that fits other speakers' rows best.

    x, y: (n, D) unit rows; speaker: (n,), two speakers or more. The speakers are dealt to folds in
    their order, at most N_FOLDS, and the map for a fold's rows comes from all other folds.
    """
    _, place = np.unique(speaker, return_inverse=True)
    fold = place % N_FOLDS
    total = 0.0
    for number in np.unique(fold):
        held = fold == number
        left, _, right = np.linalg.svd(x[~held].T @ y[~held])
        total += float(np.vecdot(x[held] @ (left @ right), y[held]).sum())
    return total / len(x)


def _check_ranks(rank_x: int, rank_y: int, n: int) -> bool:
    """Warn where canonical correlation has little meaning; False where it has none."""
    least = min(rank_x, rank_y)
    if least == 0:
        logger.warning("cca_top10 is undefined: the x-vectors of one side are all equal")
        return False
    if least < N_CORRELATIONS:
        logger.warning("cca_top10 is over %d correlations: there are no more", least)
    # Subspaces of an (n − 1)-dimensional space share rank_x + rank_y − (n − 1) dimensions at least.
    if rank_x + rank_y - (n - 1) >= min(N_CORRELATIONS, least):
        logger.warning(
            "cca_top10 is 1 by construction: %d paired segments are too few for %d and %d "
            "dimensions",
            *(n, rank_x, rank_y),
        )
    return True
