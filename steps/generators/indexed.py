"""Pseudo-speakers of trained generators, from keys by way of identity indices: WGAN and IDMap."""

import dataclasses
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Self

import numpy as np

from steps.generators.base import Pool, add_note, units
from steps.generators.identity import END, hashed_index, key_name
from steps.sources import Key, Run
from utils.arrays import Float64, Int64
from utils.cli import UserError
from utils.seeds import make_rng
from utils.settings import Count, Declared, Number, OneOf
from utils.tables import StrPath

if TYPE_CHECKING:
    from steps.generators.training import Model, TrainedFolder


# ---- Pseudo-speakers of a trained WGAN (Meyer et al. 2022; Liu et al. 2025, II-C).
#
# A generated vector that is too similar to the source is drawn again.

WGAN_NORMS = ("calibrated", "raw")


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
    norm: Annotated[str, OneOf(*WGAN_NORMS)] = "calibrated"


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
        from steps.generators.training import load_trained  # loads torch

        folder = run.folder("generator", f": generator.name: {settings.name}")
        trained = load_trained(folder, "wgan")
        how = {"seed": run.seed, "draw": run.draw}
        return cls(settings, trained.model, **how, same_person=trained.same_person)

    @classmethod
    def describe(cls, settings: WganSettings, path: StrPath) -> tuple[str, ...]:  # noqa: ARG003
        return _needs(settings)

    @property
    def is_random(self) -> bool:
        """True: always."""
        return True

    def settings(self) -> dict[str, object]:
        return asdict(self._settings)

    def fit(self, vectors: Float64, speakers: Sequence[str], genders: Sequence[str | None]) -> None:
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


# ---- Pseudo-speakers of a trained IDMap, MLP or Diff (Liu et al. 2025): keys to indices to
# vectors.
#
# Without PyTorch until a trained network is loaded, so that a system's needs are found quickly.

COLUMNS = ("identity_index", "norm_ratio", "tries", "nearest")  # of pseudo.tsv
IDMAP_NORMS = ("calibrated", "real", "raw")


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
    norm: Annotated[str, OneOf(*IDMAP_NORMS)] = "calibrated"
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
        from steps.generators.training import single

        self.name = settings.name
        self.notes: list[str] = []
        self._settings, self._trained = settings, trained
        seen = np.arange(trained.model.n_seen, dtype=np.int64)
        # The training speakers as the network models them (S, d), of length 1.
        self._people = single(units(trained.model.vectors(seen).astype(np.float64)))
        self._seed, self._draw = seed, draw

    @classmethod
    def make(cls, settings: IdMapSettings, run: Run) -> Self:
        from steps.generators.training import load_trained

        trained = load_trained(run.folder("generator"), settings.name)
        return cls(settings, trained, run.seed, run.draw)

    @classmethod
    def describe(cls, settings: IdMapSettings, path: StrPath) -> tuple[str, ...]:  # noqa: ARG003
        return cls.needs

    def settings(self) -> dict[str, object]:
        return dataclasses.asdict(self._settings)

    def fit(
        self,
        vectors: Float64,
        speakers: Sequence[str],
        genders: Sequence[str | None],  # noqa: ARG002
    ) -> None:
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
