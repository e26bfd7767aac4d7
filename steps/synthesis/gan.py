"""Losses on signals: spectra of several resolutions, and discriminators as in HiFi-GAN."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torchaudio.functional
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm, weight_norm

from steps.audio import SAMPLE_RATE
from steps.synthesis.b1b import DiscriminatorConfig
from steps.training.loop import descend

# ---- Rough perceptual distance of two signals as a loss: spectra of several resolutions.
#
# Source: multi-resolution STFT loss (Yamamoto et al. 2020: spectral convergence and log magnitudes)
# and the L1 distance of log-mel spectra. Phase does not count.

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


# ---- Discriminators of real and synthetic speech, and their losses.
#
# Source: HiFi-GAN (Kong et al. 2020): multi-period and multi-scale discriminators, least-squares
# adversarial losses (Mao et al. 2017), feature matching.

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


# ---- Training of a network that makes signals, against discriminators: HiFi-GAN (Kong et al.
# 2020).


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
