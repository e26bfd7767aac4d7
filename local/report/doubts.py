# SPDX-License-Identifier: Apache-2.0
"""What must not be read as privacy: weak evaluators, and systems that the attacker sees through."""

from collections.abc import Sequence

from local.report import evidence
from local.report.results import Figure
from local.report.verdict import NO_RISE, WEAK
from local.report.words import attacker, number, parse, percent

TITLE = "Warnings"


def doubts(figures: Sequence[Figure]) -> list[str]:
    """Sentences: evaluators that may err on unprotected speech, then attackers whose EER is shown
    to rise hardly above the same evaluator's on unprotected speech."""
    said = []
    for f in evidence.weak(figures):
        high = f"up to {percent(parse(f.high))}" if f.high else "no interval"
        said.append(
            f"Evaluator {f.evaluator} on {f.split}: EER {percent(parse(f.value))} without "
            f"protection ({high}), where {percent(WEAK, 0)} is the most. It is not known to "
            "recognise the speakers' own voices: its figures are no evidence of privacy."
        )
    index = evidence.Index(figures)
    for system, split in index.subjects():
        for a in index.attacks(system, split):
            if a.rise.high <= NO_RISE:
                said.append(
                    f"{system} on {split} by {a.evaluator}: protected speech is no better than "
                    f"unprotected: the {attacker(a.attacker)} attacker has an EER of "
                    f"{percent(a.eer.value)}, where it is {percent(a.bare.value)} without "
                    f"protection (rise: {number(100 * a.rise.value, 1)} points, at the most "
                    f"{number(100 * a.rise.high, 1)})."
                )
    return said
