"""Groups of people: whom the strongest attacker finds best, and by how much."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from local.metrics.inference import FEWEST, LENGTHS, Values
from local.metrics.intervals import count_labels, multiplicities, one_run, percentiles
from local.metrics.recordings import LENGTHS as NUMBERS
from local.metrics.recordings import Heard, Length, group, hear, lowest_eers, shuffle
from local.metrics.verification import Speakers
from utils.arrays import Bool, Float64, Int64
from utils.trials import Trials

BETTER = {"eer": 1.0, "named": -1.0}  # for the people, where it is higher

logger = logging.getLogger(__name__)


def groups(
    trials: Trials,
    scores: Sequence[Sequence[Float64]],
    speakers: Speakers,
    values: Values,
    *,
    n_bootstrap: int = 0,
    seed: int = 0,
) -> dict[str, object]:
    """The lowest EER and the highest share named of all attackers by group of people, the worst
    group by each attribute and its gap (keys of the JSON: docs/metrics/groups.md).

    trials: of all lists together. scores: (n_trials,) of each run of each attacker, over whose runs
    figures are averaged. Intervals resample all people and take the strongest attacker, and one of
    the runs, anew; which group is worst stays. A group of fewer than two people with target trials
    is left out, and a warning says so.
    """
    every = [[hear(trials, run, speakers) for run in runs] for runs in scores]
    first, names = every[0][0], speakers.names
    drawn = multiplicities(len(names), n_bootstrap, seed)
    of_run = one_run(max(map(len, scores)), seed)
    chosen = np.array([of_run() for _ in drawn], np.int64)
    sought = np.isin(np.arange(len(names)), first.person[first.sought])
    report: dict[str, object] = {
        **count_labels(trials.target),
        "n_speakers": int(sought.sum()),
        "n_segments": int(first.sought.sum()),
        "n_attacks": len(scores),
    }
    samples: dict[str, Float64] = {}  # of each figure, (1 + n_bootstrap,)
    members = _members(values, names, sought)
    order = shuffle(first, names, seed)
    for length in LENGTHS:
        heard = [[group(one, order, NUMBERS[length]) for one in runs] for runs in every]
        found = [[one for one in runs if one is not None] for runs in heard]
        for attribute, own in members.items():
            of = {value: _figures(found, who, drawn, chosen) for value, who in own.items()}
            for figure, sign in BETTER.items():
                key = f"{figure}_{length}_recordings"
                samples |= {f"{key}_{attribute}_{v}": one[figure] for v, one in of.items()}
                ranked = sorted(of, key=lambda v: sign * of[v][figure][0])
                worst, best = ranked[0], ranked[-1]
                report[f"worst_{key}_{attribute}"] = worst
                gap = sign * (of[best][figure] - of[worst][figure])
                samples[f"gap_{key}_{attribute}"] = gap
    for attribute, own in members.items():
        report |= {f"people_{attribute}_{value}": int(who.sum()) for value, who in own.items()}
    report |= {key: float(one[0]) for key, one in samples.items()}
    if not n_bootstrap:
        return report
    return report | {"n_bootstrap": n_bootstrap, "intervals": {
        key: list(percentiles(known)) if len(known := one[1:][~np.isnan(one[1:])]) else None
        for key, one in samples.items()
    }}  # fmt: skip


def _members(values: Values, names: Sequence[str], sought: Bool) -> dict[str, dict[str, Bool]]:
    """Who is in each group, (n_people,), by attribute and value; attributes with two groups."""
    found: dict[str, dict[str, Bool]] = {}
    for attribute, table in values.items():
        of = np.array([table.get(who, "") for who in names])
        every = {v: sought & (of == v) for v in sorted({*of[sought].tolist()} - {""})}
        for value, who in every.items():
            if who.sum() < FEWEST:
                logger.warning(
                    "%s %s: left out: %d people with target trials", attribute, value, who.sum()
                )
        kept = {value: who for value, who in every.items() if who.sum() >= FEWEST}
        if len(kept) > 1:
            found[attribute] = kept
    return found


def _figures(
    every: Sequence[Sequence[Heard]], who: Bool, drawn: Float64, chosen: Int64
) -> Mapping[str, Float64]:
    """Figures of all attackers on some people, first as they are, then in each resample."""
    eers, named = [], []
    for runs in every:
        own = [_only(heard, who) for heard in runs]
        eers.append(lowest_eers(own, drawn, chosen))
        shares = np.stack([Length.of(heard, len(who)).share for heard in own])
        known = ~np.isnan(shares[0])
        weight = np.where(known, np.vstack([np.ones(len(who)), drawn]), 0.0)
        with np.errstate(invalid="ignore"):
            of_run = np.nan_to_num(shares) @ weight.T / weight.sum(axis=1)
        run = np.append(0, chosen % len(runs))
        share = of_run[run, np.arange(len(run))]
        share[0] = of_run[:, 0].mean()
        named.append(share)
    return {"eer": np.min(eers, axis=0), "named": np.max(named, axis=0)}


def _only(heard: Heard, who: Bool) -> Heard:
    """Rows of some people, and the candidates that these are compared with."""
    rows = who[heard.person]
    return replace(
        heard, score=heard.score[rows], target=heard.target[rows], person=heard.person[rows]
    )
