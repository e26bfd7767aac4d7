"""Pictures of the page: those of one evaluator (000, Fig. 2 and 3; 001,
Fig. 3; 002, Fig. 4 and 6 to 10; 003, section 3.6), and privacy against utility.

A function makes one picture, or none where nothing was measured. What it shows in words stands in
templates/sentences.jinja.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator

from local.metrics.recordings import LENGTHS
from local.metrics.registry import read_table
from local.metrics.similarity import dominance_of_rows
from local.plan.labels import Family
from local.protocols.attackers import CONTROLS
from local.report import draw, frame, measures, select, wording
from local.report.draw import INK, SMALL, SOFT, Drawing, Picture, dot, line
from local.report.frame import where
from local.report.measures import Value, number
from local.report.results import SETTINGS, Entry, Results
from local.report.select import Trade, fold
from local.report.wording import attacker
from utils.arrays import Float64

Found = Drawing | None
_GREY: dict[str, Any] = {"color": SOFT}


SAID: dict[str, dict[str, Any]] = read_table(measures.ROOT / "local/report/pictures.yaml")


def empty(kind: str, title: str = "", **more: Any) -> tuple[Canvas, Axes]:
    """An empty picture of a kind of pictures.yaml; more: what else `draw.new` takes."""
    settings = {key: value for key, value in SAID[kind].items() if key not in ("headline", "parts")}
    return draw.new(title=title, **settings | more)


def made(canvas: Canvas, kind: str, of: Sequence[str], **told: object) -> Drawing:
    """The drawing of a canvas with its legend. kind: begins the name of its file and names its
    headline and its sentence, which are told the rest; of: what it is of, for the name of the file.
    """
    if not canvas.legends:
        draw.legend(canvas)
    headline = SAID[kind]["headline"].format(**told)
    return Drawing(canvas, draw.slug(kind, *of), headline, wording.say(kind, **told))


# One evaluator.


def scatter(results: Results, evaluator: str) -> Found:
    """DeID (x) against G_VD (y) of all systems and splits, with intervals (000, Fig. 3)."""
    systems, splits = results.systems(), results.splits(evaluator)
    measured: list[tuple[int, int, str, Value, Value]] = []
    for (i, system), (j, split) in product(enumerate(systems), enumerate(splits)):
        deid, g_vd = (results.value(evaluator, split, system, "", m, Family.SIMILARITY)
                      for m in ("deid", "g_vd"))  # fmt: skip
        if deid and g_vd:
            measured.append((i, j, f"{system} on {split}", deid, g_vd))
    points = [p for p in measured if p[3].defined and p[4].defined]
    if not measured:
        return None
    canvas, axes = empty("deid_gvd")
    for i, j, _, deid, g_vd in points:
        dot(axes, deid, g_vd, markersize=5.5, **draw.look(i) | {"marker": draw.marker(j)})
    # Colours are systems, markers are splits.
    looks = [(systems[i], {**draw.look(i), "marker": "s"}) for i in sorted({p[0] for p in points})]
    looks += [(splits[j], {"marker": draw.marker(j), "color": INK, "markerfacecolor": "none"})
              for j in sorted({p[1] for p in points})]  # fmt: skip
    for name, look in looks:
        axes.plot([], [], linestyle="none", markersize=5, label=draw.label(name), **look)
    axes.axhline(0, linewidth=0.8, linestyle=":", **_GREY)
    axes.margins(0.08)
    left_out = [p[2] for p in measured if p not in points]
    return made(canvas, "deid_gvd", [evaluator], points=points, left_out=left_out)


# Utility.


def trade_off(trade: Trade, systems: Sequence[str]) -> Found:
    """EER of the strongest attacker (x) against utility (y), better to the right and above.

    systems: all of the page, whose order gives colours and markers.
    """
    if not trade.points:
        return None
    m = trade.measure
    turned = "" if m.better > 0 else ", turned over"
    canvas, axes = empty("privacy", f"{trade.split}, {trade.recogniser}",
                        y=f"{m.heading}{turned}: above is better")  # fmt: skip
    shown = [(p, draw.label(p.system), draw.look(systems.index(p.system))) for p in trade.points]
    if trade.unprotected is not None:
        grey = {**_GREY, "marker": "*", "markerfacecolor": SOFT}
        shown.insert(0, (trade.unprotected, "unprotected speech", grey))
    for p, label, look in shown:
        dot(axes, p.privacy, p.utility, (100, m.scale), label=label, markersize=5.5, **look)
    front = trade.front()
    x, y = [100 * p.privacy.value for p in front], [m.scale * p.utility.value for p in front]
    axes.plot(x, y, color=INK, linewidth=0.8, linestyle=":", drawstyle="steps-pre", zorder=1)
    axes.plot(x, y, "o", color=INK, markerfacecolor="none", markersize=11,
              markeredgewidth=0.9, label="on the Pareto front")  # fmt: skip
    axes.margins(0.1)
    axes.set_xlim(-2, 53)
    if m.name == "mos":
        axes.set_ylim(1, 5)
    if m.better < 0:
        axes.invert_yaxis()
    draw.legend(canvas)
    title = f"Privacy against {wording.USES[m.name]}, {trade.split}, {trade.recogniser}"
    name = draw.slug("privacy", trade.metric, trade.recogniser, trade.split)
    return Drawing(canvas, name, title, trade.finding())


def by_target(results: Results, metric: str, by: str, split: str, series: str) -> Found:
    """Utility at each constant target voice, with that of original speech (001, Fig. 5).

    series: of results.target_series.
    """
    targets = results.target_series()[series]
    values = {t: results.several(by, split, t, "", [metric], Family.UTILITY)[0] for t in targets}
    found = {target: value for target, value in values.items() if value.defined}
    if len(found) < 3:
        return None
    m, (first, *_, last) = measures.MEASURES[metric], found
    canvas, axes = empty("by_target", f"{split}, {by}", x=f"target voice, {first} to {last}",
                        y=m.heading)  # fmt: skip
    before = results.value(by, split, "original", "", metric, Family.UTILITY)
    if before is not None:
        axes.axhline(m.scale * before.value, color=INK, ls=":", label="original speech")
    for i, value in enumerate(found.values(), 1):
        label = "protected speech" if i == 1 else None
        dot(axes, i, value, (1, m.scale), markersize=4, label=label, **draw.look(0))
    ordered = sorted(found, key=found.__getitem__, reverse=m.better < 0)
    worst, *_, best = [(target, m.say(found[target].value)) for target in ordered]
    return made(
        canvas, "by_target", [metric, by, split, series], name=wording.USES[metric].capitalize(),
        by=by, split=split, series=series, n=len(found), best=best, worst=worst,
        before=before and m.say(before.value),
    )  # fmt: skip


# Voice similarity.

_NAMED = 11  # up to so many speakers their names stand beside the matrix, large enough to be read


def similarity(results: Results, entry: Entry) -> Drawing:
    """The matrices of one system on one split, and the zoo plot beneath (002, Fig. 6)."""
    of, names = entry["where"], entry["speakers"]
    oo, op, pp = (entry[f"sim_{s}"] for s in SETTINGS)
    points = [entry[f"zoo_{s}"] / np.log(10.0) for s in SETTINGS]
    canvas = draw.blank(6.4)
    above, beneath = canvas.subplots(2, 1, height_ratios=(1.9, 1))
    _quadrants(canvas, above, np.block([[oo, op], [op.T, pp]]), names)
    _zoo(beneath, points, names)
    low, high = _zoo_range(results, of["evaluator"])
    beneath.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    above.set_title(f"{of['system']} on {of['split']}", loc="left")
    at = (of["evaluator"], of["split"], of["system"])
    deid, g_vd = results.several(*at, "", ("deid", "g_vd"), Family.SIMILARITY)
    worst, others = int(np.argmax(dominance_of_rows(op))), op - np.diag(np.diag(op))
    row, column = np.unravel_index(int(np.argmax(others)), op.shape)
    return made(
        canvas, "similarity", [of[k] for k in ("evaluator", "system", "split")],
        system=of["system"], split=of["split"], deid=deid, g_vd=g_vd,
        worst=names[worst], own=(oo[worst, worst], op[worst, worst]),
        taken=(names[row], names[column], others[row, column]),
        zoo=_zoo_told(points[1], points[2], names),
    )  # fmt: skip


def _quadrants(canvas: Canvas, axes: Axes, whole: Float64, names: list[str]) -> None:
    """M_OO, M_OP and M_PP with one colour scale from 0 to 1; M_OP also stands beneath, turned."""
    n = len(names)
    image = axes.imshow(whole, cmap="viridis", vmin=0, vmax=1, interpolation="none", aspect="equal")
    for cut in (axes.axhline, axes.axvline):
        cut(n - 0.5, color="white", linewidth=1.4)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    ticks = [(n - 1) / 2, n + (n - 1) / 2]
    axes.set_xticks(ticks, ["original", "protected"])
    axes.set_yticks(ticks, ["original", "protected"], rotation=90, va="center")
    for row, column, text in ((0, 0, "OO"), (0, 1, "OP"), (1, 1, "PP")):
        axes.text(
            column * n + n - 0.9, row * n - 0.1, text, color="white", ha="right", va="top",
            fontsize=7, fontweight="bold",
            bbox={"facecolor": "#000000", "alpha": 0.45, "lw": 0, "pad": 1.2},
        )  # fmt: skip
    if n <= _NAMED:
        short = [name if len(name) <= 8 else name[:7] + "…" for name in names]
        for i, name in enumerate([*short, *short]):
            axes.text(2 * n - 0.35, i, name, fontsize=SMALL, va="center", ha="left")
    bar = canvas.colorbar(image, ax=axes, location="bottom", shrink=0.8, aspect=35, pad=0.02)
    bar.set_label("voice similarity")
    bar.outline.set_visible(False)  # type: ignore[operator]


def _zoo(axes: Axes, points: Sequence[Float64], names: list[str]) -> None:
    """Mean calibrated LLR of a speaker's target pairs (x) and of its impostor pairs (y)."""
    for i, (s, text) in enumerate(SAID["similarity"]["parts"].items()):
        colour = draw.colour(i - 1)
        axes.scatter(
            points[i][:, 0], points[i][:, 1], s=16, marker=draw.marker(i), linewidths=0.9,
            label=f"{s.upper()}: {text}", facecolors=colour if i else "none", edgecolors=colour,
        )  # fmt: skip
    worst = int(np.argmax(points[1][:, 0]))
    axes.annotate(
        draw.label(names[worst]), tuple(points[1][worst]), xytext=(4, 5),
        textcoords="offset points", fontsize=SMALL,
    )  # fmt: skip
    axes.axhline(0, color=draw.GRID, linewidth=0.8)
    axes.axvline(0, color=draw.GRID, linewidth=0.8)
    axes.set_xlabel("with own voice: mean LLR of target pairs (decades)")
    axes.set_ylabel("with others: mean LLR (decades)")


