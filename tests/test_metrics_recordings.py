"""Figures by number of recordings: by hand, what must not change them, and whether chance is."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import betabinom

from local.metrics import detection
from local.metrics import recordings as module
from local.metrics.intervals import key, percentiles
from local.metrics.recordings import (
    differences,
    disclosures,
    group,
    hear,
    permutation_tests,
    recordings,
    shuffle,
    strongest,
)
from local.metrics.verification import Speakers, verification
from local.options import to_json
from tests.scored import listed_of, people_of, some_of, trials_of
from utils.trials import Trials

BY_HAND = [12, 11, 10, 11, 12, 10, 13, 11, 10, 1, 2, 0, 1, 2, 0, 2, 1, 0]


def listed(n_people: int, n_recordings: int, models: str) -> tuple[Trials, Speakers]:
    """Each recording of people a, b, ... against each model; of a person of that name."""
    utts = [f"{p}{r:02d}" for p in "abcdefghijkl"[:n_people] for r in range(n_recordings)]
    return listed_of((m, utt, m == utt[0]) for utt in utts for m in models)


def against_c() -> tuple[Trials, Speakers]:
    """Recordings of three people, each against its own model and that of c alone."""
    utts = [f"{p}{r}" for p in "abc" for r in range(3)]
    return listed_of((m, utt, m == utt[0]) for utt in utts for m in sorted({utt[0], "c"}))


def made_up(seed: int, signal: float, offset: float = 0.0) -> tuple[Trials, np.ndarray, Speakers]:
    """Ten recordings of each of seven people, of whom six are among seven models."""
    trials, people = listed(7, 10, "abcdefx")
    rng = np.random.default_rng(seed)
    score = rng.normal(size=len(trials)) + signal * trials.target
    return trials, score + offset * np.repeat(rng.normal(size=70), 7), people


def lowest_p(found: dict[str, object]) -> object:
    return min(found[key("eer", recordings=n, kind="p")] for n in ("1", "3", "10", "all"))  # type: ignore[type-var]


def test_figures_by_hand() -> None:
    """Scores of three recordings, averaged: 12, 11 1/3, 10 of a and 1 1/3, 1 2/3, 0 of b."""
    trials, people = listed(2, 3, "abc")
    found = recordings(trials, np.array(BY_HAND, float), people)
    assert found["named"] == pytest.approx(2 / 3)
    assert found["chance_named"] == pytest.approx(1 / 3)
    for length in ("3", "all"):
        assert found[f"eer_{length}_recordings"] == 0.5  # b's own model is below two of a's others
        assert found[f"eer_normalised_{length}_recordings"] == 0.0
        assert found[f"named_{length}_recordings"] == 1.0
        d_ece = found[f"d_ece_normalised_{length}_recordings"]
        assert d_ece == pytest.approx(detection.D_ECE_MAX)
    columns = {str(name): name.columns for name in found if hasattr(name, "columns")}
    for name, n in (("named", "6"), ("named_all_recordings", "2")):
        assert (columns[name]["n_speakers"], columns[name]["n_segments"]) == ("2", n)
    assert columns["named_all_recordings"]["recordings"] == "all"
    assert [found[name] for name in module.TESTED][1:2] == [1.0]  # none or both: two people


def test_scores_are_averaged_and_normalised_over_candidates() -> None:
    trials, people = listed(2, 3, "abc")
    heard = hear(trials, np.array(BY_HAND, float), people)
    of_three = group(heard, shuffle(heard, people.names, 0), 3)
    assert of_three is not None
    assert of_three.score == pytest.approx(np.array([[12, 34 / 3, 10], [4 / 3, 5 / 3, 0]]))
    spread = math.sqrt(((8 / 9) ** 2 + (2 / 9) ** 2 + (10 / 9) ** 2) / 3)
    z = np.array([8 / 9, 2 / 9, -10 / 9]) / spread
    assert of_three.normalised().score[0] == pytest.approx(z)


def test_one_recording_is_the_list_itself() -> None:
    trials, score, people = made_up(1, 1.0)
    found = recordings(trials, score, people)
    of_list = verification(trials, score)
    assert found["eer"] == of_list["eer"]
    assert found["named_by_recording"] == found["named"]  # as many of each person


def test_what_is_added_to_all_scores_of_a_recording_changes_no_normalised_figure() -> None:
    """One voice for a recording adds an offset to all its scores: the EER of the scores as they
    are hides what the attacker knows."""
    trials, score, people = made_up(1, 1.0)
    plain, hidden = (recordings(trials, s, people) for s in (score, made_up(1, 1.0, 20.0)[1]))
    assert hidden["eer"] > 0.45 > plain["eer"] + 0.1
    for name in ("eer_normalised_3", "named_3", "named_all", "d_ece_normalised_10"):
        name += "_recordings"
        assert hidden[name] == pytest.approx(plain[name]), name


def test_figures_do_not_depend_on_the_order_of_the_list() -> None:
    trials, score, people = made_up(2, 0.5)
    turn = np.random.default_rng(0).permutation(len(trials))
    other = some_of(trials, turn)
    found = recordings(trials, score, people, n_bootstrap=20, seed=3)
    again = recordings(other, score[turn], people_of(other), n_bootstrap=20, seed=3)
    assert to_json(again) == to_json(found)
    assert recordings(trials, score, people, seed=4) != recordings(trials, score, people, seed=3)


def test_figures_of_few_enrolled_recordings_are_those_of_their_scores() -> None:
    """Models of all recordings under another number have the same figures, but folded EERs; worse
    ones have worse."""
    trials, score, people = made_up(5, 1.0)
    noise = np.random.default_rng(0).normal(size=len(score))
    few = {1: score + 2 * noise, 3: score}
    found = recordings(trials, score, people, enrolled=few, n_bootstrap=40)
    for figure in ("eer", "eer_normalised"):
        for length in ("1", "3", "10", "all"):
            name, few_name = (key(figure, recordings=length, enrolled=n) for n in ("", "3"))
            assert found[few_name] == pytest.approx(found[name])
            assert found["intervals"][few_name] == pytest.approx(found["intervals"][name])
    assert found["eer_1_enrolled"] > found["eer_3_enrolled"] + 0.1


def disclosure(rank: np.ndarray, weight: np.ndarray, n_models: int) -> tuple[float, float]:
    mean, worst = disclosures(rank, weight[None], n_models)
    return float(mean[0]), float(worst[0])


def test_what_was_undefined_was_silent(caplog: pytest.LogCaptureFixture) -> None:
    trials, people = against_c()
    found = recordings(trials, trials.target * 1.0, people)
    assert math.isnan(found["rank_disclosure"])
    rows = [(utt[0], utt, True) for utt in ("a0", "a1", "b0", "b1")]
    trials = trials_of([*rows, ("a", "b0", False), ("b", "a0", False)])
    found |= strongest(trials, [[np.arange(6.0)]], people_of(trials))
    assert math.isnan(found["eer_all_recordings"]) and math.isnan(found["p_value_eer"])
    for name in (name for name, value in found.items() if isinstance(value, float)):
        said = any(text.startswith(f"{name} is undefined: ") for text in caplog.messages)
        assert said == math.isnan(found[name]), name
    assert "d_ece_normalised is undefined: a recording has one candidate" in caplog.text
    assert "p_value_named is undefined: too few people have the same candidates" in caplog.text


def test_what_ranks_disclose_by_hand() -> None:
    """Two people, named in three of four: 1 − H(1/4) bit, and log2(2 · 3/4) at worst."""
    ones = np.ones(4)
    mean, worst = disclosure(np.array([0.0, 0, 0, 1]), ones, 2)
    entropy = -(0.75 * math.log2(0.75) + 0.25 * math.log2(0.25))
    assert (mean, worst) == (pytest.approx(1 - entropy), pytest.approx(math.log2(1.5)))
    assert disclosure(np.zeros(4), ones, 8) == (3.0, 3.0)  # always first
    assert disclosure(np.full(4, 7.0), ones, 8) == (3.0, 3.0)  # always last is as telling
    every = disclosure(np.arange(8.0), np.ones(8), 8)
    assert every == (pytest.approx(0, abs=1e-9), pytest.approx(0, abs=1e-9))
    assert all(map(math.isnan, disclosure(np.zeros(4), ones, 1)))
    assert all(map(math.isnan, disclosure(np.zeros(4), ones, 0)))


def test_ranks_of_a_beta_binomial_disclose_what_it_says() -> None:
    law = betabinom(12, 0.7, 2.0)
    bits = np.log2(13 * law.pmf(np.arange(13)))
    found = disclosure(np.arange(13.0), law.pmf(np.arange(13)), 13)
    assert found == (pytest.approx(law.pmf(np.arange(13)) @ bits), pytest.approx(bits.max()))
    twice = disclosure(np.repeat(np.arange(13.0), 2), np.repeat(law.pmf(np.arange(13)), 2), 13)
    assert twice == pytest.approx(found)


def test_first_or_last_was_taken_for_even_chances() -> None:
    """Of three candidates the true one is first in nine of ten cases, and last in one."""
    mean, worst = disclosure(np.array([0.0] * 9 + [2]), np.ones(10), 3)
    entropy = -(0.9 * math.log2(0.9) + 0.1 * math.log2(0.1))
    assert mean == pytest.approx(math.log2(3) - entropy, abs=1e-4)
    assert worst == pytest.approx(math.log2(3 * 0.9), abs=1e-4)


def test_lengths_that_nobody_has_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    trials, people = listed(3, 1, "abc")
    found = recordings(trials, np.arange(9.0), people)
    said = "3 recordings: left out, as fewer than 2 people with target trials have so many"
    assert said in caplog.text
    lengths = {name.columns.get("recordings", "any") for name in found if hasattr(name, "columns")}
    assert lengths == {"1", "all", "any"}
    assert found["eer"] == found["eer_all_recordings"]


def test_figures_of_more_than_1000_people_crashed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their resamples were cut into more parts than there were; figures stay those of one part."""
    whole = recordings(*made_up(3, 1.0), n_bootstrap=5)
    monkeypatch.setattr(module, "_AT_ONCE", 10)
    parts = recordings(*made_up(3, 1.0), n_bootstrap=5)
    assert parts.keys() == whole.keys()
    for name, ends in whole["intervals"].items():
        assert parts["intervals"][name] == pytest.approx(ends, nan_ok=True)


