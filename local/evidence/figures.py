"""Evidence of a protected folder: recordings and their protected versions, paired, cut in halves
and heard by all judges; attacks by those who train nothing, the verdict, and a page of both."""

import base64
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.stats import beta

from local.metrics.legal import AttackSide, LegalAttack, reidentification
from local.metrics.recordings import LENGTHS, recordings
from local.metrics.utility import error_figures, quality_figures, recall_figures
from local.metrics.verification import find_speakers, verification
from local.protocols.studies import Pairs, align, learn_by_group
from local.report import frame, select
from local.report.frame import Value, measure, percent
from local.report.gather import SECONDS, loudest, mp3
from local.report.page import colour
from local.report.select import NAMED, Evidence, Verdict, fold, judge
from steps.anonymisers.registry import Anonymiser
from steps.asr.recognisers import Recogniser, make_recogniser
from steps.audio import SAMPLE_RATE
from steps.quality import Quality, load_estimator
from steps.sources import SourceSpeaker, VoiceKey
from steps.speaker.backends import CentredCosine
from steps.speaker.encoders import Encoder, TooShortError, load_encoder
from steps.speaker.kinds import STRONG
from steps.standalone.account import beside
from steps.standalone.job import SALT, TABLE, Jobs, Tick, known_names, made_name, made_of, plain
from steps.standalone.stream import Recording, convert_stream
from steps.synthesis.f0 import VOICED_HZ, compute_f0_stats
from steps.synthesis.world import extract_f0
from utils.arrays import Float32, Float64
from utils.cli import UserError
from utils.tables import invert, sort_ids
from utils.trials import Trials

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
    audio, too short, as long as no protected version of theirs would be, or have changed since."""
    pairs, left_out = list[Pair](), dict[str, str]()
    every = [SALT, *(path for own in people.values() for path in own)]
    drawn = known_names(every, beside(out, TABLE))
    as_it_was = made_of(out, str(drawn.pop(SALT, "")))
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
            if not as_it_was(drawn.get(path, path), source / path):
                raise UserError(
                    f"{source / path}: is not what {made} was made of; protect it again"
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
        system = self.system
        assert system is not None
        speaker = SourceSpeaker(person, f0=compute_f0_stats([extract_f0(half)]))
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


# ---- Attacks, and the verdict on them.

N_BOOTSTRAP = 500
FEWEST_ALIGNED = 10  # people: half of them teach what protection does to the others
LOW = 165.0  # Hz: most men's voices are below it, most women's and children's above
HALVES = {  # of a person that attackers know, and of a recording whose person they look for
    "unprotected": (KNOWN, SAID),
    "ignorant": (KNOWN, PROTECTED),
    "lazy_informed": (AGAIN, PROTECTED),
}
Vectors = Mapping[str, Mapping[str, Float32]]  # by recording and half
Report = Mapping[str, Any]


@dataclass(frozen=True)
class Attack:
    """An attacker with an encoder: figures by family, and what the verdict takes of them."""

    attacker: str
    encoder: str
    figures: Mapping[str, Report]
    evidence: Evidence

    @property
    def hits(self) -> tuple[int, int]:
        """Recordings whose person is named rightly, and of how many."""
        found = self.figures["naming"]
        return round(found["reid_top_1"] * found["n_segments"]), found["n_segments"]


@dataclass(frozen=True)
class Found:
    """Attacks, the verdict, and what words, quality and pitch became (each empty where it was not
    measured); left_out: attackers who were not run, and why."""

    attacks: Sequence[Attack]
    verdict: Verdict
    words: Report
    quality: Report
    pitch: Report
    left_out: Mapping[str, str]


def assess(pairs: Sequence[Pair], heard: Sequence[Heard]) -> Found:
    """Run all attackers who train nothing on what was heard of pairs, and compare their use."""
    names = [pair.name for pair in pairs]
    person = {pair.name: f"person {pair.person}" for pair in pairs}  # nor a name of a recording
    attacks = [
        attack
        for encoder in heard[0].vectors
        for attack in _attacks(
            encoder, {n: h.vectors[encoder] for n, h in zip(names, heard, strict=True)}, person
        )
    ]
    protected = [attack for attack in attacks if attack.attacker != "unprotected"]
    each = [attack.figures["linking"]["linkability_per_speaker"] or {} for attack in protected]
    worst = max((value for own in each for value in own.values()), default=math.nan)
    tried = {attack.attacker for attack in protected}
    left_out = {
        "aligned": f"fewer than {FEWEST_ALIGNED} people, and half of them would teach",
        "lazy_informed": "the recordings were not protected by make protect",
    }
    return Found(
        attacks,
        judge([attack.evidence for attack in protected], worst, _chosen(protected)),
        *_use(dict(zip(names, heard, strict=True)), person),
        {who: why for who, why in left_out.items() if who not in tried},
    )  # fmt: skip


def _attacks(encoder: str, vectors: Vectors, person: Mapping[str, str]) -> Iterator[Attack]:
    people, names = sort_ids(set(person.values())), sort_ids(vectors)
    target = np.array([[person[name] == who for name in names] for who in people])

    scores = {
        attacker: _cosines(_models(vectors, person, people, known), _stack(vectors, names, said))
        for attacker, (known, said) in HALVES.items()
        if all(known in own for own in vectors.values())
    }
    if len(people) >= FEWEST_ALIGNED:
        scores["aligned"] = _aligned(vectors, person, people, names)
    bare: dict[str, Report] = {}
    for attacker, score in scores.items():
        row, column = np.nonzero(np.isfinite(score))
        trials = Trials([people[i] for i in row], [names[j] for j in column], target[row, column])
        beside = {"eer_rise": scores["unprotected"][row, column]} if bare else {}
        found = _figures(trials, score[row, column], beside, person)
        if attacker in HALVES:
            found["legal"] = _legal(vectors, person, *HALVES[attacker])
        bare = bare or found
        yield Attack(attacker, encoder, found, _evidence(attacker, encoder, found, bare))


def _chosen(attacks: Sequence[Attack]) -> dict[str, tuple[Value, float]]:
    """By number of recordings the lowest EER of attackers who can hear, with the lowest end of all
    their intervals, and its p value by permutation, corrected for their number (Bonferroni): they
    do not share a list of trials."""
    found: dict[str, tuple[Value, float]] = {}
    judges = [attack for attack in attacks if attack.evidence.judges]
    for n in LENGTHS:
        if own := [attack for attack in judges if n in attack.evidence.several]:
            least = min(own, key=lambda attack: attack.evidence.several[n].value)
            low = min(attack.evidence.several[n].low for attack in own)
            p = min(1.0, least.figures["recordings"]["p_value_eer"] * len(judges))
            found[n] = replace(least.evidence.several[n], low=low), p
    return found


def _stack(vectors: Vectors, names: Sequence[str], half: str) -> Float64:
    return np.stack([vectors[name][half] for name in names]).astype(np.float64)


def _models(
    vectors: Vectors, person: Mapping[str, str], people: Sequence[str], half: str
) -> Float64:
    """Mean vectors (n_people, d) of each person's recordings."""
    own = invert({name: person[name] for name in vectors})
    return np.stack([_stack(vectors, own[who], half).mean(axis=0) for who in people])


