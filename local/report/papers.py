# SPDX-License-Identifier: Apache-2.0
"""The papers table by table: printed figures beside ours, and what became of each claim."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from local.report.published import CITED, FOLDER, Published, of_table
from local.report.results import Figure, read_table
from local.report.tables import (
    ATTACK_COLUMNS,
    CALIBRATION_COLUMNS,
    LEAKAGE_COLUMNS,
    SIMILARITY_COLUMNS,
    Column,
    Table,
    cell,
)
from local.report.words import UTILITY, Marked, code
from utils.cli import UserError

VERDICTS = ("holds", "holds in kind", "does not hold", "not decided here", "cannot be run here")
# Of a metric in two tables the first has the title.
_TITLES = {
    column.metric: column.title.rpartition(" (")[0] or column.title
    for column in reversed(
        tuple(
            chain(ATTACK_COLUMNS, SIMILARITY_COLUMNS, CALIBRATION_COLUMNS, LEAKAGE_COLUMNS)
        )
    )
} | {
    "d_ece_oa_oo": "D_ECE avoided", "cllr_min_oa_oo": "min Cllr avoided",
    "g_d_ece_lists": "gain of D_ECE", "g_cllr_min_lists": "gain of min Cllr",
    "deid_2020": "DeID, 2020 formula", "g_vd_2020": "G_VD, 2020 formula", "wer": "WER",
    "uar": "UAR", "p_mse": "P-MSE", "eer_fall": "fall of the EER", "rtf": "RTF",
    "cosine_x": "cosine of x", "cosine_phi_1": "of φ1", "cosine_phi_2": "of φ2",
    "cosine_phi": "of φ", "mean_cosine": "mean cosine", "min_cosine": "smallest",
    "max_cosine": "largest",
} | {f"cmc_{k}": f"CMC@{k}" for k in (5, 20, 50)}  # fmt: skip
_OPTIONS = ("sets", "evaluators", "systems", "attackers", "prefix", "rows")


@dataclass(frozen=True)
class Claim:
    """A statement of a paper. place: where it stands there; verdict: one of VERDICTS; why: what was
    seen here, or what is missing, with a link to the row that carries it (relative to docs/papers).
    """

    paper: str
    place: str
    claim: str
    verdict: str
    why: str


def claims() -> list[Claim]:
    """All of docs/published/claims.tsv; UserError for a verdict that is none."""
    path = FOLDER / "claims.tsv"
    found = list(read_table(path, Claim, delimiter="\t"))
    for line, claim in enumerate(found, 2):
        if claim.verdict not in VERDICTS:
            raise UserError(
                f"{path}:{line}: {claim.verdict} is no verdict; known: {', '.join(VERDICTS)}"
            )
    return found


def claims_table(words: Sequence[str], page: Path) -> Table:
    """`<!-- table: claims 002 -->`: a row a claim of the paper; `claims` alone: of all papers,
    without the reasons."""
    if not words:
        every = [
            [Marked(f"[{CITED[c.paper]}]({c.paper}.md)"), Marked(c.claim), c.verdict]
            for c in claims()
        ]
        return Table(["paper", "claim", "here"], every, 2)
    own = [claim for claim in claims() if [claim.paper] == list(words)]
    if not own:
        raise UserError(f"{page}: a table of claims names one paper, 000 to 004, or none")
    rows: list[list[str]] = [
        [Marked(c.claim), c.place, Marked(f"**{c.verdict}**"), Marked(c.why)] for c in own
    ]
    return Table(["claim", "where", "here", "why"], rows, 2)


def verdicts_table(words: Sequence[str], page: Path) -> Table:
    """`<!-- table: verdicts -->`: how many claims of each paper have which verdict."""
    if words:
        raise UserError(f"{page}: a table of verdicts takes no words")
    found = claims()
    rows: list[list[str]] = [
        [
            Marked(f"[{CITED[paper]}]({paper}.md)"),
            *(str(sum((c.paper, c.verdict) == (paper, v) for c in found)) for v in VERDICTS),
        ]
        for paper in sorted({claim.paper for claim in found})
    ]
    return Table(["paper", *VERDICTS], rows, 1)


Key = tuple[str, str, str]  # metric, and evaluator and attacker where a table has several


@dataclass(frozen=True)
class _Beside:
    """What stands beside printed figures. splits: ours, by the paper's name of a set; attackers:
    ours, by the paper's, where they are others; prefix: of our systems' names.
    """

    figures: Sequence[Figure]
    splits: Mapping[str, Sequence[str]]
    evaluators: Sequence[str]
    attackers: Mapping[str, str]
    prefix: str

    def find(self, row: Published, split: str) -> Figure | None:
        names = (self.prefix + row.ours, "" if self.prefix else row.system)
        attacker = self.attackers.get(row.attacker, row.attacker)
        own = [
            f
            for f in self.figures
            if (f.attacker, f.split, f.metric) == (attacker, split, row.metric)
            and f.system in names
            and (row.attacker == UTILITY or f.evaluator in self.evaluators)
        ]
        return own[0] if own else None

    def ours(self, row: Published) -> list[str]:
        """Our sets that stand beside the row's, whether or not there is a figure of it."""
        return [*self.splits.get(row.set.replace(" ", "_"), ())]


def _keys(rows: Sequence[Published]) -> dict[Published, Key]:
    """The column of each figure: its metric, and what else is needed to tell it from others."""
    evaluators = {row.evaluator for row in rows}
    by_evaluator = {r: (r.metric, r.evaluator if len(evaluators) > 1 else "") for r in rows}
    seen: dict[tuple[str, ...], set[str]] = {}
    for row, key in by_evaluator.items():
        seen.setdefault((row.system, row.set, *key), set()).add(row.attacker)
    several = any(len(attackers) > 1 for attackers in seen.values())
    return {r: (*key, r.attacker if several else "") for r, key in by_evaluator.items()}


