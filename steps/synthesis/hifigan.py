# SPDX-License-Identifier: Apache-2.0
"""Waveform from a recogniser's content, F0 and an x-vector by HiFi-GAN.

Source: the generator V1 of HiFi-GAN (Kong et al. 2020), written anew; its frames are those of
`bn.ContentNetwork`, each with the x-vector. So have Champion et al. 2021 and Liu et al. 2025.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

from steps.synthesis.bn import BnSynthesiser, ContentNetwork, Source
from steps.synthesis.hifigan_config import HifiganConfig, HifiganNetwork
from steps.synthesis.world import HOP
from utils.arrays import Float64

BLOCK = 200  # frames rendered at a time
_SLOPE = 0.1  # of the leaky ReLU
_ENDS = 7  # samples of the first and the last convolution


class ResidualBlock(nn.Module):
    """Residual block on (B, C, n): for each dilation a convolution with it and one without."""

    def __init__(self, channels: int, kernel: int, dilations: Sequence[int]) -> None:
        super().__init__()
        self.dilated, self.plain = (
            nn.ModuleList(
                weight_norm(nn.Conv1d(channels, channels, kernel, dilation=d, padding="same"))
                for d in of
            )
            for of in (dilations, [1] * len(dilations))
        )

    def forward(self, x: Tensor) -> Tensor:
        """See the class."""
        for dilated, plain in zip(self.dilated, self.plain, strict=True):
            hidden = dilated(functional.leaky_relu(x, _SLOPE))
            x = x + plain(functional.leaky_relu(hidden, _SLOPE))
        return x


class Stage(nn.Module):
    """Stage (B, C, T) -> (B, C / 2, rate T): an upsampling, and the mean of residual blocks."""

    def __init__(self, channels: int, rate: int, network: HifiganNetwork) -> None:
        super().__init__()
        half = channels // 2
        self.upsample = weight_norm(
            nn.ConvTranspose1d(
                channels, half, 2 * rate, rate, padding=(rate + 1) // 2, output_padding=rate % 2
            )
        )
        self.blocks = nn.ModuleList(
            ResidualBlock(half, kernel, network.dilations) for kernel in network.kernels
        )

    def forward(self, x: Tensor) -> Tensor:
        """See the class."""
        x = self.upsample(functional.leaky_relu(x, _SLOPE))
        return torch.stack([block(x) for block in self.blocks]).mean(dim=0)


class Hifigan(ContentNetwork):
    """Network from content, F0, energy and x-vector to signals of 160 samples a frame."""

    def __init__(self, config: HifiganConfig, n_content: int, n_xvector: int) -> None:
        super().__init__(config, n_content, n_xvector)
        self.settings = network = config.network
        width = network.channels
        self.speaker = nn.Linear(n_xvector, network.condition)
        n_in = self.n_inputs + network.condition
        self.first = weight_norm(nn.Conv1d(n_in, width, _ENDS, padding="same"))
        self.stages = nn.ModuleList()
        for rate in network.rates:
            self.stages.append(Stage(width, rate, network))
            width //= 2
        self.last = weight_norm(nn.Conv1d(width, 1, _ENDS, padding="same"))

    @property
    def reach(self) -> int:
        """Frames before and after a frame on which its samples depend, or a few more."""
        kernel, frames, rate = max(self.settings.kernels) // 2, _ENDS // 2 + 2.0, 1
        for by in self.settings.rates:
            rate *= by
            frames += 2 / rate * by + kernel * sum(d + 1 for d in self.settings.dilations) / rate
        return math.ceil(frames)

    def forward(self, inputs: Tensor, speaker: Tensor) -> Tensor:
        """Signals (B, 160 T) within -1 ... 1, from inputs (B, n_content + 4, T) of `inputs_of` and
        speaker (B, n_xvector) of length 1."""
        who = torch.tanh(4 * self.speaker(speaker))
        everywhere = who[:, :, None].expand(-1, -1, inputs.shape[2])
        x = self.first(torch.cat((self.unify(inputs), everywhere), dim=1))
        for stage in self.stages:
            x = stage(x)
        signals: Tensor = torch.tanh(self.last(functional.leaky_relu(x, _SLOPE)))[:, 0]
        return signals


class HifiganSynthesiser(BnSynthesiser):
    """Synthesiser of a trained HiFi-GAN; see `base.Synthesiser`. Nothing in it is random."""

    config = HifiganConfig
    network_kind = Hifigan
    keeps = ("energy",)

    @torch.no_grad()
    def _say(
        self,
        inputs: Tensor,
        unit: Tensor,
        contour: Float64,  # noqa: ARG002
        source: Source,
        n_samples: int,
    ) -> Float64:
        """See BnSynthesiser. Block by block: the layers of a long signal would fill the memory."""
        n_frames, reach = inputs.shape[2], self.network.reach
        out = np.zeros(n_frames * HOP)
        for start in range(0, n_frames, BLOCK):
            stop = min(start + BLOCK, n_frames)
            seen = slice(max(start - reach, 0), min(stop + reach, n_frames))
            made = self.network(inputs[:, :, seen], unit)[0].numpy()
            own = slice((start - seen.start) * HOP, (stop - seen.start) * HOP)
            out[start * HOP : stop * HOP] = made[own]
        gate = np.interp(np.arange(n_samples) / HOP, np.arange(n_frames), source.sounds)
        return out[:n_samples] * gate
