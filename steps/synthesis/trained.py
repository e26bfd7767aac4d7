"""Trained synthesisers: their folders, what all do alike, and the small neural source-filter."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from steps.audio import SAMPLE_RATE
from steps.content.units import quantise
from steps.synthesis.base import F0Map, Target, trained_files
from steps.synthesis.content import analyse_content, extract_content
from steps.synthesis.f0 import VOICED_HZ
from steps.synthesis.world import CODE_DIM, HOP
from steps.training.settings import CropSeconds, RampSettings, read_config
from steps.training.weights import fill_network, load_state
from utils import settings as rule
from utils.arrays import Float32, Float64
from utils.cli import UserError, refusing
from utils.seeds import make_rng
from utils.tables import StrPath

# ---- Folders of steps/train_synthesiser.py, and the common part of all synthesisers in them.

FULL_LEVEL = 0.05  # amplitude for the mean log power of speech, in training and after
_LARGEST_PEAK = 0.99


def unit_length(xvectors: npt.NDArray[np.floating]) -> Float32:
    """x-vectors (..., d) scaled to length 1."""
    length = np.linalg.norm(xvectors, axis=-1, keepdims=True)
    return (xvectors / np.maximum(length, 1e-12)).astype(np.float32)


class TrainedSynthesiser(ABC):
    """Synthesiser of a trained network; see `base.Synthesiser`. Open it with `load`.

    settings: their dataclass. trainer: target of its `training.SynthesiserTrainer`. The network has
    `n_xvector`, the dimensions of the x-vectors that it was trained with.
    """

    settings: ClassVar[type[Any]]
    trainer: ClassVar[str]
    on_content = False

    def __init__(self, config: Any, network: Any, where: StrPath = "synthesiser") -> None:
        """where: the folder, for messages."""
        torch.set_num_threads(1)
        self.config, self.network, self.where = config, network.eval(), where

    @classmethod
    def load(cls, folder: StrPath, **options: Any) -> Self:
        """Open a folder of steps/train_synthesiser.py; UserError where it is not one."""
        settings, weights = trained_files(Path(folder))
        config = read_config(cls.settings, settings)
        damaged = f"{weights}: not the weights that synthesiser.yaml describes; train it again"
        with refusing(damaged, Exception):  # torch raises many kinds for a damaged file
            state = load_state(weights)
            network = cls.make(config, state)
            fill_network(network, state, weights)
        return cls(config, network, folder, **options)

    @classmethod
    @abstractmethod
    def make(cls, config: Any, state: dict[str, Tensor]) -> nn.Module:
        """Network of the sizes of saved weights."""

    @abstractmethod
    def convert(self, wave: Float64, target: Target, f0: F0Map) -> Float64:
        """Convert as `base.Synthesiser.convert`."""

    def speaker(self, target: Target) -> Tensor:
        """A target's x-vector of length 1, (1, n_xvector); UserError for another size, or none."""
        wanted = self.network.n_xvector
        if target.xvector.shape != (wanted,):
            raise UserError(
                f"{self.where}: trained with x-vectors of {wanted} dimensions, and the target has "
                f"{target.xvector.size}; use the encoder that it was trained with"
            )
        if not np.linalg.norm(target.xvector) > 0 or not np.isfinite(target.xvector).all():
            raise UserError(f"{self.where}: the target's x-vector is 0 or not finite")
        return torch.from_numpy(unit_length(target.xvector[None]))

    def limited(self, signal: Float64) -> Float64:
        """Signal (n,), softer where a peak would pass 0.99; UserError where it is not finite."""
        peak = float(np.max(np.abs(signal)))
        if not np.isfinite(peak):
            raise UserError(f"{self.where}: the converted signal is not finite")
        return signal * (_LARGEST_PEAK / peak) if peak > _LARGEST_PEAK else signal


