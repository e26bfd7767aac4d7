# SPDX-License-Identifier: Apache-2.0
"""What the trainings of all generators share: x-vectors to train on, the interface, checks.

A network that maps identity indices to x-vectors is a `Model`; what makes one better, step by step,
is a `GeneratorTrainer`.
"""

import logging
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
from torch import Tensor

from steps.learning.loop import Trainer
from steps.learning.settings import LoopSettings
from utils.arrays import Float32, Int64
from utils.bounds import Count
from utils.cli import UserError
from utils.settings import Declared
from utils.tables import StrPath, sort_ids

# Norm of generated vectors over that of real ones; outside, a network has not learned its task.
NORM_RATIO = (0.5, 2.0)
N_CHECKED = 200  # vectors of unseen indices that a check looks at


@dataclass(frozen=True)
class TrainingVectors:
    """X-vectors (N, d) float32 of utterances; labels (N,): place of each one's speaker in
    `speakers`, which is in C order. The speaker at place s has the identity index s.
    """

    speakers: tuple[str, ...]
    vectors: Float32
    labels: Int64

    @property
    def dimension(self) -> int:
        """d."""
        return int(self.vectors.shape[1])

    @cached_property
    def means(self) -> Float32:
        """(S, d) mean x-vector of each speaker, averaged in float64."""
        sums = np.zeros((len(self.speakers), self.dimension))
        np.add.at(sums, self.labels, self.vectors.astype(np.float64))
        return (sums / np.bincount(self.labels)[:, None]).astype(np.float32)

    @cached_property
    def norm(self) -> float:
        """Median Euclidean norm of the speakers' means, what `NORM_RATIO` is relative to."""
        return float(np.median(np.linalg.norm(self.means, axis=1)))


def make_training_vectors(
    vectors: Mapping[str, Float32], utt2spk: Mapping[str, str]
) -> TrainingVectors:
    """Of x-vectors (d,) by utterance. UserError for fewer than two speakers, or only zeros."""
    utts = sort_ids(vectors)
    speakers = tuple(sort_ids({utt2spk[utt] for utt in utts}))
    if len(speakers) < 2:
        raise UserError(f"{len(speakers)} training speakers: at least 2 are needed")
    places = {speaker: place for place, speaker in enumerate(speakers)}
    labels = np.array([places[utt2spk[utt]] for utt in utts], dtype=np.int64)
    data = TrainingVectors(speakers, np.stack([vectors[u] for u in utts], dtype=np.float32), labels)
    if not data.norm > 0:
        raise UserError("the training x-vectors are zero; extract them again")
    return data


@dataclass(frozen=True)
class GeneratorLoop(LoopSettings):
    """`training` in the YAML file of every trained generator (a subclass may have more).

    None of these changes what a step does, so a training can be prolonged by more steps.
    """

    steps: Count = 1600
    valid_every: Count = 200
    checkpoint_every: Count = 200


class Model(Protocol):
    """A network in use: identity indices to x-vectors.

    dimension: d. n_seen: indices 0 ... n_seen - 1 stand for the training speakers (0: none does).
    norm_limits: of the norm of a vector of an unseen index over that of real ones: `NORM_RATIO`,
    or lower where a network that has learned its task makes short vectors.
    """

    dimension: int
    n_seen: int
    norm_limits: tuple[float, float]

    def vectors(self, indices: Int64) -> Float32:
        """(n,) indices from 0, below 2^63 -> (n, d) float32.

        The vector of an index depends on nothing but the index.
        """
        ...


