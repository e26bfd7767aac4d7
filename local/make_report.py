#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Write the report of RESULTS (exp/results, and nothing else) to OUT. Of several, OUT has a page of
all systems of all runs beside each other, and beneath it the report of each run in a folder.

report.html      one page that opens from disk: summary, pictures, the worst-protected speakers with
                 clips, all tables, and where everything comes from; no network, below 15 MB
figures/*.pdf    the same pictures for papers, with --pdf
RESULTS.md       the tables in Markdown
verdicts.txt     the verdicts in at most two lines, which run.sh ends with
champion_2021.md where a white box attacked constant voices: the paper's table, and this run's

The page names whatever RESULTS lacks. Clips let people be heard: --no-audio leaves
them out.
"""

import shutil
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import chain
from multiprocessing import get_context
from os.path import commonpath
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from utils.cli import UserError
from utils.commands import program
from utils.options import OutFolder
from utils.tables import write_file

if TYPE_CHECKING:
    from local.report.results import Results


def name_runs(folders: Sequence[Path]) -> list[str]:
    """Names of several runs: where their folders' paths differ. UserError for one given twice."""
    paths = [folder.resolve() for folder in folders]
    if twice := next((path for path in paths if paths.count(path) > 1), None):
        raise UserError(f"{twice}: is given twice; give each folder of results once")
    common = commonpath(paths)
    return [str(path.relative_to(common)).removesuffix("/exp/results") for path in paths]


def write_report(found: "Results", out: Path, *, audio: bool, pdf: bool) -> None:
    """Write all files of the report of one run."""
    from local.report.marks import beside_paper, is_white_box
    from local.report.page import markdown, page
    from local.report.pictures import Section, draw_all, draw_first, draw_utility
    from local.report.tables import verdict_lines

    folder = out / "figures"
    if folder.is_dir():
        shutil.rmtree(folder)  # of an older report
    out.mkdir(parents=True, exist_ok=True)
    figures = folder if pdf else None
    with ProcessPoolExecutor(2, get_context("fork")) as pool:  # nothing else of a recipe is left
        own = replace(found)  # without what `found` keeps while it is drawn
        made = [pool.submit(draw_all, own, name, figures) for name in found.evaluators()]
        first, utility = draw_first(found, figures), draw_utility(found, figures)
        parts = zip(*(one.result() for one in made), strict=True)
        sections = [Section(of[0].title, [*chain(*(own.pictures for own in of))]) for of in parts]
    write_file(out / "RESULTS.md", markdown(found))
    said = "".join(f"{line}\n" for line in verdict_lines(found))
    if is_white_box(found.metrics):
        said += beside_paper("001", found.folder, out)
    write_file(out / "verdicts.txt", said)
    write_file(out / "report.html", page(found, first, sections, utility, with_audio=audio))
    n_pictures = len(first) + sum(len(section.pictures) for section in (utility, *sections))
    size = (out / "report.html").stat().st_size / 1e6
    print(
        f"{out}/report.html: {n_pictures} pictures, {len(found.missing)} missing results, "
        f"{size:.1f} MB"
    )


@program
def main(
    results: Annotated[Sequence[Path], "Folders of results", "RESULTS"], out: OutFolder, *,
    no_audio: Annotated[bool, "Leave the clips out"] = False,
    pdf: Annotated[bool, "Also write each picture as PDF, which takes twice as long"] = False,
) -> None:  # fmt: skip
    from local.report.draw import slug
    from local.report.page import runs_markdown, runs_page
    from local.report.results import load_results

    if len(results) == 1:
        write_report(load_results(results[0]), out, audio=not no_audio, pdf=pdf)
        return
    names = name_runs(results)
    runs = {name: load_results(path) for name, path in zip(names, results, strict=True)}
    links = {name: f"{slug(name)}/report.html" for name in names}
    for name, found in runs.items():
        write_report(found, (out / links[name]).parent, audio=not no_audio, pdf=pdf)
    write_file(out / "RESULTS.md", runs_markdown(runs))
    write_file(out / "report.html", runs_page(runs, links))
    print(f"{out}/report.html: {len(runs)} runs beside each other")
