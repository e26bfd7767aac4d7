# SPDX-License-Identifier: Apache-2.0
"""Common part of the trainings of all generators: x-vectors to train on, the interface, checks.

A `Model` is a network that maps identity indices to x-vectors; a `GeneratorTrainer` trains it step
by step.
"""

import logging
import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
from torch import Tensor

from steps.generators.base import units
from steps.learning.loop import Trainer
from steps.learning.settings import LoopSettings
from utils.arrays import Float32, Float64, Int64
from utils.bounds import Count
from utils.cli import UserError
from utils.settings import Declared
from utils.tables import StrPath, sort_ids

# Norm of generated vectors over that of real ones; outside, a network has not learned its task.
NORM_RATIO = (0.5, 2.0)
N_CHECKED = 200  # vectors of unseen indices in a check
# Figures of new indices' vectors, over real speakers': limits of a calibration.
LEAST_DEVIATION, LEAST_DIMENSIONS = 0.02, 0.25
MOST_CENTRED = 0.2  # mean cosine of voices about real speakers' mean; real speakers have 0


@dataclass(frozen=True)
class TrainingVectors:
    """X-vectors (N, d) float32 of utterances; labels (N,): position of each one's speaker in
    `speakers`, which is in C order. The speaker at position s has the identity index s."""

    speakers: tuple[str, ...]
    vectors: Float32
    labels: Int64

    @property
    def dimension(self) -> int:
        """Dimension d."""
        return int(self.vectors.shape[1])

    @cached_property
    def means(self) -> Float32:
        """Mean x-vector (S, d) of each speaker, averaged in float64."""
        sums = np.zeros((len(self.speakers), self.dimension))
        np.add.at(sums, self.labels, self.vectors.astype(np.float64))
        return (sums / np.bincount(self.labels)[:, None]).astype(np.float32)

    @cached_property
    def same_person(self) -> float:
        """Median cosine of two x-vectors of one speaker; NaN where each has one."""
        found = []
        for place in range(len(self.speakers)):
            own = units(self.vectors[self.labels == place].astype(np.float64))
            found.append((own @ own.T)[np.triu_indices(len(own), 1)])
        pairs = np.concatenate(found)
        return float(np.median(pairs)) if len(pairs) else math.nan

    @cached_property
    def norm(self) -> float:
        """Median Euclidean norm of the speakers' means, the reference of `NORM_RATIO`."""
        return float(np.median(np.linalg.norm(self.means, axis=1)))


