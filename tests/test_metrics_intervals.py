"""Intervals: people are resampled, never compared with their own copy."""

import math
from typing import Any

import numpy as np
import pytest

from local.metrics.intervals import (
    interval,
    interval_report,
    multiplicities,
    pair_weights,
    percentiles,
)
from local.metrics.recordings import recordings
from local.metrics.verification import verification
from tests.scored import listed_of, people_of, some_of, trials_of
from utils.trials import Trials


def test_weights_of_comparisons() -> None:
    """Speaker 0 twice, 1 once, 2 never: own comparisons once a copy, never copy against copy."""
    assert [*pair_weights(np.array([2.0, 1, 0]), np.arange(9))] == [2, 2, 0, 2, 1, 0, 0, 0, 0]


def test_draws_are_as_many_as_speakers_and_repeat_from_the_seed() -> None:
    draws = multiplicities(7, 50, seed=3)
    assert draws.shape == (50, 7)
    assert (draws.sum(axis=1) == 7).all()
    assert (multiplicities(7, 50, seed=3) == draws).all()
    assert (multiplicities(7, 50, seed=4) != draws).any()


def test_percentiles_are_replicates_rounded_outwards() -> None:
    assert percentiles(np.arange(41.0)) == (1.0, 39.0)
    assert percentiles(np.array([5.0])) == (5.0, 5.0)
    low, high = percentiles(np.concatenate([[-math.inf] * 30, np.arange(71.0)]))
    assert (low, high) == (-math.inf, 68.0)


def test_the_interval_of_a_mean_is_the_textbook_one() -> None:
    rng = np.random.default_rng(0)
    value = rng.normal(size=400)
    means = ({"mean": float(w @ value / w.sum())} for w in multiplicities(400, 2000))
    report = interval_report(means, 400)
    low, high = report["intervals"]["mean"]
    half = 1.96 * value.std() / 20
    assert low == pytest.approx(value.mean() - half, abs=0.2 * half)
    assert high == pytest.approx(value.mean() + half, abs=0.2 * half)


def test_undefined_resamples_are_counted_and_said(caplog: pytest.LogCaptureFixture) -> None:
    report = interval_report(
        ({"x": 1.0, "y": math.nan if w[0] > 1 else 2.0} if w[0] else None
         for w in multiplicities(3, 200)), 3,
    )  # fmt: skip
    left_out = report["n_bootstrap_undefined"]
    assert 20 < left_out < 120  # (2/3)³ of 200
    assert f"{left_out} of 200 resamples of the speakers are undefined" in caplog.text
    assert "y is undefined in" in caplog.text
    assert report["intervals"] == {"x": [1.0, 1.0], "y": [2.0, 2.0]}
    nothing = interval_report([{"x": math.nan}] * 5, 3)
    assert nothing["intervals"] == {"x": None}


def scored_trials(n_speakers: int, seed: int) -> tuple[Trials, np.ndarray, dict[str, str]]:
    """Each speaker is recognised better or worse; ten trials a speaker and model."""
    rng = np.random.default_rng(seed)
    skill = rng.normal(2.0, 1.5, n_speakers)
    rows = [(f"s{e}", f"s{t}-{i}", e, t) for e in range(n_speakers) for t in range(n_speakers)
            for i in range(10)]  # fmt: skip
    score = [(skill[e] if e == t else 0.0) + rng.normal() for *_, e, t in rows]
    trials = trials_of((model, utt, e == t) for model, utt, e, t in rows)
    return trials, np.array(score), {row[1]: f"s{row[3]}" for row in rows}


def test_intervals_of_verification_do_not_depend_on_file_order() -> None:
    trials, score, utt2spk = scored_trials(12, 0)
    mix = np.random.default_rng(0).permutation(len(score))
    mixed = some_of(trials, mix)

    def evaluate(order: Trials, scores: np.ndarray) -> dict:
        return verification(
            order, scores, speakers=people_of(order, utt2spk), n_bootstrap=60, seed=1
        )

    report, again = evaluate(trials, score), evaluate(mixed, score[mix])
    assert report["n_speakers"] == 12
    for name, pair in report["intervals"].items():
        assert again["intervals"][name] == pytest.approx(pair), name
    coarse = np.round(score, 1)
    ties = [evaluate(trials, coarse)["intervals"], evaluate(mixed, coarse[mix])["intervals"]]
    assert ties[0] == ties[1], "equal scores were added in the order of the file: another last bit"


