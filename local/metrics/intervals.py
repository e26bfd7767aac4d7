"""Statistics over speakers: 95 % intervals, ranks of searches, permutation tests."""

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from utils.arrays import Bool, Float64, Int64
from utils.seeds import make_rng
from utils.tables import sort_ids

# ---- Bootstrap intervals (95 %) over speakers.
#
# A metric generalises to new people, so people are drawn: with replacement, as many as there are.
# Resampling trials would treat thousands of comparisons of the same few voices as independent and
# understate the interval. A speaker drawn w times counts w times, and is never compared with its
# own copy as if the two were different people: a comparison within speaker s weighs w_s, one
# between speakers a and b weighs w_a·w_b.

LEVEL = 0.95

Figures = dict[str, float]  # NaN: undefined

logger = logging.getLogger(__name__)


def number_names(
    column: Iterable[str], names: Sequence[str] | None = None
) -> tuple[list[str], Int64]:
    """Distinct names of a column in C order (or the given ones), and the position of each row."""
    rows = list(column)
    listed = sort_ids(set(rows)) if names is None else list(names)
    place = {name: i for i, name in enumerate(listed)}
    return listed, np.array([place[name] for name in rows], np.int64)


def count_labels(target: Bool, suffix: str = "") -> dict[str, int]:
    """Numbers of target and of nontarget trials, by the keys of the JSON. target: (n_trials,)."""
    n = int(target.sum())
    return {f"n_target{suffix}": n, f"n_nontarget{suffix}": len(target) - n}


def multiplicities(n_speakers: int, n_bootstrap: int, seed: int) -> Float64:
    """Draw the speakers: counts (n_bootstrap, n_speakers); speakers in C order of their ids, so
    that the draws do not depend on the order of any file."""
    rng = make_rng(seed, "bootstrap over speakers")
    return rng.multinomial(n_speakers, np.full(n_speakers, 1.0 / n_speakers), n_bootstrap).astype(
        np.float64
    )


def warn_undefined(figures: Figures, why: str) -> Figures:
    """The figures unchanged; a warning names each that is undefined, and says why."""
    for name, value in figures.items():
        if math.isnan(value):
            logger.warning("%s is undefined: %s", name, why)
    return figures


def mean_figures(runs: Sequence[Figures]) -> Figures:
    """Mean of each figure over runs of a random system; NaN where it is undefined in one."""
    return {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}


def one_run(n_runs: int, n_bootstrap: int, seed: int) -> Int64:
    """Draw the run of which each resample of people is taken, so that intervals cover both; places,
    (n_bootstrap,)."""
    return make_rng(seed, "bootstrap over draws").integers(n_runs, size=n_bootstrap)


def pair_weights(drawn: Float64) -> Float64:
    """Weight of comparisons between speakers, (..., n_speakers, n_speakers), when each is drawn
    `drawn[..., s]` times: w_a·w_b, and on the diagonal w_s."""
    weight = drawn[..., :, None] * drawn[..., None, :]
    speakers = np.arange(drawn.shape[-1])
    weight[..., speakers, speakers] = drawn
    return weight


def interval_report(
    evaluate: Callable[[Float64], Figures | None],
    n_speakers: int,
    n_bootstrap: int = 0,
    seed: int = 0,
) -> dict[str, object]:
    """Compute `intervals` of each figure, with the counts behind them, for a report.

    evaluate: figures of a resample from how often each speaker is drawn, (n_speakers,); None where
    nothing is defined (no target or no nontarget left, for example). Nothing without resamples.
    """
    if not n_bootstrap:
        return {}
    draws = multiplicities(n_speakers, n_bootstrap, seed)
    replicates = [figures for drawn in draws if (figures := evaluate(drawn)) is not None]
    left_out = n_bootstrap - len(replicates)
    if left_out:
        logger.warning(
            "%d of %d resamples of the speakers are undefined (no target or no nontarget left) "
            "and left out of the intervals",
            left_out,
            n_bootstrap,
        )
    names = replicates[0] if replicates else {}
    return {
        "n_bootstrap": n_bootstrap,
        "n_bootstrap_undefined": left_out,
        "intervals": {name: _interval(name, replicates) for name in names},
    }


def _interval(name: str, replicates: list[Figures]) -> list[float] | None:
    values = np.array([figures[name] for figures in replicates])
    defined = values[~np.isnan(values)]
    if 0 < len(defined) < len(values):
        logger.warning(
            "%s is undefined in %d of %d resamples; its interval is over the others",
            name,
            len(values) - len(defined),
            len(values),
        )
    return interval(values)


def interval(values: npt.ArrayLike) -> list[float] | None:
    """Central 95 % of the replicates that are defined; None where none is."""
    found = np.asarray(values, np.float64)
    defined = found[~np.isnan(found)]
    return list(percentiles(defined)) if len(defined) else None


