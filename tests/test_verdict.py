"""What the report says first: the rules of a verdict by cases, then made-up figures."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from local.metrics import recordings as metrics
from local.metrics.verification import find_speakers
from local.report import findings, select, tables
from local.report.findings import trust as trust_of
from local.report.frame import NOTHING, Value
from local.report.page import markdown
from local.report.pictures import recordings
from local.report.select import Evidence, Level, fold, judge
from tests.report_rows import Figure, SpeakerFigure, named, results
from tests.report_rows import figure as made_up
from tests.scored import trials_of

CASES = yaml.safe_load(Path(__file__).with_name("verdicts.yaml").read_text())


def attack(of: Any) -> list[Evidence]:
    """Attacks as verdicts.yaml says them: an EER, or what differs."""
    given = {"bare": [0.01, 0.0, 0.04], "named": 0.05, "chance": 0.05, "people": 20.0, "times": 1}
    given |= {"controlled": True, "several": {"all": [0.5, 0.47, 0.5]}}
    given |= of if isinstance(of, dict) else {"eer": of}
    times, evaluator = given.pop("times"), given.pop("evaluator", "e/cosine")
    made = {
        name: Value(*own) if isinstance(own, list)
        else {str(n): Value(*value) for n, value in own.items()} if isinstance(own, dict)
        else own if isinstance(own, bool) or own != own else float(Fraction(own))
        for name, own in given.items()
    }  # fmt: skip
    return [Evidence("ignorant", evaluator, **made)] * times


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_verdicts(case: dict[str, Any]) -> None:
    chosen = {str(n): (Value(*own), p) for n, (*own, p) in case.get("chosen", {}).items()}
    found = judge([*chain.from_iterable(map(attack, case["attacks"]))], chosen=chosen)
    assert (found.level.name, found.why) == (case["level"], case.get("why", ""))


def test_the_worst_person_caps_the_verdict() -> None:
    attacks = attack([0.49, 0.45, 0.53])
    assert judge(attacks, 0.5).level is Level.HIDDEN
    assert judge(attacks, 0.51).level is Level.UNSHOWN
    assert judge(attack([0.2, 0.1, 0.3]), 0.82).level is Level.OFTEN


def test_who_was_never_attacked_by_several_recordings_was_called_hidden() -> None:
    found = judge(attack({"eer": [0.49, 0.45, 0.53], "several": {"1": [0.49, 0.45, 0.5]}}))
    assert (
        str(found)
        == "? no leak shown: but nobody who passed a control attacked by several recordings"
    )


def test_an_interval_is_folded_whole() -> None:
    assert fold(Value(0.8, 0.75, 0.85)) == Value(pytest.approx(0.2), pytest.approx(0.15), 0.25)
    assert fold(Value(0.48, 0.45, 0.62)) == Value(0.48, pytest.approx(0.38), 0.5)
    assert fold(Value(0.1, 0.05, 0.2)) == Value(0.1, 0.05, 0.2)
    assert math.isnan(fold(Value(0.48)).low) and math.isnan(fold(NOTHING).value)


# The screen.


def on_rows(function):  # type: ignore[no-untyped-def]
    """The same of rows instead of results."""
    return lambda *rows: function(results(*rows))


people, too_weak, trust, what_now, doubts = map(
    on_rows,
    (findings.people, findings.too_weak, findings.trust, findings.what_now, findings.doubts),
)
verdicts, verdict_table = on_rows(select.verdicts), on_rows(tables.verdict_table)
verdict_lines, render = on_rows(tables.verdict_lines), on_rows(markdown)


def figure(
    system: str, who: str, value: float, low: float, high: float, *, gender: str = "f",
    evaluator: str = "e", metric: str = "eer",
) -> Figure:  # fmt: skip
    of = {"gender": gender, "evaluator": evaluator, "split": f"x_{gender}", "n_speakers": "13"}
    return made_up(system, who, metric, value, low, high, **of)


def bare(eer: float = 0.02, high: float = 0.05, gender: str = "f", evaluator: str = "e") -> Figure:
    return figure(
        "original", "unprotected", eer, 0.0, high, gender=gender, evaluator=evaluator
    )  # fmt: skip


def targets(number: int, gender: str = "f", system: str = "b2", who: str = "ignorant") -> Figure:
    return figure(system, who, number, 0, 0, gender=gender, metric="n_target_speakers")


def test_the_strongest_of_all_attackers_decides_for_each_group() -> None:
    figures = [
        bare(), bare(gender="m"), bare(0.04, evaluator="other"),
        figure("b2", "ignorant", 0.45, 0.4, 0.52),
        figure("b2", "aligned", 0.30, 0.2, 0.35, evaluator="other"),
        figure("b2", "ignorant", 0.03, 0.01, 0.04, gender="m"),
        figure("b2", "ignorant", 0.01, 0.0, 0.03, gender="m", metric="eer_rise"),
        figure("b2", "utility", 0.1, 0.0, 0.2, metric="wer", evaluator="asr", gender=""),
        figure("original", "utility", 0.04, 0.0, 0.2, metric="wer", evaluator="asr", gender=""),
    ]  # fmt: skip
    assert verdict_table(figures).rows == [
        ["b2", "✗ does not anonymise: the EER is 1.0 [0.0, 3.0] points above that without it (men);"
         " ◐ people are found now and then (women)",
         "women 30.0 [20.0, 35.0] by aligned, other (unprotected 4.0 [0.0, 5.0]); "
         "men 3.0 [1.0, 4.0] by ignorant, e (unprotected 2.0 [0.0, 5.0])", "10.0 (was 4.0)"]
    ]  # fmt: skip
    said = trust(figures)
    assert said[0].startswith("Evaluators that know these voices without protection, with their")
    assert "other 4.0 [0.0, 5.0] % (women)" in said[0]
    assert said[1].endswith("people are hidden: ignorant by e and aligned by other.")
    assert "lazy-informed, semi-informed, white-box" in said[2]
    assert sum("not measured, as there was one training" in line for line in said) == 1
    text = render(figures)
    assert text.index("## In short") < text.index("## Strongest attackers")
    warning = next(said for said in doubts(figures) if said.startswith("b2 on x_m by e:"))
    assert "no better than unprotected" in warning and "at the most 3.0" in warning


def test_a_console_has_the_verdicts_in_two_lines() -> None:
    women = [bare(), *(figure(s, "ignorant", 0.05, 0.02, 0.07) for s in ("b2", "b2r"))]
    women += [figure("bn", "ignorant", 0.48, 0.38, 0.55)]
    mostly = "people are mostly found (b2 and b2r)"
    unshown = "no leak shown, but an EER down to 38.0 % is possible (bn)"
    assert verdict_lines(women) == [f"women: {unshown} · {mostly}"]
    men = [replace(f, split="x_m", gender="m") for f in women]
    assert verdict_lines([*women, *men]) == [f"women and men: {unshown} · {mostly}"]
    often = figure("bn", "ignorant", 0.2, 0.15, 0.24, gender="m")
    apart = [f"women: {unshown} · {mostly}", f"men: people are often found (bn) · {mostly}"]
    assert verdict_lines([*women, *men[:-1], often]) == apart
    both = [replace(f, split="x_mixed", gender="mixed") for f in women[:-1]]
    assert verdict_lines([*women, *men[:-1], often, *both]) == [
        "the worst group of each system: people are often found (bn: men) · people are mostly "
        "found (b2: women and b2r: women)"
    ]
    many = [figure(f"s{i}", "ignorant", 0.05 + i / 1000, 0.02, 0.07) for i in range(6)]
    told = verdict_lines([bare(), *many])
    assert told == ["women: people are mostly found (s0, s1, s2, s3 and 2 more)"]
    assert verdict_lines([bare()]) == []


def test_a_weak_evaluator_is_warned_of_before_all_else() -> None:
    figures = [bare(0.04, 0.2), bare(0.04, gender="m")]
    assert "is 4.0 [0.0, 20.0] % for women (e), which may be more than 5 %" in too_weak(figures)
    assert trust(figures)[0] == too_weak(figures)
    assert not too_weak([bare(), bare(gender="m")])
    assert [said.split(":")[0] for said in doubts(figures)] == ["Evaluator e on x_f"]


def test_an_evaluator_that_may_err_on_every_tenth_voice_was_evidence() -> None:
    """Its EER was 4 %, and its interval ended at 20 %."""
    figures = [bare(0.04, 0.2), figure("b2", "ignorant", 0.49, 0.47, 0.51)]
    assert [j.verdict.level for j in verdicts(figures)["b2"]] == [Level.UNJUDGED]


def test_named_people_stand_beside_guessing_and_the_same_evaluator_unprotected() -> None:
    def reid(system: str, metric: str, value: float, evaluator: str = "e") -> Figure:
        who = "aligned" if system == "b2" else "unprotected"
        found = figure(
            system, f"reidentification {who}", value, 0, 1, metric=metric, evaluator=evaluator
        )
        return replace(found, n_speakers="20", n_segments="180")

    figures = [
        bare(), figure("b2", "aligned", 0.3, 0.2, 0.4), reid("b2", "reid_speaker_top_1", 0.4),
        reid("b2", "chance_reid_speaker_top_1", 0.05), reid("original", "reid_speaker_top_1", 0.9),
        reid("original", "reid_speaker_top_1", 1.0, "other"),
    ]  # fmt: skip
    table = verdict_table(figures)
    assert table.header[-1] == "people named from 9 recordings each"
    assert table.rows[0][-1] == "8 of 20 women by aligned, e (unprotected 18, guessing 1)"
    assert table.rows[0][1] == "✗ people are often found: 8 of 20 people are named rightly"


def test_the_worst_person_is_that_of_all_evaluators() -> None:
    def linkability(name: str, evaluator: str, value: str) -> SpeakerFigure:
        where = ("c", "x_f", "f", "b2", *named("aligned"), evaluator, "OA")
        return SpeakerFigure(*where, name, "linkability", value, "digest")

    speakers = [
        linkability("a", "e", "0.4"), linkability("b", "other", "0.9"), linkability("c", "e", ""),
    ]  # fmt: skip
    (row,) = verdict_table([bare(), figure("b2", "aligned", 0.49, 0.47, 0.52)], speakers).rows
    assert row[-1] == "b (linkability 0.90)"
    assert row[1].endswith("but the worst-protected person has a linkability of 0.90")


def test_recordings_of_a_person_stand_beside_one() -> None:
    """EERs of the scores as they are and normalised, from one recording and from all."""
    figures = [bare(), figure("b2", "ignorant", 0.46, 0.42, 0.52)]
    for name, value in (
        ("eer_1", 0.46), ("eer_normalised_1", 0.44), ("eer_all", 0.3), ("eer_normalised_all", 0.75),
        ("named_all", 0.4),
    ):  # fmt: skip
        figures.append(figure("b2", "recordings ignorant", value, value - 0.04, value + 0.04,
                              metric=f"{name}_recordings"))  # fmt: skip
    for n, *eer, p in (("1", 0.44, 0.4, 0.48, 0.2), ("all", 0.25, 0.21, 0.29, 0.01)):
        for name, own in (("eer", eer), ("p_value", [p, 0.0, 0.0])):
            figures.append(figure("b2", "strongest", *own, evaluator="all",
                                  metric=f"{name}_strongest_{n}_recordings"))  # fmt: skip
    (judged,) = verdicts(figures)["b2"]
    assert judged.verdict.attack is not None
    assert judged.verdict.attack.several["all"].value == 0.25  # 0.75, turned round
    assert judged.verdict.why == "an EER of 25.0 % from all recordings of a person"
    assert verdict_table(figures).rows[0][2] == (
        "women 44.0 [40.0, 48.0] from one, 25.0 [21.0, 29.0] from all recordings by "
        "ignorant, e (unprotected 2.0 [0.0, 5.0])"
    )
    drawn = recordings(results(figures))
    assert drawn is not None and "44.0 % from 1 by ignorant, e, 25.0 % from all" in drawn.alt


def test_recordings_enrolled_stand_beside_those_heard() -> None:
    """The lower of both scores, turned round where it is above 50 %."""
    figures = [bare(), figure("b2", "ignorant", 0.46, 0.42, 0.52)]
    named = {"eer_1": 0.4, "eer_all": 0.3, "eer_1_enrolled_1": 0.45}
    named["eer_normalised_1_enrolled_1"] = 0.58
    figures += [figure("b2", "recordings ignorant", value, value - 0.01, value + 0.01,
                       metric=f"{name}_recordings") for name, value in named.items()]  # fmt: skip
    table = tables.enrolment_table(results(figures).metrics)
    one = ["42.0 [41.0, 43.0]", *["–"] * 4]
    every = ["40.0 [39.0, 41.0]", *["–"] * 3, "30.0 [29.0, 31.0]"]
    at = ["x_f", "b2", "ignorant", "e"]
    assert table.rows == [[*at, "1", *one], [*at, "all", *every]]
    assert "## Recordings enrolled" in render(figures)
    assert not tables.enrolment_table(results(figures[:4]).metrics).rows


def test_what_the_voice_adds_to_the_words_stands_in_the_row() -> None:
    """The most of all attackers: the EER falls from that of the words by so many points."""
    figures = [bare(), figure("b2", "ignorant", 0.3, 0.2, 0.4)]
    assert not select.beside_words(results(figures).metrics)
    for who, value in (("ignorant", -0.08), ("lazy_informed", -0.15)):
        figures.append(figure("b2", who, value, value - 0.05, value + 0.05,
                              metric="eer_beside_words", evaluator="fused"))  # fmt: skip
    table = verdict_table(figures)
    assert table.header[-1] == "the voice adds to the words (points of EER)"
    assert table.rows[0][-1] == "women 15.0 [10.0, 20.0]"


def test_the_interval_of_the_strongest_covers_its_choice() -> None:
    """None of 30 attackers is known to be beyond chance; that of the lowest of all is. Cell and
    verdict have its interval, whose upper end noise alone can bring below 50 %."""
    figures = [bare()]
    for i in range(30):
        eer = 0.3 if i == 7 else 0.4
        figures.append(figure("b2", "ignorant", 0.48, 0.46, 0.51, evaluator=f"e{i}"))
        figures.append(bare(evaluator=f"e{i}"))
        figures.append(figure("b2", "recordings ignorant", eer, eer - 0.05, eer + 0.05,
                              metric="eer_all_recordings", evaluator=f"e{i}"))  # fmt: skip
    found = [verdicts(figures)["b2"][0].verdict]
    for metric, value in (("eer", 0.3), ("p_value", 0.004)):
        metric += "_strongest_all_recordings"
        figures.append(figure("b2", "strongest", value, 0.2, 0.33, metric=metric, evaluator="all"))
    assert "all" not in results(figures).evaluators()
    found += [verdicts(figures)["b2"][0].verdict]
    assert [v.level for v in found] == [Level.UNSHOWN, Level.NOW_AND_THEN]
    assert [v.attack.evaluator for v in found if v.attack] == ["e7", "e7"]
    assert found[1].eers["all"].eer == Value(0.3, 0.2, 0.33)
    cell = (
        "women 30.0 [20.0, 33.0] from all recordings by ignorant, e7 (unprotected 2.0 [0.0, 5.0])"
    )
    assert verdict_table(figures).rows[0][2] == cell
    by_chance = replace(figures[-1], value="0.06")
    assert verdicts([*figures[:-1], by_chance])["b2"][0].verdict.level is Level.UNSHOWN


def test_a_choice_among_fewer_attackers_hid_what_the_others_found() -> None:
    """A later run of one attacker made the choice anew, and the page said that people are hidden
    beside a semi-informed attacker's 5 %."""
    weak, strong = Value(0.46, 0.43, 0.49), Value(0.05, 0.02, 0.1)
    seen = {"bare": Value(0.01, 0.0, 0.02), "people": 20.0, "named": 0.0, "chance": 0.05}
    attacks = [
        Evidence(who, "pyannote/cosine", weak, several={"all": eer}, controlled=True, **seen)
        for who, eer in (("ignorant", weak), ("semi_informed_backend", strong))
    ]
    chosen = {"1": (weak, 0.4), "all": (weak, 0.4)}
    assert judge(attacks[:1], chosen=chosen).level is Level.HIDDEN
    found = judge(attacks, chosen=chosen)
    assert found.level is Level.UNSHOWN and "2.0 %" in found.why


