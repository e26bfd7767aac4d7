"""CONTRIBUTING's table of what is added where, with a toy one of each row."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from torch import Tensor, nn

from steps.anonymisers import registry as anonymisers
from steps.anonymisers.loudness import OutputLevel
from steps.anonymisers.registry import Description
from steps.generators import registry as generators
from steps.generators import trained
from steps.generators.pool import PoolGenerator
from steps.generators.training import GeneratorLoop, GeneratorTrainer, make_training_vectors
from steps.keys import Key
from steps.learning.loop import descend
from steps.sources import Resources, Source
from steps.synthesis import registry as synthesisers
from utils.bounds import Part, Positive
from utils.cli import UserError
from utils.settings import parse_settings, to_plain

KEY = Key("spk", ("set", "speaker"))


@dataclass(frozen=True)
class Softer:
    anonymiser: str
    by: Part = 0.5


class ToyAnonymiser:
    level, is_random, output = "const", False, OutputLevel()

    def __init__(self, settings: Softer) -> None:
        self.by, self.notes = settings.by, []

    @classmethod
    def from_settings(cls, values: dict, path: object, **_: Any) -> "ToyAnonymiser":
        return cls(parse_settings(Softer, values, path))

    @classmethod
    def describe(cls, values: dict, path: object) -> Description:
        return Description(cls.from_settings(values, path).level)

    def settings(self) -> dict[str, object]:
        return {"anonymiser": "toy", "by": self.by}

    def transform(self, wave: np.ndarray, key: Key, source: Source) -> tuple[np.ndarray, dict]:
        return wave * self.by, {}


@dataclass(frozen=True)
class First:
    name: str


class ToyGenerator(PoolGenerator[First]):
    kind = First
    is_random = False

    @classmethod
    def from_settings(cls, values: dict, path: object, *, seed: int, draw: int, **_: Any) -> Any:
        return cls(cls.parse(values, path), seed=seed, draw=draw)

    def generate(self, key: Key, *_: object, **__: object) -> tuple[np.ndarray, dict]:
        return self.pool.vectors[0], {}


@dataclass(frozen=True)
class ToyTraining(GeneratorLoop):
    learning_rate: Positive = 0.2


@dataclass(frozen=True)
class ToySettings:
    generator: str
    training: ToyTraining


class Everybody:
    """All indices are the mean speaker."""

    n_seen, norm_limits = 0, (0.1, 2.0)

    def __init__(self, mean: Tensor) -> None:
        self.mean, self.dimension = mean, len(mean)

    def vectors(self, indices: np.ndarray) -> np.ndarray:
        return np.tile(self.mean.numpy(), (len(indices), 1))


class ToyTrainer(GeneratorTrainer):
    def __init__(self, settings: ToySettings, data: Any, seed: int, device: str) -> None:
        self.plan, self._settings, self.data = settings.training, settings, data
        self.seed, self.device = seed, device
        self.network = nn.Linear(data.dimension, 1, bias=False)
        self.optimiser = torch.optim.Adam(self.network.parameters(), self.plan.learning_rate)

    @classmethod
    def from_settings(cls, values: dict, path: Any, data: Any, *, seed: int, device: str) -> Any:
        return cls(parse_settings(ToySettings, values, path), data, seed, device)

    @classmethod
    def load(cls, values: dict, path: object, weights: dict, n_speakers: int) -> Everybody:
        return Everybody(weights["weight"][0])

    def update(self, step: int, batch: object) -> dict[str, float]:
        distance = (self.network.weight - torch.from_numpy(self.data.means)).square().sum()
        return {"loss": descend(distance, self.optimiser)}

    def model(self) -> Everybody:
        return Everybody(self.network.weight[0].detach())

    def settings(self) -> dict[str, Any]:
        return to_plain(self._settings)


class ToySynthesiser:
    @classmethod
    def load(cls, folder: Path) -> "ToySynthesiser":
        return cls()


def test_an_anonymiser_is_a_class_a_line_and_a_yaml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(anonymisers.KINDS, "toy", f"{__name__}:ToyAnonymiser")
    path = tmp_path / "toy.yaml"
    path.write_text("anonymiser: toy\nby: 0.25\n")
    assert anonymisers.describe_system(path) == Description("const")
    made = anonymisers.load_anonymiser(path)
    assert made.transform(np.ones(2), KEY, Source("a"))[0].tolist() == [0.25, 0.25]
    path.write_text("anonymiser: toy\nby: 2\n")
    with pytest.raises(UserError, match="by: 2; above 0 and at most 1 is expected"):
        anonymisers.load_anonymiser(path)


def test_a_generator_is_a_class_a_line_and_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(generators.GENERATORS, "toy", f"{__name__}:ToyGenerator")
    values = {"name": "toy"}
    made = generators.load_generator(values, "x.yaml", seed=0, draw=0, resources=Resources())
    made.fit(np.eye(2), ["b", "a"], [None, None])
    assert made.generate(KEY)[0].tolist() == [0.0, 1.0]  # a comes first


def test_a_trained_generator_is_a_class_a_line_and_a_yaml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(trained.TRAINERS, "toy", f"{__name__}:ToyTrainer")
    data = make_training_vectors(
        {"u": np.float32([1, 2]), "v": np.float32([3, 2])}, {"u": "a", "v": "b"}
    )
    values = {"generator": "toy", "training": {"steps": 60}}
    trained.train_generator(values, "toy.yaml", data, tmp_path, seed=0)
    made = trained.load_trained(tmp_path).model.vectors(np.arange(1))
    np.testing.assert_allclose(made, [[2, 2]], atol=0.1)


def test_a_synthesiser_is_a_class_a_line_and_a_yaml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = f"{__name__}:ToySynthesiser"
    toy = synthesisers.Structure(target, target, target)
    monkeypatch.setitem(synthesisers.STRUCTURES, "toy", toy)
    (tmp_path / "final.pt").touch()
    (tmp_path / "synthesiser.yaml").write_text(yaml.safe_dump({"synthesiser": "toy"}))
    assert type(synthesisers.load_synthesiser(tmp_path)).__name__ == "ToySynthesiser"
