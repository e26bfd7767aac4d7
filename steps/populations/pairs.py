"""All pairs of two sets of x-vectors, however many: histograms of scores, none of which is kept.

Scores are inner products of rows and columns (`steps/speaker/backends.py`), in float32. Both sides
stand by gender (where only pairs of one gender are trials), by group of speakers, by speaker, by
utterance, so that a row's target pairs are one range of columns. A pair of groups is a cell, and is
counted in tiles that depend on nothing else.
"""

import hashlib
import io
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from steps.speaker.backends import Backend, VectorTable, check_dimensions, read_segments, shorten
from steps.speaker.vectors import average_by_speaker, check_complete
from utils.arrays import Float32, Float64, Int64
from utils.cli import UserError
from utils.datadir import load_data_dir
from utils.seeds import make_rng
from utils.tables import atomic_write, is_there, read_bytes, sort_ids

NONTARGET, TARGET = 0, 1
TILE = 512  # rows and columns of a tile: a float32 tile of 1 MB stays in the cache of a core
GROUPS = 32
COARSE = 16  # bins in one of the histograms by cell
_ROWS_AT_ONCE = 4096
_SAMPLED = 2000  # rows and columns scored in the first pass
_LONGEST = 1e30  # of a score, by the lengths of rows and columns; beyond it float32 may overflow

# ---- Both sides, read and put into order.


@dataclass(frozen=True, eq=False)
class PairSide:
    """x-vectors of one side. ids, speakers: (n,) each; vectors: (n, D), finite; counts: (n,)
    utterances in each mean; genders: (n,) of the speakers, or None; averaged: ids are those of
    speakers, not of utterances."""

    ids: Sequence[str]
    speakers: Sequence[str]
    vectors: Sequence[Float32] | Float32
    counts: Float64
    genders: Sequence[str] | None = None
    averaged: bool = False

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.ids)


def read_sides(
    enrol: tuple[Path, Path],
    trial: tuple[Path, Path],
    backend: Backend,
    *,
    average: bool = False,
    allow_loss: int = 0,
) -> tuple[PairSide, PairSide]:
    """Read both sides, each from x-vectors (a folder with xvector.scp, an .scp or an .ark) and a
    data directory. average: one enrolment a speaker, the mean of their x-vectors.

    UserError for an x-vector without speaker, sizes that differ, an utterance that is averaged and
    tried; LossError for utterances without x-vector.
    """
    tables: list[VectorTable] = []
    sides: list[PairSide] = []
    for xvectors, data in (enrol, trial):
        table, loaded = read_segments(xvectors), load_data_dir(data, need=("utt2spk",))
        utt2spk = loaded.utt2spk
        check_complete(table.vectors, utt2spk, xvectors, allow_loss)
        tables.append(table)
        ids, vectors, counts = list(table.vectors), dict(table.vectors), np.ones(len(table.vectors))
        speakers = [utt2spk[utt] for utt in ids]
        averaged = average and not sides
        if averaged:
            ordered = ((utt, table.vectors[utt]) for utt in sort_ids(table.vectors))
            vectors, n = average_by_speaker(ordered, utt2spk)
            ids = speakers = list(vectors)
            counts = np.array([n[spk] for spk in ids], np.float64)
        genders = loaded.spk2gender
        of = None if genders is None else [genders[spk] for spk in speakers]
        sides.append(PairSide(ids, speakers, list(vectors.values()), counts, of, averaged))
    check_dimensions(backend, *tables)
    if average and (both := set(tables[0].vectors) & set(tables[1].vectors)):
        raise UserError(
            f"{trial[0]}: {len(both)} utterances are tried and enrolled, as {min(both)}: a "
            "speaker's mean would hold the utterance it is tried with; take them out of one side"
        )
    return sides[0], sides[1]


@dataclass(frozen=True)
class Bins:
    """Bins: `n` equal ones from low to high, half-open; scores outside are counted apart.

    A place is a bin's number from 1; place 0 is below, place n + 1 at or above high. Places are
    computed in float32, so that an edge is exact to 1/256 of a bin.
    """

    low: float
    high: float
    n: int = 1 << 16

    def __post_init__(self) -> None:
        """Raise a UserError for a range or a number that makes no bins."""
        if not (np.isfinite([self.low, self.high]).all() and self.low < self.high):
            raise UserError(f"bins from {self.low} to {self.high}: an ascending range is needed")
        if not 2 <= self.n <= 1 << 22:
            raise UserError(f"{self.n} bins: from 2 to {1 << 22} are possible")

    @property
    def edges(self) -> Float64:
        """Edges (n + 1,) from low to high."""
        return np.linspace(self.low, self.high, self.n + 1)


