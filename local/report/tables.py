"""The tables that people read: what each shows is data, and one function makes them of figures."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pandas as pd
from pandas import DataFrame, to_numeric

from local.metrics.recordings import LENGTHS
from local.metrics.registry import KNOWN
from local.plan.labels import Family
from local.protocols.attackers import CONTROLS
from local.report import frame, measures, select, wording
from local.report.frame import each, value_of, where
from local.report.measures import MEASURES, TABLES, Measure, Value, show
from local.report.results import Results
from local.report.select import Judged, Verdict, no_controls
from local.report.wording import Marked
from utils.cli import UserError

Row = TypeVar("Row")
Column = TypeVar("Column")
CERTAIN = 1 - 1e-6  # chance of canonical correlation from which on it says nothing
MOST_LINES = 2  # of verdicts on the console
SUBJECT = ("split", "system", "family", "attacker", "evaluator")


@dataclass(frozen=True)
class Table:
    """Cells as people read them."""

    header: list[str]
    rows: list[list[str]]

    def markdown(self) -> str:
        """The table in Markdown; its cells show what they hold, whoever named it."""
        if not self.rows:
            return measures.MISSING.capitalize() + "."
        lines = [[wording.plain(text) for text in line] for line in (self.header, *self.rows)]
        lines.insert(1, ["---"] * len(self.header))
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


@dataclass(frozen=True)
class Spec:
    """A table with a row for each subject of a family of figures, by split and system.

    counts: its last columns. attackers: whether each attacker has rows; else those of none. of:
    what it is computed of.
    """

    title: str
    columns: Sequence[Measure]
    family: str
    counts: Mapping[str, str]
    attackers: bool = False
    of: str = ""


SPECS = {
    name: Spec(**own | {"columns": measures.read_columns(own["columns"])})
    for name, own in KNOWN["tables"].items()
}
PROSODY = SPECS.pop("prosody")  # of no evaluator of privacy, so not among the others


def pivot(
    names: Sequence[str],
    rows: Iterable[tuple[Sequence[str], Row]],
    columns: Iterable[tuple[str, Column]],
    cell: Callable[[Row, Column], str],
) -> Table:
    """A table of rows with their names and columns with their titles; a cell is made of what its
    row and its column are of."""
    columns = [*columns]
    lines = [[*said, *(cell(row, column) for _, column in columns)] for said, row in rows]
    return Table([*names, *(title for title, _ in columns)], lines)


def headed(measures: Iterable[Measure]) -> list[tuple[str, Measure]]:
    """Columns of measures."""
    return [(measure.heading, measure) for measure in measures]


def dashed(value: Value | float | None, measure: Measure) -> str:
    """A figure with its interval; a dash where it is not defined or was not measured."""
    return show(value, measure, missing="–", undefined="–")


def tabulate(spec: Spec, metrics: pd.DataFrame) -> Table:
    """The table of a specification. Where there are several evaluators, each row names those who
    have all of its figures: back ends of one encoder share what is of its x-vectors alone."""
    found = frame.values(metrics, *SUBJECT, "figure")
    own = where(
        metrics, family=spec.family, attacker=[*wording.ATTACKERS] if spec.attackers else ""
    )
    shown = own["figure"].isin([column.figure for column in spec.columns])
    first = pd.concat([own[shown], own])  # whose counts are those to show
    first, own = (rows.drop_duplicates([*SUBJECT]) for rows in (first, own))
    own = own[[*SUBJECT]].merge(first).sort_values("split", kind="stable")
    names = ["split", "system", "attacker"][: 3 if spec.attackers else 2]
    rows = [([f.split, f.system, wording.attacker(f.attacker)][: len(names)], f)
            for f in own.itertuples()]  # fmt: skip
    columns: list[tuple[str, Measure | str]] = [*headed(spec.columns), *spec.counts.items()]
    made = pivot(names, rows, columns, lambda f, column: (
        getattr(f, column) if isinstance(column, str) else _cell(found, f, column)
    ))  # fmt: skip
    if metrics["evaluator"].nunique() < 2:
        return made
    by: dict[tuple[str, ...], list[str]] = {}
    for row, evaluator in zip(made.rows, own["evaluator"], strict=True):
        by.setdefault((*row,), []).append(evaluator)
    header, *lines = (
        [*row[: len(names)], ", ".join(who), *row[len(names) :]]
        for row, who in [(made.header, ["evaluator"]), *by.items()]
    )
    return Table(header, lines)


def _cell(found: Mapping[tuple[str, ...], Value], f: Any, m: Measure) -> str:
    """The figure of a column; canonical correlation is not defined where too few segments make it 1
    by construction."""
    of = (f.split, f.system, f.family, f.attacker, f.evaluator)
    if m.family:
        who = "original" if m.attacker == "unprotected" else f.system
        of = (f.split, who, m.family, m.attacker, f.evaluator)
    chance = found.get((*of, m.but(kind="chance").figure), measures.NOTHING)
    if m.name == "cca_top10" and m.kind == "value" and chance.value > CERTAIN:
        return measures.UNDEFINED
    nobody = "–" if m.recordings else measures.MISSING  # has so many recordings
    return show(found.get((*of, m.figure)), m, missing=nobody)


_USEFUL = (*measures.UTILITY_MEASURES, "cer", "hypotheses_cut", "mos_drop")


def utility_table(metrics: pd.DataFrame) -> Table:
    """Words, characters, emotions and quality, a row a figure, original speech among them."""
    own = where(metrics, figure=_USEFUL).sort_values("split", kind="stable")
    rows = [
        [f.split, f.system, f.evaluator, f.condition, MEASURES[f.metric].heading,
         show(value_of(f), MEASURES[f.metric]), f.n_speakers]
        for f in own.itertuples()
    ]  # fmt: skip
    return Table(
        ["split", "system", "measured by", "condition", "figure", "value", "speakers"], rows
    )


EER = MEASURES["eer"]


def grid(
    names: Sequence[str], cells: Iterable[tuple[Sequence[str], Any, str]],
    columns: Mapping[Any, str], missing: str = "–",
) -> Table:  # fmt: skip
    """A table of cells, each with the names of its row and the key of its column; of two in one
    place the last counts. columns: their titles, by key."""
    rows: dict[tuple[str, ...], dict[Any, str]] = {}
    for of, key, text in cells:
        rows.setdefault((*of,), {})[key] = text
    return pivot(names, rows.items(),
                 [(title, key) for key, title in columns.items()],
                 lambda own, key: own.get(key, missing))  # fmt: skip


CROWDS = {"named": "named at first", "legal_linkability": "legal linkability"}


def crowd_table(metrics: pd.DataFrame) -> Table:
    """Who is named at first among ever more candidates, a row an attack and number of recordings,
    and the same by cosines as regulators' criterion has them."""
    cells = []
    rows = where(metrics, family=Family.CROWD, metric=[*CROWDS])
    for f in no_controls(rows).itertuples():
        of = (f.split, f.system, wording.attacker(f.attacker), f.evaluator, CROWDS[f.metric],
              f.recordings)  # fmt: skip
        cells.append((of, int(f.candidates), show(value_of(f), MEASURES["named"])))
    sizes = {n: f"of {n} (%)" for n in sorted({n for _, n, _ in cells})}
    return grid(["split", "system", "attacker", "evaluator", "figure", "recordings"], cells, sizes)


