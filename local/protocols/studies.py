"""Protocols of other studies: segments and trials of NIST's, and the aligned attacker."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from utils.arrays import Bool, Float64
from utils.cli import UserError
from utils.tables import invert, sort_ids
from utils.trials import Ids, Trials

# ---- Segments of sessions with a given amount of speech, as in the NIST study.


@dataclass(frozen=True)
class NominalSegment:
    """Frames start ... stop of a session; nominal: least seconds of speech in it."""

    start: int
    stop: int
    nominal: int


def deal(
    speech: Bool, frame: float, nominal: Sequence[int], begin: int = 0
) -> list[NominalSegment]:
    """Cut non-overlapping segments from frame `begin` on, of each nominal duration in turn.

    speech: (T,) frames that hold speech; frame: seconds of one. A segment ends with the frame that
    completes its speech. The rest goes to the first duration, in turn, that fits.
    """
    found, place, turn, tried = [], begin, 0, 0
    total = np.concatenate(([0], np.cumsum(speech)))
    while tried < len(nominal):
        wanted = nominal[turn % len(nominal)]
        goal = total[min(place, len(speech))] + int(np.ceil(wanted / frame - 1e-9))
        stop = int(np.searchsorted(total, goal))
        turn += 1
        if stop > len(speech):
            tried += 1
            continue
        found.append(NominalSegment(place, stop, wanted))
        place, tried = stop, 0
    return found


def enough_sessions(spk_of: Mapping[str, str], least: int) -> tuple[list[str], list[str]]:
    """Sessions of speakers with so many or more, and speakers with fewer. spk_of: by session."""
    speakers = list(spk_of.values())
    few = {who for who in speakers if speakers.count(who) < least}
    return [name for name in sort_ids(spk_of) if spk_of[name] not in few], sort_ids(few)


# ---- Trial sets of the NIST study of identity leakage (Seo et al. 2025, 3.1.1, Table 4).
#
# Segments are compared with segments, within a gender unless asked otherwise, never one with
# itself.
#
#     trial1  original against protected: does protection hide who speaks?     wanted: EER 50 %
#     trial2  protected against protected, one profile: is the voice kept?     wanted: EER 0 %
#     cross   one speaker; target: profile 1 twice, nontarget: profile 1 and 2 wanted: EER 0 %
#
# trial1 and the nontargets of cross hold every ordered pair, since its two sides differ; trial2 and
# the targets of cross hold a pair once. So cross has two nontargets for each target, as in the
# paper.

PROFILES = ("p1", "p2")


def make_segment_lists(
    utt2spk: Mapping[str, str],
    genders: Mapping[str, str] | None = None,
    sessions: Mapping[str, str] | None = None,
    durations: Mapping[str, str] | None = None,
) -> dict[str, Trials]:
    """Make the trial sets trial1, trial2 and cross of all segments in utt2spk.

    genders: by speaker; only speakers of one gender are compared; None: all. sessions: by segment;
    segments of one session are not compared. durations: by segment, nominal; only equals are
    compared. UserError for a segment or speaker that a table lacks, and for a set without targets
    or without nontargets.
    """
    ids = sort_ids(utt2spk)
    who = [utt2spk[utt] for utt in ids]
    same, wanted = _equal(who), ~np.eye(len(ids), dtype=np.bool_)
    for what, table, keys, alike in (
        ("gender", genders, who, True),
        ("session", sessions, ids, False),
        ("nominal duration", durations, ids, True),
    ):
        if missing := [key for key in keys if table is not None and key not in table]:
            raise UserError(f"{missing[0]}: has no {what}; give it one, or leave the table out")
        if table is not None:
            wanted &= _equal([table[key] for key in keys]) == alike
    once = np.triu(wanted)
    first, second = ([f"{utt}-{profile}" for utt in ids] for profile in PROFILES)
    within = _trials(once & same, first, first, same)
    between = _trials(wanted & same, first, second, ~same)
    cross = Trials(
        Ids.of([*within.enrol, *between.enrol]),
        Ids.of([*within.trial, *between.trial]),
        np.concatenate((within.target, between.target)),
    )
    lists = {
        "trial1": _trials(wanted, ids, ids, same),
        "trial2": _trials(once, ids, ids, same),
        "cross": cross,
    }
    for name, trials in lists.items():
        if not trials.target.any() or trials.target.all():
            kind = "nontarget" if trials.target.any() else "target"
            raise UserError(
                f"{name}: no {kind} trial can be made of {len(ids)} segments of {len(set(who))} "
                "speakers; several segments of several speakers of one gender are needed"
            )
    return lists


def _equal(names: list[str]) -> Bool:
    codes = Ids.of(names).codes
    return np.asarray(codes[:, None] == codes, np.bool_)


def _trials(wanted: Bool, rows: list[str], columns: list[str], target: Bool) -> Trials:
    i, j = np.nonzero(wanted)
    return Trials(Ids(i, rows), Ids(j, columns), target[i, j])


# ---- Aligned attacker: a rotation that undoes protection, learnt on pairs of x-vectors.
#
# Source: Champion, Thebaud, Le Lan, Larcher and Jouvet, "On the invertibility of a voice privacy
# system using embedding alignment", ASRU 2021 (public code: x-vector-procrustes). The attacker has
# some speech before and after protection; they need no knowledge of the system. The map is the
# orthogonal Procrustes solution between the centred x-vectors of the two sides, in the principal
# components of each.

FEWEST_PAIRS = 2
SPACES = ("centred", "original")

logger = logging.getLogger(__name__)
Vectors = dict[str, np.ndarray[tuple[int], np.dtype[np.float32]]]


@dataclass(frozen=True, eq=False)
class Rotation:
    """Orthogonal map between two spaces of D dimensions, in k principal components of each.

    source_mean, target_mean: (D,); source_basis, target_basis: (D, k) orthonormal columns; matrix:
    (k, k) orthogonal; n_pairs: number of training pairs.
    """

    source_mean: Float64
    target_mean: Float64
    source_basis: Float64
    target_basis: Float64
    matrix: Float64
    n_pairs: int

    @property
    def dimensions(self) -> int:
        """Number k of components."""
        return len(self.matrix)

    def carry(self, x: Float64) -> Float64:
        """Map x-vectors (n, D) of the source's space to the target's, less the target's mean."""
        components = (x - self.source_mean) @ self.source_basis
        return np.asarray(components @ self.matrix @ self.target_basis.T, np.float64)

    def centre(self, x: Float64) -> Float64:
        """Project x-vectors (n, D) of the target's space to its components, less its mean."""
        return np.asarray(
            (x - self.target_mean) @ self.target_basis @ self.target_basis.T, np.float64
        )


