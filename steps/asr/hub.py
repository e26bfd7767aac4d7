# SPDX-License-Identifier: Apache-2.0
"""Recognisers of words of the hub: Whisper, and those of SpeechBrain, such as
`speechbrain/asr-wav2vec2-librispeech`."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import numpy as np
import torch

from steps.asr.recognisers import Asked, Recogniser
from steps.asr.whisper import Whisper
from steps.learning.hub import load_hub_model, transformer_config
from utils.arrays import Float64
from utils.cli import UserError


class OfHub:
    """Make Whisper from such a model, and SpeechBrain's recogniser from any other."""

    takes = ("language",)

    @classmethod
    def make(cls, source: str, *, asked: Asked, device: str) -> Recogniser:
        """See recognisers.Kind."""
        if getattr(transformer_config(source), "model_type", "") == "whisper":
            return Whisper(source, asked.language, device)
        if asked.language is not None:
            raise UserError(f"hub:{source}: takes no --language, only Whisper does; leave it out")
        return HubRecogniser(source, device)


class HubRecogniser:
    """Model that SpeechBrain reads as EncoderASR (CTC) or as EncoderDecoderASR."""

    def __init__(self, source: str, device: str = "cpu") -> None:
        self._model = load_hub_model(source, device, _load)
        self.settings: Mapping[str, object] = {
            "recogniser": f"hub:{source}",
            "interface": type(self._model).__name__,
            "speechbrain": version("speechbrain"),
        }

    @torch.inference_mode()
    def recognise(self, utt: str, samples: Float64) -> str:
        """Words of a signal (n,) at 16 kHz, full scale 1."""
        wave = torch.from_numpy(np.asarray(samples, dtype=np.float32))[None]
        try:
            words, _ = self._model.transcribe_batch(wave, torch.ones(1))
        except (RuntimeError, IndexError) as error:  # fewer samples than its layers need
            reason = " ".join(str(error).split())[:200]
            raise UserError(f"{utt}: {len(samples)} samples: the model fails: {reason}") from error
        return str(words[0])


def _load(how: dict[str, Any]) -> Any:
    from speechbrain.inference.ASR import EncoderASR, EncoderDecoderASR

    try:
        return EncoderASR.from_hparams(**how)
    except ValueError as error:
        if str(error) != "Need hparams['decoding_function']":
            raise
    model = EncoderDecoderASR.from_hparams(**how)
    if "encoder" not in model.mods or "decoder" not in model.mods:
        raise ValueError("neither an encoder with a decoding_function, nor encoder and decoder")
    return model
