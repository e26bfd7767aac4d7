"""Data of docs/: figures that papers print, beside ours, claims, and cards of metrics.

What the papers print is docs/published/<paper>.tsv, one figure a row, as its table has it:
`system`, `set`, `evaluator` and `value` are as printed; `ours` is the system here like theirs;
`attacker` and `metric` are the words of metrics.csv; `spread` is what stands behind ±.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pandas import DataFrame, to_numeric

from local.report import frame
from local.report.frame import MEASURES, Measure, Value, read_frame, show
from local.report.tables import Table
from local.report.words import Marked, code
from utils.cli import UserError

DOCS = Path(__file__).resolve().parents[2] / "docs"
FOLDER, CARDS = DOCS / "published", DOCS / "metrics"

# ---- Printed figures and claims.

CITED = {
    "000": "Noé et al. 2020",
    "001": "Champion et al. 2021",
    "002": "Noé et al. 2022",
    "003": "Seo et al. 2025",
    "004": "Liu et al. 2025",
}  # as pages cite them, by the name of the file
PUBLISHED = (
    "table", "system", "ours", "set", "family", "attacker", "evaluator", "metric", "value",
    "spread", "unit",
)  # fmt: skip
_OF_ONE = {"%": 100, "dB": 1, "bit": 1, "": 1}
# place: where a statement stands in the paper; why: what was seen here, or what is missing, with a
# link to the row that carries it (relative to docs/papers).
CLAIM = ("paper", "place", "claim", "verdict", "why")
VERDICTS = ("holds", "holds in kind", "does not hold", "not decided here", "cannot be run here")
_TITLES = {name: made.title for name, made in MEASURES.items()} | {
    "p_cos": "Procrustes cosine", "deid_2020": "DeID, 2020 formula",
    "g_vd_2020": "G_VD, 2020 formula", "p_mse": "P-MSE", "eer_fall": "fall of the EER",
    "rtf": "RTF", "cosine_x": "cosine of x", "cosine_phi_1": "of φ1", "cosine_phi_2": "of φ2",
    "cosine_phi": "of φ", "mean_cosine": "mean cosine", "min_cosine": "smallest",
    "max_cosine": "largest",
} | {f"cmc_{k}": f"CMC@{k}" for k in (5, 20, 50)}  # fmt: skip
Ours = Mapping[str, Value | None]  # by our set
Place = tuple[str, str, str, str]  # split, family, attacker, metric
_OPTIONS = {"sets", "evaluators", "systems", "attackers", "prefix", "rows"}


@cache
def published(paper: str) -> DataFrame:
    """All figures of a paper (000 to 004), in the order of its tables; `number` is the value as
    metrics.csv would have it: fractions, dB, bit (NaN: a tag). UserError if unknown."""
    path = FOLDER / f"{paper}.tsv"
    if not path.is_file():
        known = " ".join(sorted(p.stem for p in FOLDER.glob("00*.tsv")))
        raise UserError(f"{path}: no published figures of {paper}; known: {known}")
    found = read_frame(path, PUBLISHED, "\t")
    found["number"] = to_numeric(found["value"], errors="coerce") / found["unit"].map(_OF_ONE)
    return found


def of_table(paper: str, table: str) -> DataFrame:
    """The figures of one table; UserError if the paper has none of that name."""
    every = published(paper)
    if (found := frame.where(every, table=table)).empty:
        names = ", ".join(frame.each(every, "table"))
        raise UserError(f"{FOLDER / paper}.tsv: no table {table}; known: {names}")
    return found


def claims() -> DataFrame:
    """The rows of docs/published/claims.tsv, whose verdicts are VERDICTS."""
    return read_frame(FOLDER / "claims.tsv", CLAIM, "\t")


def _paper(name: str) -> Marked:
    return Marked(f"[{CITED[name]}]({name}.md)")


def claims_table(words: Sequence[str], page: Path) -> Table:
    """`<!-- table: claims 002 -->`: a row a claim of the paper; `claims` alone: of all papers,
    without the reasons."""
    found = claims()
    if not words:
        every = [[_paper(c.paper), Marked(c.claim), c.verdict] for c in found.itertuples()]
        return Table(["paper", "claim", "here"], every, 2)
    own = found[found["paper"] == words[0]]
    if len(words) > 1 or own.empty:
        raise UserError(f"{page}: a table of claims names one paper, 000 to 004, or none")
    rows: list[list[str]] = [
        [Marked(c.claim), c.place, Marked(f"**{c.verdict}**"), Marked(c.why)]
        for c in own.itertuples()
    ]
    return Table(["claim", "where", "here", "why"], rows, 2)


def verdicts_table(words: Sequence[str], page: Path) -> Table:
    """`<!-- table: verdicts -->`: how many claims of each paper have which verdict."""
    if words:
        raise UserError(f"{page}: a table of verdicts takes no words")
    rows: list[list[str]] = [
        [_paper(paper), *(str((own["verdict"] == verdict).sum()) for verdict in VERDICTS)]
        for paper, own in claims().groupby("paper")
    ]
    return Table(["paper", *VERDICTS], rows, 1)


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
    if options.keys() - _OPTIONS or (folders and not {"sets", "evaluators"} <= options.keys()):
        raise UserError(
            f"{page}: table: paper takes PAPER:TABLE, folders with sets= and evaluators=, "
            "systems=, attackers=, prefix=, rows=systems"
        )
    rows = of_table(paper, table.replace("_", " "))
    if "systems" in options:
        names = rows["system"].str.replace(" ", "_")
        rows = rows[names.isin(options["systems"].split(","))]
    splits: dict[str, list[str]] = {}
    for theirs, own in _pairs(options.get("sets", "")):
        splits.setdefault(theirs, []).append(own)
    by_system = options.get("rows") == "systems"
    several = [theirs for theirs, own in splits.items() if len(own) > 1]
    if several and not by_system:
        raise UserError(f"{page}: table: paper: several sets beside {several[0]} need rows=systems")
    figures = _figures([page.parent / at for at in folders], options.get("evaluators", ""))
    attackers, prefix = dict(_pairs(options.get("attackers", ""))), options.get("prefix", "")

    def ours(row: Any) -> Ours:
        names = (prefix + row.ours, "" if prefix else row.system)
        who = attackers.get(row.attacker, row.attacker)
        found = {}
        for split in splits.get(row.set.replace(" ", "_"), ()):
            own = figures.get((split, row.family, who, row.metric), {})
            found[split] = next((value for system, value in own.items() if system in names), None)
        return found

    beside = [ours(row) for row in rows.itertuples()]
    return _render(paper, rows.assign(ours_here=beside), by_system)


def _figures(folders: Sequence[Path], evaluators: str) -> dict[Place, dict[str, Value]]:
    """Figures of use, and of privacy by these evaluators: by split, family, attacker and metric,
    systems in order with their values, of equal ones the first."""
    found: dict[Place, dict[str, Value]] = {}
    for f in (f for at in folders for f in frame.read_metrics(at / "metrics.csv").itertuples()):
        if f.family == frame.UTILITY or f.evaluator in evaluators.split(","):
            own = found.setdefault((f.split, f.family, f.attacker, f.metric), {})
            own.setdefault(f.system, frame.value_of(f))
    return found


def _pairs(text: str) -> list[tuple[str, str]]:
    """THEIRS:OURS,..."""
    parts = (pair.partition(":") for pair in text.split(","))
    return [(theirs, ours) for theirs, colon, ours in parts if colon]


def printed(row: Any) -> str:
    """A figure as the paper prints it."""
    text = row.value.replace("-", "−", 1) if row.value.startswith("-") else row.value
    return f"{text} ± {row.spread}" if row.spread else text


def _title(metric: str, unit: str, *words: str) -> str:
    told = ", ".join(filter(None, (_TITLES.get(metric, metric), *words)))
    return told + (f" ({unit})" if unit else "")


def _beside(rows: DataFrame) -> Measure:
    """Measure of ours beside these figures, in the paper's unit and as many decimals."""
    decimals = [0 if "e" in text else len(text.partition(".")[2]) for text in rows["value"]]
    scale = 100 if rows["unit"].iloc[0] == "%" else 1
    return Measure("", "here", scale=scale, digits=min(max(decimals), 3))


