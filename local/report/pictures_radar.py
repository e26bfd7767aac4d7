# SPDX-License-Identifier: Apache-2.0
"""Radars of linkability: over speakers, and over constant target voices (001, Fig. 3 and 4)."""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.projections.polar import PolarAxes

from local.report import draw
from local.report.draw import Picture
from local.report.load import Results
from local.report.words import PROTECTED, attacker, enumerate_words, number, parse
from utils.arrays import Float64

_MANY = 20  # up to so many speakers their names stand around the radar
_NARROW = 17  # letters over one of three radars side by side
_FEW = 5  # up to so many systems share one radar; more get one each
_SHOWN = 12  # speakers with a radar over targets
POOLED = "linkability"  # of a speaker: D↔ from the densities of all trials, mean over their own
ALONE = re.compile(r"linkability_bins_(\d+)")  # D_sys of their trials alone
Rings = dict[str, dict[str, float]]


def _by_speaker(
    results: Results,
    evaluator: str,
    split: str,
    system: str,
    attack: str,
    metric: str = POOLED,
) -> dict[str, float]:
    return {
        row.speaker: parse(row.value)
        for row in results.speakers
        if (row.evaluator, row.split, row.system, row.attacker, row.metric)
        == (evaluator, split, system, attack, metric)
        and row.value != ""
    }


def _measured(
    results: Results, evaluator: str, split: str, systems: Sequence[str], metric: str = POOLED
) -> tuple[str, Rings]:
    """The best-informed attacker of those on most systems; linkability by system and speaker."""
    best: tuple[str, Rings] = "", {}
    for attack in reversed(PROTECTED):
        found = {s: _by_speaker(results, evaluator, split, s, attack, metric) for s in systems}
        rings = {s: values for s, values in found.items() if values}
        if len(rings) > len(best[1]):
            best = attack, rings
    return best


def _values(ring: Mapping[str, float], names: Sequence[str]) -> Float64:
    return np.array([ring.get(name, math.nan) for name in names], np.float64)


def _axes(axes: PolarAxes, n: int, names: Sequence[str] = ()) -> Float64:
    """Set the axes up; the angle of each of `n` axes, clockwise from the top."""
    angle = np.linspace(0, 2 * math.pi, n, endpoint=False)
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    axes.set_ylim(0, 1)
    axes.set_yticks([0.25, 0.5, 0.75, 1.0], ["", "0.5", "", "1"] if names else [""] * 4)
    axes.set_xticks(angle, [draw.label(name) for name in names] if names else [""] * n)
    axes.tick_params(axis="x", labelsize=draw.SMALL, pad=-1)
    axes.spines["polar"].set_color(draw.GRID)
    return angle


def _ring(axes: PolarAxes, angle: Float64, r: Float64, index: int, **more: object) -> None:
    """A closed line; index: number of the system, -1 for originals (dotted)."""
    colour = draw.SOFT if index < 0 else draw.colour(index)
    style = ":" if index < 0 else draw.line(index)
    axes.plot(
        np.append(angle, angle[:1]), np.append(r, r[:1]),
        color=colour, linestyle=style, **more,  # type: ignore[arg-type]
    )  # fmt: skip


def radar(results: Results, evaluator: str, split: str, folder: Path | None) -> Picture | None:
    """Linkability of each speaker (an axis each) under the best-informed attacker measured."""
    attack, own = _measured(results, evaluator, split, results.systems())
    names = sorted({name for values in own.values() for name in values})
    if len(names) < 3:
        return None
    before = _by_speaker(results, evaluator, split, "original", "unprotected")
    draw_them = _together if len(own) <= _FEW else _apart
    canvas = draw_them(results, before, own, names, f"{split}, {attacker(attack)} attacker")
    alt = _finding(before, own, f"On {split}, {attacker(attack)} attacker")
    title = f"Linkability by speaker, {attacker(attack)} attacker, {split}"
    return draw.finish(canvas, draw.slug("radar", evaluator, split), title, alt, folder)


