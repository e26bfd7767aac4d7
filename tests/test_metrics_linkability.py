"""Linkability: the published formula, its limits, and who is linkable."""

import math
from typing import Any

import numpy as np
import pytest

from local.metrics import detection
from local.metrics.detection import rank
from local.metrics.verification import prepare, verification
from tests.refusals import refuses
from tests.scored import people_of, some_of, trials_of
from utils.trials import Trials


def published(mated: np.ndarray, non_mated: np.ndarray, omega: float = 1.0) -> float:
    """The trapezoid rule of p(s|mated)·D(s), written out with densities, widths and centres."""
    n_bins = min(len(mated) // 10, 100)
    both = np.concatenate([mated, non_mated])
    edges = np.linspace(both.min(), both.max(), n_bins + 1)
    centres = (edges[1:] + edges[:-1]) / 2
    p = np.histogram(mated, edges)[0] / len(mated) / np.diff(edges)
    q = np.histogram(non_mated, edges)[0] / len(non_mated) / np.diff(edges)
    d = np.zeros(n_bins)
    for i in range(n_bins):
        if p[i] > 0 and q[i] == 0:
            d[i] = 1.0
        elif q[i] > 0 and omega * p[i] / q[i] > 1:
            d[i] = 2 * omega * p[i] / q[i] / (1 + omega * p[i] / q[i]) - 1
    y = d * p
    return float((np.diff(centres) * (y[1:] + y[:-1]) / 2).sum())


def figures(mated: np.ndarray, non_mated: np.ndarray, **omegas: float) -> dict[str, float]:
    score = np.concatenate([mated, non_mated])
    found = prepare(score, np.arange(len(score)) < len(mated), omegas).figures()
    assert found is not None
    return found


@pytest.mark.parametrize(("n_mated", "n_non"), [(20, 3), (57, 400), (999, 5000), (3000, 2000)])
@pytest.mark.parametrize("omega", [0.1, 1.0, 10.0])
def test_it_is_the_published_number(n_mated, n_non, omega):
    rng = np.random.default_rng(n_mated)
    mated = np.round(rng.normal(1, 1, n_mated), 2)  # two digits: scores fall on edges of bins
    non_mated = np.round(rng.normal(0, 1.5, n_non), 2)
    found = figures(mated, non_mated, x=omega)
    assert found["linkability_omega_x"] == pytest.approx(published(mated, non_mated, omega))


def test_perfect_separation_is_1_by_the_definition_and_loses_half_an_end_bin_as_published():
    """Half of the mated scores fall in the last of two bins that hold them."""
    mated = np.concatenate([np.full(10, 9.0), np.full(10, 10.0)])
    found = figures(mated, np.zeros(50))
    assert found["linkability_mean"] == 1.0
    assert found["linkability"] == pytest.approx(0.5)  # 2 bins, both mated scores in the last
    wide = figures(np.linspace(5, 10, 1000), np.linspace(0, 4, 1000))
    assert wide["linkability_mean"] == 1.0
    assert 0.98 < wide["linkability"] < 1.0


def test_equal_distributions_are_not_linkable():
    scores = np.linspace(0, 1, 400)
    found = figures(scores, scores, x=2.0)
    assert (found["linkability"], found["linkability_mean"]) == (0.0, 0.0)
    # ω = 2 makes every score evidence: D = 2·2/(1 + 2) − 1 = 1/3.
    assert found["linkability_mean_omega_x"] == pytest.approx(1 / 3)


def test_scores_of_one_value_link_nothing_and_have_no_density():
    found = figures(np.full(30, 0.7), np.full(40, 0.7), x=2.0)
    assert (found["linkability"], found["linkability_mean"]) == (0.0, 0.0)
    assert math.isnan(found["linkability_omega_x"])
    assert found["linkability_mean_omega_x"] == pytest.approx(1 / 3)


def test_scores_apart_by_the_last_bit_alone_linked_nothing():
    """No bin between them has a width."""
    found = figures(np.full(20, np.nextafter(1, 2)), np.ones(20))
    assert math.isnan(found["linkability"]) and math.isnan(found["linkability_mean"])


def test_fewer_than_twenty_mated_scores_are_undefined():
    rng = np.random.default_rng(0)
    few, enough = (figures(rng.normal(size=n), rng.normal(size=500)) for n in (19, 20))
    assert math.isnan(few["linkability"]) and math.isnan(few["linkability_mean"])
    assert enough["linkability"] >= 0.0


def test_it_does_not_depend_on_shift_scale_or_order():
    rng = np.random.default_rng(1)
    mated, non_mated = rng.normal(1, 1, 300), rng.normal(0, 1, 900)
    once = figures(mated, non_mated)["linkability_mean"]
    again = figures(1024.0 * rng.permutation(mated), 1024.0 * non_mated)["linkability_mean"]
    assert again == pytest.approx(once, abs=1e-12)


def test_huge_scores_do_not_overflow_the_range():
    rng = np.random.default_rng(1)
    mated, non_mated = rng.normal(1, 1, 300), rng.normal(0, 1, 900)
    huge = 1.7e308 / max(abs(mated).max(), abs(non_mated).max())
    score = np.concatenate([mated, non_mated])
    small = detection.histograms(rank(score, np.arange(1200) < 300))
    large = detection.histograms(rank(score * huge, np.arange(1200) < 300))
    assert small is not None
    assert large is not None
    assert detection.d_mean(large) == pytest.approx(detection.d_mean(small), abs=1e-3)


def test_weights_are_copies():
    rng = np.random.default_rng(4)
    score = np.round(np.concatenate([rng.normal(1, 1, 60), rng.normal(0, 1, 200)]), 1)
    target = np.arange(260) < 60
    scored = prepare(score, target)
    for _ in range(20):
        weight = rng.integers(0, 3, 260)
        found = scored.figures(weight[scored.ranking.order].astype(float))
        copied = np.repeat(np.arange(260), weight)
        expected = prepare(score[copied], target[copied]).figures()
        assert found == pytest.approx(expected, abs=1e-12, nan_ok=True)


def two_speakers() -> tuple[Trials, np.ndarray]:
    """Speaker a's mated scores are far above everything, those of b in the middle of all."""
    rows, scores = [], []
    rng = np.random.default_rng(2)
    for i in range(40):
        for spk, other, mated in (("a", "b", 5.0), ("b", "a", 0.0)):
            rows += [(spk, f"{spk}-{i}", True), (other, f"{spk}-{i}", False)]
            scores += [mated + 0.1 * rng.normal(), 0.5 * rng.normal()]
    return trials_of(rows), np.array(scores)


def test_speakers_are_linkable_each_on_their_own():
    trials, score = two_speakers()
    report: Any = verification(trials, score, speakers=people_of(trials), n_bins=50)
    by_speaker = report["linkability_per_speaker"]
    assert by_speaker["a"] == 1.0
    assert by_speaker["b"] < 0.7
    # Both have as many mated scores: the mean of the two is the mean over all.
    assert np.mean(list(by_speaker.values())) == pytest.approx(report["linkability_mean"])
    for name, found in report["linkability_bins_50_per_speaker"].items():
        own = np.array(trials.enrol) == name
        bins = detection.histograms(rank(score[own], trials.target[own]), n_bins=50)
        assert bins and found == pytest.approx(detection.d_sys(bins))


def test_a_speaker_without_mated_scores_is_not_listed():
    trials, score = two_speakers()
    kept = [i for i, utt in enumerate(trials.trial) if utt[0] == "a" or not trials.target[i]]
    trials = some_of(trials, kept)
    report = verification(trials, score[kept], speakers=people_of(trials))
    assert list(report["linkability_per_speaker"]) == ["a"]  # type: ignore[call-overload]


def test_models_belong_to_the_speaker_of_their_target_trials():
    rows = [("m1", "a-1", True), ("m1", "b-1", False), ("m2", "b-2", True), ("b", "a-1", False)]
    trials = trials_of([*rows, ("m3", "a-1", False)])
    found = people_of(trials, {"a-1": "a", "b-1": "b", "b-2": "b"})
    assert found.names == ["a", "b", "m3"]
    assert [found.names[i] for i in found.enrol] == ["a", "a", "b", "b", "m3"]
    assert [found.names[i] for i in found.trial] == ["a", "b", "b", "a", "a"]


def test_unknown_utterances_are_named_on_either_side():
    utt2spk = {"a-1": "a", "b-1": "b"}
    for enrol, trial in (("b-1", "c-1"), ("c-1", "b-1")):
        trials = trials_of([("a-1", "b-1", False), (enrol, trial, False)])
        refuses(r"^trials:2: utterance c-1 is not in utt2spk", people_of, trials, utt2spk)


def test_target_trials_of_two_speakers_are_pointed_out(caplog):
    trials = trials_of([("a-1", "a-2", True), ("a-1", "b-1", True)])
    people_of(trials, {"a-1": "a", "a-2": "a", "b-1": "b"})
    assert "trials:2: target trial a-1 b-1 joins speakers a and b (as 1 of 2" in caplog.text
    assert "nontarget" not in caplog.text


def test_trials_of_one_speaker_labelled_nontarget_were_not_pointed_out(caplog):
    rows = [("a-1", "a-2", True), ("a-1", "a-3", False), ("b-1", "a-3", False)]
    people_of(trials_of(rows), {"a-1": "a", "a-2": "a", "a-3": "a", "b-1": "b"})
    wrong = "trials:2: nontarget trial a-1 a-3 has speaker a on both sides (as 1 of 2 nontarget"
    assert wrong in caplog.text
    assert " target trial" not in caplog.text