def group_table(metrics: pd.DataFrame) -> Table:
    """The strongest attacker by group of people, a row a system, figure and attribute: each group,
    the worst, and by how much the best-protected one is better off."""
    own, rows = no_controls(where(metrics, family=Family.GROUPS)), []
    for gap in where(own, kind="gap").itertuples():
        names = ("system", "attribute", "metric", "recordings")
        found = where(own, kind="value", **{name: getattr(gap, name) for name in names})
        told = [f"{_group(f.attribute, f.group)}: {show(value_of(f), EER)}"
                for f in found.sort_values("group").itertuples()]  # fmt: skip
        defined = found.dropna(subset="value")
        ranked = defined.sort_values("value", ascending=MEASURES[gap.metric].better > 0)
        worst = [_group(gap.attribute, name) for name in ranked["group"]] or ["–"]
        figure = TABLES["groups"][gap.metric][gap.recordings]
        rows.append([gap.system, figure, "; ".join(told), worst[0], show(value_of(gap), EER)])
    return Table(["system", "figure (%)", "groups", "worst group", "gap (points)"], rows)


def _group(attribute: str, value: str) -> str:
    words = f"age {value.replace('_', ' ')}"
    return wording.VOICES.get(value, value) if attribute == "sex" else words


def enrolment_table(metrics: pd.DataFrame) -> Table:
    """The lowest EER of all attackers by recordings enrolled and heard, folded, a row a system,
    split and number enrolled; only of attackers who were tried with few."""
    own = where(metrics, family=Family.VERIFICATION, metric=("eer", "eer_normalised"), kind="value")
    own = own.dropna(subset="value")
    of = ["split", "system", "attacker", "evaluator"]
    few = {*own.loc[own["enrolled"] != "", of].itertuples(index=False, name=None)}
    found = [
        ((f.split, f.system, f.enrolled or "all"), f.recordings, select.fold(value_of(f)))
        for f in own.itertuples()
        if (f.split, f.system, f.attacker, f.evaluator) in few
    ]
    cells = [(at, heard, show(eer, EER))  # of several the lowest is the last, and counts
             for at, heard, eer in sorted(found, key=lambda f: (*f[:2], -f[2].value))]  # fmt: skip
    return grid(["split", "system", "enrolled"], cells, {n: f"{n} heard (%)" for n in LENGTHS})


