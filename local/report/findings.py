"""Sentences of the report: whether to trust it, what to do now, what must not be read as
privacy, what was found, and what was not measured."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from local.metrics.detection import WEAK
from local.plan.labels import Family
from local.protocols.attackers import ATTACKERS
from local.report import frame, measures, select
from local.report.frame import value_of, where
from local.report.results import Results
from local.report.select import FEWEST, MARGIN, NO_RISE, unprotected
from local.report.wording import absent, attacker, group_of, say
from steps.speaker.kinds import STRONG, kind_of, shipped


def people(results: Results) -> str:
    """How many people were attacked, by group: those with target trials, where that is known."""
    targets = _targets_by_split(results)
    counts = {
        group_of(f): targets.get(f.split, f.n_speakers)
        for f in frame.eers(results.metrics).itertuples()
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
    weak = [f for f in _bares(results, weak=True) if f.split not in judged]
    lowest = {of: min((f for f in weak if f.split == of), key=lambda f: f.value)
              for of in dict.fromkeys(f.split for f in weak)}  # fmt: skip
    return say("too_weak", lowest=[*lowest.values()], most=WEAK)


def warnings(results: Results) -> list[str]:
    """Sentences, one a cause: figures that must not be read as privacy, and attackers not run."""
    missing = absent(set(frame.eers(results.metrics)["attacker"]))
    said = [too_weak(results), _may_err(results), _no_better(results), _too_few(results)]
    said += [_deaf(results), say("lost", n=len(results.missing)), _fewer(results)]
    return [*filter(None, said), *filter(None, [say("not_run", missing=missing)])]


def trust(results: Results) -> list[str]:
    """How sure these figures are: sentences."""
    able = say("able", bares=_bares(results, weak=False))
    return [*filter(None, (able, _least(results), _draws(results), _trainings(results)))]


def inferred(results: Results) -> str:
    """Attributes that voices tell, by the attacker and evaluator who infer them best from all
    recordings of a person; empty where it was not measured."""
    own = select.no_controls(where(results.metrics, family=Family.INFERENCE))
    told = []
    for name in ("sex", "age"):
        of = {"attribute": name, "recordings": "all"}
        rows = where(own, metric="inferred", **of).sort_values("value")
        defined = [f for f in rows.itertuples() if f.value == f.value]
        best = {f.system: f for f in sorted(defined, key=lambda f: f.system != "original")}
        chance = where(own, metric="inferred", attribute=name, kind="chance")["value"].max()
        left = where(own, metric="residual_risk", **of)
        risks = frame.values(left, "system", "attacker", "evaluator")
        if best.keys() - {"original"}:
            risk = {s: risks.get((s, f.attacker, f.evaluator)) for s, f in best.items()}
            told.append((name, chance, [(s, f, value_of(f), risk[s]) for s, f in best.items()]))
    chosen = own.duplicated(["system", "figure"]).any()
    taught = own[own["attacker"] != "ignorant"]["system"]  # the original has no such row
    untaught = sorted({*own["system"]} - {*taught})
    return say("inferred", told=told, chosen=chosen, untaught=untaught) if told else ""


def _deaf(results: Results) -> str:
    """Attackers on protected speech without a control, or who fail it."""
    attacked = select.subjects(results.metrics)
    every = [a for subject in attacked for a in select.attacks(results, *subject)]
    found = {(a.attacker, a.evaluator): a for a in every if a.judges and not a.controlled}
    return say("deaf", found=sorted(found.values(), key=lambda a: not a.control.defined))


def _too_few(results: Results) -> str:
    """A warning for groups so small that an interval over their people means nothing."""
    found = _targets_by_split(results).items()
    small = [(results.voices[split], n) for split, n in found if frame.parse(n) < FEWEST]
    return say("too_few", small=small, fewest=FEWEST)


def _least(results: Results) -> str:
    """The smallest difference of EERs that the lists tell, by group, over all attacks."""
    own = where(results.metrics, metric="eer_least_difference")
    ends = own[np.isfinite(own["value"])].groupby("split")["value"].agg(["min", "max"])
    return say("least", ends=[(results.voices[split], *of) for split, *of in ends.itertuples()])


def _fewer(results: Results) -> str:
    """Systems that some attackers of others were not run on: they look better for it."""
    eers = select.attacked(results.metrics)
    left_out = {"white_box", *absent([*eers["attacker"]])}  # not every system can have it
    found: dict[str, list[str]] = {}
    for system, run in eers.groupby("system", sort=False)["attacker"]:
        for name in (c for c in absent([*run]) if c not in left_out):
            found.setdefault(name, []).append(system)
    return say("fewer", found=found)


def _trainings(results: Results) -> str:
    """How much another training of the evaluator moves an EER, where several were run."""
    eers = frame.eers(results.metrics)
    eers = eers[np.isfinite(eers["value"])]
    eers["evaluator"] = eers["evaluator"].replace(results.trainings)
    by = eers.groupby(["system", "split", "attacker", "evaluator"])["value"]
    spread = by.agg(["size", np.ptp])
    several = spread[spread["size"] > 1]
    n, most = several.max() if len(several) else (1, 0.0)
    return say("trainings", n=int(n), points=100 * most)


def _draws(results: Results) -> str:
    """How many draws of pseudo-voices stand behind the figures."""
    runs = where(results.metrics, metric="n_draws")
    fewest, most = (int(n) for n in (runs["value"].agg(["min", "max"]) if len(runs) else (1, 1)))
    return say("draws", fewest=fewest, most=most, attackers=frame.each(runs, "attacker"))


class Advice(NamedTuple):
    """A command that would make the verdicts firmer; what: why and how long it takes, as
    templates/readings.jinja says it."""

    what: str
    command: str


def what_now(results: Results) -> list[Advice]:
    """The commands that would make these verdicts firmer."""
    eers = frame.eers(results.metrics)
    run = set(eers["attacker"]) & set(ATTACKERS)
    if not run:
        return []
    evaluators, own = frame.each(eers, "evaluator"), [a for a in ATTACKERS if a in run]
    hears = any(name.startswith(STRONG) for name in evaluators)
    deaf = too_weak(results) or _deaf(results)
    learnt = not run.isdisjoint(select.TAUGHT)
    anew = [a for a in ATTACKERS if a in run or a == "semi_informed"]
    encoders = {name.rpartition("/")[0] for name in evaluators}
    trains = any(kind_of(name).trainable or shipped(name) for name in encoders)
    more = ["semi_informed_backend", "semi_informed_finetuned"]
    steps = (
        (deaf and not hears, "evaluators", [*evaluators, "pyannote/cosine"]),
        (not learnt, "attackers", [*own, *more]),
        (learnt and anew != own, "attackers anew", anew),
        (trains and not results.trainings, "trainings", "3"),
        (_too_few(results), "corpus", "FOLDER"),
    )
    return [
        Advice(what, f"./run.sh --{what.split()[0]} "
               + (f'"{" ".join(value)}"' if isinstance(value, list) else str(value)))
        for wanted, what, value in steps if wanted
    ]  # fmt: skip


def _may_err(results: Results) -> str:
    """Evaluators that may err on unprotected speech of groups that others judge."""
    judged = {f.split for f in _bares(results, weak=False)}
    weak = [f.evaluator for f in _bares(results, weak=True) if f.split in judged]
    return say("may_err", weak=[*dict.fromkeys(weak)], most=WEAK)


def _no_better(results: Results) -> str:
    """Systems on which an attacker's EER is shown to rise hardly above that without protection."""
    found = []
    for system, split in select.subjects(results.metrics):
        own = [a for a in select.attacks(results, system, split) if a.bare.value < MARGIN]
        if same := [a for a in own if a.rise.high <= NO_RISE]:
            found.append((system, results.voices[split], min(same, key=lambda a: a.rise.high)))
    return say("no_better", found=found)


