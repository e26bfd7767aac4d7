"""The synthesiser of baseline B1.b: a neural source-filter at sample rate."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from steps.audio import SAMPLE_RATE
from steps.synthesis.content import Content
from steps.synthesis.f0 import VOICED_HZ
from steps.synthesis.trained import BendConfig, SourceFilterSynthesiser, in_blocks
from steps.synthesis.world import CODE_DIM, HOP
from steps.training.settings import AudioSettings
from utils.arrays import Float32, Float64
from utils.seeds import make_rng
from utils.settings import LARGEST, Count, Long, Natural, NotNegative, Number, OneOf, Positive, Size

# ---- Checked settings of B1.b (conf/synthesisers/nsf_b1b.yaml).

Layers = Annotated[int, Number(least=1, most=12)]
Period = Annotated[int, Number(least=2, most=LARGEST)]
Sixteens = Annotated[int, Number(least=16, most=LARGEST, multiple=16)]


@dataclass(frozen=True)
class GeneratorConfig:
    """Layers. channels: of the condition and the filters, one of them normalised F0 or the cut-off.
    harmonics: sines, the fundamental among them. blocks: of the harmonic branch, of `layers`
    convolutions each; the noise branch has one of `noise_layers`. narrow: hidden values at the end
    of a block. taps: of the merging filters, odd."""

    channels: Annotated[int, Number(least=2, most=LARGEST, multiple=2)] = 64
    harmonics: Size = 8
    blocks: Size = 5
    layers: Layers = 10
    noise_layers: Layers = 5
    narrow: Size = 16
    taps: Annotated[int, Number(least=3, most=LARGEST, odd=True)] = 31


@dataclass(frozen=True)
class DiscriminatorConfig:
    """Discriminators of HiFi-GAN (Kong et al. 2020): one for each period, one for each scale.

    period_channels: five layers; scale_channels: seven, multiples of 16 for the grouped ones.
    """

    periods: Annotated[tuple[Period, ...], Long()] = (2, 3, 5, 7, 11)
    scales: Size = 3
    period_channels: Annotated[tuple[Size, ...], Long(exactly=5)] = (32, 128, 512, 1024, 1024)
    scale_channels: Annotated[tuple[Sixteens, ...], Long(exactly=7)] = (
        *(128, 128, 256, 512, 1024, 1024, 1024),
    )


@dataclass(frozen=True)
class B1bTraining(AudioSettings):
    """Training settings; weights are those of the parts of the generator's loss."""

    valid_every: Count = 1000
    checkpoint_every: Count = 1000
    batch: Count = 32  # crops in a step
    segment_frames: Annotated[int, Number(least=16, most=3000)] = 32  # of a crop
    learning_rate: Positive = 1e-4
    feature_weight: NotNegative = 2.0
    spectral_weight: NotNegative = 45.0
    valid_speakers: Natural = 40
    cache_gb: NotNegative = 8.0

    @property
    def crop_seconds(self) -> float:
        """Length of a crop."""
        return self.segment_frames / 100


@dataclass(frozen=True)
class B1bConfig:
    """All settings. cepstra: of the content features."""

    synthesiser: Annotated[str, OneOf("b1b")]
    training: B1bTraining
    cepstra: Annotated[int, Number(least=1, most=CODE_DIM - 1)] = 20
    network: GeneratorConfig = field(default_factory=GeneratorConfig)
    discriminators: DiscriminatorConfig = field(default_factory=DiscriminatorConfig)
    augmentation: BendConfig = field(default_factory=BendConfig)


# ---- Structure of B1.b: a harmonic-plus-noise neural source-filter at sample rate.
#
# Source: the baseline B1.b of VoicePrivacy 2022 (hn-sinc-NSF, Wang and Yamagishi 2019, trained with
# the losses of HiFi-GAN), written anew. Content comes from `content.extract_content`, in place of a
# recogniser's bottleneck features, and may have any dimension.

BLOCK = 500  # frames rendered at a time
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

        out = in_blocks(len(content.features), BLOCK, self.network.reach, render)[:n_samples]
        return out * np.interp(
            np.arange(n_samples) / HOP, np.arange(len(content.gate)), content.gate
        )
