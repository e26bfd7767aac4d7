"""Tables between marks of Markdown pages: rendered from committed data, and as LaTeX for papers."""

import csv
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from pandas import DataFrame, concat

from local.metrics.recordings import LENGTHS
from local.plan.labels import Family
from local.protocols.attackers import CONTROLS
from local.report import frame, measures, tables, wording
from local.report.frame import each, value_of, where
from local.report.measures import COLUMNS, TABLES, Measure, show
from local.report.results import Results
from local.report.select import NAMED, WORDS, attacks, strongest, trades, unprotected, verdicts
from local.report.studies import nist_table, spread, voices_table
from local.report.tables import (
    Table,
    headed,
    paper_table,
    pivot,
    read_mark,
    tabulate,
    verdicts_table,
)
from local.report.wording import VOICES, Marked, attacker, code
from utils.cli import UserError
from utils.tables import read_bytes, write_file

# ---- Tables of metrics.csv.

_GENDERS = ("f", "m")  # have a column or row, even where nothing was measured
_ALIKE = COLUMNS["alike"]
_EER = measures.measure("eer", title="EER of the strongest attacker")
CONSOLE = 120  # letters in a line
Row = tuple[str, str]  # system, split


@dataclass(frozen=True)
class Selection:
    """Figures that a mark asks for: `<!-- table: KIND FOLDER... split=SPLIT [systems=A,B] ... -->`.

    Folders hold metrics.csv and are relative to the page. systems: which rows, in which order.
    evaluators, attackers: whose figures; all when it is empty. wanted: which figures (of attackers
    alone).
    """

    figures: DataFrame
    split: str
    systems: Sequence[str]
    evaluators: Sequence[str]
    wanted: Sequence[str]

    @classmethod
    def read(cls, words: Sequence[str], page: Path) -> "Selection":
        """UserError where a word or a folder is not known."""
        takes = "FOLDER... split= [systems= evaluators= attackers= figures=]"
        folders, options = read_mark(words, page, takes)
        figures = frame.read_folders(page, folders)
        split, of = options["split"], f"{page}: the results of {' '.join(folders)} have no"
        own = where(figures, split=(split, *(f"{split}_{group}" for group in VOICES)))
        if own.empty:
            raise UserError(f"{of} split {split}")
        found = sorted(each(own, "system"), key=lambda system: system != "original")
        asked = {"systems": found, "evaluators": [], "figures": ["eer"]}
        asked |= {name: text.split(",") for name, text in options.items()}
        there = {*found, *own["evaluator"]}
        if missing := [n for n in (*asked["systems"], *asked["evaluators"]) if n not in there]:
            raise UserError(f"{of} {missing[0]}")
        if asked["evaluators"]:
            own = where(own, evaluator=asked["evaluators"])
        if asked.get("attackers"):
            own = where(own, attacker=[*asked["attackers"], "unprotected", ""])
        names = [made.figure for made in COLUMNS["attackers"]]
        if strange := [name for name in asked["figures"] if name not in names]:
            raise UserError(
                f"{page}: a table asks for the figure {strange[0]}; known: {', '.join(names)}"
            )
        return cls(own, split, asked["systems"], asked["evaluators"], asked["figures"])

    @property
    def groups(self) -> dict[str, str]:
        """Splits, and who speaks in each; women and men also where they have no figures."""
        there = {*_GENDERS, *self.figures["gender"]}
        return {f"{self.split}_{of}": people for of, people in VOICES.items() if of in there}

    def shown(self) -> DataFrame:
        """Figures of the systems of the mark."""
        return where(self.figures, system=[*self.systems])

    def voices(self) -> list[tuple[list[str], Row]]:
        """A row for each system and group of voices: its names; its system and split."""
        return [
            ([code(system), people], (system, split))
            for system, (split, people) in product(self.systems, self.groups.items())
        ]

    def measured(self, *names: str) -> list[Measure]:
        """Measures of use that the block has figures for, each by what measured it."""
        use = where(self.figures, family=Family.UTILITY)
        return [
            made.but(title=made.title.format(by), by=by)
            for made in COLUMNS["use"]
            for by in each(where(use, metric=made.name), "evaluator")
            if not names or made.name in names
        ]

    @cached_property
    def found(self) -> dict[tuple[str, ...], measures.Value]:
        """Figures by system, split, family, attacker, evaluator and name."""
        by = ("system", "split", "family", "attacker", "evaluator", "figure")
        return frame.values(self.figures, *by)

    def cell(self, row: Row, made: Measure) -> str:
        """A figure of a system and split, of the attacker and by whom the measure names."""
        if row[0] == "original" and made.name == "mos_drop":  # it has lost nothing
            return ""
        return show(self.found.get((*row, made.family, made.attacker, made.by, made.figure)), made)


