# SPDX-License-Identifier: Apache-2.0
"""The anonymisers by name, what they have in common, and how one is made from its YAML file."""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from steps.anonymisers.b2 import McAdams
from steps.anonymisers.levels import OutputLevel
from steps.anonymisers.strategy import Key
from utils.cli import UserError
from utils.settings import read_settings
from utils.tables import StrPath

FloatArray = npt.NDArray[np.float64]


class Anonymiser(Protocol):
    """A configured system.

    level: of the keys that it wants (`strategy.make_keys`). output: the level of its files.
    is_random: a second run (`--draw 1`) gives other speech; calibration distortion needs two runs.
    """

    level: str
    output: OutputLevel
    is_random: bool

    def transform(self, wave: FloatArray, key: Key) -> tuple[FloatArray, dict[str, object]]:
        """(n,) float64 at 16 kHz -> protected speech, n to 10 ms; further columns of pseudo.tsv."""
        ...

    def settings(self) -> dict[str, object]:
        """All settings, defaults included, for conf.json."""
        ...


KINDS = {"mcadams": McAdams.from_settings}


def load_anonymiser(path: StrPath, *, seed: int = 0, draw: int = 0) -> Anonymiser:
    """The system that a YAML file describes. `draw`: number of the independent run, from 0.

    UserError for an unknown system or setting, a value out of range, and a second draw of a system
    that draws nothing.
    """
    values = read_settings(path)
    name = values.get("anonymiser")
    if not isinstance(name, str) or name not in KINDS:
        raise UserError(f"{path}: anonymiser: {name!r} is unknown; known: {', '.join(KINDS)}")
    anonymiser: Anonymiser = KINDS[name](values, path, seed=seed, draw=draw)
    if draw and not anonymiser.is_random:
        raise UserError(
            f"{path}: --draw {draw}: this system draws nothing at random, so all its runs are the "
            "same, and what compares two runs (C_ECE) is not defined for it"
        )
    return anonymiser
