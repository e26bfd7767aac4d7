"""Inference: what a voice tells of a person beside who it is, such as sex and age."""

import logging
import math
from collections.abc import Mapping, Sequence

import numpy as np

from local.metrics.intervals import Figures, interval_report, number_names
from local.metrics.legal import AttackSide
from steps.speaker.backends import CentredCosine
from utils.arrays import Float64, Int64
from utils.datadir import DataDir

BANDS = {"under_18": 18, "18_to_59": 60, "from_60": math.inf}  # by the first age above
FEWEST = 2  # people of a value, on each side
LENGTHS = ("1", "all")  # recordings of a person

logger = logging.getLogger(__name__)
Values = Mapping[str, Mapping[str, str]]  # by attribute and person


def attributes(data: Sequence[DataDir]) -> dict[str, dict[str, str]]:
    """Sex and age band of each person, by attribute; of those attributes that all of the data
    directories have (spk2gender, spk2age)."""
    tables = {"sex": "spk2gender", "age": "spk2age"}
    found = {
        name: {who: value for one in data for who, value in one.tables[table].items()}
        for name, table in tables.items()
        if all(table in one.tables for one in data)
    }
    if "age" in found:
        found["age"] = {who: band(int(years)) for who, years in found["age"].items()}
    return found


def band(years: int) -> str:
    """Age band of a person.

    >>> band(17), band(18), band(71)
    ('under_18', '18_to_59', 'from_60')
    """
    return next(name for name, above in BANDS.items() if years < above)


def learn(x: Float64, value: Int64) -> tuple[Float64, Float64]:
    """Weights (D, K) and offsets (K,) of a linear discriminant analysis, all values being as
    likely; x: (n, D), value: (n,), 0 to K - 1.

    The covariance within values is shrunk towards a multiple of the identity as Ledoit and Wolf
    (2004) say, so that it can be inverted however few vectors there are.
    """
    mean = np.stack([x[value == k].mean(axis=0) for k in range(value.max() + 1)])
    off = x - mean[value]
    n, d = off.shape
    cov = off.T @ off / n
    level = np.trace(cov) / d
    away = ((cov - level * np.eye(d)) ** 2).sum()
    noise = ((off**2).sum(axis=1) ** 2).sum() / n**2 - (cov**2).sum() / n
    share = min(max(noise / away, 0.0), 1.0) if away > 0 else 1.0
    shrunk = (1.0 - share) * cov + share * level * np.eye(d) if level > 0 else np.eye(d)
    weights = np.linalg.lstsq(shrunk, mean.T)[0]
    return weights, -0.5 * (mean.T * weights).sum(axis=0)


def rightly(score: Float64, own: Int64) -> Float64:
    """Share (n,) of the guesses that are right: 1 where the own value scores highest, its part of
    them where several do. score: (n, K); own: (n,)."""
    best = score == score.max(axis=1, keepdims=True)
    found: Float64 = best[np.arange(len(own)), own] / best.sum(axis=1)
    return found


def inference(
    train: AttackSide,
    trial: AttackSide,
    known: Values,
    sought: Values,
    *,
    n_bootstrap: int = 0,
    seed: int = 0,
) -> dict[str, object]:
    """Balanced accuracy of inferring each attribute, and the risk that is left (keys of the JSON:
    docs/metrics/inference.md).

    known: values of the people of `train`, sought: of those of `trial`. Vectors of each side are
    centred. A value that fewer than two people of either side have is left out, and so is an
    attribute with fewer than two values; a warning says so.
    """
    names = list(trial.spk2utt)
    x, who = _vectors(train)
    y, person = _vectors(trial)
    report: dict[str, object] = {"n_speakers": len(names), "n_segments": len(y)}
    right: dict[str, tuple[Int64, Float64]] = {}  # by key: value of each person, share right
    for attribute in [name for name in known if name in sought]:
        kept = _values(attribute, known[attribute], sought[attribute], train, trial)
        if len(kept) < 2:
            logger.warning("%s is not inferred: it takes two values", attribute)
            continue
        place = {value: k for k, value in enumerate(kept)}
        heard = np.array([place.get(known[attribute].get(s, ""), -1) for s in train.spk2utt])[who]
        own = np.array([place.get(sought[attribute].get(s, ""), -1) for s in names])
        weights, offset = learn(x[heard >= 0], heard[heard >= 0])
        score = y @ weights + offset
        n = np.bincount(person, minlength=len(names))
        one = np.bincount(person, rightly(score, np.maximum(own[person], 0))) / n
        means = np.stack([np.bincount(person, column) / n for column in score.T], axis=1)
        every = rightly(means, np.maximum(own, 0))
        report[f"chance_inferred_{attribute}"] = 1.0 / len(kept)
        report[f"people_inferred_{attribute}"] = int((own >= 0).sum())
        for length, share in zip(LENGTHS, (one, every), strict=True):
            key = f"inferred_{attribute}_{length}_recordings"
            right[key] = own, share
            told = {name: float(s) for name, s, k in zip(names, share, own, strict=True) if k >= 0}
            report[f"{key}_per_speaker"] = told

    def evaluate(drawn: Float64) -> Figures:
        found = {key: balanced(*of, drawn) for key, of in right.items()}
        return found | {
            key.replace("inferred", "residual_risk"): residual(value, int(right[key][0].max()) + 1)
            for key, value in found.items()
        }

    report |= evaluate(np.ones(len(names)))
    return report | (interval_report(evaluate, len(names), n_bootstrap, seed) if right else {})


def _vectors(side: AttackSide) -> tuple[Float64, Int64]:
    """Centred vectors (n, D) of a side, and the person of each, (n,), by place in spk2utt."""
    utts = [utt for own in side.spk2utt.values() for utt in own]
    _, person = number_names(
        (who for who, own in side.spk2utt.items() for _ in own), list(side.spk2utt)
    )
    return CentredCosine().right(np.array([side.vectors[utt] for utt in utts])), person


def _values(
    attribute: str, known: Mapping[str, str], sought: Mapping[str, str], *sides: AttackSide
) -> list[str]:
    """Values that enough people of both sides have, sorted; a warning names the others."""
    people = [
        [table.get(who, "") for who in side.spk2utt]
        for table, side in zip((known, sought), sides, strict=True)
    ]
    values = sorted({*people[0], *people[1]} - {""})
    kept = [v for v in values if min(own.count(v) for own in people) >= FEWEST]
    for value in [v for v in values if v not in kept]:
        learnt, attacked = (own.count(value) for own in people)
        logger.warning(
            "%s: %s is left out: %d people to learn from and %d attacked, of whom %d are needed",
            *(attribute, value, learnt, attacked, FEWEST),
        )
    return kept


def balanced(own: Int64, share: Float64, drawn: Float64) -> float:
    """Mean over values of the mean share right of the people who have it; NaN where a resample has
    nobody with one. own: (P,), -1 for none; share: (P,); drawn: (P,)."""
    kept = own >= 0
    people = np.bincount(own[kept], drawn[kept])
    if not people.all():
        return math.nan
    return float((np.bincount(own[kept], (drawn * share)[kept]) / people).mean())


def residual(accuracy: float, n_values: int) -> float:
    """Risk left over that of a guess without the recording: (attack - guess)/(1 - guess)."""
    guess = 1.0 / n_values
    return (accuracy - guess) / (1.0 - guess)
