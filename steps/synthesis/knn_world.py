# SPDX-License-Identifier: Apache-2.0
"""kNN voice conversion on WORLD frames: no network and no download, a stand-in for kNN-VC.

Each frame of the source becomes the mean of its k nearest frames of the target voice, and, by a
share, of itself, moved to the mean and deviation of the voice's frames. The second part keeps the
words: a voice of a few seconds has no frame that is near to each of the source's. Energy contour,
timing and aperiodicity stay the source's; the pitch takes the target's range.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from steps.content.extractors import ContentExtractor, at_frames
from steps.synthesis.f0 import TRANSFORMS, F0Stats, mix_f0_stats
from steps.synthesis.matching import FrameIndex, average, spread
from steps.synthesis.voice_pool import PoolFrames, VoicePool, loud_frames, match_vectors
from steps.synthesis.world import HOP, analyse, silent_frames, synthesise
from utils.arrays import Float32, Float64
from utils.cli import UserError

_CACHED_VOICES = 4
_SMALLEST_SD = 1e-6


@dataclass(frozen=True)
class Voice:
    """Frames to search, and their codes (M, 40), with the codes' mean and sd (40,)."""

    index: FrameIndex
    codes: Float64
    mean: Float64 = field(init=False)
    sd: Float64 = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", self.codes.mean(axis=0))
        object.__setattr__(self, "sd", self.codes.std(axis=0))


CONTENT_NOTE = (
    "features: content finds frames of the WORLD vocoder by a recogniser's content; no neural "
    "vocoder is used, and figures are not those of kNN-VC"
)


class WorldConverter:
    """See `steps.anonymisers.knn_vc.Converter`."""

    note = (
        "features: world is an offline stand-in for kNN-VC: the frames are those of the WORLD "
        "vocoder, not of WavLM, and no neural vocoder is used; figures are not those of kNN-VC"
    )

    def __init__(
        self,
        pool: VoicePool,
        k: int,
        f0: str,
        max_frames: int,
        source_share: float = 0.0,
        extractor: ContentExtractor | None = None,
    ) -> None:
        """f0: linear, percentile or none. max_frames: of a voice that are searched.

        source_share: see `match_envelope`. extractor: of the content by which frames are matched,
        if the pool was opened with it; else envelopes match. UserError where the pool's content is
        of other weights.
        """
        if extractor is not None:
            pool.check_content(extractor.digest)
            self.note = CONTENT_NOTE
        self._extractor = extractor
        self._pool, self._k, self._f0, self._max_frames = pool, k, f0, max_frames
        self._share = source_share
        self.speakers = pool.speakers
        self._voice = lru_cache(_CACHED_VOICES)(self._load)

    def gender(self, speaker: str) -> str:
        """Gender F or m, in lower case."""
        return self._pool.gender(speaker)

    def lacks(self, speaker: str) -> str | None:
        """Check that a voice has voiced frames, which give its pitch."""
        if self._f0 != "none" and not self._pool.f0(speaker).n:
            return "no voiced frame, which f0 needs"
        return None

    def convert(
        self,
        wave: Float64,
        voices: Sequence[Sequence[str]],
        weights: Sequence[float],
        source_f0: F0Stats | None,
    ) -> Float64:
        """Convert as `Converter.convert`; silence is returned unchanged."""
        if not np.any(wave):
            return np.zeros(len(wave))
        source = analyse(wave)
        groups = [self._voice(tuple(group)) for group in voices]
        envelope = match_envelope(
            source.envelope, groups, weights, self._k, self._share, self._queries(wave, len(source))
        )
        f0 = source.f0
        if self._f0 != "none":
            assert source_f0 is not None
            f0 = TRANSFORMS[self._f0](f0, source_f0, self._target_f0(voices, weights))
        return synthesise(replace(source, f0=f0, envelope=envelope), len(wave))

    def _queries(self, wave: Float64, n_frames: int) -> Float32 | None:
        """Vectors (n_frames, d) that match the source's frames, if not their envelopes."""
        if self._extractor is None:
            return None
        return at_frames(self._extractor(wave), self._extractor, n_frames, HOP)

    def _target_f0(self, voices: Sequence[Sequence[str]], weights: Sequence[float]) -> F0Stats:
        """Union of several voices, in which each has equal weight."""
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
        metric = "euclidean" if self._extractor is None else "cosine"
        return Voice(FrameIndex(np.concatenate([part.match for part in parts]), metric), codes)


def match_envelope(
    envelope: Float64,
    voices: Sequence[Voice],
    weights: Sequence[float],
    k: int,
    source_share: float = 0.0,
    queries: npt.NDArray[np.floating] | None = None,
) -> Float64:
    """Codes (T, 40) of the source as said by the voices, each of which has a weight.

    queries: vectors by which the frames are matched (T, d); None: `match_vectors`.

    The mean of the k nearest frames of a voice, and with `source_share` (0 ... 1) the source's own
    frame, each coefficient moved to the mean and standard deviation of the voice's; weighted over
    voices. Coefficient 0 is the source's, moved by a constant to the voices' mean (of frames that
    are not quiet, both). Digital silence keeps its own, so that it stays silent.
    """
    loud = loud_frames(envelope)
    counted = envelope[loud] if len(loud) else envelope
    mean, sd = counted.mean(axis=0), np.maximum(counted.std(axis=0), _SMALLEST_SD)
    out = np.zeros_like(envelope)
    level = 0.0
    if queries is None:
        queries = match_vectors(envelope)
    for voice, weight in zip(voices, weights, strict=True):
        if source_share < 1:
            found = voice.index.search(queries, k)
            out += weight * (1 - source_share) * average(voice.codes, found)
        if source_share > 0:
            moved = (envelope - mean) / sd * voice.sd + voice.mean
            out += weight * source_share * moved
        level += weight * float(voice.mean[0])
    shift = level - float(mean[0]) if len(loud) else 0.0
    out[:, 0] = envelope[:, 0] + np.where(silent_frames(envelope), 0.0, shift)
    return out


def _limit(frames: PoolFrames, most: int) -> PoolFrames:
    kept = spread(len(frames.envelope), most)
    return PoolFrames(frames.envelope[kept], frames.match[kept])
