# SPDX-License-Identifier: Apache-2.0
"""Features of the speaker encoders: log mel energies or cepstra, mean subtracted, on the fly.

With a hub model in front of an encoder (steps/speaker/front.py), they are the samples.
"""

from typing import Any

import torch
from speechbrain.lobes.features import MFCC, Fbank
from torch import Tensor, nn

from steps.audio import SAMPLE_RATE
from steps.speaker.config import FeatureConfig

SLIDING_FRAMES = 300


class Features(nn.Module):
    """Features (B, T, D), T = 1 + n // 160, of samples (B, n) at 16 kHz; of kind hub the samples.

    All signals of a batch have the same length. Subtracting the mean of a log spectrum removes the
    level and the constant part of the channel.
    """

    def __init__(self, config: FeatureConfig) -> None:
        super().__init__()
        self.mean = config.mean
        self.passes = config.kind == "hub"
        if self.passes:
            return
        self.cepstra = config.kind != "fbank"
        limits = {"f_min": config.low_hz, "f_max": config.high_hz, "sample_rate": SAMPLE_RATE}
        self.compute: Any  # its parts are called
        if self.cepstra:
            self.compute = MFCC(
                n_mels=config.bins, n_mfcc=config.bins, deltas=False, context=False, **limits
            )
        else:
            self.compute = Fbank(n_mels=config.bins, **limits)

    @torch.no_grad()
    def forward(self, samples: Tensor) -> Tensor:
        """Features float32 of samples float32."""
        if self.passes:
            return samples
        spectrum = self.compute.compute_STFT(samples)
        power = spectrum[..., 0].square() + spectrum[..., 1].square()  # SpeechBrain's sum is slower
        features: Tensor = self.compute.compute_fbanks(power)
        if self.cepstra:
            features = self.compute.compute_dct(features)
        return subtract_mean(features, self.mean)


def subtract_mean(features: Tensor, mean: str) -> Tensor:
    """Features (B, T, D) without their mean over a sentence, a sliding one, or none."""
    if mean == "sentence":
        return features - features.mean(dim=1, keepdim=True)
    return features - sliding_mean(features) if mean == "sliding" else features


def sliding_mean(features: Tensor, window: int = SLIDING_FRAMES) -> Tensor:
    """Mean over the `window` frames around each frame, as Kaldi's apply-cmvn-sliding --center.

    At the ends the window is moved inwards; a signal shorter than it is averaged as a whole.
    features: (B, T, D) -> (B, T, D).
    """
    n_frames = features.shape[1]
    window = min(window, n_frames)
    sums = torch.cumsum(features.double(), dim=1)
    sums = torch.cat([torch.zeros_like(sums[:, :1]), sums], dim=1)
    first = (torch.arange(n_frames, device=features.device) - window // 2).clamp(
        0, n_frames - window
    )
    return ((sums[:, first + window] - sums[:, first]) / window).to(features.dtype)
