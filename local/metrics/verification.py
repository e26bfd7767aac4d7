# SPDX-License-Identifier: Apache-2.0
"""All figures of one trial list: detection, ZEBRA and linkability from one sort, with intervals."""

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from local.metrics import detection, linkability, zebra
from local.metrics.detection import Ranking, folded
from local.metrics.intervals import Figures, interval_report, pair_weights
from utils.arrays import Bool, Float64, Int64
from utils.cli import UserError
from utils.tables import StrPath, sort_ids
from utils.trials import Ids, Trials

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Speakers:
    """Speakers on each side of each trial, as positions in `names` (C order)."""

    names: list[str]
    enrol: Int64
    trial: Int64


def find_speakers(
    trials: Trials, utt2spk: Mapping[str, str], *, trials_path: StrPath, utt2spk_path: StrPath
) -> Speakers:
    """Find the speakers of both sides of a trial list.

    The trial side must be in utt2spk. The enrolment side is an utterance of it, or a speaker of it,
    or else (where no other enrolment is an utterance) a model: of the one speaker of its target
    trials, or, without any, of a separate person.
    """
    enrol, trial = Ids.of(trials.enrol), Ids.of(trials.trial)
    speakers = set(utt2spk.values())
    _check_known(trial, set(utt2spk), trials_path, utt2spk_path)
    if any(name in utt2spk and name not in speakers for name in enrol.names):
        _check_known(enrol, {*utt2spk, *speakers}, trials_path, utt2spk_path)
    trial_spk = [utt2spk[name] for name in trial.names]
    enrol_spk = _enrol_speakers(enrol, trial, trial_spk, trials.target, utt2spk)
    names = sort_ids({*trial_spk, *enrol_spk})
    place = {name: i for i, name in enumerate(names)}
    found = Speakers(
        names,
        np.array([place[name] for name in enrol_spk])[enrol.codes],
        np.array([place[name] for name in trial_spk])[trial.codes],
    )
    _warn_of_odd_targets(found, trials, trials_path)
    return found


def _check_known(column: Ids, known: set[str], path: StrPath, utt2spk_path: StrPath) -> None:
    for code, name in enumerate(column.names):
        if name not in known:
            line = int(np.argmax(column.codes == code)) + 1
            raise UserError(f"{path}:{line}: utterance {name} is not in {utt2spk_path}")


def _enrol_speakers(
    enrol: Ids,
    trial: Ids,
    trial_spk: Sequence[str],
    target: Bool,
    utt2spk: Mapping[str, str],
) -> list[str]:
    speakers = set(utt2spk.values())
    of_model: dict[int, set[str]] = {}
    for pair in set(zip(enrol.codes[target].tolist(), trial.codes[target].tolist(), strict=True)):
        of_model.setdefault(pair[0], set()).add(trial_spk[pair[1]])
    found = []
    for code, name in enumerate(enrol.names):
        heard = of_model.get(code, set())
        if name in utt2spk:
            found.append(utt2spk[name])
        elif name in speakers or len(heard) != 1:
            found.append(name)
        else:
            found.append(next(iter(heard)))
    return found


def _warn_of_odd_targets(found: Speakers, trials: Trials, trials_path: StrPath) -> None:
    odd = trials.target & (found.enrol != found.trial)
    if odd.any():
        i = int(np.argmax(odd))
        logger.warning(
            "%s:%d: target trial %s %s joins speakers %s and %s (as %d of %d target trials do)",
            *(trials_path, i + 1, trials.enrol[i], trials.trial[i]),
            *(found.names[found.enrol[i]], found.names[found.trial[i]]),
            *(int(odd.sum()), int(trials.target.sum())),
        )


