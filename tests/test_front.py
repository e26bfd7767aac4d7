"""Privacy against utility: Pareto fronts known by hand, their pictures and words."""

from typing import Any

import pytest

from local.make_report import main as make_report
from local.report import select
from local.report.pictures import trade_off
from local.report.select import Trade
from local.report.tables import utility_table
from tests.browser import opened
from tests.report_rows import Figure, figure, frame, write_table


def trades(rows: list[Any]) -> list[Trade]:
    return select.trades(frame(rows))


def row(
    system: str, who: str, metric: str, value: float | str, width: float = 0.0, split: str = "t_f"
) -> Figure:
    """A figure; `who` is <attacker>.<evaluator>."""
    attacker, _, evaluator = who.partition(".")
    ends = (value - width, value + width) if isinstance(value, float) and width else ()
    return figure(system, attacker, metric, value, *ends, evaluator=evaluator, split=split)


# EER of the strongest attacker (a second one is worse for all but b), then UAR and WER.
MADE = {"a": (0.10, 0.90, 0.05), "b": (0.30, 0.60, 0.20), "c": (0.30, 0.50, 0.10),
        "d": (0.20, 0.55, 0.30), "e": (0.04, 0.65, 0.40)}  # fmt: skip


def figures(width: float = 0.01) -> list[Figure]:
    found = [row("original", "unprotected.e/cosine", "eer", 0.08, width),
             row("original", "unprotected.e/plda", "eer", 0.05, width),
             row("original", "utility.ser", "uar", 0.95, width),
             row("original", "utility.asr", "wer", 0.03, width)]  # fmt: skip
    for system, (eer, uar, wer) in MADE.items():
        weak = 0.45 if system != "b" else eer
        found += [
            row(system, "ignorant.e/cosine", "eer", weak, width),
            row(system, "lazy_informed.e/plda", "eer", eer if system != "b" else 0.4, width),
            row(system, "utility.ser", "uar", uar, width),
            row(system, "utility.asr", "wer", wer, width),
        ]
    return found


def of(found: list[Trade], metric: str) -> Trade:
    (one,) = (t for t in found if t.metric == metric)
    return one


def test_the_front_by_hand():
    found = trades(figures())
    assert [(t.metric, t.recogniser, t.split) for t in found] == [
        ("wer", "asr", "t_f"), ("uar", "ser", "t_f")
    ]  # fmt: skip
    uar, wer = of(found, "uar"), of(found, "wer")
    # Recall: b is above d and (at equal privacy) above c, a is above e. Errors: c takes b's place.
    assert [p.system for p in uar.front()] == ["a", "b"]
    assert [p.system for p in wer.front()] == ["a", "c"]
    assert {p.system: p.privacy.value for p in uar.points} == {s: m[0] for s, m in MADE.items()}
    assert uar.unprotected is not None and uar.unprotected.privacy.value == 0.05
    text = uar.finding()
    assert "a (EER 10.0 %, UAR 90.0 %); b (EER 30.0 %, UAR 60.0 %)." in text
    assert "d (EER 20.0 %, UAR 55.0 %), behind b;" in text
    assert text.endswith(
        "Unprotected speech, by the evaluator with the lowest EER above: EER 5.0 %, UAR 95.0 %. "
        "Better in neither than unprotected speech: e."
    )


def test_the_recall_of_a_guesser_is_nobodys_utility():
    """Where emotions were recognised, each system had the chance level for its UAR: on the first
    screen, in the table of utility (beside its own) and in the trade-off."""
    guessed = [row(s, "utility.ser", "uar/kind=chance", 0.25) for s in (*MADE, "original")]
    for made in (trades, uses, lambda rows: utility_table(frame(rows))):
        assert made([*figures(), *guessed]) == made(figures())


def uses(rows: list[Any]) -> dict[str, float]:
    found = select.uses(frame(rows))["uar", "ser"]
    return {system: own.value for system, own in found.items()}


