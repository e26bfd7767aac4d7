# SPDX-License-Identifier: Apache-2.0
"""The recognisers, by name."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from steps.asr.language import Language, read_language
from steps.audio import FloatArray
from utils.cli import UserError

KNOWN = "pocketsphinx, ctc, hub:<model>"


class Recogniser(Protocol):
    """Says what was said. settings: all that its answers hang on, as JSON can hold it."""

    settings: Mapping[str, object]

    def recognise(self, utt: str, samples: FloatArray) -> str:
        """The words of a signal (n,) at 16 kHz; what was heard before must not matter."""


def check_name(name: str) -> None:
    """UserError for a recogniser that is not known; heavy packages are not loaded for it."""
    if name not in ("pocketsphinx", "ctc") and not (
        name.startswith("hub:") and len(name) > len("hub:")
    ):
        raise UserError(f"{name}: no recogniser; known: {KNOWN}")


def make_recogniser(
    name: str, lang: Path | None = None, device: str = "cpu", model: Path | None = None
) -> Recogniser:
    """`pocketsphinx` or `ctc`, with the language of a folder of make_lang.py, or `hub:<model>`.

    lang: None is the general language for pocketsphinx, and none at all for ctc, which then spells
    what it hears; a model of the hub has its own. model: folder of train_recogniser.py, for ctc
    only. device: of what is not pocketsphinx. UserError for what does not go together.
    """
    check_name(name)
    if (name == "ctc") != (model is not None):
        raise UserError(f"{name}: --model DIR is for ctc, which needs it")
    if name.startswith("hub:"):
        if lang is not None:
            raise UserError(f"{name}: has its own language; leave --lang out")
        from steps.asr.hub import HubRecogniser

        return HubRecogniser(name.removeprefix("hub:"), device)
    language = None if lang is None else read_language(lang)
    if model is not None:
        from steps.asr.ctc import CtcRecogniser

        return CtcRecogniser(model, language, device)
    from steps.asr.sphinx import PocketSphinx

    return PocketSphinx(Language("general") if language is None else language)
