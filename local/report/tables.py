"""The tables that people read: what each shows is data, and one function makes them of figures."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pandas as pd
import yaml

from local.metrics.recordings import LENGTHS
from local.protocols.attackers import ATTACKERS, CONTROLS, UNPROTECTED
from local.report import frame, select
from local.report.frame import (
    MEASURES,
    MISSING,
    NOTHING,
    UNDEFINED,
    Measure,
    Value,
    measure,
    number,
    show,
    value_of,
    where,
)
from local.report.load import Person, Results
from local.report.select import Judged, Verdict
from local.report.words import GROUPS, attacker, enumerate_words, markdown_table, say

CERTAIN = 1 - 1e-6  # chance of canonical correlation from which on it says nothing
CONDITION = {"unprotected": UNPROTECTED.condition} | {
    name: made.condition for name, made in ATTACKERS.items()
}
_CONDITION_OF = {frame.SIMILARITY: "OO-OP-PP", frame.GAINS: "OO-OA-AA"}
MOST_LINES = 2  # of verdicts on the console
SUBJECT = ("split", "system", "family", "attacker", "condition")


@dataclass(frozen=True)
class Table:
    """Cells as people read them; the first `n_names` columns say what a row speaks of."""

    header: list[str]
    rows: list[list[str]]
    n_names: int = 2

    def markdown(self) -> str:
        """The table in Markdown."""
        return markdown_table(self.header, self.rows) if self.rows else MISSING.capitalize() + "."


@dataclass(frozen=True)
class Spec:
    """A table with a row for each subject of a family of figures, by split and system.

    counts: its last columns. attackers: whether each attacker has rows; else those of none.
    """

    title: str
    columns: Sequence[Measure]
    family: str
    counts: Mapping[str, str]
    attackers: bool = False


def _read_specs() -> dict[str, Spec]:
    read = yaml.safe_load((frame.ROOT / "local/report/tables.yaml").read_text(encoding="utf-8"))
    for own in read.values():
        own["columns"] = [
            measure(column) if isinstance(column, str) else measure(**column)
            for column in own["columns"]
        ]
    return {name: Spec(**own) for name, own in read.items()}


SPECS = _read_specs()
PROSODY = SPECS.pop("prosody")  # of no evaluator of privacy, so not among the others


def tabulate(spec: Spec, metrics: pd.DataFrame) -> Table:
    """The table of a specification, of the figures of one evaluator."""
    found = frame.values(metrics, *SUBJECT, "metric")
    named = spec.attackers
    own = where(metrics, family=spec.family, attacker=[*CONDITION] if named else "")
    own = own.drop_duplicates([*SUBJECT])
    rows = []
    for f in own.sort_values("split", kind="stable").itertuples():
        who = [attacker(f.attacker), f.condition] if named else []
        cells = (_cell(found, f, m) for m in spec.columns)
        counts = (getattr(f, name) for name in spec.counts.values())
        rows.append([f.split, f.system, *who, *cells, *counts])
    who = ["attacker", "condition"] if named else []
    titles = (m.heading for m in spec.columns)
    return Table(["split", "system", *who, *titles, *spec.counts], rows, 2 + len(who))


def _cell(found: Mapping[tuple[str, ...], Value], f: Any, m: Measure) -> str:
    """The figure of a column; canonical correlation is not defined where too few segments make it 1
    by construction."""
    of = (f.split, f.system, f.family, f.attacker, f.condition)
    if m.family:
        who = "original" if m.attacker == "unprotected" else f.system
        condition = CONDITION.get(m.attacker) or _CONDITION_OF[m.family]
        of = (f.split, who, m.family, m.attacker, condition)
    if m.name == "cca_top10" and found.get((*of, m.chance), NOTHING).value > CERTAIN:
        return UNDEFINED
    nobody = "–" if m.name.endswith("_recordings") else MISSING  # has so many recordings
    return show(found.get((*of, m.name)), m, missing=nobody)


def prosody_table(metrics: pd.DataFrame) -> Table:
    """Changes of pitch, length and level (docs/utility.md), a row a protected split."""
    return tabulate(PROSODY, where(metrics, evaluator="prosody"))


UTILITY_HEADER = ["split", "system", "measured by", "condition", "figure", "value", "speakers"]
_USEFUL = (*frame.UTILITY_MEASURES, "cer", "hypotheses_cut", "mos_drop")


def utility_table(metrics: pd.DataFrame) -> Table:
    """Words, characters, emotions and quality, a row a figure, original speech among them."""
    own = where(metrics, metric=_USEFUL).sort_values("split", kind="stable")
    rows = [
        [f.split, f.system, f.evaluator, f.condition, MEASURES[f.metric].heading,
         show(value_of(f), MEASURES[f.metric]), f.n_speakers]
        for f in own.itertuples()
    ]  # fmt: skip
    return Table(UTILITY_HEADER, rows, 5)


def rtf_table(timings: pd.DataFrame) -> Table:
    """Real-time factors, a row a stage of a system; why one was not measured stands in the row."""
    rows = [
        [t.system, t.stage, f"{MISSING}: {t.missing}", *["-"] * 5]
        if t.missing
        else [t.system, t.stage, f"{float(t.rtf):.3g}", f"{float(t.seconds):.1f}",
              f"{float(t.audio_seconds):.1f}", t.jobs, t.threads, t.hosts]
        for t in timings.itertuples()
    ]  # fmt: skip
    header = ["system", "stage", "RTF", "seconds", "seconds of audio", "jobs", "threads", "where"]
    return Table(header, rows)


EER, D_ECE = MEASURES["eer"], MEASURES["d_ece"]


def _by(metric: str, name: str) -> str:
    """A heading of a measure of utility: `WER by ctc (%)`."""
    return measure(metric, title=f"{MEASURES[metric].title} by {name}").heading


def strongest_table(metrics: pd.DataFrame) -> Table:
    """The strongest attackers, a row a system and split, with what is left of use by each
    recogniser and, in brackets, what it was without protection."""
    useful = {
        (f.metric, f.evaluator, f.split, f.system): value_of(f)
        for f in where(metrics, family=frame.UTILITY, metric=frame.UTILITY_MEASURES).itertuples()
    }
    measured = list(dict.fromkeys(key[:2] for key in useful))
    bare, rows = select.unprotected(metrics), []
    for s in select.strongest(metrics):
        before = bare.get((s.split, s.eer.evaluator)) if s.eer else None
        row = [s.split, s.system, *_named(s.eer, EER), *_named(s.d_ece, D_ECE)]
        row += [
            show(before and value_of(before), EER),
            str(s.eers),
            s.eer.n_speakers if s.eer else "",
        ]
        for by in measured:
            told = show(useful.get((*by, s.split, s.system)), MEASURES[by[0]])
            was = useful.get((*by, s.split, "original"))
            row.append(told if was is None else f"{told} ({show(was, MEASURES[by[0]])})")
        rows.append(row)
    header = ["split", "system", "EER of the strongest attacker (%)", "attacker", "evaluator",
              "highest D_ECE (bit)", "attacker", "evaluator", "EER unprotected (%)", "compared",
              "speakers", *(_by(*by) for by in measured)]  # fmt: skip
    return Table(header, rows)


def control_table(metrics: pd.DataFrame) -> Table:
    """EERs under the controls, a row a split, attacker and evaluator."""
    eers = where(metrics, metric="eer", system=[*CONTROLS])
    found = frame.values(eers, "split", "attacker", "evaluator", "system")
    run = [name for name in CONTROLS if name in set(eers["system"])]
    rows = [
        [split, attacker(who), by, *(show(found.get((split, who, by, name)), EER) for name in run)]
        for split, who, by in sorted({of[:3] for of in found})
    ]
    rows = rows if run[1:] else []  # copy synthesis alone is a system like others
    return Table(["split", "attacker", "evaluator", *(f"{name} (%)" for name in run)], rows, 3)


CROWD = re.compile(r"(legal_linkability|named)_l(\d+|all)_n(\d+)")
CROWDS = {"named": "named at first", "legal_linkability": "legal linkability"}


def crowd_table(metrics: pd.DataFrame) -> Table:
    """Who is named at first among ever more candidates, a row an attack and number of recordings,
    and the same by cosines as regulators' criterion has them."""
    found: dict[tuple[str, ...], dict[int, str]] = {}
    for f in select.no_controls(where(metrics, family=frame.CROWD)).itertuples():
        if match := CROWD.fullmatch(f.metric):
            of = (f.split, f.system, attacker(f.attacker), f.evaluator, CROWDS[match[1]], match[2])
            found.setdefault(of, {})[int(match[3])] = show(value_of(f), MEASURES["reid_top_1"])
    sizes = sorted({n for own in found.values() for n in own})
    rows = [[*of, *(own.get(n, "–") for n in sizes)] for of, own in found.items()]
    head = ["split", "system", "attacker", "evaluator", "figure", "recordings"]
    return Table([*head, *(f"of {n} (%)" for n in sizes)], rows, 6)


