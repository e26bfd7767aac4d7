"""The WORLD vocoder: analysis and synthesis, and measures of whole data directories."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyworld
from scipy.signal import iirnotch, sosfiltfilt, tf2sos

from steps.audio import SAMPLE_RATE, read_audio
from steps.synthesis.f0 import HIGHEST_HZ, LOWEST_HZ, unbroken
from utils.archives import ArchiveWriter
from utils.arrays import Bool, Float64
from utils.cli import LossError, UserError
from utils.tables import write_map

# ---- Measurement of every utterance of a data directory into one archive; losses are counted.


@dataclass
class Measured:
    """Counts, and the reason for each skipped utterance."""

    n_written: int = 0
    n_frames: int = 0
    n_resampled: int = 0
    skipped: dict[str, str] = field(default_factory=dict)

    def summary(self, what: str) -> str:
        """Counts in one line; `what` was written."""
        resampled = f" ({self.n_resampled} resampled to 16 kHz)" if self.n_resampled else ""
        return (
            f"read {self.n_written + len(self.skipped)} utterances{resampled} / written "
            f"{self.n_written} {what}, {self.n_frames} frames / skipped {len(self.skipped)}"
        )


def measure_all(
    wav: Mapping[str, str],
    measure: Callable[[Float64], Float64],
    stem: Path,
    allow_loss: int,
    progress: Callable[[Iterable[str]], Iterable[str]] = lambda utts: utts,
) -> Measured:
    """Write `measure` of each signal (n,) at 16 kHz, float32, to `stem`.{ark,scp}, one at a time.

    progress: wraps the utterances, to show progress. Utterances that cannot be read or measured go
    to skipped.txt beside it. LossError beyond `allow_loss`; then, as after every error, there is no
    archive.
    """
    result = Measured()
    stem.parent.mkdir(parents=True, exist_ok=True)
    notes = stem.parent / "skipped.txt"
    stem.with_name(f"{stem.name}.scp").unlink(missing_ok=True)
    notes.unlink(missing_ok=True)
    with ArchiveWriter(stem) as writer:
        for utt in progress(wav):
            try:
                audio = read_audio(utt, wav[utt])
                measured = measure(audio.samples)
            except UserError as error:
                reason = " ".join(str(error).split())
                result.skipped[utt] = reason if utt in reason else f"{utt}: {reason}"
                continue
            writer.write(utt, measured)
            result.n_written += 1
            result.n_frames += len(measured)
            result.n_resampled += audio.rate != audio.file_rate
        if result.skipped:
            write_map(notes, result.skipped)
        _check_losses(result, len(wav), allow_loss)
    return result


def _check_losses(result: Measured, n: int, allow_loss: int) -> None:
    if len(result.skipped) > allow_loss:
        raise LossError(
            f"{len(result.skipped)} of {n} utterances lost, {allow_loss} allowed (--allow-loss); "
            f"the first: {next(iter(result.skipped.values()))}"
        )


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
_NOTCHES = np.vstack([tf2sos(*iirnotch(f, _NOTCH_Q, fs=SAMPLE_RATE)) for f in _MAINS_HZ])
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


def analyse(wave: Float64, f0_range: tuple[float, float] = F0_RANGE) -> WorldFrames:
    """Frames of a signal (n,) at 16 kHz, full scale 1; T = 1 + n // 160.

    f0_range: lowest and highest F0 in Hz. UserError for a signal that is empty or not finite.
    """
    samples = _checked(wave)
    quiet = _without_hum(samples)
    f0, times = _track(quiet, f0_range, FRAME_SHIFT)
    return _analyse(samples, f0, times, _D4C_THRESHOLD, FRAME_SHIFT)


def analyse_finely(wave: Float64, f0_range: tuple[float, float] = F0_RANGE) -> WorldFrames:
    """Analyse as `analyse` does, with a frame every 5 ms: T = 1 + n // 80.

    F0 is continued where DIO finds none, so that D4C alone decides on noise (aperiodicity 0).
    Without any voiced frame F0 is 0 everywhere.
    """
    samples, shift = _checked(wave), FRAME_SHIFT / FINE
    quiet = _without_hum(samples)
    f0, times = _track(quiet, f0_range, shift)
    f0 = unbroken(f0)
    found = pyworld.stonemask(quiet, f0, times, SAMPLE_RATE)
    near = np.abs(np.log(np.maximum(found, 1.0) / np.maximum(f0, 1.0))) < _NEAR
    return _analyse(samples, np.where(near, found, f0), times, _FINE_THRESHOLD, shift)


def extract_f0(wave: Float64, f0_range: tuple[float, float] = F0_RANGE) -> Float64:
    """F0 (T,) in Hz, 0 where unvoiced, of `analyse` alone. Shapes and errors as there."""
    return _track(_without_hum(_checked(wave)), f0_range, FRAME_SHIFT)[0]


def synthesise(frames: WorldFrames, n_samples: int) -> Float64:
    """Synthesise the signal (n_samples,) float64 of frames, of any level: it may pass full scale.

    Frames of digital silence (`silent_frames`) become exact zeros, with a slope of a frame at their
    borders. Where the frames end early the rest is silence. UserError for values that are not
    finite; ValueError for shapes that are not those of WorldFrames.
    """
    _check_frames(frames)
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
    power: Float64 = pyworld.decode_spectral_envelope(codes, SAMPLE_RATE, _FFT_SIZE)
    return power


def spectrum_code(power: Float64) -> Float64:
    """Codes (T, 40) of power spectra (T, 513) above 0."""
    values = np.ascontiguousarray(power, dtype=np.float64)
    codes: Float64 = pyworld.code_spectral_envelope(values, SAMPLE_RATE, CODE_DIM)
    return codes


def silent_frames(envelope: Float64) -> Bool:
    """Mask (T,) of the frames of codes (T, 40) that are digital silence.

    Any change of energy must leave these as they are, or silence becomes noise.
    """
    silent: Bool = envelope[:, 0] < SILENCE
    return silent


def pack(frames: WorldFrames) -> Float64:
    """Frames as one matrix (T, 1 + B + 40): f0, aperiodicity, envelope."""
    return np.hstack((frames.f0[:, None], frames.aperiodicity, frames.envelope))


def unpack(matrix: npt.NDArray[np.floating], shift: float = FRAME_SHIFT) -> WorldFrames:
    """Frames from a matrix of `pack`, as float64; UserError for another number of columns."""
    expected = 1 + _N_BANDS + CODE_DIM
    if matrix.ndim != 2 or matrix.shape[1] != expected:
        raise UserError(f"no WORLD frames: {matrix.shape}, where {expected} columns are expected")
    values = matrix.astype(np.float64)
    return WorldFrames(values[:, 0], values[:, 1 + _N_BANDS :], values[:, 1 : 1 + _N_BANDS], shift)


def check_f0_range(f0_range: tuple[float, float], where: str) -> None:
    """Raise a UserError that begins with `where` unless 50 <= low, 2 low <= high <= 600 Hz."""
    low, high = f0_range
    if not LOWEST_HZ <= low <= high / 2 <= HIGHEST_HZ / 2:
        raise UserError(
            f"{where}: {low:g} to {high:g} Hz; F0 is looked for within {LOWEST_HZ:g} ... "
            f"{HIGHEST_HZ:g} Hz, in a range of an octave or more"
        )


def _analyse(
    samples: Float64, f0: Float64, times: Float64, threshold: float, shift: float
) -> WorldFrames:
    power = pyworld.cheaptrick(samples, f0, times, SAMPLE_RATE, fft_size=_FFT_SIZE)
    noise = pyworld.d4c(samples, f0, times, SAMPLE_RATE, threshold, _FFT_SIZE)
    bands = pyworld.code_aperiodicity(noise, SAMPLE_RATE)
    return WorldFrames(f0, spectrum_code(power), bands, shift)


def _without_hum(samples: Float64) -> Float64:
    pad = min(_NOTCH_PAD, len(samples) - 1)
    return np.ascontiguousarray(sosfiltfilt(_NOTCHES, samples, padlen=pad))


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


def _check_frames(frames: WorldFrames) -> None:
    n = len(frames.f0)
    if (
        not n
        or frames.envelope.shape != (n, CODE_DIM)
        or frames.aperiodicity.shape != (n, _N_BANDS)
    ):
        raise ValueError(
            f"f0 {frames.f0.shape}, envelope {frames.envelope.shape}, aperiodicity "
            f"{frames.aperiodicity.shape} are no WORLD frames"
        )
    if not all(np.isfinite(x).all() for x in (frames.f0, frames.envelope, frames.aperiodicity)):
        raise UserError("WORLD frames hold a value that is not a finite number")
