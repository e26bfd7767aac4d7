# SPDX-License-Identifier: Apache-2.0
"""Requirements of each VoicePrivacy challenge: conf/protocols/*.yaml."""

from dataclasses import dataclass
from pathlib import Path

from utils.cli import UserError
from utils.settings import parse_settings, read_settings


@dataclass(frozen=True)
class Privacy:
    """attacker: of the EER that counts. sets: names of averages and the splits in each. weights: of
    the splits of a set, in their order; none: all equal."""

    attacker: str
    sets: dict[str, list[str]]
    weights: tuple[float, ...] = ()


@dataclass(frozen=True)
class Protocol:
    """Settings of a file of conf/protocols. words, emotions: splits. categories: lowest average
    EERs. genders: of the attacked lists; empty: those of the corpus."""

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
    """Read a protocol; UserError for an unknown setting, or not one weight for each split."""
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
