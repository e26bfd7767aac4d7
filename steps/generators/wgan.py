"""WGAN-QC on x-vectors: optimal transport, networks and training."""

import copy
import math
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import ot
import torch
from scipy.spatial.distance import cdist
from torch import Tensor, nn
from torch.nn import functional

from steps.generators.identity import DISTRIBUTIONS, END, identity_vectors
from steps.generators.training import (
    Calibration,
    GeneratorLoop,
    GeneratorTrainer,
    IndexModel,
    TrainingVectors,
    move_average,
)
from steps.training.loop import descend
from utils.arrays import Float32, Float64, Int64
from utils.cli import UserError
from utils.seeds import derive_seed, make_rng
from utils.settings import LARGEST, Count, Number, OneOf, Positive

# ---- Exact optimal transport between two batches of the same size, with its dual potentials.
#
# WGAN-QC (Liu et al. 2019; used for pseudo-speakers in Liu et al. 2025, II-C) trains its critic on
# the solution of the linear programme
#
#     maximise mean_i Hx_i - mean_j Hv_j   subject to   Hx_i - Hv_j <= c_ij,
#
# c_ij = K/2 ||x_i - v_j||^2, where x are real and v generated vectors. The weights are equal, so an
# optimal plan matches the vectors one to one. POT solves it (network simplex).


@dataclass(frozen=True)
class Duals:
    """Solution for n real and n generated vectors.

    real: (n,) Hx. fake: (n,) Hv. match: (n,) T, the real vector matched with each generated one.
    cost: mean cost of the matched pairs, which equals mean Hx - mean Hv.
    """

    real: Float64
    fake: Float64
    match: Int64
    cost: float


def quadratic_cost(real: Float64, fake: Float64) -> Float64:
    """Costs (n, n) c_ij = K/2 ||x_i - v_j||^2 with K = 1/d, of (n, d) and (n, d).

    >>> quadratic_cost(np.zeros((1, 2)), np.ones((1, 2)))
    array([[0.5]])
    """
    squared: Float64 = np.asarray(cdist(real, fake, "sqeuclidean"), dtype=np.float64)
    squared /= 2.0 * real.shape[1]
    return squared


def solve_duals(cost: Float64) -> Duals:
    """Find potentials and matching for a cost matrix (n, n): rows real, columns generated.

    The potentials are centred, mean Hx = -mean Hv: a common constant changes neither the constraint
    nor the objective, and would make the critic's target wander from batch to batch.
    ArithmeticError where the solver does not finish, or a cost is not finite.
    """
    if not np.isfinite(cost).all():
        raise ArithmeticError("optimal transport: a cost is not a finite number")
    plan, log = ot.emd([], [], np.ascontiguousarray(cost), log=True, numItermax=1_000_000)
    if log["warning"] is not None:
        raise ArithmeticError(f"optimal transport: {log['warning']}")
    real, fake = np.array(log["u"]), -np.array(log["v"])
    gauge = 0.5 * (real.mean() + fake.mean())
    match = np.asarray(plan).argmax(axis=0)
    matched = float(cost[match, np.arange(len(match))].mean())
    return Duals(real - gauge, fake - gauge, match, matched)


# ---- Networks and losses of WGAN-QC (Liu et al. 2019), for vectors of any size.
#
# `mlp`: generator z-256-256-d, critic d-256-256-1, leaky ReLU 0.2. `resnet8`: the residual networks
# for images of 8 x 8 that Meyer et al. (2022) used for speaker vectors, with one more linear layer
# on either side: a vector becomes an image of 3 x 8 x 8 and back. Only the generators of `resnet8`
# have batch normalisation: in a critic it would tie the value of one vector to the others of its
# batch.

ARCHITECTURES = ("mlp", "resnet8")
HIDDEN = 256
SLOPE = 0.2  # of the leaky ReLU
FILTERS, WIDE = 8, 16
IMAGE = (3, 8, 8)
RESIDUAL = 0.1  # h + 0.1 F(h)


def make_networks(arch: str, noise: int, size: int) -> tuple[nn.Module, nn.Module]:
    """Generator (n, noise) -> (n, size) and critic (n, size) -> (n,)."""
    if arch == "mlp":
        return _mlp(noise, size), nn.Sequential(_mlp(size, 1), nn.Flatten(0))
    if arch == "resnet8":
        return _image_generator(noise, size), _image_critic(size)
    raise ValueError(f"{arch!r} is none of {ARCHITECTURES}")


def _mlp(n_in: int, n_out: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(n_in, HIDDEN),
        nn.LeakyReLU(SLOPE),
        nn.Linear(HIDDEN, HIDDEN),
        nn.LeakyReLU(SLOPE),
        nn.Linear(HIDDEN, n_out),
    )


