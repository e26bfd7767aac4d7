# SPDX-License-Identifier: Apache-2.0
"""Pitch correlation of VoicePrivacy 2022, which is not our own (steps/synthesis/prosody.py).

The challenge correlates Praat's F0 in Hz over all frames, 0 where there is no voice, at the
best-fitting delay. Praat comes with the package praat-parselmouth (GPL), which is not installed
unless asked for; without it the figure is not defined.
"""

import math
from types import ModuleType

import numpy as np

from utils.arrays import Float64

FLOOR, CEILING, STEP = 75.0, 500.0, 0.01  # Hz, Hz, s: the challenge's


def find_praat() -> ModuleType | None:
    """Package parselmouth; None where it is not installed."""
    try:
        import parselmouth
    except ImportError:
        return None
    found: ModuleType = parselmouth
    return found


def pitch_correlation(original: Float64, protected: Float64, rate: int = 16000) -> float:
    """Pitch correlation of signals (n,), full scale 1; NaN without Praat or for too short ones."""
    praat = find_praat()
    if praat is None:
        return math.nan
    contours = []
    for wave in (original, protected):
        try:
            sound = praat.Sound(wave, sampling_frequency=float(rate))
            pitch = sound.to_pitch(time_step=STEP, pitch_floor=FLOOR, pitch_ceiling=CEILING)
        except praat.PraatError:  # shorter than three periods of the floor
            return math.nan
        contours.append(np.asarray(pitch.selected_array["frequency"], np.float64))
    return correlate_hz(*contours)


def correlate_hz(a: Float64, b: Float64) -> float:
    """Correlation of F0 contours (T,), (U,) in Hz, 0 where unvoiced, at the best delay.

    The shorter one is stretched to the length of the other. Values outside 75 to 500 Hz then count
    as unvoiced. The second is shifted cyclically by the lag of the largest cross-correlation;
    Pearson's correlation of all frames follows. 0 where one is constant, as in the challenge.
    """
    n = max(len(a), len(b))
    a, b = (
        np.interp(np.linspace(0, len(x) - 1, n), np.arange(len(x)), x) if len(x) < n else x.copy()
        for x in (a, b)
    )
    for contour in (a, b):
        contour[(contour < FLOOR) | (contour > CEILING)] = 0.0
    lag = int(np.argmax(np.correlate(a, b, "full"))) - (n - 1)
    b = np.roll(b, lag)
    if a.std() == 0 or b.std() == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])
