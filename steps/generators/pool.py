"""Pseudo-speakers made of real speakers of a pool: means, regions, or one real target."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from steps.generators.base import GENDERS, Generated, Generator, Wanted
from steps.sources import SystemRun
from steps.speaker.backends import Backend, CosineBackend, read_plda
from utils.arrays import Float64, Int64
from utils.cli import UserError
from utils.seeds import derive_seed
from utils.settings import Count, Number, OneOf, Part
from utils.tables import StrPath

Distance = Annotated[str, OneOf("plda", "cosine")]

# ---- Pseudo-speakers as the mean of real speakers of a pool: the farthest, or any.
#
# As in baseline B1 of the VoicePrivacy challenges; `averaged: 1` of any speakers is Liu et al.'s
# RS.


class PoolGenerator(Generator):
    """Common part of generators that choose speakers of the pool."""

    def draw(self, parts: tuple[str, ...], places: Int64, size: int) -> Int64:
        """Draw `size` of the positions without replacement, ascending, by the seed and parts."""
        rng = self.draws.rng(self.name, *parts)
        return np.sort(rng.choice(np.sort(places), size, replace=False))

    def candidates(self, wanted: Wanted, setting: str, asked: int) -> tuple[Int64, int, int]:
        """Positions of the speakers who may be chosen, `limit`, and their number for sources
        elsewhere; UserError for none."""
        group = self.pool.group(wanted.gender)
        left = self.pool.without(group, wanted.exclude)
        if not len(left):
            raise UserError(
                f"generator {self.name}: the pool has no speaker{_of(wanted.gender)} but the "
                "source; take more speakers"
            )
        what = f"speakers{_of(wanted.gender)} in the pool"
        return left, self.limit(setting, asked, len(left), len(group), what), len(group)

    def average(self, places: Int64, **more: object) -> Generated:
        """Unweighted mean (d,) of the raw x-vectors, in float64, and columns."""
        speakers = ",".join(self.pool.speakers[place] for place in places)
        mean: Float64 = self.pool.vectors[places].mean(axis=0)
        return mean, {"speakers": speakers, "averaged": len(places), **more}

    def sizes(self) -> list[int]:
        """Number of speakers to choose from, for each of the target genders."""
        genders = self.pool.genders
        return [len(genders) if g is None else genders.count(g) for g in self.target_genders]

    def limit(self, setting: str, asked: int, there: int, size: int, what: str) -> int:
        """Lesser of `asked` and `there`, with a note. size: `there` for sources elsewhere."""
        if there < asked:
            cause = f"there are {size} {what}"
            if size >= asked:
                cause = f"a source who is also in the pool leaves fewer {what}"
            is_draw = setting == "averaged"
            so = "nothing is drawn" if is_draw else "the distance to the source does not matter"
            self.note(f"{self.name}: {setting}: {asked} asked, but {cause}; all are taken, so {so}")
        return min(asked, there)


def _of(gender: str | None) -> str:
    return "" if gender is None else f" of gender {gender}"


@dataclass(frozen=True)
class RandomSettings:
    """averaged: number of speakers in a pseudo-speaker's mean."""

    name: str
    averaged: Count = 100


class RandomSpeakers(PoolGenerator):
    """Mean of speakers of the target gender, drawn uniformly from the whole pool."""

    kind = RandomSettings
    given: RandomSettings

    @property
    def is_random(self) -> bool:
        """Whether a target gender has more speakers than are averaged."""
        return any(self.given.averaged < size for size in self.sizes())

    def generate(self, wanted: Wanted) -> Generated:
        left, n, _ = self.candidates(wanted, "averaged", self.given.averaged)
        return self.average(self.draw(wanted.key.parts, left, n), candidates=len(left))


