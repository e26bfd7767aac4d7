# SPDX-License-Identifier: Apache-2.0
"""Trained generators: x-vectors to train on, the training loop, and the folder that it leaves.

A trained generator is a folder: generator.yaml (its `generator`, all settings, what is known of the
training), final.pt (weights; written last), training.tsv (a line a report), checkpoints/.

A network that maps identity indices to x-vectors is a `Model`; what makes one better, step by step,
is a `Trainer`. A new network is a class of each and a line in `TRAINERS`.
"""

import dataclasses
import hashlib
import importlib
import json
import logging
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
import yaml
from torch import Tensor

from steps.speaker.checkpoints import Checkpoints, save_atomically
from steps.speaker.encoders import check_device
from steps.weights import load_state
from utils.cli import UserError
from utils.settings import parse_settings, read_settings
from utils.tables import StrPath, atomic_write, sort_ids

FloatArray = npt.NDArray[np.float64]
Float32 = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]

# Norm of generated vectors over that of real ones; outside, a network has not learned its task.
NORM_RATIO = (0.5, 2.0)
N_CHECKED = 200  # vectors of unseen indices that a check looks at
PROGRESS = ("step", "cpu_seconds", "rows", "sums", "n_summed")  # of a checkpoint


@dataclass(frozen=True)
class TrainingVectors:
    """X-vectors (N, d) float32 of utterances; labels (N,): place of each one's speaker in
    `speakers`, which is in C order. The speaker at place s has the identity index s.
    """

    speakers: tuple[str, ...]
    vectors: Float32
    labels: IntArray

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
class LoopSettings:
    """`training` in the YAML file of every trained generator (a subclass may have more).

    steps: how many. log_every, check_every, checkpoint_every: steps between lines of the log,
    sanity checks, and checkpoints, of which the last keep_checkpoints are kept. None of these
    changes what a step does, so a training can be prolonged by more steps.
    """

    steps: int = 1600
    log_every: int = 50
    check_every: int = 200
    checkpoint_every: int = 200
    keep_checkpoints: int = 2


class Model(Protocol):
    """A network in use: identity indices to x-vectors.

    dimension: d. n_seen: indices 0 ... n_seen - 1 stand for the training speakers (0: none does).
    norm_limits: of the norm of a vector of an unseen index over that of real ones: `NORM_RATIO`,
    or lower where a network that has learned its task makes short vectors.
    """

    dimension: int
    n_seen: int
    norm_limits: tuple[float, float]

    def vectors(self, indices: IntArray) -> Float32:
        """(n,) indices from 0, below 2^63 -> (n, d) float32.

        The vector of an index depends on nothing but the index.
        """
        ...


