# SPDX-License-Identifier: Apache-2.0
"""Populations of speakers, simulated and real, to compare error rates (Liu et al. 2025, Fig. 9).

OUT/populations.tsv has a row for each, OUT/plans/<speakers>.<number> the plan of all its pairs
(`steps.large.plans`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeVar

import numpy as np

from steps.large.plans import Side
from steps.large.simulated import Population, Recipe, fit_population, make_population
from steps.speaker.scoring import read_segments
from utils.arrays import Float32
from utils.cli import UserError
from utils.datadir import DataDir, load_data_dir
from utils.seeds import make_rng
from utils.tables import atomic_write, read_lines, sort_ids

Sources = Sequence[tuple[Path, Path]]  # folder of x-vectors, data directory
NONE = "-"  # for original speech, which has no pseudo-speakers
EACH = "each"  # voices of a system of level utt: another for each utterance


@dataclass(frozen=True)
class Row:
    """Population. voices: see `Recipe`, EACH or NONE; fit_speakers, fit_rank: number of real
    speakers in the fit, and the rank between them; for a real population their number, and NONE."""

    speakers: int
    population: int
    voices: str
    fit_speakers: int
    fit_rank: str

    def plan(self, out: Path) -> Path:
        """Folder of the plan of its pairs."""
        return out / "plans" / f"{self.speakers}.{self.population}"


R = TypeVar("R", bound=Row)


def columns(kind: type[Row]) -> list[str]:
    """Columns of a table: all values of its rows but the system, which names its folder."""
    return [field.name for field in fields(kind) if field.name != "system"]


def write_table(path: Path, rows: Sequence[Row]) -> None:
    """Write rows of one kind, tab-separated under a header; fractions with six digits."""
    names = columns(type(rows[0]))
    cells = [names, *([_cell(getattr(row, name)) for name in names] for row in rows)]
    with atomic_write(path) as stream:
        stream.write("#" + "".join("\t".join(line) + "\n" for line in cells))


def _cell(value: object) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(value)


def read_table(path: Path, kind: type[R]) -> list[R]:
    """Read a file of `write_table`; UserError with file and line."""
    names, rows = columns(kind), []
    kinds = {field.name: field.type for field in fields(kind)}
    for number, line in read_lines(path):
        if number == 1:
            if line != "#" + "\t".join(names):
                raise UserError(f"{path}:1: not a table of local/large.py; make it again")
            continue
        try:
            cells = zip(names, line.split("\t"), strict=True)
            rows.append(kind(**{name: kinds[name](cell) for name, cell in cells}))  # type: ignore[operator]
        except ValueError as error:
            raise UserError(f"{path}:{number}: a value is missing or no number") from error
    if not rows:
        raise UserError(f"{path}: names no population; make it again")
    return rows


@dataclass(frozen=True)
class Simulated:
    """Populations drawn from one that was fitted to real x-vectors."""

    population: Population
    recipe: Recipe

    def rows(self, sizes: Sequence[int], numbers: Sequence[int]) -> list[Row]:
        """Rows of each size, as many populations as `numbers` says."""
        sampler = self.recipe.sampler
        voices = NONE if sampler is None else self.recipe.voices
        if sampler is not None and sampler.settings.level == "utt":
            voices = EACH
        fit = self.population.n_speakers, str(self.population.rank)
        of = zip(sizes, numbers, strict=True)
        return [Row(size, i, voices, *fit) for size, number in of for i in range(number)]

    def sides(self, row: Row) -> tuple[Side, Side]:
        """Enrolment and trials of a population."""
        return make_population(self.population, self.recipe, row.speakers, row.population)


def _read_sources(
    sources: Sources, two_sides: bool = False
) -> Iterator[tuple[DataDir, list[tuple[str, str, Float32]]]]:
    """Read the data directory and the (utterance, speaker, x-vector) of each set. UserError for an
    x-vector without speaker, x-vectors of different sizes, an utterance in two sets (two_sides: the
    first set is enrolled, the others are tried, and may have its utterances)."""
    seen: dict[str, Path] = {}
    size = 0
    for place, (xvectors, data) in enumerate(sources):
        if two_sides and place == 1:
            seen = {}
        loaded, part = load_data_dir(data, need=("utt2spk",)), []
        for utt, vector in read_segments(xvectors).vectors.items():
            if utt not in loaded.utt2spk:
                raise UserError(f"{data}/utt2spk: utterance {utt} of {xvectors} is not in it")
            if utt in seen:
                raise UserError(f"{xvectors}: utterance {utt} is in {seen[utt]}, too")
            size = size or len(vector)
            if len(vector) != size:
                raise UserError(
                    f"{xvectors}: {utt} has {len(vector)} values, those of {sources[0][0]} "
                    f"{size}; take x-vectors of one encoder"
                )
            seen[utt] = xvectors
            part.append((utt, loaded.utt2spk[utt], vector))
        yield loaded, part


def fit_sources(sources: Sources) -> Population:
    """Fit a population to all utterances; genders count where every set has them. UserError as of
    `_read_sources`."""
    vectors: dict[str, Float32] = {}
    utt2spk: dict[str, str] = {}
    genders: dict[str, str] = {}
    known = True
    for loaded, part in _read_sources(sources):
        for utt, spk, vector in part:
            vectors[utt], utt2spk[utt] = vector, spk
        known = known and loaded.spk2gender is not None
        genders |= loaded.spk2gender or {}
    return fit_population(vectors, utt2spk, genders if known else None)


@dataclass(frozen=True)
class Real:
    """Real populations: the first set against all others, and drawn subsets of the speakers who are
    in both. parts: (utterance, speaker, x-vector) of either."""

    parts: tuple[list[tuple[str, str, Float32]], list[tuple[str, str, Float32]]]
    both: list[str]
    seed: int

    def rows(self, sizes: Sequence[int], numbers: Sequence[int]) -> list[Row]:
        """Rows of subsets of each size below the number of speakers, and of all of them."""
        n = len(self.both)
        drawn = {size: number for size, number in zip(sizes, numbers, strict=True) if size < n}
        of = [*sorted(drawn.items()), (n, 1)]
        return [Row(size, i, NONE, n, NONE) for size, number in of for i in range(number)]

    def sides(self, row: Row) -> tuple[Side, Side]:
        """Enrolment and trials of a subset."""
        rng = make_rng(self.seed, "large real", str(row.speakers), str(row.population))
        drawn = {self.both[i] for i in rng.permutation(len(self.both))[: row.speakers]}
        enrol, trial = (self._side(part, drawn) for part in self.parts)
        return enrol, trial

    @staticmethod
    def _side(part: Sequence[tuple[str, str, Float32]], speakers: set[str]) -> Side:
        utts, spks, vectors = zip(*(p for p in part if p[1] in speakers), strict=True)
        return Side(utts, spks, np.stack(vectors), np.ones(len(utts)))


def read_real(sources: Sources, seed: int) -> Real:
    """Read the sources; UserError for fewer than two sets, no speaker in both, and as of
    `_read_sources`."""
    parts: tuple[list[tuple[str, str, Float32]], list[tuple[str, str, Float32]]] = ([], [])
    for place, (_, part) in enumerate(_read_sources(sources, two_sides=True)):
        parts[min(place, 1)].extend(part)
    if len(sources) < 2:
        raise UserError("--real: two sets of --sources are needed, enrolled and tried")
    both = sort_ids({p[1] for p in parts[0]} & {p[1] for p in parts[1]})
    if len(both) < 2:
        raise UserError(f"--real: {len(both)} speakers of {sources[0][1]} are tried; 2 are needed")
    return Real(parts, both, seed)
