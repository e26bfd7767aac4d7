"""Generators of pseudo-speakers beside each other: figures, tables, the curves of 004, Fig. 11."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from pandas import DataFrame

from local.report import draw, frame
from local.report.frame import Measure, number, read_frame
from local.report.gather import labelled, tabulate
from local.report.papers import CITED, published
from local.report.study import Study, count_along, panels, pivot, save_panels
from local.report.tables import Table
from local.report.words import Marked, attacker, code, markdown_table
from utils.cli import UserError
from utils.tables import read_json_object

REAL = "real"  # the speakers of the pool, to compare with
NOT_RUN = "not run"
HERE, PAPER = "here", "004"
AUTHORS = CITED[PAPER]
CAPACITY = {"mean": "mean_cosine", "min": "min_cosine", "max": "max_cosine", "pairs": "pairs"}
ABOVE = "share_above_threshold"
EER_OF = "eer_"  # and the attacker's name: a figure
CAPACITY_OF_004 = "2000000"  # vectors: the last of 004, Fig. 11
# One figure of a generator. of: here or 004; indices, n: of a capacity (n is empty where it means
# nothing). Values are cosines, shares, seconds, dB and fractions.
COLUMNS = ("generator", "figure", "value", "of", "indices", "n", "evaluator", "split")
THRESHOLD = ("threshold", "eer", "n_target", "n_nontarget")
DEID, G_VD = frame.measure("deid", digits=2), frame.measure("g_vd", digits=3)


def read_threshold(path: Path) -> dict[str, Any]:
    """The file of local/find_threshold.py, of the encoder's cosines on original trials: the score
    at the EER, the EER, numbers of trials."""
    values = read_json_object(path, "make it again")
    if missing := [name for name in THRESHOLD if name not in values]:
        raise UserError(f"{path}: '{missing[0]}' is missing; run local/find_threshold.py")
    return values


def _rows(generator: str, figures: dict[str, float], **where: Any) -> list[dict[str, Any]]:
    said = dict.fromkeys(COLUMNS, "") | {"generator": generator, "of": HERE} | where
    return [{**said, "figure": figure, "value": value} for figure, value in figures.items()]


def capacity_rows(generator: str, path: Path) -> DataFrame:
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
            found = {figure: float(cells[name]) for name, figure in CAPACITY.items()}
            if cells["above_threshold"]:
                found[ABOVE] = float(cells["above_threshold"])
            rows += _rows(generator, found, indices=cells["indices"], n=str(int(cells["n"])))
        except (KeyError, ValueError) as error:
            raise UserError(f"{path}:{place}: a value is missing or no number") from error
    return DataFrame(rows, columns=COLUMNS)


def time_rows(generator: str, path: Path) -> DataFrame:
    """The file of steps/time_generator.py as rows."""
    values = read_json_object(path, "make it again")
    found = {name: values.get(name) for name in ("cpu_seconds", "rtf")}
    for name, value in found.items():
        if not isinstance(value, float):
            raise UserError(f"{path}: `{name}` is missing; run stage 3")
    n = str(values.get("vectors") or "")
    return DataFrame(_rows(generator, found, n=n), columns=COLUMNS)  # type: ignore[arg-type]


def speech_rows(lists: Iterable[Sequence[str]]) -> DataFrame:
    """DeID (a fraction), G_VD (dB) and the EER of each attacker (a fraction, `eer_<attacker>`) of
    labelled folders of figures, where they are defined."""
    rows = []
    for folder, labels in labelled(lists).items():
        for found in tabulate(folder, labels)[0]:
            name, value = found["metric"], found["value"]
            if name in ("deid", "g_vd", "eer") and value:
                name = f"{EER_OF}{found['attacker']}" if name == "eer" else name
                where = {"evaluator": found["evaluator"], "split": found["split"]}
                rows += _rows(found["system"], {name: float(value)}, **where)
    return DataFrame(rows, columns=COLUMNS)


def published_rows(generators: Iterable[str]) -> DataFrame:
    """Figures of 004 of these generators: Table II (speaker level), Table III, Fig. 11."""
    tables = {"II": "", "III": "", "Fig. 11": CAPACITY_OF_004}
    every = published(PAPER)
    rows = []
    for name in generators:
        for f in frame.where(every, ours=name, table=[*tables]).itertuples():
            rows += _rows(name, {f.metric: f.number}, of=PAPER, n=tables[f.table])
    return DataFrame(rows, columns=COLUMNS)


def read_rows(path: Path) -> DataFrame:
    """The table that the study wrote; UserError where it is none."""
    found = read_frame(path, COLUMNS)
    try:
        return found.assign(value=found["value"].astype(float), n=found["n"].map(_whole))
    except ValueError as error:
        raise UserError(f"{path}: not a table of generators: {error}") from error


def _whole(text: str) -> str:
    return str(int(text)) if text else ""


def _generators(rows: DataFrame) -> list[str]:
    """Those whose time was measured; others were only attacked."""
    return frame.each(frame.where(rows, figure="cpu_seconds", of=HERE), "generator")


def _found(rows: DataFrame) -> dict[str, float]:
    """Figures of one generator and place by name; of equal ones the last."""
    return dict(zip(rows["figure"], rows["value"], strict=True))


def _told(found: dict[str, float], measure: Measure, absent: str) -> str:
    return frame.show(found.get(measure.name), measure, missing=absent)


def similarity_table(rows: DataFrame) -> Table:
    """DeID and G_VD: a row for each generator, evaluator and split that was run (Table II)."""
    lines = []
    speech = frame.where(rows, figure=("deid", "g_vd"))
    for name in _generators(rows):
        theirs = _found(frame.where(rows, generator=name, of=PAPER))
        own = frame.where(speech, generator=name, of=HERE)
        places = sorted(set(zip(own["evaluator"], own["split"], strict=True))) or [("", "")]
        for evaluator, split in places:
            found = _found(frame.where(own, evaluator=evaluator, split=split))
            cells = [_told(of, measure, absent) for measure in (DEID, G_VD)
                     for of, absent in ((found, NOT_RUN), (theirs, ""))]  # fmt: skip
            lines.append([name, f"{evaluator}, {split}" if split else "", *cells])
    header = ["generator", "evaluator, split", "DeID (%)", AUTHORS, "G_VD (dB)", AUTHORS]
    return Table(header, lines)


def attack_table(rows: DataFrame) -> str:
    """EER of each attacker on the trials of both genders together: a row each; empty: none."""
    eers = rows[rows["figure"].str.startswith(EER_OF)]
    lines = [
        [row.generator, attacker(row.figure.removeprefix(EER_OF)), f"{row.evaluator}, {row.split}",
         number(100 * row.value)]
        for row in eers.itertuples()
    ]  # fmt: skip
    header = ["generator", "attacker", "evaluator, split", "EER (%)"]
    return markdown_table(header, lines) if lines else ""


def time_table(rows: DataFrame) -> Table:
    """CPU time of a vector and real-time factor (Table III)."""
    columns = [
        ("ms a vector", (HERE, "cpu_seconds", 1000)),
        ("real-time factor", (HERE, "rtf", 1)),
        (AUTHORS, (PAPER, "rtf", 1)),
    ]
    own = frame.where(rows, figure=("cpu_seconds", "rtf"))
    keys = zip(own["generator"], own["of"], own["figure"], strict=True)
    found = dict(zip(keys, own["value"], strict=True))

    def cell(name: str, column: tuple[str, str, int]) -> str:
        value = found.get((name, *column[:2]))
        return "" if value is None else f"{column[2] * value:.3g}"

    return pivot(["generator"], [([name], name) for name in _generators(rows)], columns, cell)


def capacity_table(rows: DataFrame) -> Table:
    """Cosines between pseudo-speakers by their number, and the share above the threshold."""
    lines = []
    own = frame.where(rows, figure=(*CAPACITY.values(), ABOVE))
    for name in (REAL, *_generators(rows)):
        of_name = frame.where(own, generator=name)
        for (of, indices, n), one in of_name.groupby(["of", "indices", "n"], sort=False):
            found = _found(one)
            cells = [number(found[f"{what}_cosine"], 3) for what in ("mean", "min", "max")]
            cells.append(f"{found['pairs']:,.0f}" if "pairs" in found else "")
            cells.append(f"{100 * found[ABOVE]:.3g} %" if ABOVE in found else "")
            word = Marked(f"*{AUTHORS}*") if of == PAPER else indices
            lines.append([name, word, f"{int(n):,}", *cells])
    header = ["generator", "indices", "n", "mean", "smallest", "largest", "pairs"]
    return Table([*header, "above threshold"], lines)


def voices_table(words: Sequence[str], page: Path) -> Table:
    """`<!-- table: voices FOLDER -->`: generators of FOLDER/generators.csv: how much alike the most
    voices are, and their cost."""
    if len(words) != 1:
        raise UserError(f"{page}: a table of voices names one folder of results")
    own = frame.where(read_rows(page.parent / words[0] / "generators.csv"), of=HERE)
    lines = []
    means = frame.where(own, figure=CAPACITY["mean"])
    kinds = means.groupby(["generator", "indices"], sort=False)["n"].agg(lambda n: max(map(int, n)))
    for (name, indices), n in kinds.items():
        if indices == "mixed":  # of which a number tells nothing without the curve
            continue
        of = _found(frame.where(own, generator=name, indices=indices, n=str(n)))
        cost = _found(frame.where(own, generator=name, indices=""))
        mean, least, highest = (number(of[CAPACITY[what]], 3) for what in ("mean", "min", "max"))
        used = indices == "calibrated" or (name, "calibrated") not in kinds
        lines.append(
            [code(name), indices, f"{n:,}", mean, f"{least}, {highest}",
             number(100 * of[ABOVE], 1) if ABOVE in of else "",
             f"{1000 * cost['cpu_seconds']:.2g}" if used and cost else ""]
        )  # fmt: skip
    header = ["generator", "voices", "n", "mean cosine", "smallest, largest",
              "pairs above the threshold (%)", "CPU time of a vector (ms)"]  # fmt: skip
    return Table(header, lines)


LINES = {"keys": "-", "calibrated": "-", "unseen": "--", "mixed": ":", "seen": ""}


def draw_capacity(rows: DataFrame, folder: Path, threshold: dict[str, Any], **_: Any) -> None:
    """capacity.pdf and capacity.svg: largest, mean and smallest cosine against the number."""
    canvas, axes_of = panels((5.0, 6.6), (1, 1.4, 1))
    for axes, what in zip(axes_of, ("max", "mean", "min"), strict=True):
        _draw_panel(axes, frame.where(rows, figure=f"{what}_cosine", of=HERE), _generators(rows))
        if what != "min":
            at = threshold["threshold"]
            axes.axhline(at, color=draw.SOFT, linewidth=0.8, linestyle=":")
        count_along(axes)
    for axes, title in zip(axes_of, ("largest", "mean", "smallest"), strict=True):
        axes.set_ylabel(f"{title} cosine")
    axes_of[2].set_xlabel("pseudo-speakers (dotted line: cosine at the encoder's EER)")
    save_panels(canvas, axes_of[1], folder / "capacity")


def _draw_panel(axes: Axes, rows: DataFrame, generators: Sequence[str]) -> None:
    for row in frame.where(rows, generator=REAL).itertuples():
        at, label = ([int(row.n)], [row.value]), "real speakers"
        axes.plot(*at, "*", color=draw.INK, markersize=9, label=label)
    for place, name in enumerate(generators):
        colour, marker = draw.colour(place), draw.marker(place)
        for indices, line in LINES.items():
            own = frame.where(rows, generator=name, indices=indices)
            if not own.empty:
                axes.plot(
                    own["n"].astype(int).tolist(),
                    own["value"].tolist(),
                    linestyle=line,
                    color=colour,
                    marker=marker,
                    markersize=4,
                    markerfacecolor=colour if line == "-" else "none",
                    label=name if line == "-" else f"{name}, {indices}",
                )


STUDY = Study(
    "local/report/templates/generators.md.jinja",
    {
        "capacity": capacity_table,
        "similarity": similarity_table,
        "attacks": attack_table,
        "time": time_table,
    },
    table="generators.csv",
    csv={"float_format": "%.6g"},
    draw=draw_capacity,
)
