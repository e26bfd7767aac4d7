"""Which recording a file holds: originals that were passed on, swapped names, copies, and people
who stand under two names."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from scipy.signal import csd, welch

from steps.audio import SAMPLE_RATE
from steps.standalone.job import Jobs, Tick, find_audio
from steps.standalone.stream import Recording
from utils.arrays import Float32, Float64
from utils.cli import UserError

# ---- Contours of loudness, 25 ms a step, which protection keeps as long as it keeps the time. They
# find what may be the same recording, at the cost of a few products of matrices.

SECONDS = 10.0  # of each half that are compared
FRAME = SAMPLE_RATE // 40
_WIDTH = round(SECONDS * SAMPLE_RATE) // FRAME
_SHIFT = 0.2  # seconds, by which one may lag behind the other
_PAUSES = 0.1  # of the frames, which are as loud as their loudest: digital silence says nothing
_FLAT = 1e-3  # range of the logarithm of power, below which it is rounding
ALIKE = 0.7  # correlation of two versions of a recording
APART = 0.15  # by which another's correlation must exceed the own one's
NONE = 0.4  # correlation below which a file is no version of a recording, where most are
_PERHAPS = 0.6  # correlation below which waveforms are not compared
_NEAREST = 2  # recordings whose waveforms are compared with each half

# ---- Waveforms: the share of the power of one that a fixed filter makes of the other.

SAME = 0.93  # coherence from which on a half holds the original (docs/evidence.md has figures)
_BAND = 100.0, 3400.0  # Hz, which telephones pass
_WINDOW = 512  # samples


def halves(recording: Recording, most: float) -> tuple[Float64, Float64]:
    """Samples of the first and of the second half, of each at most so many seconds: the first and
    the last of the recording."""
    n, most = len(recording), round(most * SAMPLE_RATE)
    first = recording.read(0, min(n // 2, most))
    return first, recording.read(max(n // 2, n - most), n)


def contours(path: Path, _: Tick) -> Float32:
    """Contours (2, d) of loudness in the halves of a file, of mean 0 and length 1, or 0 where it
    does not move; UserError where it cannot be read."""
    recording = Recording.open(path)
    found = np.zeros((2, _WIDTH), np.float32)
    for own, samples in zip(found, halves(recording, SECONDS), strict=True):
        frames = samples[: len(samples) // FRAME * FRAME].reshape(-1, FRAME)
        if len(frames):
            loudness = np.log(np.mean(frames**2, axis=1) + 1e-12)
            loudness = np.maximum(loudness, np.quantile(loudness, _PAUSES))
            if np.ptp(loudness) > _FLAT:
                own[: len(frames)] = loudness - loudness.mean()
                own /= np.linalg.norm(own)
    recording.close()
    return found


def correlations(one: Float32, other: Float32) -> Float32:
    """Correlations (2, n, m) of the halves of n and m recordings, whose contours are (n, 2, d) and
    (m, 2, d): the highest over all lags."""
    most = round(_SHIFT * SAMPLE_RATE / FRAME)
    a, b = one.swapaxes(0, 1), other.transpose(1, 2, 0)
    found = a @ b
    for lag in (lag for lag in range(-most, most + 1) if lag):
        np.maximum(found, a @ np.roll(b, lag, axis=1), out=found)
    return found


def coherences(one: Path, other: Path, _: Tick) -> tuple[float, ...]:
    """Coherence of each half of two files, 0 to 1, whatever their levels, signs, filters, and lag
    of at most 0.2 s. UserError where one cannot be read."""
    read = [Recording.open(path) for path in (one, other)]
    sides = zip(*(halves(recording, SECONDS) for recording in read), strict=True)
    found = tuple(_coherence(a, b) for a, b in sides)
    for recording in read:
        recording.close()
    return found


def _coherence(a: Float64, b: Float64) -> float:
    most = round(_SHIFT * SAMPLE_RATE)
    if min(len(a), len(b)) < most + _WINDOW or not (a.any() and b.any()):
        return 0.0
    size = 1 << (len(a) + len(b)).bit_length()
    product = np.fft.irfft(np.conj(np.fft.rfft(a, size)) * np.fft.rfft(b, size), size)
    lag = int(np.abs(np.concatenate((product[-most:], product[: most + 1]))).argmax()) - most
    a, b = a[max(-lag, 0) :], b[max(lag, 0) :]
    n = min(len(a), len(b))
    about = {"fs": SAMPLE_RATE, "nperseg": _WINDOW}
    hertz, cross = csd(a[:n], b[:n], **about)
    power = welch(a[:n], **about)[1] * welch(b[:n], **about)[1]
    band = (hertz >= _BAND[0]) & (hertz <= _BAND[1]) & (power > 0.0)
    weight = power[band] ** 0.25  # so that weak bands count, where McAdams moves formants
    share = np.abs(cross[band]) ** 2 / power[band]
    return float((share * weight).sum() / max(weight.sum(), 1e-30))


# ---- Files of IN and of OUT, each compared with all of IN.

T = TypeVar("T")


@dataclass(frozen=True)
class Identity:
    """What files hold, by paths relative to their folders.

    whose: recording that each file of OUT is a version of; strange: files of OUT that are versions
    of none, while others are of theirs. originals: files of OUT that hold an original, and their
    coherence with it; copies: files of IN, and the earlier one that is the same recording.
    """

    whose: dict[Path, Path]
    originals: dict[Path, float] = field(default_factory=dict)
    swapped: list[Path] = field(default_factory=list)
    strange: list[Path] = field(default_factory=list)
    copies: dict[Path, Path] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """Jobs on files of two folders. watch: wraps calls, to show progress."""

    jobs: Jobs
    source: Path
    out: Path
    watch: Callable[[Sequence[Any]], Iterable[Any]]

    def identify(self, made: Mapping[Path, Path]) -> Identity:
        """Find out what the files of a folder and of its protected version hold. made: name in OUT
        of each recording's protected version, which need not be there."""
        whose = {name: path for path, name in made.items() if (self.out / name).is_file()}
        every = list(whose)
        with suppress(UserError):  # nothing but these
            every += [name for name in find_audio(self.out, self.source)[0] if name not in whose]
        found = Identity(whose)
        before, after = self._contours(self.source, [*made]), self._contours(self.out, every)
        if not (before and after):
            return found
        recordings, files = list(before), list(after)
        originals, versions = np.stack([*before.values()]), np.stack([*after.values()])
        place = {path: n for n, path in enumerate(recordings)}
        own = np.array([place.get(whose.get(name, Path()), -1) for name in files])
        alike = correlations(versions, originals)
        likely = _likely(alike) | {(i, n) for i, n in enumerate(own.tolist()) if n >= 0}
        calls = {(self.out / files[i], self.source / recordings[j]): (i, j) for i, j in likely}
        # The likeliest original of a file comes last.
        for call, halves_of in sorted(self._compare(calls), key=lambda one: max(one[1])):
            if max(halves_of) >= SAME:
                i, j = calls[call]
                found.originals[files[i]], whose[files[i]] = max(halves_of), recordings[j]
        _find_swapped(found, files, recordings, alike.mean(axis=0), own)
        near = {(max(pair), min(pair)) for pair in _likely(correlations(originals, originals))}
        calls = {(self.source / recordings[i], self.source / recordings[j]): (i, j)
                 for i, j in near if i != j}  # fmt: skip
        for call, halves_of in self._compare(calls):
            if min(halves_of) >= SAME:
                i, j = calls[call]
                found.copies.setdefault(recordings[i], recordings[j])
        return found

    def _contours(self, folder: Path, names: Sequence[Path]) -> dict[Path, Float32]:
        """Contours of the files of a folder that can be read, by name."""
        found = self._run(contours, [(folder / name,) for name in names])
        return {path.relative_to(folder): own for (path,), own in found.items()}

    def _compare(self, pairs: Iterable[tuple[Path, Path]]) -> Iterable[Any]:
        """Pairs of files in order, with the coherence of each half."""
        return self._run(coherences, sorted(pairs)).items()

    def _run(
        self, function: Callable[..., T], calls: Sequence[tuple[Path, ...]]
    ) -> dict[tuple[Path, ...], T]:
        """Results of calls, without those whose files cannot be read, in their order."""
        found = dict(
            own for _, own in zip(self.watch(calls), self.jobs.run(function, calls), strict=True)
        )
        return {
            call: own for n, call in enumerate(calls) if not isinstance(own := found[n], UserError)
        }


