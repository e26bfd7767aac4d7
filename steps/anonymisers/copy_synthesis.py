# SPDX-License-Identifier: Apache-2.0
"""WORLD analysis and synthesis without any change: the effect of the vocoder alone.

Not a protection. Compare its error rates with those of systems built on WORLD: a part of their rise
comes from the vocoder.
"""

from dataclasses import asdict, dataclass
from typing import Self

import numpy as np

from steps.anonymisers.loudness import OutputLevel
from steps.anonymisers.registry import Description
from steps.keys import Key
from steps.sources import Run, Source
from steps.synthesis.world import F0_RANGE, analyse, analyse_finely, check_f0_range, synthesise
from utils.arrays import Float64
from utils.bounds import Part
from utils.settings import Declared
from utils.tables import StrPath


@dataclass(frozen=True)
class Settings:
    """Settings of a configuration. f0_range: lowest and highest F0 in Hz. fine: frames as of
    `synthesiser: bn_*`, `world.analyse_finely`."""

    anonymiser: str
    fine: bool = False
    f0_range: tuple[float, float] = F0_RANGE
    peak: Part = OutputLevel.peak


class CopySynthesis(Declared[Settings]):
    """One configured system; see `registry.Anonymiser`."""

    kind = Settings
    level = "const"
    is_random = False

    def __init__(self, settings: Settings, path: StrPath) -> None:
        """Check the settings of the file `path`; UserError names it and the setting."""
        check_f0_range(settings.f0_range, f"{path}: f0_range")
        self.f0_range, self.fine = settings.f0_range, settings.fine
        self.output = OutputLevel(settings.peak)
        self.notes: list[str] = []

    @classmethod
    def make(cls, settings: Settings, run: Run) -> Self:
        """See sources.Kind."""
        return cls(settings, run.path)

    @classmethod
    def describe(cls, settings: Settings, path: StrPath) -> Description:
        """Needs: nothing but the speech."""
        return Description(cls(settings, path).level)

    def settings(self) -> dict[str, object]:
        """All settings, defaults included."""
        return {
            "anonymiser": "copy_synthesis",
            "fine": self.fine,
            "f0_range": self.f0_range,
            "output": asdict(self.output),
        }

    def transform(
        self,
        wave: Float64,
        key: Key,  # noqa: ARG002
        source: Source,  # noqa: ARG002
    ) -> tuple[Float64, dict[str, object]]:
        """Resynthesised speech (n,), and its number of frames, and of those with a pitch."""
        frames = (analyse_finely if self.fine else analyse)(wave, self.f0_range)
        voiced = int(np.count_nonzero(frames.f0))
        return synthesise(frames, len(wave)), {"frames": len(frames), "voiced": voiced}
