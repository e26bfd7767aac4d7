# SPDX-License-Identifier: Apache-2.0
"""Back ends: similarity of two x-vectors. Every score here is an inner product left . right,

so that a block of scores is one matrix product, with cosine as with PLDA.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from steps.speaker.lda import clamp_dimension, class_statistics, train_lda
from steps.speaker.plda import (
    Plda,
    read_plda,
    short_enrolment_terms,
    short_trial_terms,
    train_plda,
    write_plda,
)
from utils.archives import (
    read_matrix_file,
    read_vector_file,
    read_vectors,
    write_matrix_file,
    write_vector_file,
)
from utils.arrays import Float32, Float64
from utils.cli import UserError
from utils.registry import find

# Values for <...> are arguments.
BACKENDS = {
    "cosine": "steps.speaker.backends:CosineBackend",
    "<folder>": "steps.speaker.backends:read_backend",
}
LEAST_VARIATION = 1e-12  # of the mean square of all x-vectors


class Backend(Protocol):
    """Scores of x-vectors (n, D): the higher, the more likely the same speaker."""

    @property
    def dim(self) -> int | None:
        """Length D of x-vectors, if it is fixed."""
        ...

    def left(self, vectors: Float64, counts: Float64) -> Float64:
        """Rows (n, k) of enrolled speakers, the mean of `counts` (n,) utterances each."""
        ...

    def right(self, vectors: Float64) -> Float64:
        """Rows (m, k) of single utterances; left @ right.T are the scores (n, m)."""
        ...


class CosineBackend:
    """Cosine of the raw vectors, neither centred nor scaled first; counts do not matter."""

    @property
    def dim(self) -> int | None:
        """None: any length."""
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
        """Length D of x-vectors."""
        return len(self.mean)

    def project(self, vectors: Float64) -> Float64:
        """Project x-vectors (n, D) to (n, d) of length sqrt(d)."""
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


@dataclass(frozen=True)
class ShortPldaBackend:
    """Scores of a PLDA by rows half as long, for enrolments of few different `kinds` (K,),
    ascending, of numbers of utterances. d + 1 + K numbers a row instead of 2d + 1."""

    base: PldaBackend
    kinds: Float64

    @property
    def dim(self) -> int:
        """Length D of x-vectors."""
        return self.base.dim

    def left(self, vectors: Float64, counts: Float64) -> Float64:
        """See Backend."""
        plda = self.base.plda
        u = plda.project(self.base.project(vectors), counts)
        return short_enrolment_terms(plda.psi, u, counts, self.kinds)

    def right(self, vectors: Float64) -> Float64:
        """See Backend."""
        plda = self.base.plda
        v = plda.project(self.base.project(vectors), np.ones(len(vectors)))
        return short_trial_terms(plda.psi, v, self.kinds)


def shorten(backend: Backend, counts: Float64) -> Backend:
    """Back end of the same scores by shorter rows, if possible; counts: (n,) of the enrolments."""
    kinds = np.unique(counts)
    if isinstance(backend, PldaBackend) and len(kinds) < len(backend.plda.psi):
        return ShortPldaBackend(backend, kinds)
    return backend


@dataclass(frozen=True)
class NormalisedBackend:
    """Adaptive symmetric score normalisation (Matejka et al. 2017, AS-Norm1) of another back end.

    Each side's scores against a cohort of other speakers have mean mu and deviation sigma over the
    `top` most similar of them; the normalised score is the mean of (s - mu)/sigma of both sides. It
    is an inner product again, of rows twice as long and two more. cohort: (C, D), one x-vector a
    speaker, none of whom is enrolled or tried.
    """

    base: Backend
    cohort: Float64
    top: int

    @property
    def dim(self) -> int | None:
        """Length of the back end's x-vectors."""
        return self.base.dim

    def left(self, vectors: Float64, counts: Float64) -> Float64:
        """See Backend."""
        rows = self.base.left(vectors, counts)
        mu, sigma = self._statistics(rows @ self.base.right(self.cohort).T)
        return np.hstack([rows / sigma, rows, -mu / sigma, -np.ones_like(mu)]) / 2.0

    def right(self, vectors: Float64) -> Float64:
        """See Backend."""
        rows = self.base.right(vectors)
        of_cohort = self.base.left(self.cohort, np.ones(len(self.cohort)))
        mu, sigma = self._statistics(rows @ of_cohort.T)
        return np.hstack([rows, rows / sigma, np.ones_like(mu), mu / sigma])

    def _statistics(self, scores: Float64) -> tuple[Float64, Float64]:
        """Mean and deviation, (n, 1) each, of the `top` highest of scores (n, C)."""
        highest = np.sort(scores, axis=1)[:, -self.top :]
        mu, sigma = (f(highest, axis=1, keepdims=True) for f in (np.mean, np.std))
        if not (sigma > 0).all():
            raise UserError(f"{scores.shape[1]} cohort speakers: their scores do not differ")
        return mu, sigma


