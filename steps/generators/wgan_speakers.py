# SPDX-License-Identifier: Apache-2.0
"""Pseudo-speakers of a trained WGAN (Meyer et al. 2022; paper 004, II-C).

A generated vector that is too much like the source is drawn again.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Self

import numpy as np

from steps.generators.base import Pool, add_note
from steps.generators.identity import END
from steps.keys import Key
from steps.sources import Run
from utils.arrays import Float64
from utils.bounds import Count, Number
from utils.cli import UserError
from utils.seeds import make_rng
from utils.settings import Declared
from utils.tables import StrPath

if TYPE_CHECKING:
    from steps.generators.training import Model


@dataclass(frozen=True)
class WganSettings:
    """threshold: a vector whose cosine with the source is not below is drawn again; 1: never.

    tries: vectors drawn for a key at most; then the one with the lowest cosine is kept. centred:
    cosines are about the mean of the pool. The paper takes raw ones (false), of an encoder whose
    real speakers have a mean cosine near 0; where all are alike (0.58 with Resemblyzer), no two
    real speakers are below 0.3, and only vectors unlike any speaker are kept. trained: as that of
    idmap_speakers.IdMapSettings.
    """

    name: str
    trained: str = ""
    threshold: Annotated[float, Number(above=-1, most=1)] = 0.3
    tries: Count = 100
    centred: bool = True


class WganSpeakers(Declared[WganSettings]):
    """Pseudo-speakers of a trained WGAN; see base.Generator. The pool is not used."""

    kind, where = WganSettings, "generator"

    def __init__(self, settings: WganSettings, model: "Model", *, seed: int, draw: int) -> None:
        self.name, self.needs = settings.name, _needs(settings)
        self.notes: list[str] = []
        self._settings, self._model, self._seed, self._draw = settings, model, seed, draw
        self._pool: Pool | None = None

    @classmethod
    def make(cls, settings: WganSettings, run: Run) -> Self:
        """See sources.Kind."""
        from steps.generators.trained import load_trained  # loads torch

        folder = run.folder("generator", f": generator.name: {settings.name}")
        return cls(settings, load_trained(folder, "wgan").model, seed=run.seed, draw=run.draw)

    @classmethod
    def describe(cls, settings: WganSettings, path: StrPath) -> tuple[str, ...]:  # noqa: ARG003
        """See sources.Kind."""
        return _needs(settings)

    @property
    def is_random(self) -> bool:
        """Always."""
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

    def generate(
        self,
        key: Key,
        x: Float64 | None = None,
        gender: str | None = None,  # noqa: ARG002
        target_gender: str | None = None,
        exclude: Collection[str] = (),  # noqa: ARG002
    ) -> tuple[Float64, dict[str, object]]:
        """See base.Generator. `tries` in pseudo.tsv is how many vectors were drawn."""
        if target_gender is not None:
            note = f"{self.name}: has no gender to choose; the gender of a target is left to chance"
            add_note(self.notes, note)
        rng = make_rng(self._seed, self.name, f"draw {self._draw}", *key.parts)
        candidates = self._candidates(rng)
        if self._settings.threshold >= 1:
            y, index = next(candidates)
            return y, {"index": index, "tries": 1, "cosine": ""}
        if self._pool is None:
            raise RuntimeError(f"generator {self.name}: fit comes first")
        centre = self._pool.vectors.mean(axis=0) if self._settings.centred else 0.0
        x = self._pool.check_source(x, f"generator {self.name}") - centre
        found: list[tuple[float, Float64, int]] = []
        for y, index in candidates:
            found.append((_cosine(x, y - centre), y, index))
            if found[-1][0] < self._settings.threshold:
                break
        cosine, y, index = min(found, key=lambda one: one[0])
        if cosine >= self._settings.threshold:
            self._note_failure()
        return y, {"index": index, "tries": len(found), "cosine": round(cosine, 4)}

    def _candidates(self, rng: np.random.Generator) -> Iterator[tuple[Float64, int]]:
        """Vectors and their indices, at most `tries`."""
        for index in (int(rng.integers(END)) for _ in range(self._settings.tries)):
            made = self._model.vectors(np.array([index], dtype=np.int64))[0]
            yield made.astype(np.float64), index

    def _note_failure(self) -> None:
        settings = self._settings
        add_note(
            self.notes,
            f"{self.name}: threshold {settings.threshold:g}: for some keys none of "
            f"{settings.tries} vectors was below; the lowest cosine was taken (see pseudo.tsv)",
        )


def _cosine(x: Float64, y: Float64) -> float:
    """0 where one is zero."""
    lengths = float(np.linalg.norm(x) * np.linalg.norm(y))
    return float(x @ y) / lengths if lengths > 0 else 0.0


def _needs(settings: WganSettings) -> tuple[str, ...]:
    return ("generator",) if settings.threshold >= 1 else ("xvectors", "generator")
