# SPDX-License-Identifier: Apache-2.0
"""Re-identification of a query among the enrolled speakers, from the scores of a trial list.

A query is a trial utterance; the candidates are the enrolled speakers that it is scored against. In
lists of the VoicePrivacy challenges these are all of the utterance's gender. The public code
x-vector-procrustes reports the top-1 rate of the aligned attacker so.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from local.metrics.intervals import Figures, interval_report
from utils.arrays import Float64, Int64
from utils.cli import UserError
from utils.tables import StrPath, sort_ids
from utils.trials import Ids, Trials

RANKS = (1, 3, 5, 10)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Queries:
    """Rank of each query's own speaker among its candidates.

    rank: (n,) 1 + the other candidates that score as high or higher; candidates: (n,) their number;
    speaker: (n,) positions in names.
    """

    rank: Int64
    candidates: Int64
    speaker: Int64
    names: list[str]

    def figures(self, prefix: str, drawn: Float64 | None = None) -> Figures:
        """Shares of queries whose own speaker is among the k best, and the mean rank.

        drawn: (S,) how often a resample holds each speaker.
        """
        weight = np.ones(len(self.rank)) if drawn is None else drawn[self.speaker]
        total = weight.sum()
        top = {f"{prefix}_top_{k}": float(weight @ (self.rank <= k) / total) for k in RANKS}
        return {**top, f"{prefix}_mean_rank": float(weight @ self.rank / total)}

    def chance(self, prefix: str) -> Figures:
        """Chance level of these figures: k of C candidates, and rank (C + 1)/2."""
        c = self.candidates
        top = {f"chance_{prefix}_top_{k}": float((np.minimum(k, c) / c).mean()) for k in RANKS}
        return {**top, f"chance_{prefix}_mean_rank": float((c + 1).mean() / 2)}


def find_queries(
    trials: Trials, score: Float64, utt2spk: Mapping[str, str], *, trials_path: StrPath
) -> tuple[Queries, Queries]:
    """Queries by utterance, and by speaker: their utterances' scores averaged by candidate.

    score: (n_trials,). Utterances without a target trial (their speaker is not enrolled) are left
    out, counted in a warning. UserError for two target trials of one utterance, for an utterance
    that utt2spk lacks, and where nothing is left.
    """
    matrix = _matrix(trials, score)
    enrol, utts = Ids.of(trials.enrol), Ids.of(trials.trial)
    own = np.full(len(utts.names), -1)
    for row in np.flatnonzero(trials.target):
        utt = int(utts.codes[row])
        if own[utt] >= 0:
            raise UserError(
                f"{trials_path}:{row + 1}: {utts.names[utt]} has a second target trial; "
                "re-identification needs one enrolled model a speaker"
            )
        own[utt] = enrol.codes[row]
    missing = [name for name in utts.names if name not in utt2spk]
    if missing:
        raise UserError(f"{trials_path}: {missing[0]} is not in utt2spk")
    if left_out := int((own < 0).sum()):
        logger.warning("%d of %d utterances are of nobody enrolled; left out", left_out, len(own))
    kept = np.flatnonzero(own >= 0)
    if len(kept) == 0:
        raise UserError(f"{trials_path}:1: no target trial, so nobody can be found")
    names = sort_ids({utt2spk[utts.names[i]] for i in kept})
    place = {name: i for i, name in enumerate(names)}
    speaker = np.array([place[utt2spk[utts.names[i]]] for i in kept])
    by_utterance = _rank(matrix[kept], own[kept], speaker, names)
    means, owner = _average(matrix[kept], own[kept], speaker, len(names), names)
    return by_utterance, _rank(means, owner, np.arange(len(names)), names)


def _matrix(trials: Trials, score: Float64) -> Float64:
    """Scores (utterances, enrolled); NaN where a pair is no trial."""
    enrol, utts = Ids.of(trials.enrol), Ids.of(trials.trial)
    matrix = np.full((len(utts.names), len(enrol.names)), np.nan)
    matrix[utts.codes, enrol.codes] = score
    return matrix


def _rank(matrix: Float64, own: Int64, speaker: Int64, names: list[str]) -> Queries:
    mine = matrix[np.arange(len(own)), own]
    # An equal score counts as before the right one: a tie names nobody.
    rank = (matrix >= mine[:, None]).sum(axis=1)
    return Queries(rank, np.isfinite(matrix).sum(axis=1), speaker, names)


def _average(
    matrix: Float64, own: Int64, speaker: Int64, n_speakers: int, names: list[str]
) -> tuple[Float64, Int64]:
    """Scores averaged over each speaker's utterances, for candidates common to all of them."""
    means = np.stack([matrix[speaker == s].mean(axis=0) for s in range(n_speakers)])
    owners = [np.unique(own[speaker == s]) for s in range(n_speakers)]
    for name, found in zip(names, owners, strict=True):
        if len(found) > 1:
            raise UserError(f"{name}: target trials with {len(found)} enrolled speakers")
    return means, np.array([int(found[0]) for found in owners])


def reidentification(
    trials: Trials,
    score: Float64,
    utt2spk: Mapping[str, str],
    *,
    trials_path: StrPath = "trials",
    n_bootstrap: int = 0,
    seed: int = 0,
) -> dict[str, object]:
    """All figures (keys of the JSON: docs/metrics/reidentification.md)."""
    by_utterance, by_speaker = find_queries(trials, score, utt2spk, trials_path=trials_path)
    names = by_utterance.names
    n_target = int(trials.target.sum())
    report: dict[str, object] = {
        "n_target": n_target,
        "n_nontarget": len(trials) - n_target,
        "n_speakers": len(names),
        "n_segments": len(by_utterance.rank),
        "n_candidates": float(by_utterance.candidates.mean()),
    }
    for prefix, queries in (("reid", by_utterance), ("reid_speaker", by_speaker)):
        report |= queries.figures(prefix) | queries.chance(prefix)
    hit = (by_utterance.rank == 1).astype(np.float64)
    who = by_utterance.speaker
    share = np.bincount(who, hit) / np.bincount(who)
    report["reid_top_1_per_speaker"] = dict(zip(names, share.tolist(), strict=True))
    if n_bootstrap:

        def evaluate(drawn: Float64) -> Figures:
            return by_utterance.figures("reid", drawn) | by_speaker.figures("reid_speaker", drawn)

        report |= interval_report(evaluate, len(names), n_bootstrap, seed)
    return report
