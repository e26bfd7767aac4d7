"""The CTC recogniser: units, settings, network and training; the search for words, and its use.

Source: Graves et al., ICML 2006.
"""

import hashlib
import logging
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Protocol

import numpy as np
import numpy.typing as npt
import pocketsphinx
import torch
from rapidfuzz.distance import Levenshtein
from speechbrain.decoders.ctc import ctc_greedy_decode
from speechbrain.nnet import CNN, linear, losses, normalization
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from torchaudio.models.decoder import CTCDecoderLM, CTCDecoderLMState, ctc_decoder

from steps.asr.engines import make_decoder
from steps.asr.language import GRAMMAR, LM, Language, normalise, read_language, spelt_words
from steps.asr.recognisers import PADDING, condition
from steps.audio import SAMPLE_RATE
from steps.speaker.config import AugmentConfig, FeatureConfig
from steps.speaker.features import Features, augment, change_speed, mask_features
from steps.training.audio import TrainingAudio, hold_out
from steps.training.loop import Trainer, descend, train
from steps.training.settings import RampSettings, identity, read_config
from steps.training.weights import fill_network, load_state, use_device
from utils import settings as rule
from utils.arrays import Float32, Float64
from utils.cli import UserError
from utils.seeds import derive_seed, make_rng
from utils.settings import read_settings, to_plain

# ---- Output units of the CTC recogniser: characters, each word closed by a mark; or words.
#
# Characters can spell words that no training transcript has, but take hours of speech to learn;
# words take minutes, but new words are never recognised.

KINDS = ("characters", "words")
BLANK, END = "<blank>", "|"


@dataclass(frozen=True)
class CtcUnits:
    """tokens: the blank (place 0), the end of a word (1; unused by words), then all, in order."""

    kind: str
    tokens: tuple[str, ...]

    @classmethod
    def of(cls, kind: str, texts: Iterable[str]) -> "CtcUnits":
        """Units of transcripts.

        >>> CtcUnits.of("characters", ["Ab, a"]).tokens
        ('<blank>', '|', 'A', 'B')
        >>> CtcUnits.of("words", ["Ab, a"]).tokens
        ('<blank>', '|', 'A', 'AB')
        """
        words = {word for text in texts for word in normalise(text)}
        found = words if kind == "words" else {letter for word in words for letter in word}
        return cls(kind, (BLANK, END, *sorted(found)))

    def spell(self, text: str) -> list[str]:
        """Split a text into tokens, also those that are not among `tokens`."""
        if self.kind == "words":
            return normalise(text)
        return [token for word in normalise(text) for token in (*word, END)]

    def encode(self, text: str) -> list[int]:
        """Positions of the tokens of a text whose tokens are all known."""
        return [self.tokens.index(token) for token in self.spell(text)]

    def decode(self, places: Sequence[int]) -> str:
        """Words of tokens without blanks; the last may lack its end."""
        between = " " if self.kind == "words" else ""
        text = between.join(self.tokens[place] for place in places)
        return " ".join(text.replace(END, " ").split())


def frames_needed(target: Sequence[int]) -> int:
    """Fewest frames that can give a target: a blank must separate equal neighbours."""
    return len(target) + sum(a == b for a, b in pairwise(target))


# ---- Checked settings of the CTC recogniser (conf/asr/*.yaml).


@dataclass(frozen=True)
class CtcNetworkConfig:
    """Layers: convolutions over time, one for each of `dilations`. stride: frames of features in
    one of the network."""

    channels: rule.Size = 96
    kernel: rule.OddSize = 5
    stride: rule.Size = 3
    dilations: rule.Sizes = (1, 2, 4)
    dropout: Annotated[float, rule.Number(least=0, below=1)] = 0.2


@dataclass(frozen=True)
class CtcTrainingConfig(RampSettings):
    """Training settings. The best network has the fewest words wrong."""

    learning_rate: rule.Positive = 3e-3
    warm_up: Annotated[float, rule.Number(above=0, below=1)] = 0.1
    valid_share: Annotated[float, rule.Number(least=0, most=0.5)] = 0.1  # of the speakers, at most
    minimum_seconds: rule.NotNegative = 0.1  # shorter training utterances are left out, counted


@dataclass(frozen=True)
class SearchConfig:
    """Search among the words of a language; scores are natural logarithms.

    With a weight of 1 and no score a word, AN4's language, in which saying nothing has a
    probability of 1 and each word one of 1/106, makes every hypothesis empty.
    """

    lm_weight: rule.Positive = 0.3
    word_score: float = 1.5  # for each word, beside the language model's


