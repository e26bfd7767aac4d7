# SPDX-License-Identifier: Apache-2.0
"""Enrolment and trial x-vectors of simulated speakers, original or with pseudo-speakers.

Original: x = m + y + e (`steps/speaker/population.py`). Protected: x = p + leak y + e, p the
pseudo-speaker's vector, e a residual within speakers as in original speech. What a synthesiser
keeps of the source speaker is only in `leak`, a number that has to be given.
"""

from dataclasses import dataclass

import numpy as np

from steps.generators.sampling import Sampler
from steps.generators.speakers import generate_one
from steps.keys import Key
from steps.sources import Source
from steps.speaker.large import Side
from steps.speaker.population import ANYBODY, Population
from utils.arrays import Float64
from utils.seeds import make_rng

ENROLS, UTTERANCES = 10, 35.8482  # of a speaker on average: 358,482 of 10,000 (004, section V-J)
_SPEAKERS = 256  # made at a time
TWO, SAME = "two", "same"  # pseudo-speakers of a person: one in enrolment, one in trials; or one


@dataclass(frozen=True)
class Recipe:
    """How speakers speak. sampler: None leaves them original; voices: `two` or `same`."""

    sampler: Sampler | None
    voices: str
    leak: float
    seed: int


def n_trials(speaker: int) -> int:
    """Trial utterances of the speaker at a place: 25 or 26, 25.8482 on average.

    >>> sum(n_trials(s) for s in range(10_000))
    258482
    """
    each = round((UTTERANCES - ENROLS) * 10_000)
    return (speaker + 1) * each // 10_000 - speaker * each // 10_000


def make_population(
    population: Population, recipe: Recipe, n_speakers: int, number: int
) -> tuple[Side, Side]:
    """Both sides of population `number`: every enrolment and every trial utterance.

    Each population has draws of its own, the same for all systems and ways.
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
            centres = _pseudo(recipe, centres + mean, genders, some, (*where, name)) + leaked
        vectors[first:last] = np.repeat(centres, each, axis=0) + residuals
    of = np.repeat(np.arange(len(counts)), counts).tolist()
    ids = [f"{side}-{i:07d}" for i in range(len(of))]
    speakers = [f"s{s:06d}" for s in of]
    return Side(ids, speakers, vectors, np.ones(len(of)), [genders[s] for s in of])


def _pseudo(
    recipe: Recipe, sources: Float64, genders: list[str], places: range, where: tuple[str, ...]
) -> Float64:
    """Pseudo-speakers (n, d) of the speakers at some places, asked for as a system asks: by key and
    mean x-vector of the source."""
    sampler = recipe.sampler
    assert sampler is not None
    vectors = []
    for place, source in zip(places, sources, strict=True):
        gender = genders[place]
        names = ("large", *where, str(place))
        key = Key(sampler.settings.level, names, names)
        who = Source(f"simulated {place}", None if gender == ANYBODY else gender, source)
        vectors.append(
            generate_one(sampler.generator, sampler.settings, key, who, recipe.seed, 0)[0]
        )
    return np.stack(vectors).astype(np.float64)
