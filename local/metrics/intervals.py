"""Names of figures, and statistics over speakers: 95 % intervals, and p values of several tests."""

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from utils.arrays import Bool, Float64, Int64
from utils.seeds import make_rng
from utils.tables import few, sort_ids

# ---- Bootstrap intervals (95 %) over speakers.
#
# A metric generalises to new people, so people are drawn: with replacement, as many as there are.
# Resampling trials would treat thousands of comparisons of the same few voices as independent and
# understate the interval. A speaker drawn w times counts w times, and is never compared with its
# own copy as if the two were different people: a comparison within speaker s weighs w_s, one
# between speakers a and b weighs w_a·w_b.

LEVEL = 0.95

# What a figure is of, beside its metric: columns of metrics.csv. recordings: how many of a person
# are heard together (any: the test of all these numbers); enrolled, candidates: numbers (enrolled:
# empty for all); attribute, group: of which people (of
# a recall: the emotion; of linkability_bins: how many; of eer_difference: the other
# system); gallery: in what is searched; kind: value,
# chance, p, or what _PREFIXES and docs/metrics also name.
COLUMNS = ("recordings", "enrolled", "candidates", "attribute", "group", "gallery", "kind")
_UNSAID = {"recordings": ("1", "any")}  # by names
_PREFIXES = {"value": "", "p": "p_value"}
Figures = dict[str, float]  # NaN: undefined
Report = dict[str, object]  # what a program writes as JSON: figures, counts, intervals

logger = logging.getLogger(__name__)


class Key(str):
    """Name of a figure in a JSON file; made by `key`. columns: of metrics.csv, with the metric."""

    columns: dict[str, str]


def key(metric: str, **columns: object) -> Key:
    """Name of a figure from its columns, `COLUMNS`; n_speakers and n_segments are kept with it
    where they differ from those of the whole file.

    >>> key("eer", recordings="all", enrolled=3), key("cmc_1", kind="p", gallery="no_same_utt")
    ('eer_3_enrolled_all_recordings', 'p_value_cmc_1_no_same_utt')
    """
    of = {"metric": metric, "kind": "value"} | {name: str(own) for name, own in columns.items()}
    numbers = (f"{of[name]}_{name}" for name in ("enrolled", "recordings", "candidates")
               if of.get(name, "") not in ("", *_UNSAID.get(name, ())))  # fmt: skip
    parts = (of.get(name, "") for name in ("attribute", "group", "gallery"))
    kind = _PREFIXES.get(of["kind"], of["kind"])
    found = Key("_".join(filter(None, (kind, metric, *numbers, *parts))))
    found.columns = of
    return found


def but(name: str, **columns: object) -> Key:
    """Name of the same figure with other `columns`."""
    return key(**{"metric": name} | getattr(name, "columns", {}) | columns)


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


def multiplicities(n_speakers: int, n_bootstrap: int = 0, seed: int = 0) -> Float64:
    """How often each resample holds each speaker, (n_bootstrap, n_speakers); speakers in C order of
    their ids, so that the resamples do not depend on the order of any file."""
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


def resample(
    n_speakers: int, n_draws: int, n_bootstrap: int = 0, seed: int = 0
) -> tuple[Float64, Int64]:
    """Resamples of people and of the draws of a random system, so that intervals cover both:
    `multiplicities`, (n_bootstrap, n_speakers), and the place of the one draw that each resample is
    taken of, (n_bootstrap,)."""
    draw = make_rng(seed, "bootstrap over draws").integers(n_draws, size=n_bootstrap)
    return multiplicities(n_speakers, n_bootstrap, seed), draw


def pair_weights(drawn: Float64, cell: Int64) -> Float64:
    """Weight of comparisons between speakers, (..., n), when each is drawn `drawn[..., s]` times:
    w_a·w_b, and within a speaker w_s. cell: (n,) a·n_speakers + b of each."""
    n = drawn.shape[-1]
    few = n**2 < len(cell)  # speakers: a table of all costs less; of many, more than a list of some
    one, other = np.divmod(np.arange(n**2) if few else cell, n)
    weight = drawn[..., one] * np.where(one == other, 1.0, drawn[..., other])
    return weight.take(cell, axis=-1) if few else weight


def bootstrap(
    evaluate: Callable[[Float64], Figures | None], n_speakers: int, n_bootstrap: int = 0,
    seed: int = 0,
) -> dict[str, Any]:  # fmt: skip
    """`interval_report` of a function of how often each speaker is drawn, (n_speakers,)."""
    drawn = multiplicities(n_speakers, n_bootstrap, seed)
    return interval_report(map(evaluate, drawn), n_speakers)


