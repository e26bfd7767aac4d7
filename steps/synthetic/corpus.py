"""A corpus of synthetic speakers: its sentences, its audio files, its data directories."""

import hashlib
import json
import multiprocessing
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from itertools import islice
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import numpy as np
import scipy
from scipy.signal import resample_poly

from steps.audio import SAMPLE_RATE, write_wav
from steps.synthetic.voices import Synthesiser, Voice, apply_channel, draw_channel, draw_voice
from utils.arrays import Float64, Int16
from utils.cli import UserError
from utils.seeds import derive_seed, make_rng
from utils.stamps import digest_code

# ---- Sentences drawn from templates: statements, commands, questions, numbers, digit strings.
#
# About 560 words in all, each spelt as it is spoken (`three hundred and twelve`), so that the
# transcript is the right output of a recogniser.

DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
_TEENS = [
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]

# Weights of the kinds: much running speech, enough numbers for a recogniser to learn them.
KINDS = {"statement": 0.46, "command": 0.2, "question": 0.1, "number": 0.12, "digits": 0.12}

# `{slot}` is replaced by a word or phrase of that slot, again and again until no slot is left.
TEMPLATES: dict[str, tuple[str, ...]] = {
    "statement": (
        "{subject} {past} {object} {where}",
        "{subject} {past} {object} {where} {when}",
        "{when}, {subject} {past} {object}",
        "{when}, {subject} {went} {where}, and {pronoun} {past} {object}",
        "{subject} {went} {where} because {pronoun} {past} {object}",
        "the {thing} {where} was {quality}, but {subject} {past} {object}",
        "the {quality} {weather} {stayed} {when}",
        "{subject} said that the {thing} was {quality}",
        "there was {article} {quality} {thing} {where}",
        "{subject} and {subject} {went} {where} {when}",
        "nobody knew why {subject} {past} {object}",
        "my {relative} always {past} {object} before {meal}",
    ),
    "command": (
        "turn {state} the {device} in the {room}",
        "please turn the {device} in the {room} {state}",
        "{set} the {device} {where}, and turn {state} the {device}",
        "play {article} {quality} song about the {nature} {when}",
        "remind me to {do} {object} {future}",
        "call my {relative}, and ask about the {thing}",
        "send {article} {quality} message to {person} {future}",
        "wake me up at {clock} {future}",
        "open the {device} and {do} the {thing}",
        "show me the {quality} way from {place} to {place}",
        "stop the {device}, and then {do} {object}",
    ),
    "question": (
        "did {subject} {do} {object} {where}?",
        "where did {subject} {do} the {quality} {thing}?",
        "can you {do} {object} {future}?",
        "why is the {device} in the {room} so {quality}?",
        "who {past} {object} {when}?",
        "how many {things} are there in {place}?",
        "what would {person} {do} with the {quality} {thing}?",
    ),
    "number": (
        "the {thing} costs {count} dollars and {small} cents",
        "the train to {place} leaves at {clock} {future}",
        "{subject} counted {count} {things} {where}",
        "it is {count} miles from {place} to {place}",
        "add {count} to {count}, and take away {small}",
        "the meeting is on {month} the {ordinal} at {clock}",
        "set the {device} to {small} degrees at {clock}",
        "turn to page {count}, and read line {small}",
        "{person} was born in {month} nineteen {tens}",
        "{small} percent of the {things} came from {place}",
    ),
}