def _render(paper: str, rows: DataFrame, by_system: bool) -> Table:
    """A row a system and set, or a system; a column a figure; ours after each that we have any of.

    The column of a figure is its metric, and what else is needed to tell it from others. Without
    any of ours a row is a system.
    """
    by_system |= not any(value for ours in rows["ours_here"] for value in ours.values())
    rows = rows.assign(by=rows["evaluator"] if rows["evaluator"].nunique() > 1 else "")
    family = rows["family"].where(rows["family"] != frame.VERIFICATION, "")
    who = (family + "_" + rows["attacker"]).str.strip("_")
    attackers = who.groupby([rows[name] for name in ("system", "set", "metric", "by")]).nunique()
    rows["who"] = who if (attackers > 1).any() else ""
    rows["of"] = rows["set"] if by_system and rows["set"].nunique() > 1 else ""
    names = ["system"] if by_system else ["system", "set"]
    rows["row"] = [*zip(*(rows[name] for name in names), strict=True)]
    filled: list[tuple[str, dict[tuple[str, ...], str]]] = []  # columns: title, cells by row
    keys = ["metric", "by", "who", "of", *(["unit"] if by_system else [])]
    for (metric, *words), own in rows.groupby(keys, sort=False):
        title = _title(metric, own["unit"].iloc[0], *words[:3])
        filled.append((title, {row.row: printed(row) for row in own.itertuples()}))
        splits = [*own["ours_here"].iloc[0]]
        for place in range(max(map(len, own["ours_here"]))):
            ours = ([*found.values()][place : place + 1] for found in own["ours_here"])
            found = {n: v for n, beside in zip(own["row"], ours, strict=True) for v in beside}
            if any(found.values()):
                title = f"here, {splits[place]}" if by_system and len(splits) > 1 else "here"
                cells = {name: show(v, _beside(own), missing="") for name, v in found.items()}
                filled.append((title, cells))
    lines = [[name[0], *map(code, name[1:]), *(cells.get(name, "") for _, cells in filled)]
             for name in dict.fromkeys(rows["row"])]  # fmt: skip
    header = [f"system of {CITED[paper]}", *names[1:], *(title for title, _ in filled)]
    return Table(header, lines, len(names))


