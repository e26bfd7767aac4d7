"""A listening test as one static page, and the key to its answers, which is not in the page.

Pairs ask whether two recordings are of one person; single recordings ask for their quality. Among
both stand hidden anchors: pairs of original speech, original speech, and the same band-limited.
"""

import base64
import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.signal import butter, sosfilt
from scipy.stats import binomtest, norm

from local.metrics.intervals import LEVEL, Figures, bootstrap, multiplicities, percentiles
from local.report.gather import SECONDS, ProtectedSet, loudest, mp3
from local.report.wording import render
from steps.audio import SAMPLE_RATE, read_audio
from utils.arrays import Float64
from utils.cli import UserError
from utils.datadir import DataDir
from utils.seeds import make_rng
from utils.tables import read_json_object, sort_ids

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
        clip = mp3(change(samples))
        name = hashlib.sha256(clip).hexdigest()[:12]
        self.data[name] = base64.b64encode(clip).decode("ascii")
        return name


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
            band = butter(8, _BAND, fs=SAMPLE_RATE, output="sos")
            made_low = (clips.add(original, utt, partial(sosfilt, band)),)
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
        "local/report/templates/listening.html.jinja",
        test=test, seconds=SECONDS, questions=json.dumps(shown),
        clips=json.dumps(clips.data, sort_keys=True),  # their order would tell what they are
    )  # fmt: skip
    key = {"test": test, "seed": seed, "questions": [asdict(q) for q in asked]}
    return page, json.dumps(key, indent=1) + "\n"


# ---- Figures of a listening test: who people took for one person, and how speech sounded to them.


LEAST = 0.75  # of the pairs of original speech: who has fewer right did not hear, or did not listen
MARKS = (1, 2, 3, 4, 5)
_BOOTSTRAP = 1000


def read_answers(path: Path, key: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Name of a listener, and an answer (or None) for each question of the key.

    Raises UserError for another test, for another number of answers, and for one that the question
    cannot have.
    """
    found = read_json_object(path, "save the answers from the page again")
    if found.get("test") != key["test"]:
        raise UserError(
            f"{path}: answers test {found.get('test')}, but the key is for {key['test']}"
        )
    answers, asked = found.get("answers"), key["questions"]
    if not isinstance(answers, list) or len(answers) != len(asked):
        raise UserError(f"{path}: {len(asked)} answers are expected; save them from the page again")
    for i, (answer, q) in enumerate(zip(answers, asked, strict=True), 1):
        allowed = MARKS if q["kind"] == "quality" else ("same", "different")
        if answer is not None and answer not in allowed:
            raise UserError(f"{path}: answer {i} is {answer!r}, of {', '.join(map(str, allowed))}")
    return str(found.get("listener") or path.stem), answers


def d_prime(hits: int, n_same: int, false_alarms: int, n_different: int) -> float:
    """z(hit rate) - z(false-alarm rate), log-linear: half a trial is added to each count (Hautus
    1995), so that it is finite. NaN without pairs of both kinds. 0 is guessing."""
    if not n_same or not n_different:
        return math.nan
    rates = (hits + 0.5) / (n_same + 1), (false_alarms + 0.5) / (n_different + 1)
    high, low = norm.ppf(rates)
    return float(high - low)


def accuracy(right: Float64, seed: int = 0) -> dict[str, object]:
    """Share of right answers; its interval is exact for one listener (Clopper and Pearson 1934),
    and else resamples listeners and pairs.

    right: (n_listeners, n_pairs) 1 or 0, NaN where a listener gave no answer.
    """
    given = np.isfinite(right)
    if not given.any():
        return {"accuracy": math.nan, "accuracy_interval": None}
    hits, n = np.where(given, right, 0.0), float(given.sum())
    if len(right) == 1:
        exact = binomtest(round(hits.sum()), round(n)).proportion_ci(LEVEL, "exact")
        interval = [float(exact.low), float(exact.high)]
    else:
        rows, columns = (multiplicities(size, _BOOTSTRAP, seed + i)
                         for i, size in enumerate(right.shape))  # fmt: skip
        tried = np.einsum("bl,lp,bp->b", rows, given.astype(np.float64), columns)
        found = np.einsum("bl,lp,bp->b", rows, hits, columns)
        interval = [*percentiles(found[tried > 0] / tried[tried > 0])]
    return {"accuracy": float(hits.sum() / n), "accuracy_interval": interval}


def _of_pairs(truth: Sequence[str], given: Sequence[Sequence[Any]], seed: int) -> dict[str, object]:
    """truth: the right answer of each pair; given: those of each listener, None where there is
    none."""
    right = np.array([
        [math.nan if one is None else float(one == own)
         for one, own in zip(row, truth, strict=True)] for row in given
    ])  # fmt: skip
    same = np.array(truth) == "same"
    n = [int(np.isfinite(right[:, kind]).sum()) for kind in (same, ~same)]
    hits, rejections = (round(np.nansum(right[:, kind])) for kind in (same, ~same))
    return {
        "n_same": n[0], "n_different": n[1],
        "d_prime": d_prime(hits, n[0], n[1] - rejections, n[1]),
        **accuracy(right, seed),
    }  # fmt: skip


def _marks(by_listener: Sequence[Sequence[int]], seed: int) -> dict[str, object]:
    """Mean opinion score: mean of the listeners' means; its interval resamples listeners."""
    means: Float64 = np.array([np.mean(own) for own in by_listener])

    def evaluate(drawn: Float64) -> Figures:
        return {"mos": float(drawn @ means / drawn.sum())}

    told = bootstrap(evaluate, len(means), _BOOTSTRAP if len(means) > 1 else 0, seed)
    n, interval = sum(map(len, by_listener)), told.get("intervals", {}).get("mos")
    return {"n_marks": n, "mos": float(means.mean()), "mos_interval": interval}


def score(
    key: Mapping[str, Any], heard: Mapping[str, Sequence[Any]], seed: int = 0
) -> dict[str, object]:
    """Figures by system: `d_prime`, `accuracy` (chance 0.5) and `mos` with their intervals.

    heard: answers by listener. Listeners with fewer than 75 % of the pairs of original speech right
    are left out and named, so that of `original` is not below it. Raises UserError where none is
    left.
    """
    asked = key["questions"]

    def answered(name: str, kind: str, system: str) -> list[tuple[str, Any]]:
        rows = zip(asked, heard[name], strict=True)
        return [(q["answer"], given) for q, given in rows
                if given is not None and (q["kind"], q["system"]) == (kind, system)]  # fmt: skip

    anchors = {name: answered(name, "same", ORIGINAL) for name in heard}
    share = {n: np.mean([r == g for r, g in own]) if own else 0.0 for n, own in anchors.items()}
    kept = [name for name in heard if share[name] >= LEAST]
    if not kept:
        raise UserError("no listener has 75 % of the pairs of original speech right")
    figures: dict[str, dict[str, object]] = defaultdict(dict)
    for system in dict.fromkeys(q["system"] for q in asked):
        own = [i for i, q in enumerate(asked) if (q["kind"], q["system"]) == ("same", system)]
        if own:
            given = [[heard[name][i] for i in own] for name in kept]
            figures[system] |= _of_pairs([asked[i]["answer"] for i in own], given, seed)
        marks = [
            [m for _, m in told] for name in kept if (told := answered(name, "quality", system))
        ]
        if marks:
            figures[system] |= _marks(marks, seed)
    left_out = [name for name in heard if name not in kept]
    return {"n_listeners": len(kept), "left_out": left_out, "systems": dict(figures)}
