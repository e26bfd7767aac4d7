"""Files of a folder, protected by an anonymiser: pitch, level, format and name of the output."""

import math
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from pathlib import Path
from tempfile import SpooledTemporaryFile, TemporaryFile
from typing import Any, NamedTuple

import numpy as np
import soundfile

from steps.anonymisers.registry import (
    ENDS,
    WIDE,
    Anonymiser,
    AsItIs,
    OutputLevel,
    speech_of,
    with_ends,
)
from steps.audio import SAMPLE_RATE
from steps.sources import SourceSpeaker
from steps.standalone.hearing import count_people
from steps.standalone.job import (
    Jobs,
    Tick,
    digest_and_mark,
    made_name,
    plain,
    result_of,
    size_of,
    with_name,
)
from steps.standalone.people import (
    Part,
    Scene,
    Span,
    draw_voices,
    hidden,
    in_order,
    put,
    put_tones,
    tone_piece,
    voice_key,
    widened,
)
from steps.standalone.stream import (
    Excerpt,
    Levels,
    Loudness,
    Piece,
    Recording,
    convert_pieces,
    is_noise,
    joined,
    level_of_source,
    one_level,
    pieces,
)
from steps.standalone.times import TimeMap, laid_out, table_of
from steps.synthesis.base import TOLD_AS, WORDS
from steps.synthesis.f0 import F0Stats, compute_f0_stats
from utils.arrays import Float64
from utils.audiofile import AudioFile, Sink, audio_format, renumber_ogg
from utils.cli import UserError, clock_time, refusing
from utils.tables import replacing

# ---- Protection of a folder's files by an anonymiser; data on the speaker come from the files.

# The speaker's pitch is measured in so many stretches, spread over their files.
_STRETCHES, _SECONDS = 12, 5.0
_FEWEST = 100  # frames of 10 ms with voice: without any, a system leaves the speaker's own pitch
TAGGED, BECAME = "its tags (title, artist, comment ...) were dropped", "it became"
SILENCE = "it is silent: is it the right file?"
NOISE = "it is faint, steady noise, without speech: is it the right file?"
MARK = "Synthetic speech: its voice was made by pseudovox"  # in the files, where they can hold it
SILENT = 1e-3  # of full scale, which a silent file does not reach
_BLOCK = 2**18  # samples of a file that is put together
_HELD = 2**22  # bytes of a recording that memory holds
UNREAD = "{} of it could not be read anew, and keeps what was heard"  # but for the voice
SEVERAL = "about {} people are heard; TURNS=auto (--turns auto) gives each a voice"
FOREIGN = "its language is {}, and this system hears English: words of it may be lost"
_HEARD = 5  # blocks of a recording by which its language is told
_ADD_PEAK = 0x1050  # command of libsndfile: whether files of floats tell when they were made
_SERIAL = b"pvox"  # number of an Ogg stream, which libsndfile draws
_LOOKED_AT = 100  # files whose lengths tell of the others
_EACH = 0.005  # CPU seconds that a file takes, however short
Pitch = Mapping[int | None, F0Stats | None]  # of a person, by channel; None: it is not asked for
Faults = dict[Path, UserError]  # by file
CANCELS = "its channels cancel each other; channel {} is taken"


_Lane = tuple[Part, Sequence[Span], "_Pieces"]  # a part, its places, and what is said there


class _Pieces:
    """Converted pieces in a file without a name, until all are there and their level is known."""

    def __init__(self, folder: Path) -> None:
        self._file = SpooledTemporaryFile(_HELD, dir=os.fspath(folder))  # noqa: SIM115
        self._told, self.size, self.columns = list[tuple[Piece, int]](), 0, 0

    def add(self, piece: Piece) -> None:
        """Append one; size: samples of all, where none are shared; columns: channels of each."""
        n, self.columns = piece.samples.shape
        self.size += n
        self._file.write(piece.samples.tobytes())
        self._told.append((replace(piece, samples=np.zeros((0, 0))), n))

    def __iter__(self) -> Iterator[Piece]:
        self._file.seek(0)
        for piece, n in self._told:
            found = np.frombuffer(self._file.read(n * self.columns * 8))
            yield replace(piece, samples=found.reshape(n, self.columns))

    @property
    def levels(self) -> Levels:
        """Levels of each, before and after."""
        return [(piece.source, piece.made) for piece, _ in self._told]

    @property
    def words(self) -> Iterator[tuple[float, float, Sequence[Any]]]:
        """Seconds of each, before and after, and the times of its words, if any were told."""
        for piece, n in self._told:
            words = [word for info in piece.told for word in info.get(WORDS, ())]
            yield piece.given / SAMPLE_RATE, n / SAMPLE_RATE, words

    def close(self) -> None:
        """Remove the file of what was told."""
        self._file.close()