class GeneratorTrainer(Declared[Any], Trainer):
    """A generator under training, of settings; data: what it learns from."""

    data: TrainingVectors

    @classmethod
    def from_settings(
        cls, values: object, path: StrPath, data: TrainingVectors, *, seed: int, device: str
    ) -> Self:
        """A trainer with fresh weights; UserError for the settings in the file `path`."""
        settings = cls.parse(values, path)
        if problem := cls.problem(settings, data):
            raise UserError(f"{path}: {problem}")
        return cls(settings, data, seed=seed, device=device)

    @abstractmethod
    def __init__(self, settings: Any, data: TrainingVectors, *, seed: int, device: str) -> None: ...

    @staticmethod
    def problem(settings: Any, data: TrainingVectors) -> str:  # noqa: ARG004
        """What hinders such a training on such data; nothing, unless a subclass says so."""
        return ""

    @classmethod
    @abstractmethod
    def load(
        cls, values: dict[str, object], path: StrPath, weights: dict[str, Tensor], n_speakers: int
    ) -> Model:
        """The model of a finished training, on the CPU. UserError where they do not fit."""

    @abstractmethod
    def model(self) -> Model:
        """The network as it would be used now."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """All settings, `generator` (its name) first, as plain values."""

    def validate(self) -> dict[str, float]:
        """See Trainer: `sanity_figures`, and whether they are usable in the log."""
        model = self.model()
        figures = sanity_figures(model, self.data)
        words = (
            f"{N_CHECKED} unseen indices: mean cosine {figures['cosine_unseen']:.3f} between their "
            f"vectors, norm {figures['norm_ratio']:.3g} times that of real speakers"
        )
        if "cosine_seen" in figures:
            words += f"; training speakers: mean cosine {figures['cosine_seen']:.3f} with the real"
            words += f", norm {figures['norm_ratio_seen']:.3g} times"
        if norm_problem(figures, model.norm_limits):
            logging.warning("check: %s; not usable yet", words)
        else:
            logging.info("check: %s", words)
        return figures


def sanity_figures(model: Model, data: TrainingVectors) -> dict[str, float]:
    """How a network does, on the first unseen indices and on the training speakers' own.

    norm_ratio: median norm of vectors of unseen indices over that of real speakers. cosine_unseen:
    mean cosine between those vectors. cosine_seen: mean cosine of the vectors of the training
    speakers' indices with their mean x-vectors, norm_ratio_seen: the ratio of their norms; both
    absent where no index stands for a speaker.
    """
    unseen = model.vectors(np.arange(model.n_seen, model.n_seen + N_CHECKED, dtype=np.int64))
    unseen = unseen.astype(np.float64)
    norms = np.linalg.norm(unseen, axis=1)
    total = np.sum(unseen / np.maximum(norms, 1e-30)[:, None], axis=0)
    figures = {
        "norm_ratio": float(np.median(norms)) / data.norm,
        "cosine_unseen": (float(total @ total) - N_CHECKED) / (N_CHECKED * (N_CHECKED - 1)),
    }
    if model.n_seen:
        made = model.vectors(np.arange(model.n_seen, dtype=np.int64)).astype(np.float64)
        real = data.means.astype(np.float64)
        products = np.linalg.norm(made, axis=1) * np.linalg.norm(real, axis=1)
        cosines = np.sum(made * real, axis=1) / np.maximum(products, 1e-30)
        figures["cosine_seen"] = float(np.mean(cosines))
        figures["norm_ratio_seen"] = float(np.median(np.linalg.norm(made, axis=1))) / data.norm
    return figures


def norm_problem(figures: Mapping[str, float], limits: tuple[float, float]) -> str:
    """What is wrong with the norms in `sanity_figures`, or nothing.

    An under-trained network explodes (Diff) or gives nothing; the limits of the training speakers'
    own vectors are `NORM_RATIO`, those of unseen indices `limits`.
    """
    checks = [("norm_ratio_seen", "the training speakers'", NORM_RATIO)]
    checks.append(("norm_ratio", "unseen", limits))
    for name, whose, (lowest, highest) in checks:
        if name in figures and not lowest <= figures[name] <= highest:
            return (
                f"vectors of {whose} indices have {figures[name]:.3g} times the norm of real ones, "
                f"and {lowest:g} to {highest:g} is usable"
            )
    return ""


def is_within(ratio: float, limits: tuple[float, float]) -> bool:
    """Whether a ratio is a number within limits."""
    return limits[0] <= ratio <= limits[1]
