# SPDX-License-Identifier: Apache-2.0
"""EER and D_ECE against the number of speakers: table, rows, curve (004, Fig. 9)."""

import csv
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Canvas

from local.report import draw
from local.report.published import of_table
from local.report.words import markdown_table, number
from steps.large.populations import Row, columns, read_table
from utils.tables import atomic_write

REAL, ORIGINAL = "real", "original"


@dataclass(frozen=True)
class Point(Row):
    """One population (or, of real x-vectors, one subset of the speakers). Rates are fractions.

    _least, _most: bounds of the exact EER; _low, _high: 95 % interval over groups of its speakers.
    """

    n_enrol: int
    n_trial: int
    n_target: int
    n_nontarget: int
    eer: float
    eer_least: float
    eer_most: float
    d_ece: float
    eer_low: float
    eer_high: float
    d_ece_low: float
    d_ece_high: float
    system: str = ""

    @classmethod
    def of(cls, row: Row, made: Mapping[str, Any]) -> "Point":
        """The figures of a population: made by `metrics.large.report`."""
        counts = (made[name] for name in ("n_enrol", "n_trial", "n_target", "n_nontarget"))
        rates = (made["eer"], *made["bounds"]["eer"], made["d_ece"])
        ends = (made["intervals"][name] or (math.nan,) * 2 for name in ("eer", "d_ece"))
        return cls(*astuple(row), *counts, *rates, *itertools.chain(*ends))

    @property
    def simulated(self) -> bool:
        """Whether the speakers are."""
        return self.system != REAL


def read_points(system: str, path: Path) -> list[Point]:
    """The curve of a system."""
    return [replace(point, system=system) for point in read_table(path, Point)]


def by_size(points: Sequence[Point], system: str, voices: str) -> dict[int, list[Point]]:
    """Points of a curve by number of speakers, ascending."""
    found: dict[int, list[Point]] = {}
    for point in sorted(points, key=lambda p: p.speakers):
        if (point.system, point.voices) == (system, voices):
            found.setdefault(point.speakers, []).append(point)
    return found


def curves(points: Sequence[Point]) -> list[tuple[str, str]]:
    """System and voices of each curve, in order of appearance."""
    return list(dict.fromkeys((p.system, p.voices) for p in points))


def table(points: Sequence[Point]) -> str:
    """A row for each system, voices and number of speakers."""
    header = ["system", "speakers are", "voices", "speakers", "populations", "trials of one"]
    for figure in ("EER (%)", "D_ECE (bit)"):
        header += [f"{figure}: mean", "lowest to highest", "95 % of the first"]
    lines = []
    for system, voices in curves(points):
        for size, group in by_size(points, system, voices).items():
            eer, d_ece = (np.array([getattr(p, name) for p in group]) for name in ("eer", "d_ece"))
            trials = group[0].n_target + group[0].n_nontarget
            first = group[0]
            kind = "simulated" if first.simulated else "real"
            lines.append(
                [
                    *(system, kind, voices, f"{size:,}", str(len(group)), f"{trials:,}"),
                    number(100 * eer.mean(), 2),
                    f"{number(100 * eer.min(), 2)} to {number(100 * eer.max(), 2)}",
                    f"{number(100 * first.eer_low, 2)} to {number(100 * first.eer_high, 2)}",
                    number(d_ece.mean(), 4),
                    f"{number(d_ece.min(), 4)} to {number(d_ece.max(), 4)}",
                    f"{number(first.d_ece_low, 4)} to {number(first.d_ece_high, 4)}",
                ]
            )
    return markdown_table(header, lines)


def falls(points: Sequence[Point]) -> str:
    """Relative fall of the mean EER from the smallest to the largest number, beside 004's."""
    lines = []
    printed = {f.ours: f.value for f in of_table("004", "Fig. 9")}
    for system, voices in curves(points):
        sizes = by_size(points, system, voices)
        first, last = min(sizes), max(sizes)
        if system == REAL or first == last:
            continue
        ends = [float(np.mean([p.eer for p in sizes[size]])) for size in (first, last)]
        fall = number(100 * (1 - ends[1] / ends[0]), 1) if ends[0] else "undefined (EER 0)"
        theirs = printed.get(system.removesuffix("_utt"), "")
        lines.append([system, voices, f"{first:,}, {last:,}", fall, theirs])
    header = ["system", "voices", "from, to speakers", "EER falls by (%)", "Liu et al. 2025"]
    return markdown_table(header, lines)


