#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Put together the figures of a study of its own, as tables beside the paper's.

OUT gets RESULTS.md, a table of figures (one a row), paper.txt, which the recipe ends with, and
run.json (command, commit, versions), for keep_results.py.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from local.options import CorpusName, EncoderName, Labelled
from utils.commands import commands
from utils.options import OutFolder
from utils.tables import read_json_object, write_file


def _tell(out: Path, paper: str, *headings: str) -> None:
    """Write paper.txt, which the recipe ends with: the paper's figures and these."""
    from local.report.marks import as_text
    from local.report.tables import CITED

    page = (out / "RESULTS.md").read_text(encoding="utf-8")
    write_file(out / "paper.txt", as_text(page, CITED[paper], *headings))


def _nist(out: OutFolder, *, corpus_name: CorpusName, figures: Labelled) -> None:
    """The NIST study (Seo et al. 2025), laid out as its Tables 5 to 8.

    FOLDERs hold metrics.json of the families trial1, trial2 and leakage, whose attacker is the
    profile (p1, p2, ...), cross, and trial2 of the system original without a profile.
    """
    from pandas import DataFrame

    from local.report.frame import METRICS
    from local.report.gather import check_losses, labelled, tabulate
    from local.report.studies import Searches

    folders, missing = labelled(figures)
    check_losses(missing, 0)
    corpus = {"corpus": corpus_name}
    rows = [row for folder, of in folders.items() for row in tabulate(folder, corpus | of)[0]]
    Searches(DataFrame(rows, columns=METRICS)).write(out, corpus=corpus_name)
    _tell(out, "003", "Patterns", "Trial set")
    print(f"{len(rows)} figures of {len(folders)} folders written to {out}")


def _generators(
    threshold: Annotated[Path, "The file of compute_metrics.py threshold"],
    real: Annotated[Path, "The folder with the capacity.tsv of real speakers"], out: OutFolder, *,
    corpus_name: CorpusName, encoder: EncoderName,
    generator: Annotated[
        Sequence[tuple[str, str, str]], "A generator's name and its folders with capacity.tsv and "
        "time.json; may be given again", "NAME CAPACITY TIME",
    ],
    attacked: Labelled = (),
) -> None:  # fmt: skip
    """Generators of pseudo-speakers (Liu et al. 2025), with their Fig. 11: capacity.pdf and .svg.

    Generators without --attacked are "not run".
    """
    from pandas import DataFrame

    from local.report import studies as report

    rows = report.capacity_rows(report.REAL, real / "capacity.tsv")
    for name, capacity, seconds in generator:
        rows += report.capacity_rows(name, Path(capacity) / "capacity.tsv")
        rows += report.time_rows(name, Path(seconds) / "time.json")
    rows += report.speech_rows(attacked)
    rows += [row for name, _, _ in generator for row in report.published_rows(name)]
    report.GeneratorFigures(DataFrame(rows, columns=report.COLUMNS)).write(
        out, corpus=corpus_name, encoder=encoder,
        threshold=read_json_object(threshold, "make it again"),
    )  # fmt: skip
    _tell(out, "004", "Liu et al. 2025")
    print(f"{len(rows)} figures of {len(generator)} generators written to {out}")


main = commands(_nist, _generators)
