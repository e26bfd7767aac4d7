"""The WORLD vocoder: analysis and synthesis; prosody of whole data directories."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt
import pyworld

from steps.audio import SAMPLE_RATE, Losses, read_audio
from steps.synthesis.f0 import VOICED_HZ, unbroken
from utils.archives import ObjectReader
from utils.arrays import Bool, Float64
from utils.cli import UserError, refusing
from utils.tables import atomic_write, sort_ids

# ---- WORLD: speech as pitch, spectral envelope and aperiodicity, and back (Morise et al. 2016).
#
# A frame every 10 ms, centred at t x 160 samples: F0 by DIO and StoneMask (on the signal without
# mains hum), the envelope by CheapTrick (coded as 40 mel-cepstral values), the aperiodicity by D4C
# (coded by bands). `analyse_finely` has a frame every 5 ms, and a pitch in all of them: resynthesis
# from them keeps more words and quality (benchmarks/RESULTS.md). Nothing is drawn: the same samples
# give the same bits. The library is pyworld.

FRAME_SHIFT = 0.010  # seconds
HOP = 160  # samples
FINE = 2  # frames of `analyse_finely` for one of `analyse`
CODE_DIM = 40
F0_RANGE = (60.0, 400.0)  # Hz
# Coefficient 0 is the mean log power. CheapTrick gives digital silence (or a constant) -36.5 and
# less, and the last bit of 16-bit audio, alone in its frame, about -24.
SILENCE = -33.0
# Voiced frames that look less harmonic than this become noise in D4C. The library's 0.85 is meant
# for a pitch in nearly all frames, as `analyse_finely` has. With DIO as it is, 17 utterances of
# LibriSpeech and their copies disagree on voicing in 6.8, 6.2 and 5.5 % of the frames at 0.85, 0.5
# and 0; but at 0 the few voiced frames that DIO finds in white noise (0.1 %) stay voiced (all
# measured without the notches below).
_D4C_THRESHOLD, _FINE_THRESHOLD = 0.5, 0.85
# DIO takes mains hum, steady and within the range of F0, for a voice, and then misses the voice: of
# 50 utterances of LibriSpeech, 4 had hardly a voiced frame, none when hum is first taken out.
_MAINS_HZ, _NOTCH_Q = (50.0, 60.0), 3.0
_NOTCH_PAD = 1600  # samples
_NEAR = 0.2  # of log F0; where StoneMask moves further from an interpolated pitch, it is wrong
_FFT_SIZE = 1024  # CheapTrick's at 16 kHz; it serves F0 down to 47 Hz
_N_BANDS = 1  # of the coded aperiodicity at 16 kHz


@dataclass(frozen=True)
class WorldFrames:
    """T frames of speech, float64.

    f0: (T,) Hz, 0 where unvoiced. envelope: (T, 40) coded log power spectrum, coefficient 0 its
    mean. aperiodicity: (T, B) coded bands in dB, 0 all noise (B is 1 at 16 kHz). shift: seconds
    from one frame to the next.
    """

    f0: Float64
    envelope: Float64
    aperiodicity: Float64
    shift: float = FRAME_SHIFT

    def __len__(self) -> int:
        return len(self.f0)


def analyse(wave: Float64) -> WorldFrames:
    """Frames of a signal (n,) at 16 kHz, full scale 1; T = 1 + n // 160.

    UserError for a signal that is empty or not finite.
    """
    samples = _checked(wave)
    f0, times = _track(_without_hum(samples), F0_RANGE, FRAME_SHIFT)
    return _analyse(samples, f0, times, _D4C_THRESHOLD, FRAME_SHIFT)


def analyse_finely(wave: Float64) -> WorldFrames:
    """Analyse as `analyse` does, with a frame every 5 ms: T = 1 + n // 80.

    F0 is continued where DIO finds none, so that D4C alone decides on noise (aperiodicity 0).
    Without any voiced frame F0 is 0 everywhere.
    """
    samples, shift = _checked(wave), FRAME_SHIFT / FINE
    quiet = _without_hum(samples)
    f0, times = _track(quiet, F0_RANGE, shift)
    f0 = unbroken(f0)
    found = pyworld.stonemask(quiet, f0, times, SAMPLE_RATE)
    near = np.abs(np.log(np.maximum(found, 1.0) / np.maximum(f0, 1.0))) < _NEAR
    return _analyse(samples, np.where(near, found, f0), times, _FINE_THRESHOLD, shift)


def extract_f0(wave: Float64, f0_range: tuple[float, float] = F0_RANGE) -> Float64:
    """F0 (T,) in Hz, 0 where unvoiced, of `analyse` alone. Shapes and errors as there.

    f0_range: lowest and highest F0 in Hz.
    """
    return _track(_without_hum(_checked(wave)), f0_range, FRAME_SHIFT)[0]


def synthesise(frames: WorldFrames, n_samples: int) -> Float64:
    """Synthesise the signal (n_samples,) float64 of frames, of any level: it may pass full scale.

    Frames of digital silence (`silent_frames`) become exact zeros, with a slope of a frame at their
    borders. Where the frames end early the rest is silence. UserError for values that are not
    finite.
    """
    power = spectrum(frames.envelope)
    noise = pyworld.decode_aperiodicity(
        np.ascontiguousarray(frames.aperiodicity, dtype=np.float64), SAMPLE_RATE, _FFT_SIZE
    )
    f0 = np.ascontiguousarray(frames.f0, dtype=np.float64)
    wave = pyworld.synthesize(f0, power, noise, SAMPLE_RATE, frames.shift * 1000)[:n_samples]
    if not np.isfinite(wave).all():
        raise UserError("WORLD synthesis gave samples that are not finite")
    silent = silent_frames(frames.envelope)
    if silent.any():
        places = np.arange(len(wave)) / (frames.shift * SAMPLE_RATE)
        wave *= np.interp(places, np.arange(len(silent)), ~silent)
    return np.pad(wave, (0, n_samples - len(wave)))


def spectrum(envelope: Float64) -> Float64:
    """Power spectra (T, 513) of codes (T, 40)."""
    codes = np.ascontiguousarray(envelope, dtype=np.float64)
    return pyworld.decode_spectral_envelope(codes, SAMPLE_RATE, _FFT_SIZE)


def spectrum_code(power: Float64) -> Float64:
    """Codes (T, 40) of power spectra (T, 513) above 0."""
    values = np.ascontiguousarray(power, dtype=np.float64)
    return pyworld.code_spectral_envelope(values, SAMPLE_RATE, CODE_DIM)


def envelope_code(samples: Float64, f0: Float64, times: Float64) -> Float64:
    """Codes (T, 40) of a signal (n,) with F0 (T,) at these seconds."""
    power = pyworld.cheaptrick(samples, f0, times, SAMPLE_RATE, fft_size=_FFT_SIZE)
    return spectrum_code(power)


def silent_frames(envelope: Float64) -> Bool:
    """Mask (T,) of the frames of codes (T, 40) that are digital silence.

    Any change of energy must leave these as they are, or silence becomes noise.
    """
    return envelope[:, 0] < SILENCE


def pack(frames: WorldFrames) -> Float64:
    """Frames as one matrix (T, 1 + B + 40): f0, aperiodicity, envelope."""
    return np.hstack((frames.f0[:, None], frames.aperiodicity, frames.envelope))


def analyse_packed(wave: Float64) -> Float64:
    """Frames of a signal as one matrix; see `analyse`, `pack`."""
    return pack(analyse(wave))


def unpack(matrix: npt.NDArray[np.floating], shift: float = FRAME_SHIFT) -> WorldFrames:
    """Frames from a matrix of `pack`, as float64; UserError for another number of columns."""
    expected = 1 + _N_BANDS + CODE_DIM
    if matrix.ndim != 2 or matrix.shape[1] != expected:
        raise UserError(f"not WORLD frames: {matrix.shape}, where {expected} columns are expected")
    values = matrix.astype(np.float64)
    return WorldFrames(values[:, 0], values[:, 1 + _N_BANDS :], values[:, 1 : 1 + _N_BANDS], shift)


def frames_of(reader: ObjectReader, utt: str) -> WorldFrames:
    """Frames of an utterance from an archive of `pack`; UserError that names it."""
    matrix = reader.matrix(utt)
    with refusing(f"{reader.path}: {utt}: {{}}", UserError):
        return unpack(matrix)


def _analyse(
    samples: Float64, f0: Float64, times: Float64, threshold: float, shift: float
) -> WorldFrames:
    envelope = envelope_code(samples, f0, times)
    noise = pyworld.d4c(samples, f0, times, SAMPLE_RATE, threshold, _FFT_SIZE)
    bands = pyworld.code_aperiodicity(noise, SAMPLE_RATE)
    return WorldFrames(f0, envelope, bands, shift)


@cache
def _notches() -> Float64:
    from scipy.signal import iirnotch, tf2sos

    return np.vstack([tf2sos(*iirnotch(f, _NOTCH_Q, fs=SAMPLE_RATE)) for f in _MAINS_HZ])


def _without_hum(samples: Float64) -> Float64:
    from scipy.signal import sosfiltfilt  # takes a second, and a plan needs none

    pad = min(_NOTCH_PAD, len(samples) - 1)
    return np.ascontiguousarray(sosfiltfilt(_notches(), samples, padlen=pad))


def _track(quiet: Float64, f0_range: tuple[float, float], shift: float) -> tuple[Float64, Float64]:
    """F0 (T,) in Hz of a signal without hum, and the frames' times (T,) in seconds."""
    low, high = f0_range
    rough, times = pyworld.dio(
        quiet, SAMPLE_RATE, f0_floor=low, f0_ceil=high, frame_period=shift * 1000
    )
    return pyworld.stonemask(quiet, rough, times, SAMPLE_RATE), times