def in_blocks(
    gate: npt.NDArray[Any], n_samples: int, block: int, reach: tuple[int, int],
    render: Callable[[slice], Tensor],
) -> Float64:  # fmt: skip
    """Signal (n_samples,) of T frames, made by blocks: the layers of a long one would fill the
    memory.

    gate: (T,) factor of each frame. reach: frames before and after a block that its samples depend
    on. render: makes the signal (1, 160 t) of some frames.
    """
    n_frames = len(gate)
    out = np.zeros(n_frames * HOP)
    for start in range(0, n_frames, block):
        stop = min(start + block, n_frames)
        seen = around(slice(start, stop), *reach, n_frames)
        own = slice((start - seen.start) * HOP, (stop - seen.start) * HOP)
        out[start * HOP : stop * HOP] = render(seen)[0, own].numpy()
    return out[:n_samples] * np.interp(np.arange(n_samples) / HOP, np.arange(n_frames), gate)


def around(own: slice, before: int, after: int, n_frames: int) -> slice:
    """Frames with so many before and after them, within the signal."""
    return slice(max(own.start - before, 0), min(own.stop + after, n_frames))


# ---- Checked settings of the neural source-filter (conf/synthesisers/*.yaml).

Bands = Annotated[int, rule.Number(least=2, most=rule.LARGEST)]
Bend = Annotated[float, rule.Number(least=0, most=0.5)]
Weight = Annotated[float, rule.Number(least=0, most=10)]


@dataclass(frozen=True)
class NsfLayers:
    """Layers. bottleneck: values per frame to which the content is reduced, each of `levels` levels
    (odd). bands: of the filters, over a mel axis."""

    channels: rule.Size = 192
    kernel: rule.OddSize = 5
    dilations: rule.Sizes = (1, 2, 4, 1, 2)
    condition: rule.Size = 64
    bands: Bands = 80
    noise_bands: Bands = 40
    bottleneck: rule.Size = 16
    levels: Annotated[int, rule.Number(least=3, most=rule.LARGEST, odd=True)] = 5
    encoder_channels: rule.Size = 128


@dataclass(frozen=True)
class NsfAugmentation:
    """Augmentation and adversary that keep the network from finding the speaker in the content.

    scale, bend: of the content's frequency axis; see content.draw_warp. xvector_noise: standard
    deviation, in units of the spread over speakers. adversary: weight of a second network that
    looks for the speaker behind the bottleneck, and whose success counts as loss; it grows from 0
    over the first fifth.
    """

    scale: Bend = 0.12
    bend: Bend = 0.06
    xvector_noise: Weight = 0.3
    adversary: Weight = 0.5


@dataclass(frozen=True)
class NsfTraining(RampSettings):
    """Training settings. The best network is the nearest in log mels."""

    valid_every: rule.Count = 500
    crop_seconds: CropSeconds = 2.0
    final_rate: rule.NotNegative = 1e-4


@dataclass(frozen=True)
class NsfConfig:
    """All settings. cepstra: of the content features."""

    synthesiser: Annotated[str, rule.OneOf("nsf")]
    training: NsfTraining
    cepstra: Annotated[int, rule.Number(least=1, most=CODE_DIM - 1)] = 20
    network: NsfLayers = field(default_factory=NsfLayers)
    augmentation: NsfAugmentation = field(default_factory=NsfAugmentation)


# ---- Small neural source-filter: a harmonic source and noise, shaped by filters that a network
# sets.
#
# The network sees content features, F0 and an x-vector, every 10 ms, and gives two spectral
# envelopes: of a pulse train at F0 and of white noise. Both are applied in the short-time spectrum
# as minimum-phase filters, and added. Source: the harmonic-plus-noise neural source-filter (Wang
# and Yamagishi 2019) with differentiable filters in place of sample-rate networks (Engel et al.
# 2020).

BLOCK = 2000  # frames rendered at a time
_N_FFT = 4 * HOP
_N_BINS = _N_FFT // 2 + 1
_F0_CENTRE, _F0_UNIT = 5.0, 0.4  # of log F0 in Hz; 148 Hz