def test_one_person_can_be_mistaken_for_nobody(caplog: pytest.LogCaptureFixture) -> None:
    trials, people = listed(2, 4, "ax")
    found = recordings(trials, np.arange(16.0), people, n_bootstrap=5)
    assert {*found} == {*module.TESTED}
    assert all(math.isnan(found[name]) for name in module.TESTED)
    assert "all recordings: left out, as fewer than 2" in caplog.text


def test_equal_scores_tell_nothing() -> None:
    trials, people = listed(4, 3, "abcd")
    found = recordings(trials, np.full(len(trials), 0.1), people)
    assert [found[name] for name in module.TESTED] == [1.0, 1.0]
    for length in ("1", "3", "all"):
        assert found[key("named", recordings=length)] == 0.0
        assert found[key("eer_normalised", recordings=length)] == 0.5
        assert found[key("d_ece_normalised", recordings=length)] == pytest.approx(0.0)


def test_a_pair_that_is_no_trial_is_none_of_a_group() -> None:
    trials, _ = listed(3, 2, "abc")
    kept = [i for i in range(len(trials)) if (trials.enrol[i], trials.trial[i]) != ("c", "a01")]
    rest = some_of(trials, kept)
    own = people_of(rest)
    heard = hear(rest, np.arange(17.0), own)
    groups = group(heard, shuffle(heard, own.names, 0), 2)
    assert groups is not None and np.isnan(groups.score).tolist()[0] == [False, False, True]
    assert np.isfinite(groups.normalised().score).sum() == 8


