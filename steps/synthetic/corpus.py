"""A corpus of synthetic speakers: its sentences, its audio files, its data directories."""

import json
import multiprocessing
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

import numpy as np
import scipy
from scipy.signal import resample_poly

from steps.audio import SAMPLE_RATE, write_wav
from steps.synthetic.voices import Espeak, draw_voice, pass_channel
from utils.arrays import Float64
from utils.cli import UserError, refusing
from utils.digests import digest_file, digest_json
from utils.seeds import derive_seed, make_rng
from utils.settings import read_settings
from utils.stamps import digest_code

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
    divisor = int(np.gcd(rate, SAMPLE_RATE))
    return resample_poly(spoken[loud[0] : loud[-1] + 1], SAMPLE_RATE // divisor, rate // divisor)


def read_aloud(texts: Mapping[str, str], folder: Path) -> None:
    """Write `folder/<utt>.wav` for each text, all by the one voice of the speaker synm001. The
    whole process speaks for it (see `voices.Espeak`)."""
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
    }
