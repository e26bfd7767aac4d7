# SPDX-License-Identifier: Apache-2.0
"""Voice similarity matrices (000, Fig. 2; 002, Fig. 9) and the zoo plots beneath (002, Fig. 6)."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from local.metrics.similarity import dominance_of_rows
from local.report import draw
from local.report.draw import Picture
from local.report.load import NOTHING, Results
from local.report.words import enumerate_words, number, percent

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]
SETTINGS = {
    "oo": "OO: original–original",
    "op": "OP: original–protected",
    "pp": "PP: protected–protected",
}
_FEW = 24  # up to so many speakers their names stand beside the matrix


def quadrants(results: Results, entry: dict[str, Any], folder: Path) -> Picture:
    """M_OO, M_OP and M_PP with one colour scale from 0 to 1; M_OP stands beneath, turned, too."""
    where, names = entry["where"], [str(name) for name in entry["speakers"]]
    oo, op, pp = (np.array(entry[f"sim_{s}"], np.float64) for s in SETTINGS)
    n = len(names)
    canvas, axes = draw.new(3.35)
    whole = np.block([[oo, op], [op.T, pp]])
    image = axes.imshow(whole, cmap="viridis", vmin=0, vmax=1, interpolation="none", aspect="equal")
    for cut in (axes.axhline, axes.axvline):
        cut(n - 0.5, color="white", linewidth=1.4)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    ticks = [(n - 1) / 2, n + (n - 1) / 2]
    axes.set_xticks(ticks, ["original", "protected"])
    axes.set_yticks(ticks, ["original", "protected"], rotation=90, va="center")
    for (row, column), text in zip(((0, 0), (0, 1), (1, 1)), ("OO", "OP", "PP"), strict=True):
        _tag(axes, text, row, column, n)
    if n <= _FEW:
        _names(axes, names)
    bar = canvas.colorbar(image, ax=axes, shrink=0.75, aspect=25, pad=0.02)
    bar.set_label("voice similarity")
    bar.outline.set_visible(False)
    title = f"Voice similarity, {where['system']} on {where['split']}"
    axes.set_title(f"{where['system']} on {where['split']}", loc="left")
    name = draw.slug("similarity", where["evaluator"], where["system"], where["split"])
    return draw.finish(canvas, name, title, _finding(results, where, names, oo, op), folder)


def _tag(axes: Axes, text: str, row: int, column: int, n: int) -> None:
    axes.text(
        column * n + n - 0.9, row * n - 0.1, text, color="white", ha="right", va="top", fontsize=7,
        fontweight="bold", bbox={"facecolor": "#000000", "alpha": 0.45, "lw": 0, "pad": 1.2},
    )  # fmt: skip


def _names(axes: Axes, names: list[str]) -> None:
    """Speakers at the right of the rows and on top of the columns, small."""
    n = len(names)
    size = min(5.5, 110 / (2 * n))
    short = [name if len(name) <= 8 else name[:7] + "…" for name in names]
    for i, name in enumerate([*short, *short]):
        axes.text(2 * n - 0.35, i, name, fontsize=size, va="center", ha="left")


def _finding(
    results: Results, where: dict[str, str], names: list[str], oo: Matrix, op: Matrix
) -> str:
    of = (where["evaluator"], where["split"], where["system"], "similarity")
    deid, g_vd = (results.value(*of, metric) or NOTHING for metric in ("deid", "g_vd"))
    remaining = dominance_of_rows(op)
    worst = int(np.argmax(remaining))
    text = (
        f"The diagonal between original and protected speech of {where['system']} is "
        f"{percent(1 - deid.value)} of that of the originals (DeID {percent(deid.value)}); between "
        f"protected voices it is {number(g_vd.value)} dB (G_VD) against the originals. Speaker "
        f"{names[worst]} stays most recognisable: own similarity {number(float(op[worst, worst]))} "
        f"where original speech has {number(float(oo[worst, worst]))}."
    )
    others = op - np.diag(np.diag(op))
    row, column = np.unravel_index(int(np.argmax(others)), op.shape)
    if others[row, column] > 0.5:
        text += (
            f" The protected {names[column]} sounds like the original {names[row]} "
            f"(similarity {number(float(others[row, column]))})."
        )
    return text


def zoo(entry: dict[str, Any], folder: Path) -> Picture:
    """Mean calibrated LLR of a speaker's target pairs (x) and of its impostor pairs (y)."""
    where, names = entry["where"], [str(name) for name in entry["speakers"]]
    canvas, axes = draw.new(2.7)
    points = {s: np.array(entry[f"zoo_{s}"], np.float64) / np.log(10.0) for s in SETTINGS}
    for i, (s, text) in enumerate(SETTINGS.items()):
        axes.scatter(
            points[s][:, 0], points[s][:, 1], s=16, marker=draw.marker(i), label=text,
            facecolors="none" if s == "oo" else draw.colour(i - 1),
            edgecolors=draw.SOFT if s == "oo" else draw.colour(i - 1), linewidths=0.9,
        )  # fmt: skip
    worst = int(np.argmax(points["op"][:, 0]))
    axes.annotate(
        draw.label(names[worst]), points["op"][worst], xytext=(4, 5), textcoords="offset points",
        fontsize=6.5,
    )  # fmt: skip
    axes.axhline(0, color=draw.GRID, linewidth=0.8)
    axes.axvline(0, color=draw.GRID, linewidth=0.8)
    axes.set_xlabel("with own voice: mean LLR of target pairs (decades)")
    axes.set_ylabel("with others: mean LLR (decades)")
    axes.margins(0.1)
    canvas.legend(loc="outside lower center", ncols=2)
    axes.set_title(f"{where['system']} on {where['split']}", loc="left")
    return draw.finish(
        canvas,
        draw.slug("zoo", where["evaluator"], where["system"], where["split"]),
        f"Zoo plot, {where['system']} on {where['split']}",
        _zoo_finding(points, names, worst),
        folder,
    )


def _zoo_finding(points: dict[str, Matrix], names: list[str], worst: int) -> str:
    op, pp = points["op"], points["pp"]
    centre, spread = float(np.median(op[:, 0])), np.ptp(op[:, 0])
    text = (
        f"Against the original, protected speakers have a median target LLR of {number(centre)} "
        f"decades (0 is no evidence), over a range of {number(float(spread))}; {names[worst]} has "
        f"the highest, {number(float(op[worst, 0]))}."
    )
    wolves = [names[i] for i in np.argsort(-pp[:, 1]) if pp[i, 1] > 0]
    if wolves:
        text += f" Their protected voices are confused with others': {enumerate_words(wolves)}."
    return text
