# SPDX-License-Identifier: Apache-2.0
"""What a reader wants to know first: systems compared in words, and what is not known."""

import math
import statistics
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import product

from local.metrics.detection import folded
from local.report.load import Results, Value
from local.report.speakers import worst_first
from local.report.words import (
    HEARD,
    UTILITY,
    UTILITY_METRICS,
    absent,
    attacker,
    enumerate_words,
    number,
    percent,
)


@dataclass(frozen=True)
class Measure:
    """A column of the summary. metric of `attack` (empty: of the strongest attacker measured), by
    `recogniser` (empty: by the evaluator of the summary)."""

    title: str
    meaning: str
    metric: str
    attack: str
    unit: str
    higher_is_better: bool
    scale: float = 1.0
    digits: int = 1
    recogniser: str = ""


MEASURES = (
    Measure("Privacy: EER", "of the strongest attacker measured: the share of true matches that "
            "they miss where they take as large a share of others for one; 50 % is a coin toss",
            "eer", "", " %", True, 100),
    Measure("Privacy: D_ECE", "what that attacker expects to learn; 0 is nothing, 0.721 bit is all",
            "d_ece", "", " bit", False, 1, 3),
    Measure("Privacy: DeID", f"how much of the old voice is gone {HEARD}; 100 % is best",
            "deid", "similarity", " %", True, 100),
    Measure("Distinctiveness: G_VD", "whether protected voices still differ; 0 dB is as before",
            "g_vd", "similarity", " dB", True, 1, 2),
)  # fmt: skip
USES = tuple(  # each by every recogniser
    Measure(f"Utility: {metric.upper()}", use.meaning, metric, UTILITY, use.unit,
            use.higher_is_better, use.scale, use.digits)
    for metric, use in UTILITY_METRICS.items()
)  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """A figure as people read it. mark: `best`, `worst` or nothing; sure: intervals are apart."""

    text: str
    value: float = math.nan
    mark: str = ""
    sure: bool = True


@dataclass(frozen=True)
class Row:
    """A system on a split; the strongest attacker is the one with the lowest EER.

    cells: by column, the same columns in all rows of a summary, those of utility last.
    """

    split: str
    system: str
    attacker: str
    speakers: str
    cells: dict[Measure, Cell]


def strongest(results: Results, evaluator: str, split: str, system: str) -> str:
    """The attacker with the lowest EER, folded at 50 %; empty if none was measured."""
    known = [a for a in results.attackers(evaluator) if a != "unprotected"]
    found = {a: results.value(evaluator, split, system, a, "eer") for a in known}
    defined = {a: v.value for a, v in found.items() if v and math.isfinite(v.value)}
    return min(defined, key=lambda a: folded(defined[a])) if defined else ""


def _say(measure: Measure, value: Value | None) -> str:
    if value is None:
        return "–" if measure.recogniser else "not measured"
    if math.isnan(value.value):
        return "not defined"
    text = number(measure.scale * value.value, measure.digits) + measure.unit
    if value.bounded:
        low, high = (number(measure.scale * v, measure.digits) for v in (value.low, value.high))
        text += f" [{low}, {high}]"
    return text


def rows(results: Results, evaluator: str) -> list[Row]:
    """The summary of one evaluator: each system, by split; best and worst of a column marked."""
    found = []
    attacks = _measured(results, evaluator)
    columns = [*MEASURES, *_recognised(results, attacks)]
    for split in dict.fromkeys(of for of, _ in attacks):
        own = {system: attack for (of, system), attack in attacks.items() if of == split}
        values = {
            m: [_value(results, m, (evaluator, split, system), own[system]) for system in own]
            for m in columns
        }
        for i, (system, attack) in enumerate(own.items()):
            cells = {m: _mark(m, column, i) for m, column in values.items()}
            speakers = _speakers(results, evaluator, split, system)
            found.append(Row(split, system, attack, speakers, cells))
    return found


def _measured(results: Results, evaluator: str) -> dict[tuple[str, str], str]:
    """Splits and systems of whose privacy anything was measured; their strongest attackers."""
    found = {}
    for split, system in product(results.splits(evaluator), results.systems()):
        attack = strongest(results, evaluator, split, system)
        where = (evaluator, split, system)
        if any(_value(results, m, where, attack) is not None for m in MEASURES):
            found[split, system] = attack
    return found


def _recognised(results: Results, subjects: Collection[tuple[str, str]]) -> list[Measure]:
    """Columns of utility, one for each recogniser that measured any of `subjects`."""
    columns = [
        replace(measure, title=f"{measure.title} by {name}", recogniser=name)
        for measure in USES
        for name in results.recognisers(measure.metric)
    ]
    return [m for m in columns if any(_use(results, m, *subject) for subject in subjects)]


def _use(results: Results, measure: Measure, split: str, system: str) -> Value | None:
    """The figure of a column of utility."""
    return results.value(measure.recogniser, split, system, measure.attack, measure.metric)


def _value(
    results: Results, measure: Measure, where: tuple[str, str, str], attack: str
) -> Value | None:
    """The figure of a column. where: evaluator, split, system; attack: the strongest one."""
    if measure.recogniser:
        return _use(results, measure, *where[1:])
    return results.value(*where, measure.attack or attack, measure.metric)


def _speakers(results: Results, evaluator: str, split: str, system: str) -> str:
    counts = {
        f.n_speakers
        for f in results.figures
        if (f.evaluator, f.split, f.system) == (evaluator, split, system) and f.n_speakers
    }
    return "–".join(sorted(counts, key=lambda text: (len(text), text)))


