# SPDX-License-Identifier: Apache-2.0
"""A simulated population of speakers, as large as wanted, fitted to real x-vectors.

An x-vector is x = m + y + e: m the mean of the speaker's gender, y ~ N(0, B) the speaker, the same
in all his utterances, e ~ N(0, W) new in each. Speakers are independent, so the expected error
rates hardly depend on their number; only how far they scatter does.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from steps.speaker.lda import class_statistics
from utils.arrays import Float64
from utils.cli import UserError

ANYBODY = ""  # the gender where genders are not known


@dataclass(frozen=True, eq=False)
class Population:
    """means: (d,) by gender; shares: of the speakers, by gender; between, within: (d, d) factors F
    with F F' = B and W, so that F z has that covariance; n_speakers, n_utterances: of the fit;
    rank: of B, at most n_speakers - 1.
    """

    means: Mapping[str, Float64]
    shares: Mapping[str, float]
    between: Float64
    within: Float64
    n_speakers: int
    n_utterances: int
    rank: int

    def speakers(self, n: int, rng: np.random.Generator) -> tuple[Float64, list[str]]:
        """(n, d) m + y of new speakers, and their genders."""
        names = list(self.means)
        drawn = rng.choice(len(names), n, p=[self.shares[name] for name in names])
        y = rng.standard_normal((n, len(self.between))) @ self.between.T
        return np.stack([self.means[name] for name in names])[drawn] + y, [names[i] for i in drawn]

    def residuals(self, n: int, rng: np.random.Generator) -> Float64:
        """(n, d) e of n utterances."""
        return rng.standard_normal((n, len(self.within))) @ self.within.T


def fit_population(
    vectors: Mapping[str, npt.NDArray[np.float32]],
    utt2spk: Mapping[str, str],
    spk2gender: Mapping[str, str] | None,
) -> Population:
    """Moments of real x-vectors: W the pooled covariance within speakers, shrunk by Ledoit and
    Wolf's rule; B that of the speakers' means within their gender, less the part of W that means of
    few utterances still have, negative eigenvalues set to 0. UserError for too few of either.
    """
    from sklearn.covariance import ledoit_wolf

    ids = list(vectors)
    names, classes = np.unique([utt2spk[utt] for utt in ids], return_inverse=True)
    x = np.stack([vectors[utt] for utt in ids]).astype(np.float64)
    genders = [ANYBODY if spk2gender is None else spk2gender[name] for name in names.tolist()]
    free = len(names) - len(set(genders))
    if free < 2 or len(ids) == len(names):
        raise UserError(
            f"{len(ids)} x-vectors of {len(names)} speakers: several speakers of a gender, and one "
            "of several utterances, are needed to fit a population"
        )
    means, counts, _ = class_statistics(x, classes)
    several = counts[classes] > 1
    deviations = (x - means[classes])[several]
    degrees = len(ids) - len(names)
    within = ledoit_wolf(deviations, assume_centered=True)[0] * (len(deviations) / degrees)
    of = {g: means[[h == g for h in genders]].mean(axis=0) for g in sorted(set(genders))}
    centred = means - np.stack([of[g] for g in genders])
    between = centred.T @ centred / free - within * np.mean(1.0 / counts)
    values, directions = np.linalg.eigh(between)
    values = np.where(values > 1e-10 * values[-1], values, 0.0)
    if not values.any():
        raise UserError("x-vectors differ no more between speakers than within: nothing to fit")
    return Population(
        means=of,
        shares={g: genders.count(g) / len(genders) for g in of},
        between=directions * np.sqrt(values),
        within=np.linalg.cholesky(within),
        n_speakers=len(names),
        n_utterances=len(ids),
        rank=int((values > 0).sum()),
    )