def level_of(
    levels: Levels, anonymiser: Anonymiser, level: str, noise: bool
) -> tuple[OutputLevel | AsItIs, Sequence[float]]:
    """Rule of a file's level, and gains of its pieces. level: see `Work`; of mere noise, without
    speech, it is that of the source."""
    if level == "source" or noise:
        return AsItIs(), [level_of_source(*both) for both in levels]
    return anonymiser.output, one_level(levels, anonymiser.raised)


class Made(NamedTuple):
    """Remarks on a file, and what the account tells of it: its `seconds`, the `seconds_<what>` that
    became of it (`base.TOLD`), and, where ends were changed, `seconds_later` that its speech begins
    than in the source, and `seconds_now` of its length. source, made: SHA-256 of the recording
    before it was read, and of the file. mark: that of the recording in the journal. voices: names
    of its pseudo-speakers."""

    remarks: list[str]
    told: dict[str, Any]
    source: str
    made: str
    mark: str
    voices: frozenset[str]


@dataclass(frozen=True)
class Work:
    """Settings for making files. channels: mixed down, or each by itself with one pseudo-speaker.
    level: one for all files, by the system's rule, or that of each piece's source. ends: of each
    file, as `Anonymiser.ends`. names: those that were drawn; other files keep theirs. times: folder
    for times of words (times.py), where the system tells them. salt: of marks. pitch: whether the
    system asks for that of the speaker. scenes: who speaks when, where that is known."""

    source: Path
    out: Path
    anonymiser: Anonymiser
    channels: str = "mix"
    level: str = "one"
    names: Mapping[Path, Path] = field(default_factory=dict)
    ends: str | None = None  # the system's
    times: Path | None = None
    salt: str = ""
    pitch: bool = True
    scenes: Mapping[Path, Scene] = field(default_factory=dict)

    def target(self, path: Path) -> Path:
        """Path of the protected file."""
        return self.out / self.names.get(path, made_name(path))

    def tables(self, path: Path) -> list[Path]:
        """Path of the file's times of words, if it gets any."""
        name = self.target(path).relative_to(self.out)
        return [table_of(self.times, name)] if self.times else []

    def made_of(self, recording: Recording) -> Sequence[int | None]:
        """Channels to protect, each by itself; None: a mix of all."""
        n = recording.audio.channels
        return range(n) if self.channels == "each" and n > 1 else [None]

    def open(self, path: Path) -> Recording:
        """Open a recording; see `Scene.open`."""
        return self.scenes.get(path, Scene()).open(self.source / path)

    def learn(self, recordings: Sequence[Recording], faults: Faults | None = None) -> Pitch:
        """Pitch of a person by channel, from all their recordings, where the system asks for it;
        see `learn_f0`."""
        heard = defaultdict[int | None, list[Recording]](list)
        for own in recordings:
            for channel in self.made_of(own):
                heard[channel].append(own)
        return {
            channel: learn_f0(own, channel, faults) if self.pitch else None
            for channel, own in heard.items()
        }

    def learn_shared(self, files: Sequence[Path], _: Tick) -> tuple[Pitch, Faults]:
        """Pitch of a person from all their files; and why, by path, some could not be heard."""
        faults, good = Faults(), list[Recording]()
        for path in files:
            if isinstance(found := result_of(self.open, path), Recording):
                good.append(found)
            else:
                faults[self.source / path] = found
        learnt = self.learn(good, faults)
        return learnt, {path.relative_to(self.source): why for path, why in faults.items()}

    def protect(self, name: str, path: Path, f0: Pitch | None, tick: Tick) -> Made:
        """Make a file with the voice of a pseudo-speaker's name. f0: pitch by channel; None: that
        of this recording. tick: called with the seconds that are done. UserError for a file that
        cannot be protected."""
        target, told = self.target(path), Counter[str]()
        source, mark = digest_and_mark(self.source / path, self.salt)
        scene, recording = self.scenes.get(path, Scene()), self.open(path)
        f0 = self.learn([recording]) if f0 is None else f0
        if self.anonymiser.words_alone and (language := self._foreign(recording)):
            raise UserError(
                f"{recording.path}: its language is {language}, and this system reads English "
                "alone; take another one, such as models/bn2"
            )
        with (
            refusing(f"{target}: cannot be written: {{}}", soundfile.LibsndfileError, OSError),
            closing(recording),
            _unseen(target) as place,
            closing(_Pieces(target.parent)) as made,
        ):
            # Turns alone may name people.
            voices = self._voices(name or path.as_posix(), recording, scene)
            for piece in self._convert(recording, scene, voices, f0, tick):
                made.add(piece)
                for info in piece.told:
                    told.update({x: s for x, s in info.items() if x in TOLD_AS})
            form, own = audio_format(target), recording.audio.subtype
            later, lasts, noise = self._write(place, form, own, made)
            for table in self.tables(path):
                times = TimeMap(laid_out(made.words))
                times.moved((later or 0) / SAMPLE_RATE, lasts / SAMPLE_RATE).write(table)
            language = self._foreign(recording) if told["seconds_unread"] else ""
        silent = max(source.peak for source, _ in made.levels) < SILENT
        named = (path if path in self.names else made_name(path)).name
        channels = self.made_of(recording)
        n = 0 if scene.turns else count_people(recording, channels)
        remarks = {
            CANCELS.format((recording.alone or 0) + 1):
                None in channels and recording.alone is not None,
            SILENCE: silent, NOISE: noise and not silent, TAGGED: recording.audio.tagged,
            plain(f"{BECAME} {named}"): named != path.name,
            UNREAD.format("some"): told["seconds_unread"],  # how much may be hidden
            FOREIGN.format(language): language, SEVERAL.format(n): n > 1,
        }  # fmt: skip
        found: dict[str, Any] = {"seconds": round(recording.seconds, 2)}
        found |= scene.told(each=self.channels == "each")
        found |= {what: round(float(seconds), 2) for what, seconds in told.items()}
        if later is not None and self.anonymiser.keeps_length:
            found["seconds_later"] = round(later / SAMPLE_RATE, 3)
            found["seconds_now"] = round(lasts / SAMPLE_RATE, 3)
        said = [remark for remark, holds in remarks.items() if holds]
        names = frozenset(filter(None, voices.values()))
        return Made(said, found, source, digest_and_mark(target)[0], mark, names)

    def _foreign(self, recording: Recording) -> str:
        """Language of a recording that is surely not English; see `foreign`."""
        from steps.asr.engines import foreign

        begin = [*islice(recording.blocks(), _HEARD)]
        return foreign(str(recording.path), np.concatenate(begin)) if begin else ""

    def _voices(self, name: str, recording: Recording, scene: Scene) -> dict[Part, str | None]:
        """Parts of a recording, and names of their voices, of which each person of each channel has
        one; None: in the clear. name: of whoever has none."""
        wanted = self.made_of(recording)
        names = [f"{name}\n\n{n}" for n in range(len(wanted))] if len(wanted) > 1 else [name]
        known = scene.voices if len(names) > 1 else {}  # in another channel
        drawn = draw_voices(self.anonymiser, [[*known, *names]], known)
        return {
            part: None if part.person is None else scene.voices.get(part.person) or drawn[name]
            for channel, name in zip(wanted, names, strict=True)
            for part in scene.parts(recording, channel)
        }

    def _convert(
        self,
        recording: Recording,
        scene: Scene,
        voices: Mapping[Part, str | None],
        f0: Pitch,
        tick: Tick,
    ) -> Iterator[Piece]:
        """Yield pieces of a recording. voices: see `_voices`."""
        keeps, n, parts = self.anonymiser.keeps_length, len(recording), [*voices]
        columns = 1 + parts[-1].column

        @cache
        def pitch(part: Part) -> F0Stats | None:
            if not part.person:
                return f0[part.channel]
            whole = [Excerpt.of(recording, part.stretches)]
            return learn_f0(whole, part.channel) if self.pitch else None

        def say(part: Part, stretches: Sequence[Span]) -> Iterator[Piece]:
            with closing(Excerpt.of(recording, stretches)) as own:
                blocks, voice = own.blocks(part.channel), voices[part]
                found = (
                    convert_pieces(blocks, lambda x: (x, {}), keeps_length=keeps)
                    if voice is None
                    else convert_all(self.anonymiser, voice, blocks, pitch(part))
                )
                for piece in found:
                    tick((len(piece.samples) - piece.after) / SAMPLE_RATE / columns)
                    yield piece

        def one_after_another(column: int) -> Iterator[Piece]:
            own = (part for part in parts if part.column == column)
            for span, part in in_order(own, hidden(scene.spans, n)):
                if part is None:
                    yield tone_piece(span[1] - span[0], scene.by)
                else:
                    yield from say(part, [span])

        if keeps and len(parts) == 1 and not scene.spans:
            yield from say(parts[0], parts[0].stretches)
        elif keeps:
            places = [widened(part.stretches, n) for part in parts]
            lanes = zip(parts, places, map(say, parts, places), strict=True)
            yield from self._in_place(lanes, columns, scene, recording)
        elif columns == 1:
            yield from one_after_another(0)
        else:
            one_each = {part.column: part for part in parts}.values()
            whole = ((part, (), one_after_another(part.column)) for part in one_each)
            yield from self._in_place(whole, columns, scene, recording)

    def _in_place(
        self,
        lanes: Iterable[tuple[Part, Sequence[Span], Iterator[Piece]]],
        columns: int,
        scene: Scene,
        recording: Recording,
    ) -> Iterator[Piece]:
        """Yield blocks of a recording whose parts are said each as one recording, and put back at
        their places, at the levels of the whole file. lanes: parts, their places, and what is said
        there; without places, a part is a whole channel, whose length is its own."""
        folder = self.target(recording.path.relative_to(self.source)).parent
        told, whole, made = list[Mapping[str, Any]](), False, list[_Lane]()
        with ExitStack() as stack:
            for part, places, said in lanes:
                held = stack.enter_context(closing(_Pieces(folder)))
                for piece in said:
                    held.add(piece)
                    told += piece.told
                made.append((part, places or [(0, held.size)], held))
                whole = not places
            n = max(held.size for _, _, held in made) if whole else len(recording)
            levels = [level for _, _, held in made for level in held.levels]
            gains = iter(level_of(levels, self.anonymiser, self.level, is_noise(levels))[1])
            file = stack.enter_context(TemporaryFile(dir=folder))
            os.posix_fallocate(file.fileno(), 0, 8 * n * columns)  # a full disk would kill us later
            placed = np.memmap(file, np.float64, "w+", shape=(n, columns))
            for part, places, held in made:
                given = [next(gains) for _ in held.levels]
                if part.person is None and not whole:
                    given = [min(given)] * len(given)  # as it was, but for the level
                put(placed[:, part.column], places, joined(held, given))
            if not whole:  # else they are among the pieces
                put_tones(placed, hidden(scene.spans, n), scene.by)
            # At levels of its own, so that nothing more is changed.
            same = Loudness.of_all([source for source, _ in levels])
            for at in range(0, n, _BLOCK):
                block = np.array(placed[at : at + _BLOCK])
                yield Piece(block, 0, 0, same, same, told=() if at else told)

    def _write(
        self, place: int, form: str | None, own: str, made: _Pieces
    ) -> tuple[int | None, int, bool]:
        """Write pieces to an open file; returns the samples by which speech begins later than
        before, where that was changed, those written, and whether there is no speech in it, but
        noise. own: kind of the source's samples."""
        ends = self.ends or self.anonymiser.ends
        done = finish(made, made.levels, self.anonymiser, self.level, ends)
        # The source's kind where it has more than 16 bit, else these; else its codec, such as Opus.
        known = soundfile.available_subtypes(form)
        kinds = [*({own} & WIDE.keys()), "PCM_16", own]
        kind = next((kind for kind in kinds if kind in known), None)
        about = ("w", SAMPLE_RATE, made.columns, kind)
        with (
            Sink(place, "r+", closefd=False) as sink,
            soundfile.SoundFile(sink, *about, format=form) as audio,
        ):
            with suppress(soundfile.LibsndfileError):  # a format that holds none
                audio.comment = MARK
            if form != "RF64":  # which has none, unless it is told to have none
                soundfile._snd.sf_command(audio._file, _ADD_PEAK, soundfile._ffi.NULL, 0)
            lasts = 0
            for part in done.parts:
                audio.write(done.rule.written(part, done.largest, kind or ""))
                sink.check()
                lasts += len(part)
            audio.close()
            sink.check()
            if form == "OGG":
                renumber_ogg(place, _SERIAL)
        os.fsync(place)  # before it has its name, so that not even a power cut leaves half of it
        return done.later, lasts, done.noise


