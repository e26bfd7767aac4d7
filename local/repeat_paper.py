#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Set a paper's tables beside the figures of RESULTS, on the console and in OUT/<author>_<year>.md.

Noé et al. 2020 and 2022 need figures of egs/vpc2020 or of a recipe, Champion et al. 2021 those of a
white box over constant voices. nist.sh (Seo et al. 2025) and generators.sh (Liu et al. 2025) end
with their own.
"""

from typing import Annotated, Literal

from local.options import ResultsFolder
from utils.commands import program
from utils.options import OutFolder


@program
def main(
    paper: Annotated[Literal["noe_2020", "champion_2021", "noe_2022"], "The author and year"],
    results: ResultsFolder, out: OutFolder,
) -> None:  # fmt: skip
    from local.report.marks import beside_paper, cite
    from local.report.measures import TABLES

    (name,) = [name for name in TABLES["repeated"] if cite(name) == paper]
    print(beside_paper(name, results, out), end="")
