# SPDX-License-Identifier: Apache-2.0
"""Settings of a speaker encoder: a YAML file (conf/encoders/*.yaml) as checked values.

Every name in the file must be known and of the right kind, so that a typo is an error and not a
default.
"""

import dataclasses
from dataclasses import dataclass, field

from steps.learning.settings import LoopSettings, check_loop
from utils.cli import UserError
from utils.settings import check_sizes, parse_settings, read_settings
from utils.tables import StrPath


@dataclass(frozen=True)
class NetworkConfig:
    """Layers of the network; `channels`, `kernel_sizes` and `dilations` have one entry a layer.

    The last layer of ECAPA is the aggregation of the ones before. `attention_channels`,
    `se_channels`, `res2net_scale` and `pooling` are ECAPA's only. pooling: attention (mean and
    deviation weighted by attention), or xi (by precision; `xi_hidden` units, steps/speaker/xi.py).
    """

    channels: tuple[int, ...]
    kernel_sizes: tuple[int, ...]
    dilations: tuple[int, ...]
    embedding: int
    attention_channels: int = 128
    se_channels: int = 128
    res2net_scale: int = 8
    pooling: str = "attention"
    xi_hidden: int = 256
    final_norm: bool = False  # batch normalisation of the embedding, as in the ECAPA paper


@dataclass(frozen=True)
class FeatureConfig:
    """25 ms frames every 10 ms; `mean` is what is subtracted."""

    kind: str = "fbank"  # fbank (log mel energies) or mfcc
    bins: int = 80  # mel bins, or cepstra
    low_hz: float = 0.0
    high_hz: float = 8000.0
    mean: str = "sentence"  # sentence, sliding (over 300 frames) or none
    speech_only: bool = False  # cut pauses out first


@dataclass(frozen=True)
class AugmentConfig:
    """What happens to a training crop. Probabilities per crop, signal-to-noise ratios in dB.

    Every speed makes a class of its own of each speaker. Masks are at most so wide.
    """

    speeds: tuple[float, ...] = (0.9, 1.0, 1.1)
    noise_probability: float = 0.5
    noise_snr_db: tuple[float, float] = (0.0, 20.0)
    babble_probability: float = 0.3
    babble_snr_db: tuple[float, float] = (8.0, 20.0)
    equaliser_probability: float = 0.0
    equaliser_db: float = 6.0
    reverberation_probability: float = 0.0
    reverberation_seconds: tuple[float, float] = (0.1, 0.6)
    time_masks: int = 1
    time_mask_frames: int = 15
    band_masks: int = 1
    band_mask_bins: int = 10


@dataclass(frozen=True)
class TrainingConfig(LoopSettings):
    """How the encoder is trained. Fractions are of all steps. Best is the one of least EER."""

    batch: int = 32  # crops a step
    crop_seconds: tuple[float, float] = (2.0, 2.0)  # drawn once a step
    loss: str = "aam"  # aam (additive angular margin) or softmax
    margin: float = 0.2  # radian
    margin_ramp: float = 0.33  # the margin grows from 0 over this fraction
    scale: float = 30.0
    optimiser: str = "adamw"  # adamw, adam or sgd
    learning_rate: float = 1e-3
    final_rate: float = 1e-5
    warm_up: float = 0.05
    weight_decay: float = 1e-4
    momentum: float = 0.5  # sgd only
    gradient_norm: float = 5.0
    precision: str = "float32"  # float32, bfloat16, or auto: bfloat16 where it is fast
    valid_speakers: int = 16
    valid_segments: int = 6  # a speaker
    cache_gb: float = 1.0  # decoded audio up to this size is held in memory
    minimum_seconds: float = 0.5  # shorter training utterances are left out, counted


@dataclass(frozen=True)
class FineTuningConfig:
    """What differs from `training` where an encoder goes on from a trained one; parts of 1."""

    steps: float = 0.25
    learning_rate: float = 0.3


@dataclass(frozen=True)
class EncoderConfig:
    """All settings of one encoder."""

    encoder: str
    network: NetworkConfig
    training: TrainingConfig
    features: FeatureConfig = field(default_factory=FeatureConfig)
    augmentation: AugmentConfig = field(default_factory=AugmentConfig)
    fine_tuning: FineTuningConfig = field(default_factory=FineTuningConfig)


CHOICES = {
    "encoder": ("ecapa", "xvector"),
    "network.pooling": ("attention", "xi"),
    "features.kind": ("fbank", "mfcc"),
    "features.mean": ("sentence", "sliding", "none"),
    "training.loss": ("aam", "softmax"),
    "training.optimiser": ("adamw", "adam", "sgd"),
    "training.precision": ("float32", "bfloat16", "auto"),
}


def fine_tuned(config: EncoderConfig) -> EncoderConfig:
    """The settings of a training that starts from a trained encoder."""
    training, part = config.training, config.fine_tuning
    steps = max(1, round(training.steps * part.steps))
    changed = dataclasses.replace(
        training, steps=steps, learning_rate=training.learning_rate * part.learning_rate
    )
    return dataclasses.replace(config, training=changed)


def read_config(path: StrPath) -> EncoderConfig:
    """The settings in a file, checked; `trained` (written by the training) is passed over."""
    data = read_settings(path)
    data.pop("trained", None)
    config = parse_settings(EncoderConfig, data, path)
    for name, choices in CHOICES.items():
        value: object = config
        for part in name.split("."):
            value = getattr(value, part)
        if value not in choices:
            raise UserError(f"{path}: {name}: {value!r}; choose one of: {', '.join(choices)}")
    _check_values(config, str(path))
    return config


def _check_values(config: EncoderConfig, path: str) -> None:
    network, training, augment = config.network, config.training, config.augmentation
    check_sizes(network, path, "network")
    check_features(config.features, augment, path)
    if not len(network.channels) == len(network.kernel_sizes) == len(network.dilations):
        raise UserError(f"{path}: network: channels, kernel_sizes and dilations differ in length")
    if config.encoder == "ecapa" and any(
        channels % network.res2net_scale for channels in network.channels[:-1]
    ):
        raise UserError(f"{path}: network.channels: not multiples of {network.res2net_scale}")
    if network.pooling == "xi" and (config.encoder != "ecapa" or network.xi_hidden < 1):
        raise UserError(f"{path}: network.pooling: xi is for ecapa, with xi_hidden of at least 1")
    if not 0.2 <= training.crop_seconds[0] <= training.crop_seconds[1]:
        raise UserError(f"{path}: training.crop_seconds: shortest and longest, from 0.2 s on")
    for name in ("steps", "learning_rate"):
        if not 0 < getattr(config.fine_tuning, name) <= 1:
            raise UserError(f"{path}: fine_tuning.{name}: a part, above 0 and at most 1, is needed")
    check_loop(training, path)
    if training.batch < 1:
        raise UserError(f"{path}: training.batch: at least 1 is needed")


def check_features(features: FeatureConfig, augment: AugmentConfig, path: StrPath) -> None:
    """What encoders and recognisers share, but for the names of choices."""
    check_sizes(features, path, "features")
    check_sizes(augment, path, "augmentation", may_be_0=vars(augment))
    if not augment.speeds or not all(0.5 <= speed <= 2.0 for speed in augment.speeds):
        raise UserError(f"{path}: augmentation.speeds: numbers between 0.5 and 2 are needed")
