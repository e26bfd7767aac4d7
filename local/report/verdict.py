# SPDX-License-Identifier: Apache-2.0
"""What the page says first: of each system a verdict, from its strongest attacker."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from local.report.doubts import WEAK
from local.report.results import Figure, SpeakerFigure
from local.report.speakers import worst_of
from local.report.strongest import EER, best_unprotected, no_better, strongest, unprotected
from local.report.tables import Table, cell
from local.report.words import (
    CORE,
    GROUPS,
    UTILITY,
    UTILITY_METRICS,
    absent,
    attacker,
    enumerate_words,
    number,
    parse,
    percent,
    target_series,
)

TITLE = "In short"
CHANCE = 0.5  # EER of an attacker who knows nothing
FEW = 5  # people of a group, below which no figure speaks of others
NEAR = 0.4  # below it a wide interval does not make an attacker's success a guess
NOTHING_HIDDEN = "does not anonymise"
NO_EVIDENCE = "cannot be judged"
PART = "hides in part"
HIDDEN = "hides from the attackers that were run"
_NAMED = "reid_speaker_top_1"
RULES = (
    f"{NOTHING_HIDDEN}: the strongest attacker errs no more than the same evaluator without "
    "protection, or the interval of their EER does not rule it out.",
    f"{NO_EVIDENCE}: even unprotected voices are recognised with an EER above {percent(WEAK)}, so "
    f"these attackers are too weak; or fewer than {FEW} people of a group were attacked.",
    f"{HIDDEN}: the strongest attacker's EER is at least {percent(NEAR, 0)}, and its interval "
    f"reaches {percent(CHANCE, 0)}, which is guessing.",
    "hides from A, not from B: the same rule for each attacker, by the evaluator who does best.",
    f"{PART}: anything between.",
    "People are named by the attacker who names most of them rightly, of all who are enrolled, "
    "from all that a person said. The worst-protected person is the one whom the attacker who does "
    "best on them links most surely.",
)
_TRAINING = re.compile(r"_seed\d+(?=[_/+]|$)")  # what sets trainings of one evaluator apart


@dataclass(frozen=True)
class Verdict:
    """On a group of people. eer: of the strongest attacker; bare: of the same
    evaluator without protection."""

    group: str
    said: str
    eer: Figure
    bare: Figure | None


def verdicts(figures: Sequence[Figure]) -> dict[str, list[Verdict]]:
    """System -> a verdict on each split; see RULES."""
    bare = unprotected(figures)
    found: dict[str, list[Verdict]] = {}
    for s in strongest(figures):
        if s.eer is None:
            continue
        best = best_unprotected(figures, s.split)
        own = bare.get((s.split, s.eer.evaluator))
        said = _judge(s.eer, own, best)
        if said == PART:
            said = _from_whom([f for f in figures if (f.split, f.system) == (s.split, s.system)])
        group = GROUPS.get(s.eer.gender, s.split)
        found.setdefault(s.system, []).append(Verdict(group, said, s.eer, own or best))
    return found


def _judge(eer: Figure, own: Figure | None, best: Figure | None) -> str:
    if own is not None and no_better(eer, own):
        return NOTHING_HIDDEN
    if best is None or parse(best.value) > WEAK or parse(eer.n_speakers) < FEW:
        return NO_EVIDENCE
    return HIDDEN if _hides(eer) else PART


def _hides(eer: Figure) -> bool:
    value, high = parse(eer.value), parse(eer.high)
    return value >= CHANCE or (value >= NEAR and high >= CHANCE)


def _from_whom(figures: Sequence[Figure]) -> str:
    """From which attackers a system hides, and from which it does not, the strongest first."""
    lowest: dict[str, Figure] = {}
    for f in figures:
        if f.metric == "eer" and math.isfinite(parse(f.value)):
            before = lowest.setdefault(f.attacker, f)
            lowest[f.attacker] = min(before, f, key=lambda g: parse(g.value))
    order = sorted(lowest.values(), key=lambda f: parse(f.value))
    hidden, open_ = (
        [attacker(f.attacker) for f in order if _hides(f) is so] for so in (True, False)
    )
    if not hidden:
        return PART
    return f"hides from {enumerate_words(hidden)}, not from {enumerate_words(open_)}"


def _said(found: Sequence[Verdict]) -> str:
    """The verdict on all groups, or each with its groups, the worst first."""
    worst = {NOTHING_HIDDEN: 0, NO_EVIDENCE: 1, HIDDEN: 3}
    told = sorted(dict.fromkeys(v.said for v in found), key=lambda said: worst.get(said, 2))
    if len(told) == 1:
        return told[0]
    groups = (", ".join(v.group for v in found if v.said == said) for said in told)
    return "; ".join(f"{said} ({own})" for said, own in zip(told, groups, strict=True))


def verdict_table(figures: Sequence[Figure], speakers: Sequence[SpeakerFigure] = ()) -> Table:
    """A row a system: the verdict, what the strongest attacker can do, the worst-protected person,
    and what is left of use. "; " parts the groups in a cell."""
    found = verdicts(figures)
    named = {(f.system, f.split): f for f in _best_named(figures)}
    kept = uses(figures)
    header = ["system", "verdict"]
    header += [f"EER (%) of the strongest attacker ({100 * CHANCE:.0f}: guessing)"]
    header += [f"people named{_recordings(named.values())}"] * bool(named)
    header += ["worst-protected person"] * bool(speakers)
    header += [UTILITY_METRICS[metric].titled(metric, by) for metric, by in kept]
    rows = []
    for system, name in _rows(found).items():
        own = found[system]
        row = [name, _said(own), "; ".join(map(_eer, own))]
        if named:
            told = ((v, named.get((system, v.eer.split))) for v in own)
            row.append("; ".join(_named(v.group, f, figures) for v, f in told if f) or "–")
        if speakers:
            person = worst_of(speakers, system)
            row.append(
                f"{person.name} (linkability {number(person.linkability)})" if person else "–"
            )
        row += [_kept(kept[by].get(system), kept[by].get("original"), by[0]) for by in kept]
        rows.append(row)
    return Table(header, rows, 2)


def _rows(found: Mapping[str, Sequence[Verdict]]) -> dict[str, str]:
    """Systems with a row, and what it is called: of target voices of one experiment (001) the one
    that protects worst stands for all."""
    named = {system: system for system in found}
    for series, targets in target_series(found).items():
        worst = min(targets, key=lambda t: min(parse(v.eer.value) for v in found[t]))
        for target in targets:
            del named[target]
        named[worst] = f"{series}: worst of {len(targets)}, {worst}"
    return named


def _eer(verdict: Verdict) -> str:
    """Of one group, with its interval, and without protection."""
    text = f"{verdict.group} {cell(verdict.eer, EER)}"
    if verdict.bare is not None:
        text += f", unprotected {cell(replace(verdict.bare, low='', high=''), EER)}"
    return text


def _recordings(named: Iterable[Figure]) -> str:
    """How many of a person's recordings the attacker has."""
    each = sorted(
        round(parse(f.n_segments) / parse(f.n_speakers))
        for f in named
        if f.n_segments and parse(f.n_speakers) > 0
    )
    if not each:
        return ""
    n = f"{each[0]}" if each[0] == each[-1] else f"{each[0]} to {each[-1]}"
    return f" from {n} recordings each"


