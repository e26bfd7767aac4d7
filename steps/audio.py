"""Audio input and output: mono float64 at the wanted rate; errors name utterance and file."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import soundfile

from utils.arrays import Float64
from utils.audiofiles import NO_SAMPLES, probe_audio
from utils.cli import UserError
from utils.tables import replacing

SAMPLE_RATE = 16000
FORMATS = {".wav": "WAV", ".flac": "FLAC"}


class EmptyAudioError(UserError):
    """Error for an audio file without samples."""


@dataclass(frozen=True)
class Audio:
    """Audio. `samples`: (n,) float64, full scale 1; `rate`: in Hz; `file_rate`: the file's."""

    samples: Float64
    rate: int
    file_rate: int

    @property
    def seconds(self) -> float:
        """Duration in seconds."""
        return len(self.samples) / self.rate


def read_audio(utt: str, rxfilename: str, rate: int = SAMPLE_RATE) -> Audio:
    """Read one mono file; resample it (polyphase) if its rate differs from `rate`.

    Raises UserError naming utterance and file for: a pipe, a missing or unreadable file, several
    channels, no samples (EmptyAudioError), fewer samples than its header says, an absurd rate, a
    sample that is not finite.
    """
    if problem := probe_audio(rxfilename).problem:
        kind = EmptyAudioError if problem == NO_SAMPLES else UserError
        raise kind(f"{utt}: {rxfilename}: {problem}")
    try:
        samples, file_rate = soundfile.read(rxfilename, dtype="float64", always_2d=True)
    except (soundfile.LibsndfileError, OSError) as error:
        raise UserError(f"{utt}: {rxfilename}: cannot be read as audio: {error}") from error
    mono = samples[:, 0]
    if not np.isfinite(mono).all():
        raise UserError(f"{utt}: {rxfilename}: holds a sample that is not a finite number")
    if file_rate != rate:
        from scipy.signal import resample_poly  # takes over a second; most corpora are at this rate

        divisor = int(np.gcd(file_rate, rate))
        mono = resample_poly(mono, rate // divisor, file_rate // divisor)
    return Audio(mono, rate, file_rate)


def quietest(samples: Float64, begin: int, end: int, width: int) -> int:
    """Middle of the quietest stretch of `width` samples within samples[begin:end]."""
    energy = np.convolve(samples[begin:end] ** 2, np.ones(width), "valid")
    return begin + int(energy.argmin()) + width // 2


def write_wav(path: str | os.PathLike[str], samples: Float64, rate: int = SAMPLE_RATE) -> None:
    """Write mono 16-bit WAV atomically; UserError for samples beyond full scale (no clipping)."""
    peak = float(np.max(np.abs(samples))) if len(samples) else 0.0
    if not np.isfinite(peak) or peak > 1.0:
        raise UserError(f"{path}: samples reach {peak:.3g} of full scale; normalise before writing")
    _write(path, samples, rate)


def write_pcm16(
    path: str | os.PathLike[str], samples: npt.NDArray[np.int16], rate: int = SAMPLE_RATE
) -> None:
    """Write mono 16-bit samples as they are, atomically; WAV or FLAC by the suffix of `path`."""
    _write(path, samples, rate)


def _write(path: str | os.PathLike[str], samples: npt.NDArray[Any], rate: int) -> None:
    audio_format = FORMATS[Path(path).suffix]
    try:
        with replacing(path) as beside:
            soundfile.write(beside, samples, rate, subtype="PCM_16", format=audio_format)
    except (soundfile.LibsndfileError, OSError) as error:
        raise UserError(f"{path}: cannot be written: {error}") from error
