# SPDX-License-Identifier: Apache-2.0
"""Conversion of recordings of any length, piece by piece in bounded memory, without seams.

A recording is read in blocks and resampled to 16 kHz. Pieces of at most LONGEST seconds end where
it is quietest; each is converted with CONTEXT seconds before and after it, and neighbours are faded
into each other over FADE seconds around the cut.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
from scipy.signal import resample_poly

from steps.audio import SAMPLE_RATE, quietest
from utils.arrays import Float64
from utils.audiofiles import RATES
from utils.cli import UserError

Convert = Callable[[Float64], Float64]

LONGEST = 19.0  # seconds of a piece: with its context a recogniser's window
CONTEXT = 0.5  # seconds converted on either side of a piece and thrown away
FADE = 0.02  # seconds
_BLOCK = 20  # seconds read at a time
_MARGIN = 1  # seconds on either side of a block, so that resampling has no edge within it
_PAUSE = 0.05  # seconds over which it must be quiet
_LARGEST = 0.99  # of full scale


@dataclass(frozen=True)
class Recording:
    """Audio file: `rate` in Hz, `frames` at that rate, `channels`."""

    path: Path
    rate: int
    frames: int
    channels: int

    @classmethod
    def open(cls, path: Path) -> "Recording":
        """Read the header; UserError for an unreadable file, or one without samples."""
        try:
            info = soundfile.info(str(path))
        except (soundfile.LibsndfileError, OSError) as error:
            reason = getattr(error, "error_string", str(error))
            raise UserError(f"{path}: cannot be read as audio: {reason}") from error
        if not RATES[0] <= info.samplerate <= RATES[1]:
            raise UserError(f"{path}: has a sampling rate of {info.samplerate} Hz; damaged?")
        if info.frames <= 0:
            raise UserError(f"{path}: has no samples (zero length)")
        return cls(path, int(info.samplerate), int(info.frames), int(info.channels))

    @property
    def seconds(self) -> float:
        """Duration."""
        return self.frames / self.rate

    def __len__(self) -> int:
        """Samples at 16 kHz."""
        return -(-self.frames * SAMPLE_RATE // self.rate)

    def read(self, start: int, stop: int, channel: int | None = None) -> Float64:
        """Samples start ... stop at 16 kHz, (n,): of one channel, or all mixed down.

        A sample has the same bits in any read. UserError where the file holds less than its header
        says, or a value that is not finite.
        """
        divisor = int(np.gcd(self.rate, SAMPLE_RATE))
        up, down = SAMPLE_RATE // divisor, self.rate // divisor
        first = max(0, start // up * down - _MARGIN * self.rate // down * down)
        last = min(self.frames, -(-stop * down // up) + _MARGIN * self.rate)
        try:
            with soundfile.SoundFile(str(self.path)) as audio:
                audio.seek(first)
                found = audio.read(last - first, dtype="float64", always_2d=True)
        except (soundfile.LibsndfileError, OSError) as error:
            raise UserError(f"{self.path}: cannot be read as audio: {error}") from error
        if len(found) < last - first:
            raise UserError(
                f"{self.path}: is truncated: its header tells of {self.frames} samples, "
                f"{first + len(found)} are there"
            )
        mono = found.mean(axis=1) if channel is None else found[:, channel]
        if not np.isfinite(mono).all():
            raise UserError(f"{self.path}: holds a sample that is not a finite number")
        if self.rate != SAMPLE_RATE:
            mono = resample_poly(mono, up, down)
        offset = start - first * up // down
        return np.asarray(mono[offset : offset + stop - start])

    def blocks(self, channel: int | None = None) -> Iterator[Float64]:
        """Yield the whole at 16 kHz, some seconds at a time."""
        width = _BLOCK * SAMPLE_RATE
        for start in range(0, len(self), width):
            yield self.read(start, min(start + width, len(self)), channel)


def pieces(blocks: Iterable[Float64], longest: float = LONGEST) -> Iterator[tuple[Float64, slice]]:
    """Cut a signal that arrives in blocks into stretches, and mark the own part of each.

    A stretch holds CONTEXT seconds more on either side, where there is more. The parts follow one
    another without gap.
    """
    most, context = round(longest * SAMPLE_RATE), round(CONTEXT * SAMPLE_RATE)
    pause = round(_PAUSE * SAMPLE_RATE)
    before, waiting = np.zeros(0), np.zeros(0)
    for block in blocks:
        waiting = np.concatenate((waiting, block))
        while len(waiting) > most + context:
            cut = quietest(waiting, most // 2, most, pause)
            stretch = np.concatenate((before, waiting[: cut + context]))
            yield stretch, slice(len(before), len(before) + cut)
            before, waiting = stretch[: len(before) + cut][-context:], waiting[cut:]
    if len(waiting):
        yield np.concatenate((before, waiting)), slice(len(before), len(before) + len(waiting))


def convert_stream(
    blocks: Iterable[Float64], convert: Convert, longest: float = LONGEST
) -> Iterator[Float64]:
    """Yield converted speech, as long in all as the blocks; each piece as loud as its source.

    convert: speech (n,) -> (n,), of any level. A piece of digital silence stays so.
    """
    half = round(FADE * SAMPLE_RATE / 2)
    tail = np.zeros(0)  # the previous piece's share of the fade
    for stretch, own in pieces(blocks, longest):
        made = _as_loud(convert(stretch) if stretch.any() else np.zeros(len(stretch)), stretch)
        start = max(own.start - half, 0) if len(tail) else own.start
        if len(tail):
            fade = (np.arange(len(tail)) + 0.5) / len(tail)
            made[start : start + len(tail)] *= fade
            made[start : start + len(tail)] += tail * (1 - fade)
        more = len(stretch) > own.stop
        stop = own.stop - half if more else own.stop
        tail = made[stop : stop + 2 * half].copy() if more else np.zeros(0)
        yield made[start:stop]


def _as_loud(made: Float64, source: Float64) -> Float64:
    """Scale to the mean power of the source, below full scale."""
    if len(made) != len(source) or not np.isfinite(made).all():
        raise UserError("the protected signal is not finite, or of another length")
    power = float(np.mean(made**2))
    scaled = made * np.sqrt(float(np.mean(source**2)) / power) if power > 0 else made.copy()
    peak = float(np.max(np.abs(scaled), initial=0.0))
    return scaled * (_LARGEST / peak) if peak > _LARGEST else scaled