def _named(group: str, figure: Figure, figures: Sequence[Figure]) -> str:
    """How many people of a group are named, and how many by guessing and without protection."""
    before = "original", figure.split, _NAMED
    of = f"chance_{figure.metric}", _place(figure)
    found = {
        "unprotected": [f for f in figures if (f.system, f.split, f.metric) == before],
        "guessing": [f for f in figures if (f.metric, _place(f)) == of],
    }
    n = parse(figure.n_speakers)
    beside = [
        f"{word} {number(n * max(parse(f.value) for f in own), 0)}"
        for word, own in found.items()
        if own
    ]
    told = f"{number(n * parse(figure.value), 0)} of {figure.n_speakers} {group}"
    return f"{told} ({', '.join(beside)})" if beside else told


def _place(figure: Figure) -> tuple[str, ...]:
    return figure.system, figure.split, figure.attacker, figure.evaluator


def _best_named(figures: Iterable[Figure]) -> list[Figure]:
    """Of each system and split the attacker who names most people rightly, of all who are enrolled,
    from all that a person said."""
    best: dict[tuple[str, str], Figure] = {}
    for f in figures:
        if f.metric == _NAMED and f.system != "original" and math.isfinite(parse(f.value)):
            place = f.system, f.split
            if place not in best or parse(f.value) > parse(best[place].value):
                best[place] = f
    return list(best.values())


def uses(figures: Sequence[Figure]) -> dict[tuple[str, str], dict[str, Figure]]:
    """(metric, by whom) -> system -> the figure of all people together."""
    own = [f for f in figures if f.attacker == UTILITY and f.metric in UTILITY_METRICS]
    one_group = len({f.gender for f in own}) == 1
    found: dict[tuple[str, str], dict[str, Figure]] = {}
    for f in own:
        if one_group or not f.gender:
            found.setdefault((f.metric, f.evaluator), {})[f.system] = f
    return found


