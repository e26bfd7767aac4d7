"""The tables that people read: percent, dB and bit, each with its interval."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from local.report.results import Figure

MISSING = "not measured"
UNDEFINED = "not defined"

# What a row of a table speaks of: split, system, attacker, condition.
Subject = tuple[str, str, str, str]
Figures = dict[Subject, dict[str, Figure]]


@dataclass(frozen=True)
class Column:
    """A column of figures; with `attacker`, those of that attack, whatever the row speaks of."""

    title: str
    metric: str
    scale: float = 1.0
    digits: int = 3
    attacker: str = ""


ATTACK_COLUMNS = (
    Column("EER (%)", "eer", 100, 2),
    Column("ROCCH-EER (%)", "eer_rocch", 100, 2),
    Column("D_ECE (bit)", "d_ece"),
    Column("l_w", "l_w", digits=2),
    Column("tag", "tag"),
    Column("min Cllr", "cllr_min"),
    Column("linkability D_sys", "linkability"),
)
SIMILARITY_COLUMNS = (
    Column("DeID (%)", "deid", 100, 1),
    Column("G_VD (dB)", "g_vd", digits=2),
    Column("D_diag OO", "d_diag_oo"),
    Column("D_diag OP", "d_diag_op"),
    Column("D_diag PP", "d_diag_pp"),
)
SUMMARY_COLUMNS = (
    *SIMILARITY_COLUMNS[:2],
    Column("EER unprotected (%)", "eer", 100, 1, "unprotected"),
    Column("EER ignorant (%)", "eer", 100, 1, "ignorant"),
    Column("EER lazy-informed (%)", "eer", 100, 1, "lazy_informed"),
    Column("D_ECE lazy-informed (bit)", "d_ece", 1, 3, "lazy_informed"),
    Column("linkability lazy-informed", "linkability", 1, 3, "lazy_informed"),
)
CONDITION = {"unprotected": "OO", "ignorant": "OA", "lazy_informed": "AA"}


def _number(text: str, scale: float, digits: int) -> str:
    try:
        value = float(text) * scale
    except ValueError:
        return text  # a tag
    if value in (float("inf"), float("-inf")):
        return "∞" if value > 0 else "−∞"
    return f"{value:.{digits}f}".replace("-", "−")


def cell(figure: Figure | None, column: Column) -> str:
    """A value with its 95 % interval in brackets; plain words where there is none."""
    if figure is None:
        return MISSING
    if figure.value == "":
        return UNDEFINED
    value = _number(figure.value, column.scale, column.digits)
    if not figure.low or not figure.high:
        return value
    low, high = (_number(t, column.scale, column.digits) for t in (figure.low, figure.high))
    return f"{value} [{low}, {high}]"


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; bars in cells are escaped."""
    lines = [list(header), ["---"] * len(header), *(list(row) for row in rows)]
    return "\n".join(
        "| " + " | ".join(text.replace("|", "\\|") for text in line) + " |" for line in lines
    )


def group(figures: Iterable[Figure]) -> Figures:
    """Figures of one evaluator by what they speak of, then by metric."""
    table: Figures = {}
    for f in figures:
        table.setdefault((f.split, f.system, f.attacker, f.condition), {})[f.metric] = f
    return table


def _cells(table: Figures, subject: Subject, columns: Sequence[Column]) -> list[str]:
    split, system, _, _ = subject
    cells = []
    for column in columns:
        of = subject
        if column.attacker:
            who = "original" if column.attacker == "unprotected" else system
            of = (split, who, column.attacker, CONDITION[column.attacker])
        cells.append(cell(table.get(of, {}).get(column.metric), column))
    return cells


def attack_table(table: Figures) -> str:
    """One row an attack: detection, ZEBRA and linkability on the enrolment-trial lists."""
    rows = []
    for subject, figures in table.items():
        if subject[2] != "similarity":
            f = next(iter(figures.values()))
            counts = [f.n_speakers, f.n_target, f.n_nontarget]
            rows.append([*subject, *_cells(table, subject, ATTACK_COLUMNS), *counts])
    names = ["split", "system", "attacker", "condition"]
    titles = [column.title for column in ATTACK_COLUMNS]
    return markdown([*names, *titles, "speakers", "target trials", "nontarget trials"], rows)


def similarity_table(table: Figures, columns: Sequence[Column] = SIMILARITY_COLUMNS) -> str:
    """One row a protected split: figures from all pairs of segments, and those of named attacks."""
    rows = []
    for subject, figures in table.items():
        if subject[2] == "similarity":
            f = next(iter(figures.values()))
            cells = _cells(table, subject, columns)
            rows.append([*subject[:2], *cells, f.n_speakers, f.n_segments])
    titles = [column.title for column in columns]
    return markdown(["split", "system", *titles, "speakers", "segments"], rows)


def summary_table(table: Figures) -> str:
    """One row a system and split: the figures a reader asks for first."""
    return similarity_table(table, SUMMARY_COLUMNS)
