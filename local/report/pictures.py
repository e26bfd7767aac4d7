"""Pictures over systems: those of the first screen, DeID against G_VD, attackers, privacy against
utility; and the plan of all pictures of the page."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from local.report import draw, select
from local.report import pictures_details as details
from local.report.draw import Drawing, Picture
from local.report.frame import (
    MEASURES,
    NOTHING,
    SIMILARITY,
    UTILITY,
    UTILITY_MEASURES,
    VERIFICATION,
    Measure,
    Value,
    number,
    percent,
    where,
)
from local.report.load import Results, logger
from local.report.select import Point, Trade, unprotected
from local.report.words import HEARD, PROTECTED, USES, absent, attacker, enumerate_words

_FEW = 5  # systems whose markers have room beside each other
ALL = "all groups (lowest EER)"
Draw = Callable[[], Drawing | None]


# The first screen.


def attackers(results: Results) -> Drawing | None:
    """EER of the attacker who decides on each system and group, and of the same evaluator without
    protection: the figures of the table above."""
    found = select.verdicts(results)
    judged = [(i, system, own, own.verdict.attack) for i, system in enumerate(results.systems())
              for own in found.get(system, []) if own.verdict.attack]  # fmt: skip
    if not judged:
        return None
    canvas, axes = draw.new(
        1.1 + 0.36 * len(judged), "the strongest attacker", grid="x", xlim=(0, 51),
        ylim=(len(judged) - 0.5, -0.5), x="EER (%)",
    )  # fmt: skip
    said = []
    for y, (i, system, own, attack) in enumerate(judged):
        grey = {"color": draw.SOFT, "marker": "|", "markersize": 9}
        for value, look in ((attack.bare, grey), (own.eer, draw.look(i))):
            if value.defined:
                axes.errorbar(100 * value.value, y, xerr=draw.bars(value, 100), elinewidth=0.9,
                              capsize=2, linestyle="none", **look)  # fmt: skip
        said.append(
            f"{system}, {own.group}: {percent(own.eer.value)} by {attacker(attack.attacker)}, "
            f"{attack.evaluator} (unprotected {percent(attack.bare.value)})"
        )
    axes.set_yticks(
        range(len(judged)), [f"{draw.label(system)}, {own.group}" for _, system, own, _ in judged]
    )
    axes.axvline(50, color=draw.SOFT, linewidth=0.8, linestyle=":")
    axes.plot([], [], "|", color=draw.SOFT, label="unprotected, by the same evaluator")
    draw.legend(canvas, 1)
    alt = f"EERs, folded at 50 %: {'; '.join(said)}. Bars: 95 % intervals over people."
    return Drawing(canvas, draw.slug("eer", "first"), "What an attacker can do", alt)


def first_trade(results: Results) -> Drawing | None:
    """The lowest EER against words, or else quality or emotions, of all people together."""
    found = {t.metric: t for t in reversed(select.trades(_pooled(results))) if t.points}
    metric = next((m for m in ("wer", "mos", "uar") if m in found), None)
    return trade_off(found[metric], results.systems()) if metric else None


def _pooled(results: Results) -> pd.DataFrame:
    """The EER of the attacker who decides on each system, the lowest of all groups, with the same
    evaluator's without protection, as if of one group; and the utility of all people together."""
    bares, rows = unprotected(results.metrics), []
    for system, judged in select.verdicts(results).items():
        own = [(j, j.verdict.attack) for j in judged if j.verdict.attack]
        if own:
            j, attack = min(own, key=lambda pair: pair[0].eer.value)
            eer = results.rows.get(
                (VERIFICATION, attack.evaluator, j.split, system, attack.attacker, "eer")
            )
            name = f"{attack.evaluator}, {j.group}"
            for row in (eer, bares.get((j.split, attack.evaluator))):
                rows += [row._replace(evaluator=name)] if row is not None else []
    rows += [f for systems in select.uses(results.metrics).values() for f in systems.values()]
    return pd.DataFrame(rows, columns=results.metrics.columns).assign(split=ALL)


