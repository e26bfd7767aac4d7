"""Drawing through matplotlib: one drawing gives the SVG of the page and the PDF for papers.

The SVG keeps text as text (small, readable by screen readers and search) and its colours are CSS
variables, so that one picture serves a light and a dark page. Nothing depends on the date.
"""

import hashlib
import io
import logging
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.projections.polar import PolarAxes

from local.report.measures import ROOT, Value
from utils.arrays import Float64
from utils.tables import atomic_write

# Colour on a light page (and in PDFs), on a dark page, and the CSS variable that stands for both.
# Colour-blind readers tell all eight series colours apart (tests/test_colours.py); lines and
# markers differ as well.
_COLOURS = pd.read_csv(ROOT / "local/report/colours.csv")
INK, SOFT, GRID, PAPER, *SERIES = _COLOURS["light"]
DARK = dict(zip(_COLOURS["light"], _COLOURS["dark"], strict=True))
NAMES = dict(zip(_COLOURS["light"], _COLOURS["name"], strict=True))
_STYLE = mpl.rc_params_from_file(
    ROOT / "local/report/pictures.mplstyle", use_default_template=False
)
LINES = ("-", "--", "-.", (0, (5, 1, 1, 1, 1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_LONG = 24  # letters of a name in a legend of two columns
_ROWS, _ROW = 3, 0.145  # rows of a legend for which a picture has room; inches of each more
SMALL = 6.8  # points: on a phone of 360 pixels letters are 8 pixels high, and more elsewhere
WIDTH = 3.5  # inches: a picture is as wide as a phone, and several stand side by side on a desk

_FORMATS = {
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    "pdf": {"CreationDate": None, "Creator": "pseudovox", "Producer": None},
}


@dataclass(frozen=True)
class Drawing:
    """A picture on its canvas. name: of its file; alt: its finding in words."""

    canvas: Canvas
    name: str
    title: str
    alt: str


@dataclass(frozen=True)
class Picture:
    """A picture of the page. svg: inline SVG; the rest as in Drawing."""

    name: str
    title: str
    alt: str
    svg: str


def blank(height: float) -> Canvas:
    """A canvas without axes; height in inches."""
    use_style()
    return Canvas(figsize=(WIDTH, height), layout="constrained")


def new(
    height: float, title: str = "", x: str = "", y: str = "", *, grid: str = "", **settings: Any
) -> tuple[Canvas, Axes]:
    """An empty picture with one pair of axes; height in inches; x, y: labels; grid: x, y or both;
    settings: of the axes, such as xlim."""
    canvas = blank(height)
    axes = canvas.add_subplot()
    axes.set_title(title, loc="left")
    if grid:
        axes.grid(True, axis=grid)  # type: ignore[arg-type]
    axes.set(xlabel=x, ylabel=y, **settings)
    return canvas, axes


def polars(n: int, title: str) -> tuple[Canvas, list[PolarAxes]]:
    """An empty picture with `n` small polar axes, three in a row."""
    rows = math.ceil(n / 3)
    canvas = blank(0.3 + rows * 0.4 * WIDTH)
    canvas.suptitle(title, x=0.02, ha="left", fontsize=8.5)
    made = [canvas.add_subplot(rows, 3, i + 1, projection="polar") for i in range(n)]
    return canvas, [axes for axes in made if isinstance(axes, PolarAxes)]


def polar_axes(axes: Axes, n: int) -> Float64:
    """Set the axes up; the angle of each of `n` axes, clockwise from the top."""
    assert isinstance(axes, PolarAxes)
    angle = np.linspace(0, 2 * math.pi, n, endpoint=False)
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    axes.set_ylim(0, 1)
    axes.set_yticks([0.25, 0.5, 0.75, 1.0], [""] * 4)
    axes.set_xticks(angle, [""] * n)
    axes.tick_params(axis="x", labelsize=SMALL, pad=-1)
    axes.spines["polar"].set_color(GRID)
    return angle


def ring(axes: Axes, angle: Float64, r: Float64, index: int, **more: Any) -> None:
    """A closed line; index: number of the system, -1 for originals (dotted)."""
    axes.plot(
        np.append(angle, angle[:1]), np.append(r, r[:1]),
        color=colour(index), linestyle=line(index), **more,
    )  # fmt: skip


def use_style() -> None:
    """Set matplotlib's style; what it and fontTools tell of fonts is not the reader's concern."""
    mpl.rcParams.update(_STYLE)
    for talkative in ("matplotlib", "fontTools"):
        logging.getLogger(talkative).setLevel(logging.ERROR)


def label(text: str, longest: int = _LONG) -> str:
    """A name for a legend, cut where it is long; matplotlib leaves out those that begin with an
    underscore."""
    text = text if len(text) <= longest else text[: longest - 1] + "…"
    return f" {text}" if text.startswith("_") else text


def legend(canvas: Canvas, columns: int = 2, **more: Any) -> None:
    """The legend of a whole picture beneath it, if anything has a label; many rows make the picture
    higher, not its axes smaller."""
    found = [axes.get_legend_handles_labels() for axes in canvas.axes]
    handles = [handle for own, _ in found for handle in own]
    labels = [text for _, own in found for text in own]
    width, height = canvas.get_size_inches()
    rows = math.ceil(len(labels) / columns)
    canvas.set_size_inches(width, height + _ROW * max(0, rows - _ROWS))
    if labels:
        canvas.legend(handles, labels, loc="outside lower center", ncols=columns, **more)


def colour(index: int) -> str:
    """Colour of the series with this number; of originals (-1), grey."""
    return SOFT if index < 0 else SERIES[index % len(SERIES)]


def line(index: int) -> str | tuple[int, tuple[int, ...]]:
    """Line style of the series with this number; colour and style together tell 32 apart.
    Originals (-1) are dotted."""
    return ":" if index < 0 else LINES[(index + index // len(SERIES)) % len(LINES)]


def marker(index: int) -> str:
    """Marker of the series with this number."""
    return MARKERS[(index + 3 * (index // len(SERIES))) % len(MARKERS)]


def look(index: int) -> dict[str, Any]:
    """Colour and marker of the series with this number, hollow where the colours begin anew."""
    inside = colour(index) if index < len(SERIES) else "none"
    return {"color": colour(index), "marker": marker(index), "markerfacecolor": inside}


def bars(value: Value, scale: float = 1.0) -> list[list[float]] | None:
    """Lengths of the error bars of one point, for matplotlib; None without an interval."""
    if not value.bounded or not all(map(math.isfinite, (value.low, value.high))):
        return None
    middle = value.value
    return [[max(0.0, scale * (middle - value.low))], [max(0.0, scale * (value.high - middle))]]


def dot(
    axes: Axes,
    x: Value | float,
    y: Value | float,
    scale: tuple[float, float] = (100.0, 1.0),
    **look: Any,
) -> None:
    """A point with the intervals of its figures, each times its scale; a place has none."""
    (across, xerr), (up, yerr) = (
        (times * v.value, bars(v, times)) if isinstance(v, Value) else (v, None)
        for v, times in zip((x, y), scale, strict=True)
    )
    look = {"elinewidth": 0.8, **look}
    axes.errorbar(across, up, xerr=xerr, yerr=yerr, capsize=2, linestyle="none", **look)


def slug(*parts: str) -> str:
    """A file name of names: letters and digits, `-` for `_`, `+` for `/`; what else is lost is told
    by a digest, so that two names stay two."""
    parts = tuple(part.replace("/", "+") for part in parts)
    name = "_".join(re.sub(r"[^A-Za-z0-9.+]", "-", part).strip("-.") or "x" for part in parts)
    if all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+]*", part) for part in parts):
        return name
    return f"{name}_{hashlib.sha256(repr(parts).encode()).hexdigest()[:8]}"


def finish(drawing: Drawing, folder: Path | None) -> Picture:
    """The picture for the page; and `folder`/<name>.pdf, if there is a folder: fonts take half of
    the time."""
    canvas, name = drawing.canvas, drawing.name
    if folder is not None:
        with atomic_write(folder / f"{name}.pdf", "wb") as stream:
            canvas.savefig(stream, format="pdf", metadata=_FORMATS["pdf"])
        canvas.set_layout_engine("none")  # what was found for the PDF holds; to find it takes long
    text = io.StringIO()
    canvas.savefig(text, format="svg", metadata=_FORMATS["svg"])
    return Picture(name, drawing.title, drawing.alt, inline(text.getvalue(), name))


def inline(svg: str, name: str) -> str:
    """SVG for a place within HTML: ids of its own, colours as CSS variables, the page's font.

    Only tags are changed: names of systems and speakers stand in the text between them.
    """
    svg = svg[svg.index("<svg") :]
    for pattern in (r"<metadata>.*?</metadata>", r"<!--.*?-->", r"<style.*?</style>"):
        svg = re.sub(pattern, "", svg, flags=re.DOTALL)
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', svg))

    def tag(match: re.Match[str]) -> str:
        text = re.sub(
            r' id="([^"]*)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", match[0]
        )
        text = re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", text)
        text = re.sub(r"font-family: [^;\"]*;? ?", "", text)
        for hexadecimal, variable in NAMES.items():
            text = text.replace(hexadecimal, f"var(--{variable})")
        return text

    svg = re.sub(r"<[^>]+>", tag, svg)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    return re.sub(r"\s*\n\s*", "\n", svg).strip()


def css() -> tuple[str, str]:
    """The declarations of the colours on a light page and on a dark one."""
    light = "".join(f"--{name}:{value};" for value, name in NAMES.items())
    return light, "".join(f"--{NAMES[value]}:{dark};" for value, dark in DARK.items())


def save(canvas: Canvas, stem: Path) -> None:
    """<stem>.pdf and <stem>.svg, the same bytes at any time."""
    for kind, metadata in _FORMATS.items():
        with atomic_write(stem.with_name(f"{stem.name}.{kind}"), "wb") as stream:
            canvas.savefig(stream, format=kind, metadata=metadata)
