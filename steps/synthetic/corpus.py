"""Synthetic speakers: voices of eSpeak NG, rooms and microphones, sentences, and a corpus."""

import ctypes
import json
import multiprocessing
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.metadata import version
from itertools import islice
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import espeakng_loader
import numpy as np
import scipy
from scipy import fft
from scipy.signal import resample_poly

from steps.audio import SAMPLE_RATE, write_wav
from utils.arrays import Float64
from utils.cli import UserError, refusing
from utils.digests import digest_file, digest_json
from utils.seeds import derive_seed, make_rng
from utils.settings import read_settings
from utils.stamps import digest_code

# ---- eSpeak NG through ctypes: one speaker a process, voices of our own, samples that repeat.
#
# The library and its data come with the package `espeakng-loader`; the system needs nothing.
# What makes the samples repeat:
#
# - the library seeds its noise from the clock, so `espeak_ng_SetRandSeed` is called once after
#   start;
# - it keeps state from one utterance to the next, so a process speaks for one speaker only and
#   always from the speaker's first utterance on (a second `Espeak` in one process is an
#   error).

# Voices must be named by their files: names such as `en-gb` are refused together with a variant.
ACCENTS = [
    f"gmw/en{place}"
    for place in (
        "", "-029", "-GB-scotland", "-GB-x-gbclan", "-GB-x-gbcwmd", "-GB-x-rp", "-US", "-US-nyc",
    )
]  # fmt: skip

_SYNCHRONOUS = 2  # AUDIO_OUTPUT_SYNCHRONOUS: the callback runs within espeak_Synth
_DONT_EXIT = 0x8000  # espeakINITIALIZE_DONT_EXIT
_UTF8 = 1  # espeakCHARS_UTF8
_BUFFER_MS = 1000
_RATE = 1  # espeakRATE

_Callback = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p
)
_VARIANT = "own"
_started = False


@dataclass(frozen=True)
class EspeakVoice:
    """`accent`: name of an eSpeak NG voice; `variant`: text of the voice file laid over it."""

    accent: str
    variant: str
    words_per_minute: int