def _zoo_range(results: Results, evaluator: str) -> tuple[list[float], list[float]]:
    """The lowest and the highest corner of all zoo plots of an evaluator: they share their axes."""
    entries = results.entries("similarity", evaluator)
    every = [entry[f"zoo_{s}"].reshape(-1, 2) for entry in entries for s in SETTINGS]
    found = np.concatenate(every) / np.log(10.0)
    found = found[np.isfinite(found).all(axis=1)]
    low, high = found.min(axis=0), found.max(axis=0)
    margin = 0.1 * np.maximum(high - low, 1e-9)
    return (low - margin).tolist(), (high + margin).tolist()


def _zoo_told(op: Float64, pp: Float64, names: list[str]) -> dict[str, object]:
    """Names and numbers for the caption of the points of OP and PP."""
    passing, confused = (
        [names[i] for i in np.argsort(-found[:, 1]) if found[i, 1] > 0] for found in (op, pp)
    )
    own = op[:, 0]
    return {"median": np.median(own), "extent": np.ptp(own), "worst": names[int(np.argmax(own))],
            "highest": own.max(), "passing": passing, "confused": confused}  # fmt: skip


# Scores and what they disclose.

Profiles = list[tuple[str, Float64, int]]  # legend, ECE, number of the colour (-1: originals)


