"""Where two recognisers say something else of the same systems: a second opinion, in words."""

from collections.abc import Mapping, Sequence
from itertools import combinations

from pandas import DataFrame

from local.report import frame
from local.report.frame import UTILITY, Value, percent
from local.report.words import enumerate_words

_MOST = 6  # pairs of systems that are named
Heard = dict[str, Value]  # by system


def opinions(figures: DataFrame, metric: str = "wer") -> list[str]:
    """A sentence for each split and two recognisers: whether they put the systems in one order.

    Original speech is among the systems. Of each pair that they order the other way round it is
    told whether either is sure, that is whether the intervals of the two systems are apart.
    """
    own = frame.where(figures, family=UTILITY, metric=metric)
    heard: dict[str, dict[str, Heard]] = {}
    for (split, by, system), value in frame.values(own, "split", "evaluator", "system").items():
        if value.defined:
            heard.setdefault(split, {}).setdefault(by, {})[system] = value
    return [
        f"{split}, {metric.upper()}: {by} and {other} {told}."
        for split in sorted(heard)
        for by, other in combinations(heard[split], 2)
        if (told := _compare({name: heard[split][name] for name in (by, other)}))
    ]


def _compare(heard: Mapping[str, Heard]) -> str:
    """What two recognisers say of the systems that both heard; nothing where there is one."""
    first, second = heard.values()
    systems = [system for system in first if system in second]
    pairs = list(combinations(systems, 2))
    turned = [
        _pair(sorted((a, b), key=lambda system: first[system].value), heard)
        for a, b in pairs
        if (first[a].value - first[b].value) * (second[a].value - second[b].value) < 0
    ]
    if turned:
        named = enumerate_words(turned, _MOST)
        return f"disagree on {len(turned)} of {len(pairs)} pairs of systems: {named}"
    original = ", original speech included" if "original" in systems else ""
    return f"put all {len(systems)} systems in the same order{original}" if pairs else ""


def _pair(pair: Sequence[str], heard: Mapping[str, Heard]) -> str:
    """The two systems, the one first that the first recogniser finds better, with their figures."""
    better, worse = pair
    figures = [
        f"{percent(own[better].value)} against {percent(own[worse].value)} by {name}"
        for name, own in heard.items()
    ]
    sure = [name for name, own in heard.items() if own[better].apart(own[worse])]
    doubt = f"only {sure[0]} is sure" if len(sure) == 1 else "both are sure" if sure else "chance?"
    return f"{better} and {worse} ({', '.join(figures)}; {doubt})"
