# SPDX-License-Identifier: Apache-2.0
"""Path from mouth to file: room, microphone, noise, level. Drawn anew for every utterance.

A speaker's utterances share nothing of this, so an evaluator cannot tell a speaker by the room.
"""

from dataclasses import dataclass

import numpy as np
from scipy import fft

from utils.arrays import Float64

_EQ_TERMS = 5
_PREDELAY = (0.002, 0.010)  # seconds before the first reflections
_MIN_SNR_DB, _MAX_SNR_DB = 6.0, 50.0  # never none: digital silence upsets recognisers
_PEAK_LIMIT = 0.9


@dataclass(frozen=True)
class Channel:
    """Drawn channel. Times in seconds, levels in dB.

    `equaliser` (5,): dB, cosines over log frequency. `noise_slope`: noise power falls as f**-slope.
    `level_db`: of the whole file, against full scale.
    """

    reverberation_time: float
    direct_to_reverberant_db: float
    equaliser: Float64
    low_cut_hz: float
    snr_db: float
    noise_slope: float
    level_db: float


def draw_channel(rng: np.random.Generator, strength: float) -> Channel:
    """Draw a channel. `strength`: 0 a close microphone, 1 a poor one across a room."""
    terms = rng.standard_normal(_EQ_TERMS) / np.sqrt(np.arange(1, _EQ_TERMS + 1))
    return Channel(
        reverberation_time=0.12 + strength * rng.uniform(0.05, 0.5),
        direct_to_reverberant_db=22.0 - 14.0 * strength + 4.0 * rng.standard_normal(),
        equaliser=4.0 * strength * terms,
        low_cut_hz=rng.uniform(50.0, 50.0 + 100.0 * strength),
        snr_db=float(
            np.clip(38.0 - 20.0 * strength + 4.0 * rng.standard_normal(), _MIN_SNR_DB, _MAX_SNR_DB)
        ),
        noise_slope=rng.uniform(0.0, 1.6),
        level_db=-26.0 + 3.0 * rng.standard_normal(),
    )


def room_response(channel: Channel, rng: np.random.Generator, rate: int) -> Float64:
    """Impulse response (n,): the direct sound, then noise that falls by 60 dB over its length."""
    n = int(channel.reverberation_time * rate)
    start = int(rng.uniform(*_PREDELAY) * rate)
    tail = rng.standard_normal(n) * 10.0 ** (-3.0 * np.arange(n) / n)
    tail[:start] = 0.0
    energy = 10.0 ** (-channel.direct_to_reverberant_db / 10.0)
    tail *= np.sqrt(energy / np.sum(tail**2))
    tail[0] = 1.0
    return tail


def microphone_gain(channel: Channel, frequencies: Float64) -> Float64:
    """Linear gain at each frequency (Hz): the equaliser, and a second-order low cut."""
    octave = np.log2(np.maximum(frequencies, 50.0) / 50.0) / np.log2(8000.0 / 50.0)
    orders = np.arange(1, _EQ_TERMS + 1)[:, None]
    decibel = channel.equaliser @ np.cos(np.pi * orders * octave)
    ratio = (frequencies / channel.low_cut_hz) ** 2
    return np.asarray(10.0 ** (decibel / 20.0) * ratio / np.hypot(1.0, ratio))


def _rms(samples: Float64) -> float:
    return float(np.sqrt(np.mean(samples**2)))


def apply_channel(
    samples: Float64, channel: Channel, rng: np.random.Generator, rate: int
) -> Float64:
    """Record clean speech with its pauses (n,) as (n,), within +-0.9 of full scale."""
    room = room_response(channel, rng, rate)
    n_fft = fft.next_fast_len(len(samples) + len(room), real=True)
    gain = microphone_gain(channel, fft.rfftfreq(n_fft, 1.0 / rate))
    speech = fft.irfft(fft.rfft(samples, n_fft) * fft.rfft(room, n_fft) * gain, n_fft)
    colour = gain * (
        np.maximum(fft.rfftfreq(n_fft, 1.0 / rate), 20.0) ** (-channel.noise_slope / 2.0)
    )
    noise = fft.irfft(fft.rfft(rng.standard_normal(n_fft)) * colour, n_fft)
    speech, noise = speech[: len(samples)], noise[: len(samples)]
    noise *= _rms(speech) / _rms(noise) * 10.0 ** (-channel.snr_db / 20.0)
    recorded = speech + noise
    recorded *= 10.0 ** (channel.level_db / 20.0) / _rms(recorded)
    return np.asarray(recorded * min(1.0, _PEAK_LIMIT / float(np.max(np.abs(recorded)))))
