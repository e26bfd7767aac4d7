"""Pairs of segments: similarity matrices, de-identification, distinctiveness, and their gains."""

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from local.metrics import detection
from local.metrics.detection import Ranking
from local.metrics.intervals import (
    Figures,
    Report,
    bootstrap,
    count_labels,
    number_names,
    pair_weights,
    warn_undefined,
)
from local.metrics.verification import Speakers, by_trial, check_known
from utils.arrays import Bool, Float64, Int64
from utils.cli import UserError
from utils.tables import StrPath, sort_ids
from utils.trials import Ids, Trials, line_of

# ---- Scored pairs of segments and their speakers: the checked input of the similarity matrices.

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
    for side in (enrol, trial):
        check_known(trials, side, utt2spk.keys(), trials_path, utt2spk_path)
    both = Ids.of((*enrol.names, *trial.names))
    names, place = number_names(utt2spk[name] for name in both)
    row, column = by_trial(place, enrol, trial)
    same = row == column
    if (wrong := trials.target != same).any():
        i = int(np.argmax(wrong))
        label, who = ("target", "different speakers")
        if same[i]:
            label, who = ("nontarget", "the same speaker")
        raise UserError(
            f"{trials_path}:{line_of(trials, i)}: {trials.enrol[i]} {trials.trial[i]} is labelled "
            f"{label}, but {utt2spk_path} gives them {who}"
        )
    keep = np.not_equal(*by_trial(both.codes, enrol, trial))
    for value, label in ((True, "target"), (False, "nontarget")):
        if not (trials.target[keep] == value).any():
            raise UserError(f"{trials_path}:1: no {label} pair of two different utterances")
    return SegmentPairs(
        *(score[keep], trials.target[keep], row[keep], column[keep], names),
        (len(both.names), len(enrol.names), len(trial.names)),
    )


def common_speakers(sets: Mapping[str, SegmentPairs], paths: Mapping[str, StrPath]) -> list[str]:
    """Speakers of every setting, rows and columns alike; UserError if one is missing."""
    sides: dict[str, set[str]] = {}
    for setting, pairs in sets.items():
        rows, columns = (
            {pairs.names[i] for i in set(x.tolist())} for x in (pairs.row, pairs.column)
        )
        path = str(paths[setting])
        both = {f"rows of {path}": rows, f"columns of {path}": columns}
        sides |= both if setting == "op" else {path: rows | columns}
    everyone = set().union(*sides.values())
    for side, speakers in sides.items():
        if missing := sort_ids(everyone - speakers):
            raise UserError(
                f"{side}: no pair of speaker {missing[0]}, whom another list has"
                + (f" (nor of {len(missing) - 1} more)" if len(missing) > 1 else "")
                + "; OO, OP and PP must hold the same speakers"
            )
    return sort_ids(everyone)


def _count_cells(pairs: SegmentPairs, n_speakers: int, *, symmetric: bool) -> Int64:
    """Pairs of each cell, (S, S), both orders for a symmetric setting."""
    cell = pairs.row * n_speakers + pairs.column
    count = np.bincount(cell, minlength=n_speakers**2).reshape(n_speakers, n_speakers)
    return count + count.T if symmetric else count


def check_cells(pairs: SegmentPairs, trials_path: StrPath, *, symmetric: bool) -> None:
    """Raise a UserError that names the speakers of a cell without pairs; warn of missing pairs."""
    empty = np.argwhere(_count_cells(pairs, len(pairs.names), symmetric=symmetric) == 0).tolist()
    if empty:
        a, b = min(empty, key=lambda cell: cell[0] != cell[1])  # the diagonal first
        one, other = pairs.names[a], pairs.names[b]
        raise UserError(
            f"{trials_path}: speaker {one} has no pair of two different segments, hence no "
            "similarity with itself; a speaker needs two segments or more"
            if a == b
            else f"{trials_path}: no pair of speakers {one} and {other}; score all pairs"
        )
    both, rows, columns = pairs.n_segments
    once = both * (both - 1) // 2
    complete = [once, 2 * once] if symmetric else [rows * columns - (rows + columns - both)]
    if len(pairs.score) not in complete:
        wanted, n = " or ".join(map(str, complete)), len(pairs.score)
        logger.warning(f"{trials_path}: {n} pairs of {both} segments, where {wanted} are complete")


# ---- Voice similarity matrices, de-identification and voice distinctiveness.
#
# Sources: Noé et al. 2020, Eq. 2 to 5; Noé et al. 2022, Eq. 6 to 10, 17 to 20, section 4.3. Three
# settings: OO original against original segments, OP original (rows) against protected (columns),
# PP protected against protected. M_OP is not symmetric (both papers err here); M_OO and M_PP are,
# so a pair of these counts for the cells of both orders.

