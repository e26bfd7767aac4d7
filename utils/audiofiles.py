# SPDX-License-Identifier: Apache-2.0
"""What the header of an audio file says: length, sampling rate, and whether it can be used."""

import os
from dataclasses import dataclass

from utils.tables import StrPath

_LONGEST = 1e6  # seconds; a streamed file whose header has no length reports an absurd one


@dataclass(frozen=True)
class AudioInfo:
    """`seconds` and `rate` (Hz) are 0 where not known; `problem` is empty for a good file."""

    seconds: float
    rate: int
    problem: str


def probe_audio(path: StrPath) -> AudioInfo:
    """Open one audio file, read its header, decode nothing."""
    import soundfile  # here: validating tables alone needs no audio library

    name = os.fspath(path)
    if name.rstrip().endswith("|"):
        return AudioInfo(0.0, 0, "is a pipe; write the audio to a file first")
    if not os.access(name, os.R_OK):
        return AudioInfo(0.0, 0, "is missing or may not be read (from the current directory)")
    try:
        info = soundfile.info(name)
    except (soundfile.LibsndfileError, OSError) as error:
        reason = getattr(error, "error_string", str(error))
        return AudioInfo(0.0, 0, f"cannot be read as audio: {reason}")
    seconds, rate = info.frames / info.samplerate, int(info.samplerate)
    if not 0 < seconds < _LONGEST:
        problem = "has no samples (zero length)" if seconds <= 0 else "does not say its length"
        return AudioInfo(0.0, rate, problem)
    if info.channels != 1:
        return AudioInfo(seconds, rate, f"has {info.channels} channels; only mono is read")
    return AudioInfo(seconds, rate, "")
