# SPDX-License-Identifier: Apache-2.0
"""IDMap-Diff (Liu et al. 2025, IV.C): diffusion from random vectors of indices to x-vectors.

The conditioner is that of IDMap-MLP. The noise of an index comes from the index too, so that an
index is one voice.
"""

import copy
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor, nn

from steps.generators.calibration import Calibration
from steps.generators.diffusion import SOLVERS, gamma, n_noises, reverse
from steps.generators.identity import DISTRIBUTIONS, identity_vectors
from steps.generators.idmap import (
    BLOCK,
    NEW_NORM_RATIO,
    Conditioner,
    TripletSettings,
    TripletTrainer,
    to_numpy,
)
from steps.generators.training import TrainingVectors
from steps.generators.unet import Unet1d, VectorUnet
from steps.learning.loop import descend
from utils.arrays import Float32, Int64
from utils.bounds import LARGEST, Count, Number, OneOf, Size
from utils.seeds import make_rng

UNETS = ("vector", "conv1d")
PREDICTIONS = ("noise", "vector")
EARLIEST = 1e-3  # t in training; at 0 the score of a single point is infinite


@dataclass(frozen=True)
class DiffNetworkSettings:
    """distribution, identity, width: as IDMap-MLP. unet: vector (dense layers of `sizes`, one for
    each of three resolutions) or conv1d (the vector as a signal; `channels` at the first).
    predicts: the network's output, the noise in its input or the clean vector; the score of Eq. (6)
    follows from either."""

    distribution: Annotated[str, OneOf(*DISTRIBUTIONS)] = "gaussian"
    identity: Size = 512
    width: Size = 512
    unet: Annotated[str, OneOf(*UNETS)] = "vector"
    sizes: tuple[Size, Size, Size] = (256, 128, 64)
    channels: Annotated[int, Number(least=8, most=LARGEST, multiple=8)] = 16
    predicts: Annotated[str, OneOf(*PREDICTIONS)] = "vector"


@dataclass(frozen=True)
class SolverSettings:
    """kind: ml, euler or heun (diffusion.reverse). steps: their number."""

    kind: Annotated[str, OneOf(*SOLVERS)] = "ml"
    steps: Count = 5


@dataclass(frozen=True)
class DiffTraining(TripletSettings):
    """average: share kept at each step by the moving average of the weights, which is used."""

    steps: Count = 800
    average: Annotated[float, Number(least=0, below=1)] = 0.99


@dataclass(frozen=True)
class DiffSettings:
    """Settings of a YAML file such as conf/generators/idmap_diff.yaml."""

    generator: str
    network: DiffNetworkSettings = field(default_factory=DiffNetworkSettings)
    solver: SolverSettings = field(default_factory=SolverSettings)
    training: DiffTraining = field(default_factory=DiffTraining)


class DiffNetwork(nn.Module):
    """Conditioner and U-Net, on vectors standardised with `mean` and `scale` (d,)."""

    mean: Tensor
    scale: Tensor

    def __init__(self, settings: DiffNetworkSettings, dimension: int) -> None:
        super().__init__()
        self.conditioner = Conditioner(settings.identity, settings.width, dimension)
        self.unet: VectorUnet | Unet1d
        if settings.unet == "vector":
            self.unet = VectorUnet(dimension, 2 * settings.width, settings.sizes)
        else:
            self.unet = Unet1d(dimension, 2 * settings.width, settings.channels)
        self.calibration = Calibration(dimension)
        self.register_buffer("mean", torch.zeros(dimension))
        self.register_buffer("scale", torch.ones(dimension))

    def standardise(self, x: Tensor) -> Tensor:
        """Standardise raw (..., d) to mean 0 and variance 1 over the training speakers."""
        return (x - self.mean) / self.scale


def to_score(output: Any, q: Any, t: Any, predicts: str) -> Any:
    """Score of q at t from the network's output: -noise / sqrt(1 - gamma^2)."""
    g = gamma(0.0, t)
    if predicts == "noise":
        return -output / np.sqrt(1.0 - g * g)
    return (g * output - q) / (1.0 - g * g)


