# SPDX-License-Identifier: Apache-2.0
"""Tables of the NIST study (003, Tables 5 to 8), ours with the published ones beside."""

import math
from collections.abc import Mapping, Sequence

from local.metrics.permutation import holm
from local.report.load import Value
from local.report.published import Published, of_table
from local.report.results import Figure
from local.report.words import Marked, markdown_table, number, parse

ORIGINAL = "original"
WITHOUT = "EER without SDID"  # 003's words for unprotected speech
CERTAIN = 1 - 1e-6  # chance of CCA from which on it says nothing
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
NOTES = """\
P1, P2: pseudo-profiles. Trial 1: original against protected segments, 50 % wanted; trial 2:
protected segments of one profile, 0 % wanted; cross-profile: one speaker's segments of one profile
(target) or of two (nontarget), 0 % wanted. Brackets: 95 % interval over speakers. `–`: not defined
or not measured; a system that draws nothing has one profile. *Above chance*: (value − chance) /
(1 − chance), for chance of CCA and P-cosine depends on segments and dimensions. Rows in italics
are 003's, on telephone speech of 223 speakers with other evaluators: compare the pattern, not
values.
"""
Index = dict[tuple[str, str, str, str], Figure]


def index(figures: Sequence[Figure]) -> Index:
    """Figures by system, attacker (list), evaluator, metric."""
    return {(f.system, f.attacker, f.evaluator, f.metric): f for f in figures}


def _value(found: Index, system: str, attacker: str, evaluator: str, metric: str) -> Value:
    figure = found.get((system, attacker, evaluator, metric))
    if figure is None:
        return Value(math.nan)
    return Value(parse(figure.value), parse(figure.low), parse(figure.high))


def _theirs(table: str, *kinds: str) -> dict[str, list[Published]]:
    """Figures of a table of 003 by system, in its order; kinds: how their attackers begin."""
    found: dict[str, list[Published]] = {}
    for figure in of_table("003", table):
        if figure.ours != ORIGINAL and figure.attacker.startswith(kinds):
            found.setdefault(figure.system, []).append(figure)
    return found


def _published(name: str, cells: Sequence[str]) -> list[str]:
    return [Marked(f"*003 {name}*"), *cells]


def detection(
    found: Index, systems: Sequence[str], evaluators: Sequence[str], profiles: Sequence[str]
) -> str:
    """Table 5: EER (%) of trial sets 1 and 2 by evaluator and profile."""
    parts = []
    for trial in ("trial1", "trial2"):
        head = ["system", *(f"{e}, P{p}" for e in evaluators for p in profiles)]
        original = [_value(found, ORIGINAL, "trial2", e, "eer").text(100) for e in evaluators]
        rows = [[WITHOUT, *(cell for cell in original for _ in profiles)]]
        for system in systems:
            cells = [
                _value(found, system, f"{trial}_p{p}", e, "eer").text(100)
                for e in evaluators
                for p in profiles
            ]
            rows.append([system, *cells])
        title = (
            "Trial set 1: original against protected"
            if trial == "trial1"
            else ("Trial set 2: consistency and collision")
        )
        heads = ["system", *(f"{e} P{p}" for e in ("TitaNet", "ECAPA", "Olive") for p in (1, 2))]
        theirs = [
            _published(name, [f.value for f in own]) for name, own in _theirs("5", trial).items()
        ]
        printed = [f.value for f in of_table("003", "5, unprotected")]
        theirs.insert(0, _published(WITHOUT, [value for value in printed for _ in (1, 2)]))
        parts += [
            f"### {title}, EER (%)",
            markdown_table(head, rows),
            markdown_table(heads, theirs),
        ]
    return "\n\n".join(parts)


