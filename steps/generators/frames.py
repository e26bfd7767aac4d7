"""Frames as Gaussians of their speaker, and the settings of PSD, which draws from them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from steps.generators.pool import ClusterSettings, Damping, Distance
from steps.speaker.vectors import read_xvectors
from utils.archives import read_counts, read_vectors, write_archive
from utils.arrays import Float32, Float64
from utils.cli import UserError
from utils.settings import Count, NotNegative, OneOf, Positive, Size, parse_settings
from utils.tables import StrPath, is_there, read_map, write_map

# ---- Frames of a speaker's utterances as evidence about the speaker: a Gaussian each.
#
# An encoder with xi-vector pooling gives a mean and a precision for each frame. Any other encoder
# gives x-vectors of windows or utterances, which then count as frames: each stands for its
# speaker's mean, as uncertain as x-vectors vary around their speakers' means (both together vary as
# much as the x-vectors do), or for itself, without uncertainty.

UNCERTAINTIES = ("within", "given", "none")


@dataclass(frozen=True)
class FrameGaussians:
    """N Gaussians with independent dimensions: means (N, d), variances (N, d).

    weights: (N,) above 0, number of frames in each.
    """

    means: Float64
    variances: Float64
    weights: Float64

    def moments(self) -> tuple[Float64, Float64]:
        """Mean (d,) and variance (d,) of the mixture of all: those of the closest Gaussian.

        m = mean_t mu_t, v = mean_t (1/L_t) + var_t(mu_t) per dimension. This Gaussian minimises
        KL(mixture || Gaussian).

        >>> one, two = np.array([[0.0], [2.0]]), np.array([[1.0], [3.0]])
        >>> mean, variance = FrameGaussians(one, two, np.ones(2)).moments()
        >>> float(mean[0]), float(variance[0])
        (1.0, 3.0)
        """
        share = self.weights / self.weights.sum()
        mean = share @ self.means
        variance = share @ (self.variances + (self.means - mean) ** 2)
        return mean, variance

    def draw(self, rng: np.random.Generator, size: int) -> Float64:
        """Samples (size, d) of the mixture."""
        share = self.weights / self.weights.sum()
        which = rng.choice(len(share), size, p=share)
        noise = rng.standard_normal((size, self.means.shape[1]))
        samples: Float64 = self.means[which] + np.sqrt(self.variances[which]) * noise
        return samples


@dataclass(frozen=True)
class FrameSettings:
    """Purpose of a YAML file of steps/train_generator.py."""

    generator: str


@dataclass(frozen=True)
class FrameTable:
    """Frames of many speakers: `frames` of N rows and the speaker of each."""

    frames: FrameGaussians
    speakers: npt.NDArray[np.str_]

    def of(self, speakers: Collection[str]) -> FrameGaussians:
        """Frames of some speakers."""
        rows = np.flatnonzero(np.isin(self.speakers, sorted(speakers)))
        return FrameGaussians(
            self.frames.means[rows], self.frames.variances[rows], self.frames.weights[rows]
        )


def split_variance(vectors: Float64, speakers: npt.NDArray[np.str_]) -> tuple[Float64, Float64]:
    """Mean vector (N, d) of each row's speaker, and the mean square (d,) around these means.

    The variance of the former and the latter add up to that of the vectors. UserError where no
    speaker has two vectors.
    """
    names, labels = np.unique(speakers, return_inverse=True)
    if len(names) == len(labels):
        raise UserError(
            "every speaker has a single x-vector, which does not say how uncertain it is; give "
            "those of windows (steps/extract_xvectors.py --chunk-seconds 1), or uncertainty: none"
        )
    sums = np.zeros((len(names), vectors.shape[1]))
    np.add.at(sums, labels, vectors)
    means = (sums / np.bincount(labels)[:, None])[labels]
    within: Float64 = np.square(vectors - means).mean(axis=0)
    return means, within


def write_vectors_as_frames(
    values: dict[str, object],
    path: StrPath,
    vectors: Mapping[str, Float32],
    utt2spk: Mapping[str, str],
    out: Path,
) -> None:
    """Make a folder for `read_frames`: x-vectors (d,) of utterances or windows, and their speakers.

    UserError for settings `values` of the file `path` beside `generator`.
    """
    parse_settings(FrameSettings, values, path)
    out.mkdir(parents=True, exist_ok=True)
    write_map(out / "utt2spk", {utt: utt2spk[utt] for utt in vectors})
    write_archive(out / "xvector", {utt: vectors[utt] for utt in sorted(vectors)})


def read_frames(folder: Path, pool: Path | None, uncertainty: str) -> FrameTable:
    """Read the folder's xvector.scp as frames.

    Speakers are in its own utt2spk, else in that of the `pool` folder. uncertainty: `within`, see
    the module; `given`, variance.scp of the folder; `none`, zero. num_frames, where it exists,
    gives the number of frames behind each vector. UserError for missing or unfit files.
    """
    vectors = read_xvectors(folder)
    utts = sorted(vectors)
    own = folder / "utt2spk"
    table = own if is_there(own) or pool is None else pool / "utt2spk"
    if not table.is_file():
        raise UserError(f"{table}: is missing; it says of which speaker each x-vector is")
    utt2spk = read_map(table)
    if unknown := [utt for utt in utts if utt not in utt2spk]:
        raise UserError(f"{table}: {unknown[0]} of {folder / 'xvector.scp'} is not in it")
    means = np.stack([vectors[utt] for utt in utts]).astype(np.float64)
    speakers = np.array([utt2spk[utt] for utt in utts])
    variances, weights = np.zeros_like(means), np.ones(len(utts))
    if uncertainty == "within":
        means, within = split_variance(means, speakers)
        variances = np.broadcast_to(within, means.shape)
    elif uncertainty == "given":
        variances = _read_variances(folder / "variance.scp", utts, means.shape)
    if is_there(counts := folder / "num_frames"):
        weights = np.array(_of_all(counts, read_counts(counts), utts), dtype=np.float64)
    return FrameTable(FrameGaussians(means, variances, weights), speakers)


def _read_variances(path: Path, utts: list[str], shape: tuple[int, ...]) -> Float64:
    if not path.is_file():
        raise UserError(
            f"{path}: is missing; uncertainty: given takes it, of an encoder with xi-vector "
            "pooling (steps/extract_frames.py); else say uncertainty: within"
        )
    variances = np.stack(_of_all(path, read_vectors(path), utts)).astype(np.float64)
    if variances.shape != shape or not (variances >= 0).all():
        raise UserError(f"{path}: as many variances as x-vector values, none below 0, are needed")
    return variances


def _of_all(path: Path, table: Mapping[str, Any], utts: list[str]) -> list[Any]:
    """Values of all utterances; UserError for one that the table lacks."""
    if missing := [utt for utt in utts if utt not in table]:
        raise UserError(f"{path}: {missing[0]} is not in it")
    return [table[utt] for utt in utts]


# ---- Settings of PSD (steps/generators/distribution.py), without its training code.

METHODS = ("closed", "network")


@dataclass(frozen=True)
class MixtureSettings:
    """components: K. noise: values of a z. hidden: units. steps, batch (samples a step), rate."""

    steps: Size = 300
    components: Size = 8
    noise: Size = 64
    hidden: Size = 256
    batch: Size = 64
    learning_rate: Positive = 1e-3


@dataclass(frozen=True)
class PsdSettings:
    """method: closed or network. scale: tau, on the deviations; 0 gives means, 1 the estimate.

    uncertainty: of frames, within, given or none. distance, clusters, exclude_closest_cluster,
    damping, max_iterations: of the cohort, as for `dense`; all members of the cluster count.
    """

    name: str
    method: Annotated[str, OneOf(*METHODS)] = "closed"
    scale: NotNegative = 1.0
    uncertainty: Annotated[str, OneOf(*UNCERTAINTIES)] = "within"
    distance: Distance = "plda"
    clusters: Count = 10
    exclude_closest_cluster: bool = True
    damping: Damping = 0.5
    max_iterations: Count = 1000
    network: MixtureSettings = field(default_factory=MixtureSettings)

    def cohort(self) -> ClusterSettings:
        """Settings of the generator that chooses the cohort."""
        return ClusterSettings(
            "dense",
            self.distance,
            self.clusters,
            1.0,
            self.exclude_closest_cluster,
            self.damping,
            self.max_iterations,
        )