def convert_all(
    anonymiser: Anonymiser, name: str, blocks: Iterable[Float64], f0: F0Stats | None
) -> Iterator[Piece]:
    """Yield converted pieces of a signal in blocks (n,), with the voice of a pseudo-speaker's
    name. f0: pitch of the speaker."""
    key, source = voice_key(name), SourceSpeaker(name, f0=f0)
    if anonymiser.words_alone:
        texts = (anonymiser.hear(stretch) for stretch, _ in pieces(blocks, context=0))
        yield from map(Piece.of, anonymiser.say(" ".join(filter(None, texts)), key, source))
        return
    yield from convert_pieces(
        blocks, lambda samples: anonymiser.transform(samples, key, source),
        keeps_length=anonymiser.keeps_length, context=anonymiser.context,
    )  # fmt: skip


class Finished(NamedTuple):
    """Signal of pieces in parts, the rule of its level, its largest sample, the samples by which
    its speech begins later than before, where that was changed, and whether it is mere noise."""

    parts: Iterator[Float64]
    rule: OutputLevel | AsItIs
    largest: float
    later: int | None
    noise: bool


def finish(
    made: Iterable[Piece], levels: Levels, anonymiser: Anonymiser, level: str, ends: str
) -> Finished:
    """Join pieces, which are gone through several times. level, ends: see `Work`; where there is no
    speech, they stay."""
    noise = is_noise(levels)
    rule, gains = level_of(levels, anonymiser, level, noise)
    largest = max(float(np.abs(part).max(initial=0.0)) for part in joined(made, gains))
    wanted = ends == "one" and largest and not noise
    speech = speech_of(joined(made, gains), largest) if wanted else None
    parts = joined(made, gains)
    if speech:
        return Finished(with_ends(parts, speech), rule, largest, ENDS - speech[0], noise)
    return Finished(parts, rule, largest, None, noise)