@dataclass(eq=False)
class ScoreCounts:
    """Nontarget (row 0) and target (row 1) scores by place, and the smallest and largest of each.

    places: (2, n + 2); extremes: (2, 2), inf and -inf where there is no score. Sums of counts are
    counts: they add exactly, in any order.
    """

    places: Int64
    extremes: Float32 = field(
        default_factory=lambda: np.array([[np.inf, -np.inf]] * 2, dtype=np.float32)
    )

    @classmethod
    def empty(cls, bins: Bins) -> "ScoreCounts":
        """Counts of nothing."""
        return cls(np.zeros((2, bins.n + 2), np.int64))

    def add(self, other: "ScoreCounts") -> None:
        """Add the other counts."""
        self.places += other.places
        self.extremes[:, 0] = np.minimum(self.extremes[:, 0], other.extremes[:, 0])
        self.extremes[:, 1] = np.maximum(self.extremes[:, 1], other.extremes[:, 1])


@dataclass(frozen=True, eq=False)
class Sides:
    """Both sides of all pairs; columns are sorted by speaker.

    left: (n, k); right: (m, k); first, last: (n,) the columns of the same speaker, from and up to;
    same: (n,) the column of the same utterance, which is not a trial and is excluded; -1: none.
    """

    left: Float32
    right: Float32
    first: Int64
    last: Int64
    same: Int64


@dataclass(frozen=True)
class PairCell:
    """Rectangle of pairs: rows and columns, from and up to, and the groups of their speakers."""

    rows: tuple[int, int]
    columns: tuple[int, int]
    groups: tuple[int, int]

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return (self.rows[1] - self.rows[0]) * (self.columns[1] - self.columns[0])


@dataclass(frozen=True, eq=False)
class PairPlan:
    """Both sides in order, and what is counted of them. info: for reports, numbers of speakers,
    utterances and pairs, and options."""

    sides: Sides
    bins: Bins
    cells: tuple[PairCell, ...]
    n_groups: int
    info: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """Digest of all that the counts depend on."""
        digest, sides = hashlib.blake2b(digest_size=16), self.sides
        for array in (sides.left, sides.right, sides.first, sides.last, sides.same):
            digest.update(str(array.shape).encode())
            digest.update(array.ravel().data)
        told = json.dumps(self.info, sort_keys=True)
        digest.update(f"{self.bins} {self.cells} {self.n_groups} {told}".encode())
        return digest.hexdigest()


def make_plan(
    enrol: PairSide,
    trial: PairSide,
    backend: Backend,
    *,
    bins: Bins | None = None,
    n_bins: int = 1 << 16,
    same_gender: bool = False,
    n_groups: int = GROUPS,
    seed: int = 0,
    about: Mapping[str, object] | None = None,
) -> PairPlan:
    """Order both sides, turn x-vectors into rows of inner products, choose bins and cells.

    bins: None finds a range of n_bins by a first pass over 2000 rows and columns: a quarter wider
    than their scores on either side. n_groups: of speakers, for intervals; one speaker is a group
    where there are no more. about: for reports. UserError for no target or no nontarget pair, and
    for vectors that cannot be scored.
    """
    place = {name: at for at, name in enumerate(sort_ids({*enrol.speakers, *trial.speakers}))}
    if same_gender:
        _check_genders(enrol, trial)
    groups = _draw_groups(len(place), n_groups, seed)
    n_groups = int(groups.max()) + 1
    (left_order, rows), (right_order, columns) = (
        _order(side, place, groups, same_gender) for side in (enrol, trial)
    )
    cells = tuple(
        PairCell(own, others, (group, other))
        for (gender, group), own in rows.items()
        for (gender_there, other), others in columns.items()
        if gender == gender_there
    )
    first, last, same = mates = _mates(enrol, trial, left_order, right_order)
    n_mates, n_same = int((last - first).sum()), int((same >= 0).sum())
    numbers = {"target": n_mates - n_same, "nontarget": sum(c.n_pairs for c in cells) - n_mates}
    for kind, number in numbers.items():
        if number <= 0:
            raise UserError(f"no {kind} pair among {len(enrol)} enrolments and {len(trial)} trials")
    info = {
        "n_speakers": len(place),
        "n_enrol": len(enrol),
        "n_enrol_utterances": int(enrol.counts.sum()),
        "n_trial": len(trial),
        "n_target": numbers["target"],
        "n_nontarget": numbers["nontarget"],
        "n_same_utterance": n_same,
        "same_gender": same_gender,
        "n_groups": n_groups,
        "seed": seed,
        **(about or {}),
    }
    backend = shorten(backend, enrol.counts)
    left = _rows(backend.left, enrol, left_order)
    right = _rows(lambda x, _: backend.right(x), trial, right_order)
    longest = [np.einsum("nk,nk->n", x, x, dtype=np.float64).max() for x in (left, right)]
    if not (most := float(np.sqrt(np.prod(longest)))) < _LONGEST:
        raise UserError(f"scores up to {most:.3g} are too large; is the back end the right one?")
    sides = Sides(left, right, *mates)
    return PairPlan(sides, bins or _find_range(sides, n_bins, seed), cells, n_groups, info)


