"""Pictures of single attacks and people: voice similarity (000, Fig. 2; 002, Fig. 6 and 9), what
scores disclose (001, section 3.2; 002, Fig. 4, 7, 8 and 10), identity search (003, section 3.6),
and radars of linkability (001, Fig. 3 and 4)."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.projections.polar import PolarAxes

from local.metrics.similarity import dominance_of_rows
from local.report import draw
from local.report.draw import Drawing
from local.report.frame import CALIBRATION, NOTHING, SIMILARITY, number, percent, where
from local.report.load import Results
from local.report.words import PROTECTED, attacker, enumerate_words
from utils.arrays import Float64

Entry = dict[str, Any]
Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]


# Voice similarity.

SETTINGS = {
    "oo": "OO: original–original",
    "op": "OP: original–protected",
    "pp": "PP: protected–protected",
}
_NAMED = 11  # up to so many speakers their names stand beside the matrix, large enough to be read


def similarity(results: Results, entry: Entry) -> Drawing:
    """The matrices of one system on one split, and the zoo plot beneath (002, Fig. 6)."""
    of, names = entry["where"], [str(name) for name in entry["speakers"]]
    matrices = [np.array(entry[f"sim_{s}"], np.float64) for s in SETTINGS]
    points = {s: np.array(entry[f"zoo_{s}"], np.float64) / np.log(10.0) for s in SETTINGS}
    canvas, (above, beneath) = draw.stacked(6.4, (1.9, 1))
    _quadrants(canvas, above, matrices, names)
    _zoo(beneath, points, names)
    low, high = _zoo_range(results, of["evaluator"])
    beneath.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    draw.legend(canvas)
    subject = f"{of['system']} on {of['split']}"
    above.set_title(subject, loc="left")
    name = draw.slug("similarity", of["evaluator"], of["system"], of["split"])
    alt = f"{_matrix_finding(results, of, names, *matrices[:2])} {_zoo_finding(points, names)}"
    return Drawing(canvas, name, f"Voice similarity and zoo plot, {subject}", alt)


def _quadrants(canvas: Canvas, axes: Axes, matrices: Sequence[Matrix], names: list[str]) -> None:
    """M_OO, M_OP and M_PP with one colour scale from 0 to 1; M_OP stands beneath, turned, too."""
    oo, op, pp = matrices
    n, whole = len(names), np.block([[oo, op], [op.T, pp]])
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
            axes.text(2 * n - 0.35, i, name, fontsize=draw.SMALL, va="center", ha="left")
    bar = canvas.colorbar(image, ax=axes, location="bottom", shrink=0.8, aspect=35, pad=0.02)
    bar.set_label("voice similarity")
    bar.outline.set_visible(False)  # type: ignore[operator]


def _matrix_finding(
    results: Results, where: dict[str, str], names: list[str], oo: Matrix, op: Matrix
) -> str:
    of = (where["evaluator"], where["split"], where["system"], "")
    deid, g_vd = (results.value(*of, metric, SIMILARITY) or NOTHING for metric in ("deid", "g_vd"))
    worst = int(np.argmax(dominance_of_rows(op)))
    text = (
        f"The diagonal between original and protected speech of {where['system']} is "
        f"{percent(1 - deid.value)} of that of the originals (DeID {percent(deid.value)}); between "
        f"protected voices it is {number(g_vd.value)} dB (G_VD) against the originals. Speaker "
        f"{names[worst]} stays most recognisable: own similarity {number(float(op[worst, worst]))} "
        f"where original speech has {number(float(oo[worst, worst]))}."
    )
    others = op - np.diag(np.diag(op))
    row, column = np.unravel_index(int(np.argmax(others)), op.shape)
    if others[row, column] > 0.6:
        text += (
            f" The protected {names[column]} sounds like the original {names[row]} "
            f"(similarity {number(float(others[row, column]))})."
        )
    return text


def _zoo(axes: Axes, points: dict[str, Matrix], names: list[str]) -> None:
    """Mean calibrated LLR of a speaker's target pairs (x) and of its impostor pairs (y)."""
    for i, (s, text) in enumerate(SETTINGS.items()):
        colour = draw.colour(i - 1)
        axes.scatter(
            points[s][:, 0], points[s][:, 1], s=16, marker=draw.marker(i), label=text,
            facecolors="none" if s == "oo" else colour, edgecolors=colour, linewidths=0.9,
        )  # fmt: skip
    worst = int(np.argmax(points["op"][:, 0]))
    axes.annotate(
        draw.label(names[worst]), tuple(points["op"][worst]), xytext=(4, 5),
        textcoords="offset points", fontsize=draw.SMALL,
    )  # fmt: skip
    axes.axhline(0, color=draw.GRID, linewidth=0.8)
    axes.axvline(0, color=draw.GRID, linewidth=0.8)
    axes.set_xlabel("with own voice: mean LLR of target pairs (decades)")
    axes.set_ylabel("with others: mean LLR (decades)")