def test_each_of_several_groups_had_its_own_five_percent() -> None:
    """A p value of 0.04 is beyond chance for one group, and not for one of two."""
    women = [bare(), figure("b2", "ignorant", 0.35, 0.2, 0.493)]
    men = [replace(f, split="x_m", gender="m") for f in women]
    found = [verdicts(rows)["b2"][0].verdict.level for rows in (women, [*women, *men])]
    assert found == [Level.NOW_AND_THEN, Level.UNSHOWN]
    named = attack({"eer": [0.49, 0.45, 0.53], "named": "4/11", "chance": "1/11", "people": 11.0})
    assert [judge(named, groups=n).level for n in (1, 5)] == [Level.OFTEN, Level.UNSHOWN]


@pytest.mark.slow
@pytest.mark.parametrize(("signal", "most", "least"), [(0.0, 4, 0), (3.0, 30, 28)])
def test_the_best_of_many_attackers_who_hear_nothing_was_a_leak(signal, most, least, monkeypatch):
    """Ten attackers on six people, 30 times: by their own intervals, two of three times, without
    any signal; where one of them hears something, the verdict has to say so."""
    monkeypatch.setattr(metrics, "N_PERMUTATIONS", 199)
    of = {f"{p}{r}": p for p in "abcdef" for r in range(6)}
    trials = trials_of([(m, utt, m == person) for utt, person in of.items() for m in "abcdef"])
    speakers = find_speakers(trials, of, trials_path="t", utt2spk_path="u")
    leaks = alone = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        noise = rng.normal(size=(10, len(trials)))  # of what recordings of one person share, too
        scores = noise + rng.normal(size=(10, 6, 6)).repeat(6, axis=1).reshape(10, -1)
        scores[0] += signal * trials.target
        found = metrics.strongest(trials, [[own] for own in scores], speakers, n_bootstrap=40)
        intervals: Any = found["intervals"]
        chosen = {
            n: (Value(float(str(found[name])), *intervals[name]),
                float(str(found[name.replace("eer", "p_value")])))
            for n in ("1", "3", "all") for name in (f"eer_strongest_{n}_recordings",)
        }  # fmt: skip
        attacks = attack({"eer": [0.45, 0.4, 0.5], "times": 10})
        leaks += judge(attacks, chosen=chosen).level < Level.UNJUDGED
        alone += chosen["1"][0].high < 0.5
    assert least <= leaks <= most
    assert alone > 10


