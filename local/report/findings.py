"""What the report says in sentences: whether to trust it, what to do now, what must not be read as
privacy, what was found, and what was not measured."""

import math
import re
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any

from local.protocols.attackers import ATTACKERS, BACKEND, FINETUNED, SCRATCH
from local.report import select
from local.report.frame import (
    MEASURES,
    UTILITY,
    UTILITY_MEASURES,
    each,
    number,
    parse,
    percent,
    show,
    value_of,
    where,
)
from local.report.load import Results
from local.report.select import Row, unprotected
from local.report.verdict import FEWEST, NO_RISE, WEAK
from local.report.words import (
    CORE,
    HEARD,
    USES,
    absent,
    attacker,
    enumerate_words,
    group_of,
)

_TRAINING = re.compile(r"_seed\d+(?=[_/+]|$)")  # what sets trainings of one evaluator apart
EER = MEASURES["eer"]


def people(results: Results) -> str:
    """How many people were attacked, by group: those with target trials, where that is known."""
    targets = _targets_by_split(results)
    counts = {
        group_of(f.split): targets.get(f.split, f.n_speakers)
        for f in where(results.metrics, metric="eer").itertuples()
        if f.n_speakers
    }
    return " and ".join(f"{n} {group}" for group, n in sorted(counts.items(), reverse=True))


def _targets_by_split(results: Results) -> dict[str, str]:
    own = where(results.metrics, metric="n_target_speakers")
    return {f.split: f"{f.value:.0f}" for f in own.itertuples()}


def _bares(results: Results, *, weak: bool) -> list[Any]:
    """EERs without protection of evaluators that judge, or of those that do not: their interval
    reaches beyond 5 %, or is not known."""
    return [f for f in unprotected(results.metrics).values() if (f.high <= WEAK) != weak]


def too_weak(results: Results) -> str:
    """A warning for groups whose unprotected voices no evaluator knows well enough; else empty."""
    judged = {f.split for f in _bares(results, weak=False)}
    lowest: dict[str, Any] = {}
    for f in _bares(results, weak=True):
        if f.split not in judged and f.value < getattr(lowest.get(f.split), "value", math.inf):
            lowest[f.split] = f
    told = [f"{show(value_of(f), EER)} % for {group_of(split)} ({f.evaluator})"
            for split, f in lowest.items()]  # fmt: skip
    if not told:
        return ""
    return (
        f"No evaluator is known to recognise unprotected voices: the lowest EER without protection "
        f"is {' and '.join(told)}, which may be more than {percent(WEAK, 0)}. There, these "
        "figures are no evidence of privacy."
    )


def trust(results: Results) -> list[str]:
    """Whether these figures can be trusted: sentences."""
    said = [too_weak(results), _too_few(results), _able(results)]
    known = set(results.metrics["attacker"])
    if missing := absent(known):
        names = ", ".join(attacker(name) for name in missing)
        said.append(f"Attackers that were not run, and may be stronger: {names}.")
    return [*filter(None, said), *_fewer(results), _trainings(results)]


def _able(results: Results) -> str:
    """Which evaluators judge, and how well they know each group without protection."""
    told = "; ".join(
        f"{f.evaluator} {show(value_of(f), EER)} % ({group_of(f.split)})"
        for f in _bares(results, weak=False)
    )
    said = f"Evaluators that know these voices without protection, with their EER: {told}."
    return said if told else ""


def _too_few(results: Results) -> str:
    """A warning for groups so small that an interval over their people means nothing."""
    found = _targets_by_split(results).items()
    small = {group_of(split): n for split, n in found if parse(n) < FEWEST}
    told = " and ".join(f"{n} {group}" for group, n in small.items())
    said = (
        f"Only {told} with target trials were attacked. Figures and intervals of "
        f"fewer than {FEWEST} people say little of others."
    )
    return said if small else ""


def _fewer(results: Results) -> list[str]:
    """Systems that some attackers of others were not run on: they look better for it."""
    eers = where(results.metrics, metric="eer")
    core = {
        system: {c for c in CORE if any(a.startswith(c) for a in own)}
        for system, own in eers[eers["system"] != "original"].groupby("system", sort=False)[
            "attacker"
        ]
    }
    every = {c for own in core.values() for c in own} - {"white_box"}  # not every one can have it
    return [
        f"Not run on {system}, where other systems were attacked by them: "
        f"{', '.join(attacker(name) for name in CORE if name in every - own)}."
        for system, own in core.items()
        if every - own
    ]