GROUP = re.compile(r"(?P<figure>(?:eer|named)_(?:1|all)_recordings)_(?P<of>[a-z]+)")
GROUPED = {
    "eer_1_recordings": "EER", "eer_all_recordings": "EER from all recordings",
    "named_1_recordings": "named", "named_all_recordings": "named from all recordings",
}  # fmt: skip


def group_table(metrics: pd.DataFrame) -> Table:
    """The strongest attacker by group of people, a row a system, figure and attribute: each group,
    the worst, and by how much the best-protected one is better off."""
    own = select.no_controls(where(metrics, family=frame.GROUPS))
    found = frame.values(own, "system", "metric")
    rows = []
    for (system, metric), worst in found.items():
        if not (match := GROUP.fullmatch(metric.removeprefix("worst_"))) or not worst.tag:
            continue
        key, people = match[0], {m for s, m in found if s == system}
        each = [m for m in people if m.startswith(f"{key}_")]
        told = [f"{_group(match['of'], m.removeprefix(f'{key}_'))}: {show(found[system, m], EER)}"
                for m in sorted(each)]  # fmt: skip
        gap = show(found.get((system, f"gap_{key}")), EER)
        rows.append([system, GROUPED[match["figure"]], "; ".join(told),
                     _group(match["of"], worst.tag), gap])  # fmt: skip
    return Table(["system", "figure (%)", "groups", "worst group", "gap (points)"], rows)