def interval_report(resampled: Iterable[Figures | None], n_speakers: int) -> dict[str, Any]:
    """Compute `intervals` of each figure, with the counts behind them, for a report.

    resampled: figures of each resample; None where nothing is defined (no target or no nontarget
    left, for example). Nothing without resamples; of one speaker, who is in all of them, every
    interval is None.
    """
    every = [*resampled]
    if not (n_bootstrap := len(every)):
        return {}
    replicates = [figures for figures in every if figures is not None]
    left_out = n_bootstrap - len(replicates)
    if left_out:
        logger.warning(
            f"{left_out} of {n_bootstrap} resamples of the speakers are undefined (no target or no "
            "nontarget left) and left out of the intervals"
        )
    names = replicates[0] if replicates else {}
    found = {n: _interval(n, replicates) if n_speakers > 1 else None for n in names}
    lacking = [name for name, ends in found.items() if ends is None]
    if n_speakers < 2:
        logger.warning("intervals are undefined: they are over speakers, and there is one")
    elif lacking:
        logger.warning("no interval of %s: undefined, or the same for everybody", few(lacking))
    return {
        "n_bootstrap": n_bootstrap,
        "n_bootstrap_undefined": left_out,
        "intervals": found,
    }


def rate_intervals(rates: Mapping[str, Float64], n_bootstrap: int = 0, seed: int = 0) -> Report:
    """`interval_report` of the mean over people of each rate, (n_people,), NaN where somebody has
    none. Where all have the same rate no resample differs, and a width of 0 would be false: None.
    """
    has = {name: ~np.isnan(rate) for name, rate in rates.items()}
    varied = [name for name, rate in rates.items() if len(set(rate[has[name]])) > 1]

    def evaluate(drawn: Float64) -> Figures:
        with np.errstate(invalid="ignore"):  # nobody drawn who has a rate
            return {n: drawn[has[n]] @ rates[n][has[n]] / drawn[has[n]].sum() for n in varied}

    for name in [name for name in rates if n_bootstrap and has[name].any() and name not in varied]:
        logger.warning("%s has no interval: all speakers have the same rate", name)
    report = bootstrap(evaluate, len(rates[varied[0]]), n_bootstrap, seed) if varied else {}
    found = dict.fromkeys(rates) | report.get("intervals", {})
    return report | ({"intervals": found} if n_bootstrap else {})


def sampled(samples: Mapping[str, Float64], n_people: int) -> Report:
    """Values and `interval_report` of figures, each as it is and then in each resample, (1 + n,).
    A resample in which all are undefined counts as one of nothing."""
    table = np.array([*samples.values()])
    resampled = (
        dict(zip(samples, own.tolist(), strict=True)) if not np.isnan(own).all() else None
        for own in table.T[1:]
    )
    values = dict(zip(samples, table.T[0].tolist(), strict=True)) if samples else {}
    return values | interval_report(resampled, n_people)


def both(first: Mapping[str, Any], second: Mapping[str, Any]) -> Report:
    """Join two reports with intervals; where both have a figure, the first one's counts."""
    ranges = [report["intervals"] for report in (second, first) if "intervals" in report]
    more = {name: value for name, value in second.items() if name not in first}
    merged = {name: ends for own in ranges for name, ends in own.items()}
    return {**first, **more, **({"intervals": merged} if ranges else {})}


def _interval(name: str, replicates: list[Figures]) -> list[float] | None:
    values = np.array([figures[name] for figures in replicates])
    defined = values[~np.isnan(values)]
    if 0 < len(defined) < len(values):
        lost, n = len(values) - len(defined), len(values)
        logger.warning(
            f"{name} is undefined in {lost} of {n} resamples; its interval is over the others"
        )
    return interval(values, name)


# Parts of the names of shares of people.
SHARES = ("cmc_", "named", "by_recording", "inferred", "residual_risk")


def is_falsely_sure(name: str, low: float, high: float) -> bool:
    """Whether an interval is of a share of people and has no width but by rounding: these people
    are alike, which others need not be."""
    return any(part in name for part in SHARES) and high - low < 1e-9


def interval(values: npt.ArrayLike, name: str = "") -> list[float] | None:
    """Central 95 % of the replicates that are defined; None where none is, or it would be falsely
    sure."""
    found = np.asarray(values, np.float64)
    defined = found[~np.isnan(found)]
    ends = list(percentiles(defined)) if len(defined) else []
    return None if not ends or is_falsely_sure(name, *ends) else ends


def percentiles(values: Float64) -> tuple[float, float]:
    """Central 95 % of replicates; rounded outwards to replicates, so infinite ones do no harm."""
    ordered = np.sort(values)
    tail = 0.5 * (1.0 - LEVEL) * (len(ordered) - 1)
    low, high = math.floor(tail + 1e-9), math.ceil(len(ordered) - 1 - tail - 1e-9)
    return float(ordered[low]), float(ordered[high])


# ---- Several tests.


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
