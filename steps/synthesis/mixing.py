# SPDX-License-Identifier: Apache-2.0
"""The offline B1 synthesiser: real frames of a few voices, mixed, and said by the WORLD vocoder."""

from collections import OrderedDict
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from steps.synthesis.base import F0Map, Target
from steps.synthesis.matching import FrameIndex, average, spread
from steps.synthesis.voice_pool import VoicePool, match_vectors
from steps.synthesis.world import analyse, synthesise

FloatArray = npt.NDArray[np.float64]

_CACHED_VOICES = 16  # of at most max_frames each


class WorldSynthesiser:
    """Each frame of the source becomes the weighted mean of like frames of the target's voices."""

    needs: tuple[str, ...] = ("pool",)

    def __init__(self, pool: VoicePool, k: int = 4, max_frames: int = 6000) -> None:
        """Take voices from `pool`.

        k: frames of a voice that are averaged for one of the source. max_frames: of a voice that
        are searched, evenly spread over what there is, so that the cost does not grow with the
        pool's hours.
        """
        self._pool, self._k, self._max_frames = pool, k, max_frames
        self._voices: OrderedDict[str, tuple[FloatArray, FrameIndex]] = OrderedDict()

    def convert(self, wave: FloatArray, target: Target, f0: F0Map) -> FloatArray:
        """As `base.Synthesiser.convert`. Of the target its voices count, not its x-vector.

        Timing, aperiodicity, and the contour of energy (coefficient 0 of the envelope) stay the
        source's; its level is that of the source, and the system's output level has the last word.
        """
        source = analyse(wave)
        envelope = self.mix(match_vectors(source.envelope), target)
        envelope[:, 0] = source.envelope[:, 0]
        return synthesise(replace(source, f0=f0(source.f0), envelope=envelope), len(wave))

    def mix(self, queries: FloatArray, target: Target) -> FloatArray:
        """Envelope codes (T, 40) for matching vectors (T, 72): sum of w_r times voice r's.

        A voice's code is the mean of its k frames nearest to the query (all, if it has fewer).
        """
        mixed = np.zeros(1)
        for speaker, weight in zip(target.voices, target.weights, strict=True):
            codes, index = self._voice(speaker)
            found = index.search(queries, min(self._k, len(index)))
            mixed = mixed + weight * average(codes, found)
        return mixed

    def _voice(self, speaker: str) -> tuple[FloatArray, FrameIndex]:
        """Codes (M, 40) of a voice, and its index."""
        if speaker not in self._voices:
            frames = self._pool.frames(speaker)
            places = spread(len(frames.envelope), self._max_frames)
            self._voices[speaker] = frames.envelope[places], FrameIndex(frames.match[places])
            if len(self._voices) > _CACHED_VOICES:
                self._voices.popitem(last=False)
        self._voices.move_to_end(speaker)
        return self._voices[speaker]
