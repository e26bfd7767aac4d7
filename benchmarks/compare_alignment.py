#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Does canonical correlation tell what a system leaves of people (Seo et al. 2025, Table 8)?

The challenge's own B1, x-vectors before and after it (CHALLENGE: a folder with data/<set>/utt2spk
and xvectors/<set>{,_anon}/xvector.ark; nothing is protected here). Each protected segment is paired
with its own source, with another segment of the same person, and with one of a stranger of the same
gender, so that clusters of people stay (the clustered chance level), as many of each, 99 times. The
same of canonical directions that were fitted on other people (five folds). Intervals over people:
jackknife with Student's t; held out: bootstrap. p: of 99 exchanges of people and the figure itself,
how many correlate as high.

  benchmarks/compare_alignment.py CHALLENGE OUT.csv
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from benchmarks.measuring import show
from local.metrics.intervals import interval_report, multiplicities
from local.metrics.leakage import N_FOLDS, basis, canonical_directions, cca_top10
from utils.archives import read_vectors
from utils.arrays import Float64, Int64
from utils.seeds import make_rng
from utils.tables import read_map

SETS = ("libri_test_trials_f", "libri_test_trials_m")
N_EXCHANGES = 99
HEAD = ["figure", "segments", "people", "value", "own source", "own person", "stranger"]
HEAD += ["p, source", "p, person"]
Correlation = Callable[[Int64, Int64], float]  # of rows of the original and of the protected side


@dataclass(frozen=True, eq=False)
class Sides:
    """x-vectors before and after protection, (n, D), of the same segments; who, (n,): places of
    people; man: (n_people,)."""

    x: Float64
    y: Float64
    who: Int64
    man: Int64

    def rows(self, person: int) -> Int64:
        """Rows of a person."""
        return np.flatnonzero(self.who == person)


def read(challenge: Path) -> Sides:
    """Women and men together: one gender has fewer segments than canonical correlation needs."""
    x, y, who, man = [], [], [], []
    for place, name in enumerate(SETS):
        speakers = read_map(challenge / "data" / name / "utt2spk")
        before, after = (
            read_vectors(challenge / "xvectors" / f"{name}{end}" / "xvector.ark")
            for end in ("", "_anon")
        )
        x += [before[utt] for utt in speakers]
        y += [after[utt] for utt in speakers]
        who += list(speakers.values())
        man += [place] * len(set(speakers.values()))
    names = list(dict.fromkeys(who))
    at = np.array([names.index(name) for name in who])
    return Sides(np.array(x, np.float64), np.array(y, np.float64), at, np.array(man))


def exchanged(sides: Sides, groups: Int64, rng: np.random.Generator) -> tuple[Int64, Int64]:
    """Rows of the original side, and of the protected side of somebody else of the same group, (n,)
    each; nobody keeps their own. As many of a pair of people as the one with fewer has."""
    group = np.array([groups[sides.rows(person)[0]] for person in range(len(sides.man))])
    other = np.arange(len(group))
    for one in np.unique(group):
        people = rng.permutation(np.flatnonzero(group == one))
        other[people] = np.roll(people, 1)
    own, theirs = [], []
    for person, stranger in enumerate(other.tolist()):
        a, b = rng.permutation(sides.rows(person)), rng.permutation(sides.rows(stranger))
        n = min(len(a), len(b))
        own.append(a[:n])
        theirs.append(b[:n])
    return np.concatenate(own), np.concatenate(theirs)


def within(groups: Int64, rng: np.random.Generator) -> Int64:
    """A permutation of rows that keeps each in its group."""
    rows = np.arange(len(groups))
    for group in np.unique(groups):
        here = np.flatnonzero(groups == group)
        rows[here] = rng.permutation(here)
    return rows


def levels(sides: Sides, groups: Int64, correlation: Correlation) -> list[str]:
    """Cells of OUT from `own source` on; groups, (n,): of rows whose people may be exchanged.

    An exchange leaves segments out where people have different numbers of them, and fewer segments
    correlate higher by chance: all three pairings are of the same segments.
    """
    rng = make_rng(0, "canonical correlation: chance")
    found = []
    for _ in range(N_EXCHANGES):
        rows, others = exchanged(sides, groups, rng)
        shuffled = rows[within(sides.who[rows], rng)]
        found.append([correlation(rows, one) for one in (rows, shuffled, others)])
    source, person, stranger = np.array(found).T
    p = [(1 + (stranger >= own).sum()) / (1 + N_EXCHANGES) for own in (source, person)]
    means = [f"{side.mean():.3f}" for side in (source, person, stranger)]
    return [*means, *(f"{value:.3f}" for value in p)]


def in_sample(sides: Sides) -> list[str]:
    """The paper's figure: fitted on the segments that it is of."""

    def correlation(rows: Int64, others: Int64) -> float:
        return cca_top10(basis(sides.x[rows]), basis(sides.y[others]))

    n = len(sides.man)
    without = [np.flatnonzero(sides.who != person) for person in range(n)]
    parts = np.array([correlation(rows, rows) for rows in without])
    half = stats.t.ppf(0.975, n - 1) * np.sqrt((n - 1) * parts.var())
    every = np.arange(len(sides.who))
    value = correlation(every, every)
    cell = f"{value:.3f} [{value - half:.3f}, {min(value + half, 1.0):.3f}]"
    return [
        "CCA top 10",
        str(len(every)),
        str(n),
        cell,
        *levels(sides, sides.man[sides.who], correlation),
    ]


def held_out(sides: Sides) -> list[str]:
    """Mean correlation, on people who are held out, along directions fitted on the others."""
    fold = sides.who % N_FOLDS
    projected: list[tuple[Float64, Float64]] = []
    for number in range(N_FOLDS):
        learn = fold != number
        x, y = (side - side[learn].mean(axis=0) for side in (sides.x, sides.y))
        first, second = canonical_directions(x[learn], y[learn])
        projected.append((x @ first, y @ second))

    def correlation(rows: Int64, others: Int64, weight: Float64 | None = None) -> float:
        w = np.ones(len(rows)) if weight is None else weight
        found = []
        for number, (left, right) in enumerate(projected):
            at = fold[rows] == number
            if w[at].any():
                found.append(_weighted(left[rows[at]], right[others[at]], w[at]))
        return float(np.mean(found))

    every = np.arange(len(sides.who))
    drawn = multiplicities(len(sides.man), 1000, 0)
    resampled = ({"cca": correlation(every, every, own[sides.who])} for own in drawn)
    report = interval_report(resampled, len(sides.man))
    low, high = report["intervals"]["cca"]  # type: ignore[index]
    cell = f"{correlation(every, every):.3f} [{low:.3f}, {high:.3f}]"
    return ["the same, held out", str(len(every)), str(len(sides.man)), cell,
            *levels(sides, fold * 2 + sides.man[sides.who], correlation)]  # fmt: skip


def _weighted(a: Float64, b: Float64, w: Float64) -> float:
    """Mean of the correlations of columns, rows weighed."""
    a, b = (side - w @ side / w.sum() for side in (a, b))
    spread = np.sqrt((w @ a**2) * (w @ b**2))
    return float(np.mean((w @ (a * b))[spread > 0] / spread[spread > 0]))


def main() -> int:
    """Compute, print, write."""
    if len(sys.argv) != 3:
        sys.exit(f"{__doc__}")
    sides = read(Path(sys.argv[1]))
    rows: Sequence[list[str]] = [HEAD, held_out(sides), in_sample(sides)]
    show(Path(sys.argv[2]), rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