class AffinityGenerator(PoolGenerator):
    """Common part of generators that choose by the affinity between a source and the pool's
    speakers, or among these; the higher, the more alike.

    PLDA: the log-likelihood ratio after centring, LDA and length normalisation (VoicePrivacy 2020,
    B1; its distance is minus that). Cosine: of the raw vectors, not centred. Each side counts as
    one utterance, so that the affinity is symmetric.
    """

    def __init__(self, settings: Any, run: SystemRun) -> None:
        super().__init__(settings, run)
        self._backend: Backend = CosineBackend()
        if settings.distance == "plda":
            where = f": generator.distance: {settings.distance}"
            self._backend = read_plda(run.folder("backend", where))

    @classmethod
    def describe(cls, settings: Any, path: StrPath) -> tuple[str, ...]:
        """Needs: the source, and those of the distance."""
        return ("xvectors", *(("backend",) if settings.distance == "plda" else ()))

    def fit(self, vectors: Float64, speakers: Sequence[str], genders: Sequence[str | None]) -> None:
        super().fit(vectors, speakers, genders)
        self._by(self._backend)

    def _by(self, backend: Backend) -> None:
        """Measure by a back end; UserError if it is for x-vectors of another length."""
        self.check_size("distance plda: the back end is for x-vectors of", backend.dim)
        self._measure, self._right = backend, backend.right(self.pool.vectors)

    def of_source(self, wanted: Wanted) -> Float64:
        """Affinities (S,) of the source to the speakers of the pool."""
        return self._right @ self._measure.left(self.source(wanted)[None], np.ones(1))[0]

    def of_pool(self) -> Float64:
        """Affinities (S, S), symmetric to the last bit."""
        vectors = self.pool.vectors
        scores = self._measure.left(vectors, np.ones(len(vectors))) @ self._right.T
        return (scores + scores.T) / 2.0

    def ranked(self, wanted: Wanted, setting: str, asked: int) -> tuple[Float64, Int64, int]:
        """Affinities (S,) to the source; positions of the `asked` lowest, and their number for
        sources elsewhere."""
        left, n, size = self.candidates(wanted, setting, asked)
        affinities = self.of_source(wanted)
        best = left[np.argsort(affinities[left], kind="stable")[:n]]
        return affinities, best, min(asked, size)


def _ends(affinities: Float64) -> dict[str, float]:
    ends = affinities.min(), affinities.max()
    return {f"affinity_{n}": round(float(x), 4) for n, x in zip(("min", "max"), ends, strict=True)}


@dataclass(frozen=True)
class RankedSettings:
    """candidates: number of the farthest; averaged: number drawn of these."""

    name: str
    candidates: Count = 200
    averaged: Count = 100
    distance: Distance = "plda"


class RankedSpeakers(AffinityGenerator):
    """Mean of some of the speakers of the target gender farthest from the source.

    The candidates are fixed by the source's x. Only the draw from them depends on the key, so with
    keys for utterances and x for speakers the candidates stay (VoicePrivacy 2020).
    """

    kind = RankedSettings
    given: RankedSettings

    @property
    def is_random(self) -> bool:
        """Whether a target gender has more candidates than are averaged."""
        given = self.given
        return any(given.averaged < min(given.candidates, size) for size in self.sizes())

    def generate(self, wanted: Wanted) -> Generated:
        affinities, best, size = self.ranked(wanted, "candidates", self.given.candidates)
        n = self.limit("averaged", self.given.averaged, len(best), size, "candidates")
        chosen = self.draw(wanted.key.parts, best, n)
        return self.average(chosen, candidates=len(best), **_ends(affinities[chosen]))


# ---- Mean of the 100 speakers of the pool farthest from the source ("Average" of Liu et al. 2025).
#
# Source: section II-A. Unlike `farthest` there is no random half: with the same x the
# pseudo-speaker is the same for every key and seed. In a pool of a few hundred speakers the cohorts
# of different sources overlap much, and the pseudo-speakers are much alike.


@dataclass(frozen=True)
class AverageSettings:
    """cohort: number of farthest speakers in the average. distance: cosine or plda."""

    name: str
    cohort: Count = 100
    distance: Distance = "cosine"


