# SPDX-License-Identifier: Apache-2.0
"""Checked settings of the neural source-filter (conf/synthesisers/*.yaml)."""

from dataclasses import dataclass, field
from typing import Annotated

from steps.learning.settings import CropSeconds, RampSettings
from steps.synthesis.world import CODE_DIM
from utils.bounds import (
    LARGEST,
    Count,
    NotNegative,
    Number,
    OddSize,
    OneOf,
    Size,
    SizeOrNone,
    Sizes,
)

Bands = Annotated[int, Number(least=2, most=LARGEST)]
Bend = Annotated[float, Number(least=0, most=0.5)]
Weight = Annotated[float, Number(least=0, most=10)]


@dataclass(frozen=True)
class NetworkConfig:
    """Layers. bottleneck: values per frame to which the content is reduced, each of `levels` levels
    (odd); 0: none. bands: of the filters, over a mel axis."""

    channels: Size = 192
    kernel: OddSize = 5
    dilations: Sizes = (1, 2, 4, 1, 2)
    condition: Size = 64
    bands: Bands = 80
    noise_bands: Bands = 40
    bottleneck: SizeOrNone = 0
    levels: Annotated[int, Number(least=3, most=LARGEST, odd=True)] = 5
    encoder_channels: Size = 128


@dataclass(frozen=True)
class AugmentConfig:
    """Augmentation and adversary that keep the network from finding the speaker in the content.

    scale, bend: see content.draw_warp. xvector_noise: standard deviation, in units of the spread
    over speakers. adversary: weight of a second network that looks for the speaker behind the
    bottleneck, and whose success counts as loss; it grows from 0 over the first fifth.
    """

    scale: Bend = 0.12
    bend: Bend = 0.06
    xvector_noise: Weight = 0.3
    adversary: Weight = 0.0


@dataclass(frozen=True)
class TrainingConfig(RampSettings):
    """Training settings. The best network is the nearest in log mels."""

    valid_every: Count = 500
    crop_seconds: CropSeconds = 2.0
    final_rate: NotNegative = 1e-4
    mel_weight: NotNegative = 1.0


@dataclass(frozen=True)
class NsfConfig:
    """All settings. cepstra: of the content features."""

    synthesiser: Annotated[str, OneOf("nsf")]
    training: TrainingConfig
    cepstra: Annotated[int, Number(least=1, most=CODE_DIM - 1)] = 20
    network: NetworkConfig = field(default_factory=NetworkConfig)
    augmentation: AugmentConfig = field(default_factory=AugmentConfig)

    def __post_init__(self) -> None:
        if self.augmentation.adversary and not self.network.bottleneck:
            raise ValueError("augmentation.adversary: needs a network.bottleneck to act on")
