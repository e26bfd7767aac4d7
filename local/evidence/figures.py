"""Attacks on a folder by those who train nothing, the verdict on them, and a page of both."""

import base64
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binomtest

from local.evidence import hearing
from local.evidence.hearing import AGAIN, KNOWN, PAIR, PROTECTED, SAID, Heard, Pair
from local.metrics.legal import AttackSide, LegalAttack, reidentification
from local.metrics.recordings import LENGTHS, recordings
from local.metrics.utility import error_figures, quality_figures, recall_figures
from local.metrics.verification import find_speakers, verification
from local.protocols.studies import Pairs, align, learn_by_group
from local.report import frame, select
from local.report.frame import Value, measure, percent
from local.report.gather import SECONDS, loudest, mp3
from local.report.page import colour
from local.report.select import NAMED, PRETRAINED, Evidence, Verdict, fold, judge
from steps.audio import SAMPLE_RATE
from steps.speaker.backends import CentredCosine
from utils.arrays import Float32, Float64
from utils.tables import invert, sort_ids
from utils.trials import Trials

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
        trials = Trials(
            [people[i] for i in row], [names[j] for j in column], target[row, column]
        )  # fmt: skip
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
    return replace(made, controlled=made.judges and encoder.startswith(PRETRAINED))


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
        "local/evidence/evidence.html.jinja", {"hits": hits, "said": said},
        found=found, about=about, left_out=left_out, n=len(pairs), select=select,
        people=len({pair.person for pair in pairs}), clips=clips(found, pairs), colour=colour,
        attacker=frame.attacker, FEWEST_ALIGNED=FEWEST_ALIGNED, LOW=LOW, hearing=hearing,
    )  # fmt: skip


def hits(attack: Attack) -> str:
    """Recordings that are named, with an exact binomial interval: `3 of 40 (7.5 % [1.6, 20.4])`."""
    right, n = attack.hits
    ends = binomtest(right, n).proportion_ci()
    low, high = (100 * end for end in (ends.low, ends.high))
    return f"{right} of {n}: {percent(right / n)} [{low:.1f}, {high:.1f}]"


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
    heard = pair.original.read(0, min(n, round(hearing.MOST * SAMPLE_RATE)))
    start = loudest(heard, length)
    sides = (pair.original, pair.protected)
    cut = (own.read(start, min(start + length, len(own))) for own in sides)
    return Clip(pair.name, *(base64.b64encode(mp3(one)).decode("ascii") for one in cut))