def use_table(block: Selection) -> Table:
    """Words, emotions and quality of each system, by everything that measured them."""
    rows = [([code(system)], (system, block.split)) for system in block.systems]
    return pivot(["system"], rows, headed(block.measured()), block.cell)


def _decisive(block: Selection) -> Iterator[tuple[list[str], Row, Any]]:
    """Systems and groups of voices, each with the EER that decides: of the strongest attacker, and
    of original speech the lowest."""
    best = {(system, split): eer for (split, system), eer in strongest(block.figures).items()}
    for (split, _), row in sorted(unprotected(block.figures).items(), key=lambda of: of[1].value):
        best.setdefault(("original", split), row)
    yield from ((names, at, best[at]) for names, at in block.voices() if best.get(at) is not None)


def overview_table(block: Selection) -> Table:
    """EER of the strongest attacker of each system and gender, with that evaluator's EER without
    protection; and beside them words, emotions and quality."""
    bare = unprotected(block.figures)
    columns, lines = block.measured("wer", "uar", "mos"), []
    for names, at, eer in _decisive(block):
        before = bare.get((at[1], eer.evaluator))
        told = show(before and value_of(before), _EER) if at[0] != "original" else ""
        lines.append(
            [*names, show(value_of(eer), _EER), attacker(eer.attacker), eer.evaluator, told,
             *(block.cell(at, made) for made in columns)]
        )  # fmt: skip
    return Table([
        "system", "voices", _EER.heading, "attacker", "evaluator", "without protection (%)",
        *(made.heading for made in columns),
    ], lines)  # fmt: skip


def leaders_table(words: Sequence[str], page: Path) -> Table:
    """A row a system and group: the verdict, the lowest EER of all attackers from one and from all
    recordings of a person, and the words that each recogniser mishears, which `use=SPLIT` may name
    another split for, and `systems=A:B` another name (B) of the same settings.

    Figures of original speech are those of its best evaluator.
    """
    folders, options = read_mark(words, page, "FOLDER... split= systems= [use=]")
    pairs = [name.split(":") for name in options["systems"].split(",")]
    attacked, used = (
        Selection.read(
            [*folders, f"split={split}", f"systems={','.join(pair[at] for pair in pairs)}"], page
        )
        for at, split in ((0, options["split"]), (-1, options.get("use", options["split"])))
    )
    results = Results(metrics=attacked.figures)
    found = {(own.system, own.split): own.verdict
             for judged in verdicts(results).values() for own in judged}  # fmt: skip
    lengths, columns, lines = ("1", "all"), used.measured("wer"), []
    calls = {pair[0]: pair[-1] for pair in pairs}
    for names, at in attacked.voices():
        known = [own.several for own in attacks(results, *at)]
        eers = {n: min((own[n] for own in known if n in own), default=None) for n in lengths}
        if said := found.get(at):
            eers |= {n: one.eer for n, one in said.eers.items()}
        if any(eers.values()):
            bare = "control" if at[0] in CONTROLS else "unprotected"
            lines.append(
                [*names, WORDS[said.level] if said else bare,
                 *(show(eers[n], _EER) for n in lengths),
                 *(used.cell((calls[at[0]], used.split), made) for made in columns)]
            )  # fmt: skip
    heads = [f"lowest EER from {n} (%)" for n in ("one recording", "all recordings")]
    return Table(["system", "voices", "verdict", *heads, *(m.heading for m in columns)], lines)


