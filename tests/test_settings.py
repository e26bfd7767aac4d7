"""Settings that say themselves what is allowed: one line for whatever is not."""

from dataclasses import dataclass, field
from typing import Annotated

import pytest

from tests.refusals import refuses
from utils.registry import choose, load
from utils.settings import (
    Ascending,
    Count,
    Long,
    Matching,
    Number,
    OddSize,
    OneOf,
    Part,
    parse_settings,
    to_plain,
)


@dataclass(frozen=True)
class Inner:
    crop: Annotated[tuple[Part, Part], Ascending()] = (0.5, 1.0)
    sizes: Annotated[tuple[Annotated[int, Number(multiple=16)], ...], Long(exactly=2)] = (16, 32)


@dataclass(frozen=True)
class Toy:
    colour: Annotated[str, OneOf("red", "green")]
    kernel: OddSize = 3
    speed: Annotated[float, Number(above=0, below=9, unit="m/s")] | None = None
    digest: Annotated[str, Matching("[0-9a-f]{4}", "4 digits 0-9, a-f")] = "00ff"
    layers: Annotated[tuple[Count, ...], Long()] = (1,)
    inner: Inner = field(default_factory=Inner)

    def __post_init__(self) -> None:
        if self.kernel > 5 and self.colour == "red":
            raise ValueError(f"kernel: {self.kernel}; nothing red is wider than 5")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "colour: is missing"),
        ({"colour": "gren"}, "colour: 'gren' is unknown; known: red, green; did you mean green?"),
        ({"kernal": 3},
         "kernal: unknown setting; known: colour, kernel, speed, "
         "digest, layers, inner; did you mean kernel?"),
        ({"kernel": 4}, "kernel: 4; an odd number, 1 to 65536 is expected"),
        ({"kernel": 7}, "kernel: 7; nothing red is wider than 5"),
        ({"kernel": True}, "kernel: True; a whole number is expected"),
        ({"speed": 0}, "speed: 0; above 0 and below 9 m/s is expected"),
        ({"speed": float("nan")}, "speed: nan; a finite number is expected"),
        ({"digest": "00fg"}, "digest: '00fg'; 4 digits 0-9, a-f is expected"),
        ({"layers": []}, "layers: []; a list of 1 or more values is expected"),
        ({"layers": [1, 0]}, "layers: 0; at least 1 is expected"),
        ({"inner": {"crop": [1, 0.4]}}, "inner.crop: [1, 0.4]; the lower end first is expected"),
        ({"inner": {"crop": [0.5, 2]}}, "inner.crop: 2; above 0 and at most 1 is expected"),
        ({"inner": {"sizes": [16, 24]}}, "inner.sizes: 24; a multiple of 16 is expected"),
        ({"inner": {"sizes": [16]}}, "inner.sizes: [16]; a list of 2 values is expected"),
    ],
)  # fmt: skip
def test_what_is_not_allowed_is_said_in_one_line(values, message):
    given = {"colour": "red", **values} if values and "colour" not in values else values
    assert refuses("^toy", parse_settings, Toy, given, "toy.yaml") == f"toy.yaml: {message}"


def test_what_is_allowed_comes_back():
    given = {
        "colour": "green", "kernel": 7, "speed": 8.5, "digest": "beef", "layers": [2, 1],
        "inner": {"crop": [0.1, 0.1], "sizes": [48, 16]},
    }  # fmt: skip
    assert to_plain(parse_settings(Toy, given, "toy.yaml")) == given


def test_a_name_is_chosen_and_loaded_when_asked_for():
    kinds = {"toy": "tests.test_settings:Toy", "missing": "no.such_module:X"}
    assert load(choose(kinds, "toy", "x.yaml", "kind")).__name__ == "Toy"
    said = "x.yaml: kind: 'toi' is unknown; known: toy, missing; did you mean toy?"
    assert refuses("^x.yaml", choose, kinds, "toi", "x.yaml", "kind") == said
