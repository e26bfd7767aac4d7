"""The folder of results, read for the report: what is missing or broken is named, not fatal."""

import logging
import math
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from local.report import frame
from local.report.frame import (
    NOTHING,
    Value,
    each,
    read_frame,
    target_series,
    target_voices,
    value_of,
    where,
    with_numbers,
)
from utils.cli import UserError
from utils.tables import Kind, is_there, read_bytes, read_json

logger = logging.getLogger(__name__)
Group = tuple[str, str, str]  # system, evaluator, split
SETTINGS = ("oo", "op", "pp")
Entry = dict[str, Any]  # of figures.json: `where`, `speakers`, and arrays
MEASURED = ("linkability", "deid", "g_vd")
TABLES: dict[str, Callable[[Path], pd.DataFrame]] = {
    "metrics": frame.read_metrics,
    "per_speaker": frame.read_speakers,
    "rtf": lambda path: read_frame(path, frame.TIMINGS),
}


@dataclass(frozen=True)
class Person:
    """Figures of one speaker under one system; NaN where not measured or not defined.

    linkability: under the attacker that does best on this speaker, `attacker`.
    """

    name: str
    linkability: float = math.nan
    attacker: str = ""
    deid: float = math.nan
    g_vd: float = math.nan

    def order(self) -> tuple[float, float, str]:
        """Key that sorts the worst protected first: highest linkability, then lowest DeID."""
        link = -1.0 if math.isnan(self.linkability) else self.linkability
        deid = math.inf if math.isnan(self.deid) else self.deid
        return (-link, deid, self.name)


def _empty(columns: Iterable[str]) -> pd.DataFrame:
    return with_numbers(pd.DataFrame(columns=[*columns], dtype=object))


@dataclass
class Results:
    """All that exp/results holds. missing: (what, why) of what could not be had."""

    folder: Path = Path()
    metrics: pd.DataFrame = field(default_factory=lambda: _empty(frame.METRICS))
    speakers: pd.DataFrame = field(default_factory=lambda: _empty(frame.SPEAKERS))
    timings: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=[*frame.TIMINGS]))
    pictures: dict[str, Any] = field(default_factory=dict)
    clips: list[dict[str, Any]] = field(default_factory=list)
    run: dict[str, Any] = field(default_factory=dict)
    missing: list[tuple[str, str]] = field(default_factory=list)

    @cached_property
    def rows(self) -> dict[tuple[str, ...], Any]:
        """Rows of metrics by family, evaluator, split, system, attacker, metric."""
        return {
            (f.family, f.evaluator, f.split, f.system, f.attacker, f.metric): f
            for f in self.metrics.itertuples(index=False)
        }

    @cached_property
    def people(self) -> dict[Group, list[Person]]:
        """The speakers of each protected group, the worst protected first.

        One without target trials has no linkability and comes after the others. How an informed
        attacker hears voices is left out.
        """
        found: dict[Group, dict[str, dict[str, tuple[float, str]]]] = {}
        for row in self.speakers.itertuples(index=False):
            group = found.setdefault((row.system, row.evaluator, row.split), {})
            if row.metric in MEASURED and not (row.family == frame.SIMILARITY and row.attacker):
                own = group.setdefault(row.speaker, dict.fromkeys(MEASURED, (math.nan, "")))
                before, _ = own[row.metric]
                if math.isnan(before) or row.value > before:
                    own[row.metric] = (row.value, row.attacker)
        made = {
            group: [Person(name, *own["linkability"], own["deid"][0], own["g_vd"][0])
                    for name, own in people.items()]
            for group, people in found.items()
        }  # fmt: skip
        return {group: sorted(people, key=Person.order) for group, people in made.items()}

    def groups(self) -> list[Group]:
        """Groups of people of all protected systems, in the order of the table; without target
        voices, which are shown together, by target."""
        left_out = {"original", *target_voices({system for system, _, _ in self.people})}
        return [group for group in self.people if group[0] not in left_out]

    def worst(self, system: str, split: str) -> Person | None:
        """The worst-protected person over all evaluators; None where no linkability is known."""
        firsts = (own[0] for (s, _, of), own in self.people.items()
                  if (s, of) == (system, split) and own)  # fmt: skip
        found = [first for first in firsts if math.isfinite(first.linkability)]
        return min(found, key=Person.order, default=None)

    @property
    def corpus(self) -> str:
        """Name of the corpus."""
        return str(self.run.get("corpus") or next(iter(self.metrics["corpus"]), ""))

    @property
    def origin(self) -> dict[str, str]:
        """Command, commit, machine and versions; empty where the run did not say."""
        return dict(self.run.get("origin", {}))

    def settings(self, system: str) -> dict[str, Any]:
        """conf.json of a system as the run recorded it; empty where it did not."""
        return dict(self.run.get("systems", {}).get(system, {}))

    def listed(self, name: str) -> list[dict[str, Any]]:
        """The records of a list of run.json."""
        return list(self.run.get(name, []))

    @cached_property
    def attacks(self) -> dict[tuple[str, str, str], dict[str, Any]]:
        """attacker.json of each attack, by system, <attacker>.<evaluator> and split."""
        paths = [(r, Path(str(r.get("scores"))).parts[-4:]) for r in self.listed("attacks")]
        return {(p[0], p[1], p[3]): r for r, p in paths if len(p) == 4}

    def control(self, evaluator: str, split: str, system: str, attacker: str) -> Value:
        """EER of an attacker on protected people that they did not learn from; NOTHING where they
        learnt nothing."""
        at = (system, f"{attacker}.{evaluator.replace('/', '+')}", split)
        record = self.attacks.get(at, {})
        eer, ends = record.get("held_out_eer"), record.get("held_out_eer_ci")
        return NOTHING if eer is None else Value(eer, *(ends or ()))

    def value(
        self, evaluator: str, split: str, system: str, attacker: str, metric: str,
        family: str = frame.VERIFICATION,
    ) -> Value | None:  # fmt: skip
        """A figure; None where it was not measured."""
        found = self.rows.get((family, evaluator, split, system, attacker, metric))
        return None if found is None else value_of(found)

    def several(
        self, evaluator: str, split: str, system: str, attacker: str, metrics: Iterable[str],
        family: str = frame.VERIFICATION,
    ) -> list[Value]:  # fmt: skip
        """Figures of one attack; NOTHING for those that were not measured."""
        of = (evaluator, split, system, attacker)
        return [self.value(*of, metric, family) or NOTHING for metric in metrics]

    def evaluators(self) -> list[str]:
        """Evaluators of privacy in the order of the table; what measures utility, and the choice
        of the strongest of all, are none."""
        of_none = self.metrics["family"].isin([frame.UTILITY, frame.STRONGEST, frame.GROUPS])
        return each(self.metrics[~of_none], "evaluator")

    def recognisers(self, metric: str) -> list[str]:
        """Who measured `metric`, a figure of utility, in the order of the table."""
        return each(where(self.metrics, family=frame.UTILITY, metric=metric), "evaluator")

    def splits(self, evaluator: str) -> list[str]:
        """Splits of an evaluator that attacks list by list, sorted."""
        own = where(self.metrics, evaluator=evaluator)
        return sorted(each(own[own["family"] != frame.INFERENCE], "split"))

    def systems(self) -> list[str]:
        """Protected systems in the order of the table; their number gives colour and marker.

        Several target voices (`targets`) are not among them: pictures show those together.
        """
        targets = set(self.targets())
        return [s for s in self._protected if s not in targets]

    def targets(self) -> list[str]:
        """Systems const_NN, where there are at least three (001, Fig. 3)."""
        return target_voices(self._protected)

    def target_series(self) -> dict[str, list[str]]:
        """The same by experiment: const_NN, const_NN_f0, const_NN_of_3, ..."""
        return target_series(self._protected)

    @cached_property
    def _protected(self) -> list[str]:
        return [system for system in each(self.metrics, "system") if system != "original"]

    def attackers(self, evaluator: str) -> list[str]:
        """Attackers with an equal error rate, in the order of the table."""
        return each(where(self.metrics, evaluator=evaluator, metric="eer"), "attacker")

    def entries(self, kind: str, evaluator: str) -> list[Entry]:
        """Entries of figures.json of one evaluator, those of `targets` left out."""
        targets = set(self.targets())
        return [
            _arrays(entry) | {name: entry[name] for name in ("where", "speakers") if name in entry}
            for entry in self.pictures.get(kind) or []
            if entry["where"]["evaluator"] == evaluator and entry["where"]["system"] not in targets
        ]

    @property
    def prior(self) -> Entry:
        """The ECE of an attacker who hears nothing."""
        return _arrays(self.pictures["prior"])

    def note(self, what: str, why: str) -> None:
        """Something could not be had: say so in the log and in the page."""
        logger.warning("%s", why)
        self.missing.append((what, why))


