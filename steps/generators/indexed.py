"""Pseudo-speakers of trained generators, from keys by way of identity indices: WGAN and IDMap.

PyTorch is loaded with a trained network, so that a system's needs are found quickly.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from steps.generators.base import Generated, Generator, Wanted, units
from steps.generators.identity import END, hashed_index, key_name
from steps.sources import SystemRun, VoiceKey
from utils.arrays import Float64, Int64
from utils.cli import UserError
from utils.settings import Count, Number, OneOf
from utils.tables import StrPath

if TYPE_CHECKING:
    from steps.generators.training import TrainedFolder


class TrainedSpeakers(Generator):
    """Common part of generators whose voices a trained network makes of indices.

    The pool serves comparison alone. There is no choice of gender.
    """

    def __init__(
        self, settings: Any, run: SystemRun, trained: "TrainedFolder | None" = None
    ) -> None:
        """trained: None opens the folder --generator."""
        super().__init__(settings, run)
        if trained is None:
            from steps.generators.training import load_trained  # loads torch

            folder = run.folder("generator", f": generator.name: {settings.name}")
            trained = load_trained(folder, settings.name)
        self._trained, self._model = trained, trained.model

    @classmethod
    def describe(cls, settings: Any, path: StrPath) -> tuple[str, ...]:
        return ("generator",)

    def fit(self, vectors: Float64, speakers: Sequence[str], genders: Sequence[str | None]) -> None:
        super().fit(vectors, speakers, genders)
        if (dim := self.pool.vectors.shape[1]) != self._model.dimension:
            raise UserError(
                f"generator {self.name}: trained on x-vectors of {self._model.dimension} values, "
                f"and the pool's have {dim}; train it with the encoder of the pool"
            )

    def note_gender(self, wanted: Wanted) -> None:
        """Note that a wanted gender was not heeded."""
        if wanted.gender is not None:
            self.note(
                f"generator {self.name}: its voices have no gender to choose; the wanted one was "
                "not heeded"
            )


# ---- Pseudo-speakers of a trained WGAN (Meyer et al. 2022; Liu et al. 2025, II-C).
#
# A generated vector that is too similar to the source is drawn again.

WGAN_NORMS = ("calibrated", "raw")


@dataclass(frozen=True)
class WganSettings:
    """threshold: vectors whose cosine with the source is not below are drawn again; 1: never.

    norm: calibrated, vectors are as far apart as those of people, and one that is nearer to a
    speaker of the pool than two recordings of one person are to each other is also drawn again
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


class WganSpeakers(TrainedSpeakers):
    """Pseudo-speakers of a trained WGAN."""

    kind = WganSettings
    given: WganSettings

    def __init__(self, settings: WganSettings, run: SystemRun, *trained: "TrainedFolder") -> None:
        super().__init__(settings, run, *trained)
        self._is_calibrated = settings.norm == "calibrated"
        self._limit = self._trained.same_person if self._is_calibrated else math.nan

    @classmethod
    def describe(cls, settings: WganSettings, path: StrPath) -> tuple[str, ...]:
        needs = super().describe(settings, path)
        return needs if settings.threshold >= 1 else ("xvectors", *needs)

    def fit(self, vectors: Float64, speakers: Sequence[str], genders: Sequence[str | None]) -> None:
        super().fit(vectors, speakers, genders)
        self._centre = self.pool.vectors.mean(axis=0) if self.given.centred else 0.0
        self._people = units(self.pool.vectors)

    def generate(self, wanted: Wanted) -> Generated:
        self.note_gender(wanted)
        x = self.source(wanted) - self._centre if self.given.threshold < 1 else None
        found: list[_Voice] = []
        for voice in self._voices(wanted.key, x):
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

    def _voices(self, key: VoiceKey, x: Float64 | None) -> Iterator[_Voice]:
        """Draw vectors for a key, at most `tries`, with their cosines to the source's x."""
        rng = self.draws.rng(self.name, *key.parts)
        for index in (int(rng.integers(END)) for _ in range(self.given.tries)):
            made = self._model.vectors(np.array([index], dtype=np.int64))
            if self._is_calibrated:
                made = self._model.calibrate(made)
            y = made[0].astype(np.float64)
            cosine = math.nan if x is None else float(units(x) @ units(y - self._centre))
            yield _Voice(y, index, cosine, float((self._people @ units(y)).max()))

    def _badness(self, voice: _Voice) -> tuple[bool, bool, float, float]:
        return self._is_somebody(voice), self._is_like(voice), voice.cosine, voice.nearest

    def _is_like(self, voice: _Voice) -> bool:
        """Whether it is too similar to the source."""
        return voice.cosine >= self.given.threshold

    def _is_somebody(self, voice: _Voice) -> bool:
        """Whether it is too near to a speaker of the pool."""
        return voice.nearest > self._limit

    def _note_failure(self, found: Sequence[_Voice]) -> None:
        self.note(
            f"{self.name}: for some keys none of {self.given.tries} vectors was below the "
            f"threshold {self.given.threshold:g} of the source"
            + " and nobody's" * any(self._is_somebody(voice) for voice in found)
            + "; the best was taken (`cosine` and `nearest` in pseudo.tsv)"
        )


