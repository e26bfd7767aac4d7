# SPDX-License-Identifier: Apache-2.0
"""Augmentation of a training crop: speed, noise, babble, a random channel, masks on features.

Noise is synthetic: coloured noise from random numbers, babble from other training crops. So no
noise corpus is needed. All randomness comes from the generator that is passed.
"""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from math import gcd

import numpy as np
import numpy.typing as npt
import torch
from scipy.signal import fftconvolve, firwin
from torch.nn import functional

from steps.audio import SAMPLE_RATE
from steps.speaker.config import AugmentConfig
from utils.arrays import Float32


def speed_ratio(speed: float) -> tuple[int, int]:
    """Ratio (up, down) of a speed in hundredths: at 1.1, 11 samples become 10."""
    hundredths = round(speed * 100)
    divisor = gcd(100, hundredths)
    return 100 // divisor, hundredths // divisor


def change_speed(samples: Float32, speed: float, n_samples: int) -> Float32:
    """Play `samples` faster (pitch and tempo), cut to `n_samples`."""
    up, down = speed_ratio(speed)
    if up != down:
        samples = _resample(samples, up, down)
    return samples[:n_samples]


def _resample(samples: Float32, up: int, down: int) -> Float32:
    """Resample as SciPy's resample_poly, in float32: a convolution of `up` outputs a stride."""
    phases, before = _resampling_phases(up, down)
    n_strides = -(-len(samples) // down)
    missing = (n_strides - 1) * down + phases.shape[2] - before - len(samples)
    padded = torch.from_numpy(np.pad(samples, (before, max(0, missing))))
    out = functional.conv1d(padded[None, None], phases, stride=down)[0, :, :n_strides]
    wanted: Float32 = out.T.flatten()[: -(-len(samples) * up // down)].numpy()
    return wanted


@cache
def _resampling_phases(up: int, down: int) -> tuple[torch.Tensor, int]:
    """Weights (up, 1, J) on the samples from `before` ahead of each stride of `down` on.

    Output n = up q + r is the sum over j of x[down q + j] h[down r - up j + half].
    """
    half = 10 * max(up, down)  # resample_poly's own filter
    taps = up * firwin(2 * half + 1, 1 / max(up, down), window=("kaiser", 5.0))
    first, last = -(half // up), ((up - 1) * down + half) // up
    places = down * np.arange(up)[:, None] - up * np.arange(first, last + 1) + half
    inside = (places >= 0) & (places <= 2 * half)
    phases = np.where(inside, taps[places.clip(0, 2 * half)], 0.0)
    return torch.from_numpy(_single(phases))[:, None], -first


def _single(samples: npt.NDArray[np.floating]) -> Float32:
    single: Float32 = samples.astype(np.float32)
    return single


def power(samples: Float32) -> float:
    """Mean square, never quite zero."""
    return float(np.vdot(samples, samples)) / len(samples) + 1e-12


def add_at_snr(speech: Float32, noise: Float32, snr_db: float) -> Float32:
    """Add noise with the given ratio of the powers."""
    gain = np.sqrt(power(speech) / power(noise) / 10 ** (snr_db / 10))
    return speech + np.float32(gain) * noise


def coloured_noise(rng: np.random.Generator, n_samples: int) -> Float32:
    """Draw Gaussian noise whose power falls as 1/f^a, a drawn from 0 (white) to 2 (brown)."""
    spectrum = np.fft.rfft(rng.standard_normal(n_samples).astype(np.float32))
    slope = np.float32(-rng.uniform(0.0, 1.0))
    return _single(
        np.fft.irfft(spectrum * np.exp(slope * _log_frequency(len(spectrum))), n_samples)
    )


@lru_cache(maxsize=8)
def _log_frequency(n_bins: int) -> Float32:
    """Logarithm of the number of each bin; the constant part has that of the first."""
    return _single(np.log(np.maximum(np.arange(n_bins), 1.0)))


def babble(crops: Sequence[Float32]) -> Float32:
    """Mix several talkers, equally loud."""
    return _single(np.sum([crop / np.sqrt(power(crop)) for crop in crops], axis=0))


def equalise(rng: np.random.Generator, samples: Float32, spread_db: float) -> Float32:
    """Draw a microphone: 8 points over the band, interpolated, on a slope; each of +-spread_db.

    The slope reaches twice that at 8 kHz: recordings differ most at the top of the band.
    """
    spectrum = np.fft.rfft(samples)
    points = rng.uniform(-spread_db, spread_db, 8)
    points += np.linspace(0.0, 2.0, 8) * rng.uniform(-spread_db, spread_db)
    response_db = np.interp(np.linspace(0, 7, len(spectrum)), np.arange(8), points)
    return _single(np.fft.irfft(spectrum * _single(10 ** (response_db / 20)), len(samples)))


def reverberate(rng: np.random.Generator, samples: Float32, seconds: float) -> Float32:
    """Convolve with exponentially falling noise of the given reverberation time (60 dB)."""
    time = np.arange(int(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    response = rng.standard_normal(len(time)) * 10 ** (-3 * time / seconds)
    response *= rng.uniform(0.05, 0.4) / np.sqrt(np.sum(response**2))
    response[0] = 1.0
    return _single(fftconvolve(samples, response)[: len(samples)])


def augment(
    rng: np.random.Generator,
    samples: Float32,
    config: AugmentConfig,
    draw_crop: Callable[[], Float32],
) -> Float32:
    """Augment one crop with its draws; `draw_crop` gives another training crop (for babble)."""
    if rng.random() < config.equaliser_probability:
        samples = equalise(rng, samples, config.equaliser_db)
    if rng.random() < config.reverberation_probability:
        samples = reverberate(rng, samples, rng.uniform(*config.reverberation_seconds))
    if rng.random() < config.babble_probability:
        talkers = [draw_crop() for _ in range(int(rng.integers(3, 7)))]
        samples = add_at_snr(samples, babble(talkers), rng.uniform(*config.babble_snr_db))
    if rng.random() < config.noise_probability:
        noise = coloured_noise(rng, len(samples))
        samples = add_at_snr(samples, noise, rng.uniform(*config.noise_snr_db))
    return samples


def mask_features(
    rng: np.random.Generator, features: npt.NDArray[np.float32], config: AugmentConfig
) -> None:
    """SpecAugment: set random stretches of frames and bands to zero, the mean. (B, T, D)."""
    n_items, n_frames, n_bins = features.shape
    for item in range(n_items):
        for _ in range(config.time_masks):
            width = int(rng.integers(0, config.time_mask_frames + 1))
            start = int(rng.integers(0, max(1, n_frames - width)))
            features[item, start : start + width] = 0.0
        for _ in range(config.band_masks):
            width = int(rng.integers(0, config.band_mask_bins + 1))
            start = int(rng.integers(0, max(1, n_bins - width)))
            features[item, :, start : start + width] = 0.0
