"""Files of a folder, protected by an anonymiser: pitch, level, form and name of what is written."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import soundfile

from steps.anonymisers.registry import Anonymiser
from steps.audio import SAMPLE_RATE
from steps.sources import SourceSpeaker, VoiceKey
from steps.standalone.job import Jobs, Tick, made_name, plain
from steps.standalone.stream import Recording, convert_stream
from steps.synthesis.f0 import F0Stats, compute_f0_stats
from utils.arrays import Float64
from utils.audiofile import Sink, audio_format, renumber_ogg
from utils.cli import UserError, refusing
from utils.tables import replacing

# ---- Protection of a folder's files by an anonymiser; data on the speaker come from the files.

# The speaker's pitch is measured in so many stretches, spread over their files.
_STRETCHES, _SECONDS = 12, 5.0
_FEWEST = 100  # frames of 10 ms with voice: without any, a system leaves the speaker's own pitch
MARK = "Synthetic speech: its voice was made by pseudovox"  # in the files, where they can hold it
SILENT = 1e-3  # of full scale, which a silent file does not reach
_SERIAL = b"pvox"  # number of an Ogg stream, which libsndfile draws


@dataclass(frozen=True)
class Work:
    """Making of files. channels: mixed down, or each by itself with one pseudo-speaker. names:
    those that were drawn; other files keep theirs."""

    source: Path
    out: Path
    anonymiser: Anonymiser
    channels: str = "mix"
    names: Mapping[Path, Path] = field(default_factory=dict)

    def target(self, path: Path) -> Path:
        """Path of what a file becomes."""
        return self.out / self.names.get(path, made_name(path))

    def made_of(self, recording: Recording) -> Sequence[int | None]:
        """Channels that are protected, each by itself; None: a mix of all."""
        n = recording.audio.channels
        return range(n) if self.channels == "each" and n > 1 else [None]

    def notes(self, recording: Recording) -> list[str]:
        """Remarks on the mix, where it is what is made."""
        return recording.notes if None in self.made_of(recording) else []

    def protect(
        self,
        name: str,
        path: Path,
        recording: Recording,
        f0: Mapping[int | None, F0Stats],
        tick: Tick,
    ) -> list[str]:
        """Make a file with the voice of a pseudo-speaker's name; returns remarks on it. f0: pitch
        by channel, which may be another person's. tick: called with the seconds that are done.
        UserError for a file that cannot be protected."""
        key = VoiceKey("spk", ("folder", name), ("folder", name))

        def convert(channel: int | None, samples: Float64) -> Float64:
            return self.anonymiser.transform(samples, key, SourceSpeaker(name, f0=f0[channel]))[0]

        wanted, keeps = self.made_of(recording), self.anonymiser.keeps_length
        if len(wanted) > 1 and not keeps:
            raise UserError(
                f"{recording.path}: its channels would be of different lengths; take --channels mix"
            )
        streams = [
            convert_stream(recording.blocks(channel), partial(convert, channel), keeps_length=keeps)
            for channel in wanted
        ]
        target = self.target(path)
        form = audio_format(target)
        assert form is not None
        # 16 bit where the format has it, else the codec of the source, such as Opus.
        known = soundfile.available_subtypes(form)
        kinds = [kind for kind in ("PCM_16", recording.audio.subtype) if kind in known]
        about, peak = ("w", SAMPLE_RATE, len(streams), kinds[0] if kinds else None), 0.0
        with (
            refusing(f"{target}: cannot be written: {{}}", soundfile.LibsndfileError, OSError),
            closing(recording),
            _unseen(target) as place,
            Sink(place, "r+", closefd=False) as sink,
            soundfile.SoundFile(sink, *about, format=form) as audio,
        ):
            with suppress(soundfile.LibsndfileError):  # a format that holds none
                audio.comment = MARK
            for parts in zip(*streams, strict=True):
                peak = max(peak, *(np.abs(part).max(initial=0.0) for part in parts))
                audio.write(np.stack(parts, axis=1))
                sink.check()
                tick(len(parts[0]) / SAMPLE_RATE)
            audio.close()
            sink.check()
            if form == "OGG":
                renumber_ogg(place, _SERIAL)
        return [*self.notes(recording), *_remarks(path, recording, peak, path in self.names)]


def _remarks(path: Path, recording: Recording, peak: float, renamed: bool) -> list[str]:
    told = {
        "its tags (title, artist, comment ...) were dropped": recording.audio.tagged,
        f"it became {made_name(path).name}": not renamed and made_name(path) != path,
        "it is silent: is it the right file?": peak < SILENT,
    }
    return [plain(remark) for remark, holds in told.items() if holds]


@contextmanager
def _unseen(target: Path) -> Iterator[int]:
    """Open a file without a name, which becomes the target on success: a run that is killed leaves
    nothing. Where the file system has none, it has a name beside the target."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        place = os.open(target.parent, os.O_TMPFILE | os.O_RDWR, 0o666)
    except OSError:
        with replacing(target) as beside, beside.open("w+b") as stream:
            yield stream.fileno()
        return
    try:
        yield place
        with replacing(target) as beside:
            os.link(f"/proc/self/fd/{place}", beside, src_dir_fd=place)  # which follows the link
    finally:
        os.close(place)


