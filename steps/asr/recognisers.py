# SPDX-License-Identifier: Apache-2.0
"""The recognisers, by name."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from steps.asr.heard import Heard
from steps.asr.language import Language, read_language
from utils.arrays import Float64
from utils.cli import UserError

NAMES = ("moonshine", "pocketsphinx", "ctc")
KNOWN = f"{', '.join(NAMES)}, hub:<model>"


class Recogniser(Protocol):
    """Says what was said. settings: all that its answers hang on, as JSON can hold it."""

    settings: Mapping[str, object]

    def recognise(self, utt: str, samples: Float64) -> str | Heard:
        """The words of a signal (n,) at 16 kHz; what was heard before must not matter."""


def check_name(name: str) -> None:
    """UserError for a recogniser that is not known; heavy packages are not loaded for it."""
    if name not in NAMES and not (name.startswith("hub:") and len(name) > len("hub:")):
        raise UserError(f"{name}: no recogniser; known: {KNOWN}")


def make_recogniser(
    name: str,
    lang: Path | None = None,
    device: str = "cpu",
    model: Path | None = None,
    search: Path | None = None,
) -> Recogniser:
    """`pocketsphinx` or `ctc`, with the language of a folder of make_lang.py, `moonshine`, or
    `hub:<model>`.

    lang: None is the general language for pocketsphinx, and none at all for ctc, which then spells
    what it hears; moonshine and a model of the hub have their own. model: folder of
    train_recogniser.py for ctc; for moonshine of another size or language. search: file of
    choose_search.py, for ctc with a language; None: as it was trained. device: of ctc and models of
    the hub. UserError for what does not go together.
    """
    check_name(name)
    if model is None if name == "ctc" else model is not None and name != "moonshine":
        raise UserError(f"{name}: --model DIR is for ctc, which needs it, and for moonshine")
    if name.startswith("hub:") or name == "moonshine":
        if lang is not None or search is not None:
            raise UserError(f"{name}: has its own language; leave --lang and --search out")
        if name == "moonshine":
            from steps.asr.moonshine import Moonshine

            return Moonshine(model)
        from steps.asr.hub import HubRecogniser

        return HubRecogniser(name.removeprefix("hub:"), device)
    language = None if lang is None else read_language(lang)
    if search is not None and (model is None or language is None):
        raise UserError(f"{name}: --search FILE is for ctc with --lang DIR")
    if model is not None:
        from steps.asr.choosing import read_search
        from steps.asr.ctc import CtcRecogniser

        return CtcRecogniser(
            model, language, device, None if search is None else read_search(search)
        )
    from steps.asr.sphinx import PocketSphinx

    return PocketSphinx(Language("general") if language is None else language)
