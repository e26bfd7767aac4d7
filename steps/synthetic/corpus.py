# SPDX-License-Identifier: Apache-2.0
"""Corpus of synthetic speakers: audio files of each speaker, and the data directory of a set."""

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import scipy
from scipy.signal import resample_poly

from steps.audio import SAMPLE_RATE, write_wav
from steps.synthetic.channel import apply_channel, draw_channel
from steps.synthetic.espeak import Synthesiser
from steps.synthetic.processes import run_each_apart
from steps.synthetic.sentences import Sentence, draw_sentence
from steps.synthetic.voices import Voice, draw_voice
from utils.arrays import Float64, Int16
from utils.cli import UserError
from utils.seeds import derive_seed, make_rng
from utils.stamps import digest_code

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