class Trainer(Protocol):
    """A network under training. All that is random in a step is a function of (seed, step)."""

    loop: LoopSettings

    def update(self, step: int) -> dict[str, float]:
        """One step; figures for the log (losses), the same names at every step."""
        ...

    def model(self) -> Model:
        """The network as it would be used now."""
        ...

    def state(self) -> dict[str, Any]:
        """All that a resumed training needs: tensors and plain values."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        ...

    def weights(self) -> dict[str, Tensor]:
        """What final.pt holds, buffers of the data (a mean, say) included."""
        ...

    def settings(self) -> dict[str, Any]:
        """All settings, `generator` (its name) first, as plain values."""
        ...


class TrainerKind(Protocol):
    """What makes a trainer of a YAML file, and a model of a folder."""

    def from_settings(
        self,
        values: dict[str, object],
        path: StrPath,
        data: TrainingVectors,
        *,
        seed: int,
        device: str,
    ) -> Trainer:
        """A trainer with fresh weights; UserError for the settings in the file `path`."""
        ...

    def load(
        self, values: dict[str, object], path: StrPath, weights: dict[str, Tensor], n_speakers: int
    ) -> Model:
        """The model of a finished training, on the CPU. UserError where they do not fit."""
        ...


# Loaded when asked for.
TRAINERS = {
    "idmap_mlp": ("steps.generators.idmap", "MlpTrainer"),
    "idmap_diff": ("steps.generators.idmap_diff", "DiffTrainer"),
    "wgan": ("steps.generators.wgan", "WganTrainer"),
}


def _kind(values: dict[str, object], path: StrPath) -> TrainerKind:
    name = values.get("generator")
    if not isinstance(name, str) or name not in TRAINERS:
        raise UserError(f"{path}: generator: {name!r} is unknown; known: {', '.join(TRAINERS)}")
    module, attribute = TRAINERS[name]
    kind: TrainerKind = getattr(importlib.import_module(module), attribute)
    return kind


def check_loop(loop: LoopSettings, path: StrPath) -> None:
    """UserError for a number below 1."""
    for field in dataclasses.fields(LoopSettings):
        if getattr(loop, field.name) < 1:
            raise UserError(f"{path}: training.{field.name}: at least 1 is needed")


@dataclass(frozen=True)
class TrainedFolder:
    """What is known of a finished folder: its model, the median norm of the real x-vectors, d."""

    name: str
    model: Model
    norm: float
    speakers: int


@dataclass(frozen=True)
class _Trained:
    """`trained` in generator.yaml: the data, how long, and the figures of `sanity_figures`."""

    step: int
    seed: int
    speakers: int
    utterances: int
    dimension: int
    norm: float
    device: str
    norm_ratio: float
    cosine_unseen: float
    cosine_seen: float = math.nan  # these are left out of the file where they have no value
    norm_ratio_seen: float = math.nan


def load_trained(folder: Path, name: str | None = None) -> TrainedFolder:
    """Open the folder of a finished training. `name`: the only kind of generator that will do."""
    torch.set_num_threads(1)
    path = folder / "generator.yaml"
    for part in (path, folder / "final.pt"):
        if not part.is_file():
            raise UserError(
                f"{part}: is missing; a trained generator is a folder that "
                "steps/train_generator.py finished"
            )
    values = read_settings(path)
    trained = parse_settings(_Trained, values.pop("trained", None), path, "trained")
    kind, found = _kind(values, path), str(values["generator"])
    if name is not None and found != name:
        raise UserError(f"{path}: a trained {found}, where a trained {name} is asked for")
    weights = load_state(folder / "final.pt")
    model = kind.load(values, path, weights, trained.speakers)
    return TrainedFolder(found, model, trained.norm, trained.speakers)


def train_generator(
    values: dict[str, object],
    path: StrPath,
    data: TrainingVectors,
    out: Path,
    *,
    seed: int,
    device: str = "cpu",
) -> None:
    """Train what the settings `values` of the file `path` say; `out` is described above.

    A stopped training goes on from its last checkpoint, and ends with the same weights to the bit
    (one thread, same machine). UserError where the loss is no number, and at the end where vectors
    of unseen indices have norms out of `NORM_RATIO`; then there is no final.pt.
    """
    torch.set_num_threads(1)
    check_device(device)
    trainer = _kind(values, path).from_settings(values, path, data, seed=seed, device=device)
    loop = trainer.loop
    check_loop(loop, path)
    logging.info(
        "%s: %d x-vectors of %d speakers, %d dimensions, median norm of speakers %.3g",
        values["generator"],
        len(data.labels),
        len(data.speakers),
        data.dimension,
        data.norm,
    )
    run = _Run(
        trainer,
        data,
        out,
        Checkpoints(out / "checkpoints", _digest(trainer, data, seed), loop.keep_checkpoints),
    )
    (out / "final.pt").unlink(missing_ok=True)
    run.resume(path)
    run.train()
    run.finish(seed, device)


def _digest(trainer: Trainer, data: TrainingVectors, seed: int) -> str:
    """Of what fixes each step: the settings but the loop's own, the seed, and the x-vectors."""
    settings = dict(trainer.settings())
    training = dict(settings["training"])
    for field in dataclasses.fields(LoopSettings):
        training.pop(field.name)
    settings["training"] = training
    digest = hashlib.sha256(json.dumps([settings, seed, data.speakers], sort_keys=True).encode())
    digest.update(np.ascontiguousarray(data.vectors).tobytes() + data.labels.tobytes())
    return digest.hexdigest()


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


