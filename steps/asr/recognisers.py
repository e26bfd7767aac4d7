# SPDX-License-Identifier: Apache-2.0
"""The recognisers, by name."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from steps.asr.language import Language, read_language
from steps.audio import FloatArray
from utils.cli import UserError

KNOWN = "pocketsphinx"


class Recogniser(Protocol):
    """Says what was said. settings: all that its answers hang on, as JSON can hold it."""

    settings: Mapping[str, object]

    def recognise(self, utt: str, samples: FloatArray) -> str:
        """The words of a signal (n,) at 16 kHz; what was heard before must not matter."""


def check_name(name: str) -> None:
    """UserError for a recogniser that is not known; heavy packages are not loaded for it."""
    if name != "pocketsphinx":
        raise UserError(f"{name}: no recogniser; known: {KNOWN}")


def make_recogniser(name: str, lang: Path | None) -> Recogniser:
    """`pocketsphinx`, with the language of a folder of make_lang.py, else the general one."""
    check_name(name)
    from steps.asr.sphinx import PocketSphinx

    return PocketSphinx(Language("general") if lang is None else read_language(lang))
