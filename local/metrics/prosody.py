# SPDX-License-Identifier: Apache-2.0
"""Figures of prosody and quality: means over utterances, with intervals over speakers."""

import math
from collections.abc import Mapping

import numpy as np

from local.metrics.intervals import Figures, interval_report, logger
from utils.arrays import Float64
from utils.cli import UserError
from utils.tables import StrPath, invert, read_lines

KEYS = (  # columns of the table that steps/compare_prosody.py writes
    "f0_correlation", "voicing_agreement", "duration_change", "level_change", "clipping",
    "clipping_original", "n_frames", "n_voiced_both", "f0_correlation_vpc22",
)  # fmt: skip
VPC22 = len(KEYS) - 1
# duration_drift: mean size of the change.
FIGURES = (*KEYS[:6], "duration_drift", "f0_correlation_vpc22")


def read_prosody(path: StrPath) -> dict[str, Float64]:
    """Read utterance -> its figures (9,) in the order of KEYS, NaN where undefined.

    UserError naming file and line for another header, a ragged line, a non-number, an id twice.
    """
    found: dict[str, Float64] = {}
    header = f"# utterance {' '.join(KEYS)}"
    for number, line in read_lines(path):
        fields = line.split()
        if number == 1:
            if line != header:
                raise UserError(f"{path}:1: not a table of steps/compare_prosody.py")
            continue
        if len(fields) != 1 + len(KEYS):
            raise UserError(f"{path}:{number}: {len(fields)} fields where {1 + len(KEYS)} are due")
        if fields[0] in found:
            raise UserError(f"{path}:{number}: {fields[0]} is listed twice; keep one line for it")
        try:
            found[fields[0]] = np.array([_value(word) for word in fields[1:]])
        except ValueError as error:
            raise UserError(f"{path}:{number}: {error}; make the table again") from error
    if not found:
        raise UserError(f"{path}:1: lists no utterance")
    return found


def _value(word: str) -> float:
    """Number, or NaN for an undefined one (-)."""
    value = math.nan if word == "-" else float(word)
    if word != "-" and not math.isfinite(value):
        raise ValueError(f"{word!r} is not a finite number")
    return value


def prosody_figures(
    table: Mapping[str, Float64], utt2spk: Mapping[str, str], *, n_bootstrap: int = 0, seed: int = 0
) -> dict[str, object]:
    """Means over utterances, by speaker and overall, and `intervals` by bootstrap over speakers.

    table: of `read_prosody`; utt2spk: of its utterances. An utterance without a defined value does
    not count in that figure; `n_undefined` counts these. A figure that no utterance defines is NaN,
    with a warning.
    """
    spk2utt = invert({utt: utt2spk[utt] for utt in table})
    values = {
        speaker: np.array([[*table[u][:6], abs(table[u][2]), table[u][VPC22]] for u in utts])
        for speaker, utts in spk2utt.items()
    }
    total = np.array([np.nansum(v, axis=0) for v in values.values()])
    count = np.array([(~np.isnan(v)).sum(axis=0) for v in values.values()])

    names = FIGURES if count[:, -1].any() else FIGURES[:-1]  # the last needs Praat

    def evaluate(drawn: Float64) -> Figures:
        n = drawn @ count
        mean = np.divide(drawn @ total, n, out=np.full(len(FIGURES), np.nan), where=n > 0)
        return dict(zip(names, mean.tolist(), strict=False))

    figures = evaluate(np.ones(len(values)))
    undefined = dict(zip(names, (len(table) - count.sum(axis=0)).tolist(), strict=False))
    for name, value in figures.items():
        if math.isnan(value):
            logger.warning("%s is undefined: no utterance has it", name)
    report: dict[str, object] = {
        **figures,
        "n_speakers": len(values),
        "n_segments": len(table),
        "n_undefined": {name: n for name, n in undefined.items() if n},
        "f0_correlation_per_speaker": {
            speaker: total[i, 0] / count[i, 0] if count[i, 0] else math.nan
            for i, speaker in enumerate(values)
        },
    }
    if n_bootstrap:
        report |= interval_report(evaluate, len(values), n_bootstrap, seed)
    return report
