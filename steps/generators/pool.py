"""Pseudo-speakers made of real speakers of a pool: means, regions, or one real target."""

import math
import warnings
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Protocol, Self, TypeVar

import numpy as np

from steps.generators.base import GENDERS, Pool, add_note
from steps.sources import Key, Run
from steps.speaker.backends import Backend, CosineBackend, load_backend
from utils.arrays import Float64, Int64
from utils.cli import UserError
from utils.seeds import derive_seed, make_rng
from utils.settings import Count, Declared, Number, OneOf, Part
from utils.tables import StrPath

# ---- Affinity of a source to the speakers of the pool, and of the pool's speakers to each other.
#
# PLDA: the log-likelihood ratio after centring, LDA and length normalisation (VoicePrivacy 2020,
# B1; its distance is minus that). Cosine: of the raw vectors, not centred. Each side counts as one
# utterance, so that the affinity is symmetric.

Distance = Annotated[str, OneOf("plda", "cosine")]


class Affinity:
    """Affinities to a pool; the higher, the more alike."""

    def __init__(self, backend: Backend, pool: Pool) -> None:
        """Raise a UserError if the back end is for x-vectors of another length."""
        dim = pool.vectors.shape[1]
        if backend.dim not in (None, dim):
            raise UserError(
                f"generator: distance plda: the back end is for x-vectors of {backend.dim} values "
                f"and the pool's have {dim}; train it with the encoder of the pool"
            )
        self._backend, self._pool = backend, pool

    @cached_property
    def _right(self) -> Float64:
        return self._backend.right(self._pool.vectors)

    def of_source(self, x: Float64) -> Float64:
        """Affinities (S,) of the source's x (d,) to the speakers of the pool."""
        affinities: Float64 = self._right @ self._backend.left(x[None], np.ones(1))[0]
        return affinities

    def of_pool(self) -> Float64:
        """Affinities (S, S), symmetric to the last bit."""
        vectors = self._pool.vectors
        scores = self._backend.left(vectors, np.ones(len(vectors))) @ self._right.T
        symmetric: Float64 = (scores + scores.T) / 2.0
        return symmetric


def load_distance(distance: str, run: Run) -> Backend:
    """Back end of `distance`; UserError without its folder."""
    if distance == "cosine":
        return CosineBackend()
    return load_backend(str(run.folder("backend", f": generator.distance: {distance}")))


def needs_of(distance: str) -> tuple[str, ...]:
    """Folders (`sources.NEEDS`) that a distance needs."""
    return ("backend",) if distance == "plda" else ()


# ---- Pseudo-speakers as the mean of real speakers of a pool: the farthest, the nearest, or any.
#
# As in baseline B1 of the VoicePrivacy challenges; `averaged: 1` of any speakers is Liu et al.'s
# RS.

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
        """The name of one of `DISTANCES`."""


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
        return cls(settings, seed=run.seed, draw=run.draw)

    @classmethod
    def needs_for(cls, settings: S) -> tuple[str, ...]:  # noqa: ARG003
        """Needs of `sources.NEEDS` beside the pool; none, unless a subclass has some."""
        return ()

    @classmethod
    def describe(cls, settings: S, path: StrPath) -> tuple[str, ...]:  # noqa: ARG003
        return cls.needs_for(settings)

    def settings(self) -> dict[str, object]:
        return asdict(self._settings)

    @property
    def pool(self) -> Pool:
        """Pool given to `fit`."""
        if self._pool is None:
            raise RuntimeError(f"generator {self.name}: fit comes first")
        return self._pool

    def fit(self, vectors: Float64, speakers: Sequence[str], genders: Sequence[str | None]) -> None:
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
        backend = load_distance(settings.distance, run)
        return cls(settings, backend, seed=run.seed, draw=run.draw)

    @classmethod
    def needs_for(cls, settings: D) -> tuple[str, ...]:
        """Needs: the source, and those of the distance."""
        return ("xvectors", *needs_of(settings.distance))

    def fit(self, vectors: Float64, speakers: Sequence[str], genders: Sequence[str | None]) -> None:
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


class AverageSpeakers(AffinityGenerator[AverageSettings]):
    """Unweighted mean of the cohort's raw x-vectors; see the module and `base.Generator`."""

    kind = AverageSettings

    @property
    def is_random(self) -> bool:
        """False: nothing is drawn."""
        return False

    def generate(
        self,
        key: Key,  # noqa: ARG002
        x: Float64 | None = None,
        gender: str | None = None,  # noqa: ARG002
        target_gender: str | None = None,
        exclude: Collection[str] = (),
    ) -> tuple[Float64, dict[str, object]]:
        left = self.candidates(target_gender, exclude)
        affinities = self._affinity.of_source(self.pool.check_source(x, f"generator {self.name}"))
        of = "" if target_gender is None else f" of gender {target_gender}"
        size = len(self.pool.group(target_gender))
        n = self.limit(
            "cohort", self._settings.cohort, len(left), size, f"speakers{of} in the pool"
        )
        chosen = np.sort(left[np.argsort(affinities[left], kind="stable")[:n]])
        return self.mean(chosen), {
            "speakers": self.ids(chosen),
            "averaged": n,
            "affinity_min": round(float(affinities[chosen].min()), 4),
            "affinity_max": round(float(affinities[chosen].max()), 4),
        }


# ---- Pseudo-speakers from a dense or a sparse region of the pool (Srivastava et al. 2020).

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
        source = ("xvectors",) if settings.exclude_closest_cluster else ()
        return (*source, *needs_of(settings.distance))

    @property
    def is_random(self) -> bool:
        """Whether the settings leave a choice."""
        return self._settings.clusters > 1 or self._settings.proportion < 1

    def fit(self, vectors: Float64, speakers: Sequence[str], genders: Sequence[str | None]) -> None:
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
        return cls(settings, run.path, seed=run.seed)

    @classmethod
    def describe(cls, settings: TargetSettings, path: StrPath) -> tuple[str, ...]:  # noqa: ARG003
        return ()

    def settings(self) -> dict[str, object]:
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
        """The target as a source gets the next nearest speaker, with a note."""
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