SETTINGS = ("oo", "op", "pp")
FLAT = 1e-12  # a diagonal dominance (or disclosure) below this is rounding error


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
    """Sort the pairs of a setting once; no cell may be empty (see `check_cells`)."""
    ranking = detection.rank(pairs.score, pairs.target)
    cell = (pairs.row * n_speakers + pairs.column)[ranking.order]
    n_in_cell = _count_cells(pairs, n_speakers, symmetric=symmetric).astype(np.float64)
    return Setting(ranking, cell, n_in_cell, symmetric)


def assess(setting: Setting, drawn: Float64 | None = None) -> Assessment | None:
    """Calibrate a setting on its own pooled pairs and average by cell.

    drawn: (S,) how often a resample holds each speaker; None if it leaves no target or no nontarget
    pair. Cells of speakers that are not drawn hold values without meaning.
    """
    weight = None if drawn is None else pair_weights(drawn, setting.cell)
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
        d_ece=detection.d_ece(*plain.weighed),
        cllr_min=detection.cllr(*plain.weighed),
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


def dominance(sims: Mapping[str, Float64], suffix: str, drawn: Float64 | None) -> Figures:
    """Diagonal dominance in OO, OP and PP, its loss (Eq. 9) and its gain (Eq. 10)."""
    d = {setting: d_diag(sim, drawn) for setting, sim in sims.items()}
    return {
        f"deid{suffix}": loss(d["op"], d["oo"]),
        f"g_vd{suffix}": gain_db(d["pp"], d["oo"]),
        **{f"d_diag{suffix}_{setting}": value for setting, value in d.items()},
    }


def disclosure(e: Mapping[str, float], c: Mapping[str, float], suffix: str = "") -> Figures:
    """D_ECE and C_llr^min, their losses and their gains (Noé et al. 2022, Eq. 17 to 20).

    e, c: both figures of three settings: originals, originals against protected, protected.
    """
    oo, mixed, protected = e
    return {
        **{f"d_ece_{setting}": value for setting, value in e.items()},
        **{f"cllr_min_{setting}": value for setting, value in c.items()},
        f"d_ece_{mixed}_{oo}": loss(e[mixed], e[oo]),  # Eq. 17
        # Eq. 18: (C_OP − C_OO)/(1 − C_OO)
        f"cllr_min_{mixed}_{oo}": loss(1.0 - c[mixed], 1.0 - c[oo]),
        f"g_d_ece{suffix}": gain_db(e[protected], e[oo]),  # Eq. 19
        f"g_cllr_min{suffix}": gain_db(1.0 - c[protected], 1.0 - c[oo]),  # Eq. 20
    }


def figures(found: Mapping[str, Assessment], drawn: Float64 | None = None) -> Figures:
    """All single figures, NaN where undefined. found: an assessment for each setting."""
    return {
        **dominance({s: found[s].sim for s in SETTINGS}, "", drawn),
        **dominance({s: found[s].sim2020 for s in SETTINGS}, "_2020", drawn),
        **disclosure(
            {s: found[s].d_ece for s in SETTINGS}, {s: found[s].cllr_min for s in SETTINGS}
        ),
    }


def zoo(setting: Setting, llr: Float64) -> Float64:
    """Zoo coordinates (Noé et al. 2022, section 4.3), (S, 2): the mean calibrated LLR of the target
    pairs and of the impostor pairs of each speaker (row). llr: (S, S) means by cell."""
    own, count = np.diag(llr), setting.n_in_cell
    impostor = (llr * count).sum(axis=1) - own * np.diag(count)
    return np.stack([own, impostor / (count.sum(axis=1) - np.diag(count))], axis=1)


def similarity(sets: Mapping[str, SegmentPairs], names: list[str], **resamples: int) -> Report:
    """All figures of the three settings (keys of the JSON: docs/metrics).

    sets: scored pairs for each of `SETTINGS`, checked; names: speakers in C order. resamples:
    n_bootstrap and seed of `multiplicities`.
    """
    settings = {s: prepare(sets[s], len(names), symmetric=s != "op") for s in SETTINGS}

    def assess_all(drawn: Float64 | None) -> dict[str, Assessment] | None:
        found = {s: one for s in SETTINGS if (one := assess(settings[s], drawn))}
        return found if len(found) == len(SETTINGS) else None

    def evaluate(drawn: Float64) -> Figures | None:
        resampled = assess_all(drawn)
        return figures(resampled, drawn) if resampled else None

    found = assess_all(None)
    if found is None:
        raise ValueError("similarity needs target and nontarget pairs in each setting")
    report: Report = {
        "n_speakers": len(names),
        "n_segments": sets["oo"].n_segments[0],
        "n_segments_protected": sets["pp"].n_segments[0],
    }
    for s, pairs in sets.items():
        report |= count_labels(pairs.target, f"_{s}")
    report |= {**warn_undefined(figures(found), NOTHING_TO_LOSE), **_by_speaker(found, names)}
    for s in SETTINGS:
        report[f"zoo_{s}"] = dict(zip(names, zoo(settings[s], found[s].llr).tolist(), strict=True))
        for kind, matrix in (("sim", found[s].sim), ("sim2020", found[s].sim2020)):
            rows = (dict(zip(names, row, strict=True)) for row in matrix.tolist())
            report[f"{kind}_{s}"] = dict(zip(names, rows, strict=True))
    return report | bootstrap(evaluate, len(names), **resamples)


