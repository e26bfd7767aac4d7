"""Recordings and live speech, converted piece by piece in bounded memory."""

import logging
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

import numpy as np
from scipy.signal import resample_poly

from steps.anonymisers.mcadams import EPSILON, HOP, McAdams, warp_frames
from steps.anonymisers.registry import Anonymiser, Spoken
from steps.audio import SAMPLE_RATE, quietest
from steps.sources import SourceSpeaker, VoiceKey
from steps.synthesis.base import MOVES
from steps.synthesis.f0 import VOICED_HZ, compute_f0_stats
from utils.arrays import Float64
from utils.audiofile import HEAD, STREAM_LENGTH, AudioError, AudioFile, container, find_samples
from utils.cli import UserError, refusing

# ---- Speech on a pipe: bare samples, or a WAV file of unknown length.

_FULL = 32768
_ENDLESS = 0xFFFFFFFF  # marks an unknown length of a stream
_HEADER = struct.pack(
    "<4sI8sIHHIIHH4sI", b"RIFF", _ENDLESS, b"WAVEfmt ", 16, 1, 1, SAMPLE_RATE, 2 * SAMPLE_RATE,
    2, 16, b"data", _ENDLESS,
)  # fmt: skip
WHAT = "16 kHz, one channel, 16 bit are expected; protect_folder.py reads other kinds, as files"


def open_pipe(stream: BinaryIO, size: int) -> tuple[bytes, Iterator[Float64]]:
    """Header for the output (empty for bare samples), and blocks of `size` samples.

    The last block may be shorter; what stands behind the samples of a WAV file is left out.
    UserError for a WAV file of another kind, a second one, another container, and half a sample.
    """
    begin = stream.read(12)
    if begin[:1] == b"\xff":  # a sample, or MP3, which shows in its second frame
        begin += stream.read(HEAD - 12)
    kind = container(begin)
    if kind not in ("", "WAV"):
        raise UserError(f"standard input: {kind}, not a WAV file; {WHAT}")
    if not kind:
        return b"", _blocks(stream, begin, size)
    return _HEADER, _blocks(stream, b"", size, _skip_to_samples(stream))


def to_bytes(samples: Float64) -> tuple[bytes, int]:
    """Samples of 16 bit of a signal (n,), full scale 1, and the number clipped."""
    whole = np.rint(samples * _FULL)
    cut = int(((whole > _FULL - 1) | (whole < -_FULL)).sum())
    return np.clip(whole, -_FULL, _FULL - 1).astype("<i2").tobytes(), cut


def _blocks(
    stream: BinaryIO, begin: bytes, size: int, told: int | None = None
) -> Iterator[Float64]:
    """told: bytes of samples, where a header tells of them."""
    waiting, n = begin, 0
    while True:
        most = 2 * size if told is None else min(2 * size, told - n)
        waiting += stream.read(max(0, most - len(waiting)))
        if len(waiting) % 2 and len(waiting) < 2 * size:
            raise UserError("standard input: ends within a sample; 16 bit a sample are expected")
        if not (block := waiting[: 2 * size]):
            break
        yield np.frombuffer(block, "<i2").astype(np.float64) / _FULL
        waiting, n = waiting[len(block) :], n + len(block)
    if told is not None and n < told:
        logging.warning("standard input: its header tells of %d bytes, %d came", told, n)
    if (behind := stream.read(8 if told else 0)) and not re.match(rb"[ -~]{4}", behind):
        raise UserError(f"standard input: its header tells of {told} bytes, but more samples come")
    if behind[:4] == b"RIFF":
        raise UserError("standard input: another WAV file follows the first; send each by itself")
    while told and stream.read(1 << 16):
        pass


