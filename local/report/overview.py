# SPDX-License-Identifier: Apache-2.0
"""Tables of results pages, rendered from committed data between marks in Markdown."""

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from pathlib import Path

from local.report.front import trades
from local.report.load import NOTHING, Value
from local.report.nist import nist_table
from local.report.papers import claims_table, paper_table, verdicts_table
from local.report.results import Figure, read_table
from local.report.strongest import EER, strongest, unprotected
from local.report.tables import SIMILARITY_COLUMNS, Column, Table, cell
from local.report.whitebox import FIGURES, spread
from local.report.words import (
    ATTACKERS,
    GROUPS,
    UTILITY,
    Marked,
    attacker,
    code,
    enumerate_words,
    number,
    parse,
    target_gender,
    target_series,
)
from utils.cli import UserError
from utils.tables import read_bytes

_BLOCK = re.compile(
    r"(?P<begin><!-- table: (?P<kind>\w+)(?P<words>[^\n]*?) -->\n).*?(?P<end><!-- end -->)",
    re.DOTALL,
)
_OPTIONS = {"split", "systems", "evaluators", "figures"}
_GENDERS = ("f", "m")  # have a column or row, even where nothing was measured
_WORDS = (
    Column("WER by {} (%)", "wer", 100, 1),
    Column("CER by {} (%)", "cer", 100, 1),
    Column("UAR by {} (%)", "uar", 100, 1),
    Column("estimated MOS", "mos", 1, 2),
    Column("MOS lost", "mos_drop", 1, 2),
)
_OF_ATTACKERS = {  # what a table of attackers may show, for each group of voices
    column.metric: column
    for column in (
        Column("EER, {} (%)", "eer", 100, 1),
        Column("D_ECE, {} (bit)", "d_ece"),
        Column("named first, {} (%)", "reid_top_1", 100, 1),
        Column("CMC@1, {} (%)", "cmc_1", 100, 1),
        Column("clustered chance, {} (%)", "chance_clustered_cmc_1", 100, 1),
        Column("p of CMC@1, {}", "p_value_cmc_1"),
    )
}


@dataclass(frozen=True)
class Block:
    """What a mark asks for: `<!-- table: KIND FOLDER... split=SPLIT [systems=A,B] ... -->`.

    Folders hold metrics.csv and are relative to the page. systems: which rows, in which order.
    evaluators: whose figures; all when it is empty. wanted: which figures (of attackers alone).
    """

    figures: list[Figure]
    split: str
    systems: Sequence[str]
    evaluators: Sequence[str]
    wanted: Sequence[str] = ("eer",)

    @property
    def groups(self) -> dict[str, str]:
        """Whose voices there are: the end of a split, and a name."""
        there = {f.split for f in self.figures}
        return {
            end: people
            for end, people in GROUPS.items()
            if end in _GENDERS or f"{self.split}_{end}" in there
        }

    @classmethod
    def read(cls, words: Sequence[str], page: Path) -> "Block":
        """UserError where a word or a folder is not known."""
        options = dict(word.split("=", 1) for word in words if "=" in word)
        folders = [word for word in words if "=" not in word]
        if unknown := options.keys() - _OPTIONS:
            known = ", ".join(f"{name}=" for name in sorted(_OPTIONS))
            raise UserError(f"{page}: a table asks for {min(unknown)}=; known: {known}")
        if not folders or "split" not in options:
            raise UserError(f"{page}: a table names no folder of results, or no split=")
        tables = [page.parent / folder / "metrics.csv" for folder in folders]
        figures = list(chain.from_iterable(read_table(path, Figure) for path in tables))
        split = options["split"]
        own = [f for f in figures if f.split in (split, *(f"{split}_{g}" for g in GROUPS))]
        if not own:
            raise UserError(f"{page}: the results of {' '.join(folders)} have no split {split}")
        found = dict.fromkeys(f.system for f in own)
        named = {
            name: options[name].split(",") for name in ("systems", "evaluators") if name in options
        }
        systems = named.get("systems", sorted(found, key=lambda s: s != "original"))
        evaluators = named.get("evaluators", [])
        there = found.keys() | {f.evaluator for f in own}
        if missing := [name for name in (*systems, *evaluators) if name not in there]:
            raise UserError(f"{page}: the results of {' '.join(folders)} have no {missing[0]}")
        if evaluators:
            own = [f for f in own if f.evaluator in evaluators]
        wanted = options.get("figures", "eer").split(",")
        if strange := [name for name in wanted if name not in _OF_ATTACKERS]:
            known = ", ".join(_OF_ATTACKERS)
            raise UserError(f"{page}: a table asks for the figure {strange[0]}; known: {known}")
        return cls(own, split, systems, evaluators, wanted)


