"""All pairs of two sets of x-vectors, however many: planned once, counted in parts.

A plan is a folder: left.npy and right.npy (float32, in the order of the plan, read as they are by
every part), index.npz and plan.json. Both sides stand by gender (where only pairs of one gender are
trials), by group of speakers, by speaker, by utterance. A pair of groups is a cell; a part counts
some of the cells and records its progress.
"""

import hashlib
import io
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from steps.populations.tiles import (
    Bins,
    PairCell,
    ScoreCounts,
    Sides,
    count_cell,
    count_cell_torch,
    to_device,
)
from steps.speaker.backends import Backend, VectorTable, check_dimensions, read_segments, shorten
from steps.speaker.vectors import average_by_speaker, check_complete
from utils.arrays import Float32, Float64, Int64
from utils.cli import UserError
from utils.datadir import load_data_dir
from utils.seeds import make_rng
from utils.tables import (
    atomic_write,
    file_problem,
    is_there,
    read_bytes,
    read_json_object,
    sort_ids,
    write_json,
)

FORMAT = 1
GROUPS = 32
COARSE = 16  # bins in one of the histograms by cell
_ROWS_AT_ONCE = 4096
_SAMPLED = 2000  # rows and columns scored in the first pass
_LONGEST = 1e30  # of a score, by the lengths of rows and columns; beyond it float32 may overflow


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
            f"{trial[0]}: {len(both)} utterances are tried and enrolled, as {min(both)}: the mean "
            "of a speaker has what is tried against it; take them out of one side"
        )
    return sides[0], sides[1]


Segments = dict[tuple[str, int], tuple[int, int]]
"""Rows (or columns) of the speakers of a gender and group, from and up to."""


@dataclass(frozen=True, eq=False)
class PairPlan:
    """Plan of a count, made by `make_plan` or read by `load_plan`.

    info: of plan.json, for reports: numbers of speakers and utterances, bins, back end, options.
    """

    sides: Sides
    bins: Bins
    cells: tuple[PairCell, ...]
    n_groups: int
    info: Mapping[str, Any]

    def part(self, part: int, n_parts: int) -> tuple[PairCell, ...]:
        """Cells of part 1 to n_parts: neighbours, about equally many pairs in each part."""
        if not 1 <= part <= n_parts:
            raise UserError(f"part {part} of {n_parts}: there is none")
        pairs = np.array([planned.n_pairs for planned in self.cells], np.float64)
        middle = np.cumsum(pairs) - 0.5 * pairs
        owner = np.minimum((middle / pairs.sum() * n_parts).astype(int), n_parts - 1)
        mine = zip(self.cells, owner, strict=True)
        return tuple(planned for planned, one in mine if one == part - 1)


def make_plan(
    enrol: PairSide,
    trial: PairSide,
    backend: Backend,
    *,
    folder: Path | None = None,
    bins: Bins | None = None,
    n_bins: int = 1 << 16,
    same_gender: bool = False,
    n_groups: int = GROUPS,
    seed: int = 0,
    about: Mapping[str, object] | None = None,
) -> PairPlan:
    """Order both sides, turn x-vectors into rows of inner products, choose bins and cells.

    folder: for the plan (None: in memory). bins: None finds a range of n_bins by a first pass over
    2000 rows and columns: a quarter wider than their scores on either side. n_groups: of speakers,
    for intervals; one speaker is a group where there are no more. about: for reports. UserError for
    no target or no nontarget pair, and for vectors that cannot be scored.
    """
    names = sort_ids({*enrol.speakers, *trial.speakers})
    if same_gender:
        _check_genders(enrol, trial)
    groups = _draw_groups(names, n_groups, seed)
    left_order, left_of = _order(enrol, names, groups, same_gender)
    right_order, right_of = _order(trial, names, groups, same_gender)
    cells = _cells(left_of, right_of)
    places = _mates(enrol, trial, left_order, right_order)
    info = {
        "format": FORMAT,
        "n_speakers": len(names),
        **_count_pairs(enrol, trial, places, cells),
        "same_gender": same_gender,
        "n_groups": int(groups.max()) + 1,
        "seed": seed,
        **(about or {}),
    }
    backend = shorten(backend, enrol.counts)
    left = _rows(backend.left, enrol, left_order)
    right = _rows(lambda x, _: backend.right(x), trial, right_order)
    _check_lengths(left, right)
    sides = Sides(left, right, *places)
    bins = bins or _find_range(sides, n_bins, seed)
    plan = PairPlan(sides, bins, cells, int(groups.max()) + 1, info)
    if folder is not None:
        _write_plan(folder, plan)
    return plan