def most_linkable(results: Results) -> dict[str, dict[str, tuple[float, float]]]:
    """System -> person -> linkability by the attacker and evaluator who link them most surely, and
    by the same evaluator without protection (NaN where that was not measured)."""
    rows = where(results.speakers, metric="linkability")
    bare = {
        (row.evaluator, row.split, row.speaker): row.value
        for row in where(rows, system="original").itertuples()
    }
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for row in rows.itertuples():
        own = found.setdefault(row.system, {})
        if row.value > own.get(row.speaker, (-math.inf,))[0]:
            before = bare.get((row.evaluator, row.split, row.speaker), math.nan)
            own[row.speaker] = row.value, before
    return {system: own for system, own in found.items() if own}


def people(results: Results) -> Drawing | None:
    """Each person's linkability by the worst attacker on them, sorted, a colour a system."""
    found = most_linkable(results)
    systems = [(i, s) for i, s in enumerate(results.systems()) if s in found]
    if not systems:
        return None
    canvas, axes = draw.new(
        2.9, "each person's worst attacker", "people, the most recognisable first",
        "linkability (1: linked for sure)", grid="y", ylim=(0, 1.03),
    )  # fmt: skip
    said = []
    for i, system in systems:
        own = found[system]
        names = sorted(own, key=lambda name: (-own[name][0], name))
        x = np.arange(1, len(names) + 1)
        axes.plot(x, [own[name][1] for name in names], "_", color=draw.SOFT, markersize=4)
        axes.plot(x, [own[name][0] for name in names], linestyle="none", markersize=4,
                  label=draw.label(system), **draw.look(i))  # fmt: skip
        sure = sum(value > 0.5 for value, _ in own.values())
        worst = ", ".join(f"{name} {number(own[name][0])}" for name in names[:3])
        said.append(f"{system} leaves {sure} of {len(own)} people above 0.5; worst: {worst}")
    axes.plot([], [], "_", color=draw.SOFT, label="unprotected, by the same evaluator")
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    draw.legend(canvas)
    alt = (
        f"Linkability of each person by the attacker and evaluator who link them most surely: "
        f"{'; '.join(said)}. It is the most of several attacks, so chance favours it a little."
    )
    return Drawing(canvas, draw.slug("people", "worst"), "Who is still recognisable", alt)


# One evaluator.


def scatter(results: Results, evaluator: str) -> Drawing | None:
    """DeID (x) against G_VD (y) of all systems and splits, with intervals (000, Fig. 3)."""
    points, left_out = [], []
    systems, splits = results.systems(), results.splits(evaluator)
    for (i, system), (j, split) in product(enumerate(systems), enumerate(splits)):
        deid, g_vd = (results.value(evaluator, split, system, "", m, SIMILARITY)
                      for m in ("deid", "g_vd"))  # fmt: skip
        if deid is not None and g_vd is not None:
            if deid.defined and g_vd.defined:
                points.append((i, j, f"{system} on {split}", deid, g_vd))
            else:
                left_out.append(f"{system} on {split}")
    if not points and not left_out:
        return None
    canvas, axes = draw.new(3.0, x="DeID (%): 0 = as before", y="G_VD (dB): 0 = as before",
                            grid="both")  # fmt: skip
    for i, j, _, deid, g_vd in points:
        axes.errorbar(
            100 * deid.value, g_vd.value, xerr=draw.bars(deid, 100), yerr=draw.bars(g_vd),
            elinewidth=0.8, capsize=2, markersize=5.5, **draw.look(i) | {"marker": draw.marker(j)},
        )  # fmt: skip
    for i in sorted({p[0] for p in points}):  # colours are systems, markers are splits
        axes.plot([], [], "s", color=draw.colour(i), markerfacecolor=draw.face(i), markersize=5,
                  label=draw.label(systems[i]))  # fmt: skip
    for j in sorted({p[1] for p in points}):
        axes.plot([], [], draw.marker(j), color=draw.INK, markerfacecolor="none", markersize=5,
                  label=draw.label(splits[j]))  # fmt: skip
    axes.axhline(0, color=draw.SOFT, linewidth=0.8, linestyle=":")
    axes.margins(0.08)
    text = ""
    if points:
        draw.legend(canvas)
        best, worst = (choose(points, key=lambda p: p[3].value) for choose in (max, min))
        distinct = max(points, key=lambda p: p[4].value)
        text = (
            f"Old voices, {HEARD}, are hidden best by {best[2]} (DeID {percent(best[3].value)}) "
            f"and least by {worst[2]} ({percent(worst[3].value)}); protected voices stay most "
            f"distinct with {distinct[2]} (G_VD {number(distinct[4].value)} dB)."
        )
    if left_out:
        text += f" Not drawn, being undefined or −∞: {enumerate_words(left_out)}."
    title = "De-identification against voice distinctiveness"
    return Drawing(canvas, draw.slug("deid_gvd", evaluator), title, text.strip())


