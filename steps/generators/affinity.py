# SPDX-License-Identifier: Apache-2.0
"""Affinity of a source to the speakers of the pool, and of the pool's speakers to each other.

PLDA: the log-likelihood ratio after centring, LDA and length normalisation (VoicePrivacy 2020, B1;
its distance is minus that). Cosine: of the raw vectors, not centred. Each side counts as one
utterance, so that the affinity is symmetric.
"""

from functools import cached_property
from typing import Annotated

import numpy as np

from steps.generators.base import Pool
from steps.sources import Run
from steps.speaker.backends import Backend, CosineBackend, load_backend
from utils.arrays import Float64
from utils.bounds import OneOf
from utils.cli import UserError

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
