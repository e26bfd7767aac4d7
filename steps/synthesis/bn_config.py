# SPDX-License-Identifier: Apache-2.0
"""Settings of the synthesiser on a recogniser's content (conf/synthesisers/bn_*.yaml)."""

from dataclasses import dataclass, field

from steps.learning.settings import LoopSettings, check_loop
from utils.cli import UserError
from utils.settings import parse_settings, read_settings
from utils.tables import StrPath


@dataclass(frozen=True)
class BnNetwork:
    """Gated dilated convolutions. condition: values that the x-vector is made."""

    channels: int = 192
    kernel: int = 3
    dilations: tuple[int, ...] = (1, 2, 4, 8, 1, 2)
    condition: int = 64


@dataclass(frozen=True)
class BnAugmentation:
    """What keeps the network from finding the speaker anywhere but in the x-vector.

    warped: share of crops whose content is that of another vocal tract and pitch (scale, bend: see
    content.draw_warp; pitch: largest change of log F0). content_noise: in deviations of a value.
    xvector_noise: of an x-vector of length 1, a value. no_energy: share of crops whose energy the
    network is not given.
    """

    warped: float = 0.5
    scale: float = 0.15
    bend: float = 0.08
    pitch: float = 0.35
    content_noise: float = 0.2
    xvector_noise: float = 0.02
    no_energy: float = 0.5


@dataclass(frozen=True)
class BnTraining(LoopSettings):
    """How it is trained. Fractions are of all steps; rates of AdamW."""

    batch: int = 10
    crop_seconds: float = 1.6
    learning_rate: float = 2e-3
    final_rate: float = 6e-5
    warm_up: float = 0.04
    weight_decay: float = 1e-2
    gradient_norm: float = 1.0
    valid_speakers: int = 8
    cache_gb: float = 1.0


@dataclass(frozen=True)
class BnConfig:
    """All settings. content: a name of steps/content/extractors.py."""

    synthesiser: str
    training: BnTraining
    content: str = "moonshine"
    network: BnNetwork = field(default_factory=BnNetwork)
    augmentation: BnAugmentation = field(default_factory=BnAugmentation)


def read_bn_config(path: StrPath) -> BnConfig:
    """The settings of a file, checked; UserError names what is wrong. What a training adds
    (`trained`) is passed over."""
    data = read_settings(path)
    data.pop("trained", None)
    config = parse_settings(BnConfig, data, path)
    network, augment, training = config.network, config.augmentation, config.training
    check_loop(training, path)
    for name, value in (
        ("network.channels", network.channels),
        ("network.condition", network.condition),
        ("training.batch", training.batch),
    ):
        if not 1 <= value <= 4096:
            raise UserError(f"{path}: {name}: {value}; 1 to 4096 are possible")
    if network.kernel < 1 or network.kernel % 2 == 0:
        raise UserError(f"{path}: network.kernel: {network.kernel}; an odd number is needed")
    if not network.dilations or not all(1 <= d <= 64 for d in network.dilations):
        raise UserError(f"{path}: network.dilations: numbers from 1 to 64, one a layer, are needed")
    for name in ("warped", "no_energy"):
        if not 0 <= getattr(augment, name) <= 1:
            raise UserError(f"{path}: augmentation.{name}: a share from 0 to 1 is needed")
    for name in ("scale", "bend", "pitch", "content_noise", "xvector_noise"):
        if not 0 <= getattr(augment, name) <= 2:
            raise UserError(f"{path}: augmentation.{name}: a number from 0 to 2 is needed")
    if not 0.2 <= training.crop_seconds <= 30:
        raise UserError(f"{path}: training.crop_seconds: 0.2 to 30 are possible")
    if not 0 < training.final_rate <= training.learning_rate:
        raise UserError(f"{path}: training.final_rate: above 0, and at most learning_rate")
    return config
