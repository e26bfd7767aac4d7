"""Tables of the NIST study (003, Tables 5 to 8), ours with the published ones beside."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any

from pandas import DataFrame, concat

from local.metrics.intervals import holm
from local.report import frame
from local.report.frame import NOTHING, Measure, Value, number
from local.report.papers import CITED, of_table
from local.report.study import Study, dashed, headed, pivot
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
PERCENT = Measure("", "", "%", 100, 1)
HITS = [(f"@{k}", PERCENT.but(name=f"cmc_{k}")) for k in RANKS]
EER = frame.measure("eer")
TESTED = ("cmc_1", "cmc_10", "auc_cmc", "mean_rank")
ABOVE = (PERCENT.but(name="above_cca_top10", title="CCA above chance"),
         PERCENT.but(name="above_p_cos", title="P-cosine above chance"))  # fmt: skip
SEARCH = [
    Measure(name, title, digits=digits)
    for name, title, digits in (
        ("auc_cmc", "AUC-CMC", 3), ("chance_auc_cmc", "its chance", 3),
        ("chance_clustered_auc_cmc", "clustered", 3), ("mean_rank", "mean rank", 1),
        ("chance_mean_rank", "chance", 1), ("mean_rank_all_mates", "mean rank of all mates", 1),
        ("chance_mean_rank_all_mates", "chance", 1),
    )
]  # fmt: skip
SPACE = [
    Measure(prefix + name, chance or title, digits=digits)
    for name, title, digits in (
        ("cca_top10", "CCA top 10", 3), ("p_mse", "P-MSE", 4), ("p_cos", "P-cosine", 3),
        ("p_cos_held_out", "P-cosine held out", 3),
    )
    for prefix, chance in (("", ""), ("chance_", "chance"))
]  # fmt: skip


@dataclass(frozen=True)
class Searches:
    """The figures of a study, and what follows from them: shares of what is possible above chance
    (above_<metric>) and p values corrected over the systems (holm_<metric>).

    Lists: trial1_p<p>, trial2_p<p>, cross, leakage_p<p>. counts: speech behind each.
    """

    found: dict[tuple[str, str, str, str], Value]  # by system, list, evaluator, metric
    systems: Sequence[str]
    evaluators: Sequence[str]
    profiles: Sequence[str]
    counts: Sequence[tuple[str, ...]] = ()

    @classmethod
    def of(cls, figures: DataFrame) -> "Searches":
        """Systems and evaluators in the order in which the figures name them."""
        figures = figures if "tag" in figures else frame.with_numbers(figures)
        lists = (figures["family"] + "_" + figures["attacker"]).str.removesuffix("_")
        figures = figures.assign(list=lists)
        eers = frame.where(figures, metric="eer")
        counts = zip(eers["family"], *(eers[name] for name in frame.COUNTS), strict=True)
        profiles = {profile.removeprefix("p") for profile in figures["attacker"] if profile}
        study = cls(
            frame.values(figures, "system", "list", "evaluator", "metric"),
            [system for system in frame.each(figures, "system") if system != ORIGINAL],
            frame.each(figures, "evaluator"),
            sorted(profiles, key=int),
            sorted(set(counts)),
        )
        for f in frame.where(figures, metric="p_cos").itertuples():
            found = Value(frame.parse(f.n_segments))
            study.found[f.system, f.list, f.evaluator, "segments"] = found
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
            for metric in TESTED:
                values = [self.value(*at, f"p_value_{metric}").value for at in every]
                for at, one in zip(every, holm(values), strict=True):
                    self.found[*at, f"holm_{metric}"] = Value(one)

    def value(self, system: str, of: str, evaluator: str, metric: str) -> Value:
        """A figure, which is NaN where it was not measured or is not defined."""
        return self.found.get((system, of, evaluator, metric), NOTHING)

    def leakage(self, system: str, evaluator: str, profile: str, metric: str) -> Value:
        """A figure of the search or of the spaces."""
        return self.value(system, f"leakage_p{profile}", evaluator, metric)

    @property
    def places(self) -> list[tuple[str, str]]:
        """Every evaluator and profile."""
        return list(product(self.evaluators, self.profiles))

    def searched(self) -> list[tuple[str, str, str]]:
        """Systems, evaluators, and profiles that were searched: one of who draws nothing."""
        return [
            (system, evaluator, p)
            for system, (evaluator, p) in product(self.systems, self.places)
            if (system, f"leakage_p{p}", evaluator, "p_cos") in self.found
        ]

    def searches(self, columns: Iterable[Measure]) -> Table:
        """A row a search: figures, with a dash where there is none."""
        rows = [((s, e, f"P{p}"), (s, e, p)) for s, e, p in self.searched()]
        names = ["system", "evaluator", "profile"]
        return pivot(names, rows, headed(columns), self.cell)

    def cell(self, search: tuple[str, str, str], column: Measure) -> str:
        """A figure of a search or its spaces."""
        return dashed(self.leakage(*search, column.name), column)


def _above(value: float, chance: float) -> float:
    """(value - chance) / (1 - chance); undefined where chance is all that is possible."""
    return (value - chance) / (1 - chance) if chance < CERTAIN else math.nan


def _theirs(table: str, kind: str = "") -> dict[str, DataFrame]:
    """Figures of a table of 003 by system, in its order; kind: their family."""
    found = of_table("003", table)
    found = found[(found["ours"] != ORIGINAL) & found["family"].str.startswith(kind)]
    return dict(iter(found.groupby("system", sort=False)))


def _printed(head: Sequence[str], table: str, kind: str = "") -> Table:
    """A table as 003 prints it, with a dash for what is not printed."""
    rows = [_published(name, own["value"], len(head)) for name, own in _theirs(table, kind).items()]
    return Table(["system", *head], rows, 1)


def _published(name: str, cells: Iterable[str], width: int) -> list[str]:
    cells = [*cells]
    return [Marked(f"*{THEIRS}: {name}*"), *cells, *["–"] * (width - len(cells))]


def trial_table(study: Searches, trial: str) -> Table:
    """Table 5: EER (%) of a trial set, trial1 or trial2, by evaluator and profile."""
    rows = [([WITHOUT], (ORIGINAL, "trial2"))]
    rows += [([system], (system, trial + "_p{}")) for system in study.systems]
    columns = [(f"{evaluator}, P{p}", (evaluator, p)) for evaluator, p in study.places]
    return pivot(["system"], rows, columns, lambda row, at: dashed(
        study.value(row[0], row[1].format(at[1]), at[0], "eer"), EER
    ))  # fmt: skip


def printed_trials(trial: str) -> Table:
    """Table 5 as 003 prints it."""
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

    def found(system: str, column: Measure) -> list[float]:
        values = (study.leakage(system, *at, column.name).value for at in study.places)
        return [value for value in values if not math.isnan(value)]

    rows = [([s, str(len(found(s, HITS[0][1])))], s) for s in study.systems]
    return pivot(["system", "mean of"], rows, HITS, lambda system, column: dashed(
        _mean(found(system, column)), column.but(digits=2)
    ))  # fmt: skip


def all_hits_table(study: Searches) -> Table:
    """CMC (%) of each search by itself, with both chance levels."""
    chances = {"": "", "chance_": ", chance", "chance_clustered_": ", clustered chance"}
    rows = [
        ([s, f"{e}, P{p}{name}"], ((s, e, p), prefix))
        for s, e, p in study.searched()
        for prefix, name in chances.items()
    ]
    return pivot(["system", "evaluator, profile"], rows, HITS, lambda row, column: study.cell(
        row[0], column.but(name=row[1] + column.name)
    ))  # fmt: skip


def space_table(study: Searches) -> Table:
    """Table 8: canonical correlation and Procrustes, beside their chance levels.

    Chance depends on the number of segments and dimensions (0.459 and 0.212 hold for 003's only).
    What is above it is also given as a share of what could be: (value - chance) / (1 - chance).
    Canonical correlation is left out where too few segments make it 1 by construction.
    """
    some = any(study.leakage(*at, "cca_top10").defined for at in study.searched())
    columns = (Measure("segments", "segments", digits=0), *SPACE, *ABOVE)
    return study.searches(column for column in columns if some or "cca" not in column.name)


def printed_space() -> Table:
    """Table 8 as 003 prints it, with shares above the chance that it prints."""
    table = _printed(["CCA top 10", "P-MSE", "P-cosine", *(made.heading for made in ABOVE)], "8")
    printed = _theirs("8")
    chances = dict(zip(printed["Random"]["metric"], printed["Random"]["number"], strict=True))
    for row, own in zip(table.rows, printed.values(), strict=True):
        spaces = own[own["metric"] != "p_mse"]
        row[4:] = [
            dashed(_above(f.number, chances[f.metric]), PERCENT) for f in spaces.itertuples()
        ]
    return table


def significance_table(study: Searches) -> Table:
    """p values of the searches against the clustered chance, corrected over the systems (Holm)."""
    plain = {"unit": "", "scale": 1, "digits": 4}
    return study.searches(frame.measure(m).but(name=f"holm_{m}", **plain) for m in TESTED)


def _mine(study: Searches, theirs: DataFrame) -> str:
    """The system here that is like one of 003; empty: none was studied."""
    ours = str(theirs["ours"].iloc[0])
    names = (name for name in (ours, ours.partition("_wavlm")[0]) if name in study.systems)
    return next(names, "")


def _own(study: Searches, figure: str, evaluator: str, system: str, first: bool) -> list[Value]:
    """Figures of a system by an evaluator, by profile, where they are defined: EERs, with `first`
    those of the first profile alone; of shares above chance the mean."""
    profiles = study.profiles[:1] if first or figure == "cross" else study.profiles
    if figure == "p_cos":
        shares = (study.leakage(system, evaluator, p, "above_p_cos") for p in study.profiles)
        values = [_mean(share.value for share in shares)]
    else:
        lists = (figure if figure == "cross" else f"{figure}_p{p}" for p in profiles)
        values = [study.value(system, one, evaluator, "eer") for one in lists]
    return [value for value in values if not math.isnan(value.value)]


def patterns_table(study: Searches) -> Table:
    """Ranges of 003's figures of each system over its evaluators and profiles, and ours beside. An
    evaluator holds one where the intervals of all profiles meet the range."""
    rows = []
    for trial, table, title in RANKED[:3]:
        for name, own in _theirs(table, trial).items():
            printed = frame.where(own, metric="eer")["number"]
            if printed.empty or not (mine := _mine(study, own)):
                continue
            low, high = printed.min(), printed.max()
            found = {by: _own(study, trial, by, mine, False) for by in study.evaluators}
            held = [by for by, values in found.items() if values
                    and all(v.low <= high and v.high >= low for v in values)]  # fmt: skip
            cells = ("; ".join(dashed(v, EER) for v in values) or "–" for values in found.values())
            told = f"{number(100 * low, 1)} to {number(100 * high, 1)}"
            by = ", ".join(held) or "none"
            rows.append([f"{name}, {mine}", f"{title} (%)", told, *cells, by])
    return Table(["their system, ours", "figure", THEIRS, *study.evaluators, "held by"], rows, 2)


def _mean(values: Iterable[float]) -> Value:
    there = [value for value in values if not math.isnan(value)]
    return Value(sum(there) / len(there)) if there else NOTHING


def _ranked(study: Searches, figure: str, table: str) -> dict[str, dict[str, Value]]:
    """Figures of the systems here that are like 003's, as 003 prints them and as each evaluator
    found them. EERs are those of the first profile; P-cosine, which has no interval, is above
    chance and a mean of profiles."""
    spaces = figure == "p_cos"
    own = _theirs(table, "" if spaces else figure)
    of = {name: frame.where(rows, metric=figure if spaces else "eer")["number"]
          for name, rows in own.items()}  # fmt: skip
    mine = {_mine(study, rows): of[name] for name, rows in own.items()}
    mine.pop("", None)
    chance = of["Random"].iloc[0] if spaces else 0.0
    found = {THEIRS: {name: _mean(_above(n, chance) for n in mine[name]) for name in mine}}
    for by in study.evaluators:
        values = {system: _own(study, figure, by, system, True) for system in mine}
        found[by] = {system: one[0] for system, one in values.items() if one}
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
            rows.append([title, by, told, *("" if by == THEIRS else str(n) for n in counts)])
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