@dataclass(frozen=True, eq=False)
class ScoredTrials:
    """Trials ready to be evaluated, as they are or in a resample; made by `prepare`.

    omegas: prior odds of a mated pair for further linkability figures, by the text in their key;
    cost, gain: for each trial in ascending order of score taken as LLR l, softplus(∓l) and Z(±l)
    (upper sign for targets), which no resample changes.
    """

    ranking: Ranking
    omegas: Mapping[str, float]
    cost: Float64
    gain: Float64

    def figures(self, weight: Float64 | None = None) -> Figures | None:
        """All single figures; NaN where undefined, None without targets or nontargets.

        weight: (n_trials,) in ascending order of score, from a resample.
        """
        t, n = self.ranking.counts(weight)
        if not (t.any() and n.any()):
            return None
        counts = Counted(t, n, detection.pav(t, n), detection.pav(t, n, laplace=True))
        found = {name: figure(self, counts, weight) for name, figure in FIGURES.items()}
        return found | self._linkability(weight)

    def balanced_bits(self, value: Float64, weight: Float64 | None) -> float:
        """Mean of the means over targets and over nontargets, converted from nat to bit."""
        every = np.ones(len(value)) if weight is None else weight
        mated = every * self.ranking.target
        both = detection.mean(value, mated) + detection.mean(value, every - mated)
        return both / (2.0 * detection.LN2)

    def _linkability(self, weight: Float64 | None) -> Figures:
        bins = linkability.histograms(self.ranking, weight)
        figures: Figures = {}
        for suffix, omega in {
            "": 1.0,
            **{f"_omega_{x}": v for x, v in self.omegas.items()},
        }.items():
            figures[f"linkability{suffix}"] = linkability.d_sys(bins, omega) if bins else math.nan
            figures[f"linkability_mean{suffix}"] = (
                linkability.d_mean(bins, omega) if bins else math.nan
            )
        return figures

    def of_speakers(self, speaker: Int64, names: Sequence[str]) -> dict[str, float] | None:
        """Linkability of each speaker who has mated scores; None where it is undefined.

        speaker: (n_trials,) of the trial utterance, in input order, as positions in names.
        """
        bins = linkability.histograms(self.ranking)
        if bins is None:
            return None
        d = linkability.by_speaker(bins, self.ranking, speaker, len(names))
        return {
            name: value for name, value in zip(names, d.tolist(), strict=True) if value == value
        }


@dataclass(frozen=True, eq=False)
class Counted:
    """t, n: targets and nontargets by score, ascending; plain, laplace: of `detection.pav`."""

    t: Float64
    n: Float64
    plain: detection.Blocks
    laplace: detection.Blocks


# By key: functions of the trials, their counts, and the weights of a resample.
FIGURES: dict[str, Callable[[ScoredTrials, Counted, Float64 | None], float]] = {
    "eer": lambda _, of, __: detection.eer(of.t, of.n),
    "eer_rocch": lambda _, of, __: detection.eer(of.plain.t, of.plain.n),
    "cllr": lambda trials, _, weight: trials.balanced_bits(trials.cost, weight),
    "cllr_min": lambda _, of, __: detection.cllr(of.plain.llr, of.plain.t, of.plain.n),
    "d_ece": lambda _, of, __: zebra.d_ece(of.plain.llr, of.plain.t, of.plain.n),
    "d_ece_raw": lambda trials, _, weight: trials.balanced_bits(trials.gain, weight),
    "l_w": lambda _, of, __: zebra.l_w(of.laplace),
}


def prepare(
    score: Float64,
    target: Bool,
    omegas: Mapping[str, float] | None = None,
    cell: Int64 | None = None,
) -> ScoredTrials:
    """Sort trials and precompute all that does not depend on a resample. score, target, cell (see
    `detection.rank`): (n_trials,)."""
    ranking = detection.rank(score, target, cell)
    signed = np.where(ranking.target, ranking.score, -ranking.score)
    return ScoredTrials(ranking, omegas or {}, detection.softplus(-signed), zebra.z(signed))


