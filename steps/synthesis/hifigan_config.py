# SPDX-License-Identifier: Apache-2.0
"""Settings of HiFi-GAN on a recogniser's content (conf/synthesisers/bn_hifigan.yaml)."""

import math
from dataclasses import dataclass, field
from typing import Annotated

from steps.content.units import UnitSettings
from steps.learning.settings import CropSeconds
from steps.synthesis.b1b_config import DiscriminatorConfig
from steps.synthesis.bn_config import BnAugmentation, BnTraining, Channels, Dilation
from steps.synthesis.world import HOP
from utils.bounds import Long, NotNegative, Number, OddSize, Positive

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
