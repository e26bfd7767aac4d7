#!/usr/bin/env python3
"""Write every table of Markdown pages as LaTeX, such as those of exp/report/RESULTS.md.

OUT gets <page>_<number>.tex for each table, a `table*` that needs the package booktabs; its caption
is the heading above the table.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.report.latex import find_tables, latex
from utils.cli import UserError, make_parser, run_program
from utils.tables import atomic_write, read_bytes


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument("pages", type=Path, nargs="+", metavar="PAGE")
    parser.add_argument("out", type=Path, metavar="OUT")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    for page in args.pages:
        tables = list(find_tables(read_bytes(page).decode("utf-8", errors="replace")))
        if not tables:
            raise UserError(f"{page}: has no table")
        args.out.mkdir(parents=True, exist_ok=True)
        for number, (heading, rows) in enumerate(tables, 1):
            with atomic_write(args.out / f"{page.stem}_{number}.tex") as stream:
                stream.write(latex(heading, rows))
        print(f"{page}: {len(tables)} tables written to {args.out}")
    return 0


if __name__ == "__main__":
    run_program(main)
