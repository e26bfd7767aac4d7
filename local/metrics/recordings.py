"""Figures by number of recordings: what an attacker finds out who has several of one person."""

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import betaln

from local.metrics import detection, intervals
from local.metrics.detection import Ranking
from local.metrics.intervals import Report, but, key
from local.metrics.verification import Speakers, normalise
from utils.arrays import Bool, Float64, Int64
from utils.seeds import make_rng
from utils.tables import sort_ids
from utils.trials import Ids, Trials

LENGTHS = {"1": 1, "3": 3, "10": 10, "30": 30, "all": 0}  # by name; 0: all that a person has
FEWEST_PEOPLE = 2
FIGURES = ("eer", "eer_normalised", "named", "d_ece_normalised", "rank_disclosure",
           "rank_disclosure_worst")  # fmt: skip
NORMALISED = ("eer_normalised", "d_ece_normalised")  # of scores normalised over candidates
EACH = ("named_by_recording", "among_3_by_recording", "mean_rank_by_recording")
TESTED = [key(name, recordings="any", kind="p") for name in ("eer", "named")]
N_PERMUTATIONS = 999
_AT_ONCE = 1_000_000  # labels of permutations

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Heard:
    """Scores as a table of what is heard (rows: recordings, or groups of them) and models.

    score: (n, M), NaN where a pair is not a trial; target: (n, M); person: (n,) and model: (M,),
    whose they are, as positions in the names of `Speakers`.
    """

    score: Float64
    target: Bool
    person: Int64
    model: Int64

    @property
    def alone(self) -> bool:
        """Whether a row has one candidate, where normalisation would leave nothing."""
        return bool((np.isfinite(self.score).sum(axis=1) == 1).any())

    @property
    def sought(self) -> Bool:
        """Rows of people who have a model among their candidates, (n,)."""
        return np.asarray((self.target & np.isfinite(self.score)).any(axis=1))

    def normalised(self) -> "Heard":
        """The same with the scores of each row normalised. What a voice adds to all of a row's
        scores is gone."""
        known, score = np.isfinite(self.score), np.full_like(self.score, np.nan)
        score[known] = normalise(np.nonzero(known)[0], self.score[known])
        return Heard(score, self.target, self.person, self.model)

    def best(self) -> Int64:
        """The model that scores highest of each row, (n,); -1 where several do."""
        score = np.where(np.isfinite(self.score), self.score, -np.inf)
        ties = (score == score.max(axis=1, keepdims=True)).sum(axis=1)
        return np.where(ties == 1, score.argmax(axis=1), -1)

    def ranks(self) -> tuple[Float64, int]:
        """Rank of the best own model of each row, from 0 on, equal ones of others before it, (n,),
        NaN for rows without one; and the number of candidates of each row, 0 where these differ."""
        score = np.where(np.isfinite(self.score), self.score, -np.inf)
        own = np.where(self.target, score, -np.inf).max(axis=1, keepdims=True)
        rank = ((score >= own) & ~self.target).sum(axis=1)
        n = np.unique(np.isfinite(self.score).sum(axis=1)[self.sought])
        return np.where(self.sought, rank, np.nan), int(n[0]) if len(n) == 1 else 0

    def pairs(self, n_people: int) -> tuple[Float64, Bool, Int64]:
        """Score, label and cell (model's person by person, of a resample's weights) of each pair
        that is a trial, (n_pairs,)."""
        known = np.isfinite(self.score)
        cell = self.model[None, :] * n_people + self.person[:, None]
        return self.score[known], self.target[known], cell[known]


def hear(trials: Trials, score: Float64, speakers: Speakers) -> Heard:
    """Scores of a list, (n_trials,), as a table; recordings and models in C order of their ids."""
    sides = []
    for column in (trials.trial, trials.enrol):
        ids = Ids.of(column)
        place = {name: i for i, name in enumerate(sort_ids(ids.names))}
        sides.append(np.array([place[name] for name in ids.names])[ids.codes])
    row, column_of = sides
    shape = int(row.max()) + 1, int(column_of.max()) + 1
    table, target = np.full(shape, np.nan), np.zeros(shape, bool)
    table[row, column_of], target[row, column_of] = score, trials.target
    person, model = np.zeros(shape[0], np.int64), np.zeros(shape[1], np.int64)
    person[row], model[column_of] = speakers.trial, speakers.enrol
    return Heard(table, target, person, model)


