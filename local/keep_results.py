#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Keep the figures of a finished run as data beside a page, to be committed.

RESULTS is what collect_results.py (exp/results) or collect_study.py wrote. OUT, for example
egs/an4/results/words, becomes metrics.csv (rows that a table, picture or sentence of a report or
page reads) or generators.csv as it is, command.txt (the run's command) and origin.json (commit,
date, machine, versions, whose speech it is, which figures were lost, the digest of the table).
Tables are rendered from it by render_tables.py.
"""

from collections.abc import Sequence
from typing import Annotated

from local.options import ResultsFolder
from utils.cli import BadValue
from utils.commands import program
from utils.options import OutFolder


def _renaming(text: str) -> tuple[str, str]:
    path, found, name = text.partition("=")
    if not (path and found and name):
        raise BadValue(f"expected PATH=NAME, such as /data/LibriSpeech=LIBRISPEECH, not {text!r}")
    return path, name


@program
def main(
    results: ResultsFolder, out: OutFolder, *,
    name: Annotated[
        Sequence[tuple[str, str]],
        "What to write in the command for a path of this machine; may be given again",
        "PATH=NAME", _renaming,
    ] = (),
    command: Annotated[str, "The command, where the run recorded none", "TEXT"] = "",
) -> None:  # fmt: skip
    from local.report.gather import keep

    print(f"{out}: {keep(results, out, dict(name), command)} command.txt origin.json")
