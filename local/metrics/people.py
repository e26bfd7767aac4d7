"""Findings of attackers about people: sex and age band, who they are among many, and by group."""

import logging
import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import hypergeom

from local.metrics import intervals
from local.metrics.intervals import Report, but, key
from local.metrics.legal import FEWEST_SPEAKERS, LINKABILITY, AttackSide, count_rivals
from local.metrics.recordings import LENGTHS, Heard, Length, group, hear, over_runs, shuffle
from local.metrics.verification import Speakers
from steps.speaker.backends import CentredCosine
from utils.arrays import Bool, Float64, Int64
from utils.cli import UserError
from utils.datadir import DataDir
from utils.tables import StrPath, read_map, sort_ids
from utils.trials import Trials

FEWEST = 2  # people of a value, on each side
ENDS = ("1", "all")  # recordings of a person
Values = Mapping[str, Mapping[str, str]]  # by attribute and person

logger = logging.getLogger(__name__)

# ---- Inference: what a voice tells of a person beside who it is.

BANDS = {"under_18": 18, "18_to_59": 60, "from_60": math.inf}  # by the first age above


def attributes(data: Sequence[DataDir], others: Sequence[str] = ()) -> dict[str, dict[str, str]]:
    """Sex and age band of each person, by attribute; of those attributes that all of the data
    directories have (spk2gender, spk2age). others: attributes of tables spk2<attribute>."""
    tables = {"sex": "spk2gender", "age": "spk2age"}
    found = {
        name: {who: value for one in data for who, value in one.tables[table].items()}
        for name, table in tables.items()
        if all(table in one.tables for one in data)
    }
    for name in others:
        found[name] = {w: v for one in data for w, v in read_map(one.path / f"spk2{name}").items()}
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
    from sklearn.covariance import ledoit_wolf

    mean = np.stack([x[value == k].mean(axis=0) for k in range(value.max() + 1)])
    off = x - mean[value]
    shrunk, _ = ledoit_wolf(off, assume_centered=True)
    shrunk = shrunk if shrunk.any() else np.eye(x.shape[1])
    weights = np.linalg.lstsq(shrunk, mean.T)[0]
    return weights, -0.5 * (mean.T * weights).sum(axis=0)


def correct(score: Float64, own: Int64) -> Float64:
    """Share (n,) of the guesses that are right: 1 where the own value scores highest, its part of
    them where several do. score: (n, K); own: (n,)."""
    best = score == score.max(axis=1, keepdims=True)
    return best[np.arange(len(own)), own] / best.sum(axis=1)


def inference(
    train: AttackSide,
    trial: AttackSide,
    known: Values,
    sought: Values,
    *,
    n_bootstrap: int = 0,
    seed: int = 0,
) -> Report:
    """Balanced accuracy of inferring each attribute, and the risk that is left (keys of the JSON:
    docs/metrics/inference.md).

    known: values of the people of `train`, sought: of those of `trial`. Vectors of each side are
    centred. A value that fewer than two people of either side have is left out, and so is an
    attribute with fewer than two values; a warning says so.
    """
    names = list(trial.spk2utt)
    x, who = _vectors(train)
    y, person = _vectors(trial)
    report: Report = {"n_speakers": len(names), "n_segments": len(y)}
    right: dict[str, tuple[Int64, Float64]] = {}  # by name: value of each person, share right
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
        one = np.bincount(person, correct(score, np.maximum(own[person], 0))) / n
        means = np.stack([np.bincount(person, column) / n for column in score.T], axis=1)
        every = correct(means, np.maximum(own, 0))
        of = {"attribute": attribute, "n_speakers": int((own >= 0).sum())}
        report[key("inferred", **of, recordings="any", kind="chance")] = 1.0 / len(kept)
        for length, share in zip(ENDS, (one, every), strict=True):
            name = key("inferred", **of, recordings=length)
            right[name] = own, share
            told = {who: float(s) for who, s, k in zip(names, share, own, strict=True) if k >= 0}
            report[f"{name}_per_speaker"] = told

    if not right:
        logger.warning("nothing is inferred: both sides need spk2gender or spk2age, of two values")

    def evaluate(drawn: Float64) -> intervals.Figures:
        found = {name: balanced(*of, drawn) for name, of in right.items()}
        return found | {
            but(name, metric="residual_risk"): residual(value, int(right[name][0].max()) + 1)
            for name, value in found.items()
        }

    report |= evaluate(np.ones(len(names)))
    n_bootstrap = n_bootstrap if right else 0
    return report | intervals.bootstrap(evaluate, len(names), n_bootstrap, seed)


