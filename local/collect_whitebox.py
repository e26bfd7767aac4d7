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
from utils.cli import run_program
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
    from local.report.study import write_text
    from local.report.whitebox import STUDY, Targets, read_target

    voices = {system: read_target(Path(data)) for system, data in target}
    found = Targets(load_results(results), voices)
    told = found.results.run.get("origin")
    write_text(results / "RESULTS.md", STUDY.page(found, told if isinstance(told, dict) else {}))
    count = len(found.results.metrics)
    print(f"{count} figures of {len(voices)} targets tabulated in {results}")


if __name__ == "__main__":
    run_program(main)
