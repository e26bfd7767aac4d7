# SPDX-License-Identifier: Apache-2.0
"""Networks and losses of WGAN-QC (Liu et al. 2019), for vectors of any size.

`mlp`: generator z-256-256-d, critic d-256-256-1, leaky ReLU 0.2. `resnet8`: the residual networks
for images of 8 x 8 that Meyer et al. (2022) used for speaker vectors, with one more linear layer on
either side: a vector becomes an image of 3 x 8 x 8 and back. Only the generators of `resnet8` have
batch normalisation: in a critic it would tie the value of one vector to the others of its batch.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from steps.generators.optimal_transport import quadratic_cost, solve_duals

ARCHITECTURES = ("mlp", "resnet8")
HIDDEN = 256
SLOPE = 0.2  # of the leaky ReLU
FILTERS, MOST_FILTERS = 8, 16
IMAGE = (3, 8, 8)
RESIDUAL = 0.1  # h + 0.1 F(h)


def make_networks(arch: str, noise: int, size: int) -> tuple[nn.Module, nn.Module]:
    """Generator (n, noise) -> (n, size) and critic (n, size) -> (n,)."""
    if arch == "mlp":
        return _mlp(noise, size), nn.Sequential(_mlp(size, 1), nn.Flatten(0))
    if arch == "resnet8":
        return _ImageGenerator(noise, size), _ImageCritic(size)
    raise ValueError(f"{arch!r} is none of {ARCHITECTURES}")


def _mlp(n_in: int, n_out: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(n_in, HIDDEN),
        nn.LeakyReLU(SLOPE),
        nn.Linear(HIDDEN, HIDDEN),
        nn.LeakyReLU(SLOPE),
        nn.Linear(HIDDEN, n_out),
    )


class _Block(nn.Module):
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


class _ImageGenerator(nn.Module):
    def __init__(self, noise: int, size: int) -> None:
        super().__init__()
        wide = min(2 * 2 * FILTERS, MOST_FILTERS)
        self.layers = nn.Sequential(
            nn.Linear(noise, wide * 16),
            nn.Unflatten(1, (wide, 4, 4)),
            nn.BatchNorm2d(wide),
            nn.LeakyReLU(SLOPE),
            _Block(wide, wide, norm=True),
            nn.Upsample(scale_factor=2),
            _Block(wide, wide, norm=True),
            _Block(wide, FILTERS, norm=True),
            nn.Conv2d(FILTERS, IMAGE[0], 3, padding=1),
            nn.LeakyReLU(SLOPE),
            nn.Flatten(),
            nn.Linear(int(np.prod(IMAGE)), size),
        )

    def forward(self, z: Tensor) -> Tensor:
        """Vectors (n, size) of noise (n, noise)."""
        vectors: Tensor = self.layers(z)
        return vectors


class _ImageCritic(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        wide = min(2 * 2 * FILTERS, MOST_FILTERS)
        self.layers = nn.Sequential(
            nn.Linear(size, int(np.prod(IMAGE))),
            nn.Unflatten(1, IMAGE),
            nn.Conv2d(IMAGE[0], FILTERS, 3, padding=1),
            nn.LeakyReLU(SLOPE),
            _Block(FILTERS, wide, norm=False),
            _Block(wide, wide, norm=False),
            nn.AvgPool2d(2),
            _Block(wide, wide, norm=False),
            nn.Flatten(),
            nn.Linear(wide * 16, 1),
            nn.Flatten(0),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Values (n,) of vectors (n, size)."""
        values: Tensor = self.layers(x)
        return values


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
