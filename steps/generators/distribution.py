"""PSD: a pseudo-speaker drawn from a distribution estimated from frames of real speakers.

No code of PSD (pseudo-speaker distribution; Liu et al. 2025, II-B) is public, and the text leaves
most open. This is our own version: a cohort by dense proximity; each frame of the cohort's
utterances is a Gaussian (steps/generators/frames.py); `closed` takes the one Gaussian that is
closest to the mixture of all frames, `network` trains a small network for each pseudo-speaker; the
pseudo-speaker is a sample.
"""

from collections.abc import Collection, Sequence
from typing import Self

import numpy as np

from steps.generators.frames import Frames, FrameTable, PsdSettings, read_frames
from steps.generators.pool import ClusteredSpeakers, PoolGenerator, load_distance
from steps.sources import Key, Run
from steps.speaker.backends import Backend
from utils.arrays import Float64
from utils.cli import UserError
from utils.seeds import make_rng


class PseudoSpeakerDistribution(PoolGenerator[PsdSettings]):
    """Generator; see the module and `base.Generator`. The cohort is drawn once a speaker."""

    kind = PsdSettings

    def __init__(
        self, settings: PsdSettings, backend: Backend, table: FrameTable, *, seed: int, draw: int
    ) -> None:
        super().__init__(settings, seed=seed, draw=draw)
        self._table = table
        self._dense = ClusteredSpeakers(settings.cohort(), backend, seed=seed, draw=draw)
        self._dense.notes = self.notes
        self._moments: dict[tuple[str, ...], tuple[Float64, Float64]] = {}

    @classmethod
    def make(cls, settings: PsdSettings, run: Run) -> Self:
        """The frames are in the folder `--generator`."""
        folder = run.folder("generator", f": generator.name: {settings.name}")
        table = read_frames(folder, run.resources.pool, settings.uncertainty)
        backend = load_distance(settings.distance, run)
        return cls(settings, backend, table, seed=run.seed, draw=run.draw)

    @classmethod
    def needs_for(cls, settings: PsdSettings) -> tuple[str, ...]:
        return (*ClusteredSpeakers.needs_for(settings.cohort()), "generator")

    @property
    def is_random(self) -> bool:
        """Whether the settings leave a choice."""
        settings = self._settings
        return settings.method == "network" or settings.scale > 0 or settings.clusters > 1

    def fit(self, vectors: Float64, speakers: Sequence[str], genders: Sequence[str | None]) -> None:
        super().fit(vectors, speakers, genders)
        self._dense.fit(vectors, speakers, genders)
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

    def generate(
        self,
        key: Key,
        x: Float64 | None = None,
        gender: str | None = None,  # noqa: ARG002
        target_gender: str | None = None,
        exclude: Collection[str] = (),
    ) -> tuple[Float64, dict[str, object]]:
        clusters = self._dense.eligible(x, target_gender, exclude)
        cluster = clusters[int(self.draw(key.group_parts, np.arange(len(clusters)), 1)[0])]
        members = self.pool.without(cluster.members, exclude)
        cohort = tuple(self.pool.speakers[place] for place in members)
        frames = self._table.of(cohort)
        rng = make_rng(self._seed, self.name, f"draw {self._draw}", "vector", *key.parts)
        y, component = self._sample(cohort, frames, rng)
        return y, {
            "speakers": ",".join(cohort),
            "cluster": self.pool.speakers[cluster.exemplar],
            "clusters": len(clusters),
            "frames": len(frames.means),
            "component": component,
        }

    def _sample(
        self, cohort: tuple[str, ...], frames: Frames, rng: np.random.Generator
    ) -> tuple[Float64, int]:
        settings = self._settings
        if settings.method == "network":
            from steps.generators.mixture_network import train_mixture  # loads torch

            return train_mixture(frames, settings.network, rng).draw(rng, settings.scale)
        if cohort not in self._moments:
            self._moments[cohort] = frames.moments()
        mean, variance = self._moments[cohort]
        return mean + settings.scale * np.sqrt(variance) * rng.standard_normal(len(mean)), 0
