"""Statistics of a speaker's pitch, and transforms to the pitch of another voice.

F0 is in Hz, a value a frame, 0 where unvoiced; statistics are of its natural logarithm over voiced
frames. Sources: Champion et al. 2021 (log-linear), Srivastava et al. 2020 (percentile).
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from utils.archives import ObjectReader, read_vectors, write_archive
from utils.arrays import Float64
from utils.cli import LossError, UserError
from utils.datadir import DataDir
from utils.seeds import make_rng
from utils.tables import StrPath, need_files, sort_ids

VOICED_HZ = 1.0  # F0 above it is voiced
LOWEST_HZ, HIGHEST_HZ = 50.0, 600.0  # transformed F0 is clipped to these
QUANTILES = np.linspace(0.0, 1.0, 101)
STEP, NOISE = 1 / 3, 0.03  # of `quantised`: of the target's deviation; of log F0
_WINDOW = np.hanning(7)[1:-1] / 3  # frames; its sum is 1
_SMALLEST_SD = 1e-3  # of log F0; a voice below it is a monotone, and is only shifted


@dataclass(frozen=True)
class F0Stats:
    """Log F0 of a speaker: mean, standard deviation, quantiles (101,), and number of voiced frames.

    Without any voiced frame (`n` 0) the rest is 0 and means nothing.
    """

    n: int
    mean: float
    sd: float
    quantiles: Float64

    def shifted(self, by: float) -> "F0Stats":
        """Statistics `by` higher in log F0; unchanged without voiced frames."""
        quantiles = self.quantiles + by
        return replace(self, mean=self.mean + by, quantiles=quantiles) if self.n else self

    @property
    def vector(self) -> Float64:
        """All values (104,) in their order."""
        return np.concatenate(([self.n, self.mean, self.sd], self.quantiles))

    @classmethod
    def of(cls, vector: npt.NDArray[np.floating]) -> "F0Stats":
        """Statistics of a `vector` (104,)."""
        n, mean, sd, *quantiles = vector.astype(np.float64).tolist()
        return cls(int(n), mean, sd, np.array(quantiles))

    def spread(self, factor: float) -> "F0Stats":
        """Statistics so many times as wide about their mean in log F0."""
        quantiles = self.mean + factor * (self.quantiles - self.mean)
        return replace(self, sd=factor * self.sd, quantiles=quantiles) if self.n else self


NO_F0 = F0Stats(0, 0.0, 0.0, np.zeros(len(QUANTILES)))


def compute_f0_stats(contours: Sequence[npt.NDArray[np.floating]]) -> F0Stats:
    """Statistics over the voiced frames of F0 contours (T,) in Hz."""
    f0 = np.concatenate([np.zeros(0), *contours])
    log_f0 = np.log(f0[f0 > VOICED_HZ].astype(np.float64))
    if not len(log_f0):
        return NO_F0
    quantiles = np.quantile(log_f0, QUANTILES)
    return F0Stats(len(log_f0), float(log_f0.mean()), float(log_f0.std()), quantiles)


def open_utterances(
    scp: Path, made_by: str, data: DataDir, allow_loss: int
) -> tuple[ObjectReader, dict[str, list[str]], int]:
    """Open an archive of a data directory's utterances: the reader, those that are in it by
    speaker, and how many are not.

    UserError where there is no archive, LossError for more losses than allowed, or nothing else.
    """
    need_files([scp], f"make it with steps/{made_by}")
    reader = ObjectReader(scp)
    lost = [utt for utt in data.utt2spk if utt not in reader]
    if len(lost) > allow_loss or len(lost) == len(data.utt2spk):
        raise LossError(
            f"{scp}: {len(lost)} of {len(data.utt2spk)} utterances of {data.path} are not in it "
            f"(the first: {lost[0]}); --allow-loss is {allow_loss}"
        )
    present = {spk: [u for u in utts if u in reader] for spk, utts in data.spk2utt.items()}
    return reader, present, len(lost)


def speaker_f0_stats(
    spk2utt: Mapping[str, Sequence[str]], contour: Callable[[str], npt.NDArray[np.floating]]
) -> dict[str, F0Stats]:
    """Statistics over all utterances of each speaker; `contour` gives F0 (T,) of an utterance.

    One speaker is in memory at a time.
    """
    return {
        speaker: compute_f0_stats([contour(utt) for utt in sort_ids(utts)])
        for speaker, utts in spk2utt.items()
    }


def mix_f0_stats(stats: Sequence[F0Stats], weights: Sequence[float]) -> F0Stats:
    """Statistics of a voice composed of several: weighted mean of means, variances and quantiles.

    Speakers without voiced frames do not count. (Champion et al. 2021 and their code: mean of the
    means, root of the mean variance, over the selected speakers.)
    """
    usable = [(s, w) for s, w in zip(stats, weights, strict=True) if s.n and w > 0]
    if not usable:
        return NO_F0
    share = np.array([w for _, w in usable]) / sum(w for _, w in usable)
    return F0Stats(
        sum(s.n for s, _ in usable),
        float(share @ [s.mean for s, _ in usable]),
        float(np.sqrt(share @ [s.sd**2 for s, _ in usable])),
        share @ np.array([s.quantiles for s, _ in usable]),
    )


def unbroken(f0: Float64) -> Float64:
    """F0 (T,) in Hz, continued where it was 0, unvoiced.

    Between voiced frames log F0 is a straight line, and it is constant before the first and after
    the last. Without a voiced frame it is 0 everywhere.
    """
    voiced = np.flatnonzero(f0 > 0)
    if not len(voiced):
        return np.zeros(len(f0))
    return np.exp(np.interp(np.arange(len(f0)), voiced, np.log(f0[voiced])))


def _transform(
    f0: Float64, source: F0Stats, target: F0Stats, change: Callable[[Float64], Float64]
) -> Float64:
    """F0 with its voiced frames changed in their logarithm, and clipped; unvoiced ones stay 0.

    Where one of the two has no voiced frame nothing changes.
    """
    out = np.array(f0, dtype=np.float64)
    voiced = out > VOICED_HZ
    if source.n and target.n and voiced.any():
        out[voiced] = np.clip(np.exp(change(np.log(out[voiced]))), LOWEST_HZ, HIGHEST_HZ)
    return out


def transform_linear(f0: Float64, source: F0Stats, target: F0Stats) -> Float64:
    """log F0' = (log F0 - mu_s) / sd_s * sd_t + mu_t on voiced frames; unvoiced ones stay 0.

    A source of constant pitch (sd_s < 1e-3) is only shifted. Where one of the two has no voiced
    frame nothing changes. The result is clipped to 50 ... 600 Hz.
    """
    slope = target.sd / source.sd if source.sd >= _SMALLEST_SD else 1.0
    return _transform(f0, source, target, lambda x: (x - source.mean) * slope + target.mean)


def transform_percentile(f0: Float64, source: F0Stats, target: F0Stats) -> Float64:
    """Map each voiced value to the target's value at the same rank; as `transform_linear`."""
    if source.sd < _SMALLEST_SD:
        return transform_linear(f0, source, target)

    def change(log_f0: Float64) -> Float64:
        ranks = np.interp(log_f0, source.quantiles, QUANTILES)
        return np.interp(ranks, QUANTILES, target.quantiles)

    return _transform(f0, source, target, change)


