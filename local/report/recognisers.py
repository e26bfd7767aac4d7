# SPDX-License-Identifier: Apache-2.0
"""Where two recognisers say something else of the same systems: a second opinion, in words."""

import math
from collections.abc import Iterable, Sequence
from itertools import combinations

from local.report.load import Value
from local.report.results import Figure
from local.report.words import UTILITY, enumerate_words, parse, percent

_MOST = 6  # pairs of systems that are named


def opinions(figures: Iterable[Figure], metric: str = "wer") -> list[str]:
    """A sentence for each split and two recognisers: whether they put the systems in one order.

    Original speech is among the systems. Of each pair that they order the other way round it is
    told whether either is sure, that is whether the intervals of the two systems are apart.
    """
    values: dict[str, dict[str, dict[str, Value]]] = {}
    for f in figures:
        if (f.attacker, f.metric) == (UTILITY, metric) and math.isfinite(parse(f.value)):
            own = values.setdefault(f.split, {}).setdefault(f.evaluator, {})
            own[f.system] = Value(parse(f.value), parse(f.low), parse(f.high))
    return [
        _compare(f"{split}, {metric.upper()}", (a, b), values[split])
        for split in sorted(values)
        for a, b in combinations(values[split], 2)
        if len(values[split][a].keys() & values[split][b].keys()) > 1
    ]


def _compare(what: str, names: tuple[str, str], values: dict[str, dict[str, Value]]) -> str:
    """What two recognisers say of the systems that both heard."""
    first, second = (values[name] for name in names)
    systems = [system for system in first if system in second]
    turned = [
        (x, y)
        for x, y in combinations(systems, 2)
        if (first[x].value - first[y].value) * (second[x].value - second[y].value) < 0
    ]
    both = f"{what}: {names[0]} and {names[1]} put all {len(systems)} systems in the same order"
    if not turned:
        return f"{both}, original speech included." if "original" in systems else f"{both}."
    pairs = [_pair(pair, names, (first, second)) for pair in turned]
    count = len(systems) * (len(systems) - 1) // 2
    return (
        f"{what}: {names[0]} and {names[1]} disagree on {len(turned)} of {count} pairs of systems: "
        f"{enumerate_words(pairs, _MOST)}."
    )


def _pair(pair: tuple[str, str], names: tuple[str, str], found: Sequence[dict[str, Value]]) -> str:
    """Who is better by the first recogniser, and the figures of both."""
    better, worse = sorted(pair, key=lambda system: found[0][system].value)
    figures = [
        f"{percent(own[better].value)} against {percent(own[worse].value)} by {name}"
        for name, own in zip(names, found, strict=True)
    ]
    sure = [name for name, own in zip(names, found, strict=True) if own[better].apart(own[worse])]
    doubt = f"only {sure[0]} is sure" if len(sure) == 1 else "both are sure" if sure else "chance?"
    return f"{better} and {worse} ({', '.join(figures)}; {doubt})"