def test_an_attacker_who_learnt_pseudo_voices_was_no_evidence_but_was_shown_as_such() -> None:
    """attacker.json tells the EER on protected people that they did not learn from."""
    figures = [bare(), *(figure("b2", who, 0.49, 0.47, 0.52) for who in ("ignorant", "aligned"))]
    record = {"scores": "exp/scores/b2/aligned.e/OA/x_f", "held_out_eer": 0.49}
    deaf, hears = (
        results(figures, run={"attacks": [record | {"held_out_eer_ci": ends}]})
        for ends in ([0.47, 0.51], [0.30, 0.36])
    )
    assert [a.controlled for a in select.attacks(deaf, "b2", "x_f")] == [False, False]
    assert [a.controlled for a in select.attacks(hears, "b2", "x_f")] == [False, True]
    (said,) = [text for text in trust_of(deaf) if text.startswith("Not shown to hear")]
    assert "aligned by e (EER 49.0 [47.0, 51.0] % on people held out) and ignorant by e." in said


def test_a_learner_without_a_control_passed_by_a_strong_encoder() -> None:
    """Too few people were held out, or attacker.json was lost, and pyannote stood in for it."""
    by, who = {"evaluator": "pyannote/plda"}, "semi_informed_backend"
    figures = [bare(**by), *(figure("b2", a, 0.49, 0.47, 0.52, **by) for a in ("ignorant", who))]
    record = {"scores": f"exp/scores/b2/{who}.pyannote+plda/AA/x_f", "held_out_eer": None}
    for records in ([record], []):
        found = results(figures, run={"attacks": records})
        assert [a.controlled for a in select.attacks(found, "b2", "x_f")] == [False, False]
        assert "semi-informed (back end) by pyannote/plda" in trust_of(found)[1]


