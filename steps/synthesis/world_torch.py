# SPDX-License-Identifier: Apache-2.0
"""Synthesis of WORLD in PyTorch, so that a loss can have a gradient to the frames.

Pulses and noise are filtered by the envelope at minimum phase, in frames of 20 ms every 5 ms. It
serves training, and `world.synthesise`, which places its pulses more exactly, serves listening.
"""

import numpy as np
import pyworld
import torch
from torch import Tensor, nn
from torch.nn import functional

from steps.audio import SAMPLE_RATE
from steps.synthesis.world import CODE_DIM, FINE, HOP, spectrum
from utils.arrays import Float64

_SHIFT = HOP // FINE  # samples
_WIDTH, _FFT = 4 * _SHIFT, 1024  # samples
_LOWEST_GAIN = 1e-6  # of the pulses' power; a root has no gradient at 0


class WorldVoice(nn.Module):
    """Signals from frames, with a gradient. Buffers hold how WORLD decodes its codes."""

    codes: Tensor
    flat: Tensor
    clear: Tensor
    slope: Tensor
    causal: Tensor
    window: Tensor

    def __init__(self) -> None:
        super().__init__()
        # Log power is linear in the codes, the aperiodicity in dB in its one band.
        flat = np.log(spectrum(np.zeros((1, CODE_DIM))))
        clear, full = (_bands(value) for value in (0.0, -1.0))
        causal = np.zeros(_FFT)
        causal[0] = causal[_FFT // 2] = 1.0
        causal[1 : _FFT // 2] = 2.0
        for name, values in (
            ("codes", np.log(spectrum(np.eye(CODE_DIM))) - flat),
            ("flat", flat[0]),
            ("clear", clear),
            ("slope", clear - full),
            ("causal", causal),
            ("window", np.hanning(_WIDTH + 1)[:-1]),
        ):
            self.register_buffer(name, torch.from_numpy(values.astype(np.float32)))

    def excite(self, signals: Tensor) -> Tensor:
        """Spectra (B, T, 513) of the frames in excitations (B, 80 T)."""
        padded = functional.pad(signals, (_WIDTH // 2, _WIDTH // 2))
        frames = padded.unfold(1, _WIDTH, _SHIFT)[:, : signals.shape[1] // _SHIFT]
        spectra: Tensor = torch.fft.rfft(frames * self.window, _FFT)
        return spectra

    def forward(
        self, envelope: Tensor, aperiodicity: Tensor, voiced: Tensor, pulses: Tensor, noise: Tensor
    ) -> Tensor:
        """Signals (B, 80 T) from codes (B, T, 40), aperiodicity in dB and voicing (B, T), and
        spectra of `excite` (B, T, 513)."""
        cepstra = torch.fft.irfft((envelope @ self.codes + self.flat) / 2, _FFT) * self.causal
        response = torch.exp(torch.fft.rfft(cepstra, _FFT))
        decibels = self.clear + self.slope * aperiodicity[..., None]
        share = torch.where(voiced[..., None] > 0, 10 ** (decibels / 20), decibels.new_ones(()))
        tone = torch.sqrt((1 - share.square()).clamp(min=_LOWEST_GAIN))
        frames = torch.fft.irfft((pulses * tone + noise * share) * response, _FFT)
        n = frames.shape[1] * _SHIFT
        length = (frames.shape[1] - 1) * _SHIFT + _FFT
        joined = functional.fold(frames.transpose(1, 2), (1, length), (1, _FFT), stride=(1, _SHIFT))
        return joined[:, 0, 0, _WIDTH // 2 : _WIDTH // 2 + n] * (2 * _SHIFT / _WIDTH)


def _bands(value: float) -> Float64:
    """Aperiodicity (513,) in dB of a coded value."""
    coded = np.array([[value]])
    decoded: Float64 = pyworld.decode_aperiodicity(coded, SAMPLE_RATE, _FFT)[0]
    return 20 * np.log10(decoded)
