# SPDX-License-Identifier: Apache-2.0
"""eSpeak NG through ctypes: one voice a process, voice files of our own, samples that repeat.

The library and its data come with the package `espeakng-loader`; the system needs nothing.
What makes the samples repeat:

- the library seeds its noise from the clock, so `espeak_ng_SetRandSeed` is called once after start;
- it keeps state from one utterance to the next, so a process speaks for one speaker only and always
  from the speaker's first utterance on (a second `Synthesiser` in one process is an error).
"""

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

import espeakng_loader
import numpy as np
import numpy.typing as npt

from utils.cli import UserError

PcmArray = npt.NDArray[np.int16]

# Voices must be named by their files: names such as `en-gb` are refused together with a variant.
ACCENTS = (
    "gmw/en",
    "gmw/en-029",
    "gmw/en-GB-scotland",
    "gmw/en-GB-x-gbclan",
    "gmw/en-GB-x-gbcwmd",
    "gmw/en-GB-x-rp",
    "gmw/en-US",
    "gmw/en-US-nyc",
)

_SYNCHRONOUS = 2  # AUDIO_OUTPUT_SYNCHRONOUS: the callback runs within espeak_Synth
_DONT_EXIT = 0x8000  # espeakINITIALIZE_DONT_EXIT
_UTF8 = 1  # espeakCHARS_UTF8
_BUFFER_MS = 1000
_RATE, _PITCH = 1, 3  # espeak_PARAMETER

_Callback = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p
)
_VARIANT = "own"
_started = False


def _fill_data_folder(folder: Path, voice_file: str) -> None:
    """Links to the package's data, and one variant of ours in place of the package's hundred."""
    for part in Path(espeakng_loader.get_data_path()).iterdir():
        if part.name != "voices":
            (folder / part.name).symlink_to(part)
    variants = folder / "voices" / "!v"
    variants.mkdir(parents=True)
    (variants / _VARIANT).write_text(voice_file, encoding="ascii")


class Synthesiser:
    """One voice: the only one of its process.

    `folder`: empty, with a short path, for the library's data; the caller removes it afterwards.
    `accent`: one of ACCENTS. `voice_file`: text of a voice variant. `seed`: of the voice's noise.
    Raises UserError where the library does not start.
    """

    def __init__(self, folder: Path, accent: str, voice_file: str, seed: int) -> None:
        global _started
        if _started:
            raise RuntimeError("one voice a process: eSpeak NG keeps state between utterances")
        _started = True
        _fill_data_folder(folder, voice_file)
        self._library = ctypes.CDLL(espeakng_loader.get_library_path())
        self.sample_rate = self._start(folder)
        self._library.espeak_ng_SetRandSeed(ctypes.c_long(seed % 2**31))
        self._check("espeak_SetVoiceByName", f"{accent}+{_VARIANT}".encode("ascii"))
        self._chunks: list[bytes] = []
        self._callback = _Callback(self._collect)  # kept, or ctypes would free it
        self._library.espeak_SetSynthCallback(self._callback)

    def _start(self, folder: Path) -> int:
        library, name = self._library, os.fsencode(folder)
        rate = int(library.espeak_Initialize(_SYNCHRONOUS, _BUFFER_MS, name, _DONT_EXIT))
        # A path that is too long is not refused: the library looks for its data elsewhere.
        used = ctypes.c_char_p()
        library.espeak_Info(ctypes.byref(used))
        if rate <= 0 or used.value != name:
            raise UserError(
                f"{folder}: eSpeak NG cannot start from here; "
                "set TMPDIR to a folder with a short path"
            )
        return rate

    def _collect(self, samples: "ctypes._Pointer[ctypes.c_short]", n: int, _events: int) -> int:
        if samples and n > 0:
            self._chunks.append(ctypes.string_at(samples, 2 * n))
        return 0

    def speak(self, text: str, *, words_per_minute: int = 175, pitch: int = 50) -> PcmArray:
        """Samples (n,) int16 at `sample_rate`. `pitch`: 0 to 99, 50 is the voice's own."""
        self._check("espeak_SetParameter", _RATE, words_per_minute, 0)
        self._check("espeak_SetParameter", _PITCH, pitch, 0)
        self._chunks.clear()
        data = text.encode("utf-8")
        size = ctypes.c_size_t(len(data) + 1)
        self._check(
            "espeak_Synth", data, size, ctypes.c_uint(0), 0, ctypes.c_uint(0), _UTF8, None, None
        )
        return np.frombuffer(b"".join(self._chunks), dtype=np.int16)

    def _check(self, name: str, *arguments: object) -> None:
        function: Callable[..., int] = getattr(self._library, name)
        status = function(*arguments)
        if status != 0:
            raise UserError(f"eSpeak NG: {name} failed with status {status}")
