"""The tables that people read: what each shows is data, and one function makes them of figures."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from local.protocols.attackers import ATTACKERS, UNPROTECTED
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
from local.report.select import Evidence, Judged
from local.report.words import attacker, markdown_table

CERTAIN = 1 - 1e-6  # chance of canonical correlation from which on it says nothing
CONDITION = {"unprotected": UNPROTECTED.condition} | {
    name: made.condition for name, made in ATTACKERS.items()
}
_CONDITION_OF = {frame.SIMILARITY: "OO-OP-PP", frame.GAINS: "OO-OA-AA"}
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

    counts: its last columns. attackers: those that have rows; by default figures of no attacker.
    """

    title: str
    columns: Sequence[Measure]
    family: str
    counts: Mapping[str, str]
    attackers: Collection[str] = ()


def _measures(*names: str) -> tuple[Measure, ...]:
    return tuple(MEASURES[name] for name in names)


def _with_chance(name: str, *, clustered: bool = False) -> list[Measure]:
    """A measure, then what guessing gives; clustered: and what it gives with clusters kept."""
    whole = MEASURES[name]
    chance = whole.but(name=whole.chance, title="chance", unit="")
    kept = chance.but(name=f"chance_clustered_{name}", title="chance, clustered")
    return [whole, chance, kept][: 3 if clustered else 2]


ATTACK_COLUMNS = (
    measure("eer", digits=2),
    *_measures("eer_rocch", "d_ece", "l_w", "tag", "cllr_min", "linkability"),
)
SIMILARITY_COLUMNS = _measures("deid", "g_vd", "d_diag_oo", "d_diag_op", "d_diag_pp")
SUMMARY_COLUMNS = (
    *SIMILARITY_COLUMNS[:2],
    *(measure("eer", title=f"EER {ATTACKERS[a].words if a in ATTACKERS else a}",
              family=frame.VERIFICATION, attacker=a)
      for a in ("unprotected", "ignorant", "lazy_informed")),
    *(measure(name, title=f"{name.replace('d_ece', 'D_ECE')} lazy-informed",
              family=frame.VERIFICATION, attacker="lazy_informed")
      for name in ("d_ece", "linkability")),
)  # fmt: skip
CALIBRATION_COLUMNS = _measures(
    "d_ece_f0", "d_ece_f1", "c_ece_linear", "c_ece_isotonic", "c_ece_uncalibrated"
)
LEAKAGE_COLUMNS = (
    *(m for name in ("cmc_1", "cmc_10", "auc_cmc") for m in _with_chance(name, clustered=True)),
    *_measures("mean_rank", "cmc_1_no_same_utt", "cca_top10", "p_cos"),
)
LEGAL_COLUMNS = tuple(
    Measure(f"{chance}legal_{metric}_l{n}", f"{title}, {n} utterance{'s'[: n > 1]}{what}", unit,
            100, 1)
    for n in (1, 3)
    for title, metric in (("legal linkability", "linkability"), ("singling out", "singling_out"))
    for what, unit, chance in (("", "%", ""), (": chance", "", "chance_"))
)  # fmt: skip
REID_COLUMNS = tuple(
    m
    for name in ("reid_top_1", "reid_top_3", "reid_speaker_top_1", "reid_mean_rank")
    for m in _with_chance(name)
)
PROSODY_COLUMNS = _measures("f0_correlation", "voicing_agreement", "duration_drift", "level_change",
                            "clipping", "clipping_original")  # fmt: skip
GAINS_COLUMNS = tuple(
    measure(name, title=f"{MEASURES[name].heading}, {of}", unit="", family=who)
    for lists, pairs in (
        ("d_ece_oa_oo", "d_ece_op_oo"),
        ("cllr_min_oa_oo", "cllr_min_op_oo"),
        ("g_d_ece_lists", "g_d_ece"),
        ("g_cllr_min_lists", "g_cllr_min"),
    )
    for name, of, who in (
        (lists, "lists (the paper's)", frame.GAINS),
        (pairs, "all pairs", frame.SIMILARITY),
    )
)
PEOPLE = {"speakers": "n_speakers"}
SPEECH = PEOPLE | {"segments": "n_segments"}
TRIALS = SPEECH | {"target trials": "n_target", "nontarget trials": "n_nontarget"}
PAIRS = SPEECH | {"target pairs": "n_target", "nontarget pairs": "n_nontarget"}
SUMMARY = Spec("Summary", SUMMARY_COLUMNS, frame.SIMILARITY, SPEECH)
ATTACKS = Spec("Attacks on the enrolment-trial lists", ATTACK_COLUMNS, frame.VERIFICATION, TRIALS,
               CONDITION)  # fmt: skip
REID = Spec("Re-identification: who of the enrolled speakers is it?", REID_COLUMNS,
            frame.REIDENTIFICATION, PEOPLE | {"utterances": "n_segments"}, CONDITION)  # fmt: skip
GAINED = Spec(
    "Disclosure avoided and distinctiveness gained: from the enrolment-trial lists (the paper's: "
    "Noé et al. 2022, Tables 3 and 4) and from all pairs of trial segments",
    GAINS_COLUMNS, frame.SIMILARITY, SPEECH,
)  # fmt: skip
LEAKAGE = Spec("Identity leakage in embedding space, protected to original segments",
               LEAKAGE_COLUMNS, frame.LEAKAGE, SPEECH)  # fmt: skip
LEGAL = Spec("Legal criteria: singling out and linkability (not D_sys)", LEGAL_COLUMNS, frame.LEGAL,
             PEOPLE, CONDITION)  # fmt: skip
