# SPDX-License-Identifier: Apache-2.0
"""Settings of B1.b (conf/synthesisers/nsf_b1b.yaml) as checked values."""

import math
from dataclasses import dataclass, field

from steps.learning.settings import LoopSettings, check_loop
from steps.synthesis.nsf_config import parse_config
from steps.synthesis.world import CODE_DIM
from utils.cli import UserError
from utils.settings import check_sizes
from utils.tables import StrPath


@dataclass(frozen=True)
class GeneratorConfig:
    """Layers. channels: of condition and filters, one of them normalised F0 or the cut-off.
    harmonics: sines, the fundamental among them. blocks: of the harmonic branch, of `layers`
    convolutions each; the noise branch has one of `noise_layers`. narrow: hidden values at the end
    of a block. taps: of the merging filters, odd."""

    channels: int = 64
    harmonics: int = 8
    blocks: int = 5
    layers: int = 10
    noise_layers: int = 5
    narrow: int = 16
    taps: int = 31


@dataclass(frozen=True)
class DiscriminatorConfig:
    """Those of HiFi-GAN (Kong et al. 2020): one for each period, one for each scale.

    period_channels: five layers; scale_channels: seven, multiples of 16 for the grouped ones.
    """

    periods: tuple[int, ...] = (2, 3, 5, 7, 11)
    scales: int = 3
    period_channels: tuple[int, ...] = (32, 128, 512, 1024, 1024)
    scale_channels: tuple[int, ...] = (128, 128, 256, 512, 1024, 1024, 1024)


@dataclass(frozen=True)
class BendConfig:
    """How far the content's frequency axis is bent in training; see content.draw_warp."""

    scale: float = 0.12
    bend: float = 0.06


@dataclass(frozen=True)
class B1bTraining(LoopSettings):
    """How it is trained; weights are of parts of the generator's loss."""

    valid_every: int = 1000
    checkpoint_every: int = 1000
    batch: int = 32  # crops a step
    segment_frames: int = 32  # of a crop
    learning_rate: float = 1e-4
    feature_weight: float = 2.0
    spectral_weight: float = 45.0
    valid_speakers: int = 40
    cache_gb: float = 8.0  # decoded audio up to this size is held in memory

    @property
    def crop_seconds(self) -> float:
        """Length of a crop."""
        return self.segment_frames / 100


@dataclass(frozen=True)
class B1bConfig:
    """All settings. cepstra: of the content features."""

    synthesiser: str
    training: B1bTraining
    cepstra: int = 20
    network: GeneratorConfig = field(default_factory=GeneratorConfig)
    discriminators: DiscriminatorConfig = field(default_factory=DiscriminatorConfig)
    augmentation: BendConfig = field(default_factory=BendConfig)


def read_b1b_config(path: StrPath) -> B1bConfig:
    """The settings in a file, checked; `trained` (written by the training) is passed over."""
    config = parse_config(B1bConfig, path)
    if config.synthesiser != "b1b":
        raise UserError(f"{path}: synthesiser: {config.synthesiser!r}; b1b is expected")
    _check_network(config, path)
    _check_discriminators(config.discriminators, path)
    _check_training(config, path)
    return config


def _check_network(config: B1bConfig, path: StrPath) -> None:
    network = config.network
    if not 1 <= config.cepstra < CODE_DIM:
        raise UserError(f"{path}: cepstra: {config.cepstra}; 1 to {CODE_DIM - 1} are possible")
    check_sizes(network, path, "network")
    check_sizes(config.discriminators, path, "discriminators")
    if network.channels % 2:
        raise UserError(f"{path}: network.channels: {network.channels}; an even number is needed")
    if max(network.layers, network.noise_layers) > 12:
        raise UserError(f"{path}: network.layers and noise_layers: 12 are the most")
    if network.taps < 3 or network.taps % 2 == 0:
        raise UserError(f"{path}: network.taps: {network.taps}; an odd number from 3 is needed")


def _check_discriminators(config: DiscriminatorConfig, path: StrPath) -> None:
    if min(config.periods) < 2:
        raise UserError(f"{path}: discriminators.periods: whole numbers from 2 are needed")
    if len(config.period_channels) != 5:
        raise UserError(f"{path}: discriminators.period_channels: five numbers from 1 are needed")
    scale = config.scale_channels
    if len(scale) != 7 or any(n % 16 for n in scale):
        raise UserError(f"{path}: discriminators.scale_channels: seven multiples of 16 are needed")


def _check_training(config: B1bConfig, path: StrPath) -> None:
    training, augment = config.training, config.augmentation
    check_loop(training, path)
    if training.batch < 1:
        raise UserError(f"{path}: training.batch: at least 1 is needed")
    if not 16 <= training.segment_frames <= 3000:
        raise UserError(f"{path}: training.segment_frames: 16 to 3000 are possible")
    if not training.learning_rate > 0 or not math.isfinite(training.learning_rate):
        raise UserError(f"{path}: training.learning_rate: it must be above 0")
    for name in ("feature_weight", "spectral_weight", "valid_speakers", "cache_gb"):
        if getattr(training, name) < 0:
            raise UserError(f"{path}: training.{name}: it cannot be below 0")
    for name in ("scale", "bend"):
        if not 0 <= getattr(augment, name) <= 0.5:
            raise UserError(f"{path}: augmentation.{name}: 0 to 0.5 is possible")
