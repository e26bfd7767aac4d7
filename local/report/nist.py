# SPDX-License-Identifier: Apache-2.0
"""Tables of the NIST study (003, Tables 5 to 8), ours with the published ones beside."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any

from pandas import DataFrame, concat

from local.metrics.permutation import holm
from local.report import frame
from local.report.frame import NOTHING, Measure, Value, number
from local.report.papers import CITED, of_table
from local.report.study import Place, Study, dashed, pivot
from local.report.tables import CERTAIN, Table
from local.report.words import Marked
from utils.cli import UserError

ORIGINAL = "original"
THEIRS = CITED["003"]
WITHOUT = "EER without SDID"  # their words for unprotected speech
RANKS = (1, 5, 10, 20, 50)
RANKED = (  # what systems are ordered by, and the table of 003 that prints it
    ("trial1", "5", "EER, trial 1"),
    ("trial2", "5", "EER, trial 2"),
    ("cross", "6", "EER, cross-profile"),
    ("p_cos", "8", "P-cosine above chance"),
)
PERCENT = Measure("", "", scale=100, digits=1)
EER = frame.measure("eer")
TESTED = (("cmc_1", "CMC@1"), ("cmc_10", "CMC@10"), ("auc_cmc", "AUC-CMC"),
          ("mean_rank", "mean rank"))  # fmt: skip
SEARCH = (
    Measure("auc_cmc", "AUC-CMC"), Measure("chance_auc_cmc", "its chance"),
    Measure("chance_clustered_auc_cmc", "clustered"), Measure("mean_rank", "mean rank", digits=1),
    Measure("chance_mean_rank", "chance", digits=1),
    Measure("mean_rank_all_mates", "mean rank of all mates", digits=1),
    Measure("chance_mean_rank_all_mates", "chance", digits=1),
)  # fmt: skip
ABOVE = (PERCENT.but(name="above_cca_top10", title="CCA above chance", unit="%"),
         PERCENT.but(name="above_p_cos", title="P-cosine above chance", unit="%"))  # fmt: skip
SPACE = (
    Measure("segments", "segments", digits=0),
    *(
        made
        for name, title, digits in (
            ("cca_top10", "CCA top 10", 3), ("p_mse", "P-MSE", 4), ("p_cos", "P-cosine", 3),
            ("p_cos_held_out", "P-cosine held out", 3),
        )
        for made in (
            Measure(name, title, digits=digits), Measure(f"chance_{name}", "chance", digits=digits)
        )
    ),
    *ABOVE,
)  # fmt: skip


@dataclass(frozen=True)
class Searches:
    """The figures of a study, and what follows from them: shares of what is possible above chance
    (above_<metric>) and p values corrected over the systems (holm_<metric>).

    Attackers: trial1_p<p>, trial2_p<p>, cross, leakage_p<p>. counts: speech behind each list.
    """

    found: dict[tuple[str, str, str, str], Value]  # by system, attacker (list), evaluator, metric
    systems: Sequence[str]
    evaluators: Sequence[str]
    profiles: Sequence[str]
    counts: Sequence[tuple[str, ...]] = ()

    @classmethod
    def of(cls, figures: DataFrame) -> "Searches":
        """Systems and evaluators in the order in which the figures name them."""
        figures = figures if "tag" in figures else frame.with_numbers(figures)
        eers = frame.where(figures, metric="eer")
        lists = (attacker.split("_p")[0] for attacker in eers["attacker"])
        counts = zip(lists, *(eers[name] for name in frame.COUNTS), strict=True)
        profiles = {a.rpartition("_p")[2] for a in figures["attacker"] if "_p" in a}
        study = cls(
            frame.values(figures, "system", "attacker", "evaluator", "metric"),
            [system for system in frame.each(figures, "system") if system != ORIGINAL],
            frame.each(figures, "evaluator"),
            sorted(profiles, key=int),
            sorted(set(counts)),
        )
        segments = frame.where(figures, metric="p_cos").itertuples()
        study.found.update(
            {(f.system, f.attacker, f.evaluator, "segments"): Value(frame.parse(f.n_segments))
             for f in segments}
        )  # fmt: skip
        study._derive()
        return study

    def _derive(self) -> None:
        for evaluator, p in product(self.evaluators, self.profiles):
            every = [(system, f"leakage_p{p}", evaluator) for system in self.systems]
            for at, metric in product(every, ("cca_top10", "p_cos", "p_cos_held_out")):
                value, chance = (self.value(*at, of + metric).value for of in ("", "chance_"))
                self.found[*at, f"above_{metric}"] = Value(_above(value, chance))
                if metric == "cca_top10" and chance > CERTAIN:  # too few segments
                    self.found[*at, metric] = self.found[*at, f"chance_{metric}"] = NOTHING
            for metric, _ in TESTED:
                values = [self.value(*at, f"p_value_{metric}").value for at in every]
                for at, one in zip(every, holm(values), strict=True):
                    self.found[*at, f"holm_{metric}"] = Value(one)

    def value(self, system: str, attacker: str, evaluator: str, metric: str) -> Value:
        """NaN where it was not measured, or is not defined."""
        return self.found.get((system, attacker, evaluator, metric), NOTHING)

    def leakage(self, system: str, evaluator: str, profile: str, metric: str) -> Value:
        """A figure of the search or of the spaces."""
        return self.value(system, f"leakage_p{profile}", evaluator, metric)

    @property
    def cells(self) -> list[tuple[str, str]]:
        """Every evaluator and profile."""
        return list(product(self.evaluators, self.profiles))

    def searched(self) -> list[tuple[str, str, str]]:
        """Systems, evaluators, and profiles that were searched: one of who draws nothing."""
        return [
            (system, evaluator, p)
            for system, (evaluator, p) in product(self.systems, self.cells)
            if (system, f"leakage_p{p}", evaluator, "p_cos") in self.found
        ]

    def searches(self, columns: Iterable[Measure]) -> Table:
        """A row a search: figures, with a dash where there is none."""
        rows = [
            ((s, e, f"P{p}"), {"system": s, "evaluator": e, "profile": p})
            for s, e, p in self.searched()
        ]
        titles = [(made.heading, {"measure": made}) for made in columns]
        return pivot(["system", "evaluator", "profile"], rows, titles, self.cell)

    def cell(self, at: Place) -> str:
        """A figure of the search or of the spaces."""
        made = at["measure"]
        found = self.leakage(at["system"], at["evaluator"], at["profile"], made.name)
        return dashed(found, made)


def _above(value: float, chance: float) -> float:
    """(value - chance) / (1 - chance); undefined where chance is all that is possible."""
    return (value - chance) / (1 - chance) if chance < CERTAIN else math.nan


def _theirs(table: str, kind: str = "") -> dict[str, DataFrame]:
    """Figures of a table of 003 by system, in its order; kind: how their attackers begin."""
    found = of_table("003", table)
    found = found[(found["ours"] != ORIGINAL) & found["attacker"].str.startswith(kind)]
    return dict(iter(found.groupby("system", sort=False)))


def _printed(head: Sequence[str], table: str, kind: str = "") -> Table:
    """The same of 003, with a dash for what is not printed."""
    rows = [_published(name, own["value"], len(head)) for name, own in _theirs(table, kind).items()]
    return Table(["system", *head], rows, 1)


def _published(name: str, cells: Iterable[str], width: int) -> list[str]:
    cells = [*cells]
    return [Marked(f"*{THEIRS}: {name}*"), *cells, *["–"] * (width - len(cells))]


def trial_table(study: Searches, trial: str) -> Table:
    """Of Table 5: EER (%) of a trial set, trial1 or trial2, by evaluator and profile."""
    original = ([WITHOUT], {"system": ORIGINAL, "list": "trial2"})
    rows = [([system], {"system": system, "list": trial + "_p{p}"}) for system in study.systems]
    columns = [(f"{e}, P{p}", {"evaluator": e, "p": p}) for e, p in study.cells]
    return pivot(["system"], [original, *rows], columns, lambda at: dashed(
        study.value(at["system"], at["list"].format(p=at["p"]), at["evaluator"], "eer"), EER
    ))  # fmt: skip


def printed_trials(trial: str) -> Table:
    """The same of 003."""
    head = [f"{e} P{p}" for e in ("TitaNet", "ECAPA", "Olive") for p in (1, 2)]
    table = _printed(head, "5", trial)
    if trial == "trial1":  # under trial set 2 the paper has a dash
        bare = [value for value in of_table("003", "5, unprotected")["value"] for _ in (1, 2)]
        table.rows.insert(0, _published(WITHOUT, bare, len(head)))
    return table


def search_table(study: Searches) -> Table:
    """Table 6: AUC-CMC, mean ranks, cross-profile EER."""
    table = study.searches(SEARCH)
    table.header.append("cross-profile EER (%)")
    for row, (system, evaluator, p) in zip(table.rows, study.searched(), strict=True):
        cross = study.value(system, "cross", evaluator, "eer")
        row.append(dashed(cross, EER) if p == study.profiles[0] else "")
    return table


def hits_table(study: Searches) -> Table:
    """Table 7: CMC (%) at the ranks, mean over profiles and evaluators."""
    rows = []
    for system in study.systems:
        every = [
            [study.leakage(system, e, p, f"cmc_{k}").value for k in RANKS] for e, p in study.cells
        ]
        there = [row for row in every if not math.isnan(row[0])]
        mean = [_mean(column) for column in zip(*there, strict=True)] or [NOTHING] * len(RANKS)
        cells = [dashed(value, PERCENT.but(digits=2)) for value in mean]
        rows.append([system, str(len(there)), *cells])
    return Table(["system", "mean of", *(f"@{k}" for k in RANKS)], rows, 1)


def all_hits_table(study: Searches) -> Table:
    """Each by itself, with both chance levels."""
    chances = {"": "", "chance_": ", chance", "chance_clustered_": ", clustered chance"}
    rows = [
        ([s, f"{e}, P{p}{name}"], {"system": s, "evaluator": e, "profile": p, "of": prefix})
        for s, e, p in study.searched()
        for prefix, name in chances.items()
    ]
    columns = [(f"@{k}", {"rank": f"cmc_{k}"}) for k in RANKS]
    return pivot(["system", "evaluator, profile"], rows, columns, lambda at: study.cell(
        {**at, "measure": PERCENT.but(name=at["of"] + at["rank"])}
    ))  # fmt: skip


def space_table(study: Searches) -> Table:
    """Table 8: canonical correlation and Procrustes, beside their chance levels.

    Chance depends on the number of segments and dimensions (0.459 and 0.212 hold for 003's only).
    What is above it is also given as a share of what could be: (value - chance) / (1 - chance).
    Canonical correlation is left out where too few segments make it 1 by construction.
    """
    some = any(study.leakage(s, e, p, "cca_top10").defined for s, e, p in study.searched())
    return study.searches(column for column in SPACE if some or "cca" not in column.name)


def printed_space() -> Table:
    """The same of 003."""
    printed = _theirs("8")
    chances = dict(zip(printed["Random"]["metric"], printed["Random"]["number"], strict=True))
    rows = []
    for name, own in printed.items():
        above = [
            number(100 * _above(f.number, chances[f.metric]), 1)
            for f in own.itertuples()
            if f.metric != "p_mse"
        ]
        rows.append(_published(name, [*own["value"], *above], 0))
    head = ["system", "CCA top 10", "P-MSE", "P-cosine", *(made.heading for made in ABOVE)]
    return Table(head, rows, 1)


def significance_table(study: Searches) -> Table:
    """p values of the searches against the clustered chance, corrected over the systems (Holm)."""
    return study.searches(Measure(f"holm_{name}", title, digits=4) for name, title in TESTED)


def _mine(study: Searches, theirs: DataFrame) -> str:
    """The system here that is like one of 003; empty: none was studied."""
    ours = str(theirs["ours"].iloc[0])
    names = (name for name in (ours, ours.partition("_wavlm")[0]) if name in study.systems)
    return next(names, "")


def patterns_table(study: Searches) -> Table:
    """What 003 prints of each system as a range over its evaluators and profiles, and ours. An
    evaluator holds it where the intervals of all profiles meet the range."""
    rows = []
    for trial, table, title in RANKED[:3]:
        lists = [trial] if trial == "cross" else [f"{trial}_p{p}" for p in study.profiles]
        for name, own in _theirs(table, trial).items():
            printed = frame.where(own, metric="eer")["number"]
            if printed.empty or not (mine := _mine(study, own)):
                continue
            low, high = printed.min(), printed.max()
            cells, held = [], []
            for evaluator in study.evaluators:
                values = [study.value(mine, one, evaluator, "eer") for one in lists]
                there = [value for value in values if not math.isnan(value.value)]
                cells.append("; ".join(dashed(value, EER) for value in there) or "–")
                if there and all(v.low <= high and v.high >= low for v in there):
                    held.append(evaluator)
            told = f"{number(100 * low, 1)} to {number(100 * high, 1)}"
            by = ", ".join(held) or "none"
            rows.append([f"{name}, {mine}", f"{title} (%)", told, *cells, by])
    return Table(["their system, ours", "figure", THEIRS, *study.evaluators, "held by"], rows, 2)


def _mean(values: Iterable[float]) -> Value:
    there = [value for value in values if not math.isnan(value)]
    return Value(sum(there) / len(there)) if there else NOTHING


def _ranked(study: Searches, figure: str, table: str) -> dict[str, dict[str, Value]]:
    """Of systems here that are like 003's: what 003 prints and each evaluator found. EERs are of
    the first profile; P-cosine, which has no interval, is above chance and a mean of profiles."""
    spaces = figure == "p_cos"
    own = _theirs(table, "" if spaces else figure)
    of = {name: frame.where(rows, metric=figure if spaces else "eer")["number"]
          for name, rows in own.items()}  # fmt: skip
    mine = {_mine(study, rows): of[name] for name, rows in own.items()}
    mine.pop("", None)
    chance = of["Random"].iloc[0] if spaces else 0.0
    found = {THEIRS: {name: _mean(_above(n, chance) for n in mine[name]) for name in mine}}
    one = figure if figure == "cross" else f"{figure}_p{study.profiles[0]}"
    for evaluator in study.evaluators:
        values = {
            system: _mean(
                study.leakage(system, evaluator, p, "above_p_cos").value for p in study.profiles
            )
            if spaces
            else study.value(system, one, evaluator, "eer")
            for system in mine
        }
        found[evaluator] = {s: value for s, value in values.items() if not math.isnan(value.value)}
    return found


def order_table(study: Searches) -> Table:
    """Systems, the highest figure first; of their pairs, how many stand as in 003 with intervals
    apart, how many the other way round, and of how many the intervals overlap."""
    rows = []
    for figure, table, title in RANKED:
        found = _ranked(study, figure, table)
        printed = found[THEIRS]
        if len(printed) < 2:
            continue
        for by, of in found.items():
            ordered = sorted(of, key=lambda system: of[system].value, reverse=True)
            told = ", ".join(f"{system} {number(100 * of[system].value, 1)}" for system in ordered)
            counts = [0, 0, 0]
            for one, other in combinations(ordered, 2):
                decided = not of[one].bounded or of[one].apart(of[other])
                alike = printed[one].value > printed[other].value
                counts[2 if not decided else 0 if alike else 1] += 1
            cells = ["", "", ""] if by == THEIRS else [str(count) for count in counts]
            rows.append([title, by, told, *cells])
    head = ["figure", "evaluator", "highest first (%)", "pairs as there", "reversed", "overlap"]
    return Table(head, rows, 2)


TABLES: dict[str, Callable[[Searches], Table]] = {
    "patterns": patterns_table,
    "order": order_table,
    "trial1": lambda study: trial_table(study, "trial1"),
    "trial2": lambda study: trial_table(study, "trial2"),
    "search": search_table,
    "hits": hits_table,
    "space": space_table,
    "significance": significance_table,
}
COUNTED = ["list", "speakers", "segments", "target", "nontarget"]
PAGE: dict[str, Callable[[Searches], Table]] = {
    **TABLES,
    "counts": lambda study: Table(COUNTED, [[*row] for row in study.counts]),
    "all_hits": all_hits_table,
    "printed_trial1": lambda _: printed_trials("trial1"),
    "printed_trial2": lambda _: printed_trials("trial2"),
    "printed_search": lambda _: _printed(
        ["AUC-CMC", "mean rank", "cross-profile EER: TitaNet", "ECAPA"], "6"
    ),
    "printed_hits": lambda _: _printed([f"@{k}" for k in RANKS], "7"),
    "printed_space": lambda _: printed_space(),
}


STUDY = Study("local/report/templates/nist.md.jinja", PAGE, Searches.of, table="metrics.csv")


def nist_table(words: Sequence[str], page: Path) -> Table:
    """`<!-- table: nist FOLDER... NAME -->`: one of TABLES, of the metrics.csv of FOLDERs beside
    the page, which hold different systems or evaluators."""
    *folders, name = words or ("",)
    if not folders or name not in TABLES:
        raise UserError(f"{page}: table: nist takes FOLDER... and one of {', '.join(TABLES)}")
    tables: list[Any] = [frame.read_metrics(page.parent / at / "metrics.csv") for at in folders]
    return TABLES[name](Searches.of(concat(tables)))
