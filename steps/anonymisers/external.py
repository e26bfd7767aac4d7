# SPDX-License-Identifier: Apache-2.0
"""Speech that something else protected, taken as it is, so that it can be measured beside ours."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import numpy as np
import soundfile

from steps.anonymisers.loudness import AsItIs
from steps.anonymisers.registry import Description
from steps.audio import read_audio
from steps.keys import Key
from steps.sources import Run, Source
from utils.arrays import Float64
from utils.cli import UserError
from utils.settings import Declared
from utils.tables import StrPath, read_map

NOTE = (
    "Speech that another program made, as it is: what it draws, for whom, and how it was made is "
    "not known here."
)
_SAME_LENGTH = 0.01  # part of the original's length


@dataclass(frozen=True)
class Settings:
    """folder: holds the audio, or data directories. suffix: stands behind the utterance's id in the
    name of a file, or in an id of wav.scp (such as _anon)."""

    anonymiser: str
    folder: str
    suffix: str = ""


def find_speech(folder: Path, suffix: str = "") -> dict[str, str]:
    """Utterance -> audio: by a folder's wav.scp and those of its sub-folders, else all audio in it.

    UserError for a folder that is none or holds no audio, and for an utterance that is there twice.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; it holds the speech of an external system")
    found: dict[str, str] = {}
    for name, path in _named(folder):
        utt = name.removesuffix(suffix) if suffix else name
        if found.setdefault(utt, path) != path:
            raise UserError(f"{folder}: {utt} is there twice: {found[utt]} and {path}; remove one")
    if not found:
        raise UserError(f"{folder}: holds neither audio nor a wav.scp")
    return found


def _named(folder: Path) -> Iterator[tuple[str, str]]:
    tables = [
        path for path in (folder / "wav.scp", *sorted(folder.glob("*/wav.scp"))) if path.is_file()
    ]
    for table in tables:
        yield from read_map(table, rest_of_line=True).items()
    if tables:
        return
    known = {f".{name.lower()}" for name in soundfile.available_formats()}
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in known and path.is_file():
            yield path.stem, str(path)


class External(Declared[Settings]):
    """One configured system; see `registry.Anonymiser`."""

    kind = Settings
    level, is_random, output = "utt", None, AsItIs()

    def __init__(self, settings: Settings, speech: dict[str, str]) -> None:
        self._settings, self._speech = settings, speech
        self.notes: list[str] = [NOTE]

    @classmethod
    def make(cls, settings: Settings, run: Run) -> Self:
        """Of the folder --external; seed and draw change nothing."""
        return cls(settings, find_speech(run.folder("external"), settings.suffix))

    @classmethod
    def describe(cls, settings: Settings, path: StrPath) -> Description:  # noqa: ARG003
        """It needs its folder. That a training set is protected at level utt is for it to say."""
        return Description("utt", (f"external:{settings.folder}",), ("utt",))

    def settings(self) -> dict[str, object]:
        """Those of the file, and what is known of the rest: nothing."""
        return {**asdict(self._settings), "note": NOTE}

    def transform(
        self,
        wave: Float64,
        key: Key,
        source: Source,  # noqa: ARG002
    ) -> tuple[Float64, dict[str, object]]:
        """The audio of the key's utterance at 16 kHz. UserError where there is none, and for one
        that is the original itself."""
        utt = key.names[-1]
        if utt not in self._speech:
            raise UserError(f"{self._settings.folder}: has no audio of utterance {utt}")
        made = read_audio(utt, self._speech[utt]).samples
        if wave.any() and np.array_equal(made, wave):
            raise UserError(f"{utt}: {self._speech[utt]} is the original speech, not protected")
        longer = len(made) / len(wave) - 1
        if abs(longer) > _SAME_LENGTH and len(self.notes) == 1:
            self.notes.append(
                "Some utterances are longer or shorter than the original by over 1 %."
            )
        return made, {"longer": f"{longer:.4f}"}
