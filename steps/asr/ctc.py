"""The CTC recogniser in use: the search for words, the language's weights, and the recogniser."""

import hashlib
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import pocketsphinx
import torch
from torchaudio.models.decoder import CTCDecoderLM, CTCDecoderLMState, ctc_decoder

from steps.asr import ctc_training
from steps.asr.ctc_training import BLANK, END, CtcConfig, CtcUnits, SearchConfig
from steps.asr.engines import make_decoder
from steps.asr.language import Language, read_language, spelt_words
from steps.speaker.features import Features
from steps.training.settings import read_config
from steps.training.weights import fill_network, load_state, use_device
from utils.arrays import Float64
from utils.cli import UserError
from utils.settings import read_settings

# ---- Language models that give the score of one word after another, for a search.
#
# PocketSphinx reads the model or compiles the grammar; scores are natural logarithms.

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
        path = pocketsphinx.get_model_path("en-us/en-us.lm.bin")
        with tempfile.TemporaryDirectory() as folder:
            if language.lm is not None:
                path = str(Path(folder) / "lm.arpa")
                Path(path).write_text(language.lm, encoding="utf-8")
            self._model = pocketsphinx.NGramModel(pocketsphinx.Config(), self._logs, path)
        self._order: int = self._model.size()

    def _probability(self, words: list[str]) -> float:
        """Score of the first word after the others, the latest first."""
        return self._logs.log_to_ln(self._model.prob(words))

    def score(self, state: State, word: str) -> tuple[State, float]:
        words = [word, *map(str, state)]
        return tuple(words[: self._order - 1]), self._probability(words)

    def finish(self, state: State) -> float:
        return self._probability(["</s>", *map(str, state)])

    def likely(self, word: str) -> float:
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
        places: dict[int, float] = {}
        for place, before in state:
            for right, value in self._arcs.get((place, word), ()):
                places[right] = max(before + value, places.get(right, IMPOSSIBLE))
        if not places:
            return (), IMPOSSIBLE
        best = max(places.values())
        return self._close({place: value - best for place, value in places.items()}), best

    def finish(self, state: State) -> float:
        return dict(state).get(self._final, IMPOSSIBLE)

    def likely(self, word: str) -> float:
        """Zero: unknown without the past."""
        return 0.0


def make_word_model(language: Language) -> WordModel:
    """Model of any language; UserError where PocketSphinx refuses it."""
    return NGram(language) if language.grammar is None else Grammar(language)


# ---- Most likely sentence from a language's words: a beam search over the network's output.
#
# The search is Flashlight's (Kahn et al., ICML 2022), by torchaudio: a trie of the words'
# spellings, and at each end of a word its score in the language.

UNKNOWN = "<unk>"  # Flashlight requires such a word; it never occurs


class WordSearch:
    """Search among the words of a language that the tokens of a network can spell.

    n_words: number of these; n_unspelt: number of the others.
    """

    def __init__(self, language: Language, units: CtcUnits, config: SearchConfig) -> None:
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

    def start(self, start_with_nothing: bool) -> CTCDecoderLMState:
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


# ---- CTC recogniser of steps/train_recogniser.py (Graves et al., ICML 2006).


class CtcRecogniser:
    """Trained network with the words of a language; without one, it spells freely."""

    def __init__(
        self, model: Path | None = None, lang: Path | None = None, device: str = "cpu"
    ) -> None:
        """model: folder of steps/train_recogniser.py; lang: of steps/make_lang.py."""
        if model is None:
            raise UserError("ctc: needs --model DIR, a folder of steps/train_recogniser.py")
        language = None if lang is None else read_language(lang)
        use_device(device)
        config, self.units = _read(model)
        self._device, weights = device, model / "final.pt"
        self._features = Features(config.features)
        self._network = ctc_training.make_network(config, self.units)
        fill_network(self._network, load_state(weights), weights)
        self._network.to(device).eval()
        self._search = None
        if language is not None:
            self._search = WordSearch(language, self.units, config.search)
        self.settings: Mapping[str, object] = {
            "recogniser": "ctc",
            "weights": hashlib.sha256(weights.read_bytes()).hexdigest()[:16],
            "language": None if language is None else language.kind,
            "language_digest": None if language is None else language.digest,
            "search": "greedy" if self._search is None else self._search.settings,
            "device": device,
            "torch": version("torch"),
        }

    @torch.inference_mode()
    def recognise(self, utt: str, samples: Float64) -> str:
        """Words of a signal (n,) at 16 kHz; none for digital silence."""
        if not samples.any():
            return ""
        found = ctc_training.compute_features(self._features, utt, samples)
        features = torch.from_numpy(found)[None].to(self._device)
        if self._search is None:
            return ctc_training.write_greedily(self._network, self.units, features)
        n_frames = torch.tensor([features.shape[1]], device=self._device)
        return self._search(self._network(features, n_frames)[0].float().cpu())


def _read(folder: Path) -> tuple[CtcConfig, CtcUnits]:
    """Settings and tokens of a trained recogniser."""
    path = folder / "recogniser.yaml"
    if not (folder / "final.pt").is_file():
        raise UserError(f"{folder}: holds no final.pt; train it with steps/train_recogniser.py")
    trained = read_settings(path).get("trained")
    tokens = trained.get("tokens") if isinstance(trained, dict) else None
    if not isinstance(tokens, list):
        raise UserError(f"{path}: trained.tokens: is missing; train it again")
    config = read_config(CtcConfig, path)
    return config, CtcUnits(config.units, tuple(map(str, tokens)))
