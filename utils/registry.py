# SPDX-License-Identifier: Apache-2.0
"""What can be chosen by name in a settings file; modules are loaded when they are asked for.

A registry is a mapping of names to targets such as "steps.anonymisers.mcadams:McAdams".
"""

import importlib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from utils.cli import UserError
from utils.tables import StrPath

T = TypeVar("T")


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """`; did you mean x?`, where one of the known names is near; else nothing."""
    near = get_close_matches(str(name), list(known), 1)
    return f"; did you mean {near[0]}?" if near else ""


def choose(kinds: Mapping[str, T], name: object, path: StrPath, where: str) -> T:
    """What `kinds` has for the setting `where` of a file; UserError names the known ones."""
    if not isinstance(name, str) or name not in kinds:
        known = ", ".join(kinds) + did_you_mean(name, kinds)
        raise UserError(f"{path}: {where}: {name!r} is unknown; known: {known}")
    return kinds[name]


def load(target: str) -> Any:
    """The attribute that a target `module:attribute` names."""
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)