def test_results_md_and_the_first_screen_did_not_say_that_results_are_missing() -> None:
    """The strongest attacker's may be among them (--allow-loss)."""
    found = results([bare(), figure("b2", "ignorant", 0.45, 0.4, 0.5)])
    assert "Missing or broken" not in markdown(found) and "## Missing" not in markdown(found)
    found.missing.append(("exp/a_b|c", "a_b: no metrics.json"))
    assert trust_of(found)[0].startswith("Missing or broken results: 1. An attacker among them may")
    assert "## Missing\n\n- exp/a_b\\|c: a_b: no metrics.json\n" in markdown(found)


def test_of_two_lists_of_one_group_only_the_last_was_told() -> None:
    """VCTK has two lists of women; the console kept the verdict on the second."""
    lists = ("vctk_test_f", "vctk_test_common_f")
    figures = [replace(bare(), split=split) for split in lists]
    figures += [replace(figure("b2", "ignorant", eer, eer - 0.03, eer + 0.02), split=split)
                for split, eer in zip(lists, (0.05, 0.48), strict=True)]  # fmt: skip
    told = "\n".join(verdict_lines(figures))
    assert "women (vctk_test_f): people are mostly found (b2)" in told
    assert "women (vctk_test_common_f): no leak shown" in told
    assert "women (vctk_test_common_f) 48.0" in verdict_table(figures).rows[0][2]


