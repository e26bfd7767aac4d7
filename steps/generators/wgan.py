# SPDX-License-Identifier: Apache-2.0
"""Training of a WGAN-QC on x-vectors (Liu et al. 2019; Meyer et al. 2022; Liu et al. 2025, II-C).

A generator turns a random vector into an x-vector; a critic that learns optimal-transport
potentials gives the direction to real x-vectors.
"""

import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor, nn

from steps.generators.calibration import INDICES, Calibrate, Calibration
from steps.generators.identity import DISTRIBUTIONS, END, identity_vectors
from steps.generators.training import NORM_RATIO, GeneratorLoop, GeneratorTrainer, TrainingVectors
from steps.generators.wgan_networks import ARCHITECTURES, critic_loss, make_networks
from steps.learning.loop import descend
from steps.weights import fill_network, saved_vector
from utils.arrays import Float32, Int64
from utils.bounds import LARGEST, Count, Number, OneOf, Positive
from utils.cli import UserError
from utils.seeds import derive_seed, make_rng
from utils.settings import parse_settings, to_plain
from utils.tables import StrPath

LEAST_SCALE = 0.01  # of the mean deviation of all dimensions
NO_CHANGE = 1e-6  # of the largest deviation: below is rounding
CALIBRATION = "calibration."  # begins the names of its weights


Beta = Annotated[float, Number(least=0, below=1)]


@dataclass(frozen=True)
class WganNetwork:
    """arch: mlp or resnet8. noise: values of the random vector. distribution: theirs.

    Each random vector is normalised to mean 0 and variance 1 (Liu et al. 2025, VI.A).
    """

    arch: Annotated[str, OneOf(*ARCHITECTURES)] = "mlp"
    noise: Annotated[int, Number(least=2, most=LARGEST)] = 64
    distribution: Annotated[str, OneOf(*DISTRIBUTIONS)] = "gaussian"


@dataclass(frozen=True)
class WganTraining(GeneratorLoop):
    """batch: real and as many generated vectors. gamma: of the gradient term. Adam throughout.

    average: share that the moving average of the generator keeps at each step; 0: no average.
    new_noise: whether the generator's step draws its own noise, or uses that of the critic's step.
    """

    steps: Count = 2000
    batch: Annotated[int, Number(least=2)] = 64
    learning_rate: Positive = 5e-4
    betas: tuple[Beta, Beta] = (0.5, 0.999)
    gamma: Positive = 0.1
    average: Beta = 0.0
    new_noise: bool = False


@dataclass(frozen=True)
class WganConfig:
    """Settings of a YAML file of steps/train_generator.py."""

    generator: str
    network: WganNetwork = field(default_factory=WganNetwork)
    training: WganTraining = field(default_factory=WganTraining)


class WganModel:
    """Generator in use; see training.Model. No index stands for a training speaker."""

    n_seen = 0
    norm_limits = NORM_RATIO

    def __init__(
        self,
        config: WganNetwork,
        network: nn.Module,
        mean: Tensor,
        deviation: Tensor,
        calibrate: Calibrate,
    ) -> None:
        self.dimension = len(mean)
        self._config, self._network = config, network.eval()
        self._mean, self._deviation = mean, deviation
        self._calibrate = calibrate

    def calibrate(self, vectors: Float32) -> Float32:
        """See training.Model."""
        return self._calibrate(vectors)

    @torch.inference_mode()
    def vectors(self, indices: Int64) -> Float32:
        """See training.Model. One by one: a batch's arithmetic may depend on its size."""
        noise = torch.from_numpy(
            identity_vectors(indices, self._config.noise, self._config.distribution)
        )
        made = np.empty((len(indices), self.dimension), dtype=np.float32)
        for row, z in zip(made, noise.to(self._mean.device), strict=True):
            row[:] = (self._network(z[None])[0] * self._deviation + self._mean).cpu().numpy()
        return made


