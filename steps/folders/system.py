# SPDX-License-Identifier: Apache-2.0
"""System in its own folder: system.yaml, its needs, and its measured limits."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steps.anonymisers.model import CONF, HELD, held
from steps.anonymisers.registry import Anonymiser, describe_system, load_anonymiser
from steps.sources import Resources
from utils.cli import UserError
from utils.digests import contents, digest_file, digest_json
from utils.settings import is_settings
from utils.tables import is_there, read_lines

LIMITS = "limits.txt"
# Limits of every system; a folder's limits.txt gives figures.
UNMEASURED = (
    "This hides the voice. It does not hide what is said, names that are spoken, and timing:",
    "whoever knows a speaker by the way of speaking may know them still, and whoever has several",
    "recordings of one person may find out that they belong together.",
    "Whoever has the key and the models can find out which voice became which.",
    "No figures belong to this system: measure it on speech like yours before you rely on it",
    "(docs/recipe.md).",
)


@dataclass(frozen=True)
class System:
    """Loaded system. digest: of all that its speech depends on, except the key."""

    anonymiser: Anonymiser
    digest: str
    limits: Sequence[str]


def load_system(path: Path, seed: int) -> System:
    """Load a folder or a yaml file; UserError for a missing one, or one that needs more than a
    folder of audio."""
    folder = path if path.is_dir() else None
    conf = path if folder is None else folder / CONF
    if not is_settings(conf):
        raise UserError(f"{conf}: is missing; a system is a yaml file, or a folder with {CONF}")
    found = {} if folder is None else held(folder)
    for need in (need.split(":")[0] for need in describe_system(conf).needs):
        if need not in ("f0", *HELD):
            raise UserError(
                f"{conf}: this system wants {need} of every speaker, which a folder of audio does "
                "not give; use a recipe (run.sh), or another system"
            )
    # f0 is measured for each group of files; a given one lets a system ask for it.
    given: dict[str, Any] = {"f0": path, **found}
    resources = Resources(**given)
    anonymiser = load_anonymiser(conf, seed=seed, resources=resources)
    if folder is None:
        return System(anonymiser, digest_file(conf), UNMEASURED)
    told = folder / LIMITS
    limits = [line.rstrip("\n") for _, line in read_lines(told)] if is_there(told) else UNMEASURED
    return System(anonymiser, digest_json(contents(folder, ours=False)), limits)