class Espeak:
    """Synthesiser eSpeak NG for one speaker: the only one of its process.

    `folder`: empty, with a short path, for the library's data; the caller removes it afterwards.
    `seed`: of the noise in the voice. Raises UserError where the library does not start.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        global _started
        if _started:
            raise RuntimeError("one speaker a process: eSpeak NG keeps state between utterances")
        _started = True
        # Links to the package's data, without its hundred variants.
        for part in Path(espeakng_loader.get_data_path()).iterdir():
            if part.name != "voices":
                (folder / part.name).symlink_to(part)
        self._variant = folder / "voices" / "!v" / _VARIANT
        self._variant.parent.mkdir(parents=True)
        self._library = ctypes.CDLL(espeakng_loader.get_library_path())
        self.sample_rate = self._start(folder)
        self._library.espeak_ng_SetRandSeed(ctypes.c_long(seed % 2**31))
        self._chunks: list[bytes] = []
        self._callback = _Callback(self._collect)  # kept, or ctypes would free it
        self._library.espeak_SetSynthCallback(self._callback)

    def _start(self, folder: Path) -> int:
        library, name = self._library, os.fsencode(folder)
        rate = int(library.espeak_Initialize(_SYNCHRONOUS, _BUFFER_MS, name, _DONT_EXIT))
        # A path that is too long is not refused: the library looks for its data elsewhere.
        used = ctypes.c_char_p()
        library.espeak_Info(ctypes.byref(used))
        if rate <= 0 or used.value != name:
            raise UserError(
                f"{folder}: eSpeak NG cannot start from here; "
                "set TMPDIR to a folder with a short path"
            )
        return rate

    def _collect(self, samples: "ctypes._Pointer[ctypes.c_short]", n: int, _events: int) -> int:
        if samples and n > 0:
            self._chunks.append(ctypes.string_at(samples, 2 * n))
        return 0

    def speak(self, text: str, voice: EspeakVoice) -> Float64:
        """Samples (n,) of a spoken text at `sample_rate`, full scale 1."""
        self._variant.write_text(voice.variant, encoding="ascii")
        self._check("espeak_SetVoiceByName", f"{voice.accent}+{_VARIANT}".encode("ascii"))
        self._check("espeak_SetParameter", _RATE, voice.words_per_minute, 0)
        self._chunks.clear()
        data = text.encode("utf-8")
        size, zero = ctypes.c_size_t(len(data) + 1), ctypes.c_uint(0)
        self._check("espeak_Synth", data, size, zero, 0, zero, _UTF8, None, None)
        return np.frombuffer(b"".join(self._chunks), np.int16) / 2**15

    def _check(self, name: str, *arguments: object) -> None:
        if status := getattr(self._library, name)(*arguments):
            raise UserError(f"eSpeak NG: {name} failed with status {status}")


# ---- Voices: each speaker has one, and speaks a little differently in every utterance.
#
# Two normal distributions, as in two-covariance PLDA: a speaker's parameters lie around the mean of
# the gender, and an utterance's around the speaker's own.

_N_PEAKS = 9  # formants 0 to 8: 1 to 3 make the vowels, 0 lies below F1, 4 and up colour the voice
# eSpeak NG's `pitch LOW HIGH`: the median of running speech lies at LOW x 1.27.
_MEDIAN_OVER_LOW = 1.27


@dataclass(frozen=True)
class GenderTraits:
    """Centre of a gender's voices: median F0 (Hz), formants as a factor on the library's adult
    male, widths of the formants (factor)."""

    f0: float
    formants: float
    widths: float


GENDERS = {"f": GenderTraits(205.0, 1.14, 1.4), "m": GenderTraits(112.0, 0.99, 1.0)}
# Standard deviations between speakers of a gender at spread 1, of natural logarithms but for those
# of tone (dB), stress (eSpeak NG's units of length) and roughness (of 7). tract: all formants
# together, by its length; formant, strength, width: each by itself.
_SD = {
    "f0": 0.14, "range": 0.20, "tract": 0.05, "formant": 0.06, "strength": 0.30, "width": 0.25,
    "tone": 4.0, "voicing": 0.20, "consonants": 0.30, "stress": 12.0, "speed": 0.12, "breath": 0.80,
    "flutter": 0.50, "roughness": 1.0,
}  # fmt: skip
_BREATH = 3.0  # median strength of the noise in the formants
_MOST_F0, _MOST_FORMANT = 1.7, 1.25  # factors; the library crashes on a very low pitch
_TONE_POINTS = ((600, 170), (1200, 135), (2000, 110), (3200, 110))  # Hz, amplitude


class _Deviations:
    """Deviates of a voice, drawn in a fixed order: the speaker's own plus the utterance's."""

    def __init__(self, seed: int, speaker: str, utt: str, spread: float, within: float) -> None:
        self.speaker = make_rng(seed, "voice", speaker)
        self._utt = make_rng(seed, "delivery", utt)
        self._spread, self._within = spread, within

    def normal(self, what: str, n: int = 1) -> Float64:
        """Draw (n,), with standard deviation spread x _SD[what] between speakers."""
        own, now = self.speaker.standard_normal(n), self._utt.standard_normal(n)
        return np.asarray(self._spread * _SD[what] * (own + self._within * now))

    def factor(self, what: str, n: int = 1, most: float = 3.0) -> Float64:
        """Draw (n,) log-normal, median 1, kept between 1 / most and most."""
        return np.clip(np.exp(self.normal(what, n)), 1.0 / most, most)


def _whole(values: Float64) -> str:
    return " ".join(str(round(float(value))) for value in values)


def _formant_lines(draw: _Deviations, traits: GenderTraits) -> list[str]:
    tract = draw.factor("tract", most=_MOST_FORMANT)
    frequency = traits.formants * tract * draw.factor("formant", _N_PEAKS, most=_MOST_FORMANT)
    strength = draw.factor("strength", _N_PEAKS)
    width = traits.widths * draw.factor("width", _N_PEAKS)
    rows = 100.0 * np.column_stack([frequency, strength, width])
    return [f"formant {number} {_whole(row)}" for number, row in enumerate(rows)]


def _tone_line(draw: _Deviations) -> str:
    gains = 10.0 ** (draw.normal("tone", len(_TONE_POINTS)) / 20.0)
    points = [
        f"{hertz} {int(np.clip(amplitude * gain, 20, 255))}"
        for (hertz, amplitude), gain in zip(_TONE_POINTS, gains, strict=True)
    ]
    return "tone " + " ".join(points)


def draw_voice(
    seed: int, speaker: str, gender: str, utt: str, *, spread: float, within: float
) -> EspeakVoice:
    """Draw the voice of a speaker in an utterance, by their ids, independent of other speakers.

    `spread`: distance of a gender's voices; 0: they differ by accent only, 1: in F0 as people do.
    `within`: distance of a speaker's utterances, as a fraction of that.
    """
    draw, traits = _Deviations(seed, speaker, utt, spread, within), GENDERS[gender]
    accent = ACCENTS[int(draw.speaker.integers(len(ACCENTS)))]
    speed = round(165.0 * float(draw.factor("speed")[0]))
    low = traits.f0 * draw.factor("f0", most=_MOST_F0) / _MEDIAN_OVER_LOW
    high = low * (1.0 + 0.42 * draw.factor("range"))
    lines = [  # each draws as it is made
        "language variant",
        f"name {speaker}",
        f"pitch {_whole(low)} {_whole(high)}",
        *_formant_lines(draw, traits),
        _tone_line(draw),
        f"voicing {_whole(100.0 * draw.factor('voicing'))}",
        f"consonants {_whole(100.0 * draw.factor('consonants', 2))}",
        # Always eight numbers: the library leaves missing ones uninitialised.
        f"breath {_whole(_BREATH * draw.factor('breath') * np.linspace(0.3, 1.0, 8))}",
        f"stressAdd {_whole(draw.normal('stress', 8))}",
        f"flutter {_whole(3.0 * draw.factor('flutter'))}",
        f"roughness {_whole(np.clip(2.0 + draw.normal('roughness'), 0.0, 7.0))}",
    ]
    return EspeakVoice(accent, "\n".join(lines) + "\n", speed)


# ---- Path from mouth to file: room, microphone, noise, level. Drawn anew for every utterance.
#
# A speaker's utterances share nothing of this, so an evaluator cannot tell a speaker by the room.

_EQ_TERMS = 5  # cosines over log frequency
_PREDELAY = (0.002, 0.010)  # seconds before the first reflections
_MIN_SNR_DB, _MAX_SNR_DB = 6.0, 50.0  # never none: digital silence upsets recognisers
_PEAK_LIMIT = 0.9


def _room_response(
    rng: np.random.Generator, reverberation_time: float, direct_to_reverberant_db: float, rate: int
) -> Float64:
    """Impulse response (n,): the direct sound, then noise that falls by 60 dB over its length."""
    n = int(reverberation_time * rate)
    start = int(rng.uniform(*_PREDELAY) * rate)
    tail = rng.standard_normal(n) * 10.0 ** (-3.0 * np.arange(n) / n)
    tail[:start] = 0.0
    energy = 10.0 ** (-direct_to_reverberant_db / 10.0)
    tail *= np.sqrt(energy / np.sum(tail**2))
    tail[0] = 1.0
    return tail


def _microphone_gain(equaliser_db: Float64, low_cut_hz: float, frequencies: Float64) -> Float64:
    """Linear gain at each frequency (Hz): the equaliser, and a second-order low cut."""
    octave = np.log2(np.maximum(frequencies, 50.0) / 50.0) / np.log2(8000.0 / 50.0)
    orders = np.arange(1, _EQ_TERMS + 1)[:, None]
    decibel = equaliser_db @ np.cos(np.pi * orders * octave)
    ratio = (frequencies / low_cut_hz) ** 2
    return np.asarray(10.0 ** (decibel / 20.0) * ratio / np.hypot(1.0, ratio))


def _rms(samples: Float64) -> float:
    return float(np.sqrt(np.mean(samples**2)))


def pass_channel(samples: Float64, rng: np.random.Generator, strength: float, rate: int) -> Float64:
    """Record clean speech with its pauses (n,) as (n,), within +-0.9 of full scale.

    The channel is drawn. `strength`: 0 a close microphone, 1 a poor one across a room.
    """
    terms = rng.standard_normal(_EQ_TERMS) / np.sqrt(np.arange(1, _EQ_TERMS + 1))
    reverberation_time = 0.12 + strength * rng.uniform(0.05, 0.5)
    direct_to_reverberant_db = 22.0 - 14.0 * strength + 4.0 * rng.standard_normal()
    low_cut_hz = rng.uniform(50.0, 50.0 + 100.0 * strength)
    snr_db = 38.0 - 20.0 * strength + 4.0 * rng.standard_normal()
    noise_slope = rng.uniform(0.0, 1.6)  # the noise's power falls as f**-slope
    level_db = -26.0 + 3.0 * rng.standard_normal()  # of the whole file, against full scale
    room = _room_response(rng, reverberation_time, direct_to_reverberant_db, rate)
    n_fft = fft.next_fast_len(len(samples) + len(room), real=True)
    frequencies = fft.rfftfreq(n_fft, 1.0 / rate)
    gain = _microphone_gain(4.0 * strength * terms, low_cut_hz, frequencies)
    speech = fft.irfft(fft.rfft(samples, n_fft) * fft.rfft(room, n_fft) * gain, n_fft)
    colour = gain * np.maximum(frequencies, 20.0) ** (-noise_slope / 2.0)
    noise = fft.irfft(fft.rfft(rng.standard_normal(n_fft)) * colour, n_fft)
    speech, noise = speech[: len(samples)], noise[: len(samples)]
    snr = float(np.clip(snr_db, _MIN_SNR_DB, _MAX_SNR_DB))
    noise *= _rms(speech) / _rms(noise) * 10.0 ** (-snr / 20.0)
    recorded = speech + noise
    recorded *= 10.0 ** (level_db / 20.0) / _rms(recorded)
    return np.asarray(recorded * min(1.0, _PEAK_LIMIT / float(np.max(np.abs(recorded)))))


# ---- Sentences drawn from templates: statements, commands, questions, numbers, digit strings.
#
# About 560 words in all, each spelt as it is spoken (`three hundred and twelve`), so that the
# transcript is the right output of a recogniser.

SENTENCES = Path(__file__).with_name("sentences.yaml")
_TEXTS: dict[str, Any] = read_settings(SENTENCES)
_NUMBERS, _TENS = _TEXTS["numbers"], _TEXTS["tens"]
DIGITS: list[str] = _NUMBERS[:10]
_SLOT = re.compile(r"\{(\w+)\}")


def say_number(number: int) -> str:
    """Spell a number from 0 to 9999 in words.

    >>> say_number(312)
    'three hundred and twelve'
    """
    if not 0 <= number <= 9999:
        raise ValueError(f"{number} is not between 0 and 9999")
    if number < 20:
        return str(_NUMBERS[number])
    if number < 100:
        tens, ones = divmod(number, 10)
        return f"{_TENS[tens - 2]}" + (f" {DIGITS[ones]}" if ones else "")
    unit, name = (1000, "thousand") if number >= 1000 else (100, "hundred")
    high, low = divmod(number, unit)
    joint = " and " if low < 100 else " "
    return f"{say_number(high)} {name}" + (f"{joint}{say_number(low)}" if low else "")


def say_ordinal(number: int) -> str:
    """Spell the day of a month, 1 to 31, as an ordinal in words."""
    *head, last = say_number(number).split()
    return " ".join([*head, _TEXTS["ordinals"].get(last, f"{last}th")])


def _clock(rng: np.random.Generator) -> str:
    hour = say_number(int(rng.integers(1, 13)))
    minute = int(rng.integers(0, 12)) * 5
    if minute == 0:
        return f"{hour} o'clock"
    return f"{hour} {'oh ' if minute < 10 else ''}{say_number(minute)}"


_DRAWN: dict[str, Callable[[np.random.Generator], str]] = {  # slots of numbers
    "count": lambda rng: say_number(int(10 ** rng.uniform(0.5, 3.95))),
    "small": lambda rng: say_number(int(rng.integers(2, 100))),
    "tens": lambda rng: say_number(int(rng.integers(20, 100))),
    "ordinal": lambda rng: say_ordinal(int(rng.integers(1, 32))),
    "clock": _clock,
}


def words_of(sentence: str) -> str:
    """Words in upper case without punctuation, as in LibriSpeech."""
    return " ".join(re.findall(r"[A-Z']+", sentence.upper()))


def _draw_once(rng: np.random.Generator, kind: str) -> str:
    if kind == "digits":
        return " ".join(DIGITS[i] for i in rng.integers(0, 10, size=int(rng.integers(4, 11)))) + "."

    def draw(choices: list[str]) -> str:
        return choices[int(rng.integers(len(choices)))]

    text = draw(_TEXTS["templates"][kind])
    while match := _SLOT.search(text):
        slot = match[1]
        word = _DRAWN[slot](rng) if slot in _DRAWN else draw(_TEXTS["words"][slot])
        text = text[: match.start()] + word + text[match.end() :]
    return text if text.endswith("?") else text + "."


def draw_sentence(rng: np.random.Generator, shortest: int = 6, longest: int = 13) -> str:
    """Draw a sentence of `shortest` to `longest` words, of a kind drawn by the kinds' weights.

    It has the punctuation that sets its melody; `words_of` it are the transcript.
    """
    kinds = _TEXTS["kinds"]
    kind = str(rng.choice(list(kinds), p=list(kinds.values())))
    while True:
        sentence = _draw_once(rng, kind)
        if shortest <= len(words_of(sentence).split()) <= longest:
            return sentence


# ---- Run a function on every item, each item in a process of its own, several at a time.

Item = TypeVar("Item")


def _run(function: Callable[[Item], None], item: Item) -> None:
    """Run a child: the parent's usual treatment of errors, in the child."""
    try:
        function(item)
    except (UserError, OSError) as error:  # an OSError: disk full, not allowed
        sys.exit(str(error))


