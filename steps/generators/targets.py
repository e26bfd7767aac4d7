# SPDX-License-Identifier: Apache-2.0
"""One real speaker as everybody's target: white-box protocol of Champion et al. 2021."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Self

import numpy as np

from steps.generators.base import GENDERS, Pool, add_note
from steps.keys import Key
from steps.sources import Run
from utils.arrays import Float64, Int64
from utils.bounds import Count
from utils.cli import UserError
from utils.seeds import derive_seed
from utils.settings import Declared
from utils.tables import StrPath


@dataclass(frozen=True)
class TargetSettings:
    """target: number of the target from 1, females first. clusters: targets for each gender."""

    name: str
    target: Count = 1
    clusters: Count = 20

    def __post_init__(self) -> None:
        if self.target > (most := len(GENDERS) * self.clusters):
            raise ValueError(f"target: {self.target}; a number from 1 to {most} is expected")


@dataclass(frozen=True)
class Target:
    """Target speaker. ranking: positions in the pool by distance to the centroid, nearest first.

    gender: f or m.
    """

    gender: str
    ranking: Int64


def find_targets(pool: Pool, gender: str, clusters: int, random_state: int) -> list[Target]:
    """Targets from K-Means of a gender's raw x-vectors: the real speakers nearest to the centroids.

    Distances are Euclidean. The targets stand in C order of the speakers. UserError for a gender
    that the pool lacks.
    """
    from scipy.spatial.distance import cdist
    from sklearn.cluster import KMeans

    places = pool.group(gender)
    vectors = pool.vectors[places]
    means = KMeans(clusters, n_init=10, random_state=random_state).fit(vectors)
    order = np.argsort(cdist(means.cluster_centers_, vectors), axis=1, kind="stable")
    rankings = places[order]
    return [Target(gender, ranking) for ranking in sorted(rankings, key=tuple)]


class ConstantTarget(Declared[TargetSettings]):
    """Generator of one fixed real speaker; key, source and target gender do not matter."""

    kind, where = TargetSettings, "generator"
    name = "constant"
    needs: tuple[str, ...] = ()
    is_random = False

    def __init__(self, settings: TargetSettings, path: StrPath, *, seed: int) -> None:
        self._settings, self._path, self._seed = settings, path, seed
        self.notes: list[str] = []
        self.targets: list[Target] = []
        self._pool: Pool | None = None

    @classmethod
    def make(cls, settings: TargetSettings, run: Run) -> Self:
        """See sources.Kind."""
        return cls(settings, run.path, seed=run.seed)

    @classmethod
    def describe(cls, settings: TargetSettings, path: StrPath) -> tuple[str, ...]:  # noqa: ARG003
        """See sources.Kind."""
        return ()

    def settings(self) -> dict[str, object]:
        """See base.Generator."""
        return asdict(self._settings)

    def fit(self, vectors: Float64, speakers: Sequence[str], genders: Sequence[str | None]) -> None:
        """Find all targets, females first. UserError where the requested one is not among them."""
        pool = self._pool = Pool.make(vectors, speakers, genders)
        self.targets = []
        for gender in GENDERS:
            asked, there = self._settings.clusters, len(pool.group(gender))
            if there < asked:
                note = f"constant: clusters: {asked} asked, but the pool has {there} speakers"
                add_note(self.notes, f"{note} of gender {gender}: all are targets")
            seed = derive_seed(self._seed, "k-means", gender) % 2**32
            self.targets += find_targets(pool, gender, min(asked, there), seed)
        chosen = [int(target.ranking[0]) for target in self.targets]
        if twice := sorted({place for place in chosen if chosen.count(place) > 1}):
            ids = ", ".join(pool.speakers[place] for place in twice)
            add_note(self.notes, f"constant: nearest to two centroids: {ids}")
        target, most = self._settings.target, len(self.targets)
        if target > most:
            raise UserError(
                f"{self._path}: generator.target: {target}; a number from 1 to {most}, for so many "
                "targets the pool gives, is expected"
            )

    def generate(
        self,
        key: Key,  # noqa: ARG002
        x: Float64 | None = None,  # noqa: ARG002
        gender: str | None = None,  # noqa: ARG002
        target_gender: str | None = None,  # noqa: ARG002
        exclude: Collection[str] = (),
    ) -> tuple[Float64, dict[str, object]]:
        """See base.Generator. The target as a source gets the next nearest speaker, with a note."""
        if self._pool is None:
            raise RuntimeError("generator constant: fit comes first")
        number = self._settings.target
        target = self.targets[number - 1]
        left = self._pool.without(target.ranking, exclude)
        if not len(left):
            raise UserError(
                f"generator constant: the pool has no speaker of gender {target.gender} but the "
                "source; take more speakers"
            )
        place = int(left[0])
        speaker = self._pool.speakers[place]
        if place != target.ranking[0]:
            own = self._pool.speakers[int(target.ranking[0])]
            add_note(self.notes, f"constant: {own} is target {number}; {speaker} for {own}")
        info = {"speakers": speaker, "target": number, "target_gender": target.gender}
        return self._pool.vectors[place].copy(), info
