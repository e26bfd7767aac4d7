#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Write the result file, averages and category that a challenge's own tools would give.

PROTOCOL is a file of conf/protocols, RESULTS folders with a metrics.csv (exp/results of a recipe
for each evaluation), or result files of the challenge, whose averages are also printed. Written
are result_for_rank_<system> (2024, 2026), results.txt (2020, 2022), and of 2022 results_summary.txt
and results.orig/results.txt, whose evaluator was trained on original speech.
Figures that the protocol asks for and nobody measured are named; a set that lacks a split has no
average. Two RESULTS with different figures of one split are refused.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from utils.cli import UserError
from utils.commands import program


@program
def main(
    protocol: Annotated[Path, "The protocol of the challenge"],
    results: Annotated[Sequence[Path], "Folders of results, or result files", "RESULTS"], *,
    of_system: Annotated[str, "The system of the recipe whose figures are written", "NAME"] = "",
    evaluator: Annotated[str, "Who listened (left out: the protocol's own)", "NAME"] = "",
    out: Annotated[Path | None, "Where the result file is written", "FOLDER"] = None,
) -> None:  # fmt: skip
    from pandas import concat

    from local.protocols.attackers import read_protocol
    from local.report import challenge
    from local.report.frame import read_figures
    from utils.tables import write_file

    asked = read_protocol(protocol)
    evaluator = evaluator or asked.evaluators.split()[0]
    found = {path: challenge.read_results(path, asked) for path in results if path.is_file()}
    scores = [score for own in found.values() for score in own]
    if folders := [path for path in results if not path.is_file()]:
        if not of_system:
            raise UserError("--of-system: name the system of the recipe whose figures are wanted")
        of = {folder: read_figures(folder / "metrics.csv") for folder in folders}
        told = asked, of_system, evaluator
        found |= {at: challenge.scores_of(own, *told) for at, own in of.items()}
        scores += challenge.scores_of(concat([*of.values()]), *told)
    challenge.check_one_run(found)
    if not any(score.protected for score in scores):
        what = f"figure of {of_system}" if of_system else "figure of protected speech"
        raise UserError(
            f"{results[0]}: no {what} that {asked.challenge} asks for "
            f"(attacker {asked.privacy.attacker}, evaluator {evaluator})"
        )
    if out:
        written = challenge.write_results(scores, asked, of_system or "theirs", time.localtime())
        for name, text in written.items():
            write_file(out / name, text)
            print(f"{out / name}: written, of {len(scores)} figures")
    for line in challenge.conclusions(scores, asked):
        print(line)