def test_the_picture_showed_whom_another_attacker_names_than_the_verdict_says() -> None:
    figures = [bare()]
    for who, eer, share in (("ignorant", 0.45, 0.1), ("aligned", 0.47, 0.9)):
        figures.append(figure("b2", who, eer, eer - 0.04, eer + 0.04))
        for metric, value in (("reid_speaker_top_1", share), ("chance_reid_speaker_top_1", 0.1)):
            named_by = figure("b2", f"reidentification {who}", value, 0, 1, metric=metric)
            figures.append(replace(named_by, n_speakers="20"))
    assert "18 of 20" in verdict_table(figures).rows[0][1]
    drawn = recordings(results(figures))
    assert drawn is not None
    beneath = drawn.canvas.axes[1]
    assert max(float(np.max(line.get_ydata())) for line in beneath.lines) == pytest.approx(90)


def test_an_attacker_who_fails_a_control_is_no_evidence_and_a_control_no_system() -> None:
    """By an evaluator that is strong without protection, but finds nobody behind one voice."""
    rows = [
        figure("original", "unprotected", 0.01, 0.0, 0.02, evaluator="pyannote/cosine"),
        figure("a", "lazy_informed", 0.49, 0.45, 0.53, evaluator="pyannote/cosine"),
    ]
    found = [figure("bn_perm", "lazy_informed", 0.05, 0.0, 0.1, evaluator="pyannote/cosine")]
    missed = [figure("bn_perm", "lazy_informed", 0.2, 0.1, 0.3, evaluator="pyannote/cosine")]

    dosed, faint = (
        [figure("bn_leak_40", "lazy_informed", *eer, evaluator="pyannote/cosine")]
        for eer in ((0.2, 0.1, 0.3), (0.45, 0.4, 0.52))
    )

    def heard(more: list[Figure]) -> bool:
        return select.attacks(results([*rows, *more]), "a", "x_f")[0].controlled

    ways = ([], found, faint, dosed, [*dosed, *found], [*dosed, *missed])
    assert [heard(more) for more in ways] == [False, False, False, True, True, False]
    assert list(verdicts([*rows, *found])) == ["a"]
    assert not tables.control_table(results(rows).metrics).rows
    table = tables.control_table(results([*rows, *found, *dosed]).metrics)
    assert table.header[3:] == ["bn_perm (%)", "bn_leak_40 (%)"]
    told = ["x_f", "lazy-informed", "pyannote/cosine", "5.0 [0.0, 10.0]", "20.0 [10.0, 30.0]"]
    assert table.rows == [told]
    assert "## Controls" in render([*rows, *found, *dosed])