def _together(
    results: Results, before: dict[str, float], own: Rings, names: list[str], title: str
) -> Canvas:
    canvas, axes = draw.new(3.7, polar=True)
    assert isinstance(axes, PolarAxes)
    angle = _axes(axes, len(names), names if len(names) <= _MANY else ())
    _ring(axes, angle, _values(before, names), -1, label="unprotected")
    for system, values in own.items():
        i = results.systems().index(system)
        r = _values(values, names)
        _ring(axes, angle, r, i, marker=".", markersize=4, label=draw.label(system))
    draw.legend(canvas, 2)
    axes.set_title(title, loc="left")
    return canvas


def _apart(
    results: Results, before: dict[str, float], own: Rings, names: list[str], title: str
) -> Canvas:
    """A small radar a system; speakers clockwise from the top by name."""
    canvas, grid = draw.polars(len(own), title)
    for axes, (system, values) in zip(grid, own.items(), strict=True):
        angle = _axes(axes, len(names))
        _ring(axes, angle, _values(before, names), -1, linewidth=1)
        i = results.systems().index(system)
        axes.fill(angle, _values(values, names), color=draw.colour(i), alpha=0.15, linewidth=0)
        _ring(axes, angle, _values(values, names), i, linewidth=1.1)
        axes.set_title(draw.label(system, _NARROW), fontsize=draw.SMALL)
    return canvas


def _finding(before: dict[str, float], own: Rings, start: str) -> str:
    sentences = []
    for system, values in own.items():
        defined = {name: v for name, v in values.items() if math.isfinite(v)}
        if not defined:
            continue
        worst = max(defined, key=lambda name: defined[name])
        best = min(defined, key=lambda name: defined[name])
        not_better = [n for n, v in defined.items() if v > 0 and v >= before.get(n, math.inf)]
        if len(own) > _FEW:
            text = f"{system} {worst} ({number(defined[worst])}; no help to {len(not_better)})"
        else:
            text = (
                f"{system} leaves {worst} most linkable ({number(defined[worst])}) and {best} "
                f"least ({number(defined[best])})"
            )
            if not_better:
                text += f", and does not help {enumerate_words(sorted(not_better))}"
        sentences.append(text)
    if len(own) > _FEW:
        start += ", the most linkable speaker (speakers stand clockwise by name) of"
    return f"{start}: {'; '.join(sentences)}.".replace(" of: ", " of ")


def definitions(results: Results) -> list[str]:
    """The definitions of a speaker's linkability that were measured (docs/metrics)."""
    measured = {row.metric for row in results.speakers}
    return [POOLED, *sorted(name for name in measured if ALONE.fullmatch(name))]


def _defined(metric: str) -> str:
    """A definition in words."""
    alone = ALONE.fullmatch(metric)
    return f"each speaker's trials alone, {alone[1]} bins" if alone else "densities of all trials"


def _table(
    results: Results, evaluator: str, split: str, series: str, metric: str
) -> tuple[str, list[str], list[str], Float64, Float64]:
    """Attacker, targets, speakers (worst protected first), linkability (speakers, targets), and
    that of the originals (speakers,)."""
    of = results.target_series()[series]
    attack, own = _measured(results, evaluator, split, of, metric)
    names = sorted({name for values in own.values() for name in values})
    before = _by_speaker(results, evaluator, split, "original", "unprotected", metric)
    table = np.array([_values(values, names) for values in own.values()]).T
    table = table.reshape(len(names), len(own))
    if not own:
        return attack, [], [], table, _values(before, [])
    usable = np.isfinite(table).all(axis=1)
    order = [i for i in np.argsort(-table.mean(axis=1), kind="stable") if usable[i]]
    speakers = [names[i] for i in order]
    return attack, list(own), speakers, table[order], _values(before, speakers)


