# SPDX-License-Identifier: Apache-2.0
"""Most likely sentence from a language's words: a beam search over the network's output.

The search is Flashlight's (Kahn et al., ICML 2022), by torchaudio: a trie of the words' spellings,
and at each end of a word its score in the language.
"""

import tempfile
from dataclasses import asdict
from pathlib import Path

import torch
from torchaudio.models.decoder import CTCDecoderLM, CTCDecoderLMState, ctc_decoder

from steps.asr.ctc_config import SearchConfig
from steps.asr.ctc_units import BLANK, END, Units
from steps.asr.language import Language, spelt_words
from steps.asr.word_models import IMPOSSIBLE, State, WordModel, make_word_model
from utils.cli import UserError

UNKNOWN = "<unk>"  # Flashlight requires such a word; it never occurs


class WordSearch:
    """Search among the words of a language that the tokens of a network can spell.

    n_words: number of these; n_unspelt: number of the others.
    """

    def __init__(self, language: Language, units: Units, config: SearchConfig) -> None:
        words = spelt_words(language)
        lexicon = {word: units.spell(word) for word in words}
        lexicon = {
            w: spelt for w, spelt in lexicon.items() if spelt and {*spelt} <= {*units.tokens}
        }
        self.n_words, self.n_unspelt = len(lexicon), len(words) - len(lexicon)
        if not lexicon:
            raise UserError(
                f"ctc: no word of the language can be said with the {units.kind} of the training: "
                f"{' '.join(units.tokens[2:40])}"
            )
        self._model = make_word_model(language)
        self._scores = _Scores(self._model, [*lexicon, UNKNOWN])
        with tempfile.TemporaryDirectory() as folder:
            files = {"lexicon": Path(folder) / "lexicon", "lm_dict": Path(folder) / "words"}
            lines = (f"{word} {' '.join(spelt)}\n" for word, spelt in lexicon.items())
            files["lexicon"].write_text("".join(lines), encoding="utf-8")
            files["lm_dict"].write_text("\n".join([*lexicon, UNKNOWN]) + "\n", encoding="utf-8")
            self._search = ctc_decoder(
                tokens=list(units.tokens),
                lm=self._scores,
                beam_size=config.beam,
                beam_size_token=min(config.tokens, len(units.tokens)),
                beam_threshold=config.threshold,
                lm_weight=config.lm_weight,
                word_score=config.word_score,
                blank_token=BLANK,
                sil_token=END,
                unk_word=UNKNOWN,
                **{name: str(path) for name, path in files.items()},
            )
        self._scores.in_search = True
        self.settings = {**asdict(config), "words": self.n_words, "words_unspelt": self.n_unspelt}

    def __call__(self, written: torch.Tensor) -> str:
        """Find words; none if no sentence of the language fits. written: (T, tokens), log."""
        found = self._search(written[None].contiguous())[0]
        words = found[0].words if found else []
        return " ".join(words) if self._is_possible(words) else ""

    def _is_possible(self, words: list[str]) -> bool:
        """Whether the language has such a sentence; the best hypothesis may not be one."""
        state = self._model.start
        for word in words:
            state, value = self._model.score(state, word)
            if value <= IMPOSSIBLE:
                return False
        return self._model.finish(state) > IMPOSSIBLE


class _Scores(CTCDecoderLM):  # type: ignore[misc]
    """Word model in Flashlight's form; a word is its position in the list of words.

    Of hypotheses with one state (the same object) Flashlight keeps the best, so each state of the
    model has one object, which holds as much of the past as the model needs.
    """

    def __init__(self, model: WordModel, words: list[str]) -> None:
        super().__init__()
        self.in_search = False  # while the trie is made: best score of the words ahead
        self._model = model
        self._words = words
        self._states: dict[CTCDecoderLMState, State] = {}
        self._objects: dict[State, CTCDecoderLMState] = {}
        self._known: dict[tuple[CTCDecoderLMState, int], tuple[CTCDecoderLMState, float]] = {}

    def _object(self, state: State) -> CTCDecoderLMState:
        if state not in self._objects:
            self._objects[state] = CTCDecoderLMState()
            self._states[self._objects[state]] = state
        return self._objects[state]

    def start(self, start_with_nothing: bool) -> CTCDecoderLMState:  # noqa: ARG002
        for kept in (self._states, self._objects, self._known):
            kept.clear()  # states belong to one utterance, or they would grow with the corpus
        return self._object(self._model.start)

    def score(self, state: CTCDecoderLMState, place: int) -> tuple[CTCDecoderLMState, float]:
        if not self.in_search:
            return state, self._model.likely(self._words[place])
        if (state, place) not in self._known:
            after, value = self._model.score(self._states[state], self._words[place])
            self._known[state, place] = self._object(after), value
        return self._known[state, place]

    def finish(self, state: CTCDecoderLMState) -> tuple[CTCDecoderLMState, float]:
        return state, self._model.finish(self._states[state])
