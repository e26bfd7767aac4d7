# SPDX-License-Identifier: Apache-2.0
"""Folders of steps/train_synthesiser.py, and what all synthesisers in them do alike."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from steps.synthesis.base import Synthesiser
from utils.cli import UserError
from utils.settings import read_settings
from utils.tables import StrPath

FloatArray = npt.NDArray[np.float64]
Float32 = npt.NDArray[np.float32]
Network = TypeVar("Network", bound=nn.Module)

_LARGEST_PEAK = 0.99


def load_synthesiser(folder: StrPath) -> Synthesiser:
    """Of whatever structure its synthesiser.yaml names; UserError where it is not such a folder."""
    settings, _ = trained_files(Path(folder))
    if read_settings(settings).get("synthesiser") == "b1b":
        from steps.synthesis.b1b import B1bSynthesiser

        return B1bSynthesiser.load(folder)
    from steps.synthesis.nsf import NsfSynthesiser

    return NsfSynthesiser.load(folder)


def trained_files(folder: Path) -> tuple[Path, Path]:
    """synthesiser.yaml and final.pt of a folder; UserError where one is missing."""
    for part in ("synthesiser.yaml", "final.pt"):
        if not (folder / part).is_file():
            raise UserError(
                f"{folder}: no {part} there; a synthesiser is a folder that "
                "steps/train_synthesiser.py finished"
            )
    return folder / "synthesiser.yaml", folder / "final.pt"


def load_weights(path: Path, make: Callable[[dict[str, Tensor]], Network]) -> Network:
    """The network that `make` makes to fit saved weights, with them; else UserError."""
    try:  # not by steps.speaker, which loads SpeechBrain and takes seconds
        state = torch.load(path, map_location="cpu", weights_only=True)
        network = make(state)
        network.load_state_dict(state)
    except Exception as error:  # torch raises many kinds for a damaged file
        raise UserError(
            f"{path}: not the weights that synthesiser.yaml describes; train it again"
        ) from error
    return network


def unit_length(xvectors: npt.NDArray[np.floating]) -> Float32:
    """x-vectors (..., d) scaled to length 1."""
    length = np.linalg.norm(xvectors, axis=-1, keepdims=True)
    unit: Float32 = (xvectors / np.maximum(length, 1e-12)).astype(np.float32)
    return unit


def speaker_input(xvector: FloatArray, wanted: int, where: StrPath) -> Tensor:
    """A target's x-vector of length 1, (1, wanted); UserError for another size, or none at all."""
    if xvector.shape != (wanted,):
        raise UserError(
            f"{where}: trained with x-vectors of {wanted} dimensions, and the target has "
            f"{xvector.size}; use the encoder that it was trained with"
        )
    if not np.linalg.norm(xvector) > 0 or not np.isfinite(xvector).all():
        raise UserError(f"{where}: the target's x-vector is 0 or not finite")
    return torch.from_numpy(unit_length(xvector[None]))


def limit_peak(signal: FloatArray, where: StrPath) -> FloatArray:
    """A signal (n,), softer where a peak would pass 0.99; UserError where it is not finite."""
    peak = float(np.max(np.abs(signal)))
    if not np.isfinite(peak):
        raise UserError(f"{where}: the converted signal is not finite")
    return signal * (_LARGEST_PEAK / peak) if peak > _LARGEST_PEAK else signal
