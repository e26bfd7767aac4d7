# SPDX-License-Identifier: Apache-2.0
"""Functionals: course of pitch, energy and spectrum of an utterance, as one vector.

Frames every 10 ms: log F0 (WORLD's DIO and StoneMask), energy, balance of the spectrum, cepstra.
Functionals are their means, spreads and speeds, after the usual sets of the field (GeMAPS, Eyben et
al. 2016), but not the same: figures are not comparable with theirs. The level is left out, because
anonymisers set it themselves.
"""

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from steps.audio import SAMPLE_RATE
from steps.synthesis.f0 import VOICED_HZ
from steps.synthesis.world import FRAME_SHIFT, HOP, extract_f0
from utils.arrays import Float64
from utils.cli import UserError

F0_RANGE = (60.0, 600.0)  # Hz; an angry woman's voice exceeds the 400 of read speech
SPEECH_DB = 40.0  # frames so far below the loudest one are pauses
_WINDOW, _FFT = 400, 512
_FLOOR = 1e-10  # power of a frame; below 16-bit rounding
_CEPSTRA = 13  # the zeroth is a level, and excluded

STATISTICS = ("mean", "sd", "p10", "p50", "p90", "speed")  # speed: mean size of the change a frame
PITCH = tuple(f"log_f0_{name}" for name in (*STATISTICS, "slope"))
VOICING = ("voiced_share", "voiced_runs_a_second", "voiced_run_seconds")
ENERGY = tuple(f"energy_{name}" for name in STATISTICS)
BALANCE = ("alpha_ratio", "hammarberg", "centroid", "flux")
SHORT = ("mean", "sd", "speed")
NAMES = (
    *PITCH,
    *VOICING,
    *ENERGY,
    *(f"{what}_{name}" for what in BALANCE for name in SHORT),
    *(f"mfcc{number}_{name}" for number in range(1, _CEPSTRA) for name in SHORT),
)


def functionals(samples: Float64) -> Float64:
    """Functionals (D,) of a signal (n,) at 16 kHz, in the order of NAMES.

    NaN: not defined, such as pitch where no frame is voiced. UserError for digital silence, and
    for less than two frames of speech (`SPEECH_DB` below the loudest frame ends it).
    """
    power = _power_spectrum(samples)
    energy = 10 * np.log10(np.maximum(power.sum(axis=1), _FLOOR))
    speech = energy > energy.max() - SPEECH_DB
    if energy.max() <= 10 * np.log10(_FLOOR) or speech.sum() < 2:
        raise UserError("there is no speech in it: digital silence, or shorter than two frames")
    cepstra = _cepstra(samples)[: len(energy), 1:]
    tracks = np.column_stack([_balance(power), cepstra])
    short = [np.stack(_statistics(track, speech))[[0, 1, 5]] for track in tracks.T]
    return np.concatenate([
        _pitch(extract_f0(samples, F0_RANGE)),
        _statistics(energy - energy.max(), speech),
        *short,
    ])  # fmt: skip


def _pitch(f0: Float64) -> Float64:
    """Functionals PITCH and VOICING of a contour (T,) in Hz."""
    voiced = f0 > VOICED_HZ
    log_f0 = np.where(voiced, np.log(np.where(voiced, f0, 1.0)), 0.0)
    seconds = len(f0) * FRAME_SHIFT
    starts = int((np.diff(np.r_[False, voiced].astype(int)) == 1).sum())
    slope = np.nan
    if voiced.sum() >= 2:
        slope = np.polyfit(np.flatnonzero(voiced) * FRAME_SHIFT, log_f0[voiced], 1)[0]
    voicing = [
        voiced.mean(),
        starts / seconds,
        voiced.sum() * FRAME_SHIFT / starts if starts else np.nan,
    ]
    return np.array([*_statistics(log_f0, voiced), slope, *voicing])


def _statistics(track: Float64, where: npt.NDArray[np.bool_]) -> list[float]:
    """Functionals STATISTICS of a track (T,) over the frames that count; NaN where there are none.

    speed: over pairs of neighbours that both count.
    """
    values = track[where]
    if not len(values):
        return [np.nan] * len(STATISTICS)
    steps = np.abs(np.diff(track))[where[1:] & where[:-1]]
    p10, p50, p90 = np.percentile(values, (10, 50, 90))
    speed = steps.mean() if len(steps) else np.nan
    return [values.mean(), values.std(), p10, p50, p90, speed]


def _power_spectrum(samples: Float64) -> Float64:
    """Power (T, 257) of frames of 25 ms around t · 160, T = 1 + n // 160; zeros beyond the ends."""
    padded = np.pad(np.asarray(samples, dtype=np.float64), _WINDOW // 2)
    frames = np.lib.stride_tricks.sliding_window_view(padded, _WINDOW)[::HOP]
    spectrum = np.fft.rfft(frames * np.hamming(_WINDOW), _FFT)
    power: Float64 = np.abs(spectrum) ** 2 / _WINDOW
    return power


def _balance(power: Float64) -> Float64:
    """BALANCE (T, 4): two ratios of bands in dB, centre in octaves above 1 kHz, and flux.

    alpha_ratio: 50 to 1000 Hz over 1 to 5 kHz; hammarberg: the strongest bin below 2 kHz over the
    strongest of 2 to 5 kHz (Eyben et al. 2016); flux: Euclidean change of the spectrum's shape
    from the frame before.
    """
    power = np.maximum(power, _FLOOR / power.shape[1])
    hertz = np.arange(power.shape[1]) * SAMPLE_RATE / _FFT

    def band(low: float, high: float) -> Float64:
        return power[:, (hertz >= low) & (hertz < high)]

    alpha = band(50, 1000).sum(axis=1) / band(1000, 5000).sum(axis=1)
    hammarberg = band(0, 2000).max(axis=1) / band(2000, 5000).max(axis=1)
    shape = power / power.sum(axis=1, keepdims=True)
    flux = np.linalg.norm(np.diff(np.sqrt(shape), axis=0, prepend=np.sqrt(shape[:1])), axis=1)
    centre = np.log2(np.maximum(shape @ hertz, 1.0) / 1000)
    return np.column_stack([10 * np.log10(alpha), 10 * np.log10(hammarberg), centre, flux])


@cache
def _features() -> Any:
    from steps.speaker.config import FeatureConfig
    from steps.speaker.features import Features

    return Features(FeatureConfig(kind="mfcc", bins=_CEPSTRA, mean="none")).eval()


def _cepstra(samples: Float64) -> Float64:
    """Cepstra (T, 13) of the frames of `_power_spectrum`."""
    import torch  # takes seconds, and the names above are useful without it

    wave = torch.from_numpy(np.asarray(samples, dtype=np.float32))[None]
    found: Float64 = _features()(wave)[0].numpy().astype(np.float64)
    return found
