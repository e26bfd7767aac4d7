# SPDX-License-Identifier: Apache-2.0
"""Protection of a folder's files by an anonymiser; data on the speaker come from the files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile

from steps.anonymisers.registry import Anonymiser
from steps.audio import SAMPLE_RATE
from steps.folders.job import audio_format
from steps.folders.stream import Recording, convert_stream
from steps.keys import Key
from steps.sources import Source
from steps.synthesis.f0 import F0Stats, compute_f0_stats
from utils.arrays import Float64
from utils.cli import UserError
from utils.tables import replacing

# The speaker's pitch is measured in so many stretches, spread over their files.
_STRETCHES, _SECONDS = 12, 5.0
CHANNELS = ("mix", "each")


@dataclass(frozen=True)
class Work:
    """Making of files. channels: mixed down, or each by itself with one pseudo-speaker."""

    source: Path
    out: Path
    channels: str = "mix"

    def protect_group(
        self,
        name: str,
        files: Sequence[Path],
        anonymiser: Anonymiser,
        done: Callable[[Path], None] = lambda _: None,
        tick: Callable[[float], None] = lambda _: None,
    ) -> dict[Path, str]:
        """Make the files that share a pseudo-speaker; returns the failed ones, with reasons.

        done: called with each complete file. tick: called with processed seconds.
        """
        failed: dict[Path, str] = {}
        recordings: dict[Path, Recording] = {}
        for path in files:
            try:
                recordings[path] = Recording.open(self.source / path)
            except UserError as error:
                failed[path] = str(error)
        try:
            speaker = Source(name, f0=learn_f0(list(recordings.values())))
        except UserError:  # the file is found below
            speaker = Source(name, f0=compute_f0_stats([]))
        key = Key("spk", ("folder", name), ("folder", name))

        def convert(samples: Float64) -> Float64:
            return anonymiser.transform(samples, key, speaker)[0]

        for path, recording in recordings.items():
            try:
                self._write(path, recording, convert, tick)
                done(path)
            except UserError as error:
                failed[path] = str(error)
        return failed

    def _write(
        self,
        path: Path,
        recording: Recording,
        convert: Callable[[Float64], Float64],
        tick: Callable[[float], None],
    ) -> None:
        name = audio_format(path)
        wanted = (
            [None]
            if self.channels == "mix" or recording.channels == 1
            else range(recording.channels)
        )
        streams = [convert_stream(recording.blocks(channel), convert) for channel in wanted]
        assert name is not None
        if not soundfile.check_format(name):
            raise UserError(f"{recording.path}: {name} can be read, but not written; convert it")
        try:
            with (
                replacing(self.out / path) as beside,
                soundfile.SoundFile(
                    str(beside), "w", SAMPLE_RATE, len(streams), _subtype(name), format=name
                ) as audio,
            ):
                for parts in zip(*streams, strict=True):
                    audio.write(np.stack(parts, axis=1))
                    tick(len(parts[0]) / SAMPLE_RATE)
        except soundfile.LibsndfileError as error:
            raise UserError(f"{self.out / path}: cannot be written: {error}") from error


def _subtype(name: str) -> str | None:
    """Subtype of 16 bit where the format has it."""
    return "PCM_16" if "PCM_16" in soundfile.available_subtypes(name) else None


def learn_f0(recordings: Sequence[Recording]) -> F0Stats:
    """Pitch of the speaker in the recordings, from stretches spread evenly over them."""
    from steps.synthesis.world import extract_f0

    total = sum(recording.seconds for recording in recordings)
    n = max(1, min(_STRETCHES, int(total / _SECONDS)))
    places = [(i + 0.5) * total / n - _SECONDS / 2 for i in range(n)]
    contours, begins = [], 0.0
    for recording in recordings:
        for place in places:
            inside = place - begins
            if -_SECONDS < inside < recording.seconds:
                start = max(0, int(inside * SAMPLE_RATE))
                stop = min(len(recording), start + round(_SECONDS * SAMPLE_RATE))
                part = recording.read(start, stop)
                contours.append(extract_f0(part) if part.any() else np.zeros(1))
        begins += recording.seconds
    return compute_f0_stats(contours)
