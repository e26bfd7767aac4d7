"""The tables that people read: percent, dB and bit, each with its interval."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from local.protocols.attackers import ATTACKERS, UNPROTECTED
from local.report.results import Figure, Timing
from local.report.words import (
    MOS_READING,
    UTILITY,
    UTILITY_METRICS,
    attacker,
    markdown_table,
    number,
)

MISSING = "not measured"
UNDEFINED = "not defined"
CERTAIN = 1 - 1e-6  # chance of canonical correlation from which on it says nothing

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
    Column("l_w (decades)", "l_w", digits=2),
    Column("tag", "tag"),
    Column("min Cllr (bit)", "cllr_min"),
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
CALIBRATION_COLUMNS = (
    Column("D_ECE run 0 (bit)", "d_ece_f0"),
    Column("D_ECE run 1 (bit)", "d_ece_f1"),
    Column("C_ECE linear (bit)", "c_ece_linear"),
    Column("C_ECE isotonic (bit)", "c_ece_isotonic"),
    Column("C_ECE uncalibrated (bit)", "c_ece_uncalibrated"),
)
LEAKAGE_COLUMNS = (
    Column("CMC@1 (%)", "cmc_1", 100, 1),
    Column("chance", "chance_cmc_1", 100, 1),
    Column("chance, clustered", "chance_clustered_cmc_1", 100, 1),
    Column("CMC@10 (%)", "cmc_10", 100, 1),
    Column("chance", "chance_cmc_10", 100, 1),
    Column("chance, clustered", "chance_clustered_cmc_10", 100, 1),
    Column("AUC-CMC", "auc_cmc"),
    Column("chance", "chance_auc_cmc"),
    Column("chance, clustered", "chance_clustered_auc_cmc"),
    Column("mean rank", "mean_rank", digits=1),
    Column("CMC@1 without own utterance (%)", "cmc_1_no_same_utt", 100, 1),
    Column("CCA top 10", "cca_top10"),
    Column("Procrustes cosine", "p_cos"),
)
LEGAL_COLUMNS = tuple(
    Column(f"{title}, {n} utterance{'s'[: n > 1]}{what}", f"{chance}legal_{metric}_l{n}", 100, 1)
    for n in (1, 3)
    for title, metric in (
        ("legal linkability", "linkability"),
        ("singling out", "singling_out"),
    )
    for what, chance in ((" (%)", ""), (": chance", "chance_"))
)
REID_COLUMNS = (
    Column("named at first, an utterance (%)", "reid_top_1", 100, 1),
    Column("chance", "chance_reid_top_1", 100, 1),
    Column("among three (%)", "reid_top_3", 100, 1),
    Column("chance", "chance_reid_top_3", 100, 1),
    Column("named at first, all utterances of a speaker (%)", "reid_speaker_top_1", 100, 1),
    Column("chance", "chance_reid_speaker_top_1", 100, 1),
    Column("mean rank", "reid_mean_rank", digits=1),
    Column("chance", "chance_reid_mean_rank", digits=1),
)
PROSODY_TITLE = "Prosody: protected speech beside its original"
PROSODY_COLUMNS = (
    Column("correlation of log F0", "f0_correlation", digits=2),
    Column("voicing agreement (%)", "voicing_agreement", 100, 1),
    Column("duration drift (%)", "duration_drift", 100, 2),
    Column("level change (dB)", "level_change", digits=1),
    Column("clipped samples (%)", "clipping", 100, 3),
    Column("clipped, original (%)", "clipping_original", 100, 3),
)
GAINS_TITLE = (
    "Disclosure avoided and distinctiveness gained: from the enrolment-trial lists (the paper's: "
    "Noé et al. 2022, Tables 3 and 4) and from all pairs of trial segments"
)
GAINS_COLUMNS = tuple(
    Column(f"{title}, {of}", metric, scale, digits, attacker)
    for title, scale, digits, of_lists, of_pairs in (
        ("D_ECE avoided (%)", 100, 1, "d_ece_oa_oo", "d_ece_op_oo"),
        ("min Cllr avoided (%)", 100, 1, "cllr_min_oa_oo", "cllr_min_op_oo"),
        ("gain of D_ECE (dB)", 1, 2, "g_d_ece_lists", "g_d_ece"),
        ("gain of min Cllr (dB)", 1, 2, "g_cllr_min_lists", "g_cllr_min"),
    )
    for of, metric, attacker in (
        ("lists (the paper's)", of_lists, "gains"),
        ("all pairs", of_pairs, "similarity"),
    )
)
CONDITION = {"unprotected": UNPROTECTED.condition} | {
    name: made.condition for name, made in ATTACKERS.items()
}
_CONDITION_OF = CONDITION | {"similarity": "OO-OP-PP", "gains": "OO-OA-AA"}


def _number(text: str, scale: float, digits: int) -> str:
    try:
        value = float(text) * scale
    except ValueError:
        return text  # a tag
    return number(value, digits)


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


@dataclass(frozen=True)
class Table:
    """Cells as people read them; the first `n_names` columns say what a row speaks of."""

    header: list[str]
    rows: list[list[str]]
    n_names: int = 2

    def markdown(self) -> str:
        """The table in Markdown."""
        return markdown_table(self.header, self.rows) if self.rows else MISSING.capitalize() + "."


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
            of = (split, who, column.attacker, _CONDITION_OF[column.attacker])
        cells.append(cell(table.get(of, {}).get(column.metric), column))
    return cells


def _table(
    table: Figures,
    attackers: Sequence[str],
    columns: Sequence[Column],
    *,
    names: Mapping[str, str] = MappingProxyType({}),
    counts: Mapping[str, str] = MappingProxyType({}),
) -> Table:
    """A row a subject of one of `attackers`, by split and system; how they are called; counts."""
    rows = []
    for subject, figures in sorted(table.items(), key=lambda item: item[0][0]):
        if subject[2] not in attackers:
            continue
        any_figure = next(iter(figures.values()))
        split, system, attack, condition = subject
        who = [names[attack], condition] if names else []
        own = [getattr(any_figure, field) for field in counts.values()]
        rows.append([split, system, *who, *_cells(table, subject, columns), *own])
    who = ["attacker", "condition"] if names else []
    titles = [column.title for column in columns]
    return Table(["split", "system", *who, *titles, *counts], rows, 2 + len(who))


TRIALS = {"target trials": "n_target", "nontarget trials": "n_nontarget"}


def summary_table(table: Figures) -> Table:
    """The figures a reader asks for first, a row a protected split."""
    counts = {"speakers": "n_speakers", "segments": "n_segments"}
    return _table(table, ["similarity"], SUMMARY_COLUMNS, counts=counts)


def attack_table(table: Figures) -> Table:
    """Detection, ZEBRA and linkability on the enrolment-trial lists, a row an attack."""
    counts = {"speakers": "n_speakers", "segments": "n_segments", **TRIALS}
    names = {name: attacker(name) for name in CONDITION}
    return _table(table, list(CONDITION), ATTACK_COLUMNS, names=names, counts=counts)


def similarity_table(table: Figures) -> Table:
    """Voice similarity from all pairs of trial segments, a row a protected split."""
    pairs = {"target pairs": "n_target", "nontarget pairs": "n_nontarget"}
    counts = {"speakers": "n_speakers", "segments": "n_segments", **pairs}
    return _table(table, ["similarity"], SIMILARITY_COLUMNS, counts=counts)


def informed_similarity_table(table: Figures) -> Table:
    """The same as evaluators hear it that were trained on protected speech (G_VD of VoicePAT)."""
    names = {f"similarity_{name}": attacker(name) for name in CONDITION}
    counts = {"speakers": "n_speakers", "segments": "n_segments"}
    return _table(table, list(names), SIMILARITY_COLUMNS, names=names, counts=counts)


def gains_table(table: Figures) -> Table:
    """Noé et al. 2022, Eq. 17 to 20, in both forms, a row a protected split."""
    counts = {"speakers": "n_speakers", "segments": "n_segments"}
    return _table(table, ["similarity"], GAINS_COLUMNS, counts=counts)


def calibration_table(table: Figures) -> Table:
    """What a calibration learnt on one protected run is worth on another (random systems only)."""
    counts = {"speakers": "n_speakers", "segments": "n_segments", **TRIALS}
    return _table(table, ["calibration"], CALIBRATION_COLUMNS, counts=counts)


def leakage_table(table: Figures) -> Table:
    """Identity leakage in embedding space, with its chance levels; without canonical correlation
    where too few segments make it 1 by construction."""
    counts = {"speakers": "n_speakers", "segments": "n_segments"}
    told = {subject: dict(figures) for subject, figures in table.items()}
    for figures in told.values():
        chance = figures.get("chance_cca_top10")
        if chance and chance.value and float(chance.value) > CERTAIN:
            figures["cca_top10"] = replace(chance, value="")
    return _table(told, ["leakage"], LEAKAGE_COLUMNS, counts=counts)


UTILITY_HEADER = ["split", "system", "measured by", "condition", "figure", "value", "speakers"]
USE_COLUMNS = {
    metric: Column(use.titled(metric), metric, use.scale, use.digits)
    for metric, use in UTILITY_METRICS.items()
}
_USEFUL = {
    **USE_COLUMNS,
    "cer": Column("CER (%)", "cer", 100, 1),
    "hypotheses_cut": Column("hypotheses without end, cut (%)", "hypotheses_cut", 100, 1),
    "mos_drop": Column("MOS lost", "mos_drop", digits=2),
}


def utility_table(figures: Iterable[Figure]) -> Table:
    """Words, characters, emotions and quality, a row a figure, original speech among them."""
    rows = [
        [f.split, f.system, f.evaluator, f.condition,
         _USEFUL[f.metric].title, cell(f, _USEFUL[f.metric]), f.n_speakers]
        for f in sorted(figures, key=lambda f: f.split)
        if f.metric in _USEFUL
    ]  # fmt: skip
    return Table(UTILITY_HEADER, rows, 5)


def utility_reading(figures: Iterable[Figure]) -> str:
    """What has to be said beside that table; nothing where it needs no word."""
    return MOS_READING if any(f.metric == "mos" for f in figures) else ""


RTF_TITLE = "Real-time factors"
RTF_READING = (
    "Seconds of computing for a second of audio: the wall time of all jobs of a stage, added up, "
    "with the start of the programs, over the length of the speech before protection (of what a "
    "pool or a training is made of, of the trials for recognition). Whatever else ran on the "
    "machine makes it higher, so compare only what was measured side by side. A stage that several "
    "systems share stands with each. Training time depends on the number of steps, hardly on the "
    "amount of speech."
)
RTF_HEADER = ["system", "stage", "RTF", "seconds", "seconds of audio", "jobs", "threads", "where"]


def rtf_table(timings: Iterable[Timing]) -> Table:
    """Real-time factors, a row a stage of a system; why one was not measured stands in the row."""
    rows = [
        [t.system, t.stage, f"{MISSING}: {t.missing}", *["-"] * 5]
        if t.missing
        else [t.system, t.stage, f"{float(t.rtf):.3g}", f"{float(t.seconds):.1f}",
              f"{float(t.audio_seconds):.1f}", t.jobs, t.threads, t.hosts]
        for t in timings
    ]  # fmt: skip
    return Table(RTF_HEADER, rows)


def prosody_table(figures: Iterable[Figure]) -> Table:
    """What protection did to pitch, length and level (docs/utility.md), a row a protected split."""
    own = group(f for f in figures if f.attacker == UTILITY and f.evaluator == "prosody")
    counts = {"speakers": "n_speakers", "segments": "n_segments"}
    return _table(own, [UTILITY], PROSODY_COLUMNS, counts=counts)


def reid_table(table: Figures) -> Table:
    """Naming the right one of the enrolled speakers, with its chance, a row an attack."""
    names = {f"reid_{name}": attacker(name) for name in CONDITION}
    counts = {"speakers": "n_speakers", "utterances": "n_segments"}
    return _table(table, list(names), REID_COLUMNS, names=names, counts=counts)


def legal_table(table: Figures) -> Table:
    """Singling out and legal linkability, with their chance levels, a row an attack."""
    names = {f"legal_{name}": attacker(name) for name in CONDITION}
    counts = {"speakers": "n_speakers"}
    return _table(table, list(names), LEGAL_COLUMNS, names=names, counts=counts)