Measured = list[tuple[Column, str]]


def _measured(block: Block, columns: Sequence[Column] = _WORDS) -> Measured:
    """Columns of use that the block has figures for, each with what measured it."""
    use = [f for f in block.figures if f.attacker == UTILITY]
    return [
        (Column(column.title.format(by), column.metric, column.scale, column.digits), by)
        for column in columns
        for by in dict.fromkeys(f.evaluator for f in use if f.metric == column.metric)
    ]


def _use_cells(block: Block, split: str, system: str, measured: Measured) -> list[str]:
    own = {
        (f.evaluator, f.metric): f
        for f in block.figures
        if (f.attacker, f.split, f.system) == (UTILITY, split, system)
    }
    return [
        "" if system == "original" and column.metric == "mos_drop"  # it has lost nothing
        else cell(own.get((by, column.metric)), column)
        for column, by in measured
    ]  # fmt: skip


def use_table(block: Block) -> Table:
    """Words, emotions and quality of each system, by everything that measured them."""
    measured = _measured(block)
    rows = [
        [code(system), *_use_cells(block, block.split, system, measured)]
        for system in block.systems
    ]
    return Table(["system", *(column.title for column, _ in measured)], rows, 1)


def overview_table(block: Block) -> Table:
    """EER of the strongest attacker of each system and gender, with that evaluator's EER without
    protection, DeID and G_VD; and beside them words, emotions and quality."""
    best = {(s.system, s.split): s.eer for s in strongest(block.figures) if s.eer is not None}
    bare = unprotected(block.figures)
    gains = SIMILARITY_COLUMNS[:2]
    measured = _measured(block, [c for c in _WORDS if c.metric in ("wer", "uar", "mos")])
    rows = []
    for system, (gender, people) in product(block.systems, block.groups.items()):
        split = f"{block.split}_{gender}"
        own = [f for f in block.figures if (f.system, f.split) == (system, split)]
        own_bare = (f for f in unprotected(own).values() if f.split == split)
        eer = best.get((system, split)) or min(own_bare, key=lambda f: parse(f.value), default=None)
        if eer is None:
            continue
        by = ("similarity", eer.evaluator)
        alike = {f.metric: f for f in own if (f.attacker, f.evaluator) == by}
        protected = [cell(bare.get((split, eer.evaluator)), EER)]
        protected += [cell(alike.get(column.metric), column) for column in gains]
        rows.append(
            [code(system), people, cell(eer, EER), attacker(eer.attacker), eer.evaluator,
             *(protected if system != "original" else [""] * len(protected)),
             *_use_cells(block, split, system, measured)]
        )  # fmt: skip
    header = [
        "system", "voices", EER.title, "attacker", "evaluator", "without protection (%)",
        *(column.title for column in gains), *(column.title for column, _ in measured),
    ]  # fmt: skip
    return Table(header, rows, 2)


def front_table(block: Block) -> Table:
    """Privacy against words: the lowest EER and the WER of each system and gender, and
    which systems are at least as good in both and better in one (none: the Pareto front)."""
    rows = []
    for trade in trades(f for f in block.figures if f.system in (*block.systems, "original")):
        people = block.groups.get(trade.split.removeprefix(f"{block.split}_"))
        if trade.metric != "wer" or people is None:
            continue
        for point in sorted(trade.points, key=lambda p: (-p.privacy.value, p.system)):
            numbers = [number(100 * v.value, 1) for v in (point.privacy, point.utility)]
            before = enumerate_words([p.system for p in trade.behind(point)])
            told = f"behind {before}" if before else Marked("**on the front**")
            rows.append([people, code(point.system), *numbers, trade.recogniser, told])
    header = [
        "voices",
        "system",
        "EER, folded at 50 % (%)",
        "WER (%)",
        "recogniser",
        "Pareto front",
    ]
    return Table(header, rows, 2)


_SHOWN = (
    *SIMILARITY_COLUMNS[:2],
    *(
        Column(f"EER {words} (%)", "eer", 100, 1, name)
        for name, words in (
            ("unprotected", "unprotected"),
            ("ignorant", "ignorant"),
            ("aligned", "aligned"),
            ("lazy_informed", "lazy-informed"),
        )
    ),
)


