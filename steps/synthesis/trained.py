"""Trained synthesisers: their folders, what all do alike, the small source-filter, and B1.b's."""

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
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
from steps.synthesis.content import Content, analyse_content, extract_content
from steps.synthesis.f0 import VOICED_HZ
from steps.synthesis.world import CODE_DIM, HOP
from steps.training.settings import AudioSettings, CropSeconds, RampSettings, read_config
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


class SourceFilterSynthesiser(TrainedSynthesiser):
    """Synthesiser on the content of WORLD's envelope, of config.cepstra values beside the energy.

    Its randomness is seeded by the samples.
    """

    @abstractmethod
    def say(
        self, content: Content, f0: Float64, unit: Tensor, n_samples: int, seed: str
    ) -> Float64:
        """Speech (n_samples,) from content and F0 (T,), at FULL_LEVEL. unit: x-vector (1, d)."""

    def convert(self, wave: Float64, target: Target, f0: F0Map) -> Float64:
        """Only the target's x-vector and warp count. Where a peak would pass 0.99 the whole is made
        softer."""
        unit = self.speaker(target)
        contour, envelope = analyse_content(wave)
        content = extract_content(envelope, self.config.cepstra, target.warp)
        if not content.has_speech:
            return np.zeros(len(wave))
        seed = hashlib.sha256(np.ascontiguousarray(wave, dtype=np.float64).tobytes()).hexdigest()
        out = self.say(content, f0(contour), unit, len(wave), seed)
        return self.limited(out * (np.exp(content.level / 2) / FULL_LEVEL))


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
    (odd); 0: none. bands: of the filters, over a mel axis."""

    channels: rule.Size = 192
    kernel: rule.OddSize = 5
    dilations: rule.Sizes = (1, 2, 4, 1, 2)
    condition: rule.Size = 64
    bands: Bands = 80
    noise_bands: Bands = 40
    bottleneck: rule.SizeOrNone = 0
    levels: Annotated[int, rule.Number(least=3, most=rule.LARGEST, odd=True)] = 5
    encoder_channels: rule.Size = 128


@dataclass(frozen=True)
class BendConfig:
    """Bending of the content's frequency axis in training; see content.draw_warp."""

    scale: Bend = 0.12
    bend: Bend = 0.06


@dataclass(frozen=True)
class NsfAugmentation(BendConfig):
    """Augmentation and adversary that keep the network from finding the speaker in the content.

    xvector_noise: standard deviation, in units of the spread over speakers. adversary: weight of a
    second network that looks for the speaker behind the bottleneck, and whose success counts as
    loss; it grows from 0 over the first fifth.
    """

    xvector_noise: Weight = 0.3
    adversary: Weight = 0.0


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

    def __post_init__(self) -> None:
        if self.augmentation.adversary and not self.network.bottleneck:
            raise ValueError("augmentation.adversary: needs a network.bottleneck to act on")


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
        n_content, channels = config.bottleneck or n_cepstra, config.encoder_channels
        self.encoder: nn.Module | None = None
        if config.bottleneck:
            self.encoder = nn.Sequential(
                nn.Conv1d(1 + n_cepstra, channels, 5, padding=2),
                nn.GELU(),
                nn.Conv1d(channels, channels, 5, padding=2),
                nn.GELU(),
                nn.Conv1d(channels, config.bottleneck, 1),
            )
        self.speaker = nn.Sequential(nn.Linear(n_xvector, config.condition), nn.GELU())
        self.first = nn.Conv1d(n_content + 3, config.channels, 3, padding=1)
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
        """Encode content (B, T, 1 + n) as (B, 1 + bottleneck, T), or (B, 1 + n, T) without a
        bottleneck.

        The energy, first, is not changed.
        """
        features = content.transpose(1, 2)
        if self.encoder is None:
            return features
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


