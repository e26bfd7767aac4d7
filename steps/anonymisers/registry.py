"""Anonymisers by name: their interface, their settings, and the level of their speech."""

from abc import abstractmethod
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from steps import sources
from utils.arrays import Float64
from utils.cli import UserError
from utils.registry import choose, load
from utils.seeds import Draws
from utils.settings import name_settings, read_settings
from utils.tables import StrPath

# ---- Level of protected speech: one rule for every system, as level alone can leak who speaks.


@dataclass(frozen=True)
class OutputLevel:
    """Rule that the largest sample becomes `peak` of `full_scale`.

    `truncate`: towards zero, as the challenges of 2022 and 2024 do, not to the nearest number.
    """

    peak: float = 0.95
    full_scale: int = 32768
    truncate: bool = False

    def to_pcm16(self, samples: npt.NDArray[np.float64]) -> npt.NDArray[np.int16]:
        """16-bit samples at that level; digital silence stays silent. UserError if not finite."""
        largest = float(np.max(np.abs(samples), initial=0.0))
        if not np.isfinite(largest):
            raise UserError("the protected signal is not finite")
        if largest == 0.0:
            return np.zeros(len(samples), np.int16)
        scaled = samples / largest * (self.peak * self.full_scale)
        whole = np.trunc(scaled) if self.truncate else np.rint(scaled)
        return np.minimum(whole, 32767).astype(np.int16)


@dataclass(frozen=True)
class AsItIs:
    """Rule that keeps another program's level: 1 is full scale, and values above are clipped."""

    def to_pcm16(self, samples: npt.NDArray[np.float64]) -> npt.NDArray[np.int16]:
        """Samples of 16 bit. UserError if not finite."""
        if not np.isfinite(samples).all():
            raise UserError("the protected signal is not finite")
        return np.clip(np.rint(samples * 32768), -32768, 32767).astype(np.int16)


# ---- Anonymisers by name, their common interface, and their construction from a YAML file.

# Of an anonymiser: CPU seconds for a second of speech, one core of ours (benchmarks/RESULTS.md).
CPU_SECONDS = {"mcadams": 0.006, "voice_conversion": 0.04, "knn_vc": 0.04, "model": 0.07}


@dataclass(frozen=True)
class Description:
    """Requirements of a system. level: of its keys. needs: folders (`sources.NEEDS`). levels:
    allowed values of `level` in its file; none where nothing is drawn, so that no level applies.

    "pool:wavlm" is a pool of steps/extract_wavlm.py. A trained part is named with its settings:
    "synthesiser:nsf_mini" is made by conf/synthesisers/nsf_mini.yaml, "generator:idmap_mlp" by
    conf/generators/idmap_mlp.yaml. "model:bn" is models/bn. "external:<folder>" is that folder;
    "external:" one that a user's command fills (steps/protect_by_command.py).
    """

    level: str
    needs: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()


Spoken = tuple[Float64, dict[str, object]]
"""Protected speech (n,) float64 at 16 kHz, and columns of pseudo.tsv."""


class Anonymiser(sources.FromSettings):
    """Configured system.

    level: of its keys (`make_keys`). output: the level of its files. is_random: a second run
    (`--draw 1`) gives other speech; calibration distortion needs two runs. None: unknown.
    """

    level: str
    output: OutputLevel | AsItIs
    is_random: bool | None = True

    @classmethod
    @abstractmethod
    def describe(cls, settings: Any, path: StrPath) -> Description:
        """Requirements of the settings, without any folder."""

    @abstractmethod
    def transform(
        self, wave: Float64, key: sources.VoiceKey, source: sources.SourceSpeaker
    ) -> Spoken:
        """Protect (n,) float64 at 16 kHz; returns speech (n,) and further columns of pseudo.tsv."""

    def settings(self) -> dict[str, object]:
        """All settings, defaults included, in the form of conf/systems/*.yaml."""
        return asdict(self.given)


# Loaded on demand: some need packages that take seconds to load.
KINDS = {
    "mcadams": "steps.anonymisers.mcadams:McAdams",
    "copy_synthesis": "steps.anonymisers.vocoder:CopySynthesis",
    "knn_vc": "steps.anonymisers.knn_vc:KnnVc",
    "articulation": "steps.anonymisers.vocoder:Articulation",
    "voice_conversion": "steps.anonymisers.voice_conversion:VoiceConversion",
    "model": "steps.anonymisers.voice_conversion:HandedOn",
    "external": "steps.anonymisers.external:External",
    "command": "steps.anonymisers.external:Command",
}


def load_anonymiser(
    path: StrPath,
    draws: Draws = sources.FIRST,
    resources: sources.Resources = sources.NOTHING,
    *,
    level: str | None = None,
) -> Anonymiser:
    """Make the system that a YAML file describes.

    level: instead of the file's, for an attacker who trains on a system's speech. UserError for an
    unknown system or setting, a value out of range, a missing folder that is needed, a second draw
    of a system that is not random, and a level that it cannot have.
    """
    kind, values = _read(path, level)
    path = name_settings(path)
    anonymiser: Anonymiser = kind.make(
        kind.parse(values, path), sources.SystemRun(path, resources, draws)
    )
    if draws.draw and not anonymiser.is_random:
        raise UserError(
            f"{path}: --draw {draws.draw}: this system draws nothing at random, so all its runs "
            "are the same, and what compares two runs (C_ECE) is not defined for it"
        )
    return anonymiser


def describe_system(path: StrPath, level: str | None = None) -> Description:
    """Requirements of a system, from its YAML file alone; errors as in `load_anonymiser`."""
    kind, values = _read(path, level)
    path = name_settings(path)
    return kind.describe(kind.parse(values, path), path)


def find_kind(values: dict[str, object], path: StrPath) -> type[Anonymiser]:
    """Kind for the settings from `path`; UserError for an unknown one."""
    return load(choose(KINDS, values.get("anonymiser"), path, "anonymiser"))


def _read(path: StrPath, level: str | None = None) -> tuple[type[Anonymiser], dict[str, object]]:
    values, path = read_settings(path), name_settings(path)
    kind = find_kind(values, path)
    if level is None:
        return kind, values
    levels = kind.describe(kind.parse(values, path), path).levels
    if level not in levels:
        known = ", ".join(levels) or "none: it draws nothing at random"
        raise UserError(f"{path}: --level {level}: this system cannot have it; known: {known}")
    return kind, {**values, "level": level}
