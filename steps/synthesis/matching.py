# SPDX-License-Identifier: Apache-2.0
"""Search of the k nearest frames of a voice for each frame of speech, many at a time, exactly.

The matching of kNN-VC (Baas et al. 2023): a frame of the source is replaced by the mean of the k
frames of the target that are nearest to it. Nothing is approximate: a search in float32 leaves a
few candidates more than k, whose distances are then computed in float64, difference by difference.
"""

import numpy as np
import numpy.typing as npt

from utils.arrays import Float64, Intp

Frames = npt.NDArray[np.floating]

METRICS = ("euclidean", "cosine")
_BLOCK = 1 << 22  # distances held at a time, float32: 16 MiB
_GROUP = 16  # frames that are first examined together
_SPARE = 4  # candidates beyond k: float32 may confuse neighbours that are almost equally far
_FAR = np.float32(1e30)


class FrameIndex:
    """Index of frames (M, d) to search; as large again as they are, in float32."""

    def __init__(self, frames: Frames, metric: str = "euclidean") -> None:
        """metric: euclidean, or cosine (1 - cos; a frame of zeros is equally far from all)."""
        if frames.ndim != 2 or not len(frames):
            raise ValueError(f"frames {frames.shape}; (M, d) with M > 0 is expected")
        if metric not in METRICS:
            raise ValueError(f"metric {metric!r}; known: {', '.join(METRICS)}")
        self.metric = metric
        self._frames = _unit(frames) if metric == "cosine" else frames
        self._size = len(frames)
        # Squared distances without the query's own part: |m|^2 - 2 q m, as one product of matrices.
        # Places that fill up the last group are far from everything.
        dimension = frames.shape[1]
        columns = -(-self._size // _GROUP) * _GROUP
        self._product = np.zeros((dimension + 1, columns), np.float32)
        self._product[:dimension, : self._size] = self._frames.T
        self._product[dimension] = _FAR
        self._product[dimension, : self._size] = np.einsum("md,md->m", self._frames, self._frames)

    def __len__(self) -> int:
        """Number of frames, M."""
        return self._size

    def search(self, queries: Frames, k: int) -> Intp:
        """Rows of the k nearest frames of each query (T, d) -> (T, k), the nearest first.

        Of frames equally far, the first come first. Memory does not grow with T M. ValueError
        where k is not 1 ... M.
        """
        if not 1 <= k <= self._size:
            raise ValueError(f"k {k}; there are {self._size} frames")
        if self.metric == "cosine":
            queries = _unit(queries)
        found = np.empty((len(queries), k), np.intp)
        step = max(1, _BLOCK // self._product.shape[1])
        for start in range(0, len(queries), step):
            block = queries[start : start + step]
            candidates = self._candidates(block, min(k + _SPARE, self._size))
            found[start : start + step] = self._nearest(block, candidates, k)
        return found

    def _candidates(self, queries: Frames, n: int) -> Intp:
        """Find the n nearest frames of each query, up to the rounding of float32, in any order."""
        left = np.empty((len(queries), self._product.shape[0]), np.float32)
        left[:, :-1] = -2.0 * queries
        left[:, -1] = 1.0
        scores = left @ self._product
        n_groups = scores.shape[1] // _GROUP
        if n_groups <= n:  # few frames: there is nothing to skip
            return np.argpartition(scores[:, : self._size], n - 1, axis=1)[:, :n]
        # The n nearest frames lie in the n groups whose best frames are nearest. A group is every
        # n_groups-th frame, so that the minimum runs along rows.
        best = scores.reshape(len(queries), _GROUP, n_groups).min(axis=1)
        groups = np.argpartition(best, n - 1, axis=1)[:, :n, None]
        places = (groups + n_groups * np.arange(_GROUP)).reshape(len(queries), -1)
        kept = np.argpartition(np.take_along_axis(scores, places, axis=1), n - 1, axis=1)[:, :n]
        return np.take_along_axis(places, kept, axis=1)

    def _nearest(self, queries: Frames, candidates: Intp, k: int) -> Intp:
        """The k nearest of each query's candidates (t, n), sorted by distance and place."""
        candidates = np.sort(candidates, axis=1)
        difference = self._frames[candidates].astype(np.float64) - queries[:, None, :]
        distances = np.einsum("tnd,tnd->tn", difference, difference)
        order = np.argsort(distances, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(candidates, order, axis=1)


def average(codes: Frames, neighbours: Intp) -> Float64:
    """Plain mean of the neighbours' codes: (M, D), (T, k) -> (T, D) float64."""
    total = codes[neighbours[:, 0]].astype(np.float64)
    for column in neighbours.T[1:]:
        total += codes[column]
    mean: Float64 = total / neighbours.shape[1]
    return mean


def spread(n: int, most: int) -> Intp:
    """Places of at most `most` of n frames, evenly spread: all where they are no more.

    >>> spread(10, 4).tolist(), spread(3, 4).tolist()
    ([0, 2, 5, 7], [0, 1, 2])
    """
    if n <= most:
        return np.arange(n)
    return np.arange(most) * n // most


def _unit(vectors: Frames) -> Float64:
    """Scale rows to length 1; zeros stay. Cosine distance is half the squared distance of these."""
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norms > 0, norms, 1.0))
