# SPDX-License-Identifier: Apache-2.0
"""Settings of the synthesiser on a recogniser's content (conf/synthesisers/bn_*.yaml)."""

from dataclasses import dataclass, field
from typing import Annotated

from steps.content.units import UnitSettings
from steps.learning.settings import CropSeconds, RampSettings
from utils.bounds import Count, Long, NotNegative, Number, OddSize, OneOf, Positive, Share

Channels = Annotated[int, Number(least=1, most=4096)]
Dilation = Annotated[int, Number(least=1, most=64)]
Degree = Annotated[float, Number(least=0, most=2)]


@dataclass(frozen=True)
class BnNetwork:
    """Gated dilated convolutions. condition: values that the x-vector is mapped to. dropout: share
    of values set to 0 in a training step. melody: channels of the network that predicts F0 (`f0:
    predicted` of a system); 0: there is none."""

    channels: Channels = 192
    kernel: OddSize = 3
    dilations: Annotated[tuple[Dilation, ...], Long()] = (1, 2, 4, 8, 1, 2)
    condition: Channels = 64
    dropout: Share = 0.0
    melody: Annotated[int, Number(least=0, most=4096)] = 0


@dataclass(frozen=True)
class BnAugmentation:
    """Augmentation that leaves the speaker to be found nowhere but in the x-vector.

    warped: share of crops whose content is that of another vocal tract and pitch (scale, bend: see
    content.draw_warp; pitch: largest change of log F0). content_noise: in deviations of a value.
    xvector_noise: of an x-vector of length 1, a value. no_energy: share of crops without their
    energy.
    """

    warped: Share = 0.5
    scale: Degree = 0.15
    bend: Degree = 0.08
    pitch: Degree = 0.35
    content_noise: Degree = 0.2
    xvector_noise: Degree = 0.02
    no_energy: Share = 0.5


@dataclass(frozen=True)
class BnShaping:
    """Sharpening of the network's envelopes, which are flatter than real ones.

    variance: largest factor on a deviation over the utterance, to reach the speaker's. emphasis: of
    the shape's difference from the mean envelope, its tilt excepted.
    """

    variance: Annotated[float, Number(least=1, most=100)] = 2.5
    emphasis: Degree = 1.0


@dataclass(frozen=True)
class BnHearing:
    """Learning by ear, in the last steps: others say the words, and the content's encoder measures
    how much of them is left (bn_hearing.py).

    weight: of that in the loss; 0: not used. steps: their number among training.steps. batch,
    crop_seconds: for the speech that others say.
    """

    weight: NotNegative = 0.0
    steps: Count = 400
    batch: Channels = 5
    crop_seconds: CropSeconds = 3.2


@dataclass(frozen=True)
class BnTraining(RampSettings):
    """Training settings; rates of AdamW."""

    batch: Channels = 10
    crop_seconds: CropSeconds = 1.6
    final_rate: Positive = 6e-5
    warm_up: Share = 0.04
    gradient_norm: Positive = 1.0

    def __post_init__(self) -> None:
        if self.final_rate > self.learning_rate:
            raise ValueError(f"final_rate: {self.final_rate:g} is above learning_rate")


@dataclass(frozen=True)
class BnConfig:
    """All settings. content: a name in steps/content/extractors.py. units: in place of it."""

    synthesiser: Annotated[str, OneOf("bn")]
    training: BnTraining
    content: str = "moonshine"
    units: UnitSettings = field(default_factory=UnitSettings)
    network: BnNetwork = field(default_factory=BnNetwork)
    augmentation: BnAugmentation = field(default_factory=BnAugmentation)
    shaping: BnShaping = field(default_factory=BnShaping)
    hearing: BnHearing = field(default_factory=BnHearing)

    def __post_init__(self) -> None:
        if not self.hearing.weight:
            return
        if self.hearing.steps > self.training.steps:
            raise ValueError(f"hearing.steps: {self.hearing.steps} is above training.steps")
        if not self.augmentation.warped:
            raise ValueError("hearing.weight: it needs other voices (augmentation.warped above 0)")