def alike_table(block: Selection) -> Table:
    """DeID and G_VD of each system and gender, which the ignorant attacker hears, by the evaluator
    of the row in the overview."""
    lines = [
        [*names, attacker("ignorant"), eer.evaluator,
         *(block.cell(at, made.but(by=eer.evaluator)) for made in _ALIKE)]
        for names, at, eer in _decisive(block) if at[0] != "original"
    ]  # fmt: skip
    head = ["system", "voices", "attacker", "evaluator", *(made.heading for made in _ALIKE)]
    return Table(head, lines)


def front_table(block: Selection) -> Table:
    """Privacy against words: the lowest EER and the WER of each system and gender, and
    which systems are at least as good in both and better in one (none: the Pareto front)."""
    rows = []
    for trade in trades(where(block.figures, system=[*block.systems, "original"])):
        people = block.groups.get(trade.split)
        if trade.metric != "wer" or people is None:
            continue
        for point in sorted(trade.points, key=lambda p: (-p.privacy.value, p.system)):
            numbers = [measures.number(100 * v.value, 1) for v in (point.privacy, point.utility)]
            before = wording.enumerate_words([p.system for p in trade.behind(point)])
            told = f"behind {before}" if before else Marked("**on the front**")
            rows.append([people, code(point.system), *numbers, trade.recogniser, told])
    return Table(["voices", "system", "EER, folded at 50 % (%)", "WER (%)", "recogniser",
                  "Pareto front"], rows)  # fmt: skip


def trainings_table(block: Selection) -> Table:
    """Figures of the first evaluator of the mark, with their interval over speakers; after it, from
    the lowest to the highest of all its evaluators, which are trainings of one."""
    if not block.evaluators:
        raise UserError("a table of trainings needs evaluators=")

    def cell(row: Row, made: Measure) -> str:
        who = "original" if made.attacker == "unprotected" else row[0]
        at = (who, row[1], made.family, made.attacker)
        own = [block.found.get((*at, by, made.figure)) for by in block.evaluators]
        told = show(own[0], made)
        defined = sorted(value.value for value in own if value and value.defined)
        if len(defined) > 1:
            told += f"; {show(defined[0], made)} to {show(defined[-1], made)}"
        return told

    return pivot(["system", "voices"], block.voices(), headed(COLUMNS["trainings"]), cell)


def inference_table(block: Selection) -> Table:
    """Sex and age band as one evaluator's x-vectors tell them."""
    own = where(block.shown(), family=Family.INFERENCE)
    if len(evaluators := each(own, "evaluator")) > 1:
        raise UserError(
            f"a table of inference needs evaluators= with one of {', '.join(evaluators)}"
        )
    return tabulate(tables.SPECS["inference"], own)


def attackers_table(block: Selection) -> Table:
    """EER, or the `figures` of the mark, of every attacker by every evaluator, of each system; the
    search for identities (`leakage`) is an attacker like others."""
    columns = [
        (made.heading.format(people), (split, made))
        for made in COLUMNS["attackers"]
        if made.figure in block.wanted
        for split, people in block.groups.items()
    ]

    def find(row: tuple[str, str, str], column: tuple[str, Measure]) -> measures.Value | None:
        (system, who, by), (split, made) = row, column
        attack = (Family.LEAKAGE, "") if who == Family.LEAKAGE else (Family.VERIFICATION, who)
        return block.found.get((system, split, *attack, by, made.figure))

    families = [Family.LEAKAGE, Family.VERIFICATION]
    wanted = where(block.figures, family=families, figure=[*block.wanted])
    evaluators = each(wanted, "evaluator")
    known = product(block.systems, (*wording.ATTACKERS, Family.LEAKAGE), evaluators)
    rows = [([code(row[0]), attacker(row[1]), row[2]], row) for row in known
            if any(find(row, column) for _, column in columns)]  # fmt: skip
    return pivot(["system", "attacker", "evaluator"], rows, columns, lambda row, column: show(
        find(row, column), column[1]
    ))  # fmt: skip


