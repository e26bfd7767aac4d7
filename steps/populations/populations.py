"""Populations of speakers whose error rates are compared: simulated and real ones."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from steps.generators.sampling import Sampler, generate_one
from steps.populations.plans import Side
from steps.sources import Key, Source
from steps.speaker.backends import read_segments
from steps.speaker.vectors import class_statistics
from utils.arrays import Float32, Float64
from utils.cli import UserError
from utils.datadir import DataDir, load_data_dir
from utils.seeds import make_rng
from utils.tables import atomic_write, read_lines, sort_ids

# ---- Simulated population of speakers, as large as wanted, fitted to real x-vectors.
#
# An x-vector is x = m + y + e: m the mean of the speaker's gender, y ~ N(0, B) the speaker, the
# same in all their utterances, e ~ N(0, W) new in each. Speakers are independent, so the expected
# error rates hardly depend on their number; only their scatter does.
#
# Protected speech has x = p + leak y + e, p the pseudo-speaker's vector, e a residual within
# speakers as in original speech. Only `leak`, a number that has to be given, carries what a
# synthesiser keeps of the source speaker.

ANYBODY = ""  # the gender where genders are not known
ENROLS, UTTERANCES = 10, 35.8482  # per speaker on average: 358,482 of 10,000 (Liu et al. 2025, V-J)
_SPEAKERS = 256  # made at a time
TWO, SAME = "two", "same"  # pseudo-speakers of a person: one in enrolment, one in trials; or one


@dataclass(frozen=True, eq=False)
class Population:
    """Population. means: (d,) by gender; shares: of the speakers, by gender; between, within: (d,
    d) factors F with F F' = B and W, so that F z has that covariance; n_speakers, n_utterances: of
    the fit; rank: of B, at most n_speakers - 1."""

    means: Mapping[str, Float64]
    shares: Mapping[str, float]
    between: Float64
    within: Float64
    n_speakers: int
    n_utterances: int
    rank: int

    def speakers(self, n: int, rng: np.random.Generator) -> tuple[Float64, list[str]]:
        """Draw (n, d) m + y of new speakers, and their genders."""
        names = list(self.means)
        drawn = rng.choice(len(names), n, p=[self.shares[name] for name in names])
        y = rng.standard_normal((n, len(self.between))) @ self.between.T
        return np.stack([self.means[name] for name in names])[drawn] + y, [names[i] for i in drawn]

    def residuals(self, n: int, rng: np.random.Generator) -> Float64:
        """Draw (n, d) e of n utterances."""
        return rng.standard_normal((n, len(self.within))) @ self.within.T


def fit_population(
    vectors: Mapping[str, npt.NDArray[np.float32]],
    utt2spk: Mapping[str, str],
    spk2gender: Mapping[str, str] | None,
) -> Population:
    """Estimate moments of real x-vectors: W is the pooled covariance within speakers, shrunk by
    Ledoit and Wolf's rule; B that of the speakers' means within their gender, less the part of W
    that means of few utterances still have, negative eigenvalues set to 0. UserError for too few of
    either."""
    from sklearn.covariance import ledoit_wolf

    ids = list(vectors)
    names, classes = np.unique([utt2spk[utt] for utt in ids], return_inverse=True)
    x = np.stack([vectors[utt] for utt in ids]).astype(np.float64)
    genders = [ANYBODY if spk2gender is None else spk2gender[name] for name in names.tolist()]
    free = len(names) - len(set(genders))
    if free < 2 or len(ids) == len(names):
        raise UserError(
            f"{len(ids)} x-vectors of {len(names)} speakers: several speakers of a gender, and one "
            "of several utterances, are needed to fit a population"
        )
    means, counts, _ = class_statistics(x, classes)
    several = counts[classes] > 1
    deviations = (x - means[classes])[several]
    degrees = len(ids) - len(names)
    within = ledoit_wolf(deviations, assume_centered=True)[0] * (len(deviations) / degrees)
    of = {g: means[[h == g for h in genders]].mean(axis=0) for g in sorted(set(genders))}
    centred = means - np.stack([of[g] for g in genders])
    between = centred.T @ centred / free - within * np.mean(1.0 / counts)
    values, directions = np.linalg.eigh(between)
    values = np.where(values > 1e-10 * values[-1], values, 0.0)
    if not values.any():
        raise UserError("x-vectors differ no more between speakers than within: nothing to fit")
    return Population(
        means=of,
        shares={g: genders.count(g) / len(genders) for g in of},
        between=directions * np.sqrt(values),
        within=np.linalg.cholesky(within),
        n_speakers=len(names),
        n_utterances=len(ids),
        rank=int((values > 0).sum()),
    )


@dataclass(frozen=True)
class Recipe:
    """Way of speaking. sampler: None leaves speech original; voices: `two` or `same`, for a system
    of level utt only `two`, and every utterance has its own pseudo-speaker."""

    sampler: Sampler | None
    voices: str
    leak: float
    seed: int


def n_trials(speaker: int) -> int:
    """Number of trial utterances of a speaker by position: 25 or 26, 25.8482 on average.

    >>> sum(n_trials(s) for s in range(10_000))
    258482
    """
    each = round((UTTERANCES - ENROLS) * 10_000)
    return (speaker + 1) * each // 10_000 - speaker * each // 10_000


def make_population(
    population: Population, recipe: Recipe, n_speakers: int, number: int
) -> tuple[Side, Side]:
    """Make both sides of population `number`: every enrolment and every trial utterance.

    Each population has its own draws, equal for all systems and ways of speaking.
    """
    rng = make_rng(recipe.seed, "large", f"speakers {n_speakers}", f"population {number}")
    people = population.speakers(n_speakers, rng)
    where = (str(n_speakers), str(number))
    enrol = _make_side("enrol", [ENROLS] * n_speakers, population, recipe, people, rng, where)
    trials = [n_trials(s) for s in range(n_speakers)]
    return enrol, _make_side("trial", trials, population, recipe, people, rng, where)


def _make_side(
    side: str,
    counts: list[int],
    population: Population,
    recipe: Recipe,
    people: tuple[Float64, list[str]],
    rng: np.random.Generator,
    where: tuple[str, str],
) -> Side:
    """Utterances of one side, some speakers at a time, so that only float32 vectors fill memory."""
    voices, genders = people
    vectors = np.empty((sum(counts), voices.shape[1]), np.float32)
    ends = np.cumsum([0, *counts])
    name = side if recipe.voices == TWO else "both"
    for some in (
        range(s, min(s + _SPEAKERS, len(counts))) for s in range(0, len(counts), _SPEAKERS)
    ):
        first, last = ends[some.start], ends[some.stop]
        residuals = population.residuals(int(last - first), rng)
        each = np.array(counts[some.start : some.stop])
        centres = voices[some.start : some.stop]
        if recipe.sampler is not None:
            own = np.stack([population.means[genders[s]] for s in some])
            mean = np.add.reduceat(residuals, np.cumsum(each) - each) / each[:, None]
            leaked = recipe.leak * (centres - own)
            block = [(s, genders[s], x) for s, x in zip(some, centres + mean, strict=True)]
            centres = _pseudo(recipe, block, each.tolist(), (*where, name))
            residuals += np.repeat(leaked, each, axis=0)
        repeats = each if len(centres) == len(each) else np.ones(len(centres), dtype=np.int64)
        vectors[first:last] = np.repeat(centres, repeats, axis=0) + residuals
    of = np.repeat(np.arange(len(counts)), counts).tolist()
    ids = [f"{side}-{i:07d}" for i in range(len(of))]
    speakers = [f"s{s:06d}" for s in of]
    return Side(ids, speakers, vectors, np.ones(len(of)), [genders[s] for s in of])


def _pseudo(
    recipe: Recipe,
    people: list[tuple[int, str, Float64]],
    counts: list[int],
    where: tuple[str, ...],
) -> Float64:
    """Pseudo-speakers (n, d) of people (position, gender, mean x-vector) with so many utterances on
    the side that `where` ends with, generated as in a system: by key and source. n: of utterances
    if each has its own, else of people."""
    sampler = recipe.sampler
    assert sampler is not None
    level, vectors = sampler.settings.level, []
    for (place, gender, x), count in zip(people, counts, strict=True):
        who = Source(f"simulated {place}", None if gender == ANYBODY else gender, x)
        for utterance in range(count if level == "utt" else 1):
            key = _key(level, where, str(place), str(utterance))
            made = generate_one(sampler.generator, sampler.settings, key, who, recipe.seed, 0)
            vectors.append(made[0])
    return np.stack(vectors).astype(np.float64)


def _key(level: str, where: tuple[str, ...], speaker: str, utterance: str) -> Key:
    """Key as of keys.make_keys, for one utterance of the side that `where` ends with."""
    population, side = ("large", *where[:-1]), ("large", *where)
    group = {"perm": (*population, speaker), "const": population}.get(level, (*side, speaker))
    return Key(level, (*group, utterance) if level == "utt" else group, group)


# ---- Populations of speakers, simulated and real, to compare error rates (Liu et al. 2025, Fig.
# 9).
#
# OUT/populations.tsv has a row for each, OUT/plans/<speakers>.<number> the plan of all its pairs
# (`steps.populations.plans`).

Sources = Sequence[tuple[Path, Path]]  # folder of x-vectors, data directory
NONE = "-"  # for original speech, which has no pseudo-speakers
EACH = "each"  # voices of a system of level utt: another for each utterance


@dataclass(frozen=True)
class Row:
    """Population. voices: see `Recipe`, EACH or NONE; fit_speakers, fit_rank: number of real
    speakers in the fit, and the rank between them; for a real population their number, and NONE."""

    speakers: int
    population: int
    voices: str
    fit_speakers: int
    fit_rank: str

    def plan(self, out: Path) -> Path:
        """Folder of the plan of its pairs."""
        return out / "plans" / f"{self.speakers}.{self.population}"


R = TypeVar("R", bound=Row)


def columns(kind: type[Row]) -> list[str]:
    """Columns of a table: all values of its rows but the system, which names its folder."""
    return [field.name for field in fields(kind) if field.name != "system"]


def write_table(path: Path, rows: Sequence[Row]) -> None:
    """Write rows of one kind, tab-separated under a header; fractions with six digits."""
    names = columns(type(rows[0]))
    cells = [names, *([_cell(getattr(row, name)) for name in names] for row in rows)]
    with atomic_write(path) as stream:
        stream.write("#" + "".join("\t".join(line) + "\n" for line in cells))


def _cell(value: object) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(value)


def read_table(path: Path, kind: type[R]) -> list[R]:
    """Read a file of `write_table`; UserError with file and line."""
    names, rows = columns(kind), []
    kinds = {field.name: field.type for field in fields(kind)}
    for number, line in read_lines(path):
        if number == 1:
            if line != "#" + "\t".join(names):
                raise UserError(f"{path}:1: not a table of local/large.py; make it again")
            continue
        try:
            cells = zip(names, line.split("\t"), strict=True)
            rows.append(kind(**{name: kinds[name](cell) for name, cell in cells}))  # type: ignore[operator]
        except ValueError as error:
            raise UserError(f"{path}:{number}: a value is missing or no number") from error
    if not rows:
        raise UserError(f"{path}: names no population; make it again")
    return rows


@dataclass(frozen=True)
class Simulated:
    """Populations drawn from one that was fitted to real x-vectors."""

    population: Population
    recipe: Recipe

    def rows(self, sizes: Sequence[int], numbers: Sequence[int]) -> list[Row]:
        """Rows of each size, as many populations as `numbers` says."""
        sampler = self.recipe.sampler
        voices = NONE if sampler is None else self.recipe.voices
        if sampler is not None and sampler.settings.level == "utt":
            voices = EACH
        fit = self.population.n_speakers, str(self.population.rank)
        of = zip(sizes, numbers, strict=True)
        return [Row(size, i, voices, *fit) for size, number in of for i in range(number)]

    def sides(self, row: Row) -> tuple[Side, Side]:
        """Enrolment and trials of a population."""
        return make_population(self.population, self.recipe, row.speakers, row.population)


def _read_sources(
    sources: Sources, two_sides: bool = False
) -> Iterator[tuple[DataDir, list[tuple[str, str, Float32]]]]:
    """Read the data directory and the (utterance, speaker, x-vector) of each set. UserError for an
    x-vector without speaker, x-vectors of different sizes, an utterance in two sets (two_sides: the
    first set is enrolled, the others are tried, and may have its utterances)."""
    seen: dict[str, Path] = {}
    size = 0
    for place, (xvectors, data) in enumerate(sources):
        if two_sides and place == 1:
            seen = {}
        loaded, part = load_data_dir(data, need=("utt2spk",)), []
        for utt, vector in read_segments(xvectors).vectors.items():
            if utt not in loaded.utt2spk:
                raise UserError(f"{data}/utt2spk: utterance {utt} of {xvectors} is not in it")
            if utt in seen:
                raise UserError(f"{xvectors}: utterance {utt} is in {seen[utt]}, too")
            size = size or len(vector)
            if len(vector) != size:
                raise UserError(
                    f"{xvectors}: {utt} has {len(vector)} values, those of {sources[0][0]} "
                    f"{size}; take x-vectors of one encoder"
                )
            seen[utt] = xvectors
            part.append((utt, loaded.utt2spk[utt], vector))
        yield loaded, part


def fit_sources(sources: Sources) -> Population:
    """Fit a population to all utterances; genders count where every set has them. UserError as of
    `_read_sources`."""
    vectors: dict[str, Float32] = {}
    utt2spk: dict[str, str] = {}
    genders: dict[str, str] = {}
    known = True
    for loaded, part in _read_sources(sources):
        for utt, spk, vector in part:
            vectors[utt], utt2spk[utt] = vector, spk
        known = known and loaded.spk2gender is not None
        genders |= loaded.spk2gender or {}
    return fit_population(vectors, utt2spk, genders if known else None)


@dataclass(frozen=True)
class Real:
    """Real populations: the first set against all others, and drawn subsets of the speakers who are
    in both. parts: (utterance, speaker, x-vector) of either."""

    parts: tuple[list[tuple[str, str, Float32]], list[tuple[str, str, Float32]]]
    both: list[str]
    seed: int

    def rows(self, sizes: Sequence[int], numbers: Sequence[int]) -> list[Row]:
        """Rows of subsets of each size below the number of speakers, and of all of them."""
        n = len(self.both)
        drawn = {size: number for size, number in zip(sizes, numbers, strict=True) if size < n}
        of = [*sorted(drawn.items()), (n, 1)]
        return [Row(size, i, NONE, n, NONE) for size, number in of for i in range(number)]

    def sides(self, row: Row) -> tuple[Side, Side]:
        """Enrolment and trials of a subset."""
        rng = make_rng(self.seed, "large real", str(row.speakers), str(row.population))
        drawn = {self.both[i] for i in rng.permutation(len(self.both))[: row.speakers]}
        enrol, trial = (self._side(part, drawn) for part in self.parts)
        return enrol, trial

    @staticmethod
    def _side(part: Sequence[tuple[str, str, Float32]], speakers: set[str]) -> Side:
        utts, spks, vectors = zip(*(p for p in part if p[1] in speakers), strict=True)
        return Side(utts, spks, np.stack(vectors), np.ones(len(utts)))


def read_real(sources: Sources, seed: int) -> Real:
    """Read the sources; UserError for fewer than two sets, no speaker in both, and as of
    `_read_sources`."""
    parts: tuple[list[tuple[str, str, Float32]], list[tuple[str, str, Float32]]] = ([], [])
    for place, (_, part) in enumerate(_read_sources(sources, two_sides=True)):
        parts[min(place, 1)].extend(part)
    if len(sources) < 2:
        raise UserError("--real: two sets of --sources are needed, enrolled and tried")
    both = sort_ids({p[1] for p in parts[0]} & {p[1] for p in parts[1]})
    if len(both) < 2:
        raise UserError(f"--real: {len(both)} speakers of {sources[0][1]} are tried; 2 are needed")
    return Real(parts, both, seed)
