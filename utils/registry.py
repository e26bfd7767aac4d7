"""Choices by name; their modules are loaded on demand.

A registry is a mapping of names to targets such as "steps.anonymisers.mcadams:McAdams". Names in
settings files are resolved by `choose` and `load`, words of a command by `find`.
"""

import importlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeVar

from utils.cli import UserError
from utils.tables import StrPath

T = TypeVar("T")


@dataclass(frozen=True)
class Kind:
    """Entry of a registry of which more is asked than its target; empty: it cannot be loaded."""

    target: str


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """`; did you mean x?`, if one of the known names is near; else an empty string."""
    near = get_close_matches(str(name), list(known), 1)
    return f"; did you mean {near[0]}?" if near else ""


def choose(kinds: Mapping[str, T], name: object, path: StrPath, where: str) -> T:
    """Entry of `kinds` for the setting `where` of a file; UserError lists the known ones."""
    if not isinstance(name, str) or name not in kinds:
        known = ", ".join(kinds) + did_you_mean(name, kinds)
        raise UserError(f"{path}: {where}: {name!r} is unknown; known: {known}")
    return kinds[name]


def load(target: str) -> Any:
    """Import the attribute that a target `module:attribute` names."""
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


def match(kinds: Iterable[str], word: str) -> tuple[str, tuple[str, ...]] | None:
    """The first of some kinds that fits a word, and the values of its <...>; None where none does.

    Kinds are names such as moonshine, or forms such as hub:<model>.
    """
    for form in kinds:
        if fits := re.fullmatch(re.sub(r"<\w+>", "(.+)", re.escape(form)), word):
            return form, fits.groups()
    return None


def find(kinds: Mapping[str, str | Kind], word: str, what: str) -> tuple[Any, tuple[str, ...]]:
    """Resolve a word to the target of its kind (`match`), and to the values of each <...>.

    UserError, with `what` as its kind, if none fits.

    >>> find({"cosine": "math:cos", "hub:<model>:<layer>": "math:sin"}, "hub:a/b:3", "")
    (<built-in function sin>, ('a/b', '3'))
    """
    targets = {form: k.target if isinstance(k, Kind) else k for form, k in kinds.items()}
    targets = {form: target for form, target in targets.items() if target}
    if found := match(targets, word):
        return load(targets[found[0]]), found[1]
    raise UserError(f"{word}: no {what}; known: {', '.join(targets)}{did_you_mean(word, targets)}")
