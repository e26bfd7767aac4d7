#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Do constant target voices differ, do their pitch or their gender hide (Champion et al. 2021)?

SYSTEM is the name of all targets in EGS, where run.sh made for each an attacker who knows it:
bn_const for bn_const_01_of_6 and so on, and _f0 behind those with the target's pitch. The first
half of the targets (rounded up) are women. Every resample draws people, the same for all targets;
where a mean over targets is compared, also targets. Women's and men's differences are averaged,
each weighted by one over its variance. OUT.csv has a row a figure:

  deviation   of the EER over targets, both lists pooled; interval by the chi-square distribution
              of one list, as both have the same targets
  largest     difference between two targets, in points, with the interval that holds for all pairs
              at once; p of the largest one by chance (bootstrap of the centred differences)
  pitch       EER with the target's pitch less that without
  gender      EER with targets of the other gender less that with the own
  unprotected share of people who keep nine tenths of their linkability, mean over targets

Rules, written before the figures were seen (docs/papers): targets are alike where the deviation's
interval ends below 2 points; none is better where all differences lie within 5 points, and one is
where p is below 0.05; pitch and gender do not help where the interval ends below 3 points, and do
where it leaves out 0 above; half are unprotected where the interval of their share holds a half.

  benchmarks/compare_targets.py EGS EVALUATION SYSTEM OUT.csv
