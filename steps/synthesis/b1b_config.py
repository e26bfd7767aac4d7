# SPDX-License-Identifier: Apache-2.0
"""Checked settings of B1.b (conf/synthesisers/nsf_b1b.yaml)."""

from dataclasses import dataclass, field
from typing import Annotated

from steps.learning.settings import AudioSettings
from steps.synthesis.nsf_config import Bend
from steps.synthesis.world import CODE_DIM
from utils.bounds import LARGEST, Count, Long, Natural, NotNegative, Number, OneOf, Positive, Size

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
class BendConfig:
    """Bending of the content's frequency axis in training; see content.draw_warp."""

    scale: Bend = 0.12
    bend: Bend = 0.06


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