def test_trainings_of_one_evaluator_give_the_spread() -> None:
    seeds = ("e/plda", "e_seed1/plda", "e_seed2/plda", "other/plda")
    figures = [
        figure("b2", "aligned", eer, 0.0, 0.5, evaluator=name)
        for name, eer in zip(seeds, (0.10, 0.18, 0.14, 0.4), strict=True)
    ]
    assert trust([bare(), *figures])[-1].startswith(
        "3 trainings of one evaluator differ by up to 8.0 points of EER"
    )


def test_the_page_says_how_many_draws_stand_behind_the_figures() -> None:
    figures = [bare(), figure("b2r", "ignorant", 0.3, 0.2, 0.4)]
    assert trust(figures)[-2].startswith("Every system protected these trials once: other draws")
    more = [figure("b2r", who, n, 0, 0, metric="n_draws")
            for who, n in (("ignorant", 3), ("lazy_informed", 4))]  # fmt: skip
    assert trust([*figures, *more])[-2] == (
        "Figures of random systems by ignorant and lazy-informed attackers are means over 3 to 4 "
        "draws of pseudo-voices, and their intervals cover people and draws."
    )


def test_people_of_the_list_were_counted_instead_of_those_with_target_trials() -> None:
    """13 of the list, of whom 8 had target trials: too few for a reassuring verdict."""
    few = [bare(), figure("b2", "ignorant", 0.49, 0.47, 0.52), targets(8)]
    assert people(few) == "8 women"
    assert verdicts(few)["b2"][0].verdict.why == "but fewer than 10 people have target trials"
    assert any(said.startswith("Only 8 women with target trials") for said in trust(few))
    assert not any(said.startswith("Only") for said in trust([*few[:2], targets(11)]))