@dataclass(frozen=True)
class CtcConfig:
    """All settings."""

    recogniser: Annotated[str, rule.OneOf("ctc")]
    training: CtcTrainingConfig
    units: Annotated[str, rule.OneOf(*KINDS)] = "characters"  # output of the network, or words
    network: CtcNetworkConfig = field(default_factory=CtcNetworkConfig)
    features: FeatureConfig = field(default_factory=FeatureConfig)
    augmentation: AugmentConfig = field(default_factory=AugmentConfig)
    search: SearchConfig = field(default_factory=SearchConfig)

    def __post_init__(self) -> None:
        if self.features.speech_only:
            raise ValueError("features.speech_only: false is needed: words have pauses in them")
        if self.features.kind == "hub":
            raise ValueError("features.kind: hub is for speaker encoders; fbank or mfcc")


# ---- Features of the CTC recogniser, and how many frames a target needs.


def n_out(n_samples: float, stride: int) -> int:
    """Frames of the network for so many samples, before padding."""
    n_frames = 1 + int(n_samples + 2 * round(PADDING * SAMPLE_RATE)) // 160
    return (n_frames - 1) // stride + 1


def compute_features(features: Features, utt: str, samples: npt.NDArray[np.floating]) -> Float32:
    """Features (T, D) of a signal (n,); of digital silence, those of dither alone."""
    heard = condition(utt, samples)
    if heard is None:
        heard = np.zeros(len(samples) + 2 * round(PADDING * SAMPLE_RATE))
    return features(torch.from_numpy(heard.astype(np.float32))[None])[0].numpy()


def fitting_speeds(target: list[int], n_samples: int, config: CtcConfig) -> list[float]:
    """Speeds at which a signal is long enough for its target."""
    needed, stride = frames_needed(target), config.network.stride
    speeds = config.augmentation.speeds
    return [speed for speed in speeds if n_out(n_samples / speed, stride) >= needed]


# ---- Network of the CTC recogniser, of SpeechBrain's layers.

BLANK_BIAS = 5.0  # of the blank's score before training


class _Convolution(nn.Module):
    """Block (B, T, C) -> (B, T / stride, D): convolution, normalised, rectified, dropped out."""

    def __init__(self, n_in: int, config: CtcNetworkConfig, stride: int, dilation: int) -> None:
        super().__init__()
        size = config.channels
        # Zeros before and after, not a mirror image: results must not depend on padding.
        self.reach = dilation * (config.kernel - 1) // 2
        self.convolve = CNN.Conv1d(
            size, config.kernel, in_channels=n_in, stride=stride, dilation=dilation,
            padding="valid",
        )  # fmt: skip
        self.norm = normalization.LayerNorm(size)
        self.drop = nn.Dropout(config.dropout)

    def forward(self, values: Tensor) -> Tensor:
        padded = functional.pad(values, (0, 0, self.reach, self.reach))
        return self.drop(functional.leaky_relu(self.norm(self.convolve(padded))))


class CtcNetwork(nn.Module):
    """Log probabilities (B, T', tokens) of features (B, T, D), zero after each signal's end.

    T' = `frames(T)`. A signal's result does not depend on its batch, up to rounding.
    """

    def __init__(self, config: CtcNetworkConfig, n_features: int, n_tokens: int) -> None:
        super().__init__()
        self.stride = config.stride
        self.first = _Convolution(n_features, config, config.stride, 1)
        self.more = nn.ModuleList(
            _Convolution(config.channels, config, 1, dilation) for dilation in config.dilations
        )
        self.drop = nn.Dropout(config.dropout)
        self.output = linear.Linear(n_tokens, input_size=config.channels)
        # All networks first learn that most frames are blank, and may lose the rest over it.
        nn.init.constant_(self.output.w.bias[0], BLANK_BIAS)

    def frames(self, n_frames: Tensor) -> Tensor:
        """Number of output frames for so many input frames."""
        return (n_frames - 1) // self.stride + 1

    def forward(self, features: Tensor, n_frames: Tensor) -> Tensor:
        """n_frames: (B,) of each signal, the longest T."""
        left = self.frames(n_frames)
        inside = torch.arange(int(left.max()), device=features.device)[None] < left[:, None]
        values = self.first(features) * inside[..., None]
        for layer in self.more:
            values = (values + layer(values)) * inside[..., None]
        return self.output(self.drop(values)).log_softmax(dim=-1)


# ---- Training of the CTC recogniser (Graves et al., ICML 2006), as the loop needs it.

