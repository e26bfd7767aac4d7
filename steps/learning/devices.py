# SPDX-License-Identifier: Apache-2.0
"""Devices and number formats of networks."""

import torch

from utils.cli import UserError


def check_device(device: str) -> None:
    """Raise a UserError for `cuda` if there is none."""
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda: no CUDA device is visible here; use --device cpu")


def choose_precision(wanted: str, device: str) -> str:
    """float32 or bfloat16; `auto` takes bfloat16 if the processor has instructions for it.

    Elsewhere it is emulated, many times slower than float32.
    """
    if wanted != "auto":
        return wanted
    if device == "cuda":
        fast = torch.cuda.is_bf16_supported()
    else:
        fast = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return "bfloat16" if fast else "float32"
