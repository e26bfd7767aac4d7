"""A listening test as one static page, and the key to its answers, which is not in the page.

Pairs ask whether two recordings are of one person; single recordings ask for their quality. Among
both stand hidden anchors: pairs of original speech, original speech, and the same band-limited.
"""

import base64
import hashlib
import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import soundfile
from scipy.signal import butter, sosfilt

from local.report.gather import SECONDS, ProtectedSet, loudest
from local.report.words import render
from steps.audio import SAMPLE_RATE, read_audio
from utils.arrays import Float64
from utils.cli import UserError
from utils.datadir import DataDir
from utils.seeds import make_rng
from utils.tables import sort_ids

ORIGINAL, BAND = "original", "original, 3.5 kHz"
_BAND = 3500.0  # Hz; the lower anchor of ITU-R BS.1534 is cut there


@dataclass(frozen=True)
class Question:
    """kind: `same` (is this one person?) or `quality`; answer: `same` or `different`, where there
    is a right one. clips: of the page, by digest; sources: system and utterance of each."""

    kind: str
    system: str
    answer: str
    clips: tuple[str, ...]
    sources: tuple[str, ...]


class _Clips:
    """Clips as base64 of MP3, by their digest, which says nothing of what they are."""

    def __init__(self) -> None:
        self.data: dict[str, str] = {}

    def add(
        self, data: DataDir, utt: str, change: Callable[[Float64], Float64] = np.asarray
    ) -> str:
        samples = np.asarray(read_audio(utt, data.wav[utt]).samples, np.float64)
        length = int(SECONDS * SAMPLE_RATE)
        start = loudest(samples, length)
        samples = samples[start : start + length]
        samples = 0.5 * samples / (np.abs(samples).max() or 1.0)  # loudness tells no systems apart
        stream = io.BytesIO()
        soundfile.write(stream, change(samples), SAMPLE_RATE, format="MP3")
        name = hashlib.sha256(stream.getvalue()).hexdigest()[:12]
        self.data[name] = base64.b64encode(stream.getvalue()).decode("ascii")
        return name


def _band_limit(samples: Float64) -> Float64:
    filtered: Float64 = sosfilt(butter(8, _BAND, fs=SAMPLE_RATE, output="sos"), samples)
    return filtered


def _people(speech: ProtectedSet) -> dict[str, list[str]]:
    """Utterances that were protected, by speaker, of those who have at least two."""
    found = {
        speaker: [u for u in own if u in speech.protected.wav]
        for speaker, own in speech.original.spk2utt.items()
    }
    return {speaker: own for speaker, own in found.items() if len(own) > 1}


def _pairs(
    speech: ProtectedSet, n_pairs: int, rng: np.random.Generator
) -> Iterator[tuple[str, str, str]]:
    """(answer, an utterance, another one): every second pair is of one person, the others are of
    two people of one gender."""
    people, gender = _people(speech), speech.original.spk2gender or {}
    for i in range(n_pairs):
        first = str(rng.choice(list(people)))
        a, b = map(str, rng.choice(people[first], 2, replace=False))
        if i % 2:
            others = [s for s in people if s != first and gender.get(s) == gender.get(first)]
            if not others:
                raise UserError(f"{speech.original.path}: nobody else has the gender of {first}")
            b = str(rng.choice(people[str(rng.choice(others))]))
        yield "different" if i % 2 else "same", a, b


def _questions(
    speech: ProtectedSet, clips: _Clips, n_pairs: int, n_quality: int, rng: np.random.Generator
) -> Iterator[Question]:
    system, original, protected = speech
    people = _people(speech)
    if len(people) < 2:
        raise UserError(
            f"{original.path}: two speakers with two protected utterances each are needed"
        )
    for answer, a, b in _pairs(speech, n_pairs, rng):
        made = (clips.add(original, a), clips.add(protected, b))
        yield Question("same", system, answer, made, (f"{ORIGINAL} {a}", f"{system} {b}"))
    listed = sort_ids(u for own in people.values() for u in own)
    for utt in map(str, rng.choice(listed, min(n_quality, len(listed)), replace=False)):
        yield Question("quality", system, "", (clips.add(protected, utt),), (f"{system} {utt}",))
        if system == ORIGINAL:
            made_low = (clips.add(original, utt, _band_limit),)
            yield Question("quality", BAND, "", made_low, (f"{BAND} {utt}",))


def make_test(
    speech: Sequence[ProtectedSet], *, n_pairs: int, n_quality: int, seed: int
) -> tuple[str, str]:
    """The page and its key, as JSON. Each system, and original speech as the anchor, has `n_pairs`
    pairs and `n_quality` recordings; the first of a pair is always original speech."""
    rng, clips = make_rng(seed, "listening test"), _Clips()
    sets = [ProtectedSet(ORIGINAL, speech[0].original, speech[0].original), *speech]
    asked = [q for own in sets for q in _questions(own, clips, n_pairs, n_quality, rng)]
    asked = [asked[i] for i in rng.permutation(len(asked))]
    shown = [{"kind": q.kind, "clips": q.clips} for q in asked]
    test = hashlib.sha256(json.dumps(shown).encode()).hexdigest()[:12]
    page = render(
        "local/report/templates/listening.html.jinja", {},
        test=test, seconds=SECONDS, questions=json.dumps(shown),
        clips=json.dumps(clips.data, sort_keys=True),  # their order would tell what they are
    )  # fmt: skip
    key = {"test": test, "seed": seed, "questions": [asdict(q) for q in asked]}
    return page, json.dumps(key, indent=1) + "\n"
