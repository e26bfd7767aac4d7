# SPDX-License-Identifier: Apache-2.0
"""McAdams coefficient: formants are moved by raising the angles of the LPC poles to a power.

Systems B2 and B2r of Noé et al. 2020 and 2022 (Patino et al., "Speaker anonymisation using the
McAdams coefficient", 2020). All frames of an utterance are processed at once, in float64.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from steps.anonymisers.burg import burg
from steps.anonymisers.poles import expand, factorise, warp_angles
from utils.arrays import Float64

HOP = 160  # samples: 10 ms at 16 kHz; a window is two hops
EPSILON = float(np.finfo(np.float32).eps)  # added to the signal, and again before the prediction
BLOCK = 2048  # frames at a time: enough to hide the cost of a call, few enough for the cache


@dataclass(frozen=True)
class FrameOptions:
    """Framing and filtering; the defaults are the recipe's, not those of a challenge.

    order: of the linear prediction.
    pad_edges: zeros are put around the signal, so that every sample is in two windows. Without, the
        first and last 10 ms fade, and the rest after the last whole frame is silent.
    skip_first_frame: the first frame is left out.
    clamp: angles beyond pi (alpha > 1) become pi; without, they wrap round.
    match_energy: a filtered frame gets the energy of the input frame.
    """

    order: int = 20
    pad_edges: bool = True
    skip_first_frame: bool = False
    clamp: bool = True
    match_energy: bool = False


DEFAULTS = FrameOptions()


@dataclass(frozen=True)
class Warped:
    """`samples`: (n,) float64, not normalised. `n_slow`: frames that needed `numpy.roots`."""

    samples: Float64
    n_frames: int
    n_slow: int


def transform(
    wave: Float64, alpha: float, options: FrameOptions = DEFAULTS, *, block: int = BLOCK
) -> Warped:
    """Move formants by theta -> theta ** alpha, theta in radians a sample: 1 rad, 2546 Hz, stays.

    wave: (n,) float64 at 16 kHz. Returns n samples at the level of the filters' output. Digital
    silence is returned unchanged; a signal shorter than a window is padded to one. Every `block`,
    the number of frames processed at a time, gives the same bits.
    """
    if not np.any(wave):
        return Warped(np.zeros(len(wave)), 0, 0)
    hops = _cut(wave, options.pad_edges)
    out = np.zeros_like(hops)
    first = 1 if options.skip_first_frame and len(hops) > 2 else 0
    n_slow = 0
    for start, stop in _blocks(first, len(hops) - 1, block):
        frames, slow = warp_frames(hops[start : stop + 1], alpha, options)
        out[start:stop] += frames[:HOP].T
        out[start + 1 : stop + 1] += frames[HOP:].T
        n_slow += slow
    begin = HOP if options.pad_edges else 0
    written = out.ravel()[begin : begin + len(wave)]
    samples = np.zeros(len(wave))
    samples[: len(written)] = written
    return Warped(samples, len(hops) - 1 - first, n_slow)


def window() -> Float64:
    """Root of the symmetric Hann window, (2 HOP,): squared and overlapped it sums to 1 +- 0.003."""
    hann = np.hanning(2 * HOP)
    return np.asarray(np.sqrt(hann / (hann.sum() / HOP)))


def _cut(wave: Float64, pad_edges: bool) -> Float64:
    """Signal in rows of a hop, (n, HOP), n > 1; frame m is rows m and m + 1."""
    if pad_edges:
        padded = np.zeros((-(-len(wave) // HOP) + 2, HOP))
        padded.ravel()[HOP : HOP + len(wave)] = wave
    else:
        padded = np.zeros((max(len(wave) // HOP, 2), HOP))
        whole = wave[: padded.size]
        padded.ravel()[: len(whole)] = whole
    return padded + EPSILON


def _blocks(first: int, last: int, block: int) -> Iterator[tuple[int, int]]:
    """Divide frames first ... last - 1 into ranges of equal size, to one frame, of at most `block`.

    A range of one frame is avoided: NumPy sums a single column in another order.
    """
    n = last - first
    n_blocks = max(1, min(-(-n // block), n // 2))
    for number in range(n_blocks):
        yield first + number * n // n_blocks, first + (number + 1) * n // n_blocks


def warp_frames(hops: Float64, alpha: float, options: FrameOptions) -> tuple[Float64, int]:
    """Warped, windowed frames (2 HOP, n) of rows of a hop (n + 1, HOP); number of slow ones."""
    order, shape = options.order, window()[:, None]
    # Time runs down and frames lie side by side, so that every operation is on rows of many frames.
    # The rows of zeros on top are the memory of the filters.
    frames = np.zeros((order + 2 * HOP, len(hops) - 1))
    np.multiply(hops[:-1].T, shape[:HOP], out=frames[order : order + HOP])
    np.multiply(hops[1:].T, shape[HOP:], out=frames[order + HOP :])
    polynomials = burg(np.ascontiguousarray(frames[order:].T) + EPSILON, order)
    warped, n_slow = _warp_polynomials(polynomials, alpha, options.clamp)
    filtered = _filter(frames, polynomials, warped)
    if options.match_energy:
        filtered *= _gains(frames[order:], filtered)
    filtered *= shape
    return filtered, n_slow


def _warp_polynomials(polynomials: Float64, alpha: float, clamp: bool) -> tuple[Float64, int]:
    """Prediction polynomials (order + 1, n) with warped pole angles; number of slow ones."""
    n_rows = len(polynomials)
    if n_rows % 2 == 0:  # an odd order gets one more pole, at zero, where it stays
        polynomials = np.concatenate([polynomials, np.zeros((1, polynomials.shape[1]))])
    factors, slow = factorise(polynomials)
    return expand(warp_angles(factors, alpha, clamp=clamp))[:n_rows], len(slow)


def _filter(frames: Float64, zeros: Float64, poles: Float64) -> Float64:
    """Filter each frame by zeros(z) / poles(z), from rest.

    frames: (order + n_samples, n), the first `order` rows zero; zeros and poles: (order + 1, n),
    first row 1. Returns (n_samples, n).
    """
    order = len(zeros) - 1
    out = np.empty_like(frames)
    out[:order] = 0.0
    past = np.lib.stride_tricks.sliding_window_view(frames, order + 1, axis=0)
    np.einsum("tfk,kf->tf", past, zeros[::-1], out=out[order:])
    feedback = np.ascontiguousarray(poles[:0:-1])
    echo = np.empty(frames.shape[1])
    for t in range(order, len(out)):
        np.einsum("kf,kf->f", out[t - order : t], feedback, out=echo)
        out[t] -= echo
    return out[order:]


def _gains(before: Float64, after: Float64) -> Float64:
    """Gains (n,) that give the columns of `after` the energies of those of `before`."""
    wanted, given = (np.einsum("tf,tf->f", frames, frames) for frames in (before, after))
    return np.asarray(np.sqrt(wanted / np.maximum(given, np.finfo(np.float64).tiny)))