def _checked(wave: Float64) -> Float64:
    samples = np.ascontiguousarray(wave, dtype=np.float64)
    if samples.ndim != 1 or not len(samples) or not np.isfinite(samples).all():
        raise UserError("the signal is empty, or holds a sample that is not a finite number")
    return samples


# ---- Pitch correlation of VoicePrivacy 2022, which is not our own (`compare`).
#
# The challenge correlates Praat's F0 in Hz over all frames, 0 where there is no voice, at the
# best-fitting delay. Praat comes with the package praat-parselmouth (GPL), which is not installed
# unless asked for; without it the figure is not defined.

FLOOR, CEILING, STEP = 75.0, 500.0, 0.01  # Hz, Hz, s: the challenge's


def pitch_of_praat(wave: Float64) -> Float64:
    """F0 (T,) in Hz of a signal (n,) at 16 kHz, full scale 1; (0,) without Praat or for one that is
    too short."""
    try:
        import parselmouth as praat
    except ImportError:
        return np.zeros(0)
    try:
        sound = praat.Sound(wave, sampling_frequency=float(SAMPLE_RATE))
        pitch = sound.to_pitch(time_step=STEP, pitch_floor=FLOOR, pitch_ceiling=CEILING)
    except praat.PraatError:  # shorter than three periods of the floor
        return np.zeros(0)
    return np.asarray(pitch.selected_array["frequency"], np.float64)