class WganTrainer(GeneratorTrainer):
    """See GeneratorTrainer. X-vectors are trained on with mean 0 and variance 1 by dimension."""

    saved = ("network", "_critic", "_average", "_optimiser", "_critic_optimiser")
    plan: WganTraining
    kind = WganConfig

    def __init__(
        self, settings: WganConfig, data: TrainingVectors, *, seed: int, device: str
    ) -> None:
        self.config, self.plan, self.data = settings, settings.training, data
        self.seed, self.device = seed, device
        vectors = data.vectors.astype(np.float64)
        mean, deviation = vectors.mean(axis=0), vectors.std(axis=0)
        # Dimensions that hardly change are never amplified; a constant one stays at the mean.
        scale = np.maximum(deviation, LEAST_SCALE * deviation.mean())
        self._real = torch.from_numpy(((vectors - mean) / scale).astype(np.float32))
        deviation = np.where(deviation < NO_CHANGE * deviation.max(), 0.0, scale)
        self._mean, self._deviation = (
            torch.from_numpy(part.astype(np.float32)).to(device) for part in (mean, deviation)
        )
        torch.manual_seed(derive_seed(seed, "wgan weights") % 2**63)
        network = settings.network
        generator, critic = make_networks(network.arch, network.noise, data.dimension)
        self.network, self._critic = generator.to(device), critic.to(device)
        self._average = copy.deepcopy(self.network)
        self._optimiser, self._critic_optimiser = (
            torch.optim.Adam(part.parameters(), self.plan.learning_rate, self.plan.betas)
            for part in (self.network, self._critic)
        )

    @staticmethod
    def problem(settings: WganConfig, data: TrainingVectors) -> str:
        """See GeneratorTrainer."""
        batch, n = settings.training.batch, len(data.vectors)
        return f"training.batch: {batch}, but there are {n} x-vectors to train on" * (n < batch)

    @classmethod
    def load(
        cls,
        values: dict[str, object],
        path: StrPath,
        weights: dict[str, Tensor],
        n_speakers: int,  # noqa: ARG003
    ) -> WganModel:
        """See GeneratorTrainer."""
        config = parse_settings(WganConfig, values, path).network
        saved = Path(path).with_name("final.pt")
        mean, deviation = (saved_vector(weights, name, saved) for name in ("mean", "deviation"))
        if len(mean) != len(deviation):
            raise UserError(f"{saved}: mean and deviation are of two lengths; train it again")
        network, _ = make_networks(config.arch, config.noise, len(mean))
        own = {name: value for name, value in weights.items() if name not in ("mean", "deviation")}
        kept = {name: own.pop(name) for name in list(own) if str(name).startswith(CALIBRATION)}
        fill_network(network, own, saved)
        calibrate = _read_calibration(kept, len(mean), saved)
        return WganModel(config, network, mean, deviation, calibrate)

    def batch(self, step: int) -> np.random.Generator:
        """See Trainer: draws x-vectors and noise of a step."""
        return make_rng(self.seed, "wgan", f"step {step}")

    def update(self, step: int, batch: np.random.Generator) -> dict[str, float]:  # noqa: ARG002
        """See Trainer. One step of the critic, then one of the generator."""
        rows = batch.choice(len(self._real), self.plan.batch, replace=False)
        real = self._real[torch.from_numpy(rows)].to(self.device)
        self.network.train()
        fake = self.network(self._noise(batch))
        loss = critic_loss(self._critic, real, fake, self.plan.gamma)
        critic = descend(loss.total, self._critic_optimiser)
        if self.plan.new_noise:
            fake = self.network(self._noise(batch))
        generator = descend(-self._critic(fake).mean(), self._optimiser)
        self._update_average()
        return {
            "critic_loss": critic,
            "regression": loss.regression,
            "transport": loss.transport,
            "generator_loss": generator,
        }

    def _noise(self, rng: np.random.Generator) -> Tensor:
        indices = rng.integers(END, size=self.plan.batch, dtype=np.int64)
        config = self.config.network
        noise = identity_vectors(indices, config.noise, config.distribution)
        return torch.from_numpy(noise).to(self.device)

    @torch.no_grad()
    def _update_average(self) -> None:
        """Average the weights; running statistics of batch normalisation are averages already."""
        keep = self.plan.average
        new = self.network
        for kept, weight in zip(self._average.parameters(), new.parameters(), strict=True):
            kept.lerp_(weight, 1.0 - keep)
        for running, statistic in zip(self._average.buffers(), new.buffers(), strict=True):
            running.copy_(statistic)

    def _model(self, calibration: Calibration) -> WganModel:
        network, calibrate = copy.deepcopy(self._average), calibration.in_use()
        return WganModel(self.config.network, network, self._mean, self._deviation, calibrate)

    def model(self) -> WganModel:
        """See GeneratorTrainer."""
        return self._model(Calibration(self.data.dimension))

    def _calibration(self) -> Calibration:
        found = Calibration(self.data.dimension)
        found.fit(self.data.means, self.model().vectors(INDICES))
        return found

    def finished(self) -> WganModel:
        """See GeneratorTrainer."""
        return self._model(self._calibration())

    def weights(self) -> dict[str, Tensor]:
        """See GeneratorTrainer."""
        kept = {CALIBRATION + name: part for name, part in self._calibration().state_dict().items()}
        own = {"mean": self._mean, "deviation": self._deviation}
        return {**self._average.state_dict(), **own, **kept}

    def settings(self) -> dict[str, Any]:
        """See GeneratorTrainer."""
        return to_plain(self.config)


def _read_calibration(kept: dict[str, Tensor], dimension: int, path: Path) -> Calibrate:
    """Accept weights from before there was a calibration, which serve only norm: raw."""
    if not kept:

        def refuse(vectors: Float32) -> Float32:  # noqa: ARG001
            raise UserError(
                f"{path}: was trained before voices of a WGAN were calibrated; train it again in a "
                "new folder, or say norm: raw in the system"
            )

        return refuse
    calibration = Calibration(dimension)
    parts = {name.removeprefix(CALIBRATION): part for name, part in kept.items()}
    fill_network(calibration, parts, path)
    return calibration.in_use()
