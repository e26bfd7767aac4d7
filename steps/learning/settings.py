# SPDX-License-Identifier: Apache-2.0
"""What every training has among its settings, under `training`."""

import dataclasses
import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, TypeVar

from utils.cli import UserError

T = TypeVar("T")
UNTOUCHED = ("log_every", "checkpoint_every", "keep_checkpoints")  # change no step and no result


@dataclass(frozen=True)
class LoopSettings:
    """steps: how many. log_every, valid_every, checkpoint_every: steps between lines of the log,
    validations, and checkpoints, of which the last keep_checkpoints stay. keep: the weights that
    are used in the end, final or best (of all validations). patience: validations in turn without
    a better one after which the training ends; 0: it never ends early.
    """

    steps: int
    log_every: int = 50
    valid_every: int = 250
    checkpoint_every: int = 250
    keep_checkpoints: int = 2
    keep: str = "final"
    patience: int = 0


def check_loop(loop: LoopSettings, path: object) -> None:
    """UserError, with the file and the name, for a value that is not possible."""
    for name in ("steps", "log_every", "valid_every", "checkpoint_every", "keep_checkpoints"):
        if getattr(loop, name) < 1:
            raise UserError(f"{path}: training.{name}: at least 1 is needed")
    if loop.keep not in ("final", "best"):
        raise UserError(f"{path}: training.keep: {loop.keep!r}; choose one of: final, best")
    if loop.patience < 0:
        raise UserError(f"{path}: training.patience: at least 0 is needed")


def with_steps(config: T, steps: int) -> T:
    """Settings with another number of training steps; UserError below 1."""
    if steps < 1:
        raise UserError(f"--steps {steps}: at least 1 is needed")
    training = dataclasses.replace(config.training, steps=steps)  # type: ignore[attr-defined]
    return dataclasses.replace(config, training=training)  # type: ignore[type-var]


def identity(settings: dict[str, Any], *parts: object, free: Collection[str] = UNTOUCHED) -> str:
    """Digest of what fixes a training: its settings but the `free` ones under `training`, and
    other plain values or bytes (seed, utterances with their lengths, x-vectors)."""
    training = {name: value for name, value in settings["training"].items() if name not in free}
    plain = json.dumps(
        [{**settings, "training": training}, *parts],
        sort_keys=True,
        default=lambda part: hashlib.sha256(part).hexdigest(),
    )
    return hashlib.sha256(plain.encode()).hexdigest()
