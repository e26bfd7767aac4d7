# SPDX-License-Identifier: Apache-2.0
"""Training of a network that makes signals, against discriminators: HiFi-GAN (Kong et al. 2020)."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from steps.learning.loop import descend
from steps.synthesis.discriminators import (
    Discriminators,
    adversarial_loss,
    discriminator_loss,
    feature_loss,
)


class Adversarial:
    """Adversarial part of a trainer, in addition to what `loop.Trainer` asks for.

    plan: has feature_weight and spectral_weight. spectral: distance between signals (B, n) and the
    targets.
    """

    plan: Any
    network: Any
    optimiser: torch.optim.Optimizer
    discriminators: Discriminators
    opponent: torch.optim.Optimizer
    gradient_norm = math.inf  # gradients of the network that are longer are clipped to it
    spectral: Callable[[Tensor, Tensor], Tensor]
    saved: tuple[str, ...] = ("network", "discriminators", "optimiser", "opponent")

    def play(self, made: Tensor, right: Tensor, more: Tensor | float = 0.0) -> dict[str, float]:
        """Take one step of the discriminators, then one of the network that made the signals (B,
        n).

        more: further loss of the network. The returned "loss" is the spectral distance.
        """
        guess = discriminator_loss(self.discriminators(right), self.discriminators(made.detach()))
        discriminators = descend(guess, self.opponent)
        whole, distance = self.generator_loss(made, right)
        generator = descend(
            whole + more, self.optimiser, self.network.parameters(), self.gradient_norm
        )
        return {
            "loss": float(distance.detach()),
            "generator_loss": generator,
            "discriminator_loss": discriminators,
        }

    def generator_loss(self, made: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        """Whole loss of signals (B, n), and their spectral distance without its weight."""
        with torch.no_grad():
            of_speech = self.discriminators(right)
        of_made = self.discriminators(made)
        distance = self.spectral(made, right)
        loss = (
            adversarial_loss(of_made)
            + self.plan.feature_weight * feature_loss(of_speech, of_made)
            + self.plan.spectral_weight * distance
        )
        return loss, distance
