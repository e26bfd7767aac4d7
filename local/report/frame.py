"""Figures of a run as tidy tables, the measures they are of, and the only way they are written;
names in plain words, and texts in Markdown.

A table is a pandas DataFrame with a row for each figure: `METRICS`, `SPEAKERS` or `TIMINGS` are its
columns, which are text. Read by `read_metrics`, `value`, `low` and `high` are numbers (NaN: not
defined), `tag` holds a value that is not a number, and `figure` names the metric with all of its
columns, to look figures up.
"""

import csv
import io
import logging
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from local.metrics.intervals import COLUMNS as FIGURE
from local.metrics.intervals import is_falsely_sure, key
from local.metrics.registry import KNOWN, read_table
from local.protocols import attackers
from utils.cli import UserError
from utils.tables import is_there, read_bytes, read_json, write_file

# What a figure speaks of. family: what was done; attacker: who did it, or whose evaluator it was;
# empty where that is nobody of local/protocols/attackers.py (of NIST's lists, the profile).
# condition: OO OA AA; OO-OP-PP for voice similarity matrices, OO-OA-AA for gains on the
# enrolment-trial lists. Who computes figures gives these labels (Labels of local/plan/labels.py).
LABELS = ("split", "gender", "system", "family", "attacker", "evaluator", "condition")
WHERE = ("corpus", *LABELS)
VERIFICATION, LEGAL, UTILITY = "verification", "legal", "utility"
SIMILARITY, LEAKAGE, CALIBRATION = "similarity", "leakage", "calibration"
STRONGEST = "strongest"
INFERENCE, CROWD, GROUPS = "inference", "crowd", "groups"
COUNTS = ("n_speakers", "n_segments", "n_target", "n_nontarget")  # people, speech, trials
METRICS = (*WHERE, "metric", *FIGURE, "value", "low", "high", *COUNTS, "settings")
SPEAKERS = (*WHERE, "speaker", "metric", *FIGURE, "value", "settings")
NUMBERS = ("value", "low", "high")
T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[2]
MISSING, UNDEFINED = "not measured", "not defined"


@dataclass(frozen=True)
class Measure:
    """A measure and how its values are written: times `scale`, with `digits` and `unit`.

    better: 1 where more is better, -1 where less is, else 0. card: of docs/metrics. recordings to
    kind: columns of the figures that it shows. family, attacker, by: of which figures and evaluator
    a column is, where it is not of its row's.
    """

    name: str
    title: str
    unit: str = ""
    scale: float = 1.0
    digits: int = 3
    better: int = 0
    card: str = ""
    recordings: str = ""
    enrolled: str = ""
    candidates: str = ""
    attribute: str = ""
    group: str = ""
    gallery: str = ""
    kind: str = "value"
    family: str = ""
    attacker: str = ""
    by: str = ""

    @property
    def figure(self) -> str:
        """The name by which its figures are looked up."""
        return key(self.name, **{column: getattr(self, column) for column in FIGURE})

    @property
    def heading(self) -> str:
        """A heading over bare values: `EER (%)`."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    def but(self, **changes: Any) -> "Measure":
        """The same measure, called or written otherwise."""
        return replace(self, **changes)

    def say(self, value: "Value | float | None") -> str:
        """A value with its unit and, in brackets, its interval."""
        return show(value, self, unit=True)


@dataclass(frozen=True)
class Value:
    """A figure with its 95 % interval; NaN where there is none. tag: a value, not a number."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    tag: str = ""

    @property
    def defined(self) -> bool:
        """Whether it is a finite number."""
        return math.isfinite(self.value)

    @property
    def bounded(self) -> bool:
        """Whether there is an interval."""
        return not (math.isnan(self.low) or math.isnan(self.high))

    def apart(self, other: "Value") -> bool:
        """Whether both have an interval, and these do not overlap."""
        return self.bounded and other.bounded and (self.high < other.low or other.high < self.low)


NOTHING = Value()
PLAIN = Measure("", "", digits=2)


def _measure(name: str, title: str, unit: str, digits: int, better: int, card: str = "") -> Measure:
    return Measure(name, title, unit, 100.0 if unit == "%" else 1.0, digits, better, card)


MEASURES = {name: _measure(name, *own) for name, own in KNOWN["measures"].items()}
UTILITY_MEASURES = ("wer", "uar", "mos")  # those that stand beside privacy