def scale_to_length(vectors: Float64, length: float) -> Float64:
    """Scale vectors (n, d) to the given Euclidean length; UserError for a zero vector."""
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
    """Train global mean, LDA and PLDA on x-vectors of training speakers.

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
    _check_varies(x, classes)
    dim = clamp_dimension(lda_dim, x.shape[1], len(names), n_vectors)
    transform = train_lda(x - mean, classes, dim)
    projected = scale_to_length((x - mean) @ transform.T, np.sqrt(dim))
    return PldaBackend(mean, transform, train_plda(projected, classes))


def _check_varies(x: Float64, classes: npt.NDArray[np.int64]) -> None:
    """Raise an ArithmeticError if x-vectors (n, D) differ only by rounding within each speaker."""
    means, _, scatter = class_statistics(x, classes)
    if np.trace(scatter) <= LEAST_VARIATION * np.square(x).sum():
        raise ArithmeticError("all x-vectors of each speaker are equal")
    if np.square(means - means.mean(axis=0)).sum() <= LEAST_VARIATION * np.square(means).sum():
        raise ArithmeticError("the mean x-vectors of all speakers are equal")


def write_backend(folder: Path, backend: PldaBackend) -> None:
    """Write mean.vec (text), transform.mat (d, D + 1) and plda, in Kaldi's formats; plda last."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plda").unlink(missing_ok=True)
    dim = len(backend.mean)
    offset = backend.transform[:, dim:].sum(axis=1, keepdims=True)
    write_vector_file(folder / "mean.vec", backend.mean)
    write_matrix_file(folder / "transform.mat", np.hstack([backend.transform[:, :dim], offset]))
    write_plda(folder / "plda", backend.plda)


def speaker_means(vectors: Mapping[str, Float32], utt2spk: Mapping[str, str]) -> dict[str, Float32]:
    """Plain mean of each speaker's x-vectors: the cohort of score normalisation."""
    of_speaker: dict[str, list[Float32]] = {}
    for utt, vector in vectors.items():
        of_speaker.setdefault(utt2spk[utt], []).append(vector)
    return {
        spk: np.stack(rows).astype(np.float64).mean(axis=0).astype(np.float32)
        for spk, rows in of_speaker.items()
    }


def load_normalised(name: str, top: int) -> Backend:
    """Load the back end of an evaluator: normalised over the `top` nearest of its cohort; 0: not.

    UserError for a PLDA of one dimension: scaling a number to length leaves only its sign.
    """
    backend = load_backend(name)
    if isinstance(backend, PldaBackend) and len(backend.transform) == 1:
        raise UserError(
            f"{name}: is of one dimension (trained on two speakers, or with an LDA of 1), of which "
            "scaling to length leaves only the sign, so that nobody is told apart; use cosine"
        )
    if top == 0:
        return backend
    cohort = Path(name) / "cohort.scp"
    if top < 2 or not cohort.is_file():
        raise UserError(
            f"--asnorm {top}: needs 2 speakers or more, and a back end of steps/train_backend.py "
            f"(with cohort.scp), not {name}"
        )
    rows = np.stack(list(read_vectors(cohort).values())).astype(np.float64)
    return NormalisedBackend(backend, rows, min(top, len(rows)))


def load_backend(name: str) -> Backend:
    """Load `cosine`, or a folder of steps/train_backend.py (or Kaldi)."""
    kind, found = find(BACKENDS, name, "back end")
    backend: Backend = kind(*found)
    return backend


def read_backend(name: str) -> PldaBackend:
    """Read the PLDA in a folder; UserError where it is none."""
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
