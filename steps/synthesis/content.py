# SPDX-License-Identifier: Apache-2.0
"""Content with as little as possible of the speaker: features of the WORLD envelope.

Mel-cepstra of an utterance get mean 0 and variance 1 each (instance normalisation): this removes
all that is constant over an utterance, above all vocal-tract length and channel. In training the
frequency axis is bent at random before that, so that the place of the formants says little, and a
network has to find the voice elsewhere (after vocal-tract-length perturbation, Jaitly and Hinton
2013).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyworld

from steps.audio import SAMPLE_RATE
from steps.synthesis.world import CODE_DIM, FRAME_SHIFT, HOP, extract_f0, silent_frames
from utils.arrays import Bool, Float32, Float64
from utils.cli import UserError

_FFT_SIZE = 1024  # CheapTrick's, as in world.py: the same codes
_DYNAMIC_RANGE = 7.0  # of log power, 30 dB: frames so far under the loudest are not speech
_ENERGY_UNIT = 3.0  # of log power; brings the energy to about variance 1
_LARGEST = 4.0  # normalised values are clipped to +-4
_SMALLEST_SD = 1e-3
_LOWEST_HZ, _HIGHEST_HZ = 40.0, 8000.0  # ends of WORLD's mel axis
_KNOTS_HZ = (40.0, 900.0, 1800.0, 3000.0, 8000.0)  # between them formants are bent apart
_GRID = (np.arange(120) + 0.5) / 120  # of the mel axis, 0 ... 1


@dataclass(frozen=True)
class Content:
    """Features of T frames. features: (T, 1 + n) float32, energy and n cepstra. level: log power of
    the speech. gate: (T,) 1, and 0 in digital silence. has_speech: whether there is any speech."""

    features: npt.NDArray[np.float32]
    level: float
    gate: npt.NDArray[np.float32]
    has_speech: bool


def analyse_content(wave: Float64) -> tuple[Float64, Float64]:
    """F0 (T,) and envelope codes (T, 40) of a signal (n,), as in `world.analyse`, without D4C.

    UserError for a signal that is empty or not finite.
    """
    f0 = extract_f0(wave)
    samples = np.ascontiguousarray(wave, dtype=np.float64)
    times = np.arange(len(f0)) * FRAME_SHIFT
    spectrum = pyworld.cheaptrick(samples, f0, times, SAMPLE_RATE, fft_size=_FFT_SIZE)
    return f0, pyworld.code_spectral_envelope(spectrum, SAMPLE_RATE, CODE_DIM)


def speech_frames(envelope: Float64) -> Bool:
    """Mask (T,) of frames less than 30 dB under the loudest 5 %, and not digital silence."""
    log_power = envelope[:, 0]
    loud: Bool = log_power > np.quantile(log_power, 0.95) - _DYNAMIC_RANGE
    return loud & ~silent_frames(envelope)


def extract_content(envelope: Float64, n_cepstra: int, warp: Float64 | None = None) -> Content:
    """Content features of the codes (T, 40) of one whole utterance.

    Mean and variance are over speech frames; the energy only loses its mean. warp: (40, 40), see
    `draw_warp`. UserError for codes of another width.
    """
    if envelope.ndim != 2 or envelope.shape[1] != CODE_DIM:
        raise UserError(f"codes of shape {envelope.shape}, where (T, {CODE_DIM}) are expected")
    speech = speech_frames(envelope)
    gate = (~silent_frames(envelope)).astype(np.float32)
    if not speech.any():
        empty = np.zeros((len(envelope), 1 + n_cepstra), np.float32)
        return Content(empty, 0.0, gate, False)
    level = float(envelope[speech, 0].mean())
    energy = (envelope[:, :1] - level) / _ENERGY_UNIT
    code = envelope if warp is None else envelope @ warp.T
    cepstra = code[:, 1 : 1 + n_cepstra]
    mean, sd = cepstra[speech].mean(axis=0), cepstra[speech].std(axis=0)
    normal = (cepstra - mean) / np.maximum(sd, _SMALLEST_SD)
    features = np.hstack((energy, normal)).clip(-_LARGEST, _LARGEST)
    return Content(features.astype(np.float32), level, gate, True)


class Cepstra:
    """Mel-cepstra as content, without energy: see `steps.content.extractors.ContentExtractor`."""

    width, hop, first = 20, HOP, 0
    digest = f"{width} mel-cepstra of WORLD"

    def __init__(self, device: str = "cpu") -> None:
        """Ignore the device: cepstra are computed on the processor."""

    def __call__(self, wave: Float64) -> Float32:
        """Frames (T, 20) of speech (n,) float64 at 16 kHz; T is 0 for an empty signal."""
        if not len(wave):
            return np.zeros((0, self.width), np.float32)
        return extract_content(analyse_content(wave)[1], self.width).features[:, 1:]


def draw_warp(rng: np.random.Generator, scale: float, bend: float) -> Float64:
    """Draw a random change of vocal tract as a matrix (40, 40) for codes.

    All formants move by one factor, exp(U(-scale, scale)), and each of five regions by a further
    exp(U(-bend, bend)).
    """
    shift = rng.uniform(-scale, scale) + rng.uniform(-bend, bend, len(_KNOTS_HZ))
    return warp_matrix(np.exp(shift))


def warp_matrix(factors: Float64) -> Float64:
    """Matrix (40, 40) that stretches the envelope by a factor at each of the five knots.

    Factors above 1 move formants up. Source: a code is a cosine series over the mel axis, so that
    reading it elsewhere is linear.
    """
    hz = _to_hz(_GRID)
    factor = np.interp(_GRID, _to_axis(np.array(_KNOTS_HZ)), factors)
    return _cosines(_GRID).T @ _cosines(_to_axis(hz / factor)) / len(_GRID)


def _cosines(places: Float64) -> Float64:
    """Values (P, 40) of each coefficient's cosine at places 0 ... 1 of the mel axis."""
    scale = np.where(np.arange(CODE_DIM) == 0, 1.0, np.sqrt(2.0))
    return scale * np.cos(np.pi * places[:, None] * np.arange(CODE_DIM))


def _to_mel(hz: Float64) -> Float64:
    mel: Float64 = 1127.01048 * np.log1p(hz / 700.0)
    return mel


def _to_axis(hz: Float64) -> Float64:
    """Place 0 ... 1 of a frequency in Hz on WORLD's mel axis, clipped."""
    low, high = _to_mel(np.array([_LOWEST_HZ, _HIGHEST_HZ]))
    place: Float64 = np.clip((_to_mel(hz) - low) / (high - low), 0.0, 1.0)
    return place


def _to_hz(place: Float64) -> Float64:
    low, high = _to_mel(np.array([_LOWEST_HZ, _HIGHEST_HZ]))
    hz: Float64 = 700.0 * np.expm1((low + place * (high - low)) / 1127.01048)
    return hz
