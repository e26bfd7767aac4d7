# SPDX-License-Identifier: Apache-2.0
"""Diffusion of vectors: the noise schedule, and three ways to solve the reverse equation.

dq = -1/2 beta_t q dt + sqrt(beta_t) dW from a vector at t = 0 to noise at t = 1 (Liu et al. 2025,
Eq. 4-5); the terminal mean is zero. Arrays are (n, d); networks are not known here.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Score = Callable[[Array, float], Array]

BETA_0, BETA_1 = 0.05, 20.0
SOLVERS = ("ml", "euler", "heun")


def beta(t: float) -> float:
    """Linear schedule (Liu et al. 2025, VI.A)."""
    return BETA_0 + t * (BETA_1 - BETA_0)


def gamma(s: Any, t: Any) -> Any:
    """Factor exp(-1/2 integral of beta from s to t) on a vector from s to t (Eq. 5)."""
    return np.exp(-0.5 * (BETA_0 * (t - s) + 0.5 * (BETA_1 - BETA_0) * (t * t - s * s)))


def n_noises(solver: str, steps: int) -> int:
    """Number of standard normal arrays for `reverse`: the start, and one a step if it draws."""
    return {"ml": steps, "euler": steps + 1, "heun": 1}[solver]


def reverse(score: Score, noise: Array, steps: int, solver: str) -> Array:
    """Vectors (n, d) from standard normal noise (n_noises, n, d), in equal steps from t = 1 to 0.

    score(q, t): gradient of the log density of q (n, d) at t, called at t > 0 only. `ml`: the
    maximum-likelihood solver of Popov et al. (2022), which Liu et al. 2025 use; exact for a target
    that is one point, narrower than the truth for a broad one (variance 0.36 for 1 after 5 steps).
    `euler`: the equation as it stands (Eq. 6), Euler-Maruyama. `heun`: the ordinary differential
    equation of the same densities, second order, twice the calls, no noise but the start.
    """
    q: Array = noise[0]
    h = 1.0 / steps
    for k in range(steps):
        t = 1.0 - k * h
        if solver == "heun":
            q = _heun_step(score, q, t, h, last=k == steps - 1)
        else:
            shrink, push, sigma = _coefficients(solver, t, h, last=k == steps - 1)
            q = shrink * q + push * score(q, t)
            if sigma:
                q = q + sigma * noise[k + 1]
    return q


@lru_cache(maxsize=1024)
def _coefficients(solver: str, t: float, h: float, last: bool) -> tuple[float, float, float]:
    """Coefficients of a step q <- shrink q + push score(q, t) + sigma noise."""
    step = beta(t) * h
    if solver == "euler":
        return 1.0 + 0.5 * step, step, math.sqrt(step)
    s = 0.0 if last else t - h
    g0t, g0s, gst = (float(gamma(a, b)) for a, b in ((0.0, t), (0.0, s), (s, t)))
    var_0t, var_0s, var_st = 1.0 - g0t**2, 1.0 - g0s**2, 1.0 - gst**2
    kappa = g0s * var_st / (g0t * step) - 1.0
    omega = g0s * var_st / (var_0t * g0t) + gst * var_0s / var_0t - (0.5 * step + 1.0)
    return (
        1.0 + 0.5 * step + omega,
        (1.0 + kappa) * step,
        math.sqrt(var_0s * var_st / var_0t),
    )


def _heun_step(score: Score, q: Array, t: float, h: float, last: bool) -> Array:
    """Solve dq = -1/2 beta_t (q + score) dt; the last step is plain Euler, as 0 has no score."""
    slope = 0.5 * beta(t) * (q + score(q, t))
    ahead = q + h * slope
    if last:
        return ahead
    s = t - h
    return q + 0.5 * h * (slope + 0.5 * beta(s) * (ahead + score(ahead, s)))
