#!/usr/bin/env python3
"""Write RESULTS.md of the white-box study (Champion et al. 2021) into a folder of results.

RESULTS is a folder that local/collect_results.py made of the study's figures. The tables are means
and standard deviations over constant targets, beside the paper's; then each target and speaker.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.options import ResultsFolder
from utils.commands import program


@program
def main(
    results: ResultsFolder,
    *,
    target: Annotated[
        Sequence[tuple[str, str]],
        "A target's system, and a set that was protected with it; may be given again",
        "SYSTEM DATA",
    ],
) -> None:
    from local.report.load import load_results
    from local.report.studies import Targets, read_target
    from utils.tables import write_file

    voices = {system: read_target(Path(data)) for system, data in target}
    study = Targets(load_results(results), voices)
    write_file(results / "RESULTS.md", study.page(study.results.origin))
    print(f"{len(study.figures)} figures of {len(voices)} targets tabulated in {results}")