def test_the_smallest_difference_that_the_lists_tell_stands_on_the_page() -> None:
    rows = [bare(), figure("b2", "ignorant", 0.3, 0.2, 0.4)]
    rows += [figure("b2", who, value, 0, 0, metric="eer_least_difference")
             for who, value in (("ignorant", 0.07), ("aligned", 0.093))]  # fmt: skip
    assert any("less than about 7.0 to 9.3 points for women" in said for said in trust(rows))
    assert not any("smallest difference" in said for said in trust(rows[:2]))


def test_a_system_that_fewer_attackers_were_run_on_is_named() -> None:
    """Speech that others protected may come without what the informed attackers learn from."""
    ours = [figure("b2", who, 0.3, 0.2, 0.4) for who in ("ignorant", "lazy_informed")]
    theirs = figure("theirs", "ignorant", 0.45, 0.4, 0.5)
    told = "Not run on theirs, where other systems were attacked by them: lazy-informed."
    assert told in trust([bare(), *ours, theirs])
    assert not [said for said in trust([bare(), *ours]) if said.startswith("Not run on")]


def test_forty_target_voices_need_one_row() -> None:
    names = [f"const_{i:02d}" for i in range(40)]
    figures = [bare(), figure("b2", "ignorant", 0.3, 0.2, 0.4)]
    figures += [figure(n, "ignorant", 0.3 if n != names[7] else 0.2, 0.1, 0.4) for n in names]
    rows = verdict_table(figures).rows
    assert [row[0] for row in rows] == ["b2", "const_NN: worst of 40, const_07"]
    assert rows[1][2].startswith("women 20.0")