_SPREAD = 0.2  # utterances whose lengths differ by up to so much may change places when sorted
CtcBatch = tuple[list[Tensor], list[Tensor]]


def _utterances(audio: TrainingAudio) -> list[str]:
    return [utt for utts in audio.spk2utt.values() for utt in utts]


@dataclass
class CtcTrainer(Trainer):
    """Training of the recogniser; valid: held-out speakers; texts: transcripts of both.

    A batch is features (T, D) and targets of utterances of similar length, a function of (seed,
    step); every utterance is once in a round.
    """

    config: CtcConfig
    seed: int
    device: str
    units: CtcUnits
    audio: TrainingAudio
    valid: TrainingAudio
    texts: Mapping[str, str]
    saved = ("network", "optimiser", "rate")
    best_by = "valid_word_errors"

    def __post_init__(self) -> None:
        config = self.plan = self.config.training
        self.features = Features(self.config.features)
        self._utts = _utterances(self.audio)
        self._targets = {utt: self.units.encode(self.texts[utt]) for utt in self._utts}
        self._round = lru_cache(maxsize=1)(self._draw_round)
        self.per_round = -(-len(self._utts) // config.batch)  # batches
        torch.manual_seed(derive_seed(self.seed, "ctc-weights") % 2**63)
        self.network = make_network(self.config, self.units).to(self.device)
        self.optimiser = torch.optim.AdamW(
            self.network.parameters(), config.learning_rate, weight_decay=config.weight_decay
        )
        self.rate = torch.optim.lr_scheduler.OneCycleLR(
            self.optimiser, config.learning_rate, config.steps, pct_start=config.warm_up,
            cycle_momentum=False,
        )  # fmt: skip

    def batch(self, step: int) -> CtcBatch:
        number, place = divmod(step, self.per_round)
        utts = self._round(number)[place]  # the last round is kept
        features = [torch.from_numpy(self._augmented(utt, number)) for utt in utts]
        return features, [torch.tensor(self._targets[utt]) for utt in utts]

    def _draw_round(self, number: int) -> list[list[str]]:
        """Utterances of each batch of a round."""
        rng = make_rng(self.seed, "ctc-round", str(number))
        factors = rng.uniform(1 - _SPREAD, 1 + _SPREAD, len(self._utts))
        keys = [self.audio.lengths[u] * f for u, f in zip(self._utts, factors, strict=True)]
        order = [self._utts[i] for i in np.argsort(keys, kind="stable")]
        size = self.plan.batch
        batches = [order[i : i + size] for i in range(0, len(order), size)]
        return [batches[i] for i in rng.permutation(len(batches))]

    def _augmented(self, utt: str, number: int) -> Float32:
        """Features (T, D) of an utterance, augmented for a round."""
        rng = make_rng(self.seed, "ctc-utterance", str(number), utt)
        samples = self._read(utt)
        speeds = fitting_speeds(self._targets[utt], len(samples), self.config)
        samples = change_speed(samples, float(rng.choice(speeds)), len(samples) * 2)

        def draw_any() -> Float32:
            return self.audio.read(self._utts[int(rng.integers(len(self._utts)))], 0, len(samples))

        samples = augment(rng, samples, self.config.augmentation, draw_any)
        features = compute_features(self.features, utt, samples)[None].copy()
        mask_features(rng, features, self.config.augmentation)
        return features[0]

    def _read(self, utt: str) -> Float32:
        return self.audio.read(utt, 0, self.audio.lengths[utt])

    def update(self, step: int, batch: CtcBatch) -> dict[str, float]:
        torch.manual_seed(derive_seed(self.seed, "ctc-dropout", str(step)) % 2**63)
        self.network.train()
        limit = self.plan.gradient_norm
        loss = descend(self._loss(*batch), self.optimiser, self.network.parameters(), limit)
        self.rate.step()
        return {"loss": loss}

    def _loss(self, features: list[Tensor], targets: list[Tensor]) -> Tensor:
        n_frames, n_targets = (
            torch.tensor([len(row) for row in rows], device=self.device)
            for rows in (features, targets)
        )
        written = self.network(pad_sequence(features, True).to(self.device), n_frames)
        left = self.network.frames(n_frames)
        loss: Tensor = losses.ctc_loss(
            written, pad_sequence(targets, True).to(self.device), left / left.max(),
            n_targets / n_targets.max(), blank_index=0,
        )  # fmt: skip
        return loss

    def validate(self) -> dict[str, float]:
        """Greedy hypotheses for the held-out speakers, without a lexicon."""
        if not self.valid.speakers:
            return {}
        self.network.eval()
        wrong, total = [0, 0], [0, 0]
        for utt in _utterances(self.valid):
            features = torch.from_numpy(compute_features(self.features, utt, self._read(utt)))
            said = write_greedily(self.network, self.units, features[None].to(self.device))
            words, heard = normalise(self.texts[utt]), said.split()
            for place, (true, found) in enumerate(((" ".join(words), said), (words, heard))):
                wrong[place] += Levenshtein.distance(true, found)
                total[place] += len(true)
        errors = wrong[0] / total[0], wrong[1] / total[1]
        logging.info(
            "validation: %.2f %% of the characters and %.2f %% of the words wrong (greedy)",
            *(100 * share for share in errors),
        )
        return {"valid_character_errors": errors[0], "valid_word_errors": errors[1]}


def make_network(config: CtcConfig, units: CtcUnits) -> CtcNetwork:
    """Network of some settings, with random weights."""
    return CtcNetwork(config.network, config.features.bins, len(units.tokens))


def write_greedily(network: CtcNetwork, units: CtcUnits, features: torch.Tensor) -> str:
    """Words of the most likely token of each frame; features: (1, T, D)."""
    written = network(features, torch.tensor([features.shape[1]], device=features.device))
    return units.decode(ctc_greedy_decode(written, torch.ones(1), blank_id=0)[0])


def select_usable(
    audio: TrainingAudio, texts: Mapping[str, str], config: CtcConfig
) -> TrainingAudio:
    """Leave out utterances that say nothing or more than their length allows, counted and named."""
    units = CtcUnits.of(config.units, texts.values())
    kept = {
        utt
        for utt, n_samples in audio.lengths.items()
        if (target := units.encode(texts[utt])) and fitting_speeds(target, n_samples, config)
    }
    if left_out := [utt for utt in audio.lengths if utt not in kept]:
        logging.warning(
            f"{len(left_out)} of {len(audio.lengths)} utterances left out, with no words or too "
            f"short for them: {' '.join(left_out[:10])}"
        )
    spk2utt = {spk: [u for u in utts if u in kept] for spk, utts in audio.spk2utt.items()}
    spk2utt = {spk: utts for spk, utts in spk2utt.items() if utts}
    if not spk2utt:
        raise UserError("no training utterance has words; is text the transcript of the audio?")
    lengths = {utt: audio.lengths[utt] for utts in spk2utt.values() for utt in utts}
    return replace(audio, spk2utt=spk2utt, lengths=lengths)


def train_ctc(
    config: CtcConfig, audio: TrainingAudio, texts: Mapping[str, str], out: Path, *,
    seed: int, device: str = "cpu",
) -> None:  # fmt: skip
    """Train; `out` gets training.tsv, checkpoints/, recogniser.yaml; final.pt last.

    texts: the transcript of each utterance. UserError: no training data, or checkpoints of another
    training.
    """
    use_device(device)
    audio, plan = select_usable(audio, texts, config), config.training
    texts = {utt: texts[utt] for utt in audio.lengths}
    units = CtcUnits.of(config.units, texts.values())
    used, held = hold_out(audio, plan.valid_speakers, seed, share=plan.valid_share)
    trainer = CtcTrainer(config, seed, device, units, used, audio.subset(held), texts)
    logging.info(
        f"{plan.steps} steps, of which each round takes {trainer.per_round}; "
        f"{len(units.tokens)} tokens: {' '.join(units.tokens)}"
    )
    settings = to_plain(config)
    parts = (seed, audio.spk2utt, audio.lengths, audio.content, texts)
    train(trainer, out, identity(settings, *parts)).finish(
        "recogniser.yaml", settings, tokens=list(units.tokens), speakers=len(used.speakers),
        hours=round(used.seconds / 3600, 3), held_out=held,
    )  # fmt: skip


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
            if LM in language.files:
                path = str(Path(folder) / "lm.arpa")
                Path(path).write_text(language.files[LM], encoding="utf-8")
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
    return Grammar(language) if GRAMMAR in language.files else NGram(language)


# ---- Most likely sentence from a language's words: a beam search over the network's output.
#
# The search is Flashlight's (Kahn et al., ICML 2022), by torchaudio: of characters by a trie of the
# words' spellings, and at each end of a word its score in the language. Of words without a trie, by
# which it would find a word of one token again for every frame that hears it.

UNKNOWN = "<unk>"  # Flashlight requires such a word; it never occurs
BEAM = 100  # hypotheses
TOKENS = 40  # that may continue a hypothesis: the likeliest at each time
THRESHOLD = 50.0  # hypotheses so far below the best are dropped


class WordSearch:
    """Search among the words of a language that the tokens of a network can spell.

    n_words: number of these; n_unspelt: number of the others.
    """

    def __init__(self, language: Language, units: CtcUnits, config: SearchConfig) -> None:
        words = spelt_words(language)
        lexicon = {word: units.spell(word) for word in words}
        longest = 1 if units.kind == "words" else np.inf
        lexicon = {
            word: spelt for word, spelt in lexicon.items()
            if 0 < len(spelt) <= longest and {*spelt} <= {*units.tokens}
        }  # fmt: skip
        self.n_words, self.n_unspelt = len(lexicon), len(words) - len(lexicon)
        if not lexicon:
            raise UserError(
                f"ctc: no word of the language can be said with the {units.kind} of the training: "
                f"{' '.join(units.tokens[2:40])}"
            )
        self._model = make_word_model(language)
        self._listed: dict[int, str] = {}  # words by their tokens; none where they are spelt
        with tempfile.TemporaryDirectory() as folder:
            files: dict[str, str | None] = {"lexicon": None}
            if units.kind == "words":
                self._listed = {units.tokens.index(spelt[0]): w for w, spelt in lexicon.items()}
                bonus = config.word_score / config.lm_weight
                self._scores = _Scores(self._model, self._listed, bonus)
            else:
                files = _write_spellings(Path(folder), lexicon)
                self._scores = _Scores(self._model, dict(enumerate([*lexicon, UNKNOWN])))
            self._search = ctc_decoder(
                tokens=list(units.tokens),
                lm=self._scores,
                beam_size=BEAM,
                beam_size_token=min(TOKENS, len(units.tokens)),
                beam_threshold=THRESHOLD,
                lm_weight=config.lm_weight,
                word_score=config.word_score,  # ignored without a lexicon
                blank_token=BLANK,
                sil_token=END,
                unk_word=UNKNOWN,
                **files,
            )
        self._scores.in_search = True
        self.settings = {**asdict(config), "words": self.n_words, "words_unspelt": self.n_unspelt}

    def __call__(self, written: torch.Tensor) -> str:
        """Find words; none if no sentence of the language fits. written: (T, tokens), log."""
        found = self._search(written[None].contiguous())[0]
        words = found[0].words if found else []
        if found and self._listed:
            places = found[0].tokens.tolist()  # silence, which Flashlight adds at the ends, is none
            words = [self._listed[place] for place in places if place in self._listed]
        return " ".join(words) if self._is_possible(words) else ""

    def _is_possible(self, words: list[str]) -> bool:
        """Whether the language has such a sentence; the best hypothesis may not be one."""
        state = self._model.start
        for word in words:
            state, value = self._model.score(state, word)
            if value <= IMPOSSIBLE:
                return False
        return self._model.finish(state) > IMPOSSIBLE


def _write_spellings(folder: Path, lexicon: Mapping[str, Sequence[str]]) -> dict[str, str | None]:
    """Write the files of Flashlight's search by spelling; by the names of its arguments."""
    files = {"lexicon": folder / "lexicon", "lm_dict": folder / "words"}
    lines = (f"{word} {' '.join(spelt)}\n" for word, spelt in lexicon.items())
    files["lexicon"].write_text("".join(lines), encoding="utf-8")
    files["lm_dict"].write_text("\n".join([*lexicon, UNKNOWN]) + "\n", encoding="utf-8")
    return {name: str(path) for name, path in files.items()}


class _Scores(CTCDecoderLM):  # type: ignore[misc]
    """Word model in Flashlight's form. words: by place in its list of words, or else of tokens;
    bonus: added to each word's log probability.

    Of hypotheses with one state (the same object) Flashlight keeps the best, so each state of the
    model has one object, which holds as much of the past as the model needs.
    """

    def __init__(self, model: WordModel, words: Mapping[int, str], bonus: float = 0.0) -> None:
        super().__init__()
        self.in_search = False  # while the trie is made: best score of the words ahead
        self._model, self._words, self._bonus = model, words, bonus
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
        if place not in self._words:
            return state, IMPOSSIBLE
        if (state, place) not in self._known:
            after, value = self._model.score(self._states[state], self._words[place])
            self._known[state, place] = self._object(after), value + self._bonus
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
        self._network = make_network(config, self.units)
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
        found = compute_features(self._features, utt, samples)
        features = torch.from_numpy(found)[None].to(self._device)
        if self._search is None:
            return write_greedily(self._network, self.units, features)
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
