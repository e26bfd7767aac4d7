"""Generators of pseudo-speakers beside each other, and the curves of Liu et al. 2025, Fig. 11."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from pandas import DataFrame, read_csv

from local.report import draw, frame
from local.report.frame import number, read_frame
from local.report.gather import labelled, tabulate
from local.report.papers import published
from local.report.studies import Study
from local.report.tables import Table
from local.report.words import code
from utils.cli import UserError
from utils.tables import read_json_object

REAL = "real"  # the speakers of the pool, to compare with
HERE, PAPER = "here", "004"
CAPACITY = {"mean": "mean_cosine", "min": "min_cosine", "max": "max_cosine", "pairs": "pairs",
            "above_threshold": "share_above_threshold"}  # fmt: skip
ABOVE = CAPACITY["above_threshold"]
EER_OF = "eer_"  # and the attacker's name: a figure
PRINTED = {"II": "", "III": "", "Fig. 11": "2000000"}  # tables, and their number of vectors
# One figure of a generator. of: here or 004; indices, n: of a capacity (n is empty where it means
# nothing). Values are cosines, shares, seconds, dB and fractions.
COLUMNS = ("generator", "figure", "value", "of", "indices", "n", "evaluator", "split")
LINES = {"keys": "-", "calibrated": "-", "unseen": "--", "mixed": ":", "seen": ""}
Rows = list[dict[str, Any]]


class Place(NamedTuple):
    """Subject of figures."""

    generator: str
    of: str
    indices: str
    n: str
    evaluator: str
    split: str


def _rows(generator: str, figures: Iterable[tuple[str, float]], **where: Any) -> Rows:
    said = dict.fromkeys(COLUMNS, "") | {"generator": generator, "of": HERE} | where
    return [{**said, "figure": figure, "value": value} for figure, value in figures]


def capacity_rows(generator: str, path: Path) -> Rows:
    """The table of steps/measure_capacity.py as rows."""
    table, rows = read_csv(path, sep="\t").rename(columns={"#indices": "indices"}), []
    for line in table.to_dict("records"):
        found = ((figure, float(line[name])) for name, figure in CAPACITY.items())
        known = (one for one in found if not math.isnan(one[1]))
        rows += _rows(generator, known, indices=line["indices"], n=str(line["n"]))
    return rows


def time_rows(generator: str, path: Path) -> Rows:
    """The file of steps/time_generator.py as rows."""
    values = read_json_object(path, "make it again")
    found = ((name, values[name]) for name in ("cpu_seconds", "rtf"))
    return _rows(generator, found, n=str(values.get("vectors") or ""))


def speech_rows(lists: Iterable[Sequence[str]]) -> Rows:
    """DeID (a fraction), G_VD (dB) and the EER of each attacker (a fraction, `eer_<attacker>`) of
    labelled folders of figures, where they are defined."""
    rows = []
    for found in (row for at, of in labelled(lists).items() for row in tabulate(at, of)[0]):
        name, where = found["metric"], {of: found[of] for of in ("evaluator", "split")}
        if name in ("deid", "g_vd", "eer") and found["value"]:
            name = f"{EER_OF}{found['attacker']}" if name == "eer" else name
            rows += _rows(found["system"], [(name, float(found["value"]))], **where)
    return rows


def published_rows(generator: str) -> Rows:
    """Figures that the paper prints of a generator: Tables II (speaker level) and III, Fig. 11."""
    own = frame.where(published(PAPER), ours=generator, table=[*PRINTED]).itertuples()
    made = (_rows(generator, [(f.metric, f.number)], of=PAPER, n=PRINTED[f.table]) for f in own)
    return [row for rows in made for row in rows]


def read_rows(path: Path) -> DataFrame:
    """The table that the study wrote; UserError where it is none."""
    found = read_frame(path, COLUMNS)
    try:
        return found.assign(value=found["value"].astype(float))
    except ValueError as error:
        raise UserError(f"{path}: not a table of generators: {error}") from error


class GeneratorFigures(Study):
    """Generators compared: a figure a row, as COLUMNS has it. found: figures by name, of equal ones
    the last; names: generators whose time was measured, for others were only attacked."""

    template, table, csv = "generators", "generators.csv", {"float_format": "%.6g"}

    def __init__(self, figures: DataFrame) -> None:
        super().__init__(figures)
        places = figures.groupby([*Place._fields], sort=False)
        self.found = {
            Place(*key): dict(zip(own["figure"], own["value"], strict=True)) for key, own in places
        }
        timed = (at.generator for at, found in self.found.items() if "cpu_seconds" in found)
        self.names = [*dict.fromkeys(timed)]

    def having(
        self, name: str, *figures: str, of: str = ""
    ) -> list[tuple[Place, dict[str, float]]]:
        """Places of a generator, here or in the paper (of; empty: in both), that have one of some
        figures, and what was found there."""
        return [
            (at, found) for at, found in self.found.items()
            if at.generator == name and of in ("", at.of) and not found.keys().isdisjoint(figures)
        ]  # fmt: skip

    def value(self, name: str, figure: str, of: str = HERE) -> float | None:
        """A figure of a generator that there is once; None where it was not measured."""
        return next((found[figure] for _, found in self.having(name, figure, of=of)), None)

    def voices(self) -> Table:
        """How much alike the most voices are, and their cost."""
        most: dict[tuple[str, str], Place] = {}
        for at, found in self.found.items():
            # Of mixed ones a number tells nothing without the curve.
            if at.of == HERE and "mean_cosine" in found and at.indices != "mixed":
                kind = at.generator, at.indices
                most[kind] = max(most.get(kind, at), at, key=lambda one: int(one.n))
        lines = []
        for (name, indices), at in most.items():
            of, cost = self.found[at], self.value(name, "cpu_seconds")
            mean, *ends = (number(of[f"{what}_cosine"], 3) for what in ("mean", "min", "max"))
            used = indices == "calibrated" or (name, "calibrated") not in most
            lines.append(
                [code(name), indices, f"{int(at.n):,}", mean, ", ".join(ends),
                 number(100 * of[ABOVE], 1) if ABOVE in of else "",
                 f"{1000 * cost:.2g}" if used and cost else ""]
            )  # fmt: skip
        header = ["generator", "voices", "n", "mean cosine", "smallest, largest",
                  "pairs above the threshold (%)", "CPU time of a vector (ms)"]  # fmt: skip
        return Table(header, lines)

    def draw(self, folder: Path, **said: Any) -> None:
        """capacity.pdf and capacity.svg: largest, mean and smallest cosine against the number."""
        draw.use_style()
        canvas = Canvas(figsize=(5.0, 6.6), layout="constrained", facecolor="white")
        panels = canvas.subplots(3, 1, sharex=True, height_ratios=(1, 1.4, 1))
        kinds = (("max", "largest"), ("mean", "mean"), ("min", "smallest"))
        for axes, (what, title) in zip(panels, kinds, strict=True):
            self._draw_panel(axes, f"{what}_cosine")
            if what != "min":
                at = said["threshold"]["threshold"]
                axes.axhline(at, color=draw.SOFT, linewidth=0.8, linestyle=":")
            axes.grid(visible=True)
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter("{x:,.0f}")
            axes.xaxis.set_minor_formatter("")
            axes.set_ylabel(f"{title} cosine")
        panels[2].set_xlabel("pseudo-speakers (dotted line: cosine at the encoder's EER)")
        handles, labels = panels[1].get_legend_handles_labels()
        canvas.legend(handles, labels, loc="outside lower center", ncols=3)
        draw.save(canvas, folder / "capacity")

    def _draw_panel(self, axes: Axes, figure: str) -> None:
        for at, found in self.having(REAL, figure, of=HERE):
            style: Mapping[str, Any] = {"color": draw.INK, "markersize": 9}
            axes.plot([int(at.n)], [found[figure]], "*", label="real speakers", **style)
        for (place, name), (indices, line) in product(enumerate(self.names), LINES.items()):
            every = self.having(name, figure, of=HERE)
            if own := [(int(at.n), found[figure]) for at, found in every if at.indices == indices]:
                axes.plot(
                    *zip(*own, strict=True), linestyle=line,
                    color=draw.colour(place), marker=draw.marker(place), markersize=4,
                    markerfacecolor=draw.colour(place) if line == "-" else "none",
                    label=name if line == "-" else f"{name}, {indices}",
                )  # fmt: skip


def voices_table(words: Sequence[str], page: Path) -> Table:
    """`<!-- table: voices FOLDER -->`: generators of FOLDER/generators.csv: how much alike the most
    voices are, and their cost."""
    if len(words) != 1:
        raise UserError(f"{page}: a table of voices names one folder of results")
    return GeneratorFigures(read_rows(page.parent / words[0] / "generators.csv")).voices()
