#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Render the marked tables of Markdown pages anew from the results that they name.

A table stands between `<!-- table: KIND FOLDER... split=SPLIT [systems=A,B] [evaluators=C,D] -->`
and `<!-- end -->`; its data are FOLDER/metrics.csv beside the page. KIND is use (words, emotions,
quality), overview (the strongest attacker, and use beside it), leaders (the verdict, the lowest
EERs, and words of another split: use=SPLIT systems=A,B:THERE), alike (DeID and G_VD), front (who is
behind whom in both), attackers (all of them; figures=eer,d_ece,named_by_recording says which
figures), trainings (one evaluator, trained several times) or targets (the white box over constant
voices). Others:

  voices FOLDER                  FOLDER/generators.csv of generators.sh: how much alike voices are
  csv FILE [rows=A,B]            a table as it is
  nist FOLDER... NAME            a table of nist.sh
  paper 002:2 [FOLDER... sets=THEIRS:OURS,... evaluators=A,B]   a table of a paper (docs/published),
                                 ours beside it; local/report/tables.py has what else may be asked
  claims [002], verdicts         what became of a paper's claims (of all), and how many of each

The last word of each may be columns=A,B: only columns whose headings begin so (_ for a blank).

With --check the exit status is 1 when a page is not what its data say.

With --latex the pages stay, and every table of theirs, marked or not, such as those of
exp/report/RESULTS.md, becomes OUT/<page>_<heading>.tex, with a number where there are several under
one heading: a `table*` that needs the packages booktabs and graphicx, with the heading as its
caption.
"""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from utils.cli import UserError
from utils.commands import program
from utils.tables import read_bytes, write_file


def write_latex(page: Path, out: Path) -> None:
    """Write the tables of a page as LaTeX. UserError where it has none."""
    from local.report.marks import find_tables, latex

    tables = list(find_tables(read_bytes(page).decode("utf-8", errors="replace")))
    if not tables:
        raise UserError(f"{page}: has no table")
    known: Counter[str] = Counter()
    for heading, rows in tables:
        named = re.split("[:(]", heading)[0]
        name = re.sub("[^A-Za-z0-9]+", "_", f"{page.stem}_{named}").strip("_")
        known[name] += 1
        number = f"_{known[name]}" if known[name] > 1 else ""
        write_file(out / f"{name}{number}.tex", latex(heading, rows))
    print(f"{page}: {len(tables)} tables written to {out}")


@program
def main(
    pages: Annotated[Sequence[Path], "Markdown pages", "PAGE"], *,
    check: Annotated[bool, "Only say which pages would change"] = False,
    latex: Annotated[Path | None, "The folder for tables in LaTeX", "OUT"] = None,
) -> int:  # fmt: skip
    from local.report.marks import render_page

    if latex and check:
        raise UserError("--latex: writes no page, so --check has nothing to compare; leave one out")
    changed, stems = 0, [page.stem for page in pages]
    if latex and (twice := next((p for p in pages if stems.count(p.stem) > 1), None)):
        raise UserError(f"{twice}: another page is also called {twice.stem}; give each its own OUT")
    for page in pages:
        if latex:
            write_latex(page, latex)
        elif (text := render_page(page)) != page.read_text(encoding="utf-8"):
            changed += 1
            print(f"{page}: {'is not what its data say' if check else 'rendered'}")
            if not check:
                write_file(page, text)
    return int(check and changed > 0)
