"""What of many figures is shown: the strongest attacker, the verdict, the Pareto front, and the
summary of an evaluator."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from local.metrics.detection import folded
from local.report.frame import (
    MEASURES,
    NOTHING,
    REIDENTIFICATION,
    SIMILARITY,
    UNDEFINED,
    UTILITY,
    UTILITY_MEASURES,
    VERIFICATION,
    Measure,
    Value,
    each,
    measure,
    parse,
    percent,
    show,
    value_of,
    where,
)
from local.report.load import Person, Results
from local.report.verdict import Attack, Verdict, fold, judge
from local.report.words import enumerate_words, group_of, target_series, target_voices

NAMED = "reid_speaker_top_1"


@dataclass(frozen=True)
class Strongest:
    """The attackers of a system on a split with the lowest EER and with the highest D_ECE, as rows
    of the table; None where nothing is defined. eers: how many were compared."""

    split: str
    system: str
    eer: Any | None
    d_ece: Any | None
    eers: int


def strongest(metrics: pd.DataFrame) -> list[Strongest]:
    """For each protected system and split, by split; of equal ones the first in the table. An EER
    of 80 % counts as 20 %: the attacker turns the scores round."""
    attacks = where(metrics, metric=["eer", "d_ece"])
    attacks = attacks[(attacks["attacker"] != "unprotected") & (attacks["system"] != "original")]
    found = []
    for (split, system), own in attacks.groupby(["split", "system"], sort=False):
        eers, d_eces = where(own, metric="eer"), where(own, metric="d_ece")
        lowest = _highest(eers, -eers["value"].map(folded))
        highest = _highest(d_eces, d_eces["value"])
        found.append(Strongest(split, system, lowest, highest, len(eers)))
    return sorted(found, key=lambda s: s.split)


def _highest(frame: pd.DataFrame, rank: pd.Series) -> Any | None:
    """The row whose value is finite and ranks highest; None without any."""
    rows = zip(frame.itertuples(index=False), rank, strict=True)
    finite = [(row, own) for row, own in rows if math.isfinite(row.value)]
    return max(finite, key=lambda pair: pair[1], default=(None, 0.0))[0]


def unprotected(metrics: pd.DataFrame) -> dict[tuple[str, str], Any]:
    """(split, evaluator) -> row of the EER of unprotected speech, where it is defined."""
    bare = where(metrics, system="original", attacker="unprotected", metric="eer")
    return {
        (f.split, f.evaluator): f for f in bare.itertuples(index=False) if math.isfinite(f.value)
    }


# Verdicts.


@dataclass(frozen=True)
class Judged:
    """A verdict on a system for one group of people. named: the attack that names most of them."""

    split: str
    group: str
    verdict: Verdict
    named: Attack | None
    worst: Person | None

    @property
    def eer(self) -> Value:
        """The folded EER of the attack that decides."""
        return fold(self.verdict.attack.eer) if self.verdict.attack else NOTHING


def subjects(metrics: pd.DataFrame) -> list[tuple[str, str]]:
    """Protected systems with their splits, by split."""
    eers = where(metrics, metric="eer")
    eers = eers[eers["system"] != "original"]
    found = dict.fromkeys(zip(eers["system"], eers["split"], strict=True))
    return sorted(found, key=lambda subject: subject[1])


def attacks(results: Results, system: str, split: str) -> list[Attack]:
    """Every attack on a system and split."""
    run = where(results.metrics, system=system, split=split, metric="eer")
    return [
        _attack(results, f) for f in run.drop_duplicates(["attacker", "evaluator"]).itertuples()
    ]


def _attack(results: Results, f: Any) -> Attack:
    def value(system: str, who: str, metric: str, family: str = VERIFICATION) -> Value:
        return results.value(f.evaluator, f.split, system, who, metric, family) or NOTHING

    reid = REIDENTIFICATION
    named = results.rows.get((reid, f.evaluator, f.split, f.system, f.attacker, NAMED))
    people = value(f.system, f.attacker, "n_target_speakers").value
    if named is not None:
        people = parse(named.n_speakers)
    return Attack(
        f.attacker,
        f.evaluator,
        value(f.system, f.attacker, "eer"),
        value("original", "unprotected", "eer"),
        value(f.system, f.attacker, "eer_rise"),
        named=named.value if named else math.nan,
        chance=value(f.system, f.attacker, f"chance_{NAMED}", reid).value,
        named_bare=value("original", "unprotected", NAMED, reid).value,
        recordings=parse(named.n_segments) / people if named and people else math.nan,
        people=people,
    )


def verdicts(results: Results) -> dict[str, list[Judged]]:
    """System -> a verdict on each group of people that was attacked."""
    found: dict[str, list[Judged]] = {}
    for system, split in subjects(results.metrics):
        own, worst = attacks(results, system, split), results.worst(system, split)
        said = judge(own, worst.linkability if worst else math.nan)
        naming = [a for a in own if math.isfinite(a.named)]
        named = max(naming, key=lambda a: (a.named, -a.p_named), default=None)
        judged = Judged(split, group_of(split), said, named, worst)
        found.setdefault(system, []).append(judged)
    return found


def verdict_rows(found: Mapping[str, Sequence[Judged]]) -> dict[str, str]:
    """Systems with a row of their own, and what it is called: of target voices of one experiment
    the one that protects worst stands for all."""

    def order(system: str) -> tuple[float, float]:
        lowest = min((own.eer.value for own in found[system] if own.verdict.attack), default=0.5)
        return min(own.verdict.level for own in found[system]), lowest

    named = {system: system for system in found}
    for series, targets in target_series(found).items():
        worst = min(targets, key=order)
        named = {name: text for name, text in named.items() if name not in targets}
        named[worst] = f"{series}: worst of {len(targets)}, {worst}"
    return named


def uses(metrics: pd.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    """(metric, by whom) -> system -> the row of all people together."""
    own = where(metrics, family=UTILITY, metric=UTILITY_MEASURES)
    if own["gender"].nunique() != 1:
        own = where(own, gender="")
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for f in own.itertuples(index=False):
        found.setdefault((f.metric, f.evaluator), {})[f.system] = f
    return found


# Privacy against utility.


@dataclass(frozen=True)
class Point:
    """A system. privacy: folded EER of the strongest attacker; utility: a fraction or a score."""

    system: str
    privacy: Value
    utility: Value

    @property
    def defined(self) -> bool:
        """Whether both are."""
        return self.privacy.defined and self.utility.defined


@dataclass(frozen=True)
class Trade:
    """The systems of a split by one measure of utility, `metric` by `recogniser`.

    A system is on the front when no other is at least as good in both and better in one, by the
    point estimates. left_out: systems without privacy or utility, or with one undefined, and why.
    """

    split: str
    metric: str
    recogniser: str
    points: Sequence[Point]
    unprotected: Point | None
    left_out: Sequence[str] = ()

    @property
    def measure(self) -> Measure:
        """The measure of utility."""
        return MEASURES[self.metric]

    def front(self) -> list[Point]:
        """Systems that no other dominates, by rising privacy."""
        found = [p for p in self.points if not self.behind(p)]
        return sorted(found, key=lambda p: (p.privacy.value, p.system))

    def behind(self, point: Point) -> list[Point]:
        """The systems that are at least as good as `point` in both, and better in one."""
        return [other for other in self.points if self.dominates(other, point)]

    def dominates(self, a: Point, b: Point) -> bool:
        """Whether `a` is at least as good as `b` in both, and better in one."""
        better = self.measure.better * (a.utility.value - b.utility.value)
        gains = (a.privacy.value - b.privacy.value, better)
        return min(gains) >= 0 and max(gains) > 0

    def finding(self) -> str:
        """The front in words, who is behind it, and what it would be without protection."""
        title, front = self.measure.title, self.front()
        higher = "higher" if self.measure.better > 0 else "lower"
        text = (
            f"{self.split}, {title} by {self.recogniser}: on the Pareto front (no other system has "
            f"both a higher EER of its strongest attacker and a {higher} {title}): "
            f"{'; '.join(self._say(p) for p in front) or 'no system'}."
        )
        if others := [self._say_behind(p) for p in self.points if p not in front]:
            text += f" Behind it: {'; '.join(others)}."
        if bare := self.unprotected:
            text += " Unprotected speech, by the evaluator with the lowest EER above: "
            text += f"{self._numbers(bare)}."
            if worse := [p.system for p in self.points if self.dominates(bare, p)]:
                names = enumerate_words(worse, len(worse))
                text += f" Better in neither than unprotected speech: {names}."
        return text + (f" Not drawn: {'; '.join(self.left_out)}." if self.left_out else "")

    def _numbers(self, point: Point) -> str:
        useful = self.measure.say(point.utility.value)
        return f"EER {percent(point.privacy.value)}, {self.measure.title} {useful}"

    def _say(self, point: Point) -> str:
        return f"{point.system} ({self._numbers(point)})"

    def _say_behind(self, point: Point) -> str:
        before = [f"{p.system}{self._doubt(p, point)}" for p in self.behind(point)]
        return f"{self._say(point)}, behind {enumerate_words(before)}"

    def _doubt(self, a: Point, b: Point) -> str:
        """In what the intervals of two systems overlap, or are not known."""
        pairs = (("EER", a.privacy, b.privacy), (self.measure.title, a.utility, b.utility))
        if not all(x.bounded and y.bounded for _, x, y in pairs):
            return " (intervals not known)"
        overlap = [name for name, x, y in pairs if not x.apart(y)]
        return f" (intervals of {enumerate_words(overlap)} overlap)" if overlap else ""


def trades(metrics: pd.DataFrame) -> list[Trade]:
    """Every split, measure of utility and recogniser that have both privacy and utility."""
    metrics = metrics[~metrics["system"].isin(target_voices(each(metrics, "system")))]
    privacy: dict[str, dict[str, Any]] = {}
    for s in strongest(metrics):
        privacy.setdefault(s.split, {})[s.system] = s.eer
    bares, found = unprotected(metrics), []
    useful = where(metrics, metric=UTILITY_MEASURES)
    order = pd.unique(useful["metric"] + "\t" + useful["evaluator"])
    for metric, recogniser in sorted(
        (name.split("\t") for name in order), key=lambda pair: UTILITY_MEASURES.index(pair[0])
    ):
        own = where(useful, metric=metric, evaluator=recogniser)
        for split in sorted(set(own["split"]) & set(privacy)):
            attacked = privacy[split]
            measured = {f.system: f for f in where(own, split=split).itertuples(index=False)}
            eers = [f for f in attacked.values() if f is not None]
            lowest = min(eers, key=lambda f: folded(f.value), default=None)
            bare = bares.get((split, lowest.evaluator)) if lowest else None
            before = Point("original", _value(bare), _value(measured.pop("original", None)))
            points, left_out = _points(attacked, measured, MEASURES[metric].title)
            trade = Trade(split, metric, recogniser, points, before if before.defined else None,
                          left_out)  # fmt: skip
            found.append(trade)
    return found


def _value(row: Any | None) -> Value:
    return NOTHING if row is None else value_of(row)


def _points(
    attacked: Mapping[str, Any], measured: Mapping[str, Any], title: str
) -> tuple[list[Point], list[str]]:
    """Systems with privacy and utility, and what the others lack."""
    points, left_out = [], []
    for system in dict.fromkeys([*attacked, *measured]):
        point = Point(system, fold(_value(attacked.get(system))), _value(measured.get(system)))
        if point.defined:
            points.append(point)
            continue
        for what, of, value in (
            ("EER", attacked, point.privacy), (title, measured, point.utility)
        ):  # fmt: skip
            if not value.defined:
                left_out.append(f"{system} ({what} {show(NOTHING if system in of else None)})")
    return points, left_out


# The summary of an evaluator.

SUMMARY = (  # without an attacker: of the strongest one measured
    measure("eer", title="Privacy: EER"),
    measure("d_ece", title="Privacy: D_ECE"),
    measure("deid", title="Privacy: DeID", family=SIMILARITY),
    measure("g_vd", title="Distinctiveness: G_VD", family=SIMILARITY),
)


@dataclass(frozen=True)
class Cell:
    """A figure as people read it. mark: `best`, `worst` or nothing; sure: intervals are apart."""

    text: str
    mark: str = ""
    sure: bool = True


@dataclass(frozen=True)
class Row:
    """A system on a split, with the evaluator's strongest attacker, who has the lowest EER.

    values, cells: by column, the same columns in all rows of a summary, those of utility last.
    """

    split: str
    system: str
    attacker: str
    speakers: str
    values: dict[Measure, Value | None]
    cells: dict[Measure, Cell] = field(default_factory=dict)


def summary(results: Results, evaluator: str) -> list[Row]:
    """Each system of one evaluator, by split; best and worst of a column marked."""
    own = where(results.metrics, evaluator=evaluator)
    best = {(s.split, s.system): s.eer.attacker for s in strongest(own) if s.eer is not None}
    useful = [
        measure(name, title=f"Utility: {MEASURES[name].title} by {by}", family=UTILITY, by=by)
        for name in UTILITY_MEASURES
        for by in results.recognisers(name)
    ]
    found = []
    for split in results.splits(evaluator):
        for system in results.systems():
            who = best.get((split, system), "")
            values = {
                m: results.value(
                    m.by or evaluator,
                    split,
                    system,
                    "" if m.family else who,
                    m.name,
                    m.family or VERIFICATION,
                )
                for m in (*SUMMARY, *useful)
            }
            if any(values[m] is not None for m in SUMMARY):
                counts = set(where(own, split=split, system=system)["n_speakers"]) - {""}
                speakers = "–".join(sorted(counts, key=lambda text: (len(text), text)))
                found.append(Row(split, system, who, speakers, values))
    for m in (*SUMMARY, *useful):
        if m in SUMMARY or any(row.values[m] is not None for row in found):
            for row in found:
                column = [other.values[m] for other in found if other.split == row.split]
                row.cells[m] = _mark(m, row.values[m], column)
    return found


def _mark(m: Measure, mine: Value | None, column: Iterable[Value | None]) -> Cell:
    """The cell of a system; marked when it is the best or the worst of at least two."""
    text = show(mine, m, unit=True, missing="–" if m.by else "not measured", undefined=UNDEFINED)
    values = [v for v in column if v is not None and not math.isnan(v.value)]
    if mine is None or math.isnan(mine.value) or len({v.value for v in values}) < 2:
        return Cell(text)
    for mark, sign in (("best", m.better), ("worst", -m.better)):
        if all(sign * mine.value >= sign * v.value for v in values):
            others = [v for v in values if v.value != mine.value]
            return Cell(text, mark, all(map(mine.apart, others)))
    return Cell(text)