def _cosines(models: Float64, said: Float64) -> Float64:
    backend = CentredCosine()
    return backend.left(models, np.ones(len(models))) @ backend.right(said).T


def _aligned(
    vectors: Vectors, person: Mapping[str, str], people: Sequence[str], names: Sequence[str]
) -> Float64:
    """Scores (people, recordings) of the attacker who learns a rotation from the other half of the
    people; NaN between the halves."""
    found = np.full((len(people), len(names)), np.nan)
    for rows in ([*range(0, len(people), 2)], [*range(1, len(people), 2)]):
        attacked = {people[i] for i in rows}
        columns = [j for j, name in enumerate(names) if person[name] in attacked]
        teachers = [name for name in names if person[name] not in attacked]
        before, after = ({n: vectors[n][half] for n in teachers} for half in (KNOWN, PAIR))
        every = dict.fromkeys(teachers, "all")
        rotations = learn_by_group(Pairs(before, after, every, {n: person[n] for n in teachers}))
        models = _models(vectors, person, people, KNOWN).astype(np.float32)
        enrol = {people[i]: models[i] for i in rows}
        trial = {names[j]: vectors[names[j]][PROTECTED] for j in columns}
        sides = align(rotations, enrol, trial, dict.fromkeys([*enrol, *trial], "all"))
        found[np.ix_(rows, columns)] = _cosines(*(np.stack([*side.values()]) for side in sides))
    return found


def _figures(
    trials: Trials, score: Float64, beside: Mapping[str, Float64], person: Mapping[str, str]
) -> dict[str, Report]:
    speakers = find_speakers(trials, person, trials_path="trials", utt2spk_path="people")
    n = N_BOOTSTRAP
    return {
        "linking": verification(trials, score, speakers=speakers, beside=beside, n_bootstrap=n),
        "naming": reidentification(trials, score, person, n_bootstrap=n),
        "recordings": recordings(trials, score, speakers, n_bootstrap=n),
    }


def _legal(vectors: Vectors, person: Mapping[str, str], known: str, said: str) -> Report:
    def side(half: str) -> AttackSide:
        units = {
            name: own[half].astype(np.float64) / np.linalg.norm(own[half])
            for name, own in vectors.items()
        }
        return AttackSide(units, invert({name: person[name] for name in units}))

    name = "legal_linkability_l1"
    return LegalAttack(side(known), side(said), 1, 0).linkability().report(name)


def _evidence(attacker: str, encoder: str, found: Report, bare: Report) -> Evidence:
    linking, naming, several = (found[name] for name in ("linking", "naming", "recordings"))
    unprotected = value(bare["linking"], "eer")
    eers = {
        n: [v for figure in ("eer", "eer_normalised")
            if (v := value(several, f"{figure}_{n}_recordings")).defined]
        for n in LENGTHS
    }  # fmt: skip
    named = {n: value(several, f"named_{n}_recordings") for n in LENGTHS}
    made = Evidence(
        attacker, f"{encoder}/cosine", value(linking, "eer"), unprotected,
        value(linking, "eer_rise"), named=naming[NAMED], chance=naming[f"chance_{NAMED}"],
        named_bare=bare["naming"][NAMED], people=naming["n_speakers"],
        recordings=naming["n_segments"] / naming["n_speakers"],
        several={n: min(map(fold, own), key=lambda v: v.value) for n, own in eers.items() if own},
        naming={n: value for n, value in named.items() if value.defined},
    )  # fmt: skip
    return replace(made, controlled=made.judges and encoder.startswith(STRONG))


