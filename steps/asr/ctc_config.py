# SPDX-License-Identifier: Apache-2.0
"""Settings of the CTC recogniser (conf/asr/*.yaml) as checked values."""

from dataclasses import dataclass, field

from steps.asr.ctc_units import KINDS
from steps.learning.settings import LoopSettings, check_loop
from steps.speaker.config import CHOICES, AugmentConfig, FeatureConfig, check_features
from utils.cli import UserError
from utils.settings import check_sizes, parse_settings, read_settings
from utils.tables import StrPath


@dataclass(frozen=True)
class NetworkConfig:
    """Layers: convolutions over time, one for each of `dilations`, then a recurrent layer.

    stride: frames of features for one of the network's; lstm: units in each direction, 0: none.
    """

    channels: int = 96
    kernel: int = 5
    stride: int = 3
    dilations: tuple[int, ...] = (1, 2, 4)
    lstm: int = 0
    dropout: float = 0.2


@dataclass(frozen=True)
class TrainingConfig(LoopSettings):
    """How it is trained. Fractions are of all steps. Best is what has the fewest words wrong."""

    batch: int = 8  # utterances a step
    learning_rate: float = 3e-3
    warm_up: float = 0.1
    weight_decay: float = 1e-2
    gradient_norm: float = 5.0
    valid_speakers: int = 8
    valid_share: float = 0.1  # of the speakers, at most
    cache_gb: float = 1.0  # decoded audio up to this size is held in memory
    minimum_seconds: float = 0.1  # shorter training utterances are left out, counted


@dataclass(frozen=True)
class SearchConfig:
    """The search among the words of a language; scores are natural logarithms."""

    beam: int = 100  # hypotheses
    tokens: int = 40  # that may go on a hypothesis: the likeliest at each time
    threshold: float = 50.0  # those so far below the best are dropped
    lm_weight: float = 1.0
    word_score: float = 0.0  # for each word, beside the language model's


@dataclass(frozen=True)
class CtcConfig:
    """All settings."""

    recogniser: str
    training: TrainingConfig
    units: str = "characters"  # that the network writes, or words
    network: NetworkConfig = field(default_factory=NetworkConfig)
    features: FeatureConfig = field(default_factory=FeatureConfig)
    augmentation: AugmentConfig = field(default_factory=AugmentConfig)
    search: SearchConfig = field(default_factory=SearchConfig)


def read_config(path: StrPath) -> CtcConfig:
    """The settings in a file, checked; `trained` (written by the training) is passed over."""
    data = read_settings(path)
    data.pop("trained", None)
    config = parse_settings(CtcConfig, data, path)
    if config.recogniser != "ctc":
        raise UserError(f"{path}: recogniser: {config.recogniser!r}; known: ctc")
    if config.units not in KINDS:
        raise UserError(f"{path}: units: {config.units!r}; choose one of: {', '.join(KINDS)}")
    _check_values(config, str(path))
    for name in ("kind", "mean"):
        choices = CHOICES[f"features.{name}"]
        if getattr(config.features, name) not in choices:
            raise UserError(f"{path}: features.{name}: choose one of: {', '.join(choices)}")
    if config.features.speech_only:
        raise UserError(f"{path}: features.speech_only: false is needed: words have pauses in them")
    return config


def _check_values(config: CtcConfig, path: str) -> None:
    network, training = config.network, config.training
    check_sizes(network, path, "network", may_be_0=("lstm",))
    check_sizes(config.search, path, "search")
    check_features(config.features, config.augmentation, path)
    check_loop(training, path)
    if training.batch < 1:
        raise UserError(f"{path}: training.batch: at least 1 is needed")
    if network.kernel % 2 == 0:
        raise UserError(f"{path}: network.kernel: an odd kernel is needed")
    if not 0 <= network.dropout < 1:
        raise UserError(f"{path}: network.dropout: from 0 to below 1 is needed")
    if not 0 < training.warm_up < 1:
        raise UserError(f"{path}: training.warm_up: a part, above 0 and below 1, is needed")
    if config.search.lm_weight <= 0:
        raise UserError(f"{path}: search.lm_weight: above 0 is needed, or grammars do not count")
    if not 0 <= training.valid_share <= 0.5:
        raise UserError(f"{path}: training.valid_share: a part, from 0 to 0.5, is needed")