_WORDS = {
    "subject": "the {role}|the {quality} {role}|{person}|my {relative}|the {animal}|"
    "their {relative}",
    "pronoun": "he|she|they|we|nobody|somebody",
    "role": "teacher|doctor|farmer|sailor|captain|painter|driver|nurse|lawyer|baker|singer|writer|"
    "student|soldier|judge|engineer|waiter|gardener|butcher|dancer|king|queen|stranger|neighbour|"
    "visitor|children|villagers|woman|man|boy|girl",
    "person": "Alice|Martin|Susan|Peter|Laura|Robert|Helen|David|Emma|George|Julia|Thomas|Nora|"
    "Henry|Sarah|Walter|Margaret|Oliver|Rachel|Simon|Victoria|Edward|Grace|Philip",
    "relative": "mother|father|sister|brother|uncle|aunt|cousin|grandmother|grandfather|daughter|"
    "son|nephew|friend|wife|husband",
    "animal": "dog|cat|horse|fox|goat|owl|sheep|rabbit|bear|donkey|goose|wolf|mouse|cow|pig",
    "past": "found|lost|bought|sold|painted|carried|watched|noticed|forgot|remembered|broke|mended|"
    "cleaned|opened|closed|moved|followed|finished|described|counted|hid|took|brought|wanted|"
    "needed|loved|feared|wrapped|burned|buried|washed|measured|shared|borrowed|returned|chose",
    "do": "find|buy|sell|paint|carry|watch|forget|break|mend|clean|open|close|move|follow|finish|"
    "describe|count|hide|take|bring|check|wash|measure|share|borrow|return|choose|read|move|fix",
    "went": "went|walked|ran|travelled|came back|hurried|waited|rested|sat|stood|slept|worked|sang",
    "stayed": "lasted|began|ended|arrived|returned|surprised everyone|kept us inside",
    "object": "the {thing}|the {quality} {thing}|{article} {quality} {thing}|{few} {things}|"
    "the {things}|the {nature}|his {thing}|her {quality} {thing}|our {things}",
    "article": "one|another|the|this|that",
    "few": "two|three|four|five|six|some|many|several|twenty|a few",
    "thing": "letter|basket|ladder|picture|bottle|blanket|hammer|mirror|candle|bicycle|piano|"
    "jacket|newspaper|telephone|suitcase|umbrella|table|chair|pencil|map|wallet|watch|engine|"
    "bridge|garden|fence|ship|wheel|cup|spoon|knife|box|bag|book|coat|shoe|rope|drum|flag|stone",
    "things": "letters|baskets|pictures|bottles|blankets|candles|bicycles|jackets|newspapers|"
    "tables|chairs|pencils|maps|watches|cups|spoons|boxes|bags|books|coats|shoes|stones|apples|"
    "oranges|potatoes|flowers|horses|birds|eggs|coins|keys|stamps|tickets|songs|stories",
    "quality": "old|new|red|blue|green|yellow|white|black|heavy|light|small|large|quiet|noisy|"
    "clever|foolish|gentle|strange|beautiful|broken|wooden|golden|silver|dusty|empty|hungry|tired|"
    "careful|famous|simple|narrow|wide|bright|dark|cheap|expensive|cold|warm|soft|rough|honest",
    "nature": "river|mountain|forest|ocean|desert|island|valley|moon|sun|sky|snow|rain|wind|storm",
    "weather": "rain|snow|storm|wind|fog|summer|winter|spring|autumn|weather|sunshine|thunder",
    "where": "in the {room}|near the {nature}|behind the {building}|under the {thing}|"
    "in front of the {building}|beside the {thing}|across the {nature}|in {place}|"
    "at the {building}|on the {thing}|inside the {building}|"
    "between the {building} and the {building}",
    "building": "church|school|station|market|hospital|library|museum|bakery|theatre|bank|castle|"
    "factory|hotel|farm|harbour|airport|stable|tower|office|barn",
    "room": "kitchen|bedroom|bathroom|hallway|cellar|attic|garage|garden|office|nursery",
    "place": "London|Paris|Boston|Dublin|Chicago|Glasgow|Vienna|Sydney|Toronto|Madrid|Venice|"
    "Oxford|Denver|Cairo|Bristol|Houston",
    "when": "yesterday|last night|in the morning|after {meal}|before {meal}|on {day}|last {day}|"
    "in {month}|for {few} days|for {few} hours|at midnight|all day long|every {day}|once again|"
    "many years ago",
    "future": "tomorrow|tonight|next {day}|on {day}|this evening|in {few} hours|before {meal}|"
    "after {meal}|next week|in {month}",
    "meal": "breakfast|lunch|dinner|supper|tea",
    "day": "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday",
    "month": "January|February|March|April|May|June|July|August|September|October|November|"
    "December",
    "device": "lamp|light|heater|radio|television|fan|oven|alarm|camera|door|window|blind|speaker|"
    "printer|engine|clock",
    "state": "on|off|up|down",
    "set": "put|place|leave|set|keep",
}
_SLOT = re.compile(r"\{(\w+)\}")


def say_number(number: int) -> str:
    """Spell a number from 0 to 9999 in words.

    >>> say_number(312)
    'three hundred and twelve'
    """
    if not 0 <= number <= 9999:
        raise ValueError(f"{number} is not between 0 and 9999")
    if number < 10:
        return DIGITS[number]
    if number < 20:
        return _TEENS[number - 10]
    if number < 100:
        tens, ones = divmod(number, 10)
        return _TENS[tens - 2] + (f" {DIGITS[ones]}" if ones else "")
    unit, name = (1000, "thousand") if number >= 1000 else (100, "hundred")
    high, low = divmod(number, unit)
    joint = " and " if low < 100 else " "
    return f"{say_number(high)} {name}" + (f"{joint}{say_number(low)}" if low else "")


_ORDINAL_ENDS = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth",
    "nine": "ninth", "twelve": "twelfth", "twenty": "twentieth", "thirty": "thirtieth",
}  # fmt: skip


def say_ordinal(number: int) -> str:
    """Spell the day of a month, 1 to 31, as an ordinal in words."""
    *head, last = say_number(number).split()
    return " ".join([*head, _ORDINAL_ENDS.get(last, f"{last}th")])


