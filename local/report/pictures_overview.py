# SPDX-License-Identifier: Apache-2.0
"""Overview pictures: DeID against G_VD (000, Fig. 3), and EER by attacker."""

import math
from pathlib import Path

from matplotlib.axes import Axes

from local.report import draw
from local.report.draw import Picture
from local.report.load import NOTHING, Results, Value
from local.report.words import (
    HEARD,
    PROTECTED,
    absent,
    attacker,
    enumerate_words,
    number,
    percent,
)

_FEW = 5  # systems whose markers have room beside each other


def bars(value: Value, scale: float) -> list[list[float]] | None:
    """Lengths of the error bars of one point, for matplotlib; None without an interval."""
    if not value.bounded or not all(map(math.isfinite, (value.low, value.high))):
        return None
    middle = value.value
    return [[max(0.0, scale * (middle - value.low))], [max(0.0, scale * (value.high - middle))]]


def scatter(results: Results, evaluator: str, folder: Path | None) -> Picture | None:
    """DeID (x) against G_VD (y) of all systems and splits, with intervals (000, Fig. 3)."""
    points, left_out = [], []
    for i, system in enumerate(results.systems()):
        for j, split in enumerate(results.splits(evaluator)):
            deid, g_vd = (
                results.value(evaluator, split, system, "similarity", m) for m in ("deid", "g_vd")
            )
            if deid is None or g_vd is None:
                continue
            if math.isfinite(deid.value) and math.isfinite(g_vd.value):
                points.append((i, j, system, split, deid, g_vd))
            else:
                left_out.append(f"{system} on {split}")
    if not points and not left_out:
        return None
    canvas, axes = draw.new(3.0)
    for i, j, _, _, deid, g_vd in points:
        axes.errorbar(
            100 * deid.value, g_vd.value, xerr=bars(deid, 100), yerr=bars(g_vd, 1),
            fmt=draw.marker(j), color=draw.colour(i), markerfacecolor=draw.face(i),
            elinewidth=0.8, capsize=2, markersize=5.5,
        )  # fmt: skip
    _scatter_keys(axes, points)
    axes.axhline(0, color=draw.SOFT, linewidth=0.8, linestyle=":")
    axes.set_xlabel("DeID (%): 0 = as before")
    axes.set_ylabel("G_VD (dB): 0 = as before")
    axes.grid(True)
    axes.margins(0.08)
    if points:
        draw.legend(canvas)
    return draw.finish(
        canvas,
        draw.slug("deid_gvd", evaluator),
        "De-identification against voice distinctiveness",
        _scatter_finding(points, left_out),
        folder,
    )


def _scatter_keys(axes: Axes, points: list[tuple[int, int, str, str, Value, Value]]) -> None:
    """What stands in the legend: colours are systems, markers are splits."""
    for i, system in sorted({p[0]: p[2] for p in points}.items()):
        axes.plot(
            [], [], "s", color=draw.colour(i), markerfacecolor=draw.face(i), markersize=5,
            label=draw.label(system),
        )  # fmt: skip
    for j, split in sorted({p[1]: p[3] for p in points}.items()):
        axes.plot(
            [], [], draw.marker(j), color=draw.INK, markerfacecolor="none", markersize=5,
            label=draw.label(split),
        )  # fmt: skip


def _scatter_finding(
    points: list[tuple[int, int, str, str, Value, Value]], left_out: list[str]
) -> str:
    text = ""
    if points:
        best = max(points, key=lambda p: p[4].value)
        worst = min(points, key=lambda p: p[4].value)
        distinct = max(points, key=lambda p: p[5].value)
        text = (
            f"Old voices, {HEARD}, are hidden best by {best[2]} on {best[3]} "
            f"(DeID {percent(best[4].value)}) and least by {worst[2]} on {worst[3]} "
            f"({percent(worst[4].value)}); protected voices stay most distinct "
            f"with {distinct[2]} on {distinct[3]} (G_VD {number(distinct[5].value)} dB)."
        )
    if left_out:
        text += f" Not drawn, being undefined or −∞: {enumerate_words(left_out)}."
    return text.strip()