def _trainings(results: Results) -> str:
    """How much another training of the evaluator moves an EER, where several were run."""
    found: dict[tuple[str, ...], list[float]] = {}
    for f in where(results.metrics, metric="eer").itertuples():
        if math.isfinite(f.value):
            of = f.system, f.split, f.attacker, _TRAINING.sub("", f.evaluator)
            found.setdefault(of, []).append(f.value)
    several = [own for own in found.values() if len(own) > 1]
    if not several:
        return (
            "How much another training of the evaluator would move these figures: not measured, as "
            "there was one training. Intervals are over people and do not show it."
        )
    most = max(max(own) - min(own) for own in several)
    return (
        f"{max(map(len, several))} trainings of one evaluator differ by up to "
        f"{number(100 * most, 1)} points of EER on the same attack. Intervals are over people and "
        "do not show it."
    )


@dataclass(frozen=True)
class Step:
    """What would make the verdicts firmer: why, how, and how long it takes."""

    why: str
    command: str
    time: str


def what_now(results: Results) -> list[Step]:
    """The commands that would make these verdicts firmer."""
    eers = where(results.metrics, metric="eer")
    run = set(eers["attacker"]) & set(ATTACKERS)
    if not run:
        return []

    def attackers(*more: str) -> str:
        return f'./run.sh --attackers "{" ".join(more)}"'

    evaluators, steps = each(eers, "evaluator"), []
    if too_weak(results) and not any(name.startswith("resemblyzer") for name in evaluators):
        steps.append(Step(
            "No evaluator is known to recognise unprotected voices. On real speech try a "
            "pretrained one",
            f'./run.sh --evaluators "{" ".join([*evaluators, "resemblyzer/cosine"])}"',
            "about 2 CPU-seconds for a minute of speech",
        ))  # fmt: skip
    if not any(ATTACKERS[name].evaluator in (SCRATCH, FINETUNED, BACKEND) for name in run):
        steps.append(Step(
            "No attacker has trained on protected speech",
            attackers(*(a for a in ATTACKERS if a in run), "semi_informed_backend",
                      "semi_informed_finetuned"),
            "5 to 30 CPU-minutes for each system and evaluator, and protecting the training set",
        ))  # fmt: skip
    elif "semi_informed" not in run:
        steps.append(Step(
            "No attacker has trained an encoder from scratch on protected speech",
            attackers(*(a for a in ATTACKERS if a in run or a == "semi_informed")),
            "5 to 30 CPU-minutes for each system and evaluator",
        ))  # fmt: skip
    if not any(_TRAINING.search(name) for name in evaluators):
        steps.append(Step("Another training may move these figures", "./run.sh --trainings 3",
                          "twice the time of stages 2, 3 and 6 to 9 once more"))  # fmt: skip
    if _too_few(results):
        steps.append(Step(f"Fewer than {FEWEST} people of a group have target trials",
                          "./run.sh --corpus FOLDER",
                          "egs/README.md says what a corpus needs"))  # fmt: skip
    return steps


def doubts(results: Results) -> list[str]:
    """What must not be read as privacy: evaluators that may err on unprotected speech, then
    attackers whose EER is shown to rise hardly above the same evaluator's on unprotected speech."""
    said = []
    for f in _bares(results, weak=True):
        high = f"up to {percent(f.high)}" if not math.isnan(f.high) else "no interval"
        said.append(
            f"Evaluator {f.evaluator} on {f.split}: EER {percent(f.value)} without protection "
            f"({high}), where {percent(WEAK, 0)} is the most. It is not known to recognise the "
            "speakers' own voices: its figures are no evidence of privacy."
        )
    for system, split in select.subjects(results.metrics):
        for a in select.attacks(results, system, split):
            if a.rise.high <= NO_RISE:
                said.append(
                    f"{system} on {split} by {a.evaluator}: protected speech is no better than "
                    f"unprotected: the {attacker(a.attacker)} attacker has an EER of "
                    f"{percent(a.eer.value)}, where it is {percent(a.bare.value)} without "
                    f"protection (rise: {number(100 * a.rise.value, 1)} points, at the most "
                    f"{number(100 * a.rise.high, 1)})."
                )
    return said


def notes(results: Results) -> list[tuple[str, str]]:
    """Systems with the `note` of their settings and the remarks of their runs, if any."""
    found = []
    for system in results.systems():
        own = results.settings(system)
        remarks = own.get("remarks")
        told = [own.get("note")]
        told += [f"Of this run: {text}." for text in (remarks if isinstance(remarks, list) else [])]
        found += [(system, " ".join(text.split())) for text in told if isinstance(text, str)]
    return found


