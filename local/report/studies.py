"""Studies with a page of their own: what they share, NIST's, and generators.

A study is its figures and the tables made of them, which are methods: its template calls them, and
says the sentences between them.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product
from pathlib import Path
from typing import Any, ClassVar

from pandas import DataFrame, Series, read_csv

from local.metrics.intervals import COLUMNS as FIGURE
from local.metrics.intervals import holm, key
from local.report import frame, measures
from local.report.gather import check_losses, labelled, origin, tabulate
from local.report.measures import MEASURES, NOTHING, Measure, Value, number
from local.report.tables import (
    CERTAIN,
    CITED,
    Table,
    dashed,
    headed,
    of_table,
    pivot,
    published,
    read_mark,
)
from local.report.wording import code, render
from utils.cli import UserError
from utils.tables import read_json_object, write_file, write_json

EER = MEASURES["eer"]


# ---- What studies share.


class Study:
    """A study. template: of its page; table: the file of its figures, written with `csv`."""

    template: ClassVar[str]
    table: ClassVar[str] = "metrics.csv"
    csv: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, figures: DataFrame) -> None:
        self.figures = figures

    def draw(self, folder: Path, **said: Any) -> None:
        """Draw the pictures of the study into a folder."""

    def page(self, told: Mapping[str, object], **said: Any) -> str:
        """RESULTS.md. told: where the figures came from; said: what else the template names."""
        path = f"local/report/templates/{self.template}.md.jinja"
        return render(path, study=self, origin=told, **said)

    def write(self, out: Path, **said: Any) -> None:
        """RESULTS.md, pictures, the table of figures, and run.json for local/keep_results.py."""
        told = origin()
        self.draw(out, **said)
        write_file(out / "RESULTS.md", self.page(told, **said))
        write_json(out / "run.json", {"origin": told})
        table = self.figures.to_csv(index=False, lineterminator="\n", **self.csv)
        write_file(out / self.table, table)


def mean(values: Iterable[float]) -> Value:
    """The mean of those that are defined."""
    there = [value for value in values if not math.isnan(value)]
    return Value(sum(there) / len(there)) if there else NOTHING


# ---- Searches for identities after Seo et al. 2025 (NIST), theirs beside ours.

THEIRS = CITED["003"]
ORIGINAL, WITHOUT = "original", "EER without SDID"  # their words for unprotected speech
RANKED = measures.TABLES["ranked"]
TESTED = ("cmc_1", "cmc_10", "auc_cmc", "mean_rank")
Place = tuple[str, str, str]  # system, list, evaluator


class Searches(Study):
    """The study's figures, and what follows from them: shares of what is possible above chance
    (above_<metric>) and p values corrected over the systems (holm_<metric>).

    Lists: trial1_p<p>, trial2_p<p>, cross, leakage_p<p>, of profile p. found: by system, list,
    evaluator, metric; counts: speech behind each list.
    """

    template = "nist"
    marked = ("patterns", "order", "trial1", "trial2", "search", "hits", "space", "significance")

    def __init__(self, figures: DataFrame) -> None:
        super().__init__(figures)
        figures = figures if "tag" in figures else frame.with_numbers(figures)
        lists = (figures["family"] + "_" + figures["attacker"]).str.removesuffix("_")
        figures = figures.assign(list=lists)
        self.found = frame.values(figures, "system", "list", "evaluator", "figure")
        self.systems = [s for s in frame.each(figures, "system") if s != ORIGINAL]
        self.evaluators = frame.each(figures, "evaluator")
        profiles = {profile.removeprefix("p") for profile in figures["attacker"] if profile}
        self.profiles = sorted(profiles, key=int)
        eers = frame.where(figures, figure="eer")
        counts = zip(eers["family"], *(eers[name] for name in frame.COUNTS), strict=True)
        self.counts = sorted({*counts})
        for f in frame.where(figures, figure="p_cos").itertuples():
            at = f.system, f.list, f.evaluator, "segments"
            self.found[at] = Value(frame.parse(f.n_segments))
        for evaluator, profile in self.places:
            self._derive([(s, f"leakage_p{profile}", evaluator) for s in self.systems])

    def _derive(self, of_systems: Sequence[Place]) -> None:
        for at, metric in product(of_systems, ("cca_top10", "p_cos", "p_cos_held_out")):
            value, chance = (
                self.value(*at, key(metric, kind=kind)).value for kind in ("value", "chance")
            )
            self.found[*at, f"above_{metric}"] = Value(_above(value, chance))
            if metric == "cca_top10" and chance > CERTAIN:  # too few segments
                self.found[*at, metric] = self.found[*at, key(metric, kind="chance")] = NOTHING
        for metric in TESTED:
            values = [self.value(*at, key(metric, kind="p")).value for at in of_systems]
            for at, one in zip(of_systems, holm(values), strict=True):
                self.found[*at, f"holm_{metric}"] = Value(one)

    def value(self, system: str, of: str, evaluator: str, metric: str) -> Value:
        """A figure, which is NaN where it was not measured or is not defined."""
        return self.found.get((system, of, evaluator, metric), NOTHING)

    @property
    def places(self) -> list[tuple[str, str]]:
        """Every evaluator and profile."""
        return list(product(self.evaluators, self.profiles))

    def _searched(self) -> list[tuple[Place, Place]]:
        """Searches that were made, by name: of who draws nothing one profile's."""
        every = (
            ((system, by, f"P{p}"), (system, f"leakage_p{p}", by))
            for system, (by, p) in product(self.systems, self.places)
        )
        return [(name, at) for name, at in every if (*at, "p_cos") in self.found]

    def _searches(self, columns: Iterable[Measure]) -> Table:
        """A row a search: figures, with a dash where there is none."""
        names = ["system", "evaluator", "profile"]
        return pivot(names, self._searched(), headed(columns), self._cell)

    def _cell(self, at: Place, column: Measure) -> str:
        return dashed(self.value(*at, column.figure), column)

    def trials(self, trial: str) -> Table:
        """Table 5: EER (%) on the list trial1 (original, protected) or trial2 (both protected)."""
        rows = [([WITHOUT], (ORIGINAL, "trial2"))]
        rows += [([system], (system, trial + "_p{}")) for system in self.systems]
        columns = [(f"{evaluator}, P{p}", (evaluator, p)) for evaluator, p in self.places]
        return pivot(["system"], rows, columns, lambda row, at: dashed(
            self.value(row[0], row[1].format(at[1]), at[0], "eer"), EER
        ))  # fmt: skip

    def search(self) -> Table:
        """Table 6: AUC-CMC, mean ranks, cross-profile EER."""
        table = self._searches(measures.COLUMNS["search"])
        table.header.append("cross-profile EER (%)")
        for row in table.rows:
            cross = dashed(self.value(row[0], "cross", row[1], "eer"), EER)
            row.append(cross if row[2] == f"P{self.profiles[0]}" else "")
        return table

    def hits(self) -> Table:
        """Table 7: CMC (%) at the ranks, mean over profiles and evaluators."""

        def found(system: str, column: Measure) -> list[float]:
            every = (self.value(system, f"leakage_p{p}", by, column.name) for by, p in self.places)
            return [one.value for one in every if not math.isnan(one.value)]

        rows = [([s, str(len(found(s, measures.COLUMNS["hits"][0])))], s) for s in self.systems]
        columns = headed(measures.COLUMNS["hits"])
        return pivot(["system", "mean of"], rows, columns, lambda system, column: dashed(
            mean(found(system, column)), column.but(digits=2)
        ))  # fmt: skip

    def all_hits(self) -> Table:
        """CMC (%) of each search by itself, with both chance levels."""
        kinds = {"value": "", "chance": ", chance", "chance_clustered": ", clustered chance"}
        rows = [
            ([system, f"{by}, {profile}{name}"], (at, kind))
            for (system, by, profile), at in self._searched()
            for kind, name in kinds.items()
        ]
        names, columns = ["system", "evaluator, profile"], headed(measures.COLUMNS["hits"])
        return pivot(names, rows, columns, lambda row, column: self._cell(
            row[0], column.but(kind=row[1])
        ))  # fmt: skip

    def space(self) -> Table:
        """Table 8: canonical correlation and Procrustes, beside their chance levels.

        Chance depends on the number of segments and dimensions (0.459 and 0.212 hold for the
        paper's only). What is above it is also given as a share of what could be: (value - chance)
        / (1 - chance). Canonical correlation is left out where too few segments make it 1 by
        construction.
        """
        some = any(self.value(*at, "cca_top10").defined for _, at in self._searched())
        return self._searches(m for m in measures.COLUMNS["space"] if some or "cca" not in m.name)

    def significance(self) -> Table:
        """p values of the searches against the clustered chance, corrected over the systems."""
        return self._searches(measures.COLUMNS["significance"])

    def printed(self, table: str, kind: str = "") -> dict[str, list[str]]:
        """Figures of a table as the paper prints them, by system; of Table 8 then shares above the
        chance that it prints."""
        rows = _theirs(table, kind)
        found = {name: [*own["value"]] for name, own in rows.items()}
        if kind == "trial1":  # under trial set 2 the paper has a dash
            bare = of_table("003", "5, unprotected")["value"]
            return {WITHOUT: [value for value in bare for _ in (1, 2)]} | found
        if table == "8":
            chances = dict(zip(rows["Random"]["metric"], rows["Random"]["number"], strict=True))
            for name, own in rows.items():
                spaces = own[own["metric"] != "p_mse"].itertuples()
                above = [dashed(_above(f.number, chances[f.metric]), EER) for f in spaces]
                found[name] = [*(found[name] + ["–", "–"])[:3], *above]
        return found

    def patterns(self) -> Table:
        """Ranges of the paper's figures of each system over its evaluators and profiles, and ours
        beside. An evaluator holds one where the intervals of all profiles meet the range."""
        rows = []
        for figure, table, title in RANKED[:3]:
            for name, mine, numbers in self._alike(figure, table):
                low, high = numbers.min(), numbers.max()
                found = {by: self._own(figure, by, mine) for by in self.evaluators}
                held = [by for by, values in found.items() if values
                        and all(v.low <= high and v.high >= low for v in values)]  # fmt: skip
                cells = ("; ".join(dashed(v, EER) for v in own) or "–" for own in found.values())
                told = f"{number(100 * low, 1)} to {number(100 * high, 1)}"
                by = ", ".join(held) or "none"
                rows.append([f"{name}, {mine}", f"{title} (%)", told, *cells, by])
        return Table(["their system, ours", "figure", THEIRS, *self.evaluators, "held by"], rows)

    def order(self) -> Table:
        """Systems, the highest figure first; of their pairs, how many stand as in the paper with
        intervals apart, how many the other way round, and of how many the intervals overlap.

        EERs are those of the first profile; P-cosine, which has no interval, is above chance and a
        mean of profiles.
        """
        rows = []
        for figure, table, title in RANKED:
            random = frame.where(of_table("003", table), system="Random", metric=figure)
            chance = next(iter(random["number"]), 0.0)
            theirs = {mine: mean(_above(n, chance) for n in numbers)
                      for _, mine, numbers in self._alike(figure, table)}  # fmt: skip
            found = {THEIRS: theirs}
            for by in self.evaluators:
                own = {system: self._own(figure, by, system) for system in theirs}
                found[by] = {system: values[0] for system, values in own.items() if values}
            for by, of in found.items() if len(theirs) > 1 else ():
                ordered = sorted(of, key=of.__getitem__, reverse=True)
                told = ", ".join(f"{s} {number(100 * of[s].value, 1)}" for s in ordered)
                counts = [0, 0, 0]
                for one, other in combinations(ordered, 2):
                    decided = not of[one].bounded or of[one].apart(of[other])
                    alike = theirs[one].value > theirs[other].value
                    counts[2 if not decided else 0 if alike else 1] += 1
                rows.append([title, by, told, *("" if by == THEIRS else str(n) for n in counts)])
        head = ["figure", "evaluator", "highest first (%)", "pairs as there", "reversed", "overlap"]
        return Table(head, rows)

    def _alike(self, figure: str, table: str) -> Iterator[tuple[str, str, Series]]:
        """Systems of the paper with that figure that one here is like, which, and the figures."""
        spaces = figure == "p_cos"
        for name, own in _theirs(table, "" if spaces else figure).items():
            ours = str(own["ours"].iloc[0])
            names = (s for s in (ours, ours.partition("_wavlm")[0]) if s in self.systems)
            numbers = frame.where(own, metric=figure if spaces else "eer")["number"]
            if (mine := next(names, "")) and not numbers.empty:
                yield name, mine, numbers

    def _own(self, figure: str, evaluator: str, system: str) -> list[Value]:
        """EERs of a system by an evaluator, by profile, where they are defined; of shares above
        chance the mean."""
        if figure == "p_cos":
            shares = (self.value(system, f"leakage_p{p}", evaluator, "above_p_cos")
                      for p in self.profiles)  # fmt: skip
            values = [mean(share.value for share in shares)]
        else:
            lists = [figure] if figure == "cross" else [f"{figure}_p{p}" for p in self.profiles]
            values = [self.value(system, one, evaluator, "eer") for one in lists]
        return [value for value in values if not math.isnan(value.value)]