def beside(runs: Mapping[str, Results]) -> list[str]:
    """Why systems of several runs may not be compared: sentences."""
    of = {run: (results.corpus, people(results)) for run, results in runs.items()}
    attacked = {run: frame.eers(results.metrics) for run, results in runs.items()}
    tried = {run: {*map(attacker, own["attacker"]), *own["evaluator"]}
             for run, own in attacked.items()}  # fmt: skip
    every = set().union(*tried.values())
    lacking = {run: sorted(every - own) for run, own in tried.items() if every - own}
    others = of if len({*of.values()}) > 1 else {}
    said = [say("other_people", of=others), say("other_attackers", lacking=lacking)]
    return [*filter(None, said)]


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


_SHOWN = {"eer", "d_ece", "deid", "g_vd", "linkability"}


def not_measured(results: Results) -> list[str]:
    """Figures that a reader might take for granted and nobody measured."""
    lacking = [m for m in measures.UTILITY_MEASURES if m not in {*results.metrics["metric"]}]
    said = [say("unmeasured", metric=metric) for metric in lacking]
    if len(lacking) == len(measures.UTILITY_MEASURES):
        said = [say("unmeasured", metric="all")]
    undefined = results.metrics[results.metrics["value"].isna() & (results.metrics["tag"] == "")]
    if len(undefined):
        own = where(undefined, figure=_SHOWN).itertuples()
        named = sorted({f"{f.metric} ({f.system}, {f.split})" for f in own})
        said.append(say("undefined", n=len(undefined), named=named))
    return said
