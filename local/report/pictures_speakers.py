# SPDX-License-Identifier: Apache-2.0
"""Who is found: rank curves (003, section 3.6), and linkability by speaker (001, Fig. 3)."""

import math
from pathlib import Path

import numpy as np
from matplotlib.projections.polar import PolarAxes

from local.report import draw
from local.report.draw import Picture
from local.report.load import Results
from local.report.words import PROTECTED, attacker, enumerate_words, number, parse, percent

_FEW = 45  # up to so many speakers their names stand around the radar


def cmc(results: Results, evaluator: str, split: str, folder: Path) -> Picture | None:
    """Share of protected segments whose speaker is among the k nearest originals, by k."""
    systems = results.systems()
    found = [e for e in results.entries("searches", evaluator) if e["where"]["split"] == split]
    if not found:
        return None
    canvas, axes = draw.new(3.0)
    sentences = []
    for entry in found:
        system = entry["where"]["system"]
        i = systems.index(system) if system in systems else 0
        ranks = np.arange(1, len(entry["cmc"]) + 1)
        axes.plot(
            ranks, 100 * np.array(entry["cmc"]), color=draw.colour(i), linestyle=draw.line(i),
            label=draw.label(system),
        )  # fmt: skip
        sentences.append(f"{system} {percent(entry['cmc'][0])}")
    chance = found[0]
    bands = (
        ("chance_clustered", "chance, clusters kept", ":"),
        ("chance", "chance, labels mixed", "--"),
    )
    for key, text, style in bands:
        every = 100 * np.array([e[key] for e in found])
        axes.plot(ranks, every.mean(axis=0), color=draw.SOFT, linestyle=style, lw=1, label=text)
    axes.set_xscale("log")
    ticks = [k for k in (1, 2, 5, 10, 20, 50) if k <= len(chance["cmc"])]
    axes.set_xticks(ticks, [str(k) for k in ticks])
    axes.minorticks_off()
    axes.set_ylim(0, 102)
    axes.set_xlabel("rank k")
    axes.set_ylabel("own speaker within rank k (%)")
    axes.grid(True)
    canvas.legend(loc="outside lower center", ncols=2)
    axes.set_title(split, loc="left")
    alt = (
        f"On {split} the nearest original segment is the speaker's own for {'; '.join(sentences)} "
        f"of protected segments; chance is {percent(chance['chance_clustered'][0])}."
    )
    title = f"Finding protected speakers among the originals, {split}"
    return draw.finish(canvas, draw.slug("cmc", evaluator, split), title, alt, folder)


def _by_speaker(
    results: Results, evaluator: str, split: str, system: str, attack: str
) -> dict[str, float]:
    return {
        row.speaker: parse(row.value)
        for row in results.speakers
        if (row.evaluator, row.split, row.system, row.attacker, row.metric)
        == (evaluator, split, system, attack, "linkability")
        and row.value != ""
    }


def radar(results: Results, evaluator: str, split: str, folder: Path) -> Picture | None:
    """Linkability of each speaker (an axis each) under the best-informed attacker measured."""
    attacks = [a for a in reversed(PROTECTED) if a in results.attackers(evaluator)]
    if not attacks:
        return None
    own = {s: _by_speaker(results, evaluator, split, s, attacks[0]) for s in results.systems()}
    names = sorted({name for values in own.values() for name in values})
    if len(names) < 3:
        return None
    before = _by_speaker(results, evaluator, split, "original", "unprotected")
    canvas, axes = draw.new(3.7, polar=True)
    assert isinstance(axes, PolarAxes)
    angle = np.linspace(0, 2 * math.pi, len(names), endpoint=False)
    rings = {"unprotected": before, **{s: v for s, v in own.items() if v}}
    for i, (system, values) in enumerate(rings.items()):
        r = np.array([values.get(name, math.nan) for name in names])
        colour = draw.SOFT if i == 0 else draw.colour(results.systems().index(system))
        style = ":" if i == 0 else draw.line(results.systems().index(system))
        axes.plot(
            np.append(angle, angle[:1]), np.append(r, r[:1]), color=colour, linestyle=style,
            marker="." if i else "", markersize=4, label=draw.label(system),
        )  # fmt: skip
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    axes.set_ylim(0, 1)
    axes.set_yticks([0.25, 0.5, 0.75, 1.0], ["", "0.5", "", "1"])
    axes.set_xticks(
        angle, [draw.label(n) for n in names] if len(names) <= _FEW else [""] * len(names)
    )
    axes.tick_params(axis="x", labelsize=6 if len(names) <= 20 else 4.5, pad=-1)
    axes.spines["polar"].set_color(draw.GRID)
    canvas.legend(loc="outside lower center", ncols=3)
    axes.set_title(f"{split}, {attacker(attacks[0])} attacker", loc="left")
    alt = _radar_finding(rings, split, attacks[0])
    title = f"Linkability by speaker, {attacker(attacks[0])} attacker, {split}"
    return draw.finish(canvas, draw.slug("radar", evaluator, split), title, alt, folder)


def _radar_finding(rings: dict[str, dict[str, float]], split: str, attack: str) -> str:
    sentences = []
    before = rings["unprotected"]
    for system, values in rings.items():
        defined = {name: v for name, v in values.items() if math.isfinite(v)}
        if system == "unprotected" or not defined:
            continue
        worst = max(defined, key=lambda name: defined[name])
        best = min(defined, key=lambda name: defined[name])
        text = (
            f"{system} leaves {worst} most linkable ({number(defined[worst])}) and {best} least "
            f"({number(defined[best])})"
        )
        not_better = [n for n, v in defined.items() if v > 0 and v >= before.get(n, math.inf)]
        if not_better:
            text += f", and does not help {enumerate_words(sorted(not_better))}"
        sentences.append(text)
    return f"On {split}, {attacker(attack)} attacker: {'; '.join(sentences)}."
