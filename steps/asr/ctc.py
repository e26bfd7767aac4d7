# SPDX-License-Identifier: Apache-2.0
"""CTC recogniser of steps/train_recogniser.py (Graves et al., ICML 2006)."""

import hashlib
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Self

import torch

from steps.asr.ctc_batches import compute_features
from steps.asr.ctc_config import CtcConfig
from steps.asr.ctc_search import WordSearch
from steps.asr.ctc_training import make_network, write_greedily
from steps.asr.ctc_units import Units
from steps.asr.language import Language, read_language
from steps.asr.recognisers import Asked
from steps.learning.devices import check_device
from steps.learning.settings import read_config
from steps.speaker.features import Features
from steps.weights import fill_network, load_state
from utils.arrays import Float64
from utils.cli import UserError
from utils.settings import read_settings


class CtcRecogniser:
    """Trained network with the words of a language; without one, it spells freely."""

    takes = ("lang", "model")

    @classmethod
    def make(cls, *, asked: Asked, device: str) -> Self:
        """See recognisers.Kind."""
        if asked.model is None:
            raise UserError("ctc: needs --model DIR, a folder of steps/train_recogniser.py")
        language = None if asked.lang is None else read_language(asked.lang)
        return cls(asked.model, language, device)

    def __init__(self, folder: Path, language: Language | None, device: str = "cpu") -> None:
        torch.set_num_threads(1)
        check_device(device)
        config, self.units = _read(folder)
        self._device = device
        self._features = Features(config.features)
        self._network = make_network(config, self.units)
        fill_network(self._network, load_state(folder / "final.pt"), folder / "final.pt")
        self._network.to(device).eval()
        self._search = None
        if language is not None:
            self._search = WordSearch(language, self.units, config.search)
        self.settings: Mapping[str, object] = {
            "recogniser": "ctc",
            "weights": hashlib.sha256((folder / "final.pt").read_bytes()).hexdigest()[:16],
            "language": None if language is None else language.kind,
            "language_digest": None if language is None else language.digest,
            "search": "greedy" if self._search is None else self._search.settings,
            "device": device,
            "torch": version("torch"),
        }

    @torch.inference_mode()
    def recognise(self, utt: str, samples: Float64) -> str:
        """Words of a signal (n,) at 16 kHz; none for digital silence."""
        if not samples.any():
            return ""
        if self._search is None:
            return write_greedily(self._network, self.units, self._input(utt, samples))
        return self._search(self._hear(utt, samples))

    def _hear(self, utt: str, samples: Float64) -> torch.Tensor:
        """Log probabilities (T, tokens) of a signal (n,) at 16 kHz."""
        features = self._input(utt, samples)
        n_frames = torch.tensor([features.shape[1]], device=self._device)
        found: torch.Tensor = self._network(features, n_frames)[0].float().cpu()
        return found

    def _input(self, utt: str, samples: Float64) -> torch.Tensor:
        found = compute_features(self._features, utt, samples)
        return torch.from_numpy(found)[None].to(self._device)


def _read(folder: Path) -> tuple[CtcConfig, Units]:
    """Settings and tokens of a trained recogniser."""
    path = folder / "recogniser.yaml"
    if not (folder / "final.pt").is_file():
        raise UserError(f"{folder}: holds no final.pt; train it with steps/train_recogniser.py")
    trained = read_settings(path).get("trained")
    tokens = trained.get("tokens") if isinstance(trained, dict) else None
    if not isinstance(tokens, list):
        raise UserError(f"{path}: trained.tokens: is missing; train it again")
    config = read_config(CtcConfig, path)
    return config, Units(config.units, tuple(map(str, tokens)))