def recordings_table(block: Selection) -> Table:
    """Findings of each attacker, by the number of recordings of a person (docs/metrics)."""
    attacks = where(block.figures, figure=NAMED, system=[*block.systems])
    by = ["evaluator"] if attacks["evaluator"].nunique() > 1 else []  # or rows would look the same
    rows = [
        ([code(f.system), block.groups[f.split], attacker(f.attacker),
          *([f.evaluator] if by else []), made.heading], (f, made))
        for f in attacks.drop_duplicates(["system", "split", "attacker", "evaluator"]).itertuples()
        for made in COLUMNS["recordings"]
    ]  # fmt: skip

    def cell(row: tuple[Any, Measure], length: str) -> str:
        f, made = row
        at = (f.system, f.split, Family.VERIFICATION, f.attacker, f.evaluator)
        return show(block.found.get((*at, made.but(recordings=length).figure)), made, missing="–")

    columns = [(f"from {length}", length) for length in LENGTHS]
    return pivot(["system", "voices", "attacker", *by, "figure"], rows, columns, cell)


def targets_table(block: Selection) -> Table:
    """White box (Champion et al. 2021) by gender of the speakers: original speech, all targets of a
    series, those of the speakers' own and of the other gender (mean ± deviation), and each target.
    """
    attacks = block.shown()[block.shown()["family"] != Family.UTILITY]
    attacks = where(attacks, figure=[made.figure for made in COLUMNS["white_box"]])
    names = ["system", "split", "figure"]
    if (several := attacks[attacks.duplicated(names, keep=False)]).size:
        first = where(several, **several.iloc[0][names])
        told = sorted({f"{f.attacker} by {f.evaluator}" for f in first.itertuples()})
        raise UserError(f"a table of targets needs figures of one attacker, not {', '.join(told)}")
    found = frame.values(concat([attacks.assign(evaluator=""), block.figures]), *names, "evaluator")
    columns = [made for made in COLUMNS["white_box"] if made.figure in {*attacks["figure"]}]
    columns += block.measured("wer")

    def cell(row: tuple[str, Sequence[str]], made: Measure) -> str:
        of = [found.get((system, row[0], made.figure, made.by)) for system in row[1]]
        return (
            show(of[0], made) if len(of) == 1 else spread([v or measures.NOTHING for v in of], made)
        )

    rows: list[tuple[list[str], tuple[str, Sequence[str]]]] = []
    for gender in _GENDERS:
        spoken = [(code("original"), ["original"])]
        for name, systems in wording.target_series(block.systems, fewest=1).items():
            told = systems if "_of_" in name else []  # else nobody says which of them are women
            alike = [system for system in told if wording.target_gender(system) == gender]
            other = [system for system in told if system not in alike]
            for who, some in (("", systems), (", own gender", alike), (", other gender", other)):
                if len(some) > 1:
                    spoken.append((Marked(f"{code(name)}: {len(some)} targets{who}"), some))
            spoken += [(code(system), [system]) for system in systems]
        split = f"{block.split}_{gender}"
        rows += [([VOICES[gender], speech], (split, of)) for speech, of in spoken]
    return pivot(["voices", "speech"], rows, headed(columns), cell)


# ---- Other tables, and the page.


def csv_table(words: Sequence[str], page: Path) -> Table:
    """The table in FILE beside the page, cells in Markdown, or of its rows those that `rows=A,B`
    names by one of their first two cells (_ for a blank)."""
    (name, *_), options = read_mark(words, page, "FILE [rows=A,B]")
    wanted = {_row_name(row) for row in options["rows"].split(",")} if options else set()
    lines = read_bytes(page.parent / name).decode("utf-8").splitlines()
    header, *rows = [[Marked(cell) for cell in row] for row in csv.reader(lines)]
    if bad := next((i for i, row in enumerate(rows, 2) if len(row) != len(header)), None):
        raise UserError(f"{page.parent / name}:{bad}: not the {len(header)} cells of the header")
    named = [{_row_name(cell) for cell in row[:2]} for row in rows]
    if missing := sorted(wanted - set().union(*named)):
        raise UserError(f"{page}: table: csv {name}: no row begins with {missing[0]}")
    kept = [row for row, names in zip(rows, named, strict=True) if not wanted or wanted & names]
    return Table([*header], [[*row] for row in kept])


def _row_name(cell: str) -> str:
    return cell.replace("_", " ").strip("`")