def by(attack: select.Evidence) -> str:
    """Who attacked."""
    return f"{wording.attacker(attack.attacker)}, {attack.evaluator}"


def verdict_table(runs: Mapping[str, Results]) -> Table:
    """A row a system, group of people and run: the verdict, who attacks best with one recording of
    a person (and the same evaluator without protection) and with all, who names most people, the
    worst-protected person, and what is left of use. Columns of nothing are left out. runs: by what
    they are called, nothing for one alone; of several the best-protected system comes first."""
    use = dict.fromkeys(chain(*(select.uses(results.metrics) for results in runs.values())))
    header = ["run", "system", "voices", "verdict", "EER from one (%)", "by", "unprotected (%)",
              "EER from all (%)", "by", "people named", "by", "voice adds to words (points)",
              "worst-protected person",
              *(MEASURES[of].but(title=f"{MEASURES[of].title} by {who}").heading
                for of, who in use)]  # fmt: skip
    rows: list[tuple[float, list[str]]] = []
    for run, results in runs.items():
        found = select.verdicts(results)
        for system, name in select.verdict_rows(found).items():
            told = dict(used(select.uses(results.metrics), system))
            last = [told.get(of, "–") for of in use]
            worst = min((own.eer.value for own in found[system] if own.eer.defined), default=0.0)
            rows += [(worst, [run or "–", name, *_verdict(own, results), *last])
                     for own in found[system]]  # fmt: skip
    if len(runs) > 1:
        rows.sort(key=lambda row: -row[0])
    some = [i for i in range(len(header)) if any(row[i] != "–" for _, row in rows)]
    return Table([header[i] for i in some], [[row[i] for i in some] for _, row in rows])


def _verdict(own: Judged, results: Results) -> list[str]:
    row = [own.group, str(own.verdict)]
    for n in ("1", "all"):
        one = own.verdict.eers.get(n)
        bare = one.attack.bare if one and one.attack.bare.defined else None
        row += [show(one.eer, EER), by(one.attack)] if one else 2 * ["–"]
        row += [show(bare, EER, missing="–")] if n == "1" else []
    row += [wording.say("named", attack=own.named), by(own.named)] if own.named else 2 * ["–"]
    beside = select.beside_words(results.metrics).get((own.system, own.split))
    linked = own.worst and f"{own.worst.name} ({measures.number(own.worst.linkability)})"
    return [*row, show(beside, select.POINTS, missing="–"), linked or "–"]


Uses = Mapping[tuple[str, str], Mapping[str, Any]]


def used(kept: Uses, system: str, *, unit: bool = False) -> list[tuple[tuple[str, str], str]]:
    """Use by each metric and who measured it, with that of original speech in brackets."""
    told = []
    for of, of_systems in kept.items():
        now, was = (show(f and f.value, MEASURES[of[0]], missing="–", unit=unit)
                    for f in map(of_systems.get, (system, "original")))  # fmt: skip
        told.append((of, f"{now} (was {was})" if "–" not in (now, was) else now))
    return told


