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
from local.metrics.intervals import but, key
from local.report import findings, select, tables
from local.report.findings import warnings as warned
from local.report.measures import NOTHING, Value
from local.report.page import markdown
from local.report.pictures import channels, recordings
from local.report.select import Evidence, Level, fold, judge
from tests.report_rows import Figure, results
from tests.report_rows import figure as made_up
from tests.test_metrics_recordings import listed

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
    found = judge([*chain.from_iterable(map(attack, case["attacks"]))], 0.5, chosen)
    assert (found.level.name, found.why) == (case["level"], case.get("why", ""))


def test_a_small_leak_left_out_what_else_is_possible() -> None:
    """10 % from all recordings, or people who may be named: it was small, and no more was said."""
    eer, may = [0.45, 0.43, 0.47], {"1": (Value(0.45, 0.43, 0.47), 0.001)}
    wide = judge(attack(eer), 0.5, may | {"all": (Value(0.3, 0.1, 0.45), 0.2)})
    naming = attack({"eer": eer, "named": "4/11", "chance": "1/11", "people": 11.0})
    named = judge(naming + attack({"eer": [0.49, 0.45, 0.53], "times": 21}), 0.5, may)
    assert {wide.level, named.level} == {Level.SMALL}
    assert wide.why == (
        "an EER of 45.0 %, but an EER down to 10.0 % is possible from all recordings of a person"
    )
    assert named.why.startswith("an EER of 45.0 %, but 4 of 11 people are named correctly where")


def test_people_named_could_not_be_judged_where_no_eer_is_defined() -> None:
    named = {
        "eer": [math.nan] * 3,
        "named": "4/11",
        "chance": "1/11",
        "people": 11.0,
        "several": {},
    }
    assert judge(attack(named), 0.5).level is Level.OFTEN


def test_the_worst_person_caps_the_verdict() -> None:
    attacks = attack([0.49, 0.45, 0.53])
    assert judge(attacks, 0.5).level is Level.HIDDEN
    assert judge(attacks, 0.51).level is Level.UNSHOWN
    assert judge(attack([0.2, 0.1, 0.3]), 0.82).level is Level.OFTEN


def test_people_were_hidden_where_their_figures_were_lost() -> None:
    """Without per_speaker.csv nobody was the worst-protected person, who caps the verdict."""
    found = judge(attack([0.49, 0.45, 0.53]))
    assert str(found) == "? no leak shown: but nobody's linkability is known"


def test_who_was_never_attacked_by_several_recordings_was_called_hidden() -> None:
    found = judge(attack({"eer": [0.49, 0.45, 0.53], "several": {"1": [0.49, 0.45, 0.5]}}))
    said = "? no leak shown: but nobody who passed a control attacked by several recordings"
    assert str(found) == said


def test_an_interval_is_folded_whole() -> None:
    assert fold(Value(0.8, 0.75, 0.85)) == Value(pytest.approx(0.2), pytest.approx(0.15), 0.25)
    assert fold(Value(0.48, 0.45, 0.62)) == Value(0.48, pytest.approx(0.38), 0.5)
    assert fold(Value(0.1, 0.05, 0.2)) == Value(0.1, 0.05, 0.2)
    assert math.isnan(fold(Value(0.48)).low) and math.isnan(fold(NOTHING).value)


# The screen.


def on_rows(function):  # type: ignore[no-untyped-def]
    """The same of rows instead of results."""
    return lambda *rows: function(results(*rows))


what_now, verdicts = on_rows(findings.what_now), on_rows(select.verdicts)
verdict_table = on_rows(lambda found: tables.verdict_table({"": found}))
verdict_lines, render = on_rows(tables.verdict_lines), on_rows(markdown)


def figure(
    system: str, who: str, value: float, low: float, high: float, *, gender: str = "f",
    evaluator: str = "e", metric: str = "eer",
) -> Figure:  # fmt: skip
    of = {"gender": gender, "evaluator": evaluator, "split": f"x_{gender}", "n_speakers": "13"}
    return made_up(system, who, metric, value, low, high, **of)


def bare(eer: float = 0.02, high: float = 0.05, **of: str) -> Figure:
    return figure("original", "unprotected", eer, 0.0, high, **of)


def targets(number: int, gender: str = "f", system: str = "b2", who: str = "ignorant") -> Figure:
    return figure(system, who, number, 0, 0, gender=gender, metric="n_target_speakers")


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