def measure(of: str, **changes: Any) -> Measure:
    """A measure of the registry by its name, with what is called or written otherwise."""
    return MEASURES[of].but(**changes)


def read_columns(columns: Iterable[str | Mapping[str, Any]]) -> list[Measure]:
    """Columns as tables.yaml and measures.yaml have them."""
    return [measure(own) if isinstance(own, str) else measure(**own) for own in columns]


TABLES = read_table(ROOT / "local/report/tables.yaml")
COLUMNS = {name: read_columns(own) for name, own in TABLES["columns"].items()}
_READ = [*chain(*COLUMNS.values(), read_columns(TABLES["read"]),
                *(read_columns(own["columns"]) for own in KNOWN["tables"].values()))]  # fmt: skip


def read_somewhere(metrics: pd.DataFrame) -> pd.DataFrame:
    """The rows that some table, picture or sentence of a report or page reads."""
    names = ["metric", "kind", "gallery", "recordings"]
    known = {(m.name, m.kind, m.gallery, m.recordings) for m in _READ}
    some = [of in known or (*of[:3], "") in known for of in metrics[names].itertuples(index=False)]
    return metrics[some]


def number(value: float, digits: int = 2) -> str:
    """A number in text: fixed digits, a true minus sign, ∞ for infinity."""
    if math.isnan(value):
        return UNDEFINED
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:.{digits}f}"
    if float(text) == 0.0:
        text = text.removeprefix("-")  # minus nothing is nothing
    return text.replace("-", "−")


def percent(value: float, digits: int = 1) -> str:
    """A fraction in percent."""
    return number(100.0 * value, digits) + (" %" if math.isfinite(value) else "")


def show(
    value: Value | float | None,
    measure: Measure = PLAIN,
    *,
    unit: bool = False,
    missing: str = MISSING,
    undefined: str = UNDEFINED,
) -> str:
    """`9.1 [0.0, 28.3]`, or in words that a figure was not measured (None) or is not defined."""
    if value is None:
        return missing
    given = value if isinstance(value, Value) else Value(value)
    if given.tag or math.isnan(given.value):
        return given.tag or undefined
    ends = (given.value, given.low, given.high)[: 3 if given.bounded else 1]
    text, *bounds = (number(measure.scale * end, measure.digits) for end in ends)
    if unit and measure.unit and (math.isfinite(given.value) or measure.unit != "%"):
        text += f" {measure.unit}"
    return f"{text} [{', '.join(bounds)}]" if bounds else text


