# SPDX-License-Identifier: Apache-2.0
"""What must not be read as privacy: weak evaluators, and systems that the attacker sees through."""

from collections.abc import Iterable

from local.report.results import Figure
from local.report.strongest import no_better, strongest, unprotected
from local.report.words import attacker, parse, percent

TITLE = "Warnings"
WEAK = 0.05  # EER of unprotected speech above which an evaluator is no evidence


def doubts(figures: Iterable[Figure]) -> list[str]:
    """Sentences: evaluators that err on unprotected speech, then systems that protect no better.

    A system is no better where the EER of its strongest attacker by an evaluator, or the lower end
    of its interval, is not above the same evaluator's EER of unprotected speech.
    """
    figures = list(figures)
    before = unprotected(figures)
    said = [
        f"Evaluator {evaluator} on {split}: EER {percent(parse(eer.value))} without protection, "
        f"more than {percent(WEAK)}. It hardly knows the speakers' own voices: its figures are no "
        "evidence of privacy."
        for (split, evaluator), eer in before.items()
        if parse(eer.value) > WEAK
    ]
    for evaluator in dict.fromkeys(name for _, name in before):
        for s in strongest(f for f in figures if f.evaluator == evaluator):
            bare = before.get((s.split, evaluator))
            if s.eer is not None and bare is not None and no_better(s.eer, bare):
                eer, low, was = (parse(text) for text in (s.eer.value, s.eer.low, bare.value))
                how = "is" if eer <= was else "may be"
                said.append(
                    f"{s.system} on {s.split} by {evaluator}: protected speech {how} no better "
                    f"than unprotected: the {attacker(s.eer.attacker)} attacker has an EER of "
                    f"{percent(eer)} (its interval begins at {percent(low)}); without protection "
                    f"it is {percent(was)}."
                )
    return said
