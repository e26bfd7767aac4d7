# SPDX-License-Identifier: Apache-2.0
"""Identity indices: the random vector of an index, and the index of a key (Liu et al. 2025, IV).

Training speakers have the indices 0 ... S - 1. Keys get indices from S on, each by a hash of the
key, so that the index of a key depends neither on order nor on machine.
"""

import json
from collections.abc import Sequence

import numpy as np

from utils.arrays import Float32, Int64
from utils.seeds import derive_seed

DISTRIBUTIONS = ("gaussian", "uniform")
END = 2**63  # indices are below; PCG64 takes more, Kaldi-style tables and int64 do not


def identity_vectors(indices: Int64, dimension: int, distribution: str) -> Float32:
    """Random vectors (n, D) of indices (n,), each of mean 0 and variance 1 over its dimensions.

    The D values come from PCG64 seeded with the index: N(0, 1), or U(-1, 1) (Liu et al. 2025,
    IV.A.1; the normalisation: VI.A, without its scope; here by vector).
    """
    vectors = np.empty((len(indices), dimension))
    for row, index in zip(vectors, indices, strict=True):
        rng = np.random.Generator(np.random.PCG64(int(index)))
        if distribution == "gaussian":
            rng.standard_normal(out=row)
        else:
            row[:] = rng.uniform(-1.0, 1.0, dimension)
    vectors -= vectors.mean(axis=1, keepdims=True)
    vectors /= np.sqrt(np.mean(vectors * vectors, axis=1, keepdims=True))
    return vectors.astype(np.float32)


def hashed_index(name: str, first: int) -> int:
    """Index of a name, from `first` up to 2^63.

    n names share none with a probability of at least 1 - n^2 / 2^64 (and a little more, as `first`
    is small): for two million names, all but 2.2e-7.
    """
    hashed = derive_seed(0, "identity index", name, "attempt 0")
    return first + hashed % (END - first)


def key_name(seed: int, draw: int, parts: Sequence[str]) -> str:
    """Name of a key with an index, in a run with a seed and a draw. One line, without tabs."""
    return json.dumps([seed, draw, *parts])
