# SPDX-License-Identifier: Apache-2.0
"""What each VoicePrivacy challenge asks for: conf/protocols/*.yaml."""

from dataclasses import dataclass
from pathlib import Path

from utils.cli import UserError
from utils.settings import parse_settings, read_settings


@dataclass(frozen=True)
class Privacy:
    """attacker: whose EER counts. sets: names of averages and the splits in each. weights: of the
    splits of a set, in their order; none: all alike."""

    attacker: str
    sets: dict[str, list[str]]
    weights: tuple[float, ...] = ()


@dataclass(frozen=True)
class Protocol:
    """A file of conf/protocols. words, emotions: splits. categories: lowest average EERs.
    genders: whose lists are attacked; empty: as the corpus has them."""

    challenge: str
    attackers: str
    evaluators: str
    privacy: Privacy
    words: tuple[str, ...]
    informed_level: str = "utt"
    emotions: tuple[str, ...] = ()
    categories: tuple[float, ...] = ()
    genders: str = ""


def read_protocol(path: Path) -> Protocol:
    """A protocol; UserError for a setting that is unknown, or weights that are not one a split."""
    values = read_settings(path)
    privacy = values.pop("privacy", None)
    if not isinstance(privacy, dict) or not isinstance(privacy.get("sets"), dict):
        raise UserError(f"{path}: privacy: attacker and sets are expected")
    lists = {name: _names(values.pop(name, []), path, name) for name in ("words", "emotions")}
    numbers = {"categories": _numbers(values.pop("categories", []), path, "categories")}
    sets = {str(k): list(_names(v, path, f"sets: {k}")) for k, v in privacy["sets"].items()}
    weights = _numbers(privacy.get("weights", []), path, "weights")
    for name, splits in sets.items():
        if weights and len(weights) != len(splits):
            raise UserError(f"{path}: weights: {len(weights)} for {len(splits)} splits of {name}")
    plain = parse_settings(_Plain, values, path)
    return Protocol(
        plain.challenge, plain.attackers, plain.evaluators,
        Privacy(str(privacy.get("attacker", "")), sets, weights),
        lists["words"], plain.informed_level, lists["emotions"], numbers["categories"],
        plain.genders,
    )  # fmt: skip


@dataclass(frozen=True)
class _Plain:
    challenge: str
    attackers: str
    evaluators: str
    informed_level: str = "utt"
    genders: str = ""


def _names(value: object, path: Path, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise UserError(f"{path}: {where}: {value!r}; a list of names is expected")
    return tuple(value)


def _numbers(value: object, path: Path, where: str) -> tuple[float, ...]:
    good = isinstance(value, list) and all(
        isinstance(x, int | float) and not isinstance(x, bool) and 0 < x <= 1 for x in value
    )
    if not good or not isinstance(value, list):
        raise UserError(f"{path}: {where}: {value!r}; fractions from 0 to 1 are expected")
    return tuple(float(x) for x in value)
