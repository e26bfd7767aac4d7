# SPDX-License-Identifier: Apache-2.0
"""Tables of the NIST study (003, Tables 5 to 8), ours with the published ones beside."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path

from local.metrics.permutation import holm
from local.report.load import Value
from local.report.published import CITED, Published, of_table
from local.report.results import Figure, read_table
from local.report.tables import CERTAIN, Table
from local.report.words import Marked, markdown_table, number, parse
from utils.cli import UserError

ORIGINAL = "original"
THEIRS = CITED["003"]
WITHOUT = "EER without SDID"  # their words for unprotected speech
TESTED = (
    ("cmc_1", "CMC@1"),
    ("cmc_10", "CMC@10"),
    ("auc_cmc", "AUC-CMC"),
    ("mean_rank", "mean rank"),
)
RANKS = (1, 5, 10, 20, 50)
CHANCES = {"": "", "chance_": ", chance", "chance_clustered_": ", clustered chance"}
SEARCH = (
    ("auc_cmc", 3), ("chance_auc_cmc", 3), ("chance_clustered_auc_cmc", 3), ("mean_rank", 1),
    ("chance_mean_rank", 1), ("mean_rank_all_mates", 1), ("chance_mean_rank_all_mates", 1),
)  # fmt: skip
NOTES = f"""\
P1, P2: pseudo-profiles. Trial 1: original against protected segments, 50 % wanted; trial 2:
protected segments of one profile, 0 % wanted; cross-profile: one speaker's segments of one profile
(target) or of two (nontarget), 0 % wanted. Brackets: 95 % interval over speakers. `–`: not defined
or not measured; a system that draws nothing has one profile. *Above chance*: (value − chance) /
(1 − chance), for chance of CCA and P-cosine depends on segments and dimensions. Rows in italics
are of {THEIRS}, on telephone speech of 223 speakers with other evaluators: compare the
pattern, not values.
"""
Index = dict[tuple[str, str, str, str], Figure]  # by system, attacker (list), evaluator, metric
RANKED = (  # what systems are ordered by, and the table of 003 that prints it
    ("trial1", "5", "EER, trial 1"),
    ("trial2", "5", "EER, trial 2"),
    ("cross", "6", "EER, cross-profile"),
    ("p_cos", "8", "P-cosine above chance"),
)
ABOVE = ["CCA above chance (%)", "P-cosine above chance (%)"]


@dataclass(frozen=True)
class Study:
    """The figures of a study. Attackers: trial1_p<p>, trial2_p<p>, cross, leakage_p<p>."""

    found: Index
    systems: Sequence[str]
    evaluators: Sequence[str]
    profiles: Sequence[str]

    @classmethod
    def of(cls, figures: Sequence[Figure]) -> "Study":
        """Systems and evaluators in the order in which the figures name them."""
        systems = dict.fromkeys(f.system for f in figures if f.system != ORIGINAL)
        evaluators = dict.fromkeys(f.evaluator for f in figures)
        profiles = {f.attacker.rpartition("_p")[2] for f in figures if "_p" in f.attacker}
        found = {(f.system, f.attacker, f.evaluator, f.metric): f for f in figures}
        return cls(found, list(systems), list(evaluators), sorted(profiles, key=int))

    def value(self, system: str, attacker: str, evaluator: str, metric: str) -> Value:
        """NaN where it was not measured, or is not defined."""
        figure = self.found.get((system, attacker, evaluator, metric))
        if figure is None:
            return Value(math.nan)
        return Value(parse(figure.value), parse(figure.low), parse(figure.high))

    def leakage(self, system: str, evaluator: str, profile: str, metric: str) -> Value:
        """Of the search and of the spaces."""
        return self.value(system, f"leakage_p{profile}", evaluator, metric)

    def all(self) -> list[tuple[str, str, str]]:
        """Systems, evaluators, and profiles that were searched: one of who draws nothing."""
        return [
            (system, evaluator, p)
            for system, evaluator, p in product(self.systems, self.evaluators, self.profiles)
            if (system, f"leakage_p{p}", evaluator, "p_cos") in self.found
        ]

    def above_chance(self, system: str, evaluator: str, profile: str, metric: str) -> float:
        """Share of what is possible above chance."""
        value, chance = (
            self.leakage(system, evaluator, profile, prefix + metric).value
            for prefix in ("", "chance_")
        )
        return _above(value, chance)


def _above(value: float, chance: float) -> float:
    """(value - chance) / (1 - chance); undefined where chance is all that is possible."""
    return (value - chance) / (1 - chance) if chance < CERTAIN else math.nan


def _theirs(table: str, *kinds: str) -> dict[str, list[Published]]:
    """Figures of a table of 003 by system, in its order; kinds: how their attackers begin."""
    found: dict[str, list[Published]] = {}
    for figure in of_table("003", table):
        if figure.ours != ORIGINAL and figure.attacker.startswith(kinds):
            found.setdefault(figure.system, []).append(figure)
    return found


def _published(name: str, cells: Sequence[str]) -> list[str]:
    return [Marked(f"*{THEIRS}: {name}*"), *cells]


def trial_table(study: Study, trial: str) -> Table:
    """Of Table 5: EER (%) of a trial set, trial1 or trial2, by evaluator and profile."""
    head = ["system", *(f"{e}, P{p}" for e, p in product(study.evaluators, study.profiles))]
    original = [study.value(ORIGINAL, "trial2", e, "eer").text(100) for e in study.evaluators]
    rows = [[WITHOUT, *(cell for cell in original for _ in study.profiles)]]
    for system in study.systems:
        cells = [
            study.value(system, f"{trial}_p{p}", e, "eer").text(100)
            for e, p in product(study.evaluators, study.profiles)
        ]
        rows.append([system, *cells])
    return Table(head, rows, 1)


def printed_trials(trial: str) -> Table:
    """The same of 003."""
    head = ["system", *(f"{e} P{p}" for e in ("TitaNet", "ECAPA", "Olive") for p in (1, 2))]
    rows = [_published(name, [f.value for f in own]) for name, own in _theirs("5", trial).items()]
    if trial == "trial1":  # under trial set 2 the paper has a dash
        printed = [f.value for f in of_table("003", "5, unprotected")]
        rows.insert(0, _published(WITHOUT, [value for value in printed for _ in (1, 2)]))
    return Table(head, rows, 1)


def search_table(study: Study) -> Table:
    """Table 6: AUC-CMC, mean ranks, cross-profile EER."""
    head = ["system", "evaluator", "profile", "AUC-CMC", "its chance", "clustered", "mean rank"]
    head += ["chance", "mean rank of all mates", "chance", "cross-profile EER (%)"]
    rows = []
    for system, evaluator, p in study.all():
        first = p == study.profiles[0]
        cross = study.value(system, "cross", evaluator, "eer").text(100) if first else ""
        own = [study.leakage(system, evaluator, p, name).text(1, n) for name, n in SEARCH]
        rows.append([system, evaluator, f"P{p}", *own, cross])
    return Table(head, rows, 3)


def printed_search() -> Table:
    """The same of 003."""
    head = ["system", "AUC-CMC", "mean rank", "cross-profile EER: TitaNet", "ECAPA"]
    rows = [
        _published(name, [*(f.value for f in own), *["–"] * (len(head) - 1 - len(own))])
        for name, own in _theirs("6", "").items()
    ]
    return Table(head, rows, 1)


def hits_table(study: Study) -> Table:
    """Table 7: CMC (%) at the ranks, mean over profiles and evaluators."""
    rows = []
    for system in study.systems:
        every = [
            [study.leakage(system, e, p, f"cmc_{k}").value for k in RANKS]
            for e, p in product(study.evaluators, study.profiles)
        ]
        there = [row for row in every if not math.isnan(row[0])]
        mean = [100 * sum(column) / len(column) for column in zip(*there, strict=True)]
        cells = [number(value, 2) for value in mean] or ["–"] * len(RANKS)
        rows.append([system, str(len(there)), *cells])
    return Table(["system", "mean of", *(f"@{k}" for k in RANKS)], rows, 1)


def all_hits_table(study: Study) -> Table:
    """Each by itself, with both chance levels."""
    rows = []
    for system, evaluator, p in study.all():
        for prefix, name in CHANCES.items():
            cells = [
                study.leakage(system, evaluator, p, f"{prefix}cmc_{k}").text(100) for k in RANKS
            ]
            rows.append([system, f"{evaluator}, P{p}{name}", *cells])
    return Table(["system", "evaluator, profile", *(f"@{k}" for k in RANKS)], rows, 2)


def printed_hits() -> Table:
    """The same of 003."""
    rows = [_published(name, [f.value for f in own]) for name, own in _theirs("7", "").items()]
    return Table(["system", *(f"@{k}" for k in RANKS)], rows, 1)


def space_table(study: Study) -> Table:
    """Table 8: canonical correlation and Procrustes, beside their chance levels.

    Chance depends on the number of segments and dimensions (0.459 and 0.212 hold for 003's only).
    What is above it is also given as a share of what could be: (value - chance) / (1 - chance).
    Canonical correlation is left out where too few segments make it 1 by construction.
    """
    metrics = (("cca_top10", 3), ("p_mse", 4), ("p_cos", 3), ("p_cos_held_out", 3))
    titles = ("CCA top 10", "P-MSE", "P-cosine", "P-cosine held out")
    head = ["system", "evaluator", "profile", "segments"]
    head += [word for title in titles for word in (title, "chance")] + ABOVE
    rows = []
    for system, evaluator, p in study.all():
        cells = []
        for metric, digits in metrics:
            both = [
                study.leakage(system, evaluator, p, prefix + metric) for prefix in ("", "chance_")
            ]
            if metric == "cca_top10" and both[1].value > CERTAIN:  # too few segments
                both = [Value(math.nan)] * 2
            cells += [value.text(1, digits) for value in both]
        figure = study.found.get((system, f"leakage_p{p}", evaluator, "p_cos"))
        cells += [
            Value(study.above_chance(system, evaluator, p, metric)).text(100)
            for metric in ("cca_top10", "p_cos")
        ]
        rows.append([system, evaluator, f"P{p}", figure.n_segments if figure else "–", *cells])
    if all(row[4] == "–" for row in rows):  # canonical correlation says nothing anywhere
        keep = [i for i, title in enumerate(head) if i not in (4, 5) and title != ABOVE[0]]
        head, rows = [head[i] for i in keep], [[row[i] for i in keep] for row in rows]
    return Table(head, rows, 3)


def printed_space() -> Table:
    """The same of 003."""
    printed = _theirs("8", "")
    chances = {f.metric: f.number for f in printed["Random"]}
    rows = []
    for name, own in printed.items():
        above = [
            number(100 * _above(f.number, chances[f.metric]), 1) for f in own if f.metric != "p_mse"
        ]
        rows.append(_published(name, [*(f.value for f in own), *above]))
    return Table(["system", "CCA top 10", "P-MSE", "P-cosine", *ABOVE], rows, 1)


def significance_table(study: Study) -> Table:
    """p values of the searches against the clustered chance, corrected over the systems (Holm)."""
    head = ["system", "evaluator", "profile", *(title for _, title in TESTED)]
    corrected: dict[tuple[str, str, str, str], float] = {}
    for evaluator, p, (metric, _) in product(study.evaluators, study.profiles, TESTED):
        values = [
            study.leakage(system, evaluator, p, f"p_value_{metric}").value
            for system in study.systems
        ]
        for system, one in zip(study.systems, holm(values), strict=True):
            corrected[system, evaluator, p, metric] = one
    rows = []
    for system, evaluator, p in study.all():
        cells = [Value(corrected[system, evaluator, p, name]).text(1, 4) for name, _ in TESTED]
        rows.append([system, evaluator, f"P{p}", *cells])
    return Table(head, rows, 3)


def _mine(study: Study, theirs: Published) -> str:
    """The system here that is like one of 003; empty: none was studied."""
    for name in (theirs.ours, theirs.ours.partition("_wavlm")[0]):
        if name in study.systems:
            return name
    return ""


def patterns_table(study: Study) -> Table:
    """What 003 prints of each system as a range over its evaluators and profiles, and ours. An
    evaluator holds it where the intervals of all profiles meet the range."""
    head = ["their system, ours", "figure", THEIRS, *study.evaluators, "held by"]
    rows = []
    for trial, table, title in RANKED[:3]:
        for name, own in _theirs(table, trial).items():
            printed = [f.number for f in own if f.metric == "eer"]
            if not printed or not (mine := _mine(study, own[0])):
                continue
            low, high = min(printed), max(printed)
            lists = [trial] if trial == "cross" else [f"{trial}_p{p}" for p in study.profiles]
            cells, held = [], []
            for evaluator in study.evaluators:
                values = [study.value(mine, one, evaluator, "eer") for one in lists]
                there = [value for value in values if not math.isnan(value.value)]
                cells.append("; ".join(value.text(100) for value in there) or "–")
                if there and all(v.low <= high and v.high >= low for v in there):
                    held.append(evaluator)
            told = f"{number(100 * low, 1)} to {number(100 * high, 1)}"
            rows.append([f"{name}, {mine}", f"{title} (%)", told, *cells, _some(held)])
    return Table(head, rows, 2)


def _some(held: Sequence[str]) -> str:
    return ", ".join(held) or "none"


Ranked = dict[str, Value]


def _mean(values: Sequence[float]) -> Value:
    there = [value for value in values if not math.isnan(value)]
    return Value(sum(there) / len(there) if there else math.nan)


def _ranked(study: Study, figure: str, own: Mapping[str, Sequence[Published]]) -> dict[str, Ranked]:
    """Of systems here that are like 003's: what 003 prints and each evaluator found. EERs are of
    the first profile; P-cosine, which has no interval, is above chance and a mean of profiles."""
    mine = {_mine(study, rows[0]): rows for rows in own.values()}
    mine.pop("", None)
    if figure == "p_cos":
        (random,) = [f.number for f in own["Random"] if f.metric == figure]
        printed = {
            system: _mean([_above(f.number, random) for f in rows if f.metric == figure])
            for system, rows in mine.items()
        }
    else:
        printed = {
            system: _mean([f.number for f in rows if f.metric == "eer"])
            for system, rows in mine.items()
        }
    found: dict[str, Ranked] = {THEIRS: printed}
    for evaluator in study.evaluators:
        found[evaluator] = {}
        for system in mine:
            if figure == "p_cos":
                above = [study.above_chance(system, evaluator, p, figure) for p in study.profiles]
                value = _mean(above)
            else:
                one = figure if figure == "cross" else f"{figure}_p{study.profiles[0]}"
                value = study.value(system, one, evaluator, "eer")
            if not math.isnan(value.value):
                found[evaluator][system] = value
    return found


def order_table(study: Study) -> Table:
    """Systems, the highest figure first; of their pairs, how many stand as in 003 with intervals
    apart, how many the other way round, and of how many the intervals overlap."""
    rows = []
    for figure, table, title in RANKED:
        kind = "" if figure == "p_cos" else figure
        found = _ranked(study, figure, _theirs(table, kind))
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


TABLES: dict[str, Callable[[Study], Table]] = {
    "patterns": patterns_table,
    "order": order_table,
    "trial1": lambda study: trial_table(study, "trial1"),
    "trial2": lambda study: trial_table(study, "trial2"),
    "search": search_table,
    "hits": hits_table,
    "space": space_table,
    "significance": significance_table,
}


def nist_table(words: Sequence[str], page: Path) -> Table:
    """`<!-- table: nist FOLDER... NAME -->`: one of TABLES, of the metrics.csv of FOLDERs beside
    the page, which hold different systems or evaluators."""
    *folders, name = words or ("",)
    if not folders or name not in TABLES:
        raise UserError(f"{page}: table: nist takes FOLDER... and one of {', '.join(TABLES)}")
    tables = [page.parent / folder / "metrics.csv" for folder in folders]
    return TABLES[name](Study.of([f for path in tables for f in read_table(path, Figure)]))


def render(corpus: str, figures: Sequence[Figure], origin: Mapping[str, str]) -> str:
    """RESULTS.md."""
    study = Study.of(figures)
    counted = sorted(
        {
            (f.attacker.split("_p")[0], f.n_speakers, f.n_segments, f.n_target, f.n_nontarget)
            for f in figures
            if f.metric == "eer"
        }
    )
    counts = markdown_table(["list", "speakers", "segments", "target", "nontarget"], counted)
    chosen = " and ".join(f"P{p}" for p in study.profiles)
    parts = [
        f"# Identity leakage after NIST's study ({THEIRS}): {corpus}",
        f"{NOTES.strip()}\nProfiles tested: {chosen}.",
        counts,
        "## Patterns",
        "Held by: the evaluators for whom the intervals of all profiles meet the printed range.",
        patterns_table(study).markdown(),
        "Pairs of systems: as there with intervals apart, the other way round, intervals overlap. "
        "EERs are those of the first profile.",
        order_table(study).markdown(),
        "## EER of trial sets (Table 5)",
        "### Trial set 1: original against protected, EER (%)",
        trial_table(study, "trial1").markdown(),
        printed_trials("trial1").markdown(),
        "### Trial set 2: consistency and collision, EER (%)",
        trial_table(study, "trial2").markdown(),
        printed_trials("trial2").markdown(),
        "## Identity search and cross-profile (Table 6)",
        search_table(study).markdown(),
        printed_search().markdown(),
        "## CMC in % (Table 7)",
        hits_table(study).markdown(),
        all_hits_table(study).markdown(),
        printed_hits().markdown(),
        "## Embedding spaces (Table 8)",
        space_table(study).markdown(),
        printed_space().markdown(),
        "## More than chance?",
        "One-sided permutation tests against the clustered chance level: the names under which the "
        "speakers are looked for are permuted. Corrected: over the systems of the table, by Holm, "
        "within evaluator, profile and figure.",
        significance_table(study).markdown(),
        f"The random AUC-CMC of {THEIRS} (0.015) does not fit its Table 7, which implies 0.115; "
        "its mean rank 736 counts all mates. Chance of CCA depends on segments and dimensions, so "
        "0.6 is no absolute threshold (docs/metrics); with too few segments it is 1 by "
        "construction, and is left out.",
        "## Origin\n\n" + "\n".join(f"- {name}: {value}" for name, value in origin.items()),
    ]
    return "\n\n".join(parts) + "\n"
