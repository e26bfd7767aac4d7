# SPDX-License-Identifier: Apache-2.0
"""Pseudo-speakers from a dense or a sparse region of the pool (Srivastava et al. 2020)."""

import math
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from steps.generators.affinity import Affinity, Distance, needs_of
from steps.generators.base import add_note
from steps.generators.pool import AffinityGenerator
from steps.keys import Key
from steps.speaker.backends import Backend, CosineBackend
from utils.arrays import Float64, Int64
from utils.bounds import Count, Number, Part
from utils.cli import UserError
from utils.seeds import derive_seed

Damping = Annotated[float, Number(least=0.5, below=1)]


@dataclass(frozen=True)
class ClusterSettings:
    """clusters: number of the largest (dense) or smallest (sparse) clusters to draw from.

    proportion: of the cluster's members in the average. exclude_closest_cluster: the one whose
    exemplar is most like the source is never used. damping, max_iterations: of the clustering.
    """

    name: str
    distance: Distance = "plda"
    clusters: Count = 10
    proportion: Part = 0.5
    exclude_closest_cluster: bool = True
    damping: Damping = 0.5
    max_iterations: Count = 1000


@dataclass(frozen=True, eq=False)
class Cluster:
    """exemplar: position in the pool of the representative. members: positions, ascending."""

    exemplar: int
    members: Int64


def find_clusters(
    affinities: Float64, damping: float, max_iterations: int, random_state: int
) -> list[Cluster] | None:
    """Affinity propagation (Frey and Dueck 2007) on affinities (S, S); exemplars ascending.

    Preferences are the median affinity, scikit-learn's default. None where it does not converge, or
    where all affinities are equal, so that clusters would be arbitrary.
    """
    from sklearn.cluster import AffinityPropagation

    if len(affinities) == 1:
        return [Cluster(0, np.arange(1))]
    propagation = AffinityPropagation(
        damping=damping,
        max_iter=max_iterations,
        affinity="precomputed",
        random_state=random_state,
    )
    with warnings.catch_warnings(record=True) as caught:  # scikit-learn's only sign of it
        warnings.simplefilter("always")
        propagation.fit(affinities)
    exemplars, labels = propagation.cluster_centers_indices_, propagation.labels_
    if any(issubclass(warning.category, UserWarning) for warning in caught):
        return None
    return [
        Cluster(int(exemplars[label]), np.flatnonzero(labels == label))
        for label in np.argsort(exemplars)
    ]


class ClusteredSpeakers(AffinityGenerator[ClusterSettings]):
    """Mean of half the members of one of the 10 largest (dense) or smallest (sparse) clusters.

    Clusters are those whose exemplar has the target gender; their members may have another. The
    cluster is drawn once a speaker, the members with every key.
    """

    kind = ClusterSettings

    def __init__(
        self, settings: ClusterSettings, backend: Backend, *, seed: int, draw: int
    ) -> None:
        super().__init__(settings, backend, seed=seed, draw=draw)
        self._clusters: list[Cluster] | None = None

    @classmethod
    def needs_for(cls, settings: ClusterSettings) -> tuple[str, ...]:
        """See PoolGenerator."""
        source = ("xvectors",) if settings.exclude_closest_cluster else ()
        return (*source, *needs_of(settings.distance))

    @property
    def is_random(self) -> bool:
        """Whether the settings leave a choice."""
        return self._settings.clusters > 1 or self._settings.proportion < 1

    def fit(self, vectors: Float64, speakers: Sequence[str], genders: Sequence[str | None]) -> None:
        """See base.Generator."""
        super().fit(vectors, speakers, genders)
        self._clusters = None

    @property
    def clusters(self) -> list[Cluster]:
        """All clusters of the pool, found on demand; largest or smallest first.

        Where the PLDA affinities do not converge those of cosine are taken, with a note, for the
        clusters and for the distance to a source. UserError where these fail, too.
        """
        if self._clusters is None:
            found = self._find()
            if found is None and self._settings.distance != "cosine":
                note = f"{self.name}: the clusters of the PLDA affinities do not settle; by cosine"
                add_note(self.notes, note)
                self._affinity = Affinity(CosineBackend(), self.pool)
                found = self._find()
            if found is None:
                raise UserError(
                    f"generator {self.name}: the clusters of the pool's {len(self.pool.speakers)} "
                    "speakers do not settle; give a larger damping (0.9), or more speakers"
                )
            sign = -1 if self.name == "dense" else 1
            self._clusters = sorted(found, key=lambda c: (sign * len(c.members), c.exemplar))
        return self._clusters

    def _find(self) -> list[Cluster] | None:
        settings = self._settings
        seed = derive_seed(self._seed, "affinity propagation") % 2**32  # equal in all draws
        affinities = self._affinity.of_pool()
        return find_clusters(affinities, settings.damping, settings.max_iterations, seed)

    def eligible(
        self, x: Float64 | None, target_gender: str | None, exclude: Collection[str]
    ) -> list[Cluster]:
        """Clusters to draw from, at most `clusters` of them; UserError for none."""
        self.pool.group(target_gender)  # raises for nobody
        of_gender = [
            cluster
            for cluster in self.clusters
            if target_gender in (None, self.pool.genders[cluster.exemplar])
            and len(self.pool.without(cluster.members, exclude))
        ]
        what = "clusters" + ("" if target_gender is None else f" of gender {target_gender}")
        if not of_gender:
            raise UserError(
                f"generator {self.name}: the pool has {len(self.clusters)} clusters, but no {what} "
                "that this source may have; take more speakers"
            )
        if self._settings.exclude_closest_cluster:
            others = self._without_closest(of_gender, x)
            if not others:
                note = "the source's own cluster had to be taken, for the pool has no other"
                add_note(self.notes, f"{self.name}: {note} among its {what}")
            of_gender = others or of_gender
        if len(of_gender) < self._settings.clusters:
            asked = self._settings.clusters
            add_note(self.notes, f"{self.name}: clusters: {asked} asked, but fewer {what} are left")
        return of_gender[: self._settings.clusters]

    def _without_closest(self, clusters: Sequence[Cluster], x: Float64 | None) -> list[Cluster]:
        """All clusters but the one, of either gender, whose exemplar is closest to the source."""
        affinities = self._affinity.of_source(self.pool.check_source(x, f"generator {self.name}"))
        closest = max(self.clusters, key=lambda cluster: affinities[cluster.exemplar])
        return [cluster for cluster in clusters if cluster is not closest]

    def generate(
        self,
        key: Key,
        x: Float64 | None = None,
        gender: str | None = None,  # noqa: ARG002
        target_gender: str | None = None,
        exclude: Collection[str] = (),
    ) -> tuple[Float64, dict[str, object]]:
        """See base.Generator."""
        clusters = self.eligible(x, target_gender, exclude)
        cluster = clusters[int(self.draw(key.group_parts, np.arange(len(clusters)), 1)[0])]
        members = self.pool.without(cluster.members, exclude)
        # ceil, so that one member gives one; rounded first, as 0.7 * 10 is above 7
        n = math.ceil(round(self._settings.proportion * len(members), 9))
        chosen = self.draw(key.parts, members, n)
        return self.mean(chosen), {
            "speakers": self.ids(chosen),
            "averaged": n,
            "cluster": self.pool.speakers[cluster.exemplar],
            "cluster_size": len(cluster.members),
            "clusters": len(clusters),
        }