def test_intervals_that_overlap_are_told():
    def said(width: float) -> str:
        return of(trades(figures(width)), "uar").finding()

    assert "d (EER 20.0 %, UAR 55.0 %), behind b;" in said(0.001)
    assert "UAR 55.0 %), behind b (intervals of UAR overlap);" in said(0.03)
    assert "UAR 55.0 %), behind b (intervals of EER and UAR overlap);" in said(0.2)
    assert "UAR 55.0 %), behind b (intervals not known);" in said(0)
    # Of equal EER the intervals also overlap.
    assert "c (EER 30.0 %, UAR 50.0 %), behind b (intervals of EER overlap);" in said(0.001)


def test_equal_systems_are_both_on_the_front_and_order_does_not_count():
    twin = [row("z", "ignorant.e/plda", "eer", 0.3), row("z", "utility.ser", "uar", 0.6)]
    found = trades([*reversed(figures()), *twin])
    assert [p.system for p in of(found, "uar").front()] == ["a", "b", "z"]


def test_what_is_missing_is_named():
    more = [row("noeer", "utility.ser", "uar", 0.7),
            row("nouar", "ignorant.e/plda", "eer", 0.7),
            row("undefined", "ignorant.e/plda", "eer", ""),
            row("undefined", "utility.ser", "uar", 0.7),
            row("a", "utility.ser", "uar", 0.7, split="t")]  # fmt: skip
    found = of(trades([*figures(), *more]), "uar")
    assert list(found.left_out) == [
        "nouar (UAR not measured)", "undefined (EER not defined)", "noeer (EER not measured)"
    ]  # fmt: skip
    assert found.finding().endswith(f"Not drawn: {'; '.join(found.left_out)}.")
    only = [f for f in figures() if f.metric != "uar" or f.system != "original"]
    assert of(trades(only), "uar").unprotected is None


def test_unprotected_speech_was_private_where_its_scores_are_turned_round():
    """Of an evaluator that hardly hears, 60 % without protection is 40 %, as behind a system."""
    level = [row("original", "unprotected.level", "eer", 0.6, 0.05),
             row("a", "ignorant.level", "eer", 0.02, 0.01)]  # fmt: skip
    bare = of(trades([*figures(), *level]), "wer").unprotected
    assert bare is not None and bare.privacy.value == pytest.approx(0.4)


def test_a_front_is_of_one_recogniser():
    other = {"original": 0.9, "a": 0.95, "d": 0.92}
    more = [row(system, "utility.other", "wer", wer) for system, wer in other.items()]
    first, second = (t for t in trades([*figures(), *more]) if t.metric == "wer")
    assert first.finding() == of(trades(figures()), "wer").finding()
    assert second.finding().startswith("t_f, WER by other: on the Pareto front")
    assert [p.system for p in second.front()] == ["d"]
    assert second.unprotected is not None and second.unprotected.utility.value == 0.9
    assert list(second.left_out) == [f"{s} (WER not measured)" for s in "bce"]


def test_the_picture_marks_the_front():
    found = [trade_off(trade, list(MADE)) for trade in trades(figures())]
    drawn = {one.name: one.canvas for one in found if one}
    for name, front in (("privacy_uar_ser_t-f", "ab"), ("privacy_wer_asr_t-f", "ac")):
        axes = drawn[name].axes[0]
        (ring,) = (one for one in axes.lines if one.get_label() == "on the Pareto front")
        assert list(ring.get_xdata()) == [100 * MADE[s][0] for s in front]
        assert axes.yaxis_inverted() == ("wer" in name)
        labels = axes.get_legend_handles_labels()[1]
        assert {*labels} == {*MADE, "unprotected speech", "on the Pareto front"}


@pytest.mark.slow
def test_the_page_in_a_browser(tmp_path, browser):
    write_table(tmp_path / "results/metrics.csv", Figure, figures(0.03))
    assert make_report([str(tmp_path / "results"), str(tmp_path)]) == 0
    assert "Pareto front" in (tmp_path / "RESULTS.md").read_text()
    with opened(browser, tmp_path / "report.html") as (page, complaints):
        pictures = page.locator(".specialists figure[id^=picture-privacy] svg[role=img]")
        assert pictures.count() == 2
        assert "on the Pareto front" in pictures.nth(0).get_attribute("aria-label")
        assert complaints == []
