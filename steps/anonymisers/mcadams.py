"""The McAdams coefficient: linear prediction, poles, and the systems B2 and B2r."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from steps.anonymisers.registry import Anonymiser, Description, Spoken
from steps.sources import LEVELS, SourceSpeaker, SystemRun, VoiceKey
from utils.arrays import Float64, Intp
from utils.settings import Ascending, OneOf, Positive
from utils.tables import StrPath

# ---- Burg's linear prediction for many frames at once.
#
# Frames never mix: a frame gets the same bits in every batch of two frames or more.

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


# ---- Poles of many real polynomials at once, kept as real quadratic factors.
#
# A real polynomial of even degree is a product of factors x^2 + p x + q, each a conjugate pair of
# poles or two real poles. Working on factors instead of poles needs only real arithmetic, half the
# unknowns, and keeps conjugates conjugate. All operations are element by element: a polynomial gets
# the same bits in every batch.

MAX_STEP = 0.25  # of p and q in one iteration; without a limit 10 % of speech frames diverge
CONVERGED = 1e-10  # the iteration is quadratic: the rest is far below this, except for clusters
MAX_ITERATIONS = 30  # 999 of 1000 speech frames need fewer; the others go to `numpy.roots`
# Cells of [-1, 1] in which real poles are searched, narrow towards the ends.
GRID = np.cos(np.pi * np.arange(33) / 32)
CELLS = 0.5 * (GRID[1:] + GRID[:-1])


def factorise(polynomials: Float64) -> tuple[Float64, Intp]:
    """Quadratic factors of monic real polynomials whose roots lie in or near the unit circle.

    polynomials: (2 m + 1, n), highest power first. Returns p and q of the factors, (2, m, n), and a
    mask of the polynomials on which the iteration did not settle, and `numpy.roots` was used.

    The iteration is that of Weierstrass (Durand and Kerner), for factors: each moves by the
    remainder of the polynomial over the product of the other factors, modulo the factor itself.
    """
    n_frames = polynomials.shape[1]
    factors = np.empty((2, (len(polynomials) - 1) // 2, n_frames))
    a, moving, todo = polynomials, _first_guess(polynomials), np.arange(n_frames)
    for _ in range(MAX_ITERATIONS):
        step, size = _steps(a, moving)
        moving += step
        settled = size.max(axis=0) < CONVERGED
        if settled.any():
            factors[:, :, todo[settled]] = moving[:, :, settled]
            left = np.flatnonzero(~settled)
            # np.take keeps rows contiguous, which an index in brackets does not.
            todo, a, moving = todo[left], np.take(a, left, axis=1), np.take(moving, left, axis=2)
        if not len(todo):
            break
    for frame in todo:
        factors[:, :, frame] = _factorise_by_eigenvalues(polynomials[:, frame])
    return factors, todo


def expand(factors: Float64) -> Float64:
    """Products of factors (2, m, n) as polynomials (2 m + 1, n), highest power first."""
    p, q = factors
    products = np.zeros((2 * len(p) + 1, p.shape[1]))
    products[0] = 1.0
    for j in range(len(p)):
        n = 2 * j + 1
        by_p, by_q = p[j] * products[:n], q[j] * products[:n]
        products[1 : n + 1] += by_p
        products[2 : n + 2] += by_q
    return products


def warp_angles(factors: Float64, alpha: float) -> Float64:
    """Raise the angle of each complex pair to the power alpha; magnitudes and real poles stay.

    A pair of magnitude r and angle theta is x^2 - 2 r cos(theta) x + r^2, so only p changes. Angles
    beyond pi (alpha > 1) become pi.
    """
    p, q = factors
    half = -0.5 * p
    height = q - half * half  # squared imaginary part
    theta = np.minimum(np.arctan2(np.sqrt(np.maximum(height, 0.0)), half) ** alpha, np.pi)
    pair = -2.0 * np.sqrt(np.maximum(q, 0.0)) * np.cos(theta)
    return np.stack([np.where(height > 0.0, pair, p), q])


def _first_guess(polynomials: Float64) -> Float64:
    """Start with two real poles a factor at sign changes; else with pairs round the unit circle.

    A pair that should become two real poles far apart, or the reverse, would not converge.
    """
    values = np.ones((len(GRID), polynomials.shape[1]))
    for coefficients in polynomials[1:]:
        values *= GRID[:, None]
        values += coefficients
    positive = values > 0.0
    rank = np.cumsum(positive[1:] != positive[:-1], axis=0)  # real poles up to this cell
    n_real = rank[-1] // 2
    m = (len(polynomials) - 1) // 2
    angle = (np.arange(m)[:, None] - n_real + 0.5) * np.pi / np.maximum(m - n_real, 1)
    guess = np.stack([-2.0 * np.cos(angle), np.ones_like(angle)])
    for i in range(min(int(n_real.max()), m)):
        one, other = (CELLS[np.argmax(rank > 2 * i + which, axis=0)] for which in (0, 1))
        real = n_real > i
        guess[0, i] = np.where(real, -one - other, guess[0, i])
        guess[1, i] = np.where(real, one * other, guess[1, i])
    return guess


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def _steps(a: Float64, factors: Float64) -> tuple[Float64, Float64]:
    """Step of the iteration on p and q, (2, m, n), and its size before it was limited, (m, n).

    Factors that share a root give NaN: they never settle.
    """
    p, q = factors
    u, v = _remainders(a, factors)
    c, d = _products_of_others(factors)
    # (u x + v) / (c x + d) modulo x^2 + p x + q: times the conjugate of the divisor, over its norm.
    e = d - c * p
    top = u * c
    step = np.stack([u * e - v * c + p * top, v * e + q * top])
    step /= d * e + q * c * c
    size = np.abs(step).max(axis=0)
    return step * (MAX_STEP / np.maximum(size, MAX_STEP)), size


def _remainders(a: Float64, factors: Float64) -> Float64:
    """Remainder u x + v of each polynomial modulo each of its factors, as u and v, (2, m, n)."""
    degree = len(a) - 1
    # Quotient: b_k = a_k - p b_{k-1} - q b_{k-2}. b_k takes the place of b_{k-2}, so b[0] and b[1]
    # take turns in being the older one, and p and q in being their weights.
    weights = factors[::-1].copy(), factors
    b, term = np.ones_like(factors), np.empty_like(factors)
    np.subtract(a[1], factors[0], out=b[1])
    for k in range(2, degree):
        np.multiply(weights[k % 2], b, out=term)
        np.subtract(a[k], term[0], out=b[k % 2])
        b[k % 2] -= term[1]
    return np.stack([b[1], a[degree] - factors[1] * b[0]])


def _products_of_others(factors: Float64) -> Float64:
    """Product u x + v of all other factors modulo each factor, as u and v, (2, m, n)."""
    m = factors.shape[1]
    if m == 1:
        return np.stack([np.zeros_like(factors[0]), np.ones_like(factors[0])])
    around = np.concatenate([factors, factors], axis=1)
    product = around[:, 1 : m + 1] - factors
    other, by_x, by_x2 = (np.empty_like(factors) for _ in range(3))
    for shift in range(2, m):
        # Another factor is (p' - p) x + (q' - q) modulo x^2 + p x + q, and x^2 is -p x - q.
        np.subtract(around[:, shift : shift + m], factors, out=other)
        np.multiply(product, other[0], out=by_x)
        product *= other[1]
        np.multiply(factors, by_x[0], out=by_x2)
        product[0] += by_x[1]
        product -= by_x2
    return product


def _factorise_by_eigenvalues(polynomial: Float64) -> Float64:
    """Factors (2, m) of one polynomial (2 m + 1,), by the eigenvalues of its companion matrix."""
    poles = np.roots(polynomial)
    upper = poles[poles.imag > 0.0]
    real = np.sort(poles[poles.imag == 0.0].real)
    p = np.concatenate([-2.0 * upper.real, -real[::2] - real[1::2]])
    q = np.concatenate([np.abs(upper) ** 2, real[::2] * real[1::2]])
    return np.stack([p, q])


# ---- McAdams coefficient: formants are moved by raising the angles of the LPC poles to a power.
#
# Systems B2 and B2r of Noé et al. 2020 and 2022 (Patino et al., "Speaker anonymisation using the
# McAdams coefficient", 2020). All frames of an utterance are processed at once, in float64.

HOP = 160  # samples: 10 ms at 16 kHz; a window is two hops
ORDER = 20  # of the linear prediction
EPSILON = float(np.finfo(np.float32).eps)  # added to the signal, and again before the prediction
BLOCK = 2048  # frames at a time: enough to hide the cost of a call, few enough for the cache


@dataclass(frozen=True)
class Warped:
    """`samples`: (n,) float64, not normalised. `n_slow`: frames that needed `numpy.roots`."""

    samples: Float64
    n_frames: int
    n_slow: int


def transform(wave: Float64, alpha: float, *, block: int = BLOCK) -> Warped:
    """Move formants by theta -> theta ** alpha, theta in radians a sample: 1 rad, 2546 Hz, stays.

    wave: (n,) float64 at 16 kHz. Returns n samples at the level of the filters' output. Zeros are
    put around the signal, so that every sample is in two windows. Digital silence is returned
    unchanged. Every `block`, the number of frames processed at a time, gives the same bits.
    """
    if not np.any(wave):
        return Warped(np.zeros(len(wave)), 0, 0)
    # In rows of a hop; frame m is rows m and m + 1.
    hops = np.pad(wave, (HOP, -len(wave) % HOP + HOP)).reshape(-1, HOP) + EPSILON
    out, n_slow = np.zeros_like(hops), 0
    for start, stop in _blocks(len(hops) - 1, block):
        frames, slow = warp_frames(hops[start : stop + 1], alpha)
        out[start:stop] += frames[:HOP].T
        out[start + 1 : stop + 1] += frames[HOP:].T
        n_slow += slow
    return Warped(out.ravel()[HOP : HOP + len(wave)], len(hops) - 1, n_slow)


def window() -> Float64:
    """Root of the symmetric Hann window, (2 HOP,): squared and overlapped it sums to 1 +- 0.003."""
    hann = np.hanning(2 * HOP)
    return np.asarray(np.sqrt(hann / (hann.sum() / HOP)))


def _blocks(n: int, block: int) -> Iterator[tuple[int, int]]:
    """Divide n frames into ranges of equal size, to one frame, of at most `block`.

    A range of one frame is avoided: NumPy sums a single column in another order.
    """
    n_blocks = max(1, min(-(-n // block), n // 2))
    for number in range(n_blocks):
        yield number * n // n_blocks, (number + 1) * n // n_blocks


def warp_frames(hops: Float64, alpha: float) -> tuple[Float64, int]:
    """Warped, windowed frames (2 HOP, n) of rows of a hop (n + 1, HOP); number of slow ones."""
    shape = window()[:, None]
    # Time runs down and frames lie side by side, so that every operation is on rows of many frames.
    # The rows of zeros on top are the memory of the filters.
    frames = np.zeros((ORDER + 2 * HOP, len(hops) - 1))
    np.multiply(hops[:-1].T, shape[:HOP], out=frames[ORDER : ORDER + HOP])
    np.multiply(hops[1:].T, shape[HOP:], out=frames[ORDER + HOP :])
    polynomials = burg(np.ascontiguousarray(frames[ORDER:].T) + EPSILON, ORDER)
    factors, slow = factorise(polynomials)
    warped = expand(warp_angles(factors, alpha))
    filtered = _filter(frames, polynomials, warped)
    filtered *= shape
    return filtered, len(slow)


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


# ---- Systems B2 and B2r: McAdams coefficient, fixed or drawn.

ALPHA = 0.8
_EACH = {"spk": "person", "perm": "person", "utt": "recording", "const": "run"}  # purpose of a draw


@dataclass(frozen=True)
class McAdamsSettings:
    """Settings of a configuration; None: not given. See docs/mcadams.md."""

    anonymiser: str
    alpha: Positive | None = None
    alpha_range: Annotated[tuple[Positive, Positive], Ascending()] | None = None
    level: Annotated[str, OneOf(*LEVELS)] | None = None

    def __post_init__(self) -> None:
        if self.alpha is not None and self.alpha_range is not None:
            raise ValueError("alpha_range: alpha is also given; leave out one of the two")
        if self.level is not None and not self.alpha_range:
            raise ValueError("level: alpha is fixed, so no level applies; give alpha_range")

    @property
    def key_level(self) -> str:
        """Level of the keys."""
        return (self.level or "spk") if self.alpha_range else "const"


class McAdams(Anonymiser):
    """One configured system; see `registry.Anonymiser`."""

    kind = McAdamsSettings
    given: McAdamsSettings

    def __init__(self, settings: McAdamsSettings, run: SystemRun) -> None:
        super().__init__(settings, run)
        self.alpha_range = settings.alpha_range
        self.alpha = None if self.alpha_range else settings.alpha or ALPHA
        self.level = settings.key_level
        self.is_random = self.alpha_range is not None

    @classmethod
    def describe(cls, settings: McAdamsSettings, path: StrPath) -> Description:
        """Needs: nothing but the speech."""
        return Description(settings.key_level, levels=LEVELS if settings.alpha_range else ())

    def settings(self) -> dict[str, object]:
        """All settings, defaults included, and one sentence (`note`) on the system."""
        own = {"alpha": self.alpha, "level": self.level, "note": self._note()}
        return super().settings() | own

    def _note(self) -> str:
        if self.alpha_range is None:
            return f"The McAdams coefficient {self.alpha} moves the formants, for everybody alike."
        low, high = self.alpha_range
        return (
            f"A McAdams coefficient between {low} and {high} moves the formants; it is drawn for "
            f"each {_EACH[self.level]}."
        )

    def transform(self, wave: Float64, key: VoiceKey, source: SourceSpeaker) -> Spoken:
        """Protected speech; drawn values, number of frames, and of those with `numpy.roots`."""
        alpha = self.coefficient(key)
        warped = transform(wave, alpha)
        return warped.samples, {
            "alpha": alpha,
            "frames": warped.n_frames,
            "slow_frames": warped.n_slow,
        }

    def coefficient(self, key: VoiceKey) -> float:
        """Coefficient alpha of a key: fixed, or uniform over the range."""
        if self.alpha is not None:
            return self.alpha
        assert self.alpha_range is not None
        return float(self.draws.rng("mcadams", *key.parts).uniform(*self.alpha_range))
