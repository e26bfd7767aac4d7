#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far the EER of two attackers who train nothing moves with the pseudo-speakers that are drawn.

One run of a recipe is one draw: some speakers happen to get a voice near their own. Here models/bn
protects the trials of egs/librispeech N times, each time by another draw, and Resemblyzer's cosine
scores them against the original enrolment (ignorant) and one that a further draw protected
(lazy-informed). OUT gets a row for each draw, and the mean over draws with its 95 % interval
(Student's t), which does not hold for other speakers. EGS is that folder after stage 4 with
--systems bn.

  benchmarks/compare_draws.py EGS N OUT.csv
"""

import csv
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[0] = str(ROOT)
import numpy as np
from scipy import stats

from local.compute_metrics import main as compute_metrics
from steps.anonymise import main as anonymise
from steps.average_xvectors import main as average_xvectors
from steps.extract_xvectors import main as extract_xvectors
from steps.score_trials import main as score_trials

SYSTEM = ROOT / "egs/TEMPLATE/conf/systems/bn.yaml"
ENROLMENT = "libri_test_enrolls"
TRIALS = {"women": "libri_test_trials_f", "men": "libri_test_trials_m"}


def run(program: Callable[[Sequence[str]], int], *words: object) -> None:
    """A program's main."""
    if status := program([str(word) for word in words]):
        sys.exit(f"{program.__module__}: exit status {status}")


def xvectors(data: Path, out: Path) -> Path:
    """Of every utterance, and of every speaker."""
    run(extract_xvectors, "resemblyzer", data, out)
    run(average_xvectors, out, data, out)
    return out


def protected(data: Path, draw: int, work: Path) -> Path:
    """The x-vectors of a set that a draw protected."""
    made, wav = work / data.name, work / f"wav_{data.name}"
    given = ("--model", ROOT / "models/bn", "--f0", Path("exp/f0") / data.name)
    run(anonymise, *given, "--draw", draw, SYSTEM, data, made, wav)
    return xvectors(made, work / f"x_{data.name}")


def measure(original: Path, draw: int, work: Path) -> dict[str, float]:
    """EERs in per cent of trials by a draw; the next protects the enrolment."""
    enrolment = protected(Path("data") / ENROLMENT, draw + 1, work)
    eers = {}
    for voices, name in TRIALS.items():
        found = protected(Path("data") / name, draw, work)
        for attacker, enrolled in (("ignorant", original), ("lazy-informed", enrolment)):
            trials, scores, out = Path("data") / name / "trials", work / "scores", work / "eer.json"
            run(score_trials, "--backend", "cosine", enrolled, found, trials, scores)
            run(compute_metrics, "verification", trials, scores, out)
            eers[f"{attacker}, {voices}"] = 100 * float(json.loads(out.read_text())["eer"])
    return eers


def mean_of(values: Sequence[float]) -> str:
    """The mean over draws with its interval."""
    half = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    return f"{np.mean(values):.1f} [{np.mean(values) - half:.1f}, {np.mean(values) + half:.1f}]"


def main() -> int:
    """Measure, print, write."""
    if len(sys.argv) != 4 or not sys.argv[2].isdecimal() or int(sys.argv[2]) < 2:
        sys.exit(f"{__doc__}")
    n, out = int(sys.argv[2]), Path(sys.argv[3]).absolute()
    os.chdir(sys.argv[1])
    found = []
    with tempfile.TemporaryDirectory() as name:
        original = xvectors(Path("data") / ENROLMENT, Path(name) / "original")
        for draw in range(0, 2 * n, 2):
            (work := Path(name) / str(draw)).mkdir()
            found.append(measure(original, draw, work))
            print(draw, found[-1], flush=True)
    rows = [[str(2 * i), *(f"{eer:.1f}" for eer in eers.values())] for i, eers in enumerate(found)]
    rows.append(["mean", *(mean_of([eers[name] for eers in found]) for name in found[0])])
    print(*rows[-1])
    with out.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([["draw", *found[0]], *rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