def parse(text: str) -> float:
    """A value of the tables; NaN for an undefined one and for a tag."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def read_frame(path: Path, columns: Sequence[str], delimiter: str = ",") -> pd.DataFrame:
    """A table of text; UserError where it is missing, is not a table, or has other columns."""
    try:
        text = read_bytes(path).decode("utf-8")
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        if next(reader, None) != list(columns):
            raise UserError(
                f"{path}:1: other columns than this version writes; make it anew: run stage 11"
            )
        rows = []
        for row in filter(None, reader):
            if len(row) != len(columns):
                raise UserError(f"{path}:{reader.line_num}: not {len(columns)} fields")
            rows.append(row)
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: not a table of figures: {error}; run stage 11 again") from error
    return pd.DataFrame(rows, columns=list(columns), dtype=object)


def with_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """A table of text with its values as numbers, and those that are none as `tag`."""
    found = frame.copy()
    for name in NUMBERS:
        if name in frame:
            found[name] = pd.Series([parse(text) for text in frame[name]], frame.index, float)
    if "kind" in found:
        name_of = cache(lambda *row: str(key(row[0], **dict(zip(FIGURE, row[1:], strict=True)))))
        found["figure"] = [*map(name_of, *(found[name] for name in ("metric", *FIGURE)))]
    if "low" in found:  # of an older version
        sure = [*map(is_falsely_sure, found["metric"], found["low"], found["high"])]
        found.loc[sure, ["low", "high"]] = math.nan
    tags = [text if math.isnan(parse(text)) and text != "nan" else "" for text in frame["value"]]
    found["tag"] = pd.Series(tags, frame.index, object)
    return found


def read_metrics(path: Path) -> pd.DataFrame:
    """metrics.csv with its values as numbers."""
    return with_numbers(read_frame(path, METRICS))


def read_speakers(path: Path) -> pd.DataFrame:
    """per_speaker.csv with its values as numbers."""
    return with_numbers(read_frame(path, SPEAKERS))


def write_frame(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    """Write rows as CSV with a header, atomically."""
    table = pd.DataFrame([*rows], columns=[*columns]).to_csv(index=False, lineterminator="\n")
    write_file(path, table)


def where(frame: pd.DataFrame, **of: Any) -> pd.DataFrame:
    """The rows with these values in these columns; a list, tuple or set stands for any of its."""
    for name, wanted in of.items():
        many = isinstance(wanted, list | tuple | set | frozenset)
        frame = frame[frame[name].isin([*wanted]) if many else frame[name] == wanted]
    return frame


def eers(metrics: pd.DataFrame, **of: Any) -> pd.DataFrame:
    """EERs of attacks by one recording."""
    return where(metrics, family=VERIFICATION, figure="eer", **of)


def each(frame: pd.DataFrame, column: str) -> list[str]:
    """The values of a column, each once, in the order of the table."""
    return list(dict.fromkeys(frame[column]))


def value_of(row: Any) -> Value:
    """The figure of a row (a named tuple of `frame.itertuples()`)."""
    return Value(row.value, getattr(row, "low", math.nan), getattr(row, "high", math.nan), row.tag)


def values(frame: pd.DataFrame, *by: str) -> dict[Any, Value]:
    """Figures by these columns (tuples, where there are several); of equal ones the last."""
    keys = frame[by[0]] if len(by) == 1 else zip(*(frame[name] for name in by), strict=True)
    return dict(zip(keys, map(value_of, frame.itertuples()), strict=True))


# ---- Names of attackers, groups and target voices in plain words, and texts in Markdown.


# Who is in a split, by its end.
VOICES = {"f": "women", "m": "men", "mixed": "women and men together"}
PROTECTED = tuple(attackers.ATTACKERS)  # attackers of protected speech, the least informed first
ATTACKERS = {"unprotected": "unprotected"} | {
    name: made.words for name, made in attackers.ATTACKERS.items()
}
# Attackers whose absence is worth a word; without the aligned one, a reversible change looked best.
CORE = ("ignorant", "aligned", "lazy_informed", "semi_informed", "white_box")
USES = {"wer": "word error rate", "uar": "recall of emotions", "mos": "estimated opinion score"}
# DeID is one attacker's view: the cells of OP compare original with protected speech.
HEARD = "as heard by an attacker who compares with the original voices"
# A system that converts all speech to one target voice: its number, of how many, and its pitch.
TARGET = re.compile(r"((?:bn_)?const)_\d+((?:_of_\d+)?(?:_f0)?)")
_EER = MEASURES["eer"]
_TARGETS = 3  # from so many on, they are shown together, by target
# Underscores within words mean nothing in Markdown; & begins an entity only before its name.
_MEANING = re.compile(r"[\\|`*<]|(?<!\w)_|_(?!\w)|&(?=#?\w+;)")


class Marked(str):
    """Text that is Markdown already."""

    __slots__ = ()


def code(text: str) -> Marked:
    """A name in the letters of code."""
    ticks = "``" if "`" in text else "`"
    return Marked(ticks + " ".join(text.splitlines()).replace("|", r"\|") + ticks)


def plain(text: str) -> str:
    """A name or sentence in Markdown, which shows it as it is, on one line.

    >>> plain("a|b_c<d>")
    'a\\\\|b_c\\\\<d>'
    """
    if isinstance(text, Marked):
        return text
    return _MEANING.sub(r"\\\g<0>", " ".join(text.splitlines()))


def target_series(systems: Iterable[str], fewest: int = _TARGETS) -> dict[str, list[str]]:
    """Systems that are targets of one experiment (001), sorted; smaller series are left out.

    >>> target_series(["b2", "const_01_f0", *(f"const_{i}_of_3" for i in (2, 3, 1))])
    {'const_NN_of_3': ['const_1_of_3', 'const_2_of_3', 'const_3_of_3']}
    """
    found: dict[str, list[str]] = {}
    for system in sorted(set(systems)):
        if match := TARGET.fullmatch(system):
            found.setdefault(f"{match[1]}_NN{match[2]}", []).append(system)
    return {name: own for name, own in found.items() if len(own) >= fewest}


def target_gender(system: str) -> str:
    """f or m: of the targets of a series, the first half (rounded up) are women.

    >>> [target_gender(f"const_{i}_of_3") for i in (1, 2, 3)]
    ['f', 'f', 'm']
    """
    number, _, of = system.partition("const_")[2].partition("_of_")
    return "f" if int(number) <= (int(of.partition("_")[0]) + 1) // 2 else "m"


def target_voices(systems: Iterable[str]) -> list[str]:
    """All of them."""
    return [system for own in target_series(systems).values() for system in own]


def group_of(split: str) -> str:
    """Who is in a split, in words."""
    return VOICES.get(split.rpartition("_")[2], split)


def attacker(name: str) -> str:
    """An attacker as it is called in sentences."""
    return ATTACKERS.get(name, name.replace("_", "-"))


def absent(known: Collection[str]) -> list[str]:
    """Attackers worth a word whose kind is not among those known."""
    return [core for core in CORE if not any(name.startswith(core) for name in known)]


def enumerate_words(names: Sequence[str], most: int = 3) -> str:
    """`a, b and c`, or `a, b, c and 3 more`."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


