"""steps/synthesis/f0.py: statistics and transforms of pitch, by hand and against scipy."""

import numpy as np
import pytest
from scipy.stats import norm

from steps.compute_f0_stats import main
from steps.synthesis.f0 import (
    QUANTILES,
    TRANSFORMS,
    F0Stats,
    compute_f0_stats,
    mix_f0_stats,
    read_f0_stats,
    transform_linear,
    transform_percentile,
    write_f0_stats,
)
from tests.refusals import accepts, refuses, refuses_words
from utils.archives import write_archive
from utils.cli import LossError

NOTHING = compute_f0_stats([np.zeros(5)])


def log_normal(mean: float, sd: float, n: int = 999) -> np.ndarray:
    """Voiced values whose logarithms have this mean and deviation exactly, among unvoiced ones."""
    values = norm.ppf((np.arange(n) + 0.5) / n)
    values = (values - values.mean()) / values.std()
    contour = np.zeros(2 * n)
    contour[::2] = np.exp(mean + sd * np.random.default_rng(0).permutation(values))
    return contour


def test_a3_log_normal_f0_is_mapped_to_mean_and_deviation_and_zeros_stay():
    source, target = log_normal(np.log(110), 0.1), log_normal(np.log(210), 0.15)
    stats = compute_f0_stats([source]), compute_f0_stats([target])
    out = transform_linear(source, *stats)
    voiced = out[source > 0]
    assert np.log(voiced).mean() == pytest.approx(np.log(210), abs=1e-6)
    assert np.log(voiced).std() == pytest.approx(0.15, abs=1e-6)
    assert not out[source == 0].any()
    assert stats[0].n == 999


def test_statistics_by_hand():
    stats = compute_f0_stats([np.array([0.0, 100.0, 0.5]), np.array([400.0])])
    assert (stats.n, stats.mean, stats.sd) == pytest.approx((2, np.log(200), np.log(2)))
    assert np.exp(stats.quantiles[[0, 50, 100]]) == pytest.approx([100, 200, 400])


def test_mixing_by_hand():
    """Weighted mean of means, of variances (not of deviations), of quantiles."""
    one = F0Stats(10, 5.0, 0.1, np.full(101, 5.0))
    two = F0Stats(30, 6.0, 0.3, np.full(101, 6.0))
    mixed = mix_f0_stats([one, two, NOTHING], [3.0, 1.0, 4.0])
    assert mixed.n == 40
    assert mixed.mean == pytest.approx(5.25)
    assert mixed.sd == pytest.approx(np.sqrt(0.75 * 0.01 + 0.25 * 0.09))
    assert mixed.quantiles == pytest.approx(np.full(101, 5.25))
    assert mix_f0_stats([NOTHING], [1.0]).n == 0
    alone = mix_f0_stats([one, two], [1.0, 0.0])
    assert (alone.n, alone.mean, alone.sd) == (10, 5.0, pytest.approx(0.1))


def test_percentiles_are_monotone_and_reach_the_targets_distribution():
    rng = np.random.default_rng(3)
    source = np.exp(np.log(120) + 0.2 * rng.standard_normal(5000))
    target = np.exp(np.log(200) + 0.1 * rng.gamma(2.0, size=5000))
    out = transform_percentile(source, compute_f0_stats([source]), compute_f0_stats([target]))
    order = np.argsort(source)
    assert (np.diff(out[order]) >= 0).all()
    got, wanted = np.quantile(np.log(out), QUANTILES), np.quantile(np.log(target), QUANTILES)
    assert got[1:-1] == pytest.approx(wanted[1:-1], abs=0.01)
    # The linear transform cannot: the source has no skew.
    linear = transform_linear(source, compute_f0_stats([source]), compute_f0_stats([target]))
    assert np.max(np.abs(np.quantile(np.log(linear), QUANTILES) - wanted)[1:-1]) > 0.05


@pytest.mark.parametrize("name", TRANSFORMS)
def test_degenerate_voices(name):
    transform = TRANSFORMS[name]
    contour, rich = np.array([0.0, 100.0, 100.0]), compute_f0_stats([log_normal(np.log(200), 0.1)])
    flat = compute_f0_stats([contour])
    # One pitch: shifted to the target's mean, not blown up.
    near = 0.15 if name == "quantised" else 1e-6  # which has noise
    assert transform(contour, flat, rich) == pytest.approx([0, 200, 200], rel=near)
    # Nothing known of one of the two: unchanged, and a copy.
    for source, target in ((NOTHING, rich), (rich, NOTHING)):
        out = transform(contour, source, target)
        assert out.tolist() == contour.tolist()
        assert out is not contour
    assert transform(np.zeros(4), rich, rich).tolist() == [0.0] * 4
    assert transform(np.zeros(0), rich, rich).shape == (0,)
    # A voice far above: clipped.
    high = compute_f0_stats([np.array([2000.0, 3000.0])])
    assert transform(log_normal(np.log(200), 0.1), rich, high).max() == 600.0


def test_losses_of_contours(make_data_dir, tmp_path):
    data = make_data_dir(tmp_path / "set", {"s1": 2, "s2": 1})
    voiced = np.array([0.0, 100.0])
    write_archive(tmp_path / "some/f0", {"s1-000": voiced, "s2-000": np.zeros(3)})
    write_archive(tmp_path / "none/f0", {"s1-000": voiced})
    some, end = tmp_path / "some", (data, tmp_path / "out")
    refuses_words(r"1 of 3 utterances.*s1-001", main, some, *end, kind=LossError)
    accepts(main, "--allow-loss", "1", some, *end)
    none, end = tmp_path / "none", (data, tmp_path / "out2")
    refuses_words("no utterance of speaker s2", main, "--allow-loss", 2, none, *end)
    refuses_words(r"f0.scp: is missing; make it with steps/extract_f0.py", main, tmp_path, *end)
    assert not (tmp_path / "out2").exists()


def test_statistics_on_disk(tmp_path):
    stats = {"b": compute_f0_stats([log_normal(5.0, 0.1)]), "a": NOTHING}
    write_f0_stats(tmp_path, stats)
    back = read_f0_stats(tmp_path)
    assert list(back) == ["a", "b"]
    assert back["b"].n == 999
    assert back["b"].sd == pytest.approx(0.1, rel=1e-6)
    assert back["b"].quantiles == pytest.approx(stats["b"].quantiles, rel=1e-6)
    refuses(r"is missing; make it with steps/compute_f0_stats.py", read_f0_stats, tmp_path / "none")
    write_archive(tmp_path / "spk_f0", {"a": np.ones(7)})
    refuses("a: 7 values, not F0 statistics", read_f0_stats, tmp_path)
