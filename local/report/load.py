# SPDX-License-Identifier: Apache-2.0
"""The folder of results, read for the report: what is missing or broken is named, not fatal."""

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from local.report.results import Figure, Row, SpeakerFigure, Timing, logger, read_table
from local.report.words import UTILITY, number, parse, target_series, target_voices
from utils.cli import UserError
from utils.jsonfiles import Kind, read_json


@dataclass(frozen=True)
class Value:
    """A figure with its 95 % interval; NaN where there is none."""

    value: float
    low: float = math.nan
    high: float = math.nan

    @property
    def bounded(self) -> bool:
        """Whether there is an interval."""
        return not (math.isnan(self.low) or math.isnan(self.high))

    def text(self, scale: float = 1.0, digits: int = 1) -> str:
        """`9.1 [0.0, 28.3]` in units of 1/scale; a dash where it is not defined."""
        if math.isnan(self.value):
            return "–"
        told = number(scale * self.value, digits)
        if not self.bounded:
            return told
        low, high = (number(scale * bound, digits) for bound in (self.low, self.high))
        return f"{told} [{low}, {high}]"

    def apart(self, other: "Value") -> bool:
        """Whether both have an interval, and these do not overlap."""
        return self.bounded and other.bounded and (self.high < other.low or other.high < self.low)


NOTHING = Value(math.nan)


@dataclass
class Results:
    """All that exp/results holds. missing: (what, why) of what could not be had."""

    folder: Path
    figures: list[Figure] = field(default_factory=list)
    speakers: list[SpeakerFigure] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)
    pictures: dict[str, Any] = field(default_factory=dict)
    clips: list[dict[str, Any]] = field(default_factory=list)
    run: dict[str, Any] = field(default_factory=dict)
    missing: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._index = {
            (f.evaluator, f.split, f.system, f.attacker, f.metric): f for f in self.figures
        }

    @property
    def corpus(self) -> str:
        """Name of the corpus."""
        return str(self.run.get("corpus") or (self.figures[0].corpus if self.figures else ""))

    def value(
        self, evaluator: str, split: str, system: str, attacker: str, metric: str
    ) -> Value | None:
        """A figure; None where it was not measured."""
        found = self._index.get((evaluator, split, system, attacker, metric))
        if found is None:
            return None
        return Value(parse(found.value), parse(found.low), parse(found.high))

    def text(self, evaluator: str, split: str, system: str, attacker: str, metric: str) -> str:
        """A figure as it stands in the table, such as a tag; empty where not measured."""
        found = self._index.get((evaluator, split, system, attacker, metric))
        return found.value if found else ""

    def evaluators(self) -> list[str]:
        """Evaluators of privacy in the order of the table; what measures utility is none."""
        own = (f.evaluator for f in self.figures if f.attacker != UTILITY)
        return list(dict.fromkeys(own))

    def recognisers(self, metric: str) -> list[str]:
        """Who measured `metric`, a figure of utility, in the order of the table."""
        own = (f.evaluator for f in self.figures if (f.attacker, f.metric) == (UTILITY, metric))
        return list(dict.fromkeys(own))

    def splits(self, evaluator: str) -> list[str]:
        """Splits of an evaluator, sorted."""
        return sorted({f.split for f in self.figures if f.evaluator == evaluator})

    def systems(self) -> list[str]:
        """Protected systems in the order of the table; their number gives colour and marker.

        Several target voices (`targets`) are not among them: pictures show those together.
        """
        targets = set(self.targets())
        return [s for s in self._protected() if s not in targets]

    def targets(self) -> list[str]:
        """Systems const_NN, where there are at least three (001, Fig. 3)."""
        return target_voices(self._protected())

    def target_series(self) -> dict[str, list[str]]:
        """The same by experiment: const_NN, const_NN_f0, const_NN_of_3, ..."""
        return target_series(self._protected())

    def _protected(self) -> list[str]:
        return list(dict.fromkeys(f.system for f in self.figures if f.system != "original"))

    def attackers(self, evaluator: str) -> list[str]:
        """Attackers with an equal error rate, in the order of the table."""
        rows = (f for f in self.figures if f.evaluator == evaluator and f.metric == "eer")
        return list(dict.fromkeys(f.attacker for f in rows))

    def entries(self, kind: str, evaluator: str) -> Iterable[dict[str, Any]]:
        """Entries of figures.json of one evaluator, those of `targets` left out."""
        targets = set(self.targets())
        for entry in self.pictures.get(kind) or []:
            where = (entry.get("where") or {}) if isinstance(entry, dict) else {}
            if where.get("evaluator") == evaluator and where.get("system") not in targets:
                yield entry


def _table(results: Results, name: str, kind: type[Row]) -> list[Row]:
    try:
        return list(read_table(results.folder / name, kind))
    except UserError as error:
        note(results, name, str(error))
        return []


def _json(results: Results, name: str, kind: type[Kind]) -> Kind:
    try:
        return read_json(results.folder / name, kind, "run stage 11 again")
    except UserError as error:
        note(results, name, str(error))
        return kind()


def note(results: Results, what: str, why: str) -> None:
    """Something could not be had: say so in the log and in the page."""
    logger.warning("%s", why)
    results.missing.append((what, why))


def load_results(folder: Path) -> Results:
    """Read a folder of results; UserError only if it is not there at all."""
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder of results; run stage 11 of a recipe")
    results = Results(folder)
    results.figures = _table(results, "metrics.csv", Figure)
    results.speakers = _table(results, "per_speaker.csv", SpeakerFigure)
    if os.path.lexists(folder / "rtf.csv"):  # results of an older version have none
        results.timings = _table(results, "rtf.csv", Timing)
    results.pictures = _json(results, "figures.json", dict)
    results.run = _json(results, "run.json", dict)
    results.clips = [c for c in _json(results, "clips.json", list) if isinstance(c, dict)]
    for told in results.run.get("missing") or []:
        if isinstance(told, dict):
            results.missing.append((str(told.get("what")), str(told.get("why"))))
    if not results.figures and not results.missing:
        note(results, "metrics.csv", f"{folder}/metrics.csv: holds no figure; run stages 9 and 11")
    results.__post_init__()
    return results
