"""Recognisers of words of the Hugging Face hub: Whisper, and those that SpeechBrain reads."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import numpy as np
import torch

from steps.asr.recognisers import Recogniser
from steps.audio import SAMPLE_RATE
from steps.training import weights
from utils.arrays import Float64
from utils.cli import UserError

# ---- Whisper, of the Hugging Face hub or in a folder, in the form of transformers.
#
# It writes in the given language, or guesses one. Decoding is greedy, so that the same speech gives
# the same words.

WINDOW = 30  # seconds that it takes at once


class Whisper:
    """Recogniser of many languages, or of English alone (openai/whisper-tiny.en, ...)."""

    def __init__(self, source: str, language: str | None, device: str = "cpu") -> None:
        weights.use_device(device)
        self._processor = weights.load_transformer(source, "WhisperProcessor")
        self._model = weights.load_transformer(source, "WhisperForConditionalGeneration").to(device)
        self._device, made = device, self._model.generation_config
        self._told: dict[str, Any] = {}
        if getattr(made, "is_multilingual", True):
            self._told = {"task": "transcribe"} | ({"language": language} if language else {})
            known = {token.strip("<|>") for token in getattr(made, "lang_to_id", {})}
            if language and language not in known:
                raise UserError(
                    f"hub:{source}: --language {language}: the model knows "
                    f"{' '.join(sorted(known)) or 'no language by name'}"
                )
        elif language not in (None, "en"):
            raise UserError(f"hub:{source}: --language {language}: the model knows English alone")
        self.settings: Mapping[str, object] = {
            "recogniser": f"hub:{source}",
            "interface": "Whisper",
            "language": language or "as the model guesses",
            "transformers": version("transformers"),
        }

    @torch.inference_mode()
    def recognise(self, utt: str, samples: Float64) -> str:
        """Words of a signal (n,) at 16 kHz, full scale 1."""
        long = len(samples) > WINDOW * SAMPLE_RATE
        how: dict[str, Any] = {"truncation": False, "padding": "longest"} if long else {}
        heard = self._processor(
            np.asarray(samples, np.float32), sampling_rate=SAMPLE_RATE, return_tensors="pt",
            return_attention_mask=True, **how,
        ).to(self._device)  # fmt: skip
        tokens = self._model.generate(
            **heard, **self._told, do_sample=False, num_beams=1, return_timestamps=long
        )
        said: list[str] = self._processor.batch_decode(tokens, skip_special_tokens=True)
        return " ".join(said[0].split())


# ---- Recognisers of words of the hub: Whisper, and those of SpeechBrain, such as
# `speechbrain/asr-wav2vec2-librispeech`.


def load_recogniser(source: str, language: str | None = None, device: str = "cpu") -> Recogniser:
    """Make Whisper from such a model, and SpeechBrain's recogniser from any other."""
    if getattr(weights.transformer_config(source), "model_type", "") == "whisper":
        return Whisper(source, language, device)
    if language is not None:
        raise UserError(f"hub:{source}: takes no --language, only Whisper does; leave it out")
    return HubRecogniser(source, device)


class HubRecogniser:
    """Model that SpeechBrain reads as EncoderASR (CTC) or as EncoderDecoderASR."""

    def __init__(self, source: str, device: str = "cpu") -> None:
        self._model = weights.load_hub_model(source, device, _load)
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