class _ImageBlock(nn.Module):
    """Two 3 x 3 convolutions beside a shortcut, a 1 x 1 convolution where the widths differ."""

    def __init__(self, n_in: int, n_out: int, norm: bool) -> None:
        super().__init__()

        def layers(a: int, b: int) -> list[nn.Module]:
            convolution = nn.Conv2d(a, b, 3, padding=1, bias=not norm)
            return [convolution, nn.BatchNorm2d(b)] if norm else [convolution]

        self.body = nn.Sequential(*layers(n_in, n_out), nn.LeakyReLU(SLOPE), *layers(n_out, n_out))
        self.shortcut: nn.Module = nn.Identity()
        if n_in != n_out:
            self.shortcut = nn.Conv2d(n_in, n_out, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Block output (n, n_out, h, w) of (n, n_in, h, w)."""
        return functional.leaky_relu(self.shortcut(x) + RESIDUAL * self.body(x), SLOPE)


class _Layers(nn.Module):
    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        """Vectors (n, size) of noise (n, noise), or values (n,) of vectors (n, size)."""
        return self.layers(x)


def _image_generator(noise: int, size: int) -> nn.Module:
    return _Layers(
        nn.Linear(noise, WIDE * 16),
        nn.Unflatten(1, (WIDE, 4, 4)),
        nn.BatchNorm2d(WIDE),
        nn.LeakyReLU(SLOPE),
        _ImageBlock(WIDE, WIDE, norm=True),
        nn.Upsample(scale_factor=2),
        _ImageBlock(WIDE, WIDE, norm=True),
        _ImageBlock(WIDE, FILTERS, norm=True),
        nn.Conv2d(FILTERS, IMAGE[0], 3, padding=1),
        nn.LeakyReLU(SLOPE),
        nn.Flatten(),
        nn.Linear(math.prod(IMAGE), size),
    )


def _image_critic(size: int) -> nn.Module:
    return _Layers(
        nn.Linear(size, math.prod(IMAGE)),
        nn.Unflatten(1, IMAGE),
        nn.Conv2d(IMAGE[0], FILTERS, 3, padding=1),
        nn.LeakyReLU(SLOPE),
        _ImageBlock(FILTERS, WIDE, norm=False),
        _ImageBlock(WIDE, WIDE, norm=False),
        nn.AvgPool2d(2),
        _ImageBlock(WIDE, WIDE, norm=False),
        nn.Flatten(),
        nn.Linear(WIDE * 16, 1),
        nn.Flatten(0),
    )


@dataclass(frozen=True)
class CriticLoss:
    """total: L_D, to be minimised. regression: its first two terms. transport: mean matched cost.

    `total` carries gradients; the others are plain numbers for the log.
    """

    total: Tensor
    regression: float
    transport: float


def critic_loss(critic: nn.Module, real: Tensor, fake: Tensor, gamma: float) -> CriticLoss:
    """Loss L_D of a batch of real (n, d) and generated (n, d) vectors, n each.

    L_D = 1/2 (mean D(x) - mean Hx)^2 + 1/2 mean_j (D(v_j) - Hv_j)^2 + lambda R, lambda = 4 sqrt(K)
    gamma, R = 1/2 mean_j (||grad D(v_j)|| / (2 sqrt K) - sqrt(K)/2 ||x_T(j) - v_j||)^2, K = 1/d:
    the critic learns the potentials, and at each generated vector the gradient that leads to its
    partner. ArithmeticError where a vector is not finite.
    """
    fake = fake.detach().requires_grad_(True)
    k = 1.0 / real.shape[1]
    duals = solve_duals(
        quadratic_cost(real.detach().double().cpu().numpy(), fake.detach().double().cpu().numpy())
    )
    at_real, at_fake = critic(real), critic(fake)
    potential = torch.from_numpy(duals.fake).to(at_fake)
    regression = 0.5 * (at_real.mean() - duals.real.mean()).square()
    regression = regression + 0.5 * (at_fake - potential).square().mean()
    (slope,) = torch.autograd.grad(at_fake.sum(), fake, create_graph=True)
    steep = (slope.square().sum(dim=1) + 1e-12).sqrt()  # the root has no gradient at 0
    partner = real[torch.from_numpy(duals.match).to(real.device)]
    distance = (partner - fake.detach()).norm(dim=1)
    error = steep / (2.0 * k**0.5) - 0.5 * k**0.5 * distance
    total = regression + 4.0 * k**0.5 * gamma * 0.5 * error.square().mean()
    return CriticLoss(total, float(regression.detach()), duals.cost)


# ---- Training of a WGAN-QC on x-vectors (Liu et al. 2019; Meyer et al. 2022; Liu et al. 2025,
# II-C).
#
# A generator turns a random vector into an x-vector; a critic that learns optimal-transport
# potentials gives the direction to real x-vectors.

LEAST_SCALE = 0.01  # of the mean deviation of all dimensions
NO_CHANGE = 1e-6  # of the largest deviation: below is rounding


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
    """

    steps: Count = 2000
    batch: Annotated[int, Number(least=2)] = 64
    learning_rate: Positive = 5e-4
    betas: tuple[Beta, Beta] = (0.5, 0.999)
    gamma: Positive = 0.1
    average: Beta = 0.0


@dataclass(frozen=True)
class WganConfig:
    """Settings of a YAML file of steps/train_generator.py."""

    generator: str
    network: WganNetwork = field(default_factory=WganNetwork)
    training: WganTraining = field(default_factory=WganTraining)


class WganShell(nn.Module):
    """A generator, and how its vectors become x-vectors: deviation * y + mean, (d,) each."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, config: WganNetwork, dimension: int) -> None:
        super().__init__()
        self.generator, _ = make_networks(config.arch, config.noise, dimension)
        self.calibration = Calibration(dimension)
        self.register_buffer("mean", torch.zeros(dimension))
        self.register_buffer("deviation", torch.ones(dimension))


class WganModel(IndexModel):
    """Generator in use. No index stands for a training speaker."""

    at_once = 1  # a batch's arithmetic may depend on its size

    def __init__(self, settings: WganConfig, network: WganShell, n_speakers: int) -> None:
        super().__init__(settings, network, n_seen=0)
        self._network = network

    @torch.inference_mode()
    def block(self, indices: Int64) -> Float32:
        config, network = self.given.network, self._network
        noise = torch.from_numpy(identity_vectors(indices, config.noise, config.distribution))
        return (network.generator(noise) * network.deviation + network.mean).numpy()


class WganTrainer(GeneratorTrainer):
    """Trainer of a WGAN-QC; its x-vectors have mean 0 and variance 1 by dimension."""

    saved = ("network", "_critic", "_average", "_optimiser", "_critic_optimiser")
    plan: WganTraining
    kind, network_class, model_class = WganConfig, WganShell, WganModel

    def __init__(
        self, settings: WganConfig, data: TrainingVectors, *, seed: int, device: str
    ) -> None:
        super().__init__(settings, data, seed=seed, device=device)
        network, vectors = settings.network, data.vectors.astype(np.float64)
        if len(vectors) < self.plan.batch:
            n = len(vectors)
            raise UserError(f"training.batch: {self.plan.batch}; there are {n} x-vectors to learn")
        mean, deviation = vectors.mean(axis=0), vectors.std(axis=0)
        # Dimensions that hardly change are never amplified; a constant one stays at the mean.
        scale = np.maximum(deviation, LEAST_SCALE * deviation.mean())
        self._real = torch.from_numpy(((vectors - mean) / scale).astype(np.float32))
        self._shell = WganShell(network, data.dimension)
        self._shell.mean.copy_(torch.from_numpy(mean))
        kept = np.where(deviation < NO_CHANGE * deviation.max(), 0.0, scale)
        self._shell.deviation.copy_(torch.from_numpy(kept))
        torch.manual_seed(derive_seed(seed, "wgan weights") % 2**63)
        generator, critic = make_networks(network.arch, network.noise, data.dimension)
        self.network, self._critic = generator.to(device), critic.to(device)
        self._average = copy.deepcopy(self.network)
        self._optimiser, self._critic_optimiser = (
            torch.optim.Adam(part.parameters(), self.plan.learning_rate, self.plan.betas)
            for part in (self.network, self._critic)
        )

    def batch(self, step: int) -> np.random.Generator:
        """See Trainer: draws x-vectors and noise of a step."""
        return make_rng(self.seed, "wgan", f"step {step}")

    def update(self, step: int, batch: np.random.Generator) -> dict[str, float]:
        """One step of the critic, then one of the generator."""
        rows = batch.choice(len(self._real), self.plan.batch, replace=False)
        real = self._real[torch.from_numpy(rows)].to(self.device)
        self.network.train()
        fake = self.network(self._noise(batch))
        loss = critic_loss(self._critic, real, fake, self.plan.gamma)
        critic = descend(loss.total, self._critic_optimiser)
        generator = descend(-self._critic(fake).mean(), self._optimiser)
        move_average(self._average, self.network, self.plan.average)
        return {
            "critic_loss": critic,
            "regression": loss.regression,
            "transport": loss.transport,
            "generator_loss": generator,
        }

    def _noise(self, rng: np.random.Generator) -> Tensor:
        indices = rng.integers(END, size=self.plan.batch, dtype=np.int64)
        config = self.given.network
        noise = identity_vectors(indices, config.noise, config.distribution)
        return torch.from_numpy(noise).to(self.device)

    def in_use(self) -> WganShell:
        """The moving average of the generator."""
        network = copy.deepcopy(self._shell)
        network.generator = copy.deepcopy(self._average).cpu()
        return network