def value(report: Report, name: str) -> Value:
    """A figure with its interval; NaN where it is not defined."""
    value, ends = report.get(name), report.get("intervals", {}).get(name)
    return Value(math.nan if value is None else value, *(ends or ()))


def _use(heard: Mapping[str, Heard], person: Mapping[str, str]) -> tuple[Report, Report, Report]:
    """Words by the recogniser before protection, and estimated quality; and whether a low pitch
    stays low and a high one high."""
    n = N_BOOTSTRAP
    before, after = ({name: own.text[i] for name, own in heard.items()} for i in (0, 1))
    words = (
        error_figures(before, after, person, "english", n_bootstrap=n)
        if any(before.values())
        else {}
    )
    scores = [
        {name: own.quality[i].problem or own.quality[i].mos for name, own in heard.items()}
        for i in (1, 0)
    ]
    low = [
        {
            name: "low" if own.pitch[i] < LOW else "high"
            for name, own in heard.items()
            if min(own.pitch) > 0
        }
        for i in (0, 1)
    ]
    pitch = (
        recall_figures(low[0], low[1], person, n_bootstrap=n) if len({*low[0].values()}) > 1 else {}
    )
    return words, quality_figures(scores[0], person, scores[1], n_bootstrap=n), pitch


# ---- Evidence as data and as one page, with clips of those who are named most often.


N_CLIPS = 3


class Clip(NamedTuple):
    """A recording's name, and the same seconds of it before and after protection, MP3 in base64."""

    name: str
    before: str
    after: str


def as_data(
    found: Found, about: Mapping[str, object], pairs: Sequence[Pair], left_out: Mapping[str, str]
) -> dict[str, object]:
    """All of it."""
    return {
        **about,
        "recordings": {pair.name: pair.person for pair in pairs},
        "left_out": left_out,
        "verdict": str(found.verdict),
        "attacks": [
            {"attacker": a.attacker, "encoder": a.encoder, **a.figures} for a in found.attacks
        ],
        "not_run": found.left_out,
        "words": found.words,
        "quality": found.quality,
        "pitch": found.pitch,
    }


def as_page(
    found: Found, about: Mapping[str, Any], pairs: Sequence[Pair], left_out: Mapping[str, str]
) -> str:
    """One HTML file that asks the network for nothing."""
    return frame.render(
        "local/evidence/evidence.html.jinja",
        hits=hits, said=said, found=found, about=about, left_out=left_out, n=len(pairs),
        select=select, clips=clips(found, pairs), colour=colour, FEWEST_ALIGNED=FEWEST_ALIGNED,
        people=len({pair.person for pair in pairs}), LOW=LOW, MOST=MOST, TEXT=TEXT,
    )  # fmt: skip


def hits(attack: Attack) -> str:
    """Recordings that are named, with the binomial interval (Clopper and Pearson 1934) of as many
    people, as those of one person are alike: `3 of 40: 7.5 % [1.6, 20.4]` where each has one."""
    right, n = attack.hits
    people = attack.figures["naming"]["n_speakers"]
    own = right / n * people
    low = beta.ppf(0.025, own, people - own + 1) if right else 0.0
    high = beta.ppf(0.975, own + 1, people - own) if right < n else 1.0
    return f"{right} of {n}: {percent(right / n)} [{100 * low:.1f}, {100 * high:.1f}]"


def said(report: Mapping[str, Any], name: str, of: str = "eer") -> str:
    """A figure of a report with its interval, written as the measure `of` is: in percent."""
    return measure(of).say(value(report, name))


def clips(found: Found, pairs: Sequence[Pair]) -> list[Clip]:
    """Clips of a recording each of the people who are named most often by all attackers."""
    named: dict[str, float] = {}
    for attack in (a for a in found.attacks if a.attacker != "unprotected"):
        for person, rate in attack.figures["naming"]["reid_top_1_per_speaker"].items():
            named[person] = named.get(person, 0.0) + rate
    first = {f"person {pair.person}": pair for pair in reversed(pairs)}
    most = sorted(named, key=lambda person: (-named[person], person))[:N_CLIPS]
    return [_clip(first[person]) for person in most]


def _clip(pair: Pair) -> Clip:
    n, length = len(pair.original), round(SECONDS * SAMPLE_RATE)
    heard = pair.original.read(0, min(n, round(MOST * SAMPLE_RATE)))
    start = loudest(heard, length)
    sides = (pair.original, pair.protected)
    cut = (own.read(start, min(start + length, len(own))) for own in sides)
    return Clip(pair.name, *(base64.b64encode(mp3(one)).decode("ascii") for one in cut))
