#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Do generators of pseudo-speakers differ in speech (Liu et al. 2025, Tables I and II)?

EGS is a corpus folder after `./run.sh --systems "bn_random bn_average bn_psd bn_wgan bn_idmap_mlp
bn_idmap_diff" --attackers "... semi_informed_backend" --evaluators "... ENCODER/plda"`. Every
resample draws people, the same for all systems; women's and men's figures are averaged. OUT.csv has
a row a figure, a column a system, in the paper's order of EER; then of each but the first:

  eer    of the semi-informed attacker's back end, in points
  g_vd   gain of voice distinctiveness by PLDA, in dB
  eer: bn_... less each  how far IDMap leads, with intervals that hold for all systems at once
  order  Kendall's tau of the EERs with the paper's order

Rules, written before the figures were seen (docs/papers/004.md). IDMap hides best where its best
generator (diff) has a higher EER than each other one; it does not where for one of them the
interval of the lead ends below 3 points (the paper's smallest: 4.3). The paper's order holds in
kind where tau's interval lies above 0, unless a pair is reversed with an interval apart from 0 (of
all pairs at once): then it does not hold. IDMap keeps voices more distinct where diff's lead in
G_VD is above 0 for each; it does not where over one real speaker it ends below 1 dB (the paper's:
2.2). Intervals are over people: each has a pseudo-speaker drawn anew, the network is one.

  benchmarks/compare_generators.py EGS EVALUATION ENCODER OUT.csv
"""

import math
import sys
from pathlib import Path

import numpy as np
from scipy import stats

from benchmarks.compare_targets import N_BOOTSTRAP, cell, eers
from benchmarks.measuring import show
from local.metrics.intervals import multiplicities
from local.metrics.similarity import assess, d_diag, gain_db, prepare, segment_pairs
from utils.arrays import Float64
from utils.tables import read_map
from utils.trials import join_scores, read_scores, read_trials

SYSTEMS = ("idmap_diff", "idmap_mlp", "psd", "wgan", "random", "average")  # the paper's order
HEAD = ("figure", *(f"bn_{name}" for name in SYSTEMS))
PAIRS = [(i, j) for i in range(len(SYSTEMS)) for j in range(i + 1, len(SYSTEMS))]


def gains(scores: Path, split: str, evaluator: str, utt2spk: Path, seed: int) -> Float64:
    """G_VD in dB (1 + N_BOOTSTRAP, systems), of all people and of the same drawn ones."""
    folders = [scores / f"original/similarity.{evaluator}/OO/{split}"]
    folders += [scores / f"bn_{name}/similarity.{evaluator}/PP/{split}" for name in SYSTEMS]
    settings, people = [], read_map(utt2spk)
    for folder in folders:
        path = folder / "trials"
        read = read_trials(path)
        score = join_scores(read, read_scores(folder / "scores"), scores_path=folder / "scores")
        pairs = segment_pairs(read, score, people, trials_path=path, utt2spk_path=utt2spk)
        assert sorted(pairs.names) == pairs.names == sorted(set(people.values()))
        settings.append(prepare(pairs, len(pairs.names), symmetric=True))
    drawn = [None, *multiplicities(len(set(people.values())), N_BOOTSTRAP, seed)]
    found = np.full((len(drawn), len(SYSTEMS)), math.nan)
    for row, weight in enumerate(drawn):
        each = [assess(setting, weight) for setting in settings]
        original, *others = (math.nan if one is None else d_diag(one.sim, weight) for one in each)
        found[row] = [gain_db(one, original) for one in others]
    return found


def leads(values: Float64, pairs: list[tuple[int, int]]) -> list[tuple[float, float, float]]:
    """Differences of pairs of columns, each with 95 % intervals that hold for all pairs at once."""
    gap = np.stack([values[:, a] - values[:, b] for a, b in pairs], axis=1)
    width = np.nanpercentile(np.nanmax(np.abs(gap[1:] - gap[0]), axis=1), 95)
    return [(float(one), float(one - width), float(one + width)) for one in gap[0]]


def compare(name: str, values: Float64) -> list[list[str]]:
    """Rows of a figure: by system, and by how much the two of IDMap lead."""
    rows = [[name, *(cell(column) for column in values.T)]]
    for lead in (0, 1):
        others = [i for i in range(len(SYSTEMS)) if i != lead]
        found = dict(zip(others, leads(values, [(lead, i) for i in others]), strict=True))
        texts = (
            "{:.1f} [{:.1f}, {:.1f}]".format(*found[i]) if i in found else "" for i in range(6)
        )
        rows.append([f"{name}: bn_{SYSTEMS[lead]} less each", *texts])
    return rows


def order(values: Float64) -> list[str]:
    """Kendall's tau with the paper's order, and which pairs are surely reversed."""
    tau = np.array([stats.kendalltau(-np.arange(len(SYSTEMS)), row).statistic for row in values])
    low, high = np.nanpercentile(tau[1:], [2.5, 97.5])
    turned = [
        f"{SYSTEMS[b]} above {SYSTEMS[a]}"
        for (a, b), (_, _, end) in zip(PAIRS, leads(values, PAIRS), strict=True)
        if end < 0
    ]
    text = "; ".join(turned) or "none"
    return [f"order: tau {tau[0]:.2f} [{low:.2f}, {high:.2f}]; reversed: {text}", *[""] * 6]


def main() -> int:
    """Compute, print, write."""
    if len(sys.argv) != 5:
        sys.exit(f"{__doc__}")
    egs, evaluation, evaluator = Path(sys.argv[1]), sys.argv[2], f"{sys.argv[3]}+plda"
    equal_errors, distinct = [], []
    for seed, gender in enumerate("fm"):
        trials, split = egs / f"data/{evaluation}_trials_{gender}/trials", f"{evaluation}_{gender}"
        attack = f"semi_informed_backend.{evaluator}/AA/{split}/scores"
        files = [egs / f"exp/scores/bn_{name}/{attack}" for name in SYSTEMS]
        equal_errors.append(eers(trials, files, seed))
        people = trials.with_name("utt2spk")
        distinct.append(gains(egs / "exp/scores", split, evaluator, people, seed))
    eer, g_vd = (np.mean(lists, axis=0) for lists in (equal_errors, distinct))
    rows = [*compare("eer", eer), *compare("g_vd", g_vd), order(eer)]
    show(Path(sys.argv[4]), [HEAD, *rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
