"""Settings of every training, under `training`."""

import dataclasses
import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from utils import settings as rule
from utils.cli import UserError
from utils.settings import parse_settings, read_settings
from utils.tables import StrPath

T = TypeVar("T")
UNTOUCHED = ("log_every", "checkpoint_every", "keep_checkpoints")  # change no step and no result


@dataclass(frozen=True)
class LoopSettings:
    """steps: their number. log_every, valid_every, checkpoint_every: steps between lines of the
    log, validations, and checkpoints, of which the last keep_checkpoints stay. keep: the weights to
    use in the end, final or best (of all validations). patience: validations in a row without a
    better one after which the training ends; 0: it never ends early."""

    steps: rule.Count
    log_every: rule.Count = 50
    valid_every: rule.Count = 250
    checkpoint_every: rule.Count = 250
    keep_checkpoints: rule.Count = 2
    keep: Annotated[str, rule.OneOf("final", "best")] = "final"
    patience: rule.Natural = 0


CropSeconds = Annotated[float, rule.Number(least=0.2, most=30, unit="s")]


@dataclass(frozen=True)
class RampSettings(LoopSettings):
    """Settings of a training on speech. batch: crops, or utterances, a step. learning_rate: to
    which the rate rises over the share warm_up of all steps; it falls then. valid_speakers: held
    out. cache_gb: decoded audio up to this size is held in memory. gradient_norm: longer gradients
    are clipped to it."""

    batch: rule.Count = 8
    learning_rate: rule.Positive = 2e-3
    valid_speakers: rule.Natural = 8
    cache_gb: rule.NotNegative = 1.0
    warm_up: rule.Share = 0.03
    weight_decay: rule.NotNegative = 1e-2
    gradient_norm: rule.Positive = 5.0


def read_config(kind: type[T], path: StrPath) -> T:
    """Settings in a file of conf/, or in that of a finished training, whose `trained` is ignored.
    UserError names the fault."""
    data = read_settings(path)
    trained = data.pop("trained", None)
    try:
        return parse_settings(kind, data, path)
    except UserError as error:
        if trained is None:
            raise
        raise UserError(f"{error}; if an older version trained it, train it again") from error


def with_steps(config: T, steps: int) -> T:
    """Settings with another number of training steps."""
    training = dataclasses.replace(config.training, steps=steps)  # type: ignore[attr-defined]
    return dataclasses.replace(config, training=training)  # type: ignore[type-var]


def identity(settings: dict[str, Any], *parts: object, free: Collection[str] = UNTOUCHED) -> str:
    """Digest of all that determines a training: its settings but the `free` ones under `training`,
    and other plain values or bytes (seed, utterances with their lengths, x-vectors)."""
    training = {name: value for name, value in settings["training"].items() if name not in free}
    plain = json.dumps(
        [{**settings, "training": training}, *parts],
        sort_keys=True,
        default=lambda part: hashlib.sha256(part).hexdigest(),
    )
    return hashlib.sha256(plain.encode()).hexdigest()