def _above(value: float, chance: float) -> float:
    """(value - chance) / (1 - chance); undefined where chance is all that is possible."""
    return (value - chance) / (1 - chance) if chance < CERTAIN else math.nan


def _theirs(table: str, kind: str = "") -> dict[str, DataFrame]:
    """Figures of a table of the paper by system; kind: their family."""
    found = of_table("003", table)
    found = found[(found["ours"] != ORIGINAL) & found["family"].str.startswith(kind)]
    return dict(iter(found.groupby("system", sort=False)))


def nist_table(words: Sequence[str], page: Path) -> Table:
    """`<!-- table: nist FOLDER... NAME -->`: a table of the metrics.csv of FOLDERs beside the page,
    which hold different systems or evaluators."""
    *folders, name = words or ("",)
    if not folders or name not in Searches.marked:
        known = ", ".join(Searches.marked)
        raise UserError(f"{page}: table: nist takes FOLDER... and one of {known}")
    of, made = Searches(frame.read_folders(page, folders)), name.rstrip("12")
    return of.trials(name) if made == "trial" else getattr(of, name)()


# ---- Constant target voices (Champion et al. 2021).


def spread(values: Sequence[Value], measure: Measure) -> str:
    """Mean ± standard deviation over targets; how many are undefined or missing, if any.

    >>> spread([Value(0.1), Value(0.2), Value(0.3), Value(math.nan)], EER)
    '20.0 ± 10.0 (1 of 4 not defined)'
    """
    defined = [measure.scale * value.value for value in values if value.defined]
    if not defined:
        return "–"
    text = number(statistics.fmean(defined), measure.digits)
    if len(defined) > 1:
        text += f" ± {number(statistics.stdev(defined), measure.digits)}"
    lost = len(values) - len(defined)
    return f"{text} ({lost} of {len(values)} not defined)" if lost else text


