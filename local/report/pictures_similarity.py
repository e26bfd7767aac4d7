# SPDX-License-Identifier: Apache-2.0
"""Voice similarity matrices (000, Fig. 2; 002, Fig. 9) and the zoo plots beneath (002, Fig. 6)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

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
_FEW = 11  # up to so many speakers their names stand beside the matrix, large enough to be read


def similarity(results: Results, entry: dict[str, Any], folder: Path | None) -> Picture:
    """The matrices of one system on one split, and the zoo plot beneath (002, Fig. 6)."""
    where, names = entry["where"], [str(name) for name in entry["speakers"]]
    matrices = [np.array(entry[f"sim_{s}"], np.float64) for s in SETTINGS]
    points = {s: np.array(entry[f"zoo_{s}"], np.float64) / np.log(10.0) for s in SETTINGS}
    canvas, (above, beneath) = draw.stacked(6.4, (1.9, 1))
    _quadrants(canvas, above, matrices, names)
    _zoo(beneath, points, names)
    low, high = _zoo_range(results, where["evaluator"])
    beneath.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    draw.legend(canvas)
    above.set_title(f"{where['system']} on {where['split']}", loc="left")
    title = f"Voice similarity and zoo plot, {where['system']} on {where['split']}"
    name = draw.slug("similarity", where["evaluator"], where["system"], where["split"])
    alt = f"{_finding(results, where, names, *matrices[:2])} {_zoo_finding(points, names)}"
    return draw.finish(canvas, name, title, alt, folder)


def _quadrants(canvas: Canvas, axes: Axes, matrices: Sequence[Matrix], names: list[str]) -> None:
    """M_OO, M_OP and M_PP with one colour scale from 0 to 1; M_OP stands beneath, turned, too."""
    oo, op, pp = matrices
    n = len(names)
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
    bar = canvas.colorbar(image, ax=axes, location="bottom", shrink=0.8, aspect=35, pad=0.02)
    bar.set_label("voice similarity")
    bar.outline.set_visible(False)  # type: ignore[operator]


def _tag(axes: Axes, text: str, row: int, column: int, n: int) -> None:
    axes.text(
        column * n + n - 0.9, row * n - 0.1, text, color="white", ha="right", va="top", fontsize=7,
        fontweight="bold", bbox={"facecolor": "#000000", "alpha": 0.45, "lw": 0, "pad": 1.2},
    )  # fmt: skip


def _names(axes: Axes, names: list[str]) -> None:
    """Speakers at the right of the rows and on top of the columns, small."""
    n = len(names)
    short = [name if len(name) <= 8 else name[:7] + "…" for name in names]
    for i, name in enumerate([*short, *short]):
        axes.text(2 * n - 0.35, i, name, fontsize=draw.SMALL, va="center", ha="left")


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
    if others[row, column] > 0.6:
        text += (
            f" The protected {names[column]} sounds like the original {names[row]} "
            f"(similarity {number(float(others[row, column]))})."
        )
    return text


def _zoo(axes: Axes, points: dict[str, Matrix], names: list[str]) -> None:
    """Mean calibrated LLR of a speaker's target pairs (x) and of its impostor pairs (y)."""
    for i, (s, text) in enumerate(SETTINGS.items()):
        axes.scatter(
            points[s][:, 0], points[s][:, 1], s=16, marker=draw.marker(i), label=text,
            facecolors="none" if s == "oo" else draw.colour(i - 1),
            edgecolors=draw.SOFT if s == "oo" else draw.colour(i - 1), linewidths=0.9,
        )  # fmt: skip
    worst = int(np.argmax(points["op"][:, 0]))
    axes.annotate(
        draw.label(names[worst]), tuple(points["op"][worst]), xytext=(4, 5),
        textcoords="offset points", fontsize=draw.SMALL,
    )  # fmt: skip
    axes.axhline(0, color=draw.GRID, linewidth=0.8)
    axes.axvline(0, color=draw.GRID, linewidth=0.8)
    axes.set_xlabel("with own voice: mean LLR of target pairs (decades)")
    axes.set_ylabel("with others: mean LLR (decades)")


def _zoo_range(results: Results, evaluator: str) -> tuple[list[float], list[float]]:
    """The lowest and the highest corner of all zoo plots of an evaluator: they share their axes."""
    every = [
        np.array(entry[f"zoo_{s}"], np.float64).reshape(-1, 2) / np.log(10.0)
        for entry in results.entries("similarity", evaluator)
        for s in SETTINGS
    ]
    found = np.concatenate(every)
    found = found[np.isfinite(found).all(axis=1)]
    low, high = found.min(axis=0), found.max(axis=0)
    margin = 0.1 * np.maximum(high - low, 1e-9)
    return (low - margin).tolist(), (high + margin).tolist()


def _zoo_finding(points: dict[str, Matrix], names: list[str]) -> str:
    op, pp = points["op"], points["pp"]
    worst = int(np.argmax(op[:, 0]))
    centre, spread = float(np.median(op[:, 0])), np.ptp(op[:, 0])
    text = (
        f"In the zoo plot, protected speakers against the original have a median target LLR of "
        f"{number(centre)} decades (0 is no evidence), over a range of "
        f"{number(float(spread))}; {names[worst]} has "
        f"the highest, {number(float(op[worst, 0]))}."
    )
    taken = [names[i] for i in np.argsort(-op[:, 1]) if op[i, 1] > 0]
    if taken:
        text += f" Protected voices of others pass for the original {enumerate_words(taken)}."
    wolves = [names[i] for i in np.argsort(-pp[:, 1]) if pp[i, 1] > 0]
    if wolves:
        text += f" Their protected voices are confused with others': {enumerate_words(wolves)}."
    return text