def run_each_apart(
    function: Callable[[Item], None], items: Mapping[str, Item], processes: int
) -> None:
    """Call `function(item)` in a fresh process for each item, at most `processes` at a time.

    `items`: name (for messages) to item. Stops at the first that fails, or was killed, with a
    UserError that names it; the others are ended. A pool of workers would not do: it uses a process
    again, and waits for ever for one that was killed.
    """
    context = multiprocessing.get_context("fork")
    queue = iter(items.items())
    running: dict[str, ForkProcess] = {}
    try:
        while True:
            for name, item in islice(queue, processes - len(running)):
                running[name] = context.Process(target=_run, args=(function, item))
                running[name].start()
            if not running:
                return
            wait([child.sentinel for child in running.values()])
            for name in [name for name, child in running.items() if child.exitcode is not None]:
                if (status := running.pop(name).exitcode) != 0:
                    raise UserError(f"{name}: its process failed with status {status}")
    finally:
        for child in running.values():
            child.terminate()
            child.join()


# ---- Corpus of synthetic speakers: audio files of each speaker, and the data directory of a set.

_RECORD = "speaker.json"  # written last; a speaker's folder without it does not count
_SILENCE = 64 / 2**15  # of full scale: limit of the pause that the synthesiser adds
_PAUSE = (0.10, 0.35)  # seconds before and after the speech
_WAV_HEADER = 44  # bytes
READING_RATE = 140  # words a minute, about as people read aloud


