#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Write the report of RESULTS (exp/results, and nothing else) to OUT.

report.html      one page that opens from disk: summary, pictures, the worst-protected speakers with
                 clips, all tables, and where everything comes from; no network, below 15 MB
figures/*.pdf    the same pictures for papers, with --pdf
RESULTS.md       the tables in Markdown
verdicts.txt     the verdicts in at most two lines, which run.sh ends with

The page names whatever RESULTS lacks. Clips let people be heard: --no-audio leaves
them out.
"""

import shutil
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import chain
from multiprocessing import get_context
from typing import Annotated

from local.options import ResultsFolder
from utils.commands import program
from utils.options import OutFolder
from utils.tables import write_file


@program
def main(
    results: ResultsFolder, out: OutFolder, *,
    no_audio: Annotated[bool, "Leave the clips out"] = False,
    pdf: Annotated[bool, "Also write each picture as PDF, which takes twice as long"] = False,
) -> None:  # fmt: skip
    from local.report.frame import load_results
    from local.report.page import markdown, page
    from local.report.pictures import draw_all, draw_first, draw_utility
    from local.report.tables import verdict_lines

    found, folder = load_results(results), out / "figures"
    if folder.is_dir():
        shutil.rmtree(folder)  # of an older report
    out.mkdir(parents=True, exist_ok=True)
    figures = folder if pdf else None
    with ProcessPoolExecutor(2, get_context("fork")) as pool:  # nothing else of a recipe is left
        own = replace(found)  # without what `found` keeps while it is drawn
        made = {n: pool.submit(draw_all, own, n, figures) for n in found.evaluators()}
        first, utility = draw_first(found, figures), draw_utility(found, figures)
        sections = {name: one.result() for name, one in made.items()}
    write_file(out / "RESULTS.md", markdown(found))
    write_file(out / "verdicts.txt", "".join(f"{line}\n" for line in verdict_lines(found)))
    write_file(out / "report.html", page(found, first, sections, utility, with_audio=not no_audio))
    drawn = [utility, *chain.from_iterable(sections.values())]
    n_pictures = len(first) + sum(len(section.pictures) for section in drawn)
    size = (out / "report.html").stat().st_size / 1e6
    print(
        f"{out}/report.html: {n_pictures} pictures, {len(found.missing)} missing results, "
        f"{size:.1f} MB"
    )
