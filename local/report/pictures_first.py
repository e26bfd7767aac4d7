# SPDX-License-Identifier: Apache-2.0
"""The three pictures of the first screen: over all evaluators and groups of people at once."""

import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.ticker import MaxNLocator

from local.report import draw, evidence
from local.report.draw import Picture
from local.report.evidence import uses
from local.report.front import trades
from local.report.load import Results
from local.report.pictures_overview import bars
from local.report.pictures_utility import trade_off
from local.report.results import Figure, SpeakerFigure
from local.report.verdict import fold
from local.report.words import attacker, number, parse, percent

ALL = "all groups (lowest EER)"
People = dict[str, float]


def attackers(results: Results, folder: Path | None) -> Picture | None:
    """EER of the attacker who decides on each system and group, and of the same evaluator without
    protection: the figures of the table above."""
    found = evidence.verdicts(results.figures, results.speakers)
    names = [system for system in results.systems() if system in found]
    judged = [(system, own) for system in names for own in found[system]]
    judged = [(s, own) for s, own in judged if own.verdict.attack]
    if not judged:
        return None
    canvas, axes = draw.new(1.1 + 0.36 * len(judged))
    said = []
    for y, (system, own) in enumerate(judged):
        attack = own.verdict.attack
        assert attack is not None
        i = results.systems().index(system)
        eer = fold(attack.eer)
        for value, look in (
            (attack.bare, {"color": draw.SOFT, "fmt": "|", "markersize": 9}),
            (
                eer,
                {"color": draw.colour(i), "fmt": draw.marker(i), "markerfacecolor": draw.face(i)},
            ),
        ):
            if math.isfinite(value.value):
                axes.errorbar(100 * value.value, y, xerr=bars(value, 100), elinewidth=0.9,
                              capsize=2, **look)  # fmt: skip
        said.append(
            f"{system}, {own.group}: {percent(eer.value)} by {attacker(attack.attacker)}, "
            f"{attack.evaluator} (unprotected {percent(attack.bare.value)})"
        )
    axes.set_yticks(
        range(len(judged)), [f"{draw.label(system)}, {own.group}" for system, own in judged]
    )
    axes.set_ylim(len(judged) - 0.5, -0.5)
    axes.set_xlim(0, 51)
    axes.axvline(50, color=draw.SOFT, linewidth=0.8, linestyle=":")
    axes.set_xlabel("EER (%), 50: guessing; grey: without protection")
    axes.set_title("the strongest attacker", loc="left")
    axes.grid(True, axis="x")
    alt = f"EERs, folded at 50 %: {'; '.join(said)}. Bars: 95 % intervals over people."
    return draw.finish(canvas, draw.slug("eer", "first"), "What an attacker can do", alt, folder)


def trade(results: Results, folder: Path | None) -> Picture | None:
    """The lowest EER against words, or else quality or emotions, of all people together."""
    found = {t.metric: t for t in reversed(trades(_pooled(results))) if t.points}
    metric = next((m for m in ("wer", "mos", "uar") if m in found), None)
    return trade_off(found[metric], results.systems(), folder) if metric else None


def _pooled(results: Results) -> list[Figure]:
    """The EER of the attacker who decides on each system, the lowest of all groups, with the same
    evaluator's without protection, as if of one group; and the utility of all people together."""
    found = evidence.verdicts(results.figures, results.speakers)
    index, figures = evidence.Index(results.figures), []
    for system, judged in found.items():
        own = [j for j in judged if j.verdict.attack]
        if not own:
            continue
        lowest = min(own, key=lambda j: fold(j.verdict.attack.eer).value)  # type: ignore[union-attr]
        attack = lowest.verdict.attack
        assert attack is not None
        name = f"{attack.evaluator}, {lowest.group}"
        eer = index.get(system, lowest.split, attack.attacker, attack.evaluator, "eer")
        for figure in (eer, index.bare(lowest.split, attack.evaluator)):
            if figure is not None:
                figures.append(replace(figure, evaluator=name, split=ALL))
    for of_systems in uses(results.figures).values():
        figures += [replace(f, split=ALL) for f in of_systems.values()]
    return figures


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