def _clock(rng: np.random.Generator) -> str:
    hour = say_number(int(rng.integers(1, 13)))
    minute = int(rng.integers(0, 12)) * 5
    if minute == 0:
        return f"{hour} o'clock"
    return f"{hour} {'oh ' if minute < 10 else ''}{say_number(minute)}"


def _fill(slot: str, rng: np.random.Generator) -> str:
    if slot == "count":
        return say_number(int(10 ** rng.uniform(0.5, 3.95)))
    if slot == "small":
        return say_number(int(rng.integers(2, 100)))
    if slot == "tens":
        return say_number(int(rng.integers(20, 100)))
    if slot == "ordinal":
        return say_ordinal(int(rng.integers(1, 32)))
    if slot == "clock":
        return _clock(rng)
    choices = _WORDS[slot].split("|")
    return choices[int(rng.integers(len(choices)))]


@dataclass(frozen=True)
class Sentence:
    """Sentence. `spoken`: with the punctuation that sets its melody."""

    spoken: str

    @property
    def words(self) -> str:
        """Words in upper case without punctuation, as in LibriSpeech."""
        return " ".join(re.findall(r"[A-Z']+", self.spoken.upper()))


def _draw_once(rng: np.random.Generator, kind: str) -> Sentence:
    if kind == "digits":
        digits = [DIGITS[i] for i in rng.integers(0, 10, size=int(rng.integers(4, 11)))]
        return Sentence(" ".join(digits) + ".")
    templates = TEMPLATES[kind]
    text = templates[int(rng.integers(len(templates)))]
    while match := _SLOT.search(text):
        text = text[: match.start()] + _fill(match[1], rng) + text[match.end() :]
    return Sentence(text if text.endswith("?") else text + ".")


def draw_sentence(rng: np.random.Generator, shortest: int = 6, longest: int = 13) -> Sentence:
    """Draw a sentence of `shortest` to `longest` words, of a kind drawn by the weights of KINDS."""
    kind = str(rng.choice(list(KINDS), p=list(KINDS.values())))
    while True:
        sentence = _draw_once(rng, kind)
        if shortest <= len(sentence.words.split()) <= longest:
            return sentence


# ---- Run a function on every item, each item in a process of its own, several at a time.

Item = TypeVar("Item")


def _run(function: Callable[[Item], None], item: Item) -> None:
    """Run a child: the parent's usual treatment of errors, in the child."""
    try:
        function(item)
    except (UserError, OSError) as error:  # an OSError: disk full, not allowed
        sys.stderr.write(f"{error}\n")
        sys.exit(1)


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
_SILENCE = 64  # of 32768: limit of the pause that the synthesiser adds
_PAUSE = (0.10, 0.35)  # seconds before and after the speech
_WAV_HEADER = 44  # bytes


@dataclass(frozen=True)
class Settings:
    """Settings that decide how a speaker sounds, without the numbers of speakers and processes."""

    seed: int
    utterances: int
    spread: float
    within: float
    channel: float


@dataclass(frozen=True)
class Speaker:
    """`name`: the id; `gender`: `f` or `m`."""

    name: str
    gender: str


@dataclass(frozen=True)
class Utterance:
    """`utt`: its id and file name; `seconds`: duration of the file; `text`: its words."""

    utt: str
    seconds: float
    text: str


