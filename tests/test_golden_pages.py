"""The report of made-up results is the text in golden_pages/: in Markdown, and as a browser has it.

Where the report has to say something else, run `. ./path.sh && python -m tests.test_golden_pages`,
and read what changed.
"""

import io
from pathlib import Path

import pandas as pd
import pytest
import yaml

from local.report.frame import with_numbers
from local.report.page import markdown
from local.report.results import Results
from local.report.tables import verdict_lines
from tests.report_rows import (
    SpeakerFigure,
    frame,
    metrics_csv,
    page_of,
    speaker_figure,
    words,
)

PAGES = Path(__file__).with_name("golden_pages")
NAMES = ("verdicts", "utility", "missing")


def made_up(name: str) -> Results:
    """Results of golden_pages/<name>.yaml."""
    given = yaml.safe_load((PAGES / f"{name}.yaml").read_text())
    lines = [line for line in given["figures"].splitlines() if not line.startswith("#")]
    table = io.StringIO(metrics_csv("\n".join(lines)))
    figures = pd.read_csv(table, dtype=object, keep_default_na=False)
    people = [
        speaker_figure("c", split, split[-1], system, "verification", *of, "aa")
        for split, system, *of in map(str.split, given["speakers"].splitlines())
    ]
    missing = [*map(tuple, given.get("missing", []))]
    return Results(
        metrics=with_numbers(figures), speakers=frame(people, SpeakerFigure), missing=missing,
        run=given.get("run", {}),
    )  # fmt: skip


def page(name: str) -> str:
    """What is said of these results: on the console, in RESULTS.md and on the page before its cards
    of metrics, which are docs/metrics."""
    results = made_up(name)
    shown = words(page_of(results).partition(' id="card-')[0].rpartition("<")[0])
    shown = shown.replace(". ", ".\n")  # a change is of few lines
    return "\n\n".join(("\n".join(verdict_lines(results)), markdown(results), shown)) + "\n"


@pytest.mark.parametrize("name", NAMES)
def test_golden_pages(name):
    assert page(name) == (PAGES / f"{name}.md").read_text()


if __name__ == "__main__":
    for each in NAMES:
        (PAGES / f"{each}.md").write_text(page(each))