def test_eers_of_permutations_are_those_of_the_list_with_other_labels() -> None:
    trials, score, people = made_up(3, 1.0)
    heard = hear(trials, np.round(score), people)  # with ties
    models = np.zeros((len(people.names), 7), bool)
    np.logical_or.at(models, heard.person, heard.target)
    swaps = np.stack([np.arange(len(models)), np.random.default_rng(0).permutation(len(models))])
    swaps[1, 6:] = np.arange(6, len(models))
    swaps[1, :6] = [1, 2, 0, 4, 5, 3]
    for swap, eer in zip(swaps, module._eers(heard, models, swaps), strict=True):
        target = models[swap[heard.person]].ravel()
        ranking = detection.rank(heard.score.ravel(), target)
        assert eer == pytest.approx(detection.folded(detection.eer(*ranking.counts())))


def test_people_who_swap_models_that_nobody_compared_with_them_say_nothing() -> None:
    """Each recording has two trials: swapped, they have no target or no nontarget."""
    trials, people = against_c()
    found = recordings(trials, trials.target * 1.0, people)
    assert 0 < found["p_value_eer"] <= 1
    assert math.isnan(found["p_value_named"])  # who is no candidate cannot be named


def test_people_with_few_recordings_moved_the_mean_of_naming() -> None:
    """Over all 24 swaps of four people, two of whom have three recordings, naming is as chance."""
    trials, _ = listed(4, 3, "abcd")
    few = some_of(
        trials, [i for i, utt in enumerate(trials.trial) if utt[0] in "ab" or utt[2] == "0"]
    )
    own = people_of(few)
    heard = hear(few, np.random.default_rng(1).normal(size=len(few)), own)
    of_three = group(heard, shuffle(heard, own.names, 0), 3)
    assert of_three is not None and of_three.score.shape == (2, 4)
    swaps = np.array([*itertools.permutations(range(4))])
    off = module._named(of_three, np.eye(4, dtype=bool), swaps, np.zeros(4, int))
    assert off.mean() == pytest.approx(0.0) and off.std() > 0.1


