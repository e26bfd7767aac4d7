# SPDX-License-Identifier: Apache-2.0
"""How much a language weighs beside what the CTC network heard: chosen on speakers held out.

Languages differ in what a word costs, so no weights suit all of them: AN4's own gives saying
nothing a probability of 1 and each word one of about 1/100, and unweighted it makes every
hypothesis empty.
"""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from rapidfuzz.distance import Levenshtein

from steps.asr.ctc_config import SearchConfig
from steps.asr.ctc_search import WordSearch
from steps.asr.ctc_units import Units
from steps.asr.language import Language
from steps.asr.text import normalise
from utils.cli import UserError

LM_WEIGHTS = (0.3, 0.6, 1.0)
WORD_SCORES = (-2.0, 0.0, 1.5, 3.0, 5.0)
BEAM = 25  # hypotheses while weights are compared, at most


@dataclass(frozen=True)
class Trial:
    """Weights, and what came of them: errors, of so many words; empty: hypotheses without words."""

    lm_weight: float
    word_score: float
    errors: int
    words: int
    empty: int


def try_weights(
    written: Mapping[str, torch.Tensor],
    texts: Mapping[str, str],
    language: Language,
    units: Units,
    config: SearchConfig,
) -> list[Trial]:
    """The errors with each of the weights, those of `config` first.

    written: utterance -> (T, tokens), log probabilities; texts: utterance -> what is said in it.
    UserError where there is no word in the texts.
    """
    true = {utt: normalise(texts[utt]) for utt in written}
    n_words = sum(map(len, true.values()))
    if n_words == 0:
        raise UserError("the transcripts of the speakers held out from the training have no words")
    own = config.lm_weight, config.word_score
    found = []
    for pair in dict.fromkeys([own, *itertools.product(LM_WEIGHTS, WORD_SCORES)]):
        narrow = dataclasses.replace(
            config, lm_weight=pair[0], word_score=pair[1], beam=min(config.beam, BEAM)
        )
        search = WordSearch(language, units, narrow)
        heard = {utt: normalise(search(scores)) for utt, scores in written.items()}
        errors = sum(Levenshtein.distance(true[utt], heard[utt]) for utt in written)
        found.append(Trial(*pair, errors, n_words, sum(not words for words in heard.values())))
    return found


def best_weights(trials: Sequence[Trial], config: SearchConfig) -> SearchConfig:
    """The settings with the weights of the fewest errors; of equals the first."""
    best = min(trials, key=lambda trial: trial.errors)
    return dataclasses.replace(config, lm_weight=best.lm_weight, word_score=best.word_score)