PROSODY = Spec(
    "Prosody: protected speech beside its original", PROSODY_COLUMNS, frame.UTILITY, SPEECH
)
SPECS = (
    SUMMARY,
    ATTACKS,
    REID,
    Spec("Voice similarity, all pairs of trial segments", SIMILARITY_COLUMNS,
         frame.SIMILARITY, PAIRS),
    Spec("Voice similarity, as heard by evaluators trained on protected speech (VoicePAT's G_VD)",
         SIMILARITY_COLUMNS, frame.SIMILARITY, SPEECH, CONDITION),
    GAINED,
    LEAKAGE,
    Spec("Calibration by an ignorant attacker who has another protected run (not defined for a "
         "deterministic system)", CALIBRATION_COLUMNS, frame.CALIBRATION, TRIALS),
    LEGAL,
)  # fmt: skip


def tabulate(spec: Spec, metrics: pd.DataFrame) -> Table:
    """The table of a specification, of the figures of one evaluator."""
    found = frame.values(metrics, *SUBJECT, "metric")
    named = bool(spec.attackers)
    own = where(metrics, family=spec.family, attacker=[*spec.attackers] or "")
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
    return show(found.get((*of, m.name)), m)


def prosody_table(metrics: pd.DataFrame) -> Table:
    """What protection did to pitch, length and level (docs/utility.md), a row a protected split."""
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
    header += [f"people named{_recordings(naming)}"] * bool(naming)
    header += ["worst-protected person"] * (not results.speakers.empty)
    header += [_by(*by) for by in kept]
    rows = []
    for system, name in select.verdict_rows(found).items():
        own = found[system]
        row = [name, _said(own), "; ".join(map(_eer, own))]
        if naming:
            row.append("; ".join(_named_people(j.named, j.group) for j in own if j.named) or "–")
        if not results.speakers.empty:
            worst = min((j.worst for j in own if j.worst), key=Person.order, default=None)
            row.append(f"{worst.name} (linkability {number(worst.linkability)})" if worst else "–")
        for by, of_systems in kept.items():
            after, before = (of_systems.get(s) for s in (system, "original"))
            told, was = (show(f and f.value, MEASURES[by[0]], missing="") for f in (after, before))
            row.append((f"{told} (was {was})" if was else told) if after else "–")
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


def _eer(judged: Judged) -> str:
    """The EER of one group with its interval, whose it is, and the same evaluator's before."""
    attack = judged.verdict.attack
    if attack is None or math.isnan(attack.eer.value):
        return f"{judged.group} {UNDEFINED}"
    text = f"{judged.group} {show(attack.eer, EER)} by {attacker(attack.attacker)}, "
    return f"{text}{attack.evaluator} (unprotected {show(attack.bare, EER, undefined='–')})"


def _recordings(naming: Sequence[Evidence]) -> str:
    """How many recordings of a person the attacker has."""
    each = sorted(round(a.recordings) for a in naming if math.isfinite(a.recordings))
    if not each:
        return ""
    n = f"{each[0]}" if each[0] == each[-1] else f"{each[0]} to {each[-1]}"
    return f" from {n} recordings each"


def _named_people(attack: Evidence, group: str) -> str:
    """How many people of a group are named and by whom; by guessing, and by the same evaluator
    without protection."""
    told = f"{number(attack.people * attack.named, 0)} of {number(attack.people, 0)} {group}"
    told += f" by {attacker(attack.attacker)}, {attack.evaluator}"
    beside = {"unprotected": attack.named_bare, "guessing": attack.chance}
    shares = [f"{word} {number(attack.people * share, 0)}" for word, share in beside.items()
              if math.isfinite(share)]  # fmt: skip
    return f"{told} ({', '.join(shares)})" if shares else told


CONVERSIONS = ("voice_conversion", "knn_vc")  # anonymisers that resynthesise another voice


def vocoder_table(results: Results, evaluator: str) -> Table:
    """How much of each conversion's rise of the ignorant EER copy synthesis has too, by split.

    (EER_copy - EER_OO) / (EER_system - EER_OO), where there is a rise and both have the
    same vocoder (copy synthesis: WORLD).
    """

    def eer(split: str, system: str, attack: str = "ignorant") -> Value:
        return results.value(evaluator, split, system, attack, "eer") or NOTHING

    settings = {system: results.settings(system) for system in results.systems()}
    rows = []
    for split in results.splits(evaluator):
        before = eer(split, "original", "unprotected")
        for copy, own in settings.items():
            copied = eer(split, copy)
            if own.get("anonymiser") != "copy_synthesis" or not (before.defined and copied.defined):
                continue
            for system, other in settings.items():
                after = eer(split, system)
                rise = after.value - before.value
                if other.get("anonymiser") in CONVERSIONS and after.defined and rise > 0 and (
                    _vocoder(own) == _vocoder(other)
                ):  # fmt: skip
                    share = (copied.value - before.value) / rise
                    of_it = (
                        "none" if share <= 0 else "all" if share >= 1 else frame.percent(share, 0)
                    )
                    eers = [show(v, EER) for v in (before, after, copied)]
                    gain = number(100 * rise, 1)
                    rows.append([system, split, *eers[:2], gain, copy, eers[2], of_it])
    header = ["system", "split", "EER unprotected (%)", "EER (%)", "rise (points)",
              "copy synthesis", "its EER (%)", "of the rise"]  # fmt: skip
    return Table(header, rows)


def _vocoder(settings: Mapping[str, Any]) -> str:
    """What turns features into speech: WORLD where the settings do not name another."""
    if settings.get("fine"):  # a copy by frames that no conversion on WORLD alone has
        return "fine"
    name = settings.get("features" if settings.get("anonymiser") == "knn_vc" else "synthesiser")
    return name if isinstance(name, str) else "world"
