# SPDX-License-Identifier: Apache-2.0
"""Poles of many real polynomials at once, kept as real quadratic factors.

A real polynomial of even degree is a product of factors x^2 + p x + q, each a conjugate pair of
poles or two real poles. Working on factors instead of poles needs only real arithmetic, half the
unknowns, and keeps conjugates conjugate. All operations are element by element: a polynomial gets
the same bits in every batch.
"""

import numpy as np

from utils.arrays import Float64, Intp

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


def warp_angles(factors: Float64, alpha: float, *, clamp: bool = True) -> Float64:
    """Raise the angle of each complex pair to the power alpha; magnitudes and real poles stay.

    A pair of magnitude r and angle theta is x^2 - 2 r cos(theta) x + r^2, so only p changes. With
    `clamp`, angles beyond pi (alpha > 1) become pi; without, they wrap round.
    """
    p, q = factors
    half = -0.5 * p
    height = q - half * half  # squared imaginary part
    theta = np.arctan2(np.sqrt(np.maximum(height, 0.0)), half) ** alpha
    if clamp:
        theta = np.minimum(theta, np.pi)
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
