"""IDMap-Diff (004, IV.C): the noise schedule and its solvers, U-Nets, and training."""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from steps.generators import idmap
from steps.generators.identity import identity_vectors
from steps.generators.training import Calibration, IndexModel, affine, move_average, single
from steps.training.loop import descend
from utils.arrays import Float32, Int64
from utils.seeds import make_rng
from utils.settings import Count, Number, Size

# ---- Diffusion of vectors: the noise schedule, and three ways to solve the reverse equation.
#
# dq = -1/2 beta_t q dt + sqrt(beta_t) dW from a vector at t = 0 to noise at t = 1 (Liu et al. 2025,
# Eq. 4-5); the terminal mean is zero. Arrays are (n, d); networks are not known here.

Array = npt.NDArray[Any]
Score = Callable[[Array, float], Array]

BETA_0, BETA_1 = 0.05, 20.0


def beta(t: float) -> float:
    """Linear schedule (Liu et al. 2025, VI.A)."""
    return BETA_0 + t * (BETA_1 - BETA_0)


def gamma(s: Any, t: Any) -> Any:
    """Factor exp(-1/2 integral of beta from s to t) on a vector from s to t (Eq. 5)."""
    return np.exp(-0.5 * (BETA_0 * (t - s) + 0.5 * (BETA_1 - BETA_0) * (t * t - s * s)))


def reverse(score: Score, noise: Array) -> Array:
    """Vectors (n, d) from standard normal noise (steps, n, d), in equal steps from t = 1 to 0.

    score(q, t): gradient of the log density of q (n, d) at t, called at t > 0 only. By the
    maximum-likelihood solver of Popov et al. (2022), which Liu et al. 2025 use; exact for a target
    that is one point, narrower than the truth for a broad one (variance 0.36 for 1 after 5 steps).
    """
    q: Array = noise[0]
    h = 1.0 / (steps := len(noise))
    for k in range(steps):
        t = 1.0 - k * h
        shrink, push, sigma = _coefficients(t, h, last=k == steps - 1)
        q = shrink * q + push * score(q, t)
        if sigma:
            q = q + sigma * noise[k + 1]
    return q


@lru_cache(maxsize=1024)
def _coefficients(t: float, h: float, last: bool) -> tuple[float, float, float]:
    """Coefficients of a step q <- shrink q + push score(q, t) + sigma noise."""
    step = beta(t) * h
    s = 0.0 if last else t - h
    g0t, g0s, gst = (float(gamma(a, b)) for a, b in ((0.0, t), (0.0, s), (s, t)))
    var_0t, var_0s, var_st = 1.0 - g0t**2, 1.0 - g0s**2, 1.0 - gst**2
    kappa = g0s * var_st / (g0t * step) - 1.0
    omega = g0s * var_st / (var_0t * g0t) + gst * var_0s / var_0t - (0.5 * step + 1.0)
    return 1.0 + 0.5 * step + omega, (1.0 + kappa) * step, math.sqrt(var_0s * var_st / var_0t)


# ---- U-Nets for diffusion of vectors: dense layers, or convolutions along the vector.
#
# Both take noisy vectors q (n, d), conditions z (n, c) and times t (n,), and return (n, d). Liu et
# al. 2025 name the U-Net of Popov et al. (2022), which is for images; how a vector becomes one is
# not said.

TIMES = 64  # sines and as many cosines of t
Denoiser = Callable[[Float32, float], Float32]


class TimeFeatures(nn.Module):
    """Time features (n, 2 TIMES) of t (n,) in [0, 1]: sines and cosines, then a layer."""

    frequencies: Tensor

    def __init__(self) -> None:
        super().__init__()
        frequencies = torch.exp(torch.linspace(0.0, math.log(1000.0), TIMES))
        self.register_buffer("frequencies", frequencies)
        self.layer = nn.Linear(2 * TIMES, 2 * TIMES)

    def forward(self, t: Tensor) -> Tensor:
        angles = t[:, None] * self.frequencies
        return nn.functional.silu(self.layer(torch.cat([angles.sin(), angles.cos()], dim=1)))