def _zoo_range(results: Results, evaluator: str) -> tuple[list[float], list[float]]:
    """The lowest and the highest corner of all zoo plots of an evaluator: they share their axes."""
    found = np.concatenate([
        np.array(entry[f"zoo_{s}"], np.float64).reshape(-1, 2) / np.log(10.0)
        for entry in results.entries("similarity", evaluator) for s in SETTINGS
    ])  # fmt: skip
    found = found[np.isfinite(found).all(axis=1)]
    low, high = found.min(axis=0), found.max(axis=0)
    margin = 0.1 * np.maximum(high - low, 1e-9)
    return (low - margin).tolist(), (high + margin).tolist()


def _zoo_finding(points: dict[str, Matrix], names: list[str]) -> str:
    op, pp = points["op"], points["pp"]
    worst = int(np.argmax(op[:, 0]))
    text = (
        f"In the zoo plot, protected speakers against the original have a median target LLR of "
        f"{number(float(np.median(op[:, 0])))} decades (0 is no evidence), over a range of "
        f"{number(float(np.ptp(op[:, 0])))}; {names[worst]} has the highest, "
        f"{number(float(op[worst, 0]))}."
    )
    for found, said in (
        (op, "Protected voices of others pass for the original"),
        (pp, "Their protected voices are confused with others':"),
    ):
        taken = [names[i] for i in np.argsort(-found[:, 1]) if found[i, 1] > 0]
        text += f" {said} {enumerate_words(taken)}." if taken else ""
    return text


# Scores and what they disclose.

Profiles = list[tuple[str, list[float], int]]  # legend, ECE, number of the colour (-1: originals)
_FEWEST = 10  # trials of a bin that has a point


def ece(results: Results, evaluator: str, split: str, attack: str) -> Drawing | None:
    """Oracle-calibrated profiles of one attack on all systems; D_ECE, l_w and tag in the legend."""
    systems, said = results.systems(), []
    lines: Profiles = []
    for entry in results.entries("attacks", evaluator):
        system, who = entry["where"]["system"], entry["where"]["attacker"]
        if entry["where"]["split"] != split or who not in (attack, "unprotected"):
            continue
        d_ece, l_w, tag = (
            results.value(evaluator, split, system, who, m) or NOTHING
            for m in ("d_ece", "l_w", "tag")
        )
        name = "unprotected" if system == "original" else system
        figures = [number(d_ece.value, 3), number(l_w.value), tag.tag]
        index = systems.index(system) if system in systems else -1
        lines.append((f"{draw.label(name)}: ({', '.join(figures)})", entry["ece"], index))
        said.append(f"{name} {figures[0]} bit (worst case {figures[1]} decades, tag {tag.tag})")
    if not any(index >= 0 for _, _, index in lines):
        return None
    canvas, axes = draw.new(3.2, f"{attacker(attack)} attacker, {split}")
    _profiles(axes, results.pictures["prior"], lines, shade=True)
    draw.legend(canvas, 1, title="(D_ECE in bit, l_w in decades, tag)", title_fontsize=7)
    alt = (
        f"Expected disclosure (D_ECE, the shaded gap to the black prior profile) to the "
        f"{attacker(attack)} attacker on {split}: {'; '.join(said)}. No evidence is 0, all is "
        f"0.721 bit."
    )
    title = f"ECE profiles, {attacker(attack)} attacker, {split}"
    return Drawing(canvas, draw.slug("ece", evaluator, attack, split), title, alt)