def eer_by_attacker(results: Results, evaluator: str, split: str) -> Drawing | None:
    """EER under attackers of rising knowledge, a line a system; gaps are said in words."""
    known = results.attackers(evaluator)
    # Where one kind of an attacker was run, its other kinds need no empty place.
    order = [a for a in PROTECTED if a in known or a in absent(known)]
    order += [a for a in known if a not in (*PROTECTED, "unprotected")]
    measured, systems = [a for a in order if a in known], results.systems()
    if not measured or not systems:  # of constant targets there are radars
        return None
    canvas, axes = draw.new(
        2.9, split, "", "EER of the attacker (%):\nlower is worse for speakers", grid="y"
    )
    bare = results.value(evaluator, split, "original", "unprotected", "eer") or NOTHING
    if bare.defined:
        axes.axhline(100 * bare.value, color=draw.SOFT, ls="--", label="unprotected speech")
        if bare.bounded:
            axes.axhspan(100 * bare.low, 100 * bare.high, color=draw.SOFT, alpha=0.12, lw=0)
    axes.axhline(50, color=draw.SOFT, linewidth=0.8, linestyle=":", label="coin toss")
    many, said = len(systems) > _FEW, []
    for i, system in enumerate(systems):
        found = {a: results.value(evaluator, split, system, a, "eer") or NOTHING for a in measured}
        eers = {a: v for a, v in found.items() if v.defined}
        _eer_line(axes, eers, order, i, system, len(systems))
        if eers:
            best = min(eers, key=lambda a: eers[a].value)
            eer, name = percent(eers[best].value), attacker(best)
            holds = f"{system} holds the best attacker measured ({name}) at {eer}"
            said.append(f"{system} {eer} ({name})" if many else holds)
    names = [attacker(a) + ("" if a in measured else "\n(not measured)") for a in order]
    axes.set_xticks(range(len(order)), names, rotation=30, ha="right", rotation_mode="anchor")
    axes.set(xlim=(-0.5, len(order) - 0.5), ylim=(0, max(54.0, axes.get_ylim()[1])))
    draw.legend(canvas)
    alt = f"On {split} unprotected speech has an EER of {percent(bare.value)}; "
    alt += "under the best attacker measured: " if many else ""
    alt += "; ".join(said) + "; 50 % would be a coin toss."
    if missing := [attacker(a) for a in order if a not in measured]:
        alt += f" Not measured: {enumerate_words(missing)}, who may do better still."
    title = f"Equal error rate by attacker, {split}"
    return Drawing(canvas, draw.slug("eer_by_attacker", evaluator, split), title, alt)