class _DenseBlock(nn.Module):
    """Block h + W2 SiLU(W1 (LN(h) (1 + a) + b)), a and b (n, size) from condition and time."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(size, size), nn.Linear(size, size)

    def forward(self, h: Tensor, a: Tensor, b: Tensor) -> Tensor:
        inner = nn.functional.layer_norm(h, h.shape[1:]) * (1 + a) + b
        return h + self.second(nn.functional.silu(self.first(inner)))


class VectorUnet(nn.Module):
    """Dense layers of three sizes, down and up again, with skips; every block is steered (FiLM)
    by an affine function of z and the time features.
    """

    def __init__(self, dimension: int, condition: int, sizes: tuple[int, int, int]) -> None:
        super().__init__()
        s0, s1, s2 = sizes
        self.block_sizes = (s0, s1, s2, s1, s0)
        self.time = TimeFeatures()
        self.steer_condition = nn.Linear(condition, 2 * sum(self.block_sizes))
        self.steer_time = nn.Linear(2 * TIMES, 2 * sum(self.block_sizes), bias=False)
        self.enter, self.leave = nn.Linear(dimension, s0), nn.Linear(s0, dimension)
        changes = ((s0, s1), (s1, s2), (s2, s1), (s1, s0))
        self.changes = nn.ModuleList(nn.Linear(a, b) for a, b in changes)
        self.blocks = nn.ModuleList(_DenseBlock(size) for size in self.block_sizes)
        nn.init.zeros_(self.leave.weight)

    def forward(self, q: Tensor, z: Tensor, t: Tensor) -> Tensor:
        steering = self.steer_condition(z) + self.steer_time(self.time(t))
        pairs = torch.split(steering, [s for size in self.block_sizes for s in (size, size)], dim=1)
        h, skips = self.enter(q), []
        for place, block in enumerate(self.blocks):
            h = block(h, pairs[2 * place], pairs[2 * place + 1])
            if place < 2:
                skips.append(h)
            if place < 4:
                h = self.changes[place](h)
            if place >= 2 and skips:
                h = h + skips.pop()
        return self.leave(h)

    def in_use(self, conditioner: idmap.Conditioner) -> Callable[[Float32], Denoiser]:
        """Denoiser for identity vectors (n, D): a map from (q (n, d), t) to the output (n, d)."""
        return _FoldedVectorUnet(self, conditioner)


class _FoldedVectorUnet:
    """VectorUnet in NumPy, in a third of torch's time for one vector, as calls cost more there than
    arithmetic. The steering of z is computed once a vector, that of t once for all."""

    def __init__(self, unet: VectorUnet, conditioner: idmap.Conditioner) -> None:
        def weights(layer: Any) -> tuple[Float32, Float32]:
            return single(idmap.to_numpy(layer.weight)), single(idmap.to_numpy(layer.bias))

        self._steer = idmap.FoldedConditioner(conditioner, unet.steer_condition)
        self._enter, self._leave = weights(unet.enter), weights(unet.leave)
        self._changes = [weights(layer) for layer in unet.changes]
        self._blocks: list[Any] = [(weights(b.first), weights(b.second)) for b in unet.blocks]
        self._sizes = unet.block_sizes
        self._unet, self._of_time = unet, dict[float, Float32]()

    def _time_steering(self, t: float) -> Float32:
        if t not in self._of_time:
            with torch.no_grad():
                steering = idmap.to_numpy(self._unet.steer_time(self._unet.time(torch.tensor([t]))))
            at = 0
            for size in self._sizes:  # the 1 of 1 + a
                steering[:, at : at + size] += 1.0
                at += 2 * size
            self._of_time[t] = single(steering)
        return self._of_time[t]

    def __call__(self, e: Float32) -> Denoiser:
        of_condition = self._steer(e)

        def denoise(q: Float32, t: float) -> Float32:
            with np.errstate(over="ignore"):  # exp of a large -h in _silu: 0 is right
                return self._denoise(q, of_condition + self._time_steering(t))

        return denoise

    def _denoise(self, q: Float32, steering: Float32) -> Float32:
        h, skips, at = affine(q, *self._enter), [], 0
        for place, (first, second) in enumerate(self._blocks):
            size = self._sizes[place]
            inner = _layer_norm(h)
            inner *= steering[:, at : at + size]
            inner += steering[:, at + size : at + 2 * size]
            at += 2 * size
            h = h + affine(_silu(affine(inner, *first)), *second)
            if place < 2:
                skips.append(h)
            if place < 4:
                h = affine(h, *self._changes[place])
            if place >= 2 and skips:
                h += skips.pop()
        return affine(h, *self._leave)


def _layer_norm(h: Float32) -> Float32:
    size = np.float32(h.shape[1])
    mean: Float32 = np.add.reduce(h, axis=1, keepdims=True)
    out = h - mean / size
    squares: Float32 = np.vecdot(out, out)[:, None]
    out /= np.sqrt(squares / size + np.float32(1e-5))
    return out


def _silu(h: Float32) -> Float32:
    return h / (1 + np.exp(-h))


# ---- IDMap-Diff (Liu et al. 2025, IV.C): diffusion from random vectors of indices to x-vectors.
#
# The conditioner is that of IDMap-MLP. The noise of an index comes from the index too, so that an
# index is one voice.

EARLIEST = 1e-3  # t in training; at 0 the score of a single point is infinite


@dataclass(frozen=True)
class DiffNetworkSettings(idmap.IdentitySettings):
    """sizes: of the dense layers, one for each of three resolutions."""

    sizes: tuple[Size, Size, Size] = (256, 128, 64)


@dataclass(frozen=True)
class SolverSettings:
    """steps: their number, see `reverse`."""

    steps: Count = 5


@dataclass(frozen=True)
class DiffTraining(idmap.TripletSettings):
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
        self.conditioner = idmap.Conditioner(settings.identity, settings.width, dimension)
        self.unet = VectorUnet(dimension, 2 * settings.width, settings.sizes)
        self.calibration = Calibration(dimension)
        self.register_buffer("mean", torch.zeros(dimension))
        self.register_buffer("scale", torch.ones(dimension))


def to_score(output: Any, q: Any, t: Any) -> Any:
    """Score (Eq. 6) of q at t from the network's output, the clean vector."""
    g = gamma(0.0, t)
    return (g * output - q) / (1.0 - g * g)


