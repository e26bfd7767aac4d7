# SPDX-License-Identifier: Apache-2.0
"""Checked settings of the CTC recogniser (conf/asr/*.yaml)."""

from dataclasses import dataclass, field
from typing import Annotated

from steps.asr.ctc_units import KINDS
from steps.learning.settings import RampSettings
from steps.speaker.config import AugmentConfig, FeatureConfig
from utils.bounds import (
    NotNegative,
    Number,
    OddSize,
    OneOf,
    Positive,
    Size,
    SizeOrNone,
    Sizes,
)


@dataclass(frozen=True)
class NetworkConfig:
    """Layers: convolutions over time, one for each of `dilations`, then a recurrent layer.

    stride: frames of features in one of the network; lstm: units in each direction, 0: none.
    """

    channels: Size = 96
    kernel: OddSize = 5
    stride: Size = 3
    dilations: Sizes = (1, 2, 4)
    lstm: SizeOrNone = 0
    dropout: Annotated[float, Number(least=0, below=1)] = 0.2


@dataclass(frozen=True)
class TrainingConfig(RampSettings):
    """Training settings. The best network has the fewest words wrong."""

    learning_rate: Positive = 3e-3
    warm_up: Annotated[float, Number(above=0, below=1)] = 0.1
    valid_share: Annotated[float, Number(least=0, most=0.5)] = 0.1  # of the speakers, at most
    minimum_seconds: NotNegative = 0.1  # shorter training utterances are left out, counted


@dataclass(frozen=True)
class SearchConfig:
    """Search among the words of a language; scores are natural logarithms.

    With a weight of 1 and no score a word, AN4's language, in which saying nothing has a
    probability of 1 and each word one of 1/106, makes every hypothesis empty.
    """

    beam: Size = 100  # hypotheses
    tokens: Size = 40  # tokens that may continue a hypothesis: the likeliest at each time
    threshold: Positive = 50.0  # hypotheses so far below the best are dropped
    lm_weight: Positive = 0.3
    word_score: float = 1.5  # for each word, beside the language model's


@dataclass(frozen=True)
class CtcConfig:
    """All settings."""

    recogniser: Annotated[str, OneOf("ctc")]
    training: TrainingConfig
    units: Annotated[str, OneOf(*KINDS)] = "characters"  # output of the network, or words
    network: NetworkConfig = field(default_factory=NetworkConfig)
    features: FeatureConfig = field(default_factory=FeatureConfig)
    augmentation: AugmentConfig = field(default_factory=AugmentConfig)
    search: SearchConfig = field(default_factory=SearchConfig)

    def __post_init__(self) -> None:
        if self.features.speech_only:
            raise ValueError("features.speech_only: false is needed: words have pauses in them")
        if self.features.kind == "hub":
            raise ValueError("features.kind: hub is for speaker encoders; fbank or mfcc")
