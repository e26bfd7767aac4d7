# SPDX-License-Identifier: Apache-2.0
"""Aligned attacker: a rotation that undoes protection, learnt on pairs of x-vectors.

Source: Champion, Thebaud, Le Lan, Larcher and Jouvet, "On the invertibility of a voice privacy
system using embedding alignment", ASRU 2021 (public code: x-vector-procrustes). The attacker has
some speech before and after protection; they need no knowledge of the system. The map is the
orthogonal Procrustes solution between the centred x-vectors of the two sides, in the principal
components of each.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from utils.arrays import Float64
from utils.cli import UserError
from utils.tables import sort_ids

FEWEST_PAIRS = 2
SPACES = ("centred", "original")

logger = logging.getLogger(__name__)
Vectors = Mapping[str, np.ndarray[tuple[int], np.dtype[np.float32]]]
Table = dict[str, np.ndarray[tuple[int], np.dtype[np.float32]]]


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
    groups: Mapping[str, str]
    speakers: Mapping[str, str]


def learn_by_group(
    pairs: Pairs, *, to_original: bool = True, dimensions: int | None = None
) -> dict[str, Rotation]:
    """Rotation for each group of the pairs: from protected x-vectors to original ones, or back."""
    rotations: dict[str, Rotation] = {}
    for group in sort_ids(set(pairs.groups.values())):
        ids = sort_ids(utt for utt, own in pairs.groups.items() if own == group)
        source, target = _stack(pairs.protected, ids), _stack(pairs.original, ids)
        if not to_original:
            source, target = target, source
        try:
            rotations[group] = learn_rotation(source, target, dimensions)
        except UserError as error:
            raise UserError(f"pairs of group {group}: {error}") from error
    return rotations


def _stack(vectors: Vectors, ids: Sequence[str]) -> Float64:
    return np.stack([vectors[key] for key in ids]).astype(np.float64)


@dataclass(frozen=True)
class Attack:
    """Both sides of the attack, ready to be compared; x-vectors by id."""

    enrol: dict[str, Float64]
    trial: dict[str, Float64]


def align(
    rotations: Mapping[str, Rotation],
    enrol: Vectors,
    trial: Vectors,
    groups: Mapping[str, str],
    *,
    to_original: bool = True,
    space: str = "centred",
) -> Attack:
    """Carry protected trials to the originals' space (or the original enrolment to the protected).

    enrol: original x-vectors of speakers; trial: protected ones of utterances; groups: of both, by
    id. space `centred`: both less the mean of the pairs, for the cosine; `original`: as the encoder
    makes them, for a back end trained on such; the other side is unchanged. UserError names an id
    whose group has no rotation.
    """

    def move(vectors: Vectors, *, carried: bool) -> dict[str, Float64]:
        moved: dict[str, Float64] = {}
        for key, vector in vectors.items():
            if groups[key] not in rotations:
                raise UserError(f"{key}: no pair is of its group, {groups[key]}")
            rotation, x = rotations[groups[key]], vector[None].astype(np.float64)
            if space == "original":
                x = rotation.carry(x) + rotation.target_mean if carried else x
            else:
                x = rotation.carry(x) if carried else rotation.centre(x)
            moved[key] = x[0]
        return moved

    return Attack(move(enrol, carried=not to_original), move(trial, carried=to_original))
