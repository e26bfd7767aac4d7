# SPDX-License-Identifier: Apache-2.0
"""Saved weights: the only place that reads them and puts them into networks."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from utils.cli import UserError
from utils.tables import StrPath, replacing


def load_state(path: Path) -> dict[str, Any]:
    """Read torch's tensors and plain values (no code is run); UserError for anything else.

    Of .safetensors, numbers of half precision become float32.
    """
    try:
        if path.suffix == ".safetensors":
            return {
                name: value.float() if value.dtype == torch.float16 else value
                for name, value in load_file(path).items()
            }
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds for a damaged file
        raise UserError(f"{path}: not readable as a saved model; train it again") from error
    if not isinstance(state, dict):
        raise UserError(f"{path}: holds no weights by name; train it again")
    return state


def saved_vector(weights: Mapping[str, Any], name: str, path: StrPath) -> torch.Tensor:
    """Vector (d,) among saved weights; UserError if it is absent, empty, or not finite."""
    vector = weights.get(name)
    if (
        not isinstance(vector, torch.Tensor)
        or vector.layout != torch.strided
        or (vector.ndim, vector.dtype) != (1, torch.float32)
        or not len(vector)
        or not torch.isfinite(vector).all()
    ):
        raise UserError(f"{path}: {name}: no vector of finite numbers; train it again")
    return vector


def fill_network(network: torch.nn.Module, weights: Mapping[str, Any], path: StrPath) -> None:
    """Put saved weights into a network.

    UserError if they belong to another network (other names, shapes or types), or are not finite.
    """
    own = network.state_dict()
    try:
        for name, value in own.items():
            if weights[name].dtype != value.dtype:
                raise TypeError(f"{name} is {weights[name].dtype}, not {value.dtype}")
            if value.is_floating_point() and not torch.isfinite(weights[name]).all():
                raise ValueError(f"{name} holds a value that is not finite")
        network.load_state_dict(dict(weights))
    except (RuntimeError, AttributeError, KeyError, TypeError, ValueError) as error:
        why = " ".join(str(error).split())[:200]
        raise UserError(
            f"{path}: does not hold the weights that the settings beside it describe ({why}); "
            "train it again"
        ) from error


def save_half(path: Path, state: Mapping[str, torch.Tensor]) -> None:
    """Write weights as .safetensors, float32 in half precision; ValueError where that is not enough
    for one."""
    halves = {
        name: value.half() if value.dtype == torch.float32 else value
        for name, value in state.items()
    }
    for name, value in halves.items():
        if value.is_floating_point() and not torch.isfinite(value).all():
            raise ValueError(f"{name} is too large for half precision")
    with replacing(path) as beside:
        save_file({name: value.contiguous() for name, value in halves.items()}, beside)
        beside.chmod(0o644)  # such files are readable for their owner alone