def shuffle(heard: Heard, names: Sequence[str], seed: int) -> list[Int64]:
    """Rows of each person in an order drawn by the person's name: what is recorded together stands
    together in a list, and shall not be together in every group."""
    rows = [np.flatnonzero(heard.person == place) for place in range(len(names))]
    return [
        own[make_rng(seed, "recordings", name).permutation(len(own))]
        for name, own in zip(names, rows, strict=True)
    ]


def group(heard: Heard, order: Sequence[Int64], length: int) -> Heard | None:
    """Groups of `length` recordings of one person (0: one group of all), no recording in two, with
    the mean of their scores by each model that all of a group are compared with; None where nobody
    has so many."""
    pieces = []
    for own in order:
        size = length or len(own)
        pieces += [own[at : at + size] for at in range(0, len(own) - size + 1, size or 1)]
    pieces = [piece for piece in pieces if len(piece)]
    if not pieces:
        return None
    sizes = np.array([len(piece) for piece in pieces])
    rows, start = np.concatenate(pieces), np.cumsum(sizes) - sizes
    mean = np.add.reduceat(heard.score[rows], start, axis=0) / sizes[:, None]
    return Heard(mean, heard.target[rows[start]], heard.person[rows[start]], heard.model)


@dataclass(frozen=True, eq=False)
class Length:
    """Groups of one length, ranked for figures by their scores as they are (`raw`) and normalised.

    share: (n_people,) of each person's groups that a model of theirs scores highest of all; chance:
    the same by guessing; both NaN for people without target trials. ranks: of `Heard`, with the
    number of candidates.
    """

    groups: Heard
    raw: Ranking
    normal: Ranking
    cell: Int64
    share: Float64
    chance: Float64
    ranks: tuple[Float64, int]

    @classmethod
    def of(cls, groups: Heard, n_people: int) -> "Length":
        """Rank the groups, and name each by its best model."""
        known, sought, best = np.isfinite(groups.score), groups.sought, groups.best()
        right = groups.target[np.arange(len(best)), best] & (best >= 0)
        guessed = (groups.target & known).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
        own = np.bincount(groups.person[sought], minlength=n_people).astype(np.float64)
        own[own == 0] = np.nan
        share, chance = (
            np.bincount(groups.person[sought], value[sought], n_people) / own
            for value in (right, guessed)
        )
        score, target, cell = groups.pairs(n_people)
        normal, _, _ = groups.normalised().pairs(n_people)
        raw, z = (detection.rank(values, target, cell) for values in (score, normal))
        return cls(groups, raw, z, cell, share, chance, groups.ranks())

    def figures(self, drawn: Float64) -> Float64:
        """`FIGURES` in resamples that hold each person as often as drawn, (n, n_people); (6, n).
        NaN where one is not defined, as all are without targets or without nontargets."""
        found = np.hstack([self._figures(some) for some in _parts(drawn, len(self.cell))])
        found[:, np.isnan(found[FIGURES.index("eer")])] = math.nan
        if self.groups.alone:
            found[[FIGURES.index(name) for name in NORMALISED]] = math.nan
        return found

    def _figures(self, drawn: Float64) -> Float64:
        eers, weight = self._eers(drawn)
        rank, n_models = self.ranks
        sought = ~np.isnan(rank)
        bits = disclosures(rank[sought], drawn[:, self.groups.person[sought]], n_models)
        d_eces = detection.d_eces(*self.normal.counts(weight))
        return np.stack([*eers, self.named(drawn), d_eces, *bits])

    def by_group(self, drawn: Float64) -> Float64:
        """`EACH` with people drawn so often, (n, n_people), all groups alike; (3, n)."""
        rank, person = self.ranks[0], self.groups.person
        rank, person = rank[~np.isnan(rank)], person[~np.isnan(rank)]
        weight = drawn[:, person]
        total = weight.sum(axis=1)
        found = np.stack([rank < 1, rank < 3, 1 + rank]) @ weight.T
        return np.asarray(found / np.where(total > 0, total, np.nan), np.float64)

    def guessed(self) -> intervals.Figures:
        """`EACH` by guessing, all groups alike: with m own ones of C models P(none of k is own) is
        that none of k drawn is, and the mean rank 1 + (C - m)/(m + 1)."""
        known = np.isfinite(self.groups.score)[self.groups.sought]
        n, own = known.sum(axis=1), (known & self.groups.target[self.groups.sought]).sum(axis=1)
        miss = [np.maximum(n - own - i, 0) / np.maximum(n - i, 1) for i in range(3)]
        values = (1 - miss[0], 1 - np.prod(miss, axis=0), 1 + (n - own) / (own + 1))
        return {name: float(one.mean()) for name, one in zip(EACH, values, strict=True)}

    def _eers(self, drawn: Float64) -> tuple[list[Float64], Float64]:
        """EERs by raw and by normalised scores, (n,) each, and weights of the latter."""
        eers = []
        for ranking in (self.raw, self.normal):
            weight = intervals.pair_weights(drawn, self.cell[ranking.order])
            t, n = ranking.counts(weight)
            eers.append(detection.eers(np.cumsum(t, axis=1), np.cumsum(t + n, axis=1)))
        return eers, weight

    def eers(self, drawn: Float64) -> Float64:
        """Folded EERs by raw scores and, unless they have one candidate, by normalised ones,
        with people drawn so often; drawn: (n, n_people); (1 or 2, n)."""
        made = np.hstack([self._eers(some)[0] for some in _parts(drawn, len(self.cell))])
        found = made[: 1 if self.groups.alone else 2]
        return np.asarray(np.minimum(found, 1.0 - found), np.float64)

    def named(self, drawn: Float64) -> Float64:
        """Share of people named, with people drawn so often, (n, n_people); (n,)."""
        tried = ~np.isnan(self.share)
        n = drawn[:, tried].sum(axis=1)
        return drawn[:, tried] @ self.share[tried] / np.where(n > 0, n, np.nan)


