"""Pairs of segments: similarity matrices, de-identification, distinctiveness, and their gains."""

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from local.metrics import detection
from local.metrics.detection import Ranking
from local.metrics.intervals import Figures, interval_report, pair_weights
from local.metrics.verification import Speakers
from utils.arrays import Bool, Float64, Int64
from utils.cli import UserError
from utils.tables import StrPath, sort_ids
from utils.trials import Ids, Trials

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
        d_ece=detection.d_ece(plain.llr, plain.t, plain.n),
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


# ---- Effect of protection on the enrolment-trial lists, relative to unprotected speech.
#
# Source: Noé et al. 2022, Eq. 17 to 20 and Tables 3 and 4. Three settings: OO both sides original,
# OA original enrolment and protected trials (ignorant attacker), AA both protected (lazy-informed
# attacker). `similarity` does so for all pairs of segments; the paper's tables are for lists.

LIST_SETTINGS = ("oo", "oa", "aa")


def gain_figures(rankings: Mapping[str, Ranking], weights: Mapping[str, Float64]) -> Figures | None:
    """All single figures, NaN where undefined; None where a list has no target or no nontarget.
    weights: (n_trials,) in ascending order of score, of each list of a resample."""
    d, c = {}, {}
    for s, ranking in rankings.items():
        t, n = ranking.counts(weights.get(s))
        if not (t.any() and n.any()):
            return None
        plain = detection.pav(t, n)
        d[s] = detection.d_ece(plain.llr, plain.t, plain.n)
        c[s] = detection.cllr(plain.llr, plain.t, plain.n)
    return {
        **{f"d_ece_{s}": d[s] for s in LIST_SETTINGS},
        **{f"cllr_min_{s}": c[s] for s in LIST_SETTINGS},
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
    found = gain_figures(rankings, {})
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
            return gain_figures(rankings, {s: weight[cell] for s, cell in ranked.items()})

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
