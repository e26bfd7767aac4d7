"""Voice conversion by nearest frames: the search, kNN on WORLD frames, and mixed voices."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from steps.content.extractors import ContentExtractor, at_frames
from steps.synthesis.base import F0Map, Target
from steps.synthesis.f0 import TRANSFORMS, F0Stats, mix_f0_stats
from steps.synthesis.voices import VoicePool, loud_frames, match_vectors
from steps.synthesis.world import HOP, analyse, silent_frames, synthesise
from utils.arrays import Float64, Intp
from utils.cli import UserError

# ---- Search of the k nearest frames of a voice for each frame of speech, many at a time, exactly.
#
# The matching of kNN-VC (Baas et al. 2023): a frame of the source is replaced by the mean of the k
# frames of the target that are nearest to it. Nothing is approximate: a search in float32 leaves a
# few candidates more than k, whose distances are then computed in float64, difference by
# difference.

Frames = npt.NDArray[np.floating]

METRICS = ("euclidean", "cosine")
_BLOCK = 1 << 22  # distances held at a time, float32: 16 MiB
_SPARE = 4  # candidates beyond k: float32 may confuse neighbours that are almost equally far


class FrameIndex:
    """Index of frames (M, d) to search; it takes as much memory again as they do in float32."""

    def __init__(self, frames: Frames, metric: str = "euclidean") -> None:
        """metric: euclidean, or cosine (1 - cos; a frame of zeros is equally far from all)."""
        self.metric = metric
        self._frames = _unit(frames) if metric == "cosine" else frames
        self._size = len(frames)
        # Squared distances without the query's own part: |m|^2 - 2 q m, as one product of matrices.
        squares = np.einsum("md,md->m", self._frames, self._frames)
        self._product = np.vstack((self._frames.T, squares)).astype(np.float32)

    def __len__(self) -> int:
        """Number of frames, M."""
        return self._size

    def search(self, queries: Frames, k: int) -> Intp:
        """Rows of the k nearest frames of each query (T, d) -> (T, k), the nearest first.

        Of frames equally far, the first come first. Memory does not grow with T M. ValueError
        where k is not 1 ... M.
        """
        if not 1 <= k <= self._size:
            raise ValueError(f"k {k}; there are {self._size} frames")
        if self.metric == "cosine":
            queries = _unit(queries)
        found = np.empty((len(queries), k), np.intp)
        step = max(1, _BLOCK // self._product.shape[1])
        for start in range(0, len(queries), step):
            block = queries[start : start + step]
            candidates = self._candidates(block, min(k + _SPARE, self._size))
            found[start : start + step] = self._nearest(block, candidates, k)
        return found

    def _candidates(self, queries: Frames, n: int) -> Intp:
        """Find the n nearest frames of each query, up to the rounding of float32, in any order."""
        left = np.empty((len(queries), self._product.shape[0]), np.float32)
        left[:, :-1] = -2.0 * queries
        left[:, -1] = 1.0
        return np.argpartition(left @ self._product, n - 1, axis=1)[:, :n]

    def _nearest(self, queries: Frames, candidates: Intp, k: int) -> Intp:
        """The k nearest of each query's candidates (t, n), sorted by distance and place."""
        candidates = np.sort(candidates, axis=1)
        difference = self._frames[candidates].astype(np.float64) - queries[:, None, :]
        distances = np.einsum("tnd,tnd->tn", difference, difference)
        order = np.argsort(distances, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(candidates, order, axis=1)


def average(codes: Frames, neighbours: Intp) -> Float64:
    """Plain mean of the neighbours' codes: (M, D), (T, k) -> (T, D) float64."""
    total = codes[neighbours[:, 0]].astype(np.float64)
    for column in neighbours.T[1:]:
        total += codes[column]
    return total / neighbours.shape[1]


def spread(n: int, most: int) -> Intp:
    """Places of at most `most` of n frames, evenly spread; all if there are no more.

    >>> spread(10, 4).tolist(), spread(3, 4).tolist()
    ([0, 2, 5, 7], [0, 1, 2])
    """
    if n <= most:
        return np.arange(n)
    return np.arange(most) * n // most


def _unit(vectors: Frames) -> Float64:
    """Scale rows to length 1; zeros stay. Cosine distance is half the squared distance of these."""
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norms > 0, norms, 1.0))


# ---- kNN voice conversion on WORLD frames: no network and no download, a stand-in for kNN-VC.
#
# Each frame of the source becomes the mean of its k nearest frames of the target voice, and, by a
# share, of itself, moved to the mean and deviation of the voice's frames. The second part keeps the
# words: a voice of a few seconds has no frame that is near to each of the source's. Energy contour,
# timing and aperiodicity stay the source's; the pitch takes the target's range.

_CACHED_VOICES, _MOST_FRAMES = 4, 30000  # of a voice that are searched: 5 minutes
_SMALLEST_SD = 1e-6


