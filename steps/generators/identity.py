"""Identity indices and their vectors, and how many identities a generator can tell apart."""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from utils.arrays import Float32, Int64
from utils.cli import UserError
from utils.seeds import Draws, derive_seed

# ---- Identity indices: the random vector of an index, and the index of a key (Liu et al. 2025,
# IV).
#
# Training speakers have the indices 0 ... S - 1. Keys get indices from S on, each by a hash of the
# key, so that the index of a key depends neither on order nor on machine.

END = 2**63  # indices are below; PCG64 takes more, Kaldi-style tables and int64 do not


def identity_vectors(indices: Int64, dimension: int) -> Float32:
    """Random vectors (n, D) of indices (n,), each of mean 0 and variance 1 over its dimensions.

    The D values come from PCG64 seeded with the index: N(0, 1) (Liu et al. 2025, IV.A.1; the
    normalisation: VI.A, without its scope; here by vector).
    """
    vectors = np.empty((len(indices), dimension))
    for row, index in zip(vectors, indices, strict=True):
        np.random.Generator(np.random.PCG64(int(index))).standard_normal(out=row)
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


def key_name(draws: Draws, parts: Sequence[str]) -> str:
    """Name of a key with an index, in a run. One line, without tabs."""
    return json.dumps([draws.seed, draws.draw, *parts])


# ---- Similarity of a generator's vectors, and its growth with their number (Liu et al. 2025, Fig.
# 11).
#
# The mean over all pairs of n vectors needs only their sum: with unit vectors v, (||sum v||^2 - n)
# / (n (n - 1)). Minimum, maximum and the share of pairs above a threshold need the pairs: all of
# them up to `exact` vectors; each later vector is compared with the first `references` only.
# Identity indices are independent draws, so these are a sample like any other. No n x n matrix is
# made, and of n vectors at most `exact` are kept.

EXACT = 20_000
REFERENCES = 1_000
BLOCK = 2_048  # vectors in a block of pairs


@dataclass(frozen=True)
class Capacity:
    """Figures of n vectors: mean cosine over all pairs; smallest and largest over `pairs` of them,
    and the share of these above the threshold (None without one)."""

    n: int
    mean: float
    minimum: float
    maximum: float
    pairs: int
    above: float | None


def measure_capacity(
    blocks: Iterable[Float32],
    sizes: Sequence[int],
    *,
    threshold: float | None = None,
    exact: int = EXACT,
    references: int = REFERENCES,
) -> Iterator[Capacity]:
    """Yield the figures of the first n vectors for each n of `sizes`, as soon as they are known.

    blocks: vectors (m, d), any m. threshold: a cosine. UserError for sizes below 2 or not
    ascending, a vector that is zero, and where there are fewer vectors than asked for.
    """
    if not sizes or sizes[0] < 2 or list(sizes) != sorted(set(sizes)):
        raise UserError("capacity: numbers of vectors, from 2 on and ascending, are needed")
    kept: list[Float32] = []  # blocks, `exact` vectors in all
    total, n, count, above, low, high = np.zeros(()), 0, 0, 0, math.inf, -math.inf
    for vectors in map(_unit, _cut(blocks, sorted({*sizes, exact}))):
        for cosines in _cosines(vectors, kept, is_exact=n < exact):
            if cosines.size:
                low, high = min(low, float(cosines.min())), max(high, float(cosines.max()))
                count += cosines.size
                above += 0 if threshold is None else int(np.count_nonzero(cosines > threshold))
        if n < exact:
            kept.append(vectors)
        total, n = total + vectors.sum(axis=0, dtype=np.float64), n + len(vectors)
        if n >= exact:  # from now on each vector is compared with the first ones only
            kept = [np.concatenate(kept)[:references]]
        if n in sizes:
            mean = (float(total @ total) - n) / (n * (n - 1))
            yield Capacity(n, mean, low, high, count, None if threshold is None else above / count)
        if n == sizes[-1]:
            return
    raise UserError(f"capacity: {n} vectors, and {sizes[-1]} are asked for")


def _cosines(vectors: Float32, kept: list[Float32], is_exact: bool) -> Iterator[Float32]:
    """Cosines of unit vectors (m, d) with the kept ones and, if exact, of all their pairs."""
    for block in kept:
        yield vectors @ block.T
    if is_exact:
        own = vectors @ vectors.T
        yield own[np.triu_indices(len(own), 1)]


def _cut(blocks: Iterable[Float32], ends: Sequence[int]) -> Iterator[Float32]:
    """Split the vectors into blocks of at most BLOCK, none across a number of `ends`."""
    n = 0
    for block in blocks:
        start = 0
        while start < len(block):
            end = next((end for end in ends if end > n), math.inf)
            stop = start + int(min(BLOCK, len(block) - start, end - n))
            yield block[start:stop]
            n, start = n + stop - start, stop


def _unit(vectors: Float32) -> Float32:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not norms.all():
        raise UserError("capacity: a vector is zero and has no direction")
    return vectors / norms