def _decimals(text: str) -> int:
    return 0 if "e" in text else len(text.partition(".")[2])


def paper_table(words: Sequence[str], page: Path) -> Table:
    """`<!-- table: paper 002:2 [FOLDER... sets=THEIRS:OURS,... evaluators=A,B] [systems=B1] -->`:
    a table of a paper; of the FOLDERs' metrics.csv, beside each figure ours of the same metric.

    A figure of ours is of the split that `sets` names for the paper's set, by one of `evaluators`,
    of the first folder that has it. systems: only these of the paper's. prefix: how the names of
    our systems begin. attackers=THEIRS:OURS: ours is another attacker. rows=systems: a row a
    system, a column a figure and set, where `sets` may name several of ours beside one of theirs.
    In words _ stands for a blank.
    """
    options = dict(word.split("=", 1) for word in words if "=" in word)
    named, *folders = [word for word in words if "=" not in word] or [""]
    paper, _, table = named.partition(":")
    if options.keys() - set(_OPTIONS) or (folders and not {"sets", "evaluators"} <= options.keys()):
        raise UserError(
            f"{page}: table: paper takes PAPER:TABLE, folders with sets= and evaluators=, "
            "systems=, attackers=, prefix=, rows=systems"
        )
    rows = of_table(paper, table.replace("_", " "))
    if "systems" in options:
        wanted = options["systems"].split(",")
        rows = [row for row in rows if row.system.replace(" ", "_") in wanted]
    tables = [page.parent / folder / "metrics.csv" for folder in folders]
    splits: dict[str, list[str]] = {}
    for theirs, own in _pairs(options.get("sets", "")):
        splits.setdefault(theirs, []).append(own)
    beside = _Beside(
        list(chain.from_iterable(read_table(path, Figure) for path in tables)),
        splits,
        options.get("evaluators", "").split(","),
        dict(_pairs(options.get("attackers", ""))),
        options.get("prefix", ""),
    )
    if options.get("rows") == "systems":
        return _by_system(paper, rows, beside)
    if several := [theirs for theirs, own in splits.items() if len(own) > 1]:
        raise UserError(f"{page}: table: paper: several sets beside {several[0]} need rows=systems")
    return _render(paper, rows, beside)


def _pairs(text: str) -> list[tuple[str, str]]:
    """THEIRS:OURS,..."""
    parts = (pair.partition(":") for pair in text.split(","))
    return [(theirs, ours) for theirs, colon, ours in parts if colon]


def _title(key: Key, unit: str, more: str = "") -> str:
    words = filter(None, (_TITLES.get(key[0], key[0]), *key[1:], more))
    return ", ".join(words) + (f" ({unit})" if unit else "")


def _printed(row: Published) -> str:
    text = row.value.replace("-", "−", 1) if row.value.startswith("-") else row.value
    return f"{text} ± {row.spread}" if row.spread else text


def _column(rows: Sequence[Published], metric: str) -> Column:
    """Of ours beside these figures, in the paper's unit and as many decimals."""
    digits = min(max(_decimals(row.value) for row in rows), 3)
    return Column("here", metric, 100 if rows[0].unit == "%" else 1, digits)


def _by_system(paper: str, rows: Sequence[Published], beside: _Beside) -> Table:
    """A row a system, a column a figure and set; after it one for each set of ours."""
    keys = _keys(rows)
    several = len({row.set for row in rows}) > 1
    places: dict[tuple[Key, str, str], list[Published]] = {}
    for row in rows:
        places.setdefault((keys[row], row.set if several else "", row.unit), []).append(row)
    header = [f"system of {CITED[paper]}"]
    lines: dict[str, list[str]] = {row.system: [row.system] for row in rows}
    for (key, of, unit), own in places.items():
        header.append(_title(key, unit, of))
        printed = {row.system: _printed(row) for row in own}
        for system, line in lines.items():
            line.append(printed.get(system, ""))
        column, ours = _column(own, key[0]), beside.ours(own[0])
        for split in ours:
            found = {row.system: beside.find(row, split) for row in own}
            if not any(found.values()):
                continue
            header.append("here" if len(ours) == 1 else f"here, {split}")
            for system, line in lines.items():
                figure = found.get(system)
                line.append(cell(figure, column) if figure else "")
    return Table(header, [*lines.values()], 1)


def _render(paper: str, rows: Sequence[Published], beside: _Beside) -> Table:
    """A row a system and set, a column a figure; ours after each column that we have any of."""
    keys = _keys(rows)
    ours = {row: next((beside.find(row, s) for s in beside.ours(row)), None) for row in rows}
    if not any(ours.values()):
        return _by_system(paper, rows, beside)
    header = [f"system of {CITED[paper]}", "set"]
    columns: list[tuple[Key, Column | None]] = []
    for key in dict.fromkeys(keys.values()):
        own = [row for row in rows if keys[row] == key]
        header.append(_title(key, own[0].unit))
        columns.append((key, None))
        if any(ours[row] for row in own):
            header.append("here")
            columns.append((key, _column(own, key[0])))
    lines: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        named: list[str] = [row.system, code(row.set)]
        line = lines.setdefault((row.system, row.set), [*named, *[""] * len(columns)])
        for place, (key, column) in enumerate(columns, 2):
            if key == keys[row]:
                found = ours[row]
                line[place] = (
                    _printed(row) if column is None else cell(found, column) if found else ""
                )
    return Table(header, list(lines.values()), 2)
