# SPDX-License-Identifier: Apache-2.0
"""Estimated mean opinion scores: means over speakers, and their loss by protection."""

import math
from collections import Counter
from collections.abc import Mapping

import numpy as np

from local.metrics.intervals import Figures, interval_report, logger
from utils.arrays import Float64
from utils.cli import UserError
from utils.tables import StrPath, invert, read_map

Scores = Mapping[str, float | str]  # utterance -> score, or the reason for none

PROBLEMS = ("empty", "short", "silent", "clipped")


def read_quality(path: StrPath) -> dict[str, float | str]:
    """Read table `quality` of steps/estimate_quality.py; UserError for a score outside 1 to 5."""
    found: dict[str, float | str] = {}
    for utt, text in read_map(path, rest_of_line=True).items():
        mark, _, problem = text.partition(" ")
        if mark == "-" and problem in PROBLEMS:
            found[utt] = problem
            continue
        try:
            found[utt] = float(text)
        except ValueError:
            found[utt] = math.nan
        if not 1 <= float(found[utt]) <= 5:
            raise UserError(
                f"{path}: {utt}: {text!r} is no score from 1 to 5, nor - and one of "
                f"{', '.join(PROBLEMS)}; estimate it again"
            )
    return found


def quality_figures(
    scores: Scores,
    utt2spk: Mapping[str, str],
    original: Scores | None = None,
    *,
    n_bootstrap: int = 0,
    seed: int = 0,
) -> dict[str, object]:
    """`mos`, and with scores of the original speech `mos_original` and `mos_drop`; intervals.

    Each is a mean over speakers of the means of their utterances; intervals are by bootstrap over
    speakers. mos_original and mos_drop (original less protected) rest on the utterances that have
    both scores. original: of all utterances of `scores`. An utterance without a score counts in
    `n_undefined`, by reason; a figure without any speaker is NaN, with a warning.
    """
    columns = {"mos": {utt: _number(score) for utt, score in scores.items()}}
    if original is not None:
        before = {utt: _number(original[utt]) for utt in scores}
        drop = {utt: before[utt] - mos for utt, mos in columns["mos"].items()}
        paired = {utt: math.nan if math.isnan(drop[utt]) else before[utt] for utt in scores}
        columns |= {"mos_original": paired, "mos_drop": drop}
    spk2utt = invert({utt: utt2spk[utt] for utt in scores})
    means = np.array(
        [[_mean([of[utt] for utt in utts]) for of in columns.values()] for utts in spk2utt.values()]
    )

    def evaluate(drawn: Float64) -> Figures:
        weights = drawn[:, None] * ~np.isnan(means)
        sums, total = np.nansum(drawn[:, None] * means, axis=0), weights.sum(axis=0)
        mean = np.divide(sums, total, out=np.full(len(columns), np.nan), where=total > 0)
        return dict(zip(columns, mean.tolist(), strict=True))

    figures = evaluate(np.ones(len(means)))
    for name, value in figures.items():
        if math.isnan(value):
            logger.warning("%s is undefined: no utterance has it", name)
    report: dict[str, object] = {
        **figures,
        "n_speakers": len(means),
        "n_segments": len(scores),
        "n_undefined": _reasons(scores),
        "mos_per_speaker": dict(zip(spk2utt, means[:, 0].tolist(), strict=True)),
    }
    if original is not None:
        report["n_undefined_original"] = _reasons({utt: original[utt] for utt in scores})
    if n_bootstrap:
        report |= interval_report(evaluate, len(means), n_bootstrap, seed)
    return report


def _number(score: float | str) -> float:
    return math.nan if isinstance(score, str) else score


def _mean(values: list[float]) -> float:
    defined = [value for value in values if not math.isnan(value)]
    return math.fsum(defined) / len(defined) if defined else math.nan


def _reasons(scores: Scores) -> dict[str, int]:
    return dict(sorted(Counter(s for s in scores.values() if isinstance(s, str)).items()))
