# SPDX-License-Identifier: Apache-2.0
"""SpeechBrain recognisers of words: of the Hugging Face hub, or in a folder.

Such as `speechbrain/asr-wav2vec2-librispeech`. Loading a model runs what its hyperparams.yaml
names: only load models that you trust.
"""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import numpy as np
import torch

from utils.arrays import Float64
from utils.cli import UserError


class HubRecogniser:
    """A model that SpeechBrain reads as EncoderASR (CTC) or as EncoderDecoderASR."""

    def __init__(self, source: str, device: str = "cpu") -> None:
        torch.set_num_threads(1)
        if device == "cuda" and not torch.cuda.is_available():
            raise UserError("--device cuda: there is no CUDA device; take --device cpu")
        try:
            self._model = _load(source, device)
            self._model.eval()
        except Exception as error:  # of many kinds: network, files, YAML, what the YAML runs
            reason = " ".join(str(error).split())[:200]
            raise UserError(
                f"hub:{source}: cannot be loaded ({type(error).__name__}: {reason}); it needs a "
                "network, an earlier download, or a folder with hyperparams.yaml"
            ) from error
        self.settings: Mapping[str, object] = {
            "recogniser": f"hub:{source}",
            "interface": type(self._model).__name__,
            "speechbrain": version("speechbrain"),
        }

    @torch.inference_mode()
    def recognise(self, utt: str, samples: Float64) -> str:
        """The words of a signal (n,) at 16 kHz, full scale 1."""
        wave = torch.from_numpy(np.asarray(samples, dtype=np.float32))[None]
        try:
            words, _ = self._model.transcribe_batch(wave, torch.ones(1))
        except (RuntimeError, IndexError) as error:  # fewer samples than its layers take
            reason = " ".join(str(error).split())[:200]
            raise UserError(f"{utt}: {len(samples)} samples: the model fails: {reason}") from error
        return str(words[0])


def _load(source: str, device: str) -> Any:
    from speechbrain.inference.ASR import EncoderASR, EncoderDecoderASR
    from speechbrain.utils.fetching import LocalStrategy

    how: dict[str, Any] = {
        "source": source,
        "savedir": None,  # the hub's own cache; nothing is written beside a local model
        "local_strategy": LocalStrategy.NO_LINK,
        "run_opts": {"device": device},
    }
    try:
        return EncoderASR.from_hparams(**how)
    except ValueError as error:
        if str(error) != "Need hparams['decoding_function']":
            raise
    model = EncoderDecoderASR.from_hparams(**how)
    if "encoder" not in model.mods or "decoder" not in model.mods:
        raise ValueError("neither an encoder with a decoding_function, nor encoder and decoder")
    return model
