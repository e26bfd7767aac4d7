#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Cost of `verification` on a large trial list, and speed of all metrics of one split.

Goals: 10,458 + 940,567 trials (the size of paper 003) from the files under 5 s of CPU and 1 GB; and
all figures of a VoicePrivacy split (11,744 trials; 734 segments: 269,011 OO, 538,022 OP and 269,011
PP pairs) at least 10 times faster than plain loops over trials and over cells. Both sides of the
second start in memory, the loops with arrays of speaker names, and must give the same figures.
Process CPU time, best of several.
"""

import itertools
import math
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import LEAST, MOST, cost_of_metrics, judge, timed
from local.metrics.similarity import (
    SETTINGS,
    check_cells,
    common_speakers,
    segment_pairs,
    similarity,
)
from local.metrics.verification import verification
from utils.arrays import Float64
from utils.trials import Ids, Trials

GOAL_SECONDS, GOAL_GB, GOAL_RATIO = 5.0, 1.0, 10.0


def large_lists(folder: Path) -> tuple[Path, Path]:
    """Trials in one order and scores in another; 223 speakers, 2,983 segments."""
    rng = np.random.default_rng(0)
    segments = [f"spk{i % 223:03d}-session{i // 223:02d}-{i:05d}" for i in range(2983)]
    keys = rng.permutation(np.unique(rng.integers(0, 2983**2, 2_000_000)))[: 10_458 + 940_567]
    target = rng.permutation(np.arange(len(keys)) < 10_458)
    score = rng.normal(2.0 * target)
    names = [f"{segments[k // 2983]} {segments[k % 2983]}" for k in keys.tolist()]
    with (folder / "trials").open("w") as stream:
        stream.writelines(
            f"{name} {'target' if y else 'nontarget'}\n"
            for name, y in zip(names, target.tolist(), strict=True)
        )
    with (folder / "scores").open("w") as stream:
        stream.writelines(f"{names[i]} {score[i]:.6f}\n" for i in rng.permutation(len(keys)))
    return folder / "trials", folder / "scores"


# --- the plain way ---


def loop_blocks(score: list[float], target: list[bool], laplace: bool) -> list[tuple[Any, ...]]:
    """PAV a trial at a time, tied scores pooled first: (t, n) of each block and its trials."""
    rows = sorted(zip(score, target, range(len(score)), strict=True))
    blocks: list[list[Any]] = [[1, 1, []]] if laplace else []
    last = None
    for s, y, i in rows:
        if s == last:
            blocks[-1][0] += y
            blocks[-1][1] += not y
            blocks[-1][2].append(i)
        else:
            pool(blocks)
            blocks.append([int(y), int(not y), [i]])
        last = s
    pool(blocks)
    if laplace:
        blocks.append([1, 1, []])
        pool(blocks)
    return [tuple(block) for block in blocks]


def pool(blocks: list[list[Any]]) -> None:
    """Pool the last block backwards while the share of targets does not rise."""
    while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] >= blocks[-1][0] * blocks[-2][1]:
        t, n, members = blocks.pop()
        blocks[-1][0] += t
        blocks[-1][1] += n
        blocks[-1][2] += members


def loop_llr(score: list[float], target: list[bool], laplace: bool) -> list[float]:
    """Oracle LLR of each trial."""
    prior = math.log(sum(target) / (len(target) - sum(target)))
    llr = [0.0] * len(score)
    for t, n, members in loop_blocks(score, target, laplace):
        value = math.log(t / n) - prior if t and n else (math.inf if t else -math.inf)
        for i in members:
            llr[i] = value
    return llr


def loop_eer(points: list[tuple[float, float]]) -> float:
    """Crossing of P_miss and P_fa along a ROC."""
    for (m0, f0), (m1, f1) in itertools.pairwise(points):
        if m1 - f1 >= 0:
            share = (f0 - m0) / ((m1 - f1) - (m0 - f0))
            return m0 + share * (m1 - m0)
    raise ValueError("no crossing")


def loop_roc(counts: list[tuple[int, int]]) -> list[tuple[float, float]]:
    """(P_miss, P_fa) from counts in ascending order of score."""
    total_t, total_n = sum(t for t, _ in counts), sum(n for _, n in counts)
    points, t, n = [(0.0, 1.0)], 0, 0
    for dt, dn in counts:
        t, n = t + dt, n + dn
        points.append((t / total_t, (total_n - n) / total_n))
    return points


def z(x: float) -> float:
    """Z(l) of 002, Eq. 13."""
    if abs(x) < 1e-4:
        return x / 3 - x * x / 12
    if x > 300:
        return 0.5
    u = math.expm1(x)
    return 0.5 + (x - u) / u**2


def softplus(x: float) -> float:
    """ln(1 + eˣ)."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def balanced(function: Any, llr: list[float], target: list[bool], sign: int) -> float:
    """Mean of f(±l) over targets + mean of f(∓l) over nontargets, over 2 ln 2."""
    mated = [function(sign * x) for x, y in zip(llr, target, strict=True) if y]
    other = [function(-sign * x) for x, y in zip(llr, target, strict=True) if not y]
    return (sum(mated) / len(mated) + sum(other) / len(other)) / (2 * math.log(2))