class NsfSynthesiser(SourceFilterSynthesiser):
    """Small neural source-filter. The noise is random."""

    settings = NsfConfig
    trainer = "steps.synthesis.training:NsfTrainer"

    @classmethod
    def make(cls, config: NsfConfig, state: dict[str, Tensor]) -> NsfNetwork:
        return NsfNetwork(config.network, config.cepstra, len(state["centre"]))

    @torch.inference_mode()
    def say(
        self, content: Content, f0: Float64, unit: Tensor, n_samples: int, seed: str
    ) -> Float64:
        """Block by block: a long signal's spectra would fill the memory."""
        speaker = self.network.place(unit)
        n_frames = 1 + -(-n_samples // HOP)  # one more where the last is not whole
        last = np.minimum(np.arange(n_frames), len(f0) - 1)
        features, gate, contour = content.features[last], content.gate[last], f0[last]
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
        return out[:n_samples]


# ---- Checked settings of B1.b (conf/synthesisers/nsf_b1b.yaml).

Layers = Annotated[int, rule.Number(least=1, most=12)]
Period = Annotated[int, rule.Number(least=2, most=rule.LARGEST)]
Sixteens = Annotated[int, rule.Number(least=16, most=rule.LARGEST, multiple=16)]
Widths = tuple[rule.Size, ...]


@dataclass(frozen=True)
class GeneratorConfig:
    """Layers. channels: of the condition and the filters, one of them normalised F0 or the cut-off.
    harmonics: sines, the fundamental among them. blocks: of the harmonic branch, of `layers`
    convolutions each; the noise branch has one of `noise_layers`. narrow: hidden values at the end
    of a block. taps: of the merging filters, odd."""

    channels: Annotated[int, rule.Number(least=2, most=rule.LARGEST, multiple=2)] = 64
    harmonics: rule.Size = 8
    blocks: rule.Size = 5
    layers: Layers = 10
    noise_layers: Layers = 5
    narrow: rule.Size = 16
    taps: Annotated[int, rule.Number(least=3, most=rule.LARGEST, odd=True)] = 31


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


@dataclass(frozen=True)
class B1bTraining(AudioSettings):
    """Training settings; weights are those of the parts of the generator's loss."""

    valid_every: rule.Count = 1000
    checkpoint_every: rule.Count = 1000
    batch: rule.Count = 32  # crops in a step
    segment_frames: Annotated[int, rule.Number(least=16, most=3000)] = 32  # of a crop
    learning_rate: rule.Positive = 1e-4
    feature_weight: rule.NotNegative = 2.0
    spectral_weight: rule.NotNegative = 45.0
    valid_speakers: rule.Natural = 40
    cache_gb: rule.NotNegative = 8.0

    @property
    def crop_seconds(self) -> float:
        """Length of a crop."""
        return self.segment_frames / 100


@dataclass(frozen=True)
class B1bConfig:
    """All settings. cepstra: of the content features."""

    synthesiser: Annotated[str, rule.OneOf("b1b")]
    training: B1bTraining
    cepstra: Annotated[int, rule.Number(least=1, most=CODE_DIM - 1)] = 20
    network: GeneratorConfig = field(default_factory=GeneratorConfig)
    discriminators: DiscriminatorConfig = field(default_factory=DiscriminatorConfig)
    augmentation: BendConfig = field(default_factory=BendConfig)


# ---- Structure of B1.b: a harmonic-plus-noise neural source-filter at sample rate.
#
# Source: the baseline B1.b of VoicePrivacy 2022 (hn-sinc-NSF, Wang and Yamagishi 2019, trained with
# the losses of HiFi-GAN), written anew. Content comes from `content.extract_content`, in place of a
# recogniser's bottleneck features, and may have any dimension.

B1B_BLOCK = 500  # frames rendered at a time
_SINE = 0.1  # amplitude
_NOISE_VOICED, _NOISE = 0.003, 0.1 / 3  # standard deviations
_SMOOTHING = 4 * HOP  # samples over which the cut-off is averaged
_SMALLEST_SD = 1e-5


def make_sources(
    f0: npt.NDArray[np.floating], n_harmonics: int, rng: np.random.Generator
) -> tuple[Float32, Float32]:
    """Excitation (n_harmonics, n) and noise (n,), n = 160 T, of an F0 contour (T,) in Hz.

    Sines of amplitude 0.1 at F0 and its multiples where voiced, 0 elsewhere, each with its own
    noise; overtones begin at random phases, and there are none from the Nyquist frequency on.
    """
    pitch = np.repeat(f0.astype(np.float64), HOP)
    voiced = pitch > VOICED_HZ
    turns = np.cumsum(np.where(voiced, pitch, 0.0) / SAMPLE_RATE)  # of the fundamental
    first = np.append(0.0, rng.uniform(size=n_harmonics - 1))
    noise = rng.standard_normal((n_harmonics + 1, len(pitch)), dtype=np.float32)
    out = noise[:-1] * np.where(voiced, _NOISE_VOICED, _NOISE).astype(np.float32)
    for k in range(n_harmonics):
        heard = voiced & ((k + 1) * pitch < SAMPLE_RATE / 2)
        phase = 2 * np.pi * np.mod((k + 1) * turns + first[k], 1.0)
        out[k] += (_SINE * np.sin(phase) * heard).astype(np.float32)
    return out, noise[-1] * np.float32(_NOISE)


def sinc_filters(cut_off: Tensor, n_taps: int) -> tuple[Tensor, Tensor]:
    """Low- and high-pass filters (..., n_taps) for cut-offs (...), in fractions of Nyquist.

    Windowed (Hamming) sinc filters, symmetric. The low-pass has gain 1 at 0 Hz, the high-pass at
    the Nyquist frequency.
    """
    places = torch.arange(n_taps, device=cut_off.device, dtype=cut_off.dtype) - n_taps // 2
    window = torch.hamming_window(
        n_taps, periodic=False, device=cut_off.device, dtype=cut_off.dtype
    )
    low = cut_off[..., None] * torch.sinc(cut_off[..., None] * places)
    high = ((places == 0).to(low.dtype) - low) * window
    low = low * window
    alternating = 1 - 2 * torch.remainder(places, 2)
    gain = (high * alternating).sum(dim=-1, keepdim=True)
    return low / low.sum(dim=-1, keepdim=True), high / gain


def filter_by_sample(signals: Tensor, taps: Tensor) -> Tensor:
    """Filter signals (B, n), each sample by its own symmetric filter (B, n, odd); no delay."""
    half = taps.shape[-1] // 2
    parts = nn.functional.pad(signals, (half, half)).unfold(1, taps.shape[-1], 1)
    return (parts * taps).sum(dim=-1)


def moving_average(x: Tensor, width: int) -> Tensor:
    """Average (B, C, n) over `width` samples (even) around each; the ends are continued."""
    padded = nn.functional.pad(x, (width // 2, width // 2 - 1), "replicate")
    return nn.functional.avg_pool1d(padded, width, stride=1)


def upsample(x: Tensor) -> Tensor:
    """Upsample (B, C, T) to (B, C, 160 T), linear between frame centres, then smoothed."""
    wide = nn.functional.interpolate(x, scale_factor=float(HOP), mode="linear")
    return moving_average(wide, HOP)


def cut_offs(u: Tensor, voiced: Tensor) -> Tensor:
    """Cut-offs (B, n) in fractions of Nyquist, from u in -1 ... 1 and voicing 0 or 1, both (B, n).

    0.5 to 0.9 where voiced and 0.1 to 0.5 where not, smoothed over 4 frames.
    """
    cut_off = 0.2 * u + 0.4 * voiced + 0.3
    return moving_average(cut_off[:, None], _SMOOTHING)[:, 0]


class FilterBlock(nn.Module):
    """Shaping of signals (B, n) by causal dilated convolutions that a context (B, C, n) steers."""

    def __init__(self, channels: int, n_layers: int, narrow: int) -> None:
        super().__init__()
        self.first = nn.Linear(1, channels, bias=False)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(channels, channels, 3, dilation=2**layer, bias=False)
            for layer in range(n_layers)
        )
        self.narrow = nn.Linear(channels, narrow)
        self.last = nn.Linear(narrow, 1)

    def forward(self, signals: Tensor, context: Tensor) -> Tensor:
        """Signals (B, n), and the part that the layers added."""
        hidden = torch.tanh(self.first(signals[..., None])).transpose(1, 2)
        for layer, convolution in enumerate(self.convolutions):
            past = nn.functional.pad(hidden, (2 * 2**layer, 0))
            hidden = hidden + torch.tanh(convolution(past)) + context
        hidden = hidden.transpose(1, 2) / len(self.convolutions)
        added = torch.tanh(self.last(torch.tanh(self.narrow(hidden))))
        return signals + added[..., 0]


class B1bNetwork(nn.Module):
    """Network from content (B, T, n_content), F0 (B, T) and unit x-vectors (B, n_xvector) to
    signals.

    Means and standard deviations of the training's frames are kept with the weights: (2, n_content)
    and (2, n_xvector) and (2, 1), the last for F0 in Hz.
    """

    of_content: Tensor
    of_xvectors: Tensor
    of_f0: Tensor

    def __init__(self, config: GeneratorConfig, n_content: int, n_xvector: int) -> None:
        super().__init__()
        self.config, self.n_xvector = config, n_xvector
        channels, n_inputs = config.channels, n_content + n_xvector + 1
        self.recurrent = nn.LSTM(n_inputs, channels // 2, batch_first=True, bidirectional=True)
        self.convolution = nn.Conv1d(channels, channels, 3, padding=1)
        self.source = nn.Linear(config.harmonics, 1)
        self.harmonic = nn.ModuleList(
            FilterBlock(channels, config.layers, config.narrow) for _ in range(config.blocks)
        )
        self.noise = FilterBlock(channels, config.noise_layers, config.narrow)
        for name, n in (("of_content", n_content), ("of_xvectors", n_xvector), ("of_f0", 1)):
            self.register_buffer(name, torch.stack((torch.zeros(n), torch.ones(n))))

    def set_statistics(self, mean: Float64, sd: Float64) -> None:
        """Set mean and standard deviation (n,) of the inputs: content, x-vector, F0 in Hz."""
        # A value that was constant in training would become huge with any later change.
        both = torch.from_numpy(np.stack((mean, np.where(sd > _SMALLEST_SD, sd, 1.0))))
        start = 0
        for buffer in (self.of_content, self.of_xvectors, self.of_f0):
            buffer.copy_(both[:, start : start + buffer.shape[1]])
            start += buffer.shape[1]

    @property
    def reach(self) -> tuple[int, int]:
        """Frames before and after a frame on which its samples depend once it is conditioned."""
        samples = self.config.blocks * 2 * (2**self.config.layers - 1)
        samples = max(samples, 2 * (2**self.config.noise_layers - 1))
        ends = _SMOOTHING // 2 + self.config.taps
        return math.ceil((samples + ends) / HOP) + 3, math.ceil(ends / HOP) + 3

    def condition(self, content: Tensor, f0: Tensor, xvectors: Tensor) -> Tensor:
        """Context (B, C + 1, T) for `render`: C - 1 values, u of the cut-off, and normalised F0."""
        speaker = xvectors[:, None].expand(-1, content.shape[1], -1)
        mean, sd = torch.cat((self.of_content, self.of_xvectors, self.of_f0), dim=1)
        x = (torch.cat((content, speaker, f0[..., None]), dim=2) - mean) / sd
        hidden = self.recurrent(x)[0].transpose(1, 2)
        values = torch.tanh(self.convolution(hidden))
        return torch.cat((values, x[:, None, :, -1]), dim=1)

    def render(self, frames: Tensor, f0: Tensor, excitation: Tensor, noise: Tensor) -> Tensor:
        """Signals (B, 160 T) of T frames from `condition`.

        excitation (B, harmonics, 160 T) and noise (B, 160 T): see `make_sources`.
        """
        values = upsample(frames[:, :-1])
        pitch = frames[:, -1:].repeat_interleave(HOP, dim=2)
        context = torch.cat((values[:, :-1], pitch), dim=1)
        voiced = (f0 > VOICED_HZ).to(frames.dtype).repeat_interleave(HOP, dim=1)
        taps = sinc_filters(cut_offs(values[:, -1], voiced), self.config.taps)
        harmonic = torch.tanh(self.source(excitation.transpose(1, 2)))[..., 0]
        for block in self.harmonic:
            harmonic = block(harmonic, context)
        noise = self.noise(noise, context)
        return filter_by_sample(harmonic, taps[0]) + filter_by_sample(noise, taps[1])

    def forward(
        self, content: Tensor, f0: Tensor, xvectors: Tensor, excitation: Tensor, noise: Tensor
    ) -> Tensor:
        """Signals (B, 160 T)."""
        return self.render(self.condition(content, f0, xvectors), f0, excitation, noise)


def input_statistics(
    frames: Iterable[tuple[Float32, npt.NDArray[np.floating], Float32]],
) -> tuple[Float64, Float64]:
    """Mean and standard deviation over all frames, for `B1bNetwork.set_statistics`.

    frames: content (T, n), F0 (T,) in Hz and x-vector (d,) of each utterance in turn.
    """
    n, total, squares = 0, np.zeros(1), np.zeros(1)
    for content, f0, xvector in frames:
        fixed = np.broadcast_to(xvector, (len(content), len(xvector)))
        x = np.hstack((content, fixed, f0[:, None])).astype(np.float64)
        n += len(x)
        total = total + x.sum(axis=0)
        squares = squares + np.square(x).sum(axis=0)
    mean = total / n
    return mean, np.sqrt(np.maximum(squares / n - np.square(mean), 0.0))


class B1bSynthesiser(SourceFilterSynthesiser):
    """B1.b's structure. Noise and phases are random."""

    settings = B1bConfig
    trainer = "steps.synthesis.training:B1bTrainer"

    @classmethod
    def make(cls, config: B1bConfig, state: dict[str, Tensor]) -> B1bNetwork:
        return B1bNetwork(config.network, 1 + config.cepstra, state["of_xvectors"].shape[1])

    @torch.inference_mode()
    def say(
        self, content: Content, f0: Float64, unit: Tensor, n_samples: int, seed: str
    ) -> Float64:
        made = make_sources(f0, self.config.network.harmonics, make_rng(0, "b1b source", seed))
        excitation, noise = (torch.from_numpy(part)[None] for part in made)
        features = torch.from_numpy(content.features)[None]
        pitch = torch.from_numpy(f0.astype(np.float32))[None]
        frames = self.network.condition(features, pitch, unit)

        def render(seen: slice) -> Tensor:
            heard = slice(seen.start * HOP, seen.stop * HOP)
            given = frames[:, :, seen], pitch[:, seen], excitation[:, :, heard], noise[:, heard]
            return self.network.render(*given)

        return in_blocks(content.gate, n_samples, B1B_BLOCK, self.network.reach, render)
