#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Render the marked tables of Markdown pages anew from the results that they name.

A table stands between `<!-- table: KIND FOLDER... split=SPLIT [systems=A,B] [evaluators=C,D] -->`
and `<!-- end -->`; its data are FOLDER/metrics.csv beside the page. KIND is use (words, emotions,
quality), overview (the strongest attacker, and use beside it), front (who is behind whom in both),
attackers (all of them; figures=eer,d_ece,reid_top_1 says which figures), trainings (one evaluator,
trained several times) or targets (the white box over constant voices). Others:

  voices FOLDER                  FOLDER/generators.csv of generators.sh: how much alike voices are
  csv FILE [rows=A,B]            a table as it is
  nist FOLDER... NAME            a table of nist.sh
  paper 002:2 [FOLDER... sets=THEIRS:OURS,... evaluators=A,B]   a table of a paper (docs/published),
                                 ours beside it; local/report/tables.py has what else may be asked
  claims [002], verdicts         what became of a paper's claims (of all), and how many of each

The last word of each may be columns=A,B: only columns whose headings begin so (_ for a blank).

With --check the exit status is 1 when a page is not what its data say.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from utils.commands import program
from utils.tables import write_file


@program
def main(
    pages: Annotated[Sequence[Path], "Markdown pages", "PAGE"], *,
    check: Annotated[bool, "Only say which pages would change"] = False,
) -> int:  # fmt: skip
    from local.report.marks import render_page

    changed = 0
    for page in pages:
        if (text := render_page(page)) != page.read_text(encoding="utf-8"):
            changed += 1
            print(f"{page}: {'is not what its data say' if check else 'rendered'}")
            if not check:
                write_file(page, text)
    return int(check and changed > 0)