def _check_genders(enrol: PairSide, trial: PairSide) -> None:
    of: dict[str, str] = {}
    for side in (enrol, trial):
        if side.genders is None:
            raise UserError("pairs of one gender only: genders (spk2gender) are needed")
        for speaker, gender in zip(side.speakers, side.genders, strict=True):
            if of.setdefault(speaker, gender) != gender:
                raise UserError(f"speaker {speaker}: enrolment and trials give different genders")


def _draw_groups(n_speakers: int, n_groups: int, seed: int) -> Int64:
    """Group of each speaker, (S,): equally large ones at random; with few speakers one each."""
    if n_groups < 2:
        raise UserError(f"{n_groups} groups of speakers: 2 or more are needed")
    if n_speakers <= n_groups:
        return np.arange(n_speakers)
    return make_rng(seed, "groups of speakers").permutation(np.arange(n_speakers) % n_groups)


def _order(
    side: PairSide, place: Mapping[str, int], groups: Int64, same_gender: bool
) -> tuple[list[int], dict[tuple[str, int], tuple[int, int]]]:
    """Order of the rows, and which of them, from and up to, are of a gender and group."""
    genders = side.genders if same_gender and side.genders else [""] * len(side)
    keys = [
        (gender, int(groups[place[speaker]]), place[speaker], utt.encode())
        for gender, speaker, utt in zip(genders, side.speakers, side.ids, strict=True)
    ]
    order = sorted(range(len(side)), key=keys.__getitem__)
    return order, _stretches_of([keys[row][:2] for row in order])


def _stretches_of(keys: Sequence[Any]) -> dict[Any, tuple[int, int]]:
    """Places, from and up to, of equal keys that stand side by side."""
    found: dict[Any, tuple[int, int]] = {}
    for at, key in enumerate(keys):
        found[key] = found.get(key, (at, at))[0], at + 1
    return found


def _mates(
    enrol: PairSide, trial: PairSide, left_order: Sequence[int], right_order: Sequence[int]
) -> tuple[Int64, Int64, Int64]:
    """Find first, last and same of `Sides`."""
    of = _stretches_of([trial.speakers[row] for row in right_order])
    column = {trial.ids[row]: at for at, row in enumerate(right_order)}
    first, last = np.array([of.get(enrol.speakers[row], (0, 0)) for row in left_order]).T.copy()
    own = {} if enrol.averaged else column
    same = np.array([own.get(enrol.ids[row], -1) for row in left_order])
    if (wrong := (same >= 0) & ((same < first) | (same >= last))).any():
        utt = enrol.ids[left_order[int(np.argmax(wrong))]]
        raise UserError(f"utterance {utt}: enrolment and trials give it different speakers")
    return first, last, same


def _rows(
    make: Callable[[Float64, Float64], Float64], side: PairSide, order: Sequence[int]
) -> Float32:
    """Rows of inner products (n, k) in order."""
    parts = []
    for start in range(0, len(order), _ROWS_AT_ONCE):
        some = order[start : start + _ROWS_AT_ONCE]
        stack = np.stack([side.vectors[row] for row in some]).astype(np.float64)
        parts.append(make(stack, side.counts[some]).astype(np.float32))
    return np.concatenate(parts)


