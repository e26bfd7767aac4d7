"""Gaussians of a speaker's frames, and settings of a network that mixes new ones from them."""

from dataclasses import dataclass

import numpy as np

from utils.arrays import Float64
from utils.settings import Positive, Size


@dataclass(frozen=True)
class FrameGaussians:
    """N Gaussians with independent dimensions: means (N, d), variances (N, d).

    weights: (N,) above 0, number of frames in each.
    """

    means: Float64
    variances: Float64
    weights: Float64

    def moments(self) -> tuple[Float64, Float64]:
        """Mean (d,) and variance (d,) of the mixture of all: those of the closest Gaussian.

        m = mean_t mu_t, v = mean_t (1/L_t) + var_t(mu_t) per dimension. This Gaussian minimises
        KL(mixture || Gaussian).

        >>> one, two = np.array([[0.0], [2.0]]), np.array([[1.0], [3.0]])
        >>> mean, variance = FrameGaussians(one, two, np.ones(2)).moments()
        >>> float(mean[0]), float(variance[0])
        (1.0, 3.0)
        """
        share = self.weights / self.weights.sum()
        mean = share @ self.means
        variance = share @ (self.variances + (self.means - mean) ** 2)
        return mean, variance

    def draw(self, rng: np.random.Generator, size: int) -> Float64:
        """Samples (size, d) of the mixture."""
        share = self.weights / self.weights.sum()
        which = rng.choice(len(share), size, p=share)
        noise = rng.standard_normal((size, self.means.shape[1]))
        return self.means[which] + np.sqrt(self.variances[which]) * noise


@dataclass(frozen=True)
class MixtureSettings:
    """components: K. noise: values of a z. hidden: units. steps, batch (samples a step), rate."""

    steps: Size = 300
    components: Size = 8
    noise: Size = 64
    hidden: Size = 256
    batch: Size = 64
    learning_rate: Positive = 1e-3
