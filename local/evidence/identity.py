"""Which recording a file holds: originals that were passed on, swapped names, copies, and people
who stand under two names."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from scipy.signal import correlate, csd, welch

from steps.audio import SAMPLE_RATE
from steps.standalone import account
from steps.standalone.job import Jobs, Tick, Versions, find_audio, plain, with_name
from steps.standalone.people import Scene, without
from steps.standalone.stream import Excerpt, Recording
from steps.standalone.times import TimeMap, table_of
from utils.arrays import Float32, Float64, Int64
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


def halves(recording: Recording, most: float, middle: int | None = None) -> tuple[Float64, Float64]:
    """Samples of the first and of the second half, of each at most so many seconds: the first and
    the last of the recording. middle: sample that parts them, if not that in the middle."""
    n, most = len(recording), round(most * SAMPLE_RATE)
    middle = n // 2 if middle is None else middle
    return recording.read(0, min(middle, most)), recording.read(max(middle, n - most), n)


@dataclass(frozen=True)
class Place:
    """Path of a file, and the samples from which on it counts, which may be below 0, and how many;
    None: all. clear: samples, of these, that do not count."""

    path: Path
    cut: tuple[int, int] | None = None
    clear: tuple[tuple[int, int], ...] = ()

    def open(self) -> Recording:
        """Open it; UserError for a file that cannot be read whole, or is empty."""
        whole = Recording.open(self.path)
        if self.cut is not None:
            whole = Excerpt.of(whole, [(self.cut[0], sum(self.cut))])
        if self.clear:
            whole = Excerpt.of(whole, without([(0, len(whole))], self.clear))
        return whole


def _read(place: Place) -> tuple[Float64, Float64]:
    with closing(place.open()) as recording:
        return halves(recording, SECONDS)


def contours(place: Place, _: Tick) -> Float32:
    """Contours (2, d) of loudness in the halves of a file, of mean 0 and length 1, or 0 where it
    does not move; UserError where it cannot be read."""
    found = np.zeros((2, _WIDTH), np.float32)
    for own, samples in zip(found, _read(place), strict=True):
        frames = samples[: len(samples) // FRAME * FRAME].reshape(-1, FRAME)
        if len(frames):
            loudness = np.log(np.var(frames, axis=1) + 1e-12)  # whatever the offset
            loudness = np.maximum(loudness, np.quantile(loudness, _PAUSES))
            if np.ptp(loudness) > _FLAT:
                own[: len(frames)] = loudness - loudness.mean()
                own /= np.linalg.norm(own)
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


def coherences(one: Place, other: Place, _: Tick) -> tuple[float, ...]:
    """Coherence of each half of two files, 0 to 1, whatever their levels, signs, filters, and lag
    of at most 0.2 s; also where the second file has ends that count no longer, as an original has
    that was passed on. UserError where one cannot be read."""
    whole = replace(other, cut=None)
    found = [map(_coherence, _read(one), _read(own)) for own in {other, whole}]
    return tuple(map(max, zip(*found, strict=True)))


def _coherence(a: Float64, b: Float64) -> float:
    most = round(_SHIFT * SAMPLE_RATE)
    if min(len(a), len(b)) < most + _WINDOW or not (a.any() and b.any()):
        return 0.0
    a, b = a - a.mean(), b - b.mean()
    near = correlate(b, a, method="fft")[len(a) - 1 - most : len(a) + most]
    lag = int(np.abs(near).argmax()) - most
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


WRONG = {
    "original": ("is the original {}, unprotected", "protect anew what became {}"),
    "swapped": ("is a protected version of {}", "put right the names of {}"),
    "strange": ("is a version of none of the recordings", "find out what {} is of"),
    "changed": ("was changed after it was made", "find out what changed {}"),
}
"""Possible faults of a file of OUT: in words, and what to do."""


@dataclass(frozen=True)
class Identity:
    """Contents of files of IN, `source`, and OUT, by paths relative to their folders, as far as
    `identify` found out. watch: wraps calls of jobs, to show progress.

    whose: recording that each file of OUT is a version of, but for those of none, where others are
    of theirs; wrong: files of OUT that are not what their names say, of `WRONG`; coherence: of
    those that hold an original with it. copies: files of IN, and the earlier one that is the same
    recording. cuts: see `Place`, of recordings whose version has other ends; times: by name, of
    versions whose loudness follows no recording's, as they say it in another time. clear: samples
    of recordings, and of their versions, in which people speak who were kept as they are. unread:
    why files could not be compared, by whole path; left_out: why recordings are not attacked.
    """

    jobs: Jobs
    source: Path
    out: Path
    watch: Callable[[Sequence[Any]], Iterable[Any]]
    whose: dict[Path, Path] = field(default_factory=dict)
    wrong: dict[Path, str] = field(default_factory=dict)
    coherence: dict[Path, float] = field(default_factory=dict)
    copies: dict[Path, Path] = field(default_factory=dict)
    cuts: Mapping[Path, tuple[int, int]] = field(default_factory=dict)
    times: dict[Path, TimeMap] = field(default_factory=dict)
    clear: dict[Path, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    unread: dict[Path, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, jobs: Jobs, source: Path, out: Path, versions: Versions,
        watch: Callable[[Sequence[Any]], Iterable[Any]], *, one_end: bool, moves: bool,
        scenes: Mapping[Path, Scene] = MappingProxyType({}),
    ) -> "Identity":  # fmt: skip
        """Compare all files. one_end: all versions have the same ends; moves: they say words in
        another time; scenes: what is said of recordings."""
        cuts = account.cuts(out) if one_end else {}  # recordings are compared second by second
        held = cls(jobs, source, out, watch, cuts={
            source / path: (round(-SAMPLE_RATE * own[0]), round(SAMPLE_RATE * own[1]))
            for path in versions.names if (own := cuts.get(plain(path)))
        })  # fmt: skip
        for version in versions.names.values() if moves else ():
            try:
                held.times[version] = TimeMap.read(table_of(account.beside(out, "times"), version))
            except UserError as error:
                held.unread[out / version] = str(error)
        for path, scene in scenes.items():
            first = held.cuts.get(source / path, (0,))[0]
            held.clear[path] = tuple(
                (max(0, round(a * SAMPLE_RATE) - first), round(b * SAMPLE_RATE) - first)
                for a, b in scene.clear(None)
            )
        held.identify(versions.names)
        return held

    def are(self, kind: str) -> list[str]:
        """Names of files with which this is wrong."""
        return sorted(plain(name) for name, own in self.wrong.items() if own == kind)

    def open(self, path: Path) -> Recording:
        """Open a recording, by its whole path, as long as its version; errors as `Recording`'s."""
        return Place(path, self.cuts.get(path)).open()

    @property
    def notes(self) -> list[str]:
        """Sentences on files of OUT that do not hold what their names say."""
        return [
            f"{plain(name)}: {WRONG[kind][0].format(plain(self.whose.get(name, '')))}"
            for name, kind in sorted(self.wrong.items())
        ]

    def identify(self, made: Mapping[Path, Path]) -> None:
        """Compare all files. made: name in OUT of each recording's protected version, which need
        not be there."""
        self.whose.update(
            {name: path for path, name in made.items() if (self.out / name).is_file()}
        )
        every = [*self.whose]
        with suppress(UserError):  # nothing but these
            every += find_audio(self.out, self.source, made=True)[0]
        before, after = (
            self._run(contours, [folder], {(name,) for name in names})
            for folder, names in ((self.source, made), (self.out, every))
        )
        if not (before and after):
            return
        recordings, files = ([name for (name,) in own] for own in (before, after))
        originals, versions = (np.stack([*own.values()]) for own in (before, after))
        place = {path: n for n, path in enumerate(recordings)}
        own = np.array([place.get(self.whose.get(name, Path()), -1) for name in files])
        alike = correlations(versions, originals)
        if self.cuts:  # for originals that were passed on
            wholes = self._run(contours, [self.source], {(name,) for name in recordings}, cut=False)
            alike = np.maximum(alike, correlations(versions, np.stack([*wholes.values()])))
        likely = _likely(alike) | {(i, n) for i, n in enumerate(own.tolist()) if n >= 0}
        near = self._run(
            coherences, [self.out, self.source], {(files[i], recordings[j]) for i, j in likely}
        )
        if again := {(name, path) for (name, path), found in near.items()
                     if self.clear.get(path) and max(found) >= SAME}:  # fmt: skip
            near |= self._run(coherences, [self.out, self.source], again, kept=True)
        # The likeliest original of a file comes last.
        for (name, path), found in sorted(near.items(), key=lambda one: max(one[1])):
            if max(found) >= SAME:
                self.wrong[name], self.whose[name] = "original", path
                self.coherence[name] = max(found)
        self._find_swapped(files, recordings, alike.mean(axis=0), own)
        self.wrong.update({name: "strange" for name in every if name not in self.whose})
        pairs = _likely(correlations(originals, originals))
        calls = {(recordings[max(i, j)], recordings[min(i, j)]) for i, j in pairs if i != j}
        for (copy, first), found in self._run(coherences, 2 * [self.source], calls).items():
            if min(found) >= SAME:
                self.copies.setdefault(copy, first)

    def _find_swapped(
        self, files: Sequence[Path], recordings: Sequence[Path], alike: Float32, own: Int64
    ) -> None:
        """Find files whose contour is another recording's, or of none while most are of their own,
        also those whose names are of none. alike: (n_files, n_recordings); own: (n_files,) number
        of the recording, -1 for none."""
        rows = np.flatnonzero([name not in self.times for name in files])
        mine, there = alike[rows, own[rows]], own[rows] >= 0
        kept = there.any() and np.median(mine[there]) >= ALIKE
        if len(recordings) > 1:  # a renamed version is like one recording, and like no other
            mine[~there] = np.partition(alike[rows[~there]], -2)[:, -2]
        for i, correlation in zip(rows.tolist(), mine.tolist(), strict=True):
            name, best = files[i], int(alike[i].argmax())
            if name in self.wrong or not correlation:
                continue
            if alike[i, best] >= max(ALIKE, correlation + APART):
                self.wrong[name], self.whose[name] = "swapped", recordings[best]
            elif kept and correlation < NONE:
                self.whose.pop(name, None)

    def _run(
        self,
        function: Callable[..., T],
        folders: Sequence[Path],
        calls: Set[tuple[Path, ...]],
        *,
        cut: bool = True,
        kept: bool = False,
    ) -> dict[tuple[Path, ...], T]:
        """Results of calls with names of files in these folders, in C order, without those whose
        files cannot be read. cut: whether `cuts` count; kept: whether `clear` of the last file."""
        order, found = sorted(calls), dict[tuple[Path, ...], T]()
        paths = [tuple(map(Path.joinpath, folders, call)) for call in order]
        cuts = self.cuts if cut else {}
        clear = [self.clear[call[-1]] if kept else () for call in order]
        places = [tuple(Place(path, cuts.get(path), some) for path in own)
                  for own, some in zip(paths, clear, strict=True)]  # fmt: skip
        for _, (n, own) in zip(self.watch(order), self.jobs.run(function, places), strict=True):
            if isinstance(own, UserError):
                self.unread.update({path: with_name(path, own) for path in paths[n]})
            else:
                found[order[n]] = own
        return dict(sorted(found.items()))


def _likely(alike: Float32) -> set[tuple[int, int]]:
    """Pairs of rows and columns that are near in a half: those that are worth a comparison."""
    found = set[tuple[int, int]]()
    for half in alike:
        n = min(_NEAREST + 1, half.shape[1])  # one may be itself
        near = np.argpartition(-half, n - 1, axis=1)[:, :n]
        rows, places = np.nonzero(np.take_along_axis(half, near, axis=1) >= _PERHAPS)
        found.update(zip(rows.tolist(), near[rows, places].tolist(), strict=True))
    return found