def ece(results: Results, evaluator: str, split: str, attack: str) -> Found:
    """Oracle-calibrated profiles of one attack on all systems; D_ECE, l_w and tag in the legend."""
    systems, said = results.systems(), []
    lines: Profiles = []
    for entry in results.entries("attacks", evaluator):
        system, who = entry["where"]["system"], entry["where"]["attacker"]
        if entry["where"]["split"] != split or who not in (attack, "unprotected"):
            continue
        d_ece, l_w, tag = results.several(evaluator, split, system, who, ("d_ece", "l_w", "tag"))
        name = "unprotected" if system == "original" else system
        figures = (number(d_ece.value, 3), number(l_w.value), tag.tag)
        index = systems.index(system) if system in systems else -1
        lines.append((f"{draw.label(name)}: ({', '.join(figures)})", entry["ece"], index))
        said.append((name, *figures))
    if all(index < 0 for _, _, index in lines):
        return None
    who = attacker(attack)
    return _profiles(
        results.prior, lines, "ece", [evaluator, attack, split], f"{who} attacker, {split}",
        legend={"title": "(D_ECE in bit, l_w in decades, tag)", "title_fontsize": 7},
        who=who, split=split, said=said,
    )  # fmt: skip


def _profiles(
    prior: Entry, lines: Profiles, kind: str, of: Sequence[str], title: str, *,
    legend: Mapping[str, Any] = {}, **told: object,
) -> Drawing:  # fmt: skip
    """A picture of profiles; where its legend has a title, what they disclose is shaded."""
    canvas, axes = empty(kind, title)
    shade = bool(legend)
    x, nothing = prior["log_odds"], prior["prior"]
    axes.plot(x, nothing, color=INK, linewidth=1.2, label="prior: perfect privacy")
    middle = len(x) // 2
    for name, y, index in lines:
        colour = draw.colour(index)
        axes.plot(x, y, color=colour, linestyle=line(index), label=name)
        mark = draw.look(index) | {"marker": draw.marker(max(index, 0))}
        axes.plot(x[middle], y[middle], markersize=4, **mark)
        if shade and index >= 0:
            alpha = min(0.13, 0.4 / len(lines))
            axes.fill_between(x, y, nothing, color=colour, alpha=alpha, linewidth=0)
    axes.set(
        xlim=(x[0], x[-1]), ylim=(0, 1.05 if shade else 1.5), ylabel="ECE (bit)",
        xlabel="log-odds of the prior, logit π (dot: π = 1/2)",
    )  # fmt: skip
    axes.grid(True)
    draw.legend(canvas, 1, **legend)
    return made(canvas, kind, of, **told)