class AverageSpeakers(AffinityGenerator):
    """Unweighted mean of the cohort's raw x-vectors. Nothing is drawn."""

    kind = AverageSettings
    given: AverageSettings
    is_random = False

    def generate(self, wanted: Wanted) -> Generated:
        affinities, chosen, _ = self.ranked(wanted, "cohort", self.given.cohort)
        return self.average(np.sort(chosen), **_ends(affinities[chosen]))


# ---- Pseudo-speakers from a dense region of the pool (Srivastava et al. 2020).


@dataclass(frozen=True)
class ClusterChoice:
    """clusters: number of the largest clusters to draw from.

    exclude_closest_cluster: the one whose exemplar is most like the source is never used. damping,
    max_iterations: of the clustering.
    """

    name: str
    distance: Distance = "plda"
    clusters: Count = 10
    exclude_closest_cluster: bool = True
    damping: Annotated[float, Number(least=0.5, below=1)] = 0.5
    max_iterations: Count = 1000


@dataclass(frozen=True)
class ClusterSettings(ClusterChoice):
    """proportion: of the cluster's members in the average."""

    proportion: Part = 0.5


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


class ClusteredSpeakers(AffinityGenerator):
    """Mean of half the members of one of the 10 largest clusters.

    Clusters are those whose exemplar has the target gender; their members may have another. The
    cluster is drawn once a speaker, the members with every key.
    """

    kind: Any = ClusterSettings

    @classmethod
    def describe(cls, settings: Any, path: StrPath) -> tuple[str, ...]:
        found = super().describe(settings, path)
        return found if settings.exclude_closest_cluster else found[1:]

    @property
    def is_random(self) -> bool:
        """Whether the settings leave a choice."""
        return bool(self.given.clusters > 1 or self.given.proportion < 1)

    @cached_property
    def clusters(self) -> list[Cluster]:
        """All clusters of the pool, found on demand; largest first.

        Where the PLDA affinities do not converge those of cosine are taken, with a note, for the
        clusters and for the distance to a source. Also UserError where these fail.
        """
        name, found = self.name, self._find()
        if found is None and self.given.distance != "cosine":
            self.note(f"{name}: the clusters of the PLDA affinities do not settle; by cosine")
            self._by(CosineBackend())
            found = self._find()
        if found is None:
            raise UserError(
                f"generator {name}: the clusters of the pool's {len(self.pool.speakers)} "
                "speakers do not settle; give a larger damping (0.9), or more speakers"
            )
        return sorted(found, key=lambda c: (-len(c.members), c.exemplar))

    def _find(self) -> list[Cluster] | None:
        seed = derive_seed(self.draws.seed, "affinity propagation") % 2**32  # equal in all draws
        return find_clusters(self.of_pool(), self.given.damping, self.given.max_iterations, seed)

    def eligible(self, wanted: Wanted) -> list[Cluster]:
        """Clusters to draw from, at most `clusters` of them; UserError for none."""
        name, most = self.name, self.given.clusters
        self.pool.group(wanted.gender)  # raises for nobody
        of_gender = [
            cluster
            for cluster in self.clusters
            if wanted.gender in (None, self.pool.genders[cluster.exemplar])
            and len(self.pool.without(cluster.members, wanted.exclude))
        ]
        what = f"clusters{_of(wanted.gender)}"
        if not of_gender:
            raise UserError(
                f"generator {name}: the pool has {len(self.clusters)} clusters, but no {what} "
                "that this source may have; take more speakers"
            )
        if self.given.exclude_closest_cluster:  # the one, of either gender, closest to the source
            affinities = self.of_source(wanted)
            closest = max(self.clusters, key=lambda cluster: affinities[cluster.exemplar])
            others = [cluster for cluster in of_gender if cluster is not closest]
            if not others:
                note = "the source's own cluster had to be taken, for the pool has no other"
                self.note(f"{name}: {note} among its {what}")
            of_gender = others or of_gender
        if len(of_gender) < most:
            self.note(f"{name}: clusters: {most} asked, but fewer {what} are left")
        return of_gender[:most]

    def drawn(self, wanted: Wanted) -> tuple[Cluster, Int64, int]:
        """The cluster of a speaker, its members but the excluded ones, and the number of all."""
        clusters = self.eligible(wanted)
        place = self.draw(wanted.key.group_parts, np.arange(len(clusters)), 1)[0]
        cluster = clusters[int(place)]
        return cluster, self.pool.without(cluster.members, wanted.exclude), len(clusters)

    def generate(self, wanted: Wanted) -> Generated:
        cluster, members, n_clusters = self.drawn(wanted)
        # ceil, so that one member gives one; rounded first, as 0.7 * 10 is above 7
        n = math.ceil(round(self.given.proportion * len(members), 9))
        return self.average(
            self.draw(wanted.key.parts, members, n),
            cluster=self.pool.speakers[cluster.exemplar],
            cluster_size=len(cluster.members),
            clusters=n_clusters,
        )


