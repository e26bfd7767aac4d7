# SPDX-License-Identifier: Apache-2.0
"""What must not be read as privacy: weak evaluators, and systems that the attacker sees through."""

import math
from collections.abc import Iterable

from local.report.results import Figure
from local.report.strongest import strongest
from local.report.words import attacker, parse, percent

TITLE = "Warnings"
WEAK = 0.05  # EER of unprotected speech above which an evaluator is no evidence


def doubts(figures: Iterable[Figure]) -> list[str]:
    """Sentences: evaluators that err on unprotected speech, then systems that protect no better.

    A system is no better where the EER of its strongest attacker by an evaluator, or the lower end
    of its interval, is not above the same evaluator's EER of unprotected speech.
    """
    figures = list(figures)
    before = {
        (f.split, f.evaluator): parse(f.value)
        for f in figures
        if (f.attacker, f.metric) == ("unprotected", "eer") and math.isfinite(parse(f.value))
    }
    said = [
        f"Evaluator {evaluator} on {split}: EER {percent(eer)} without protection, more than "
        f"{percent(WEAK)}. It hardly knows the speakers' own voices: its figures are no evidence "
        "of privacy."
        for (split, evaluator), eer in before.items()
        if eer > WEAK
    ]
    for evaluator in dict.fromkeys(name for _, name in before):
        for s in strongest(f for f in figures if f.evaluator == evaluator):
            bare = before.get((s.split, evaluator), math.nan)
            if s.eer is None or math.isnan(bare):
                continue
            eer, low = parse(s.eer.value), parse(s.eer.low)
            if eer <= bare or low <= bare:
                how = "is" if eer <= bare else "may be"
                said.append(
                    f"{s.system} on {s.split} by {evaluator}: protected speech {how} no better "
                    f"than unprotected: the {attacker(s.eer.attacker)} attacker has an EER of "
                    f"{percent(eer)} (its interval begins at {percent(low)}); without protection "
                    f"it is {percent(bare)}."
                )
    return said