def eer_by_attacker(
    results: Results, evaluator: str, split: str, folder: Path | None
) -> Picture | None:
    """EER under attackers of rising knowledge, a line a system; gaps are said in words."""
    known = results.attackers(evaluator)
    # Where one kind of an attacker was run, its other kinds need no empty place.
    order = [a for a in PROTECTED if a in known or a in absent(known)]
    order += [a for a in known if a not in (*PROTECTED, "unprotected")]
    measured = [a for a in order if a in known]
    systems = results.systems()
    if not measured or not systems:  # of constant targets there are radars
        return None
    canvas, axes = draw.new(2.9)
    unprotected = results.value(evaluator, split, "original", "unprotected", "eer") or NOTHING
    if math.isfinite(unprotected.value):
        axes.axhline(
            100 * unprotected.value, color=draw.SOFT, linestyle="--", label="unprotected speech"
        )
        if unprotected.bounded:
            axes.axhspan(
                100 * unprotected.low, 100 * unprotected.high, color=draw.SOFT, alpha=0.12, lw=0
            )
    axes.axhline(50, color=draw.SOFT, linewidth=0.8, linestyle=":", label="coin toss")
    for i, system in enumerate(systems):
        _eer_line(axes, results, (evaluator, split, system), measured, order, i, len(systems))
    names = [attacker(a) + ("" if a in measured else "\n(not measured)") for a in order]
    axes.set_xticks(range(len(order)), names, rotation=30, ha="right", rotation_mode="anchor")
    axes.set_xlim(-0.5, len(order) - 0.5)
    axes.set_ylim(0, max(54.0, axes.get_ylim()[1]))
    axes.set_ylabel("EER of the attacker (%):\nlower is worse for speakers")
    axes.set_title(split, loc="left")
    axes.grid(True, axis="y")
    draw.legend(canvas)
    alt = _eer_finding(results, (evaluator, split), systems, measured, unprotected)
    missing = [attacker(a) for a in order if a not in measured]
    if missing:
        alt += f" Not measured: {enumerate_words(missing)}, who may do better still."
    title = f"Equal error rate by attacker, {split}"
    return draw.finish(canvas, draw.slug("eer_by_attacker", evaluator, split), title, alt, folder)


def _eer_line(
    axes: Axes,
    results: Results,
    of: tuple[str, str, str],
    measured: list[str],
    order: list[str],
    index: int,
    n_systems: int,
) -> None:
    shift = 0.64 * ((index + 0.5) / n_systems - 0.5)
    x, y, low, high = [], [], [], []
    for name in measured:
        found = results.value(*of, name, "eer")
        if found is None or not math.isfinite(found.value):
            continue
        down, up = bars(found, 100) or [[0.0], [0.0]]
        x.append(order.index(name) + shift)
        y.append(100 * found.value)
        low.append(down[0])
        high.append(up[0])
    axes.errorbar(
        x, y, yerr=[low, high], color=draw.colour(index), marker=draw.marker(index),
        markerfacecolor=draw.face(index), linestyle=draw.line(index), elinewidth=0.8,
        capsize=2.5 if n_systems <= _FEW else 1, markersize=5 if n_systems <= _FEW else 3.5,
        linewidth=1.5 if n_systems <= _FEW else 0.7,
        label=draw.label(of[2]),
    )  # fmt: skip


def _eer_finding(
    results: Results,
    of: tuple[str, str],
    systems: list[str],
    measured: list[str],
    unprotected: Value,
) -> str:
    parts = []
    short = len(systems) > _FEW
    for system in systems:
        found = {a: results.value(*of, system, a, "eer") or NOTHING for a in measured}
        defined = {a: v.value for a, v in found.items() if math.isfinite(v.value)}
        if defined:
            best = min(defined, key=lambda a: defined[a])
            parts.append(
                f"{system} {percent(defined[best])} ({attacker(best)})"
                if short
                else f"{system} holds the best attacker measured ({attacker(best)}) at "
                f"{percent(defined[best])}"
            )
    start = f"On {of[1]} unprotected speech has an EER of {percent(unprotected.value)}; "
    start += "under the best attacker measured: " if short else ""
    return start + "; ".join(parts) + "; 50 % would be a coin toss."
