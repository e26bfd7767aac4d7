# SPDX-License-Identifier: Apache-2.0
"""Privacy against utility, a point a system, the Pareto front marked; and utility by target."""

import math
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes

from local.report import draw
from local.report.draw import Picture
from local.report.front import Point, Trade
from local.report.load import Results
from local.report.pictures_overview import bars
from local.report.words import UTILITY, UTILITY_METRICS, Use


def trade_off(trade: Trade, systems: Sequence[str], folder: Path | None) -> Picture | None:
    """EER of the strongest attacker (x) against utility (y), better to the right and above.

    systems: all of the page, whose order gives colours and markers.
    """
    if not trade.points:
        return None
    canvas, axes = draw.new(3.1)
    use = UTILITY_METRICS[trade.metric]
    if trade.unprotected is not None:
        _point(axes, use, trade.unprotected, draw.SOFT, "*", draw.SOFT, "unprotected speech")
    for point in trade.points:
        i = systems.index(point.system)
        _point(
            axes, use, point, draw.colour(i), draw.marker(i), draw.face(i), draw.label(point.system)
        )
    front = trade.front()
    x = [100 * p.privacy.value for p in front]
    y = [use.scale * p.utility.value for p in front]
    axes.plot(x, y, color=draw.INK, linewidth=0.8, linestyle=":", drawstyle="steps-pre", zorder=1)
    axes.plot(
        x, y, "o", color=draw.INK, markerfacecolor="none", markersize=11, markeredgewidth=0.9,
        label="on the Pareto front",
    )  # fmt: skip
    axes.set_xlabel("EER of the strongest attacker (%): 50 = a coin toss")
    axes.set_ylabel(
        f"{use.titled(trade.metric)}{'' if use.higher_is_better else ', turned over'}: "
        "above is better"
    )
    axes.set_title(f"{trade.split}, {trade.recogniser}", loc="left")
    axes.grid(True)
    axes.margins(0.1)
    if not use.higher_is_better:
        axes.invert_yaxis()
    draw.legend(canvas)
    title = f"Privacy against {use.name}, {trade.split}, {trade.recogniser}"
    name = draw.slug("privacy", trade.metric, trade.recogniser, trade.split)
    return draw.finish(canvas, name, title, trade.finding(), folder)


def _point(
    axes: Axes, use: Use, point: Point, colour: str, marker: str, face: str, label: str
) -> None:
    axes.errorbar(
        100 * point.privacy.value, use.scale * point.utility.value,
        xerr=bars(point.privacy, 100), yerr=bars(point.utility, use.scale),
        fmt=marker, color=colour, markerfacecolor=face, elinewidth=0.8, capsize=2, markersize=5.5,
        label=label,
    )  # fmt: skip


def by_target(
    results: Results, of: tuple[str, str, str], series: str, folder: Path | None
) -> Picture | None:
    """Utility at each constant target voice, with that of original speech (001, Fig. 5).

    of: metric, recogniser, split; series: of results.target_series.
    """
    metric, recogniser, split = of
    found = {
        target: value
        for target in results.target_series()[series]
        if (value := results.value(recogniser, split, target, UTILITY, metric)) is not None
        and math.isfinite(value.value)
    }
    if len(found) < 3:
        return None
    use = UTILITY_METRICS[metric]
    canvas, axes = draw.new(2.7)
    before = results.value(recogniser, split, "original", UTILITY, metric)
    if before is not None:
        axes.axhline(
            use.scale * before.value, color=draw.INK, linestyle=":", label="original speech"
        )
    for i, value in enumerate(found.values(), 1):
        axes.errorbar(
            i, use.scale * value.value, yerr=bars(value, use.scale), fmt=draw.marker(0),
            color=draw.colour(0), markersize=4, elinewidth=0.8, capsize=2,
            label="protected speech" if i == 1 else None,
        )  # fmt: skip
    axes.set_xlabel(f"target voice, {next(iter(found))} to {list(found)[-1]}")
    axes.set_ylabel(use.titled(metric))
    axes.set_title(f"{split}, {recogniser}", loc="left")
    axes.grid(True, axis="y")
    draw.legend(canvas)
    worst, *_, best = sorted(
        found, key=lambda target: found[target].value, reverse=not use.higher_is_better
    )
    alt = (
        f"{use.name.capitalize()} by {recogniser} on {split} at {len(found)} targets: best at "
        f"{best} ({use.say(found[best].value)}), worst at {worst} ({use.say(found[worst].value)})"
    )
    alt += f"; original speech {use.say(before.value)}." if before is not None else "."
    title = f"{use.name.capitalize()} by target voice, {series}, {split}"
    return draw.finish(canvas, draw.slug("by_target", *of, series), title, alt, folder)
