# SPDX-License-Identifier: Apache-2.0
"""Pseudo-speakers as the mean of real speakers of a pool: the farthest, the nearest, or any.

As in baseline B1 of the VoicePrivacy challenges; `averaged: 1` of any speakers is Liu et al.'s RS.
"""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np

from steps.generators.affinity import Affinity, Distance, load_distance, needs_of
from steps.generators.base import GENDERS, Pool, add_note
from steps.keys import Key
from steps.sources import Run
from steps.speaker.backends import Backend
from utils.arrays import Float64, Int64
from utils.bounds import Count
from utils.cli import UserError
from utils.seeds import make_rng
from utils.settings import Declared
from utils.tables import StrPath

# Meaning of a setting once all candidates are taken.
IF_ALL_ARE_TAKEN = {
    "candidates": "the distance to the source does not matter",
    "cohort": "the distance to the source does not matter",
    "averaged": "nothing is drawn",
}


class GeneratorSettings(Protocol):
    """Dataclass of settings; name: of the generator."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def name(self) -> str:
        """Name in the registry."""
        ...


class DistanceSettings(GeneratorSettings, Protocol):
    """Settings with the distance for the generator's choice: cosine or plda."""

    @property
    def distance(self) -> str:
        """See affinity.DISTANCES."""
        ...


S = TypeVar("S", bound=GeneratorSettings)
D = TypeVar("D", bound=DistanceSettings)


class PoolGenerator(Declared[S]):
    """Common part of generators that choose speakers of the pool; see `base.Generator`.

    target_genders: those that will be used; draws for others do not count in `is_random`. All,
    unless the system says which.
    """

    where = "generator"
    target_genders: Sequence[str | None] = (*GENDERS, None)

    def __init__(self, settings: S, *, seed: int, draw: int) -> None:
        self.name, self.needs = settings.name, self.needs_for(settings)
        self.notes: list[str] = []
        self._settings = settings
        self._seed, self._draw = seed, draw
        self._pool: Pool | None = None

    @classmethod
    def make(cls, settings: S, run: Run) -> Self:
        """See sources.Kind."""
        return cls(settings, seed=run.seed, draw=run.draw)

    @classmethod
    def needs_for(cls, settings: S) -> tuple[str, ...]:  # noqa: ARG003
        """Needs of `sources.NEEDS` beside the pool; none, unless a subclass has some."""
        return ()

    @classmethod
    def describe(cls, settings: S, path: StrPath) -> tuple[str, ...]:  # noqa: ARG003
        """See sources.Kind."""
        return cls.needs_for(settings)

    def settings(self) -> dict[str, object]:
        """See base.Generator."""
        return asdict(self._settings)

    @property
    def pool(self) -> Pool:
        """Pool given to `fit`."""
        if self._pool is None:
            raise RuntimeError(f"generator {self.name}: fit comes first")
        return self._pool

    def fit(self, vectors: Float64, speakers: Sequence[str], genders: Sequence[str | None]) -> None:
        """See base.Generator."""
        self._pool = Pool.make(vectors, speakers, genders)

    def draw(self, parts: tuple[str, ...], places: Int64, size: int) -> Int64:
        """Draw `size` of the positions without replacement, ascending, by the seed and parts."""
        rng = make_rng(self._seed, self.name, f"draw {self._draw}", *parts)
        return np.sort(rng.choice(np.sort(places), size, replace=False))

    def candidates(self, target_gender: str | None, exclude: Collection[str]) -> Int64:
        """Positions of the speakers who may be chosen; UserError for none."""
        left = self.pool.without(self.pool.group(target_gender), exclude)
        if not len(left):
            raise UserError(
                f"generator {self.name}: the pool has no speaker{_of(target_gender)} but the "
                "source; take more speakers"
            )
        return left

    def mean(self, places: Int64) -> Float64:
        """Unweighted mean (d,) of the raw x-vectors, in float64."""
        mean: Float64 = self.pool.vectors[places].mean(axis=0)
        return mean

    def ids(self, places: Int64) -> str:
        """Speakers' ids, separated by commas."""
        return ",".join(self.pool.speakers[place] for place in places)

    def sizes(self) -> list[int]:
        """Number of speakers to choose from, for each of the target genders."""
        genders = self.pool.genders
        return [len(genders) if g is None else genders.count(g) for g in self.target_genders]

    def limit(self, setting: str, asked: int, there: int, size: int, what: str) -> int:
        """Lesser of `asked` and `there`, with a note. size: `there` for sources elsewhere."""
        if there < asked:
            cause = f"there are {size} {what}"
            if size >= asked:
                cause = f"a source who is in the pool, too, leaves fewer {what}"
            add_note(
                self.notes,
                f"{self.name}: {setting}: {asked} asked, but {cause}; all are taken, "
                f"so {IF_ALL_ARE_TAKEN[setting]}",
            )
        return min(asked, there)


