# SPDX-License-Identifier: Apache-2.0
"""Who is found: rank curves (003, section 3.6)."""

from pathlib import Path

import numpy as np

from local.report import draw
from local.report.draw import Picture
from local.report.load import Results
from local.report.words import percent


def cmc(results: Results, evaluator: str, split: str, folder: Path | None) -> Picture | None:
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
    draw.legend(canvas)
    axes.set_title(split, loc="left")
    alt = (
        f"On {split} the nearest original segment is the speaker's own for {'; '.join(sentences)} "
        f"of protected segments; chance is {percent(chance['chance_clustered'][0])}."
    )
    title = f"Finding protected speakers among the originals, {split}"
    return draw.finish(canvas, draw.slug("cmc", evaluator, split), title, alt, folder)