def trainings_table(block: Block) -> Table:
    """Figures of the first evaluator of the mark, with their interval over speakers; after it, from
    the lowest to the highest of all its evaluators, which are trainings of one."""
    if not block.evaluators:
        raise UserError("a table of trainings needs evaluators=")
    rows = []
    for system, (gender, people) in product(block.systems, block.groups.items()):
        split = f"{block.split}_{gender}"
        cells = []
        for column in _SHOWN:
            who = "original" if column.attacker == "unprotected" else system
            own = {
                f.evaluator: f
                for f in block.figures
                if (f.system, f.split, f.metric) == (who, split, column.metric)
                and f.attacker == (column.attacker or "similarity")
            }
            told = cell(own.get(block.evaluators[0]), column)
            defined = sorted((f for f in own.values() if f.value), key=lambda f: float(f.value))
            if len(defined) > 1:
                ends = (
                    cell(replace(f, low="", high=""), column) for f in defined[:: len(defined) - 1]
                )
                told += f"; {' to '.join(ends)}"
            cells.append(told)
        rows.append([code(system), people, *cells])
    return Table(["system", "voices", *(column.title for column in _SHOWN)], rows, 2)


def attackers_table(block: Block) -> Table:
    """EER, or the `figures` of the mark, of every attacker by every evaluator, of each system; the
    search for identities (`leakage`) is an attacker like others."""
    found = {
        (f.system, f.attacker.removeprefix("reid_"), f.evaluator, f.split, f.metric): f
        for f in block.figures
        if f.metric in block.wanted
    }
    known = [name for name in (*ATTACKERS, "leakage") if any(name == key[1] for key in found)]
    evaluators = dict.fromkeys(key[2] for key in found)
    columns = [_OF_ATTACKERS[name] for name in block.wanted]
    rows = []
    for system, who, by in product(block.systems, known, evaluators):
        own = [
            (found.get((system, who, by, f"{block.split}_{gender}", column.metric)), column)
            for column, gender in product(columns, block.groups)
        ]
        if any(figure for figure, _ in own):
            rows.append([code(system), attacker(who), by, *(cell(*pair) for pair in own)])
    titles = [c.title.format(people) for c, people in product(columns, block.groups.values())]
    return Table(["system", "attacker", "evaluator", *titles], rows, 3)


def targets_table(block: Block) -> Table:
    """White box (001) by gender of the speakers: original speech, all targets of a series, those of
    the speakers' own and of the other gender (mean ± deviation), and each target."""
    series = target_series(block.systems, fewest=1)
    measured = _measured(block, _WORDS[:1])
    own = {(f.system, f.split, f.metric): f for f in block.figures if f.attacker != UTILITY}
    found = {(f.system, f.split, f.metric, f.evaluator): f for f in block.figures}
    columns = [c for c in FIGURES if any(c.metric == metric for _, _, metric in own)]
    rows = []
    for gender in _GENDERS:
        people, split = GROUPS[gender], f"{block.split}_{gender}"

        def cells(systems: Sequence[str], split: str = split) -> list[str]:
            of = [(c, [own.get((s, split, c.metric)) for s in systems]) for c in columns]
            of += [
                (c, [found.get((s, split, c.metric, by)) for s in systems]) for c, by in measured
            ]
            if len(systems) == 1:
                return [cell(figures[0], c) for c, figures in of]
            return [spread([_value_of(f) for f in figures], c) for c, figures in of]

        rows.append([people, code("original"), *cells(["original"])])
        for name, systems in series.items():
            alike = [s for s in systems if target_gender(s) == gender]
            other = [s for s in systems if s not in alike]
            for who, some in (("", systems), ("own gender", alike), ("other gender", other)):
                of = f"{len(some)} targets" + (f", {who}" if who else "")
                rows += (
                    [[people, Marked(f"{code(name)}: {of}"), *cells(some)]] if len(some) > 1 else []
                )
            rows += [[people, code(system), *cells([system])] for system in systems]
    titles = [column.title for column in (*columns, *(c for c, _ in measured))]
    return Table(["voices", "speech", *titles], rows, 2)