def learn_f0(recordings: Sequence[Recording], channel: int | None = None) -> F0Stats:
    """Pitch of the speaker in a channel of the recordings, or in the mix: from stretches spread
    evenly over them, or from all of them where these hold less than a second of voice. Those that
    cannot be read do not count."""
    total, begins = sum(recording.seconds for recording in recordings), 0.0
    n = max(1, min(_STRETCHES, int(total / _SECONDS)))
    places = [(i + 0.5) * total / n - _SECONDS / 2 for i in range(n)]
    contours = list[Float64]()
    for recording in recordings:
        parts = _stretches(recording, [at - begins for at in places], channel)
        contours += _contours(recording, parts)
        begins += recording.seconds
    if (found := compute_f0_stats(contours)).n >= _FEWEST:
        return found
    return compute_f0_stats([x for own in recordings for x in _contours(own, own.blocks(channel))])


def _stretches(
    recording: Recording, places: Iterable[float], channel: int | None
) -> Iterator[Float64]:
    """Yield stretches that begin at these seconds, in order: the file is gone through once."""
    for place in places:
        if -_SECONDS < place < recording.seconds:
            start = max(0, int(place * SAMPLE_RATE))
            stop = min(len(recording), start + round(_SECONDS * SAMPLE_RATE))
            yield recording.read(start, stop, channel)


def _contours(recording: Recording, parts: Iterable[Float64]) -> list[Float64]:
    """F0 of parts of a recording; none where one cannot be read, which is found again."""
    from steps.synthesis.world import extract_f0

    with closing(recording), suppress(UserError):
        return [extract_f0(part) if part.any() else np.zeros(1) for part in parts]
    return []


def open_all(jobs: Jobs, source: Path, files: Sequence[Path]) -> dict[Path, Recording | UserError]:
    """Recordings of a folder, or what is wrong with each."""
    found = jobs.run(lambda path, _: Recording.open(path), [(source / path,) for path in files])
    return {files[n]: result for n, result in found}


def protect_all(
    jobs: Jobs,
    work: Work,
    todo: Sequence[tuple[str, Sequence[Path]]],
    groups: Mapping[str, Sequence[Path]],
    opened: Mapping[Path, Recording | UserError],
    done: Callable[[Path, list[str]], None],
) -> dict[Path, str]:
    """Make files of groups that share a pseudo-speaker; returns the failed ones, with reasons, of
    which no earlier version stays.

    groups: all files of each, whose pitch counts: a run that goes on makes what one run would.
    done: called with each complete file, and remarks on it.
    """
    good = {path: found for path, found in opened.items() if isinstance(found, Recording)}
    wanted = [(n, name, path) for n, (name, files) in enumerate(todo) for path in files]
    failed = {path: str(opened[path]) for *_, path in wanted if path not in good}
    heard = list[tuple[list[Recording], int | None]]()
    numbers = [dict[int | None, int]() for _ in todo]  # of a group's channels in `heard`
    for (name, _), own in zip(todo, numbers, strict=True):
        for recording in (good[path] for path in groups[name] if path in good):
            for channel in work.made_of(recording):
                if channel not in own:
                    own[channel] = len(heard)
                    heard.append(([], channel))
                heard[own[channel]][0].append(recording)
    pitch = dict(jobs.run(_learn, heard))
    learnt = [{channel: pitch[i] for channel, i in own.items()} for own in numbers]
    calls = [(name, path, good[path], learnt[n]) for n, name, path in wanted if path in good]
    # So that no long file is begun last, where lengths are known; drawn names tell no order.
    keeps = work.anonymiser.keeps_length
    calls.sort(key=lambda call: (-call[2].seconds * keeps, work.target(call[1])))
    for n, result in jobs.run(work.protect, calls):
        path = calls[n][1]
        if isinstance(result, UserError):
            failed[path] = str(result)
        else:
            done(path, result)
    for target in filter(os.path.lexists, map(work.target, failed)):
        with suppress(IsADirectoryError):  # which was why
            target.unlink()
    return failed


def _learn(recordings: Sequence[Recording], channel: int | None, _: Tick) -> F0Stats:
    return learn_f0(recordings, channel)