# ---- What the terms of the report mean: the cards, which its tables link to.

# As headings have them, and their cards; of two that fit the same letters the first one counts.
TERMS = {"legal linkability": "legal", "singling out": "legal", "chance": "chance"} | {
    term: next(m.card for m in MEASURES.values() if term in m.title)
    for term in (
        "ROCCH-EER", "EER", "C_ECE", "D_ECE", "l_w", "min Cllr", "DeID", "G_VD", "D_diag", "CMC",
        "linkability", "mean rank", "named", "CCA", "Procrustes", "WER", "UAR", "MOS",
    )
}  # fmt: skip
_TERM = re.compile("|".join(map(re.escape, TERMS)))
_SHOWN = ("Question", "Range and direction", "Hides")
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")


@dataclass(frozen=True)
class Card:
    """name: of its file; paragraphs: what is asked, how to read it, what it hides."""

    name: str
    title: str
    paragraphs: tuple[str, ...]


def terms_in(texts: Iterable[str]) -> dict[str, str]:
    """The terms that stand in headings, and their cards.

    >>> terms_in(["EER (%)", "legal linkability, 3 utterances (%)"])
    {'EER': 'eer', 'legal linkability': 'legal'}
    """
    return {term: TERMS[term] for text in texts for term in _TERM.findall(text)}


def cards() -> Iterator[Card]:
    """Every card that a term has, by name."""
    for name in sorted(set(TERMS.values())):
        text = (CARDS / f"{name}.md").read_text(encoding="utf-8")
        title = text.splitlines()[0].removeprefix("# ")
        told = re.findall(r"^\*\*([^*]+)\.\*\* (.+)$", text, flags=re.MULTILINE)
        yield Card(
            name,
            _plain(title.rpartition("`: ")[2] or title),
            tuple(_plain(said) for what, said in told if what in _SHOWN)
            or (_plain(text.split("\n\n")[1]),),
        )


def _plain(text: str) -> str:
    """Markdown without its marks."""
    return re.sub(r"[`*]", "", _LINK.sub(r"\1", text))