def _arrays(value: Any) -> Any:
    """Numbers of JSON as arrays."""
    if isinstance(value, dict):
        return {k: _arrays(own) for k, own in value.items() if k not in ("where", "speakers")}
    return None if value is None else np.array(value, np.float64)


def load_results(folder: Path) -> Results:
    """Read a folder of results; UserError only if it is not there at all."""
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder of results; run stage 11 of a recipe")
    results, tables = Results(folder), {}
    for name, read in TABLES.items():
        if name == "rtf" and not os.path.lexists(folder / "rtf.csv"):
            continue  # results of an older version have none
        try:
            tables[name] = read(folder / f"{name}.csv")
        except UserError as error:
            results.note(f"{name}.csv", str(error))
    results.metrics = tables.get("metrics", results.metrics)
    results.speakers = tables.get("per_speaker", results.speakers)
    results.timings = tables.get("rtf", results.timings)
    results.pictures = _json(results, "figures.json", dict)
    if is_there(folder / "command.txt") and not is_there(folder / "run.json"):
        told = _json(results, "origin.json", dict)  # local/keep_results.py kept these figures
        command = read_bytes(folder / "command.txt").decode().strip()
        results.run = {**told, "origin": {**told, "command": command}}
    else:
        results.run = _json(results, "run.json", dict)
    results.clips = _json(results, "clips.json", list)
    results.missing += [(m["what"], m["why"]) for m in results.listed("missing")]
    if results.metrics.empty and not results.missing:
        why = f"{folder}/metrics.csv: holds no figure; run stages 9 and 11"
        results.note("metrics.csv", why)
    return results


def _json(results: Results, name: str, kind: type[Kind]) -> Kind:
    try:
        return read_json(results.folder / name, kind, "run stage 11 again")
    except UserError as error:
        results.note(name, str(error))
        return kind()


# ---- Definitions of the linkability of a speaker.

POOLED = "linkability"  # of a speaker: D↔ from the densities of all trials, mean over their own
ALONE = re.compile(r"linkability_bins_(\d+)")  # D_sys of their trials alone


def definitions(results: Results) -> list[str]:
    """The definitions of a speaker's linkability that were measured (docs/metrics)."""
    measured = set(results.speakers["metric"])
    return [POOLED, *sorted(name for name in measured if ALONE.fullmatch(name))]


def definition(metric: str) -> str:
    """A definition in words."""
    alone = ALONE.fullmatch(metric)
    return f"each speaker's trials alone, {alone[1]} bins" if alone else "densities of all trials"
