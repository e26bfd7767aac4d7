"""Diffusion: solvers against targets whose exact score is known."""

import numpy as np
import pytest

from steps.generators.idmap_diff import beta, gamma, reverse

N = 40_000


def noise(steps: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((steps, N, 1))


def point_score(m: float):
    return lambda q, t: -(q - gamma(0.0, t) * m) / (1.0 - gamma(0.0, t) ** 2)


def normal_score(variance: float):
    return lambda q, t: -q / (gamma(0.0, t) ** 2 * variance + 1.0 - gamma(0.0, t) ** 2)


def test_gamma_is_what_the_paper_integrates():
    t = np.linspace(0.2, 0.9, 10_001)
    integral = np.trapezoid([beta(x) for x in t], t)
    assert gamma(0.2, 0.9) == pytest.approx(np.exp(-0.5 * integral), rel=1e-6)
    assert gamma(0.0, 0.2) * gamma(0.2, 1.0) == pytest.approx(gamma(0.0, 1.0))
    assert gamma(0.0, 1.0) == pytest.approx(0.00665, abs=1e-5)


@pytest.mark.parametrize("steps", [1, 5, 30])
def test_a8_the_solver_is_exact_for_a_point(steps):
    made = reverse(point_score(3.0), noise(steps))
    np.testing.assert_allclose(made, 3.0, atol=1e-12)


@pytest.mark.parametrize(("steps", "variance"), [(5, 0.36), (10, 0.55), (30, 0.78), (100, 0.92)])
def test_a8_variance_of_a_standard_normal_target(steps, variance):
    made = reverse(normal_score(1.0), noise(steps))
    assert made.var() == pytest.approx(variance, abs=0.02)
    assert made.mean() == pytest.approx(0.0, abs=0.02)