def _of(gender: str | None) -> str:
    return "" if gender is None else f" of gender {gender}"


class AffinityGenerator(PoolGenerator[D]):
    """Common part of generators that choose by the distance to the source."""

    def __init__(self, settings: D, backend: Backend, *, seed: int, draw: int) -> None:
        super().__init__(settings, seed=seed, draw=draw)
        self._backend = backend

    @classmethod
    def make(cls, settings: D, run: Run) -> Self:
        """See sources.Kind."""
        backend = load_distance(settings.distance, run)
        return cls(settings, backend, seed=run.seed, draw=run.draw)

    @classmethod
    def needs_for(cls, settings: D) -> tuple[str, ...]:
        """Needs: the source, and those of the distance."""
        return ("xvectors", *needs_of(settings.distance))

    def fit(self, vectors: Float64, speakers: Sequence[str], genders: Sequence[str | None]) -> None:
        """See base.Generator."""
        super().fit(vectors, speakers, genders)
        self._affinity = Affinity(self._backend, self.pool)


@dataclass(frozen=True)
class RandomSettings:
    """averaged: number of speakers in a pseudo-speaker's mean."""

    name: str
    averaged: Count = 100


class RandomSpeakers(PoolGenerator[RandomSettings]):
    """Mean of speakers of the target gender, drawn uniformly from the whole pool."""

    kind = RandomSettings

    @property
    def is_random(self) -> bool:
        """Whether a target gender has more speakers than are averaged."""
        return self._pool is None or any(self._settings.averaged < size for size in self.sizes())

    def generate(
        self,
        key: Key,
        x: Float64 | None = None,  # noqa: ARG002
        gender: str | None = None,  # noqa: ARG002
        target_gender: str | None = None,
        exclude: Collection[str] = (),
    ) -> tuple[Float64, dict[str, object]]:
        """See base.Generator."""
        candidates = self.candidates(target_gender, exclude)
        size = len(self.pool.group(target_gender))
        what = f"speakers{_of(target_gender)} in the pool"
        n = self.limit("averaged", self._settings.averaged, len(candidates), size, what)
        chosen = self.draw(key.parts, candidates, n)
        info = {"speakers": self.ids(chosen), "averaged": n, "candidates": len(candidates)}
        return self.mean(chosen), info


@dataclass(frozen=True)
class RankedSettings:
    """candidates: number of the farthest (nearest); averaged: number drawn of these."""

    name: str
    candidates: Count = 200
    averaged: Count = 100
    distance: Distance = "plda"


class RankedSpeakers(AffinityGenerator[RankedSettings]):
    """Mean of some of the speakers of the target gender farthest from the source, or nearest.

    The candidates are fixed by the source's x. Only the draw from them depends on the key, so with
    keys for utterances and x for speakers the candidates stay (VoicePrivacy 2020).
    """

    kind = RankedSettings

    @property
    def is_random(self) -> bool:
        """Whether a target gender has more candidates than are averaged."""
        settings = self._settings
        sizes = [settings.candidates] if self._pool is None else self.sizes()
        return any(settings.averaged < min(settings.candidates, size) for size in sizes)

    def generate(
        self,
        key: Key,
        x: Float64 | None = None,
        gender: str | None = None,  # noqa: ARG002
        target_gender: str | None = None,
        exclude: Collection[str] = (),
    ) -> tuple[Float64, dict[str, object]]:
        """See base.Generator."""
        left = self.candidates(target_gender, exclude)
        x = self.pool.check_source(x, f"generator {self.name}")
        affinities = self._affinity.of_source(x)
        size = len(self.pool.group(target_gender))
        what = f"speakers{_of(target_gender)} in the pool"
        asked = self._settings.candidates
        n_candidates = self.limit("candidates", asked, len(left), size, what)
        ascending = affinities[left] if self.name == "farthest" else -affinities[left]
        candidates = left[np.argsort(ascending, kind="stable")[:n_candidates]]
        size = min(asked, size)
        n = self.limit("averaged", self._settings.averaged, n_candidates, size, "candidates")
        chosen = self.draw(key.parts, candidates, n)
        return self.mean(chosen), {
            "speakers": self.ids(chosen),
            "averaged": n,
            "candidates": n_candidates,
            "affinity_min": round(float(affinities[chosen].min()), 4),
            "affinity_max": round(float(affinities[chosen].max()), 4),
        }
