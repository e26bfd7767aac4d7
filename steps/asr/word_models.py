# SPDX-License-Identifier: Apache-2.0
"""Language models that give the score of one word after another, for a search.

PocketSphinx reads the model or compiles the grammar; scores are natural logarithms.
"""

import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any, Protocol

import pocketsphinx

from steps.asr.language import Language
from steps.asr.sphinx import make_decoder

IMPOSSIBLE = -1e4  # for words that a grammar does not allow
State = tuple[Any, ...]


class WordModel(Protocol):
    """Word model. States hold as much of the past as counts; equal ones are the same."""

    start: State

    def score(self, state: State, word: str) -> tuple[State, float]:
        """State after a word, and log probability of the word."""

    def finish(self, state: State) -> float:
        """Log probability of the end."""

    def likely(self, word: str) -> float:
        """Log probability of a word after any past; 0 where it is unknown."""


class NGram:
    """Model with back-off, such as `lm.arpa`, or PocketSphinx's of general English."""

    start: State = ("<s>",)

    def __init__(self, language: Language) -> None:
        self._logs = pocketsphinx.LogMath()
        if language.lm is None:
            self._read(pocketsphinx.get_model_path("en-us/en-us.lm.bin"))
            return
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "lm.arpa"
            path.write_text(language.lm, encoding="utf-8")
            self._read(str(path))

    def _read(self, path: str) -> None:
        self._model = pocketsphinx.NGramModel(pocketsphinx.Config(), self._logs, path)
        self._order: int = self._model.size()

    def _probability(self, words: list[str]) -> float:
        """Score of the first word after the others, the latest first."""
        value: float = self._logs.log_to_ln(self._model.prob(words))
        return value

    def score(self, state: State, word: str) -> tuple[State, float]:
        """State after a word, and log probability of the word."""
        words = [word, *map(str, state)]
        return tuple(words[: self._order - 1]), self._probability(words)

    def finish(self, state: State) -> float:
        """Log probability of the end."""
        return self._probability(["</s>", *map(str, state)])

    def likely(self, word: str) -> float:
        """Log probability of a word after any past."""
        return self._probability([word])


class Grammar:
    """Finite automaton; a state is the set of possible nodes with the best path's score in each."""

    def __init__(self, language: Language) -> None:
        decoder = make_decoder(language, lw=1.0, fsgusefiller=False, fsgusealtpron=False)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "fsg"
            decoder.get_fsg().writefile(str(path))
            rows = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
        # TRANSITION <from> <to> <probability> [word]; without a word where nothing is spoken
        self._arcs: dict[tuple[int, str], list[tuple[int, float]]] = defaultdict(list)
        logs = pocketsphinx.LogMath()
        begin = self._final = 0
        for row in rows:
            match row:
                case ["START_STATE", place]:
                    begin = int(place)
                case ["FINAL_STATE", place]:
                    self._final = int(place)
                case ["TRANSITION", left, right, probability, *word]:
                    value = logs.log_to_ln(logs.log(float(probability)))
                    self._arcs[int(left), "".join(word)].append((int(right), value))
        self.start: State = self._close({begin: 0.0})

    def _close(self, places: dict[int, float]) -> State:
        """Add all nodes that can be reached without a word."""
        todo = list(places)
        while todo:
            place = todo.pop()
            for right, value in self._arcs.get((place, ""), ()):
                if places[place] + value > places.get(right, IMPOSSIBLE):
                    places[right] = places[place] + value
                    todo.append(right)
        return tuple(sorted(places.items()))

    def score(self, state: State, word: str) -> tuple[State, float]:
        """State after a word, and log probability of the word."""
        places: dict[int, float] = {}
        for place, before in state:
            for right, value in self._arcs.get((place, word), ()):
                places[right] = max(before + value, places.get(right, IMPOSSIBLE))
        if not places:
            return (), IMPOSSIBLE
        best = max(places.values())
        return self._close({place: value - best for place, value in places.items()}), best

    def finish(self, state: State) -> float:
        """Log probability of the end."""
        value: float = dict(state).get(self._final, IMPOSSIBLE)
        return value

    def likely(self, word: str) -> float:  # noqa: ARG002
        """Zero: unknown without the past."""
        return 0.0


def make_word_model(language: Language) -> WordModel:
    """Model of any language; UserError where PocketSphinx refuses it."""
    return NGram(language) if language.grammar is None else Grammar(language)
