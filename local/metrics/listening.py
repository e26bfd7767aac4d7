"""Figures of a listening test: who people took for one person, and how speech sounded to them."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest, norm

from local.metrics.intervals import LEVEL, interval_report, multiplicities, percentiles
from utils.arrays import Float64
from utils.cli import UserError
from utils.tables import read_json_object

ANCHOR = "original"
LEAST = 0.75  # of the pairs of original speech: who has fewer right did not hear, or did not listen
MARKS = (1, 2, 3, 4, 5)
_BOOTSTRAP = 1000


def read_answers(path: Path, key: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Name of a listener, and an answer (or None) for each question of the key.

    Raises UserError for another test, for another number of answers, and for one that the question
    cannot have.
    """
    found = read_json_object(path, "save the answers from the page again")
    if found.get("test") != key["test"]:
        raise UserError(
            f"{path}: answers test {found.get('test')}, and the key is of {key['test']}"
        )
    answers, asked = found.get("answers"), key["questions"]
    if not isinstance(answers, list) or len(answers) != len(asked):
        raise UserError(f"{path}: {len(asked)} answers are expected; save them from the page again")
    for i, (answer, q) in enumerate(zip(answers, asked, strict=True), 1):
        allowed = MARKS if q["kind"] == "quality" else ("same", "different")
        if answer is not None and answer not in allowed:
            raise UserError(f"{path}: answer {i} is {answer!r}, of {', '.join(map(str, allowed))}")
    return str(found.get("listener") or path.stem), answers


def d_prime(hits: int, n_same: int, false_alarms: int, n_different: int) -> float:
    """z(hit rate) - z(false-alarm rate), log-linear: half a trial is added to each count (Hautus
    1995), so that it is finite. NaN without pairs of both kinds. 0 is guessing."""
    if not n_same or not n_different:
        return math.nan
    rates = (hits + 0.5) / (n_same + 1), (false_alarms + 0.5) / (n_different + 1)
    high, low = norm.ppf(rates)
    return float(high - low)


def accuracy(right: Float64, seed: int = 0) -> dict[str, object]:
    """Share of right answers; its interval is exact for one listener (Clopper and Pearson 1934),
    and else resamples listeners and pairs.

    right: (n_listeners, n_pairs) 1 or 0, NaN where a listener gave no answer.
    """
    given = np.isfinite(right)
    if not given.any():
        return {"accuracy": math.nan, "accuracy_interval": None}
    hits, n = np.where(given, right, 0.0), float(given.sum())
    if len(right) == 1:
        exact = binomtest(round(hits.sum()), round(n)).proportion_ci(LEVEL, "exact")
        interval = [float(exact.low), float(exact.high)]
    else:
        rows, columns = (multiplicities(size, _BOOTSTRAP, seed + i)
                         for i, size in enumerate(right.shape))  # fmt: skip
        tried = np.einsum("bl,lp,bp->b", rows, given.astype(np.float64), columns)
        found = np.einsum("bl,lp,bp->b", rows, hits, columns)
        interval = [*percentiles(found[tried > 0] / tried[tried > 0])]
    return {"accuracy": float(hits.sum() / n), "accuracy_interval": interval}


def _pairs(truth: Sequence[str], given: Sequence[Sequence[Any]], seed: int) -> dict[str, object]:
    """truth: the right answer of each pair; given: those of each listener, None where there is
    none."""
    right = np.array([
        [math.nan if one is None else float(one == own)
         for one, own in zip(row, truth, strict=True)] for row in given
    ])  # fmt: skip
    same = np.array(truth) == "same"
    n = [int(np.isfinite(right[:, kind]).sum()) for kind in (same, ~same)]
    hits, rejections = (round(np.nansum(right[:, kind])) for kind in (same, ~same))
    return {
        "n_same": n[0], "n_different": n[1],
        "d_prime": d_prime(hits, n[0], n[1] - rejections, n[1]),
        **accuracy(right, seed),
    }  # fmt: skip


def _marks(by_listener: Sequence[Sequence[int]], seed: int) -> dict[str, object]:
    """Mean opinion score: mean of the listeners' means; its interval resamples listeners."""
    means: Float64 = np.array([np.mean(own) for own in by_listener])
    told = interval_report(
        lambda drawn: {"mos": float(drawn @ means / drawn.sum())}, len(means),
        _BOOTSTRAP if len(means) > 1 else 0, seed,
    )  # fmt: skip
    intervals = told.get("intervals", {})
    assert isinstance(intervals, dict)
    n = sum(map(len, by_listener))
    return {"n_marks": n, "mos": float(means.mean()), "mos_interval": intervals.get("mos")}


def score(
    key: Mapping[str, Any], heard: Mapping[str, Sequence[Any]], seed: int = 0
) -> dict[str, object]:
    """Figures by system: `d_prime`, `accuracy` (chance 0.5) and `mos` with their intervals.

    heard: answers by listener. Listeners with fewer than 75 % of the pairs of original speech right
    are left out and named, so that of `original` is not below it. Raises UserError where none is
    left.
    """
    asked = key["questions"]

    def answered(name: str, kind: str, system: str) -> list[tuple[str, Any]]:
        rows = zip(asked, heard[name], strict=True)
        return [(q["answer"], given) for q, given in rows
                if given is not None and (q["kind"], q["system"]) == (kind, system)]  # fmt: skip

    anchors = {name: answered(name, "same", ANCHOR) for name in heard}
    share = {n: np.mean([r == g for r, g in own]) if own else 0.0 for n, own in anchors.items()}
    kept = [name for name in heard if share[name] >= LEAST]
    if not kept:
        raise UserError("no listener has 75 % of the pairs of original speech right")
    figures: dict[str, dict[str, object]] = defaultdict(dict)
    for system in dict.fromkeys(q["system"] for q in asked):
        own = [i for i, q in enumerate(asked) if (q["kind"], q["system"]) == ("same", system)]
        if own:
            given = [[heard[name][i] for i in own] for name in kept]
            figures[system] |= _pairs([asked[i]["answer"] for i in own], given, seed)
        marks = [
            [m for _, m in told] for name in kept if (told := answered(name, "quality", system))
        ]
        if marks:
            figures[system] |= _marks(marks, seed)
    left_out = [name for name in heard if name not in kept]
    return {"n_listeners": len(kept), "left_out": left_out, "systems": dict(figures)}