@pytest.mark.parametrize("halves", [False, True])
def test_p_values_of_scores_that_say_nothing_are_spread_evenly(monkeypatch, halves):
    """Also in a list of two halves, whose people are compared with their own half alone: models of
    the other half were swapped in, who cannot be named, and naming seemed more than chance. There
    the p value of the EER errs upwards, unless they swap within their half."""
    monkeypatch.setattr(module, "N_PERMUTATIONS", 99)
    found = []
    for seed in range(60):
        trials, score, people = made_up(seed, 0.0, 2.0)
        heard = hear(trials, score, people)
        if halves:
            heard.score[heard.person[:, None] % 2 != heard.model % 2] = np.nan
        order = shuffle(heard, people.names, 0)
        groups = [group(heard, order, length) for length in (1, 3, 10)]
        lengths = [module.Length.of(own, len(people.names)) for own in groups if own]
        tests = (permutation_tests([lengths], heard, alike=alike) for alike in (False, True))
        found.append([p for own in tests for p in own.values()])
    share = (np.array(found) <= 0.2).mean(axis=0)
    assert share[halves:] == pytest.approx(0.2, abs=0.12) and share[0] < 0.32


def test_the_strongest_of_two_is_chosen_anew_in_each_resample() -> None:
    trials, first, people = made_up(6, 0.6)
    second = made_up(7, 0.6)[1]
    one, two = (recordings(trials, s, people, n_bootstrap=200) for s in (first, second))
    both = strongest(trials, [[first], [second]], people, n_bootstrap=200)
    for length in ("1", "3", "10", "all"):
        names = [key(name, recordings=length) for name in ("eer", "eer_normalised")]
        lowest = min(detection.folded(own[name]) for own in (one, two) for name in names)
        assert both[names[0]] == pytest.approx(lowest)
        ends = [own["intervals"][name] for own in (one, two) for name in names]
        assert both["intervals"][names[0]][0] <= min(low for low, _ in ends) + 1e-12
        assert both["intervals"][names[0]][1] <= min(high for _, high in ends) + 1e-12
    assert both["n_attacks"] == 2 and both["n_target_speakers"] == 6
    assert both["n_segments"] == 70, "the number of segments was not beside the EER"
    alone = strongest(trials, [[first]], people, n_bootstrap=50)
    assert lowest_p(alone) == one["p_value_eer"]
    lists = [strongest(trials, own, people) for own in ([[first], [first]], [[first]])]
    assert lowest_p(lists[0]) == lowest_p(lists[1])


def test_the_best_of_many_attackers_who_hear_nothing_is_chance() -> None:
    trials, _, people = made_up(0, 0.0)
    scores = [[made_up(seed, 0.0)[1]] for seed in range(20, 40)]
    own = [recordings(trials, score, people)["p_value_eer"] for (score,) in scores]
    found = strongest(trials, scores, people)
    assert min(own) < 0.1 < lowest_p(found)


def test_runs_of_a_random_system_are_averaged_and_drawn() -> None:
    trials, first, people = made_up(6, 0.8)
    runs = [first, made_up(7, 0.2)[1]]
    one, two = (recordings(trials, run, people) for run in runs)
    both = recordings(trials, runs[0], people, draws=runs[1:], n_bootstrap=200)
    names = (f"{n}_recordings" for n in ("eer_normalised_3", "named_all", "d_ece_normalised_10"))
    for name in ("eer", *names):
        assert both[name] == pytest.approx((one[name] + two[name]) / 2)
        low, high = both["intervals"][name]
        assert low < min(one[name], two[name]) and high > max(one[name], two[name])
    chosen = strongest(trials, [runs], people, n_bootstrap=200)
    found = [(detection.folded(one[n]) + detection.folded(two[n])) / 2
             for n in ("eer", "eer_normalised")]  # fmt: skip
    assert chosen["eer"] == pytest.approx(min(found))
    low, high = chosen["intervals"]["eer"]
    assert low < min(found) < high
    again = recordings(trials, first, people, draws=[first])
    assert again["p_value_eer"] == one["p_value_eer"]