def search(
    found: Index, systems: Sequence[str], evaluators: Sequence[str], profiles: Sequence[str]
) -> str:
    """Table 6: AUC-CMC, mean ranks, cross-profile EER."""
    head = ["system", "evaluator", "profile", "AUC-CMC", "its chance", "clustered", "mean rank"]
    head += ["chance", "mean rank of all mates", "chance", "cross-profile EER (%)"]
    rows = []
    for system, evaluator, p in _all(systems, evaluators, profiles):
        where = (found, system, f"leakage_p{p}", evaluator)
        cross = _value(found, system, "cross", evaluator, "eer") if p == profiles[0] else None
        rows.append(
            [system, evaluator, f"P{p}"]
            + [_value(*where, metric).text(1, digits) for metric, digits in SEARCH]
            + ["" if cross is None else cross.text(100)]
        )
    heads = ["system", "AUC-CMC", "mean rank", "cross-profile EER: TitaNet", "ECAPA"]
    theirs = [
        _published(name, [*(f.value for f in own), *["–"] * (len(heads) - 1 - len(own))])
        for name, own in _theirs("6", "").items()
    ]
    return f"{markdown_table(head, rows)}\n\n{markdown_table(heads, theirs)}"


def hits(
    found: Index, systems: Sequence[str], evaluators: Sequence[str], profiles: Sequence[str]
) -> str:
    """Table 7: CMC (%) at the ranks, mean over profiles and evaluators; then each by itself."""
    head = ["system", "evaluator, profile", *(f"@{k}" for k in RANKS)]
    rows = []
    for system in systems:
        every = [
            [_value(found, system, f"leakage_p{p}", e, f"cmc_{k}").value for k in RANKS]
            for e in evaluators
            for p in profiles
        ]
        there = [row for row in every if not math.isnan(row[0])]
        mean = [100 * sum(column) / len(column) for column in zip(*there, strict=True)]
        cells = [number(value, 2) for value in mean] or ["–"] * len(RANKS)
        rows.append([system, f"mean of {len(there)}", *cells])
    for system, evaluator, p in _all(systems, evaluators, profiles):
        for prefix, name in CHANCES.items():
            values = [
                _value(found, system, f"leakage_p{p}", evaluator, f"{prefix}cmc_{k}").text(100)
                for k in RANKS
            ]
            rows.append([system, f"{evaluator}, P{p}{name}", *values])
    heads = ["system", *(f"@{k}" for k in RANKS)]
    theirs = [_published(name, [f.value for f in own]) for name, own in _theirs("7", "").items()]
    return f"{markdown_table(head, rows)}\n\n{markdown_table(heads, theirs)}"


def space(
    found: Index, systems: Sequence[str], evaluators: Sequence[str], profiles: Sequence[str]
) -> str:
    """Table 8: canonical correlation and Procrustes, beside their chance levels.

    Chance depends on the number of segments and dimensions (0.459 and 0.212 hold for 003's only).
    What is above it is also given as a share of what could be: (value - chance) / (1 - chance).
    """
    metrics = (("cca_top10", 3), ("p_mse", 4), ("p_cos", 3), ("p_cos_held_out", 3))
    head = ["system", "evaluator", "profile", "segments"]
    head += ["CCA top 10", "chance", "P-MSE", "chance", "P-cosine", "chance"]
    head += ["P-cosine held out", "chance"]
    head += ["CCA above chance (%)", "P-cosine above chance (%)"]
    rows = []
    for system, evaluator, p in _all(systems, evaluators, profiles):
        cells = []
        for metric, digits in metrics:
            both = [
                _value(found, system, f"leakage_p{p}", evaluator, prefix + metric)
                for prefix in ("", "chance_")
            ]
            if metric == "cca_top10" and both[1].value > CERTAIN:  # too few segments
                both = [Value(math.nan)] * 2
            cells += [value.text(1, digits) for value in both]
        figure = found.get((system, f"leakage_p{p}", evaluator, "p_cos"))
        for metric in ("cca_top10", "p_cos"):
            value, chance = (
                _value(found, system, f"leakage_p{p}", evaluator, prefix + metric).value
                for prefix in ("", "chance_")
            )
            cells.append(Value(_above(value, chance)).text(100))
        rows.append([system, evaluator, f"P{p}", figure.n_segments if figure else "–", *cells])
    heads = ["system", "CCA top 10", "P-MSE", "P-cosine", *head[-2:]]
    printed = _theirs("8", "")
    chances = {f.metric: f.number for f in printed["Random"]}
    theirs = []
    for name, own in printed.items():
        above = [
            number(100 * _above(f.number, chances[f.metric]), 1) for f in own if f.metric != "p_mse"
        ]
        theirs.append(_published(name, [*(f.value for f in own), *above]))
    return f"{markdown_table(head, rows)}\n\n{markdown_table(heads, theirs)}"