def _count_pairs(
    enrol: PairSide,
    trial: PairSide,
    places: tuple[Int64, Int64, Int64],
    cells: Sequence[PairCell],
) -> dict[str, int]:
    """Numbers for plan.json; UserError without any pair to compare."""
    first, last, same = places
    n_mates, n_same = int((last - first).sum()), int((same >= 0).sum())
    n_pairs = sum(planned.n_pairs for planned in cells)
    n_target, n_nontarget = n_mates - n_same, n_pairs - n_mates
    for kind, number in (("target", n_target), ("nontarget", n_nontarget)):
        if number <= 0:
            raise UserError(f"no {kind} pair among {len(enrol)} enrolments and {len(trial)} trials")
    return {
        "n_enrol": len(enrol),
        "n_enrol_utterances": int(enrol.counts.sum()),
        "n_trial": len(trial),
        "n_target": n_target,
        "n_nontarget": n_nontarget,
        "n_same_utterance": n_same,
    }


def _draw_groups(names: Sequence[str], n_groups: int, seed: int) -> Int64:
    """Group of each speaker, (S,): equally large ones at random; with few speakers one each."""
    if n_groups < 2:
        raise UserError(f"{n_groups} groups of speakers: 2 or more are needed")
    if len(names) <= n_groups:
        return np.arange(len(names))
    groups = np.arange(len(names)) % n_groups
    return make_rng(seed, "groups of speakers").permutation(groups)


def _order(
    side: PairSide, names: Sequence[str], groups: Int64, same_gender: bool
) -> tuple[Int64, Segments]:
    """Order rows by gender, group, speaker and id, and find the segments of a gender and group."""
    place = {name: i for i, name in enumerate(names)}
    genders = side.genders if same_gender and side.genders else [""] * len(side)
    code = [place[name] for name in side.speakers]
    keys = [
        (gender, int(groups[spk]), spk, utt.encode())
        for gender, spk, utt in zip(genders, code, side.ids, strict=True)
    ]
    order = sorted(range(len(side)), key=keys.__getitem__)
    segments: Segments = {}
    for at, row in enumerate(order):
        start, _ = segments.get(keys[row][:2], (at, at))
        segments[keys[row][:2]] = start, at + 1
    return np.array(order), segments


def _cells(left: Segments, right: Segments) -> tuple[PairCell, ...]:
    return tuple(
        PairCell(rows, columns, (group, other))
        for (gender, group), rows in left.items()
        for (gender_there, other), columns in right.items()
        if gender == gender_there
    )


def _mates(
    enrol: PairSide,
    trial: PairSide,
    left_order: Int64,
    right_order: Int64,
) -> tuple[Int64, Int64, Int64]:
    """Find first, last and same of `Sides`."""
    of: dict[str, tuple[int, int]] = {}
    for at, row in enumerate(right_order.tolist()):
        of[trial.speakers[row]] = of.get(trial.speakers[row], (at, at))[0], at + 1
    column = {trial.ids[row]: at for at, row in enumerate(right_order.tolist())}
    rows = left_order.tolist()
    first, last = np.array([of.get(enrol.speakers[row], (0, 0)) for row in rows]).T.copy()
    same = np.array([-1 if enrol.averaged else column.get(enrol.ids[row], -1) for row in rows])
    if (wrong := (same >= 0) & ((same < first) | (same >= last))).any():
        utt = enrol.ids[rows[int(np.argmax(wrong))]]
        raise UserError(f"utterance {utt}: enrolment and trials give it different speakers")
    return first, last, same


def _check_genders(enrol: PairSide, trial: PairSide) -> None:
    of: dict[str, str] = {}
    for side in (enrol, trial):
        if side.genders is None:
            raise UserError("pairs of one gender only: genders (spk2gender) are needed")
        for speaker, gender in zip(side.speakers, side.genders, strict=True):
            if of.setdefault(speaker, gender) != gender:
                raise UserError(f"speaker {speaker}: enrolment and trials give different genders")


def _rows(make: Callable[[Float64, Float64], Float64], side: PairSide, order: Int64) -> Float32:
    """Rows of inner products (n, k) in the order of the plan."""
    parts = []
    for start in range(0, len(order), _ROWS_AT_ONCE):
        some = order[start : start + _ROWS_AT_ONCE]
        stack = np.stack([side.vectors[row] for row in some.tolist()]).astype(np.float64)
        parts.append(make(stack, side.counts[some]).astype(np.float32))
    return np.concatenate(parts)