def run_table(runs: Mapping[str, Results]) -> Table:
    """A row a run: its corpus, attackers, evaluators, date, commit and command."""
    rows, made = [], ("date", "commit", "command")
    for run, results in runs.items():
        attacked = frame.eers(results.metrics)
        who = each(attacked[attacked["system"] != "original"], "attacker")
        told = [map(wording.attacker, who), each(attacked, "evaluator")]
        origin = (results.origin.get(name, "–") for name in made)
        rows.append([run, results.corpus, *map(", ".join, told), *origin])
    return Table(["run", "corpus", "attackers", "evaluators", *made], rows)


def difference_table(metrics: pd.DataFrame) -> Table:
    """How far the strongest attacker's EER on the first system lies above that on the second, a row
    a pair and split; * where the interval leaves out 0."""
    cells = []
    own = no_controls(where(metrics, metric="eer_difference"))
    for f in own[~own["group"].isin(CONTROLS[1:])].itertuples():
        sure = f.low > 0 or f.high < 0
        at = (f.split, f.system, f.group)
        cells.append((at, f.recordings, show(value_of(f), select.POINTS) + " *" * sure))
    heads = {"1": "from one (points)", "all": "from all (points)"}
    return grid(["split", "first system", "second system"], cells, heads)


def verdict_lines(results: Results) -> list[str]:
    """The verdicts for a console, in at most two lines: systems by verdict, a line for each group
    of people; where more lines would differ, each system by the worst of its groups."""
    found = select.verdicts(results)
    systems = [found[system] for system in select.verdict_rows(found)]
    lines: dict[str, list[str]] = {}
    for group in dict.fromkeys(own.group for own in chain(*systems)):
        alike = {own.system: own.verdict for own in chain(*systems) if own.group == group}
        lines.setdefault(_by_level(alike), []).append(group)
    if len(lines) > MOST_LINES:
        worst = [min(judged, key=lambda own: own.verdict.level) for judged in systems]
        said = _by_level({f"{own.system}: {own.group}": own.verdict for own in worst})
        lines = {said: ["the worst group of each system"]}
    return [f"{' and '.join(groups)}: {said}" for said, groups in lines.items()]


def _by_level(verdicts: Mapping[str, Verdict]) -> str:
    """Each level with the systems that have it, the best first; why, where all have one reason."""
    told = []
    for level in sorted({v.level for v in verdicts.values()}, reverse=True):
        own = {system: v.why for system, v in verdicts.items() if v.level is level}
        why = next(iter(own.values())) if len({*own.values()}) == 1 else ""
        said = f"{select.WORDS[level]}, {why}" if why else select.WORDS[level]
        told.append(f"{said} ({wording.enumerate_words([*own], most=4)})")
    return " · ".join(told)


# ---- What docs/ holds as data: figures that papers print, beside ours, claims, cards of metrics.


DOCS = Path(__file__).resolve().parents[2] / "docs"
FOLDER, CARDS = DOCS / "published", DOCS / "metrics"

# ---- Printed figures and claims.

CITED = TABLES["papers"]  # as pages cite them, by the name of the file
PUBLISHED = (
    "table", "system", "ours", "set", "family", "attacker", "evaluator", "metric", "value",
    "spread", "unit",
)  # fmt: skip
_OF_ONE = {"%": 100, "dB": 1, "bit": 1, "": 1}
# place: where a statement stands in the paper; why: what was seen here, or what is missing, with a
# link to the row that carries it (relative to docs/papers).
CLAIM = ("paper", "place", "claim", "verdict", "why")
VERDICTS = (
    "holds", "holds in kind", "fails in kind", "does not hold", "not decided here",
    "cannot be run here",
)  # fmt: skip
Ours = Mapping[str, Value | None]  # by our set
Place = tuple[str, str, str, str]  # split, family, attacker, metric


def read_mark(words: Sequence[str], page: Path, takes: str) -> tuple[list[str], dict[str, str]]:
    """Names and options (NAME=VALUE) of a mark. UserError for options that are not in `takes`, and
    where those lack that it has without brackets."""
    names = [word for word in words if "=" not in word]
    options = dict(word.split("=", 1) for word in words if "=" in word)
    known, needed = ({*re.findall(r"(\w+)=", text)} for text in (takes, re.sub(r"\[.*", "", takes)))
    if not (names and needed <= options.keys() <= known):
        raise UserError(f"{page}: this table takes {takes}")
    return names, options


