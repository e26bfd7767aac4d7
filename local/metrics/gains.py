# SPDX-License-Identifier: Apache-2.0
"""Effect of protection on the enrolment-trial lists, relative to unprotected speech.

Source: Noé et al. 2022, Eq. 17 to 20 and Tables 3 and 4. Three settings: OO both sides original, OA
original enrolment and protected trials (ignorant attacker), AA both protected (lazy-informed
attacker). `similarity` does so for all pairs of segments; the paper's tables are for lists.
"""

import logging
from collections.abc import Mapping

import numpy as np

from local.metrics import detection, zebra
from local.metrics.detection import Ranking
from local.metrics.intervals import Figures, interval_report, pair_weights
from local.metrics.similarity import gain_db, loss, with_reasons
from local.metrics.verification import Speakers
from utils.arrays import Float64, Int64
from utils.tables import sort_ids
from utils.trials import Ids, Trials

SETTINGS = ("oo", "oa", "aa")

logger = logging.getLogger(__name__)


def figures(rankings: Mapping[str, Ranking], weights: Mapping[str, Float64]) -> Figures | None:
    """All single figures, NaN where undefined; None where a list has no target or no nontarget.
    weights: (n_trials,) in ascending order of score, of each list of a resample."""
    d, c = {}, {}
    for s, ranking in rankings.items():
        t, n = ranking.counts(weights.get(s))
        if not (t.any() and n.any()):
            return None
        plain = detection.pav(t, n)
        d[s] = zebra.d_ece(plain.llr, plain.t, plain.n)
        c[s] = detection.cllr(plain.llr, plain.t, plain.n)
    return {
        **{f"d_ece_{s}": d[s] for s in SETTINGS},
        **{f"cllr_min_{s}": c[s] for s in SETTINGS},
        "d_ece_oa_oo": loss(d["oa"], d["oo"]),  # Eq. 17
        "cllr_min_oa_oo": loss(1.0 - c["oa"], 1.0 - c["oo"]),  # Eq. 18: (C_OA − C_OO)/(1 − C_OO)
        "g_d_ece_lists": gain_db(d["aa"], d["oo"]),  # Eq. 19
        "g_cllr_min_lists": gain_db(1.0 - c["aa"], 1.0 - c["oo"]),  # Eq. 20
    }


def gains(
    scored: Mapping[str, tuple[Trials, Float64]],
    speakers: Mapping[str, Speakers] | None = None,
    *,
    n_bootstrap: int = 0,
    seed: int = 0,
) -> dict[str, object]:
    """All figures of the three lists (keys of the JSON: docs/metrics).

    scored: for each of `SETTINGS` trials with targets and nontargets, and scores, (n_trials,) in
    their order. Intervals need `speakers` of each list; a resample draws the same people for all.
    """
    names = sort_ids({name for found in (speakers or {}).values() for name in found.names})
    cells = {s: _cells(found, names) for s, found in (speakers or {}).items()}
    rankings = {s: detection.rank(y, x.target, cells.get(s)) for s, (x, y) in scored.items()}
    found = figures(rankings, {})
    if found is None:
        raise ValueError("gains needs target and nontarget trials in each list")
    report: dict[str, object] = {
        f"n_{'' if value else 'non'}target_{s}": int((trials.target == value).sum())
        for s, (trials, _) in scored.items()
        for value in (True, False)
    }
    report["n_segments"] = len(Ids.of(scored["oo"][0].trial).names)
    report |= with_reasons(found)
    if speakers is None:
        return report
    _warn_of_other_people(speakers, names)
    report["n_speakers"] = len(names)
    if n_bootstrap:
        ranked = {s: cell[rankings[s].order] for s, cell in cells.items()}

        def evaluate(drawn: Float64) -> Figures | None:
            weight = pair_weights(drawn).ravel()
            return figures(rankings, {s: weight[cell] for s, cell in ranked.items()})

        report |= interval_report(evaluate, len(names), n_bootstrap, seed)
    return report


def _cells(found: Speakers, names: list[str]) -> Int64:
    """Both speakers of each trial as one number, by their positions in names."""
    place = {name: i for i, name in enumerate(names)}
    at: Int64 = np.array([place[name] for name in found.names], np.int64)
    return np.asarray(at[found.enrol] * len(names) + at[found.trial], np.int64)


def _warn_of_other_people(speakers: Mapping[str, Speakers], names: list[str]) -> None:
    for s, found in speakers.items():
        if lacking := sorted(set(names) - set(found.names)):
            logger.warning(
                "%s: no trial of %d of %d speakers (%s first): a gain compares different people",
                *(s.upper(), len(lacking), len(names), lacking[0]),
            )
