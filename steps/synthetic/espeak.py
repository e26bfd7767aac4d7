# SPDX-License-Identifier: Apache-2.0
"""eSpeak NG through ctypes: one speaker a process, voices of our own, samples that repeat.

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

from utils.arrays import Int16
from utils.cli import UserError

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
_RATE = 1  # espeakRATE

_Callback = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p
)
_VARIANT = "own"
_started = False


def _fill_data_folder(folder: Path) -> None:
    """Links to the package's data, without its hundred variants."""
    for part in Path(espeakng_loader.get_data_path()).iterdir():
        if part.name != "voices":
            (folder / part.name).symlink_to(part)
    (folder / "voices" / "!v").mkdir(parents=True)


class Synthesiser:
    """Synthesiser eSpeak NG for one speaker: the only one of its process.

    `folder`: empty, with a short path, for the library's data; the caller removes it afterwards.
    `seed`: of the noise in the voice. Raises UserError where the library does not start.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        global _started
        if _started:
            raise RuntimeError("one speaker a process: eSpeak NG keeps state between utterances")
        _started = True
        _fill_data_folder(folder)
        self._variant = folder / "voices" / "!v" / _VARIANT
        self._library = ctypes.CDLL(espeakng_loader.get_library_path())
        self.sample_rate = self._start(folder)
        self._library.espeak_ng_SetRandSeed(ctypes.c_long(seed % 2**31))
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

    def speak(self, text: str, accent: str, variant: str, words_per_minute: int) -> Int16:
        """Speak: samples (n,) int16 at `sample_rate`.

        `accent`: one of ACCENTS. `variant`: text of a voice file that is laid over it.
        """
        self._variant.write_text(variant, encoding="ascii")
        self._check("espeak_SetVoiceByName", f"{accent}+{_VARIANT}".encode("ascii"))
        self._check("espeak_SetParameter", _RATE, words_per_minute, 0)
        self._chunks.clear()
        data = text.encode("utf-8")
        size, zero = ctypes.c_size_t(len(data) + 1), ctypes.c_uint(0)
        self._check("espeak_Synth", data, size, zero, 0, zero, _UTF8, None, None)
        return np.frombuffer(b"".join(self._chunks), dtype=np.int16)

    def _check(self, name: str, *arguments: object) -> None:
        function: Callable[..., int] = getattr(self._library, name)
        status = function(*arguments)
        if status != 0:
            raise UserError(f"eSpeak NG: {name} failed with status {status}")
