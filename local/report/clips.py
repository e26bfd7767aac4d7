"""Short clips of the worst-protected speakers, to be heard beside the figures.

A clip is the loudest stretch of `SECONDS` of an utterance, the same stretch in the original and in
the protected version, at 16 kHz, as MP3 (which every browser plays; for listening, not measuring).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile

from local.report.load import Results
from local.report.origin import Json, Missing, lacks
from steps.audio import SAMPLE_RATE, read_audio
from utils.cli import UserError
from utils.datadir import DataDir, load_data_dir
from utils.tables import atomic_write

SECONDS = 3.0


@dataclass(frozen=True)
class Speech:
    """A set of a system: original and protected data directory."""

    system: str
    original: DataDir
    protected: DataDir


def load_speech(words: Sequence[Sequence[str]]) -> list[Speech]:
    """`words`: system, original data directory, protected data directory."""
    return [
        Speech(system, load_data_dir(Path(original)), load_data_dir(Path(protected)))
        for system, original, protected in words
    ]


def loudest(samples: np.ndarray[tuple[int], np.dtype[np.float64]], length: int) -> int:
    """Where the loudest stretch of `length` samples begins; 0 if there are no more."""
    if len(samples) <= length:
        return 0
    energy = np.concatenate(([0.0], np.cumsum(np.square(samples, dtype=np.float64))))
    return int(np.argmax(energy[length:] - energy[:-length]))


def _utterance(speech: Speech, speaker: str) -> str:
    """The first utterance that fills a clip, else the longest; one that was protected too."""
    durations: Mapping[str, float] = speech.original.utt2dur or {}
    own = [u for u in speech.original.spk2utt[speaker] if u in speech.protected.wav]
    if not own:
        raise UserError(f"{speech.protected.path}: no utterance of speaker {speaker}")
    long = [u for u in own if durations.get(u, 0.0) >= SECONDS]
    return long[0] if long else max(own, key=lambda u: durations.get(u, 0.0))


def _cut(data: DataDir, utterance: str, start: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    samples = read_audio(utterance, data.wav[utterance]).samples
    length = int(SECONDS * SAMPLE_RATE)
    start = max(0, min(start, len(samples) - length))
    return np.asarray(samples[start : start + length], np.float32)


def _write(path: Path, samples: np.ndarray[tuple[int], np.dtype[np.float32]]) -> None:
    with atomic_write(path, "wb") as stream:
        soundfile.write(stream, samples, SAMPLE_RATE, format="MP3")


def cut_clips(
    results: Results, speech: Sequence[Speech], n_worst: int, out: Path
) -> tuple[list[Json], list[Missing]]:
    """Clips of the `n_worst` worst-protected speakers of each system, evaluator and split; each is
    written once, whichever systems and evaluators ask for it."""
    made: dict[tuple[str, str], str] = {}

    def clip(data: DataDir, utterance: str, start: int) -> str:
        key = (str(data.path), utterance)
        if key not in made:
            name = f"clips/{len(made):03d}.mp3"
            _write(out / name, _cut(data, utterance, start))
            made[key] = name
        return made[key]

    found, missing = [], []
    for system, evaluator, split in results.groups():
        for person in results.people[system, evaluator, split][:n_worst]:
            sets = [s for s in speech if s.system == system and person.name in s.original.spk2utt]
            if not sets:
                continue
            who: Json = {"system": system, "evaluator": evaluator, "split": split}
            who["speaker"] = person.name
            try:
                utterance = _utterance(sets[0], person.name)
                samples = read_audio(utterance, sets[0].original.wav[utterance]).samples
                start = loudest(np.asarray(samples, np.float64), int(SECONDS * SAMPLE_RATE))
                who["utterance"] = utterance
                who["original"] = clip(sets[0].original, utterance, start)
                who["protected"] = clip(sets[0].protected, utterance, start)
                found.append(who)
            except UserError as error:
                missing.append(lacks(f"clip of {person.name}", error))
    return found, missing
