# SPDX-License-Identifier: Apache-2.0
"""Equal error rate on held-out training speakers: a curve of the success of training.

Segments of a speaker come from different utterances where there are several; a speaker of one
utterance gives pieces of it, which are easier to match. The figure is for comparing steps of one
training, not for a table of results.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from steps.audio import SAMPLE_RATE
from steps.learning.audio import TrainingAudio
from utils.arrays import Float32
from utils.seeds import make_rng

Embed = Callable[[Float32], npt.NDArray[np.float32]]
SEGMENT_SECONDS = 3.0


@dataclass(frozen=True)
class ValidationSet:
    """segments: of 2 to 4 s; speakers: (n,) index of each; from_one: speakers of one utterance."""

    segments: list[Float32]
    speakers: npt.NDArray[np.int64]
    from_one: int


def make_validation_set(
    audio: TrainingAudio, speakers: Sequence[str], n_segments: int, seed: int
) -> ValidationSet | None:
    """Choose up to `n_segments` segments a speaker; None if fewer than two speakers have two."""
    segments: list[Float32] = []
    owners: list[int] = []
    from_one = 0
    for owner, speaker in enumerate(speakers):
        utts = audio.spk2utt[speaker]
        from_one += len(utts) == 1
        cuts = [_middle(audio, utt) for utt in utts] if len(utts) > 1 else _pieces(audio, utts[0])
        order = make_rng(seed, "encoder-validation", speaker).permutation(len(cuts))[:n_segments]
        if len(order) < 2:
            continue
        segments += [audio.read(*cuts[i]) for i in sorted(order.tolist())]
        owners += [owner] * len(order)
    if len(set(owners)) < 2:
        return None
    return ValidationSet(segments, np.array(owners), from_one)


def _middle(audio: TrainingAudio, utt: str) -> tuple[str, int, int]:
    length = audio.lengths[utt]
    n_samples = min(length, int(SEGMENT_SECONDS * SAMPLE_RATE))
    return utt, (length - n_samples) // 2, n_samples


def _pieces(audio: TrainingAudio, utt: str) -> list[tuple[str, int, int]]:
    """Cut an utterance into equal pieces of at least 2 s."""
    n_pieces = max(1, audio.lengths[utt] // (2 * SAMPLE_RATE))
    n_samples = audio.lengths[utt] // n_pieces
    return [(utt, i * n_samples, n_samples) for i in range(n_pieces)]


def validation_eer(segments: ValidationSet, embed: Embed) -> float:
    """EER (0 to 1) of the cosine over all pairs of segments."""
    vectors = np.stack([embed(samples) for samples in segments.segments]).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rows, columns = np.triu_indices(len(vectors), k=1)
    scores = (vectors @ vectors.T)[rows, columns]
    return equal_error_rate(scores, segments.speakers[rows] == segments.speakers[columns])


def equal_error_rate(scores: npt.NDArray[np.float64], target: npt.NDArray[np.bool_]) -> float:
    """Mean of miss and false-alarm rate at the threshold where they are closest.

    >>> equal_error_rate(np.array([3.0, 2.0, 1.0, 0.0]), np.array([True, False, True, False]))
    0.5
    """
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(target[order])
    n_accepted = np.arange(1, len(scores) + 1)
    miss = 1 - hits / target.sum()
    false_alarm = (n_accepted - hits) / (~target).sum()
    best = int(np.argmin(np.abs(miss - false_alarm)))
    return float((miss[best] + false_alarm[best]) / 2)