def actual(entry: Entry, prior: Entry) -> Found:
    """The profile of scores of unprotected speech taken as LLR beside that of ideal calibration
    (002, Fig. 7)."""
    of, ideal, own = entry["where"], entry["ece"], entry.get("ece_actual")
    if of["attacker"] != "unprotected" or own is None:
        return None
    lines = [("ideally calibrated scores", ideal, 0), ("scores taken as LLR", own, 6)]
    middle, run = len(own) // 2, f"unprotected speech, {of['split']}"
    return _profiles(
        prior, lines, "actual", [of["evaluator"], of["split"]], run, run=run, own=own[middle],
        ideal=ideal[middle], above=(own > prior["prior"]).mean(),
    )  # fmt: skip


def ridge(results: Results, evaluator: str, split: str) -> Found:
    """Shares of target and nontarget scores by bin, and the local linkability: a row an attack."""
    found = [e for e in results.entries("attacks", evaluator)
             if e["histogram"] is not None and e["where"]["split"] == split]  # fmt: skip
    if not found:
        return None
    canvas, axes = empty("ridge", split, height=1.3 + 0.45 * len(found))
    said = []
    for k, entry in enumerate(found):
        of, bins = entry["where"], entry["histogram"]
        edges, d, base = bins["edges"], bins["linkability"], len(found) - 1 - k
        highest = max(bins[side].max() for side in ("mated", "non_mated"))
        for index, side in ((5, "non_mated"), (1, "mated")):
            share, colour = base + 0.85 * bins[side] / highest, draw.colour(index)
            axes.stairs(share, edges, baseline=base, fill=True, alpha=0.35, color=colour)
            axes.stairs(share, edges, baseline=base, color=colour, linewidth=0.8)
        axes.stairs(base + 0.85 * d, edges, baseline=None, color=INK, linewidth=1.1)
        at = (evaluator, split, of["system"], of["attacker"])
        d_sys = results.value(*at, "linkability") or measures.NOTHING
        said.append((of["system"], of["attacker"], d_sys, bins["mated"][d > 0.9].sum()))
    rows = [f"{draw.label(system, _NARROW)}\n{attacker(who)}" for system, who, *_ in said]
    axes.set_yticks([len(found) - 0.6 - k for k in range(len(found))], rows, fontsize=SMALL)
    for index, text in ((5, "different speakers"), (1, "same speaker")):
        axes.plot([], [], linewidth=4, alpha=0.5, color=draw.colour(index), label=text)
    axes.plot([], [], color=INK, label="local linkability D↔ (0 to 1)")
    return made(canvas, "ridge", [evaluator, split], split=split, said=said)


# Identity search.


