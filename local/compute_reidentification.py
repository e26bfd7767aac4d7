#!/usr/bin/env python3
"""Compute how often an attacker names the right one of the enrolled speakers, from scores.

TRIALS `<enrolled speaker> <utterance> target|nontarget` and SCORES as for compute_metrics.py; each
utterance's candidates are the speakers that it is scored against. OUT is a JSON file, or - for
standard output. Values are fractions, with chance levels (docs/metrics/reidentification.md).
"""

import sys
from pathlib import Path
from typing import Annotated

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.options import AnotherDraw, Bootstrap, Figures, read_scored, write_figures
from utils.commands import program
from utils.options import Seed, Utt2spk


@program
def main(
    trial_list: Annotated[Path, "The trials", "TRIALS"],
    score_list: Annotated[Path, "Their scores", "SCORES"],
    out: Figures, *, utt2spk: Utt2spk, another_draw: AnotherDraw = (), bootstrap: Bootstrap = 0,
    seed: Seed = 0,
) -> None:  # fmt: skip
    from local.metrics.legal import reidentification
    from utils.tables import read_map

    trials, score, *draws = read_scored("kaldi", trial_list, score_list, *another_draw)
    report = reidentification(
        trials, score, read_map(utt2spk), trials_path=trial_list, draws=draws,
        n_bootstrap=bootstrap, seed=seed,
    )  # fmt: skip
    write_figures(out, report)
