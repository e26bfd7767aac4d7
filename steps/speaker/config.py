"""Settings of a speaker encoder: a YAML file (conf/encoders/*.yaml) as checked values.

Every name in the file must be known and of the right kind, so that a typo is an error and not a
default.
"""

import dataclasses
from dataclasses import dataclass, field
from typing import Annotated

from steps.training.settings import RampSettings
from utils import settings as rule

# Makers of a network from an EncoderConfig: features (B, T, D) -> embeddings (B, 1, E).
STRUCTURES = {
    "ecapa": "steps.speaker.network:make_ecapa",
    "xvector": "steps.speaker.network:make_xvector",
    "resemblyzer": "steps.speaker.network:make_resemblyzer",
    "pyannote": "steps.speaker.pyannote:make_pyannote",
    "ecapa_dual": "steps.speaker.network:make_ecapa",
}

RES2NET_SCALE = 8  # groups of channels in ECAPA's blocks, as in SpeechBrain
Between = Annotated[tuple[float, float], rule.Ascending()]
Speed = Annotated[float, rule.Number(least=0.5, most=2)]
Seconds = Annotated[float, rule.Number(least=0.2, unit="s")]
Crop = Annotated[tuple[Seconds, Seconds], rule.Ascending()]


@dataclass(frozen=True)
class NetworkConfig:
    """Layers of the network; `channels`, `kernel_sizes` and `dilations` have one entry a layer.

    The last layer of ECAPA is the aggregation of the ones before. `attention_channels`
    and `se_channels` are ECAPA's only.
    """

    channels: rule.Sizes
    kernel_sizes: rule.Sizes
    dilations: rule.Sizes
    embedding: rule.Size
    attention_channels: rule.Size = 128
    se_channels: rule.Size = 128
    final_norm: bool = False  # batch normalisation of the embedding, as in the ECAPA paper
    unit_length: bool = False  # x-vectors of length 1: each weighs the same in a mean
    dropout: rule.Share = 0.0  # of channels in training; ECAPA's only

    def __post_init__(self) -> None:
        if not len(self.channels) == len(self.kernel_sizes) == len(self.dilations):
            raise ValueError("channels: channels, kernel_sizes and dilations differ in length")


@dataclass(frozen=True)
class FeatureConfig:
    """Frames of 25 ms every 10 ms. kind: log mel energies (fbank) or mfcc; power: mel power without
    a logarithm, at -30 dB of full scale or more (Resemblyzer); hub: a weighted mean of the layers
    of `model` every 20 ms (steps/speaker/network.py); or samples, for a network that has its own
    filters; `bins` is their number. mean: the subtracted mean, sliding over 300 frames."""

    kind: Annotated[str, rule.OneOf("fbank", "mfcc", "power", "hub", "samples")] = "fbank"
    model: str = ""  # WavLM, HuBERT or wav2vec 2.0 of the hub, or a folder
    bins: rule.Size = 80  # mel bins, or cepstra
    low_hz: rule.NotNegative = 0.0
    high_hz: rule.Positive = 8000.0
    mean: Annotated[str, rule.OneOf("sentence", "sliding", "none")] = "sentence"
    speech_only: bool = False  # cut pauses out first

    def __post_init__(self) -> None:
        if self.kind == "hub" and not self.model:
            raise ValueError("model: kind: hub needs the name of a model, or its folder")
        if self.kind != "hub" and self.model:
            raise ValueError("model: only kind: hub has one")

    @property
    def least_seconds(self) -> float:
        """Shortest speech that has enough frames."""
        return 0.42 if self.kind == "hub" else 0.2


@dataclass(frozen=True)
class AugmentConfig:
    """Augmentation of a training crop. Probabilities per crop, signal-to-noise ratios in dB.

    Every speed makes a separate class of each speaker. Masks are at most so wide.
    """

    speeds: Annotated[tuple[Speed, ...], rule.Long()] = (0.9, 1.0, 1.1)
    noise_probability: rule.Share = 0.5
    noise_snr_db: Between = (0.0, 20.0)
    babble_probability: rule.Share = 0.3
    babble_snr_db: Between = (8.0, 20.0)
    equaliser_probability: rule.Share = 0.0
    equaliser_db: rule.NotNegative = 6.0
    drop: bool = False  # bands and stretches, as VoicePrivacy 2026
    time_masks: rule.SizeOrNone = 1
    time_mask_frames: rule.SizeOrNone = 15
    band_masks: rule.SizeOrNone = 1
    band_mask_bins: rule.SizeOrNone = 10

    def __post_init__(self) -> None:
        if any(round(speed, 2) != speed for speed in self.speeds):
            raise ValueError("speeds: whole hundredths are expected")


@dataclass(frozen=True)
class TrainingConfig(RampSettings):
    """Training of the encoder. Fractions are of all steps. The best network has the least EER.

    loss: aam is additive angular margin. precision: auto is bfloat16 where it is fast.
    """

    batch: rule.Count = 32
    crop_seconds: Crop = (2.0, 2.0)  # drawn once a step
    loss: Annotated[str, rule.OneOf("aam", "softmax")] = "aam"
    margin: rule.NotNegative = 0.2  # radian
    margin_ramp: rule.Share = 0.33  # the margin grows from 0 over this fraction
    scale: rule.Positive = 30.0
    optimiser: Annotated[str, rule.OneOf("adamw", "adam", "sgd")] = "adamw"
    learning_rate: rule.Positive = 1e-3
    final_rate: rule.NotNegative = 1e-5
    warm_up: rule.Share = 0.05
    half_cycle: rule.Natural = 0  # steps of a rise, and of a fall, again and again; 0: one of each
    weight_decay: rule.NotNegative = 1e-4
    momentum: rule.Share = 0.5  # sgd only
    precision: Annotated[str, rule.OneOf("float32", "bfloat16", "auto")] = "float32"
    valid_speakers: rule.Natural = 16
    minimum_seconds: rule.NotNegative = 0.5  # shorter training utterances are left out, counted


@dataclass(frozen=True)
class FineTuningConfig:
    """Differences from `training` for an encoder that starts from a trained one; parts of 1."""

    steps: rule.Part = 0.25
    learning_rate: rule.Part = 0.3


@dataclass(frozen=True)
class EncoderConfig:
    """All settings of one encoder."""

    encoder: Annotated[str, rule.OneOf(of=STRUCTURES)]
    network: NetworkConfig
    training: TrainingConfig
    features: FeatureConfig = field(default_factory=FeatureConfig)
    augmentation: AugmentConfig = field(default_factory=AugmentConfig)
    fine_tuning: FineTuningConfig = field(default_factory=FineTuningConfig)

    def __post_init__(self) -> None:
        network = self.network
        ecapa = self.encoder.startswith("ecapa")
        if ecapa and any(channels % RES2NET_SCALE for channels in network.channels[:-1]):
            raise ValueError(f"network.channels: not multiples of {RES2NET_SCALE}")
        if self.encoder == "ecapa_dual" and self.features.kind != "hub":
            raise ValueError("features.kind: encoder: ecapa_dual needs hub")
        if self.training.crop_seconds[0] < self.features.least_seconds:
            raise ValueError(
                f"training.crop_seconds: kind: hub needs {self.features.least_seconds:g} s"
            )


def fine_tuned(config: EncoderConfig) -> EncoderConfig:
    """Settings of a training that starts from a trained encoder."""
    training, part = config.training, config.fine_tuning
    steps = max(1, round(training.steps * part.steps))
    changed = dataclasses.replace(
        training, steps=steps, learning_rate=training.learning_rate * part.learning_rate
    )
    return dataclasses.replace(config, training=changed)
