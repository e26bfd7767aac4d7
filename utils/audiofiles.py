# SPDX-License-Identifier: Apache-2.0
"""Headers of audio files: length, sampling rate, and whether the file can be used."""

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from utils.tables import StrPath, file_problem

NO_SAMPLES = "has no samples (zero length)"
RATES = (1000, 768000)  # Hz; a higher rate means a damaged header, and resampling would never end
_STREAM_LENGTH = 0x7FFF0000  # bytes; headers of streams of unknown length announce more
_FORMAT = struct.Struct("<HHIIHH")  # code, channels, rate, bytes a second and a frame, bits
_UNPACKED = (1, 3, 0xFFFE)  # whole numbers, floats, extensible
_LONGEST = 1e6  # seconds; a streamed file without a length in its header reports an absurd one


@dataclass(frozen=True)
class AudioInfo:
    """Header of a file. `seconds`, `rate` (Hz): 0 if unknown; `problem`: empty for a good file."""

    seconds: float
    rate: int
    problem: str


def probe_audio(path: StrPath) -> AudioInfo:
    """Open one audio file, read its header, and decode its last sample, to detect a cut file."""
    import soundfile  # here: validating tables alone needs no audio library

    name = os.fspath(path)
    if name.rstrip().endswith("|"):
        return AudioInfo(0.0, 0, "is a pipe; write the audio to a file first")
    if not os.access(name, os.R_OK):
        return AudioInfo(0.0, 0, "is missing or may not be read (from the current directory)")
    if problem := file_problem(name):
        return AudioInfo(0.0, 0, problem)
    try:
        info = soundfile.info(name)
    except (soundfile.LibsndfileError, OSError) as error:
        reason = getattr(error, "error_string", str(error))
        return AudioInfo(0.0, 0, f"cannot be read as audio: {reason}")
    rate = int(info.samplerate)
    if not RATES[0] <= rate <= RATES[1]:
        return AudioInfo(0.0, 0, f"has a sampling rate of {rate} Hz; damaged?")
    seconds = info.frames / rate
    if not 0 < seconds < _LONGEST:
        problem = NO_SAMPLES if seconds <= 0 else "does not say its length"
        return AudioInfo(0.0, rate, problem)
    if info.channels != 1:
        return AudioInfo(seconds, rate, f"has {info.channels} channels; only mono is read")
    return AudioInfo(seconds, rate, _cut_short(name, info.frames))


def _cut_short(name: str, frames: int) -> str:
    """Whether less is in the file than its header says, which libsndfile hides for WAV."""
    import soundfile

    with Path(name).open("rb") as stream:
        told, fits = _told_by_riff(stream)
        left = os.fstat(stream.fileno()).st_size - stream.tell()
    if not fits:
        return "has a damaged header: its bytes and bits of a sample contradict each other"
    if told > left:
        return f"is truncated: its header tells of {told} bytes of samples, {left} are there"
    try:
        with soundfile.SoundFile(name) as audio:
            audio.seek(frames - 1)
            whole = len(audio.read(1)) == 1
    except (soundfile.LibsndfileError, OSError):
        whole = False
    return "" if whole else f"is truncated or damaged: its last of {frames} samples is not there"


def _told_by_riff(stream: IO[bytes]) -> tuple[int, bool]:
    """Bytes of samples that a RIFF header announces from here on, 0 for other formats and for a
    stream of unknown length; and whether a sample's bits fill its bytes."""
    head, fits = stream.read(12), True
    if head[:4] != b"RIFF" or head[8:] != b"WAVE":
        return 0, fits
    while len(chunk := stream.read(8)) == 8:
        kind, size = struct.unpack("<4sI", chunk)
        if kind == b"data":
            return (0 if size >= _STREAM_LENGTH else size), fits
        start = stream.tell()
        if kind == b"fmt " and len(told := stream.read(_FORMAT.size)) == _FORMAT.size:
            code, channels, _, _, frame, bits = _FORMAT.unpack(told)
            fits = code not in _UNPACKED or frame == channels * -(-bits // 8)
        stream.seek(start + size + size % 2)
    return 0, fits
