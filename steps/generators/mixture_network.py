"""Small network for one pseudo-speaker: noise to the Gaussians of their x-vector's distribution.

Ours. The abstract of PSD and Liu et al. 2025 say that a distribution is estimated from those of the
frames by a network trained for each pseudo-speaker, and no more. Here K noise vectors z_k, fixed,
go through two layers to (mu(z_k), log var(z_k)); with free weights they are a mixture of Gaussians.
It is trained by maximum likelihood of samples of the frames.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from steps.generators.gaussians import FrameGaussians, MixtureSettings
from utils.arrays import Float64

LOG_VARIANCE = (-7.0, 3.0)  # of standardised vectors: keeps a component from shrinking to a point


@dataclass(frozen=True)
class Mixture:
    """K Gaussians with independent dimensions: weights (K,), means (K, d), variances (K, d)."""

    weights: Float64
    means: Float64
    variances: Float64

    def draw(self, rng: np.random.Generator, scale: float) -> tuple[Float64, int]:
        """Draw a sample (d,), deviations times `scale`, and the number of its component."""
        which = int(rng.choice(len(self.weights), p=self.weights))
        noise = rng.standard_normal(self.means.shape[1])
        return self.means[which] + scale * np.sqrt(self.variances[which]) * noise, which

    def moments(self) -> tuple[Float64, Float64]:
        """Mean (d,) and variance (d,)."""
        return FrameGaussians(self.means, self.variances, self.weights).moments()


class _Network(nn.Module):
    """z (K, noise) -> means, log variances (K, d) of standardised vectors, log weights (K,)."""

    def __init__(self, settings: MixtureSettings, size: int, rng: np.random.Generator) -> None:
        super().__init__()
        self.inward = nn.Linear(settings.noise, settings.hidden)
        self.outward = nn.Linear(settings.hidden, 2 * size)
        self.logits = nn.Parameter(torch.zeros(settings.components))
        z = rng.standard_normal((settings.components, settings.noise))
        self.register_buffer("z", torch.from_numpy(z).float())
        with torch.no_grad():  # Torch would draw from its global generator
            for layer in (self.inward, self.outward):
                bound = 1.0 / math.sqrt(layer.in_features)
                for part in (layer.weight, layer.bias):
                    part.copy_(torch.from_numpy(rng.uniform(-bound, bound, tuple(part.shape))))

    def forward(self) -> tuple[Tensor, Tensor, Tensor]:
        hidden = functional.relu(self.inward(self.z))
        means, log_variances = self.outward(hidden).chunk(2, dim=1)
        return means, log_variances.clamp(*LOG_VARIANCE), torch.log_softmax(self.logits, dim=0)


def train_mixture(
    frames: FrameGaussians, settings: MixtureSettings, rng: np.random.Generator
) -> Mixture:
    """Mixture after `settings.steps` steps; `rng` draws all: weights, noise and samples."""
    mean, variance = frames.moments()
    deviation = np.sqrt(np.maximum(variance, 1e-12))
    network = _Network(settings, len(mean), rng)
    optimiser = torch.optim.Adam(network.parameters(), settings.learning_rate)
    for _ in range(settings.steps):
        samples = (frames.draw(rng, settings.batch) - mean) / deviation
        loss = -_log_likelihood(network, torch.from_numpy(samples).float()).mean()
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    with torch.no_grad():
        means, log_variances, log_weights = (part.double().numpy() for part in network())
    weights = np.exp(log_weights)
    return Mixture(
        weights / weights.sum(),
        mean + deviation * means,
        np.exp(log_variances) * deviation**2,
    )


def _log_likelihood(network: _Network, samples: Tensor) -> Tensor:
    """Log density (n,) of (n, d), without the constant."""
    means, log_variances, log_weights = network()
    squares = (samples[:, None] - means).square() * torch.exp(-log_variances)
    of_components = -0.5 * (squares + log_variances).sum(dim=2)
    return torch.logsumexp(log_weights + of_components, dim=1)
