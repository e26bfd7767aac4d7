"""Features that speaker encoders read, and how training crops are augmented."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.signal import firwin
from speechbrain.augment.time_domain import DropChunk, DropFreq
from speechbrain.lobes.features import MFCC, Fbank
from torch import Tensor, nn
from torch.nn import functional

from steps.audio import SAMPLE_RATE
from steps.speaker.config import AugmentConfig, FeatureConfig
from utils.arrays import Float32

# ---- Features of the speaker encoders: log mel energies or cepstra, mean subtracted, on the fly.
#
# With a hub model in front of an encoder (steps/speaker/network.py), they are the samples.

SLIDING_FRAMES = 300
_FRAME, _FRAME_STEP, _LEAST_DB = 400, 160, -30.0  # samples, and decibels, of kind power
EDGE = 2  # frames of kind power after the end of a signal, which still hear it


class Features(nn.Module):
    """Features (B, T, D), T = 1 + n // 160, of samples (B, n) at 16 kHz; of kind hub and samples
    the samples.

    All signals of a batch have the same length. Subtracting the mean of a log spectrum removes the
    level and the constant part of the channel.
    """

    def __init__(self, config: FeatureConfig) -> None:
        super().__init__()
        self.mean = config.mean
        self.passes = config.kind in ("hub", "samples")
        if self.passes:
            return
        self.cepstra, self.is_power = config.kind == "mfcc", config.kind == "power"
        if self.is_power:
            from librosa.filters import mel as mel_filters  # takes long to load

            mel = mel_filters(
                sr=SAMPLE_RATE, n_fft=_FRAME, n_mels=config.bins, fmin=config.low_hz,
                fmax=config.high_hz,
            )  # fmt: skip
            self.register_buffer("mel", torch.from_numpy(mel.T), persistent=False)
            return
        limits = {"f_min": config.low_hz, "f_max": config.high_hz, "sample_rate": SAMPLE_RATE}
        self.compute: Any  # its parts are called
        if self.cepstra:
            self.compute = MFCC(
                n_mels=config.bins, n_mfcc=config.bins, deltas=False, context=False, **limits
            )
        else:
            self.compute = Fbank(n_mels=config.bins, **limits)

    @torch.no_grad()
    def forward(self, samples: Tensor) -> Tensor:
        """Features float32 of samples float32."""
        if self.passes:
            return samples
        if self.is_power:
            return mel_power(samples, self.get_buffer("mel"))
        spectrum = self.compute.compute_STFT(samples)
        power = spectrum[..., 0].square() + spectrum[..., 1].square()  # SpeechBrain's sum is slower
        features: Tensor = self.compute.compute_fbanks(power)
        if self.cepstra:
            features = self.compute.compute_dct(features)
        return subtract_mean(features, self.mean)


def mel_power(samples: Tensor, mel: Tensor) -> Tensor:
    """Mel power (B, T + EDGE, D) of samples (B, n), made louder where they are below -30 dB of full
    scale; mel: (201, D)."""
    level = samples.square().mean(dim=1, keepdim=True).sqrt().clamp(min=1e-7)
    samples = samples * (10 ** (_LEAST_DB / 20) / level).clamp(min=1)
    samples = functional.pad(samples, (0, EDGE * _FRAME_STEP))
    window = torch.hann_window(_FRAME, device=samples.device)
    spectrum = torch.stft(
        samples, _FRAME, _FRAME_STEP, window=window, pad_mode="constant", return_complex=True
    )
    return spectrum.abs().square().transpose(1, 2) @ mel


def subtract_mean(features: Tensor, mean: str) -> Tensor:
    """Features (B, T, D) without their mean over a sentence, a sliding one, or none."""
    if mean == "sentence":
        return features - features.mean(dim=1, keepdim=True)
    return features - sliding_mean(features) if mean == "sliding" else features


def sliding_mean(features: Tensor, window: int = SLIDING_FRAMES) -> Tensor:
    """Mean over the `window` frames around each frame, as Kaldi's apply-cmvn-sliding --center.

    At the ends the window is moved inwards; a signal shorter than it is averaged as a whole.
    features: (B, T, D) -> (B, T, D).
    """
    n_frames = features.shape[1]
    window = min(window, n_frames)
    sums = torch.cumsum(features.double(), dim=1)
    sums = torch.cat([torch.zeros_like(sums[:, :1]), sums], dim=1)
    first = (torch.arange(n_frames, device=features.device) - window // 2).clamp(
        0, n_frames - window
    )
    return ((sums[:, first + window] - sums[:, first]) / window).to(features.dtype)


# ---- Augmentation of a training crop: speed, noise, babble, a random channel, masks on features.
#
# Noise is synthetic: coloured noise from random numbers, babble from other training crops. So no
# noise corpus is needed. All randomness comes from the generator that is passed.


def change_speed(samples: Float32, speed: float, n_samples: int) -> Float32:
    """Play `samples` faster (pitch and tempo), cut to `n_samples`; speed: in whole hundredths."""
    ratio = Fraction(100, round(speed * 100))  # at 1.1, 11 samples become 10
    if ratio != 1:
        samples = _resample(samples, ratio.numerator, ratio.denominator)
    return samples[:n_samples]


def _resample(samples: Float32, up: int, down: int) -> Float32:
    """Resample as SciPy's resample_poly, in float32: a convolution of `up` outputs a stride."""
    phases, before = _resampling_phases(up, down)
    n_strides = -(-len(samples) // down)
    missing = (n_strides - 1) * down + phases.shape[2] - before - len(samples)
    padded = torch.from_numpy(np.pad(samples, (before, max(0, missing))))
    out = functional.conv1d(padded[None, None], phases, stride=down)[0, :, :n_strides]
    return out.T.flatten()[: -(-len(samples) * up // down)].numpy()


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
    return samples.astype(np.float32)


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


def augment(
    rng: np.random.Generator,
    samples: Float32,
    config: AugmentConfig,
    draw_crop: Callable[[], Float32],
) -> Float32:
    """Augment one crop with its draws; `draw_crop` gives another training crop (for babble)."""
    if rng.random() < config.equaliser_probability:
        samples = equalise(rng, samples, config.equaliser_db)
    rng.random()  # that of a room, which is no more: further draws stay as they were
    if rng.random() < config.babble_probability:
        talkers = [draw_crop() for _ in range(int(rng.integers(3, 7)))]
        samples = add_at_snr(samples, babble(talkers), rng.uniform(*config.babble_snr_db))
    if rng.random() < config.noise_probability:
        noise = coloured_noise(rng, len(samples))
        samples = add_at_snr(samples, noise, rng.uniform(*config.noise_snr_db))
    return samples


def drop(rng: np.random.Generator, crops: Float32) -> Float32:
    """Crops (B, n) without 1 to 3 narrow bands, the same of all, nor 1 to 5 stretches of 1000 to
    2000 samples, each its own: SpeechBrain's, with the numbers of VoicePrivacy 2026."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(int(rng.integers(2**63)))  # no accelerator's
        samples = DropFreq()(torch.from_numpy(crops))
        return DropChunk(1000, 2000, 1, 5)(samples, torch.ones(len(crops))).numpy()


def mask_features(
    rng: np.random.Generator, features: npt.NDArray[np.float32], config: AugmentConfig
) -> None:
    """SpecAugment: set random stretches of frames and bands to zero, the mean. (B, T, D)."""
    frames, bands = config.time_mask_frames, config.band_mask_bins
    for item in features:
        times = (item, config.time_masks, frames)
        for values, count, most in (times, (item.T, config.band_masks, bands)):
            for _ in range(count):
                width = int(rng.integers(0, most + 1))
                start = int(rng.integers(0, max(1, len(values) - width)))
                values[start : start + width] = 0.0