@dataclass
class _Run:
    """A training as it goes: where it is, what it cost, and its table."""

    trainer: Trainer
    data: TrainingVectors
    out: Path
    checkpoints: Checkpoints
    step: int = 0
    cpu_seconds: float = 0.0
    rows: list[dict[str, float]] = dataclasses.field(default_factory=list)
    sums: dict[str, float] = dataclasses.field(default_factory=dict)  # since the last row
    n_summed: int = 0

    def resume(self, path: StrPath) -> None:
        """From the last checkpoint, where there is one."""
        if (state := self.checkpoints.load_last()) is None:
            return
        for name in PROGRESS:
            setattr(self, name, state[name])
        if self.step > self.trainer.loop.steps:
            raise UserError(
                f"{path}: training.steps: {self.trainer.loop.steps}, but {self.out} is at "
                f"{self.step}; remove {self.checkpoints.folder} to begin anew"
            )
        self.trainer.restore(state["trainer"])
        logging.info("resumed at step %d", self.step)

    def train(self) -> None:
        """All steps that are left."""
        loop, first, started = self.trainer.loop, self.step, time.monotonic()
        cpu_before, cpu_started = self.cpu_seconds, time.process_time()
        while self.step < loop.steps:
            self._update()
            self.cpu_seconds = cpu_before + time.process_time() - cpu_started
            last = self.step == loop.steps
            if last or not (self.step % loop.log_every and self.step % loop.check_every):
                self._log((time.monotonic() - started) / (self.step - first))
            if last or self.step % loop.checkpoint_every == 0:
                progress = {name: getattr(self, name) for name in PROGRESS}
                self.checkpoints.save(self.step, {**progress, "trainer": self.trainer.state()})

    def _update(self) -> None:
        for name, value in self.trainer.update(self.step).items():
            if not math.isfinite(value):
                raise UserError(
                    f"{self.out}: {name} is {value} at step {self.step}: the training has "
                    "failed; a smaller training.learning_rate may help"
                )
            self.sums[name] = self.sums.get(name, 0.0) + value
        self.step += 1
        self.n_summed += 1

    def _log(self, seconds: float) -> None:
        """A row of the table and a line; `seconds` a step."""
        loop = self.trainer.loop
        losses = {name: value / self.n_summed for name, value in self.sums.items()}
        words = ", ".join(f"{name} {value:.4f}" for name, value in losses.items())
        left = (loop.steps - self.step) * seconds
        logging.info("step %d of %d: %s; %.0f s left", self.step, loop.steps, words, left)
        row = {"step": float(self.step), "cpu_seconds": round(self.cpu_seconds, 1), **losses}
        if self.step % loop.check_every == 0 or self.step == loop.steps:
            row |= self._check()
        self.rows.append(row)
        self.sums, self.n_summed = {}, 0
        self._write_table()

    def _check(self) -> dict[str, float]:
        figures = sanity_figures(self.trainer.model(), self.data)
        ratio = figures["norm_ratio"]
        words = f"{N_CHECKED} unseen indices: mean cosine {figures['cosine_unseen']:.3f} between "
        words += f"their vectors, norm {ratio:.3g} times that of real speakers"
        if "cosine_seen" in figures:
            words += f"; training speakers: mean cosine {figures['cosine_seen']:.3f} with the real"
            words += f", norm {figures['norm_ratio_seen']:.3g} times"
        if norm_problem(figures, self.trainer.model().norm_limits):
            logging.warning("check at step %d: %s; not usable yet", self.step, words)
        else:
            logging.info("check at step %d: %s", self.step, words)
        return figures

    def _write_table(self) -> None:
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        with atomic_write(self.out / "training.tsv") as stream:
            stream.write("#" + "\t".join(names) + "\n")
            for row in self.rows:
                cells = (f"{row[name]:.6g}" if name in row else "" for name in names)
                stream.write("\t".join(cells) + "\n")

    def finish(self, seed: int, device: str) -> None:
        """Check, then write generator.yaml and final.pt."""
        model = self.trainer.model()
        figures = sanity_figures(model, self.data)
        if problem := norm_problem(figures, model.norm_limits):
            raise UserError(
                f"{self.out}: {problem}: trained too little; raise training.steps and give the "
                "command again, it goes on from here"
            )
        trained = {
            "step": self.step,
            "seed": seed,
            "speakers": len(self.data.speakers),
            "utterances": len(self.data.labels),
            "dimension": self.data.dimension,
            "norm": self.data.norm,
            "device": device,
            **{name: round(value, 4) for name, value in figures.items()},
        }
        with atomic_write(self.out / "generator.yaml") as stream:
            yaml.safe_dump({**self.trainer.settings(), "trained": trained}, stream, sort_keys=False)
        weights = {name: tensor.cpu() for name, tensor in self.trainer.weights().items()}
        save_atomically(self.out / "final.pt", weights)
        logging.info(
            "done: %s (step %d, %.1f s of CPU time)",
            self.out / "final.pt",
            self.step,
            self.cpu_seconds,
        )


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
