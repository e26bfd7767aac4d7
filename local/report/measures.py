"""Measures of figures, and the only way their values are written."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from local.metrics.intervals import COLUMNS as FIGURE
from local.metrics.intervals import key
from local.metrics.registry import KNOWN, read_table

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
    """A figure with its 95 % interval; NaN where there is none. tag: a value, not a number. One is
    less than another by its value alone."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    tag: str = ""

    def __lt__(self, other: "Value") -> bool:
        return self.value < other.value

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
