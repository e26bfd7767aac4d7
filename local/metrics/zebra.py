# SPDX-License-Identifier: Apache-2.0
"""ZEBRA: expected and worst-case disclosure of identity.

Source: Noé et al. 2022, section 5 (Eq. 11 to 13, Table 1), after Nautsch et al. 2020. LLR are
natural logarithms; D_ECE is in bit; l_w in decades (base-10 LLR).
"""

import math

import numpy as np

from local.metrics.detection import LN2, Blocks, mean, softplus
from utils.arrays import Float64

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
        small = np.polynomial.polynomial.polyval(x, _Z_SERIES)
    return np.where(np.abs(x) < _SERIES_BELOW, small, np.where(x > 0, above, below))


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
