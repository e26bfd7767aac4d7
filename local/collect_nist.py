#!/usr/bin/env python3
"""Put together the figures of the NIST study (Seo et al. 2025).

FOLDERs hold metrics.json of the families trial1, trial2 and leakage, whose attacker is the profile
(p1, p2, ...), cross, and trial2 of the system original without a profile. OUT gets metrics.csv (one
figure a row), run.json (where they came from, for keep_results.py) and RESULTS.md, laid out as the
paper's Tables 5 to 8, with the printed figures beside.
"""

import sys
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.options import COMMAND_LOG, CommandLog, CorpusName, Labelled
from utils.commands import program
from utils.options import OutFolder


@program
def main(
    out: OutFolder, *, corpus_name: CorpusName, figures: Labelled,
    command_log: CommandLog = COMMAND_LOG,
) -> None:  # fmt: skip
    from pandas import DataFrame

    from local.report.frame import METRICS
    from local.report.gather import labelled, tabulate
    from local.report.studies import Searches

    folders, corpus = labelled(figures), {"corpus": corpus_name}
    rows = [row for folder, of in folders.items() for row in tabulate(folder, corpus | of)[0]]
    Searches(DataFrame(rows, columns=METRICS)).write(out, command_log, corpus=corpus_name)
    print(f"{len(rows)} figures of {len(folders)} folders written to {out}")
