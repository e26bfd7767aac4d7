# SPDX-License-Identifier: Apache-2.0
"""Offline B1 synthesiser: real frames of a few voices, mixed, for the WORLD vocoder."""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from steps.synthesis.base import F0Map, Target
from steps.synthesis.knn_world import Voice, match_envelope
from steps.synthesis.matching import FrameIndex, spread
from steps.synthesis.voice_pool import VoicePool
from steps.synthesis.world import analyse, synthesise
from utils.arrays import Float64

_CACHED_VOICES = 16  # of at most max_frames each


class WorldSynthesiser:
    """Synthesis in which each source frame becomes the weighted mean of its conversions to the
    target's voices (`knn_world`)."""

    needs: tuple[str, ...] = ("pool",)

    def __init__(
        self, pool: VoicePool, k: int = 4, max_frames: int = 6000, source_share: float = 0.0
    ) -> None:
        """Take voices from `pool`.

        k: frames of a voice that are averaged for one of the source (all, if it has fewer).
        max_frames: of a voice that are searched, evenly spread over all, so that the cost does not
        grow with the pool's hours. source_share: see `knn_world.match_envelope`.
        """
        self._pool, self._k, self._max_frames = pool, k, max_frames
        self._share = source_share
        self._voice = lru_cache(_CACHED_VOICES)(self._load)

    def convert(self, wave: Float64, target: Target, f0: F0Map) -> Float64:
        """Convert as `base.Synthesiser.convert`. The target's voices count, not its x-vector.

        Timing, aperiodicity, and the contour of energy stay the source's.
        """
        if not np.any(wave):
            return np.zeros(len(wave))
        source = analyse(wave)
        envelope = self.mix(source.envelope, target)
        return synthesise(replace(source, f0=f0(source.f0), envelope=envelope), len(wave))

    def mix(self, envelope: Float64, target: Target) -> Float64:
        """Sum of w_r times the codes (T, 40) that voice r gives for the codes (T, 40) of the
        source.

        A voice's codes come from `knn_world.match_envelope`.
        """
        voices = [self._voice(speaker) for speaker in target.voices]
        k = min(self._k, *(len(voice.index) for voice in voices))
        return match_envelope(envelope, voices, target.weights.tolist(), k, self._share)

    def _load(self, speaker: str) -> Voice:
        frames = self._pool.frames(speaker)
        places = spread(len(frames.envelope), self._max_frames)
        return Voice(FrameIndex(frames.match[places]), frames.envelope[places])
