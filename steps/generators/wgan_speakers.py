# SPDX-License-Identifier: Apache-2.0
"""Pseudo-speakers of a trained WGAN (Meyer et al. 2022; Liu et al. 2025, II-C).

A generated vector that is too similar to the source is drawn again.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Self

import numpy as np

from steps.generators.base import Pool, add_note, units
from steps.generators.identity import END
from steps.keys import Key
from steps.sources import Run
from utils.arrays import Float64
from utils.bounds import Count, Number, OneOf
from utils.cli import UserError
from utils.seeds import make_rng
from utils.settings import Declared
from utils.tables import StrPath

if TYPE_CHECKING:
    from steps.generators.training import Model


NORMS = ("calibrated", "raw")


@dataclass(frozen=True)
class WganSettings:
    """threshold: vectors whose cosine with the source is not below are drawn again; 1: never.

    norm: calibrated, vectors are as far apart as those of people, and one that is nearer to a
    speaker of the pool than two recordings of one person are to each other is drawn again, too
    (ours); raw, they stay as the network makes them (the paper). tries: vectors drawn for a key at
    most; then the one with the lowest cosine is kept, among those that are nobody's if possible.
    centred: cosines with the source are about the mean of the pool. The paper takes raw ones
    (false), of an encoder whose real speakers have a mean cosine near 0; where all are similar
    (0.58 with Resemblyzer), no two real speakers are below 0.3, and only vectors unlike any speaker
    are kept. trained: as in idmap_speakers.IdMapSettings.
    """

    name: str
    trained: str = ""
    threshold: Annotated[float, Number(above=-1, most=1)] = 0.3
    tries: Count = 100
    centred: bool = True
    norm: Annotated[str, OneOf(*NORMS)] = "calibrated"


@dataclass(frozen=True, eq=False)
class _Voice:
    """Drawn vector: its index, its cosine with the source (NaN: not requested), and with the most
    similar speaker of the pool."""

    y: Float64
    index: int
    cosine: float
    nearest: float


class WganSpeakers(Declared[WganSettings]):
    """Pseudo-speakers of a trained WGAN; see base.Generator. The pool serves comparison alone."""

    kind, where = WganSettings, "generator"

    def __init__(
        self,
        settings: WganSettings,
        model: "Model",
        *,
        seed: int,
        draw: int,
        same_person: float = math.nan,
    ) -> None:
        self.name, self.needs = settings.name, _needs(settings)
        self.notes: list[str] = []
        self._settings, self._model, self._seed, self._draw = settings, model, seed, draw
        self._limit = same_person if settings.norm == "calibrated" else math.nan
        self._pool: Pool | None = None

    @classmethod
    def make(cls, settings: WganSettings, run: Run) -> Self:
        """See sources.Kind."""
        from steps.generators.trained import load_trained  # loads torch

        folder = run.folder("generator", f": generator.name: {settings.name}")
        trained = load_trained(folder, "wgan")
        how = {"seed": run.seed, "draw": run.draw}
        return cls(settings, trained.model, **how, same_person=trained.same_person)

    @classmethod
    def describe(cls, settings: WganSettings, path: StrPath) -> tuple[str, ...]:  # noqa: ARG003
        """See sources.Kind."""
        return _needs(settings)

    @property
    def is_random(self) -> bool:
        """True: always."""
        return True

    def settings(self) -> dict[str, object]:
        """See base.Generator."""
        return asdict(self._settings)

    def fit(self, vectors: Float64, speakers: Sequence[str], genders: Sequence[str | None]) -> None:
        """See base.Generator."""
        pool = Pool.make(vectors, speakers, genders)
        if (dim := pool.vectors.shape[1]) != self._model.dimension:
            raise UserError(
                f"generator {self.name}: trained on x-vectors of {self._model.dimension} values, "
                f"and the pool's have {dim}; train it with the encoder of the pool"
            )
        self._pool = pool
        self._centre = pool.vectors.mean(axis=0) if self._settings.centred else 0.0
        self._people = units(pool.vectors)

    def generate(
        self,
        key: Key,
        x: Float64 | None = None,
        gender: str | None = None,  # noqa: ARG002
        target_gender: str | None = None,
        exclude: Collection[str] = (),  # noqa: ARG002
    ) -> tuple[Float64, dict[str, object]]:
        """See base.Generator. `tries` in pseudo.tsv is the number of drawn vectors."""
        if target_gender is not None:
            note = f"{self.name}: has no gender to choose; the gender of a target is left to chance"
            add_note(self.notes, note)
        if self._pool is None:
            raise RuntimeError(f"generator {self.name}: fit comes first")
        if self._settings.threshold < 1:
            x = self._pool.check_source(x, f"generator {self.name}") - self._centre
        else:
            x = None
        found: list[_Voice] = []
        for voice in self._voices(key, x):
            found.append(voice)
            if not (self._is_like(voice) or self._is_somebody(voice)):
                break
        else:
            self._note_failure(found)
        kept = min(found, key=self._badness)
        return kept.y, {
            "index": kept.index,
            "tries": len(found),
            "cosine": "" if x is None else round(kept.cosine, 4),
            "nearest": round(kept.nearest, 4),
        }

    def _voices(self, key: Key, x: Float64 | None) -> Iterator[_Voice]:
        """Draw vectors for a key, at most `tries`, with their cosines to the source's x."""
        rng = make_rng(self._seed, self.name, f"draw {self._draw}", *key.parts)
        for index in (int(rng.integers(END)) for _ in range(self._settings.tries)):
            made = self._model.vectors(np.array([index], dtype=np.int64))
            if self._settings.norm == "calibrated":
                made = self._model.calibrate(made)
            y = made[0].astype(np.float64)
            cosine = math.nan if x is None else float(units(x) @ units(y - self._centre))
            yield _Voice(y, index, cosine, float((self._people @ units(y)).max()))

    def _badness(self, voice: _Voice) -> tuple[bool, bool, float, float]:
        return self._is_somebody(voice), self._is_like(voice), voice.cosine, voice.nearest

    def _is_like(self, voice: _Voice) -> bool:
        """Whether it is too similar to the source."""
        return voice.cosine >= self._settings.threshold

    def _is_somebody(self, voice: _Voice) -> bool:
        """Whether it is too near to a speaker of the pool."""
        return voice.nearest > self._limit

    def _note_failure(self, found: Sequence[_Voice]) -> None:
        settings = self._settings
        add_note(
            self.notes,
            f"{self.name}: for some keys none of {settings.tries} vectors was below the threshold "
            f"{settings.threshold:g} of the source"
            + " and nobody's" * any(self._is_somebody(voice) for voice in found)
            + "; the best was taken (`cosine` and `nearest` in pseudo.tsv)",
        )


def _needs(settings: WganSettings) -> tuple[str, ...]:
    return ("generator",) if settings.threshold >= 1 else ("xvectors", "generator")