def learn_rotation(source: Float64, target: Float64, dimensions: int | None = None) -> Rotation:
    """Map of `source` onto `target`, rows paired, (n, D) each, with the least squared error.

    Both are centred. n pairs span n - 1 dimensions at most, and beyond the span of both sides a
    rotation is arbitrary: so no more principal components are kept, with a warning. dimensions:
    components to keep; None: all. UserError for fewer than two pairs or a side without any
    variation.
    """
    n, size = source.shape
    if n < FEWEST_PAIRS:
        raise UserError(f"{n} pair(s) of x-vectors; a rotation needs {FEWEST_PAIRS} at least")
    means = source.mean(axis=0), target.mean(axis=0)
    bases = _components(source - means[0]), _components(target - means[1])
    rank = min(basis.shape[1] for basis in bases)
    if rank == 0:
        raise UserError("all x-vectors of one side of the pairs are equal: there is nothing to map")
    wanted = size if dimensions is None else dimensions
    if wanted > rank:
        logger.warning(
            "%d pairs span %d of %d dimensions: the rotation is learnt in %d principal components",
            *(n, rank, size, rank),
        )
    k = min(wanted, rank)
    left, right = bases[0][:, :k], bases[1][:, :k]
    u, _, vt = np.linalg.svd(((source - means[0]) @ left).T @ ((target - means[1]) @ right))
    return Rotation(*means, left, right, np.asarray(u @ vt, np.float64), n)


def _components(centred: Float64) -> Float64:
    """Principal components as columns, the strongest first, (D, rank)."""
    _, size, directions = np.linalg.svd(centred, full_matrices=False)
    tolerance = max(centred.shape) * np.finfo(np.float32).eps * (size[0] if len(size) else 0.0)
    return np.asarray(directions[size > tolerance].T, np.float64)


@dataclass(frozen=True, eq=False)
class Pairs:
    """X-vectors of the same utterances before and after protection, by utterance; groups: the group
    of each (its speaker's gender, or one for all); speakers: of each."""

    original: Vectors
    protected: Vectors
    groups: dict[str, str]
    speakers: dict[str, str]


def learn_by_group(pairs: Pairs, *, dimensions: int | None = None) -> dict[str, Rotation]:
    """Rotation of each group of the pairs, from protected x-vectors to original ones."""
    rotations: dict[str, Rotation] = {}
    for group, ids in invert(pairs.groups).items():
        source, target = _stack(pairs.protected, ids), _stack(pairs.original, ids)
        try:
            rotations[group] = learn_rotation(source, target, dimensions)
        except UserError as error:
            raise UserError(f"pairs of group {group}: {error}") from error
    return rotations


def _stack(vectors: Vectors, ids: Sequence[str]) -> Float64:
    return np.stack([vectors[key] for key in ids]).astype(np.float64)


def align(
    rotations: Mapping[str, Rotation],
    enrol: Vectors,
    trial: Vectors,
    groups: Mapping[str, str],
    *,
    space: str = "centred",
) -> tuple[dict[str, Float64], dict[str, Float64]]:
    """Carry protected trials to the originals' space; returns the enrolment and the trials, ready
    to be compared.

    enrol: original x-vectors of speakers; trial: protected ones of utterances; groups: of both, by
    id. space `centred`: both less the mean of the pairs, for the cosine; `original`: as the encoder
    makes them, for a back end trained on such; the enrolment is unchanged. UserError names an id
    whose group has no rotation.
    """
    whole = space == "original"

    def move(key: str, x: Float64, carried: bool) -> Float64:
        if groups[key] not in rotations:
            raise UserError(f"{key}: no pair is of its group, {groups[key]}")
        rotation = rotations[groups[key]]
        if carried:
            return rotation.carry(x) + rotation.target_mean if whole else rotation.carry(x)
        return x if whole else rotation.centre(x)

    before, after = (
        {key: move(key, x[None].astype(np.float64), carried)[0] for key, x in vectors.items()}
        for vectors, carried in ((enrol, False), (trial, True))
    )
    return before, after