def _check_lengths(left: Float32, right: Float32) -> None:
    """Raise a UserError if a score might not be finite in float32."""
    longest = 1.0
    for rows in (left, right):
        parts = range(0, len(rows), _ROWS_AT_ONCE)
        longest *= max(
            float(np.linalg.norm(rows[i : i + _ROWS_AT_ONCE].astype(np.float64), axis=1).max())
            for i in parts
        )
    if not longest < _LONGEST:
        raise UserError(f"scores up to {longest:.3g} are too large; is the back end the right one?")


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


def _write_plan(folder: Path, plan: PairPlan) -> None:
    """Write left.npy, right.npy and index.npz, then plan.json: a plan is whole only with it."""
    sides = plan.sides
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plan.json").unlink(missing_ok=True)
    np.save(folder / "left.npy", sides.left)
    np.save(folder / "right.npy", sides.right)
    with atomic_write(folder / "index.npz", "wb") as stream:
        np.savez(
            stream,
            first=sides.first,
            last=sides.last,
            same=sides.same,
            cells=[(*planned.rows, *planned.columns) for planned in plan.cells],
            groups=[planned.groups for planned in plan.cells],
        )
    bins = {"low": plan.bins.low, "high": plan.bins.high, "n": plan.bins.n}
    write_json(folder / "plan.json", {**plan.info, "bins": bins, "digest": _digest(plan)})


def _digest(plan: PairPlan) -> str:
    """Digest of all that the counts depend on."""
    digest = hashlib.blake2b(digest_size=16)
    sides = plan.sides
    for array in (sides.left, sides.right, sides.first, sides.last, sides.same):
        digest.update(str(array.shape).encode())
        for start in range(0, len(array), _ROWS_AT_ONCE):
            digest.update(np.ascontiguousarray(array[start : start + _ROWS_AT_ONCE]).tobytes())
    told = {name: value for name, value in plan.info.items() if name not in ("bins", "digest")}
    digest.update(repr((plan.bins, plan.cells, plan.n_groups)).encode())
    digest.update(json.dumps(told, sort_keys=True).encode())
    return digest.hexdigest()


def load_plan(folder: Path) -> PairPlan:
    """Read the plan in a folder; UserError where there is none, or a damaged one."""
    path = folder / "plan.json"
    info = read_json_object(path, "make it again")
    arrays = read_arrays(folder / "index.npz", "make the plan again")
    try:
        files = [folder / f"{name}.npy" for name in ("left", "right")]
        if problem := "".join(map(file_problem, files)):
            raise ValueError(problem)
        left, right = (np.load(file, mmap_mode="r") for file in files)
        if info["format"] != FORMAT:
            raise ValueError(f"format {info['format']}")
        bins = Bins(**info["bins"])
        cells = tuple(
            PairCell((a, b), (c, d), (e, f))
            for (a, b, c, d), (e, f) in zip(
                arrays["cells"].tolist(), arrays["groups"].tolist(), strict=True
            )
        )
        sides = Sides(left, right, *(arrays[name] for name in ("first", "last", "same")))
        plan = PairPlan(sides, bins, cells, int(info["n_groups"]), info)
        if _digest(plan) != info["digest"]:
            raise ValueError("its arrays are not those that it was made with")
    except Exception as error:  # NumPy raises many kinds for a damaged file
        raise UserError(f"{path}: no plan of pairs, or damaged ({error}); make it again") from error
    return plan


def read_arrays(path: Path, mend: str) -> dict[str, np.ndarray[Any, Any]]:
    """Arrays of an .npz file by name."""
    data = read_bytes(path)
    try:
        with np.load(io.BytesIO(data)) as file:
            return {name: file[name] for name in file.files}
    except Exception as error:  # NumPy and zipfile raise many kinds for a damaged file
        raise UserError(f"{path}: cannot be read ({error}); {mend}") from error


@dataclass(eq=False)
class PartCounts:
    """Counts of a part: of its cells so far, in their order.

    counts: of all cells; coarse: (cells, 2, n_coarse + 2) by cell, nontargets and targets.
    """

    counts: ScoreCounts
    coarse: Int64
    done: int = 0


