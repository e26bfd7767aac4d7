#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Speed of a similarity matrix against boolean masks per cell over string arrays, same matrix.

Goal: 269,011 pairs (734 segments of 20 speakers), from the trial list and the score file to the
matrix, at least 10 times faster than the reference from the same files. The reference reads the
files line by line, joins by a dictionary, and selects the pairs of each cell (i <= j) by comparing
arrays of speaker names; it makes no checks, while the project's reader makes all of its own. Both
use the project's calibration. Process CPU time, best of several.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.measuring import LEAST, MOST, cpu_seconds, judge
from local.metrics import detection, similarity
from local.metrics.similarity import SegmentPairs, check_cells, segment_pairs
from utils.arrays import Float64
from utils.trials import join_scores, read_scores, read_trials

GOAL = 10.0
N_SEGMENTS, N_SPEAKERS = 734, 20


def write_files(folder: Path) -> tuple[Path, Path, dict[str, str]]:
    """A trial list of all unordered pairs, its scores, and utt2spk; LibriSpeech-like ids."""
    rng = np.random.default_rng(0)
    spk = np.sort(rng.integers(0, N_SPEAKERS, N_SEGMENTS))
    utts = [f"{1000 + 37 * s}-{123000 + s}-{i:04d}" for i, s in enumerate(spk.tolist())]
    a, b = np.triu_indices(N_SEGMENTS, 1)
    same = spk[a] == spk[b]
    score = rng.normal(20.0 * same, 10.0)
    trials, scores = folder / "trials", folder / "scores"
    with trials.open("w") as t, scores.open("w") as s:
        for i, j, y, x in zip(a.tolist(), b.tolist(), same, score, strict=True):
            t.write(f"{utts[i]} {utts[j]} {'target' if y else 'nontarget'}\n")
            s.write(f"{utts[i]} {utts[j]} {x:.5f}\n")
    return trials, scores, {utt: utt.split("-")[0] for utt in utts}


def read_plainly(trials: Path, scores: Path, utt2spk: dict[str, str]) -> list[Any]:
    """Line by line; arrays of speaker names, labels and scores."""
    label = {}
    with trials.open() as stream:
        for line in stream:
            enrol, trial, name = line.split()
            label[enrol, trial] = name == "target"
    rows, columns, target, score = [], [], [], []
    with scores.open() as stream:
        for line in stream:
            enrol, trial, value = line.split()
            rows.append(utt2spk[enrol])
            columns.append(utt2spk[trial])
            target.append(label[enrol, trial])
            score.append(float(value))
    return [np.array(rows, object), np.array(columns, object), np.array(target), np.array(score)]


def calibrate(target: npt.NDArray[np.bool_], score: Float64) -> Float64:
    """Oracle LLR of each pair in input order."""
    ranking = detection.rank(score, target)
    blocks = detection.pav(*ranking.counts(), laplace=True)
    llr = np.empty(len(score))
    llr[ranking.order] = ranking.by_trial(blocks.by_run(blocks.llr, len(ranking.start)))
    return llr


def mask_cells(rows: Any, columns: Any, llr: Float64) -> Float64:
    """Geometric means of σ(LLR) by cell, a boolean mask for each."""
    names = sorted(set(rows) | set(columns))
    log_sigmoid = -np.logaddexp(0.0, -llr)
    matrix = np.empty((len(names), len(names)))
    for i, a in enumerate(names):
        for j, b in enumerate(names[: i + 1]):
            mask = ((rows == a) & (columns == b)) | ((rows == b) & (columns == a))
            matrix[i, j] = matrix[j, i] = np.exp(log_sigmoid[mask].mean())
    return matrix


def reference(trials: Path, scores: Path, utt2spk: dict[str, str]) -> Float64:
    """From the files to the matrix, the plain way."""
    rows, columns, target, score = read_plainly(trials, scores, utt2spk)
    return mask_cells(rows, columns, calibrate(target, score))


def read_ours(trials: Path, scores: Path, utt2spk: dict[str, str]) -> SegmentPairs:
    """The project's way from the files to checked pairs."""
    listed = read_trials(trials)
    score = join_scores(listed, read_scores(scores))
    pairs = segment_pairs(listed, score, utt2spk, trials_path=trials, utt2spk_path="utt2spk")
    check_cells(pairs, trials, symmetric=True)
    return pairs


def matrix_of(pairs: SegmentPairs) -> Float64:
    """The project's way from pairs to the matrix."""
    found = similarity.assess(similarity.prepare(pairs, len(pairs.names), symmetric=True))
    if found is None:
        raise ValueError("no targets or no nontargets")
    return found.sim


def main() -> int:
    """Measure, compare the matrices, print the ratios."""
    with tempfile.TemporaryDirectory() as folder:
        files = write_files(Path(folder))
        pairs = read_ours(*files)
        difference = np.abs(matrix_of(pairs) - reference(*files)).max()
        ours = cpu_seconds(lambda: matrix_of(read_ours(*files)), 9)
        theirs = cpu_seconds(lambda: reference(*files), 3)
    ratio = theirs / ours
    print(
        f"{len(pairs.score)} pairs, {len(pairs.names)} speakers; matrices differ {difference:.1e}"
    )
    print(f"from files to matrix: {theirs:.3f} s plainly, {ours:.3f} s here: {ratio:.1f} times")
    return judge(
        ("times the plain way, from the files", ratio, LEAST, GOAL),
        ("largest difference of matrices", float(difference), MOST, 1e-9),
    )


if __name__ == "__main__":
    sys.exit(main())
