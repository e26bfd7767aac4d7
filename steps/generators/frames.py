"""PSD: a pseudo-speaker drawn from a distribution estimated from frames of real speakers.

No code of PSD (pseudo-speaker distribution; Liu et al. 2025, II-B) is public, and the text leaves
most open. This is our own version: a cohort by dense proximity; each frame of the cohort's
utterances is a Gaussian; `closed` takes the one Gaussian that is
closest to the mixture of all frames, `network` trains a small network for each pseudo-speaker; the
pseudo-speaker is a sample.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt

from steps.generators.base import Generated, Wanted
from steps.generators.pool import ClusterChoice, ClusteredSpeakers
from steps.sources import SystemRun
from steps.speaker.vectors import read_xvectors
from utils.archives import write_archive
from utils.arrays import Float32, Float64, Int64
from utils.cli import UserError, refusing
from utils.settings import NotNegative, OneOf, parse_settings
from utils.tables import StrPath, is_there, need_files, read_map, write_map

if TYPE_CHECKING:
    import torch

# ---- Frames of a speaker's utterances as evidence about the speaker: a Gaussian each.
#
# X-vectors of windows or utterances count as frames: each stands for its speaker's mean, as
# uncertain as x-vectors vary around their speakers' means (both together vary as much as the
# x-vectors do), or for itself, without uncertainty.

UNCERTAINTIES = ("within", "none")


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

    def draw(
        self, rng: np.random.Generator, size: int, scale: float = 1.0
    ) -> tuple[Float64, Int64]:
        """Samples (size, d) of the mixture, deviations times `scale`, and the Gaussian of each."""
        share = self.weights / self.weights.sum()
        which = rng.choice(len(share), size, p=share)
        noise = rng.standard_normal((size, self.means.shape[1]))
        return self.means[which] + scale * np.sqrt(self.variances[which]) * noise, which


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
    write_map(out / "utt2spk", {utt: utt2spk[utt] for utt in vectors})
    write_archive(out / "xvector", {utt: vectors[utt] for utt in sorted(vectors)})


def read_frames(folder: Path, pool: Path | None, uncertainty: str) -> FrameTable:
    """Read the folder's xvector.scp as frames.

    Speakers are in its own utt2spk, else in that of the `pool` folder. uncertainty: `within`, see
    the module; `none`, zero. UserError for missing or unfit files.
    """
    vectors = read_xvectors(folder)
    utts = sorted(vectors)
    own = folder / "utt2spk"
    table = own if is_there(own) or pool is None else pool / "utt2spk"
    need_files([table], "it says of which speaker each x-vector is")
    utt2spk = read_map(table)
    means = np.stack([vectors[utt] for utt in utts]).astype(np.float64)
    what = "has an x-vector, but no speaker"
    with refusing(f"{folder}: {{}} {what}; make the folder again", KeyError):
        speakers = np.array([utt2spk[utt] for utt in utts])
    variances = np.zeros_like(means)
    if uncertainty == "within":
        means, within = split_variance(means, speakers)
        variances = np.broadcast_to(within, means.shape)
    return FrameTable(FrameGaussians(means, variances, np.ones(len(utts))), speakers)


# ---- A small network for one pseudo-speaker: noise to the Gaussians of their distribution.
#
# Ours. The abstract of PSD and Liu et al. 2025 say that a distribution is estimated from those of
# the frames by a network trained for each pseudo-speaker, and no more. Here K noise vectors z_k,
# fixed, go through two layers to (mu(z_k), log var(z_k)); with free weights they are a mixture of
# Gaussians. It is trained by maximum likelihood of samples of the frames.

LOG_VARIANCE = (-7.0, 3.0)  # of standardised vectors: keeps a component from shrinking to a point
COMPONENTS, NOISE, HIDDEN = 8, 64, 256  # K, values of a z, hidden units
STEPS, BATCH, RATE = 300, 64, 1e-3


def train_mixture(frames: FrameGaussians, rng: np.random.Generator) -> FrameGaussians:
    """K Gaussians; `rng` draws all: weights, noise and samples."""
    import torch
    from torch.nn.functional import linear, relu

    from steps.training.loop import descend

    def layer(n_in: int, n_out: int) -> "list[torch.Tensor]":
        bound = 1.0 / math.sqrt(n_in)
        parts = (rng.uniform(-bound, bound, shape) for shape in ((n_out, n_in), (n_out,)))
        return [torch.from_numpy(part).float().requires_grad_() for part in parts]

    def network() -> "tuple[torch.Tensor, ...]":
        """Means and log variances (K, d) of standardised vectors, and log weights (K,)."""
        means, log_variances = linear(relu(linear(z, *inward)), *outward).chunk(2, dim=1)
        return means, log_variances.clamp(*LOG_VARIANCE), torch.log_softmax(logits, dim=0)

    mean, variance = frames.moments()
    deviation = np.sqrt(np.maximum(variance, 1e-12))
    z = torch.from_numpy(rng.standard_normal((COMPONENTS, NOISE))).float()
    inward = layer(NOISE, HIDDEN)
    outward = layer(HIDDEN, 2 * len(mean))
    logits = torch.zeros(COMPONENTS, requires_grad=True)
    optimiser = torch.optim.Adam([logits, *inward, *outward], RATE)
    for _ in range(STEPS):
        drawn = (frames.draw(rng, BATCH)[0] - mean) / deviation
        samples = torch.from_numpy(drawn).float()
        means, log_variances, log_weights = network()
        squares = (samples[:, None] - means).square() * torch.exp(-log_variances)
        of_components = -0.5 * (squares + log_variances).sum(dim=2)
        loss = -torch.logsumexp(log_weights + of_components, dim=1).mean()
        descend(loss, optimiser)
    with torch.no_grad():
        means, log_variances, log_weights = network()
    weights = np.exp(log_weights.double().numpy())
    return FrameGaussians(
        mean + deviation * means.double().numpy(),
        np.exp(log_variances.double().numpy()) * deviation**2,
        weights / weights.sum(),
    )


# ---- The generator.

METHODS = ("closed", "network")


@dataclass(frozen=True)
class PsdSettings(ClusterChoice):
    """method: closed or network. scale: tau, on the deviations; 0 gives means, 1 the estimate.

    uncertainty: of frames, within or none. The cohort is a cluster as of `dense`, all of
    whose members count.
    """

    method: Annotated[str, OneOf(*METHODS)] = "closed"
    scale: NotNegative = 1.0
    uncertainty: Annotated[str, OneOf(*UNCERTAINTIES)] = "within"


class PseudoSpeakerDistribution(ClusteredSpeakers):
    """Generator; see the module. The cohort, a cluster, is drawn once a speaker."""

    kind = PsdSettings
    given: PsdSettings

    def __init__(self, settings: PsdSettings, run: SystemRun) -> None:
        """The frames are in the folder `--generator`."""
        folder = run.folder("generator", f": generator.name: {settings.name}")
        self._table = read_frames(folder, run.resources.pool, settings.uncertainty)
        super().__init__(settings, run)

    @classmethod
    def describe(cls, settings: Any, path: StrPath) -> tuple[str, ...]:
        return (*super().describe(settings, path), "generator")

    @property
    def is_random(self) -> bool:
        """Whether the settings leave a choice."""
        given = self.given
        return given.method == "network" or given.scale > 0 or given.clusters > 1

    def fit(self, vectors: Float64, speakers: Sequence[str], genders: Sequence[str | None]) -> None:
        super().fit(vectors, speakers, genders)
        self.check_size("the frames have", self._table.frames.means.shape[1])
        there = set(self._table.speakers.tolist())
        if missing := [speaker for speaker in self.pool.speakers if speaker not in there]:
            raise UserError(
                f"generator {self.name}: speaker {missing[0]} of the pool has no frames "
                "(--generator DIR); extract those of all its speakers"
            )

    def generate(self, wanted: Wanted) -> Generated:
        cluster, members, n_clusters = self.drawn(wanted)
        cohort = [self.pool.speakers[place] for place in members]
        frames, names = self._table.of(cohort), ",".join(cohort)
        rng = self.draws.rng(self.name, "vector", *wanted.key.parts)
        method, scale, component = self.given.method, self.given.scale, 0
        if method == "network":
            samples, which = train_mixture(frames, rng).draw(rng, 1, scale)
            y, component = samples[0], int(which[0])
        else:
            mean, variance = frames.moments()
            y = mean + scale * np.sqrt(variance) * rng.standard_normal(len(mean))
        return y, {
            "speakers": names,
            "cluster": self.pool.speakers[cluster.exemplar],
            "clusters": n_clusters,
            "frames": len(frames.means),
            "component": component,
        }