def findings(results: Results, evaluator: str, rows: Iterable[Row]) -> list[str]:
    """A sentence for each row of the evaluator's summary, and those on constant targets."""
    said = [_finding(results, evaluator, row) for row in rows]
    return [*said, *_targets(results, evaluator)]


def _finding(results: Results, evaluator: str, row: Row) -> str:
    before = results.value(evaluator, row.split, "original", "unprotected", "eer")
    after, _, deid, g_vd = (row.values[m] for m in select.SUMMARY)
    text = f"{row.system} on {row.split}: "
    if after is not None:
        text += f"the {attacker(row.attacker)} attacker has an EER of {percent(after.value)}"
        text += f" ({percent(before.value)} without protection)" if before else ""
        text += "; 50 % would be a coin toss. "
    if deid is not None:
        text += f"{percent(deid.value)} of what made the old voices recognisable is gone {HEARD}"
    if g_vd is not None:
        text += f", and distinctiveness changes by {number(g_vd.value)} dB"
    text = text.rstrip(". ") + "."
    for m, cell in row.cells.items():
        if m.by and row.values[m] is not None:
            was = results.value(m.by, row.split, "original", "", m.name, UTILITY)
            told = f" ({m.say(was)} without protection)" if was else ""
            text += f" {USES[m.name].capitalize()} by {m.by}: {cell.text}{told}."
    for worst in results.people.get((row.system, evaluator, row.split), [])[:1]:
        known = not math.isnan(worst.linkability)
        link = f"linkability {number(worst.linkability)} of 1, " if known else ""
        text += f" Worst protected: speaker {worst.name} ({link}DeID {percent(worst.deid)})."
    return text


def _targets(results: Results, evaluator: str) -> list[str]:
    """Mean and standard deviation over constant target voices (001), an attacker a line."""
    said = []
    for targets, split, attack in product(
        results.target_series().values(), results.splits(evaluator), results.attackers(evaluator)
    ):
        texts = []
        for metric, name, say in (("eer", "EER", percent), ("linkability", "linkability", number)):
            found = [results.value(evaluator, split, t, attack, metric) for t in targets]
            x = [v.value for v in found if v is not None and v.defined]
            if len(x) > 1:
                spread = f"{say(statistics.fmean(x))} ± {say(statistics.stdev(x))}"
                texts.append(f"{name} {spread} over {len(x)}")
        if texts:
            said.append(
                f"Constant targets ({targets[0]} to {targets[-1]}) on {split}, {attacker(attack)} "
                f"attacker: {'; '.join(texts)} targets (mean ± standard deviation). Each target "
                "has its own rows in the tables."
            )
    return said


_UNMEASURED = {
    "wer": "Word error rate: whether the words are still understood.",
    "uar": "Emotion: whether it is still heard.",
    "mos": "Quality: how good the speech sounds.",
}
_SHOWN = {*(m.name for m in select.SUMMARY), "linkability"}


def not_measured(results: Results) -> list[str]:
    """What a reader might take for granted and nobody measured."""
    metrics = set(results.metrics["metric"])
    said = [text for metric, text in _UNMEASURED.items() if metric not in metrics]
    if metrics.isdisjoint(UTILITY_MEASURES):
        said = ["Utility (word error rate, emotion, quality): whether the speech is still of use."]
    for evaluator in results.evaluators():
        if missing := absent(results.attackers(evaluator)):
            names = enumerate_words([attacker(name) for name in missing])
            text = f"Evaluator {evaluator}: no {names} attacker."
            if "semi_informed" in missing:
                text += (
                    " An attacker who trains on protected speech may do better than those here: "
                    "take the figures as the most privacy that there is, not the least."
                )
            said.append(text)
    undefined = results.metrics[results.metrics["value"].isna() & (results.metrics["tag"] == "")]
    if len(undefined):
        own = where(undefined, metric=_SHOWN).itertuples()
        named = sorted({f"{f.metric} ({f.system}, {f.split})" for f in own})
        what = f": {enumerate_words(named, 6)}" if named else ""
        said.append(f"{len(undefined)} figures are not defined on this data{what}; see the tables.")
    if len(results.metrics) and not results.targets():
        said.append(
            "Linkability by target voice (Champion et al. 2021, Fig. 3): it takes at least three "
            "systems const_NN, which convert all speech to one voice each; the radar is drawn over "
            "speakers only."
        )
    return said
