# SPDX-License-Identifier: Apache-2.0
"""Pseudo-speakers of a trained IDMap, MLP or Diff (Liu et al. 2025): keys to indices to vectors.

Without PyTorch until a trained network is loaded, so that a system's needs are found quickly.
"""

import dataclasses
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Self

import numpy as np

from steps.generators.base import add_note, units
from steps.generators.identity import hashed_index, key_name
from steps.keys import Key
from steps.sources import Run
from utils.arrays import Float64, Int64
from utils.bounds import Count, OneOf
from utils.cli import UserError
from utils.settings import Declared
from utils.tables import StrPath

if TYPE_CHECKING:
    from steps.generators.trained import TrainedFolder

COLUMNS = ("identity_index", "norm_ratio", "tries", "nearest")  # of pseudo.tsv
NORMS = ("calibrated", "real", "raw")


@dataclass(frozen=True)
class IdMapSettings:
    """`generator` of a system. norm: calibrated, vectors are as far apart as those of people
    (ours); raw, they stay as the network makes them (the paper); real, these get the median norm of
    real speakers. tries: most indices that a key gets until its voice is nobody's: nearer to no
    training speaker than two recordings of one person are to each other; 1 takes the first.
    trained: the recipe trains it by conf/generators/<trained>.yaml ("": <name>.yaml), so that
    variants stand side by side."""

    name: str
    trained: str = ""
    norm: Annotated[str, OneOf(*NORMS)] = "calibrated"
    tries: Count = 100


class IdMapGenerator(Declared[IdMapSettings]):
    """Pseudo-speakers of IDMap, MLP or Diff; see base.Generator.

    They depend on the key, seed and draw alone: not on the source, nor on the pool, which serves
    comparison; there is no choice of gender.
    """

    kind, where = IdMapSettings, "generator"
    needs: tuple[str, ...] = ("generator",)
    is_random = True

    def __init__(
        self, settings: IdMapSettings, trained: "TrainedFolder", seed: int, draw: int
    ) -> None:
        from steps.generators.calibration import single

        self.name = settings.name
        self.notes: list[str] = []
        self._settings, self._trained = settings, trained
        seen = np.arange(trained.model.n_seen, dtype=np.int64)
        # The training speakers as the network models them (S, d), of length 1.
        self._people = single(units(trained.model.vectors(seen).astype(np.float64)))
        self._seed, self._draw = seed, draw

    @classmethod
    def make(cls, settings: IdMapSettings, run: Run) -> Self:
        """See sources.Kind."""
        from steps.generators.trained import load_trained

        trained = load_trained(run.folder("generator"), settings.name)
        return cls(settings, trained, run.seed, run.draw)

    @classmethod
    def describe(cls, settings: IdMapSettings, path: StrPath) -> tuple[str, ...]:  # noqa: ARG003
        """See sources.Kind."""
        return cls.needs

    def settings(self) -> dict[str, object]:
        """See base.Generator."""
        return dataclasses.asdict(self._settings)

    def fit(
        self,
        vectors: Float64,
        speakers: Sequence[str],
        genders: Sequence[str | None],  # noqa: ARG002
    ) -> None:
        """See base.Generator. Only the number of dimensions counts."""
        d = self._trained.model.dimension
        if len(speakers) and vectors.shape[1] != d:
            raise UserError(
                f"generator {self.name}: trained on x-vectors of {d} dimensions, and the pool's "
                f"have {vectors.shape[1]}; train it on x-vectors of the same encoder"
            )

    def generate(
        self,
        key: Key,
        x: Float64 | None = None,  # noqa: ARG002
        gender: str | None = None,  # noqa: ARG002
        target_gender: str | None = None,
        exclude: Collection[str] = (),  # noqa: ARG002
    ) -> tuple[Float64, dict[str, object]]:
        """See base.Generator."""
        if target_gender is not None:
            add_note(
                self.notes,
                f"generator {self.name}: its voices have no gender to choose; the wanted one was "
                "not heeded",
            )
        vectors, columns = self.generate_many([key])
        return vectors[0], columns[0]

    def generate_many(self, keys: Sequence[Key]) -> tuple[Float64, list[dict[str, object]]]:
        """Generate for many keys at a time: (n, d) and n columns, up to rounding.

        norm_ratio in the columns is that of the network's own vector, tries the number of indices,
        nearest the cosine with the training speaker who is most like the voice.
        """
        indices = self._indices(keys, ())
        vectors, ratios = self._voices(indices)
        nearest, tries = self._nearest(vectors), np.ones(len(keys), dtype=np.int64)
        for attempt in range(1, self._settings.tries):
            if not len(places := np.flatnonzero(nearest > self._trained.same_person)):
                break
            again = self._indices([keys[int(place)] for place in places], (f"again {attempt}",))
            made, new_ratios = self._voices(again)
            distant = self._nearest(made)
            tries[places] += 1
            better = distant < nearest[places]
            taken = places[better]
            indices[taken], vectors[taken] = again[better], made[better]
            ratios[taken], nearest[taken] = new_ratios[better], distant[better]
        if np.any(nearest > self._trained.same_person):
            self._note_failure()
        if self._settings.tries > 1 and np.isnan(self._trained.same_person):
            add_note(
                self.notes,
                f"generator {self.name}: tries: nobody whom it was trained on has two x-vectors, "
                "so nothing says how near to a real speaker is too near; the first voice was taken",
            )
        rows = zip(indices.tolist(), ratios.round(4), tries.tolist(), nearest.round(4), strict=True)
        return vectors, [
            dict(zip(COLUMNS, (index, float(ratio), n, float(cosine)), strict=True))
            for index, ratio, n, cosine in rows
        ]

    def _indices(self, keys: Sequence[Key], more: tuple[str, ...]) -> Int64:
        """Indices (n,) of keys, and of further names that distinguish their draws."""
        names = [key_name(self._seed, self._draw, (*key.parts, *more)) for key in keys]
        first = self._trained.model.n_seen
        return np.array([hashed_index(name, first) for name in names], dtype=np.int64)

    def _voices(self, indices: Int64) -> tuple[Float64, Float64]:
        """Vectors (n, d) of (n,) for use, and norms of the network's own over real ones (n,)."""
        from steps.generators.training import is_within

        model = self._trained.model
        made = model.vectors(indices)
        vectors = made.astype(np.float64)
        ratios = np.sqrt(np.einsum("nd,nd->n", vectors, vectors)) / self._trained.norm
        for index, ratio in zip(indices, ratios, strict=True):
            if not is_within(ratio, model.norm_limits):
                raise UserError(
                    f"generator {self.name}: the vector of index {index} has {ratio:.3g} times "
                    f"the norm of real ones, and {model.norm_limits[0]:g} to "
                    f"{model.norm_limits[1]:g} is usable; train the generator longer"
                )
        match self._settings.norm:
            case "calibrated":
                vectors = model.calibrate(made).astype(np.float64)
            case "real":
                vectors /= ratios[:, None]
        return vectors, ratios

    def _nearest(self, vectors: Float64) -> Float64:
        """Cosine (n,) of each of (n, d) with the most similar training speaker."""
        norms = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))
        found: Float64 = (self._people @ vectors.astype(np.float32).T).max(axis=0) / norms
        return found

    def _note_failure(self) -> None:
        add_note(
            self.notes,
            f"generator {self.name}: tries: for some keys all {self._settings.tries} voices were "
            "nearer to a training speaker than two recordings of one person are; the most distant "
            "was taken (`nearest` in pseudo.tsv)",
        )