def _parts(rows: Any, size: int) -> list[Any]:
    """Rows, some at a time, where each takes so many numbers."""
    return np.array_split(rows, max(1, min(len(rows), len(rows) * size // _AT_ONCE)))


def disclosures(rank: Float64, weight: Float64, n_models: int) -> tuple[Float64, Float64]:
    """Bits that the rank of the true person among N models discloses (Bäckström et al. 2025), mean
    and worst: log2(N p(rank)), p being beta-binomial with the mean and variance of the ranks.

    rank: (n,) from 0 on; weight: (n_rows, n) of these; (n_rows,) each. Where ranks vary less than
    binomial ones, p is binomial. NaN with one model, or where the number differs by recording (0),
    and where nothing has a weight.
    """
    n, k = n_models - 1, np.arange(n_models)
    mean, worst = np.full((2, len(weight)), math.nan)
    if n_models < 2:
        return mean, worst
    with np.errstate(invalid="ignore", divide="ignore"):
        first, second = (
            np.array([detection.mean(value, own) for own in weight]) for value in (rank, rank**2)
        )
        spread = n * (second / first - first - 1.0) + first
        a = ((n * first - second) / spread)[:, None]
        b = ((n - first) * (n - second / first) / spread)[:, None]
        share, few = first[:, None] / n, a + b < 1e-6  # 0 where all ranks are the first or the last
        a, b = np.where(few, 1e-6 * share, a), np.where(few, 1e-6 * (1.0 - share), b)
        shape = betaln(k + a, n - k + b) - betaln(a, b)
    for i in np.flatnonzero((spread <= 1e-9) & (first > 0.0) & (first < n)):
        shape[i] = k * math.log(first[i] / n) + (n - k) * math.log1p(-first[i] / n)
    # N times the binomial coefficient of n = N - 1 over k is 1/B(k + 1, N - k).
    bits = (shape - betaln(k + 1, n - k + 1)) / detection.LN2
    p = np.exp2(bits) / n_models
    for i in np.flatnonzero(~np.isnan(first)):
        if first[i] in (0.0, n):
            mean[i] = worst[i] = math.log2(n_models)
        else:
            some = p[i] > 0
            mean[i], worst[i] = p[i][some] @ bits[i][some], bits[i].max()
    return mean, worst


def recordings(
    trials: Trials,
    score: Float64,
    speakers: Speakers,
    *,
    draws: Sequence[Float64] = (),
    enrolled: Mapping[int, Float64] = MappingProxyType({}),
    alike: bool = False,
    **resamples: int,
) -> Report:
    """All figures of a trial list by number of recordings, and whether they may be chance (keys of
    the JSON: docs/metrics/recordings.md).

    score: (n_trials,). draws: the same of further runs of a random system: figures are means over
    all runs, a resample takes one of them. enrolled: (n_trials,) of models of few enrolled
    recordings, by their number: folded EERs. alike: of `permutation_tests`. A length that fewer
    than two people with target trials have is left out, and a warning says so. resamples:
    n_bootstrap and seed of `intervals.resample`.
    """
    every = [hear(trials, run, speakers) for run in (score, *draws)]
    n_people, seed = len(speakers.names), resamples.get("seed", 0)
    order = shuffle(every[0], speakers.names, seed)
    runs = [_lengths(heard, order, n_people) for heard in every]
    for name in [name for name in LENGTHS if name not in runs[0]]:
        logger.warning(
            f"{name} recordings: left out, as fewer than {FEWEST_PEOPLE} people with target trials "
            "have so many"
        )
    if alien := int((~every[0].sought).sum()):
        n = len(every[0].person)
        logger.warning(f"{alien} of {n} recordings are of nobody enrolled, and not named")
    samples: dict[str, Float64] = {}  # of each figure, as it is and in each resample
    report: Report = {}
    for name, own in runs[0].items():
        tried, found = own.groups.sought, [run[name] for run in runs]
        n = len(np.unique(own.groups.person[tried]))
        of = {"recordings": name, "n_speakers": n, "n_segments": int(tried.sum())}
        samples |= _sample(found, n_people, of, FIGURES, Length.figures, **resamples)
        chance = {"named": float(np.nanmean(own.chance))}
        if name == "1":
            samples |= _sample(found, n_people, of, EACH, Length.by_group, **resamples)
            chance |= own.guessed()
            share = dict(zip(speakers.names, own.share.tolist(), strict=True))
            report["named_per_speaker"] = {w: s for w, s in share.items() if not math.isnan(s)}
        report |= {key(figure, **of, kind="chance"): value for figure, value in chance.items()}
    for number, scores in enrolled.items():
        for name, own in _lengths(hear(trials, scores, speakers), order, n_people).items():
            of, names = {"recordings": name, "enrolled": number}, ("eer", "eer_normalised")
            samples |= _sample([own], n_people, of, names, Length.eers, **resamples)
    alone = any(own.groups.alone for own in runs[0].values())
    for name, sampled in samples.items():
        intervals.warn_undefined({name: float(sampled[0])}, _why_undefined(name, alone))
    tests = permutation_tests([[*run.values()] for run in runs], every[0], seed, alike=alike)
    few = "too few people have the same candidates, and could swap them"
    return report | intervals.sampled(samples, n_people) | intervals.warn_undefined(tests, few)


def _sample(
    found: Sequence[Length],
    n_people: int,
    of: Mapping[str, object],
    names: Sequence[str],
    figures: Callable[[Length, Float64], Float64],
    **resamples: int,
) -> dict[str, Float64]:
    """What `over_runs` finds, by name; of: columns of the names."""
    made = over_runs(found, n_people, figures, **resamples)
    return dict(zip((key(name, **of) for name in names), made, strict=False))


def _why_undefined(name: str, alone: bool) -> str:
    if alone and name.startswith(NORMALISED):
        return "a recording has one candidate, who cannot be compared with others"
    if name.startswith("rank"):
        return "there is one candidate, or their number differs by recording"
    return "there are no nontargets"


def _lengths(heard: Heard, order: Sequence[Int64], n_people: int) -> dict[str, Length]:
    """Groups of those of `LENGTHS` of which enough people have so many recordings."""
    every = {name: group(heard, order, length) for name, length in LENGTHS.items()}
    return {
        name: Length.of(groups, n_people)
        for name, groups in every.items()
        if groups and len(np.unique(groups.person[groups.sought])) >= FEWEST_PEOPLE
    }


# ---- Permutation tests: may what an attacker finds out be chance?
#
# Null hypothesis: scores have nothing to do with who is who. The people who have a model swap their
# models, all recordings of a person together, so that what recordings of one person share stays.
# A swapped pair may be no trial, which leaves fewer targets: the EER then varies more, and its p
# value errs upwards. Who is not a candidate cannot be named either, which would make the right one
# look better than chance; so for naming only those swap who were compared with the same people.


def permutation_tests(
    runs: Sequence[Sequence[Length]], heard: Heard, seed: int = 0, *, alike: bool = False
) -> intervals.Figures:
    """P values of the lowest folded EER over all lengths, raw and normalised (`p_value_eer`), and
    of the share of people named that is farthest from chance over all lengths (`p_value_named`).

    runs: lengths of each run of a system, over which figures are averaged. Each is two-sided: a
    leak that is turned round is a leak. The least p value of several figures is corrected for their
    number (`_p_values`). p = (as much + 1)/(N + 1). NaN without lengths or permutations. alike: for
    EERs, as for naming, only people who were compared with the same ones swap, unless somebody is
    alone.
    """
    models, swaps, _ = _swap(heard, seed, alike=alike)
    _, within, group = _swap(heard, seed, alike=True)
    if not runs[0] or not len(swaps):
        return dict.fromkeys(TESTED, math.nan)
    eer, named = TESTED
    leaks = {
        eer: [_leaks(_tables(found), models, swaps) for found in runs],
        named: [
            np.stack([_named(own.groups, models, within, group) for own in found], axis=1)
            for found in runs
        ],
    }  # fmt: skip
    mean = {name: np.mean(own, axis=0) for name, own in leaks.items()}
    mean[named] = np.abs(mean[named])
    return {name: float(_p_values(own).min()) for name, own in mean.items()}


def _tables(found: Iterable[Length]) -> list[Heard]:
    """Scores of each length, as they are and, unless they have one candidate, normalised."""
    return [
        table
        for own in found
        for table in (own.groups, *([] if own.groups.alone else [own.groups.normalised()]))
    ]


def _leaks(tables: Sequence[Heard], models: Bool, swaps: Int64) -> Float64:
    """How far the folded EER of each table lies below guessing in each swap, (n_swaps, n)."""
    return np.stack([0.5 - _eers(table, models, swaps) for table in tables], axis=1)


def _swap(heard: Heard, seed: int, *, alike: bool = False) -> tuple[Bool, Int64, Int64]:
    """Which models are of which person, (n_people, M); who has whose models in each permutation,
    (1 + N_PERMUTATIONS, n_people), the first of which swaps nobody, none where fewer than two
    people have any; and the group, (n_people,), within which each person swaps, -1 for nobody.
    alike: groups of `_alike`, unless somebody is alone; else one."""
    people = np.unique(heard.person[heard.sought])
    models = np.zeros((int(heard.person.max()) + 1, heard.score.shape[1]), bool)
    np.logical_or.at(models, heard.person, heard.target)
    group = _alike(heard, people, models)
    if not alike or (np.bincount(group[people]) < FEWEST_PEOPLE).any():
        group = np.minimum(group, 0)
    rng = make_rng(seed, "permutation test of recordings")
    swaps = np.tile(np.arange(len(models)), (N_PERMUTATIONS + 1, 1))
    for own in (np.flatnonzero(group == number) for number in range(group.max(initial=-1) + 1)):
        swaps[1:, own] = rng.permuted(np.tile(own, (N_PERMUTATIONS, 1)), axis=1)
    return models, swaps[: len(swaps) if len(people) >= FEWEST_PEOPLE else 0], group


def _alike(heard: Heard, people: Int64, models: Bool) -> Int64:
    """Number, (n_people,), of the group of each of `people`, whose recordings were all compared
    with the models of the same people; -1 for others."""
    known = np.isfinite(heard.score)[:, models[people].any(axis=0)]
    numbers: dict[tuple[bytes, int], int] = {}
    group = np.full(len(models), -1)
    for person in people.tolist():
        rows = known[heard.person == person]
        own = rows[0].tobytes(), -1 if (rows == rows[0]).all() else person
        group[person] = numbers.setdefault(own, len(numbers))
    return group


def _p_values(leaks: Float64) -> Float64:
    """P value of each figure of the first row of leaks, (1 + n_permutations, n_figures), corrected
    for their number: each, in standard deviations, is compared with the largest of each row (max T
    of Westfall and Young 1993). Rows where one is not defined (NaN) are left out; (n_figures,), NaN
    where the first is."""
    defined = np.isfinite(leaks).min(axis=1)
    if not defined[0]:
        return np.full(leaks.shape[1], math.nan)
    off = leaks[defined] - leaks[defined].mean(axis=0)
    spread = off.std(axis=0)
    off = np.where(spread > 1e-12, off / np.maximum(spread, 1e-12), 0.0)
    most = np.sort(off.max(axis=1))
    as_much = len(most) - np.searchsorted(most, off[0] - 1e-9)
    return np.asarray(as_much / len(most), np.float64)


def _eers(heard: Heard, models: Bool, swaps: Int64) -> Float64:
    """Folded EER of each swap, (n_swaps,)."""
    known = np.isfinite(heard.score)
    row, model = np.nonzero(known)
    order = np.argsort(heard.score[known], kind="stable")
    score, cell = heard.score[known][order], (heard.person[row] * models.shape[1] + model)[order]
    once, cell = np.unique(cell, return_inverse=True)  # there may be far fewer than pairs of both
    person, model = np.divmod(once, models.shape[1])
    ends, found = np.flatnonzero(np.append(score[1:] > score[:-1], True)), []
    for some in _parts(swaps, len(order)):
        target = models[some[:, person], model].take(cell, axis=1)
        upto: Any = np.cumsum(target, axis=1, dtype=np.int32)
        found.append(detection.eers(upto, np.arange(1.0, len(score) + 1), ends))
    eer = np.concatenate(found)
    return np.minimum(eer, 1.0 - eer)


def _named(heard: Heard, models: Bool, swaps: Int64, group: Int64) -> Float64:
    """Share of people named in each swap less its mean over all possible ones, (n_swaps,); NaN
    where somebody would swap with who was no candidate of theirs, and so cannot be named."""
    sought, best = heard.sought, heard.best()
    people, count = np.unique(heard.person[sought], return_counts=True)
    hits = np.zeros((len(models), len(models)))  # by person, and by whose models they are
    right = sought & (best >= 0)
    np.add.at(hits, heard.person[right], models[:, best[right]].T)
    absent = csr_array(models) @ ~np.isfinite(heard.score[sought]).T
    np.add.at(hits, heard.person[sought], np.where(absent.T, math.nan, 0.0))
    hits[people] /= count[:, None]
    share = hits[people[None, :], swaps[:, people]].mean(axis=1)
    alike = group[people, None] == group
    expected = np.where(alike, hits[people], 0.0).sum(axis=1) / alike.sum(axis=1)
    return np.asarray(share - expected.mean(), np.float64)


# ---- The strongest of several attackers: who is chosen also depends on the people.


def strongest(
    trials: Trials,
    scores: Sequence[Sequence[Float64]],
    speakers: Speakers,
    *,
    n_bootstrap: int = 0,
    seed: int = 0,
) -> Report:
    """Lowest folded EER of several attackers on one list, by number of recordings of a person.

    scores: (n_trials,) of each run of each attacker, over whose runs EERs are averaged.
    `eer`: the lowest of all attackers, of the scores as they are and normalised; its interval takes
    the lowest anew in each resample of the people, and one of the runs. `p_value_eer`: whether that
    EER may be chance, corrected for all attackers and lengths (`_p_values`). `samples`: the EERs
    from one and from all recordings, as they are and then in each resample, for `differences`.
    """
    every = [[hear(trials, run, speakers) for run in runs] for runs in scores]
    first, n_people = every[0][0], len(speakers.names)
    report: Report = {
        **intervals.count_labels(trials.target),
        "n_speakers": n_people,
        "n_target_speakers": len(np.unique(first.person[first.sought])),
        "n_segments": len(first.person),
        "n_attacks": len(scores),
    }
    order, (models, swaps, _) = shuffle(first, speakers.names, seed), _swap(first, seed)
    resamples = {"n_bootstrap": n_bootstrap, "seed": seed}
    found: dict[str, list[Float64]] = {}
    of, leaks = [], []
    for runs in every:
        lengths = [_lengths(heard, order, n_people) for heard in runs]
        for name in lengths[0]:
            own = [of_run[name] for of_run in lengths]
            eers = over_runs(own, n_people, Length.eers, **resamples)
            found.setdefault(name, []).extend(eers)
            of += [name] * len(eers)
            if len(swaps):
                tables = [_tables([length]) for length in own]
                leaks.append(np.mean([_leaks(some, models, swaps) for some in tables], axis=0))
    p = _p_values(np.hstack(leaks)) if leaks else np.full(len(of), math.nan)
    samples: dict[str, Float64] = {}
    for name in [name for name in LENGTHS if name in found]:
        eer = key("eer", recordings=name)
        samples[eer] = np.min(found[name], axis=0)
        lowest_of_all = int(np.argmin([own[0] for own in found[name]]))
        of_lowest = float(p[np.array(of) == name][lowest_of_all])
        report |= intervals.warn_undefined(
            {eer: float(samples[eer][0]), but(eer, kind="p"): of_lowest},
            "groups of some length have no nontargets, or fewer than two people have a model",
        )
    report["samples"] = {
        n: samples[key("eer", recordings=n)].tolist() for n in ("1", "all") if n in found
    }
    if not found:
        logger.warning("eer is undefined: fewer than two people have target trials")
    return report | intervals.sampled(samples, n_people)


def differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> Report:
    """How far the lowest EER of one system lies above another's on the same list, by number of
    recordings, with intervals: people are resampled alike in both. first, second: of `strongest`;
    nothing where they are of other people or resamples."""
    of = ("n_speakers", "n_target_speakers", "n_target", "n_nontarget", "n_bootstrap")
    if any(first.get(name) != second.get(name) for name in of):
        return {}
    both = [{n: np.array(own, np.float64) for n, own in of.get("samples", {}).items()}
            for of in (first, second)]  # fmt: skip
    apart: dict[str, Float64] = {
        key("eer_difference", recordings=n): both[0][n] - both[1][n]
        for n in both[0] if n in both[1]
    }  # fmt: skip
    if not apart:  # no evaluator of either judges
        return {}
    found = intervals.sampled(apart, first["n_speakers"])
    counts = ("n_speakers", "n_segments", "n_target", "n_nontarget")
    return {name: first.get(name) for name in counts} | found


def over_runs(
    runs: Sequence[Length],
    n_people: int,
    figures: Callable[[Length, Float64], Float64],
    **resamples: int,
) -> Float64:
    """Figures in the mean of all runs, then in each resample, of one run at random, (k, 1 + n).
    figures: a method of `Length`. resamples: n_bootstrap and seed of `intervals.resample`."""
    drawn, chosen = intervals.resample(n_people, len(runs), **resamples)
    whole, parts, places = [], [], [np.zeros(1, np.int64)]
    for place, own in enumerate(runs):
        of_run = np.flatnonzero(chosen == place)
        made = np.atleast_2d(figures(own, np.vstack([np.ones(drawn.shape[1]), drawn[of_run]])))
        whole.append(made[:, :1])
        parts.append(made[:, 1:])
        places.append(1 + of_run)
    found = np.hstack([np.mean(whole, axis=0), *parts])
    return np.asarray(found[:, np.argsort(np.concatenate(places))], np.float64)
