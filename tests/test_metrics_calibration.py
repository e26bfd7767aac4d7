"""Calibration learnt on one run and used on another."""

import math

import numpy as np
import pytest

from local.metrics import detection
from local.metrics.verification import calibration, fit_isotonic, fit_linear
from tests.scored import max_min


def gaussian_llr(n_target: int, n_nontarget: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores that are LLR by construction: N(±d²/2, d²) has ln p/q = s, with d = 2."""
    rng = np.random.default_rng(seed)
    score = np.concatenate([rng.normal(2, 2, n_target), rng.normal(-2, 2, n_nontarget)])
    return score, np.arange(len(score)) < n_target


def balanced_cllr(score: np.ndarray, target: np.ndarray, slope: float, offset: float) -> float:
    y = target.astype(float)
    return detection.cllr(slope * score + offset, y, 1 - y)


@pytest.mark.parametrize("n_nontarget", [3000, 60000])
def test_the_linear_map_finds_the_llr_whatever_the_prior(n_nontarget: int) -> None:
    """No database prior is left in the offset."""
    score, target = gaussian_llr(3000, n_nontarget)
    found = fit_linear(3.0 * score + 50.0, target)
    assert found.slope == pytest.approx(1 / 3, rel=0.05)
    assert found.offset + 50 * found.slope == pytest.approx(0.0, abs=0.1)


@pytest.mark.parametrize("seed", range(5))
def test_the_linear_map_minimises_cllr(seed: int) -> None:
    rng = np.random.default_rng(seed)
    score, target = gaussian_llr(40, 200, seed)
    score = score * 10.0 ** rng.integers(-3, 4) + rng.normal(0, 100)
    found = fit_linear(score, target)
    best = balanced_cllr(score, target, found.slope, found.offset)
    y = target.astype(float)
    assert detection.cllr(found(score), y, 1 - y) == best
    centre, spread = score.mean(), score.std()
    for da, db in ((1e-3, 0), (-1e-3, 0), (0, 1e-3), (0, -1e-3), (1e-3, 1e-3), (-1e-3, 1e-3)):
        slope = found.slope + da / spread
        assert balanced_cllr(score, target, slope, found.offset + db - da / spread * centre) > best


def test_two_points_by_hand() -> None:
    """Targets at 1, 1, 0 and nontargets at 0, 0, 1: σ(a + b) = 2/3 and σ(b) = 1/3."""
    score = np.array([1.0, 1.0, 0.0, 0.0, 0.0, 1.0])
    found = fit_linear(score, np.arange(6) < 3)
    assert found.offset == pytest.approx(-math.log(2), abs=1e-6)
    assert found.slope == pytest.approx(2 * math.log(2), abs=1e-6)


def test_a_reversed_score_gets_a_negative_slope() -> None:
    score, target = gaussian_llr(500, 500)
    assert fit_linear(-score, target).slope == pytest.approx(-fit_linear(score, target).slope)


@pytest.mark.parametrize("gap", [1e-6, 1.0, 800.0])
def test_separable_runs_give_a_finite_map_that_separates(gap: float) -> None:
    score = np.array([1.0, 2.0, 3.0, 4.0]) * gap
    with np.errstate(all="raise", under="ignore"):
        found = fit_linear(score, np.arange(4) >= 2)
    assert math.isfinite(found.slope)
    llr = found(score)
    assert (llr[:2] < -3).all()
    assert (llr[2:] > 3).all()


def test_a_constant_run_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    found = fit_linear(np.full(6, 3.3), np.arange(6) < 2)
    assert (found.slope, found.offset) == (0.0, 0.0)
    assert "all scores of f0 are equal" in caplog.text


def test_the_isotonic_map_by_hand() -> None:
    """Separable: one extra target joins the nontargets, one extra nontarget the targets; prior
    (2 + 1)/(3 + 1)."""
    found = fit_isotonic(np.array([5.0, 7.0, 1.0, 2.0, 3.0]), np.arange(5) < 2)
    low, high = math.log(1 / 3) - math.log(3 / 4), math.log(2 / 1) - math.log(3 / 4)
    assert found(np.array([-800.0, 1.0, 3.0])) == pytest.approx([low] * 3)
    assert found(np.array([5.0, 6.5, 800.0])) == pytest.approx([high] * 3)
    assert found(np.array([3.5]))[0] == pytest.approx(low + 0.25 * (high - low))


def literal_isotonic(score: np.ndarray, target: np.ndarray, at: np.ndarray) -> np.ndarray:
    """PAV by the max-min formula with the two extra trials, then straight lines."""
    values = sorted(set(score))
    t = [1] + [int(target[score == v].sum()) for v in values] + [0]
    n = [0] + [int((~target)[score == v].sum()) for v in values] + [1]
    p = np.array(max_min(t, n), float)
    llr = np.log(p / (1 - p)) - math.log(sum(t) / sum(n))
    return np.interp(at, values, llr[1:-1])


@pytest.mark.parametrize("seed", range(8))
def test_the_isotonic_map_agrees_with_its_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    target = rng.random(25) < 0.4
    target[:2] = True, False
    score = np.round(rng.normal(target, 1.0), 1)
    at = np.concatenate([rng.normal(0, 3, 50), score, [-800, 800]])
    assert fit_isotonic(score, target)(at) == pytest.approx(literal_isotonic(score, target, at))


def test_two_runs_of_one_safeguard() -> None:
    f0, target = gaussian_llr(800, 4000, 1)
    f1, _ = gaussian_llr(800, 4000, 2)
    found = calibration(target, 5 * f0 + 20, 5 * f1 + 20)
    assert found["d_ece_f1"] - 0.03 < found["c_ece_linear"] <= found["d_ece_f1"]
    assert found["d_ece_f1"] - 0.03 < found["c_ece_isotonic"] <= found["d_ece_f1"]
    assert found["c_ece_uncalibrated"] < -1
    assert found["cllr_linear"] < 0.6
    assert found["linear_slope"] == pytest.approx(0.2, rel=0.1)
    assert (found["n_target"], found["n_nontarget"]) == (800, 4000)


def test_a_safeguard_that_turns_scores_round_misleads_the_attacker() -> None:
    f0, target = gaussian_llr(300, 3000)
    found = calibration(target, f0, -f0)
    assert max(found["c_ece_linear"], found["c_ece_isotonic"]) < -0.5
    assert found["cllr_linear"] > 1.5


def test_f1_figures_are_those_of_verification() -> None:
    f0, target = gaussian_llr(200, 500, 3)
    f1, _ = gaussian_llr(200, 500, 4)
    found = calibration(target, f0, f1)
    for run, score in (("f0", f0), ("f1", f1)):
        t, n = detection.rank(score, target).counts()
        plain, laplace = detection.pav(t, n), detection.pav(t, n, laplace=True)
        assert found[f"d_ece_{run}"] == detection.d_ece(plain.llr, plain.t, plain.n)
        assert found[f"l_w_{run}"] == detection.l_w(laplace)
    y = target.astype(float)
    assert found["c_ece_uncalibrated"] == pytest.approx(detection.d_ece(f1, y, 1 - y))


def test_the_last_digits_depended_on_the_order_of_the_file() -> None:
    f0, target = gaussian_llr(200, 500, 3)
    f1, mix = gaussian_llr(200, 500, 4)[0], np.random.default_rng(0).permutation(700)
    assert calibration(target[mix], f0[mix], f1[mix]) == calibration(target, f0, f1)


def test_equal_runs_are_pointed_out(caplog: pytest.LogCaptureFixture) -> None:
    """B2 is deterministic: its two runs are one, and C_ECE would test on what it learnt from. A
    small pool leaves no choice for one gender, whose figures were left out of a run's plan."""
    f0, target = gaussian_llr(50, 100)
    found = calibration(target, f0, f0.copy())
    assert found["c_ece_linear"] is found["c_ece_isotonic"] is found["cllr_isotonic"] is None
    assert "are not defined for a deterministic safeguard" in caplog.text
