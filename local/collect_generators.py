#!/usr/bin/env python3
"""Put together what was measured of the generators of pseudo-speakers.

OUT gets generators.csv (one figure a row), RESULTS.md (beside the figures of Liu et al. 2025),
capacity.pdf and capacity.svg (their Fig. 11), and run.json (command, commit, versions). THRESHOLD
is the file of local/find_threshold.py, REAL a folder with the capacity.tsv of real speakers.
Generators without --attacked are "not run".
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.options import COMMAND_LOG, CommandLog, CorpusName, EncoderName, Labelled
from utils.commands import program
from utils.options import OutFolder


@program
def main(
    threshold: Annotated[Path, "The file of local/find_threshold.py"],
    real: Annotated[Path, "The folder with the capacity.tsv of real speakers"], out: OutFolder, *,
    corpus_name: CorpusName, encoder: EncoderName, command_log: CommandLog = COMMAND_LOG,
    generator: Annotated[
        Sequence[tuple[str, str, str]], "A generator's name and its folders with capacity.tsv and "
        "time.json; may be given again", "NAME CAPACITY TIME",
    ],
    attacked: Labelled = (),
) -> None:  # fmt: skip
    from pandas import DataFrame

    from local.report import studies as report
    from utils.tables import read_json_object

    rows = report.capacity_rows(report.REAL, real / "capacity.tsv")
    for name, capacity, seconds in generator:
        rows += report.capacity_rows(name, Path(capacity) / "capacity.tsv")
        rows += report.time_rows(name, Path(seconds) / "time.json")
    rows += report.speech_rows(attacked)
    rows += [row for name, _, _ in generator for row in report.published_rows(name)]
    report.GeneratorFigures(DataFrame(rows, columns=report.COLUMNS)).write(
        out, command_log, corpus=corpus_name, encoder=encoder,
        threshold=read_json_object(threshold, "make it again with local/find_threshold.py"),
    )  # fmt: skip
    print(f"{len(rows)} figures of {len(generator)} generators written to {out}")
