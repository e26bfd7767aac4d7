"""The folder of results, read for the report: what is missing or broken is named, not fatal."""

import logging
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from local.plan.labels import Family
from local.report.frame import (
    METRICS,
    SPEAKERS,
    each,
    eers,
    read_figures,
    value_of,
    where,
    with_numbers,
)
from local.report.measures import NOTHING, Value
from local.report.wording import group_of, target_series, target_voices
from utils.cli import UserError
from utils.tables import is_there, read_bytes, read_json

T = TypeVar("T")
logger = logging.getLogger(__name__)
Group = tuple[str, str, str]  # system, evaluator, split
SETTINGS = ("oo", "op", "pp")
Entry = dict[str, Any]  # of figures.json: `where`, `speakers`, and arrays
MEASURED = ("linkability", "deid", "g_vd")


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


def _worse(one: tuple[Group, Person]) -> tuple[float, float, str]:
    return one[1].order()


def _empty(columns: Iterable[str]) -> pd.DataFrame:
    return with_numbers(pd.DataFrame(columns=[*columns], dtype=object))


@dataclass
class Results:
    """All that exp/results holds. missing: (what, why) of what could not be had."""

    folder: Path = Path()
    metrics: pd.DataFrame = field(default_factory=lambda: _empty(METRICS))
    speakers: pd.DataFrame = field(default_factory=lambda: _empty(SPEAKERS))
    pictures: dict[str, Any] = field(default_factory=dict)
    clips: list[dict[str, Any]] = field(default_factory=list)
    run: dict[str, Any] = field(default_factory=dict)
    missing: list[tuple[str, str]] = field(default_factory=list)

    @cached_property
    def rows(self) -> dict[tuple[str, ...], Any]:
        """Rows of metrics by family, evaluator, split, system, attacker, figure."""
        return {
            (f.family, f.evaluator, f.split, f.system, f.attacker, f.figure): f
            for f in self.metrics.itertuples(index=False)
        }

    @cached_property
    def voices(self) -> dict[str, str]:
        """Who is in each split, in words."""
        return {f.split: group_of(f) for f in self.metrics.itertuples(index=False)}

    @cached_property
    def people(self) -> dict[Group, list[Person]]:
        """The speakers of each protected group, the worst protected first.

        One without target trials has no linkability and comes after the others. How an informed
        attacker hears voices is left out.
        """
        found: dict[Group, dict[str, Person]] = {}
        for row in self.speakers.itertuples(index=False):
            group = found.setdefault((row.system, row.evaluator, row.split), {})
            if row.metric in MEASURED and not (row.family == Family.SIMILARITY and row.attacker):
                known = group.setdefault(row.speaker, Person(row.speaker))
                before = getattr(known, row.metric)
                if math.isnan(before) or row.value > before:
                    who = row.attacker if row.metric == "linkability" else known.attacker
                    more = {row.metric: row.value, "attacker": who}
                    group[row.speaker] = replace(known, **more)
        return {group: sorted(own.values(), key=Person.order) for group, own in found.items()}

    def groups(self) -> list[Group]:
        """Groups of people of all protected systems, in the order of the table; without target
        voices, which are shown together, by target."""
        left_out = {"original", *target_voices({system for system, _, _ in self.people})}
        return [group for group in self.people if group[0] not in left_out]

    def worst_people(self, most: int) -> dict[tuple[str, str], list[tuple[Group, Person]]]:
        """Up to `most` people of each system and split, the worst protected first, each as the
        evaluator has them that finds them most surely."""
        found: dict[tuple[str, str], dict[str, tuple[Group, Person]]] = {}
        for group in self.groups():
            known = found.setdefault((group[0], group[2]), {})
            for own in self.people[group]:
                one = (group, own)
                known[own.name] = min(known.get(own.name, one), one, key=_worse)
        return {of: sorted(known.values(), key=_worse)[:most] for of, known in found.items()}

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

    @property
    def trainings(self) -> dict[str, str]:
        """Evaluators that are another training of one, and which."""
        return dict(self.run.get("trainings", {}))

    def settings(self, system: str) -> dict[str, Any]:
        """conf.json of a system as the run recorded it; empty where it did not."""
        return dict(self.run.get("systems", {}).get(system, {}))

    @cached_property
    def attacks(self) -> dict[tuple[str, ...], dict[str, Any]]:
        """attacker.json of each attack, by evaluator, split, system and attacker."""
        of = ("evaluator", "split", "system", "attacker")
        records = self.run.get("attacks", [])
        return {tuple(r["where"][name] for name in of): r for r in records if "where" in r}

    def control(self, *attack: str) -> Value:
        """EER of an attacker on protected people that they did not learn from; NOTHING where they
        learnt nothing, or it is not defined. attack: as for `attacks`."""
        record = self.attacks.get(attack, {})
        eer, ends = record.get("held_out_eer"), record.get("held_out_eer_ci")
        return NOTHING if eer is None else Value(eer, *(ends or ()))

    def value(
        self, evaluator: str, split: str, system: str, attacker: str, figure: str,
        family: str = Family.VERIFICATION,
    ) -> Value | None:  # fmt: skip
        """A figure; None where it was not measured."""
        found = self.rows.get((family, evaluator, split, system, attacker, figure))
        return None if found is None else value_of(found)

    def several(
        self, evaluator: str, split: str, system: str, attacker: str, figures: Iterable[str],
        family: str = Family.VERIFICATION,
    ) -> list[Value]:  # fmt: skip
        """Figures of one attack; NOTHING for those that were not measured."""
        of = (evaluator, split, system, attacker)
        return [self.value(*of, figure, family) or NOTHING for figure in figures]

    def evaluators(self) -> list[str]:
        """Evaluators of privacy in the order of the table; what measures utility, and the choice
        of the strongest of all, are none."""
        of_none = self.metrics["family"].isin([Family.UTILITY, Family.STRONGEST, Family.GROUPS])
        return each(self.metrics[~of_none], "evaluator")

    def splits(self, evaluator: str) -> list[str]:
        """Splits of an evaluator that attacks list by list, sorted."""
        own = where(self.metrics, evaluator=evaluator)
        return sorted(each(own[own["family"] != Family.INFERENCE], "split"))

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
        return each(eers(self.metrics, evaluator=evaluator), "attacker")

    def entries(self, kind: str, evaluator: str) -> list[Entry]:
        """Entries of figures.json of one evaluator, those of `targets` left out."""
        targets = set(self.targets())
        return [
            _arrays(entry)
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

    def read(self, name: str, read: Callable[[Path], T], otherwise: T) -> T:
        """The content of a file of the folder; one that is missing or broken is named."""
        try:
            return read(self.folder / name)
        except UserError as error:
            self.note(name, str(error))
            return otherwise


def _arrays(value: Any) -> Any:
    """Numbers of JSON as arrays, but for labels and names."""
    if isinstance(value, dict):
        return {k: own if k in ("where", "speakers") else _arrays(own) for k, own in value.items()}
    return None if value is None else np.array(value, np.float64)


_ANEW = "run stage 11 again"
_read_object = partial(read_json, kind=dict, mend=_ANEW)


def load_results(folder: Path) -> Results:
    """Read a folder of results; UserError only if it is not there at all."""
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder of results; run stage 11 of a recipe")
    results = Results(folder)
    results.metrics = results.read("metrics.csv", read_figures, results.metrics)
    results.speakers = results.read(
        "per_speaker.csv", partial(read_figures, columns=SPEAKERS), results.speakers
    )
    results.pictures = results.read("figures.json", _read_object, {})
    if is_there(folder / "command.txt") and not is_there(folder / "run.json"):  # they were kept
        told: dict[str, Any] = results.read("origin.json", _read_object, {})
        told["command"] = read_bytes(folder / "command.txt").decode().strip()
        texts = {k: ", ".join([v] if isinstance(v, str) else v)
                 for k, v in told.items() if k != "missing"}  # fmt: skip
        results.run = {**told, "origin": texts}
    else:
        results.run = results.read("run.json", _read_object, {})
    results.clips = results.read("clips.json", partial(read_json, kind=list, mend=_ANEW), [])
    results.missing += [(m["what"], m["why"]) for m in results.run.get("missing", [])]
    if results.metrics.empty and not results.missing:
        why = f"{folder}/metrics.csv: holds no figure; run stages 9 and 11"
        results.note("metrics.csv", why)
    return results