def pulse_train(f0: Float64, n_samples: int, phase: float = 0.0) -> Float64:
    """Band-limited pulses (n_samples,) of F0 (T,) in Hz, RMS 1 where voiced, 0 where not.

    All harmonics up to the Nyquist frequency have equal amplitudes:
    sum_k cos(k p) = sin((K + 1/2) p) / (2 sin(p / 2)) - 1/2. phase: of the first sample, radian.
    """
    voiced = f0 > VOICED_HZ
    if not voiced.any():
        return np.zeros(n_samples)
    places = np.arange(n_samples) / HOP
    frames = np.arange(len(f0))
    pitch = np.interp(places, frames[voiced], f0[voiced])
    angle = np.mod(phase + np.cumsum(2 * np.pi / SAMPLE_RATE * pitch), 2 * np.pi)
    n_harmonics = np.maximum(np.floor(0.49 * SAMPLE_RATE / pitch), 1.0)
    half = np.sin(angle / 2)
    near = np.abs(half) < 1e-6
    train = np.sin((n_harmonics + 0.5) * angle) / np.where(near, 1.0, 2 * half) - 0.5
    train = np.where(near, n_harmonics, train)
    shape: Float64 = np.interp(places, frames, voiced.astype(np.float64))
    return train * np.sqrt(2.0 / n_harmonics) * shape