def _group(attribute: str, value: str) -> str:
    return GROUPS.get(value, value) if attribute == "sex" else f"age {value.replace('_', ' ')}"


_BY_ENROLMENT = re.compile(r"eer_(?:normalised_)?(?:(\d+)_enrolled_)?(\d+|all)_recordings")


def enrolment_table(metrics: pd.DataFrame) -> Table:
    """EERs by recordings enrolled and heard, folded, a row an attack and number enrolled."""
    found: dict[tuple[str, ...], dict[str, Value]] = {}
    for f in where(metrics, family=frame.RECORDINGS).itertuples(index=False):
        if (named := _BY_ENROLMENT.fullmatch(f.metric)) and (own := value_of(f)).defined:
            at = (f.split, f.system, f.attacker, f.evaluator, named[1] or "all")
            eers, own = found.setdefault(at, {}), select.fold(own)
            eers[named[2]] = min(eers.get(named[2], own), own, key=lambda eer: eer.value)
    few = {at[:4] for at in found if at[4] != "all"}
    rows = [
        [*at[:2], attacker(at[2]), *at[3:], *(show(eers.get(n), EER, missing="–") for n in LENGTHS)]
        for at, eers in sorted(found.items())
        if at[:4] in few
    ]
    heard = [f"{n} heard (%)" for n in LENGTHS]
    return Table(["split", "system", "attacker", "evaluator", "enrolled", *heard], rows, 4)


def _named(row: Any | None, m: Measure) -> list[str]:
    """Value with interval, attacker, evaluator."""
    if row is None:
        return [UNDEFINED, "-", "-"]
    return [show(value_of(row), m), attacker(row.attacker), row.evaluator]


def verdict_table(results: Results) -> Table:
    """A row a system: the verdict, what the attacker who decides can do, the worst-protected
    person, and what is left of use. "; " parts the groups in a cell."""
    found, kept = select.verdicts(results), select.uses(results.metrics)
    naming = [own.named for judged in found.values() for own in judged if own.named]
    header = ["system", "verdict", "EER (%) of the strongest attacker (50: guessing)"]
    if naming:
        each = sorted(round(a.recordings) for a in naming if math.isfinite(a.recordings))
        header.append(say("people_named", each=each))
    beside = select.beside_words(results.metrics)
    header += ["the voice adds to the words (points of EER)"] * bool(beside)
    header += ["worst-protected person"] * (not results.speakers.empty)
    header += [_by(*by) for by in kept]
    rows = []
    for system, name in select.verdict_rows(found).items():
        own = found[system]
        row = [name, _said(own), "; ".join(say("decides", judged=j) for j in own)]
        if naming:
            told = [say("named", attack=j.named, group=j.group) for j in own if j.named]
            row.append("; ".join(told) or "–")
        if beside:
            told = [f"{j.group} {show(beside.get((system, j.split)), select.POINTS)}" for j in own]
            row.append("; ".join(told))
        if not results.speakers.empty:
            worst = min((j.worst for j in own if j.worst), key=Person.order, default=None)
            row.append(f"{worst.name} (linkability {number(worst.linkability)})" if worst else "–")
        for by, of_systems in kept.items():
            after, before = (of_systems.get(s) for s in (system, "original"))
            now, was = (show(f and f.value, MEASURES[by[0]], missing="") for f in (after, before))
            row.append((f"{now} (was {was})" if was else now) if after else "–")
        rows.append(row)
    return Table(header, rows, 2)