def _vectors(side: AttackSide) -> tuple[Float64, Int64]:
    """Centred vectors (n, D) of a side, and the person of each, (n,), by place in spk2utt."""
    utts = [utt for own in side.spk2utt.values() for utt in own]
    _, person = intervals.number_names(
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
            f"{attribute}: {value} is left out: {learnt} people to learn from and {attacked} "
            f"attacked; {FEWEST} are needed"
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


# ---- A crowd of candidates: how surely a recording leads to its person among ever more people.

CANDIDATES = (2, 5, 10, 20, 50, 100, 200, 500, 1000)  # and all that there are


def join(sides: Sequence[tuple[StrPath, AttackSide]]) -> AttackSide:
    """The people of all (data directory, side); UserError for a person or utterance of two."""
    found = AttackSide({}, {})
    for path, side in sides:
        for what, a, b in (
            ("speaker", found.spk2utt, side.spk2utt), ("utterance", found.vectors, side.vectors),
        ):  # fmt: skip
            if twice := sort_ids(a.keys() & b.keys()):
                raise UserError(f"{path}: {what} {twice[0]} is also enrolled; name a set of others")
        found = AttackSide(found.vectors | side.vectors, found.spk2utt | side.spk2utt)
    return found


def centre(side: AttackSide) -> AttackSide:
    """The same side by vectors of length 1 less the mean of all, of length 1 again."""
    rows = CentredCosine().right(np.array(list(side.vectors.values())))
    return AttackSide(dict(zip(side.vectors, rows, strict=True)), side.spk2utt)


def crowd(
    sides: Sequence[tuple[StrPath, AttackSide]], trial: AttackSide, *,
    n_bootstrap: int = 0, seed: int = 0,
) -> Report:  # fmt: skip
    """Legal linkability and naming among N candidates by groups of L recordings (keys of the JSON:
    docs/metrics/named.md).

    sides: (data directory, side) of those enrolled, and of each set of candidates whom nobody
    attacks. For naming, each set is centred by itself, which removes its channel. The attacked are
    those of `trial` who are candidates; others are left out with a warning, and so is a side of
    nobody. Each figure is the expectation over the N - 1 others drawn from all candidates.
    UserError where nobody of `trial` is one.
    """
    for path, _ in (one for one in sides if not one[1].spk2utt):
        logger.warning("%s: has nobody of the sex of those attacked; left out", path)
    sides = [one for one in sides if one[1].spk2utt]
    candidates = join(sides)
    people = [who for who in trial.spk2utt if who in candidates.spk2utt]
    if not people:
        raise UserError("no attacked speaker is enrolled; are these the right data directories?")
    if lone := len(trial.spk2utt) - len(people):
        logger.warning("%d speakers without enrolment are left out", lone)
    trial, total = trial.only(people), len(candidates.spk2utt)
    sizes = [*(n for n in CANDIDATES if n < total), total]
    rates: dict[str, Float64] = {}
    centred = join([(path, centre(side)) for path, side in sides]), centre(trial)
    for name_of, both in ((LINKABILITY, (candidates, trial)), ("named", centred)):
        for name, length in LENGTHS.items():
            found = [own for _, own in count_rivals(*both, length, seed)]
            if sum(len(own) > 0 for own in found) < FEWEST_SPEAKERS:
                logger.warning("%s recordings: fewer than two people have so many", name)
                continue
            for n in sizes:
                # None of those who score no lower is among the n - 1 others.
                rate = [hypergeom.cdf(0, total - 1, own, n - 1).mean() if len(own)
                        else math.nan for own in found]  # fmt: skip
                rates[key(name_of, recordings=name, candidates=n)] = np.array(rate)

    return {
        "n_speakers": len(people),
        "n_segments": len(trial.vectors),
        "n_candidates": total,
        **{name: float(np.nanmean(rate)) for name, rate in rates.items()},
        **intervals.rate_intervals(rates, n_bootstrap, seed),
    }


# ---- Groups of people: whom the strongest attacker finds best, and by how much.

RESAMPLED = 3  # attackers with the lowest EERs, among whom a resample finds the strongest
BETTER = {"eer": 1.0, "named": -1.0}  # for the people, where it is higher


def groups(
    trials: Trials,
    scores: Sequence[Sequence[Float64]],
    speakers: Speakers,
    values: Values,
    *,
    n_bootstrap: int = 0,
    seed: int = 0,
) -> Report:
    """The lowest EER and the highest share named of all attackers by group of people, and by each
    attribute how far the worst group lies behind the best (keys of the JSON:
    docs/metrics/groups.md).

    trials: of all lists together. scores: (n_trials,) of each run of each attacker, over whose runs
    figures are averaged. Intervals resample all people and take the strongest attacker, and one of
    the runs, anew; which group is worst stays. A group of fewer than two people with target trials
    is left out, and a warning says so.
    """
    every = [[hear(trials, run, speakers) for run in runs] for runs in scores]
    first, names = every[0][0], speakers.names
    sought = np.isin(np.arange(len(names)), first.person[first.sought])
    report: Report = {
        **intervals.count_labels(trials.target),
        "n_speakers": int(sought.sum()),
        "n_segments": int(first.sought.sum()),
        "n_attacks": len(scores),
    }
    samples: dict[str, Float64] = {}  # of each figure, (1 + n_bootstrap,)
    resamples = {"n_bootstrap": n_bootstrap, "seed": seed}
    members = _members(values, names, sought)
    order = shuffle(first, names, seed)
    for length in ENDS:
        heard = [[group(one, order, LENGTHS[length]) for one in runs] for runs in every]
        found = [[one for one in runs if one is not None] for runs in heard]
        for attribute, own in members.items():
            of = {value: _figures(found, who, **resamples) for value, who in own.items()}
            for figure, sign in BETTER.items():
                name = key(figure, recordings=length, attribute=attribute)
                for value, one in of.items():
                    n = int(own[value].sum())
                    samples[but(name, group=value, n_speakers=n)] = one[figure]
                ranked = sorted(of, key=lambda v: sign * of[v][figure][0])
                gap = sign * (of[ranked[-1]][figure] - of[ranked[0]][figure])
                samples[but(name, kind="gap")] = gap
    return report | intervals.sampled(samples, len(names))


def _members(values: Values, names: Sequence[str], sought: Bool) -> dict[str, dict[str, Bool]]:
    """Who is in each group, (n_people,), by attribute and value; attributes with two groups."""
    found: dict[str, dict[str, Bool]] = {}
    for attribute, table in values.items():
        of = np.array([table.get(who, "") for who in names])
        every = {v: sought & (of == v) for v in sorted({*of[sought].tolist()} - {""})}
        for value, who in every.items():
            if who.sum() < FEWEST:
                n = who.sum()
                logger.warning(f"{attribute} {value}: left out: {n} people with target trials")
        kept = {value: who for value, who in every.items() if who.sum() >= FEWEST}
        if len(kept) > 1:
            found[attribute] = kept
    return found


def _figures(
    every: Sequence[Sequence[Heard]], who: Bool, **resamples: int
) -> Mapping[str, Float64]:
    """Figures of all attackers on some people, first as they are, then in each resample."""
    n, own = len(who), list[list[Length]]()
    for runs in every:
        kept = ((one, who[one.person]) for one in runs)  # and the candidates of these rows
        own.append([
            Length.of(Heard(one.score[rows], one.target[rows], one.person[rows], one.model), n)
            for one, rows in kept
        ])  # fmt: skip
    named = [over_runs(runs, n, Length.named, **resamples)[0] for runs in own]
    first = [over_runs(runs, n, Length.eers).min() for runs in own]
    eers = np.vstack(
        [over_runs(own[i], n, Length.eers, **resamples) for i in np.argsort(first)[:RESAMPLED]]
    )
    return {"eer": eers.min(axis=0), "named": np.max(named, axis=0)}
