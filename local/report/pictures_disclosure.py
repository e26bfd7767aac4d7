# SPDX-License-Identifier: Apache-2.0
"""What scores disclose: ECE profiles (002, Fig. 7, 8, 10), empirical calibration (002, Fig. 4), and
score histograms with the local linkability (001, section 3.2)."""

import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from local.report import draw
from local.report.draw import Picture
from local.report.load import NOTHING, Results
from local.report.words import attacker, number, percent

Entry = dict[str, Any]
Profiles = list[tuple[str, list[float], int]]  # legend, ECE, number of the colour (-1: originals)


def ece(
    results: Results, evaluator: str, split: str, attack: str, folder: Path | None
) -> Picture | None:
    """Oracle-calibrated profiles of one attack on all systems; D_ECE, l_w and tag in the legend."""
    systems = results.systems()
    lines: Profiles = []
    sentences = []
    for entry in results.entries("attacks", evaluator):
        where = entry["where"]
        system = where["system"]
        if where["split"] != split or where["attacker"] not in (attack, "unprotected"):
            continue
        of = (evaluator, split, system, where["attacker"])
        d_ece, l_w = (results.value(*of, m) or NOTHING for m in ("d_ece", "l_w"))
        tag = results.text(*of, "tag")
        name = "unprotected" if system == "original" else system
        figures = f"{number(d_ece.value, 3)}, {number(l_w.value)}, {tag}"
        index = systems.index(system) if system in systems else -1
        lines.append((f"{draw.label(name)}: ({figures})", entry["ece"], index))
        sentences.append(
            f"{name} {number(d_ece.value, 3)} bit (worst case "
            f"{number(l_w.value)} decades, tag {tag})"
        )
    if not any(index >= 0 for _, _, index in lines):
        return None
    canvas, axes = draw.new(3.2)
    _profiles(axes, results.pictures["prior"], lines, shade=True)
    draw.legend(canvas, 1, title="(D_ECE in bit, l_w in decades, tag)", title_fontsize=7)
    axes.set_title(f"{attacker(attack)} attacker, {split}", loc="left")
    alt = (
        f"Expected disclosure (D_ECE, the shaded gap to the black prior profile) to the "
        f"{attacker(attack)} attacker on {split}: {'; '.join(sentences)}. No evidence is 0, all is "
        f"0.721 bit."
    )
    title = f"ECE profiles, {attacker(attack)} attacker, {split}"
    return draw.finish(canvas, draw.slug("ece", evaluator, attack, split), title, alt, folder)


def _profiles(axes: Axes, prior: Entry, lines: Profiles, *, shade: bool) -> None:
    x, nothing = np.array(prior["log_odds"]), np.array(prior["prior"])
    axes.plot(x, nothing, color=draw.INK, linewidth=1.2, label="prior: perfect privacy")
    middle = len(x) // 2
    for name, values, index in lines:
        y = np.array(values, np.float64)
        colour = draw.colour(index) if index >= 0 else draw.SOFT
        style = draw.line(index) if index >= 0 else ":"
        axes.plot(x, y, color=colour, linestyle=style, label=name)
        axes.plot(
            x[middle], y[middle], marker=draw.marker(max(index, 0)), color=colour, ms=4,
            markerfacecolor=draw.face(index) if index >= 0 else colour,
        )  # fmt: skip
        if shade and index >= 0:
            axes.fill_between(
                x, y, nothing, color=colour, alpha=min(0.13, 0.4 / len(lines)), linewidth=0
            )
    axes.set_xlim(x[0], x[-1])
    axes.set_ylim(0, 1.05 if shade else 1.5)
    axes.set_xlabel("log-odds of the prior, logit π (dot: π = 1/2)")
    axes.set_ylabel("ECE (bit)")
    axes.grid(True)


def distortion(results: Results, entry: Entry, folder: Path | None) -> Picture:
    """Profiles of two runs of a random system, and of calibrations learnt on one and used on the
    other (002, Fig. 8)."""
    where = entry["where"]
    of = (where["evaluator"], where["split"], where["system"], "calibration")
    found = {
        name: results.value(*of, metric) or NOTHING
        for name, metric in (
            ("f0", "d_ece_f0"),
            ("f1", "d_ece_f1"),
            ("linear", "c_ece_linear"),
            ("isotonic", "c_ece_isotonic"),
        )
    }
    names = {
        "f0": "run 0, oracle: D_ECE",
        "f1": "run 1, oracle: D_ECE",
        "linear": "run 1, linear from run 0: C_ECE",
        "isotonic": "run 1, isotonic from run 0: C_ECE",
    }
    canvas, axes = draw.new(3.3)
    lines: Profiles = [
        (f"{text} {number(found[name].value, 3)}", entry["ece"][name], i)
        for i, (name, text) in enumerate(names.items())
    ]
    _profiles(axes, results.pictures["prior"], lines, shade=False)
    draw.legend(canvas, 1)
    axes.set_title(f"{where['system']} on {where['split']}", loc="left")
    useful = [n for n in ("linear", "isotonic") if found[n].value > 0]
    alt = (
        f"Run 1 of {where['system']} on {where['split']} discloses "
        f"{number(found['f1'].value, 3)} bit to an attacker with oracle calibration. What was "
        f"learnt on run 0 gives {number(found['linear'].value, 3)} bit (linear) and "
        f"{number(found['isotonic'].value, 3)} bit (isotonic): "
        + ("the attacker gains from it." if useful else "it is of no use to the attacker.")
    )
    title = f"Calibration learnt on another run, {where['system']} on {where['split']}"
    return draw.finish(canvas, draw.slug("calibration", *of[:3]), title, alt, folder)


_FEWEST = 10  # trials in a bin, below which its share of targets is chance


