# SPDX-License-Identifier: Apache-2.0
"""Simulated population of speakers, as large as wanted, fitted to real x-vectors.

An x-vector is x = m + y + e: m the mean of the speaker's gender, y ~ N(0, B) the speaker, the same
in all their utterances, e ~ N(0, W) new in each. Speakers are independent, so the expected error
rates hardly depend on their number; only their scatter does.

Protected speech has x = p + leak y + e, p the pseudo-speaker's vector, e a residual within speakers
as in original speech. Only `leak`, a number that has to be given, carries what a synthesiser keeps
of the source speaker.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from steps.generators.sampling import Sampler
from steps.generators.speakers import generate_one
from steps.keys import Key
from steps.large.plans import Side
from steps.sources import Source
from steps.speaker.lda import class_statistics
from utils.arrays import Float64
from utils.cli import UserError
from utils.seeds import make_rng

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