def protect_samples(
    samples: Float64, name: str, anonymiser: Anonymiser, level: str = "one", ends: str = "keep"
) -> Float64:
    """Samples of a recording (n,) as `Work` makes them, with the voice of a pseudo-speaker's name.
    level, ends: see `Work`."""
    from steps.synthesis.world import extract_f0

    f0 = compute_f0_stats([extract_f0(samples)])
    made = [*convert_all(anonymiser, name, [samples], f0)]
    levels = [(piece.source, piece.made) for piece in made]
    done = finish(made, levels, anonymiser, level, ends)
    return done.rule.written(np.concatenate([*done.parts])[:, 0], done.largest, "FLOAT")


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


def learn_f0(
    recordings: Sequence[Recording], channel: int | None = None, faults: Faults | None = None
) -> F0Stats:
    """Pitch of the speaker in a channel of the recordings, or in the mix: from stretches spread
    evenly over them, or from all of them where these hold less than a second of voice. Recordings
    that cannot be read do not count: faults gets the reasons by path; without it, UserError."""
    total, begins = sum(recording.seconds for recording in recordings), 0.0
    n = max(1, min(_STRETCHES, int(total / _SECONDS)))
    places = [(i + 0.5) * total / n - _SECONDS / 2 for i in range(n)]
    contours = list[Float64]()
    for recording in recordings:
        parts = _stretches(recording, [at - begins for at in places], channel)
        contours += _contours(recording, parts, faults)
        begins += recording.seconds
    if (found := compute_f0_stats(contours)).n >= _FEWEST:
        return found
    return compute_f0_stats(
        [x for own in recordings for x in _contours(own, own.blocks(channel), faults)]
    )