# ---- Generators of pseudo-speakers beside each other, and the curves of Liu et al. 2025, Fig. 11.


REAL = "real"  # the speakers of the pool, to compare with
HERE, PAPER = "here", "004"
CAPACITY = {"mean": "mean_cosine", "min": "min_cosine", "max": "max_cosine", "pairs": "pairs",
            "above_threshold": "share_above_threshold"}  # fmt: skip
_SHARE = CAPACITY["above_threshold"]
EER_OF = "eer_"  # and the attacker's name: a figure
PRINTED = {"II": "", "III": "", "Fig. 11": "2000000"}  # tables, and their number of vectors
# One figure of a generator. of: here or 004; indices, n: of a capacity (n is empty where it means
# nothing). Values are cosines, shares, seconds, dB and fractions.
COLUMNS = ("generator", "figure", "value", "of", "indices", "n", "evaluator", "split")
SUBJECT = [name for name in COLUMNS if name not in ("figure", "value")]
LINES = {"keys": "-", "calibrated": "-", "unseen": "--", "mixed": ":", "seen": ""}
Rows = list[dict[str, Any]]


def _rows(generator: str, figures: Iterable[tuple[str, float]], **where: Any) -> Rows:
    said = dict.fromkeys(COLUMNS, "") | {"generator": generator, "of": HERE} | where
    return [{**said, "figure": figure, "value": value} for figure, value in figures]