NOTES = """\
**All speakers but those of `real` are simulated**; no figure here is a measurement on the speech of
that many people. Original x-vectors are drawn from a normal distribution whose covariances between
and within speakers were fitted to the real ones. Protected x-vectors are a pseudo-speaker's vector
plus a residual within speakers, as original speech has it, and nothing of the source speaker beyond
what `--leak` adds. Every enrolment utterance is compared with every trial utterance, original with
original, protected with protected; the attacker is ignorant: trained on original speech only.

- `two`: a person has one pseudo-speaker in enrolment and another in trials, as in the tests of
  the VoicePrivacy Challenges. An EER of 50 % says that the generator leaves nothing of the source;
  one below, that the choice itself betrays them. Pairs of both genders are trials, so a system that
  keeps the gender (`gender: same`) stays below 50 % for that alone.
- `same`: one pseudo-speaker in both. This is no protection but a test of uniqueness: the EER says
  how well people are told apart by their pseudo-speakers; **here lower means more unique**.
  Where nothing is drawn (`average`) the source's x-vector of each side decides, so both are one.
- `each`: every utterance has a pseudo-speaker of its own (`level: utt`, as Liu et al. 2025
  anonymise).

Where `original` lies below `real`, simulated speech is easier than real speech, as
is to be expected of a normal distribution, alike for all speakers, without sessions or
outliers. Then believe
comparisons within the model only, not levels.

What this cannot tell: simulated speakers are independent and alike in distribution, so the expected
EER does not depend on their number, and a fall as in Liu et al. 2025, which comes from other
corpora and from what synthesis leaves, cannot come out; only the scatter shrinks. A population
fitted to few speakers varies in few directions. It says nothing of attackers who train on protected
speech.

Lowest to highest is over populations, no confidence interval. "95 % of the first" is the interval
of the first population alone, by a bootstrap over its speakers, in 32 groups where there are more.
EERs are from histograms; large.csv has the bounds and the interval of each.
"""


def render(
    corpus: str, encoder: str, scorer: str, leak: float, points: Sequence[Point],
    origin: Mapping[str, str],
) -> str:  # fmt: skip
    """RESULTS.md."""
    fits = sorted({(p.fit_speakers, p.fit_rank) for p in points if p.simulated})
    fitted = "; ".join(f"{n} real speakers, rank between speakers {rank}" for n, rank in fits)
    parts = [
        f"# Number of speakers, simulated: {corpus}, x-vectors of {encoder}, scored by {scorer}",
        f"Fitted to {fitted or 'nothing'}. Leak: {leak:g}.\n\n{NOTES.strip()}",
        "## EER and D_ECE against the number of speakers (Liu et al. 2025, Fig. 9): large.pdf, "
        "large.svg",
        table(points),
        "## Smallest against largest number\n\nThose of Liu et al. 2025 are of other corpora (MLS "
        "and Common Voice), real speech, and an attacker who trains on protected speech.",
        falls(points),
        "## Origin\n\n" + "\n".join(f"- {name}: {value}" for name, value in origin.items()),
    ]
    return "\n\n".join(parts) + "\n"


def write_rows(path: Path, points: Sequence[Point]) -> None:
    """One population a line, with `simulated`."""
    names = ["system", *columns(Point)]
    with atomic_write(path) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["simulated", *names])
        for point in points:
            simulated = str(point.simulated).lower()
            writer.writerow([simulated, *(getattr(point, name) for name in names)])


def draw_curves(points: Sequence[Point], folder: Path) -> None:
    """large.pdf and large.svg: mean over populations, bars from the lowest to the highest."""
    draw.use_style()
    canvas = Canvas(figsize=(5.0, 6.2), layout="constrained", facecolor="white")
    panels = canvas.subplots(2, 1, sharex=True)
    for axes, name, scale in zip(panels, ("eer", "d_ece"), (100.0, 1.0), strict=True):
        for place, (system, voices) in enumerate(curves(points)):
            sizes = by_size(points, system, voices)
            values = [np.array([getattr(p, name) for p in ps]) * scale for ps in sizes.values()]
            mean = np.array([v.mean() for v in values])
            ends = np.array([[m - v.min(), v.max() - m] for m, v in zip(mean, values, strict=True)])
            label = system if voices == "-" else f"{system}, {voices}"
            axes.errorbar(
                list(sizes), mean, np.maximum(ends, 0.0).T, label=label, color=draw.colour(place),
                marker=draw.marker(place), markersize=4, capsize=2, linewidth=1,
                linestyle="none" if system == REAL else ":" if voices == "same" else "-",
            )  # fmt: skip
        axes.set_xscale("log")
        axes.grid(visible=True)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.xaxis.set_minor_formatter("")
    panels[0].set_title("simulated speakers, all but those of 'real'")
    panels[0].set_ylabel("EER (%)")
    panels[1].set_ylabel("D_ECE (bit)")
    panels[1].set_xlabel("speakers (bars: lowest to highest of the populations)")
    handles, labels = panels[0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=3)
    draw.save(canvas, folder / "large")