# ---- One real speaker as everybody's target: white-box protocol of Champion et al. 2021.


@dataclass(frozen=True)
class TargetSettings:
    """target: number of the target from 1, females first. clusters: targets for each gender."""

    name: str
    target: Count = 1
    clusters: Count = 20

    def __post_init__(self) -> None:
        if self.target > (most := len(GENDERS) * self.clusters):
            raise ValueError(f"target: {self.target}; a number from 1 to {most} is expected")


class ConstantTarget(Generator):
    """Generator of one fixed real speaker; key, source and target gender do not matter.

    Targets come from K-Means of a gender's raw x-vectors, with Euclidean distances: the speakers
    nearest to the centroids.
    """

    kind = TargetSettings
    given: TargetSettings
    is_random = False

    def __init__(self, settings: TargetSettings, run: SystemRun) -> None:
        super().__init__(settings, run)
        self._path = run.path

    def fit(self, vectors: Float64, speakers: Sequence[str], genders: Sequence[str | None]) -> None:
        """Find all targets, females first, each gender's in C order: for each, positions in the
        pool by distance to the centroid, the target first. UserError where the requested one is not
        among them, and for a gender that the pool lacks."""
        from scipy.spatial.distance import cdist
        from sklearn.cluster import KMeans

        super().fit(vectors, speakers, genders)
        self.targets: list[Int64] = []
        for gender in GENDERS:
            asked, places = self.given.clusters, self.pool.group(gender)
            if (there := len(places)) < asked:
                note = f"constant: clusters: {asked} asked, but the pool has {there} speakers"
                self.note(f"{note} of gender {gender}: all are targets")
            seed = derive_seed(self.draws.seed, "k-means", gender) % 2**32
            own = self.pool.vectors[places]
            means = KMeans(min(asked, there), n_init=10, random_state=seed).fit(own)
            order = np.argsort(cdist(means.cluster_centers_, own), axis=1, kind="stable")
            self.targets += sorted(places[order], key=tuple)
        chosen = [int(ranking[0]) for ranking in self.targets]
        if twice := sorted({place for place in chosen if chosen.count(place) > 1}):
            ids = ", ".join(self.pool.speakers[place] for place in twice)
            self.note(f"constant: nearest to two centroids: {ids}")
        target, most = self.given.target, len(self.targets)
        if target > most:
            raise UserError(
                f"{self._path}: generator.target: {target}; a number from 1 to {most}, for so many "
                "targets the pool gives, is expected"
            )

    def generate(self, wanted: Wanted) -> Generated:
        """The target as a source gets the next nearest speaker, with a note."""
        pool, number = self.pool, self.given.target
        ranking = self.targets[number - 1]
        first, left = int(ranking[0]), pool.without(ranking, wanted.exclude)
        gender = pool.genders[first]
        if not len(left):
            raise UserError(
                f"generator constant: the pool has no speaker of gender {gender} but the "
                "source; take more speakers"
            )
        place = int(left[0])
        speaker, own = pool.speakers[place], pool.speakers[first]
        if place != first:
            self.note(f"constant: {own} is target {number}; {speaker} for {own}")
        info = {"speakers": speaker, "target": number, "target_gender": gender}
        return pool.vectors[place].copy(), info
