# SPDX-License-Identifier: Apache-2.0
"""Scored pairs of segments and their speakers: the checked input of the similarity matrices."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from utils.arrays import Bool, Float64, Int64
from utils.cli import UserError
from utils.tables import StrPath, sort_ids
from utils.trials import Ids, Trials

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class SegmentPairs:
    """Pairs of different segments, (n_pairs,) each.

    row, column: speakers, as positions in `names`; n_segments: distinct segments of
    rows and columns together, of rows, of columns.
    """

    score: Float64
    target: Bool
    row: Int64
    column: Int64
    names: list[str]
    n_segments: tuple[int, int, int]


def segment_pairs(
    trials: Trials,
    score: Float64,
    utt2spk: Mapping[str, str],
    *,
    trials_path: StrPath,
    utt2spk_path: StrPath,
) -> SegmentPairs:
    """Look up the speakers of scored pairs and drop pairs of one utterance with itself.

    UserError, with the line, for an utterance that is not in utt2spk and for a label that disagrees
    with it; and for a list without target or without nontarget pairs.
    """
    enrol, trial = Ids.of(trials.enrol), Ids.of(trials.trial)
    where = (trials_path, utt2spk_path)
    names = sort_ids({utt2spk[name] for name in (*enrol.names, *trial.names) if name in utt2spk})
    place = {name: i for i, name in enumerate(names)}
    row = _speakers(enrol, utt2spk, place, where)
    column = _speakers(trial, utt2spk, place, where)
    _check_labels(trials, row == column, where)
    utterance = {name: i for i, name in enumerate(dict.fromkeys((*enrol.names, *trial.names)))}
    of_row = np.array([utterance[name] for name in enrol.names])[enrol.codes]
    of_column = np.array([utterance[name] for name in trial.names])[trial.codes]
    keep = of_row != of_column
    for value, label in ((True, "target"), (False, "nontarget")):
        if not (trials.target[keep] == value).any():
            raise UserError(f"{trials_path}:1: no {label} pair of two different utterances")
    return SegmentPairs(
        *(score[keep], trials.target[keep], row[keep], column[keep], names),
        (len(utterance), len(enrol.names), len(trial.names)),
    )


def _speakers(
    column: Ids,
    utt2spk: Mapping[str, str],
    place: Mapping[str, int],
    where: tuple[StrPath, StrPath],
) -> Int64:
    for code, name in enumerate(column.names):
        if name not in utt2spk:
            line = int(np.argmax(column.codes == code)) + 1
            raise UserError(f"{where[0]}:{line}: utterance {name} is not in {where[1]}")
    return np.array([place[utt2spk[name]] for name in column.names])[column.codes]


def _check_labels(trials: Trials, same: Bool, where: tuple[StrPath, StrPath]) -> None:
    wrong = trials.target != same
    if wrong.any():
        i = int(np.argmax(wrong))
        label = "target" if trials.target[i] else "nontarget"
        speakers = "the same speaker" if same[i] else "different speakers"
        raise UserError(
            f"{where[0]}:{i + 1}: {trials.enrol[i]} {trials.trial[i]} is labelled {label}, but "
            f"{where[1]} gives them {speakers}"
        )


def common_speakers(sets: Mapping[str, SegmentPairs], paths: Mapping[str, StrPath]) -> list[str]:
    """Speakers of every setting, rows and columns alike; UserError if one is missing."""
    sides = {}
    for setting, pairs in sets.items():
        names = np.array(pairs.names)
        rows, columns = set(names[np.unique(pairs.row)]), set(names[np.unique(pairs.column)])
        if setting == "op":
            sides[f"rows of {paths[setting]}"] = rows
            sides[f"columns of {paths[setting]}"] = columns
        else:
            sides[f"{paths[setting]}"] = rows | columns
    everyone = set().union(*sides.values())
    for side, speakers in sides.items():
        missing = sort_ids(str(name) for name in everyone - speakers)
        if missing:
            raise UserError(
                f"{side}: no pair of speaker {missing[0]}, whom another list has"
                + (f" (nor of {len(missing) - 1} more)" if len(missing) > 1 else "")
                + "; OO, OP and PP must hold the same speakers"
            )
    return sort_ids(str(name) for name in everyone)


def check_cells(pairs: SegmentPairs, trials_path: StrPath, *, symmetric: bool) -> None:
    """Raise a UserError that names the speakers of a cell without pairs; warn of missing pairs."""
    n = len(pairs.names)
    count = np.bincount(pairs.row * n + pairs.column, minlength=n * n).reshape(n, n)
    if symmetric:
        count = count + count.T
    empty = np.argwhere(count == 0)
    for a, b in empty[np.argsort(empty[:, 0] != empty[:, 1], kind="stable")]:
        one, other = pairs.names[a], pairs.names[b]
        if a == b:
            raise UserError(
                f"{trials_path}: speaker {one} has no pair of two different segments, hence no "
                "similarity with itself; a speaker needs two segments or more"
            )
        raise UserError(f"{trials_path}: no pair of speakers {one} and {other}; score all pairs")
    _warn_of_missing_pairs(pairs, trials_path, symmetric=symmetric)


def _warn_of_missing_pairs(pairs: SegmentPairs, path: StrPath, *, symmetric: bool) -> None:
    both, rows, columns = pairs.n_segments
    if symmetric:
        complete = {both * (both - 1) // 2, both * (both - 1)}
    else:
        complete = {rows * columns - (rows + columns - both)}
    if len(pairs.score) not in complete:
        logger.warning(
            "%s: %d pairs of %d segments, where %s are complete",
            *(path, len(pairs.score), both),
            " or ".join(str(count) for count in sorted(complete)),
        )