def filter_basis(n_bands: int) -> npt.NDArray[np.complex64]:
    """Log spectra (n_bands, 321) complex, minimum phase, with log magnitude 1 in a band.

    Bands are triangles over a mel axis that reach to both ends. The phase is the Hilbert transform
    of the log magnitude, by folding its cepstrum.
    """
    top = np.log1p(SAMPLE_RATE / 2 / 700.0)
    place = np.log1p(np.arange(_N_BINS) * SAMPLE_RATE / _N_FFT / 700.0) / top * (n_bands - 1)
    magnitude = np.clip(1.0 - np.abs(place - np.arange(n_bands)[:, None]), 0.0, 1.0)
    cepstrum = np.fft.irfft(magnitude, axis=1)
    cepstrum[:, 1 : _N_FFT // 2] *= 2.0
    cepstrum[:, _N_FFT // 2 + 1 :] = 0.0
    return np.fft.rfft(cepstrum, axis=1).astype(np.complex64)


def apply_filters(source: Tensor, log_spectrum: Tensor, gate: Tensor) -> Tensor:
    """Filter source (B, n) by T = 1 + n / 160 time-varying complex log spectra (B, T, 321).

    Frames of 20 ms under a Hann window every 10 ms, which sum to 1: filters fade into one another.
    gate: (B, T) factor of each frame.
    """
    frames = nn.functional.pad(source, (HOP, HOP)).unfold(1, 2 * HOP, HOP)
    window = torch.hann_window(2 * HOP, dtype=source.dtype, device=source.device)
    spectrum = torch.fft.rfft(frames * window * gate[..., None], n=_N_FFT)
    shaped = spectrum * torch.polar(log_spectrum.real.exp(), log_spectrum.imag)
    parts = torch.fft.irfft(shaped, n=_N_FFT).unflatten(2, (4, HOP))
    n_frames = parts.shape[1]
    out = source.new_zeros(len(source), n_frames + 3, HOP)
    for k in range(4):
        out[:, k : k + n_frames] += parts[:, :, k]
    return out.flatten(1)[:, HOP : HOP + source.shape[1]]


class ConditionedBlock(nn.Module):
    """Residual convolution over time (B, C, T), scaled and shifted by a condition (B, S)."""

    def __init__(self, channels: int, kernel: int, dilation: int, n_condition: int) -> None:
        super().__init__()
        padding = dilation * (kernel - 1) // 2
        self.convolution = nn.Conv1d(channels, channels, kernel, padding=padding, dilation=dilation)
        self.condition = nn.Linear(n_condition, 2 * channels)

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        """Same shape as x."""
        scale, shift = self.condition(condition)[..., None].chunk(2, dim=1)
        hidden = nn.functional.gelu(torch.addcmul(shift, self.convolution(x), 1 + scale))
        return x + hidden


class NsfNetwork(nn.Module):
    """Network from features to filters. x-vectors are of `n_xvector` dimensions.

    `centre` (d,) and `spread` (scalar) of the training speakers' unit x-vectors are kept with the
    weights.
    """

    centre: Tensor
    spread: Tensor
    basis: Tensor

    def __init__(self, config: NsfLayers, n_cepstra: int, n_xvector: int) -> None:
        super().__init__()
        self.config = config
        self.n_xvector = n_xvector
        channels = config.encoder_channels
        self.encoder = nn.Sequential(
            nn.Conv1d(1 + n_cepstra, channels, 5, padding=2),
            nn.GELU(),
            nn.Conv1d(channels, channels, 5, padding=2),
            nn.GELU(),
            nn.Conv1d(channels, config.bottleneck, 1),
        )
        self.speaker = nn.Sequential(nn.Linear(n_xvector, config.condition), nn.GELU())
        self.first = nn.Conv1d(config.bottleneck + 3, config.channels, 3, padding=1)
        self.blocks = nn.ModuleList(
            ConditionedBlock(config.channels, config.kernel, dilation, config.condition)
            for dilation in config.dilations
        )
        self.last = nn.Conv1d(config.channels, config.bands + config.noise_bands, 1)
        nn.init.constant_(self.last.bias, -4.0)  # type: ignore[arg-type]
        self.register_buffer("centre", torch.zeros(n_xvector))
        self.register_buffer("spread", torch.ones(()))
        for name, n_bands in (("basis", config.bands), ("noise_basis", config.noise_bands)):
            self.register_buffer(name, torch.from_numpy(filter_basis(n_bands)), persistent=False)

    def set_speakers(self, xvectors: Float32) -> None:
        """Set centre and spread of the training speakers' x-vectors (S, d)."""
        unit = torch.from_numpy(unit_length(xvectors))
        self.centre.copy_(unit.mean(dim=0))
        self.spread.copy_((unit - self.centre).square().mean().sqrt().clamp_min(1e-6))

    def place(self, xvectors: Tensor) -> Tensor:
        """Unit x-vectors (B, d) relative to the training speakers."""
        return (xvectors - self.centre) / self.spread

    @property
    def reach(self) -> int:
        """Frames before and after a frame on which its filters depend, or a few more."""
        kernel = self.config.kernel
        return 8 + sum(dilation * (kernel - 1) // 2 for dilation in self.config.dilations)

    def encode(self, content: Tensor) -> Tensor:
        """Encode content (B, T, 1 + n) as (B, 1 + bottleneck, T); the energy, first, stays."""
        features = content.transpose(1, 2)
        codes = quantise(self.encoder(features), self.config.levels)
        return torch.cat((features[:, :1], codes), dim=1)

    def forward(self, codes: Tensor, f0: Tensor, speaker: Tensor) -> tuple[Tensor, Tensor]:
        """Complex log spectra (B, T, 321) of the two filters, for pulses and noise.

        codes: (B, C, T), made by `encode`; f0: (B, T) Hz; speaker: (B, d), made by `place`.
        """
        voiced = (f0 > VOICED_HZ).to(codes.dtype)
        pitch = (f0.clamp_min(VOICED_HZ).log() - _F0_CENTRE) / _F0_UNIT * voiced
        x = self.first(torch.cat((codes, torch.stack((pitch, voiced), dim=1)), dim=1))
        condition = self.speaker(speaker)
        for block in self.blocks:
            x = block(x, condition)
        bands = self.last(nn.functional.gelu(x)).transpose(1, 2).to(self.basis.dtype)
        pulses, noise = bands.split((self.config.bands, self.config.noise_bands), dim=2)
        return pulses @ self.basis, noise @ self.noise_basis


def render(filters: Sequence[Tensor], sources: Sequence[Tensor], gate: Tensor) -> Tensor:
    """Signals (B, n) of T = 1 + n / 160 frames. sources: pulses and noise (B, n), RMS 1."""
    pulses, noise = (apply_filters(s, h, gate) for s, h in zip(sources, filters, strict=True))
    return pulses + noise


class NsfSynthesiser(TrainedSynthesiser):
    """Small neural source-filter, on the content of WORLD's envelope.

    The noise is random, seeded by the samples.
    """

    settings = NsfConfig
    trainer = "steps.synthesis.training:NsfTrainer"

    @classmethod
    def make(cls, config: NsfConfig, state: dict[str, Tensor]) -> NsfNetwork:
        return NsfNetwork(config.network, config.cepstra, len(state["centre"]))

    @torch.inference_mode()
    def convert(self, wave: Float64, target: Target, f0: F0Map) -> Float64:
        """Only the target's x-vector and warp count. Made block by block, as a long signal's
        spectra would fill the memory; where a peak would pass 0.99 the whole is made softer."""
        speaker = self.network.place(self.speaker(target))
        contour, envelope = analyse_content(wave)
        content = extract_content(envelope, self.config.cepstra, target.warp)
        if not content.has_speech:
            return np.zeros(len(wave))
        seed = hashlib.sha256(np.ascontiguousarray(wave, dtype=np.float64).tobytes()).hexdigest()
        n_frames = 1 + -(-len(wave) // HOP)  # one more where the last is not whole
        last = np.minimum(np.arange(n_frames), len(contour) - 1)
        features, gate, contour = content.features[last], content.gate[last], f0(contour)[last]
        length = (n_frames - 1) * HOP
        noise = make_rng(0, "nsf noise", seed).standard_normal(length, dtype=np.float32)
        pulses = pulse_train(contour, length).astype(np.float32)
        parts = (features, contour.astype(np.float32), pulses, noise, gate)
        x, pitch, *sources, opened = (torch.from_numpy(part)[None] for part in parts)
        out = np.zeros(length)
        for start in range(0, n_frames, BLOCK):
            own = slice(start, min(start + BLOCK, n_frames))
            seen = around(own, self.network.reach, self.network.reach, n_frames)
            codes = self.network.encode(x[:, seen])
            filters = self.network(codes, pitch[:, seen], speaker)
            # A frame begins a hop before its centre and rings for three after it.
            heard = around(own, 1, 3, n_frames)
            ours = torch.zeros_like(opened[:, heard])
            ours[:, own.start - heard.start : own.stop - heard.start] = opened[:, own]
            place = slice(heard.start * HOP, (heard.stop - 1) * HOP)
            cut = slice(heard.start - seen.start, heard.stop - seen.start)
            signal = render([x[:, cut] for x in filters], [x[:, place] for x in sources], ours)
            out[place] += signal[0].numpy()
        return self.limited(out[: len(wave)] * (np.exp(content.level / 2) / FULL_LEVEL))


# ---- Settings of the discriminators of a network that makes signals.

Period = Annotated[int, rule.Number(least=2, most=rule.LARGEST)]
Sixteens = Annotated[int, rule.Number(least=16, most=rule.LARGEST, multiple=16)]
Widths = tuple[rule.Size, ...]


@dataclass(frozen=True)
class DiscriminatorConfig:
    """Discriminators of HiFi-GAN (Kong et al. 2020): one for each period, one for each scale.

    period_channels: five layers; scale_channels: seven, multiples of 16 for the grouped ones.
    """

    periods: Annotated[tuple[Period, ...], rule.Long()] = (2, 3, 5, 7, 11)
    scales: rule.Size = 3
    period_channels: Annotated[Widths, rule.Long(exactly=5)] = (32, 128, 512, 1024, 1024)
    scale_channels: Annotated[tuple[Sixteens, ...], rule.Long(exactly=7)] = (
        *(128, 128, 256, 512, 1024, 1024, 1024),
    )