@cache
def published(paper: str) -> DataFrame:
    """All figures of a paper (000 to 004), in the order of its tables; `number` is the value as
    metrics.csv would have it: fractions, dB, bit (NaN: a tag). UserError if unknown."""
    path = FOLDER / f"{paper}.tsv"
    if not path.is_file():
        known = " ".join(sorted(p.stem for p in FOLDER.glob("00*.tsv")))
        raise UserError(f"{path}: no published figures of {paper}; known: {known}")
    found = frame.read_frame(path, PUBLISHED, "\t")
    found["number"] = to_numeric(found["value"], errors="coerce") / found["unit"].map(_OF_ONE)
    return found


def of_table(paper: str, table: str) -> DataFrame:
    """The figures of one table; UserError if the paper has none of that name."""
    every = published(paper)
    if (found := frame.where(every, table=table)).empty:
        names = ", ".join(each(every, "table"))
        raise UserError(f"{FOLDER / paper}.tsv: no table {table}; known: {names}")
    return found


def claims() -> DataFrame:
    """The rows of docs/published/claims.tsv, whose verdicts are VERDICTS."""
    return frame.read_frame(FOLDER / "claims.tsv", CLAIM, "\t")


def _paper(name: str) -> Marked:
    return Marked(f"[{CITED[name]}]({name}.md)")


def claims_table(words: Sequence[str], page: Path) -> Table:
    """`<!-- table: claims 002 -->`: a row a claim of the paper; `claims` alone: of all papers,
    without the reasons."""
    found = claims()
    if not words:
        every = [[_paper(c.paper), Marked(c.claim), c.verdict] for c in found.itertuples()]
        return Table(["paper", "claim", "here"], every)
    own = found[found["paper"] == words[0]]
    if len(words) > 1 or own.empty:
        raise UserError(f"{page}: a table of claims names one paper, 000 to 004, or none")
    rows: list[list[str]] = [
        [Marked(c.claim), c.place, Marked(f"**{c.verdict}**"), Marked(c.why)]
        for c in own.itertuples()
    ]
    return Table(["claim", "where", "here", "why"], rows)


def verdicts_table() -> Table:
    """`<!-- table: verdicts -->`: how many claims of each paper have which verdict."""
    rows: list[list[str]] = [
        [_paper(paper), *(str((own["verdict"] == verdict).sum()) for verdict in VERDICTS)]
        for paper, own in claims().groupby("paper")
    ]
    return Table(["paper", *VERDICTS], rows)


def paper_table(words: Sequence[str], page: Path) -> Table:
    """`<!-- table: paper 002:2 [FOLDER... sets=THEIRS:OURS,... evaluators=A,B] [systems=B1] -->`:
    a table of a paper; of the FOLDERs' metrics.csv, beside each figure ours of the same metric.

    A figure of ours is of the split that `sets` names for the paper's set, by one of `evaluators`,
    of the first folder that has it. systems: only these of the paper's. prefix: how the names of
    our systems begin. attackers=THEIRS:OURS: ours is another attacker. rows=systems: a row a
    system, a column a figure and set, where `sets` may name several of ours beside one of theirs.
    In words _ stands for a blank.
    """
    takes = "PAPER:TABLE [FOLDER... sets= evaluators= attackers= prefix=] [systems= rows=systems]"
    (named, *folders), options = read_mark(words, page, takes)
    paper, _, table = named.partition(":")
    if folders and not {"sets", "evaluators"} <= options.keys():
        raise UserError(f"{page}: this table takes {takes}")
    rows = of_table(paper, table.replace("_", " "))
    if "systems" in options:
        names = rows["system"].str.replace(" ", "_")
        rows = rows[names.isin(options["systems"].split(","))]
    splits: dict[str, list[str]] = {}
    for theirs, own in _PAIR.findall(options.get("sets", "")):
        splits.setdefault(theirs, []).append(own)
    by_system = options.get("rows") == "systems"
    several = [theirs for theirs, own in splits.items() if len(own) > 1]
    if several and not by_system:
        raise UserError(f"{page}: table: paper: several sets beside {several[0]} need rows=systems")
    own = frame.read_folders(page, folders).itertuples() if folders else ()
    figures = _figures(own, options.get("evaluators", ""))
    attackers, prefix = dict(_PAIR.findall(options.get("attackers", ""))), options.get("prefix", "")

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