def empirical(entry: Entry, folder: Path | None) -> Picture:
    """Share of targets against the stated posterior, in ten bins (002, Fig. 4); no point for a bin
    of few trials."""
    where = entry["where"]
    names = {
        "linear": "linear from run 0",
        "isotonic": "isotonic from run 0",
        "uncalibrated": "scores taken as LLR",
    }
    canvas, axes = draw.new(2.8)
    axes.plot([0, 1], [0, 1], color=draw.INK, linewidth=1, linestyle=":", label="well calibrated")
    off, few = {}, 0
    for i, (name, text) in enumerate(names.items()):
        if name not in entry["empirical"]:
            continue
        found = entry["empirical"][name]
        stated, share, count = (np.array(found[k]) for k in ("posterior", "share", "count"))
        enough = count >= _FEWEST
        axes.plot(
            stated[enough], share[enough], color=draw.colour(i + 2), marker=draw.marker(i),
            markersize=4, linestyle=draw.line(i), linewidth=1, label=text,
        )  # fmt: skip
        off[text] = float(np.average(np.abs(stated - share), weights=count))
        few += int((~enough).sum())
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xlabel("posterior that the attacker states")
    axes.set_ylabel("share of target trials")
    axes.grid(True)
    draw.legend(canvas)
    axes.set_title(_subject(where), loc="left")
    alt = "Mean distance between stated posterior and true share of targets: " + "; ".join(
        f"{text} {percent(value)}" for text, value in off.items()
    )
    if few:
        alt += f". {few} bins of fewer than {_FEWEST} trials have no point"
    title = f"Empirical calibration, {_subject(where)}"
    name = draw.slug("empirical", where["evaluator"], where["system"], where["split"])
    return draw.finish(canvas, name, title, alt + ".", folder)


def _subject(where: dict[str, str]) -> str:
    if where["system"] == "original":
        return f"unprotected speech, {where['split']}"
    return f"run 1 of {where['system']} on {where['split']}"


def actual(entry: Entry, prior: Entry, folder: Path | None) -> Picture:
    """The profile of scores taken as LLR beside that of ideal calibration (002, Fig. 7)."""
    where = entry["where"]
    canvas, axes = draw.new(2.9)
    lines: Profiles = [
        ("ideally calibrated scores", entry["ece"], 0),
        ("scores taken as LLR", entry["ece_actual"], 6),
    ]
    _profiles(axes, prior, lines, shade=False)
    draw.legend(canvas, 1)
    axes.set_title(_subject(where), loc="left")
    above = np.array(entry["ece_actual"]) > np.array(prior["prior"])
    ideal, own = (values[len(values) // 2] for values in (entry["ece"], entry["ece_actual"]))
    alt = (
        f"At even odds the scores of {_subject(where)} cost {number(own, 3)} bit as they are "
        f"(Cllr) and {number(ideal, 3)} bit when ideally calibrated (min Cllr). "
    )
    alt += (
        f"At {percent(above.mean(), 0)} of the priors drawn the attacker would do better without "
        "them, as they lie above the black line."
        if above.any()
        else "At no prior do they mislead the attacker."
    )
    name = draw.slug("actual", where["evaluator"], where["split"])
    title = f"Actual and ideal profile, {_subject(where)}"
    return draw.finish(canvas, name, title, alt, folder)


def _range(results: Results, evaluator: str) -> tuple[float, float]:
    """From the lowest to the highest score of all attacks of an evaluator."""
    edges = [
        edge
        for entry in results.entries("attacks", evaluator)
        if entry["histogram"]
        for edge in entry["histogram"]["edges"]
    ]
    return min(edges), max(edges)


def histogram(results: Results, entry: Entry, folder: Path | None) -> Picture | None:
    """Shares of target and nontarget scores by bin, and the local linkability on a second axis."""
    where, bins = entry["where"], entry["histogram"]
    if bins is None:
        return None
    edges, d = np.array(bins["edges"]), np.array(bins["linkability"])
    canvas, axes = draw.new(2.8)
    for index, side, text in ((5, "non_mated", "different speakers"), (1, "mated", "same speaker")):
        axes.stairs(
            100 * np.array(bins[side]), edges, fill=True, alpha=0.35, color=draw.colour(index),
            label=text,
        )  # fmt: skip
        axes.stairs(100 * np.array(bins[side]), edges, color=draw.colour(index), linewidth=1)
    right = axes.twinx()
    right.stairs(d, edges, color=draw.INK, linewidth=1.3, label="local linkability D↔")
    right.set_ylim(0, 1.04)
    right.spines.right.set_visible(True)
    right.set_ylabel("D↔ (1: links for sure)")
    axes.set_xlim(*_range(results, where["evaluator"]))
    axes.set_xlabel("score of the attacker (one scale for an evaluator)")
    axes.set_ylabel("share of trials (%)")
    draw.legend(canvas)
    system, attack, split = where["system"], where["attacker"], where["split"]
    axes.set_title(f"{system}, {attacker(attack)}, {split}", loc="left")
    of = (where["evaluator"], split, system, attack)
    d_sys = (results.value(*of, "linkability") or NOTHING).value
    sure = float(np.sum(np.array(bins["mated"])[d > 0.9]))
    alt = (
        f"Scores of the {attacker(attack)} attacker on {system} speech, {split}: linkability D_sys "
        f"{number(d_sys, 3)}; {percent(sure)} of same-speaker trials fall where a score links for "
        f"almost sure (D↔ above 0.9)."
    )
    if math.isnan(d_sys):
        alt += " Linkability is not defined here."
    title = f"Scores and local linkability, {system}, {attacker(attack)} attacker, {split}"
    return draw.finish(
        canvas, draw.slug("scores", *of[:1], system, attack, split), title, alt, folder
    )