def speaker_ids(first: int, n: int) -> dict[str, str]:
    """Map `n` speakers (even) to genders, half of each, from number `first` on.

    >>> speaker_ids(21, 4)
    {'synf021': 'f', 'synf022': 'f', 'synm021': 'm', 'synm022': 'm'}
    """
    return {
        f"syn{gender}{number:03d}": gender
        for gender in ("f", "m")
        for number in range(first, first + n // 2)
    }


def settings_digest(settings: Settings) -> str:
    """Digest of all that a speaker depends on, except the id: settings, code, libraries."""
    libraries = [np.__version__, scipy.__version__, version("espeakng-loader")]
    parts = [asdict(settings), digest_code(Path(__file__)), libraries]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _draw_text(settings: Settings, utt: str) -> Sentence:
    return draw_sentence(make_rng(settings.seed, "sentence", utt))


def _trim(utt: str, samples: Int16) -> Int16:
    loud = np.flatnonzero(np.abs(samples.astype(np.int32)) > _SILENCE)
    if len(loud) == 0:
        raise UserError(f"{utt}: eSpeak NG gave silence; this should not happen, please report it")
    return samples[loud[0] : loud[-1] + 1]


def _record(synthesiser: Synthesiser, settings: Settings, voice: Voice, utt: str) -> Float64:
    """Speak the sentence of an utterance and send it through its channel: (n,) at SAMPLE_RATE."""
    spoken = synthesiser.speak(
        _draw_text(settings, utt).spoken, voice.accent, voice.variant, voice.words_per_minute
    )
    clean = _trim(utt, spoken).astype(np.float64) / 2**15
    divisor = int(np.gcd(synthesiser.sample_rate, SAMPLE_RATE))
    clean = resample_poly(clean, SAMPLE_RATE // divisor, synthesiser.sample_rate // divisor)
    rng = make_rng(settings.seed, "channel", utt)
    before, after = (int(SAMPLE_RATE * rng.uniform(*_PAUSE)) for _ in range(2))
    channel = draw_channel(rng, settings.channel)
    return apply_channel(np.pad(clean, (before, after)), channel, rng, SAMPLE_RATE)


def _make_utterance(
    synthesiser: Synthesiser, settings: Settings, speaker: Speaker, number: int, folder: Path
) -> Utterance:
    utt = f"{speaker.name}-{number:03d}"
    voice = draw_voice(
        settings.seed,
        speaker.name,
        speaker.gender,
        utt,
        spread=settings.spread,
        within=settings.within,
    )
    samples = _record(synthesiser, settings, voice, utt)
    write_wav(folder / f"{utt}.wav", samples)
    return Utterance(utt, len(samples) / SAMPLE_RATE, _draw_text(settings, utt).words)


def _make_speaker(
    audio: Path, settings: Settings, digest: str, scratch: Path, speaker: Speaker
) -> None:
    """Write `audio/<speaker>/<utt>.wav` and the speaker's record. Needs its own process.

    The speaker's folder takes its place as a whole, so a killed run leaves no part of it.
    """
    target, beside = audio / speaker.name, audio / f".{speaker.name}.making"
    if beside.exists():
        shutil.rmtree(beside)
    beside.mkdir()
    with TemporaryDirectory(dir=scratch) as folder:
        seed = derive_seed(settings.seed, "espeak", speaker.name)
        synthesiser = Synthesiser(Path(folder), seed)
        entries = [
            asdict(_make_utterance(synthesiser, settings, speaker, number, beside))
            for number in range(1, settings.utterances + 1)
        ]
    record = {"made_with": digest, "utterances": entries}
    (beside / _RECORD).write_text(json.dumps(record, indent=1), encoding="utf-8")
    if target.exists():
        shutil.rmtree(target)
    beside.rename(target)


def read_speaker(audio: Path, speaker: str, digest: str) -> list[Utterance] | None:
    """Utterances of a speaker made before with the same settings, or None: made otherwise, not at
    all, or with a file that is missing or has another size."""
    folder = audio / speaker
    try:
        record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        if record["made_with"] != digest:
            return None
        utterances = [Utterance(**fields) for fields in record["utterances"]]
        for item in utterances:
            size = (folder / f"{item.utt}.wav").stat().st_size
            if size != _WAV_HEADER + 2 * round(item.seconds * SAMPLE_RATE):
                return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return utterances


@dataclass(frozen=True)
class Made:
    """`speakers`: utterances of each. `n_new`: number of speakers made in this run."""

    speakers: dict[str, list[Utterance]]
    n_new: int


def make_corpus(
    audio: Path, settings: Settings, genders: Mapping[str, str], processes: int
) -> Made:
    """Make the missing speakers of `audio`. `genders`: speaker to `f` or `m`."""
    try:
        audio.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{audio}: cannot be made: {error.strerror}") from error
    digest = settings_digest(settings)
    missing = {
        speaker: Speaker(speaker, gender)
        for speaker, gender in genders.items()
        if read_speaker(audio, speaker, digest) is None
    }
    # Here and not in the child, so that a child that is ended leaves nothing behind.
    with TemporaryDirectory(prefix="espeak-") as scratch:
        make = partial(_make_speaker, audio, settings, digest, Path(scratch))
        run_each_apart(make, missing, processes)
    speakers = {}
    for speaker in genders:
        found = read_speaker(audio, speaker, digest)
        if found is None:
            raise UserError(f"{audio / speaker}: not as it was just written; is the disk full?")
        speakers[speaker] = found
    return Made(speakers, len(missing))


def data_tables(
    audio: Path, made: Made, genders: Mapping[str, str]
) -> dict[str, dict[str, object]]:
    """Tables of a data directory (`utils/datadir.py`) for the speakers that were made."""
    tables: dict[str, dict[str, object]] = {
        name: {} for name in ("wav.scp", "utt2spk", "spk2gender", "text", "utt2dur")
    }
    for speaker, utterances in made.speakers.items():
        tables["spk2gender"][speaker] = genders[speaker]
        for item in utterances:
            tables["wav.scp"][item.utt] = audio / speaker / f"{item.utt}.wav"
            tables["utt2spk"][item.utt] = speaker
            tables["text"][item.utt] = item.text
            tables["utt2dur"][item.utt] = f"{item.seconds:.4f}"
    return tables
