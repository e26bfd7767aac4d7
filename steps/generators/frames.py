"""PSD: a pseudo-speaker drawn from a distribution estimated from frames of real speakers.

No code of PSD (pseudo-speaker distribution; Liu et al. 2025, II-B) is public, and the text leaves
most open. This is our own version: a cohort by dense proximity; each frame of the cohort's
utterances is a Gaussian; the pseudo-speaker is a sample of the one Gaussian that is closest to the
mixture of all frames.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from steps.generators.base import Generated, Wanted
from steps.generators.pool import ClusterChoice, ClusteredSpeakers
from steps.sources import SystemRun
from steps.speaker.vectors import read_xvectors
from utils.archives import write_archive
from utils.arrays import Float32, Float64
from utils.cli import UserError, refusing
from utils.settings import parse_settings
from utils.tables import StrPath, is_there, need_files, read_map, write_map

# ---- Frames of a speaker's utterances as evidence about the speaker: a Gaussian each.
#
# X-vectors of windows or utterances count as frames: each stands for its speaker's mean, as
# uncertain as x-vectors vary around their speakers' means: both together vary as much as the
# x-vectors do.


@dataclass(frozen=True)
class FrameGaussians:
    """N Gaussians with independent dimensions: means (N, d), variances (N, d)."""

    means: Float64
    variances: Float64

    def moments(self) -> tuple[Float64, Float64]:
        """Mean (d,) and variance (d,) of the mixture of all: those of the closest Gaussian.

        m = mean_t mu_t, v = mean_t (1/L_t) + var_t(mu_t) per dimension. This Gaussian minimises
        KL(mixture || Gaussian).

        >>> one, two = np.array([[0.0], [2.0]]), np.array([[1.0], [3.0]])
        >>> mean, variance = FrameGaussians(one, two).moments()
        >>> float(mean[0]), float(variance[0])
        (1.0, 3.0)
        """
        share = np.full(len(self.means), 1.0 / len(self.means))
        mean = share @ self.means
        variance = share @ (self.variances + (self.means - mean) ** 2)
        return mean, variance


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
        return FrameGaussians(self.frames.means[rows], self.frames.variances[rows])


def split_variance(vectors: Float64, speakers: npt.NDArray[np.str_]) -> tuple[Float64, Float64]:
    """Mean vector (N, d) of each row's speaker, and the mean square (d,) around these means.

    The variance of the former and the latter add up to that of the vectors. UserError where no
    speaker has two vectors.
    """
    names, labels = np.unique(speakers, return_inverse=True)
    if len(names) == len(labels):
        raise UserError(
            "every speaker has a single x-vector, which does not say how uncertain it is; give "
            "those of windows (steps/extract_xvectors.py --chunk-seconds 1)"
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


def read_frames(folder: Path, pool: Path | None) -> FrameTable:
    """Read the folder's xvector.scp as frames.

    Speakers are in its own utt2spk, else in that of the `pool` folder. UserError for missing or
    unfit files.
    """
    vectors = read_xvectors(folder)
    utts = sorted(vectors)
    own = folder / "utt2spk"
    table = own if is_there(own) or pool is None else pool / "utt2spk"
    need_files([table], "it says of which speaker each x-vector is")
    utt2spk = read_map(table)
    found = np.stack([vectors[utt] for utt in utts]).astype(np.float64)
    what = "has an x-vector, but no speaker"
    with refusing(f"{folder}: {{}} {what}; make the folder again", KeyError):
        speakers = np.array([utt2spk[utt] for utt in utts])
    means, within = split_variance(found, speakers)
    return FrameTable(FrameGaussians(means, np.broadcast_to(within, means.shape)), speakers)


# ---- The generator.


class PseudoSpeakerDistribution(ClusteredSpeakers):
    """Generator; see the module. The cohort, a cluster as of `dense`, all of whose members count,
    is drawn once a speaker."""

    kind = ClusterChoice
    is_random = True

    def __init__(self, settings: ClusterChoice, run: SystemRun) -> None:
        """The frames are in the folder `--generator`."""
        folder = run.folder("generator", f": generator.name: {settings.name}")
        self._table = read_frames(folder, run.resources.pool)
        super().__init__(settings, run)

    @classmethod
    def describe(cls, settings: Any, path: StrPath) -> tuple[str, ...]:
        return (*super().describe(settings, path), "generator")

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
        mean, variance = frames.moments()
        return mean + np.sqrt(variance) * rng.standard_normal(len(mean)), {
            "speakers": names,
            "cluster": self.pool.speakers[cluster.exemplar],
            "clusters": n_clusters,
            "frames": len(frames.means),
        }