def _kept(figure: Figure | None, before: Figure | None, metric: str) -> str:
    if figure is None:
        return "–"
    use = UTILITY_METRICS[metric]
    told, was = (
        number(use.scale * parse(f.value), use.digits) if f else "" for f in (figure, before)
    )
    return f"{told} (was {was})" if was else told


def people(figures: Sequence[Figure]) -> str:
    """How many were attacked, by group."""
    counts = {
        GROUPS.get(f.gender, f.split): f.n_speakers
        for f in figures
        if f.metric == "eer" and f.n_speakers
    }
    return " and ".join(f"{n} {group}" for group, n in sorted(counts.items(), reverse=True))


def _best_evaluators(figures: Sequence[Figure]) -> list[Figure]:
    """The lowest EER of unprotected speech in each group."""
    splits = dict.fromkeys(split for split, _ in unprotected(figures))
    return [f for split in splits if (f := best_unprotected(figures, split)) is not None]


def too_weak(figures: Sequence[Figure]) -> str:
    """A warning where even the best evaluator does not know unprotected voices; else empty."""
    weak = [
        f"{percent(parse(f.value))} for {GROUPS.get(f.gender, f.split)}"
        for f in _best_evaluators(figures)
        if parse(f.value) > WEAK
    ]
    if not weak:
        return ""
    return (
        f"Even without protection these attackers err often: the lowest EER is "
        f"{' and '.join(weak)}, more than {percent(WEAK, 0)}. There, these figures are no evidence "
        "of privacy."
    )


def trust(figures: Sequence[Figure]) -> list[str]:
    """Whether these figures can be trusted: sentences."""
    best, weak = _best_evaluators(figures), too_weak(figures)
    said = [weak] if weak else []
    said += _too_few(figures)
    if best and not weak:
        told = " and ".join(f"{percent(parse(f.value))} ({f.evaluator})" for f in best)
        said.append(
            "The attackers know these voices: on unprotected speech the best evaluator has an EER "
            f"of {told}."
        )
    missing = absent({f.attacker for f in figures if f.attacker not in (UTILITY, "similarity")})
    if missing:
        names = ", ".join(attacker(name) for name in missing)
        said.append(f"Attackers that were not run, and may be stronger: {names}.")
    said += _fewer(figures)
    said.append(_trainings(figures))
    return said


def _too_few(figures: Sequence[Figure]) -> list[str]:
    """A warning where a group is so small that an interval over its people means nothing."""
    small = {
        GROUPS.get(f.gender, f.split): f.n_speakers
        for f in figures
        if f.metric == "eer" and parse(f.n_speakers) < FEW
    }
    if not small:
        return []
    told = " and ".join(f"{n} {group}" for group, n in small.items())
    return [
        f"Only {told} were attacked. Figures and intervals of fewer than {FEW} people say nothing "
        "of others."
    ]


def _fewer(figures: Sequence[Figure]) -> list[str]:
    """Systems that some attackers of others were not run on: they look better for it."""
    found: dict[str, set[str]] = {}
    for f in figures:
        if f.metric == "eer" and f.system != "original":
            found.setdefault(f.system, set()).add(f.attacker)
    core = {system: {c for c in CORE if any(a.startswith(c) for a in own)}
            for system, own in found.items()}  # fmt: skip
    every = {c for own in core.values() for c in own} - {"white_box"}  # not every one can have it
    return [
        f"Not run on {system}, where other systems were attacked by them: "
        f"{', '.join(attacker(name) for name in CORE if name in every - own)}."
        for system, own in core.items()
        if every - own
    ]


def _trainings(figures: Iterable[Figure]) -> str:
    """How much another training of the evaluator moves an EER, where several were run."""
    found: dict[tuple[str, ...], dict[str, float]] = {}
    for f in figures:
        if f.metric == "eer" and math.isfinite(parse(f.value)):
            of = f.system, f.split, f.attacker, _TRAINING.sub("", f.evaluator)
            found.setdefault(of, {})[f.evaluator] = parse(f.value)
    several = [own.values() for own in found.values() if len(own) > 1]
    if not several:
        return (
            "How much another training of the evaluator would move these figures: not measured, as "
            "there was one training. Intervals are over people and do not show it."
        )
    most = max(max(own) - min(own) for own in several)
    n = max(map(len, several))
    return (
        f"{n} trainings of one evaluator differ by up to {number(100 * most, 1)} points of EER on "
        "the same attack. Intervals are over people and do not show it."
    )