def correlate_hz(a: Float64, b: Float64) -> float:
    """Correlation of F0 contours (T,), (U,) in Hz, 0 where unvoiced, at the best delay.

    The shorter one is stretched to the length of the other. Values outside 75 to 500 Hz then count
    as unvoiced. The second is shifted cyclically by the lag of the largest cross-correlation;
    Pearson's correlation of all frames follows. 0 where one is constant, as in the challenge; NaN
    where one is empty.
    """
    if not (len(a) and len(b)):
        return math.nan
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


# ---- Effect of protection on pitch, length and level of an utterance, without any recogniser.
#
# Correlation of log F0 on frames voiced in both is that of the VoicePrivacy 2022 challenge in
# intent, not in figures: that is of Hz over all frames, unvoiced ones as 0, with another F0
# extractor and at the best delay. Here a delay counts against a system.

FULL_SCALE = 32767 / 32768  # from here on a sample of 16 bit counts as clipped
UNDEFINED = "-"
Progress = Callable[[Iterable[str]], Iterable[str]]
"""Wraps utterances, to show how many are done."""


@dataclass(frozen=True)
class Prosody:
    """An utterance compared with its original; NaN: undefined.

    f0_correlation: Pearson correlation of log F0 on the `n_voiced_both` frames of 10 ms that are
    voiced in both; NaN for fewer than two, or where one of the two has a constant pitch.
    voicing_agreement: share of the `n_frames` frames of the original with the same decision voiced
    or unvoiced. duration_change: relative, 0.1 is 10 % longer. level_change: of the root mean
    square, dB; NaN where one is silent. clipping, clipping_original: share of samples at full
    scale. f0_correlation_vpc22: see correlate_hz.
    """

    f0_correlation: float
    voicing_agreement: float
    duration_change: float
    level_change: float
    clipping: float
    clipping_original: float
    n_frames: int
    n_voiced_both: int
    f0_correlation_vpc22: float = math.nan


COLUMNS = tuple(field.name for field in fields(Prosody))


Contours = tuple[Float64, Float64]  # F0 by `extract_f0`, and by Praat


def contours_of(wave: Float64) -> Contours:
    """Pitch contours to compare, of a signal (n,) at 16 kHz, full scale 1."""
    return extract_f0(wave), pitch_of_praat(wave)


