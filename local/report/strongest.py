# SPDX-License-Identifier: Apache-2.0
"""The strongest attacker of each system: a safeguard is as good as its best attacker."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from local.metrics.detection import folded
from local.report.results import Figure
from local.report.tables import MISSING, UNDEFINED, USE_COLUMNS, Column, Table, cell
from local.report.words import UTILITY, UTILITY_METRICS, attacker, parse

TITLE = "Strongest attackers"
READING = (
    "Of all attackers and evaluators that were run: the one with the lowest EER (80 % counts as "
    "20 %: the attacker turns the scores round), and the one with the highest D_ECE (the same, or "
    "another). Best of several on the same trials, so chance "
    "favours it a little; each one's own figures are in the tables. Attackers that were not run "
    "may be stronger. "
    "Of use is what is left beside: WER, words that the recogniser named gets wrong, or UAR, "
    "emotions that it gets right, or MOS, an estimated opinion score from 1 to 5; in brackets "
    "without protection."
)
EER = Column("EER of the strongest attacker (%)", "eer", 100, 1)
D_ECE = Column("highest D_ECE (bit)", "d_ece")
HEADER = [
    "split", "system", EER.title, "attacker", "evaluator",
    D_ECE.title, "attacker", "evaluator", "EER unprotected (%)", "compared", "speakers",
]  # fmt: skip


@dataclass(frozen=True)
class Strongest:
    """On a system and split. None where nothing is defined; eers: how many were compared."""

    split: str
    system: str
    eer: Figure | None
    d_ece: Figure | None
    eers: int


def strongest(figures: Iterable[Figure]) -> list[Strongest]:
    """For each protected system and split, by split; of equal ones the first in the table."""
    attacks = [
        f
        for f in figures
        if f.metric in ("eer", "d_ece") and f.attacker != "unprotected" and f.system != "original"
    ]
    found = []
    for split in sorted({f.split for f in attacks}):
        for system in dict.fromkeys(f.system for f in attacks if f.split == split):
            own = [f for f in attacks if (f.split, f.system) == (split, system)]
            eers = [f for f in own if f.metric == "eer"]
            found.append(
                Strongest(
                    split,
                    system,
                    _best(eers, lambda eer: -folded(eer)),
                    _best([f for f in own if f.metric == "d_ece"], float),
                    len(eers),
                )
            )
    return found


def unprotected(figures: Iterable[Figure]) -> dict[tuple[str, str], Figure]:
    """(split, evaluator) -> EER of unprotected speech, where it is defined."""
    return {
        (f.split, f.evaluator): f
        for f in figures
        if (f.attacker, f.metric) == ("unprotected", "eer") and math.isfinite(parse(f.value))
    }


def _best(figures: list[Figure], rank: Callable[[float], float]) -> Figure | None:
    defined = [f for f in figures if math.isfinite(parse(f.value))]
    return max(defined, key=lambda f: rank(parse(f.value)), default=None)


def strongest_table(figures: Iterable[Figure]) -> Table:
    """A row a system and split, with what is left of use by each recogniser."""
    figures = list(figures)
    useful = {
        (f.metric, f.evaluator, f.split, f.system): f
        for f in figures
        if f.attacker == UTILITY and f.metric in USE_COLUMNS
    }
    measured = list(dict.fromkeys(key[:2] for key in useful))
    bare = unprotected(figures)
    rows = []
    for s in strongest(figures):
        before = bare.get((s.split, s.eer.evaluator)) if s.eer else None
        speakers = s.eer.n_speakers if s.eer else ""
        rows.append(
            [s.split, s.system, *_named(s.eer, EER), *_named(s.d_ece, D_ECE),
             MISSING if before is None else cell(before, EER), str(s.eers), speakers,
             *(_use(useful, by, s.split, s.system) for by in measured)]
        )  # fmt: skip
    return Table(
        [*HEADER, *(UTILITY_METRICS[metric].titled(metric, name) for metric, name in measured)],
        rows,
    )


def _use(
    useful: dict[tuple[str, str, str, str], Figure], by: tuple[str, str], split: str, system: str
) -> str:
    """Of a system and, in brackets, of the original."""
    column = USE_COLUMNS[by[0]]
    before = useful.get((*by, split, "original"))
    told = cell(useful.get((*by, split, system)), column)
    return told if before is None else f"{told} ({cell(before, column)})"


def _named(figure: Figure | None, column: Column) -> list[str]:
    """Value with interval, attacker, evaluator."""
    if figure is None:
        return [UNDEFINED, "-", "-"]
    return [cell(figure, column), attacker(figure.attacker), figure.evaluator]