def capacity_rows(generator: str, path: Path) -> Rows:
    """The table of steps/measure_capacity.py as rows."""
    table, rows = read_csv(path, sep="\t").rename(columns={"#indices": "indices"}), []
    for line in table.to_dict("records"):
        found = ((figure, float(line[name])) for name, figure in CAPACITY.items())
        known = (one for one in found if not math.isnan(one[1]))
        rows += _rows(generator, known, indices=line["indices"], n=str(line["n"]))
    return rows


def time_rows(generator: str, path: Path) -> Rows:
    """The file of steps/time_generator.py as rows."""
    values = read_json_object(path, "make it again")
    found = ((name, values[name]) for name in ("cpu_seconds", "rtf"))
    return _rows(generator, found, n=str(values.get("vectors") or ""))


def speech_rows(folders: Iterable[Path]) -> Rows:
    """DeID (a fraction), G_VD (dB) and the EER of each attacker (a fraction, `eer_<attacker>`) of
    labelled folders of figures, where they are defined."""
    rows, (labels, missing) = Rows(), labelled(folders)
    check_losses(missing, 0)
    for found in (row for at, of in labels.items() for row in tabulate(at, of)[0]):
        name: str = key(found["metric"], **{column: found[column] for column in FIGURE})
        if name in ("deid", "g_vd", "eer") and found["value"]:
            name = f"{EER_OF}{found['attacker']}" if name == "eer" else name
            rows += _rows(found["system"], [(name, float(found["value"]))],
                          evaluator=found["evaluator"], split=found["split"])  # fmt: skip
    return rows


