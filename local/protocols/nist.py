# SPDX-License-Identifier: Apache-2.0
"""Trial sets of the NIST study of identity leakage (Seo et al. 2025, 3.1.1, Table 4).

Segments are compared with segments, within a gender unless asked otherwise, never one with itself.

    trial1  original against protected: does protection hide who speaks?     wanted: EER 50 %
    trial2  protected against protected, one profile: is the voice kept?     wanted: EER 0 %
    cross   one speaker; target: profile 1 twice, nontarget: profile 1 and 2 wanted: EER 0 %

trial1 and the nontargets of cross hold every ordered pair, since its two sides differ; trial2 and
the targets of cross hold a pair once. So cross has two nontargets for each target, as in the paper.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from utils.arrays import Bool
from utils.cli import UserError
from utils.tables import sort_ids
from utils.trials import Ids, Trials

PROFILES = ("p1", "p2")


@dataclass(frozen=True)
class Lists:
    """Three trial sets, and utterance-profile -> speaker for the ids of `cross`."""

    trial1: Trials
    trial2: Trials
    cross: Trials
    cross_utt2spk: dict[str, str]


def make_lists(
    utt2spk: Mapping[str, str],
    genders: Mapping[str, str] | None = None,
    sessions: Mapping[str, str] | None = None,
    groups: Mapping[str, str] | None = None,
    durations: Mapping[str, str] | None = None,
) -> Lists:
    """Make the trial sets of all segments in utt2spk.

    genders: by speaker; only speakers of one gender are compared; None: all. sessions: by segment;
    segments of one session are not compared. groups: by speaker (such as age), beside the genders;
    durations: by segment, nominal; only equals are compared. UserError for a segment or speaker
    that a table lacks, and for a set without targets or without nontargets.
    """
    ids = sort_ids(utt2spk)
    same = _equal([utt2spk[utt] for utt in ids])
    wanted = ~np.eye(len(ids), dtype=np.bool_)
    if genders is not None:
        wanted &= _equal(_column("gender", genders, [utt2spk[utt] for utt in ids]))
    if sessions is not None:
        wanted &= ~_equal(_column("session", sessions, ids))
    if groups is not None:
        wanted &= _equal(_column("group", groups, [utt2spk[utt] for utt in ids]))
    if durations is not None:
        wanted &= _equal(_column("nominal duration", durations, ids))
    once = np.triu(wanted)
    first, second = ([f"{utt}-{profile}" for utt in ids] for profile in PROFILES)
    within = _trials(once & same, first, first, target=True)
    between = _trials(wanted & same, first, second, target=False)
    lists = Lists(
        _both(wanted, same, ids),
        _both(once, same, ids),
        _join(within, between),
        {f"{utt}-{profile}": utt2spk[utt] for utt in ids for profile in PROFILES},
    )
    for name in ("trial1", "trial2", "cross"):
        target = getattr(lists, name).target
        if not target.any() or target.all():
            kind = "nontarget" if target.any() else "target"
            raise UserError(
                f"{name}: no {kind} trial can be made of {len(ids)} segments of "
                f"{len(set(utt2spk.values()))} speakers; several segments of several speakers of "
                "one gender are needed"
            )
    return lists


def _column(what: str, table: Mapping[str, str], keys: list[str]) -> list[str]:
    missing = [key for key in keys if key not in table]
    if missing:
        raise UserError(f"{missing[0]}: has no {what}; give it one, or leave the table out")
    return [table[key] for key in keys]


def _equal(names: list[str]) -> Bool:
    codes = Ids.of(names).codes
    return np.asarray(codes[:, None] == codes, np.bool_)


def _trials(wanted: Bool, rows: list[str], columns: list[str], *, target: bool) -> Trials:
    i, j = np.nonzero(wanted)
    return Trials(Ids(i, rows), Ids(j, columns), np.full(len(i), target))


def _both(wanted: Bool, same: Bool, ids: list[str]) -> Trials:
    i, j = np.nonzero(wanted)
    return Trials(Ids(i, ids), Ids(j, ids), same[i, j])


def _join(a: Trials, b: Trials) -> Trials:
    return Trials(
        Ids.of([*a.enrol, *b.enrol]),
        Ids.of([*a.trial, *b.trial]),
        np.concatenate((a.target, b.target)),
    )