def loop_linkability(score: list[float], target: list[bool]) -> float:
    """D_sys with histograms filled a trial at a time."""
    n_mated = sum(target)
    n_bins = min(n_mated // 10, 100)
    edges = np.linspace(min(score), max(score), n_bins + 1).tolist()
    mated, other = [0] * n_bins, [0] * n_bins
    width = edges[1] - edges[0]
    for s, y in zip(score, target, strict=True):
        k = min(int((s - edges[0]) / width), n_bins - 1)
        while k and s < edges[k]:
            k -= 1
        while k < n_bins - 1 and s >= edges[k + 1]:
            k += 1
        (mated if y else other)[k] += 1
    y_ = []
    for m, o in zip(mated, other, strict=True):
        lr = (m / n_mated) / (o / (len(score) - n_mated)) if o else math.inf
        d = 1.0 if not o and m else (2 * lr / (1 + lr) - 1 if o and lr > 1 else 0.0)
        y_.append(d * m / n_mated)
    return sum(a + b for a, b in itertools.pairwise(y_)) / 2


def loop_verification(score: list[float], target: list[bool]) -> dict[str, float]:
    """Every figure of a trial list."""
    plain, worst = loop_llr(score, target, False), loop_llr(score, target, True)
    by_score: dict[float, list[int]] = {}
    for s, y in zip(score, target, strict=True):
        by_score.setdefault(s, [0, 0])[not y] += 1
    ties = [(t, n) for _, (t, n) in sorted(by_score.items())]
    return {
        "eer": loop_eer(loop_roc(ties)),
        "eer_rocch": loop_eer(loop_roc([b[:2] for b in loop_blocks(score, target, False)])),  # type: ignore[misc]
        "cllr": balanced(softplus, score, target, -1),
        "cllr_min": balanced(softplus, plain, target, -1),
        "d_ece": balanced(z, plain, target, 1),
        "d_ece_raw": balanced(z, score, target, 1),
        "l_w": max(abs(x) for x in worst) / math.log(10),
        "linkability": loop_linkability(score, target),
    }


def loop_matrix(
    rows: Any, columns: Any, score: list[float], target: list[bool], symmetric: bool
) -> Float64:
    """Geometric means of σ(LLR), a mask over arrays of names for each cell."""
    names = sorted(set(rows))
    log_sigmoid = np.array([-softplus(-x) for x in loop_llr(score, target, True)])
    matrix = np.empty((len(names), len(names)))
    for i, a in enumerate(names):
        for j, b in enumerate(names[: i + 1] if symmetric else names):
            mask = (rows == a) & (columns == b)
            if symmetric:
                mask |= (rows == b) & (columns == a)
            matrix[i, j] = np.exp(log_sigmoid[mask].mean())
            if symmetric:
                matrix[j, i] = matrix[i, j]
    return matrix


def loop_d_diag(m: Float64) -> float:
    """Mean of the diagonal less mean of the rest, cell by cell."""
    n = len(m)
    own = sum(m[i, i] for i in range(n)) / n
    return abs(own - sum(m[i, j] for i in range(n) for j in range(n) if i != j) / (n * (n - 1)))


# --- one split both ways ---


def split() -> tuple[dict[str, tuple[Trials, Float64]], tuple[Trials, Float64], dict[str, str]]:
    """Pairs of OO, OP and PP, an enrolment–trial list, and utt2spk."""
    rng = np.random.default_rng(1)
    spk = np.sort(np.concatenate([np.arange(20), np.arange(20), rng.integers(0, 20, 694)]))
    utts = [f"s{s:02d}-{i:04d}" for i, s in enumerate(spk.tolist())]
    leak = {"oo": 6.0, "op": 1.0, "pp": 3.0}
    sets = {}
    for s in SETTINGS:
        full = ~np.eye(len(utts), dtype=bool)
        a, b = np.nonzero(full if s == "op" else np.triu(full))
        same = spk[a] == spk[b]
        trials = Trials(Ids(a, utts), Ids(b, utts), same)
        sets[s] = (trials, rng.normal(leak[s] * same, 2.0))
    model, utt = (x.ravel() for x in np.meshgrid(np.arange(16), np.arange(len(utts))))
    same = model == spk[utt]
    trials = Trials(Ids(model, [f"s{i:02d}" for i in range(16)]), Ids(utt, utts), same)
    scored = (trials, rng.normal(2.0 * same, 1.5))
    return sets, scored, {utt: utt[:3] for utt in utts}


def ours(sets: Any, scored: Any, utt2spk: dict[str, str]) -> dict[str, Any]:
    """The project's figures of the split."""
    paths = {s: s for s in SETTINGS}
    pairs = {
        s: segment_pairs(trials, score, utt2spk, trials_path=s, utt2spk_path="utt2spk")
        for s, (trials, score) in sets.items()
    }
    names = common_speakers(pairs, paths)
    for s in SETTINGS:
        check_cells(pairs[s], s, symmetric=s != "op")
    return {**verification(*scored), **similarity(pairs, names)}


def plainly(lists: dict[str, Any], score: list[float], target: list[bool]) -> dict[str, float]:
    """The same by loops. lists: rows, columns, scores, labels of each setting."""
    d = {s: loop_d_diag(loop_matrix(*lists[s])) for s in SETTINGS}
    return {
        **loop_verification(score, target),
        "deid": 1 - d["op"] / d["oo"],
        "g_vd": 10 * math.log10(d["pp"] / d["oo"]),
    }


def for_loops(trials: Trials, score: Float64, symmetric: bool) -> list[Any]:
    """Arguments of `loop_matrix`: the speaker's name is the head of the utterance id."""
    rows = np.array([utt[:3] for utt in trials.enrol], object)
    columns = np.array([utt[:3] for utt in trials.trial], object)
    return [rows, columns, score.tolist(), trials.target.tolist(), symmetric]


def main() -> int:
    """Measure both parts and print the ratios."""
    with tempfile.TemporaryDirectory() as folder:
        files = large_lists(Path(folder))
        cost = [cost_of_metrics("verification", "--allow-self", *files, "-") for _ in range(3)]
    cpu, memory = min(c for c, _ in cost), max(m for _, m in cost)
    print(f"verification of 951,025 trials from the files: {cpu:.2f} CPU-s, {memory:.2f} GB")
    sets, scored, utt2spk = split()
    lists = {s: for_loops(*sets[s], s != "op") for s in SETTINGS}
    fast, found = timed(lambda: ours(sets, scored, utt2spk), 5)
    slow, expected = timed(lambda: plainly(lists, scored[1].tolist(), scored[0].target.tolist()), 2)
    off = max(abs(found[name] - value) for name, value in expected.items())
    print(
        f"all figures of one split: {slow:.2f} s by loops, {fast:.3f} s here: {slow / fast:.0f} "
        f"times (figures differ by {off:.1e} at most)"
    )
    return judge(
        ("CPU-s for 951,025 trials", cpu, MOST, GOAL_SECONDS),
        ("GB for 951,025 trials", memory, MOST, GOAL_GB),
        ("times loops, a split", slow / fast, LEAST, GOAL_RATIO),
        ("largest difference of figures", off, MOST, 1e-9),
    )


if __name__ == "__main__":
    sys.exit(main())