def targets(
    results: Results,
    evaluator: str,
    split: str,
    folder: Path | None,
    series: str,
    metric: str = POOLED,
) -> Picture | None:
    """A radar a speaker over constant targets (001, Fig. 3); the worst and the best protected.

    series: of results.target_series; metric: of `definitions`.
    """
    given = (results, evaluator, split, series, metric)
    attack, axes_names, speakers, table, before = _table(*given)
    if len(axes_names) < 3 or not speakers:
        return None
    half = _SHOWN // 2
    n = len(speakers)
    shown = list(range(n)) if n <= _SHOWN else [*range(half), *range(n - half, n)]
    canvas, grid = draw.polars(len(shown), f"{split}, {attacker(attack)} attacker")
    for axes, i in zip(grid, shown, strict=True):
        angle = _axes(axes, len(axes_names))
        _ring(axes, angle, np.full(len(axes_names), before[i]), -1, linewidth=1.2)
        _ring(axes, angle, table[i], 0, linewidth=1.1)
        axes.set_title(draw.label(speakers[i], _NARROW), fontsize=draw.SMALL)
    mean = table.mean(axis=1)
    alt = (
        f"On {split}, {attacker(attack)} attacker, each axis is one of {len(axes_names)} constant "
        f"targets ({axes_names[0]} to {axes_names[-1]}, clockwise), the dotted circle the "
        f"speaker's original speech. {speakers[0]} stays most linkable over all targets (mean "
        f"{number(float(mean[0]))}), {speakers[-1]} least ({number(float(mean[-1]))})."
    )
    if n > len(shown):
        alt += f" Of {n} speakers the {half} worst and the {half} best protected are shown."
    title = f"Linkability by target voice, {series}, {split} ({_defined(metric)})"
    name = draw.slug("targets", evaluator, split, series, metric)
    return draw.finish(canvas, name, title, alt, folder)


def target_groups(
    results: Results,
    evaluator: str,
    split: str,
    folder: Path | None,
    series: str,
    metric: str = POOLED,
) -> Picture | None:
    """Means and standard deviations over badly and well protected speakers (001, Fig. 4)."""
    given = (results, evaluator, split, series, metric)
    attack, axes_names, speakers, table, before = _table(*given)
    if len(axes_names) < 3 or len(speakers) < 4:
        return None
    cut = (len(speakers) + 1) // 2  # 15 and 14 of 29, as in 001
    halves = ((f"{cut} badly protected", slice(0, cut)),
              (f"{len(speakers) - cut} well protected", slice(cut, None)))  # fmt: skip
    canvas, grid = draw.polars(2, f"{split}, {attacker(attack)} attacker", columns=2)
    said = []
    for k, (axes, (what, own)) in enumerate(zip(grid, halves, strict=True)):
        angle = _axes(axes, len(axes_names))
        original = np.repeat(before[own, None], len(axes_names), axis=1)
        for values, index in ((original, -1), (table[own], k)):
            mean, std = values.mean(axis=0), values.std(axis=0)
            colour = draw.SOFT if index < 0 else draw.colour(index)
            round_, low, high = (np.append(v, v[:1]) for v in (angle, mean - std, mean + std))
            axes.fill_between(round_, low, high, color=colour, alpha=0.2, linewidth=0)
            _ring(axes, angle, mean, index, linewidth=1.2)
        axes.set_title(what, fontsize=7)
        said.append(f"{what}: {number(float(table[own].mean()))} "
                    f"(original speech {number(float(before[own].mean()))})")  # fmt: skip
    alt = (
        f"Mean linkability over {len(axes_names)} targets on {split}, {attacker(attack)} attacker. "
        f"{'; '.join(said)}. Bands: one standard deviation over speakers; dotted: original speech."
    )
    title = f"The same for badly and well protected speakers, {series}, {split}"
    name = draw.slug("target_groups", evaluator, split, series, metric)
    return draw.finish(canvas, name, f"{title} ({_defined(metric)})", alt, folder)