def test_an_undefined_eer_had_no_row() -> None:
    assert not verdict_table([bare()]).rows
    rows = verdict_table([bare(), figure("b2", "aligned", math.nan, 0, 1)]).rows
    assert rows[0][1:3] == ["– cannot be judged: no EER is defined", "women not defined"]


def test_a_group_that_a_system_lacks_moved_the_figures_of_the_others() -> None:
    figures = [bare(), bare(gender="m"), figure("a", "ignorant", 0.3, 0.2, 0.4)]
    figures += [figure("a", "ignorant", 0.2, 0.1, 0.3, gender="m")]
    figures += [figure("b", "ignorant", 0.1, 0.05, 0.2, gender="m")]
    eers = [row[2] for row in verdict_table(figures).rows]
    assert [text.count("women 30.0") + text.count("; men 20.0") for text in eers] == [2, 0]
    assert eers[1].startswith("men 10.0")


def test_words_of_one_group_stood_for_all() -> None:
    of_women = figure("b2", "utility", 0.1, 0.0, 0.2, metric="wer", evaluator="asr")
    figures = [bare(), figure("b2", "ignorant", 0.3, 0.2, 0.4), of_women]
    assert verdict_table(figures).rows[0][-1] == "10.0"
    of_men = figure("b2", "utility", 0.3, 0.0, 0.4, metric="wer", evaluator="asr", gender="m")
    assert "WER by asr (%)" not in verdict_table([*figures, of_men]).header


def test_what_now_asks_for_what_was_not_run() -> None:
    weak = [bare(0.04, 0.2), figure("b2", "ignorant", 0.3, 0.2, 0.4), targets(8)]
    told = {step.command for step in what_now(weak)}
    assert './run.sh --evaluators "e pyannote/cosine"' in told
    assert './run.sh --attackers "ignorant semi_informed_backend semi_informed_finetuned"' in told
    assert {"./run.sh --trainings 3", "./run.sh --corpus FOLDER"} <= told
    every = [*weak, figure("b2", "semi_informed", 0.3, 0.2, 0.4), targets(12)]
    every += [bare(0.01, 0.02, evaluator=f"pyannote_seed1/{b}") for b in ("plda", "cosine")]
    assert what_now([f for f in every if f.value != "8"]) == []
    assert what_now([bare()]) == []
    ours = [figure("b2", "ignorant", 0.3, 0.2, 0.4, evaluator="pyannote_synth/plda")]
    commands = [step.command for step in what_now(ours)]
    assert "./run.sh --trainings 3" in commands
    assert "What now:" in render(weak)


def test_a_picture_had_voices_hidden_best_by_a_system_that_does_not_anonymise() -> None:
    """Only a verdict says that a system hides people; DeID is what one attacker does not hear."""
    folder = Path(select.__file__).parent / "templates"
    said = " ".join(path.read_text() for path in folder.glob("*.jinja"))
    assert "voices are hidden" not in said and "hidden best" not in said