def _skip_to_samples(stream: BinaryIO) -> int | None:
    """Read a WAV file, after its first twelve bytes, up to its samples; their bytes, where its
    header tells of them. UserError if invalid."""
    if (found := find_samples(stream)) is None:
        raise UserError(f"standard input: a WAV file without samples; {WHAT}")
    size, (kind, channels, rate, _, _, bits) = found
    if not any(found[1]):
        raise UserError(f"standard input: a WAV file without a format; {WHAT}")
    if (kind in (1, 0xFFFE), channels, rate, bits) != (True, 1, SAMPLE_RATE, 16):
        raise UserError(f"standard input: {rate} Hz, {channels} channels, {bits} bit; {WHAT}")
    return size if 0 < size < STREAM_LENGTH else None


# ---- Conversion of recordings of any length, piece by piece in bounded memory, without seams.
#
# A recording is read in blocks and resampled to 16 kHz. Pieces of at most LONGEST seconds end where
# it is quietest; each is converted with CONTEXT seconds before and after it, and neighbours are
# faded into each other over FADE seconds around the cut.

Convert = Callable[[Float64], Spoken]

LONGEST = 19.0  # seconds of a piece: with its context a recogniser's window
CONTEXT = 0.5  # seconds converted on either side of a piece and thrown away
FADE = 0.02  # seconds
_BLOCK = 20  # seconds read at a time
_MARGIN = 1  # seconds on either side of a block, so that resampling has no edge within it
_PAUSE = 0.05  # seconds over which it must be quiet
_CANCELS = 0.25  # of the power of unlike channels, where the mix has less of it
_HEARD_SHARE = 0.01  # of the mean power of a recording, for a second that is looked at
_LARGEST = 0.99  # of full scale
_LOUD, _SOFT = round(0.4 * SAMPLE_RATE), round(0.1 * SAMPLE_RATE)  # windows
_FAINT, _STEADY = 3e-7, 10.0  # power of noise, and how far its loudest is above its softest window


