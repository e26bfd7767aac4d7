"""Histograms of the scores of all pairs, by tiles: no score is stored.

Scores are inner products of rows and columns (`steps/speaker/backends.py`), in float32. Columns are
sorted by speaker, so that a row's target pairs are one range of columns.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from utils.arrays import Float32, Float64, Int64
from utils.cli import UserError

NONTARGET, TARGET = 0, 1
TILE = 512  # rows and columns of a tile: a float32 tile of 1 MB stays in the cache of a core
GPU_TILE = 8192


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
    same: (n,) the column of the same utterance, which is no trial and is excluded; -1: none.
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


def count_cell_torch(sides: Any, cell: PairCell, bins: Bins) -> ScoreCounts:
    """Count as `count_cell` with torch, on the device of the tensors of `sides` (`to_device`).

    Scores differ from those of the processor by float32's rounding, and so may single counts.
    """
    import torch

    counts = ScoreCounts.empty(bins)
    scale = bins.n / (bins.high - bins.low)
    for rows in _stretches(cell.rows, GPU_TILE):
        for columns in _stretches(cell.columns, GPU_TILE):
            scores = sides.left[rows] @ sides.right[columns].T
            place = ((scores - bins.low) * scale).clamp_(-1, bins.n).add_(1).int()
            every = torch.arange(columns.start, columns.stop, device=scores.device)
            mate = (every >= sides.first[rows, None]) & (every < sides.last[rows, None])
            trial = every != sides.same[rows, None]
            for kind, mask in ((NONTARGET, ~mate), (TARGET, mate & trial)):
                if found := int(mask.sum()):
                    some = scores[mask] if found < mask.numel() else scores
                    of = place[mask] if found < mask.numel() else place.ravel()
                    part = torch.bincount(of, minlength=bins.n + 2).cpu().numpy()
                    counts.places[kind] += part
                    low, high = (float(x) for x in torch.aminmax(some))
                    counts.extremes[kind, 0] = min(counts.extremes[kind, 0], low)
                    counts.extremes[kind, 1] = max(counts.extremes[kind, 1], high)
    return counts


def to_device(sides: Sides, device: str) -> Any:
    """Sides as tensors on a device of torch; float32 products, not TensorFloat-32."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    names = ("left", "right", "first", "last", "same")
    return type("Tensors", (), {n: torch.tensor(getattr(sides, n), device=device) for n in names})


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
