"""PSD: a pseudo-speaker drawn from a distribution estimated from frames of real speakers.

No code of PSD (pseudo-speaker distribution; Liu et al. 2025, II-B) is public, and the text leaves
most open. This is our own version: a cohort by dense proximity; each frame of the cohort's
utterances is a Gaussian (steps/generators/frames.py); `closed` takes the one Gaussian that is
closest to the mixture of all frames, `network` trains a small network for each pseudo-speaker; the
pseudo-speaker is a sample.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from steps.generators.base import Generated, Wanted
from steps.generators.frames import FrameGaussians, PsdSettings, read_frames
from steps.generators.pool import ClusteredSpeakers, ClusterSettings
from steps.sources import SystemRun
from utils.arrays import Float64
from utils.cli import UserError
from utils.tables import StrPath


class PseudoSpeakerDistribution(ClusteredSpeakers):
    """Generator; see the module. The cohort, a cluster, is drawn once a speaker."""

    kind = PsdSettings
    given: PsdSettings

    def __init__(self, settings: PsdSettings, run: SystemRun) -> None:
        """The frames are in the folder `--generator`."""
        folder = run.folder("generator", f": generator.name: {settings.name}")
        self._table = read_frames(folder, run.resources.pool, settings.uncertainty)
        super().__init__(settings, run)
        self._moments: dict[str, tuple[Float64, Float64]] = {}

    @classmethod
    def clusters_of(cls, settings: PsdSettings) -> ClusterSettings:
        return settings.cohort()

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
        self._moments = {}
        dim, own = self.pool.vectors.shape[1], self._table.frames.means.shape[1]
        if dim != own:
            raise UserError(
                f"generator {self.name}: the frames have {own} values and the pool's x-vectors "
                f"{dim}; extract both with the same encoder"
            )
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
        y, component = self._sample(names, frames, rng)
        return y, {
            "speakers": names,
            "cluster": self.pool.speakers[cluster.exemplar],
            "clusters": n_clusters,
            "frames": len(frames.means),
            "component": component,
        }

    def _sample(
        self, cohort: str, frames: FrameGaussians, rng: np.random.Generator
    ) -> tuple[Float64, int]:
        if self.given.method == "network":
            from steps.generators.mixture_network import train_mixture  # loads torch

            return train_mixture(frames, self.given.network, rng).draw(rng, self.given.scale)
        if cohort not in self._moments:
            self._moments[cohort] = frames.moments()
        mean, variance = self._moments[cohort]
        return mean + self.given.scale * np.sqrt(variance) * rng.standard_normal(len(mean)), 0
