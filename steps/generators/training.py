"""Training of generators: data, interface, calibration, kinds, and folders of trained ones."""

import dataclasses
import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from steps.generators.base import units
from steps.generators.identity import END
from steps.training.loop import Trainer, train
from steps.training.settings import LoopSettings, identity
from steps.training.weights import fill_network, load_state, saved_vector, use_device
from utils.arrays import Float32, Float64, Int64
from utils.cli import UserError, refusing
from utils.registry import choose, load
from utils.settings import Count, Declared, parse_settings, read_settings, to_plain
from utils.tables import StrPath, need_files, sort_ids

# ---- Common part of the trainings of all generators: x-vectors to train on, the interface, checks.
#
# An `IndexModel` is a network that maps identity indices to x-vectors; a `GeneratorTrainer` trains
# it step by step.

# Norm of generated vectors over that of real ones; outside, a network has not learned its task.
NORM_RATIO = (0.5, 2.0)
N_CHECKED = 200  # vectors of unseen indices in a check
# Figures of new indices' vectors, over real speakers': limits of a calibration.
LEAST_DEVIATION, LEAST_DIMENSIONS = 0.02, 0.25
Calibrate = Callable[[Float32], Float32]  # from vectors (n, d) of a network to (n, d) for use
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


@torch.no_grad()
def move_average(average: nn.Module, network: nn.Module, keep: float) -> None:
    """Move an average of a network's weights, of which it keeps a share; statistics of batch
    normalisation are averages already, and copied."""
    for kept, weight in zip(average.parameters(), network.parameters(), strict=True):
        kept.lerp_(weight, 1.0 - keep)
    for running, statistic in zip(average.buffers(), network.buffers(), strict=True):
        running.copy_(statistic)


class IndexModel(ABC):
    """Network in use: identity indices to x-vectors, by the weights at the time of the call.

    dimension: d. n_seen: indices 0 ... n_seen - 1 stand for the training speakers (0: none does).
    norm_limits: of the norm of a vector of an unseen index over that of real ones: `NORM_RATIO`,
    or lower where a network that has learned its task makes short vectors. at_once: vectors
    computed at a time. calibrate: for use in systems, as far apart as people; see `Calibration`.
    """

    norm_limits = NORM_RATIO
    at_once = 1024

    def __init__(self, settings: Any, network: Any, n_seen: int) -> None:
        self.given, self.n_seen, self.dimension = settings, n_seen, len(network.mean)
        self.calibrate: Calibrate = network.eval().calibration.in_use()

    def vectors(self, indices: Int64) -> Float32:
        """Vectors (n, d) float32 of indices (n,) from 0, below 2^63.

        The vector of an index depends only on the index.
        """
        out = np.empty((len(indices), self.dimension), np.float32)
        for start in range(0, len(indices), self.at_once):
            block = slice(start, start + self.at_once)
            out[block] = self.block(indices[block])
        return out

    @abstractmethod
    def block(self, indices: Int64) -> Float32:
        """Vectors of at most `at_once` indices."""


class GeneratorTrainer(Declared[Any], Trainer):
    """Training of a generator, with settings; data: its training vectors.

    network_class: of settings.network and d; it has a `calibration` and a `mean` (d,).
    model_class: of the settings, the network and the number of training speakers.
    """

    data: TrainingVectors
    network_class: ClassVar[Any]
    model_class: ClassVar[type[IndexModel]]

    @classmethod
    def from_settings(
        cls, values: object, path: StrPath, data: TrainingVectors, *, seed: int, device: str
    ) -> Self:
        """Make a trainer with fresh weights; UserError for the settings in the file `path`."""
        settings = cls.parse(values, path)
        with refusing(f"{path}: {{}}", UserError):
            return cls(settings, data, seed=seed, device=device)

    def __init__(self, settings: Any, data: TrainingVectors, *, seed: int, device: str) -> None:
        self.given, self.plan, self.data = settings, settings.training, data
        self.seed, self.device = seed, device
        self.prepare()

    @abstractmethod
    def prepare(self) -> None:
        """Make the network with fresh weights, and its optimiser; UserError for unfit data."""

    @abstractmethod
    def in_use(self) -> Any:
        """Copy of the network as it would be used now, on the CPU, not calibrated."""

    @classmethod
    def load(
        cls, values: dict[str, object], path: StrPath, weights: dict[str, Tensor], n_speakers: int
    ) -> IndexModel:
        """Load the model of a finished training, on the CPU. UserError where they do not fit."""
        settings, saved = cls.parse(values, path), Path(path).with_name("final.pt")
        network = cls.network_class(settings.network, len(saved_vector(weights, "mean", saved)))
        fill_network(network, weights, saved)
        return cls.model_class(settings, network, n_speakers)

    def _model_of(self, network: Any) -> IndexModel:
        return self.model_class(self.given, network, len(self.data.speakers))

    def _calibrated(self) -> Any:
        network = self.in_use()
        network.calibration.fit(self.data.means, self._model_of(network).vectors(INDICES))
        return network

    def finished(self) -> IndexModel:
        """Network as it would be used now, calibrated."""
        return self._model_of(self._calibrated())

    def weights(self) -> dict[str, Tensor]:
        return dict(self._calibrated().state_dict())

    def more_figures(self) -> dict[str, float]:
        """Further figures of this kind of generator."""
        return {}

    def validate(self) -> dict[str, float]:
        """Return `sanity_figures` and `more_figures`; the log says whether the model is usable."""
        model = self.finished()
        figures = {**sanity_figures(model, self.data), **self.more_figures()}
        problem = problem_of(figures, model.norm_limits)
        said = ", ".join(f"{name} {value:.3g}" for name, value in figures.items())
        said += f"; not usable yet: {problem}" if problem else ""
        logging.log(logging.WARNING if problem else logging.INFO, f"check: {said}")
        return figures