def published_rows(generator: str) -> Rows:
    """Figures that the paper prints of a generator: Tables II (speaker level) and III, Fig. 11."""
    own = frame.where(published(PAPER), ours=generator, table=[*PRINTED]).itertuples()
    made = (_rows(generator, [(f.metric, f.number)], of=PAPER, n=PRINTED[f.table]) for f in own)
    return [row for rows in made for row in rows]


def read_rows(path: Path) -> DataFrame:
    """The table that the study wrote; UserError for anything else."""
    found = frame.read_frame(path, COLUMNS)
    try:
        return found.assign(value=found["value"].astype(float))
    except ValueError as error:
        raise UserError(f"{path}: not a table of generators: {error}") from error


class GeneratorFigures(Study):
    """Generators compared: a figure a row, as COLUMNS has it. found: each subject with its figures
    by name, of equal ones the last; names: generators whose time was measured, for others were only
    attacked."""

    template, table, csv = "generators", "generators.csv", {"float_format": "%.6g"}

    def __init__(self, figures: DataFrame) -> None:
        super().__init__(figures)
        self.found: Rows = [
            dict(zip([*SUBJECT, *own["figure"]], [*subject, *own["value"]], strict=True))
            for subject, own in figures.groupby(SUBJECT, sort=False)
        ]
        timed = (one["generator"] for one in self.found if "cpu_seconds" in one)
        self.names = [*dict.fromkeys(timed)]

    def having(self, name: str, *figures: str, of: str = "") -> Rows:
        """Subjects of a generator, here or in the paper (of; empty: in both), that have one of some
        figures."""
        own = [one for one in self.found if one["generator"] == name and of in ("", one["of"])]
        return [one for one in own if not one.keys().isdisjoint(figures)]

    def value(self, name: str, figure: str, of: str = HERE) -> float | None:
        """A figure of a generator that there is once; None where it was not measured."""
        return next((one[figure] for one in self.having(name, figure, of=of)), None)

    def voices(self) -> Table:
        """How much alike the most voices are, and their cost."""
        most: dict[tuple[str, str], dict[str, Any]] = {}
        for one in self.found:
            # Of mixed ones a number tells nothing without the curve.
            if one["of"] == HERE and "mean_cosine" in one and one["indices"] != "mixed":
                kind = one["generator"], one["indices"]
                most[kind] = max(most.get(kind, one), one, key=lambda own: int(own["n"]))
        lines = []
        for (name, indices), of in most.items():
            cost = self.value(name, "cpu_seconds")
            mean, *ends = (number(of[f"{what}_cosine"], 3) for what in ("mean", "min", "max"))
            used = indices == "calibrated" or (name, "calibrated") not in most
            lines.append(
                [code(name), indices, f"{int(of['n']):,}", mean, ", ".join(ends),
                 number(100 * of[_SHARE], 1) if _SHARE in of else "",
                 f"{1000 * cost:.2g}" if used and cost else ""]
            )  # fmt: skip
        header = ["generator", "voices", "n", "mean cosine", "smallest, largest",
                  "pairs above the threshold (%)", "CPU time of a vector (ms)"]  # fmt: skip
        return Table(header, lines)

    def draw(self, folder: Path, **said: Any) -> None:
        """capacity.pdf and capacity.svg: largest, mean and smallest cosine against the number."""
        from matplotlib.figure import Figure as Canvas

        from local.report import draw

        draw.use_style()
        canvas = Canvas(figsize=(5.0, 6.6), layout="constrained", facecolor="white")
        panels = canvas.subplots(3, 1, sharex=True, height_ratios=(1, 1.4, 1))
        kinds = (("max", "largest"), ("mean", "mean"), ("min", "smallest"))
        for axes, (what, title) in zip(panels, kinds, strict=True):
            self._draw_panel(axes, f"{what}_cosine")
            if what != "min":
                at = said["threshold"]["threshold"]
                axes.axhline(at, color=draw.SOFT, linewidth=0.8, linestyle=":")
            axes.grid(visible=True)
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter("{x:,.0f}")
            axes.xaxis.set_minor_formatter("")
            axes.set_ylabel(f"{title} cosine")
        panels[2].set_xlabel("pseudo-speakers (dotted line: cosine at the encoder's EER)")
        handles, labels = panels[1].get_legend_handles_labels()
        canvas.legend(handles, labels, loc="outside lower center", ncols=3)
        draw.save(canvas, folder / "capacity")

    def _draw_panel(self, axes: Any, figure: str) -> None:
        from local.report import draw

        for one in self.having(REAL, figure, of=HERE):
            style: Mapping[str, Any] = {"color": draw.INK, "markersize": 9}
            axes.plot([int(one["n"])], [one[figure]], "*", label="real speakers", **style)
        for (place, name), (indices, line) in product(enumerate(self.names), LINES.items()):
            every = self.having(name, figure, of=HERE)
            if own := [(int(e["n"]), e[figure]) for e in every if e["indices"] == indices]:
                axes.plot(
                    *zip(*own, strict=True), linestyle=line,
                    color=draw.colour(place), marker=draw.marker(place), markersize=4,
                    markerfacecolor=draw.colour(place) if line == "-" else "none",
                    label=name if line == "-" else f"{name}, {indices}",
                )  # fmt: skip


def voices_table(words: Sequence[str], page: Path) -> Table:
    """`<!-- table: voices FOLDER -->`: generators of FOLDER/generators.csv: how much alike the most
    voices are, and their cost."""
    (folder, *_), _ = read_mark(words, page, "FOLDER")
    return GeneratorFigures(read_rows(page.parent / folder / "generators.csv")).voices()
