# SPDX-License-Identifier: Apache-2.0
"""Settings of the neural source-filter (conf/synthesisers/*.yaml) as checked values."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from steps.learning.settings import LoopSettings, check_loop
from steps.synthesis.world import CODE_DIM
from utils.cli import UserError
from utils.settings import check_sizes, parse_settings, read_settings
from utils.tables import StrPath

if TYPE_CHECKING:
    pass

T = TypeVar("T")


@dataclass(frozen=True)
class NetworkConfig:
    """Layers. bottleneck: values a frame that the content is squeezed into, each of `levels`
    levels (odd); 0: none. bands: of the filters, over a mel axis."""

    channels: int = 192
    kernel: int = 5
    dilations: tuple[int, ...] = (1, 2, 4, 1, 2)
    condition: int = 64
    bands: int = 80
    noise_bands: int = 40
    bottleneck: int = 0
    levels: int = 5
    encoder_channels: int = 128


@dataclass(frozen=True)
class AugmentConfig:
    """What keeps the network from finding the speaker in the content.

    scale, bend: see content.draw_warp. xvector_noise: standard deviation, in units of the spread
    over speakers. adversary: weight of a second network that looks for the speaker in what passes
    the bottleneck, and whose success is to be avoided; it grows from 0 over the first fifth.
    """

    scale: float = 0.12
    bend: float = 0.06
    xvector_noise: float = 0.3
    adversary: float = 0.0


@dataclass(frozen=True)
class TrainingConfig(LoopSettings):
    """How it is trained. Fractions are of all steps. Best is what is nearest in log mels."""

    valid_every: int = 500
    batch: int = 8  # crops a step
    crop_seconds: float = 2.0
    learning_rate: float = 2e-3
    final_rate: float = 1e-4
    warm_up: float = 0.03
    weight_decay: float = 1e-2
    gradient_norm: float = 5.0
    mel_weight: float = 1.0
    valid_speakers: int = 8
    cache_gb: float = 1.0  # decoded audio up to this size is held in memory


@dataclass(frozen=True)
class NsfConfig:
    """All settings. cepstra: of the content features."""

    synthesiser: str
    training: TrainingConfig
    cepstra: int = 20
    network: NetworkConfig = field(default_factory=NetworkConfig)
    augmentation: AugmentConfig = field(default_factory=AugmentConfig)


def parse_config(kind: type[T], path: StrPath) -> T:
    """The settings in a file without what a training adds (`trained`); values are unchecked."""
    data = read_settings(path)
    data.pop("trained", None)
    return parse_settings(kind, data, path)


def read_config(path: StrPath) -> NsfConfig:
    """The settings in a file, checked; `trained` (written by the training) is passed over."""
    config = parse_config(NsfConfig, path)
    if config.synthesiser != "nsf":
        raise UserError(
            f"{path}: synthesiser: {config.synthesiser!r}; only nsf and b1b are trained"
        )
    _check_network(config, path)
    _check_training(config, path)
    return config


def _check_network(config: NsfConfig, path: StrPath) -> None:
    network = config.network
    if not 1 <= config.cepstra < CODE_DIM:
        raise UserError(f"{path}: cepstra: {config.cepstra}; 1 to {CODE_DIM - 1} are possible")
    check_sizes(network, path, "network", may_be_0=("bottleneck",))
    if min(network.bands, network.noise_bands) < 2:
        raise UserError(f"{path}: network.bands and noise_bands: at least 2 are needed")
    if network.kernel % 2 == 0:
        raise UserError(f"{path}: network.kernel: {network.kernel}; an odd number is needed")
    if network.levels < 3 or network.levels % 2 == 0:
        raise UserError(f"{path}: network.levels: an odd number of levels is needed, 3 at least")


def _check_training(config: NsfConfig, path: StrPath) -> None:
    training, augment = config.training, config.augmentation
    check_loop(training, path)
    if training.batch < 1:
        raise UserError(f"{path}: training.batch: at least 1 is needed")
    if not 0.2 <= training.crop_seconds <= 30:
        raise UserError(f"{path}: training.crop_seconds: 0.2 to 30 s are possible")
    for name, largest in (
        ("scale", 0.5),
        ("bend", 0.5),
        ("xvector_noise", 10.0),
        ("adversary", 10.0),
    ):
        if not 0 <= getattr(augment, name) <= largest:
            raise UserError(f"{path}: augmentation.{name}: 0 to {largest:g} is possible")
    if augment.adversary and not config.network.bottleneck:
        raise UserError(f"{path}: augmentation.adversary: needs a network.bottleneck to act on")
