# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of a training: written atomically, the last few kept, never of another training."""

import io
from pathlib import Path
from typing import Any

import torch

from steps.weights import load_state
from utils.cli import UserError
from utils.tables import atomic_write

FORMAT = 2  # of the state; before the trainings had one loop, each had a format of its own


def save_atomically(path: Path, state: object) -> None:
    """Save by torch.save beside `path`, then rename."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    with atomic_write(path, "wb") as stream:
        stream.write(buffer.getbuffer())


class Checkpoints:
    """Files step-<number>.pt in a folder; `identity` says to which training they belong."""

    def __init__(self, folder: Path, identity: str, keep: int) -> None:
        self.folder = folder
        self.identity = identity
        self.keep = keep

    def _steps(self) -> list[Path]:
        return sorted(self.folder.glob("step-*.pt"))

    def save(self, step: int, state: dict[str, Any]) -> None:
        """Write one, then remove the oldest beyond `keep`."""
        known = {"identity": self.identity, "format": FORMAT}
        save_atomically(self.folder / f"step-{step:08d}.pt", {**state, **known})
        for old in self._steps()[: -self.keep]:
            old.unlink()

    def load_last(self) -> dict[str, Any] | None:
        """State of the last one, None without one; UserError when it belongs to another run."""
        if not (paths := self._steps()):
            return None
        state = load_state(paths[-1])
        why = ""
        if state.get("format") != FORMAT:
            why = "written by another version of this program"
        elif state.get("identity") != self.identity:
            why = "of a training with other settings, seed or data"
        if why:
            raise UserError(f"{paths[-1]}: {why}; remove {self.folder} to begin anew")
        return state
