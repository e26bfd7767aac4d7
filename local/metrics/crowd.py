"""A crowd of candidates: how surely a recording leads to its person among ever more people."""

import logging
import math
from collections.abc import Iterator, Sequence

import numpy as np
from legal_eval.scoring import cosine_similarity_matrix
from scipy.stats import hypergeom

from local.metrics.intervals import Figures, interval_report
from local.metrics.legal import COSINE_DIGITS, FEWEST_SPEAKERS, AttackSide
from local.metrics.recordings import LENGTHS
from steps.speaker.backends import CentredCosine
from utils.arrays import Float64, Int64
from utils.cli import UserError
from utils.seeds import make_rng
from utils.tables import StrPath, sort_ids

CANDIDATES = (2, 5, 10, 20, 50, 100, 200, 500, 1000)  # and all that there are
RANKS = (1, 5, 10)

logger = logging.getLogger(__name__)


def join(enrol: AttackSide, other: AttackSide, path: StrPath) -> AttackSide:
    """Add people who are candidates only; UserError for a person or an utterance of both."""
    for what, a, b in (
        ("speaker", enrol.spk2utt, other.spk2utt), ("utterance", enrol.vectors, other.vectors),
    ):  # fmt: skip
        if twice := sort_ids(a.keys() & b.keys()):
            raise UserError(f"{path}: {what} {twice[0]} is enrolled, too; name a set of others")
    return AttackSide(enrol.vectors | other.vectors, enrol.spk2utt | other.spk2utt)


def centre(side: AttackSide) -> AttackSide:
    """The same side by vectors of length 1 less the mean of all, of length 1 again."""
    rows = CentredCosine().right(np.array(list(side.vectors.values())))
    return AttackSide(dict(zip(side.vectors, rows, strict=True)), side.spk2utt)


def crowd(
    candidates: AttackSide, trial: AttackSide, *, n_bootstrap: int = 0, seed: int = 0
) -> dict[str, object]:
    """Legal linkability and naming among N candidates by groups of L recordings (keys of the JSON:
    docs/metrics/crowd.md).

    The attacked are those of `trial` who are candidates; others are left out with a warning. Each
    figure is the expectation over the N - 1 others drawn from all candidates.
    """
    people = [who for who in trial.spk2utt if who in candidates.spk2utt]
    if lone := len(trial.spk2utt) - len(people):
        logger.warning("%d speakers without enrolment are left out", lone)
    trial, total = trial.only(people), len(candidates.spk2utt)
    sizes = [*(n for n in CANDIDATES if n < total), total]
    rates: dict[str, Float64] = {}
    for prefixes, sides in (
        ({1: "legal_linkability"}, (candidates, trial)),
        ({k: "named" if k == 1 else f"among_{k}" for k in RANKS},
         (centre(candidates), centre(trial))),
    ):  # fmt: skip
        for name, length in LENGTHS.items():
            found = list(_beaters(*sides, length, seed))
            if sum(len(own) > 0 for own in found) < FEWEST_SPEAKERS:
                logger.warning("%s recordings: fewer than two people have so many", name)
                continue
            for k, prefix in prefixes.items():
                for n in (n for n in sizes if n > k):
                    rates[f"{prefix}_l{name}_n{n}"] = np.array(
                        [chance_of_rank(own, total, n, k) for own in found]
                    )

    def evaluate(drawn: Float64) -> Figures:
        found = {}
        for key, rate in rates.items():
            weight = np.where(np.isnan(rate), 0.0, drawn)
            whole = weight.sum()
            found[key] = float(np.nansum(weight * rate) / whole) if whole else math.nan
        return found

    report: dict[str, object] = {
        "n_speakers": len(people),
        "n_segments": len(trial.vectors),
        "people_candidates": total,
        **evaluate(np.ones(len(people))),
    }
    return report | (interval_report(evaluate, len(people), n_bootstrap, seed) if rates else {})


def chance_of_rank(beaters: Int64, total: int, n: int, k: int) -> float:
    """Mean probability that fewer than k of those who score no lower are among the n - 1 others
    drawn of total - 1; NaN without recordings. beaters: (n_conversations,)."""
    if not len(beaters):
        return math.nan
    return float(hypergeom.cdf(k - 1, total - 1, beaters, n - 1).mean())


def _beaters(candidates: AttackSide, trial: AttackSide, length: int, seed: int) -> Iterator[Int64]:
    """Of each attacked person, the number of other candidates who score as high or higher, for
    each group of `length` recordings (0: one group of all); a tie names nobody."""
    people = list(candidates.spk2utt)
    models = np.array([_mean(candidates, utts) for utts in candidates.spk2utt.values()])
    for who, utts in trial.spk2utt.items():
        size = length or len(utts)
        n = len(utts) // size
        order = make_rng(seed, "crowd", str(length), who).permutation(len(utts))[: n * size]
        if not n:
            yield np.zeros(0, np.int64)
            continue
        heard = np.array([_mean(trial, [utts[i] for i in run]) for run in order.reshape(n, size)])
        score = np.round(cosine_similarity_matrix(models, heard), COSINE_DIGITS)
        yield np.count_nonzero(score >= score[people.index(who)], axis=0) - 1


def _mean(side: AttackSide, utts: Sequence[str]) -> Float64:
    return np.mean([side.vectors[utt] for utt in utts], axis=0)
