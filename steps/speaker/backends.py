# SPDX-License-Identifier: Apache-2.0
"""Back ends: how alike two x-vectors are. Every score here is an inner product left . right,

so that a block of scores is one matrix product, with cosine as with PLDA.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from steps.speaker.lda import clamp_dimension, train_lda
from steps.speaker.plda import Plda, read_plda, train_plda, write_plda
from utils.archives import (
    read_matrix_file,
    read_vector_file,
    write_matrix_file,
    write_vector_file,
)
from utils.cli import UserError

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]


class Backend(Protocol):
    """Scores of x-vectors (n, D): the higher, the more likely the same speaker."""

    @property
    def dim(self) -> int | None:
        """D, where it is fixed."""
        ...

    def left(self, vectors: Float64, counts: Float64) -> Float64:
        """(n, k) of enrolled speakers, the mean of `counts` (n,) utterances each."""
        ...

    def right(self, vectors: Float64) -> Float64:
        """(m, k) of single utterances; left @ right.T are the scores (n, m)."""
        ...


class CosineBackend:
    """Cosine of the raw vectors. Neither centred nor scaled first; counts do not matter."""

    @property
    def dim(self) -> int | None:
        """Any."""
        return None

    def left(self, vectors: Float64, counts: Float64) -> Float64:  # noqa: ARG002
        """See Backend."""
        return self.right(vectors)

    def right(self, vectors: Float64) -> Float64:
        """See Backend."""
        return scale_to_length(vectors, 1.0)


@dataclass(frozen=True)
class PldaBackend:
    """Centring, LDA, length normalisation, PLDA: Kaldi's chain, in this order.

    mean: (D,); transform: (d, D) or, with an offset in the last column, (d, D + 1).
    """

    mean: Float64
    transform: Float64
    plda: Plda

    @property
    def dim(self) -> int:
        """D, the length of the x-vectors."""
        return len(self.mean)

    def project(self, vectors: Float64) -> Float64:
        """x-vectors (n, D) -> (n, d) of length sqrt(d)."""
        dim = len(self.mean)
        projected = (vectors - self.mean) @ self.transform[:, :dim].T
        projected += self.transform[:, dim:].sum(axis=1)
        return scale_to_length(projected, np.sqrt(len(self.transform)))

    def left(self, vectors: Float64, counts: Float64) -> Float64:
        """See Backend."""
        return self.plda.left(self.project(vectors), counts)

    def right(self, vectors: Float64) -> Float64:
        """See Backend."""
        return self.plda.right(self.project(vectors))


def scale_to_length(vectors: Float64, length: float) -> Float64:
    """Vectors (n, d) scaled to the given Euclidean length; UserError for a zero vector."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not (norms > 0).all():
        raise UserError(
            f"{int((norms <= 0).sum())} x-vectors are zero: there is nothing to compare"
        )
    scaled: Float64 = vectors * (length / norms)
    return scaled


def train_backend(
    vectors: Mapping[str, Float32], utt2spk: Mapping[str, str], lda_dim: int
) -> PldaBackend:
    """Global mean, LDA and PLDA from the x-vectors of training speakers.

    Raises UserError without two speakers, or without a speaker of two x-vectors: the variation
    within speakers cannot be learnt then.
    """
    speakers = [utt2spk[utt] for utt in vectors]
    names, classes = np.unique(speakers, return_inverse=True)
    n_vectors = len(speakers)
    if len(names) < 2:
        raise UserError(f"{len(names)} training speaker(s); a back end needs several")
    if n_vectors == len(names):
        raise UserError(
            "every training speaker has one x-vector, so variation within a speaker cannot be "
            "learnt; cut utterances into sessions with: steps/extract_xvectors.py --chunk-seconds"
        )
    x = np.stack(list(vectors.values())).astype(np.float64)
    mean = x.mean(axis=0)
    dim = clamp_dimension(lda_dim, x.shape[1], len(names), n_vectors)
    transform = train_lda(x - mean, classes, dim)
    projected = scale_to_length((x - mean) @ transform.T, np.sqrt(dim))
    return PldaBackend(mean, transform, train_plda(projected, classes))


def write_backend(folder: Path, backend: PldaBackend) -> None:
    """mean.vec (text), transform.mat (d, D + 1) and plda, in Kaldi's formats; plda comes last."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plda").unlink(missing_ok=True)
    dim = len(backend.mean)
    offset = backend.transform[:, dim:].sum(axis=1, keepdims=True)
    write_vector_file(folder / "mean.vec", backend.mean)
    write_matrix_file(folder / "transform.mat", np.hstack([backend.transform[:, :dim], offset]))
    write_plda(folder / "plda", backend.plda)


def load_backend(name: str) -> Backend:
    """`cosine`, or the folder that steps/train_backend.py (or Kaldi) wrote."""
    if name == "cosine":
        return CosineBackend()
    folder = Path(name)
    for part in ("mean.vec", "transform.mat", "plda"):
        if not (folder / part).is_file():
            raise UserError(
                f"{name}: no {part} there; a back end is a folder that steps/train_backend.py "
                "wrote, or cosine"
            )
    mean = read_vector_file(folder / "mean.vec")
    transform = read_matrix_file(folder / "transform.mat")
    plda = read_plda(folder / "plda")
    if transform.shape[1] not in (len(mean), len(mean) + 1) or len(transform) != len(plda.mean):
        raise UserError(
            f"{name}: mean.vec ({len(mean)}), transform.mat ({transform.shape[0]} x "
            f"{transform.shape[1]}) and plda ({len(plda.mean)}) do not fit; train it again"
        )
    return PldaBackend(mean, transform, plda)
