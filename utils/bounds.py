# SPDX-License-Identifier: Apache-2.0
"""Bounds of a setting, beside its type: `Annotated[float, Number(above=0, unit="s")]`."""

import math
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated

LARGEST = 65536  # of a layer: channels, frames of a kernel


@dataclass(frozen=True)
class Number:
    """Bounds of a number: at least, above, at most, below. multiple, odd: of a whole number."""

    least: float = -math.inf
    most: float = math.inf
    above: float = -math.inf
    below: float = math.inf
    multiple: int = 1
    odd: bool = False
    unit: str = ""

    def allows(self, value: float) -> bool:
        """Whether a number lies within the bounds."""
        inside = self.least <= value <= self.most and self.above < value < self.below
        return (
            inside
            and not (self.odd and value % 2 == 0)
            and (self.multiple == 1 or value % self.multiple == 0)
        )

    def __str__(self) -> str:
        kinds = ["an odd number"] * self.odd
        kinds += [f"a multiple of {self.multiple}"] * (self.multiple > 1)
        if min(self.least, -self.most) > -math.inf:
            ends = [f"{self.least:g} to {self.most:g}"]
        else:
            ends = [f"at least {self.least:g}"] * (self.least > -math.inf)
            ends += [f"above {self.above:g}"] * (self.above > -math.inf)
            ends += [f"at most {self.most:g}"] * (self.most < math.inf)
            ends += [f"below {self.below:g}"] * (self.below < math.inf)
        words = ", ".join([*kinds, *([" and ".join(ends)] if ends else [])])
        return f"{words} {self.unit}".rstrip()


class OneOf:
    """Allowed words; of: also those of a registry, as it then is."""

    def __init__(self, *known: str, of: Collection[str] = ()) -> None:
        self._known, self._of = known, of

    @property
    def known(self) -> tuple[str, ...]:
        """Allowed words."""
        return (*self._known, *self._of)

    def allows(self, value: str) -> bool:
        """Whether a word is allowed."""
        return value in self.known

    def __str__(self) -> str:
        return f"one of: {', '.join(self.known)}"


@dataclass(frozen=True)
class Long:
    """Length of a list: `least` at least, or `exactly` so many."""

    least: int = 1
    exactly: int | None = None

    def allows(self, value: tuple[object, ...]) -> bool:
        """Whether a list has an allowed length."""
        n = len(value)
        return n == self.exactly if self.exactly is not None else n >= self.least

    def __str__(self) -> str:
        n = self.exactly if self.exactly is not None else f"{self.least} or more"
        return f"a list of {n} values"


@dataclass(frozen=True)
class Ascending:
    """Order of a list: no value is below the one before."""

    def allows(self, value: tuple[float, ...]) -> bool:
        """Whether the values ascend."""
        return list(value) == sorted(value)

    def __str__(self) -> str:
        return "the lower end first"


@dataclass(frozen=True)
class Matching:
    """Words of a form: a regular expression, and its meaning."""

    form: str
    meaning: str

    def allows(self, value: str) -> bool:
        """Whether a word has the form."""
        return re.fullmatch(self.form, value) is not None

    def __str__(self) -> str:
        return self.meaning


Rule = Number | OneOf | Long | Ascending | Matching

Count = Annotated[int, Number(least=1)]
Natural = Annotated[int, Number(least=0)]
Size = Annotated[int, Number(least=1, most=LARGEST)]
SizeOrNone = Annotated[int, Number(least=0, most=LARGEST)]
Sizes = Annotated[tuple[Size, ...], Long()]
OddSize = Annotated[int, Number(least=1, most=LARGEST, odd=True)]
Share = Annotated[float, Number(least=0, most=1)]
Part = Annotated[float, Number(above=0, most=1)]
Positive = Annotated[float, Number(above=0)]
NotNegative = Annotated[float, Number(least=0)]