def _eer_line(
    axes: Axes, eers: dict[str, Value], order: Sequence[str], i: int, system: str, n: int
) -> None:
    shift = 0.64 * ((i + 0.5) / n - 0.5)
    ends = [draw.bars(value, 100) or [[0.0], [0.0]] for value in eers.values()]
    few = n <= _FEW
    axes.errorbar(
        [order.index(a) + shift for a in eers], [100 * v.value for v in eers.values()],
        yerr=[[end[side][0] for end in ends] for side in (0, 1)], linestyle=draw.line(i),
        elinewidth=0.8, capsize=2.5 if few else 1, markersize=5 if few else 3.5,
        linewidth=1.5 if few else 0.7, label=draw.label(system), **draw.look(i),
    )  # fmt: skip


# Utility.


def trade_off(trade: Trade, systems: Sequence[str]) -> Drawing | None:
    """EER of the strongest attacker (x) against utility (y), better to the right and above.

    systems: all of the page, whose order gives colours and markers.
    """
    if not trade.points:
        return None
    m = trade.measure
    turned = "" if m.better > 0 else ", turned over"
    canvas, axes = draw.new(
        3.1, f"{trade.split}, {trade.recogniser}",
        "EER of the strongest attacker (%): 50 = a coin toss",
        f"{m.heading}{turned}: above is better", grid="both",
    )  # fmt: skip
    if trade.unprotected is not None:
        grey = {"color": draw.SOFT, "marker": "*", "markerfacecolor": draw.SOFT}
        _point(axes, m, trade.unprotected, "unprotected speech", grey)
    for point in trade.points:
        _point(axes, m, point, draw.label(point.system), draw.look(systems.index(point.system)))
    front = trade.front()
    x, y = [100 * p.privacy.value for p in front], [m.scale * p.utility.value for p in front]
    axes.plot(x, y, color=draw.INK, linewidth=0.8, linestyle=":", drawstyle="steps-pre", zorder=1)
    axes.plot(x, y, "o", color=draw.INK, markerfacecolor="none", markersize=11,
              markeredgewidth=0.9, label="on the Pareto front")  # fmt: skip
    axes.margins(0.1)
    if m.better < 0:
        axes.invert_yaxis()
    draw.legend(canvas)
    title = f"Privacy against {USES[m.name]}, {trade.split}, {trade.recogniser}"
    name = draw.slug("privacy", trade.metric, trade.recogniser, trade.split)
    return Drawing(canvas, name, title, trade.finding())


def _point(axes: Axes, m: Measure, point: Point, label: str, look: dict[str, Any]) -> None:
    axes.errorbar(
        100 * point.privacy.value, m.scale * point.utility.value, label=label, linestyle="none",
        xerr=draw.bars(point.privacy, 100), yerr=draw.bars(point.utility, m.scale),
        elinewidth=0.8, capsize=2, markersize=5.5, **look,
    )  # fmt: skip


def by_target(results: Results, metric: str, by: str, split: str, series: str) -> Drawing | None:
    """Utility at each constant target voice, with that of original speech (001, Fig. 5).

    series: of results.target_series.
    """
    targets = results.target_series()[series]
    values = {t: results.value(by, split, t, "", metric, UTILITY) or NOTHING for t in targets}
    found = {target: value for target, value in values.items() if value.defined}
    if len(found) < 3:
        return None
    m, (first, *_, last) = MEASURES[metric], found
    canvas, axes = draw.new(2.7, f"{split}, {by}", f"target voice, {first} to {last}", m.heading,
                            grid="y")  # fmt: skip
    before = results.value(by, split, "original", "", metric, UTILITY)
    if before is not None:
        axes.axhline(m.scale * before.value, color=draw.INK, ls=":", label="original speech")
    for i, value in enumerate(found.values(), 1):
        axes.errorbar(
            i, m.scale * value.value, yerr=draw.bars(value, m.scale), linestyle="none",
            markersize=4, elinewidth=0.8, capsize=2, label="protected speech" if i == 1 else None,
            **draw.look(0),
        )  # fmt: skip
    draw.legend(canvas)
    worst, *_, best = sorted(found, key=lambda t: found[t].value, reverse=m.better < 0)
    name, said = USES[metric].capitalize(), {t: m.say(found[t].value) for t in (worst, best)}
    alt = (
        f"{name} by {by} on {split} at {len(found)} targets: best at {best} ({said[best]}), worst "
        f"at {worst} ({said[worst]})"
    )
    alt += f"; original speech {m.say(before.value)}." if before is not None else "."
    title = f"{name} by target voice, {series}, {split}"
    return Drawing(canvas, draw.slug("by_target", metric, by, split, series), title, alt)