def test_recordings_of_a_person_stand_beside_one() -> None:
    """EERs of the scores as they are and normalised, from one recording and from all."""
    figures = [bare(), figure("b2", "ignorant", 0.46, 0.42, 0.52)]
    for name, n, value in (
        ("eer_normalised", 1, 0.44), ("eer", "all", 0.3), ("eer_normalised", "all", 0.75),
        ("named", "all", 0.4),
    ):  # fmt: skip
        figures.append(figure("b2", "ignorant", value, value - 0.04, value + 0.04,
                              metric=f"{name}/recordings={n}"))  # fmt: skip
    for n, *eer, p in (("1", 0.44, 0.4, 0.48, 0.2), ("all", 0.25, 0.21, 0.29, 0.01)):
        for kind, own in (("value", eer), ("p", [p, 0.0, 0.0])):
            figures.append(figure("b2", "strongest", *own, evaluator="all",
                                  metric=f"eer/recordings={n}/kind={kind}"))  # fmt: skip
    (judged,) = verdicts(figures)["b2"]
    assert judged.verdict.attack is not None
    assert judged.verdict.attack.several["all"].value == 0.25  # 0.75, turned round
    assert judged.verdict.why == "an EER of 25.0 % from all recordings of a person"
    by, from_all = "ignorant, e", "25.0 [21.0, 29.0]"
    cells = ["44.0 [40.0, 48.0]", by, "2.0 [0.0, 5.0]", from_all, by]
    assert verdict_table(figures).rows[0][3:8] == cells
    drawn = recordings(results(figures))
    assert drawn is not None and "44.0 % from 1 by ignorant, e, 25.0 % from all" in drawn.alt


def test_a_picture_of_channels_left_out_normalised_scores() -> None:
    """The lowest EER from one recording was 46 % there, and 44 % on the strip beside it."""
    rows = [figure("b2", "ignorant", 0.46, 0.42, 0.5, evaluator=by) for by in ("words", "e/plda")]
    lower = figure("b2", "ignorant", 0.44, 0.4, 0.48, metric="eer_normalised/recordings=1",
                   evaluator="words")  # fmt: skip
    drawn = channels(results([*rows, lower]))
    assert drawn is not None and "44.0" in drawn.alt


def test_the_interval_of_the_strongest_covers_its_choice() -> None:
    """None of 30 attackers is known to be beyond chance; that of the lowest of all is. Cell and
    verdict have its interval, whose upper end noise alone can bring below 50 %."""
    figures = [bare()]
    for i in range(30):
        eer = 0.3 if i == 7 else 0.4
        figures.append(figure("b2", "ignorant", 0.48, 0.46, 0.51, evaluator=f"e{i}"))
        figures.append(bare(evaluator=f"e{i}"))
        figures.append(figure("b2", "ignorant", eer, eer - 0.05, eer + 0.05,
                              metric="eer/recordings=all", evaluator=f"e{i}"))  # fmt: skip
    found = [verdicts(figures)["b2"][0].verdict]
    for kind, value in (("value", 0.3), ("p", 0.004)):
        metric = f"eer/recordings=all/kind={kind}"
        figures.append(figure("b2", "strongest", value, 0.2, 0.33, metric=metric, evaluator="all"))
    assert "all" not in results(figures).evaluators()
    found += [verdicts(figures)["b2"][0].verdict]
    assert [v.level for v in found] == [Level.UNSHOWN, Level.NOW_AND_THEN]
    assert [v.attack.evaluator for v in found if v.attack] == ["e7", "e7"]
    assert found[1].eers["all"].eer == Value(0.3, 0.2, 0.33)
    cells = verdict_table(figures).rows[0][3:8]
    assert [cells[i] for i in (0, 1, 3, 4)] == [
        "48.0 [46.0, 50.0]", "ignorant, e0", "30.0 [20.0, 33.0]", "ignorant, e7"
    ]  # fmt: skip
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
    assert judge(attacks[:1], 0.5, chosen).level is Level.HIDDEN
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


def test_of_two_lists_of_women_the_last_one_stood_for_both() -> None:
    """Such as those of VCTK: its differences replaced the other's, and so did its warnings."""
    rise = {"metric": "eer_rise", "low": "0.0", "high": "0.01", "value": "0.0"}
    rows = [bare(), targets(8), *(figure("b2", "ignorant", 0.02, 0.0, 0.04) for _ in "a")]
    rows += [replace(rows[-1], **rise), made_up("b2", "strongest", "eer_difference/group=bn", 0.1)]
    rows = [replace(f, split="x_f") for f in rows]
    found = results([*rows, *(replace(f, split="y_f") for f in rows)])
    assert [row[0] for row in tables.difference_table(found.metrics).rows] == ["x_f", "y_f"]
    (few,) = [text for text in warned(found) if text.startswith("Only")]
    (same,) = [text for text in warned(found) if "no better than unprotected" in text]
    assert (few.count("8 women"), same.count("b2 (women)")) == (2, 2)


@pytest.mark.slow
@pytest.mark.parametrize(("signal", "most", "least"), [(0.0, 4, 0), (3.0, 30, 28)])
def test_the_best_of_many_attackers_who_hear_nothing_was_a_leak(signal, most, least, monkeypatch):
    """Ten attackers on six people, 30 times: by their own intervals, two of three times, without
    any signal; where one of them hears something, the verdict has to say so."""
    monkeypatch.setattr(metrics, "N_PERMUTATIONS", 199)
    trials, speakers = listed(6, 6, "abcdef")
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
                float(str(found[but(name, kind="p")])))
            for n in ("1", "3", "all") for name in (key("eer", recordings=n),)
        }  # fmt: skip
        attacks = attack({"eer": [0.45, 0.4, 0.5], "times": 10})
        leaks += judge(attacks, chosen=chosen).level < Level.UNJUDGED
        alone += chosen["1"][0].high < 0.5
    assert least <= leaks <= most
    assert alone > 10


