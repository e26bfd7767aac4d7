"""Networks of generators: WGAN-QC, and IDMap-MLP (Liu et al. 2025, IV.A-B)."""

import copy
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import ot
import torch
from scipy.spatial.distance import cdist
from torch import Tensor, nn

from steps.generators.base import units
from steps.generators.identity import END, identity_vectors
from steps.generators.training import (
    NORM_RATIO,
    Calibration,
    GeneratorLoop,
    GeneratorTrainer,
    IndexModel,
    TrainingVectors,
    affine,
    move_average,
    single,
)
from steps.training.loop import descend
from utils import settings as rule
from utils.arrays import Float32, Float64, Int64
from utils.cli import UserError
from utils.seeds import derive_seed, make_rng

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
    return np.asarray(cdist(real, fake, "sqeuclidean") / (2.0 * real.shape[1]))


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
# Generator z-256-256-d, critic d-256-256-1, leaky ReLU 0.2.

HIDDEN = 256
SLOPE = 0.2  # of the leaky ReLU


def make_networks(noise: int, size: int) -> tuple[nn.Module, nn.Module]:
    """Generator (n, noise) -> (n, size) and critic (n, size) -> (n,)."""
    return _mlp(noise, size), nn.Sequential(_mlp(size, 1), nn.Flatten(0))


def _mlp(n_in: int, n_out: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(n_in, HIDDEN),
        nn.LeakyReLU(SLOPE),
        nn.Linear(HIDDEN, HIDDEN),
        nn.LeakyReLU(SLOPE),
        nn.Linear(HIDDEN, n_out),
    )


