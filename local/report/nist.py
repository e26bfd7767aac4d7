# SPDX-License-Identifier: Apache-2.0
"""Tables of the NIST study (003, Tables 5 to 8), ours with the published ones beside."""

import math
from collections.abc import Mapping, Sequence

from local.report.load import Value
from local.report.results import Figure
from local.report.words import Marked, markdown_table, number, parse

ORIGINAL = "original"
RANKS = (1, 5, 10, 20, 50)
# 003, Table 5: EER in %, trial set 1 then 2: TitaNet P1 P2, ECAPA P1 P2, Olive P1 P2.
PUBLISHED_5: Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "Baseline (kNN-VC)": (
        (34.17, 34.78, 35.82, 38.76, 34.05, 32.24),
        (1.14, 1.42, 1.28, 1.37, 1.09, 1.38),
    ),
    "VOXLET": (
        (33.73, 33.58, 34.18, 33.58, 36.57, 36.06),
        (42.39, 42.49, 44.29, 43.34, 41.95, 42.32),
    ),
    "RASP": ((33.01, 37.45, 38.02, 41.82, 29.97, 34.03), (6.10, 6.01, 9.46, 9.09, 5.82, 12.43)),
    "SHADOW": (
        (42.63, 43.44, 46.03, 44.77, 43.25, 43.10),
        (26.06, 26.49, 26.47, 26.83, 21.94, 26.78),
    ),
    "PHORTRESS": (
        (50.03, 49.12, 51.14, 47.86, 46.57, 46.78),
        (19.23, 19.02, 22.89, 21.02, 24.90, 24.15),
    ),
}
# 003, Tables 6 to 8. Cross-profile EER: TitaNet, ECAPA (%). CMC at 1, 5, 10, 20, 50 (%).
PUBLISHED: Mapping[str, dict[str, tuple[float, ...]]] = {
    "Random": {"auc": (0.015, 736), "cmc": (0.48, 2.39, 4.73, 9.22, 21.48)}
    | {"space": (0.459, 0.008, 0.212)},
    "Baseline (kNN-VC)": {"auc": (0.169, 274), "cross": (1.2, 1.4)}
    | {"cmc": (3.01, 9.25, 12.32, 16.63, 24.80), "space": (0.875, 0.005, 0.502)},
    "VOXLET": {"auc": (0.373, 158), "cross": (50.6, 49.9)}
    | {"cmc": (12.29, 25.60, 31.15, 37.52, 45.05), "space": (0.627, 0.007, 0.330)},
    "RASP": {"auc": (0.175, 273), "cross": (8.2, 11.3)}
    | {"cmc": (3.02, 8.41, 11.27, 15.48, 24.89), "space": (0.854, 0.005, 0.488)},
    "SHADOW": {"auc": (0.072, 547), "cross": (33.6, 33.8)}
    | {"cmc": (0.86, 3.08, 4.29, 6.59, 11.39), "space": (0.597, 0.007, 0.316)},
    "PHORTRESS": {"auc": (0.067, 540), "cross": (35.5, 36.2)}
    | {"cmc": (0.72, 2.73, 4.07, 6.20, 10.53), "space": (0.760, 0.006, 0.394)},
}
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


def _cell(value: Value, scale: float = 1.0, digits: int = 1) -> str:
    if math.isnan(value.value):
        return "–"
    text = number(scale * value.value, digits)
    if value.bounded:
        low, high = (number(scale * bound, digits) for bound in (value.low, value.high))
        text += f" [{low}, {high}]"
    return text


def _published(name: str, values: Sequence[float], digits: Sequence[int]) -> list[str]:
    cells = [number(value, d) for value, d in zip(values, digits, strict=True)]
    return [Marked(f"*003 {name}*"), *cells]