def _figures(rows: Iterable[Any], evaluators: str) -> dict[Place, dict[str, Value]]:
    """Figures of use, and of privacy by these evaluators: by split, family, attacker and metric,
    systems in order with their values, of equal ones the first."""
    found: dict[Place, dict[str, Value]] = {}
    for f in rows:
        if f.family == Family.UTILITY or f.evaluator in evaluators.split(","):
            own = found.setdefault((f.split, f.family, f.attacker, f.figure), {})
            own.setdefault(f.system, frame.value_of(f))
    return found


_PAIR = re.compile("([^:,]*):([^,]*)")  # of THEIRS:OURS,...


def printed(row: Any) -> str:
    """A figure as the paper prints it."""
    text = re.sub("^-", "−", row.value)
    return f"{text} ± {row.spread}" if row.spread else text


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
    family = rows["family"].where(rows["family"] != Family.VERIFICATION, "")
    who = (family + "_" + rows["attacker"]).str.strip("_")
    attackers = who.groupby([rows[name] for name in ("system", "set", "metric", "by")]).nunique()
    rows["who"] = who if (attackers > 1).any() else ""
    rows["of"] = rows["set"] if by_system and rows["set"].nunique() > 1 else ""
    names = ["system"] if by_system else ["system", "set"]
    rows["row"] = [*zip(*(rows[name] for name in names), strict=True)]
    filled: list[tuple[str, dict[tuple[str, ...], str]]] = []  # columns: title, cells by row
    keys = ["metric", "by", "who", "of", *(["unit"] if by_system else [])]
    for (metric, *words), own in rows.groupby(keys, sort=False):
        name = MEASURES[metric].title if metric in MEASURES else metric
        said = ", ".join(filter(None, (name, *words[:3])))
        title = Measure("", said, own["unit"].iloc[0]).heading
        filled.append((title, {row.row: printed(row) for row in own.itertuples()}))
        splits = [*own["ours_here"].iloc[0]]
        for place in range(max(map(len, own["ours_here"]))):
            ours = ([*found.values()][place : place + 1] for found in own["ours_here"])
            found = {n: v for n, beside in zip(own["row"], ours, strict=True) for v in beside}
            if any(found.values()):
                title = f"here, {splits[place]}" if by_system and len(splits) > 1 else "here"
                cells = {name: show(v, _beside(own), missing="") for name, v in found.items()}
                filled.append((title, cells))
    lines = [[name[0], *map(wording.code, name[1:]), *(cells.get(name, "") for _, cells in filled)]
             for name in dict.fromkeys(rows["row"])]  # fmt: skip
    header = [f"system of {CITED[paper]}", *names[1:], *(title for title, _ in filled)]
    return Table(header, lines)


# ---- What the terms of the report mean: the cards, which its tables link to.

# As headings have them, and their cards; of two that fit the same letters the first one counts.
TERMS = {"legal linkability": "legal", "singling out": "legal", "chance": "chance"} | {
    term: next(m.card for m in MEASURES.values() if term in m.title) for term in TABLES["terms"]
}
_TERM = re.compile("|".join(map(re.escape, TERMS)))
_SHOWN = ("Question", "Range and direction", "Hides")
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")


class Card(NamedTuple):
    """name: of its file; keys: of metrics; paragraphs: what is asked, how to read it, what it
    hides."""

    name: str
    keys: str
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
    return map(_read_card, sorted(set(TERMS.values())))


def _read_card(name: str) -> Card:
    text = (CARDS / f"{name}.md").read_text(encoding="utf-8")
    keys, _, title = text.splitlines()[0].removeprefix("# ").rpartition(": ")
    told = re.findall(r"^\*\*([^*]+)\.\*\* (.+)$", text, flags=re.MULTILINE)
    shown = tuple(_plain(said) for what, said in told if what in _SHOWN)
    return Card(name, keys, _plain(title), shown or (_plain(text.split("\n\n")[1]),))


def cards_table() -> Table:
    """`<!-- table: cards -->`: name, question and metrics of each card, by name."""
    every = (_read_card(path.stem) for path in CARDS.glob("[!R]*.md"))
    rows: list[list[str]] = [
        [Marked(f"[{card.title}]({card.name}.md)"), card.paragraphs[0], Marked(card.keys)]
        for card in sorted(every, key=lambda card: card.title.lower())
    ]
    return Table(["card", "question", "metrics"], rows)


def _plain(text: str) -> str:
    """Markdown without its marks."""
    return re.sub(r"[`*]", "", _LINK.sub(r"\1", text))
