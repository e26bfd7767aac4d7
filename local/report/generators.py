# SPDX-License-Identifier: Apache-2.0
"""Generators of pseudo-speakers beside each other: figures, tables, the curves of 004, Fig. 11."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from local.report import draw
from local.report.published import published
from local.report.results import read_table, tabulate
from local.report.words import Marked, attacker, markdown_table, number
from utils.cli import UserError
from utils.jsonfiles import read_json_object
from utils.tables import atomic_write

REAL = "real"  # the speakers of the pool, to compare with
NOT_RUN = "not run"
HERE, PAPER = "here", "004"
AUTHORS = "Liu et al. 2025"  # of that paper, IDMap
CAPACITY = {"mean": "mean_cosine", "min": "min_cosine", "max": "max_cosine", "pairs": "pairs"}
ABOVE = "share_above_threshold"
EER_OF = "eer_"  # and the attacker's name: a figure
CAPACITY_OF_004 = 2_000_000  # vectors: the last of 004, Fig. 11


@dataclass(frozen=True)
class Row:
    """One figure of a generator. of: here or 004. indices, n: of a capacity. Values are cosines,
    shares, seconds, dB and fractions.
    """

    generator: str
    figure: str
    value: float
    of: str = HERE
    indices: str = ""
    n: int = 0
    evaluator: str = ""
    split: str = ""


@dataclass(frozen=True)
class Threshold:
    """Of the encoder's cosines on original trials: the score at the EER, the EER, trials."""

    threshold: float
    eer: float
    n_target: int
    n_nontarget: int


def read_threshold(path: Path) -> Threshold:
    """The file of local/find_threshold.py."""
    values = read_json_object(path, "make it again")
    try:
        return Threshold(**{field.name: values[field.name] for field in fields(Threshold)})  # type: ignore[arg-type]
    except KeyError as error:
        raise UserError(f"{path}: {error} is missing; run local/find_threshold.py") from error


