# SPDX-License-Identifier: Apache-2.0
"""Folders of trained generators: all kinds, their training and loading.

A trained generator is a folder: generator.yaml (its `generator`, all settings, data of the
training), final.pt (weights; written last), training.tsv (a line a report), checkpoints/. A new
kind is a class of each of `training.Model` and `training.GeneratorTrainer`, and a line here.
"""

import dataclasses
import logging
import math
from dataclasses import dataclass
from pathlib import Path

import torch

from steps.generators.training import (
    GeneratorTrainer,
    Model,
    TrainingVectors,
    problem_of,
    sanity_figures,
)
from steps.learning.devices import check_device
from steps.learning.loop import train
from steps.learning.settings import LoopSettings, identity
from steps.weights import load_state
from utils.cli import UserError
from utils.registry import choose, load
from utils.settings import parse_settings, read_settings
from utils.tables import StrPath

# Loaded on demand.
TRAINERS = {
    "idmap_mlp": "steps.generators.idmap:MlpTrainer",
    "idmap_diff": "steps.generators.idmap_diff:DiffTrainer",
    "wgan": "steps.generators.wgan:WganTrainer",
}
# These change no step, so that a training can be prolonged.
LOOP = tuple(field.name for field in dataclasses.fields(LoopSettings))


def _kind(values: dict[str, object], path: StrPath) -> type[GeneratorTrainer]:
    kind: type[GeneratorTrainer] = load(
        choose(TRAINERS, values.get("generator"), path, "generator")
    )
    return kind


@dataclass(frozen=True)
class TrainedFolder:
    """Content of a finished folder: its model, the median norm of real speakers' x-vectors, the
    number of speakers, and the median cosine of two x-vectors of one (NaN: unknown)."""

    name: str
    model: Model
    norm: float
    speakers: int
    same_person: float


@dataclass(frozen=True)
class _Trained:
    """`trained` in generator.yaml: the data, the length, and the figures of `sanity_figures`."""

    step: int
    seed: int
    speakers: int
    utterances: int
    dimension: int
    norm: float
    device: str
    norm_ratio: float
    cosine_unseen: float
    deviation_unseen: float = math.nan  # the file leaves these out if they have no value
    dimensions_unseen: float = math.nan
    cosine_used: float = math.nan
    centred_used: float = math.nan
    cosine_real: float = math.nan
    near_used: float = math.nan
    cosine_seen: float = math.nan
    norm_ratio_seen: float = math.nan
    same_person: float = math.nan
    auxiliary_share: float = math.nan
    auxiliary_cosine: float = math.nan
    parameters: int = 0
    kept: str = "final"


def load_trained(folder: Path, name: str | None = None) -> TrainedFolder:
    """Open the folder of a finished training. `name`: the only accepted kind of generator."""
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
    return TrainedFolder(found, model, trained.norm, trained.speakers, trained.same_person)


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
    torch.set_num_threads(1)
    check_device(device)
    trainer = _kind(values, path).from_settings(values, path, data, seed=seed, device=device)
    logging.info(
        "%s: %d x-vectors of %d speakers, %d dimensions, median norm of speakers %.3g",
        values["generator"],
        len(data.labels),
        len(data.speakers),
        data.dimension,
        data.norm,
    )
    settings, raw = trainer.settings(), data.vectors.tobytes() + data.labels.tobytes()
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
