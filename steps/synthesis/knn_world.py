# SPDX-License-Identifier: Apache-2.0
"""kNN voice conversion on WORLD frames: no network and no download, a stand-in for kNN-VC.

Each frame of the source becomes the mean of its k nearest frames of the target voice; energy
contour, timing and aperiodicity stay the source's; the pitch takes the target's range.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from steps.synthesis.f0 import TRANSFORMS, F0Stats, mix_f0_stats
from steps.synthesis.matching import FrameIndex, average, spread
from steps.synthesis.voice_pool import PoolFrames, VoicePool, loud_frames, match_vectors
from steps.synthesis.world import analyse, silent_frames, synthesise
from utils.cli import UserError

FloatArray = npt.NDArray[np.float64]
_CACHED_VOICES = 4


@dataclass(frozen=True)
class Voice:
    """Frames to search, and the codes (M, 40) that stand for them."""

    index: FrameIndex
    codes: FloatArray


class WorldConverter:
    """See `steps.anonymisers.knn_vc.Converter`."""

    note = (
        "features: world is an offline stand-in for kNN-VC: the frames are those of the WORLD "
        "vocoder, not of WavLM, and no neural vocoder is used; figures are not those of kNN-VC"
    )

    def __init__(self, pool: VoicePool, k: int, f0: str, max_frames: int) -> None:
        """f0: linear, percentile or none. max_frames: of a voice that are searched."""
        self._pool, self._k, self._f0, self._max_frames = pool, k, f0, max_frames
        self.speakers = pool.speakers
        self._voice = lru_cache(_CACHED_VOICES)(self._load)

    def gender(self, speaker: str) -> str:
        """F or m, in lower case."""
        return self._pool.gender(speaker)

    def lacks(self, speaker: str) -> str | None:
        """A voice without voiced frames gives no pitch to convert to."""
        if self._f0 != "none" and not self._pool.f0(speaker).n:
            return "no voiced frame, which f0 needs"
        return None

    def convert(
        self,
        wave: FloatArray,
        voices: Sequence[Sequence[str]],
        weights: Sequence[float],
        source_f0: F0Stats | None,
    ) -> FloatArray:
        """As `Converter.convert`; silence comes back as it is."""
        if not np.any(wave):
            return np.zeros(len(wave))
        source = analyse(wave)
        envelope = match_envelope(
            source.envelope, [self._voice(tuple(group)) for group in voices], weights, self._k
        )
        f0 = source.f0
        if self._f0 != "none":
            assert source_f0 is not None
            f0 = TRANSFORMS[self._f0](f0, source_f0, self._target_f0(voices, weights))
        return synthesise(replace(source, f0=f0, envelope=envelope), len(wave))

    def _target_f0(self, voices: Sequence[Sequence[str]], weights: Sequence[float]) -> F0Stats:
        """Of several voices in a union each counts alike."""
        shares = [
            (self._pool.f0(speaker), weight / len(group))
            for group, weight in zip(voices, weights, strict=True)
            for speaker in group
        ]
        return mix_f0_stats([stats for stats, _ in shares], [share for _, share in shares])

    def _load(self, speakers: tuple[str, ...]) -> Voice:
        parts = [_limit(self._pool.frames(speaker), self._max_frames) for speaker in speakers]
        codes = np.concatenate([part.envelope for part in parts])
        if len(codes) < self._k:
            raise UserError(
                f"{self._pool.folder}: {', '.join(speakers)}: {len(codes)} frames, and k is "
                f"{self._k}; leave the voice out of the pool"
            )
        return Voice(FrameIndex(np.concatenate([part.match for part in parts])), codes)


def match_envelope(
    envelope: FloatArray, voices: Sequence[Voice], weights: Sequence[float], k: int
) -> FloatArray:
    """Codes (T, 40) of the source -> those said by the voices, each of which has a weight.

    The mean of the k nearest frames of a voice, weighted over voices; coefficient 0 is the
    source's, moved by a constant to the voices' mean (of frames that are not quiet, both).
    Digital silence keeps its own, so that it stays silent.
    """
    queries = match_vectors(envelope)
    out = np.zeros_like(envelope)
    level = 0.0
    for voice, weight in zip(voices, weights, strict=True):
        out += weight * average(voice.codes, voice.index.search(queries, k))
        level += weight * float(voice.codes[:, 0].mean())
    loud = loud_frames(envelope)
    shift = level - float(envelope[loud, 0].mean()) if len(loud) else 0.0
    out[:, 0] = envelope[:, 0] + np.where(silent_frames(envelope), 0.0, shift)
    return out


def _limit(frames: PoolFrames, most: int) -> PoolFrames:
    kept = spread(len(frames.envelope), most)
    return PoolFrames(frames.envelope[kept], frames.match[kept])