def verification(
    trials: Trials,
    score: Float64,
    *,
    omegas: Mapping[str, float] | None = None,
    speakers: Speakers | None = None,
    n_bins: int | None = None,
    unprotected: Float64 | None = None,
    n_bootstrap: int = 0,
    seed: int = 0,
) -> dict[str, object]:
    """All figures of a trial list with targets and nontargets (keys of the JSON: docs/metrics).

    score: (n_trials,) in the order of `trials`. Figures by speaker and intervals need `speakers`.
    n_bins: adds linkability_bins_<n>, on so many bins, of all trials and by enrolled speaker.
    unprotected: (n_trials,) scores of the same trials before protection, which add `eer_rise`.
    """
    cell = None
    if speakers is not None and n_bootstrap:
        cell = speakers.enrol * len(speakers.names) + speakers.trial
    scored = prepare(score, trials.target, omegas, cell)
    before = None if unprotected is None else detection.rank(unprotected, trials.target, cell)
    figures = _with_rise(scored, before)
    if figures is None:
        raise ValueError("verification needs target and nontarget trials")
    n_target = int(trials.target.sum())
    _warn_of_undefined(figures, n_target)
    report: dict[str, object] = {
        "n_target": n_target,
        "n_nontarget": len(trials) - n_target,
        "n_segments": len(np.unique(Ids.of(trials.trial).codes)),
        **figures,
        "tag": zebra.tag(figures["l_w"]),
        "linkability_per_speaker": None,
    }
    if speakers is None:
        logger.warning("linkability_per_speaker is null: it needs to know the speakers (utt2spk)")
        return report
    report["linkability_per_speaker"] = scored.of_speakers(speakers.trial, speakers.names)
    if report["linkability_per_speaker"] is None:
        logger.warning("linkability_per_speaker is null: linkability is undefined")
    if n_bins:
        report |= _on_bins(scored.ranking, speakers, n_bins)
    report["n_speakers"] = len(speakers.names)
    report["n_target_speakers"] = len(np.unique(speakers.trial[trials.target]))
    if cell is not None:
        report |= _intervals(scored, before, cell, len(speakers.names), n_bootstrap, seed)
    return report


def _with_rise(
    scored: ScoredTrials,
    before: Ranking | None,
    weight: Float64 | None = None,
    weight_before: Float64 | None = None,
) -> Figures | None:
    """Figures of `ScoredTrials.figures`, and the rise of the folded EER above that of `before` in
    the same resample. weight, weight_before: (n_trials,) in ascending order of either score."""
    figures = scored.figures(weight)
    if figures is None or before is None:
        return figures
    bare = detection.eer(*before.counts(weight_before))
    return figures | {"eer_rise": folded(figures["eer"]) - folded(bare)}


def _on_bins(ranking: Ranking, speakers: Speakers, n_bins: int) -> dict[str, object]:
    """D_sys on so many bins: of all trials, and by enrolled speaker (Champion et al. 2021)."""
    bins = linkability.histograms(ranking, n_bins=n_bins)
    own = linkability.by_enrolment(ranking, speakers.enrol, len(speakers.names), n_bins)
    found = {
        name: value
        for name, value in zip(speakers.names, own.tolist(), strict=True)
        if value == value
    }
    name = f"linkability_bins_{n_bins}"
    return {name: linkability.d_sys(bins) if bins else math.nan, f"{name}_per_speaker": found}


def _intervals(
    scored: ScoredTrials,
    before: Ranking | None,
    cell: Int64,
    n_speakers: int,
    n_bootstrap: int,
    seed: int,
) -> dict[str, object]:
    ranked = cell[scored.ranking.order]
    ranked_before = ranked if before is None else cell[before.order]

    def evaluate(drawn: Float64) -> Figures | None:
        weight = pair_weights(drawn).ravel()
        return _with_rise(scored, before, weight[ranked], weight[ranked_before])

    return interval_report(evaluate, n_speakers, n_bootstrap, seed)


def _warn_of_undefined(figures: Figures, n_target: int) -> None:
    fewest = linkability.FEWEST_MATED
    for name, value in figures.items():
        if math.isnan(value):
            why = (
                f"{n_target} mated scores where at least {fewest} are needed"
                if n_target < fewest
                else "all scores are equal, and a bin of no width has no density"
            )
            logger.warning("%s is undefined: %s", name, why)
