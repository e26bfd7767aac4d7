"""Pictures of the first screen, one for each question of a reader."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from local.metrics.recordings import LENGTHS
from local.protocols.attackers import CONTROLS
from local.report import draw, frame, select
from local.report.draw import Picture, dot
from local.report.frame import Value, where
from local.report.load import Results
from local.report.pictures import SAID, Found, drawn, empty, made, trade_off
from local.report.select import Evidence, fold

_GREY: dict[str, Any] = {"color": draw.SOFT}


def recordings(results: Results) -> Found:
    """Lowest EER, and share of people named by the attacker who decides, by how many recordings of
    a person they have: a line a system, of the group of people that it protects worst."""
    found = select.verdicts(results)
    shown = [(i, min(own, key=lambda j: j.eer.value)) for i, system in enumerate(results.systems())
             if (own := [j for j in found.get(system, []) if j.verdict.attack])]  # fmt: skip
    if not shown:
        return None
    canvas, (above, beneath) = draw.stacked(SAID["recordings"]["height"], (1, 1))
    lengths = {n: i for i, n in enumerate(LENGTHS)}
    for k, (i, judged) in enumerate(shown):
        attack, shift = judged.verdict.attack or Evidence("", ""), 0.3 * (k + 0.5) / len(shown)
        eers = {n: one.eer for n, one in judged.verdict.eers.items()}
        naming = attack.naming or {"all": Value(attack.named)}
        for axes, values in ((above, eers), (beneath, naming)):
            at = [lengths[n] + shift - 0.15 for n in values]
            for x, value in zip(at, values.values(), strict=True):
                dot(axes, x, value, (1, 100), markersize=4, **draw.look(i))
            axes.plot(at, [100 * v.value for v in values.values()], color=draw.colour(i),
                      linestyle=draw.line(i), linewidth=1)  # fmt: skip
        name = judged.system if len({j.group for _, j in shown}) == 1 else str(judged)
        above.plot(
            [], [], label=draw.label(name), linestyle=draw.line(i), markersize=4, **draw.look(i)
        )
    above.axhline(50, linewidth=0.8, linestyle=":", label="guessing", **_GREY)
    chances = {j.verdict.attack.chance for _, j in shown if j.verdict.attack}
    for chance in filter(math.isfinite, chances):
        beneath.axhline(100 * chance, linewidth=0.8, linestyle=":", **_GREY)
    for axes, label, top in ((above, "EER (%)", 53), (beneath, "people named (%)", 103)):
        axes.set(ylabel=label, ylim=(0, top), xlim=(-0.4, len(lengths) - 0.6))
        axes.set_xticks(range(len(lengths)), lengths)
        axes.grid(True, axis="y")
    beneath.set_xlabel("recordings of a person")
    draw.legend(canvas)
    return made(canvas, "recordings", ["first"], shown=[judged for _, judged in shown])


HEARD_BY = {
    "": "the voice", "words": "the words", "sounds": "the sounds", "timing": "timing",
    "melody": "melody", "fused_without_words": "all but the words", "fused": "all of these",
}  # fmt: skip


def channels(results: Results) -> Found:
    """Lowest EER from one recording by what the attackers hear, a colour a system."""
    shown = [system for system in results.systems() if system not in CONTROLS[1:]]
    rows = where(results.metrics, family=frame.VERIFICATION, metric="eer", system=shown)
    rows = rows[np.isfinite(rows["value"])]
    encoder = rows["evaluator"].str.split("/").str[0]
    heard = encoder.where(encoder.isin([*HEARD_BY]), "")
    known = [name for name in HEARD_BY if name in set(heard)]
    if len(known) < 2:
        return None
    canvas, axes = empty("channels")
    said = []
    for k, system in enumerate(shown):
        of_system, shift = rows["system"] == system, 0.5 * ((k + 0.5) / len(shown) - 0.5)
        looks = draw.look(results.systems().index(system)) | {"label": draw.label(system)}
        for y, name in enumerate(known):
            eers = [fold(frame.value_of(r)) for r in rows[of_system & (heard == name)].itertuples()]
            if not eers:
                continue
            lowest = min(eers, key=lambda eer: eer.value)
            dot(axes, lowest, len(known) - 1 - y - shift, markersize=4, **looks)
            looks.pop("label", None)
            said.append((system, HEARD_BY[name], lowest))
    axes.axvline(50, linewidth=0.8, linestyle=":", label="guessing", **_GREY)
    axes.set_yticks(range(len(known)), [HEARD_BY[name] for name in reversed(known)])
    draw.legend(canvas)
    return made(canvas, "channels", ["first"], said=said)


def first_trade(results: Results) -> Found:
    """The lowest EER against words, or else quality or emotions, of all people together."""
    found = {t.metric: t for t in reversed(select.trades(select.pooled(results))) if t.points}
    metric = next((m for m in ("wer", "mos", "uar") if m in found), None)
    drawing = trade_off(found[metric], results.systems()) if metric else None
    if drawing is None:
        return None
    return replace(drawing, title=f"What is it still good for? {drawing.title}")


def people(results: Results) -> Found:
    """Each person's linkability by the worst attacker on them, sorted, a colour a system."""
    found, said = select.most_linkable(results.speakers), []
    shown = [(i, s) for i, s in enumerate(results.systems()) if s in set(found["system"])]
    if not shown:
        return None
    canvas, axes = empty("people", "each person's worst attacker")
    for i, system in shown:
        own = where(found, system=system)
        x, values = np.arange(1, len(own) + 1), own["value"].to_numpy()
        axes.plot(x, own["bare"].to_numpy(), "_", color=draw.SOFT, markersize=4)
        axes.plot(x, values, linestyle="none", markersize=4,
                  label=draw.label(system), **draw.look(i))  # fmt: skip
        worst = [*zip(own["speaker"], values, strict=True)][:3]
        said.append((system, int((values > 0.5).sum()), len(own), worst))
    axes.plot([], [], "_", label="unprotected, by the same evaluator", **_GREY)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    draw.legend(canvas)
    return made(canvas, "people", ["worst"], said=said)


def draw_first(results: Results, folder: Path | None) -> list[Picture]:
    """The pictures of the first screen; PDFs go to `folder`, if there is one."""
    made = (make(results) for make in (recordings, channels, people, first_trade))
    return drawn(results, "the first pictures", lambda: made, folder).pictures