def count_part(
    plan: PairPlan,
    cells: Sequence[PairCell],
    *,
    checkpoint: Path | None = None,
    every: float = 60.0,
    device: str = "",
    wrap: Callable[[Iterable[PairCell]], Iterable[PairCell]] = iter,
) -> PartCounts:
    """Count the pairs of some cells.

    checkpoint: a file that is written every so many seconds and at the end; if it exists, its cells
    are not counted again. device: of torch; empty: the processor, by NumPy. wrap: shows progress.
    UserError for a checkpoint of another plan.
    """
    part = _empty_part(plan, len(cells))
    if checkpoint and is_there(checkpoint):
        part = read_part(checkpoint, plan, len(cells))
    sides: Any = to_device(plan.sides, device) if device else plan.sides
    count = count_cell_torch if device else count_cell
    written = time.monotonic()
    for planned in wrap(cells[part.done :]):
        counts = count(sides, planned, plan.bins)
        part.counts.add(counts)
        part.coarse[part.done] = coarsen(counts.places)
        part.done += 1
        if checkpoint and part.done < len(cells) and time.monotonic() - written >= every:
            _write_part(checkpoint, part, plan)
            written = time.monotonic()
    if checkpoint:
        _write_part(checkpoint, part, plan)
    return part


def coarsen(places: Int64) -> Int64:
    """Merge (2, n + 2) to (2, n / 16 + 2): each 16 bins together, the two outside kept apart."""
    inner = np.add.reduceat(places[:, 1:-1], np.arange(0, places.shape[1] - 2, COARSE), axis=1)
    return np.hstack([places[:, :1], inner, places[:, -1:]])


def _empty_part(plan: PairPlan, n_cells: int) -> PartCounts:
    n_coarse = -(-plan.bins.n // COARSE)
    return PartCounts(ScoreCounts.empty(plan.bins), np.zeros((n_cells, 2, n_coarse + 2), np.int64))


def _write_part(path: Path, part: PartCounts, plan: PairPlan) -> None:
    with atomic_write(path, "wb") as stream:
        np.savez(
            stream,
            digest=plan.info["digest"],
            done=part.done,
            places=part.counts.places,
            extremes=part.counts.extremes,
            coarse=part.coarse,
        )


def read_part(path: Path, plan: PairPlan, n_cells: int) -> PartCounts:
    """Read the result of `count_part`; UserError if it is of another plan or damaged."""
    arrays = read_arrays(path, "delete it and count again")
    try:
        counts = ScoreCounts(arrays["places"], arrays["extremes"])
        found = PartCounts(counts, arrays["coarse"], int(arrays["done"]))
        fits = str(arrays["digest"]) == plan.info["digest"]
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path}: no counts ({error}); delete it and count again") from error
    if not fits or found.coarse.shape != _empty_part(plan, n_cells).coarse.shape:
        raise UserError(f"{path}: counts of another plan or another number of parts; delete it")
    return found


def part_path(folder: Path, part: int, n_parts: int) -> Path:
    """Path of a part's counts."""
    return folder / f"part.{part}.of.{n_parts}.npz"


@dataclass(frozen=True, eq=False)
class Total:
    """All pairs of a plan. coarse: (cells, 2, n_coarse + 2) by cell."""

    plan: PairPlan
    counts: ScoreCounts
    coarse: Int64


def merge_parts(plan: PairPlan, parts: Sequence[PartCounts]) -> Total:
    """Sum of the counts of all parts, in the order of the parts."""
    counts = ScoreCounts.empty(plan.bins)
    for part in parts:
        counts.add(part.counts)
    return Total(plan, counts, np.concatenate([part.coarse for part in parts]))


def read_total(folder: Path, n_parts: int) -> Total:
    """Read all parts of a plan; UserError names the first that is missing or unfinished."""
    plan, parts = load_plan(folder), []
    for number in range(1, n_parts + 1):
        path, cells = part_path(folder, number, n_parts), plan.part(number, n_parts)
        if not path.is_file():
            raise UserError(f"{path}: is missing; count part {number} of {n_parts}")
        parts.append(read_part(path, plan, len(cells)))
        if parts[-1].done < len(cells):
            raise UserError(
                f"{path}: {parts[-1].done} of {len(cells)} cells; count part {number} to its end"
            )
    total = merge_parts(plan, parts)
    found = total.counts.places.sum(axis=1)
    expected = [plan.info["n_nontarget"], plan.info["n_target"]]
    if found.tolist() != expected:
        raise UserError(f"{folder}: {found.tolist()} pairs counted where {expected} are expected")
    return total
