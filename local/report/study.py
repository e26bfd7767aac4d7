"""Studies as specifications: one reader and writer of their tables, one renderer of their pages."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from local.report.frame import Measure, Value, number, show
from local.report.origin import origin
from local.report.tables import Table
from local.report.words import render
from utils.tables import atomic_write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

Row = TypeVar("Row")
Column = TypeVar("Column")


@dataclass(frozen=True)
class Study:
    """A study. template: of its page; parts: what that shows, by name, each made of what `read`
    makes of the figures; table: the file of the figures, written with the options `csv`; draw:
    draws its pictures into a folder."""

    template: str
    parts: Mapping[str, Callable[[Any], Any]]
    read: Callable[[Any], Any] = lambda figures: figures
    table: str = ""
    csv: Mapping[str, Any] = field(default_factory=dict)
    draw: Callable[..., None] | None = None

    def page(self, figures: Any, told: Mapping[str, object], **said: Any) -> str:
        """RESULTS.md. told: where the figures came from; said: what else the template names."""
        found = self.read(figures)
        parts = {name: make(found) for name, make in self.parts.items()}
        shown = {n: p.markdown() if isinstance(p, Table) else p for n, p in parts.items()}
        return render(self.template, {"number": number}, **shown, **said, found=found, origin=told)

    def write(self, out: Path, figures: Any, command_log: Path, **said: Any) -> None:
        """RESULTS.md, pictures, the table of figures, and run.json for local/keep_results.py."""
        told = origin(command_log)
        out.mkdir(parents=True, exist_ok=True)
        if self.draw:
            self.draw(figures, out, **said)
        write_text(out / "RESULTS.md", self.page(figures, told, **said))
        write_text(out / "run.json", json.dumps({"origin": told}, indent=1) + "\n")
        made = figures.to_csv(index=False, lineterminator="\n", **self.csv)
        write_text(out / self.table, made)


def write_text(path: Path, text: str) -> None:
    """Write a file, which is whole or not there."""
    with atomic_write(path) as stream:
        stream.write(text)


def pivot(
    names: Sequence[str],
    rows: Iterable[tuple[Sequence[str], Row]],
    columns: Sequence[tuple[str, Column]],
    cell: Callable[[Row, Column], str],
) -> Table:
    """A table of rows with their names and columns with their titles; a cell is made of what its
    row and its column are of."""
    lines = [[*said, *(cell(row, column) for _, column in columns)] for said, row in rows]
    return Table([*names, *(title for title, _ in columns)], lines, len(names))


def headed(measures: Iterable[Measure]) -> list[tuple[str, Measure]]:
    """Columns of measures."""
    return [(measure.heading, measure) for measure in measures]


def dashed(value: Value | float | None, measure: Measure) -> str:
    """A figure with its interval; a dash where it is not defined or was not measured."""
    return show(value, measure, missing="–", undefined="–")


def panels(size: tuple[float, float], heights: Sequence[float]) -> "tuple[Canvas, Sequence[Axes]]":
    """An empty picture with panels one beneath the other."""
    from matplotlib.figure import Figure as Canvas  # here, for most of what is read draws nothing

    from local.report import draw

    draw.use_style()
    canvas = Canvas(figsize=size, layout="constrained", facecolor="white")
    return canvas, canvas.subplots(len(heights), 1, sharex=True, height_ratios=heights)


def count_along(axes: "Axes") -> None:
    """Make the horizontal axis one of numbers from few to very many."""
    axes.grid(visible=True)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.xaxis.set_minor_formatter("")


def save_panels(canvas: "Canvas", titled: "Axes", stem: Path) -> None:
    """<stem>.pdf and <stem>.svg; titled: the panel whose lines the legend names."""
    from local.report import draw

    handles, labels = titled.get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=3)
    draw.save(canvas, stem)