def make_training_vectors(
    vectors: Mapping[str, Float32], utt2spk: Mapping[str, str]
) -> TrainingVectors:
    """Collect x-vectors (d,) by utterance. UserError for under two speakers, or only zeros."""
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

    None of these changes a step, so a training can be prolonged by more steps.
    """

    steps: Count = 1600
    valid_every: Count = 200
    checkpoint_every: Count = 200


class Model(Protocol):
    """Network in use: identity indices to x-vectors.

    dimension: d. n_seen: indices 0 ... n_seen - 1 stand for the training speakers (0: none does).
    norm_limits: of the norm of a vector of an unseen index over that of real ones: `NORM_RATIO`,
    or lower where a network that has learned its task makes short vectors.
    """

    dimension: int
    n_seen: int
    norm_limits: tuple[float, float]

    def vectors(self, indices: Int64) -> Float32:
        """Vectors (n, d) float32 of indices (n,) from 0, below 2^63.

        The vector of an index depends only on the index.
        """
        ...

    def calibrate(self, vectors: Float32) -> Float32:
        """Calibrate (n, d) for use in systems: as far apart as people; see calibration.py."""
        ...


class GeneratorTrainer(Declared[Any], Trainer):
    """Training of a generator, with settings; data: its training vectors."""

    data: TrainingVectors

    @classmethod
    def from_settings(
        cls, values: object, path: StrPath, data: TrainingVectors, *, seed: int, device: str
    ) -> Self:
        """Make a trainer with fresh weights; UserError for the settings in the file `path`."""
        settings = cls.parse(values, path)
        if problem := cls.problem(settings, data):
            raise UserError(f"{path}: {problem}")
        return cls(settings, data, seed=seed, device=device)

    @abstractmethod
    def __init__(self, settings: Any, data: TrainingVectors, *, seed: int, device: str) -> None: ...

    @staticmethod
    def problem(settings: Any, data: TrainingVectors) -> str:  # noqa: ARG004
        """Obstacle to such a training on such data; empty, unless a subclass finds one."""
        return ""

    @classmethod
    @abstractmethod
    def load(
        cls, values: dict[str, object], path: StrPath, weights: dict[str, Tensor], n_speakers: int
    ) -> Model:
        """Load the model of a finished training, on the CPU. UserError where they do not fit."""

    @abstractmethod
    def model(self) -> Model:
        """Network as it would be used now, not calibrated."""

    def finished(self) -> Model:
        """Network as it is used, calibrated where its kind is."""
        return self.model()

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """All settings, `generator` (its name) first, as plain values."""

    def more_figures(self) -> dict[str, float]:
        """Further figures of a kind."""
        return {}

    def validate(self) -> dict[str, float]:
        """See Trainer: `sanity_figures` and `more_figures`; the log says whether it is usable."""
        model = self.model()
        figures = {**sanity_figures(model, self.data), **self.more_figures()}
        log = (
            logging.warning if (problem := problem_of(figures, model.norm_limits)) else logging.info
        )
        log(
            "check: %s%s",
            ", ".join(f"{name} {value:.3g}" for name, value in figures.items()),
            f"; not usable yet: {problem}" if problem else "",
        )
        return figures


def sanity_figures(model: Model, data: TrainingVectors) -> dict[str, float]:
    """Check of a network, on the first unseen indices and on the training speakers' own.

    For vectors of unseen indices: norm_ratio, median norm over that of real speakers;
    cosine_unseen, mean cosine between them; deviation_unseen, root mean square distance from their
    mean, over that of real speakers; dimensions_unseen, number of directions in which they differ
    (`n_directions`) beyond the first, over that of real speakers; both absent where real speakers
    do not differ so. For these vectors calibrated, as in systems: cosine_used, mean cosine;
    centred_used, about the mean of real speakers; near_used, share of those that are nearer to a
    real speaker than two recordings of one person are to each other (absent where nobody has two).
    cosine_real: mean cosine between real speakers. cosine_seen: mean cosine of the vectors of the
    training speakers' indices with their mean x-vectors, norm_ratio_seen: the ratio of their norms;
    both absent where no index stands for a speaker.
    """
    indices = np.arange(model.n_seen, model.n_seen + N_CHECKED, dtype=np.int64)
    made, real = model.vectors(indices), data.means.astype(np.float64)
    raw, used = made.astype(np.float64), model.calibrate(made).astype(np.float64)
    middle = real.mean(axis=0)
    deviations = raw - raw.mean(axis=0), real - middle
    spread = [float(np.sqrt(np.mean(np.sum(part**2, axis=1)))) for part in deviations]
    several = n_directions(real) - 1
    figures = {
        "norm_ratio": _median_norm(raw) / data.norm,
        "cosine_unseen": mean_cosine(raw),
        "cosine_used": mean_cosine(used),
        "centred_used": mean_cosine(used - middle),
        "cosine_real": mean_cosine(real),
    }
    if spread[1]:
        figures["deviation_unseen"] = spread[0] / spread[1]
    if several > 1e-6:
        figures["dimensions_unseen"] = (n_directions(raw) - 1) / several
    if not math.isnan(data.same_person):
        nearest = (units(used) @ units(real).T).max(axis=1)
        figures["near_used"] = float(np.mean(nearest > data.same_person))
    if model.n_seen:
        seen = model.vectors(np.arange(model.n_seen, dtype=np.int64)).astype(np.float64)
        figures["cosine_seen"] = float(np.mean(np.sum(units(seen) * units(real), axis=1)))
        figures["norm_ratio_seen"] = _median_norm(seen) / data.norm
    return figures


def mean_cosine(vectors: Float64) -> float:
    """Mean cosine over all pairs of n vectors (n, d)."""
    n, total = len(vectors), units(vectors).sum(axis=0)
    return (float(total @ total) - n) / (n * (n - 1))


def n_directions(vectors: Float64) -> float:
    """Directions of (n, d): (sum of variances)^2 / sum of their squares; 1 to n - 1.

    This is the participation ratio over the main axes. 1 also where all are equal.
    """
    variances = np.linalg.svd(vectors - vectors.mean(axis=0), compute_uv=False) ** 2
    total = float(np.sum(variances))
    return total**2 / float(np.sum(variances**2)) if total > 0 else 1.0


def _median_norm(vectors: Float64) -> float:
    return float(np.median(np.linalg.norm(vectors, axis=1)))


def problem_of(figures: Mapping[str, float], limits: tuple[float, float]) -> str:
    """Reason why a network is unusable by its `sanity_figures`, or an empty string.

    An under-trained network explodes (Diff) or gives vectors near zero: the limits of the norms of
    the training speakers' own vectors are `NORM_RATIO`, those of unseen indices `limits`. A
    collapsed one has new voices that hardly differ, or in few directions, or lie to one side of
    real speakers however calibrated; nothing mends that.
    """
    checks = [("norm_ratio_seen", "the training speakers'", NORM_RATIO)]
    checks.append(("norm_ratio", "unseen", limits))
    for name, whose, (lowest, highest) in checks:
        if name in figures and not lowest <= figures[name] <= highest:
            return (
                f"vectors of {whose} indices have {figures[name]:.3g} times the norm of real ones, "
                f"and {lowest:g} to {highest:g} is usable"
            )
    for name, what, least in (
        ("deviation_unseen", "differ", LEAST_DEVIATION),
        ("dimensions_unseen", "differ in", LEAST_DIMENSIONS),
    ):
        if figures.get(name, 1.0) < least:
            unit = "times as much" if what == "differ" else "times as many directions"
            return (
                f"the voices of new indices {what} {figures[name]:.3g} {unit} as those of real "
                f"speakers, and {least:g} is the least: they have collapsed into one"
            )
    if figures.get("centred_used", 0.0) > MOST_CENTRED:
        return (
            f"the voices of new indices have a mean cosine of {figures['centred_used']:.3g} about "
            f"real speakers' mean, and {MOST_CENTRED:g} is the most: they have collapsed into one"
        )
    return ""


def is_within(ratio: float, limits: tuple[float, float]) -> bool:
    """Whether a ratio is a number within limits."""
    return limits[0] <= ratio <= limits[1]