def test_figures_of_several_draws_are_means_and_a_resample_takes_one() -> None:
    """Two people: the first draw tells all apart (EER 0), the second turns them round (1)."""
    rows = [(e, f"{t}{i}", e == t) for e in "ab" for t in "ab" for i in range(3)]
    trials, speakers = listed_of(rows)
    right = trials.target.astype(float)

    def evaluate(*draws: np.ndarray, score: np.ndarray = right) -> dict:
        beside = {"eer_rise": right}
        how = {"speakers": speakers, "draws": draws, "beside": beside, "n_bootstrap": 100}
        return verification(trials, score, **how)

    one, both = evaluate(), evaluate(-right)
    assert (one["eer"], one["intervals"]["eer"]) == (0.0, [0.0, 0.0])
    assert "n_draws" not in one and both["n_draws"] == 2
    assert both["eer"] == both["eer_normalised"] == 0.5
    assert both["intervals"]["eer"] == [0.0, 1.0]
    assert both["eer_rise"] == 0.0  # folded: a draw that is turned round hides nothing
    same = evaluate(right, right)
    assert [same[k] for k in ("eer", "d_ece")] == pytest.approx([one[k] for k in ("eer", "d_ece")])
    assert same["intervals"]["d_ece"] == one["intervals"]["d_ece"]
    how = {"challenges": True, "speakers": speakers, "n_bins": 2}
    first, mean = (verification(trials, right, draws=d, **how) for d in ((), (0 * right,)))
    alike = {"eer_speechbrain": 0.5, "eer_kaldi": 5 / 6, "linkability_bins_2": 0.0}
    for name, equal in alike.items():
        assert mean[name] == pytest.approx((first[name] + equal) / 2), "of the first draw alone"
    named = [recordings(trials, right, speakers, draws=d) for d in ((), (-right, -right))]
    assert [found["named_by_recording"] for found in named] == [1.0, pytest.approx(1 / 3)]
    assert [found["mean_rank_by_recording"] for found in named] == [1.0, pytest.approx(5 / 3)]


def test_where_nobody_was_named_it_seemed_sure_that_nobody_is(caplog: Any) -> None:
    """Of eight people nobody: the interval was [0, 0], where 37 % are not ruled out."""
    trials, own = listed_of((e, t + "1", e == t) for e in "abcdefgh" for t in "abcdefgh")
    score = -trials.target.astype(float)
    found: Any = recordings(trials, score, own, n_bootstrap=50)
    for name in ("named_by_recording", "named_all_recordings"):
        assert found[name] == 0.0 and found["intervals"][name] is None  # type: ignore[index]
    assert found["intervals"]["eer_all_recordings"] == [1.0, 1.0]  # type: ignore[index]
    said = "no interval of named named_by_recording among_3_by_recording and 2 more"
    assert said in caplog.text, "an interval was null without a reason"


def test_equal_shares_escaped_by_rounding() -> None:
    """Of each of seven people a third of the recordings: their means differ in the last bit."""
    drawn = multiplicities(7, 500, seed=0)
    thirds = drawn @ np.full(7, 1 / 3) / drawn.sum(axis=1)
    thirds[::2] = np.nextafter(1 / 3, 0)  # whatever the order in which this machine adds
    for name in ("named", "cmc_1", "cmc_1_no_same_utt"):
        assert interval(thirds, name) is None
    assert interval(thirds, "eer") == pytest.approx([1 / 3, 1 / 3])


@pytest.mark.slow
def test_the_interval_of_the_eer_covers_the_truth() -> None:
    """People differ, so an interval over trials alone would be far too narrow."""
    truth = [verification(*scored_trials(60, seed)[:2])["eer"] for seed in range(100, 112)]
    covered = 0
    for seed in range(40):
        trials, score, utt2spk = scored_trials(20, seed)
        found: dict = verification(
            trials, score, speakers=people_of(trials, utt2spk), n_bootstrap=100
        )
        low, high = found["intervals"]["eer"]
        covered += low <= np.mean(truth) <= high
    assert covered >= 32


def test_the_least_difference_that_a_list_tells() -> None:
    """Over the deviation of the rise of the EER: 1.96 for the error of the first kind, 0.84 for
    four found of five; the interval is 1.96 of them on each side."""
    trials, score, utt2spk = scored_trials(12, 1)
    how = {"speakers": people_of(trials, utt2spk), "beside": {"eer_rise": score[::-1]}}
    found, without = (verification(trials, score, **how, n_bootstrap=n) for n in (100, 0))
    low, high = found["intervals"]["eer_rise"]  # type: ignore[index]
    assert found["eer_least_difference"] == pytest.approx(2.8 / 1.96 * (high - low) / 2)
    assert "eer_least_difference" not in without