def detection(
    found: Index, systems: Sequence[str], evaluators: Sequence[str], profiles: Sequence[str]
) -> str:
    """Table 5: EER (%) of trial sets 1 and 2 by evaluator and profile."""
    parts = []
    for number_, trial in ((0, "trial1"), (1, "trial2")):
        head = ["system", *(f"{e}, P{p}" for e in evaluators for p in profiles)]
        original = [_cell(_value(found, ORIGINAL, "trial2", e, "eer"), 100) for e in evaluators]
        rows = [["unprotected", *(cell for cell in original for _ in profiles)]]
        for system in systems:
            cells = [
                _cell(_value(found, system, f"{trial}_p{p}", e, "eer"), 100)
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
        theirs = [_published(name, v[number_], [2] * 6) for name, v in PUBLISHED_5.items()]
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
            + [_cell(_value(*where, metric), 1, digits) for metric, digits in SEARCH]
            + ["" if cross is None else _cell(cross, 100)]
        )
    heads = ["system", "AUC-CMC", "mean rank", "cross-profile EER: TitaNet", "ECAPA"]
    theirs = [
        _published(name, (*v["auc"], *v.get("cross", (math.nan,) * 2)), [3, 0, 1, 1])
        for name, v in PUBLISHED.items()
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
                _cell(_value(found, system, f"leakage_p{p}", evaluator, f"{prefix}cmc_{k}"), 100)
                for k in RANKS
            ]
            rows.append([system, f"{evaluator}, P{p}{name}", *values])
    heads = ["system", *(f"@{k}" for k in RANKS)]
    theirs = [_published(name, v["cmc"], [2] * 5) for name, v in PUBLISHED.items()]
    return f"{markdown_table(head, rows)}\n\n{markdown_table(heads, theirs)}"


def space(
    found: Index, systems: Sequence[str], evaluators: Sequence[str], profiles: Sequence[str]
) -> str:
    """Table 8: canonical correlation and Procrustes, beside their chance levels.

    Chance depends on the number of segments and dimensions (0.459 and 0.212 hold for 003's only).
    What is above it is also given as a share of what could be: (value - chance) / (1 - chance).
    """
    metrics = (("cca_top10", 3), ("p_mse", 4), ("p_cos", 3))
    head = ["system", "evaluator", "profile", "segments"]
    head += ["CCA top 10", "chance", "P-MSE", "chance", "P-cosine", "chance"]
    head += ["CCA above chance (%)", "P-cosine above chance (%)"]
    rows = []
    for system, evaluator, p in _all(systems, evaluators, profiles):
        cells = []
        for metric, digits in metrics:
            for prefix in ("", "chance_"):
                where = (found, system, f"leakage_p{p}", evaluator, prefix + metric)
                cells.append(_cell(_value(*where), 1, digits))
        figure = found.get((system, f"leakage_p{p}", evaluator, "p_cos"))
        for metric in ("cca_top10", "p_cos"):
            value, chance = (
                _value(found, system, f"leakage_p{p}", evaluator, prefix + metric).value
                for prefix in ("", "chance_")
            )
            cells.append(_cell(Value(_above(value, chance)), 100))
        rows.append([system, evaluator, f"P{p}", figure.n_segments if figure else "–", *cells])
    heads = ["system", "CCA top 10", "P-MSE", "P-cosine", *head[-2:]]
    theirs = []
    for name, published in PUBLISHED.items():
        random = PUBLISHED["Random"]["space"]
        above = [100 * _above(published["space"][i], random[i]) for i in (0, 2)]
        theirs.append(_published(name, [*published["space"], *above], [3, 3, 3, 1, 1]))
    return f"{markdown_table(head, rows)}\n\n{markdown_table(heads, theirs)}"


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
        "003's random AUC-CMC (0.015) does not fit its Table 7, which implies 0.115; its mean rank "
        "736 counts all mates. Chance of CCA depends on segments and dimensions, so 0.6 is no "
        "absolute threshold (docs/metrics).",
        "## Origin\n\n" + "\n".join(f"- {name}: {value}" for name, value in origin.items()),
    ]
    return "\n\n".join(parts) + "\n"