# ---- Pseudo-speakers of a trained IDMap, MLP or Diff (Liu et al. 2025): keys to indices to
# vectors.

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


class IdMapGenerator(TrainedSpeakers):
    """Pseudo-speakers of IDMap, MLP or Diff.

    They depend on the key, seed and draw alone: not on the source, nor on the pool.
    """

    kind = IdMapSettings
    given: IdMapSettings

    def __init__(self, settings: IdMapSettings, run: SystemRun, *trained: "TrainedFolder") -> None:
        super().__init__(settings, run, *trained)
        seen = np.arange(self._model.n_seen, dtype=np.int64)
        # The training speakers as the network models them (S, d), of length 1.
        people = units(self._model.vectors(seen).astype(np.float64))
        self._people = np.ascontiguousarray(people, dtype=np.float32)

    def generate(self, wanted: Wanted) -> Generated:
        self.note_gender(wanted)
        vectors, columns = self.generate_many([wanted.key])
        return vectors[0], columns[0]

    def generate_many(self, keys: Sequence[VoiceKey]) -> tuple[Float64, list[dict[str, object]]]:
        """Generate for many keys at a time: (n, d) and n columns, up to rounding.

        norm_ratio in the columns is that of the network's own vector, tries the number of indices,
        nearest the cosine with the training speaker who is most like the voice.
        """
        indices = self._indices(keys, ())
        vectors, ratios = self._voices(indices)
        nearest, tries = self._nearest(vectors), np.ones(len(keys), dtype=np.int64)
        same_person = self._trained.same_person
        for attempt in range(1, self.given.tries):
            if not len(places := np.flatnonzero(nearest > same_person)):
                break
            again = self._indices([keys[int(place)] for place in places], (f"again {attempt}",))
            made, new_ratios = self._voices(again)
            distant = self._nearest(made)
            tries[places] += 1
            better = distant < nearest[places]
            taken = places[better]
            indices[taken], vectors[taken] = again[better], made[better]
            ratios[taken], nearest[taken] = new_ratios[better], distant[better]
        if np.any(nearest > same_person):
            self.note(
                f"generator {self.name}: tries: for some keys all {self.given.tries} voices were "
                "nearer to a training speaker than two recordings of one person are; the most "
                "distant was taken (`nearest` in pseudo.tsv)"
            )
        if self.given.tries > 1 and np.isnan(same_person):
            self.note(
                f"generator {self.name}: tries: nobody whom it was trained on has two x-vectors, "
                "so nothing says how near to a real speaker is too near; the first voice was taken"
            )
        figures = (x.tolist() for x in (indices, ratios.round(4), tries, nearest.round(4)))
        rows = zip(*figures, strict=True)
        return vectors, [dict(zip(COLUMNS, row, strict=True)) for row in rows]

    def _indices(self, keys: Sequence[VoiceKey], more: tuple[str, ...]) -> Int64:
        """Indices (n,) of keys, and of further names that distinguish their draws."""
        names = [key_name(self.draws, (*key.parts, *more)) for key in keys]
        first = self._model.n_seen
        return np.array([hashed_index(name, first) for name in names], dtype=np.int64)

    def _voices(self, indices: Int64) -> tuple[Float64, Float64]:
        """Vectors (n, d) of (n,) for use, and norms of the network's own over real ones (n,)."""
        made, (least, most) = self._model.vectors(indices), self._model.norm_limits
        vectors = made.astype(np.float64)
        ratios = np.sqrt(np.einsum("nd,nd->n", vectors, vectors)) / self._trained.norm
        for index, ratio in zip(indices, ratios, strict=True):
            if not least <= ratio <= most:
                raise UserError(
                    f"generator {self.name}: the vector of index {index} has {ratio:.3g} times "
                    f"the norm of real ones, and {least:g} to {most:g} is usable; train the "
                    "generator longer"
                )
        if self.given.norm == "calibrated":
            vectors = self._model.calibrate(made).astype(np.float64)
        elif self.given.norm == "real":
            vectors /= ratios[:, None]
        return vectors, ratios

    def _nearest(self, vectors: Float64) -> Float64:
        """Cosine (n,) of each of (n, d) with the most similar training speaker."""
        norms = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))
        return (self._people @ vectors.astype(np.float32).T).max(axis=0) / norms
