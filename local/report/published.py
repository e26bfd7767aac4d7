# SPDX-License-Identifier: Apache-2.0
"""What the papers print: docs/published/<paper>.tsv, one figure a row, as its table has it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from local.report.results import read_table
from utils.cli import UserError

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "published"
CITED = {
    "000": "Noé et al. 2020",
    "001": "Champion et al. 2021",
    "002": "Noé et al. 2022",
    "003": "Seo et al. 2025",
    "004": "Liu et al. 2025",
}  # as pages cite them, by the name of the file
_OF_ONE = {"%": 100, "dB": 1, "bit": 1, "": 1}


@dataclass(frozen=True)
class Published:
    """A figure of a paper. system, set, evaluator, value: as printed; ours: the system here that is
    like it; attacker, metric: the words of metrics.csv; spread: what stands behind ±.
    """

    table: str
    system: str
    ours: str
    set: str
    attacker: str
    evaluator: str
    metric: str
    value: str
    spread: str
    unit: str

    @property
    def number(self) -> float:
        """The value as metrics.csv would have it: fractions, dB, bit."""
        return float(self.value) / _OF_ONE[self.unit]


@cache
def published(paper: str) -> Sequence[Published]:
    """All figures of a paper (000 to 004), in the order of its tables; UserError if unknown."""
    path = FOLDER / f"{paper}.tsv"
    if not path.is_file():
        known = " ".join(sorted(p.stem for p in FOLDER.glob("00*.tsv")))
        raise UserError(f"{path}: no published figures of {paper}; known: {known}")
    return tuple(read_table(path, Published, delimiter="\t"))


def of_table(paper: str, table: str) -> list[Published]:
    """The figures of one table; UserError if the paper has none of that name."""
    if not (found := [row for row in published(paper) if row.table == table]):
        names = ", ".join(dict.fromkeys(row.table for row in published(paper)))
        raise UserError(f"{FOLDER / paper}.tsv: no table {table}; known: {names}")
    return found
