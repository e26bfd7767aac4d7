# SPDX-License-Identifier: Apache-2.0
"""Systems B2 and B2r: McAdams coefficient, fixed or drawn, as here and as in the challenges."""

import hashlib
from dataclasses import asdict, dataclass, fields, replace
from typing import Annotated, Any, Self

import numpy as np

from steps.anonymisers.formants import FrameOptions, transform
from steps.anonymisers.loudness import OutputLevel
from steps.anonymisers.registry import Description
from steps.keys import LEVELS, Key
from steps.sources import Run, Source
from utils.arrays import Float64
from utils.bounds import Ascending, Number, OneOf, Part, Positive
from utils.seeds import make_rng
from utils.settings import Declared
from utils.tables import StrPath


@dataclass(frozen=True)
class Settings:
    """Settings of a configuration; None: not given. See docs/mcadams.md."""

    anonymiser: str
    alpha: Positive | None = None
    alpha_range: Annotated[tuple[Positive, Positive], Ascending()] | None = None
    level: str | None = None
    compat: Annotated[str, OneOf("vpc20", "vpc22", "vpc24")] | None = None
    peak: Part | None = None
    order: Annotated[int, Number(least=1, most=60)] | None = None
    pad_edges: bool | None = None
    skip_first_frame: bool | None = None
    clamp: bool | None = None
    match_energy: bool | None = None

    def __post_init__(self) -> None:
        preset = PRESETS[self.compat]
        given = {name for name, value in asdict(self).items() if value is not None}
        if self.compat and (fixed := sorted(given - _MAY_DIFFER)):
            raise ValueError(
                f"{fixed[0]}: is fixed by compat: {self.compat}; leave out one of the two"
            )
        if {"alpha", "alpha_range"} <= given:
            raise ValueError("alpha_range: alpha is given too; leave out one of the two")
        drawn = self.alpha_range or (self.alpha is None and preset.alpha_range)
        if self.level is not None and not drawn:
            raise ValueError("level: alpha is fixed, so no level applies; give alpha_range")
        if self.level is not None and self.level not in preset.levels:
            known = ", ".join(preset.levels)
            raise ValueError(f"level: {self.level!r} is unknown here; known: {known}")


@dataclass(frozen=True)
class Preset:
    """Rules of one generation of the code.

    levels: allowed setting -> the level of the keys. level: the default.
    """

    alpha: float | None
    alpha_range: tuple[float, float] | None
    level: str
    levels: dict[str, str]
    frames: FrameOptions
    output: OutputLevel


_OWN_LEVELS = {level: level for level in LEVELS}
# At level spk the challenges of 2022 and 2024 use only the speaker, so sets share the draw.
_LEVELS_2022 = {"spk": "perm", "utt": "utt"}
_LEVELS_2024 = {"spk": "perm", "utt": "position"}
_FRAMES_2020 = FrameOptions(pad_edges=False, skip_first_frame=True)
_FRAMES_2024 = FrameOptions(pad_edges=False, clamp=False)
_OUTPUT_2022 = OutputLevel(peak=1.0, full_scale=32766, truncate=True)
_WIDE = (0.5, 0.9)
PRESETS = {
    None: Preset(0.8, None, "spk", _OWN_LEVELS, FrameOptions(), OutputLevel()),
    "vpc20": Preset(0.8, None, "spk", _OWN_LEVELS, _FRAMES_2020, OutputLevel(peak=1.0)),
    "vpc22": Preset(None, _WIDE, "spk", _LEVELS_2022, _FRAMES_2020, _OUTPUT_2022),
    "vpc24": Preset(None, _WIDE, "utt", _LEVELS_2024, _FRAMES_2024, _OUTPUT_2022),
}
_MAY_DIFFER = {"anonymiser", "compat", "alpha", "alpha_range", "level"}  # from a preset
_EACH = {"spk": "person", "perm": "person", "const": "run"}  # else recording: purpose of a draw


class McAdams(Declared[Settings]):
    """One configured system; see `registry.Anonymiser`."""

    kind = Settings

    def __init__(self, settings: Settings, *, seed: int = 0, draw: int = 0) -> None:
        preset = PRESETS[settings.compat]
        self.alpha, self.alpha_range = settings.alpha, settings.alpha_range
        if self.alpha is None and self.alpha_range is None:
            self.alpha, self.alpha_range = preset.alpha, preset.alpha_range
        self.compat = settings.compat
        level = preset.levels[settings.level or preset.level]
        self.level = "const" if self.alpha_range is None else level
        self.frames = replace(preset.frames, **_given(settings, FrameOptions))
        self.output = replace(preset.output, **_given(settings, OutputLevel))
        self.is_random = self.alpha_range is not None and self.compat != "vpc24"
        self.notes: list[str] = []
        self._seed, self._draw = seed, draw

    @classmethod
    def make(cls, settings: Settings, run: Run) -> Self:
        """See sources.Kind."""
        return cls(settings, seed=run.seed, draw=run.draw)

    @classmethod
    def describe(cls, settings: Settings, path: StrPath) -> Description:  # noqa: ARG003
        """Needs: nothing but the speech."""
        system = cls(settings)
        levels = () if system.alpha_range is None else tuple(PRESETS[system.compat].levels)
        return Description(system.level, levels=levels)

    def settings(self) -> dict[str, object]:
        """All settings, defaults included, and one sentence (`note`) on the system."""
        return {
            "anonymiser": "mcadams",
            "note": self._note(),
            "compat": self.compat,
            "alpha": self.alpha,
            "alpha_range": self.alpha_range,
            "level": self.level,
            **asdict(self.frames),
            "output": asdict(self.output),
        }

    def _note(self) -> str:
        if self.alpha_range is None:
            return f"The McAdams coefficient {self.alpha} moves the formants, for everybody alike."
        low, high = self.alpha_range
        each = _EACH.get(self.level, "recording")
        return (
            f"A McAdams coefficient between {low} and {high} moves the formants; it is drawn for "
            f"each {each}."
        )

    def transform(
        self,
        wave: Float64,
        key: Key,
        source: Source,  # noqa: ARG002
    ) -> tuple[Float64, dict[str, object]]:
        """Protected speech; drawn values, number of frames, and of those with `numpy.roots`."""
        alpha = self.coefficient(key)
        warped = transform(wave, alpha, self.frames)
        return warped.samples, {
            "alpha": alpha,
            "frames": warped.n_frames,
            "slow_frames": warped.n_slow,
        }

    def coefficient(self, key: Key) -> float:
        """Coefficient alpha of a key: fixed, or uniform over the range."""
        if self.alpha_range is None:
            assert self.alpha is not None
            return self.alpha
        return float(self._generator(key).uniform(*self.alpha_range))

    def _generator(self, key: Key) -> np.random.Generator:
        if self.compat != "vpc24":
            return make_rng(self._seed, "mcadams", f"draw {self._draw}", *key.parts)
        if key.level == "position":
            # The challenge draws for all utterances from one generator; a draw is one step of it.
            bits = np.random.PCG64(_vpc24_seed("VPC2024"))
            bits.advance(int(key.names[-1]))
            return np.random.Generator(bits)
        return np.random.default_rng(_vpc24_seed(key.names[-1]))


def _vpc24_seed(text: str) -> int:
    return int(hashlib.sha256(text.encode("utf-8")).hexdigest()[:8], 16)


def _given(settings: Settings, kind: type[FrameOptions | OutputLevel]) -> dict[str, Any]:
    """Given settings that belong to a dataclass."""
    names = {field.name for field in fields(kind)}
    return {k: v for k, v in asdict(settings).items() if k in names and v is not None}
