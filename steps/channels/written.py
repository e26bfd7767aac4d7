"""Vectors of a file as it is written, in which nobody listens for a voice."""

import numpy as np

from steps.audio import CONTEXT, FRAME, SAMPLE_RATE
from steps.content.extractors import load_extractor
from steps.speaker.encoders import Samples, TooShortError, need_seconds
from utils.arrays import Float32, Float64

# ---- Content: what a recogniser's encoder makes of the file.


class ContentEncoder:
    """Means and deviations (2 d,) over the frames of an extractor of content, at the file's own
    level."""

    n_whole = 0

    def __init__(self, *words: str) -> None:
        """words: an extractor of steps/content (left out: moonshine), and the device."""
        *name, device = words
        self._extract = load_extractor(name[0] if name else "moonshine", device)

    def embed(self, samples: Samples) -> Float32:
        frames = self._extract(np.asarray(samples, np.float64))
        if not len(frames):
            raise TooShortError(f"{len(samples)} samples are too few for a frame of content")
        moments = frames.mean(axis=0, dtype=np.float64), frames.std(axis=0, dtype=np.float64)
        return np.concatenate(moments).astype(np.float32)


# ---- Level, and the contour of energy: pauses, histogram and modulation, whatever the level is.

LOUD = 95  # percentile of the frames' energies that is 0 dB
SPEECH_DB = -30.0  # frames below are pauses
FLOOR_DB = -60.0  # energies below count as this
STEPS_DB = np.arange(-42.0, 7.0, 4.0)  # bounds of the histogram; beyond the ends, as the last ones
BANDS_HZ = np.geomspace(0.5, 32.0, 13)  # bounds of the bands of modulation
FINEST, LEAST_SHARE = 1024, 1e-4  # frames of the transform at least; of the power in a band
SHORTEST_SECONDS = 0.1
_SILENT = 1e-10  # power of a frame; below 16-bit rounding


class LevelEncoder:
    """Level (1,) of the whole file, in dB of full scale."""

    n_whole = 0

    def __init__(self, device: str = "cpu") -> None:
        pass

    def embed(self, samples: Samples) -> Float32:
        power = np.square(samples, dtype=np.float64).mean()
        return np.array([10 * np.log10(max(power, _SILENT))], np.float32)


class EnergyEncoder:
    """Contour (37,) of energy, in dB below the loud frames of the file: shape of the contour, runs
    of speech and of pauses, histogram, modulation."""

    n_whole = 0

    def __init__(self, device: str = "cpu") -> None:
        pass

    def embed(self, samples: Samples) -> Float32:
        need_seconds(samples, SHORTEST_SECONDS)
        contour = energy_contour(samples)
        return np.concatenate([
            _shape(contour), _runs(contour), _histogram(contour), _modulation(contour)
        ]).astype(np.float32)  # fmt: skip


def energy_contour(samples: Samples) -> Float64:
    """Energy (T,) of frames of 10 ms, in dB below the loud ones, at least FLOOR_DB."""
    n = len(samples) // FRAME
    frames = np.asarray(samples[: n * FRAME], np.float64).reshape(n, FRAME)
    power = np.maximum(np.square(frames).mean(axis=1), _SILENT)
    level = 10 * np.log10(power)
    return np.maximum(level - np.percentile(level, LOUD), FLOOR_DB)


def _shape(contour: Float64) -> Float64:
    """Mean, deviation and steps (6,) of the frames of speech: size, rise, fall, and curvature."""
    speech, step = contour[contour > SPEECH_DB], np.diff(contour)
    sizes = np.abs(step).mean(), np.maximum(step, 0).std(), np.minimum(step, 0).std()
    return np.array([speech.mean(), speech.std(), *sizes, np.abs(np.diff(step)).mean()])


def _runs(contour: Float64) -> Float64:
    """Runs (7,) of speech and of pauses within: number a second; mean, deviation of log lengths of
    each; log of the longest pause; share of speech."""
    speech = contour > SPEECH_DB
    first, last = np.flatnonzero(speech)[[0, -1]]
    own = speech[first : last + 1]
    bounds = np.flatnonzero(np.diff(own)) + 1
    logs = np.log(np.diff([0, *bounds, len(own)]))
    said, paused = logs[::2], np.append(logs[1::2], 0.0)  # one of a frame, so that there is one
    rate = len(said) * SAMPLE_RATE / FRAME / len(own)
    return np.array([
        rate, said.mean(), said.std(), paused.mean(), paused.std(), paused.max(), own.mean()
    ])  # fmt: skip


def _histogram(contour: Float64) -> Float64:
    """Shares (12,) of the frames by their energy."""
    within = np.clip(contour, STEPS_DB[0], STEPS_DB[-1] - 1e-9)
    return np.sqrt(np.histogram(within, STEPS_DB)[0] / len(contour))


def _modulation(contour: Float64) -> Float64:
    """Log share (12,) of the contour's power in bands of modulation, over all of it."""
    centred = np.maximum(contour, STEPS_DB[0])
    centred = (centred - centred.mean()) * np.hanning(len(centred))
    size = max(FINEST, len(centred))
    power = np.square(np.abs(np.fft.rfft(centred, size)))
    band = np.digitize(np.fft.rfftfreq(size, FRAME / SAMPLE_RATE), BANDS_HZ)
    shares = np.bincount(band, power, len(BANDS_HZ) + 1) / max(power.sum(), _SILENT)
    return np.log(shares[1:-1] + LEAST_SHARE)


# ---- Rhythm: five numbers of a recording, which a Gaussian of their differences compares.

LEAST_SECONDS = 0.1  # added to each length, whose logarithm counts


def rhythm_of(samples: Samples, text: str) -> Float32:
    """Logarithms (5,) of the silences at both ends, of the pauses within, of the time of speech, in
    seconds, and of the length of the text in letters."""
    need_seconds(samples, SHORTEST_SECONDS)
    speech = np.convolve(energy_contour(samples) > SPEECH_DB, np.ones(CONTEXT), "same") > 0
    first, last = np.flatnonzero(speech)[[0, -1]]
    said = speech.sum()
    frames = np.array([first, len(speech) - 1 - last, last + 1 - first - said, said])
    seconds = frames * FRAME / SAMPLE_RATE
    letters = sum(map(str.isalpha, text))
    return np.log([*(seconds + LEAST_SECONDS), 1 + letters]).astype(np.float32)
