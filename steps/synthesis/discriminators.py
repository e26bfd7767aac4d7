# SPDX-License-Identifier: Apache-2.0
"""Discriminators of real and synthetic speech, and their losses.

Source: HiFi-GAN (Kong et al. 2020): multi-period and multi-scale discriminators, least-squares
adversarial losses (Mao et al. 2017), feature matching.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm, weight_norm

from steps.synthesis.b1b_config import DiscriminatorConfig

_SLOPE = 0.1  # of the leaky ReLU
_STRIDES = (1, 2, 2, 4, 4, 1, 1)  # of the layers over scales
_KERNELS = (15, 41, 41, 41, 41, 41, 5)
_GROUPS = (1, 4, 16, 16, 16, 16, 1)


@dataclass(frozen=True)
class Verdict:
    """Output of one discriminator for B signals. scores: (B, k), 1 for speech, 0 for synthetic.
    maps: of its layers, the scores last."""

    scores: Tensor
    maps: tuple[Tensor, ...]


class PeriodDiscriminator(nn.Module):
    """Discriminator that sees every `period`-th sample of signals (B, n) as one row."""

    def __init__(self, period: int, channels: Sequence[int]) -> None:
        super().__init__()
        self.period = period
        self.layers = nn.ModuleList()
        n_in = 1
        for place, n_out in enumerate(channels):
            stride = 3 if place < len(channels) - 1 else 1
            layer = nn.Conv2d(n_in, n_out, (5, 1), (stride, 1), padding=(2, 0))
            self.layers.append(weight_norm(layer))
            n_in = n_out
        self.last = weight_norm(nn.Conv2d(n_in, 1, (3, 1), padding=(1, 0)))

    def forward(self, signals: Tensor) -> Verdict:
        """Scores (B, about n / 81)."""
        missing = -signals.shape[1] % self.period
        x = nn.functional.pad(signals[:, None], (0, missing), "reflect")
        x = x.reshape(len(x), 1, -1, self.period)
        return _judge(x, self.layers, self.last)


class ScaleDiscriminator(nn.Module):
    """Discriminator of signals (B, n) by convolutions of stride 64 altogether.

    normalise: the weights, `weight_norm` or `spectral_norm`.
    """

    def __init__(self, channels: Sequence[int], *, spectral: bool) -> None:
        super().__init__()
        normalise = spectral_norm if spectral else weight_norm
        self.layers = nn.ModuleList()
        n_in = 1
        for n_out, kernel, stride, groups in zip(
            channels, _KERNELS, _STRIDES, _GROUPS, strict=True
        ):
            layer = nn.Conv1d(n_in, n_out, kernel, stride, kernel // 2, groups=groups)
            self.layers.append(normalise(layer))
            n_in = n_out
        self.last = normalise(nn.Conv1d(n_in, 1, 3, padding=1))

    def forward(self, signals: Tensor) -> Verdict:
        """Scores (B, about n / 64)."""
        return _judge(signals[:, None], self.layers, self.last)


def _judge(x: Tensor, layers: nn.ModuleList, last: nn.Module) -> Verdict:
    maps = []
    for layer in layers:
        x = nn.functional.leaky_relu(layer(x), _SLOPE)
        maps.append(x)
    x = last(x)
    return Verdict(x.flatten(1), (*maps, x))


class Discriminators(nn.Module):
    """All discriminators: periods first, then scales; each scale has half the rate of the one
    before.

    The first scale has spectral normalisation, the others weight normalisation.
    """

    def __init__(self, config: DiscriminatorConfig) -> None:
        super().__init__()
        self.periods = nn.ModuleList(
            PeriodDiscriminator(period, config.period_channels) for period in config.periods
        )
        self.scales = nn.ModuleList(
            ScaleDiscriminator(config.scale_channels, spectral=place == 0)
            for place in range(config.scales)
        )
        self.halve = nn.AvgPool1d(4, 2, padding=2)

    def forward(self, signals: Tensor) -> list[Verdict]:
        """Verdicts of all discriminators on signals (B, n)."""
        verdicts = [judge(signals) for judge in self.periods]
        for place, judge in enumerate(self.scales):
            if place:
                signals = self.halve(signals[:, None])[:, 0]
            verdicts.append(judge(signals))
        return verdicts


def discriminator_loss(of_speech: list[Verdict], of_made: list[Verdict]) -> Tensor:
    """Least-squares loss of the discriminators (speech 1, synthetic 0), summed over all of them."""
    parts = [
        (1 - speech.scores).square().mean() + made.scores.square().mean()
        for speech, made in zip(of_speech, of_made, strict=True)
    ]
    return torch.stack(parts).sum()


def adversarial_loss(of_made: list[Verdict]) -> Tensor:
    """Least-squares loss of the generator (signals should get 1), summed over discriminators."""
    return torch.stack([(1 - made.scores).square().mean() for made in of_made]).sum()


def feature_loss(of_speech: list[Verdict], of_made: list[Verdict]) -> Tensor:
    """Mean |difference| of the maps of a layer, summed over layers and discriminators."""
    parts = [
        (wanted.detach() - found).abs().mean()
        for speech, made in zip(of_speech, of_made, strict=True)
        for wanted, found in zip(speech.maps, made.maps, strict=True)
    ]
    return torch.stack(parts).sum()
