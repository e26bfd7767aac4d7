"""HiFi-GAN on a recogniser's content: settings, network and training."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

from steps.content.units import UnitSettings
from steps.synthesis.b1b import DiscriminatorConfig
from steps.synthesis.bottleneck import (
    BnAugmentation,
    BnSynthesiser,
    BnTraining,
    Channels,
    ContentNetwork,
    Dilation,
    Source,
)
from steps.synthesis.bottleneck_training import (
    MELODY_WEIGHT,
    ContentTrainer,
    Crops,
    train_on_content,
)
from steps.synthesis.gan import Adversarial, Discriminators, SpectralLoss
from steps.synthesis.world import HOP
from steps.training.audio import TrainingAudio
from steps.training.loop import learning_rate, set_rate
from steps.training.settings import CropSeconds
from utils.arrays import Float64
from utils.seeds import derive_seed
from utils.settings import Long, NotNegative, Number, OddSize, Positive
from utils.tables import StrPath

# ---- Settings of HiFi-GAN on a recogniser's content (conf/synthesisers/bn_hifigan.yaml).

Rate = Annotated[int, Number(least=2, most=HOP)]


@dataclass(frozen=True)
class HifiganNetwork:
    """Generator V1 of HiFi-GAN. channels: before the first upsampling; each halves them. rates: of
    the upsamplings, 160 together. kernels, dilations: of the residual blocks after each. condition,
    melody: see BnNetwork."""

    channels: Channels = 512
    rates: Annotated[tuple[Rate, ...], Long()] = (5, 4, 4, 2)
    kernels: Annotated[tuple[OddSize, ...], Long()] = (3, 7, 11)
    dilations: Annotated[tuple[Dilation, ...], Long()] = (1, 3, 5)
    condition: Channels = 128
    melody: Annotated[int, Number(least=0, most=4096)] = 0

    def __post_init__(self) -> None:
        if math.prod(self.rates) != HOP:
            raise ValueError(f"rates: {math.prod(self.rates)} together; {HOP} are needed")
        if self.channels % 2 ** len(self.rates):
            raise ValueError(f"channels: {self.channels}; {len(self.rates)} times it is halved")


@dataclass(frozen=True)
class HifiganTraining(BnTraining):
    """Training settings; weights are those of the generator's loss (Kong et al. 2020)."""

    batch: Channels = 16
    crop_seconds: CropSeconds = 0.5
    learning_rate: Positive = 2e-4
    final_rate: Positive = 2e-5
    gradient_norm: Positive = 1e3  # of losses that are weighted by 45; the original has no limit
    feature_weight: NotNegative = 2.0
    spectral_weight: NotNegative = 45.0


@dataclass(frozen=True)
class HifiganConfig:
    """All settings; see BnConfig."""

    synthesiser: str
    training: HifiganTraining
    content: str = "moonshine"
    units: UnitSettings = field(default_factory=UnitSettings)
    network: HifiganNetwork = field(default_factory=HifiganNetwork)
    discriminators: DiscriminatorConfig = field(default_factory=DiscriminatorConfig)
    augmentation: BnAugmentation = field(default_factory=BnAugmentation)


# ---- Waveform from a recogniser's content, F0 and an x-vector by HiFi-GAN.
#
# Source: the generator V1 of HiFi-GAN (Kong et al. 2020), written anew; its frames are those of
# `bn.ContentNetwork`, each with the x-vector. So have Champion et al. 2021 and Liu et al. 2025.

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
        """Block by block: the layers of a long signal would fill the memory."""
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


# ---- Training of HiFi-GAN on a recogniser's content: every utterance in its own voice.


class HifiganTrainer(Adversarial, ContentTrainer):
    """Training of HiFi-GAN with discriminators; see `loop.Trainer`. loss: log-mel, nepers."""

    kind = Hifigan
    signals = True

    def prepare(self) -> None:
        self.gradient_norm = self.plan.gradient_norm
        torch.manual_seed(derive_seed(self.seed, "hifigan-weights") % 2**63)
        self.discriminators = Discriminators(self.config.discriminators).to(self.device)
        self.spectral = SpectralLoss().to(self.device).log_mel_distance
        self.optimiser, self.opponent = (
            torch.optim.AdamW(
                network.parameters(),
                self.plan.learning_rate,
                betas=(0.8, 0.99),
                weight_decay=self.plan.weight_decay,
            )
            for network in (self.network, self.discriminators)
        )

    def update(self, step: int, batch: Crops) -> dict[str, float]:
        self.network.train()
        for optimiser in (self.optimiser, self.opponent):
            set_rate(optimiser, learning_rate(self.plan, step))
        melody: Tensor | None = None
        if self.network.melody is not None:
            melody = self.off_melody(batch)
        more = 0.0 if melody is None else MELODY_WEIGHT * melody
        figures = self.play(self._made(batch), batch.signals.to(self.device), more)
        return figures if melody is None else {**figures, "melody": float(melody.detach())}

    def distance_on(self, batch: Crops) -> Tensor:
        """The distance of log-mel spectra, in nepers."""
        return self.spectral(self._made(batch), batch.signals.to(self.device))

    def _made(self, batch: Crops) -> Tensor:
        signals: Tensor = self.network(batch.inputs.to(self.device), batch.xvectors.to(self.device))
        return signals


def train_hifigan(
    config: HifiganConfig,
    audio: TrainingAudio,
    pool: StrPath,
    out: Path,
    *,
    seed: int,
    device: str = "cpu",
    content: StrPath | None = None,
) -> None:
    """Train as `bn_training.train_bn` does."""
    train_on_content(HifiganTrainer, config, audio, pool, out, seed, device, content)
