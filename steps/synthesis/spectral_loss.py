# SPDX-License-Identifier: Apache-2.0
"""Rough perceptual distance of two signals as a loss: spectra of several resolutions.

Source: multi-resolution STFT loss (Yamamoto et al. 2020: spectral convergence and log magnitudes)
and the L1 distance of log-mel spectra. Phase does not count.
"""

import torch
import torchaudio.functional
from torch import Tensor, nn

from steps.audio import SAMPLE_RATE

RESOLUTIONS = ((512, 160), (1024, 320), (2048, 640))  # size of FFT and window, hop; in samples
_MEL_FFT, _MEL_HOP, _MEL_BINS = 1024, 320, 80
_FLOOR = 1e-6  # of power; speech has about 0.05 RMS
POWER_RESOLUTIONS = ((80, 320, 512), (40, 80, 128), (640, 1920, 2048))  # hop, window, FFT
_POWER_FLOOR = 1e-5
_MEL_FLOOR = 1e-4  # of magnitude


def magnitudes(signals: Tensor, n_fft: int, hop: int) -> Tensor:
    """STFT magnitudes (B, n_fft // 2 + 1, 1 + n // hop) of signals (B, n), never 0; Hann window."""
    window = torch.hann_window(n_fft, dtype=signals.dtype, device=signals.device)
    spectrum = torch.stft(signals, n_fft, hop, window=window, return_complex=True)
    return torch.sqrt(spectrum.real.square() + spectrum.imag.square() + _FLOOR)


class SpectralLoss(nn.Module):
    """Distance between signals (B, n) and the targets; n of at least 2048 samples.

    mel_weight: weight of the log-mel part against the mean over the resolutions.
    """

    filters: Tensor

    def __init__(self, mel_weight: float = 1.0) -> None:
        super().__init__()
        self.mel_weight = mel_weight
        filters = torchaudio.functional.melscale_fbanks(
            _MEL_FFT // 2 + 1, 0.0, SAMPLE_RATE / 2, _MEL_BINS, SAMPLE_RATE
        )
        self.register_buffer("filters", filters, persistent=False)

    def forward(self, signals: Tensor, right: Tensor) -> Tensor:
        """Distance as a number."""
        total = signals.new_zeros(())
        for n_fft, hop in RESOLUTIONS:
            found, wanted = magnitudes(signals, n_fft, hop), magnitudes(right, n_fft, hop)
            convergence = torch.linalg.norm(wanted - found) / torch.linalg.norm(wanted)
            log_distance = (found.log() - wanted.log()).abs().mean()
            total = total + (convergence + log_distance) / len(RESOLUTIONS)
            if (n_fft, hop) == (_MEL_FFT, _MEL_HOP):
                total = total + self.mel_weight * self._distance(found, wanted)
        return total

    def log_mel_distance(self, signals: Tensor, right: Tensor) -> Tensor:
        """Mean |difference| of log mel magnitudes, a number in nepers."""
        found, wanted = (magnitudes(x, _MEL_FFT, _MEL_HOP) for x in (signals, right))
        return self._distance(found, wanted)

    def _distance(self, found: Tensor, wanted: Tensor) -> Tensor:
        """Mean |difference| of log mel values, from given magnitudes."""
        return (self._log_mel(found) - self._log_mel(wanted)).abs().mean()

    def _log_mel(self, spectrum: Tensor) -> Tensor:
        mel: Tensor = (spectrum.transpose(1, 2) @ self.filters).clamp_min(_MEL_FLOOR).log()
        return mel


class LogPowerLoss(nn.Module):
    """L1 distance of log power spectra, a sum over three resolutions; the loss of B1.b.

    Signals (B, n) are continued by zeros.
    """

    def forward(self, signals: Tensor, right: Tensor) -> Tensor:
        """Distance as a number, in nepers of power."""
        distances = [
            (log_power(signals, *sizes) - log_power(right, *sizes)).abs().mean()
            for sizes in POWER_RESOLUTIONS
        ]
        return torch.stack(distances).sum()


def log_power(signals: Tensor, hop: int, length: int, n_fft: int) -> Tensor:
    """(B, n) -> log(|X|^2 + 1e-5), (B, n_fft // 2 + 1, 1 + n // hop); Hann windows of `length`."""
    window = torch.hann_window(length, dtype=signals.dtype, device=signals.device)
    spectrum = torch.stft(
        signals, n_fft, hop, length, window, pad_mode="constant", return_complex=True
    )
    return (spectrum.real.square() + spectrum.imag.square() + _POWER_FLOOR).log()
