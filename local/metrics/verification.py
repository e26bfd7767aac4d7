"""Figures of trial lists: all of one list, calibration on another, and the curves behind them."""

import logging
import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from local.metrics import detection, intervals
from local.metrics.detection import Ranking, folded
from local.metrics.intervals import Report
from utils.arrays import Bool, Float64, Int64
from utils.cli import UserError
from utils.datadir import load_data_dir
from utils.tables import StrPath, read_json_object
from utils.trials import Ids, Trials, join_scores, line_of, read_scores, read_trials

# ---- All figures of one trial list: detection, ZEBRA and linkability from one sort, with
# intervals.

logger = logging.getLogger(__name__)
Pair = tuple[str, str]


@dataclass(frozen=True, eq=False)
class Speakers:
    """Speakers on each side of each trial, as positions in `names` (C order)."""

    names: list[str]
    enrol: Int64
    trial: Int64

    @property
    def cell(self) -> Int64:
        """Both speakers of each trial as one number."""
        return np.asarray(self.enrol * len(self.names) + self.trial, np.int64)


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
    check_known(trials, trial, utt2spk.keys(), trials_path, utt2spk_path)
    if any(name in utt2spk and name not in speakers for name in enrol.names):
        check_known(trials, enrol, {*utt2spk, *speakers}, trials_path, utt2spk_path)
    trial_spk = [utt2spk[name] for name in trial.names]
    heard: dict[int, set[str]] = {}  # enrolment -> speakers of its target trials
    codes = (side.codes[trials.target].tolist() for side in (enrol, trial))
    for model, utt in set(zip(*codes, strict=True)):
        heard.setdefault(model, set()).add(trial_spk[utt])

    def speaker_of(code: int, name: str) -> str:
        own = heard.get(code, set())
        return utt2spk.get(name) or (name if name in speakers or len(own) != 1 else next(iter(own)))

    enrol_spk = [speaker_of(code, name) for code, name in enumerate(enrol.names)]
    names, place = intervals.number_names([*enrol_spk, *trial_spk])
    found = Speakers(names, *by_trial(place, enrol, trial))
    _warn_of_labels(found, trials, trials_path)
    return found


def by_trial(place: Int64, enrol: Ids, trial: Ids) -> tuple[Int64, Int64]:
    """Values of the enrolment's and then of the trial's names, spread to both sides of trials."""
    return place[: len(enrol.names)][enrol.codes], place[len(enrol.names) :][trial.codes]


def check_known(
    trials: Trials, column: Ids, known: Set[str], path: StrPath, utt2spk_path: StrPath
) -> None:
    """Raise a UserError that names the first line of an id of a column that utt2spk lacks."""
    for code, name in enumerate(column.names):
        if name not in known:
            line = line_of(trials, int(np.argmax(column.codes == code)))
            raise UserError(f"{path}:{line}: utterance {name} is not in {utt2spk_path}")


