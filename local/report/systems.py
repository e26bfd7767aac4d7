# SPDX-License-Identifier: Apache-2.0
"""What systems say of themselves, and what of a conversion is the doing of its vocoder alone."""

import math
from collections.abc import Mapping
from typing import Any

from local.report.load import Results
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


def vocoder_share(results: Results, evaluator: str, split: str) -> list[str]:
    """How much of each conversion's rise of the ignorant EER copy synthesis has too, in words.

    (EER_copy - EER_OO) / (EER_system - EER_OO), where there is a rise and both have the
    same vocoder (copy synthesis: WORLD).
    """
    before = _eer(results, evaluator, split, "original", "unprotected")
    said = []
    for copy in results.systems():
        own = _settings(results, copy)
        eer = _eer(results, evaluator, split, copy, _ATTACK)
        if own.get("anonymiser") != COPY or math.isnan(before) or math.isnan(eer):
            continue
        for system in results.systems():
            other = _settings(results, system)
            after = _eer(results, evaluator, split, system, _ATTACK)
            if other.get("anonymiser") not in CONVERSIONS or math.isnan(after):
                continue
            if after <= before or _vocoder(own) != _vocoder(other):
                continue
            said.append(_share(split, copy, system, (before, eer, after)))
    return said


def _vocoder(settings: Mapping[str, Any]) -> str:
    """What turns features into speech: WORLD where the settings do not name another."""
    name = settings.get("features" if settings.get("anonymiser") == "knn_vc" else "synthesiser")
    return name if isinstance(name, str) else "world"


def _eer(results: Results, evaluator: str, split: str, system: str, attack: str) -> float:
    value = results.value(evaluator, split, system, attack, "eer")
    return value.value if value is not None and math.isfinite(value.value) else math.nan


def _share(split: str, copy: str, system: str, eers: tuple[float, float, float]) -> str:
    before, copied, after = eers
    share = (copied - before) / (after - before)
    start = (
        f"{system} on {split}: the ignorant attacker's EER rises by "
        f"{number(100 * (after - before), 1)} points (from {percent(before)} to {percent(after)}); "
    )
    with_copy = f"with {copy}, which analyses and resynthesises without any conversion, it is "
    aside = f"({with_copy}{percent(copied)}; point estimates, no interval is given)"
    if share <= 0:
        return f"{start}none of the rise is there without conversion {aside}."
    much = "all" if share >= 1 else percent(share, 0)
    return f"{start}{much} of the rise is also there without any conversion {aside}."
