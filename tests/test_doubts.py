# SPDX-License-Identifier: Apache-2.0
"""Warnings of the report: made-up figures."""

from dataclasses import fields, replace

from local.report.doubts import doubts
from local.report.markdown import render
from local.report.results import Figure

BLANK = Figure(**{field.name: "" for field in fields(Figure)})


def eer(system: str, attacker: str, evaluator: str, value: float, low: float) -> Figure:
    where = {"system": system, "attacker": attacker, "evaluator": evaluator, "split": "x_f"}
    return replace(BLANK, **where, metric="eer", value=str(value), low=str(low), high="0.5")


def test_a_weak_evaluator_and_a_reversible_shift_looked_best() -> None:
    figures = [
        eer("original", "unprotected", "weak", 0.227, 0.2),
        eer("original", "unprotected", "good", 0.05, 0.04),
        eer("shift", "ignorant", "good", 0.4, 0.3),
        eer("shift", "aligned", "good", 0.05, 0.04),
        eer("near", "aligned", "good", 0.08, 0.049),
        eer("b2", "aligned", "good", 0.12, 0.08),
    ]
    weak, shift, near = doubts(figures)
    assert weak.startswith("Evaluator weak on x_f: EER 22.7 % without") and "no evidence" in weak
    assert shift.startswith("shift on x_f by good: protected speech is no better than unprotected")
    assert (
        "the aligned attacker has an EER of 5.0 %" in shift
        and "without protection it is 5.0 %" in shift
    )
    assert near.startswith("near on x_f by good: protected speech may be no better than")
    assert f"- 🔴 **{weak}**" in render(figures, "x", {})
    assert not doubts([figures[1], figures[5]])
