"""Recordings and their protected versions: paired, cut in halves, and heard by all judges."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from steps.anonymisers.registry import Anonymiser
from steps.asr.recognisers import Recogniser, make_recogniser
from steps.audio import SAMPLE_RATE
from steps.quality import Quality, load_estimator
from steps.sources import SourceSpeaker, VoiceKey
from steps.speaker.encoders import Encoder, TooShortError, load_encoder
from steps.standalone.account import beside
from steps.standalone.job import TABLE, Jobs, Tick, known_names, made_name, plain
from steps.standalone.stream import Recording, convert_stream
from steps.synthesis.f0 import VOICED_HZ, compute_f0_stats
from steps.synthesis.world import extract_f0
from utils.arrays import Float32, Float64
from utils.cli import UserError

T = TypeVar("T")
SHORTEST = 2.0  # seconds of a recording, less of which is no voice in each half
MOST = 120.0  # seconds of a half that are heard
STRETCH = 10.0  # seconds, about, of which a vector is made; those of a half are averaged
TEXT = 20.0  # seconds from the middle whose words, quality and pitch are compared
_APART = 0.2  # seconds by which coded audio may differ in length
KNOWN, SAID, PROTECTED, AGAIN = "known", "said", "protected", "again"
"""Halves: the first and the second of the original, the second of the protected version, and the
first protected by the attacker with another draw. `pair` is the first of the protected version."""
PAIR = "pair"


@dataclass(frozen=True)
class Pair:
    """A recording of a person, and its protected version."""

    name: str
    person: str
    original: Recording
    protected: Recording


@dataclass(frozen=True)
class Heard:
    """Measurements of a pair. vectors: (d,) by encoder and half; text, quality and pitch (median
    F0 in Hz, NaN without voice): before and after."""

    vectors: Mapping[str, Mapping[str, Float32]]
    text: tuple[str, str]
    quality: tuple[Quality, Quality]
    pitch: tuple[float, float]


def pair_up(
    source: Path, out: Path, people: Mapping[str, Sequence[Path]]
) -> tuple[list[Pair], dict[str, str]]:
    """Pairs of all recordings, by person, and why others have none: OUT lacks them, they are no
    audio, too short, or as long as no protected version of theirs would be."""
    pairs, left_out = list[Pair](), dict[str, str]()
    drawn = known_names((path for own in people.values() for path in own), beside(out, TABLE))
    for person, path in ((person, path) for person, paths in people.items() for path in paths):
        name, made = plain(path), out / drawn.get(path, made_name(path))
        try:
            if not made.is_file():
                raise UserError(f"{made}: is missing; protect it first (make protect)")
            pair = Pair(name, person, Recording.open(source / path), Recording.open(made))
            seconds = pair.original.seconds, pair.protected.seconds
            if min(seconds) < SHORTEST:
                raise UserError(f"{source / path}: is shorter than {SHORTEST:g} s")
            if abs(seconds[0] - seconds[1]) > _APART:
                raise UserError(
                    f"{made}: has {seconds[1]:.1f} s, and {source / path} has {seconds[0]:.1f} s; "
                    "it is not a protected version of it"
                )
            pairs.append(pair)
        except UserError as error:
            left_out[name] = plain(str(error))
    return pairs, left_out


@dataclass(frozen=True)
class Judges:
    """All who hear; what is not installed is not among the encoders, or None. system: what the
    attacker who knows it protects with."""

    encoders: Mapping[str, Encoder]
    recogniser: Recogniser | None
    estimate: Callable[[Float64], Quality]
    system: Anonymiser | None

    def hear(self, pair: Pair, tick: Tick) -> Heard:
        """Hear a pair; UserError where a half has too little speech."""
        halves = dict(zip((KNOWN, SAID), _halves(pair.original), strict=True))
        halves |= dict(zip((PAIR, PROTECTED), _halves(pair.protected), strict=True))
        if not all(half.any() for half in halves.values()):
            raise UserError(f"{pair.original.path}: half of it is silent, before or after")
        if self.system is not None:
            halves[AGAIN] = self._protect(halves[KNOWN], pair.person)
        try:
            vectors = {
                name: {side: _vector(encoder, half) for side, half in halves.items()}
                for name, encoder in self.encoders.items()
            }
        except TooShortError as error:
            raise UserError(f"{pair.original.path}: {error}") from error
        middles = [_middle(recording) for recording in (pair.original, pair.protected)]
        found = Heard(
            vectors,
            (self._words(pair.name, middles[0]), self._words(pair.name, middles[1])),
            (self.estimate(middles[0]), self.estimate(middles[1])),
            (_pitch(middles[0]), _pitch(middles[1])),
        )
        pair.original.close()
        pair.protected.close()
        tick(pair.original.seconds)
        return found

    def _protect(self, half: Float64, person: str) -> Float64:
        """Protect as `make protect` does, with a voice for each person."""
        assert self.system is not None
        system, speaker = (
            self.system,
            SourceSpeaker(person, f0=compute_f0_stats([extract_f0(half)])),
        )
        key = VoiceKey("spk", ("folder", person), ("folder", person))
        parts = convert_stream([half], lambda samples: system.transform(samples, key, speaker)[0])
        return np.concatenate(list(parts))

    def _words(self, name: str, samples: Float64) -> str:
        if self.recogniser is None:
            return ""
        heard = self.recogniser.recognise(name, samples)
        return heard if isinstance(heard, str) else heard.words


ENCODERS = ("pyannote", "resemblyzer")  # that come trained, and offline


def load_judges(system: Anonymiser | None) -> tuple[Judges, dict[str, str]]:
    """All who hear, and why others, by name, cannot; UserError without an encoder."""
    missing = dict[str, str]()

    def load(name: str, make: Callable[[str], T]) -> T | None:
        try:
            return make(name)
        except UserError as error:
            missing[name] = str(error)
            return None

    found = {name: load(name, load_encoder) for name in ENCODERS}
    encoders = {name: encoder for name, encoder in found.items() if encoder is not None}
    if not encoders:
        raise UserError(next(iter(missing.values())))
    words = load("moonshine", make_recogniser)
    return Judges(encoders, words, load_estimator(), system), missing


def hear_all(
    jobs: Jobs, judges: Judges, pairs: Sequence[Pair]
) -> Iterator[tuple[Pair, Heard | UserError]]:
    """Yield each pair and what is heard of it, or what is wrong with it, as they come; long ones
    first, so that no long one is begun last."""
    order = sorted(pairs, key=lambda pair: -pair.original.seconds)
    for n, result in jobs.run(judges.hear, [(pair,) for pair in order]):
        yield order[n], result


def _halves(recording: Recording) -> tuple[Float64, Float64]:
    n, most = len(recording), round(MOST * SAMPLE_RATE)
    first = recording.read(0, min(n // 2, most))
    return first, recording.read(max(n // 2, n - most), n)


def _middle(recording: Recording) -> Float64:
    n, most = len(recording), round(TEXT * SAMPLE_RATE)
    start = max(0, (n - most) // 2)
    return recording.read(start, min(n, start + most))


def _vector(encoder: Encoder, half: Float64) -> Float32:
    """Mean (d,) of the vectors of a half's stretches that have enough speech; TooShortError where
    none has."""
    found, short = list[Float32](), None
    for part in np.array_split(half, max(1, round(len(half) / SAMPLE_RATE / STRETCH))):
        try:
            found.append(encoder.embed(part.astype(np.float32)))
        except TooShortError as error:
            short = error
    if short is not None and not found:
        raise short
    return np.asarray(np.mean(found, axis=0), np.float32)


def _pitch(samples: Float64) -> float:
    f0 = extract_f0(samples)
    return float(np.median(voiced)) if len(voiced := f0[f0 > VOICED_HZ]) else math.nan
