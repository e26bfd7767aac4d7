"""EER and D_ECE against the number of speakers: table, rows, curve (004, Fig. 9)."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pandas import DataFrame

from local.report import draw
from local.report.frame import number
from local.report.papers import of_table
from local.report.study import Study, count_along, panels, save_panels
from local.report.tables import Table
from local.report.words import markdown_table
from steps.populations.populations import Row, columns, read_table

REAL, ORIGINAL = "real", "original"


@dataclass(frozen=True)
class Point(Row):
    """One population (or, of real x-vectors, one subset of the speakers). Rates are fractions.

    _least, _most: bounds of the exact EER; _low, _high: 95 % interval over groups of its speakers.
    """

    n_enrol: int
    n_trial: int
    n_target: int
    n_nontarget: int
    eer: float
    eer_least: float
    eer_most: float
    d_ece: float
    eer_low: float
    eer_high: float
    d_ece_low: float
    d_ece_high: float
    system: str = ""

    @classmethod
    def of(cls, row: Row, made: Mapping[str, Any]) -> "Point":
        """The figures of a population: made by `metrics.large.report`."""
        counts = (made[name] for name in ("n_enrol", "n_trial", "n_target", "n_nontarget"))
        rates = (made["eer"], *made["bounds"]["eer"], made["d_ece"])
        ends = (made["intervals"][name] or (math.nan,) * 2 for name in ("eer", "d_ece"))
        return cls(*astuple(row), *counts, *rates, *itertools.chain(*ends))


def read_points(system: str, path: Path) -> list[Point]:
    """The curve of a system."""
    return [replace(point, system=system) for point in read_table(path, Point)]


def to_frame(points: Sequence[Point]) -> DataFrame:
    """One population a row; `simulated`: whether its speakers are."""
    made = DataFrame(points)[["system", *columns(Point)]]
    made.insert(0, "simulated", ["false" if p.system == REAL else "true" for p in points])
    return made


def _curves(points: DataFrame) -> Iterator[tuple[str, str, DataFrame]]:
    """System, voices and points of each curve, in order of appearance."""
    for (system, voices), own in points.groupby(["system", "voices"], sort=False):
        yield system, voices, own.sort_values("speakers", kind="stable")


def _told(values: DataFrame, name: str, scale: float, digits: int) -> list[str]:
    """Mean, lowest to highest, interval of the first."""
    of, first = scale * values[name], values.iloc[0]
    ends = ((of.min(), of.max()), (scale * first[f"{name}_low"], scale * first[f"{name}_high"]))
    told = [" to ".join(number(end, digits) for end in pair) for pair in ends]
    return [number(scale * values[name].mean(), digits), *told]


def table(points: DataFrame) -> Table:
    """A row for each system, voices and number of speakers."""
    rows = []
    for system, voices, curve in _curves(points):
        for size, own in curve.groupby("speakers"):
            first = own.iloc[0]
            kind = "simulated" if first["simulated"] == "true" else "real"
            trials = f"{first['n_target'] + first['n_nontarget']:,}"
            figures = [*_told(own, "eer", 100, 2), *_told(own, "d_ece", 1, 4)]
            rows.append([system, kind, voices, f"{size:,}", str(len(own)), trials, *figures])
    header = ["system", "speakers are", "voices", "speakers", "populations", "trials of one"]
    for figure in ("EER (%)", "D_ECE (bit)"):
        header += [f"{figure}: mean", "lowest to highest", "95 % of the first"]
    return Table(header, rows)


def falls(points: DataFrame) -> str:
    """A table of how the mean EER falls from the smallest to the largest number, beside 004's."""
    fig_9 = of_table("004", "Fig. 9")
    printed = dict(zip(fig_9["ours"], fig_9["value"], strict=True))
    rows = []
    for system, voices, curve in _curves(points):
        means = curve.groupby("speakers")["eer"].mean()
        if system == REAL or len(means) == 1:
            continue
        ends = means.iloc[0], means.iloc[-1]
        fall = number(100 * (1 - ends[1] / ends[0]), 1) if ends[0] else "undefined (EER 0)"
        theirs = printed.get(system.removesuffix("_utt"), "")
        sizes = f"{means.index[0]:,}, {means.index[-1]:,}"
        rows.append([system, voices, sizes, fall, theirs])
    header = ["system", "voices", "from, to speakers", "EER falls by (%)", "Liu et al. 2025"]
    return markdown_table(header, rows)


def draw_curves(points: DataFrame, folder: Path, **_: Any) -> None:
    """large.pdf and large.svg: mean over populations, bars from the lowest to the highest."""
    canvas, (above, below) = panels((5.0, 6.2), (1, 1))
    for axes, name, scale in ((above, "eer", 100.0), (below, "d_ece", 1.0)):
        for place, (system, voices, curve) in enumerate(_curves(points)):
            groups = (scale * curve[name]).groupby(curve["speakers"])
            mean = groups.mean()
            ends = np.array([mean - groups.min(), groups.max() - mean])
            axes.errorbar(
                mean.index.tolist(), mean.to_numpy(), np.maximum(ends, 0.0),
                label=system if voices == "-" else f"{system}, {voices}",
                color=draw.colour(place), marker=draw.marker(place), markersize=4, capsize=2,
                linewidth=1,
                linestyle="none" if system == REAL else ":" if voices == "same" else "-",
            )  # fmt: skip
        count_along(axes)
    above.set_title("simulated speakers, all but those of 'real'")
    above.set_ylabel("EER (%)")
    below.set_ylabel("D_ECE (bit)")
    below.set_xlabel("speakers (bars: lowest to highest of the populations)")
    save_panels(canvas, above, folder / "large")


def _fits(points: DataFrame) -> list[tuple[int, str]]:
    simulated = points[points["simulated"] == "true"]
    return sorted(set(zip(simulated["fit_speakers"], simulated["fit_rank"], strict=True)))


STUDY = Study(
    "local/report/templates/large.md.jinja",
    {"table": table, "falls": falls, "fits": _fits},
    table="large.csv",
    csv={"na_rep": "nan"},
    draw=draw_curves,
)