def _find_swapped(
    found: Identity, files: Sequence[Path], recordings: Sequence[Path], alike: Float32, own: Float64
) -> None:
    """Find files whose contour is another recording's, or of none while most are of their own.
    alike: (n_files, n_recordings); own: (n_files,) number of the recording, -1 for none."""
    rows = np.flatnonzero(own >= 0)
    mine = alike[rows, own[rows]]
    kept = len(rows) and np.median(mine) >= ALIKE
    for i, correlation in zip(rows.tolist(), mine.tolist(), strict=True):
        best = int(alike[i].argmax())
        if files[i] in found.originals or not correlation:
            continue
        if alike[i, best] >= ALIKE and alike[i, best] > correlation + APART:
            found.swapped.append(files[i])
            found.whose[files[i]] = recordings[best]
        elif kept and correlation < NONE:
            found.strange.append(files[i])
            del found.whose[files[i]]


def _likely(alike: Float32) -> set[tuple[int, int]]:
    """Pairs of rows and columns that are near in a half: those that are worth a comparison."""
    found = set[tuple[int, int]]()
    for half in alike:
        n = min(_NEAREST + 1, half.shape[1])  # one may be itself
        near = np.argpartition(-half, n - 1, axis=1)[:, :n]
        rows, places = np.nonzero(np.take_along_axis(half, near, axis=1) >= _PERHAPS)
        found.update(zip(rows.tolist(), near[rows, places].tolist(), strict=True))
    return found
