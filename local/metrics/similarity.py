# SPDX-License-Identifier: Apache-2.0
"""Voice similarity matrices, de-identification and voice distinctiveness.

Sources: Noé et al. 2020, Eq. 2 to 5; Noé et al. 2022, Eq. 6 to 10, 17 to 20, section 4.3. Three
settings: OO original against original segments, OP original (rows) against protected (columns), PP
protected against protected. M_OP is not symmetric (both papers err here); M_OO and M_PP are, so a
pair of these counts for the cells of both orders.
"""

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from local.metrics import detection, zebra
from local.metrics.detection import Ranking
from local.metrics.intervals import Figures, interval_report, pair_weights
from local.metrics.pairs import SegmentPairs
from utils.arrays import Float64, Int64

SETTINGS = ("oo", "op", "pp")
FLAT = 1e-12  # a diagonal dominance (or disclosure) below this is rounding error

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Setting:
    """Scored pairs of OO, OP or PP; made by `prepare`.

    cell: (n_pairs,) row speaker · S + column speaker, in ascending order of score; n_in_cell:
    (S, S) pairs of each cell, both orders for a symmetric setting.
    """

    ranking: Ranking
    cell: Int64
    n_in_cell: Float64
    symmetric: bool

    def cell_means(self, value: Float64) -> Float64:
        """Mean over the pairs of each cell, (S, S). value: (n_pairs,) in order of score."""
        shape = self.n_in_cell.shape
        total = np.bincount(self.cell, weights=value, minlength=self.n_in_cell.size).reshape(shape)
        return (total + total.T if self.symmetric else total) / self.n_in_cell


@dataclass(frozen=True, eq=False)
class Assessment:
    """Results of one setting. sim, sim2020 (Noé et al. 2022, 2020), llr: (S, S); rest: `zebra`."""

    sim: Float64
    sim2020: Float64
    llr: Float64
    d_ece: float
    cllr_min: float


def prepare(pairs: SegmentPairs, n_speakers: int, *, symmetric: bool) -> Setting:
    """Sort the pairs of a setting once; no cell may be empty (see `pairs.check_cells`)."""
    ranking = detection.rank(pairs.score, pairs.target)
    cell = (pairs.row * n_speakers + pairs.column)[ranking.order]
    count = np.bincount(cell, minlength=n_speakers**2).reshape(n_speakers, n_speakers)
    n_in_cell = (count + count.T if symmetric else count).astype(np.float64)
    return Setting(ranking, cell, n_in_cell, symmetric)


def assess(setting: Setting, drawn: Float64 | None = None) -> Assessment | None:
    """Calibrate a setting on its own pooled pairs and average by cell.

    drawn: (S,) how often a resample holds each speaker; None if it leaves no target or no nontarget
    pair. Cells of speakers that are not drawn hold values without meaning.
    """
    weight = None if drawn is None else pair_weights(drawn).ravel()[setting.cell]
    t, n = setting.ranking.counts(weight)
    if not (t.any() and n.any()):
        return None
    plain, laplace = detection.pav(t, n), detection.pav(t, n, laplace=True)
    by_run = laplace.by_run(laplace.llr, len(t))
    llr = setting.cell_means(setting.ranking.by_trial(by_run))
    log_sigmoid = setting.cell_means(setting.ranking.by_trial(-detection.softplus(-by_run)))
    return Assessment(
        sim=np.exp(log_sigmoid),  # Noé et al. 2022, Eq. 6: geometric mean of σ(l)
        sim2020=np.exp(-detection.softplus(-llr)),  # Noé et al. 2020, Eq. 2: σ of the mean l
        llr=llr,
        d_ece=zebra.d_ece(plain.llr, plain.t, plain.n),
        cllr_min=detection.cllr(plain.llr, plain.t, plain.n),
    )


def d_diag(m: Float64, drawn: Float64 | None = None) -> float:
    """Diagonal dominance (Noé et al. 2022, Eq. 8): |mean of diagonal − mean of off-diagonal cells|.

    m: (S, S). It averages cells, so each speaker weighs the same; in a resample as often as drawn.
    """
    w = np.ones(len(m)) if drawn is None else drawn
    weight = np.outer(w, w)
    np.fill_diagonal(weight, 0.0)
    return float(abs(w @ np.diag(m) / w.sum() - (weight * m).sum() / weight.sum()))


def dominance_of_rows(m: Float64) -> Float64:
    """Dominance by row, (S,), with its sign: own cell less the mean of the row's other cells."""
    own = np.diag(m)
    return np.asarray(own - (m.sum(axis=1) - own) / (len(m) - 1), np.float64)


def loss(protected: float, original: float) -> float:
    """Loss 1 − protected/original (Noé et al. 2022, Eq. 9, 17); NaN without anything to lose."""
    return 1.0 - protected / original if original >= FLAT else math.nan


def gain_db(protected: float, original: float) -> float:
    """Gain 10 log10(protected/original) in dB (Noé et al. 2022, Eq. 10, 19, 20); −inf at 0."""
    if original < FLAT:
        return math.nan
    return 10.0 * math.log10(protected / original) if protected >= FLAT else -math.inf