def test_beside_one_of_three_runs_the_first_of_two_was_drawn_twice_as_often() -> None:
    """An attacker's own runs are equally likely, however many another has."""
    runs: list[Any] = [0.0, 1.0]
    figures: Any = lambda run, drawn: drawn[:, 0] * run  # noqa: E731
    made = module.over_runs(runs, 1, figures, n_bootstrap=600)
    assert made[0, 0] == 0.5 and made[0, 1:].mean() == pytest.approx(0.5, abs=0.06)


def test_of_one_candidate_normalisation_leaves_nothing() -> None:
    rows = [(p, f"{p}{r}", True) for p in "abc" for r in range(3)]
    trials, people = listed_of([*rows, *(("x", f"y{r}", False) for r in range(3))])
    found = recordings(trials, np.arange(12.0), people)
    assert math.isnan(found["eer_normalised"])
    assert 0 <= found["eer"] <= 1 and 0 < found["p_value_eer"] <= 1


def test_the_choice_of_many_figures_had_a_p_value_that_could_not_be_small() -> None:
    """With 999 permutations the rarest of 160 figures was never rarer than about 0.1."""
    trials, score, people = made_up(4, 2.0)
    noise = [made_up(seed, 0.0)[1] for seed in range(20, 40)]
    found = strongest(trials, [*([own] for own in noise), [score]], people)
    assert lowest_p(found) <= 0.002


def test_a_leak_that_is_turned_round_is_one() -> None:
    trials, score, people = made_up(4, 2.0)
    found = recordings(trials, -score, people)
    assert found["eer"] > 0.8
    assert found["p_value_eer"] <= 0.01


def test_figures_of_all_resamples_at_once_are_those_of_each_alone() -> None:
    """To the last bit: ties, blocks of both kinds, and resamples without targets or nontargets."""
    rng = np.random.default_rng(4)
    score, target = rng.integers(0, 40, 300) / 7, rng.random(300) < 0.3
    ranking = detection.rank(score + target, target)
    weight = rng.poisson(rng.choice([0.1, 0.4, 1.0], 50)[:, None], (50, 300)).astype(float)
    weight[0] *= ranking.target
    weight[1] *= ~ranking.target
    t, n = ranking.counts(weight)
    eers = detection.eers(np.cumsum(t, axis=1), np.cumsum(t + n, axis=1))
    several = np.stack([eers, detection.d_eces(t, n)])
    none = ~(t.any(axis=1) & n.any(axis=1))
    assert none[:2].all() and np.isnan(several[:, none]).all()
    for i in np.flatnonzero(~none):
        blocks = detection.pav(t[i], n[i])
        alone = [detection.eer(t[i], n[i]), detection.d_ece(blocks.llr, blocks.t, blocks.n)]
        np.testing.assert_array_equal(several[:, i], alone)


def test_two_systems_differ_by_what_the_same_people_say() -> None:
    """Their intervals overlapped; a difference resamples people alike in both, and there is none
    between other people."""
    trials, score, people = made_up(3, 0.3)
    better = score + 0.5 * trials.target
    first, again = (strongest(trials, [[own]], people, n_bootstrap=200) for own in (score, better))
    found: Any = differences(first, again)
    for n in ("1", "all"):
        name = key("eer_difference", recordings=n)
        apart = np.subtract(first["samples"][n], again["samples"][n])  # type: ignore[index]
        assert found[name] == pytest.approx(apart[0])
        assert found["intervals"][name] == pytest.approx(percentiles(apart[1:]))
    assert found["n_segments"] == 70
    low, high = found["intervals"]["eer_difference"]
    ends: Any = [of["intervals"]["eer"] for of in (first, again)]
    assert low > 0 and ends[0][0] < ends[1][1]
    assert high - low < max(end[1] - end[0] for end in ends)
    assert differences(first, again | {"n_target": 3}) == {}
    assert differences({"n_target": 3}, {"n_target": 3}) == {}  # nobody judged: a traceback
