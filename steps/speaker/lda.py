# SPDX-License-Identifier: Apache-2.0
"""Linear discriminant analysis as Kaldi's ivector-compute-lda (--total-covariance-factor=0)."""

import logging

import numpy as np
import numpy.typing as npt

from utils.arrays import Float64

COVARIANCE_FLOOR = 1e-6  # of the largest eigenvalue, as Kaldi's --covariance-floor


def class_statistics(
    vectors: Float64, classes: npt.NDArray[np.int64]
) -> tuple[Float64, Float64, Float64]:
    """Class means (S, D), class sizes (S,) and the scatter around the means (D, D).

    vectors: (N, D); classes: (N,) from 0 to S - 1, each with at least one vector.
    """
    counts = np.bincount(classes).astype(np.float64)
    sums = np.zeros((len(counts), vectors.shape[1]))
    np.add.at(sums, classes, vectors)
    means = sums / counts[:, None]
    deviations = vectors - means[classes]
    return means, counts, deviations.T @ deviations


def whitening(covariance: Float64, floor: float = COVARIANCE_FLOOR) -> Float64:
    """Whitening T (D, D), T C T' = I; eigenvalues below `floor` times the largest are raised.

    ZeroDivisionError where nothing varies.
    """
    values, vectors = np.linalg.eigh(covariance)
    if not values[-1] > 0:
        raise ZeroDivisionError("all x-vectors of each speaker are equal")
    values = np.maximum(values, floor * values[-1])
    transform: Float64 = (vectors / np.sqrt(values)).T
    return transform


def clamp_dimension(wanted: int, n_features: int, n_speakers: int, n_vectors: int) -> int:
    """Largest dimension up to `wanted` that the data support; warns when it is smaller.

    Between speakers there are S - 1 directions, and within them N - S degrees of freedom.
    """
    possible = min(wanted, n_features, n_speakers - 1, n_vectors - n_speakers)
    if possible < wanted:
        logging.warning(
            "LDA: %d dimensions instead of %d (vectors of %d, %d speakers, %d x-vectors)",
            possible,
            wanted,
            n_features,
            n_speakers,
            n_vectors,
        )
    return possible


def train_lda(vectors: Float64, classes: npt.NDArray[np.int64], dim: int) -> Float64:
    """Transform (dim, D): within-class covariance I, most spread between classes first.

    vectors: (N, D), centred.
    """
    _, _, scatter = class_statistics(vectors, classes)
    within = scatter / len(vectors)
    total = vectors.T @ vectors / len(vectors)
    white = whitening(within)
    values, directions = np.linalg.eigh(white @ (total - within) @ white.T)
    order = np.argsort(-values, kind="stable")[:dim]
    return directions[:, order].T @ white
