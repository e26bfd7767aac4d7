"""IDMap-MLP (Liu et al. 2025, IV.A-B): MLP from random vectors of identity indices to x-vectors.

In training, index s is mapped to the mean x-vector of speaker s, whatever utterance of another
speaker is the auxiliary input. In use, the auxiliary input is fixed, and indices are new ones.
"""

import copy
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from steps.generators.base import units
from steps.generators.identity import DISTRIBUTIONS, identity_vectors
from steps.generators.training import (
    NORM_RATIO,
    Calibration,
    GeneratorLoop,
    GeneratorTrainer,
    IndexModel,
    TrainingVectors,
    affine,
    single,
)
from steps.generators.wgan import critic_loss, make_networks
from steps.training.loop import descend
from utils.arrays import Float32, Float64, Int64
from utils.seeds import derive_seed, make_rng
from utils.settings import (
    LARGEST,
    Count,
    NotNegative,
    Number,
    OneOf,
    Positive,
    Share,
    Size,
)

LOSSES = ("idmap", "wgan_qc")
# Vectors of new indices are shorter than real ones, the shorter the fewer the training speakers
# (40: 0.19 times, 250: 0.35): the network learns few directions of identity vectors, and a new one
# has little of them. Longer than real ones they are only where a network explodes.
NEW_NORM_RATIO = (0.05, NORM_RATIO[1])
N_AUXILIARY = (
    8,
    32,
)  # training vectors and new indices that measure how neutral the auxiliary input is


@dataclass(frozen=True)
class IdentitySettings:
    """distribution: of identity vectors, gaussian or uniform. identity: their size. width: of all
    hidden layers."""

    distribution: Annotated[str, OneOf(*DISTRIBUTIONS)] = "gaussian"
    identity: Size = 512
    width: Size = 512


@dataclass(frozen=True)
class MlpNetworkSettings(IdentitySettings):
    """generator_layers: 2 is the paper's 1024-512-512, 3 what its text describes. centred:
    x-vectors are relative to the mean of the training speakers, in units of their mean deviation,
    so that only differences of speakers are learned; false: raw (the paper; required by
    training.alpha 1, which leaves the length of the output open)."""

    generator_layers: Annotated[int, Number(least=2, most=LARGEST)] = 2
    centred: bool = True


@dataclass(frozen=True)
class TripletSettings(GeneratorLoop):
    """Batch: identities x auxiliaries (utterances of others); and the optimiser, AdamW."""

    identities: Count = 16
    auxiliaries: Count = 16
    learning_rate: Positive = 1e-3
    weight_decay: NotNegative = 1e-5
    gradient_norm: Positive = 5.0


@dataclass(frozen=True)
class MlpTraining(TripletSettings):
    """loss: idmap, Eq. (3) with alpha, or wgan_qc with gamma (an ablation)."""

    loss: Annotated[str, OneOf(*LOSSES)] = "idmap"
    alpha: Share = 0.5
    gamma: Positive = 0.1


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
        layers: list[nn.Module] = [nn.Linear(2 * width, width), nn.ReLU()]
        for _ in range(settings.generator_layers - 2):
            layers += [nn.Linear(width, width), nn.ReLU()]
        self.generator = nn.Sequential(*layers, nn.Linear(width, dimension))
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
        y = self._first(identity_vectors(indices, kind.identity, kind.distribution))
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

    generator: its name. A network has a `conditioner`; `settings.network` describes identity
    vectors, `settings.training` the training.
    """

    generator: ClassVar[str]
    plan: TripletSettings

    def __init__(self, settings: Any, data: TrainingVectors, *, seed: int, device: str) -> None:
        super().__init__(settings, data, seed=seed, device=device)
        torch.manual_seed(derive_seed(seed, self.generator, "weights") % 2**63)  # torch draws them
        network = self.network_class(settings.network, data.dimension)
        vectors, means = self.prepare(network, data)
        place = make_rng(seed, "idmap", "auxiliary").integers(len(vectors))
        network.conditioner.fixed.copy_(torch.from_numpy(vectors[place]))
        self.network: Any = network.to(device)
        self.optimiser = self.make_optimiser(network)
        self.sampler = TripletSampler(data, settings.training, seed)
        self.vectors = torch.from_numpy(vectors).to(device)
        self.means = torch.from_numpy(means).to(device)
        kind, places = settings.network, np.arange(len(data.speakers), dtype=np.int64)
        identities = identity_vectors(places, kind.identity, kind.distribution)
        self._identities = torch.from_numpy(identities).to(device)

    def prepare(self, network: Any, data: TrainingVectors) -> tuple[Float32, Float32]:
        """Scale x-vectors (N, d) and speakers' means (S, d) for the network."""
        return data.vectors, data.means

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

    generator = "idmap_mlp"
    kind, network_class, model_class = MlpSettings, MlpNetwork, MlpModel

    def __init__(
        self, settings: MlpSettings, data: TrainingVectors, *, seed: int, device: str
    ) -> None:
        super().__init__(settings, data, seed=seed, device=device)
        self.critic: nn.Module | None = None
        if settings.training.loss == "wgan_qc":
            self.critic = make_networks("mlp", 1, data.dimension)[1].to(device)
            self.critic_optimiser = self.make_optimiser(self.critic)
            self.saved = (*self.saved, "critic", "critic_optimiser")

    def prepare(self, network: MlpNetwork, data: TrainingVectors) -> tuple[Float32, Float32]:
        if not self.given.network.centred:
            return data.vectors, data.means
        mean = data.means.mean(axis=0)
        scale = np.sqrt(np.mean((data.means - mean) ** 2)) or np.float32(1)
        network.mean.copy_(torch.from_numpy(mean))
        network.scale.fill_(float(scale))
        return (data.vectors - mean) / scale, (data.means - mean) / scale

    def update(self, step: int, batch: tuple[Int64, Int64]) -> dict[str, float]:
        self.network.train()
        speakers, utterances = batch
        x = self.means[speakers][:, None]
        y = self.network(self._identities[speakers], self.vectors[utterances])
        loss, cosine, distance = mlp_loss(y, x, self.given.training.alpha)
        figures = {"cosine": cosine, "distance": distance}
        if self.critic is not None:
            loss, critic_value = self._adversarial_loss(self.critic, x, y)
            figures = {"critic_loss": critic_value, **figures}
        found = descend(loss, self.optimiser, self.network.parameters(), self.plan.gradient_norm)
        return figures if self.critic is not None else {"loss": found, **figures}

    def _adversarial_loss(self, critic: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, float]:
        """Loss -mean D(y) after a step of WGAN-QC's critic D on (x, y); nothing ties y to its x."""
        real = x.expand_as(y).flatten(0, 1)
        learned = critic_loss(critic, real, y.flatten(0, 1), self.given.training.gamma)
        found = descend(
            learned.total, self.critic_optimiser, critic.parameters(), self.plan.gradient_norm
        )
        return -critic(y.flatten(0, 1)).mean(), found