def _mark(measure: Measure, column: Sequence[Value | None], i: int) -> Cell:
    """The cell of system `i`; marked when it is the best or the worst of at least two."""
    mine = column[i]
    text = _say(measure, mine)
    values = [v for v in column if v is not None and not math.isnan(v.value)]
    if mine is None or math.isnan(mine.value) or len({v.value for v in values}) < 2:
        return Cell(text)
    sign = 1 if measure.higher_is_better else -1
    for mark, direction in (("best", sign), ("worst", -sign)):
        if all(direction * mine.value >= direction * v.value for v in values):
            others = [v for v in values if v.value != mine.value]
            return Cell(text, mine.value, mark, all(map(mine.apart, others)))
    return Cell(text, mine.value)


def findings(results: Results, evaluator: str) -> list[str]:
    """A sentence a system and split, in plain words."""
    said = []
    for row in rows(results, evaluator):
        where = (evaluator, row.split)
        before = results.value(*where, "original", "unprotected", "eer")
        after = results.value(*where, row.system, row.attacker, "eer")
        deid = results.value(*where, row.system, "similarity", "deid")
        g_vd = results.value(*where, row.system, "similarity", "g_vd")
        text = f"{row.system} on {row.split}: "
        if after is not None:
            text += f"the {attacker(row.attacker)} attacker has an EER of {percent(after.value)}"
            text += f" ({percent(before.value)} without protection)" if before else ""
            text += "; 50 % would be a coin toss. "
        if deid is not None:
            text += (
                f"{percent(deid.value)} of what made the old voices recognisable is gone {HEARD}"
            )
        if g_vd is not None:
            text += f", and distinctiveness changes by {number(g_vd.value)} dB"
        text = text.rstrip(". ") + "." + _utility(results, row)
        said.append(text + _worst(results, evaluator, row))
    return [*said, *_targets(results, evaluator)]


def _utility(results: Results, row: Row) -> str:
    """Utility after and before, by each recogniser that measured it."""
    parts = []
    for measure in (m for m in row.cells if m.recogniser):
        after, before = (_use(results, measure, row.split, s) for s in (row.system, "original"))
        if after is not None:
            what = f"{UTILITY_METRICS[measure.metric].name.capitalize()} by {measure.recogniser}"
            was = "" if before is None else f" ({_say(measure, before)} without protection)"
            parts.append(f" {what}: {_say(measure, after)}{was}.")
    return "".join(parts)


def _targets(results: Results, evaluator: str) -> list[str]:
    """Mean and standard deviation over constant target voices (001), an attacker a line."""
    said = []
    parts = product(results.target_series().values(), results.splits(evaluator))
    for targets, split in parts:
        for attack in results.attackers(evaluator):
            texts = []
            for metric, name in (("eer", "EER"), ("linkability", "linkability")):
                found = [results.value(evaluator, split, t, attack, metric) for t in targets]
                x = [v.value for v in found if v is not None and math.isfinite(v.value)]
                if len(x) > 1:
                    say = percent if metric == "eer" else number
                    mean, std = say(statistics.fmean(x)), say(statistics.stdev(x))
                    texts.append(f"{name} {mean} ± {std} over {len(x)}")
            if texts:
                said.append(
                    f"Constant targets ({targets[0]} to {targets[-1]}) on {split}, "
                    f"{attacker(attack)} attacker: {'; '.join(texts)} targets (mean ± standard "
                    "deviation). Each target has its own rows in the tables."
                )
    return said


def _worst(results: Results, evaluator: str, row: Row) -> str:
    """The one person whom the averages hide."""
    group = worst_first(results.speakers, row.system, evaluator, row.split)
    if not group:
        return ""
    worst = group[0]
    link = (
        "" if math.isnan(worst.linkability) else f"linkability {number(worst.linkability)} of 1, "
    )
    return f" Worst protected: speaker {worst.name} ({link}DeID {percent(worst.deid)})."


def not_measured(results: Results) -> list[str]:
    """What a reader might take for granted and nobody measured."""
    metrics = {f.metric for f in results.figures}
    said = []
    if metrics.isdisjoint(UTILITY_METRICS):
        said.append(
            "Utility (word error rate, emotion, quality): whether the speech is still of use."
        )
    else:
        unmeasured = {
            "wer": "Word error rate: whether the words are still understood.",
            "uar": "Emotion: whether it is still heard.",
            "mos": "Quality: how good the speech sounds.",
        }
        said += [text for metric, text in unmeasured.items() if metric not in metrics]
    for evaluator in results.evaluators():
        known = results.attackers(evaluator)
        missing = absent(known)
        if missing:
            names = enumerate_words([attacker(name) for name in missing])
            text = f"Evaluator {evaluator}: no {names} attacker."
            if "semi_informed" in missing:
                text += (
                    " An attacker who trains on protected speech may do better than those here: "
                    "take the figures as the most privacy that there is, not the least."
                )
            said.append(text)
    undefined = [f for f in results.figures if f.value == ""]
    shown = {m.metric for m in MEASURES} | {"linkability"}
    named = sorted({f"{f.metric} ({f.system}, {f.split})" for f in undefined if f.metric in shown})
    if undefined:
        what = f": {enumerate_words(named, 6)}" if named else ""
        said.append(f"{len(undefined)} figures are not defined on this data{what}; see the tables.")
    if results.figures and not results.targets():
        said.append(
            "Linkability by target voice (paper 001, Fig. 3): it takes at least three systems "
            "const_NN, which convert all speech to one voice each; the radar is drawn over "
            "speakers only."
        )
    return said