def cmc(results: Results, evaluator: str, split: str) -> Found:
    """Share of protected segments whose speaker is among the k nearest originals, by k."""
    systems, said = results.systems(), []
    found = [e for e in results.entries("searches", evaluator) if e["where"]["split"] == split]
    known = results.evaluators()
    earlier = {_search(e) for by in known[: known.index(evaluator)]
               for e in results.entries("searches", by)}  # fmt: skip
    if not {*map(_search, found)} - earlier:  # another back end of the same x-vectors
        return None
    canvas, axes = empty("cmc", split)
    ranks = np.arange(1, len(found[0]["cmc"]) + 1)
    for entry in found:
        system = entry["where"]["system"]
        i = systems.index(system) if system in systems else 0
        axes.plot(ranks, 100 * entry["cmc"], color=draw.colour(i), linestyle=line(i),
                  label=draw.label(system))  # fmt: skip
        said.append((system, entry["cmc"][0]))
    chances = {"chance_clustered": ("clusters kept", ":"), "chance": ("labels mixed", "--")}
    for key, (text, style) in chances.items():
        mean = 100 * np.array([e[key] for e in found]).mean(axis=0)
        axes.plot(ranks, mean, linestyle=style, lw=1, label=f"chance, {text}", **_GREY)
    axes.set(xscale="log", ylim=(0, 102))
    ticks = [k for k in (1, 2, 5, 10, 20, 50) if k <= len(ranks)]
    axes.set_xticks(ticks, [str(k) for k in ticks])
    axes.minorticks_off()
    chance = found[0]["chance_clustered"][0]
    return made(canvas, "cmc", [evaluator, split], split=split, said=said, chance=chance)


def _search(entry: Entry) -> tuple[str, ...]:
    """System, split and curve: the identity of a search among those of other x-vectors."""
    where = entry["where"]
    return where["system"], where["split"], str(entry["cmc"].tobytes())


# Linkability of each speaker over target voices, as radars.

_NARROW = 17  # letters over one of three radars side by side
_SHOWN = 12  # speakers with a radar over targets