def _said(found: Sequence[Judged]) -> str:
    """The verdict on all groups, or each with its groups, the worst first."""
    told: dict[str, list[str]] = {}
    for own in sorted(found, key=lambda own: own.verdict.level):
        told.setdefault(str(own.verdict), []).append(own.group)
    if len(told) == 1:
        return next(iter(told))
    return "; ".join(f"{said} ({', '.join(groups)})" for said, groups in told.items())


def verdict_lines(results: Results) -> list[str]:
    """The verdicts for a console, in at most two lines: systems by verdict, a line for each group
    of people; where more lines would differ, each system by the worst of its groups."""
    found = select.verdicts(results)
    of_groups: dict[str, dict[str, Verdict]] = {}
    for system in select.verdict_rows(found):
        for own in found[system]:
            of_groups.setdefault(own.group, {})[system] = own.verdict
    lines: dict[str, list[str]] = {}
    for group, verdicts in of_groups.items():
        lines.setdefault(_by_level(verdicts), []).append(group)
    if len(lines) > MOST_LINES:
        worst = [min(found[s], key=lambda j: j.verdict.level) for s in select.verdict_rows(found)]
        named = zip(select.verdict_rows(found), worst, strict=True)
        said = _by_level({f"{system}: {own.group}": own.verdict for system, own in named})
        lines = {said: ["the worst group of each system"]}
    return [f"{' and '.join(groups)}: {said}" for said, groups in lines.items()]


def _by_level(verdicts: Mapping[str, Verdict]) -> str:
    """Each level with the systems that have it, the best first; why, where all have one reason."""
    told = []
    for level in sorted({v.level for v in verdicts.values()}, reverse=True):
        own = {system: v.why for system, v in verdicts.items() if v.level is level}
        why = next(iter(own.values())) if len({*own.values()}) == 1 else ""
        said = f"{select.WORDS[level]}, {why}" if why else select.WORDS[level]
        told.append(f"{said} ({enumerate_words([*own], most=4)})")
    return " · ".join(told)


CONVERSIONS = ("voice_conversion", "knn_vc")  # anonymisers that resynthesise another voice


def vocoder_table(results: Results, evaluator: str) -> Table:
    """How much of each conversion's rise of the ignorant EER copy synthesis has too, by split.

    (EER_copy - EER_OO) / (EER_system - EER_OO), where there is a rise and both have the
    same vocoder (copy synthesis: WORLD).
    """

    def eer(split: str, system: str, attack: str = "ignorant") -> Value:
        return results.value(evaluator, split, system, attack, "eer") or NOTHING

    settings = {system: results.settings(system) for system in results.systems()}
    copies, conversions = (
        [system for system, own in settings.items() if own.get("anonymiser") in kinds]
        for kinds in (("copy_synthesis",), CONVERSIONS)
    )
    rows = []
    for split, copy, system in product(results.splits(evaluator), copies, conversions):
        before, after = eer(split, "original", "unprotected"), eer(split, system)
        copied, rise = eer(split, copy), after.value - before.value
        alike = _vocoder(settings[copy]) == _vocoder(settings[system])
        if alike and copied.defined and rise > 0:
            share = (copied.value - before.value) / rise
            of_it = "none" if share <= 0 else "all" if share >= 1 else frame.percent(share, 0)
            eers = [show(v, EER) for v in (before, after, copied)]
            rows.append([system, split, *eers[:2], number(100 * rise, 1), copy, eers[2], of_it])
    header = ["system", "split", "EER unprotected (%)", "EER (%)", "rise (points)",
              "copy synthesis", "its EER (%)", "of the rise"]  # fmt: skip
    return Table(header, rows)


def _vocoder(settings: Mapping[str, Any]) -> str:
    """Vocoder that turns features into speech: WORLD where the settings do not name another."""
    if settings.get("fine"):  # a copy by frames that no conversion on WORLD alone has
        return "fine"
    name = settings.get("features" if settings.get("anonymiser") == "knn_vc" else "synthesiser")
    return name if isinstance(name, str) else "world"
