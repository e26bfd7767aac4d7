# SPDX-License-Identifier: Apache-2.0
"""Scores of enrolment-trial lists and of all pairs of segments. Nothing is skipped.

Everything is joined by id, never by position.
"""

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from steps.speaker.averaging import read_xvectors
from steps.speaker.backends import Backend
from utils.archives import read_counts, read_vectors
from utils.arrays import Float32, Float64
from utils.cli import UserError
from utils.tables import StrPath, atomic_write, sort_ids
from utils.trials import Ids, Trials

_PAIRS_AT_ONCE = 1 << 14
_ROWS_AT_ONCE = 256


@dataclass(frozen=True)
class VectorTable:
    """X-vectors by id, their origin, and (for speakers) the number of utterances."""

    vectors: Mapping[str, Float32]
    source: str
    counts: Mapping[str, int] | None = None

    def stack(self, ids: Sequence[str]) -> Float64:
        """X-vectors (n, D) of the given ids."""
        return np.stack([self.vectors[key] for key in ids]).astype(np.float64)

    def count(self, ids: Sequence[str]) -> Float64:
        """Counts (n,) of utterances; 1 where the table is of utterances."""
        return np.array([1 if self.counts is None else self.counts[key] for key in ids], np.float64)

    @property
    def dim(self) -> int:
        """Dimension D."""
        return len(next(iter(self.vectors.values())))


def read_segments(path: Path) -> VectorTable:
    """Read x-vectors of utterances: a folder with xvector.scp, or an .scp or .ark file."""
    vectors = read_xvectors(path) if path.is_dir() else read_vectors(path)
    return VectorTable(vectors, str(path))


def read_enrolment(path: Path) -> VectorTable:
    """Read x-vectors of speakers with counts from a folder; of utterances from an .scp or .ark."""
    if not path.is_dir():
        return read_segments(path)
    vectors = read_xvectors(path, "spk_xvector")
    return VectorTable(vectors, str(path), read_counts(path / "num_utts.ark"))


def score_trials(
    backend: Backend, enrol: VectorTable, trial: VectorTable, trials: Trials
) -> Float64:
    """Compute one score a trial, in the order of the list.

    Raises UserError naming all ids that have no x-vector (or no count), and different dimensions.
    """
    left_ids, right_ids = Ids.of(trials.enrol), Ids.of(trials.trial)
    problems = [
        _missing("enrolment", left_ids.names, enrol.vectors, enrol.source),
        _missing("trial", right_ids.names, trial.vectors, trial.source),
    ]
    if enrol.counts is not None:
        counted = [key for key in left_ids.names if key in enrol.vectors]
        problems.append(_missing("enrolment", counted, enrol.counts, f"num_utts of {enrol.source}"))
    if found := [problem for problem in problems if problem]:
        raise UserError(f"not all trials can be scored: {'; '.join(found)}")
    check_dimensions(backend, enrol, trial)
    left = backend.left(enrol.stack(left_ids.names), enrol.count(left_ids.names))
    right = backend.right(trial.stack(right_ids.names))
    scores = np.empty(len(trials))
    for start in range(0, len(trials), _PAIRS_AT_ONCE):
        part = slice(start, start + _PAIRS_AT_ONCE)
        scores[part] = np.einsum(
            "nk,nk->n", left[left_ids.codes[part]], right[right_ids.codes[part]]
        )
    return scores


def _missing(what: str, ids: Sequence[str], known: Collection[str], source: str) -> str:
    missing = [key for key in ids if key not in known]
    if not missing:
        return ""
    shown = " ".join(missing[:10]) + (" ..." if len(missing) > 10 else "")
    return f"{len(missing)} of {len(ids)} {what} ids are not in {source} ({shown})"


def check_dimensions(backend: Backend, left: VectorTable, right: VectorTable) -> None:
    """Raise a UserError if x-vectors of different encoders meet, or meet another's back end."""
    if left.dim != right.dim:
        raise UserError(
            f"{left.source} has x-vectors of {left.dim} dimensions, {right.source} of {right.dim}; "
            "extract both with one encoder"
        )
    if backend.dim is not None and backend.dim != left.dim:
        raise UserError(
            f"{left.source} has x-vectors of {left.dim} dimensions, the back end is for "
            f"{backend.dim}; it was trained with another encoder"
        )


@dataclass(frozen=True)
class PairBlock:
    """Scores of some rows with all columns; `wanted` (rows, columns) marks the pairs that count."""

    rows: list[str]
    scores: Float64
    wanted: npt.NDArray[np.bool_]


def select_utterances(table: VectorTable, utt2spk: Mapping[str, str]) -> list[str]:
    """Utterances of utt2spk in C order; UserError names those without an x-vector."""
    ids = sort_ids(utt2spk)
    if problem := _missing("segment", ids, table.vectors, table.source):
        raise UserError(f"not all pairs can be scored: {problem}")
    if left_out := len(table.vectors) - len(ids):
        logging.warning(
            "%s: %d x-vectors are of utterances that utt2spk does not list; left out",
            table.source,
            left_out,
        )
    return ids


def score_pairs(
    backend: Backend, rows: VectorTable, columns: VectorTable, ids: Sequence[str], *, once: bool
) -> Iterator[PairBlock]:
    """Score all pairs of `ids`, of the row table with the column table, but none with itself.

    `once`: each unordered pair once (the first id before the second), for equal tables.
    """
    check_dimensions(backend, rows, columns)
    left = backend.left(rows.stack(ids), np.ones(len(ids)))
    right = backend.right(columns.stack(ids))
    places = np.arange(len(ids))
    for start in range(0, len(ids), _ROWS_AT_ONCE):
        block = places[start : start + _ROWS_AT_ONCE]
        scores = left[block] @ right.T
        wanted = block[:, None] < places if once else block[:, None] != places
        yield PairBlock([ids[i] for i in block], scores, wanted)


def write_pairs(
    blocks: Iterator[PairBlock],
    columns: Sequence[str],
    utt2spk: Mapping[str, str],
    trials_path: StrPath,
    scores_path: StrPath,
) -> tuple[int, int]:
    """Write `<row> <column> target|nontarget` and `<row> <column> <score>`; returns both counts.

    Scores have 9 significant digits. Both files are in C order when the ids are; both are atomic,
    scores last.
    """
    names = np.array(columns, dtype=object)
    speakers = np.array([utt2spk[utt] for utt in columns])
    n_target = n_pairs = 0
    with atomic_write(scores_path) as scores, atomic_write(trials_path) as trials:
        for block in blocks:
            if not np.isfinite(block.scores).all():
                raise UserError(f"{scores_path}: a score of {block.rows[0]} ... is not finite")
            for row, values, wanted in zip(block.rows, block.scores, block.wanted, strict=True):
                others = names[wanted].tolist()
                target = (speakers[wanted] == utt2spk[row]).tolist()
                trials.write(
                    "".join(
                        f"{row} {other} {'target' if same else 'nontarget'}\n"
                        for other, same in zip(others, target, strict=True)
                    )
                )
                scores.write(
                    "".join(
                        f"{row} {other} {value:.9g}\n"
                        for other, value in zip(others, values[wanted].tolist(), strict=True)
                    )
                )
                n_target += sum(target)
                n_pairs += len(others)
    return n_target, n_pairs - n_target
