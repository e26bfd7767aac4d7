# SPDX-License-Identifier: Apache-2.0
"""What the page says first: of each system a verdict, from its strongest attacker."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from local.report.doubts import WEAK
from local.report.results import Figure
from local.report.strongest import best_unprotected, no_better, strongest, unprotected
from local.report.tables import Table
from local.report.words import UTILITY, UTILITY_METRICS, absent, attacker, number, parse, percent

TITLE = "In short"
CHANCE = 0.5  # EER of an attacker who knows nothing
NEAR = 0.4  # below it a wide interval does not make an attacker's success a guess
NOTHING_HIDDEN = "does not anonymise"
NO_EVIDENCE = "cannot be judged"
PART = "hides in part"
HIDDEN = "hides from the attackers that were run"
_GROUPS = {"f": "women", "m": "men"}
RULES = (
    f"{NOTHING_HIDDEN}: the strongest attacker errs no more than without protection, or the "
    "interval of their EER does not rule it out.",
    f"{NO_EVIDENCE}: even unprotected voices are recognised with an EER above {percent(WEAK)}, so "
    "these attackers are too weak.",
    f"{HIDDEN}: the strongest attacker's EER is at least {percent(NEAR, 0)}, and its interval "
    f"reaches {percent(CHANCE, 0)}, which is guessing.",
    f"{PART}: anything between.",
    "People are named by the attacker who names most of them rightly, of all who are enrolled, "
    "from all that a person said.",
)


@dataclass(frozen=True)
class Verdict:
    """On a group of people. eer: of the strongest attacker; bare: the lowest without protection."""

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
        group = _GROUPS.get(s.eer.gender, s.split)
        found.setdefault(s.system, []).append(Verdict(group, said, s.eer, best))
    return found


def _judge(eer: Figure, own: Figure | None, best: Figure | None) -> str:
    value, high = parse(eer.value), parse(eer.high)
    if own is not None and no_better(eer, own):
        return NOTHING_HIDDEN
    if best is None or parse(best.value) > WEAK:
        return NO_EVIDENCE
    return HIDDEN if value >= CHANCE or (value >= NEAR and high >= CHANCE) else PART


def _said(found: Sequence[Verdict]) -> str:
    """The verdict on all groups, or each with its groups, the worst first."""
    order = (NOTHING_HIDDEN, NO_EVIDENCE, PART, HIDDEN)
    groups = {said: [v.group for v in found if v.said == said] for said in order}
    told = {said: own for said, own in groups.items() if own}
    if len(told) == 1:
        return next(iter(told))
    return "; ".join(f"{said} ({', '.join(own)})" for said, own in told.items())


def verdict_table(figures: Sequence[Figure]) -> Table:
    """A row a system: the verdict, what the strongest attacker can do, and what is left of use."""
    found = verdicts(figures)
    people = {v.group: v.eer.n_speakers for own in found.values() for v in own}
    of = " / ".join(people)
    named = {(f.system, f.split): f for f in _best_named(figures)}
    uses = _uses(figures)
    header = ["system", "verdict", f"lowest EER (%), {of}", f"without protection, {of}", "attacker"]
    among = " / ".join(people.values())
    header += [f"people named (%), of {among} {of}"] * bool(named)
    header += [UTILITY_METRICS[metric].titled(metric, by) for metric, by in uses]
    rows = []
    for system, own in found.items():
        by_group = {v.group: v for v in own}
        each = [by_group.get(group) for group in people]  # in the order of the headings
        row = [system, _said(own)]
        row.append(" / ".join(_percent(v.eer if v else None) for v in each))
        row.append(" / ".join(_percent(v.bare if v else None) for v in each))
        row.append(" / ".join(dict.fromkeys(attacker(v.eer.attacker) for v in own)))
        if named:
            own_named = (named.get((system, v.eer.split)) if v else None for v in each)
            row.append(" / ".join(_percent(f, 0) for f in own_named))
        row += [_kept(uses[by].get(system), uses[by].get("original"), by[0]) for by in uses]
        rows.append(row)
    return Table(header, rows, 2)


def _percent(figure: Figure | None, digits: int = 1) -> str:
    return "–" if figure is None else number(100 * parse(figure.value), digits)


def _best_named(figures: Iterable[Figure]) -> list[Figure]:
    """Of each system and split the attacker who names most people rightly, of all who are enrolled,
    from all that a person said."""
    best: dict[tuple[str, str], Figure] = {}
    for f in figures:
        if f.metric == "reid_speaker_top_1" and f.system != "original":
            place = f.system, f.split
            if place not in best or parse(f.value) > parse(best[place].value):
                best[place] = f
    return list(best.values())


def _uses(figures: Sequence[Figure]) -> dict[tuple[str, str], dict[str, Figure]]:
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
        _GROUPS.get(f.gender, f.split): f.n_speakers
        for f in figures
        if f.metric == "eer" and f.n_speakers
    }
    return " and ".join(f"{n} {group}" for group, n in sorted(counts.items(), reverse=True))


def trust(figures: Sequence[Figure]) -> list[str]:
    """Whether these figures can be trusted: sentences."""
    splits = dict.fromkeys(split for split, _ in unprotected(figures))
    best = [f for split in splits if (f := best_unprotected(figures, split)) is not None]
    said = []
    if best:
        told = " / ".join(f"{percent(parse(f.value))} ({f.evaluator})" for f in best)
        weak = [_GROUPS.get(f.gender, f.split) for f in best if parse(f.value) > WEAK]
        strength = "it knows these voices"
        if weak:
            strength = f"too weak to be evidence of privacy for {' and '.join(weak)}"
        said.append(f"The best evaluator has an EER of {told} on unprotected speech: {strength}.")
    missing = absent({f.attacker for f in figures if f.attacker not in (UTILITY, "similarity")})
    if missing:
        names = ", ".join(attacker(name) for name in missing)
        said.append(f"Attackers that were not run, and may be stronger: {names}.")
    said.append(
        "Another training of an evaluator moves such figures by several points; intervals are "
        "over people and do not show it."
    )
    return said
