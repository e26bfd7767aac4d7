# SPDX-License-Identifier: Apache-2.0
"""Who is protected worst: the people whom a good average hides."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from local.report.results import SpeakerFigure
from local.report.words import target_voices

MEASURED = ("linkability", "deid", "g_vd")


@dataclass(frozen=True)
class Speaker:
    """Figures of one speaker under one system; NaN where not measured or not defined.

    linkability: under the attacker that does best on this speaker, `attacker`.
    """

    split: str
    name: str
    linkability: float
    attacker: str
    deid: float
    g_vd: float

    def order(self) -> tuple[float, float, str]:
        """What sorts the worst protected first."""
        link = -1.0 if math.isnan(self.linkability) else self.linkability
        deid = math.inf if math.isnan(self.deid) else self.deid
        return (-link, deid, self.name)


def _number(text: str) -> float:
    return float(text) if text else math.nan


def worst_first(
    rows: Iterable[SpeakerFigure], system: str, evaluator: str, split: str
) -> list[Speaker]:
    """The speakers of a group (`split`) under a system, the worst protected first.

    Order: linkability under the attacker that does best on the speaker, highest first; then DeID,
    lowest first. A speaker without target trials has no linkability and comes after the others.
    """
    found: dict[str, dict[str, tuple[float, str]]] = {}
    group = (system, evaluator, split)
    for row in rows:
        if (row.system, row.evaluator, row.split) != group or row.metric not in MEASURED:
            continue
        if row.attacker.startswith("similarity_"):  # as an informed attacker hears voices
            continue
        value, own = _number(row.value), found.setdefault(row.speaker, {})
        before = own.get(row.metric, (math.nan, ""))[0]
        if math.isnan(before) or value > before:
            own[row.metric] = (value, row.attacker)
    nothing = (math.nan, "")
    speakers = [
        Speaker(
            split,
            name,
            *own.get("linkability", nothing),
            own.get("deid", nothing)[0],
            own.get("g_vd", nothing)[0],
        )
        for name, own in found.items()
    ]
    return sorted(speakers, key=Speaker.order)


def worst_of(rows: Iterable[SpeakerFigure], system: str) -> Speaker | None:
    """The worst-protected person of a system, over all groups and evaluators; None where nobody's
    linkability was measured."""
    own = [row for row in rows if row.system == system]
    places = dict.fromkeys((row.evaluator, row.split) for row in own)
    firsts = [group[0] for place in places if (group := worst_first(own, system, *place))]
    found = [first for first in firsts if math.isfinite(first.linkability)]
    return min(found, key=Speaker.order, default=None)


def groups_of(rows: Sequence[SpeakerFigure]) -> list[tuple[str, str, str]]:
    """(system, evaluator, split) of all protected systems, in the order of the table.

    Several target voices (const_NN) are left out: they are shown together, by target.
    """
    left_out = {"original", *target_voices({r.system for r in rows})}
    found = ((r.system, r.evaluator, r.split) for r in rows if r.system not in left_out)
    return list(dict.fromkeys(found))