def test_an_attacker_who_learnt_pseudo_voices_was_no_evidence_but_was_shown_as_such() -> None:
    """attacker.json tells the EER on protected people that they did not learn from."""
    figures = [bare(), *(figure("b2", who, 0.49, 0.47, 0.52) for who in ("ignorant", "aligned"))]
    where = {"system": "b2", "attacker": "aligned", "evaluator": "e", "split": "x_f"}
    record = {"where": where, "held_out_eer": 0.49}
    deaf, hears = (
        results(figures, run={"attacks": [record | {"held_out_eer_ci": ends}]})
        for ends in ([0.47, 0.51], [0.30, 0.36])
    )
    assert [a.controlled for a in select.attacks(deaf, "b2", "x_f")] == [False, False]
    assert [a.controlled for a in select.attacks(hears, "b2", "x_f")] == [False, True]
    (said,) = [text for text in warned(deaf) if text.startswith("Not shown to hear")]
    assert "aligned by e (EER 49.0 [47.0, 51.0] % on people held out) and ignorant by e." in said


def test_a_learner_without_a_control_passed_by_a_strong_encoder() -> None:
    """Too few people were held out, or attacker.json was lost, and pyannote stood in for it."""
    by, who = {"evaluator": "pyannote/plda"}, "semi_informed_backend"
    figures = [bare(**by), *(figure("b2", a, 0.49, 0.47, 0.52, **by) for a in ("ignorant", who))]
    where = {"system": "b2", "attacker": who, "split": "x_f", **by}
    record = {"where": where, "held_out_eer": None}
    for records in ([record], []):
        found = results(figures, run={"attacks": records})
        assert [a.controlled for a in select.attacks(found, "b2", "x_f")] == [False, False]
        assert "semi-informed (back end) by pyannote/plda" in warned(found)[0]


def test_an_attacker_who_fails_a_control_is_no_evidence_and_a_control_no_system() -> None:
    """By an evaluator that is strong without protection, but finds nobody behind one voice."""

    def lazy(system: str, *eer: float) -> list[Figure]:
        return [figure(system, "lazy_informed", *eer, evaluator="pyannote/cosine")]

    rows = [bare(0.01, 0.02, evaluator="pyannote/cosine"), *lazy("a", 0.49, 0.45, 0.53)]
    found, missed = lazy("bn_perm", 0.05, 0.0, 0.1), lazy("bn_perm", 0.2, 0.1, 0.3)
    dosed, faint = lazy("bn_leak_40", 0.2, 0.1, 0.3), lazy("bn_leak_40", 0.45, 0.4, 0.52)

    def heard(more: list[Figure]) -> bool:
        return select.attacks(results([*rows, *more]), "a", "x_f")[0].controlled

    level = [replace(f, system="bn_leak_level") for f in dosed]  # says nothing of voices
    ways = ([], found, faint, level, dosed, [*dosed, *found], [*dosed, *missed])
    assert [heard(more) for more in ways] == [False, False, False, False, True, True, False]
    unbounded = [replace(f, low="", high="") for f in missed]
    assert not heard([*dosed, *unbounded])  # a control of 20 % was passed without its interval
    assert list(verdicts([*rows, *found])) == ["a"]


def test_words_of_one_group_stood_for_all() -> None:
    of_women = figure("b2", "utility", 0.1, 0.0, 0.2, metric="wer", evaluator="asr")
    figures = [bare(), figure("b2", "ignorant", 0.3, 0.2, 0.4), of_women]
    assert verdict_table(figures).rows[0][-1] == "10.0"
    of_men = figure("b2", "utility", 0.3, 0.0, 0.4, metric="wer", evaluator="asr", gender="m")
    assert "WER by asr (%)" not in verdict_table([*figures, of_men]).header
    men = figure("b2", "ignorant", 0.3, 0.2, 0.4, gender="m")  # whose words were lost
    assert "WER by asr (%)" not in verdict_table([*figures, men]).header


def test_what_now_asks_for_what_was_not_run() -> None:
    weak = [bare(0.04, 0.2), figure("b2", "ignorant", 0.3, 0.2, 0.4), targets(8)]
    told = {step.command for step in what_now(weak)}
    assert './run.sh --evaluators "e pyannote/cosine"' in told
    assert './run.sh --attackers "ignorant semi_informed_backend semi_informed_finetuned"' in told
    assert {"./run.sh --trainings 3", "./run.sh --corpus FOLDER"} <= told
    every = [*weak, figure("b2", "semi_informed", 0.3, 0.2, 0.4), targets(12)]
    every = [*every, bare(0.01, 0.02, evaluator="pyannote/plda")]
    run = {"trainings": {"e_again/plda": "e/plda"}}
    assert findings.what_now(results([f for f in every if f.value != "8"], run=run)) == []
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