def compare(original: Float64, protected: Float64, known: Contours | None = None) -> Prosody:
    """Compare two signals (n,) at 16 kHz, full scale 1. known: `contours_of` the original.
    UserError for an empty signal."""
    before, after = known or contours_of(original), contours_of(protected)
    # Those of before Praat was installed have none of it.
    praat = before[1] if len(before[1]) else pitch_of_praat(original)
    return compare_contours(
        before[0], after[0],
        duration_change=len(protected) / len(original) - 1,
        level_change=_level(protected) - _level(original),
        clipping=clipped_share(protected),
        clipping_original=clipped_share(original),
        f0_correlation_vpc22=correlate_hz(praat, after[1]),
    )  # fmt: skip


def compare_contours(f0: Float64, other: Float64, **figures: float) -> Prosody:
    """Compare F0 contours (T,), (U,) in Hz, 0 where unvoiced; `figures` are the other fields.

    Frames are compared at the same place of the utterance: where U is not T, frame t of the first
    with frame t·(U - 1)/(T - 1), rounded, of the second, so a change of speed does not count as an
    error of pitch.
    """
    if not len(f0) or not len(other):
        raise UserError("a contour of F0 is empty")
    matched = other[np.rint(np.linspace(0, len(other) - 1, len(f0))).astype(np.intp)]
    voiced = f0 > VOICED_HZ, matched > VOICED_HZ
    both = voiced[0] & voiced[1]
    return Prosody(
        f0_correlation=_pearson(np.log(f0[both]), np.log(matched[both])),
        voicing_agreement=float((voiced[0] == voiced[1]).mean()),
        n_frames=len(f0),
        n_voiced_both=int(both.sum()),
        **figures,
    )


def _pearson(a: Float64, b: Float64) -> float:
    # A monotone's deviation is not exactly 0 in floating point.
    if len(a) < 2 or min(a.std(), b.std()) < 1e-9:
        return math.nan
    return float(np.clip(np.corrcoef(a, b)[0, 1], -1.0, 1.0))


def _level(wave: Float64) -> float:
    power = float(np.mean(wave**2))
    return 10 * math.log10(power) if power > 0 else math.nan


def clipped_share(wave: Float64) -> float:
    """Share of the samples (n,) that reach the full scale of 16 bit."""
    return float((np.abs(wave) >= FULL_SCALE).mean())


def compare_all(
    original: Mapping[str, str],
    protected: Mapping[str, str],
    out: Path,
    allow_loss: int,
    progress: Progress = lambda utts: utts,
    contours: Path | None = None,
) -> str:
    """Compare the audio files (utterance -> file) of every utterance of `original`.

    contours: output of `write_contours` for these files, and perhaps others. The table `prosody` in
    `out` has a header line, then a line an utterance, `-` where undefined. Utterances that
    `protected` lacks or that cannot be read are skipped; LossError beyond `allow_loss`. Returns the
    counts in one line.
    """

    damaged = f"{contours}: no contours ({{}}); extract them again"
    with refusing(damaged, ValueError, EOFError, BadZipFile):
        tracked = np.load(contours) if contours else {}

    def compare_files(utt: str) -> Prosody:
        if utt not in protected:
            raise UserError(f"{utt}: has no protected audio")
        before, after = (read_audio(utt, wav[utt]).samples for wav in (original, protected))
        names = [f"{utt}/{number}" for number in range(2)]
        known = (tracked[names[0]], tracked[names[1]]) if names[0] in tracked else None
        if known and len(known[0]) != 1 + len(before) // HOP:
            raise UserError(f"{contours}: has {utt} of another length; extract them again")
        return compare(before, after, known)

    losses = Losses()
    found = dict(losses.each(progress(original), compare_files))
    out.mkdir(parents=True, exist_ok=True)
    losses.finish(out, len(original), allow_loss)
    if not found:
        raise UserError(f"{out}: there is nothing to write; no utterance could be compared")
    with atomic_write(out / "prosody") as stream:
        stream.write(f"# utterance {' '.join(COLUMNS)}\n")
        for utt in sort_ids(found):
            values = astuple(found[utt])
            cells = (UNDEFINED if math.isnan(value) else f"{value:.8g}" for value in values)
            stream.write(f"{utt} {' '.join(cells)}\n")
    return (
        f"read {len(original)} utterances / written {len(found)} comparisons / "
        f"skipped {len(losses.skipped)}"
    )


def write_contours(wav: Mapping[str, str], path: Path, progress: Progress) -> None:
    """Write `contours_of` audio files (utterance -> file), in double precision; `compare_all` names
    those that cannot be read."""
    found: dict[str, Any] = {}
    for utt, both in Losses().each(
        progress(wav), lambda utt: contours_of(read_audio(utt, wav[utt]).samples)
    ):
        found |= {f"{utt}/{number}": contour for number, contour in enumerate(both)}
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path, "wb") as stream:
        np.savez(stream, **found)