def voices_table(words: Sequence[str], page: Path) -> Table:
    """Generators of FOLDER/generators.csv: how much alike the most voices are, and their cost."""
    # Here: it draws, too, and so loads Matplotlib, which no other table needs.
    from local.report.generators import ABOVE, CAPACITY, HERE, read_rows

    if len(words) != 1:
        raise UserError(f"{page}: a table of voices names one folder of results")
    own = [r for r in read_rows(page.parent / words[0] / "generators.csv") if r.of == HERE]
    most: dict[tuple[str, str], int] = {}
    for row in own:
        if row.figure == CAPACITY["mean"]:
            subject = row.generator, row.indices
            most[subject] = max(most.get(subject, 0), row.n)
    rows = []
    for (generator, indices), n in most.items():
        if indices == "mixed":  # of which a number tells nothing without the curve
            continue
        subject = generator, indices
        of = {r.figure: r.value for r in own if ((r.generator, r.indices), r.n) == (subject, n)}
        cost = {r.figure: r.value for r in own if (r.generator, r.indices) == (generator, "")}
        mean, least, highest = (number(of[CAPACITY[name]], 3) for name in ("mean", "min", "max"))
        used = indices == "calibrated" or (generator, "calibrated") not in most
        milliseconds = f"{1000 * cost['cpu_seconds']:.2g}" if used and cost else ""
        rows.append(
            [code(generator), indices, f"{n:,}", mean, f"{least}, {highest}",
             number(100 * of[ABOVE], 1) if ABOVE in of else "", milliseconds]
        )  # fmt: skip
    return Table([*_VOICES], rows, 2)


def csv_table(words: Sequence[str], page: Path) -> Table:
    """The table in FILE beside the page, cells in Markdown, or of its rows those that `rows=A,B`
    names by one of their first two cells (_ for a blank)."""
    name, *options = words or ("",)
    wanted: set[str] = set()
    for option in options:
        key, _, value = option.partition("=")
        if key != "rows":
            raise UserError(f"{page}: table: csv {name}: {option}: only rows=A,B is known")
        wanted = {_row_name(row) for row in value.split(",")}
    lines = read_bytes(page.parent / name).decode("utf-8").splitlines()
    header, *rows = [[Marked(cell) for cell in row] for row in csv.reader(lines)]
    if bad := next((i for i, row in enumerate(rows, 2) if len(row) != len(header)), None):
        raise UserError(f"{page.parent / name}:{bad}: not the {len(header)} cells of the header")
    named = [{_row_name(cell) for cell in row[:2]} for row in rows]
    if missing := sorted(wanted - set().union(*named)):
        raise UserError(f"{page}: table: csv {name}: no row begins with {missing[0]}")
    kept = [row for row, names in zip(rows, named, strict=True) if not wanted or wanted & names]
    return Table([*header], [[*row] for row in kept], 1)


def _row_name(cell: str) -> str:
    return cell.replace("_", " ").strip("`")


_VOICES = (
    "generator",
    "voices",
    "n",
    "mean cosine",
    "smallest, largest",
    "pairs above the threshold (%)",
    "CPU time of a vector (ms)",
)


def _value_of(figure: Figure | None) -> Value:
    """Of a row of figures; NOTHING where it is missing."""
    return NOTHING if figure is None else Value(parse(figure.value))


def _of_block(make: Callable[[Block], Table]) -> Callable[[Sequence[str], Path], Table]:
    return lambda words, page: make(Block.read(words, page))


KINDS: dict[str, Callable[[Sequence[str], Path], Table]] = {
    "use": _of_block(use_table),
    "overview": _of_block(overview_table),
    "front": _of_block(front_table),
    "attackers": _of_block(attackers_table),
    "trainings": _of_block(trainings_table),
    "targets": _of_block(targets_table),
    "voices": voices_table,
    "csv": csv_table,
    "nist": nist_table,
    "paper": paper_table,
    "claims": claims_table,
    "verdicts": verdicts_table,
}


def render_page(path: Path) -> str:
    """The text of a page with every marked table as its data have it; UserError for bad marks."""

    def replace(match: re.Match[str]) -> str:
        kind = KINDS.get(match["kind"])
        if kind is None:
            known = ", ".join(KINDS)
            raise UserError(f"{path}: table: {match['kind']} is unknown; known: {known}")
        table = kind(match["words"].split(), path)
        return f"{match['begin']}{table.markdown()}\n{match['end']}"

    return _BLOCK.sub(replace, path.read_text(encoding="utf-8"))


def marked(paths: Iterable[Path]) -> list[Path]:
    """The pages that have marks."""
    return [path for path in paths if "<!-- table: " in path.read_text(encoding="utf-8")]