# Of figures that a mark selects, and others.
SELECTED: Mapping[str, Callable[[Selection], Table]] = {
    "use": use_table,
    "overview": overview_table,
    "alike": alike_table,
    "front": front_table,
    "attackers": attackers_table,
    "trainings": trainings_table,
    "recordings": recordings_table,
    "targets": targets_table,
    "groups": lambda block: tables.group_table(block.shown()),
    "crowd": lambda block: tables.crowd_table(block.shown()),
    "inference": inference_table,
}
OTHERS: Mapping[str, Callable[[Sequence[str], Path], Table]] = {
    "leaders": leaders_table,
    "voices": voices_table,
    "csv": csv_table,
    "nist": nist_table,
    "paper": paper_table,
    "claims": tables.claims_table,
    "verdicts": lambda *_: verdicts_table(),
    "cards": lambda *_: tables.cards_table(),
}
_BLOCK = re.compile(
    r"(?P<begin><!-- table: (?P<kind>\w+)(?P<words>[^\n]*?)(?: columns=(?P<columns>\S+))? -->\n)"
    r".*?(?P<end><!-- end -->)",
    re.DOTALL,
)


def render_page(path: Path) -> str:
    """The text of a page with every marked table as its data have it; UserError for bad marks."""

    def render(match: re.Match[str]) -> str:
        kind, words = match["kind"], match["words"].split()
        if kind in SELECTED:
            table = SELECTED[kind](Selection.read(words, path))
        elif kind in OTHERS:
            table = OTHERS[kind](words, path)
        else:
            known = ", ".join((*SELECTED, *OTHERS))
            raise UserError(f"{path}: table: {kind} is unknown; known: {known}")
        if match["columns"]:
            begins = tuple(match["columns"].replace("_", " ").split(","))
            kept = [i for i, head in enumerate(table.header) if head.startswith(begins)]
            if len(kept) < len(begins):
                raise UserError(f"{path}: table: {kind} has not all of columns={match['columns']}")
            head, *rows = ([row[i] for i in kept] for row in (table.header, *table.rows))
            table = Table(head, rows)
        return f"{match['begin']}{table.markdown()}\n{match['end']}"

    return _BLOCK.sub(render, path.read_text(encoding="utf-8"))


# ---- A paper's tables beside those of a run.


def cite(paper: str) -> str:
    """The author and year of a paper as the name of a file: champion_2021."""
    words = TABLES["papers"][paper].lower().replace("é", "e").split()
    return f"{words[0]}_{words[-1]}"


def is_white_box(metrics: DataFrame) -> bool:
    """Whether a run attacked constant voices of women and of men by a white box (Champion et al.
    2021)."""
    attacked = metrics[metrics["attacker"].str.startswith("white_box")]
    attacked = attacked[attacked["gender"].isin(_GENDERS)]
    return any(map(wording.TARGET.fullmatch, attacked["system"]))


def beside_paper(paper: str, results: Path, out: Path) -> str:
    """Write OUT/<author>_<year>.md with the paper's tables, and the figures of a folder of results
    beside them or beneath; returns the same for a console. UserError where the run has none."""
    figures = frame.read_figures(results / "metrics.csv")
    asked, page = TABLES["repeated"][paper], out / f"{cite(paper)}.md"
    alone = where(figures, gender=_GENDERS)
    splits = dict(zip(alone["split"], alone["gender"], strict=True))
    if not splits:
        raise UserError(f"{results}/metrics.csv: no figures of women or men alone, as papers have")
    beside = [os.path.relpath(results, out)]
    if paper == "001":  # of its strongest attacker
        rows = frame.eers(figures[figures["attacker"].str.startswith("white_box")])
        of_each = rows.groupby(["attacker", "evaluator"], sort=False)["value"].mean()
        attacker_, by = of_each.idxmin()
        split = next(name.removesuffix(f"_{gender}") for name, gender in splits.items())
        beside += [f"split={split}", f"attackers={attacker_}", f"evaluators={by}"]
    else:
        sets = ",".join(f"{asked['sets']}_{gender}:{split}" for split, gender in splits.items())
        own = figures[figures["family"] != Family.UTILITY]
        beside += [f"sets={sets}", f"evaluators={','.join(each(own, 'evaluator'))}"]
    marks = [mark.format(beside=" ".join(beside)) for mark in asked["marks"]]
    heads = [mark.partition(":")[2].partition(" ")[0] for mark in marks]
    parts = [f"\n## {f'Table {head}' if head else 'Here'}\n\n<!-- table: {mark} -->\n<!-- end -->\n"
             for head, mark in zip(heads, marks, strict=True)]  # fmt: skip
    cited = TABLES["papers"][paper]
    write_file(page, "".join((f"# {cited}, and here\n", *parts)))
    text = render_page(page)
    write_file(page, text)
    return as_text(text, cited)