def _by_speaker(found: Mapping[str, Assessment], names: list[str]) -> Report:
    """DeID of each speaker's row of OP and G_VD of their row of PP: an average may hide a badly
    protected person."""
    rows = {s: np.abs(dominance_of_rows(found[s].sim)).tolist() for s in SETTINGS}
    columns = {f"d_diag_{s}": rows[s] for s in SETTINGS}
    columns["deid"] = list(map(loss, rows["op"], rows["oo"]))
    columns["g_vd"] = list(map(gain_db, rows["pp"], rows["oo"]))
    flat = [name for name, own in zip(names, columns["deid"], strict=True) if math.isnan(own)]
    if flat:
        logger.warning(
            f"deid_per_speaker and g_vd_per_speaker are undefined for {', '.join(flat)}: the "
            "original voice does not stand out from the others"
        )
    return {
        f"{name}_per_speaker": dict(zip(names, values, strict=True))
        for name, values in columns.items()
    }


NOTHING_TO_LOSE = "the original voices cannot be told apart in OO (nothing to lose)"


# ---- Effect of protection on the enrolment-trial lists, relative to unprotected speech.
#
# Source: Noé et al. 2022, Eq. 17 to 20 and Tables 3 and 4. Three settings: OO both sides original,
# OA original enrolment and protected trials (ignorant attacker), AA both protected (lazy-informed
# attacker). `similarity` does so for all pairs of segments; the paper's tables are for lists.


def gain_figures(rankings: Mapping[str, Ranking], weights: Mapping[str, Float64]) -> Figures | None:
    """All single figures, NaN where undefined; None where a list has no target or no nontarget.
    weights: (n_trials,) in ascending order of score, of each list of a resample."""
    d, c = {}, {}
    for s, ranking in rankings.items():
        t, n = ranking.counts(weights.get(s))
        if not (t.any() and n.any()):
            return None
        plain = detection.pav(t, n)
        d[s] = detection.d_ece(*plain.weighed)
        c[s] = detection.cllr(*plain.weighed)
    return disclosure(d, c, "_lists")


def gains(
    scored: Mapping[str, tuple[Trials, Float64]],
    speakers: Mapping[str, Speakers] | None = None,
    **resamples: int,
) -> Report:
    """All figures of the three lists (keys of the JSON: docs/metrics).

    scored: for each of `SETTINGS` trials with targets and nontargets, and scores, (n_trials,) in
    their order. Intervals need `speakers` of each list; a resample draws the same people for all.
    resamples: n_bootstrap and seed of `multiplicities`.
    """
    names = sort_ids({name for found in (speakers or {}).values() for name in found.names})
    cells = {s: _cells(found, names) for s, found in (speakers or {}).items()}
    rankings = {s: detection.rank(y, x.target, cells.get(s)) for s, (x, y) in scored.items()}
    found = gain_figures(rankings, {})
    if found is None:
        raise ValueError("gains needs target and nontarget trials in each list")
    report: Report = {}
    for s, (trials, _) in scored.items():
        report |= count_labels(trials.target, f"_{s}")
    report["n_segments"] = len(Ids.of(scored["oo"][0].trial).names)
    report |= warn_undefined(found, NOTHING_TO_LOSE)
    if speakers is None:
        return report
    for s, own in speakers.items():
        if lacking := sorted(set(names) - set(own.names)):
            logger.warning(
                "%s: no trial of %d of %d speakers (%s first): a gain compares different people",
                *(s.upper(), len(lacking), len(names), lacking[0]),
            )
    ranked = {s: cell[rankings[s].order] for s, cell in cells.items()}

    def evaluate(drawn: Float64) -> Figures | None:
        return gain_figures(rankings, {s: pair_weights(drawn, of) for s, of in ranked.items()})

    report["n_speakers"] = len(names)
    return report | bootstrap(evaluate, len(names), **resamples)


def _cells(found: Speakers, names: list[str]) -> Int64:
    """Both speakers of each trial as one number, by their positions in names."""
    _, at = number_names(found.names, names)
    return np.asarray(at[found.enrol] * len(names) + at[found.trial], np.int64)