def targets(results: Results, evaluator: str, split: str, series: str) -> Found:
    """A radar a speaker over constant targets (001, Fig. 3); the worst and the best protected.

    series: of results.target_series.
    """
    attack, table, before = select.over_targets(results, evaluator, split, series)
    n, n_voices = table.shape
    if n_voices < 3 or not n:
        return None
    shown = table if n <= _SHOWN else table.iloc[[*range(_SHOWN // 2), *range(-_SHOWN // 2, 0)]]
    who, bares = attacker(attack), dict(zip(table.index, before, strict=True))
    canvas, grid = draw.polars(len(shown), f"{split}, {who} attacker")
    for axes, (name, own) in zip(grid, shown.iterrows(), strict=True):
        angle = draw.polar_axes(axes, n_voices)
        draw.ring(axes, angle, np.full(n_voices, bares[name]), -1, linewidth=1.2)
        draw.ring(axes, angle, own.to_numpy(), 0, linewidth=1.1)
        axes.set_title(draw.label(str(name), _NARROW), fontsize=SMALL)
    return made(
        canvas, "targets", [evaluator, split, series], split=split, who=who, series=series,
        voices=[*table.columns], speakers=[*table.index],
        means=[table.iloc[i].mean() for i in (0, -1)], shown=_SHOWN,
    )  # fmt: skip


# All pictures of the page.


class Section(NamedTuple):
    """Pictures under one heading."""

    title: str
    pictures: list[Picture]


def drawn(title: str, made: Iterable[Found], folder: Path | None) -> Section:
    """A section; PDFs go to `folder`, if there is one."""
    return Section(title, [draw.finish(one, folder) for one in made if one is not None])


def draw_utility(results: Results, folder: Path | None) -> Section:
    """Privacy against utility, a picture a split and measure, and utility by target."""
    useful = where(results.metrics, family=Family.UTILITY, figure=measures.UTILITY_MEASURES)
    measured = useful.drop_duplicates(["metric", "evaluator", "split"]).itertuples()
    trades = (trade_off(trade, results.systems()) for trade in select.trades(results.metrics))
    targets = (
        by_target(results, f.metric, f.evaluator, f.split, series)
        for f, series in product(measured, results.target_series())
    )
    return drawn("Utility", chain(trades, targets), folder)


def draw_all(results: Results, evaluator: str, folder: Path | None) -> list[Section]:
    """Every section of one evaluator; PDFs go to `folder`, if there is one."""
    splits, known = results.splits(evaluator), results.attackers(evaluator)
    of = (results, evaluator)
    attacked = [*product(splits, [a for a in wording.PROTECTED if a in known])]
    plan: dict[str, Iterable[Found]] = {
        "Overview": [scatter(*of)],
        "Voice similarity": (
            similarity(results, e) for e in results.entries("similarity", evaluator)
        ),
        "Disclosure": (ece(*of, *attack) for attack in attacked),
        "Calibration by the attacker": (
            actual(e, results.prior) for e in results.entries("attacks", evaluator)
        ),
        "Scores and local linkability": (ridge(*of, split) for split in splits),
        "Identity search": (cmc(*of, split) for split in splits),
    }
    if results.targets():
        plan["Linkability by target voice"] = (
            targets(*of, split, series)
            for series, split in product(results.target_series(), splits)
        )
    several = f", {evaluator}" if len(results.evaluators()) > 1 else ""
    return [drawn(title, (one and replace(one, title=one.title + several) for one in made), folder)
            for title, made in plan.items()]  # fmt: skip


# ---- Pictures of the first screen, one for each question of a reader.


def recordings(results: Results) -> Found:
    """Lowest EER by how many recordings of a person an attacker has: a line a system, of the group
    of people that it protects worst."""
    found = select.verdicts(results)
    shown = [(i, min(own, key=lambda j: j.eer)) for i, system in enumerate(results.systems())
             if (own := [j for j in found.get(system, []) if j.verdict.attack])]  # fmt: skip
    if not shown:
        return None
    canvas, axes = empty("recordings")
    lengths = {n: i for i, n in enumerate(LENGTHS)}
    for k, (i, judged) in enumerate(shown):
        eers = {n: one.eer for n, one in judged.verdict.eers.items()}
        at = [lengths[n] + 0.3 * (k + 0.5) / len(shown) - 0.15 for n in eers]
        name = judged.system if len({j.group for _, j in shown}) == 1 else str(judged)
        for x, value in zip(at, eers.values(), strict=True):
            dot(axes, x, value, (1, 100), markersize=4, **draw.look(i))
        axes.plot(at, [100 * v.value for v in eers.values()], linewidth=1, markersize=4,
                  linestyle=line(i), label=draw.label(name), **draw.look(i))  # fmt: skip
    axes.axhline(50, linewidth=0.8, linestyle=":", label="guessing", **_GREY)
    axes.set_xticks(range(len(lengths)), lengths)
    axes.set_xlim(-0.4, len(lengths) - 0.6)
    return made(canvas, "recordings", ["first"], shown=[judged for _, judged in shown])


def channels(results: Results) -> Found:
    """Lowest EER from one recording by what the attackers hear, a colour a system."""
    shown = [system for system in results.systems() if system not in CONTROLS[1:]]
    figures = ("eer", "eer_normalised")
    rows = where(results.metrics, system=shown, family=Family.VERIFICATION, figure=figures)
    rows = rows[np.isfinite(rows["value"])]
    heard_by = SAID["channels"]["parts"]
    encoder = rows["evaluator"].str.split("[:/]").str[0]
    heard = encoder.where(encoder.isin([*heard_by]), "")
    known = [name for name in heard_by if name in set(heard)]
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
            lowest = min(eers)
            dot(axes, lowest, len(known) - 1 - y - shift, markersize=4, **looks)
            looks.pop("label", None)
            said.append((system, heard_by[name], lowest))
    axes.axvline(50, linewidth=0.8, linestyle=":", label="guessing", **_GREY)
    axes.set_yticks(range(len(known)), [heard_by[name] for name in reversed(known)])
    return made(canvas, "channels", ["first"], said=said)


def first_trade(results: Results) -> Found:
    """The lowest EER against words, or else quality or emotions, of all people together."""
    pooled = select.pooled(results)
    drawing = trade_off(pooled, results.systems()) if pooled else None
    return drawing and replace(drawing, title=f"What is it still good for? {drawing.title}")


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
        axes.plot(x, own["bare"].to_numpy(), "_", color=SOFT, markersize=4)
        axes.plot(x, values, linestyle="none", markersize=4,
                  label=draw.label(system), **draw.look(i))  # fmt: skip
        worst = [*zip(own["speaker"], values, strict=True)][:3]
        said.append((system, int((values > 0.5).sum()), len(own), worst))
    axes.plot([], [], "_", label="unprotected, by the same evaluator", **_GREY)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return made(canvas, "people", ["worst"], said=said)


def draw_first(results: Results, folder: Path | None) -> list[Picture]:
    """The pictures of the first screen; PDFs go to `folder`, if there is one."""
    made = (make(results) for make in (recordings, channels, people, first_trade))
    return drawn("", made, folder).pictures