"""

import json
import math
import re
import sys
from pathlib import Path

import numpy as np
from scipy import stats

from benchmarks.measuring import show
from local.metrics.detection import eer, rank
from local.metrics.intervals import multiplicities, pair_weights, percentiles
from local.metrics.verification import find_speakers
from utils.arrays import Float64
from utils.seeds import make_rng
from utils.tables import read_map
from utils.trials import join_scores, read_scores, read_trials

N_BOOTSTRAP = 1000
KEPT = 0.9  # of a person's linkability, who is not protected
HEAD = ("figure", "pitch", "women", "men", "both", "targets")


def eers(trials: Path, score_files: list[Path], seed: int) -> Float64:
    """EERs in points (1 + N_BOOTSTRAP, n): of all trials, then of the same people for all files.
    seed: another for each list, or equally many women and men would be drawn alike."""
    read = read_trials(trials)
    utt2spk = trials.with_name("utt2spk")
    who = find_speakers(read, read_map(utt2spk), trials_path=trials, utt2spk_path=utt2spk)
    drawn = multiplicities(len(who.names), N_BOOTSTRAP, seed)
    found = np.full((1 + N_BOOTSTRAP, len(score_files)), math.nan)
    for column, path in enumerate(score_files):
        score = join_scores(read, read_scores(path), scores_path=path)
        ranking = rank(score, read.target, who.cell)
        cells = who.cell[ranking.order]
        found[0, column] = eer(*ranking.counts())
        for row, people in enumerate(drawn, 1):
            t, n = ranking.counts(pair_weights(people, cells))
            if t.any() and n.any():
                found[row, column] = eer(t, n)
    return 100 * found


def joined(women: Float64, men: Float64) -> Float64:
    """Mean of both, (1 + N_BOOTSTRAP,) each, weighted by one over their variance."""
    weight = [1 / np.nanvar(side[1:]) for side in (women, men)]
    return np.asarray((weight[0] * women + weight[1] * men) / sum(weight), np.float64)


def cell(values: Float64) -> str:
    """The figure and its 95 % interval."""
    low, high = percentiles(values[1:][~np.isnan(values[1:])])
    return f"{values[0]:.1f} [{low:.1f}, {high:.1f}]"


def mean_of(values: Float64, name: str) -> Float64:
    """Mean over targets (1 + N_BOOTSTRAP,), where resamples also draw these."""
    rng, n = make_rng(0, f"bootstrap over targets: {name}"), values.shape[1]
    drawn = rng.integers(n, size=(len(values), n))
    drawn[0] = np.arange(n)
    return np.asarray(np.take_along_axis(values, drawn, axis=1).mean(axis=1), np.float64)


def deviation(lists: list[Float64]) -> list[str]:
    """The deviation of each list, and of both with its interval.

    Both lists speak with the same targets, so that their deviations are not independent: the
    degrees of freedom are those of one list.
    """
    each = [float(values[0].std(ddof=1)) for values in lists]
    df, pooled = lists[0].shape[1] - 1, math.sqrt(sum(s**2 for s in each) / len(each))
    low, high = (pooled * math.sqrt(df / stats.chi2.ppf(q, df)) for q in (0.975, 0.025))
    return [*(f"{value:.1f}" for value in each), f"{pooled:.1f} [{low:.1f}, {high:.1f}]"]


def largest(values: Float64) -> str:
    """The largest difference between two targets, its simultaneous interval, p."""
    a, b = np.triu_indices(values.shape[1], 1)
    gap = values[:, a] - values[:, b]
    moved = np.nanmax(np.abs(gap[1:] - gap[0]), axis=1)
    found, width = np.abs(gap[0]).max(), float(np.nanpercentile(moved, 95))
    p = (1 + int((moved >= found).sum())) / (1 + len(moved))
    return f"{found:.1f} [{max(found - width, 0):.1f}, {found + width:.1f}], p {p:.3f}"


def unprotected(metrics: list[tuple[Path, list[Path]]]) -> list[str]:
    """Share of people in each list, and in both with the interval of Clopper and Pearson."""
    kept: list[list[bool]] = []
    for original, systems in metrics:
        before, *after = (
            json.loads(path.read_text())["linkability_per_speaker"] for path in (original, *systems)
        )
        mean = {s: float(np.mean([one[s] for one in after])) for s in before}
        kept.append([mean[s] >= KEPT * before[s] > 0 for s in before])
    every = [one for side in kept for one in side]
    low, high = stats.binomtest(sum(every), len(every)).proportion_ci()
    both = f"{100 * np.mean(every):.0f} [{100 * low:.0f}, {100 * high:.0f}]"
    return [*(f"{100 * np.mean(side):.0f}" for side in kept), both]


def main() -> int:
    """Compute, print, write."""
    if len(sys.argv) != 5:
        sys.exit(f"{__doc__}")
    egs, evaluation, system = Path(sys.argv[1]), *sys.argv[2:4]
    rows, plain, exp = [], {}, egs / "exp"
    for pitch, end in (("the source's", ""), ("the target's", "_f0")):
        lists, measured, count = [], [], ""
        for seed, gender in enumerate("fm"):
            made = exp.glob(f"scores/{system}_*/white_box*/AA/{evaluation}_{gender}/scores")
            name = re.compile(rf"{system}_\d+_of_(\d+){end}")
            counts = {path: m[1] for path in made if (m := name.fullmatch(path.parts[-5]))}
            if not counts:
                break
            found = sorted(counts)
            count = counts[found[0]]
            if len(found) != int(count):
                sys.exit(f"{exp}: {len(found)} attacks on {count} targets{end}, by {gender}")
            n_women = (int(count) + 1) // 2
            lists.append(eers(egs / f"data/{evaluation}_trials_{gender}/trials", found, seed))
            women, men = lists[-1][:, :n_women], lists[-1][:, n_women:]
            more = mean_of(men, "men") - mean_of(women, "women")
            plain["gender", pitch, gender] = more if gender == "f" else -more
            plain["eer", pitch, gender] = lists[-1]
            metrics = [
                Path(str(path.parent).replace("/scores/", "/metrics/"), "metrics.json")
                for path in found
            ]
            (original,) = exp.glob(
                f"metrics/original/unprotected*/OO/{evaluation}_{gender}/metrics.json"
            )
            measured.append((original, metrics))
        if len(lists) < 2:
            continue
        rows.append(["deviation", pitch, *deviation(lists), count])
        rows.append(["largest", pitch, *map(largest, lists), largest(joined_lists(lists)), count])
        sides = [plain["gender", pitch, gender] for gender in "fm"]
        rows.append(["gender", pitch, *map(cell, sides), cell(joined(*sides)), count])
        rows.append(["unprotected", pitch, *unprotected(measured), count])
    if ("eer", "the target's", "m") in plain and ("eer", "the source's", "m") in plain:
        sides = [
            mean_of(plain["eer", "the target's", g] - plain["eer", "the source's", g], "pitch")
            for g in "fm"
        ]
        rows.append(["pitch", "", *map(cell, sides), cell(joined(*sides)), count])
    show(Path(sys.argv[4]), [HEAD, *rows])
    return 0


def joined_lists(lists: list[Float64]) -> Float64:
    """EERs of each target, women's and men's lists averaged by their mean variance."""
    weight = [1 / np.nanvar(values[1:], axis=0).mean() for values in lists]
    women, men = lists
    return np.asarray((weight[0] * women + weight[1] * men) / sum(weight), np.float64)


if __name__ == "__main__":
    sys.exit(main())
