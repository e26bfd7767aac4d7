# SPDX-License-Identifier: Apache-2.0
"""The first screen of the report: verdicts of made-up figures."""

from dataclasses import fields, replace

import pytest

from local.report.markdown import render
from local.report.results import Figure, SpeakerFigure
from local.report.verdict import (
    HIDDEN,
    NO_EVIDENCE,
    NOTHING_HIDDEN,
    PART,
    people,
    too_weak,
    trust,
    verdict_table,
    verdicts,
)  # fmt: skip

BLANK = Figure(**{field.name: "" for field in fields(Figure)})


def figure(
    system: str, who: str, value: float, low: float, high: float, *, gender: str = "f",
    evaluator: str = "e", metric: str = "eer",
) -> Figure:  # fmt: skip
    return replace(
        BLANK, system=system, attacker=who, evaluator=evaluator, split=f"x_{gender}", gender=gender,
        metric=metric, value=str(value), low=str(low), high=str(high), n_speakers="13",
    )  # fmt: skip


def bare(eer: float = 0.02, gender: str = "f") -> Figure:
    return figure("original", "unprotected", eer, 0.0, 0.1, gender=gender)


@pytest.mark.parametrize(
    ("before", "eer", "low", "high", "said"),
    [
        (0.02, 0.30, 0.20, 0.40, PART),
        (0.02, 0.43, 0.32, 0.51, HIDDEN),
        (0.02, 0.25, 0.05, 0.60, PART),  # few people: a wide interval is no proof
        (0.02, 0.55, 0.52, 0.60, HIDDEN),  # above chance: the attacker knows nothing, too
        (0.02, 0.05, 0.02, 0.09, NOTHING_HIDDEN),  # the interval reaches what it was before
        (0.02, 0.01, 0.005, 0.02, NOTHING_HIDDEN),
        (0.20, 0.45, 0.40, 0.55, NO_EVIDENCE),
        (0.20, 0.20, 0.15, 0.25, NOTHING_HIDDEN),  # so much even a weak attacker shows
    ],
)
def test_verdicts(before: float, eer: float, low: float, high: float, said: str) -> None:
    found = verdicts([bare(before), figure("b2", "aligned", eer, low, high)])
    assert [v.said for v in found["b2"]] == [said]


def test_the_strongest_of_all_attackers_decides_for_each_group() -> None:
    figures = [
        bare(), bare(gender="m"),
        figure("b2", "ignorant", 0.45, 0.4, 0.52),
        figure("b2", "aligned", 0.30, 0.2, 0.35, evaluator="other"),
        figure("b2", "ignorant", 0.03, 0.01, 0.06, gender="m"),
        figure("b2", "reid_ignorant", 0.9, 0.8, 1.0, metric="reid_speaker_top_1"),
        figure("b2", "reid_aligned", 0.95, 0.8, 1.0, metric="reid_speaker_top_1"),
        figure("b2", "utility", 0.1, 0.0, 0.2, metric="wer", evaluator="asr", gender=""),
        figure("original", "utility", 0.04, 0.0, 0.2, metric="wer", evaluator="asr", gender=""),
    ]  # fmt: skip
    assert verdict_table(figures).rows == [
        ["b2", f"{NOTHING_HIDDEN} (men); hides from ignorant, not from aligned (women)",
         "women 30.0 [20.0, 35.0], unprotected 2.0; men 3.0 [1.0, 6.0], unprotected 2.0",
         "12 of 13 women", "10.0 (was 4.0)"]
    ]  # fmt: skip
    assert people(figures) == "13 women and 13 men"
    said = trust(figures)
    assert said[0].endswith("the best evaluator has an EER of 2.0 % (e) and 2.0 % (e).")
    assert "lazy-informed, semi-informed, white-box" in said[1]
    assert said[2].count("not measured, as there was one training") == 1
    text = render(figures, "x", {})
    assert text.index("## In short") < text.index("## Strongest attackers")


def test_a_weak_evaluator_is_warned_of_before_all_else() -> None:
    figures = [bare(0.2), bare(0.04, "m")]
    assert "the lowest EER is 20.0 % for women, more than 5 %" in too_weak(figures)
    assert trust(figures)[0] == too_weak(figures)
    assert not too_weak([bare(0.05), bare(0.04, "m")])


def test_named_people_stand_beside_guessing_and_unprotected() -> None:
    def reid(system: str, metric: str, value: float) -> Figure:
        who = "reid_aligned" if system == "b2" else "reid_unprotected"
        found = figure(system, who, value, 0, 1, metric=metric)
        return replace(found, n_speakers="20", n_segments="180")

    figures = [
        bare(), figure("b2", "aligned", 0.3, 0.2, 0.4), reid("b2", "reid_speaker_top_1", 0.6),
        reid("b2", "chance_reid_speaker_top_1", 0.05), reid("original", "reid_speaker_top_1", 1.0),
    ]  # fmt: skip
    table = verdict_table(figures)
    assert table.header[-1] == "people named from 9 recordings each"
    assert table.rows[0][-1] == "12 of 20 women (unprotected 20, guessing 1)"


def test_the_worst_person_is_that_of_all_evaluators() -> None:
    def linkability(name: str, evaluator: str, value: str) -> SpeakerFigure:
        where = ("c", "x_f", "f", "b2", "aligned", evaluator, "OA")
        return SpeakerFigure(*where, name, "linkability", value, "digest")

    speakers = [
        linkability("a", "e", "0.4"), linkability("b", "other", "0.9"), linkability("c", "e", ""),
    ]  # fmt: skip
    table = verdict_table([bare(), figure("b2", "aligned", 0.3, 0.2, 0.4)], speakers)
    assert table.rows[0][-1] == "b (linkability 0.90)"


def test_trainings_of_one_evaluator_give_the_spread() -> None:
    seeds = ("e/plda", "e_seed1/plda", "e_seed2/plda", "other/plda")
    figures = [
        figure("b2", "aligned", eer, 0.0, 0.5, evaluator=name)
        for name, eer in zip(seeds, (0.10, 0.18, 0.14, 0.4), strict=True)
    ]
    assert trust([bare(), *figures])[-1].startswith(
        "3 trainings of one evaluator differ by up to 8.0 points of EER"
    )


def test_two_people_were_enough_for_a_reassuring_verdict() -> None:
    """Their interval over people was [50, 50]; that nothing is hidden can be said of two, too."""
    few = [replace(f, n_speakers="2") for f in (bare(), figure("b2", "ignorant", 0.5, 0.5, 0.5))]
    assert [v.said for v in verdicts(few)["b2"]] == [NO_EVIDENCE]
    assert any(said.startswith("Only 2 women were attacked.") for said in trust(few))
    open_ = replace(figure("b2", "aligned", 0.02, 0.0, 0.1), n_speakers="2")
    assert [v.said for v in verdicts([few[0], open_])["b2"]] == [NOTHING_HIDDEN]
    assert not any(said.startswith("Only") for said in trust([bare()]))


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


def test_without_any_attack_there_is_no_verdict() -> None:
    assert not verdict_table([bare()]).rows
    assert not verdict_table([figure("b2", "aligned", float("nan"), 0, 1)]).rows


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