def sanity_figures(model: IndexModel, data: TrainingVectors) -> dict[str, float]:
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
    for name, whose, (lowest, highest) in (
        ("norm_ratio_seen", "the training speakers'", NORM_RATIO),
        ("norm_ratio", "unseen", limits),
    ):
        if name in figures and not lowest <= figures[name] <= highest:
            return (
                f"vectors of {whose} indices have {figures[name]:.3g} times the norm of real ones, "
                f"and {lowest:g} to {highest:g} is usable"
            )
    for name, what, unit, least in (
        ("deviation_unseen", "differ", "times as much", LEAST_DEVIATION),
        ("dimensions_unseen", "differ in", "times as many directions", LEAST_DIMENSIONS),
    ):
        if figures.get(name, 1.0) < least:
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


# ---- Calibration that makes new identities as far apart as people (ours, not Liu et al.'s).
#
# A network that learned S speakers maps new indices to vectors near the middle: it learned few
# directions of identity vectors, and a new one has a small share of them. Its vectors of new
# indices get the mean and the covariance of real speakers by an affine map.

N_INDICES = 4096
# The last indices; a key has one of them with a probability of 5 in 10^16.
INDICES: Int64 = np.arange(END - N_INDICES, END, dtype=np.int64)
LEAST_VARIANCE = 1e-6  # of real speakers, over that in the widest direction; below, there is none
# Variance of new voices in a direction, over their mean variance: no smaller one is amplified.
FLOOR = 1e-4


class Calibration(nn.Module):
    """Affine map y' = real + map (y - new), kept with a network's weights.

    real, new: (d,) means of real speakers and of the vectors of new indices. map (d, d), symmetric:
    A (A C A)^(-1/2) A with A the square root of the covariance of real speakers and C that of new
    indices: the optimal transport between two Gaussians, which moves vectors least (Olkin and
    Pukelsheim 1982). Until `fit` it is the identity: y' = y.
    """

    real: Tensor
    new: Tensor
    map: Tensor

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.register_buffer("real", torch.zeros(dimension))
        self.register_buffer("new", torch.zeros(dimension))
        self.register_buffer("map", torch.eye(dimension))

    def fit(self, speakers: Float32, made: Float32) -> None:
        """Fit to x-vectors of real speakers (S, d) and the network's vectors (n, d) of INDICES."""
        real, new = speakers.astype(np.float64), made.astype(np.float64)
        self.real.copy_(torch.from_numpy(real.mean(axis=0)))
        self.new.copy_(torch.from_numpy(new.mean(axis=0)))
        self.map.copy_(torch.from_numpy(_transport(np.cov(real.T), np.cov(new.T), len(real))))

    def in_use(self) -> Calibrate:
        """Map for arrays; in single precision, like the network, and one matrix product."""
        real, new, turn = (part.cpu().double().numpy() for part in (self.real, self.new, self.map))
        weight, bias = single(turn), single(real - turn @ new)
        return lambda vectors: affine(vectors, weight, bias)


def affine(x: Float32, weight: Float32, bias: Float32) -> Float32:
    """(n, inputs) -> (n, outputs); a lone vector is multiplied as a vector, twice as fast."""
    y: Float32 = (weight @ x[0])[None] if len(x) == 1 else x @ weight.T
    y += bias
    return y


def single(array: Float64) -> Float32:
    """Array as float32, contiguous."""
    return np.ascontiguousarray(array, dtype=np.float32)


def _transport(real: Float64, new: Float64, n_speakers: int) -> Float64:
    """Map from one covariance (d, d) to another, in directions in which real speakers differ."""
    variances, axes = np.linalg.eigh(real)
    kept = variances > LEAST_VARIANCE * variances[-1]
    axes, roots = axes[:, kept], np.sqrt(of_everybody(variances[kept], n_speakers))
    inner = axes.T @ new @ axes
    if not np.trace(inner) > 0:  # all are equal, and cannot be told apart
        return np.eye(len(real))
    inner += FLOOR * np.trace(inner) / len(inner) * np.eye(len(inner))
    values, turn = np.linalg.eigh(roots[:, None] * inner * roots)
    outer = axes * roots
    return outer @ (turn * values**-0.5) @ turn.T @ outer.T


