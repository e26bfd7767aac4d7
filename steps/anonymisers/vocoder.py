"""Systems on WORLD's frames alone: copy synthesis, and the areas of a vocal tract."""

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from scipy.signal import butter, sosfiltfilt

from steps.anonymisers.registry import Anonymiser, Description, Spoken
from steps.sources import LEVELS, SourceSpeaker, SystemRun, VoiceKey
from steps.synthesis import world
from steps.synthesis.f0 import F0Stats, compute_f0_stats, transform_linear
from steps.synthesis.voices import VoicePool, loud_frames
from utils.arrays import Float64
from utils.cli import UserError
from utils.settings import OneOf
from utils.tables import StrPath

# ---- WORLD analysis and synthesis without any change: the effect of the vocoder alone.
#
# Not a protection. Compare its error rates with those of systems built on WORLD: a part of their
# rise comes from the vocoder.


@dataclass(frozen=True)
class CopySettings:
    """Settings of a configuration. fine: frames like those of `synthesiser: bn_*`, by
    `world.analyse_finely`."""

    anonymiser: str
    fine: bool = False


class CopySynthesis(Anonymiser):
    """One configured system; see `registry.Anonymiser`."""

    kind = CopySettings
    given: CopySettings
    level, is_random = "const", False

    def transform(self, wave: Float64, key: VoiceKey, source: SourceSpeaker) -> Spoken:
        """Resynthesised speech (n,), and its number of frames, and of those with a pitch."""
        frames = (world.analyse_finely if self.given.fine else world.analyse)(wave)
        voiced = int(np.count_nonzero(frames.f0))
        return world.synthesise(frames, len(wave)), {"frames": len(frames), "voiced": voiced}


# ---- Speech as the areas of a vocal tract's tubes, pitch, periodicity and loudness
# (`phortress_like`).
#
# An open analogue of PHORTRESS (Seo et al. 2025), which works on articulatory features (SPARC, Cho
# et al. 2024). Here a frame's features are the log area ratios of a lossless tube, from the
# reflection coefficients of linear prediction (Wakita 1973) on WORLD's envelope, smoothed as slowly
# as articulators move. Their mean and range, and those of F0, become those of a fabricated speaker:
# a sample of the normal distribution of a pool's speakers.

EMPHASIS = 0.97  # of the spectrum before prediction, so that lips and glottis do not count as tube
LARGEST = 0.999  # of a reflection coefficient
FRAMES = 400  # analysed frames of a pool speaker, spread evenly
RANGE = (0.7, 1.4)  # largest factor on a deviation
SECTIONS = 18  # of the tube
SMOOTHING = 10.0  # Hz above which articulators do not move
_FLOOR = 1e-9  # of autocorrelation at lag 0, so that prediction is stable
_SMALLEST = 1e-3


@dataclass(frozen=True)
class ArticulationSettings:
    """Settings of a configuration."""

    anonymiser: str
    level: Annotated[str, OneOf(*LEVELS)] = "spk"


def log_areas(power: Float64, sections: int) -> Float64:
    """Log ratios of neighbouring tube areas (T, sections) of power spectra (T, bins).

    log((1 - k) / (1 + k)) of the reflection coefficients k of Levinson's recursion.
    """
    lags = np.fft.irfft(power * emphasis(power.shape[1]), axis=1)[:, : sections + 1].T
    k = reflections(lags / np.maximum(lags[0], np.finfo(np.float64).tiny))
    return -2.0 * np.arctanh(np.clip(k, -LARGEST, LARGEST)).T


def reflections(lags: Float64) -> Float64:
    """Reflection coefficients (p, T) of autocorrelations (p + 1, T), lag 0 first, which is 1."""
    order = len(lags) - 1
    a = np.zeros_like(lags)
    a[0] = 1.0
    error, found = lags[0] + _FLOOR, np.zeros((order, lags.shape[1]))
    for i in range(1, order + 1):
        k = -np.einsum("jt,jt->t", a[:i], lags[i:0:-1]) / error
        a[: i + 1] += k * a[i::-1].copy()
        error = np.maximum(error * (1.0 - k * k), _FLOOR)
        found[i - 1] = k
    return found


def tube_power(areas: Float64, n_bins: int) -> Float64:
    """Power spectra (T, n_bins), of any level, of the tube with such log area ratios (T, p)."""
    k = -np.tanh(areas.T / 2.0)
    a = np.zeros((len(k) + 1, len(areas)))
    a[0] = 1.0
    for i in range(1, len(k) + 1):
        a[: i + 1] += k[i - 1] * a[i::-1].copy()
    zeros = np.fft.rfft(a.T, 2 * (n_bins - 1), axis=1)
    return 1.0 / np.maximum(np.abs(zeros) ** 2 * emphasis(n_bins), _FLOOR)


