# SPDX-License-Identifier: Apache-2.0
"""Burg's linear prediction for many frames at once.

Frames never mix: a frame gets the same bits in every batch of two frames or more.
"""

import numpy as np

from utils.arrays import Float64

TINY = float(np.finfo(np.float64).tiny)
# The fast recursion works on second moments and loses as many digits as the prediction gains. Below
# this ratio of residual to signal energy (-60 dB) the lattice, which works on the signal, is used.
MIN_RESIDUAL = 1e-6


def burg(frames: Float64, order: int) -> Float64:
    """Prediction polynomials 1 + a_1 z^-1 + ... + a_p z^-p of frames, by Burg's method.

    frames: (n, n_samples) float64, rows contiguous. Returns (order + 1, n), first row 1.
    """
    polynomials, residual = _burg_from_moments(frames, order)
    sharp = np.flatnonzero(~(residual > MIN_RESIDUAL))  # also catches NaN
    if len(sharp):
        polynomials[:, sharp] = burg_lattice(frames[sharp], order)
    return polynomials


def burg_lattice(frames: Float64, order: int) -> Float64:
    """Burg's recursion by its definition, on forward and backward errors. Same shapes as `burg`.

    The energies are summed anew at each order: |k| <= 1 even where hardly an error is left. (The
    update that librosa makes instead gives poles outside the unit circle on digital silence, and
    NaN on pure tones.)
    """
    forward, backward = frames[:, 1:], frames[:, :-1]
    polynomials = np.zeros((order + 1, len(frames)))
    polynomials[0] = 1.0
    for i in range(order):
        energy = np.vecdot(forward, forward) + np.vecdot(backward, backward)
        k = -2.0 * np.vecdot(forward, backward) / (energy + TINY)
        polynomials[: i + 2] += k * polynomials[: i + 2][::-1]
        column = k[:, None]
        forward, backward = (
            (forward + column * backward)[:, 1:],
            (backward + column * forward)[:, :-1],
        )
    return polynomials


@np.errstate(divide="ignore", invalid="ignore", over="ignore")  # of frames that the lattice repeats
def _burg_from_moments(frames: Float64, order: int) -> tuple[Float64, Float64]:
    """Burg's recursion on autocorrelations: O(N p + p^2) a frame, with a small constant.

    K. Vos, "A fast implementation of Burg's method", 2013. With `a` padded by a zero, J the
    reversal and R the covariance, forward plus backward, k = -(J a)'g / a'g where g = R a. The R of
    the next order differs by products with the first and the last samples only. Returns the
    polynomials (order + 1, n) and the lowest ratio of residual to signal energy on the way (n,).
    """
    n_frames, n_samples = frames.shape
    moments = [np.vecdot(frames[:, lag:], frames[:, : n_samples - lag]) for lag in range(order + 1)]
    edges = [np.ascontiguousarray(edge[:, : order + 1].T) for edge in (frames, frames[:, ::-1])]
    a, g, r, product = (np.zeros((order + 2, n_frames)) for _ in range(4))
    a[0] = 1.0
    r[0] = g[1] = 2.0 * moments[1]
    g[0] = 2.0 * moments[0] - edges[0][0] ** 2 - edges[1][0] ** 2
    lowest = np.full(n_frames, np.inf)
    for n in range(2, order + 2):
        energy = np.einsum("jf,jf->f", a[: n - 1], g[: n - 1])
        k = -np.einsum("jf,jf->f", a[n - 1 :: -1], g[:n]) / (energy + TINY)
        a[:n] += np.multiply(a[n - 1 :: -1], k, out=product[:n])
        lowest = np.minimum(lowest, energy * (1.0 - k * k))
        if n > order:
            break
        g[:n] += np.multiply(g[n - 1 :: -1], k, out=product[:n])
        for edge in edges:  # the samples that leave the sums
            error = np.einsum("jf,jf->f", edge[n - 1 :: -1], a[:n])
            g[:n] -= np.multiply(edge[n - 1 :: -1], error, out=product[:n])
            r[: n - 1] -= np.multiply(edge[: n - 1], edge[n - 1], out=product[: n - 1])
        r[1:n] = r[: n - 1].copy()
        r[0] = 2.0 * moments[n]
        g[n] = np.einsum("jf,jf->f", r[:n], a[:n])
    return a[: order + 1], lowest / (2.0 * moments[0] + TINY)
