# SPDX-License-Identifier: Apache-2.0
"""Unweighted average recall of emotions, with intervals over speakers."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from local.metrics.intervals import Figures, interval_report, logger
from utils.arrays import Float64
from utils.tables import invert


def count_confusions(
    reference: Mapping[str, str], recognised: Mapping[str, str], utt2spk: Mapping[str, str]
) -> tuple[list[str], list[str], list[str], Float64]:
    """Count confusions: (speakers, true emotions, recognised emotions, counts (S, K, L)).

    Recognised emotions begin with the true ones, in the same order; the others follow.
    """
    emotions = sorted(set(reference.values()))
    said = [*emotions, *sorted({recognised[utt] for utt in reference} - set(emotions))]
    spk2utt = invert({utt: utt2spk[utt] for utt in reference})
    counts = np.zeros((len(spk2utt), len(emotions), len(said)))
    for number, utts in enumerate(spk2utt.values()):
        for utt in utts:
            counts[number, emotions.index(reference[utt]), said.index(recognised[utt])] += 1
    return list(spk2utt), emotions, said, counts


def recalls(counts: Float64) -> Float64:
    """Recall (K,) of each emotion from confusions (K, L), L >= K; NaN where it never occurs."""
    there = counts.sum(axis=1)
    right = np.diagonal(counts)
    each: Float64 = np.full(len(there), math.nan)
    np.divide(right, there, out=each, where=there > 0)
    return each


def recall_figures(
    reference: Mapping[str, str],
    recognised: Mapping[str, str],
    utt2spk: Mapping[str, str],
    *,
    folds: Mapping[str, str] | None = None,
    n_bootstrap: int = 0,
    seed: int = 0,
) -> dict[str, object]:
    """Figures `uar`, `accuracy`, `recall_<emotion>`, `chance_uar`, `confusion`, and intervals.

    reference, recognised, utt2spk, folds: by utterance; all of `reference` are in the others. With
    folds there is `uar_vpc24`, too: the mean over folds of each one's mean recall. The mean of
    `uar` is over the emotions that occur in `reference`. A single one has no UAR: NaN, with a
    warning. A resample of the speakers in which an emotion does not occur has no UAR and no recall
    of it; `interval_report` counts these.
    """
    speakers, emotions, said, counts = count_confusions(reference, recognised, utt2spk)
    parts = _count_folds(folds, reference, recognised, utt2spk) if folds else None
    everybody = np.ones(len(speakers))
    report: dict[str, object] = {
        **_figures(counts.sum(axis=0), emotions),
        **({} if parts is None else {"uar_vpc24": _over_folds(parts, everybody)}),
        "chance_uar": 1 / len(emotions) if len(emotions) > 1 else math.nan,
        "n_speakers": len(speakers),
        "n_segments": len(reference),
        "n_emotions": len(emotions),
        "confusion": {
            emotion: {name: int(n) for name, n in zip(said, row, strict=True) if n}
            for emotion, row in zip(emotions, counts.sum(axis=0), strict=True)
        },
    }
    if len(emotions) < 2:
        logger.warning("uar is undefined: %s is the only emotion of the reference", emotions[0])
    if n_bootstrap:

        def evaluate(drawn: Float64) -> Figures:
            found = _figures(np.tensordot(drawn, counts, 1), emotions)
            return found if parts is None else found | {"uar_vpc24": _over_folds(parts, drawn)}

        report |= interval_report(evaluate, len(speakers), n_bootstrap, seed)
    return report


def _count_folds(
    folds: Mapping[str, str],
    reference: Mapping[str, str],
    recognised: Mapping[str, str],
    utt2spk: Mapping[str, str],
) -> list[Float64]:
    """Confusions of each fold (S, K, L), K emotions of the fold, S all speakers."""
    found = []
    speakers = list(invert({utt: utt2spk[utt] for utt in reference}))
    for utts in invert({utt: folds[utt] for utt in reference}).values():
        own, _, _, counts = count_confusions({u: reference[u] for u in utts}, recognised, utt2spk)
        every = np.zeros((len(speakers), *counts.shape[1:]))
        every[[speakers.index(speaker) for speaker in own]] = counts
        found.append(every)
    return found


def _over_folds(parts: Sequence[Float64], drawn: Float64) -> float:
    """UAR of VoicePrivacy 2024: the mean over folds of the mean recall of the emotions in a fold; a
    fold without any speaker of a resample does not count."""
    each = [recalls(np.tensordot(drawn, counts, 1)) for counts in parts]
    means = [float(np.nanmean(e)) for e in each if not np.isnan(e).all()]
    return float(np.mean(means)) if means else math.nan


def _figures(counts: Float64, emotions: Sequence[str]) -> Figures:
    each = recalls(counts)
    uar = float(each.mean()) if len(emotions) > 1 else math.nan
    accuracy = float(np.diagonal(counts).sum() / counts.sum())
    named = {f"recall_{name}": float(r) for name, r in zip(emotions, each, strict=True)}
    return {"uar": uar, "accuracy": accuracy, **named}