@dataclass(frozen=True)
class IndexedVoice:
    """Frames to search, and their codes (M, 40), or others, with the codes' mean and sd (40,)."""

    index: FrameIndex
    codes: npt.NDArray[Any]

    @cached_property
    def mean(self) -> Float64:
        """Mean of each code."""
        return np.asarray(self.codes.mean(axis=0))

    @cached_property
    def sd(self) -> Float64:
        """Standard deviation of each code."""
        return np.asarray(self.codes.std(axis=0))

    @classmethod
    def load(
        cls, pool: VoicePool, speaker: str, max_frames: int, metric: str, least: int
    ) -> "IndexedVoice":
        """The voice of a speaker of a pool, max_frames frames, evenly spread; UserError where it
        has fewer than `least`."""
        codes, match = pool.frames(speaker)
        if len(codes) < least:
            raise UserError(
                f"{pool.folder}: {speaker}: {len(codes)} frames, and k is {least}; "
                "leave the voice out of the pool"
            )
        kept = spread(len(match), max_frames)
        return cls(FrameIndex(match[kept], metric), codes[kept])


WORLD_NOTE = (
    "features: world is an offline stand-in for kNN-VC: the frames are those of the WORLD "
    "vocoder, not of WavLM, and no neural vocoder is used; figures are not those of kNN-VC"
)
CONTENT_NOTE = (
    "features: content finds frames of the WORLD vocoder by a recogniser's content; no neural "
    "vocoder is used, and figures are not those of kNN-VC"
)


class WorldConverter:
    """Converter of speech by the nearest WORLD frames of a voice.

    unvoiced: speakers whose pitch is needed, and who have none; they cannot be targets.
    """

    unvoiced: Sequence[str] = ()

    def __init__(
        self,
        pool: VoicePool,
        k: int,
        f0: str,
        source_share: float = 0.0,
        extractor: ContentExtractor | None = None,
    ) -> None:
        """k: frames that are averaged. f0: linear, percentile or none.

        source_share: see `match_envelope`. extractor: of the content by which frames are matched,
        if the pool was opened with it; else envelopes match. UserError where the pool's content is
        of other weights.
        """
        metric, self.note = "euclidean", WORLD_NOTE
        if extractor is not None:
            pool.check_content(extractor.digest)
            metric, self.note = "cosine", CONTENT_NOTE
        self.speakers, self.gender, self._voices, self._k = pool.speakers, pool.gender, pool, k
        self._extractor, self._f0, self._share = extractor, f0, source_share
        self._voice = lru_cache(_CACHED_VOICES)(
            lambda speaker: IndexedVoice.load(pool, speaker, _MOST_FRAMES, metric, k)
        )
        if f0 != "none":
            self.unvoiced = [speaker for speaker in pool.speakers if not pool.f0(speaker).n]

    def convert(self, wave: Float64, voice: str, source_f0: F0Stats | None) -> Float64:
        """Convert speech (n,) at 16 kHz to a voice; silence is returned unchanged. source_f0: of
        the speaker, if F0 is changed."""
        if not np.any(wave):
            return np.zeros(len(wave))
        source, queries = analyse(wave), None
        if self._extractor is not None:
            queries = at_frames(self._extractor(wave), self._extractor, len(source), HOP)
        found = self._voice(voice)
        envelope = match_envelope(source.envelope, [found], (1.0,), self._k, self._share, queries)
        f0 = source.f0
        if self._f0 != "none":
            assert source_f0 is not None
            f0 = TRANSFORMS[self._f0](f0, source_f0, mix_f0_stats([self._voices.f0(voice)], [1.0]))
        return synthesise(replace(source, f0=f0, envelope=envelope), len(wave))


def match_envelope(
    envelope: Float64,
    voices: Sequence[IndexedVoice],
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


# ---- Offline B1 synthesiser: real frames of a few voices, mixed, for the WORLD vocoder.

_CACHED_MIXED = 16  # of at most max_frames each


class WorldSynthesiser:
    """Synthesis in which each source frame becomes the weighted mean of its conversions to the
    target's voices (`knn_world`)."""

    def __init__(self, pool: VoicePool, k: int = 4, max_frames: int = 6000) -> None:
        """Take voices from `pool`.

        k: frames of a voice that are averaged for one of the source (all, if it has fewer).
        max_frames: of a voice that are searched, evenly spread over all, so that the cost does not
        grow with the pool's hours.
        """
        self._k = k
        self._voice = lru_cache(_CACHED_MIXED)(
            lambda speaker: IndexedVoice.load(pool, speaker, max_frames, "euclidean", 1)
        )

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

        A voice's codes come from `match_envelope`.
        """
        voices = [self._voice(speaker) for speaker in target.voices]
        k = min(self._k, *(len(voice.index) for voice in voices))
        return match_envelope(envelope, voices, target.weights.tolist(), k)