def significance(
    found: Index, systems: Sequence[str], evaluators: Sequence[str], profiles: Sequence[str]
) -> str:
    """p values of the searches against the clustered chance, corrected over the systems (Holm)."""
    head = ["system", "evaluator", "profile"]
    head += [f"{title}{what}" for _, title in TESTED for what in (": p", ", corrected")]
    corrected: dict[tuple[str, str, str, str], float] = {}
    for evaluator in evaluators:
        for p in profiles:
            for metric, _ in TESTED:
                values = [
                    _value(found, system, f"leakage_p{p}", evaluator, f"p_value_{metric}").value
                    for system in systems
                ]
                for system, one in zip(systems, holm(values), strict=True):
                    corrected[system, evaluator, p, metric] = one
    rows = []
    for system, evaluator, p in _all(systems, evaluators, profiles):
        cells = []
        for metric, _ in TESTED:
            value = _value(found, system, f"leakage_p{p}", evaluator, f"p_value_{metric}")
            both = (value.value, corrected[system, evaluator, p, metric])
            cells += [Value(one).text(1, 4) for one in both]
        rows.append([system, evaluator, f"P{p}", *cells])
    return markdown_table(head, rows)


def _above(value: float, chance: float) -> float:
    """Share of what is possible above chance; undefined where chance is all that is possible."""
    return (value - chance) / (1 - chance) if chance < 1 - 1e-9 else math.nan


def _all(
    systems: Sequence[str], evaluators: Sequence[str], profiles: Sequence[str]
) -> list[tuple[str, str, str]]:
    return [(s, e, p) for s in systems for e in evaluators for p in profiles]


def render(corpus: str, figures: Sequence[Figure], origin: Mapping[str, str]) -> str:
    """RESULTS.md. Attackers of the figures: trial1_p<p>, trial2_p<p>, cross, leakage_p<p>."""
    systems = list(dict.fromkeys(f.system for f in figures if f.system != ORIGINAL))
    evaluators = list(dict.fromkeys(f.evaluator for f in figures))
    found_p = {f.attacker.rpartition("_p")[2] for f in figures if "_p" in f.attacker}
    profiles = sorted(found_p, key=int)
    found = index(figures)
    given = (found, systems, evaluators, profiles)
    counted = sorted(
        {
            (f.attacker.split("_p")[0], f.n_speakers, f.n_segments, f.n_target, f.n_nontarget)
            for f in figures
            if f.metric == "eer"
        }
    )
    counts = markdown_table(["list", "speakers", "segments", "target", "nontarget"], counted)
    chosen = " and ".join(f"P{p}" for p in profiles)
    parts = [
        f"# Identity leakage after NIST's study (003): {corpus}",
        f"{NOTES.strip()}\nProfiles tested: {chosen}.",
        counts,
        "## EER of trial sets (003, Table 5)",
        detection(*given),
        "## Identity search and cross-profile (003, Table 6)",
        search(*given),
        "## CMC in % (003, Table 7)",
        hits(*given),
        "## Embedding spaces (003, Table 8)",
        space(*given),
        "## More than chance?",
        "One-sided permutation tests against the clustered chance level: the names under which the "
        "speakers are looked for are permuted. Corrected: over the systems of the table, by Holm, "
        "within evaluator, profile and figure.",
        significance(*given),
        "003's random AUC-CMC (0.015) does not fit its Table 7, which implies 0.115; its mean rank "
        "736 counts all mates. Chance of CCA depends on segments and dimensions, so 0.6 is no "
        "absolute threshold (docs/metrics); with too few segments it is 1 by construction, and is "
        "left out.",
        "## Origin\n\n" + "\n".join(f"- {name}: {value}" for name, value in origin.items()),
    ]
    return "\n\n".join(parts) + "\n"
