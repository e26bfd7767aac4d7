# SPDX-License-Identifier: Apache-2.0
"""Privacy against utility: who is on the Pareto front, and who is behind whom.

Privacy is the EER of the strongest attacker measured (local/report/strongest.py), utility a word
error rate, a recall of emotions or an estimated opinion score on the same split. A system is on
the front when no other is at least as good in both and better in one; by the point estimates, and
whether the intervals of a system and of one before it overlap is told.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from local.metrics.detection import folded
from local.report.load import NOTHING, Value
from local.report.results import Figure
from local.report.strongest import strongest, unprotected
from local.report.verdict import fold
from local.report.words import UTILITY_METRICS, enumerate_words, parse, percent, target_voices


@dataclass(frozen=True)
class Point:
    """A system; privacy: EER of the strongest attacker, a fraction; utility: a
    fraction, or a score from 1 to 5."""

    system: str
    privacy: Value
    utility: Value


@dataclass(frozen=True)
class Trade:
    """The systems of a split by one measure of utility, `metric` by `recogniser`.

    left_out: systems without privacy, without utility, or with one undefined, and why.
    """

    split: str
    metric: str
    recogniser: str
    points: Sequence[Point]
    unprotected: Point | None
    left_out: Sequence[str] = ()

    def front(self) -> list[Point]:
        """Systems that no other dominates, by rising privacy."""
        found = [p for p in self.points if not self.behind(p)]
        return sorted(found, key=lambda p: (p.privacy.value, p.system))

    def behind(self, point: Point) -> list[Point]:
        """The systems that are at least as good as `point` in both, and better in one."""
        return [other for other in self.points if self.dominates(other, point)]

    def dominates(self, a: Point, b: Point) -> bool:
        """Whether `a` is at least as good as `b` in both, and better in one."""
        sign = 1 if UTILITY_METRICS[self.metric].higher_is_better else -1
        gains = (a.privacy.value - b.privacy.value, sign * (a.utility.value - b.utility.value))
        return min(gains) >= 0 and max(gains) > 0

    def finding(self) -> str:
        """The front in words, who is behind it, and what it would be without protection."""
        what = f"{self.metric.upper()} by {self.recogniser}"
        higher = "higher" if UTILITY_METRICS[self.metric].higher_is_better else "lower"
        front = self.front()
        text = (
            f"{self.split}, {what}: on the Pareto front (no other system has both a higher EER "
            f"of its strongest attacker and a {higher} {self.metric.upper()}): "
            f"{'; '.join(self._say(p) for p in front) or 'no system'}."
        )
        if others := [self._say_behind(p) for p in self.points if p not in front]:
            text += f" Behind it: {'; '.join(others)}."
        if self.unprotected is not None:
            text += (
                " Unprotected speech, by the evaluator with the lowest EER above: "
                f"{self._numbers(self.unprotected)}."
            )
            worse = [p.system for p in self.points if self.dominates(self.unprotected, p)]
            if worse:
                names = enumerate_words(worse, len(worse))
                text += f" Better in neither than unprotected speech: {names}."
        if self.left_out:
            text += f" Not drawn: {'; '.join(self.left_out)}."
        return text

    def _numbers(self, point: Point) -> str:
        return (
            f"EER {percent(point.privacy.value)}, "
            f"{self.metric.upper()} {UTILITY_METRICS[self.metric].say(point.utility.value)}"
        )

    def _say(self, point: Point) -> str:
        return f"{point.system} ({self._numbers(point)})"

    def _say_behind(self, point: Point) -> str:
        before = [f"{p.system}{self._doubt(p, point)}" for p in self.behind(point)]
        return f"{self._say(point)}, behind {enumerate_words(before)}"

    def _doubt(self, a: Point, b: Point) -> str:
        """In what the intervals of two systems overlap, or are not known."""
        pairs = (("EER", a.privacy, b.privacy), (self.metric.upper(), a.utility, b.utility))
        if not all(x.bounded and y.bounded for _, x, y in pairs):
            return " (intervals not known)"
        overlap = [name for name, x, y in pairs if x.low <= y.high and y.low <= x.high]
        return f" (intervals of {enumerate_words(overlap)} overlap)" if overlap else ""


def _value(figure: Figure | None) -> Value:
    if figure is None:
        return NOTHING
    return Value(parse(figure.value), parse(figure.low), parse(figure.high))


def trades(figures: Iterable[Figure]) -> list[Trade]:
    """Every split, measure of utility and recogniser that have both privacy and utility."""
    figures = list(figures)
    targets = set(target_voices(dict.fromkeys(f.system for f in figures)))
    privacy = {(s.split, s.system): s.eer for s in strongest(figures) if s.system not in targets}
    useful = {
        (f.metric, f.evaluator, f.split, f.system): f
        for f in figures
        if f.metric in UTILITY_METRICS and f.system not in targets
    }
    found = []
    for metric, recogniser in dict.fromkeys(key[:2] for key in useful):
        for split in sorted({key[2] for key in useful if key[:2] == (metric, recogniser)}):
            measured = {
                key[3]: f for key, f in useful.items() if key[:3] == (metric, recogniser, split)
            }
            attacked = {system: eer for (of, system), eer in privacy.items() if of == split}
            if attacked:
                before = _unprotected(figures, split, attacked, measured.pop("original", None))
                found.append(_trade(split, metric, recogniser, attacked, measured, before))
    order = {metric: n for n, metric in enumerate(UTILITY_METRICS)}
    return sorted(found, key=lambda t: order[t.metric])


def _unprotected(
    figures: Sequence[Figure], split: str, attacked: dict[str, Figure | None], useful: Figure | None
) -> Point | None:
    """Unprotected speech under the evaluator who has the lowest EER of all systems."""
    eers = [f for f in attacked.values() if f is not None]
    lowest = min(eers, key=lambda f: folded(parse(f.value)), default=None)
    bare = unprotected(figures).get((split, lowest.evaluator)) if lowest else None
    point = Point("original", _value(bare), _value(useful))
    return point if _is_defined(point) else None


def _is_defined(point: Point) -> bool:
    return math.isfinite(point.privacy.value) and math.isfinite(point.utility.value)


def _trade(
    split: str,
    metric: str,
    recogniser: str,
    attacked: dict[str, Figure | None],
    measured: dict[str, Figure],
    unprotected: Point | None,
) -> Trade:
    points, left_out = [], []
    for system in dict.fromkeys([*attacked, *measured]):
        point = Point(system, fold(_value(attacked.get(system))), _value(measured.get(system)))
        if _is_defined(point):
            points.append(point)
            continue
        for what, of, value in (
            ("EER", attacked, point.privacy), (metric.upper(), measured, point.utility)
        ):  # fmt: skip
            if not math.isfinite(value.value):
                state = "not defined" if system in of else "not measured"
                left_out.append(f"{system} ({what} {state})")
    return Trade(split, metric, recogniser, points, unprotected, left_out)