def _warn_of_labels(found: Speakers, trials: Trials, trials_path: StrPath) -> None:
    """Warn of labels that utt2spk contradicts, in both directions, with their number."""
    same = found.enrol == found.trial
    for label, kind, verb in (
        ("target", trials.target, "joins speakers {} and {}"),
        ("nontarget", ~trials.target, "has speaker {} on both sides"),
    ):
        odd = kind & (same != trials.target)
        if odd.any():
            i = int(np.argmax(odd))
            logger.warning(
                "%s:%d: %s trial %s %s %s (as %d of %d %s trials do); correct the label or utt2spk",
                *(trials_path, line_of(trials, i), label, trials.enrol[i], trials.trial[i]),
                verb.format(found.names[found.enrol[i]], found.names[found.trial[i]]),
                *(int(odd.sum()), int(kind.sum()), label),
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

    def figures(self, weight: Float64 | None = None) -> intervals.Figures | None:
        """All single figures; NaN where undefined, None without targets or nontargets.

        weight: (n_trials,) in ascending order of score, from a resample.
        """
        t, n = self.ranking.counts(weight)
        if not (t.any() and n.any()):
            return None
        plain, laplace = detection.pav(t, n), detection.pav(t, n, laplace=True)
        blocks = plain.weighed
        found = {
            "eer": detection.eer(t, n),
            "eer_rocch": detection.eer(plain.t, plain.n),
            "cllr": self.balanced_bits(self.cost, weight),
            "cllr_min": detection.cllr(*blocks),
            "d_ece": detection.d_ece(*blocks),
            "d_ece_raw": self.balanced_bits(self.gain, weight),
            "l_w": detection.l_w(laplace),
        }
        bins = detection.histograms(self.ranking, weight)
        omegas = {"": 1.0} | {f"_omega_{x}": v for x, v in self.omegas.items()}
        for suffix, omega in omegas.items():
            for name, of in (("", detection.d_sys), ("_mean", detection.d_mean)):
                found[f"linkability{name}{suffix}"] = of(bins, omega) if bins else math.nan
        return found

    def balanced_bits(self, value: Float64, weight: Float64 | None) -> float:
        """Mean of the means over targets and over nontargets, converted from nat to bit."""
        every = np.ones(len(value)) if weight is None else weight
        mated = every * self.ranking.target
        both = detection.mean(value, mated) + detection.mean(value, every - mated)
        return both / (2.0 * detection.LN2)

    def of_speakers(self, speaker: Int64, names: Sequence[str]) -> dict[str, float] | None:
        """Linkability of each speaker who has mated scores; None where it is undefined.

        speaker: (n_trials,) of the trial utterance, in input order, as positions in names.
        """
        bins = detection.histograms(self.ranking)
        if bins is None:
            return None
        return _defined(names, detection.by_speaker(bins, self.ranking, speaker, len(names)))


def _defined(names: Sequence[str], values: Float64) -> dict[str, float]:
    """Values by name, without the undefined ones."""
    return {n: v for n, v in zip(names, values.tolist(), strict=True) if not math.isnan(v)}


# A difference that is found in 80 of 100 lists, over half of the width of its 95 % interval.
FOUND = (1.96 + 0.84) / 1.96


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
    return ScoredTrials(ranking, omegas or {}, detection.softplus(-signed), detection.z(signed))


def verification(
    trials: Trials,
    score: Float64,
    *,
    omegas: Mapping[str, float] | None = None,
    speakers: Speakers | None = None,
    n_bins: int | None = None,
    beside: Mapping[str, Float64] | None = None,
    draws: Sequence[Float64] = (),
    challenges: bool = False,
    **resamples: int,
) -> Report:
    """All figures of a trial list with targets and nontargets (keys of the JSON: docs/metrics).

    score: (n_trials,) in the order of `trials`. Figures by speaker and intervals need `speakers`.
    n_bins: adds linkability_bins_<n>, on so many bins, of all trials and by enrolled speaker.
    beside: (n_trials,) other scores of the same trials, by the name of the figure that they add:
    how far the folded EER lies above theirs (`eer_rise`: above that of unprotected speech).
    draws: (n_trials,) each, of further runs of a random system: figures are means over all runs, a
    resample takes one of them, and what is of speakers is of the first. challenges: adds
    `eer_speechbrain` and `eer_kaldi`, without intervals. resamples: of `intervals.resample`.
    """
    cell = speakers.cell if speakers is not None and resamples.get("n_bootstrap") else None
    runs = [_run(trials, run, beside or {}, omegas, cell) for run in (score, *draws)]
    every = [found for _, figures_of in runs if (found := figures_of(None)) is not None]
    if not every:
        raise ValueError("verification needs target and nontarget trials")
    figures = {name: float(np.mean([run[name] for run in every])) for name in every[0]}
    counts = intervals.count_labels(trials.target) | ({"n_draws": len(runs)} if draws else {})
    for name, value in figures.items():
        intervals.warn_undefined({name: value}, _why_undefined(name, counts))
    report: Report = {
        **counts,
        "n_segments": len(np.unique(Ids.of(trials.trial).codes)),
        **{
            intervals.key(name, recordings="1") if name in BY_LENGTH else name: value
            for name, value in figures.items()
        },
        "tag": detection.tag(figures["l_w"]),
        "linkability_per_speaker": None,
    }
    for of in (detection.eer_speechbrain, detection.eer_kaldi) if challenges else ():
        each = [of(run, trials.target) for run in (score, *draws)]
        report[of.__name__] = float(np.mean(each))
    if speakers is None:
        logger.warning("linkability_per_speaker is null: it needs to know the speakers (utt2spk)")
        return report
    report |= _of_people([scored for scored, _ in runs], trials, speakers, n_bins)
    if cell is None:
        return report
    weights, draw = intervals.resample(len(speakers.names), len(runs), **resamples)
    report |= (sure := intervals.interval_report(
        (runs[of][1](own) for own, of in zip(weights, draw.tolist(), strict=True)),
        len(speakers.names),
    ))  # fmt: skip
    if "eer_rise" in figures:
        low, high = sure["intervals"].get("eer_rise") or (math.nan, math.nan)
        least = FOUND * (high - low) / 2.0 if high > low else math.nan
        report |= intervals.warn_undefined(
            {"eer_least_difference": least}, "eer_rise has no interval, or one without width"
        )
    return report


def _of_people(
    runs: Sequence[ScoredTrials], trials: Trials, speakers: Speakers, n_bins: int | None
) -> Report:
    """Figures by speaker, of the first run, with their number."""
    names, first = speakers.names, runs[0]
    linked = first.of_speakers(speakers.trial, names)
    if linked is None:
        logger.warning("linkability_per_speaker is null: linkability is undefined")
    report: Report = {"linkability_per_speaker": linked}
    if n_bins:  # all trials, and by enrolled speaker (Champion et al. 2021)
        own = detection.by_enrolment(first.ranking, speakers.enrol, len(names), n_bins)
        name = intervals.key("linkability_bins", group=n_bins)
        binned = [detection.histograms(run.ranking, n_bins=n_bins) for run in runs]
        report[name] = float(np.mean([detection.d_sys(b) if b else math.nan for b in binned]))
        report[f"{name}_per_speaker"] = _defined(names, own)
    n_targets = len(np.unique(speakers.trial[trials.target]))
    return report | {"n_speakers": len(names), "n_target_speakers": n_targets}


def eer_with_interval(
    trials: Trials, score: Float64, speakers: Speakers, n_bootstrap: int
) -> tuple[float, object]:
    """EER of a trial list with targets and nontargets, and its interval over speakers, alone.

    score: (n_trials,) in the order of `trials`; None where no resample has both kinds.
    """
    ranking = detection.rank(score, trials.target, speakers.cell)
    ranked = speakers.cell[ranking.order]

    def evaluate(drawn: Float64) -> intervals.Figures | None:
        t, n = ranking.counts(intervals.pair_weights(drawn, ranked))
        return {"eer": detection.eer(t, n)} if t.any() and n.any() else None

    report = intervals.bootstrap(evaluate, len(speakers.names), n_bootstrap)
    return detection.eer(*ranking.counts()), report["intervals"].get("eer")


Evaluate = Callable[[Float64 | None], intervals.Figures | None]


def _run(
    trials: Trials, score: Float64, beside: Mapping[str, Float64],
    omegas: Mapping[str, float] | None, cell: Int64 | None,
) -> tuple[ScoredTrials, Evaluate]:  # fmt: skip
    """Scores (n_trials,) of one run of a system, and a function of how often a resample holds each
    speaker: figures of `ScoredTrials.figures`, the EER by scores normalised over candidates, and by
    name how far the folded EER lies above that of the scores beside."""
    further = {NORMALISED: normalise_over_candidates(trials, score), **beside}
    scored = prepare(score, trials.target, omegas, cell)
    rankings = {
        name: detection.rank(values, trials.target, cell)
        for name, values in further.items()
        if values is not None
    }
    every = {"": scored.ranking, **rankings}
    cells = {} if cell is None else {name: cell[of.order] for name, of in every.items()}

    def figures(drawn: Float64 | None) -> intervals.Figures | None:
        weight = {
            name: intervals.pair_weights(drawn, at)
            for name, at in cells.items()
            if drawn is not None
        }
        found = scored.figures(weight.get(""))
        if found is None:
            return None
        eers = {name: detection.eer(*of.counts(weight.get(name))) for name, of in rankings.items()}
        rises = {name: folded(found["eer"]) - folded(eers[name]) for name in beside}
        return found | {NORMALISED: eers.get(NORMALISED, math.nan)} | rises

    return scored, figures


NORMALISED = "eer_normalised"
BY_LENGTH = ("eer", NORMALISED)  # that local/metrics/recordings.py has by number of recordings
LEAST_SPREAD = 1e-12  # of the largest score; less is rounding
DECIMALS = 10  # of normalised scores: a smaller difference is a tie


def normalise_over_candidates(trials: Trials, score: Float64) -> Float64 | None:
    """Normalise scores (n_trials,) over the candidates of each trial utterance.

    It takes away what a pseudo-voice adds to all scores of an utterance. None where an utterance
    has one candidate, where nothing would be left.
    """
    codes = Ids.of(trials.trial).codes
    return None if (np.bincount(codes) < 2).any() else normalise(codes, score)


def normalise(heard: Int64, score: Float64) -> Float64:
    """Scores (n,) less their mean over those of the same recording, over their deviation there (of
    the population); 0 where all are equal, or one is alone. heard: (n,) numbers of recordings.

    >>> normalise(np.array([0, 0, 1, 1, 2]), np.array([1.0, 3.0, 2.0, 2.0, 5.0])).tolist()
    [-1.0, 1.0, 0.0, 0.0, 0.0]
    """
    n = np.maximum(np.bincount(heard), 1)
    small = score / max(float(np.abs(score).max()), 1e-300)  # squares of scores may overflow
    centred = small - (np.bincount(heard, small) / n)[heard]
    spread = np.sqrt(np.bincount(heard, centred**2) / n)
    factor = np.where(spread > LEAST_SPREAD, 1.0 / np.maximum(spread, LEAST_SPREAD), 0.0)
    return np.round(centred * factor[heard], DECIMALS)


def fuse(
    trials: Trials, scores: Sequence[Float64], weights: Sequence[float] | None = None
) -> Float64:
    """Sum (n_trials,) of the scores of several evaluators, each normalised over the candidates and
    multiplied by its weight (left out: 1); 0 for an utterance with one, as a warning says.
    UserError where all have one."""
    codes = Ids.of(trials.trial).codes
    if (alone := np.bincount(codes) < 2).all():
        raise UserError("each utterance has one candidate, over whom no score can be normalised")
    if alone.any():
        n, every = int(alone.sum()), len(alone)
        logger.warning("%d of %d utterances have one candidate: their scores are 0", n, every)
    weighed = zip(weights or [1.0] * len(scores), scores, strict=True)
    return np.sum([weight * normalise(codes, score) for weight, score in weighed], axis=0)


def learn_weights(trials: Trials, scores: Sequence[Float64]) -> list[float]:
    """Weights of several evaluators' scores (n_trials,) in `fuse`, by logistic regression on pairs
    of recordings, each of which is a candidate of the other; targets and nontargets weigh the same.
    """
    from sklearn.linear_model import LogisticRegression

    heard = Ids.of([*trials.trial, *trials.enrol]).codes
    values = np.stack([normalise(heard, np.tile(score, 2)) for score in scores], axis=1)
    model = LogisticRegression(class_weight="balanced")
    return [float(weight) for weight in model.fit(values, np.tile(trials.target, 2)).coef_[0]]


def weigh(held_out: Sequence[tuple[Path, Path]]) -> tuple[list[float], str]:
    """Weights of evaluators, by their folders of steps/score_held_out.py and data directories, and
    an empty text; or no weights, and why there are none.

    A pair is that of the recordings before protection, whichever draw of each was compared.
    """
    tables: list[dict[Pair, tuple[bool, float]]] = []
    for folder, data in held_out:
        told = read_json_object(folder / "held_out.json", "run steps/score_held_out.py")
        if why := str(told["held_out_why_undefined"]):
            return [], f"{folder}: {why}"
        tables.append(_read_pairs(folder, data))
    common = [pair for pair in tables[0] if all(pair in table for table in tables)]
    target = np.array([tables[0][pair][0] for pair in common], dtype=bool)
    if target.all() or not target.any():
        return [], f"{held_out[0][0]} and the others: they have no pairs of both kinds in common"
    left, right = zip(*common, strict=True)
    scores = [np.array([table[pair][1] for pair in common]) for table in tables]
    return learn_weights(Trials(left, right, target), scores), ""


def _read_pairs(folder: Path, data: Path) -> dict[Pair, tuple[bool, float]]:
    """Whether a pair of recordings is of one person, and its score."""
    before = load_data_dir(data, need=("utt2spk",)).tables.get("utt2uniq", {})
    trials = read_trials(folder / "trials")
    scores = join_scores(trials, read_scores(folder / "scores"))
    found: dict[Pair, tuple[bool, float]] = {}
    for one, other, target, score in zip(
        trials.enrol, trials.trial, trials.target, scores, strict=True
    ):
        left, right = sorted((before.get(one, one), before.get(other, other)))
        found[left, right] = bool(target), float(score)
    return found


def _why_undefined(name: str, counts: Mapping[str, int]) -> str:
    fewest, n_target = detection.FEWEST_MATED, counts["n_target"]
    if name == NORMALISED:
        return "an utterance has one candidate, who cannot be compared with others"
    if n_target < fewest:
        return f"{n_target} mated scores where at least {fewest} are needed"
    return "scores are equal or all but, and a bin of no width has no density"


# ---- Calibration by the attacker: a mapping learnt on one run of a safeguard, used on another.
#
# Source: Noé et al. 2022, section 5.3 (Eq. 15 and 16): the scores of run f1 are mapped to LLR by a
# function learnt on run f0, and C_ECE is the D_ECE of the result: zero means a useless mapping,
# below zero a misleading one. Not defined for a deterministic safeguard, whose two runs are one.

# Weight of slope²/2 for scores of unit spread: far below any reported digit, and enough to keep the
# slope finite where the classes of f0 are separable.
RIDGE = 1e-9
_NEWTON_STEPS = 200


@dataclass(frozen=True)
class LinearMap:
    """Linear mapping LLR = slope·score + offset."""

    slope: float
    offset: float

    def __call__(self, score: Float64) -> Float64:
        """LLR of scores of any shape."""
        return self.slope * score + self.offset


def fit_linear(score: Float64, target: Bool) -> LinearMap:
    """Fit the slope and offset that minimise C_llr on these trials (logistic regression).

    Each class weighs one half, so that no database prior is left in the offset. The slope may be
    negative (a reversed score). Newton's method on scores of zero mean and unit spread.
    """
    y = target.astype(np.float64)
    half = 0.5 * (y / y.sum() + (1.0 - y) / (1.0 - y).sum())  # weights of trials, sum 1
    if (score == score[0]).all():
        logger.warning("all scores of f0 are equal: the linear calibration is LLR = 0")
        return LinearMap(0.0, 0.0)
    largest = float(np.abs(score).max())  # squares of scores may overflow
    x = score / largest
    centre = float(half @ x)
    spread = float(np.sqrt(half @ (x - centre) ** 2))
    a, b = _newton((x - centre) / spread, np.where(target, 1.0, -1.0), half)
    return LinearMap(a / spread / largest, b - a * centre / spread)


def _newton(x: Float64, sign: Float64, half: Float64) -> tuple[float, float]:
    """Minimise Σ half·softplus(−sign·(a·x + b)) + RIDGE·a²/2 by damped Newton steps."""
    design = np.stack([x, np.ones_like(x)], axis=1)
    ridge = np.array([RIDGE, 0.0])

    def loss(w: Float64) -> float:
        return float(half @ detection.softplus(-sign * (design @ w)) + 0.5 * w @ (ridge * w))

    w, value = np.zeros(2), loss(np.zeros(2))
    for _ in range(_NEWTON_STEPS):
        wrong = np.exp(-detection.softplus(sign * (design @ w)))  # σ(−sign·l)
        gradient = -design.T @ (half * sign * wrong) + ridge * w
        curvature = (design.T * (half * wrong * (1.0 - wrong))) @ design + np.diag(ridge)
        curvature[1, 1] += 1e-300  # all LLR huge: keep the step defined
        step = np.linalg.solve(curvature, gradient)
        scale = 1.0
        while loss(w - scale * step) > value and scale > 1e-12:
            scale *= 0.5
        w = w - scale * step
        previous, value = value, loss(w)
        if previous - value <= 1e-16 * (1.0 + abs(value)) and abs(gradient).max() < 1e-11:
            break
    return float(w[0]), float(w[1])


def fit_isotonic(score: Float64, target: Bool) -> Callable[[Float64], Float64]:
    """Fit the BOSARIS mapping from scores of any shape to LLR: PAV with one extra target below and
    one extra nontarget above all scores, straight lines between blocks, constant beyond the ends.

    The extra trials make every LLR finite; they count in the prior too, as in BOSARIS: the LLR of a
    block is ln(t/n) − ln((T + 1)/(N + 1)).
    """
    ranking = detection.rank(score, target)
    t, n = ranking.counts()
    t, n = np.concatenate(([1.0], t, [0.0])), np.concatenate(([0.0], n, [1.0]))
    start = detection.pool_adjacent_violators(t, n)
    block_t, block_n = np.add.reduceat(t, start), np.add.reduceat(n, start)
    llr = np.log((block_t * n.sum()) / (block_n * t.sum()))
    first_run = np.maximum(start - 1, 0)  # run 0 stands at place 1, after the extra target
    last_run = np.append(start[1:] - 2, len(ranking.start) - 1)
    first = ranking.start[first_run]
    last = np.append(ranking.start[1:], len(ranking.score))[last_run] - 1
    corner = np.stack([ranking.score[first], ranking.score[last]], axis=1).ravel()
    new = np.concatenate(([True], corner[1:] > corner[:-1]))  # a block may be one score wide
    x, y = corner[new], np.repeat(llr, 2)[new]
    return lambda at: np.interp(at, x, y)


def calibration(target: Bool, score_f0: Float64, score_f1: Float64) -> dict[str, float | None]:
    """All figures of two runs on one trial list (keys of the JSON: docs/metrics).

    target, score_f0, score_f1: (n_trials,), with targets and nontargets.
    """
    order = np.lexsort((score_f1, score_f0, target))  # no last digit depends on that of the file
    target, score_f0, score_f1 = target[order], score_f0[order], score_f1[order]
    y = target.astype(np.float64)
    report: dict[str, float | None] = {**intervals.count_labels(target)}
    for run, score in (("f0", score_f0), ("f1", score_f1)):
        t, n = detection.rank(score, target).counts()
        plain = detection.pav(t, n)
        report[f"d_ece_{run}"] = detection.d_ece(*plain.weighed)
        report[f"l_w_{run}"] = detection.l_w(detection.pav(t, n, laplace=True))
    linear, same = fit_linear(score_f0, target), np.array_equal(score_f0, score_f1)
    isotonic = fit_isotonic(score_f0, target)
    mapped = {"linear": linear(score_f1), "isotonic": isotonic(score_f1), "uncalibrated": score_f1}
    for name, llr in mapped.items():  # Eq. 15: scores of f1 as learnt on f0, and as they are
        report[f"c_ece_{name}"] = None if same else detection.d_ece(llr, y, 1.0 - y)  # Eq. 16
        report[f"cllr_{name}"] = None if same else detection.cllr(llr, y, 1.0 - y)
    report["linear_slope"], report["linear_offset"] = linear.slope, linear.offset
    if same:
        logger.warning(
            "f0 and f1 have the same scores: c_ece_* and cllr_* are not defined for a "
            "deterministic safeguard, whose calibration would be tested on what it was learnt from"
        )
    return report


# ---- Curves behind the figures, for pictures of scores, small enough to keep with the results.
#
# ECE profiles (Noé et al. 2022, Eq. 11 and 12, Fig. 7 and 10), score histograms with the local
# linkability (Champion et al. 2021, section 3.2). Everything rests on the same functions as the
# single figures.

LOG_ODDS = np.linspace(-8.0, 8.0, 161)  # natural log-odds of the prior at which profiles are given

Curve = list[float]


def _profile(llr: Float64, t: Float64, n: Float64) -> Curve:
    return detection.ece(llr, t, n, 1.0 / (1.0 + np.exp(-LOG_ODDS))).tolist()


def prior_profile() -> dict[str, Curve]:
    """ECE of an attacker who hears nothing, over `log_odds` (Noé et al. 2022, Eq. 12)."""
    zero, one = np.zeros(1), np.ones(1)
    return {"log_odds": LOG_ODDS.tolist(), "prior": _profile(zero, one, one)}


def attack(target: Bool, score: Float64) -> Report:
    """Oracle-calibrated ECE profile of a trial list, that of its scores as LLR (Noé et al. 2022,
    Fig. 7), and its score histogram.

    target, score: (n_trials,), both classes present. The histogram has the bins of `linkability`:
    share of mated and of non-mated scores by bin, and D↔; None below 20 mated scores.
    """
    y, ranking, histogram = target.astype(np.float64), detection.rank(score, target), None
    best = detection.pav(*ranking.counts())
    if bins := detection.histograms(ranking):
        low, high = ranking.score[0], ranking.score[-1]
        histogram = {
            "edges": np.linspace(low, high, len(bins.mated) + 1).tolist(),
            "mated": (bins.mated / bins.mated.sum()).tolist(),
            "non_mated": (bins.non_mated / bins.non_mated.sum()).tolist(),
            "linkability": detection.local_linkability(bins).tolist(),
        }
    return {
        "ece": _profile(*best.weighed),
        "ece_actual": _profile(score, y, 1.0 - y),
        "histogram": histogram,
    }