def _stretches(
    recording: Recording, places: Iterable[float], channel: int | None
) -> Iterator[Float64]:
    """Yield stretches that begin at these seconds, in order: the file is gone through once."""
    for place in places:
        if -_SECONDS < place < recording.seconds:
            start = max(0, int(place * SAMPLE_RATE))
            stop = min(len(recording), start + round(_SECONDS * SAMPLE_RATE))
            yield recording.read(start, stop, channel)


def _contours(
    recording: Recording, parts: Iterable[Float64], faults: Faults | None
) -> list[Float64]:
    """F0 of parts of a recording; none where it has a fault."""
    from steps.synthesis.world import extract_f0

    def contours() -> list[Float64]:
        with closing(recording):
            return [extract_f0(part) if part.any() else np.zeros(1) for part in parts]

    found = result_of(contours)
    if not isinstance(found, UserError):
        return found
    if faults is None:
        raise found
    faults[recording.path] = found
    return []


def foretell(
    jobs: Jobs, files: Sequence[Path], nj: int, rate: float, heard: float = math.inf,
    each: float = _EACH,
) -> tuple[float, str]:  # fmt: skip
    """Seconds of audio in files; and, in words, how long they take, `nj` at a time.

    rate: CPU seconds a second of speech, of which a file has at most `heard`; 0: unknown. each: of
    a file, however long. Of many files the sizes of all tell, and the lengths of _LOOKED_AT. Files
    that cannot be opened count for nothing.
    """
    sizes = sorted(((size_of(path), path) for path in files), reverse=True)
    chosen = sizes[:: -(-len(sizes) // _LOOKED_AT) or 1]
    found = jobs.run(lambda path, _: AudioFile.open(path).seconds, [(p,) for _, p in chosen])
    lengths = [(own, chosen[n][0]) for n, own in found if isinstance(own, float)]
    looked_at = sum(size for _, size in lengths)
    share = sum(size for size, _ in sizes) / (looked_at or 1) if len(chosen) < len(sizes) else 1.0
    seconds, counted = share * sum(own for own, _ in lengths), [min(x, heard) for x, _ in lengths]
    every = rate * share * sum(counted) + each * len(files)
    takes = max(every / nj, rate * max(counted, default=0.0)) if rate else 0.0
    lasts = f"about {clock_time(takes)} on cores like ours" if takes else "unknown time"
    return seconds, f"{clock_time(seconds)} of audio in {len(files)} files, {nj} at a time: {lasts}"


def protect_all(
    jobs: Jobs,
    work: Work,
    todo: Sequence[tuple[str, Sequence[Path]]],
    groups: Mapping[str, Sequence[Path]],
    done: Callable[[Path, Made], None],
) -> dict[Path, str]:
    """Make files of groups that share a pseudo-speaker; returns the failed ones, with reasons, of
    which no earlier version stays.

    groups: all files of each, whose pitch counts, so that a continued run gives the same output as
    one run. It is learnt first where several files share it, else with the file. done: called with
    each complete file, and what is told of it.
    """
    faults, learnt = dict[Path, UserError](), dict[str, Pitch]()
    shared = [name for name, _ in todo if work.pitch and len(groups[name]) > 1]
    for n, heard in jobs.run(work.learn_shared, [(groups[name],) for name in shared]):
        if isinstance(heard, UserError):
            faults |= dict.fromkeys(groups[shared[n]], heard)
        else:
            learnt[shared[n]], unheard = heard
            faults |= unheard
    wanted = [(name, path) for name, files in todo for path in files]
    calls = [(name, path, learnt.get(name)) for name, path in wanted if path not in faults]
    # So that no long file is begun last, as sizes tell; drawn names tell no order.
    keeps = work.anonymiser.keeps_length
    calls.sort(key=lambda call: (-size_of(work.source / call[1]) * keeps, work.target(call[1])))
    for n, result in jobs.run(work.protect, calls):
        path = calls[n][1]
        if isinstance(result, UserError):
            faults[path] = result
        else:
            done(path, result)
    failed = {path: faults[path] for _, path in wanted if path in faults}
    stale = [own for path in failed for own in (work.target(path), *work.tables(path))]
    for target in filter(os.path.lexists, stale):
        with suppress(IsADirectoryError):  # which was why
            target.unlink()
    return {
        path: with_name(work.source / path, why, work.target(path)) for path, why in failed.items()
    }