def _find_range(sides: Sides, n_bins: int, seed: int) -> Bins:
    """Scores of the first pass: some rows with some columns and with their own speakers'."""
    rng = make_rng(seed, "first pass")
    rows, columns = (
        np.sort(rng.permutation(len(side))[:_SAMPLED]) for side in (sides.left, sides.right)
    )
    scores = sides.left[rows] @ sides.right[columns].T
    mates = rows[sides.first[rows] < sides.last[rows]]
    own = np.einsum("nk,nk->n", sides.left[mates], sides.right[sides.first[mates]])
    every = np.concatenate([scores.ravel(), own]).astype(np.float64)
    low, high = float(every.min()), float(every.max())
    margin = 0.25 * (high - low) or max(1e-3, 1e-3 * abs(low))
    return Bins(low - margin, high + margin, n_bins)


# ---- Counting: cell by cell, several at a time; a killed count goes on.


@dataclass(eq=False)
class Total:
    """Counts of the first `done` cells of a plan. coarse: (cells, 2, n_coarse + 2) by cell,
    nontargets and targets."""

    plan: PairPlan
    counts: ScoreCounts
    coarse: Int64
    done: int = 0


def count_pairs(
    plan: PairPlan,
    *,
    checkpoint: Path | None = None,
    every: float = 60.0,
    nj: int = 1,
    wrap: Callable[[Iterable[PairCell]], Iterable[PairCell]] = iter,
) -> Total:
    """Count all pairs, nj cells at a time.

    checkpoint: a file that is written every so many seconds; if it exists, its cells are not
    counted again. wrap: shows progress. UserError for a checkpoint of another plan.
    """
    n_coarse = -(-plan.bins.n // COARSE)
    coarse = np.zeros((len(plan.cells), 2, n_coarse + 2), np.int64)
    total = Total(plan, ScoreCounts.empty(plan.bins), coarse)
    if checkpoint and is_there(checkpoint):
        _resume(total, checkpoint)
    written, digest = time.monotonic(), plan.digest if checkpoint else ""
    with ThreadPoolExecutor(nj) as pool:
        left = plan.cells[total.done :]
        made = pool.map(lambda cell: count_cell(plan.sides, cell, plan.bins), left)
        try:
            for _, counts in zip(wrap(left), made, strict=True):
                total.counts.add(counts)
                total.coarse[total.done] = coarsen(counts.places)
                total.done += 1
                if checkpoint and time.monotonic() - written >= every:
                    with atomic_write(checkpoint, "wb") as stream:
                        np.savez(
                            stream, digest=digest, done=total.done, places=total.counts.places,
                            extremes=total.counts.extremes, coarse=total.coarse,
                        )  # fmt: skip
                    written = time.monotonic()
        finally:  # after an error, such as a full disk, nobody counts on
            pool.shutdown(cancel_futures=True)
    counted = total.counts.places.sum(axis=1).tolist()
    if counted != [plan.info["n_nontarget"], plan.info["n_target"]]:
        raise UserError(f"{checkpoint}: other numbers of pairs, {counted}; delete it, count again")
    return total


def _resume(total: Total, path: Path) -> None:
    """Take over the counts of a checkpoint; UserError if it is of another plan or damaged."""
    data = read_bytes(path)
    try:
        with np.load(io.BytesIO(data)) as file:
            found = {name: file[name] for name in file.files}
        fits = str(found["digest"]) == total.plan.digest
        places, extremes, coarse = (found[name] for name in ("places", "extremes", "coarse"))
        fits &= coarse.shape == total.coarse.shape
        total.counts, total.coarse = ScoreCounts(places, extremes), coarse
        total.done = int(found["done"])
    except Exception as error:  # NumPy and zipfile raise many kinds for a damaged file
        raise UserError(f"{path}: no counts ({error}); delete it and count again") from error
    if not fits:
        raise UserError(f"{path}: counts of other x-vectors or with other options; delete it")


def coarsen(places: Int64) -> Int64:
    """Merge (2, n + 2) to (2, n / 16 + 2): each 16 bins together, the two outside kept apart."""
    inner = np.add.reduceat(places[:, 1:-1], np.arange(0, places.shape[1] - 2, COARSE), axis=1)
    return np.hstack([places[:, :1], inner, places[:, -1:]])


def count_cell(sides: Sides, cell: PairCell, bins: Bins) -> ScoreCounts:
    """Count scores of a cell on the processor; all must be finite.

    The tiles depend on the cell only, so the counts are the same in every part.
    """
    counts = ScoreCounts.empty(bins)
    scale = np.float32(bins.n / (bins.high - bins.low))
    place = np.empty(TILE, np.int32)
    tile = np.empty(TILE * TILE, np.float32)
    for rows in _stretches(cell.rows, TILE):
        for columns in _stretches(cell.columns, TILE):
            start = columns.start
            shape = (rows.stop - rows.start, columns.stop - start)
            scores = tile[: shape[0] * shape[1]].reshape(shape)
            np.matmul(sides.left[rows], sides.right[columns].T, out=scores)
            _count_tile(
                *(scores, sides.first[rows] - start, sides.last[rows] - start),
                *(sides.same[rows] - start, np.float32(bins.low), scale, np.int32(bins.n)),
                *(place, counts.places, counts.extremes),
            )
    return counts


def _stretches(ends: tuple[int, int], most: int) -> Iterator[slice]:
    """Cut into equally long ranges, of at most so many; a narrow last tile would be slow."""
    number = -(-(ends[1] - ends[0]) // most)
    at = [ends[0] + (ends[1] - ends[0]) * i // number for i in range(number + 1)]
    yield from (slice(a, b) for a, b in pairwise(at))


def _jit(function: Callable[..., Any]) -> Callable[..., Any]:
    return numba.njit(cache=True, nogil=True)(function)


@_jit
def _place(score: np.float32, low: np.float32, scale: np.float32, n_bins: np.int32) -> np.int32:
    """Place of a score, 0 to n_bins + 1; compiled to vector instructions where it is called."""
    at = (score - low) * scale
    at = at if at > np.float32(-1.0) else np.float32(-1.0)
    at = at if at < np.float32(n_bins) else np.float32(n_bins)
    return np.int32(at + np.float32(1.0))  # + 1 before rounding down: values below 0 are below


@_jit
def _widen(extremes: Float32, scores: Float32, left_out: int) -> None:
    """Include scores (c,), except the one at `left_out`, in extremes (2,)."""
    lowest, highest = extremes[0], extremes[1]
    for c in range(scores.shape[0]):
        if c != left_out:
            lowest = scores[c] if scores[c] < lowest else lowest
            highest = scores[c] if scores[c] > highest else highest
    extremes[0], extremes[1] = lowest, highest


@_jit
def _count_tile(
    scores: Float32,
    first: Int64,
    last: Int64,
    same: Int64,
    low: np.float32,
    scale: np.float32,
    n_bins: np.int32,
    place: npt.NDArray[np.int32],
    places: Int64,
    extremes: Float32,
) -> None:
    """Add a tile (r, c) to places (2, n_bins + 2) and extremes (2, 2).

    first, last, same: (r,) columns of the tile, which may lie outside it. place: buffer of c.
    """
    n_columns = scores.shape[1]
    for r in range(scores.shape[0]):
        row = scores[r]
        lowest, highest = n_bins + 1, np.int32(0)
        for c in range(n_columns):  # compiled to vector instructions
            p = _place(row[c], low, scale, n_bins)
            place[c] = p
            lowest = min(lowest, p)
            highest = max(highest, p)
        for c in range(n_columns):
            places[0, place[c]] += 1
        begin, end = max(first[r], 0), min(last[r], n_columns)
        for c in range(begin, end):
            places[0, place[c]] -= 1
            if c != same[r]:
                places[1, place[c]] += 1
        # Exact extremes are searched only where a row reaches the place of those so far.
        if begin < end:
            _widen(extremes[0], row[:begin], -1)
            _widen(extremes[1], row[begin:end], same[r] - begin)
            _widen(extremes[0], row[end:], -1)
        elif lowest <= _place(extremes[0, 0], low, scale, n_bins) or highest >= _place(
            extremes[0, 1], low, scale, n_bins
        ):
            _widen(extremes[0], row, -1)