def percentiles(values: Float64) -> tuple[float, float]:
    """Central 95 % of replicates; rounded outwards to replicates, so infinite ones do no harm."""
    ordered = np.sort(values)
    tail = 0.5 * (1.0 - LEVEL) * (len(ordered) - 1)
    low, high = math.floor(tail + 1e-9), math.ceil(len(ordered) - 1 - tail - 1e-9)
    return float(ordered[low]), float(ordered[high])


# ---- Results of a search of protected segments among original ones, speaker by speaker.

RANKS = (1, 5, 10, 20, 50)  # of cmc_<k>; auc_cmc averages up to the last


@dataclass(frozen=True, eq=False)
class Search:
    """Rank at which each query finds each speaker in the gallery; S speakers.

    best: (n_queries, S) 1 + the number of other people's segments that are as near as the nearest
    one of the speaker or nearer; inf for a speaker without segments. own: (n_queries,) the query's
    speaker; mates: (n_queries,) segments of it in the gallery; mate_ranks: (n_queries,) sum of
    their ranks in the whole gallery, ties at mid-rank; gallery: (n_queries,) segments in it.
    """

    best: Float64
    own: Int64
    mates: Int64
    mate_ranks: Float64
    gallery: Int64


# ---- Permutation tests of a search against chance (identity leakage; Seo et al. 2025, 3.6).
#
# The null hypothesis is that of the clustered chance level: the gallery's clusters stay as they
# are, and the names under which the speakers' protected segments are searched are permuted. Several
# systems are tested side by side, so their p values are corrected (Holm 1979).

N_PERMUTATIONS = 9999
TESTED = (*(f"cmc_{k}" for k in RANKS), "auc_cmc", "mean_rank")
TWO_SIDED = ("cmc_1", "auc_cmc")
_AT_ONCE = 500
_ROUNDING = 1e-9  # of sums over queries: a smaller difference is a tie, and counts for chance


def permutation_tests(
    found: Search, n_permutations: int = N_PERMUTATIONS, seed: int = 0
) -> Figures:
    """P values `p_value_<figure>`: for cmc_<k> and auc_cmc (higher leaks more), mean_rank (lower);
    and `p_value_two_sided_<figure>` for those of TWO_SIDED: less than chance is also information.

    p = (1 + permutations that leak as much or more) / (1 + permutations), so never 0; two-sided,
    those as far from the mean over all permutations. The same seed
    gives the same permutations whatever the order of the files. NaN without a query that has a
    mate, or with one speaker, for whom there is nothing to permute.
    """
    names = [f"p_value_{name}" for name in TESTED]
    names += [f"p_value_two_sided_{name}" for name in TWO_SIDED]
    queries = found.mates > 0
    if len(np.unique(found.own[queries])) < 2:
        logger.warning("p_value_* is undefined: a test needs queries of two speakers or more")
        return dict.fromkeys(names, math.nan)
    total = leakage_sums(found)
    n = total.shape[1]
    places = np.arange(n)
    observed = total[:, places, places].sum(axis=1)
    rng = make_rng(seed, "permutation test of speakers")
    both = [TESTED.index(name) for name in TWO_SIDED]
    off = observed[both] - (centre := total[both].sum(axis=(1, 2)) / n)
    as_much, as_far, left = np.zeros(len(total)), np.zeros(len(both)), n_permutations
    while left > 0:
        size = min(left, _AT_ONCE)
        order = rng.permuted(np.tile(places, (size, 1)), axis=1)
        drawn = np.stack([one[places, order].sum(axis=1) for one in total])
        as_much += (drawn >= observed[:, None] - _ROUNDING).sum(axis=1)
        far = np.abs(drawn[both] - centre[:, None])
        as_far += (far >= np.abs(off)[:, None] - _ROUNDING).sum(axis=1)
        left -= size
    p = (1.0 + np.append(as_much, as_far)) / (1.0 + n_permutations)
    return dict(zip(names, p.tolist(), strict=True))


def leakage_sums(found: Search) -> Float64:
    """Figures (TESTED, S, S) of the queries of speaker s under the name of speaker t.

    Sums over queries, mean_rank with its sign turned so that more is more leakage in all.
    """
    queries = found.mates > 0
    who, own = np.unique(found.own[queries], return_inverse=True)
    best = found.best[queries][:, who]
    top = int(min(RANKS[-1], found.gallery.min()))
    hits = [(best <= k).astype(np.float64) for k in RANKS]
    under_curve = np.maximum(top + 1 - best, 0.0) / top  # ranks 1..top at which it is a hit
    parts = [*hits, under_curve, -best]
    sums = np.zeros((len(parts), len(who), len(who)))
    for place, part in enumerate(parts):
        np.add.at(sums[place], own, part)
    return sums


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p values of several tests for their number (Holm 1979), in the given order.

    The i-th smallest of m, from 1, is multiplied by m + 1 - i; none is below one that was smaller,
    or above 1. NaN stays and does not count.
    """
    p = np.asarray(p_values, np.float64)
    defined = np.flatnonzero(~np.isnan(p))
    order = defined[np.argsort(p[defined], kind="stable")]
    corrected = p.copy()
    factors = np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0)
    return [float(value) for value in corrected]
