"""Settings that say themselves what is allowed: one line for whatever is not."""

from dataclasses import dataclass, field
from typing import Annotated

from tests.cases import cases
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


@cases
def test_what_is_not_allowed_is_said_in_one_line(values: dict, message: str) -> None:
    given = {"colour": "red", **values} if values and "colour" not in values else values
    assert refuses("^toy", parse_settings, Toy, given, "toy.yaml") == f"toy.yaml: {message}"


def test_what_is_allowed_comes_back() -> None:
    given = {
        "colour": "green", "kernel": 7, "speed": 8.5, "digest": "beef", "layers": [2, 1],
        "inner": {"crop": [0.1, 0.1], "sizes": [48, 16]},
    }  # fmt: skip
    assert to_plain(parse_settings(Toy, given, "toy.yaml")) == given


def test_a_name_is_chosen_and_loaded_when_asked_for() -> None:
    kinds = {"toy": "tests.test_settings:Toy", "missing": "no.such_module:X"}
    assert load(choose(kinds, "toy", "x.yaml", "kind")).__name__ == "Toy"
    said = "x.yaml: kind: 'toi' is unknown; known: toy, missing; did you mean toy?"
    assert refuses("^x.yaml", choose, kinds, "toi", "x.yaml", "kind") == said