def _profiles(axes: Axes, prior: Entry, lines: Profiles, *, shade: bool) -> None:
    x, nothing = np.array(prior["log_odds"]), np.array(prior["prior"])
    axes.plot(x, nothing, color=draw.INK, linewidth=1.2, label="prior: perfect privacy")
    middle = len(x) // 2
    for name, values, index in lines:
        y, colour = np.array(values, np.float64), draw.colour(index)
        axes.plot(x, y, color=colour, linestyle=draw.line(index), label=name)
        dot = draw.look(index) | {"marker": draw.marker(max(index, 0))}
        axes.plot(x[middle], y[middle], markersize=4, **dot)
        if shade and index >= 0:
            alpha = min(0.13, 0.4 / len(lines))
            axes.fill_between(x, y, nothing, color=colour, alpha=alpha, linewidth=0)
    axes.set(
        xlim=(x[0], x[-1]), ylim=(0, 1.05 if shade else 1.5), ylabel="ECE (bit)",
        xlabel="log-odds of the prior, logit π (dot: π = 1/2)",
    )  # fmt: skip
    axes.grid(True)


def distortion(results: Results, entry: Entry) -> Drawing:
    """Profiles of two runs of a random system, and of calibrations learnt on one and used on the
    other (002, Fig. 8)."""
    where = entry["where"]
    of = (where["evaluator"], where["split"], where["system"])
    subject, lines = f"{where['system']} on {where['split']}", []
    found = {}
    for i, (name, metric, text) in enumerate((
        ("f0", "d_ece_f0", "run 0, oracle: D_ECE"),
        ("f1", "d_ece_f1", "run 1, oracle: D_ECE"),
        ("linear", "c_ece_linear", "run 1, linear from run 0: C_ECE"),
        ("isotonic", "c_ece_isotonic", "run 1, isotonic from run 0: C_ECE"),
    )):  # fmt: skip
        found[name] = (results.value(*of, "", metric, CALIBRATION) or NOTHING).value
        lines.append((f"{text} {number(found[name], 3)}", entry["ece"][name], i))
    canvas, axes = draw.new(3.3, subject)
    _profiles(axes, results.pictures["prior"], lines, shade=False)
    draw.legend(canvas, 1)
    gains = found["linear"] > 0 or found["isotonic"] > 0
    alt = (
        f"Run 1 of {subject} discloses {number(found['f1'], 3)} bit to an attacker with oracle "
        f"calibration. What was learnt on run 0 gives {number(found['linear'], 3)} bit (linear) "
        f"and {number(found['isotonic'], 3)} bit (isotonic): "
        f"{'the attacker gains from it' if gains else 'it is of no use to the attacker'}."
    )
    title = f"Calibration learnt on another run, {subject}"
    return Drawing(canvas, draw.slug("calibration", *of), title, alt)


def empirical(entry: Entry) -> Drawing:
    """Share of target trials in bins of the posterior that an attacker states (002, Fig. 4)."""
    where = entry["where"]
    names = {"linear": "linear from run 0", "isotonic": "isotonic from run 0",
             "uncalibrated": "scores taken as LLR"}  # fmt: skip
    canvas, axes = draw.new(
        2.8, _run(where), "posterior that the attacker states", "share of target trials",
        grid="both", xlim=(0, 1), ylim=(0, 1),
    )  # fmt: skip
    axes.plot([0, 1], [0, 1], color=draw.INK, linewidth=1, linestyle=":", label="well calibrated")
    off, few = [], 0
    for i, (name, text) in enumerate(names.items()):
        if name not in entry["empirical"]:
            continue
        bins = entry["empirical"][name]
        stated, share, count = (np.array(bins[k]) for k in ("posterior", "share", "count"))
        enough = count >= _FEWEST
        axes.plot(
            stated[enough], share[enough], color=draw.colour(i + 2), marker=draw.marker(i),
            markersize=4, linestyle=draw.line(i), linewidth=1, label=text,
        )  # fmt: skip
        mean = float(np.average(np.abs(stated - share), weights=count))
        off.append(f"{text} {percent(mean)}")
        few += int((~enough).sum())
    draw.legend(canvas)
    alt = f"Mean distance between stated posterior and true share of targets: {'; '.join(off)}"
    alt += f". {few} bins of fewer than {_FEWEST} trials have no point." if few else "."
    name = draw.slug("empirical", where["evaluator"], where["system"], where["split"])
    return Drawing(canvas, name, f"Empirical calibration, {_run(where)}", alt)