def transform_quantised(
    f0: Float64, source: F0Stats, target: F0Stats, step: float = STEP, noise: float = NOISE
) -> Float64:
    """Transform as `transform_linear`, in steps of so many of the target's deviations, with noise.

    After the quantised and noised F0 of SA-toolkit (Champion 2023): the fine shape of a contour
    reveals the speaker. noise: deviation of log F0; it is a function of the contour. Finally log F0
    is smoothed over 50 ms, which halves the noise, restores nothing of the source, and sounds
    better than steps.
    """
    out = transform_linear(f0, source, target)
    voiced = out > VOICED_HZ
    if not (source.n and target.n and voiced.any()):
        return out
    width = max(target.sd, _SMALLEST_SD) * step
    seed = hashlib.sha256(np.ascontiguousarray(f0, dtype=np.float64).tobytes()).hexdigest()
    drawn = make_rng(0, "f0 quantised", seed).standard_normal(int(voiced.sum()))
    log_f0 = target.mean + width * np.rint((np.log(out[voiced]) - target.mean) / width)
    out[voiced] = np.exp(log_f0 + noise * drawn)
    padded = np.pad(np.log(unbroken(out)), len(_WINDOW) // 2, mode="edge")
    smooth = np.convolve(padded, _WINDOW, mode="valid")[voiced]
    out[voiced] = np.clip(np.exp(smooth), LOWEST_HZ, HIGHEST_HZ)
    return out


TRANSFORMS = {
    "linear": transform_linear,
    "percentile": transform_percentile,
    "quantised": transform_quantised,
}


def write_f0_stats(folder: StrPath, stats: Mapping[str, F0Stats]) -> None:
    """Write `spk_f0.{ark,scp}`: voiced frames, mean, deviation, 101 quantiles of each speaker."""
    vectors = {speaker: stats[speaker].vector.astype(np.float32) for speaker in sort_ids(stats)}
    write_archive(Path(folder) / "spk_f0", vectors)


def read_f0_stats(folder: StrPath) -> dict[str, F0Stats]:
    """Read the files of `write_f0_stats`; UserError where they are missing or something else."""
    path = Path(folder) / "spk_f0.scp"
    need_files([path], "make it with steps/compute_f0_stats.py")
    found = read_vectors(path)
    for speaker, vector in found.items():
        if len(vector) != 3 + len(QUANTILES):
            raise UserError(f"{path}: {speaker}: {len(vector)} values, not F0 statistics")
    return {speaker: F0Stats.of(vector) for speaker, vector in found.items()}
