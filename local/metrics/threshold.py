# SPDX-License-Identifier: Apache-2.0
"""Score at which an evaluator makes equally many errors of both kinds."""

import numpy as np

from utils.arrays import Bool, Float64


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