def of_everybody(variances: Float64, n_speakers: int) -> Float64:
    """Variances (k,) of speakers along their axes, evened out to those of all people.

    A covariance C of S speakers is more uneven than that of all people, so that voices drawn from
    it are too similar: the mean squared cosine of two is tr C^2 / (tr C)^2. Of n = S - 1 degrees of
    freedom, n^2 / ((n - 1) (n + 2)) (tr C^2 - (tr C)^2 / n) has no bias (Srivastava 2005). The
    variances are moved towards their mean until the sum of their squares is that; if there are too
    few directions for that, they become equal.
    """
    n, total, even = n_speakers - 1, float(variances.sum()), float(variances.mean())
    uneven = float(np.sum((variances - even) ** 2))
    if n < 2 or uneven == 0:
        return variances
    wanted = n**2 / ((n - 1) * (n + 2)) * (float(np.sum(variances**2)) - total**2 / n)
    left = np.clip((wanted - total * even) / uneven, 0.0, 1.0)
    return even + np.sqrt(left) * (variances - even)


# ---- Folders of trained generators: all kinds, their training and loading.
#
# A trained generator is a folder: generator.yaml (its `generator`, all settings, data of the
# training), final.pt (weights; written last), training.tsv (a line a report), checkpoints/. A new
# kind is a class of each of `training.IndexModel` and `training.GeneratorTrainer`, and a line here.

# Loaded on demand.
TRAINERS = {
    "idmap_mlp": "steps.generators.idmap:MlpTrainer",
    "idmap_diff": "steps.generators.idmap_diff:DiffTrainer",
    "wgan": "steps.generators.idmap:WganTrainer",
}
# These change no step, so that a training can be prolonged.
LOOP = tuple(field.name for field in dataclasses.fields(LoopSettings))


def _kind(values: dict[str, object], path: StrPath) -> type[GeneratorTrainer]:
    return load(choose(TRAINERS, values.get("generator"), path, "generator"))


@dataclass(frozen=True)
class TrainedFolder:
    """Content of a finished folder: its model, the median norm of real speakers' x-vectors, and the
    median cosine of two x-vectors of one speaker (NaN: unknown)."""

    name: str
    model: IndexModel
    norm: float
    same_person: float


@dataclass(frozen=True)
class _Trained:
    """Part of `trained` in generator.yaml that systems need."""

    speakers: int
    norm: float
    same_person: float = math.nan  # the file leaves it out if it has no value


def load_trained(folder: Path, name: str | None = None) -> TrainedFolder:
    """Open the folder of a finished training. `name`: the only accepted kind of generator."""
    torch.set_num_threads(1)
    path = folder / "generator.yaml"
    mend = "a trained generator is a folder that steps/train_generator.py finished"
    need_files((path, folder / "final.pt"), mend)
    values = read_settings(path)
    told = values.pop("trained", None)
    if isinstance(told, dict):
        told = {key: told[key] for key in _Trained.__annotations__ if key in told}
    trained = parse_settings(_Trained, told, path, "trained")
    kind, found = _kind(values, path), str(values["generator"])
    if name is not None and found != name:
        raise UserError(f"{path}: a trained {found}, where a trained {name} is asked for")
    weights = load_state(folder / "final.pt")
    model = kind.load(values, path, weights, trained.speakers)
    return TrainedFolder(found, model, trained.norm, trained.same_person)


def train_generator(
    values: dict[str, object],
    path: StrPath,
    data: TrainingVectors,
    out: Path,
    *,
    seed: int,
    device: str = "cpu",
) -> None:
    """Train by the settings `values` of the file `path`; `out` is described above.

    A stopped training continues from its last checkpoint, and ends with the same weights to the bit
    (one thread, same machine). UserError where the loss is not a number, and at the end where
    vectors of unseen indices have norms out of `NORM_RATIO`; then there is no final.pt.
    """
    use_device(device)
    trainer = _kind(values, path).from_settings(values, path, data, seed=seed, device=device)
    logging.info(
        f"{values['generator']}: {len(data.labels)} x-vectors of {len(data.speakers)} speakers, "
        f"{data.dimension} dimensions, median norm of speakers {data.norm:.3g}"
    )
    settings, raw = to_plain(trainer.given), data.vectors.tobytes() + data.labels.tobytes()
    training = train(trainer, out, identity(settings, seed, data.speakers, raw, free=LOOP))
    model = trainer.finished()
    figures = {**sanity_figures(model, data), **trainer.more_figures()}
    if not math.isnan(data.same_person):
        figures["same_person"] = data.same_person
    if problem := problem_of(figures, model.norm_limits):
        raise UserError(
            f"{out}: {problem}: trained too little; raise training.steps and give the "
            "command again, it goes on from here"
        )
    training.finish(
        "generator.yaml",
        settings,
        speakers=len(data.speakers),
        utterances=len(data.labels),
        dimension=data.dimension,
        norm=data.norm,
        **{name: round(value, 4) for name, value in figures.items()},
    )
