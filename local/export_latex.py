#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Write every table of Markdown pages as LaTeX, such as those of exp/report/RESULTS.md.

OUT gets <page>_<number>.tex for each table, a `table*` that needs the package booktabs; its caption
is the heading above the table.
"""

from local.options import Pages
from utils.cli import UserError
from utils.commands import program
from utils.options import OutFolder
from utils.tables import read_bytes, write_file


@program
def main(pages: Pages, out: OutFolder) -> None:
    from local.report.marks import find_tables, latex

    for page in pages:
        tables = list(find_tables(read_bytes(page).decode("utf-8", errors="replace")))
        if not tables:
            raise UserError(f"{page}: has no table")
        out.mkdir(parents=True, exist_ok=True)
        for number, (heading, rows) in enumerate(tables, 1):
            write_file(out / f"{page.stem}_{number}.tex", latex(heading, rows))
        print(f"{page}: {len(tables)} tables written to {out}")
