"""Choices by name; their modules are loaded on demand.

A registry is a mapping of names to targets such as "steps.anonymisers.mcadams:McAdams". Names in
settings files are resolved by `choose` and `load`, words of a command by `find`.
"""

import importlib
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from utils.cli import UserError
from utils.tables import StrPath

T = TypeVar("T")


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


def find(kinds: Mapping[str, str], word: str, what: str) -> tuple[Any, tuple[str, ...]]:
    """Resolve a word to its target, and to the values of each <...> of its kind.

    Kinds are names such as moonshine, or forms such as hub:<model>; the first that fits is taken.
    UserError, with `what` as its kind, if none fits.

    >>> find({"cosine": "math:cos", "hub:<model>:<layer>": "math:sin"}, "hub:a/b:3", "")
    (<built-in function sin>, ('a/b', '3'))
    """
    for form, target in kinds.items():
        if fits := re.fullmatch(re.sub(r"<\w+>", "(.+)", re.escape(form)), word):
            return load(target), fits.groups()
    raise UserError(f"{word}: no {what}; known: {', '.join(kinds)}{did_you_mean(word, kinds)}")
