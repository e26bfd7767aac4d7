"""Evidence of a protected folder: recordings and their protected versions, paired, cut in halves
and heard by all judges; attacks by those who train nothing, the verdict, and a page of both."""

import base64
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.stats import beta

from local.evidence import identity
from local.evidence.identity import Identity
from local.metrics.intervals import key
from local.metrics.legal import LINKABILITY, LegalAttack, make_side
from local.metrics.recordings import LENGTHS, recordings
from local.metrics.utility import error_figures, quality_figures, recall_figures
from local.metrics.verification import Speakers, verification
from local.protocols.studies import learn_rotation
from local.report import select, wording
from local.report.gather import SECONDS, loudest, mp3
from local.report.measures import Value, measure, percent
from local.report.page import colour
from local.report.select import LEVEL, NAMED, Evidence, Level, Verdict, fold, judge
from steps.anonymisers.registry import Anonymiser
from steps.asr.recognisers import Recogniser, make_recogniser
from steps.audio import SAMPLE_RATE
from steps.quality import Quality, load_estimator
from steps.speaker.backends import Backend, PairBackend, load_backend
from steps.speaker.encoders import Encoder, TooShortError, load_encoder
from steps.standalone.job import (
    LoadedSystem,
    Tick,
    Versions,
    key_number,
    load_system,
    plain,
    with_name,
)
from steps.standalone.people import Scene, clear_of
from steps.standalone.protection import protect_samples
from steps.standalone.stream import Excerpt, Recording
from steps.standalone.times import TimeMap, laid_out
from steps.synthesis.f0 import VOICED_HZ
from steps.synthesis.world import extract_f0
from utils.arrays import Bool, Float32, Float64
from utils.cli import UserError
from utils.seeds import make_rng
from utils.tables import invert, sort_ids
from utils.trials import Ids, Trials

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
    """A recording of a person, and its protected version; times: of words in both, where the
    version says them in another time."""

    name: str
    person: str
    original: Recording
    protected: Recording
    times: TimeMap | None = None

    def then(self, sample: int) -> int:
        """Sample of the version at which is heard what the recording says at a sample."""
        if self.times is None:
            return sample
        return round(SAMPLE_RATE * self.times(sample / SAMPLE_RATE))

    def halves(self) -> Iterator[Float64]:
        """Yield halves of the recording and of the version, as far as they are heard."""
        yield from identity.halves(self.original, MOST)
        middle = self.then(len(self.original) // 2) if self.times else None
        yield from identity.halves(self.protected, MOST, middle)

    def read(self, start: int, stop: int) -> tuple[Float64, Float64]:
        """Samples between two of the recording, and of the version, then."""
        begin, end = self.then(start), min(self.then(stop), len(self.protected))
        return self.original.read(start, stop), self.protected.read(min(begin, end), end)


class Use(NamedTuple):
    """Sound of the middle of a recording: words, estimated quality (MOS, or why there is
    none), and whether its median F0 is low or high, empty without voice."""

    text: str
    mos: float | str
    height: str


@dataclass(frozen=True)
class Heard:
    """Measurements of a pair. vectors: (d,) by encoder and half; uses: before and after."""

    vectors: Mapping[str, Mapping[str, Float32]]
    uses: tuple[Use, Use]


def pair_up(
    people: Mapping[str, Sequence[Path]],
    versions: Versions,
    held: Identity,
    scenes: Mapping[Path, Scene] = MappingProxyType({}),
) -> list[Pair]:
    """Pairs of all recordings, by person, or of what each of their people says. What a file of OUT
    holds is more than its name. held gets why others have none (OUT lacks them, they are not audio,
    too short, as long as no protected version of theirs would be, have changed since, or were there
    before), and which files of OUT were changed since they were made."""
    pairs = dict[str, Pair]()
    holds = {path: name for name, path in reversed(held.whose.items())}
    holds |= {path: name for path, name in versions.names.items() if held.whose.get(name) == path}
    for person, path in ((who, path) for who, paths in people.items() for path in paths):
        name = holds.get(path, versions.names[path])
        own, made = held.source / path, held.out / name
        try:
            if not made.is_file():
                raise UserError(f"{made}: is missing; protect it first (make protect)")
            times = held.times.get(name) if held.wrong.get(name) != "original" else None
            pair = Pair(plain(path), person, held.open(own), Recording.open(made), times)
            before, after = pair.original.seconds, pair.protected.seconds
            due = times(before) if times else before
            of_own, as_made = True, True
            if name == versions.names[path]:
                of_own, as_made = versions.made_of(path, own, made)
            faults = {
                **{held.unread[one]: True for one in (own, made) if one in held.unread},
                f"{own}: is the same recording as {held.copies.get(path)}, counted once":
                    path in held.copies,
                f"{own}: is shorter than {SHORTEST:g} s": min(before, after) < SHORTEST,
                f"{made}: has {after:.1f} s, and {own} has {before:.1f} s; it is not a protected "
                "version of it": abs(due - after) > _APART,
                f"{own}: is not what {made} was made of; protect it again": not of_own,
                f"{made}: does not hold what {own} says": path not in holds,
            }  # fmt: skip
            if why := next((why for why, is_so in faults.items() if is_so), ""):
                raise UserError(why)
            if not as_made:
                held.wrong.setdefault(name, "changed")
            for one in _by_person(pair, scenes.get(path, Scene()), held):
                if pairs.setdefault(one.name, one) is not one:
                    raise UserError(f"{own}: another recording is called {one.name}; rename it")
        except UserError as error:
            held.left_out[plain(path)] = plain(str(error))
    return [*pairs.values()]


def _by_person(pair: Pair, scene: Scene, held: Identity) -> Iterator[Pair]:
    """Pairs of what each person says alone in a recording, but for those who stayed as they are;
    the pair itself where nobody is named."""
    if scene.fault:
        raise UserError(scene.fault)
    known = {turn.person for turn in scene.turns} - {""}
    if not known:
        yield replace(pair, person=pair.person or pair.name)
    first = pair.original.stretches[0][0] if isinstance(pair.original, Excerpt) else 0
    for person in sorted(known - scene.kept):
        name, n = f"{pair.name}: {person}", len(pair.original)
        places = [tuple(round(x * SAMPLE_RATE) - first for x in alone)
                  for alone in clear_of(scene.turns, [person])]  # fmt: skip
        own = [(max(0, begin), min(n, end)) for begin, end in places if end > 0 and begin < n]
        last = len(pair.protected)
        then = [(min(pair.then(a), last), min(pair.then(b), last)) for a, b in own]
        sides = Excerpt.of(pair.original, own), Excerpt.of(pair.protected, then)
        lengths = [((b - a) / SAMPLE_RATE, (d - c) / SAMPLE_RATE, ())
                   for (a, b), (c, d) in zip(own, then, strict=True)]  # fmt: skip
        if sides[0].seconds < SHORTEST:
            held.left_out[name] = f"{name} speaks alone for less than {SHORTEST:g} s"
            continue
        who = f"{pair.person}: {person}" if pair.person else person
        yield Pair(name, who, *sides, TimeMap(laid_out(lengths)) if pair.times else None)


@dataclass(frozen=True)
class Judges:
    """All who hear. Encoders that are not installed are left out; others are then None. system: of
    the attacker who knows it and protects as `make protect` does, with this level and ends, and a
    voice for each recording where that is `per` file."""

    encoders: Mapping[str, Encoder]
    recogniser: Recogniser | None
    estimate: Callable[[Float64], Quality]
    system: Anonymiser | None
    level: str = "one"
    ends: str = "keep"
    per: str = "file"

    def hear(self, pair: Pair, tick: Tick) -> Heard:
        """Hear a pair; UserError where a half has too little speech."""
        halves = dict(zip((KNOWN, SAID, PAIR, PROTECTED), pair.halves(), strict=True))
        if not all(half.any() for half in halves.values()):
            raise UserError("half of it is silent, before or after")
        if self.system is not None:
            voice = pair.name if self.per == "file" else pair.person
            halves[AGAIN] = protect_samples(
                halves[KNOWN], voice, self.system, self.level, self.ends
            )
        vectors = {
            name: {side: _vector(encoder, half) for side, half in halves.items()}
            for name, encoder in self.encoders.items()
        }
        n, most = len(pair.original), round(TEXT * SAMPLE_RATE)
        start = max(0, (n - most) // 2)
        middles = pair.read(start, min(n, start + most))
        before, after = (self._use(pair.name, middle) for middle in middles)
        for recording in (pair.original, pair.protected):
            recording.close()
        tick(pair.original.seconds)
        return Heard(vectors, (before, after))

    def _use(self, name: str, middle: Float64) -> Use:
        heard = self.recogniser.recognise(name, middle) if self.recogniser else ""
        text = heard if isinstance(heard, str) else heard.words
        quality, f0 = self.estimate(middle), extract_f0(middle)
        voiced = f0[f0 > VOICED_HZ]
        height = ("low" if np.median(voiced) < LOW else "high") if len(voiced) else ""
        return Use(text, quality.problem or quality.mos, height)


VOICES = ("pyannote", "resemblyzer")
WRITTEN = {"content": "cosine_scaled", "level": "distance", "energy": "cosine_scaled"}
WORDS = "moonshine"
EVALUATORS = {**dict.fromkeys(VOICES, "cosine"), **WRITTEN}
"""Encoders that come trained, and offline, and the back ends that compare them: of voices, and of
the file as it is written."""


def load_judges(system: Anonymiser | None, *made: str) -> tuple[Judges, dict[str, str]]:
    """All who hear, and why others, by name, cannot; UserError without an encoder of voices. made:
    level, ends and per of `Judges`."""
    found, missing = dict[str, Any](), dict[str, str]()
    makers: dict[str, Callable[[str], Any]] = {
        **dict.fromkeys(EVALUATORS, load_encoder),
        WORDS: make_recogniser,
    }
    for name, make in makers.items():
        try:
            found[name] = make(name)
        except UserError as error:
            missing[name] = str(error)
    words = found.pop(WORDS, None)
    if not found.keys() & VOICES:
        raise UserError(missing[VOICES[0]])
    return Judges(found, words, load_estimator(), system, *made), missing


def load_protection(
    system: Path, out: Path, key: str | None, made: Mapping[str, Any]
) -> LoadedSystem | None:
    """The system that protected OUT, with a key of the attacker's own; None for another program's
    folder, of which nothing is known of how it was made. UserError for another system, and for one
    that cannot be attacked."""
    if not made:
        return None
    number = key_number(f"the attacker's own, {key}")  # voices that nobody has in OUT
    loaded = load_system(system, number, {"time": made["time"]} if "time" in made else {})
    if loaded.digest != made["system"]:
        raise UserError(f"{system}: is not what {out} was protected with; give SYSTEM=")
    if not (loaded.anonymiser.keeps_length or loaded.anonymiser.tells_words):
        raise UserError(
            f"{system}: changes how long speech is (rate, pauses, reads), and does not tell when "
            "what is said; measure it by a recipe (run.sh)"
        )
    return loaded


def hear(
    judges: Judges, pairs: Sequence[Pair], held: Identity, watch: Callable[[Any], Iterable[Any]]
) -> dict[str, Heard]:
    """Heard pairs by name; held gets why others cannot be heard. watch: wraps what is done."""
    order = sorted(pairs, key=lambda pair: -pair.original.seconds)  # no long one is begun last
    results, heard = held.jobs.run(judges.hear, [(pair,) for pair in order]), dict[str, Heard]()
    for n, result in watch(results):
        pair = order[n]
        if isinstance(result, UserError):
            held.left_out[pair.name] = plain(with_name(pair.original.path, result))
        else:
            heard[pair.name] = result
    return heard


def _vector(encoder: Encoder, half: Float64) -> Float32:
    """Mean (d,) of the vectors of a half's stretches that have enough speech; TooShortError where
    none has."""
    found = list[Float32]()
    for part in np.array_split(half, max(1, round(len(half) / SAMPLE_RATE / STRETCH))):
        with suppress(TooShortError):
            found.append(encoder.embed(part.astype(np.float32)))
    found = found or [encoder.embed(half.astype(np.float32))]
    return np.asarray(np.mean(found, axis=0), np.float32)


# ---- Attacks, and the verdict on them.

N_BOOTSTRAP = 500
FEWEST_ALIGNED = 10  # people: half of them teach what protection does to the others
MOST_TRIALS, FEWEST_CANDIDATES = 100_000, 10  # of an attack, and of a recording in it
LOW = 165.0  # Hz: most men's voices are below it, most women's and children's above
HALVES = {  # of a person that attackers know, and of a recording whose person they look for
    "unprotected": (KNOWN, SAID),
    "ignorant": (KNOWN, PROTECTED),
    "lazy_informed": (AGAIN, PROTECTED),
}
Vectors = Mapping[str, Float64]  # of recordings, (n, d), by half
Report = Mapping[str, Any]


@dataclass(frozen=True)
class Attack:
    """An attacker with an encoder: figures by family, what the verdict takes of them, and the
    recordings whose person they name, of which guessing would name a share, `chance`."""

    attacker: str
    encoder: str
    figures: Mapping[str, Report]
    evidence: Evidence
    named: Sequence[str] = ()
    chance: float = math.nan


@dataclass(frozen=True)
class Found:
    """Attacks, the verdict, and what words, quality and pitch became (each empty where it was not
    measured); left_out: attackers who were not run, and why; doubles: recordings that may be
    of one person, and count as several people's."""

    attacks: Sequence[Attack]
    verdict: Verdict
    words: Report
    quality: Report
    pitch: Report
    left_out: Mapping[str, str]
    doubles: Sequence[Sequence[str]]

    @property
    def protected(self) -> list[Attack]:
        """Attacks on what was protected."""
        return [attack for attack in self.attacks if attack.attacker != "unprotected"]


NOT_RUN = {
    "aligned": f"fewer than {FEWEST_ALIGNED} people, and half of them would teach",
    "lazy_informed": "the recordings were not protected by make protect",
}


def assess(
    pairs: Sequence[Pair], heard: Mapping[str, Heard], originals: int = 0,
    watch: Callable[[Sequence[str]], Iterable[str]] = iter,
) -> Found:  # fmt: skip
    """Run all attackers who train nothing on what was heard of pairs, by name, and compare their
    use. originals: how many files of OUT are originals, which no attacker has to find first. watch:
    wraps the names of encoders, to show progress."""
    person = {pair.name: f"person {pair.person}" for pair in pairs}  # nor a name of a recording
    person = {name: person[name] for name in sort_ids(person)}
    heard = {name: heard[name] for name in person}
    first, *_ = heard.values()
    vectors = {
        encoder: {
            half: np.stack([own.vectors[encoder][half] for own in heard.values()], dtype=float)
            for half in halves
        }
        for encoder, halves in first.vectors.items()
    }
    attacks = [own for name in watch([*vectors]) for own in _attacks(name, vectors[name], person)]
    protected = [attack for attack in attacks if attack.attacker != "unprotected"]
    each = [attack.figures["linking"]["linkability_per_speaker"] or {} for attack in protected]
    worst = max((value for own in each for value in own.values()), default=math.nan)
    verdict = judge([attack.evidence for attack in protected], worst, _chosen(protected))
    if originals and verdict.level is not Level.NOTHING:
        verdict = replace(verdict, level=Level.NOTHING, why=f"{originals} originals are in OUT")
    tried = {attack.attacker for attack in protected}
    left_out = {who: why for who, why in NOT_RUN.items() if who not in tried}
    return Found(attacks, verdict, *_use(heard, person), left_out, _doubles(vectors, person))


DOUBLE, OWN = 0.25, 0.9
"""Two people may be one where their recordings are more alike than the halves of those of DOUBLE of
the people are, and than OWN of the halves of one of the two are (docs/evidence.md)."""


def _doubles(vectors: Mapping[str, Vectors], person: Mapping[str, str]) -> list[list[str]]:
    """Recordings of several people who may be one by all encoders of voices, in the mean of their
    recordings; in groups. vectors: (n, d) by encoder and half."""
    people = [*dict.fromkeys(person.values())]
    share = np.equal.outer(people, [*person.values()]) * 1.0
    share /= share.sum(axis=1, keepdims=True)  # one may have most of them
    near = ~np.eye(len(people), dtype=bool)
    for encoder in vectors.keys() & VOICES:
        halves = (vectors[encoder][half] for half in (KNOWN, SAID))
        score = _scores(load_backend(EVALUATORS[encoder]), *halves)
        own = share @ np.diag(score)
        least = np.maximum(np.quantile(own, DOUBLE), OWN * np.minimum.outer(own, own))
        near &= share @ (score + score.T) @ share.T / 2.0 > least
    _, group = connected_components(near, directed=False)
    of = dict(zip(people, map(str, group.tolist()), strict=True))
    found = invert({name: of[who] for name, who in person.items()})
    return [own for own in found.values() if len({person[name] for name in own}) > 1]


def _attacks(encoder: str, vectors: Vectors, person: Mapping[str, str]) -> Iterator[Attack]:
    """Attacks of all attackers with an encoder. vectors: (n, d) by half, in the order of person."""
    people, names = sort_ids({*person.values()}), [*person]
    target = np.array(people)[:, None] == [*person.values()]
    share = target / target.sum(axis=1, keepdims=True)  # of each recording in the mean of a person
    backend = load_backend(EVALUATORS[encoder])
    scores = {
        attacker: _scores(backend, share @ vectors[known], vectors[said])
        for attacker, (known, said) in HALVES.items()
        if known in vectors
    }
    if len(people) >= FEWEST_ALIGNED and not isinstance(backend, PairBackend):
        scores["aligned"] = _aligned(backend, vectors, share)
    compared = _drawn_candidates(target)
    bare: dict[str, Report] = {}
    for attacker, score in scores.items():
        score[~compared] = np.nan
        row, column = np.nonzero(np.isfinite(score))
        trials = Trials(Ids(row, people), Ids(column, names), target[row, column])
        speakers = Speakers(people, row, target.argmax(axis=0)[column])
        given, n = (trials, score[row, column]), N_BOOTSTRAP
        beside = {"eer_rise": scores["unprotected"][row, column]} if bare else {}
        apart = attacker in HALVES  # halves of the people teach each other what finds the others
        found: dict[str, Report] = {
            "linking": verification(*given, speakers=speakers, beside=beside, n_bootstrap=n),
            "recordings": recordings(*given, speakers, alike=apart, n_bootstrap=n),
        }
        if apart and encoder in VOICES:
            found["legal"] = _legal(vectors, person, *HALVES[attacker])
        bare = bare or found
        own = score[target.argmax(axis=0), np.arange(len(names))]
        first = (score >= own).sum(axis=0) == 1  # a tie names nobody
        yield Attack(
            attacker, encoder, found, _evidence(attacker, encoder, found, bare),
            np.array(names)[first].tolist(),
            float((1.0 / np.isfinite(score).sum(axis=0)).mean()),
        )  # fmt: skip


def _legal(vectors: Vectors, person: Mapping[str, str], known: str, said: str) -> Report:
    enrol, trial = (
        make_side(
            dict(zip(person, vectors[half].astype(np.float32), strict=True)), person,
            vectors_path="halves", utt2spk_path="people",
        )
        for half in (known, said)
    )  # fmt: skip
    attack = LegalAttack(enrol, trial, 1, 0)
    return attack.linkability().report(key(LINKABILITY, recordings=1))


def _drawn_candidates(target: Bool) -> Bool:
    """Whom each recording is compared with, (people, recordings): everybody, or where these were
    more than MOST_TRIALS the people of a group, which are drawn."""
    n_people, n = target.shape
    groups = math.ceil(n_people / max(FEWEST_CANDIDATES, MOST_TRIALS // n))
    group = make_rng(0, "candidates").permutation(n_people) % groups
    return np.asarray(group[:, None] == group[target.argmax(axis=0)], bool)


def _chosen(attacks: Sequence[Attack]) -> dict[str, tuple[Value, float]]:
    """By number of recordings the lowest EER of attackers who can hear, with the lowest end of all
    their intervals, and its p value by permutation, corrected for their number (Bonferroni): they
    do not share a list of trials."""
    found: dict[str, tuple[Value, float]] = {}
    judges = [attack for attack in attacks if attack.evidence.judges]
    for n in LENGTHS:
        if own := [attack for attack in judges if n in attack.evidence.several]:
            ps = [attack.figures["recordings"]["p_value_eer"] * len(judges) for attack in own]
            eers = [attack.evidence.several[n] for attack in own]
            # Whoever succeeds refutes, also where somebody's lower one may be chance.
            p, least = min(zip(ps, eers, strict=True), key=lambda one: (not one[0] < LEVEL, one[1]))
            found[n] = replace(least, low=min(eer.low for eer in eers)), min(1.0, p)
    return found


def _scores(backend: Backend | PairBackend, models: Float64, said: Float64) -> Float64:
    """Scores (people, recordings)."""
    if isinstance(backend, PairBackend):
        left, right = backend.rows(models), backend.rows(said)
        return np.stack([backend.pairs(np.broadcast_to(row, right.shape), right) for row in left])
    return backend.left(models, np.ones(len(models))) @ backend.right(said).T


def _aligned(backend: Backend, vectors: Vectors, share: Float64) -> Float64:
    """Scores (people, recordings) of the attacker who learns a rotation from the other half of the
    people; NaN between the halves. share: (people, recordings) in the mean of a person."""
    found = np.full(share.shape, np.nan)
    for rows in (np.arange(len(share)) % 2 == side for side in (0, 1)):
        columns = share[rows].any(axis=0)
        rotation = learn_rotation(vectors[PAIR][~columns], vectors[KNOWN][~columns])
        models = rotation.centre(share[rows] @ vectors[KNOWN])
        said = rotation.carry(vectors[PROTECTED][columns])
        found[np.ix_(rows, columns)] = _scores(backend, models, said)
    return found


def _evidence(attacker: str, encoder: str, found: Report, bare: Report) -> Evidence:
    linking, several = found["linking"], found["recordings"]
    eers = {
        n: [v for figure in ("eer", "eer_normalised")
            if (v := value(several, key(figure, recordings=n))).defined]
        for n in LENGTHS
    }  # fmt: skip
    return Evidence(
        attacker, f"{encoder}/{EVALUATORS[encoder]}", value(linking, "eer"),
        value(bare["linking"], "eer"), value(linking, "eer_rise"), named=several[NAMED],
        chance=several[f"chance_{NAMED}"], people=linking["n_target_speakers"],
        several={n: min(map(fold, own)) for n, own in eers.items() if own},
    )  # fmt: skip


def value(report: Report, name: str) -> Value:
    """A figure with its interval; NaN where it is not defined."""
    value, ends = report.get(name), report.get("intervals", {}).get(name)
    return Value(math.nan if value is None else value, *(ends or ()))


def _use(heard: Mapping[str, Heard], person: Mapping[str, str]) -> tuple[Report, Report, Report]:
    """Words by the recogniser before protection, and estimated quality; and whether a low pitch
    stays low and a high one high."""
    n = N_BOOTSTRAP
    text, mos, height = (
        [{name: getattr(own.uses[i], what) for name, own in heard.items()} for i in (0, 1)]
        for what in Use._fields
    )
    voiced = [name for name in heard if height[0][name] and height[1][name]]
    before, after = ({name: side[name] for name in voiced} for side in height)
    return (
        error_figures(text[0], text[1], person, "english", n_bootstrap=n)
        if any(text[0].values())
        else {},
        quality_figures(mos[1], person, mos[0], n_bootstrap=n),
        recall_figures(before, after, person, n_bootstrap=n) if len({*before.values()}) > 1 else {},
    )


# ---- Evidence as data and as one page, with clips of those who are named most often.


N_CLIPS = 3


def as_data(
    found: Found, about: Mapping[str, object], pairs: Sequence[Pair], held: Identity
) -> dict[str, object]:  # fmt: skip
    """All of it."""
    return {
        **about,
        "recordings": {pair.name: pair.person for pair in pairs},
        "left_out": held.left_out,
        "wrong": {
            plain(name): {
                "is": kind,
                "of": plain(held.whose.get(name, "")),
                "coherence": held.coherence.get(name),
            }
            for name, kind in held.wrong.items()
        },
        "originals": [plain(name) for name, kind in held.wrong.items() if kind == "original"],
        "copies": {plain(name): plain(first) for name, first in held.copies.items()},
        "doubles": found.doubles,
        "verdict": str(found.verdict),
        "decision": decide(found, held),
        "attacks": [
            {"attacker": a.attacker, "encoder": a.encoder, "named": a.named, **a.figures}
            for a in found.attacks
        ],
        "not_run": found.left_out,
        "words": found.words,
        "quality": found.quality,
        "pitch": found.pitch,
    }


def as_page(
    found: Found, about: Mapping[str, Any], pairs: Sequence[Pair], held: Identity
) -> str:  # fmt: skip
    """One HTML file that asks the network for nothing."""
    doubled = {name: group[0] for group in found.doubles for name in group}
    return wording.render(
        "local/evidence/evidence.html.jinja",
        hits=hits, said=said, found=found, about=about, left_out=held.left_out, n=len(pairs),
        select=select, clips=[*clips(found, pairs)], colour=colour, LOW=LOW, MOST=MOST, TEXT=TEXT,
        people=len({pair.person for pair in pairs}), decision=decide(found, held),
        notes=held.notes, named=named(found), N_NAMED=N_NAMED,
        guessed=len(pairs) * sum(attack.chance for attack in found.protected),
        speakers={pair.name: doubled.get(pair.name, pair.person) for pair in pairs},
    )  # fmt: skip


N_NAMED = 100  # recordings in the page's table


def named(found: Found) -> list[tuple[str, list[Attack]]]:
    """Recordings whose person attackers name after protection, and these; the most often named
    first."""
    who = defaultdict[str, list[Attack]](list)
    for attack in found.protected:
        for name in attack.named:
            who[name].append(attack)
    return sorted(who.items(), key=lambda one: (-len(one[1]), one[0]))


def decide(found: Found, held: Identity) -> dict[str, str]:
    """Lines to decide by: from whom people are hidden, what is not hidden, and what
    to do before anything is published."""
    leak = found.verdict.level < Level.UNJUDGED
    quiet = [
        f"{wording.attacker(attack.attacker)} ({attack.encoder})" for attack in found.protected
        if (own := attack.evidence).judges and own.p_named >= LEVEL and fold(own.eer).high >= 0.5
        and attack.figures["recordings"]["p_value_eer"] >= LEVEL  # also from several recordings
    ]  # fmt: skip
    originals, pitch = len(held.are("original")), value(found.pitch, "uar")
    open_to = {
        f"{originals} files of OUT are originals": originals,
        f"who speaks ({select.WORDS[found.verdict.level]})": leak,
        "what is said, and when": True,
        "whether a voice is low or high": pitch.low > 0.5 or pitch.high < 0.5,  # turned round
    }
    to_do = {
        **{what.format(_several(held.are(kind))): held.are(kind)
           for kind, (_, what) in identity.WRONG.items()},
        "hear who may be one person (below), write it into SPEAKERS, measure again": found.doubles,
        f"see what was left out ({len(held.left_out)})": held.left_out,
        "take a system that hides more, or publish less of each person": leak,
        "have attackers train on speech of this system (run.sh), as none did": True,
    }  # fmt: skip
    hidden = "nobody" if leak else "nobody for certain, as no attacker trained or passed a control"
    none = "each of those who were run shows a leak, or cannot judge"
    return {
        "Hidden from": f"{hidden}; {f'no leak is shown by {_several(quiet)}' if quiet else none}",
        "Not hidden": "; ".join(what for what, is_so in open_to.items() if is_so),
        "Before you publish": "; ".join(what for what, is_so in to_do.items() if is_so),
    }


def _several(names: Sequence[str]) -> str:
    more = len(names) - 5
    return ", ".join([*names[:5], *[f"{more} more"] * (more > 0)])


def hits(attack: Attack) -> str:
    """Recordings that are named, with the binomial interval (Clopper and Pearson 1934) of as many
    people, as those of one person are alike: `3 of 40: 7.5 % [1.6, 20.4]` where each has one."""
    right, n = len(attack.named), attack.figures["linking"]["n_segments"]
    people = attack.figures["linking"]["n_target_speakers"]
    own = right / n * people
    low = beta.ppf(0.025, own, people - own + 1) if right else 0.0
    high = beta.ppf(0.975, own + 1, people - own) if right < n else 1.0
    return f"{right} of {n}: {percent(right / n)} [{100 * low:.1f}, {100 * high:.1f}]"


def said(report: Mapping[str, Any], name: str, of: str = "eer") -> str:
    """A figure of a report with its interval, written as the measure `of` is: in percent."""
    return measure(of).say(value(report, name))


def clips(found: Found, pairs: Sequence[Pair]) -> Iterator[tuple[str, ...]]:
    """Yield names of a recording each of the people who are named most often by all attackers, with
    the same seconds of it before and after protection, MP3 in base64."""
    named, length = Counter[str](), round(SECONDS * SAMPLE_RATE)
    for attack in found.protected:
        named.update(attack.figures["recordings"]["named_per_speaker"])
    first = {f"person {pair.person}": pair for pair in reversed(pairs)}
    for pair in (first[person] for person, n in named.most_common(N_CLIPS) if n):
        n = len(pair.original)
        start = loudest(pair.original.read(0, min(n, round(MOST * SAMPLE_RATE))), length)
        cuts = pair.read(start, min(start + length, n))
        yield pair.name, *(base64.b64encode(mp3(cut)).decode("ascii") for cut in cuts)
