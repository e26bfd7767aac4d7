"""Facts about speech that a system asks for: keys of pseudo-speakers, models, who speaks."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from steps.speaker.vectors import read_xvectors
from steps.synthesis.f0 import F0Stats, read_f0_stats
from utils.arrays import Float64
from utils.cli import UserError
from utils.datadir import DataDir
from utils.seeds import Draws
from utils.settings import Declared
from utils.tables import StrPath

# ---- Keys of pseudo-speakers, from utterance, speaker and data set: equal keys share one.
#
# Systems draw from the key alone and never look at ids. The levels (words of the literature in
# brackets):
#
#     utt       every utterance its own (random)
#     spk       a speaker keeps one within a data set, and has another in another set (permanent)
#     perm      a speaker keeps one in all sets, enrolment and trials alike
#     const     one for everything (constant)

LEVELS = ("utt", "spk", "perm", "const")


@dataclass(frozen=True)
class VoiceKey:
    """Key of a draw: the level, and the names that count at this level.

    group: the names for draws that concern a speaker as a whole, even where every utterance has its
    own voice (a candidate set, a cluster, whether the gender changes).
    """

    level: str
    names: tuple[str, ...] = ()
    group: tuple[str, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return "|".join((self.level, *self.names))

    @property
    def parts(self) -> tuple[str, ...]:
        """Level and names, to seed a generator with."""
        return (self.level, *self.names)

    @property
    def group_parts(self) -> tuple[str, ...]:
        """Names as in `parts`, for draws that are made once a speaker."""
        return ("group", *self.group)


def make_keys(level: str, utt2spk: Mapping[str, str], dataset: str) -> dict[str, VoiceKey]:
    """Make the key of each utterance.

    >>> {utt: str(key) for utt, key in make_keys("spk", {"a-1": "a"}, "test").items()}
    {'a-1': 'spk|test|a'}
    """
    keys: dict[str, VoiceKey] = {}
    for utt, spk in utt2spk.items():
        names = {"utt": (dataset, utt), "spk": (dataset, spk), "perm": (spk,), "const": ()}[level]
        group = (dataset, spk) if level == "utt" else names
        keys[utt] = VoiceKey(level, names, group)
    return keys


def whole_set(path: Path) -> Path:
    """Data directory that `path` is a part of (data/x for data/x/split8/3), or itself."""
    absolute = path.resolve()
    if absolute.name.isdigit() and re.fullmatch(r"split\d+(utt)?", absolute.parent.name):
        return absolute.parent.parent
    return absolute


# ---- Sources of a system beside the wave: the given folders, and data on the speaker.

# Possible needs of a system, and the options of steps/anonymise.py for them.
NEEDS = ("pool", "xvectors", "backend", "f0", "synthesiser", "generator", "model", "external")


@dataclass(frozen=True)
class Resources:
    """Folders, if given.

    pool: target voices (steps/make_voice_pool.py). xvectors: of the set's speakers; several, of
    which the first that has a speaker counts (level perm: one x-vector in all sets). backend: PLDA
    to measure distances with (steps/train_backend.py). f0: the speakers' F0 statistics
    (steps/compute_f0_stats.py). synthesiser: a trained one (steps/train_synthesiser.py). generator:
    a trained one (steps/train_generator.py). model: a folder of steps/export_system.py. external:
    speech that another program protected. device: cpu or cuda, where it can be used.
    """

    pool: Path | None = None
    xvectors: tuple[Path, ...] = ()
    backend: Path | None = None
    f0: Path | None = None
    synthesiser: Path | None = None
    generator: Path | None = None
    model: Path | None = None
    external: Path | None = None
    device: str = "cpu"


NOTHING, FIRST = Resources(), Draws()  # defaults


@dataclass(frozen=True)
class SystemRun:
    """Run of a system. path: its file, for messages."""

    path: StrPath
    resources: Resources
    draws: Draws

    def folder(self, need: str, where: str = "") -> Path:
        """Folder for a need; where: the place in the file that needs it. UserError that names the
        option."""
        value: Path | Sequence[Path] | None = getattr(self.resources, need)
        if not value:
            raise UserError(f"{self.path}{where}: this system needs --{need} DIR")
        return value if isinstance(value, Path) else value[0]


class FromSettings(Declared[Any]):
    """Part of a system that is made from its settings. notes: requests that could not be met."""

    def __init__(self, settings: Any, run: SystemRun) -> None:
        """UserError for a missing folder that the settings need."""
        self.given, self.draws = settings, run.draws
        self.notes: list[str] = []

    @classmethod
    def make(cls, settings: Any, run: SystemRun) -> Any:
        """Make from checked settings."""
        return cls(settings, run)

    def note(self, text: str) -> None:
        """Add a note unless it is there already."""
        if text not in self.notes:
            self.notes.append(text)


class SourceSpeaker(NamedTuple):
    """Speaker of an utterance. Values that were not given are None.

    speaker: only to exclude them from their own targets. gender: f, m or other. xvector: (d,)
    mean of the speaker in this set. f0: their log-F0 statistics in this set. language: of the
    utterance, as utt2lang has it.
    """

    speaker: str
    gender: str | None = None
    xvector: Float64 | None = None
    f0: F0Stats | None = None
    language: str | None = None


def read_sources(data: DataDir, resources: Resources) -> dict[str, SourceSpeaker]:
    """Data on each speaker. UserError for a speaker who is missing from a given folder."""
    speakers = sorted(set(data.utt2spk.values()))
    genders = data.spk2gender or {}
    xvectors = _first_xvectors(speakers, resources.xvectors)
    f0: Mapping[str, F0Stats] = {}
    if resources.f0 is not None:
        f0 = read_f0_stats(resources.f0)
        if missing := [s for s in speakers if s not in f0]:
            raise UserError(f"{resources.f0 / 'spk_f0.scp'}: speaker {missing[0]} is not in it")
    return {
        speaker: SourceSpeaker(
            speaker, genders.get(speaker), xvectors.get(speaker), f0.get(speaker)
        )
        for speaker in speakers
    }


def _first_xvectors(speakers: Sequence[str], folders: Sequence[Path]) -> dict[str, Float64]:
    found: dict[str, Float64] = {}
    for folder in folders:
        for speaker, vector in read_xvectors(folder, "spk_xvector").items():
            found.setdefault(speaker, vector.astype(np.float64))
    if folders and (missing := [s for s in speakers if s not in found]):
        names = ", ".join(str(folder / "spk_xvector.scp") for folder in folders)
        raise UserError(f"{names}: speaker {missing[0]} is not there")
    return found