class DiffModel(IndexModel):
    """IDMap-Diff in use."""

    norm_limits = idmap.NEW_NORM_RATIO

    def __init__(self, settings: DiffSettings, network: DiffNetwork, n_seen: int) -> None:
        super().__init__(settings, network, n_seen)
        self._mean, self._scale = idmap.to_numpy(network.mean), idmap.to_numpy(network.scale)
        self._network = network.unet.in_use(network.conditioner)

    def block(self, indices: Int64) -> Float32:
        unet = self._network(identity_vectors(indices, self.given.network.identity))
        noise = index_noise(indices, self.given.solver.steps, self.dimension)

        def score(q: Float32, t: float) -> Float32:
            return to_score(unet(q, t), q, np.float32(t))

        return (self._mean + self._scale * reverse(score, noise)).astype(np.float32)


def index_noise(indices: Int64, n_noises: int, dimension: int) -> Float32:
    """Standard normal noise (K, n, d) of (n,) indices, each index with its own, always the same."""
    noise = np.empty((n_noises, len(indices), dimension), np.float32)
    for place, index in enumerate(indices):
        rng = make_rng(int(index), "noise")
        noise[:, place] = rng.standard_normal((n_noises, dimension), dtype=np.float32)
    return noise


class DiffTrainer(idmap.TripletTrainer):
    """Training of IDMap-Diff."""

    saved = ("network", "optimiser", "average")
    kind, network_class, model_class = DiffSettings, DiffNetwork, DiffModel

    def prepare(self) -> None:
        super().prepare()
        deviation = self.data.means.std(axis=0)
        scale = np.maximum(deviation, 0.01 * deviation.mean())
        self.network.mean.copy_(torch.from_numpy(self.data.means.mean(axis=0)))
        self.network.scale.copy_(torch.from_numpy(scale))
        self.average = copy.deepcopy(self.network)
        self._targets = (self.means - self.network.mean) / self.network.scale

    def update(self, step: int, batch: tuple[Int64, Int64]) -> dict[str, float]:
        """Take one step. The loss is the mean squared error of the clean vector; that of Eq. (7)
        is of the noise."""
        self.network.train()
        speakers, utterances = batch
        x = self._targets[speakers].repeat_interleave(utterances.shape[1], dim=0)
        z = self.network.conditioner(self._identities[speakers], self.vectors[utterances])
        rng = make_rng(self.seed, "idmap", "diffusion", str(step))
        drawn = rng.uniform(EARLIEST, 1.0, len(x)).astype(np.float32)
        noise = torch.from_numpy(rng.standard_normal(x.shape, dtype=np.float32)).to(x.device)
        t = torch.from_numpy(drawn).to(x.device)
        log_gamma = np.log(gamma(0.0, drawn.astype(np.float64)))
        g = torch.exp(torch.from_numpy(log_gamma).to(t))[:, None]
        q = g * x + (1.0 - g * g).sqrt() * noise
        output = self.network.unet(q, z.flatten(0, 1), t)
        loss = (output - x).square().mean()
        parameters, limit = self.network.parameters(), self.plan.gradient_norm
        found = descend(loss, self.optimiser, parameters, limit)
        shorter = (1 + step) / (10 + step)  # at the beginning
        move_average(self.average, self.network, min(self.given.training.average, shorter))
        return {"loss": found}

    def in_use(self) -> Any:
        """The moving average of the network."""
        return copy.deepcopy(self.average).cpu()