def as_text(page: str, title: str, *of: str) -> str:
    """The tables of a page for a console, those under headings that hold one of some words."""
    told = [f"{title}, and here"]
    for heading, rows in find_tables(page):
        if any(words in heading for words in of or ("",)):
            told += ["", heading, _text(rows)]
    return "\n".join(told) + "\n"


def _text(rows: Sequence[Sequence[str]]) -> str:
    """Rows in blocks that a console has room for; names of rows stand in each."""
    header, *body = ([re.sub(r"[`*]|\\(?=[_*<|])", "", cell) for cell in row] for row in rows)
    n = 2 if header[1:2] == ["set"] else 1
    names = [", ".join(row[:n]) for row in body]
    return DataFrame([row[n:] for row in body], names, header[n:]).to_string(line_width=CONSOLE)


# ---- Every table of a page as LaTeX (booktabs).

_CELL = re.compile(r"(?<!\\)\|")
_FENCED = re.compile(r"^```.*?(?:^```|\Z)", re.M | re.S)
_HEADING_OR_TABLE = re.compile(
    r"^#+ *(?P<heading>.*)|"
    r"^(?P<header>\|.*)\n\|?(?:\s*:?-+:?\s*\|)+\s*:?-*:?\s*\|?\n(?P<rows>(?:\|.*(?:\n|\Z))*)", re.M
)  # fmt: skip
_MARKS = (  # of Markdown, after escaping
    (re.compile(r"\[([^]]*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"`+([^`]+)`+"), r"\\texttt{\1}"),
    (re.compile(r"\*\*([^*]+)\*\*"), r"\\textbf{\1}"),
    (re.compile(r"\*([^*]+)\*"), r"\\emph{\1}"),
)


def find_tables(text: str) -> Iterator[tuple[str, list[list[str]]]]:
    """The tables of a page, each with the heading above it; the first row is the header."""
    heading = ""
    for match in _HEADING_OR_TABLE.finditer(_FENCED.sub("", "\n".join(text.splitlines()))):
        if match["header"] is None:
            heading = match["heading"].strip()
        else:
            yield heading, [*map(_cells, (match["header"], *match["rows"].splitlines()))]


def _cells(line: str) -> list[str]:
    parts = _CELL.split(line.strip())[1:]
    if parts and not parts[-1].strip():
        parts.pop()
    return [part.strip().replace(r"\|", "|") for part in parts]


def escape(text: str) -> str:
    """A cell of Markdown in LaTeX.

    >>> escape("`b2_x` 9.1 [0.0, 28.3] % −1")
    '\\\\texttt{b2\\\\_x} 9.1 [0.0, 28.3] \\\\% $-$1'
    """
    plain = re.sub(r"\\([\\`*_<&|])", r"\1", text)
    found = "".join(TABLES["latex"].get(letter, letter) for letter in plain)
    for pattern, replacement in _MARKS:
        found = pattern.sub(replacement, found)
    return "{}" + found if found[:1] in ("[", "*") else found  # or \\\\ before it would take it


_SENTENCE = 40  # letters from which on a column has lines that break
_FIT = r"\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n\g<0>}"


def latex(heading: str, rows: list[list[str]]) -> str:
    """A table as a `table*`, for the packages booktabs and graphicx; one that is too wide is made
    smaller."""
    width = max(map(len, rows))
    whole = [[*map(escape, row)] + [""] * (width - len(row)) for row in rows]
    longest = (max(map(len, column)) for column in zip(*whole, strict=True))
    header, *body = whole
    made = DataFrame(body, columns=header).style.hide(axis="index").to_latex(
        environment="table*", position_float="centering", caption=escape(heading), hrules=True,
        column_format="".join("p{5cm}" if n > _SENTENCE else "l" for n in longest),
    )  # fmt: skip
    return re.sub(r"\\begin.tabular.*end.tabular.", _FIT, made, flags=re.DOTALL)
