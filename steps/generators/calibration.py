# SPDX-License-Identifier: Apache-2.0
"""Calibration that makes new identities as far apart as people (ours, not Liu et al.'s).

A network that learned S speakers maps new indices to vectors near the middle: it learned few
directions of identity vectors, and a new one has a small share of them. Its vectors of new indices
get the mean and the covariance of real speakers by an affine map.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from steps.generators.identity import END
from utils.arrays import Float32, Float64, Int64

N_INDICES = 4096
# The last indices; a key has one of them with a probability of 5 in 10^16.
INDICES: Int64 = np.arange(END - N_INDICES, END, dtype=np.int64)
LEAST_VARIANCE = 1e-6  # of real speakers, over that in the widest direction; below, it is none
# Variance of new voices in a direction, over their mean variance: no smaller one is amplified.
FLOOR = 1e-4

Calibrate = Callable[[Float32], Float32]  # from vectors (n, d) of a network to (n, d) for use


class Calibration(nn.Module):
    """Affine map y' = real + map (y - new), kept with a network's weights.

    real, new: (d,) means of real speakers and of the vectors of new indices. map (d, d), symmetric:
    A (A C A)^(-1/2) A with A the square root of the covariance of real speakers and C that of new
    indices: the optimal transport between two Gaussians, which moves vectors least (Olkin and
    Pukelsheim 1982). Until `fit` it is the identity: y' = y.
    """

    real: Tensor
    new: Tensor
    map: Tensor

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.register_buffer("real", torch.zeros(dimension))
        self.register_buffer("new", torch.zeros(dimension))
        self.register_buffer("map", torch.eye(dimension))

    def fit(self, speakers: Float32, made: Float32) -> None:
        """Fit to x-vectors of real speakers (S, d) and the network's vectors (n, d) of INDICES."""
        real, new = speakers.astype(np.float64), made.astype(np.float64)
        self.real.copy_(torch.from_numpy(real.mean(axis=0)))
        self.new.copy_(torch.from_numpy(new.mean(axis=0)))
        self.map.copy_(torch.from_numpy(_transport(np.cov(real.T), np.cov(new.T), len(real))))

    def in_use(self) -> Calibrate:
        """Map for arrays; in single precision, like the network, and one matrix product."""
        real, new, turn = (part.cpu().double().numpy() for part in (self.real, self.new, self.map))
        weight, bias = single(turn), single(real - turn @ new)
        return lambda vectors: affine(vectors, weight, bias)


def affine(x: Float32, weight: Float32, bias: Float32) -> Float32:
    """(n, inputs) -> (n, outputs); a lone vector is multiplied as a vector, twice as fast."""
    y: Float32 = (weight @ x[0])[None] if len(x) == 1 else x @ weight.T
    y += bias
    return y


def single(array: Float64) -> Float32:
    """Array as float32, contiguous."""
    return np.ascontiguousarray(array, dtype=np.float32)


def _transport(real: Float64, new: Float64, n_speakers: int) -> Float64:
    """Map from one covariance (d, d) to another, in directions in which real speakers differ."""
    variances, axes = np.linalg.eigh(real)
    kept = variances > LEAST_VARIANCE * variances[-1]
    axes, roots = axes[:, kept], np.sqrt(of_everybody(variances[kept], n_speakers))
    inner = axes.T @ new @ axes
    if not np.trace(inner) > 0:  # all are equal, and cannot be told apart
        return np.eye(len(real))
    inner += FLOOR * np.trace(inner) / len(inner) * np.eye(len(inner))
    values, turn = np.linalg.eigh(roots[:, None] * inner * roots)
    outer = axes * roots
    found: Float64 = outer @ (turn * values**-0.5) @ turn.T @ outer.T
    return found


def of_everybody(variances: Float64, n_speakers: int) -> Float64:
    """Variances (k,) of speakers along their axes, evened out to those of all people.

    A covariance C of S speakers is more uneven than that of all people, so that voices drawn from
    it are too similar: the mean squared cosine of two is tr C^2 / (tr C)^2. Of n = S - 1 degrees of
    freedom, n^2 / ((n - 1) (n + 2)) (tr C^2 - (tr C)^2 / n) has no bias (Srivastava 2005). The
    variances are moved towards their mean until the sum of their squares is that; if there are too
    few directions for that, they become equal.
    """
    n, total, even = n_speakers - 1, float(variances.sum()), float(variances.mean())
    uneven = float(np.sum((variances - even) ** 2))
    if n < 2 or uneven == 0:
        return variances
    wanted = n**2 / ((n - 1) * (n + 2)) * (float(np.sum(variances**2)) - total**2 / n)
    left = np.clip((wanted - total * even) / uneven, 0.0, 1.0)
    moved: Float64 = even + np.sqrt(left) * (variances - even)
    return moved
