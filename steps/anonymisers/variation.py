# SPDX-License-Identifier: Apache-2.0
"""Settings of a system with some of them changed, checked and written."""

from collections.abc import Sequence
from pathlib import Path

import yaml

from steps.anonymisers.registry import describe_system
from utils.cli import UserError
from utils.settings import read_settings
from utils.tables import atomic_write

WITH_PROFILES = ("knn_vc",)  # anonymisers with settings `profiles` and `profile`


def vary_system(
    conf: Path, out: Path, changes: Sequence[str], profile: tuple[int, int] | None = None
) -> int:
    """Write the settings of conf to out, changed as NAME=VALUE says; returns the draw that
    steps/anonymise.py needs.

    profile: number of a pseudo-profile, from 1, and how many there are: systems that know profiles
    get these settings, of all others a profile is an independent draw. UserError for a setting that
    the system cannot have; nothing is written then.
    """
    settings, draw = read_settings(conf), 0
    for word in changes:
        _change(settings, word, conf)
    if profile is not None:
        number, profiles = profile
        if not 1 <= number <= profiles:
            raise UserError(f"--profile {number}: from 1 to {profiles}")
        if settings.get("anonymiser") in WITH_PROFILES:
            settings |= {"profiles": profiles, "profile": number}
        else:
            draw = number - 1
    with atomic_write(out) as stream:
        stream.write(f"# {conf}, changed by steps/vary_system.py\n")
        stream.write(yaml.safe_dump(settings, sort_keys=False))
    try:
        describe_system(out)
    except UserError:
        out.unlink()
        raise
    return draw


def _change(settings: dict[str, object], word: str, conf: Path) -> None:
    """Set one setting; UserError for what is no NAME=VALUE or leads into a value."""
    name, given, value = word.partition("=")
    *into, last = name.split(".")
    if not given or not all((*into, last)):
        raise UserError(f"{word!r}: NAME=VALUE is expected")
    place: object = settings
    for part in into:
        place = place.get(part) if isinstance(place, dict) else None
    if not isinstance(place, dict):
        raise UserError(f"{conf}: {'.'.join(into)}: is no mapping, so {name} cannot be set")
    try:
        place[last] = yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise UserError(f"{word!r}: the value is not YAML") from error