@cache
def _template(name: str) -> Template:
    environment = Environment(
        loader=FileSystemLoader(ROOT), undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True, autoescape=".html" in name,
    )  # fmt: skip
    environment.filters |= {
        "plain": plain, "number": number, "percent": percent, "enumerate": enumerate_words,
        "attacker": attacker, "eer": partial(show, measure=_EER), "figure": value_of,
        "group": group_of,
    }  # fmt: skip
    return environment.get_template(name, globals={"HEARD": HEARD})


def render(template: str, **context: object) -> str:
    """A template, named from the root of the project on, filled in; texts in HTML are escaped."""
    return _template(template).render(**context)


def say(name: str, /, **told: object) -> str:
    """The text of this name in templates/sentences.jinja, on one line."""
    sentences = _template("local/report/templates/sentences.jinja").module
    return " ".join(str(getattr(sentences, name)(**told)).split())


# ---- The folder of results, read for the report: what is missing or broken is named, not fatal.

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
    def people(self) -> dict[Group, list[Person]]:
        """The speakers of each protected group, the worst protected first.

        One without target trials has no linkability and comes after the others. How an informed
        attacker hears voices is left out.
        """
        found: dict[Group, dict[str, Person]] = {}
        for row in self.speakers.itertuples(index=False):
            group = found.setdefault((row.system, row.evaluator, row.split), {})
            if row.metric in MEASURED and not (row.family == SIMILARITY and row.attacker):
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
        family: str = VERIFICATION,
    ) -> Value | None:  # fmt: skip
        """A figure; None where it was not measured."""
        found = self.rows.get((family, evaluator, split, system, attacker, figure))
        return None if found is None else value_of(found)

    def several(
        self, evaluator: str, split: str, system: str, attacker: str, figures: Iterable[str],
        family: str = VERIFICATION,
    ) -> list[Value]:  # fmt: skip
        """Figures of one attack; NOTHING for those that were not measured."""
        of = (evaluator, split, system, attacker)
        return [self.value(*of, figure, family) or NOTHING for figure in figures]

    def evaluators(self) -> list[str]:
        """Evaluators of privacy in the order of the table; what measures utility, and the choice
        of the strongest of all, are none."""
        of_none = self.metrics["family"].isin([UTILITY, STRONGEST, GROUPS])
        return each(self.metrics[~of_none], "evaluator")

    def splits(self, evaluator: str) -> list[str]:
        """Splits of an evaluator that attacks list by list, sorted."""
        own = where(self.metrics, evaluator=evaluator)
        return sorted(each(own[own["family"] != INFERENCE], "split"))

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
    results.metrics = results.read("metrics.csv", read_metrics, results.metrics)
    results.speakers = results.read("per_speaker.csv", read_speakers, results.speakers)
    results.pictures = results.read("figures.json", _read_object, {})
    if is_there(folder / "command.txt") and not is_there(folder / "run.json"):  # they were kept
        told: dict[str, Any] = results.read("origin.json", _read_object, {})
        command = read_bytes(folder / "command.txt").decode().strip()
        results.run = {**told, "origin": {**told, "command": command}}
    else:
        results.run = results.read("run.json", _read_object, {})
    results.clips = results.read("clips.json", partial(read_json, kind=list, mend=_ANEW), [])
    results.missing += [(m["what"], m["why"]) for m in results.run.get("missing", [])]
    if results.metrics.empty and not results.missing:
        why = f"{folder}/metrics.csv: holds no figure; run stages 9 and 11"
        results.note("metrics.csv", why)
    return results
