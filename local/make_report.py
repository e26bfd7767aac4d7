#!/usr/bin/env python3
"""Write the report of RESULTS (exp/results, and nothing else) to OUT.

report.html      one page that opens from disk: summary, pictures, the worst-protected speakers with
                 clips, all tables, and where everything comes from; no network, below 15 MB
figures/*.pdf    the same pictures for papers, with --pdf
RESULTS.md       the tables in Markdown

Whatever is missing of RESULTS is named in the page. Clips let people be heard: --no-audio leaves
them out.
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils.cli import make_parser, run_program
from utils.options import add_paths
from utils.tables import atomic_write


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument("--no-audio", action="store_true", help="Leave the clips out")
    parser.add_argument(
        "--pdf",
        action="store_true",
        help="Write each picture as PDF, too, which takes twice as long",
    )
    add_paths(parser, "results", "out")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    from local.report.load import load_results
    from local.report.page import markdown, page
    from local.report.pictures import draw_all, draw_first, draw_utility

    results, folder = load_results(args.results), args.out / "figures"
    if folder.is_dir():
        shutil.rmtree(folder)  # of an older report
    args.out.mkdir(parents=True, exist_ok=True)
    figures = folder if args.pdf else None
    if figures is not None:
        figures.mkdir()
    first, utility = draw_first(results, figures), draw_utility(results, figures)
    sections = {name: draw_all(results, name, figures) for name in results.evaluators()}
    with atomic_write(args.out / "RESULTS.md") as stream:
        stream.write(markdown(results))
    with atomic_write(args.out / "report.html") as stream:
        stream.write(page(results, first, sections, utility, with_audio=not args.no_audio))
    drawn = [utility, *chain.from_iterable(sections.values())]
    n_pictures = len(first) + sum(len(section.pictures) for section in drawn)
    size = (args.out / "report.html").stat().st_size / 1e6
    print(
        f"{args.out}/report.html: {n_pictures} pictures, {len(results.missing)} missing results, "
        f"{size:.1f} MB"
    )
    return 0


if __name__ == "__main__":
    run_program(main)
