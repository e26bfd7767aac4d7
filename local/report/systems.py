# SPDX-License-Identifier: Apache-2.0
"""What systems say of themselves, and what of a conversion is the doing of its vocoder alone."""

import math
from collections.abc import Mapping
from typing import Any

from local.report.load import Results, Value
from local.report.tables import Table
from local.report.words import number, percent

COPY = "copy_synthesis"
CONVERSIONS = ("voice_conversion", "knn_vc")  # anonymisers that resynthesise another voice
_ATTACK = "ignorant"


def _settings(results: Results, system: str) -> Mapping[str, Any]:
    """conf.json of a system as the run recorded it; empty where it did not."""
    found = results.run.get("systems")
    own = found.get(system) if isinstance(found, dict) else None
    return own if isinstance(own, dict) else {}


def notes(results: Results) -> list[tuple[str, str]]:
    """Systems with the `note` of their settings and the remarks of their runs, if any."""
    found: list[tuple[str, str]] = []
    for system in results.systems():
        own = _settings(results, system)
        remarks = own.get("remarks")
        told = [own.get("note")]
        if isinstance(remarks, list):
            told += [f"Of this run: {text}." for text in remarks]
        found += [(system, " ".join(text.split())) for text in told if isinstance(text, str)]
    return found


VOCODER_TITLE = "The vocoder's own part"
VOCODER_READING = (
    "By how much the ignorant attacker's EER rises over unprotected speech, and how much of that "
    "rise copy synthesis has, which analyses and resynthesises without any conversion. Systems "
    "with the vocoder of copy synthesis and a rise only. The shares are point estimates, no "
    "interval is given."
)
VOCODER_HEADER = [
    "system", "split", "EER unprotected (%)", "EER (%)", "rise (points)", "copy synthesis",
    "its EER (%)", "of the rise",
]  # fmt: skip


def vocoder_table(results: Results, evaluator: str) -> Table:
    """How much of each conversion's rise of the ignorant EER copy synthesis has too, by split.

    (EER_copy - EER_OO) / (EER_system - EER_OO), where there is a rise and both have the
    same vocoder (copy synthesis: WORLD).
    """
    rows = []
    for split in results.splits(evaluator):
        before = _eer(results, evaluator, split, "original", "unprotected")
        for copy in results.systems():
            own = _settings(results, copy)
            copied = _eer(results, evaluator, split, copy, _ATTACK)
            if own.get("anonymiser") != COPY or before is None or copied is None:
                continue
            for system in results.systems():
                other = _settings(results, system)
                after = _eer(results, evaluator, split, system, _ATTACK)
                if other.get("anonymiser") not in CONVERSIONS or after is None:
                    continue
                if after.value <= before.value or _vocoder(own) != _vocoder(other):
                    continue
                rise = after.value - before.value
                rows.append(
                    [system, split, before.text(100), after.text(100), number(100 * rise, 1), copy,
                     copied.text(100), _share((copied.value - before.value) / rise)]
                )  # fmt: skip
    return Table(VOCODER_HEADER, rows)


def _vocoder(settings: Mapping[str, Any]) -> str:
    """What turns features into speech: WORLD where the settings do not name another."""
    if settings.get("fine"):  # a copy by frames that no conversion on WORLD alone has
        return "fine"
    name = settings.get("features" if settings.get("anonymiser") == "knn_vc" else "synthesiser")
    return name if isinstance(name, str) else "world"


def _eer(results: Results, evaluator: str, split: str, system: str, attack: str) -> Value | None:
    """None where it is not defined, too."""
    value = results.value(evaluator, split, system, attack, "eer")
    return value if value is not None and math.isfinite(value.value) else None


def _share(share: float) -> str:
    if share <= 0:
        return "none"
    return "all" if share >= 1 else percent(share, 0)
