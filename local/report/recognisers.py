"""Where two recognisers say something else of the same systems: a second opinion, in words."""

from collections.abc import Mapping, Sequence
from itertools import combinations

from pandas import DataFrame

from local.report import frame
from local.report.frame import UTILITY, Value, percent
from local.report.words import enumerate_words

_MOST = 6  # pairs of systems that are named
Heard = Mapping[str, Mapping[str, Value]]  # by recogniser, then system


def opinions(figures: DataFrame, metric: str = "wer") -> list[str]:
    """A sentence for each split and two recognisers: whether they put the systems in one order.

    Original speech is among the systems. Of each pair that they order the other way round it is
    told whether either is sure, that is whether the intervals of the two systems are apart.
    """
    own = frame.where(figures, family=UTILITY, metric=metric)
    values: dict[str, dict[str, dict[str, Value]]] = {}
    for (split, by, system), value in frame.values(own, "split", "evaluator", "system").items():
        if value.defined:
            values.setdefault(split, {}).setdefault(by, {})[system] = value
    return [
        _compare(f"{split}, {metric.upper()}", {name: values[split][name] for name in pair})
        for split in sorted(values)
        for pair in combinations(values[split], 2)
        if len(set.intersection(*(set(values[split][name]) for name in pair))) > 1
    ]


def _compare(what: str, heard: Heard) -> str:
    """A sentence on the systems that two recognisers heard."""
    first, second = heard.values()
    systems = [system for system in first if system in second]
    pairs = list(combinations(systems, 2))
    turned = [
        _pair(pair, heard)
        for pair in pairs
        if (first[pair[0]].value - first[pair[1]].value)
        * (second[pair[0]].value - second[pair[1]].value) < 0
    ]  # fmt: skip
    names = f"{what}: {enumerate_words([*heard])}"
    if turned:
        named = enumerate_words(turned, _MOST)
        return f"{names} disagree on {len(turned)} of {len(pairs)} pairs of systems: {named}."
    same = f"{names} put all {len(systems)} systems in the same order"
    return f"{same}, original speech included." if "original" in systems else f"{same}."


def _pair(pair: Sequence[str], heard: Heard) -> str:
    """The two systems, the one first that the first recogniser finds better, with their figures."""
    first = next(iter(heard.values()))
    better, worse = sorted(pair, key=lambda system: first[system].value)
    figures = [
        f"{percent(own[better].value)} against {percent(own[worse].value)} by {name}"
        for name, own in heard.items()
    ]
    sure = [name for name, own in heard.items() if own[better].apart(own[worse])]
    doubt = f"only {sure[0]} is sure" if len(sure) == 1 else "both are sure" if sure else "chance?"
    return f"{better} and {worse} ({', '.join(figures)}; {doubt})"