@dataclass(frozen=True)
class Recording:
    """Audio file, and the channel that is read instead of a mix that would be silent. hidden:
    stretches of samples at 16 kHz that are read as silence."""

    path: Path
    audio: AudioFile
    alone: int | None = None
    hidden: tuple[tuple[int, int], ...] = ()
    _tracks: dict[int | None, "_Track"] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path) -> "Recording":
        """Open it; UserError for a file that cannot be read whole, or is empty."""
        with refusing(f"{path}: {{}}", AudioError):
            audio = AudioFile.open(path)
            return cls(path, audio, _alone(audio) if audio.channels > 1 else None)

    @property
    def seconds(self) -> float:
        """Duration."""
        return self.audio.seconds

    def __len__(self) -> int:
        """Samples at 16 kHz."""
        return -(-self.audio.frames * SAMPLE_RATE // self.audio.rate)

    def read(self, start: int, stop: int, channel: int | None = None) -> Float64:
        """Samples start ... stop at 16 kHz, (n,): of one channel, or all mixed down.

        A sample has the same bits in any read. Reading goes forward; to go back opens the file
        anew. UserError where less decodes than before, or a value is not finite.
        """
        rate = self.audio.rate
        divisor = int(np.gcd(rate, SAMPLE_RATE))
        up, down = SAMPLE_RATE // divisor, rate // divisor
        first = max(0, start // up * down - _MARGIN * rate // down * down)
        last = min(self.audio.frames, -(-stop * down // up) + _MARGIN * rate)
        channel = self.alone if channel is None else channel
        track = self._tracks.setdefault(channel, _Track(self.audio, channel))
        with refusing(f"{self.path}: {{}}", AudioError):
            mono = track.read(first, last)
        if not np.isfinite(mono).all():
            raise UserError(f"{self.path}: holds a sample that is not a finite number")
        if rate != SAMPLE_RATE:
            mono = resample_poly(mono, up, down)
        offset = start - first * up // down
        found = np.asarray(mono[offset : offset + stop - start])
        for begin, end in self.hidden:
            if begin < stop and end > start:
                found = found.copy()
                found[max(0, begin - start) : max(0, end - start)] = 0.0
        return found

    def close(self) -> None:
        """Close its file."""
        self._tracks.clear()

    def blocks(self, channel: int | None = None) -> Iterator[Float64]:
        """Yield the whole (n,) at 16 kHz, some seconds at a time."""
        width = _BLOCK * SAMPLE_RATE
        for start in range(0, len(self), width):
            yield self.read(start, min(start + width, len(self)), channel)


@dataclass(frozen=True)
class Excerpt(Recording):
    """Stretches of samples of a recording at 16 kHz, joined, as one recording; what lies outside of
    it is silence."""

    whole: Recording | None = None
    stretches: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, whole: Recording, stretches: Iterable[tuple[int, int]]) -> "Excerpt":
        """Excerpt of a recording."""
        about = (whole.path, whole.audio, whole.alone)
        return cls(*about, whole=whole, stretches=tuple(stretches))

    @property
    def seconds(self) -> float:
        return len(self) / SAMPLE_RATE

    def __len__(self) -> int:
        return sum(end - begin for begin, end in self.stretches)

    def read(self, start: int, stop: int, channel: int | None = None) -> Float64:
        assert self.whole is not None
        made, at, n = np.zeros(max(0, min(stop, len(self)) - start)), -start, len(self.whole)
        for begin, end in self.stretches:
            first, last = max(begin, begin - at, 0), min(end, begin + len(made) - at, n)
            if first < last:
                place = slice(first - begin + at, last - begin + at)
                made[place] = self.whole.read(first, last, channel)
            at += end - begin
        return made

    def close(self) -> None:
        if self.whole is not None:
            self.whole.close()


class _Track:
    """A channel of a file, or the mix, read forward; it holds what was read last."""

    def __init__(self, audio: AudioFile, channel: int | None) -> None:
        self._audio, self._channel = audio, channel
        self._go_back()

    def _go_back(self) -> None:
        self._begin, self._held = 0, np.zeros(0)
        self._blocks = self._audio.blocks(_BLOCK * self._audio.rate)

    def read(self, first: int, last: int) -> Float64:
        """Samples first ... last at the file's rate."""
        if first < self._begin:
            self._go_back()
        while self._begin + len(self._held) < last:
            block = next(self._blocks)
            mono = block.mean(axis=1) if self._channel is None else block[:, self._channel]
            gone = min(first - self._begin, len(self._held))
            self._held = np.concatenate((self._held[gone:], mono))
            self._begin += gone
        return self._held[first - self._begin : last - self._begin]


def _alone(audio: AudioFile) -> int | None:
    """Loudest channel where channels cancel each other in the mix; None where they do not."""
    blocks = [(x.var(axis=0), x.mean(axis=1).var()) for x in audio.blocks(audio.rate)]
    each, mixed = np.stack([x for x, _ in blocks]), np.array([x for _, x in blocks])
    apart = each.sum(axis=1) / audio.channels**2  # the mix of channels that share nothing
    heard = apart > _HEARD_SHARE * apart.mean()
    cancels = bool((mixed[heard] < _CANCELS * apart[heard]).any())
    return int(each.sum(axis=0).argmax()) if cancels else None


@dataclass(frozen=True)
class Piece:
    """Converted piece of a recording.

    samples: (m, c) of its channels, of any level. before, after: samples that it shares with its
    neighbours. source, made: levels before and after. given: samples that it was. told: what was
    told of all that was converted for it.
    """

    samples: Float64
    before: int
    after: int
    source: "Loudness"
    made: "Loudness"
    given: int = 0
    told: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def of(cls, spoken: Spoken) -> "Piece":
        """Piece of one channel (m,) that is of no source."""
        level = Loudness.of(spoken[0])
        return cls(spoken[0][:, None], 0, 0, level, level, told=[spoken[1]])


class Loudness(NamedTuple):
    """Levels of a signal without its inaudible mean: its power, that of its loudest 0.4 s and of
    its softest 0.1 s, and its largest sample."""

    power: float
    loudest: float
    softest: float
    peak: float

    @classmethod
    def of(cls, samples: Float64) -> "Loudness":
        """Levels of (n,); UserError where a sample is not finite."""
        peak = float(np.max(np.abs(samples), initial=0.0))
        if not np.isfinite(peak):
            raise UserError("the protected signal is not finite")
        loud, soft = (
            [float(np.var(part)) for part in np.array_split(samples, max(1, len(samples) // n))]
            for n in (_LOUD, _SOFT)
        )
        return cls(float(np.var(samples)), max(loud), min(soft), peak)

    @classmethod
    def of_all(cls, parts: Sequence["Loudness"]) -> "Loudness":
        """Levels of the signal that these parts make, each counted as equally long."""
        power, loudest, softest, peak = zip(*parts, strict=True)
        return cls(float(np.mean(power)), max(loudest), min(softest), max(peak))


def pieces(
    blocks: Iterable[Float64], longest: float = LONGEST, context: float = CONTEXT
) -> Iterator[tuple[Float64, slice]]:
    """Cut a signal (n,) that arrives in blocks into stretches, and mark the own part of each.

    A stretch holds `context` seconds more on either side, where there is more. The parts follow one
    another without gap.
    """
    most, around = round(longest * SAMPLE_RATE), round(context * SAMPLE_RATE)
    pause = round(_PAUSE * SAMPLE_RATE)
    before = waiting = np.zeros(0)
    for block in blocks:
        waiting = np.concatenate((waiting, block)) if len(waiting) else block
        while len(waiting) > most + around:
            cut = quietest(np.abs(waiting), most // 2, most, pause)
            stretch = waiting[: cut + around]
            stretch = np.concatenate((before, stretch)) if len(before) else stretch
            yield stretch, slice(len(before), len(before) + cut)
            begin = max(0, len(before) + cut - around)
            before, waiting = stretch[begin : len(before) + cut], waiting[cut:]
    if len(waiting):
        whole = np.concatenate((before, waiting)) if len(before) else waiting
        yield whole, slice(len(before), len(before) + len(waiting))


def convert_pieces(
    blocks: Iterable[Float64],
    convert: Convert,
    longest: float = LONGEST,
    *,
    keeps_length: bool = True,
    context: bool = True,
) -> Iterator[Piece]:
    """Yield converted pieces of a signal that arrives in blocks (n,).

    convert: speech (n,) -> (n,), of any level, and what is told of it. A stretch without any
    change, such as digital silence, becomes silence. Without keeps_length speech may become of any
    length. Without it, or without context, pieces follow one another where it is quiet.
    """
    half, before = round(FADE * SAMPLE_RATE / 2), 0
    for stretch, own in pieces(blocks, longest, CONTEXT if keeps_length and context else 0.0):
        given = _centred(stretch)
        made, told = convert(given) if given.any() else (given, {})
        about = Loudness.of(given), Loudness.of(made), own.stop - own.start, [told]
        if not keeps_length:
            yield Piece(made[:, None], 0, 0, *about)
            continue
        if len(made) != len(stretch):
            raise UserError("the protected signal is of another length")
        after = 2 * half if len(stretch) > own.stop else 0
        yield Piece(
            made[own.start - before // 2 : own.stop + after // 2, None], before, after, *about
        )
        before = after


def _centred(samples: Float64) -> Float64:
    """The signal without an offset of the recorder that is larger than all that is heard."""
    if not np.ptp(samples):
        return np.zeros(len(samples))
    mean = float(samples.mean())
    return samples - mean if abs(mean) > float(samples.std()) else samples


def joined(made: Iterable[Piece], gains: Iterable[float]) -> Iterator[Float64]:
    """Yield pieces (m, c), faded into each other, each with its gain."""
    tail = np.zeros((0, 1))
    for piece, gain in zip(made, gains, strict=True):
        samples = piece.samples * gain
        fade = (np.arange(piece.before)[:, None] + 0.5) / max(1, piece.before)
        samples[: piece.before] *= fade
        samples[: piece.before] += tail * (1 - fade)
        end = len(samples) - piece.after
        tail = samples[end:]
        yield samples[:end]


Levels = Sequence[tuple[Loudness, Loudness]]
"""Levels of each piece: of the source, and of the converted speech."""


def one_level(levels: Levels, raised: float | None) -> list[float]:
    """Gains of pieces whose file gets one level, relative to that of the loudest piece.

    raised: see `Anonymiser.raised`. With it the loudest window of a piece is as loud as that of the
    loudest piece; or, where its source is softer by more than that, by so much less.
    """
    given, made = np.array([[x.loudest for x in both] for both in levels]).T
    if raised is None or not made.any():
        return [1.0] * len(made)
    most = np.where(made > 0, given, 0).argmax()
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = np.minimum(given / given[most] * 10 ** (raised / 10), 1.0)
        gains = np.sqrt(wanted / made * made[most])
    return np.where(np.isfinite(gains), gains, 1.0).tolist()  # of silence


def level_of_source(source: Loudness, made: Loudness) -> float:
    """Gain by which a piece has its source's power, below full scale."""
    gain = np.sqrt(source.power / made.power) if made.power > 0 else 1.0
    return min(float(gain), _LARGEST / made.peak if made.peak else 1.0)


def is_noise(levels: Levels) -> bool:
    """Whether a recording is faint and steady everywhere, so that it holds no speech to be raised
    to a level."""
    loudest = max(source.loudest for source, _ in levels)
    return loudest < min(_FAINT, _STEADY * min(source.softest for source, _ in levels))


# ---- Protection of speech as it arrives, block by block, with a stated look-ahead.
#
# McAdams needs a hop more than it gives out, and its samples are those of the whole recording.
# Other systems convert a window of context, block and look-ahead each time; they normalise level,
# envelope range and the source's pitch over the window, or over the speech so far, so their samples
# are not those of the whole recording.

LONGEST_BLOCK, SHORTEST_BLOCK = 0.2, 0.04  # seconds
_HEARD = 6000  # voiced frames whose pitch is kept: a minute


class Live(Protocol):
    """delay: samples by which the output is behind the input, without computing time.

    step: best number of samples to push at once.
    """

    delay: int
    step: int

    def push(self, samples: Float64) -> Float64:
        """Take more of the input (n,) at 16 kHz; returns the finished output (m,)."""
        ...

    def end(self) -> Float64:
        """Return the rest: all outputs together are as long as the input."""
        ...


class LiveMcAdams:
    """McAdams stream, equal to `mcadams.transform` of the whole to the last bit; look-ahead HOP.

    Digital silence is an exception: in a recording of nothing else the samples are below 1e-6, not
    0, as the future is unknown.
    """

    def __init__(self, system: McAdams, key: VoiceKey, block: float = 0.02) -> None:
        """block: length of one push, in seconds."""
        self._alpha = system.coefficient(key)
        self._rows = np.zeros((1, HOP)) + EPSILON  # the last two used ones, and new ones
        self._n_old = 0  # number of these that precede the last used one
        self._tail, self._rest = np.zeros(HOP), np.zeros(0)
        self.step = round(block * SAMPLE_RATE / HOP) * HOP
        self.delay = self.step + HOP
        self._first = True
        self._n_in = self._n_out = 0

    def push(self, samples: Float64) -> Float64:
        self._n_in += len(samples)
        self._rest = np.concatenate((self._rest, samples))
        n = len(self._rest) // HOP
        rows, self._rest = self._rest[: n * HOP].reshape(n, HOP), self._rest[n * HOP :]
        self._rows = np.concatenate((self._rows, rows + EPSILON))
        # All frames with complete rows are processed; the last half of the last frame waits.
        n_frames = len(self._rows) - 1 - self._n_old
        # One frame alone would give other bits: the one before is made again, or waited for.
        if n_frames < 1 or len(self._rows) < 3:
            return np.zeros(0)
        frames = warp_frames(self._rows, self._alpha)[0][:, self._n_old :]
        out = frames[:HOP].T.copy()
        out[0] += self._tail
        out[1:] += frames[HOP:, :-1].T
        self._tail = frames[HOP:, -1].copy()
        self._rows, self._n_old = self._rows[-2:], 1
        made = out[1:] if self._first else out  # before the first row is padding
        self._first = False
        self._n_out += made.size
        return made.ravel()

    def end(self) -> Float64:
        left = self._n_in - self._n_out
        return self.push(np.zeros(-len(self._rest) % HOP + HOP))[:left]


class LiveWindows:
    """Stream of any system, by windows; neighbouring blocks overlap with a fade of FADE seconds."""

    def __init__(
        self, system: Anonymiser, key: VoiceKey, block: float, look_ahead: float, context: float
    ) -> None:
        """Durations are in seconds; the look-ahead also holds the fade."""
        self._system, self._key = system, key
        self._block, self._ahead, self._context = (
            round(part * SAMPLE_RATE) for part in (block, look_ahead, context)
        )
        self._fade = round(FADE * SAMPLE_RATE)
        if self._ahead < self._fade:
            raise UserError(f"look-ahead: {look_ahead:g} s; the fade alone takes {FADE:g} s")
        self.delay, self.step = self._block + self._ahead, self._fade
        self._before, self._waiting = np.zeros(0), np.zeros(0)
        self._tail, self._pitch = np.zeros(0), np.zeros(0)

    def push(self, samples: Float64) -> Float64:
        self._waiting = np.concatenate((self._waiting, samples))
        made = [np.zeros(0)]
        while len(self._waiting) >= self._block + self._ahead:
            made.append(self._say(self._block))
        return np.concatenate(made)

    def end(self) -> Float64:
        made = [np.zeros(0)]
        while len(self._waiting):
            made.append(self._say(min(self._block, len(self._waiting))))
        return np.concatenate(made)

    def _say(self, size: int) -> Float64:
        window = np.concatenate((self._before, self._waiting[: size + self._ahead]))
        begin = len(self._before)
        made = self._convert(window, slice(begin, begin + size))
        out, after = made[begin : begin + size].copy(), made[begin + size :][: self._fade]
        n = min(len(self._tail), size)
        if n:
            rising = (np.arange(n) + 0.5) / len(self._tail)
            out[:n] = out[:n] * rising + self._tail[:n] * (1 - rising)
        self._tail = after.copy()
        self._before = window[: begin + size][-self._context :] if self._context else np.zeros(0)
        self._waiting = self._waiting[size:]
        return out

    def _convert(self, window: Float64, own: slice) -> Float64:
        """Convert the window; the source's pitch is that of the blocks so far and this one."""
        if not window.any():
            return np.zeros(len(window))
        from steps.synthesis.world import HOP as FRAME
        from steps.synthesis.world import extract_f0

        contour = extract_f0(window)[own.start // FRAME : own.stop // FRAME + 1]
        heard = np.concatenate((self._pitch, contour[contour > VOICED_HZ]))
        self._pitch = heard[-_HEARD:]
        source = SourceSpeaker(self._key.names[-1], f0=compute_f0_stats([self._pitch]))
        return self._system.transform(window, self._key, source)[0]


def make_live(
    system: Anonymiser, key: VoiceKey, *, block: float, look_ahead: float, context: float
) -> Live:
    """Make the stream of a system. block, look_ahead, context: in seconds; McAdams has its own.
    UserError for a block that is too long or too short, or a system that cannot do it."""
    if not SHORTEST_BLOCK <= block <= LONGEST_BLOCK:
        raise UserError(f"block: {block:g} s; {SHORTEST_BLOCK:g} to {LONGEST_BLOCK:g} s are known")
    for name, seconds in (("look-ahead", look_ahead), ("context", context)):
        if not 0 <= seconds < np.inf:
            raise UserError(f"{name}: {seconds:g} s; a number from 0 on is expected")
    if isinstance(system, McAdams):
        return LiveMcAdams(system, key, block)
    own = system.settings()
    if moves := [name for name in (*MOVES, "reads") if own.get(name)]:
        raise UserError(f"{moves[0]}: speech that arrives block by block cannot be moved in time")
    content = own.get("content")
    if isinstance(content, dict) and content["centred"]:
        raise UserError("content.centred: it needs whole recordings; take models/bn for a stream")
    return LiveWindows(system, key, block, look_ahead, context)