def emphasis(n_bins: int) -> Float64:
    """Gain of the power (n_bins,) by the emphasis before prediction."""
    bins = np.arange(n_bins) * np.pi / (n_bins - 1)
    return np.abs(1 - EMPHASIS * np.exp(-1j * bins)) ** 2


def smoothed(areas: Float64, hz: float) -> Float64:
    """Tracks (T, p) without fast movements; too short ones are unchanged."""
    filters = butter(2, hz * world.FRAME_SHIFT * 2, output="sos")
    if len(areas) <= 3 * (2 * len(filters) + 1):
        return areas
    return sosfiltfilt(filters, areas, axis=0)


class Articulation(Anonymiser):
    """One configured system; see `registry.Anonymiser`."""

    kind = ArticulationSettings
    given: ArticulationSettings

    def __init__(self, settings: ArticulationSettings, run: SystemRun) -> None:
        """Analyse some frames of all voices of the pool; UserError for fewer than two."""
        super().__init__(settings, run)
        self.level = settings.level
        pool = VoicePool.load(run.folder("pool"))
        rows = [self._of_voice(pool, name) for name in pool.speakers if pool.f0(name).n]
        if len(rows) < 2:
            raise UserError(f"{pool.folder}: two voices or more are needed; make a larger pool")
        self._people = np.array(rows)

    @classmethod
    def describe(cls, settings: ArticulationSettings, path: StrPath) -> Description:
        """Needs: a pool of voices, to know what speakers are like."""
        return Description(settings.level, ("pool",), LEVELS)

    def settings(self) -> dict[str, object]:
        """All settings, defaults included, and one sentence (`note`) on the system."""
        note = (
            "An open analogue of PHORTRESS (003) on the areas of a vocal tract's tubes; what is "
            "known of the original and what was guessed stands in docs/analogues.md."
        )
        return {**super().settings(), "note": note}

    def transform(self, wave: Float64, key: VoiceKey, source: SourceSpeaker) -> Spoken:
        """Protected speech (n,); mean F0 of the fabricated speaker. Silence stays silence."""
        if not wave.any():
            return np.zeros(len(wave)), {"pseudo_f0": "-"}
        mean, sd, f0 = self.fabricated(key)
        frames = world.analyse(wave)
        power = world.spectrum(frames.envelope)
        areas = smoothed(log_areas(power, SECTIONS), SMOOTHING)
        loud = loud_frames(frames.envelope)
        own = areas[loud] if loud.any() else areas
        factor = np.clip(sd / np.maximum(own.std(axis=0), _SMALLEST), *RANGE)
        moved = mean + (areas - own.mean(axis=0)) * factor
        envelope = world.spectrum_code(tube_power(moved, power.shape[1]))
        envelope[:, 0] = frames.envelope[:, 0]  # loudness is the source's, silence too
        contour = transform_linear(frames.f0, compute_f0_stats([frames.f0]), f0)
        made = world.WorldFrames(contour, envelope, frames.aperiodicity)
        return world.synthesise(made, len(wave)), {"pseudo_f0": round(float(np.exp(f0.mean)), 1)}

    def fabricated(self, key: VoiceKey) -> tuple[Float64, Float64, F0Stats]:
        """Mean and deviation (SECTIONS,) of a fabricated speaker's tube, and their F0.

        A sample of the normal distribution with the pool speakers' mean and covariance.
        """
        rng = self.draws.rng("articulation", *key.parts)
        people, n = self._people, SECTIONS
        weights = rng.standard_normal(len(people)) / np.sqrt(len(people) - 1)
        centre = people.mean(axis=0)
        drawn = centre + weights @ (people - centre)
        none = compute_f0_stats([np.array([1.5, 1.5])])
        f0 = replace(none, mean=float(drawn[-2]), sd=max(float(np.exp(drawn[-1])), _SMALLEST))
        return drawn[:n], np.exp(drawn[n : 2 * n]), f0

    def _of_voice(self, pool: VoicePool, name: str) -> Float64:
        """Statistics (2 SECTIONS + 2,): means and log deviations of the tube, and of log F0."""
        codes, f0 = pool.frames(name).envelope, pool.f0(name)
        some = codes[np.linspace(0, len(codes) - 1, min(FRAMES, len(codes))).astype(int)]
        areas = log_areas(world.spectrum(some), SECTIONS)
        spread = np.log(np.maximum(areas.std(axis=0), _SMALLEST))
        pitch = [f0.mean, np.log(max(f0.sd, _SMALLEST))]
        return np.concatenate((areas.mean(axis=0), spread, pitch))