def _run(where: dict[str, str]) -> str:
    if where["system"] == "original":
        return f"unprotected speech, {where['split']}"
    return f"run 1 of {where['system']} on {where['split']}"


def actual(entry: Entry, prior: Entry) -> Drawing:
    """The profile of scores taken as LLR beside that of ideal calibration (002, Fig. 7)."""
    where = entry["where"]
    canvas, axes = draw.new(2.9, _run(where))
    lines: Profiles = [
        ("ideally calibrated scores", entry["ece"], 0),
        ("scores taken as LLR", entry["ece_actual"], 6),
    ]
    _profiles(axes, prior, lines, shade=False)
    draw.legend(canvas, 1)
    above = np.array(entry["ece_actual"]) > np.array(prior["prior"])
    ideal, own = (values[len(values) // 2] for values in (entry["ece"], entry["ece_actual"]))
    alt = (
        f"At even odds the scores of {_run(where)} cost {number(own, 3)} bit as they are "
        f"(Cllr) and {number(ideal, 3)} bit when ideally calibrated (min Cllr). "
    )
    alt += (
        f"At {percent(above.mean(), 0)} of the priors drawn the attacker would do better without "
        "them, as they lie above the black line."
        if above.any()
        else "At no prior do they mislead the attacker."
    )
    name = draw.slug("actual", where["evaluator"], where["split"])
    return Drawing(canvas, name, f"Actual and ideal profile, {_run(where)}", alt)


def histogram(results: Results, entry: Entry) -> Drawing | None:
    """Shares of target and nontarget scores by bin, and the local linkability on a second axis."""
    where, bins = entry["where"], entry["histogram"]
    if bins is None:
        return None
    system, split, who = where["system"], where["split"], attacker(where["attacker"])
    edges, d = np.array(bins["edges"]), np.array(bins["linkability"])
    every = [edge for e in results.entries("attacks", where["evaluator"]) if e["histogram"]
             for edge in e["histogram"]["edges"]]  # fmt: skip
    canvas, axes = draw.new(
        2.8, f"{system}, {who}, {split}", "score of the attacker (one scale for an evaluator)",
        "share of trials (%)",
    )  # fmt: skip
    for index, side, text in ((5, "non_mated", "different speakers"), (1, "mated", "same speaker")):
        share, colour = 100 * np.array(bins[side]), draw.colour(index)
        axes.stairs(share, edges, fill=True, alpha=0.35, color=colour, label=text)
        axes.stairs(share, edges, color=colour, linewidth=1)
    right = axes.twinx()
    right.stairs(d, edges, color=draw.INK, linewidth=1.3, label="local linkability D↔")
    right.set(ylim=(0, 1.04), ylabel="D↔ (1: links for sure)")
    right.spines.right.set_visible(True)
    axes.set_xlim(min(every), max(every))
    draw.legend(canvas)
    of = (where["evaluator"], split, system, where["attacker"])
    d_sys = (results.value(*of, "linkability") or NOTHING).value
    sure = float(np.sum(np.array(bins["mated"])[d > 0.9]))
    alt = (
        f"Scores of the {who} attacker on {system} speech, {split}: linkability D_sys "
        f"{number(d_sys, 3)}; {percent(sure)} of same-speaker trials fall where a score links for "
        f"almost sure (D↔ above 0.9)."
    )
    alt += " Linkability is not defined here." if math.isnan(d_sys) else ""
    name = draw.slug("scores", where["evaluator"], system, where["attacker"], split)
    title = f"Scores and local linkability, {system}, {who} attacker, {split}"
    return Drawing(canvas, name, title, alt)


# Identity search.


def cmc(results: Results, evaluator: str, split: str) -> Drawing | None:
    """Share of protected segments whose speaker is among the k nearest originals, by k."""
    systems, said = results.systems(), []
    found = [e for e in results.entries("searches", evaluator) if e["where"]["split"] == split]
    if not found:
        return None
    canvas, axes = draw.new(3.0, split, "rank k", "own speaker within rank k (%)", grid="both")
    for entry in found:
        system = entry["where"]["system"]
        i = systems.index(system) if system in systems else 0
        ranks = np.arange(1, len(entry["cmc"]) + 1)
        axes.plot(ranks, 100 * np.array(entry["cmc"]), color=draw.colour(i),
                  linestyle=draw.line(i), label=draw.label(system))  # fmt: skip
        said.append(f"{system} {percent(entry['cmc'][0])}")
    for key, text, style in (
        ("chance_clustered", "chance, clusters kept", ":"),
        ("chance", "chance, labels mixed", "--"),
    ):
        mean = 100 * np.array([e[key] for e in found]).mean(axis=0)
        axes.plot(ranks, mean, color=draw.SOFT, linestyle=style, lw=1, label=text)
    axes.set(xscale="log", ylim=(0, 102))
    ticks = [k for k in (1, 2, 5, 10, 20, 50) if k <= len(found[0]["cmc"])]
    axes.set_xticks(ticks, [str(k) for k in ticks])
    axes.minorticks_off()
    draw.legend(canvas)
    alt = (
        f"On {split} the nearest original segment is the speaker's own for {'; '.join(said)} "
        f"of protected segments; chance is {percent(found[0]['chance_clustered'][0])}."
    )
    title = f"Finding protected speakers among the originals, {split}"
    return Drawing(canvas, draw.slug("cmc", evaluator, split), title, alt)


# Radars of linkability.

_MANY = 20  # up to so many speakers their names stand around the radar
_NARROW = 17  # letters over one of three radars side by side
_FEW = 5  # up to so many systems share one radar; more get one each
_SHOWN = 12  # speakers with a radar over targets
POOLED = "linkability"  # of a speaker: D↔ from the densities of all trials, mean over their own
ALONE = re.compile(r"linkability_bins_(\d+)")  # D_sys of their trials alone
Rings = dict[str, dict[str, float]]


def _by_speaker(
    results: Results, evaluator: str, split: str, system: str, attack: str, metric: str = POOLED
) -> dict[str, float]:
    of = {"evaluator": evaluator, "split": split, "system": system, "attacker": attack}
    own = where(results.speakers, metric=metric, **of)
    return {row.speaker: row.value for row in own.itertuples() if not math.isnan(row.value)}


def _measured(
    results: Results, evaluator: str, split: str, systems: Sequence[str], metric: str = POOLED
) -> tuple[str, Rings]:
    """The best-informed attacker of those on most systems; linkability by system and speaker."""
    best: tuple[str, Rings] = "", {}
    known = set(where(results.speakers, evaluator=evaluator, split=split)["attacker"])
    for attack in (a for a in reversed(PROTECTED) if a in known):
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


def _ring(axes: PolarAxes, angle: Float64, r: Float64, index: int, **more: Any) -> None:
    """A closed line; index: number of the system, -1 for originals (dotted)."""
    axes.plot(
        np.append(angle, angle[:1]), np.append(r, r[:1]),
        color=draw.colour(index), linestyle=draw.line(index), **more,
    )  # fmt: skip


def radar(results: Results, evaluator: str, split: str) -> Drawing | None:
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
    return Drawing(canvas, draw.slug("radar", evaluator, split), title, alt)


def _together(
    results: Results, before: dict[str, float], own: Rings, names: list[str], title: str
) -> Canvas:
    canvas, axes = draw.new(3.7, title, polar=True)
    assert isinstance(axes, PolarAxes)
    angle = _axes(axes, len(names), names if len(names) <= _MANY else ())
    _ring(axes, angle, _values(before, names), -1, label="unprotected")
    for system, values in own.items():
        look = {"marker": ".", "markersize": 4, "label": draw.label(system)}
        _ring(axes, angle, _values(values, names), results.systems().index(system), **look)
    draw.legend(canvas, 2)
    return canvas


def _apart(
    results: Results, before: dict[str, float], own: Rings, names: list[str], title: str
) -> Canvas:
    """A small radar a system; speakers clockwise from the top by name."""
    canvas, grid = draw.polars(len(own), title)
    for axes, (system, values) in zip(grid, own.items(), strict=True):
        angle = _axes(axes, len(names))
        _ring(axes, angle, _values(before, names), -1, linewidth=1)
        i, r = results.systems().index(system), _values(values, names)
        axes.fill(angle, r, color=draw.colour(i), alpha=0.15, linewidth=0)
        _ring(axes, angle, r, i, linewidth=1.1)
        axes.set_title(draw.label(system, _NARROW), fontsize=draw.SMALL)
    return canvas


def _finding(before: dict[str, float], own: Rings, start: str) -> str:
    sentences = []
    for system, values in own.items():
        defined = {name: v for name, v in values.items() if math.isfinite(v)}
        if not defined:
            continue
        worst, best = max(defined, key=lambda n: defined[n]), min(defined, key=lambda n: defined[n])
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
        start += ", the most linkable speaker (speakers stand clockwise by name) of "
        return f"{start}{'; '.join(sentences)}."
    return f"{start}: {'; '.join(sentences)}."


def definitions(results: Results) -> list[str]:
    """The definitions of a speaker's linkability that were measured (docs/metrics)."""
    measured = set(results.speakers["metric"])
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
    results: Results, evaluator: str, split: str, series: str, metric: str = POOLED
) -> Drawing | None:
    """A radar a speaker over constant targets (001, Fig. 3); the worst and the best protected.

    series: of results.target_series; metric: of `definitions`.
    """
    attack, voices, speakers, table, before = _table(results, evaluator, split, series, metric)
    if len(voices) < 3 or not speakers:
        return None
    half, n = _SHOWN // 2, len(speakers)
    shown = list(range(n)) if n <= _SHOWN else [*range(half), *range(n - half, n)]
    canvas, grid = draw.polars(len(shown), f"{split}, {attacker(attack)} attacker")
    for axes, i in zip(grid, shown, strict=True):
        angle = _axes(axes, len(voices))
        _ring(axes, angle, np.full(len(voices), before[i]), -1, linewidth=1.2)
        _ring(axes, angle, table[i], 0, linewidth=1.1)
        axes.set_title(draw.label(speakers[i], _NARROW), fontsize=draw.SMALL)
    mean = table.mean(axis=1)
    alt = (
        f"On {split}, {attacker(attack)} attacker, each axis is one of {len(voices)} constant "
        f"targets ({voices[0]} to {voices[-1]}, clockwise), the dotted circle the "
        f"speaker's original speech. {speakers[0]} stays most linkable over all targets (mean "
        f"{number(float(mean[0]))}), {speakers[-1]} least ({number(float(mean[-1]))})."
    )
    if n > len(shown):
        alt += f" Of {n} speakers the {half} worst and the {half} best protected are shown."
    title = f"Linkability by target voice, {series}, {split} ({_defined(metric)})"
    return Drawing(canvas, draw.slug("targets", evaluator, split, series, metric), title, alt)


def target_groups(
    results: Results, evaluator: str, split: str, series: str, metric: str = POOLED
) -> Drawing | None:
    """Means and standard deviations over badly and well protected speakers (001, Fig. 4)."""
    attack, voices, speakers, table, before = _table(results, evaluator, split, series, metric)
    if len(voices) < 3 or len(speakers) < 4:
        return None
    cut = (len(speakers) + 1) // 2  # 15 and 14 of 29, as in 001
    halves = {f"{cut} badly protected": slice(0, cut),
              f"{len(speakers) - cut} well protected": slice(cut, None)}  # fmt: skip
    canvas, grid = draw.polars(2, f"{split}, {attacker(attack)} attacker", columns=2)
    said = []
    for k, (axes, (what, own)) in enumerate(zip(grid, halves.items(), strict=True)):
        angle = _axes(axes, len(voices))
        original = np.repeat(before[own, None], len(voices), axis=1)
        for values, index in ((original, -1), (table[own], k)):
            mean, std = values.mean(axis=0), values.std(axis=0)
            round_, low, high = (np.append(v, v[:1]) for v in (angle, mean - std, mean + std))
            axes.fill_between(round_, low, high, color=draw.colour(index), alpha=0.2, linewidth=0)
            _ring(axes, angle, mean, index, linewidth=1.2)
        axes.set_title(what, fontsize=7)
        said.append(f"{what}: {number(float(table[own].mean()))} "
                    f"(original speech {number(float(before[own].mean()))})")  # fmt: skip
    alt = (
        f"Mean linkability over {len(voices)} targets on {split}, {attacker(attack)} attacker. "
        f"{'; '.join(said)}. Bands: one standard deviation over speakers; dotted: original speech."
    )
    title = f"The same for badly and well protected speakers, {series}, {split}"
    name = draw.slug("target_groups", evaluator, split, series, metric)
    return Drawing(canvas, name, f"{title} ({_defined(metric)})", alt)
