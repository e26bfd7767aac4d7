# SPDX-License-Identifier: Apache-2.0
"""Network of the CTC recogniser, of SpeechBrain's layers."""

import torch
from speechbrain.nnet.CNN import Conv1d
from speechbrain.nnet.linear import Linear
from speechbrain.nnet.normalization import LayerNorm
from speechbrain.nnet.RNN import LSTM
from torch import Tensor, nn
from torch.nn import functional

from steps.asr.ctc_config import NetworkConfig

BLANK_BIAS = 5.0  # of the blank's score before training


class _Convolution(nn.Module):
    """Block (B, T, C) -> (B, T / stride, D): convolution, normalised, rectified, dropped out."""

    def __init__(self, n_in: int, config: NetworkConfig, stride: int, dilation: int) -> None:
        super().__init__()
        size = config.channels
        # Zeros before and after, not a mirror image: results must not depend on padding.
        self.reach = dilation * (config.kernel - 1) // 2
        self.convolve = Conv1d(
            size, config.kernel, in_channels=n_in, stride=stride, dilation=dilation,
            padding="valid",
        )  # fmt: skip
        self.norm = LayerNorm(size)
        self.drop = nn.Dropout(config.dropout)

    def forward(self, values: Tensor) -> Tensor:
        padded = functional.pad(values, (0, 0, self.reach, self.reach))
        found: Tensor = self.drop(functional.leaky_relu(self.norm(self.convolve(padded))))
        return found


class CtcNetwork(nn.Module):
    """Log probabilities (B, T', tokens) of features (B, T, D), zero after each signal's end.

    T' = `frames(T)`. A signal's result does not depend on its batch, up to rounding.
    """

    def __init__(self, config: NetworkConfig, n_features: int, n_tokens: int) -> None:
        super().__init__()
        self.stride = config.stride
        self.first = _Convolution(n_features, config, config.stride, 1)
        self.more = nn.ModuleList(
            _Convolution(config.channels, config, 1, dilation) for dilation in config.dilations
        )
        self.recurrent: nn.Module | None = None
        size = config.channels
        if config.lstm:
            self.recurrent = LSTM(config.lstm, input_size=size, bidirectional=True)
            size = 2 * config.lstm
        self.drop = nn.Dropout(config.dropout)
        self.output = Linear(n_tokens, input_size=size)
        # All networks first learn that most frames are blank, and may lose the rest over it.
        nn.init.constant_(self.output.w.bias[0], BLANK_BIAS)

    def frames(self, n_frames: Tensor) -> Tensor:
        """Number of output frames for so many input frames."""
        return (n_frames - 1) // self.stride + 1

    def forward(self, features: Tensor, n_frames: Tensor) -> Tensor:
        """n_frames: (B,) of each signal, the longest T."""
        left = self.frames(n_frames)
        inside = torch.arange(int(left.max()), device=features.device)[None] < left[:, None]
        values = self.first(features) * inside[..., None]
        for layer in self.more:
            values = (values + layer(values)) * inside[..., None]
        if self.recurrent is not None:
            # SpeechBrain rounds these shares of the longest down: add half a frame, or one is lost.
            values, _ = self.recurrent(values, lengths=(left + 0.5) / left.max())
        found: Tensor = self.output(self.drop(values)).log_softmax(dim=-1)
        return found