def capacity_rows(generator: str, path: Path) -> list[Row]:
    """The table of steps/measure_capacity.py as rows."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}; run stage 2") from error
    names = lines[0].lstrip("#").split("\t") if lines else []
    if names[:3] != ["indices", "n", "mean"] or names[-1] != "above_threshold":
        raise UserError(f"{path}:1: not a table of steps/measure_capacity.py; run stage 2")
    rows = []
    for place, line in enumerate(lines[1:], 2):
        cells = dict(zip(names, line.split("\t"), strict=False))
        try:
            where = {"indices": cells["indices"], "n": int(cells["n"])}
            found = {figure: float(cells[name]) for name, figure in CAPACITY.items()}
            if cells["above_threshold"]:
                found[ABOVE] = float(cells["above_threshold"])
        except (KeyError, ValueError) as error:
            raise UserError(f"{path}:{place}: a value is missing or no number") from error
        rows += [Row(generator, figure, value, **where) for figure, value in found.items()]  # type: ignore[arg-type]
    return rows


def time_rows(generator: str, path: Path) -> list[Row]:
    """The file of steps/time_generator.py as rows."""
    values = read_json_object(path, "make it again")
    rows = []
    for name in ("cpu_seconds", "rtf"):
        if not isinstance(value := values.get(name), float):
            raise UserError(f"{path}: `{name}` is missing; run stage 3")
        rows.append(Row(generator, name, value, n=int(str(values.get("vectors", 0)))))
    return rows


def speech_rows(folders: Iterable[Path], corpus: str) -> list[Row]:
    """DeID (a fraction), G_VD (dB) and the EER of each attacker (a fraction, `eer_<attacker>`) of
    folders of figures, where they are defined."""
    rows = []
    for folder in folders:
        for found in tabulate(folder, corpus)[0]:
            name = f"{EER_OF}{found.attacker}" if found.metric == "eer" else found.metric
            if found.metric in ("deid", "g_vd", "eer") and found.value:
                where = {"evaluator": found.evaluator, "split": found.split}
                rows.append(Row(found.system, name, float(found.value), **where))  # type: ignore[arg-type]
    return rows


def published_rows(generators: Iterable[str]) -> list[Row]:
    """What 004 has of these generators: Table II (speaker level), Table III, Fig. 11."""
    tables = {"II": 0, "III": 0, "Fig. 11": CAPACITY_OF_004}
    return [
        Row(name, f.metric, f.number, PAPER, n=tables[f.table])
        for name in generators
        for f in published("004")
        if f.ours == name and f.table in tables
    ]


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """A tidy table, one figure a line; n is empty where it means nothing."""
    names = [field.name for field in fields(Row)]
    with atomic_write(path) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(names)
        for row in rows:
            values = {**vars(row), "value": f"{row.value:.6g}", "n": row.n or ""}
            writer.writerow(values[name] for name in names)


def read_rows(path: Path) -> list[Row]:
    """A table that `write_rows` wrote; UserError where it is none."""
    try:
        found = list(read_table(path, Row))  # of words
        return [replace(row, value=float(row.value), n=int(row.n or 0)) for row in found]
    except ValueError as error:
        raise UserError(f"{path}: not a table of generators: {error}") from error


def similarity_table(generators: Sequence[str], rows: Sequence[Row]) -> str:
    """DeID and G_VD: a row for each generator, evaluator and split that was run (Table II)."""
    header = ["generator", "evaluator, split", "DeID (%)", AUTHORS, "G_VD (dB)", AUTHORS]
    lines = []
    for name in generators:
        published = {r.figure: r.value for r in rows if r.generator == name and r.of == PAPER}
        deid = number(100 * published["deid"]) if "deid" in published else ""
        g_vd = number(published["g_vd"], 3) if "g_vd" in published else ""
        own = [
            r for r in rows if (r.generator, r.of) == (name, HERE) and r.figure in ("deid", "g_vd")
        ]
        wheres = sorted({(r.evaluator, r.split) for r in own}) or [("", "")]
        for evaluator, split in wheres:
            found = {r.figure: r.value for r in own if (r.evaluator, r.split) == (evaluator, split)}
            cells = [
                f"{evaluator}, {split}" if split else "",
                number(100 * found["deid"]) if "deid" in found else NOT_RUN,
                deid,
                number(found["g_vd"], 3) if "g_vd" in found else NOT_RUN,
                g_vd,
            ]
            lines.append([name, *cells])
    return markdown_table(header, lines)


def attack_table(rows: Sequence[Row]) -> str:
    """EER of each attacker on the trials of both genders together: a row each."""
    lines = [
        [row.generator, attacker(row.figure.removeprefix(EER_OF)), f"{row.evaluator}, {row.split}",
         number(100 * row.value)]
        for row in rows
        if row.figure.startswith(EER_OF)
    ]  # fmt: skip
    return markdown_table(["generator", "attacker", "evaluator, split", "EER (%)"], lines)


def time_table(generators: Sequence[str], rows: Sequence[Row]) -> str:
    """CPU time of a vector and real-time factor (Table III)."""
    lines = []
    for name in generators:
        found = {(r.figure, r.of): r.value for r in rows if r.generator == name}
        milliseconds = 1000 * found["cpu_seconds", HERE]
        published = f"{found['rtf', PAPER]:.3g}" if ("rtf", PAPER) in found else ""
        lines.append([name, f"{milliseconds:.3g}", f"{found['rtf', HERE]:.3g}", published])
    return markdown_table(["generator", "ms a vector", "real-time factor", AUTHORS], lines)


def capacity_table(generators: Sequence[str], rows: Sequence[Row]) -> str:
    """Cosines between pseudo-speakers by their number, and the share above the threshold."""
    header = ["generator", "indices", "n", "mean", "smallest", "largest", "pairs"]
    lines = []
    for name in (REAL, *generators):
        own = [r for r in rows if r.generator == name and r.figure in {*CAPACITY.values(), ABOVE}]
        for of, indices, n in dict.fromkeys((r.of, r.indices, r.n) for r in own):
            found = {r.figure: r.value for r in own if (r.of, r.indices, r.n) == (of, indices, n)}
            cells = [number(found[f"{what}_cosine"], 3) for what in ("mean", "min", "max")]
            cells.append(f"{found['pairs']:,.0f}" if "pairs" in found else "")
            cells.append(f"{100 * found[ABOVE]:.3g} %" if ABOVE in found else "")
            word = Marked(f"*{AUTHORS}*") if of == PAPER else indices
            lines.append([name, word, f"{n:,}", *cells])
    return markdown_table([*header, "above threshold"], lines)


NOTES = """\
Cosines are of raw vectors, not centred. `keys`: as a system makes them, for made-up keys, with the
utterances of the evaluation sets as sources in turn; where nothing is drawn there are as many as
sources. `unseen`: indices that no training speaker has, as the network makes them (Liu et al.
2025); `calibrated`: the same as systems use them; `seen`: those of the training speakers;
`mixed`: from index 0 on, seen ones first; of `wgan` without its second draws. `real`: the speakers
of the pool (means). The mean is of all pairs; smallest, largest and the share are of as many pairs
as the table says. Of a pair above the threshold the encoder would say: one speaker; the threshold
was found with means of some utterances against one utterance. Time is CPU time of one thread, one
vector at a time, over the mean duration of an utterance. Figures of Liu et al. 2025 are of other
corpora, encoders, dimensions and machines, DeID and G_VD of another synthesis and evaluator:
compare the order of the generators, not values.
"""


def render(
    corpus: str,
    encoder: str,
    threshold: Threshold,
    generators: Sequence[str],
    rows: Sequence[Row],
    origin: Mapping[str, str],
) -> str:
    """RESULTS.md."""
    eer = number(100 * threshold.eer, 1)
    trials = f"{threshold.n_target} target and {threshold.n_nontarget} nontarget trials"
    attacks = ["## Attackers, both genders", attack_table(rows)]
    if not any(row.figure.startswith(EER_OF) for row in rows):
        attacks = []
    parts = [
        f"# Generators of pseudo-speakers: {corpus}, x-vectors of {encoder}",
        f"Threshold: cosine {number(threshold.threshold, 3)}, where the encoder makes equally many "
        f"errors of both kinds on original speech (EER {eer} %; {trials}).\n\n{NOTES.strip()}",
        f"## Capacity ({AUTHORS}, Fig. 11): capacity.pdf, capacity.svg",
        capacity_table(generators, rows),
        f"## Voices ({AUTHORS}, Table II)",
        similarity_table(generators, rows),
        *attacks,
        f"## Time ({AUTHORS}, Table III)",
        time_table(generators, rows),
        "## Origin\n\n" + "\n".join(f"- {name}: {value}" for name, value in origin.items()),
    ]
    return "\n\n".join(parts) + "\n"


def draw_capacity(
    generators: Sequence[str], rows: Sequence[Row], threshold: float, folder: Path
) -> None:
    """capacity.pdf and capacity.svg: largest, mean and smallest cosine against the number."""
    draw.use_style()
    canvas = Canvas(figsize=(5.0, 6.6), layout="constrained", facecolor="white")
    panels = canvas.subplots(3, 1, sharex=True, height_ratios=(1, 1.4, 1))
    for axes, what in zip(panels, ("max", "mean", "min"), strict=True):
        _draw_panel(axes, f"{what}_cosine", generators, rows)
        if what != "min":
            axes.axhline(threshold, color=draw.SOFT, linewidth=0.8, linestyle=":")
        axes.grid(visible=True)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.xaxis.set_minor_formatter("")
    panels[0].set_ylabel("largest cosine")
    panels[1].set_ylabel("mean cosine")
    panels[2].set_ylabel("smallest cosine")
    panels[2].set_xlabel("pseudo-speakers (dotted line: cosine at the encoder's EER)")
    handles, labels = panels[1].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=3)
    draw.save(canvas, folder / "capacity")


LINES = {"keys": "-", "calibrated": "-", "unseen": "--", "mixed": ":", "seen": ""}


def _draw_panel(axes: Axes, figure: str, generators: Sequence[str], rows: Sequence[Row]) -> None:
    own = [r for r in rows if r.figure == figure and r.of == HERE]
    for row in own:
        if row.generator == REAL:
            star = {"color": draw.INK, "markersize": 9}
            axes.plot([row.n], [row.value], "*", label="real speakers", **star)  # type: ignore[arg-type]
    for place, name in enumerate(generators):
        colour, marker = draw.colour(place), draw.marker(place)
        for indices, line in LINES.items():
            points = [r for r in own if (r.generator, r.indices) == (name, indices)]
            if points:
                axes.plot(
                    [r.n for r in points],
                    [r.value for r in points],
                    linestyle=line,
                    color=colour,
                    marker=marker,
                    markersize=4,
                    markerfacecolor=colour if line == "-" else "none",
                    label=name if line == "-" else f"{name}, {indices}",
                )
