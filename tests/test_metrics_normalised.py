"""Scores normalised over the candidates of each utterance: EER, and naming."""

import logging
import math

import numpy as np
import pytest

from local.metrics.verification import fuse, normalise_over_candidates, verification
from tests.refusals import refuses
from utils.trials import Trials


def crossed(score: np.ndarray, own: list[int]) -> tuple[Trials, np.ndarray]:
    """Each utterance (row) against each candidate (column); own: the right one of each."""
    utts, n = score.shape
    pairs = [(f"s{c}", f"u{u}", own[u] == c) for u in range(utts) for c in range(n)]
    enrol, trial, target = zip(*pairs, strict=True)
    return Trials(enrol, trial, np.array(target)), score.ravel()


def eers(score: np.ndarray, own: list[int]) -> tuple[float, float]:
    found = verification(*crossed(score, own))
    return found["eer"], found["eer_normalised"]  # type: ignore[return-value]


def test_by_hand() -> None:
    """1, 2, 6 have mean 3, deviation sqrt(14/3); 4, 4, 1 have mean 3, deviation sqrt(2)."""
    trials, score = crossed(np.array([[1.0, 2.0, 6.0], [4.0, 4.0, 1.0]]), [2, 0])
    a, b = math.sqrt(14 / 3), math.sqrt(2)
    wanted = [-2 / a, -1 / a, 3 / a, 1 / b, 1 / b, -2 / b]
    assert normalise_over_candidates(trials, score) == pytest.approx(wanted, abs=1e-9)
    # Targets 1.39, 0.71; nontargets 0.71 (a tie), -0.46, -0.93, -1.41. The ROC goes from no miss
    # and 1/4 false alarms to 1/2 missed and none, and meets the diagonal at 1/6.
    assert verification(trials, score)["eer_normalised"] == pytest.approx(1 / 6)


def test_what_an_utterance_adds_to_all_its_scores_does_not_matter() -> None:
    rng = np.random.default_rng(4)
    own = [u % 5 for u in range(40)]
    score = rng.standard_normal((40, 5))
    score[np.arange(40), own] += 2.5
    plain, normal = eers(score, own)
    shifted = 3.0 * score + 20.0 * rng.standard_normal((40, 1))
    hidden, same = eers(shifted, own)
    assert same == normal == eers(score[::-1], own[::-1])[1]
    assert hidden > plain + 0.2
    assert eers(-score, own)[1] == pytest.approx(1.0 - normal)


def test_all_scores_equal_is_a_guess_and_one_candidate_is_undefined(caplog):
    assert eers(np.full((4, 3), 0.1) + np.arange(4)[:, None] * 1e-3, [0, 1, 2, 0])[1] == 0.5
    assert eers(1e300 * np.eye(3), [0, 1, 2])[1] == 0.0
    lonely = Trials(("a", "b", "a"), ("u", "u", "v"), np.array([True, False, True]))
    with caplog.at_level(logging.WARNING):
        assert math.isnan(verification(lonely, np.array([3.0, 1.0, 2.0]))["eer_normalised"])  # type: ignore[arg-type]
    assert "an utterance has one candidate" in caplog.text


def test_a_fused_attacker_heard_nothing_where_utterances_have_one_candidate(caplog) -> None:
    """All fused scores were 0, whatever the evaluators heard: an EER of 50 %."""
    alone = Trials(("a", "b", "b"), ("u", "v", "w"), np.array([True, True, False]))
    score = np.array([3.0, 1.0, 2.0])
    refuses("each utterance has one candidate", fuse, alone, [score, score])
    some = Trials(("a", "b", "b"), ("u", "u", "w"), alone.target)
    assert fuse(some, [score, score]).tolist() == [2.0, -2.0, 0.0]
    assert "1 of 2 utterances have one candidate" in caplog.text


def test_two_candidates_are_ties() -> None:
    """Only the order is left, to the last bit: else rounding would order the utterances."""
    rng = np.random.default_rng(1)
    trials, score = crossed(rng.standard_normal((50, 2)), [0] * 50)
    assert {*np.abs(normalise_over_candidates(trials, score)).tolist()} == {1.0}  # type: ignore[arg-type]