def figures(found: Mapping[str, Assessment], drawn: Float64 | None = None) -> Figures:
    """All single figures, NaN where undefined. found: an assessment for each setting."""
    d = {s: d_diag(found[s].sim, drawn) for s in SETTINGS}
    d2020 = {s: d_diag(found[s].sim2020, drawn) for s in SETTINGS}
    e = {s: found[s].d_ece for s in SETTINGS}
    c = {s: found[s].cllr_min for s in SETTINGS}
    return {
        "deid": loss(d["op"], d["oo"]),
        "g_vd": gain_db(d["pp"], d["oo"]),
        **{f"d_diag_{s}": d[s] for s in SETTINGS},
        "deid_2020": loss(d2020["op"], d2020["oo"]),
        "g_vd_2020": gain_db(d2020["pp"], d2020["oo"]),
        **{f"d_diag_2020_{s}": d2020[s] for s in SETTINGS},
        **{f"d_ece_{s}": e[s] for s in SETTINGS},
        **{f"cllr_min_{s}": c[s] for s in SETTINGS},
        "d_ece_op_oo": loss(e["op"], e["oo"]),  # Eq. 17
        "cllr_min_op_oo": loss(1.0 - c["op"], 1.0 - c["oo"]),  # Eq. 18: (C_OP − C_OO)/(1 − C_OO)
        "g_d_ece": gain_db(e["pp"], e["oo"]),  # Eq. 19
        "g_cllr_min": gain_db(1.0 - c["pp"], 1.0 - c["oo"]),  # Eq. 20
    }


def zoo(setting: Setting, llr: Float64) -> Float64:
    """Zoo coordinates (Noé et al. 2022, section 4.3), (S, 2): the mean calibrated LLR of the target
    pairs and of the impostor pairs of each speaker (row). llr: (S, S) means by cell."""
    own, count = np.diag(llr), setting.n_in_cell
    impostor = (llr * count).sum(axis=1) - own * np.diag(count)
    return np.stack([own, impostor / (count.sum(axis=1) - np.diag(count))], axis=1)


def similarity(
    sets: Mapping[str, SegmentPairs],
    names: list[str],
    *,
    n_bootstrap: int = 0,
    seed: int = 0,
) -> dict[str, object]:
    """All figures of the three settings (keys of the JSON: docs/metrics).

    sets: scored pairs for each of `SETTINGS`, checked; names: speakers in C order.
    """
    settings = {s: prepare(sets[s], len(names), symmetric=s != "op") for s in SETTINGS}
    found = _assess_all(settings, None)
    if found is None:
        raise ValueError("similarity needs target and nontarget pairs in each setting")
    report: dict[str, object] = {
        "n_speakers": len(names),
        "n_segments": sets["oo"].n_segments[0],
        "n_segments_protected": sets["pp"].n_segments[0],
        **_counts(sets),
        **with_reasons(figures(found)),
        **_by_speaker(found, names),
    }
    for s in SETTINGS:
        report[f"zoo_{s}"] = dict(zip(names, zoo(settings[s], found[s].llr).tolist(), strict=True))
        report[f"sim_{s}"] = _matrix(found[s].sim, names)
        report[f"sim2020_{s}"] = _matrix(found[s].sim2020, names)
    if n_bootstrap:

        def evaluate(drawn: Float64) -> Figures | None:
            resampled = _assess_all(settings, drawn)
            return figures(resampled, drawn) if resampled else None

        report |= interval_report(evaluate, len(names), n_bootstrap, seed)
    return report


def _assess_all(
    settings: Mapping[str, Setting], drawn: Float64 | None
) -> dict[str, Assessment] | None:
    found = {}
    for name, setting in settings.items():
        assessment = assess(setting, drawn)
        if assessment is None:
            return None
        found[name] = assessment
    return found


def _counts(sets: Mapping[str, SegmentPairs]) -> dict[str, int]:
    counts = {}
    for s, pairs in sets.items():
        counts[f"n_target_{s}"] = int(pairs.target.sum())
        counts[f"n_nontarget_{s}"] = len(pairs.target) - counts[f"n_target_{s}"]
    return counts


def _by_speaker(found: Mapping[str, Assessment], names: list[str]) -> dict[str, object]:
    """DeID of each speaker's row of OP and G_VD of their row of PP: an average may hide a badly
    protected person."""
    rows = {s: np.abs(dominance_of_rows(found[s].sim)).tolist() for s in SETTINGS}
    report: dict[str, object] = {
        f"d_diag_{s}_per_speaker": dict(zip(names, rows[s], strict=True)) for s in SETTINGS
    }
    deid = [loss(op, oo) for op, oo in zip(rows["op"], rows["oo"], strict=True)]
    g_vd = [gain_db(pp, oo) for pp, oo in zip(rows["pp"], rows["oo"], strict=True)]
    flat = [name for name, value in zip(names, deid, strict=True) if math.isnan(value)]
    if flat:
        logger.warning(
            "deid_per_speaker and g_vd_per_speaker are undefined for %s: the original voice does "
            "not stand out from the others",
            ", ".join(flat),
        )
    report["deid_per_speaker"] = dict(zip(names, deid, strict=True))
    report["g_vd_per_speaker"] = dict(zip(names, g_vd, strict=True))
    return report


def with_reasons(values: Figures) -> Figures:
    """Return the figures unchanged; warn of undefined ones."""
    for name, value in values.items():
        if math.isnan(value):
            logger.warning(
                "%s is undefined: the original voices cannot be told apart in OO (nothing to lose)",
                name,
            )
    return values


def _matrix(m: Float64, names: list[str]) -> dict[str, dict[str, float]]:
    return {
        row: dict(zip(names, values, strict=True))
        for row, values in zip(names, m.tolist(), strict=True)
    }