# All pictures of the page.


@dataclass(frozen=True)
class Section:
    """Pictures under one heading."""

    title: str
    pictures: list[Picture]


def _drawn(
    results: Results, what: str, draws: Iterable[Draw], folder: Path | None
) -> list[Picture]:
    found = []
    for make in draws:
        try:
            drawing = make()
            if drawing is not None:
                found.append(draw.finish(drawing, folder))
        except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
            # figures.json is not what this version writes: say so, and show the rest
            why = f"figures.json does not hold what is drawn ({type(error).__name__}: {error})"
            logger.warning("%s: %s", what, why)
            results.missing.append((what, why + "; run stage 11 again"))
    return found


def draw_first(results: Results, folder: Path | None) -> list[Picture]:
    """The three pictures of the first screen; PDFs go to `folder`, if there is one."""
    draws = [partial(make, results) for make in (attackers, people, first_trade)]
    return _drawn(results, "the first pictures", draws, folder)


def draw_utility(results: Results, folder: Path | None) -> Section:
    """Privacy against utility, a picture a split and measure, and utility by target."""
    draws: list[Draw] = [partial(trade_off, trade, results.systems())
                         for trade in select.trades(results.metrics)]  # fmt: skip
    useful = where(results.metrics, family=UTILITY, metric=UTILITY_MEASURES)
    measured = useful.drop_duplicates(["metric", "evaluator", "split"]).itertuples()
    draws += [
        partial(by_target, results, f.metric, f.evaluator, f.split, series)
        for f, series in product(measured, results.target_series())
    ]
    return Section("Utility", _drawn(results, "Utility", draws, folder))


def draw_all(results: Results, evaluator: str, folder: Path | None) -> list[Section]:
    """Every section of one evaluator; PDFs go to `folder`, if there is one."""
    splits, known = results.splits(evaluator), results.attackers(evaluator)
    attacked = product(splits, [a for a in PROTECTED if a in known])
    similarity, runs, scores = (
        results.entries(kind, evaluator) for kind in ("similarity", "calibrations", "attacks")
    )

    def by_split(make: Callable[[Results, str, str], Drawing | None]) -> list[Draw]:
        return [partial(make, results, evaluator, split) for split in splits]

    calibrated: list[Draw] = []
    for e in scores:
        if e["where"]["attacker"] == "unprotected" and "ece_actual" in e:  # not in older results
            prior = results.pictures["prior"]
            calibrated += [partial(details.actual, e, prior), partial(details.empirical, e)]
    for e in runs:
        calibrated += [partial(details.distortion, results, e), partial(details.empirical, e)]
    plan: dict[str, list[Draw]] = {
        "Overview": [partial(scatter, results, evaluator)],
        "Attackers": by_split(eer_by_attacker),
        "Voice similarity": [partial(details.similarity, results, e) for e in similarity],
        "Disclosure": [partial(details.ece, results, evaluator, *of) for of in attacked],
        "Calibration by the attacker": calibrated,
        "Scores and local linkability": [partial(details.histogram, results, e) for e in scores],
        "Identity search": by_split(details.cmc),
        "Linkability by speaker": by_split(details.radar),
    }
    if results.targets():
        plan["Linkability by target voice"] = [
            partial(make, results, evaluator, split, series, metric)
            for series in results.target_series()
            for metric in details.definitions(results)
            for make in (details.targets, details.target_groups)
            for split in splits
        ]
    return [Section(title, _drawn(results, title, draws, folder)) for title, draws in plan.items()]
