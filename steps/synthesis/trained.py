# SPDX-License-Identifier: Apache-2.0
"""Folders of steps/train_synthesiser.py, and the common part of all synthesisers in them."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from steps.synthesis.base import F0Map, Target
from steps.synthesis.content import Content, analyse_content, extract_content
from steps.weights import fill_network, load_state
from utils.arrays import Float32, Float64
from utils.cli import UserError
from utils.tables import StrPath

Network = TypeVar("Network", bound=nn.Module)

FULL_LEVEL = 0.05  # amplitude for the mean log power of speech, in training and after
_LARGEST_PEAK = 0.99


def trained_files(folder: Path) -> tuple[Path, Path]:
    """synthesiser.yaml and the weights (final.pt, or final.safetensors of a model that is handed
    on) of a folder; UserError where one is missing."""
    packed = folder / "final.safetensors"
    weights = packed if packed.is_file() else folder / "final.pt"
    for path in (folder / "synthesiser.yaml", weights):
        if not path.is_file():
            raise UserError(
                f"{folder}: no {path.name} there; a synthesiser is a folder that "
                "steps/train_synthesiser.py finished"
            )
    return folder / "synthesiser.yaml", weights


def load_weights(path: Path, make: Callable[[dict[str, Tensor]], Network]) -> Network:
    """Network from `make` with saved weights loaded; UserError where they do not fit."""
    try:
        state = load_state(path)
        network = make(state)
        fill_network(network, state, path)
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


def speaker_input(xvector: Float64, wanted: int, where: StrPath) -> Tensor:
    """A target's x-vector of length 1, (1, wanted); UserError for another size, or none at all."""
    if xvector.shape != (wanted,):
        raise UserError(
            f"{where}: trained with x-vectors of {wanted} dimensions, and the target has "
            f"{xvector.size}; use the encoder that it was trained with"
        )
    if not np.linalg.norm(xvector) > 0 or not np.isfinite(xvector).all():
        raise UserError(f"{where}: the target's x-vector is 0 or not finite")
    return torch.from_numpy(unit_length(xvector[None]))


def limit_peak(signal: Float64, where: StrPath) -> Float64:
    """Signal (n,), softer where a peak would pass 0.99; UserError where it is not finite."""
    peak = float(np.max(np.abs(signal)))
    if not np.isfinite(peak):
        raise UserError(f"{where}: the converted signal is not finite")
    return signal * (_LARGEST_PEAK / peak) if peak > _LARGEST_PEAK else signal


class SynthesiserConfig(Protocol):
    """Common part of the settings of all structures; cepstra: of the content."""

    @property
    def cepstra(self) -> int:
        """Number of cepstra beside the energy."""
        ...


Config = TypeVar("Config", bound=SynthesiserConfig)


class TrainedSynthesiser(ABC, Generic[Config, Network]):
    """Synthesiser of a trained network; see `base.Synthesiser`. Open it with `load`.

    The network has `n_xvector`, the dimensions of the x-vectors that it was trained with.
    """

    needs = ("synthesiser",)

    def __init__(self, config: Config, network: Network, where: StrPath = "synthesiser") -> None:
        """where: the folder, for messages."""
        torch.set_num_threads(1)
        self.config = config
        self.network = network.eval()
        self._where = where

    @classmethod
    def load(cls, folder: StrPath) -> Self:
        """Open a folder of steps/train_synthesiser.py; UserError where it is not one."""
        settings, weights = trained_files(Path(folder))
        config = cls.read(settings)
        return cls(config, load_weights(weights, lambda state: cls.make(config, state)), folder)

    @staticmethod
    @abstractmethod
    def read(path: StrPath) -> Any:
        """Settings (Config) of a synthesiser.yaml."""

    @staticmethod
    @abstractmethod
    def make(config: Any, state: dict[str, Tensor]) -> Any:
        """Network of the sizes of saved weights."""

    @abstractmethod
    def say(
        self, content: Content, f0: Float64, unit: Tensor, n_samples: int, seed: str
    ) -> Float64:
        """Speech (n_samples,) from content and F0 (T,), at FULL_LEVEL. unit: x-vector (1, d)."""

    def convert(self, wave: Float64, target: Target, f0: F0Map) -> Float64:
        """See Synthesiser. Randomness is seeded by the samples.

        Only the target's x-vector and warp count; UserError where its length is not that of
        training. Where a peak would pass 0.99 the whole is made softer.
        """
        n_xvector: Any = self.network.n_xvector
        unit = speaker_input(target.xvector, n_xvector, self._where)
        contour, envelope = analyse_content(wave)
        content = extract_content(envelope, self.config.cepstra, target.warp)
        if not content.has_speech:
            return np.zeros(len(wave))
        seed = hashlib.sha256(np.ascontiguousarray(wave, dtype=np.float64).tobytes()).hexdigest()
        out = self.say(content, f0(contour), unit, len(wave), seed)
        return limit_peak(out * (np.exp(content.level / 2) / FULL_LEVEL), self._where)
