# SPDX-License-Identifier: Apache-2.0
"""PocketSphinx (Huggins-Daines et al., ICASSP 2006) with the English model of its wheel."""

import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Self

import numpy as np
import pocketsphinx

from steps.asr.language import GRAMMAR, LEXICON, LM, Language, read_language
from steps.asr.recognisers import Asked
from steps.asr.signal import DITHER, LEVEL, PADDING, condition
from utils.arrays import Float64
from utils.cli import UserError

# Protected speech fits the model badly: paths to the end must not be pruned. A second pass through
# a grammar's lattice finds no end if there are many paths, so there is one pass there.
WIDE = {"beam": 1e-80, "pbeam": 1e-80, "wbeam": 1e-60}


class PocketSphinx:
    """Markov models of English phones, and a trigram, a corpus's own model or a grammar."""

    takes = ("lang",)

    @classmethod
    def make(cls, *, asked: Asked, device: str) -> Self:  # noqa: ARG003
        """See recognisers.Kind; without a language the general one."""
        return cls(Language("general") if asked.lang is None else read_language(asked.lang))

    def __init__(self, language: Language) -> None:
        pocketsphinx.set_loglevel("FATAL")
        self.settings: Mapping[str, object] = {
            "recogniser": "pocketsphinx",
            "version": version("pocketsphinx"),
            "language": language.kind,
            "language_digest": language.digest,
            "level": LEVEL,
            "dither": DITHER,
            "padding_seconds": PADDING,
            "search": _search(language),
        }
        self._decoder = make_decoder(language)

    def recognise(self, utt: str, samples: Float64) -> str:
        """Words of a signal (n,) at 16 kHz; none for digital silence."""
        heard = condition(utt, samples)
        if heard is None:
            return ""
        pcm = np.clip(np.rint(heard * 32767), -32768, 32767).astype("<i2")
        self._decoder.reinit_feat()  # else the result depends on the utterance before
        self._decoder.start_utt()
        self._decoder.process_raw(pcm.tobytes(), full_utt=True)  # so the mean is of all of it
        self._decoder.end_utt()
        found = self._decoder.hyp()
        return "" if found is None else str(found.hypstr)


def _search(language: Language) -> dict[str, object]:
    """Options of the search; the general language has too many words for wide beams."""
    if language.kind == "general":
        return {}
    return {**WIDE, "bestpath": language.grammar is None}


def make_decoder(language: Language, **more: object) -> pocketsphinx.Decoder:
    """Decoder of a language. more: options of PocketSphinx. UserError where it refuses it."""
    model = pocketsphinx.get_model_path
    options: dict[str, object] = {
        "hmm": model("en-us/en-us"),
        "cmn": "batch",
        **_search(language),
        **more,
    }
    with tempfile.TemporaryDirectory() as folder:
        paths = {}
        for name, text in (
            (LM, language.lm),
            (GRAMMAR, language.grammar),
            (LEXICON, language.lexicon),
        ):
            if text is not None:
                paths[name] = str(Path(folder) / name)
                Path(paths[name]).write_text(text, encoding="utf-8")
        options["dict"] = paths.get(LEXICON) or model("en-us/cmudict-en-us.dict")
        options["lm"] = paths.get(LM)
        if language.kind == "general":
            options["lm"] = model("en-us/en-us.lm.bin")
        if GRAMMAR in paths:
            options["jsgf"] = paths[GRAMMAR]
        try:
            return pocketsphinx.Decoder(**options)
        except (RuntimeError, ValueError) as error:
            raise UserError(
                f"pocketsphinx: does not take the {language.kind} language ({error}); are all "
                "words of a grammar in the dictionary, and its phones those of CMUdict?"
            ) from error
