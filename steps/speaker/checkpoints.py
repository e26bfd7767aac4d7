# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of a training: written atomically, the last few kept, never of another training."""

import io
from pathlib import Path
from typing import Any

import torch

from steps.weights import load_state
from utils.cli import UserError
from utils.tables import atomic_write


def save_atomically(path: Path, state: object) -> None:
    """torch.save beside `path`, then rename."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    with atomic_write(path, "wb") as stream:
        stream.write(buffer.getbuffer())


class Checkpoints:
    """step-<number>.pt in a folder; `identity` says which training they belong to."""

    def __init__(self, folder: Path, identity: str, keep: int) -> None:
        self.folder = folder
        self.identity = identity
        self.keep = keep

    def _steps(self) -> list[Path]:
        return sorted(self.folder.glob("step-*.pt"))

    def save(self, step: int, state: dict[str, Any]) -> None:
        """Write one, then remove the oldest beyond `keep`."""
        save_atomically(self.folder / f"step-{step:08d}.pt", {**state, "identity": self.identity})
        for old in self._steps()[: -self.keep]:
            old.unlink()

    def load_last(self) -> dict[str, Any] | None:
        """The state of the last one, None without one; UserError when it is another run's."""
        if not (paths := self._steps()):
            return None
        state = load_state(paths[-1])
        if state.get("identity") != self.identity:
            raise UserError(
                f"{paths[-1]}: of a training with other settings, seed or data; remove "
                f"{self.folder} to begin anew"
            )
        return state
