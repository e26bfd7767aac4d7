"""Generators of pseudo-speakers beside each other, and the curves of Liu et al. 2025, Fig. 11."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from pandas import DataFrame, read_csv

from local.report import draw, frame
from local.report.frame import number, read_frame
from local.report.gather import labelled, tabulate
from local.report.papers import CITED, published
from local.report.studies import Study, pivot
from local.report.tables import Table
from local.report.words import Marked, attacker, code
from utils.cli import UserError
from utils.tables import read_json_object

REAL = "real"  # the speakers of the pool, to compare with
PAPER = "004"
AUTHORS = CITED[PAPER]


NOT_RUN, HERE = "not run", "here"
CAPACITY = {"mean": "mean_cosine", "min": "min_cosine", "max": "max_cosine", "pairs": "pairs",
            "above_threshold": "share_above_threshold"}  # fmt: skip
COSINES = ("mean_cosine", "min_cosine", "max_cosine")
ABOVE = CAPACITY["above_threshold"]
EER_OF = "eer_"  # and the attacker's name: a figure
PRINTED = {"II": "", "III": "", "Fig. 11": "2000000"}  # tables, and their number of vectors
# One figure of a generator. of: here or 004; indices, n: of a capacity (n is empty where it means
# nothing). Values are cosines, shares, seconds, dB and fractions.
COLUMNS = ("generator", "figure", "value", "of", "indices", "n", "evaluator", "split")
SIMILARITY = frame.measure("deid", digits=2), frame.measure("g_vd", digits=3)
LINES = {"keys": "-", "calibrated": "-", "unseen": "--", "mixed": ":", "seen": ""}


def _rows(generator: str, figures: Iterable[tuple[str, float]], **where: Any) -> list[Any]:
    said = dict.fromkeys(COLUMNS, "") | {"generator": generator, "of": HERE} | where
    return [{**said, "figure": figure, "value": value} for figure, value in figures]


def capacity_rows(generator: str, path: Path) -> list[dict[str, Any]]:
    """The table of steps/measure_capacity.py as rows."""
    table, rows = read_csv(path, sep="\t").rename(columns={"#indices": "indices"}), []
    for line in table.to_dict("records"):
        found = ((figure, float(line[name])) for name, figure in CAPACITY.items())
        known = (one for one in found if not math.isnan(one[1]))
        rows += _rows(generator, known, indices=line["indices"], n=str(line["n"]))
    return rows


def time_rows(generator: str, path: Path) -> list[dict[str, Any]]:
    """The file of steps/time_generator.py as rows."""
    values = read_json_object(path, "make it again")
    found = ((name, values[name]) for name in ("cpu_seconds", "rtf"))
    return _rows(generator, found, n=str(values.get("vectors") or ""))


def speech_rows(lists: Iterable[Sequence[str]]) -> list[dict[str, Any]]:
    """DeID (a fraction), G_VD (dB) and the EER of each attacker (a fraction, `eer_<attacker>`) of
    labelled folders of figures, where they are defined."""
    rows = []
    for found in (row for at, of in labelled(lists).items() for row in tabulate(at, of)[0]):
        name, where = found["metric"], {of: found[of] for of in ("evaluator", "split")}
        if name in ("deid", "g_vd", "eer") and found["value"]:
            name = f"{EER_OF}{found['attacker']}" if name == "eer" else name
            rows += _rows(found["system"], [(name, float(found["value"]))], **where)
    return rows


def published_rows(generator: str) -> list[dict[str, Any]]:
    """Figures that the paper prints of a generator: Tables II (speaker level) and III, Fig. 11."""
    own = frame.where(published(PAPER), ours=generator, table=[*PRINTED])
    found = ((_rows(generator, [(f.metric, f.number)], of=PAPER, n=PRINTED[f.table]))
             for f in own.itertuples())  # fmt: skip
    return [*itertools.chain(*found)]


def read_rows(path: Path) -> DataFrame:
    """The table that the study wrote; UserError where it is none."""
    found = read_frame(path, COLUMNS)
    try:
        return found.assign(value=found["value"].astype(float))
    except ValueError as error:
        raise UserError(f"{path}: not a table of generators: {error}") from error


def _found(rows: DataFrame) -> dict[str, float]:
    """Figures of one generator and place by name; of equal ones the last."""
    return dict(zip(rows["figure"], rows["value"], strict=True))


def _cosines(found: Mapping[str, float]) -> list[str]:
    return [number(found[name], 3) for name in COSINES]


class Generators(Study):
    """Generators compared: a figure a row, as COLUMNS has it."""

    template, table, csv = "generators", "generators.csv", {"float_format": "%.6g"}

    def __init__(self, figures: DataFrame) -> None:
        super().__init__(figures)
        timed = frame.where(figures, figure="cpu_seconds", of=HERE)  # others were only attacked
        self.names = frame.each(timed, "generator")

    def similarity(self) -> Table:
        """DeID and G_VD: a row for each generator, evaluator and split that was run (Table II)."""
        lines = []
        speech = frame.where(self.figures, figure=[made.name for made in SIMILARITY])
        for name in self.names:
            theirs = _found(frame.where(speech, generator=name, of=PAPER))
            own = frame.where(speech, generator=name, of=HERE)
            places = sorted(set(zip(own["evaluator"], own["split"], strict=True))) or [("", "")]
            for evaluator, split in places:
                found = _found(frame.where(own, evaluator=evaluator, split=split))
                cells = [frame.show(of.get(made.name), made, missing=absent) for made in SIMILARITY
                         for of, absent in ((found, NOT_RUN), (theirs, ""))]  # fmt: skip
                lines.append([name, f"{evaluator}, {split}" if split else "", *cells])
        header = ["generator", "evaluator, split", "DeID (%)", AUTHORS, "G_VD (dB)", AUTHORS]
        return Table(header, lines)

    def attacks(self) -> Table:
        """EER of each attacker on the trials of both genders together: a row each."""
        eers = self.figures[self.figures["figure"].str.startswith(EER_OF)]
        lines = [
            [row.generator, attacker(row.figure.removeprefix(EER_OF)),
             f"{row.evaluator}, {row.split}", number(100 * row.value)]
            for row in eers.itertuples()
        ]  # fmt: skip
        return Table(["generator", "attacker", "evaluator, split", "EER (%)"], lines)

    def time(self) -> Table:
        """CPU time of a vector and real-time factor (Table III)."""
        columns = [
            ("ms a vector", (HERE, "cpu_seconds", 1000)),
            ("real-time factor", (HERE, "rtf", 1)),
            (AUTHORS, (PAPER, "rtf", 1)),
        ]
        found = {(f.generator, f.of, f.figure): f.value for f in self.figures.itertuples()}

        def cell(name: str, column: tuple[str, str, int]) -> str:
            value = found.get((name, *column[:2]))
            return "" if value is None else f"{column[2] * value:.3g}"

        return pivot(["generator"], [([name], name) for name in self.names], columns, cell)

    def capacity(self) -> Table:
        """Cosines between pseudo-speakers by their number, and the share above the threshold."""
        lines = []
        own = frame.where(self.figures, figure=[*CAPACITY.values()])
        for name in (REAL, *self.names):
            of_name = frame.where(own, generator=name)
            for (of, indices, n), one in of_name.groupby(["of", "indices", "n"], sort=False):
                found = _found(one)
                pairs = f"{found['pairs']:,.0f}" if "pairs" in found else ""
                above = f"{100 * found[ABOVE]:.3g} %" if ABOVE in found else ""
                word = Marked(f"*{AUTHORS}*") if of == PAPER else indices
                lines.append([name, word, f"{int(n):,}", *_cosines(found), pairs, above])
        header = ["generator", "indices", "n", "mean", "smallest", "largest", "pairs"]
        return Table([*header, "above threshold"], lines)

    def voices(self) -> Table:
        """How much alike the most voices are, and their cost."""
        lines = []
        own = frame.where(self.figures, of=HERE)
        means = frame.where(own, figure=COSINES[0]).astype({"n": int})
        # Of mixed ones a number tells nothing without the curve.
        most = means[means["indices"] != "mixed"].groupby(["generator", "indices"], sort=False)["n"]
        kinds: dict[Any, int] = most.max().to_dict()
        for (name, indices), n in kinds.items():
            of = _found(frame.where(own, generator=name, indices=indices, n=str(n)))
            cost = _found(frame.where(own, generator=name, indices=""))
            mean, least, highest = _cosines(of)
            used = indices == "calibrated" or (name, "calibrated") not in kinds
            lines.append(
                [code(name), indices, f"{n:,}", mean, f"{least}, {highest}",
                 number(100 * of[ABOVE], 1) if ABOVE in of else "",
                 f"{1000 * cost['cpu_seconds']:.2g}" if used and cost else ""]
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
            self._draw_panel(axes, frame.where(self.figures, figure=f"{what}_cosine", of=HERE))
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

    def _draw_panel(self, axes: Axes, rows: DataFrame) -> None:
        rows = rows.astype({"n": int})
        for row in frame.where(rows, generator=REAL).itertuples():
            at, label = ([row.n], [row.value]), "real speakers"
            axes.plot(*at, "*", color=draw.INK, markersize=9, label=label)
        for (place, name), (indices, line) in itertools.product(
            enumerate(self.names), LINES.items()
        ):
            own, solid = frame.where(rows, generator=name, indices=indices), line == "-"
            if not own.empty:
                axes.plot(
                    own["n"].tolist(), own["value"].tolist(), linestyle=line,
                    color=draw.colour(place), marker=draw.marker(place), markersize=4,
                    markerfacecolor=draw.colour(place) if solid else "none",
                    label=name if solid else f"{name}, {indices}",
                )  # fmt: skip


def voices_table(words: Sequence[str], page: Path) -> Table:
    """`<!-- table: voices FOLDER -->`: generators of FOLDER/generators.csv: how much alike the most
    voices are, and their cost."""
    if len(words) != 1:
        raise UserError(f"{page}: a table of voices names one folder of results")
    return Generators(read_rows(page.parent / words[0] / "generators.csv")).voices()
