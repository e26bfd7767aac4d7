"""What protection did to pitch, length and level, as we and as VoicePrivacy 2022 measure it."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from types import ModuleType

import numpy as np

from steps.audio import read_audio
from steps.synthesis.f0 import VOICED_HZ
from steps.synthesis.world import F0_RANGE, extract_f0
from utils.arrays import Float64
from utils.cli import LossError, UserError
from utils.tables import StrPath, atomic_write, sort_ids, write_map

# ---- Pitch correlation of VoicePrivacy 2022, which is not our own (steps/synthesis/prosody.py).
#
# The challenge correlates Praat's F0 in Hz over all frames, 0 where there is no voice, at the
# best-fitting delay. Praat comes with the package praat-parselmouth (GPL), which is not installed
# unless asked for; without it the figure is not defined.

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


# ---- Effect of protection on pitch, length and level of an utterance, without any recogniser.
#
# Correlation of log F0 on frames voiced in both is that of the VoicePrivacy 2022 challenge in
# intent, not in figures: that is of Hz over all frames, unvoiced ones as 0, with another F0
# extractor and at the best delay. Here a delay counts against a system.

FULL_SCALE = 32767 / 32768  # from here on a sample of 16 bit counts as clipped
UNDEFINED = "-"


@dataclass(frozen=True)
class Prosody:
    """An utterance compared with its original; NaN: undefined.

    f0_correlation: Pearson correlation of log F0 on the `n_voiced_both` frames of 10 ms that are
    voiced in both; NaN for fewer than two, or where one of the two has a constant pitch.
    voicing_agreement: share of the `n_frames` frames of the original with the same decision voiced
    or unvoiced. duration_change: relative, 0.1 is 10 % longer. level_change: of the root mean
    square, dB; NaN where one is silent. clipping, clipping_original: share of samples at full
    scale. f0_correlation_vpc22: see pitch_vpc22.
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


def compare(
    original: Float64, protected: Float64, f0_range: tuple[float, float] = F0_RANGE
) -> Prosody:
    """Compare two signals (n,) at 16 kHz, full scale 1. UserError for an empty signal."""
    contours = extract_f0(original, f0_range), extract_f0(protected, f0_range)
    return compare_contours(
        *contours,
        duration_change=len(protected) / len(original) - 1,
        level_change=_level(protected) - _level(original),
        clipping=clipped_share(protected),
        clipping_original=clipped_share(original),
        f0_correlation_vpc22=pitch_correlation(original, protected),
    )


def compare_contours(f0: Float64, other: Float64, **figures: float) -> Prosody:
    """Compare F0 contours (T,), (U,) in Hz, 0 where unvoiced; `figures` are the other fields.

    Frames are compared at the same place of the utterance: where U is not T, frame t of the first
    with frame t·(U - 1)/(T - 1), rounded, of the second, so a change of speed is no error of pitch.
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


@dataclass(frozen=True)
class Compared:
    """Figures by utterance, and the reason for each skipped utterance."""

    prosody: Mapping[str, Prosody]
    skipped: Mapping[str, str]


def compare_all(
    original: Mapping[str, str],
    protected: Mapping[str, str],
    f0_range: tuple[float, float],
    allow_loss: int,
    progress: Callable[[Iterable[str]], Iterable[str]] = lambda utts: utts,
) -> Compared:
    """Compare the audio files (utterance -> file) of every utterance of `original`.

    Utterances that `protected` lacks or that cannot be read are skipped; LossError beyond
    `allow_loss`. progress: wraps the utterances, to show progress.
    """
    found: dict[str, Prosody] = {}
    skipped: dict[str, str] = {}
    for utt in progress(original):
        try:
            if utt not in protected:
                raise UserError(f"{utt}: has no protected audio")
            before, after = (read_audio(utt, wav[utt]).samples for wav in (original, protected))
            found[utt] = compare(before, after, f0_range)
        except UserError as error:
            reason = " ".join(str(error).split())
            skipped[utt] = reason if utt in reason else f"{utt}: {reason}"
    if len(skipped) > allow_loss:
        raise LossError(
            f"{len(skipped)} of {len(original)} utterances lost, {allow_loss} allowed "
            f"(--allow-loss); the first: {next(iter(skipped.values()))}"
        )
    return Compared(found, skipped)


def write_prosody(folder: StrPath, compared: Compared) -> None:
    """Write `prosody`: a header line, then a line an utterance, `-` where undefined."""
    if not compared.prosody:
        raise UserError(f"{folder}: there is nothing to write; no utterance could be compared")
    notes = Path(folder) / "skipped.txt"
    notes.unlink(missing_ok=True)
    if compared.skipped:
        write_map(notes, compared.skipped)
    with atomic_write(Path(folder) / "prosody") as stream:
        stream.write(f"# utterance {' '.join(COLUMNS)}\n")
        for utt in sort_ids(compared.prosody):
            stream.write(f"{utt} {' '.join(_texts(astuple(compared.prosody[utt])))}\n")


def _texts(values: Sequence[float]) -> list[str]:
    return [UNDEFINED if math.isnan(value) else f"{value:.8g}" for value in values]