@dataclass(frozen=True)
class CorpusSettings:
    """Settings that decide how a speaker sounds, without the numbers of speakers and processes."""

    seed: int
    utterances: int
    spread: float
    within: float
    channel: float

    def digest(self) -> str:
        """Digest of all that a speaker depends on, except the id: settings, code, libraries."""
        libraries = [np.__version__, scipy.__version__, version("espeakng-loader")]
        parts = [asdict(self), digest_code(Path(__file__)), digest_file(SENTENCES), libraries]
        return digest_json(parts)


@dataclass(frozen=True)
class SpokenSentence:
    """`utt`: its id and file name; `seconds`: duration of the file; `text`: its words."""

    utt: str
    seconds: float
    text: str


def speaker_ids(first: int, n: int) -> dict[str, str]:
    """Map `n` speakers (even) to genders, half of each, from number `first` on.

    >>> speaker_ids(21, 4)
    {'synf021': 'f', 'synf022': 'f', 'synm021': 'm', 'synm022': 'm'}
    """
    numbers = range(first, first + n // 2)
    return {f"syn{gender}{number:03d}": gender for gender in "fm" for number in numbers}


def _record(
    espeak: Espeak, settings: CorpusSettings, speaker: tuple[str, str], utt: str, folder: Path
) -> SpokenSentence:
    """Speak the sentence of an utterance, send it through its channel, and write the file."""
    seed, sentence = settings.seed, draw_sentence(make_rng(settings.seed, "sentence", utt))
    voice = draw_voice(seed, *speaker, utt, spread=settings.spread, within=settings.within)
    spoken = espeak.speak(sentence, voice)
    clean = _trim(utt, spoken, espeak.sample_rate)
    rng = make_rng(seed, "channel", utt)
    pauses = [int(SAMPLE_RATE * rng.uniform(*_PAUSE)) for _ in range(2)]
    samples = pass_channel(np.pad(clean, pauses), rng, settings.channel, SAMPLE_RATE)
    write_wav(folder / f"{utt}.wav", samples)
    return SpokenSentence(utt, len(samples) / SAMPLE_RATE, words_of(sentence))


def _trim(utt: str, spoken: Float64, rate: int) -> Float64:
    """Speech at 16 kHz, without the silence around it; UserError where there is no speech."""
    loud = np.flatnonzero(np.abs(spoken) > _SILENCE)
    if len(loud) == 0:
        raise UserError(f"{utt}: eSpeak NG gave silence; this should not happen, please report it")
    return resample_poly(spoken[loud[0] : loud[-1] + 1], SAMPLE_RATE, rate)


def read_aloud(texts: Mapping[str, str], folder: Path) -> None:
    """Write `folder/<utt>.wav` for each text, all by the one voice of the speaker synm001. The
    whole process speaks for it (see `Espeak`)."""
    voice = draw_voice(0, "synm001", "m", "", spread=0.5, within=0.0)
    voice = replace(voice, words_per_minute=READING_RATE)
    with TemporaryDirectory() as scratch:
        espeak = Espeak(Path(scratch), 0)
        for utt, text in texts.items():
            speech = _trim(utt, espeak.speak(text.lower(), voice), espeak.sample_rate)
            write_wav(folder / f"{utt}.wav", speech * (0.5 / np.abs(speech).max()))


def _make_speaker(
    audio: Path, settings: CorpusSettings, digest: str, scratch: Path, speaker: tuple[str, str]
) -> None:
    """Write `audio/<speaker>/<utt>.wav` and the speaker's record. Needs its own process.

    speaker: id and gender. Its folder takes its place as a whole, so a killed run leaves no part.
    """
    name = speaker[0]
    target, beside = audio / name, audio / f".{name}.making"
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir()
    with TemporaryDirectory(dir=scratch) as folder:
        espeak = Espeak(Path(folder), derive_seed(settings.seed, "espeak", name))
        utts = [f"{name}-{number:03d}" for number in range(1, settings.utterances + 1)]
        entries = [asdict(_record(espeak, settings, speaker, utt, beside)) for utt in utts]
    record = {"made_with": digest, "utterances": entries}
    (beside / _RECORD).write_text(json.dumps(record, indent=1), encoding="utf-8")
    shutil.rmtree(target, ignore_errors=True)
    beside.rename(target)


def read_speaker(audio: Path, speaker: str, digest: str) -> list[SpokenSentence]:
    """Utterances of a speaker made before with the same settings; none: made otherwise, not at
    all, or with a file that is missing or has another size."""
    folder = audio / speaker
    try:
        record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        utterances = [SpokenSentence(**fields) for fields in record["utterances"]]
        whole = record["made_with"] == digest and all(
            (folder / f"{item.utt}.wav").stat().st_size
            == _WAV_HEADER + 2 * round(item.seconds * SAMPLE_RATE)
            for item in utterances
        )
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return utterances if whole else []


def make_corpus(
    audio: Path, settings: CorpusSettings, genders: Mapping[str, str], processes: int
) -> tuple[dict[str, list[SpokenSentence]], int]:
    """Make the missing speakers of `audio`; returns each one's utterances, and how many are new.

    `genders`: speaker to `f` or `m`.
    """
    with refusing(f"{audio}: cannot be made: {{}}", OSError):
        audio.mkdir(parents=True, exist_ok=True)
    digest = settings.digest()
    missing = {one[0]: one for one in genders.items() if not read_speaker(audio, one[0], digest)}
    # Here and not in the child, so that a child that is ended leaves nothing behind.
    with TemporaryDirectory(prefix="espeak-") as scratch:
        make = partial(_make_speaker, audio, settings, digest, Path(scratch))
        run_each_apart(make, missing, processes)
    speakers = {speaker: read_speaker(audio, speaker, digest) for speaker in genders}
    if lost := [speaker for speaker, spoken in speakers.items() if not spoken]:
        raise UserError(f"{audio / lost[0]}: not as it was just written; is the disk full?")
    return speakers, len(missing)


def data_tables(
    audio: Path, speakers: Mapping[str, list[SpokenSentence]], genders: Mapping[str, str]
) -> dict[str, dict[str, object]]:
    """Tables of a data directory (`utils/datadir.py`) for the speakers that were made."""
    spoken = [(speaker, item) for speaker, items in speakers.items() for item in items]
    return {
        "wav.scp": {item.utt: audio / speaker / f"{item.utt}.wav" for speaker, item in spoken},
        "utt2spk": {item.utt: speaker for speaker, item in spoken},
        "spk2gender": {speaker: genders[speaker] for speaker in speakers},
        "text": {item.utt: item.text for _, item in spoken},
        "utt2dur": {item.utt: f"{item.seconds:.4f}" for _, item in spoken},
        "utt2lang": {item.utt: "en" for _, item in spoken},
    }
