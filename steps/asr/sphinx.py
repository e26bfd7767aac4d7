# SPDX-License-Identifier: Apache-2.0
"""PocketSphinx (Huggins-Daines et al., ICASSP 2006) with the English model of its wheel."""

import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pocketsphinx

from steps.asr.language import GRAMMAR, LEXICON, LM, Language
from steps.audio import SAMPLE_RATE, FloatArray
from utils.cli import UserError
from utils.seeds import make_rng

LEVEL = 0.05  # root mean square that every utterance is brought to: systems set it themselves
DITHER = 1e-4  # of full scale, 54 dB below; on digital silence nothing would be recognised
PADDING = 0.2  # seconds of dither at both ends: recordings may be cut close to the word
# Protected speech fits the model badly: what leads to the end must not be pruned on the way.
# A second pass through a grammar's lattice finds no end where there are many ways: one pass there.
WIDE = {"beam": 1e-80, "pbeam": 1e-80, "wbeam": 1e-60}


class PocketSphinx:
    """Hidden Markov models of English phones, and a trigram, a corpus's own model or a grammar."""

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
        self._decoder = _make_decoder(language)

    def recognise(self, utt: str, samples: FloatArray) -> str:
        """The words of a signal (n,) at 16 kHz; nothing for digital silence."""
        level = float(np.sqrt(np.mean(samples**2)))
        if level == 0.0:
            return ""
        padded = np.pad(samples * (LEVEL / level), round(PADDING * SAMPLE_RATE))
        padded += DITHER * make_rng(0, "dither", utt).standard_normal(len(padded))
        pcm = np.clip(np.rint(padded * 32767), -32768, 32767).astype("<i2")
        self._decoder.reinit_feat()  # else the utterance before has a say in this one
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


def _make_decoder(language: Language) -> pocketsphinx.Decoder:
    model = pocketsphinx.get_model_path
    options: dict[str, object] = {
        "hmm": model("en-us/en-us"),
        "cmn": "batch",
        **_search(language),
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