class DiffModel:
    """IDMap-Diff in use; see `training.Model`. It uses the weights of the time of the call."""

    norm_limits = NEW_NORM_RATIO

    def __init__(self, settings: DiffSettings, network: DiffNetwork, n_seen: int) -> None:
        self._settings, self.n_seen = settings, n_seen
        self.dimension = len(network.mean)
        self._mean, self._scale = to_numpy(network.mean), to_numpy(network.scale)
        network.eval()
        self._network = network.unet.in_use(network.conditioner)
        self.calibrate = network.calibration.in_use()

    def vectors(self, indices: Int64) -> Float32:
        """See training.Model."""
        out = np.empty((len(indices), self.dimension), np.float32)
        for start in range(0, len(indices), BLOCK):
            block = indices[start : start + BLOCK]
            out[start : start + BLOCK] = self._mean + self._scale * self._sample(block)
        return out

    def _sample(self, indices: Int64) -> Float32:
        network, solver = self._settings.network, self._settings.solver
        e = identity_vectors(indices, network.identity, network.distribution)
        noise = index_noise(indices, n_noises(solver.kind, solver.steps), self.dimension)
        unet = self._network(e)

        def score(q: Float32, t: float) -> Float32:
            output = unet(q, t)
            found: Float32 = to_score(output, q, np.float32(t), network.predicts)
            return found

        found: Float32 = reverse(score, noise, solver.steps, solver.kind)
        return found


def index_noise(indices: Int64, n_noises: int, dimension: int) -> Float32:
    """Standard normal noise (K, n, d) of (n,) indices, each index with its own, always the same."""
    noise = np.empty((n_noises, len(indices), dimension), np.float32)
    for place, index in enumerate(indices):
        rng = make_rng(int(index), "noise")
        noise[:, place] = rng.standard_normal((n_noises, dimension), dtype=np.float32)
    return noise


class DiffTrainer(TripletTrainer):
    """Training of IDMap-Diff."""

    generator = "idmap_diff"
    saved = ("network", "optimiser", "average")
    kind = DiffSettings

    def __init__(
        self, settings: DiffSettings, data: TrainingVectors, *, seed: int, device: str
    ) -> None:
        super().__init__(settings, data, seed=seed, device=device)
        deviation = data.means.std(axis=0)
        scale = np.maximum(deviation, 0.01 * deviation.mean())
        self.network.mean.copy_(torch.from_numpy(data.means.mean(axis=0)))
        self.network.scale.copy_(torch.from_numpy(scale))
        self.average = copy.deepcopy(self.network)
        self._targets = self.network.standardise(self.means)

    @staticmethod
    def make_network(settings: DiffSettings, dimension: int) -> DiffNetwork:
        """See TripletTrainer."""
        return DiffNetwork(settings.network, dimension)

    @staticmethod
    def make_model(settings: DiffSettings, network: DiffNetwork, n_speakers: int) -> DiffModel:
        """See TripletTrainer."""
        return DiffModel(settings, network, n_speakers)

    def update(self, step: int, batch: tuple[Int64, Int64]) -> dict[str, float]:
        """See Trainer. The loss is Eq. (7), the mean squared error of the noise, where
        the network predicts noise; else that of the clean vector, which is another loss.
        """
        self.network.train()
        speakers, utterances = batch
        x = self._targets[speakers].repeat_interleave(utterances.shape[1], dim=0)
        z = self.network.conditioner(self._identities[speakers], self.vectors[utterances])
        rng = make_rng(self.seed, "idmap", "diffusion", str(step))
        t = torch.from_numpy(rng.uniform(EARLIEST, 1.0, len(x)).astype(np.float32)).to(x.device)
        noise = torch.from_numpy(rng.standard_normal(x.shape, dtype=np.float32)).to(x.device)
        g = torch.exp(_log_gamma(t))[:, None]
        q = g * x + (1.0 - g * g).sqrt() * noise
        output = self.network.unet(q, z.flatten(0, 1), t)
        wanted = noise if self._settings.network.predicts == "noise" else x
        loss = (output - wanted).square().mean()
        parameters, limit = self.network.parameters(), self.plan.gradient_norm
        found = descend(loss, self.optimiser, parameters, limit)
        self._update_average(step)
        return {"loss": found}

    @torch.no_grad()
    def _update_average(self, step: int) -> None:
        """Moving average of weights, shorter at the beginning; statistics are copied."""
        keep = min(self._settings.training.average, (1 + step) / (10 + step))
        new = self.network.state_dict()
        for name, value in self.average.state_dict().items():
            if value.is_floating_point() and "running" not in name:
                value.lerp_(new[name], 1.0 - keep)
            else:
                value.copy_(new[name])

    def in_use(self) -> Any:
        """See TripletTrainer: the moving average."""
        return copy.deepcopy(self.average).cpu()


def _log_gamma(t: Tensor) -> Tensor:
    return torch.from_numpy(np.log(gamma(0.0, t.cpu().double().numpy()))).to(t)
