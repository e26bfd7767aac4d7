# SPDX-License-Identifier: Apache-2.0
"""The three pictures of the first screen: over all evaluators and groups of people at once."""

import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.ticker import MaxNLocator

from local.report import draw
from local.report.draw import Picture
from local.report.front import trades
from local.report.load import Results
from local.report.pictures_overview import eer_by_attacker
from local.report.pictures_utility import trade_off
from local.report.results import Figure, SpeakerFigure
from local.report.verdict import uses
from local.report.words import number, parse

ALL = "all groups (lowest EER)"
STRONGEST = "the strongest evaluator"
People = dict[str, float]


def pooled(results: Results) -> Results:
    """Of each system and attacker the lowest EER of all evaluators and groups, as if one evaluator
    had measured it; and the utility of all people together."""
    lowest: dict[tuple[str, str], Figure] = {}
    for f in results.figures:
        if f.metric == "eer" and math.isfinite(parse(f.value)):
            before = lowest.setdefault((f.system, f.attacker), f)
            lowest[f.system, f.attacker] = min(before, f, key=lambda g: parse(g.value))
    figures = [replace(f, evaluator=STRONGEST, split=ALL) for f in lowest.values()]
    for of_systems in uses(results.figures).values():
        figures += [replace(f, split=ALL) for f in of_systems.values()]
    return Results(results.folder, figures=figures)


def attackers(results: Results, folder: Path | None) -> Picture | None:
    """EER by attacker: the lowest of all evaluators and groups."""
    return eer_by_attacker(pooled(results), STRONGEST, ALL, folder)


def trade(results: Results, folder: Path | None) -> Picture | None:
    """The strongest attacker's EER against words, or else quality or emotions."""
    found = {t.metric: t for t in reversed(trades(pooled(results).figures)) if t.points}
    metric = next((m for m in ("wer", "mos", "uar") if m in found), None)
    return trade_off(found[metric], results.systems(), folder) if metric else None


def most_linkable(rows: Iterable[SpeakerFigure]) -> dict[str, People]:
    """System -> person -> linkability by the attacker and evaluator who link them most surely."""
    found: dict[str, People] = {}
    for row in rows:
        value = parse(row.value) if row.metric == "linkability" else math.nan
        if math.isfinite(value):
            own = found.setdefault(row.system, {})
            own[row.speaker] = max(value, own.get(row.speaker, -math.inf))
    return found


def people(results: Results, folder: Path | None) -> Picture | None:
    """Each person's linkability by the worst attacker on them, sorted, a colour a system."""
    found = most_linkable(results.speakers)
    systems = [s for s in results.systems() if s in found]
    if not systems:
        return None
    canvas, axes = draw.new(2.9)
    if "original" in found:
        y = sorted(found["original"].values(), reverse=True)
        axes.plot(np.arange(1, len(y) + 1), y, ":", color=draw.SOFT, label="unprotected speech")
    said = []
    for system in systems:
        i, own = results.systems().index(system), found[system]
        names = sorted(own, key=lambda name: (-own[name], name))
        axes.plot(
            np.arange(1, len(names) + 1), [own[name] for name in names], linestyle="none",
            marker=draw.marker(i), markersize=4, color=draw.colour(i),
            markerfacecolor=draw.face(i), label=draw.label(system),
        )  # fmt: skip
        sure = sum(value > 0.5 for value in own.values())
        worst = ", ".join(f"{name} {number(own[name])}" for name in names[:3])
        said.append(f"{system} leaves {sure} of {len(own)} people above 0.5; worst: {worst}")
    axes.set_ylim(0, 1.03)
    axes.set_xlim(left=0)
    axes.set_xlabel("people, the most recognisable first")
    axes.set_ylabel("linkability (1: linked for sure)")
    axes.set_title("each person's worst attacker", loc="left")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(True, axis="y")
    draw.legend(canvas)
    alt = (
        f"Linkability of each person by the attacker and evaluator who link them most surely: "
        f"{'; '.join(said)}. It is the most of several attacks, so chance favours it a little."
    )
    name = draw.slug("people", "worst")
    return draw.finish(canvas, name, "Who is still recognisable", alt, folder)


PICTURES = (attackers, people, trade)