def critic_loss(
    critic: nn.Module, real: Tensor, fake: Tensor, gamma: float
) -> tuple[Tensor, float, float]:
    """Loss L_D of a batch of real (n, d) and generated (n, d) vectors, n each; also, for the log,
    its first two terms and the mean matched cost.

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
    return total, float(regression.detach()), duals.cost


# ---- Training of a WGAN-QC on x-vectors (Liu et al. 2019; Meyer et al. 2022; Liu et al. 2025,
# II-C).
#
# A generator turns a random vector into an x-vector; a critic that learns optimal-transport
# potentials gives the direction to real x-vectors.

LEAST_SCALE = 0.01  # of the mean deviation of all dimensions
NO_CHANGE = 1e-6  # of the largest deviation: below is rounding


BETAS = (0.5, 0.999)  # of Adam


@dataclass(frozen=True)
class WganNetwork:
    """noise: values of the random vector.

    Each random vector is normalised to mean 0 and variance 1 (Liu et al. 2025, VI.A).
    """

    noise: Annotated[int, rule.Number(least=2, most=rule.LARGEST)] = 64


@dataclass(frozen=True)
class WganTraining(GeneratorLoop):
    """batch: real and as many generated vectors. gamma: of the gradient term. Adam throughout.

    average: share that the moving average of the generator keeps at each step; 0: no average.
    """

    steps: rule.Count = 2000
    batch: Annotated[int, rule.Number(least=2)] = 64
    learning_rate: rule.Positive = 5e-4
    gamma: rule.Positive = 0.1
    average: Annotated[float, rule.Number(least=0, below=1)] = 0.0


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
        self.generator, _ = make_networks(config.noise, dimension)
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
        noise = torch.from_numpy(identity_vectors(indices, config.noise))
        return (network.generator(noise) * network.deviation + network.mean).numpy()


class WganTrainer(GeneratorTrainer):
    """Trainer of a WGAN-QC; its x-vectors have mean 0 and variance 1 by dimension."""

    saved = ("network", "_critic", "_average", "_optimiser", "_critic_optimiser")
    plan: WganTraining
    kind, network_class, model_class = WganConfig, WganShell, WganModel

    def prepare(self) -> None:
        network, dimension = self.given.network, self.data.dimension
        vectors = self.data.vectors.astype(np.float64)
        if len(vectors) < self.plan.batch:
            n = len(vectors)
            raise UserError(f"training.batch: {self.plan.batch}; there are {n} x-vectors to learn")
        mean, deviation = vectors.mean(axis=0), vectors.std(axis=0)
        # Dimensions that hardly change are never amplified; a constant one stays at the mean.
        scale = np.maximum(deviation, LEAST_SCALE * deviation.mean())
        self._real = torch.from_numpy(((vectors - mean) / scale).astype(np.float32))
        self._shell = WganShell(network, dimension)
        self._shell.mean.copy_(torch.from_numpy(mean))
        kept = np.where(deviation < NO_CHANGE * deviation.max(), 0.0, scale)
        self._shell.deviation.copy_(torch.from_numpy(kept))
        torch.manual_seed(derive_seed(self.seed, "wgan weights") % 2**63)
        made = make_networks(network.noise, dimension)
        self.network, self._critic = (part.to(self.device) for part in made)
        self._average = copy.deepcopy(self.network)
        self._optimiser, self._critic_optimiser = (
            torch.optim.Adam(part.parameters(), self.plan.learning_rate, BETAS)
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
        config = self.given.network
        indices = batch.integers(END, size=self.plan.batch, dtype=np.int64)
        noise = identity_vectors(indices, config.noise)
        fake = self.network(torch.from_numpy(noise).to(self.device))
        loss, regression, transport = critic_loss(self._critic, real, fake, self.plan.gamma)
        critic = descend(loss, self._critic_optimiser)
        generator = descend(-self._critic(fake).mean(), self._optimiser)
        move_average(self._average, self.network, self.plan.average)
        return {
            "critic_loss": critic,
            "regression": regression,
            "transport": transport,
            "generator_loss": generator,
        }

    def in_use(self) -> WganShell:
        """The moving average of the generator."""
        network = copy.deepcopy(self._shell)
        network.generator = copy.deepcopy(self._average).cpu()
        return network


# ---- IDMap-MLP: an MLP from random vectors of identity indices to x-vectors.
#
# In training, index s is mapped to the mean x-vector of speaker s, whatever utterance of another
# speaker is the auxiliary input. In use, the auxiliary input is fixed, and indices are new ones.

LOSSES = ("idmap", "wgan_qc")
# Vectors of new indices are shorter than real ones, the shorter the fewer the training speakers
# (40: 0.19 times, 250: 0.35): the network learns few directions of identity vectors, and a new one
# has little of them. Longer than real ones they are only where a network explodes.
NEW_NORM_RATIO = (0.05, NORM_RATIO[1])
# Training vectors and new indices that measure how neutral the auxiliary input is.
N_AUXILIARY = (8, 32)


@dataclass(frozen=True)
class IdentitySettings:
    """identity: size of identity vectors. width: of all hidden layers."""

    identity: rule.Size = 512
    width: rule.Size = 512


@dataclass(frozen=True)
class MlpNetworkSettings(IdentitySettings):
    """centred: x-vectors are relative to the mean of the training speakers, in units of their mean
    deviation, so that only differences of speakers are learned; false: raw (the paper; required by
    training.alpha 1, which leaves the length of the output open)."""

    centred: bool = True


@dataclass(frozen=True)
class TripletSettings(GeneratorLoop):
    """Settings of AdamW, and of a batch: identities times auxiliaries (others' utterances)."""

    identities: rule.Count = 16
    auxiliaries: rule.Count = 16
    learning_rate: rule.Positive = 1e-3
    weight_decay: rule.NotNegative = 1e-5
    gradient_norm: rule.Positive = 5.0


@dataclass(frozen=True)
class MlpTraining(TripletSettings):
    """loss: idmap, Eq. (3) with alpha, or wgan_qc with gamma (an ablation)."""

    loss: Annotated[str, rule.OneOf(*LOSSES)] = "idmap"
    alpha: rule.Share = 0.5
    gamma: rule.Positive = 0.1


@dataclass(frozen=True)
class MlpSettings:
    """Settings of a YAML file such as conf/generators/idmap_mlp.yaml."""

    generator: str
    network: MlpNetworkSettings = field(default_factory=MlpNetworkSettings)
    training: MlpTraining = field(default_factory=MlpTraining)


class Conditioner(nn.Module):
    """Pre-processor and auxiliary processor (Liu et al. 2025, IV.A.2-3; Fig. 3).

    u = FC(ReLU(FC(e))); phi = FC after three of [FC, ReLU, batch normalisation]. `fixed` is the
    auxiliary vector (d,) of use: a training vector drawn at random, kept with the weights.
    """

    fixed: Tensor

    def __init__(self, identity: int, width: int, dimension: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(identity, width), nn.Linear(width, width)
        sizes = (dimension, width, width)
        blocks = [(nn.Linear(n, width), nn.ReLU(), nn.BatchNorm1d(width)) for n in sizes]
        layers = [layer for block in blocks for layer in block]
        self.auxiliary = nn.Sequential(*layers, nn.Linear(width, width))
        self.register_buffer("fixed", torch.zeros(dimension))

    def forward(self, e: Tensor, auxiliary: Tensor) -> Tensor:
        """Identity vectors (n, D) and auxiliary vectors (n, m, d) -> z (n, m, 2 width)."""
        u = self.second(torch.relu(self.first(e)))
        phi = self.auxiliary(auxiliary.flatten(0, 1)).unflatten(0, auxiliary.shape[:2])
        return torch.cat([u[:, None].expand_as(phi), phi], dim=2)


class MlpNetwork(nn.Module):
    """Network y = generator([u; phi]): FC and ReLU, and a last FC to d values.

    An x-vector is `mean` (d,) + `scale` (a number) times the network's input or output.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, settings: MlpNetworkSettings, dimension: int) -> None:
        super().__init__()
        width = settings.width
        self.conditioner = Conditioner(settings.identity, width, dimension)
        self.generator = nn.Sequential(
            nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, dimension)
        )
        self.calibration = Calibration(dimension)
        self.register_buffer("mean", torch.zeros(dimension))
        self.register_buffer("scale", torch.ones(()))

    def forward(self, e: Tensor, auxiliary: Tensor) -> Tensor:
        """Identity vectors (n, D) and m auxiliary vectors (n, m, d) for each -> (n, m, d)."""
        return self.generator(self.conditioner(e, auxiliary))


class FoldedConditioner:
    """Affine layer on z = [u; phi], as a function of identity vectors alone.

    In use phi is constant (batch normalisation has its running statistics), and no activation
    stands between u and the layer: W [u; phi] + b = (W_u P) h + c with h = ReLU(FC(e)), P the
    second layer of the pre-processor. So the layer costs one product of the hidden size.
    """

    def __init__(self, conditioner: Conditioner, layer: nn.Linear) -> None:
        conditioner.eval()
        first, second = conditioner.first, conditioner.second
        with torch.no_grad():
            phi = conditioner.auxiliary(conditioner.fixed[None])[0]
        width = len(phi)
        weight, bias = to_numpy(layer.weight), to_numpy(layer.bias)
        self._first, self._first_bias = single(to_numpy(first.weight)), single(to_numpy(first.bias))
        self._second = single(weight[:, :width] @ to_numpy(second.weight))
        self._second_bias = single(
            weight[:, :width] @ to_numpy(second.bias) + weight[:, width:] @ to_numpy(phi) + bias
        )

    def __call__(self, e: Float32) -> Float32:
        """Outputs of the layer (n, outputs) for (n, D)."""
        hidden = affine(e, self._first, self._first_bias)
        np.maximum(hidden, 0, out=hidden)
        return affine(hidden, self._second, self._second_bias)


def to_numpy(tensor: Tensor) -> Float64:
    """Tensor as float64, to combine weights in."""
    return tensor.detach().cpu().double().numpy()


class MlpModel(IndexModel):
    """IDMap-MLP in use."""

    norm_limits = NEW_NORM_RATIO

    def __init__(self, settings: MlpSettings, network: MlpNetwork, n_seen: int) -> None:
        super().__init__(settings, network, n_seen)
        first, *others = (layer for layer in network.generator if isinstance(layer, nn.Linear))
        self._first = FoldedConditioner(network.conditioner, first)
        parts = [[to_numpy(layer.weight), to_numpy(layer.bias)] for layer in others]
        mean, scale = to_numpy(network.mean), to_numpy(network.scale)
        parts[-1] = [parts[-1][0] * scale, parts[-1][1] * scale + mean]
        self._others = [(single(weight), single(bias)) for weight, bias in parts]

    def block(self, indices: Int64) -> Float32:
        kind = self.given.network
        y = self._first(identity_vectors(indices, kind.identity))
        for weight, bias in self._others:
            np.maximum(y, 0, out=y)
            y = affine(y, weight, bias)
        return y


class TripletSampler:
    """Draw of each step's identities, and utterances of other speakers (Liu et al. 2025, IV.A)."""

    def __init__(self, data: TrainingVectors, settings: TripletSettings, seed: int) -> None:
        self._order = np.argsort(data.labels, kind="stable")
        self._counts = np.bincount(data.labels)
        self._starts = np.cumsum(self._counts) - self._counts
        self._n, self._m = min(settings.identities, len(data.speakers)), settings.auxiliaries
        self._seed = seed

    def draw(self, step: int) -> tuple[Int64, Int64]:
        """Speakers (n,), all different, and utterances (n, m), none of the speaker of its row."""
        rng = make_rng(self._seed, "idmap", "triplets", str(step))
        speakers = rng.choice(len(self._counts), self._n, replace=False)
        n_others = len(self._order) - self._counts[speakers][:, None]
        places = rng.integers(0, n_others, (self._n, self._m))
        jump = places >= self._starts[speakers][:, None]
        places += jump * self._counts[speakers][:, None]
        return speakers, self._order[places]


def mlp_loss(y: Tensor, x: Tensor, alpha: float) -> tuple[Tensor, float, float]:
    """Eq. (3): alpha (1 - cos(x, y)) + (1 - alpha) ||x - y||, mean over the batch.

    y (n, m, d), x (n, 1, d). Also the mean cosine and the mean distance, for the log: with long
    vectors the distance outweighs the cosine.
    """
    cosine = nn.functional.cosine_similarity(x, y, dim=2).mean()
    distance = (x - y).norm(dim=2).mean()
    return (
        alpha * (1 - cosine) + (1 - alpha) * distance,
        float(cosine.detach()),
        float(distance.detach()),
    )


class TripletTrainer(GeneratorTrainer):
    """Common part of the trainings of both networks: settings, data, optimiser.

    A network has a `conditioner`; `settings.network` describes identity vectors,
    `settings.training` the training.
    """

    plan: TripletSettings

    def prepare(self) -> None:
        data, kind = self.data, self.given.network
        torch.manual_seed(derive_seed(self.seed, self.given.generator, "weights") % 2**63)
        self.network = self.network_class(kind, data.dimension)
        vectors, means = self.scaled()
        place = make_rng(self.seed, "idmap", "auxiliary").integers(len(vectors))
        self.network.conditioner.fixed.copy_(torch.from_numpy(vectors[place]))
        self.network.to(self.device)
        self.optimiser = self.make_optimiser(self.network)
        self.sampler = TripletSampler(data, self.plan, self.seed)
        places = np.arange(len(data.speakers), dtype=np.int64)
        identities = identity_vectors(places, kind.identity)
        self.vectors, self.means, self._identities = (
            torch.from_numpy(part).to(self.device) for part in (vectors, means, identities)
        )

    def scaled(self) -> tuple[Float32, Float32]:
        """Scale x-vectors (N, d) and speakers' means (S, d) for the network."""
        return self.data.vectors, self.data.means

    def make_optimiser(self, network: nn.Module) -> torch.optim.Optimizer:
        """Optimiser AdamW with the rates of the settings."""
        return torch.optim.AdamW(
            network.parameters(), self.plan.learning_rate, weight_decay=self.plan.weight_decay
        )

    def batch(self, step: int) -> tuple[Int64, Int64]:
        """See Trainer: draws speakers and utterances of others."""
        return self.sampler.draw(step)

    def in_use(self) -> Any:
        """Copy of the network as it would be used now, on the CPU, not calibrated."""
        return copy.deepcopy(self.network).cpu()

    def more_figures(self) -> dict[str, float]:
        """See GeneratorTrainer: effect of the auxiliary input (Liu et al. 2025, Table IV).

        auxiliary_share: their variance over auxiliary inputs, relative to that over indices; 0
        where the input is neutral. auxiliary_cosine: mean cosine of the vectors of an index.
        """
        n_inputs, n_indices = N_AUXILIARY
        rng = make_rng(self.seed, "idmap", "auxiliary", "neutral")
        network, made = self.in_use(), []
        indices = np.arange(n_indices, dtype=np.int64) + len(self.data.speakers)
        for place in rng.integers(len(self.vectors), size=n_inputs):
            network.conditioner.fixed.copy_(self.vectors[int(place)])
            made.append(self._model_of(network).vectors(indices).astype(np.float64))
        y = np.stack(made)  # (inputs, indices, d)
        squares = np.sum(units(y).sum(axis=0) ** 2, axis=1)
        over_indices = max(float(y.var(axis=1).sum(axis=1).mean()), 1e-30)
        return {
            "auxiliary_share": float(y.var(axis=0).sum(axis=1).mean()) / over_indices,
            "auxiliary_cosine": float(np.mean((squares - n_inputs) / (n_inputs * (n_inputs - 1)))),
        }


class MlpTrainer(TripletTrainer):
    """Training of IDMap-MLP; see trained.Trainer."""

    kind, network_class, model_class = MlpSettings, MlpNetwork, MlpModel

    critic: nn.Module | None = None

    def prepare(self) -> None:
        super().prepare()
        if self.given.training.loss == "wgan_qc":
            self.critic = make_networks(1, self.data.dimension)[1].to(self.device)
            self.critic_optimiser = self.make_optimiser(self.critic)
            self.saved = (*self.saved, "critic", "critic_optimiser")

    def scaled(self) -> tuple[Float32, Float32]:
        data = self.data
        if not self.given.network.centred:
            return super().scaled()
        mean = data.means.mean(axis=0)
        scale = np.sqrt(np.mean((data.means - mean) ** 2)) or np.float32(1)
        self.network.mean.copy_(torch.from_numpy(mean))
        self.network.scale.fill_(float(scale))
        return (data.vectors - mean) / scale, (data.means - mean) / scale

    def update(self, step: int, batch: tuple[Int64, Int64]) -> dict[str, float]:
        self.network.train()
        speakers, utterances = batch
        x = self.means[speakers][:, None]
        y = self.network(self._identities[speakers], self.vectors[utterances])
        loss, cosine, distance = mlp_loss(y, x, self.given.training.alpha)
        figures = {"cosine": cosine, "distance": distance}
        if self.critic is not None:  # -mean D(y) of WGAN-QC's critic D; nothing ties y to its x
            real, made = x.expand_as(y).flatten(0, 1), y.flatten(0, 1)
            learned = critic_loss(self.critic, real, made, self.given.training.gamma)[0]
            parameters, limit = self.critic.parameters(), self.plan.gradient_norm
            critic_value = descend(learned, self.critic_optimiser, parameters, limit)
            loss, figures = -self.critic(made).mean(), {"critic_loss": critic_value, **figures}
        found = descend(loss, self.optimiser, self.network.parameters(), self.plan.gradient_norm)
        return figures if self.critic is not None else {"loss": found, **figures}
