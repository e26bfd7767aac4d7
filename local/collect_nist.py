#!/usr/bin/env python3
"""Put together the figures of the NIST study (Seo et al. 2025).

FOLDERs hold metrics.json, .../<system>/<list>.<evaluator>/<condition>/<split>, with the lists
trial1_p<profile>, trial2_p<profile>, cross, leakage_p<profile>, and trial2 of the system original.
OUT gets metrics.csv (one figure a row), run.json (where they came from, for keep_results.py) and
RESULTS.md, laid out as the paper's Tables 5 to 8, with the printed figures beside.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.options import COMMAND_LOG, CommandLog, CorpusName
from utils.cli import run_program
from utils.commands import program
from utils.options import OutFolder


@program
def main(
    out: OutFolder, folders: Annotated[Sequence[Path], "Folders of figures", "FOLDER"], *,
    corpus_name: CorpusName, command_log: CommandLog = COMMAND_LOG,
) -> None:  # fmt: skip
    from pandas import DataFrame

    from local.report.frame import METRICS
    from local.report.gather import tabulate
    from local.report.studies import Searches

    rows = [row for folder in folders for row in tabulate(folder, corpus_name)[0]]
    Searches(DataFrame(rows, columns=METRICS)).write(out, command_log, corpus=corpus_name)
    print(f"{len(rows)} figures of {len(folders)} folders written to {out}")


if __name__ == "__main__":
    run_program(main)
