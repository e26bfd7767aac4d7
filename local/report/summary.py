# SPDX-License-Identifier: Apache-2.0
"""What a reader wants to know first: systems compared in words, and what is not known."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from local.report.load import Results, Value
from local.report.speakers import worst_first
from local.report.words import (
    UTILITY_METRICS,
    absent,
    attacker,
    enumerate_words,
    number,
    percent,
)


@dataclass(frozen=True)
class Measure:
    """A column of the summary. metric of `attack` (empty: of the strongest attacker measured)."""

    title: str
    meaning: str
    metric: str
    attack: str
    unit: str
    higher_is_better: bool
    scale: float = 1.0
    digits: int = 1


MEASURES = (
    Measure("Privacy: EER", "how often the strongest attacker measured errs; 50 % is a coin toss",
            "eer", "", " %", True, 100),
    Measure("Privacy: D_ECE", "what that attacker expects to learn; 0 is nothing, 0.721 bit is all",
            "d_ece", "", " bit", False, 1, 3),
    Measure("Privacy: DeID", "how much of the old voice is gone; 100 % is best",
            "deid", "similarity", " %", True, 100),
    Measure("Distinctiveness: G_VD", "whether protected voices still differ; 0 dB is as before",
            "g_vd", "similarity", " dB", True, 1, 2),
)  # fmt: skip
UTILITY = (
    Measure("Utility: WER", "how many words a recogniser gets wrong; less is better", "wer", "",
            " %", False, 100),
    Measure("Utility: UAR", "mean share of emotions recognised; more is better", "uar", "", " %",
            True, 100),
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
    """A system on a split; the strongest attacker is the one with the lowest EER."""

    split: str
    system: str
    attacker: str
    speakers: str
    cells: list[Cell]
    utility: list[Cell]


def strongest(results: Results, evaluator: str, split: str, system: str) -> str:
    """The attacker with the lowest EER; empty if none was measured."""
    known = [a for a in results.attackers(evaluator) if a != "unprotected"]
    found = {a: results.value(evaluator, split, system, a, "eer") for a in known}
    defined = {a: v.value for a, v in found.items() if v and math.isfinite(v.value)}
    return min(defined, key=lambda a: defined[a]) if defined else ""


def _say(measure: Measure, value: Value | None) -> str:
    if value is None:
        return "not measured"
    if math.isnan(value.value):
        return "not defined"
    text = number(measure.scale * value.value, measure.digits) + measure.unit
    if value.bounded:
        low, high = (number(measure.scale * v, measure.digits) for v in (value.low, value.high))
        text += f" [{low}, {high}]"
    return text


def rows(results: Results, evaluator: str) -> list[Row]:
    """The summary of one evaluator: original speech and each system, by split, best marked."""
    found = []
    for split in results.splits(evaluator):
        own, values = [], []
        for system in results.systems():
            attack = strongest(results, evaluator, split, system)
            measured = [
                results.value(evaluator, split, system, m.attack or attack, m.metric)
                for m in MEASURES
            ]
            if any(value is not None for value in measured):
                own.append((system, attack))
                values.append(measured)
        names = [system for system, _ in own]
        useful = {m: [results.utility(split, s, m.metric) for s in names] for m in UTILITY}
        for i, (system, attack) in enumerate(own):
            cells = [
                _mark(measure, [column[j] for column in values], i)
                for j, measure in enumerate(MEASURES)
            ]
            utility = [_mark(measure, column, i) for measure, column in useful.items()]
            speakers = _speakers(results, evaluator, split, system)
            found.append(Row(split, system, attack, speakers, cells, utility))
    return found


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
            return Cell(text, mine.value, mark, all(_apart(mine, other) for other in others))
    return Cell(text, mine.value)


def _apart(a: Value, b: Value) -> bool:
    return a.bounded and b.bounded and (a.high < b.low or b.high < a.low)


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
            text += f"the {attacker(row.attacker)} attacker errs in {percent(after.value)} of cases"
            text += f" ({percent(before.value)} without protection)" if before else ""
            text += "; 50 % would be a coin toss. "
        if deid is not None:
            text += f"{percent(deid.value)} of what made the old voices recognisable is gone"
        if g_vd is not None:
            text += f", and distinctiveness changes by {number(g_vd.value)} dB"
        text = text.rstrip(". ") + "." + _utility(results, row)
        said.append(text + _worst(results, evaluator, row))
    return [*said, *_targets(results, evaluator)]


def _utility(results: Results, row: Row) -> str:
    """Utility after and before, where it was measured."""
    parts = []
    for measure, what in zip(UTILITY, ("Word error rate", "Recall of emotions"), strict=True):
        after, before = (
            results.utility(row.split, s, measure.metric) for s in (row.system, "original")
        )
        if after is not None:
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
        said.append("Utility (word error rate, emotion): whether the speech is still of use.")
    elif "wer" not in metrics:
        said.append("Word error rate: whether the words are still understood.")
    elif "uar" not in metrics:
        said.append("Emotion: whether it is still heard.")
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
