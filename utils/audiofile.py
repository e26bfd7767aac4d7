"""Audio files, opened by what is in them and read from the beginning to the end of what decodes.

A header may tell of more, less or nothing, lengths of compressed audio may be estimates, some
codecs cannot seek, and files are joined by `cat`. So every user of audio reads it here: a file is
a list of links, each a recording that is read in one go: by libsndfile, or, where that reads less
or nothing, by PyAV, which has FFmpeg's libraries inside.
"""

import io
import mmap
import os
import re
import struct
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import numpy as np
import soundfile

from utils.cli import UserError
from utils.tables import StrPath, file_problem

if TYPE_CHECKING:
    from av import AudioStream, Packet
    from av.container import InputContainer

    from utils.arrays import Float64

T = TypeVar("T")


class AudioError(UserError):
    """A fault of an audio file, without its name."""


NO_SAMPLES = "has no samples (zero length)"
_UNLIKE = "is joined of recordings with unlike rates or channels; part them"
_SAVE = "a program that plays it can save what is there as WAV"
RATES = (1000, 768000)  # Hz; a higher rate means a damaged header, and resampling would never end
_UNKNOWN_FORMAT = 1  # code of libsndfile
_UNKNOWN = 2**40  # samples; headers without a length tell of more
_BLOCK = 1 << 16  # samples read at a time where they are only counted

# ---- Names and first bytes: what is audio.

_ALIASES = {
    "AIF": "AIFF", "AIFC": "AIFF", "BWF": "WAV", "WAVE": "WAV", "OPUS": "OGG", "OGA": "OGG",
    "SPH": "NIST", "SNR": "NIST", "MP2": "MP3", "MPGA": "MP3",
}  # fmt: skip
_FOREIGN = {  # suffixes of files that may hold speech and that libsndfile does not read
    "3GA", "3GP", "AAC", "AC3", "AMR", "APE", "AVI", "AWB", "DSS", "DS2", "GSM", "M4A", "M4B",
    "MKA", "MKV", "MOV", "MP4", "MPG", "OGV", "QCP", "SPX", "VOX", "WEBM", "WMA", "WMV", "WV",
}  # fmt: skip
_CONTAINERS = [
    (re.compile(pattern, re.DOTALL), name)
    for pattern, name in (
        (rb"RIFF....WAVE", "WAV"), (rb"RIFF....AVI ", "AVI"), (rb"RF64", "RF64"),
        (rb"BW64", "BW64"), (rb"RIFX", "RIFX"), (rb"fLaC", "FLAC"), (rb"OggS", "Ogg"),
        (rb"FORM....AIF[FC]", "AIFF"), (rb"caff", "CAF"), (rb"\.snd", "AU"),
        (rb"riff\x2e\x91", "W64"), (rb"NIST_1A", "NIST SPHERE"), (rb"ID3", "MP3"),
        (rb"....ftyp", "MPEG-4 (m4a, mp4, 3gp)"), (rb"#!AMR", "AMR"), (rb"0&\xb2u", "ASF (wma)"),
        (rb"\x1aE\xdf\xa3", "Matroska (mkv, webm)"), (rb"RIFF", "RIFF"),
    )
]  # fmt: skip
HEAD = 6000  # bytes that `container` looks at


def container(head: bytes) -> str:
    """Name of the container that a file's first bytes show; empty for an unknown one, such as bare
    samples."""
    for pattern, name in _CONTAINERS:
        if pattern.match(head):
            return name
    kind = "AAC" if re.match(rb"\xff[\xf0\xf1\xf8\xf9]", head) else "MP3"
    return kind if _two_frames(kind.lower(), head) else ""


def _two_frames(codec: str, head: bytes) -> bool:
    if head[:1] != b"\xff":
        return False
    import av  # most files begin otherwise

    found = av.CodecContext.create(codec, "r").parse(head)[:2]
    return [bytes(frame)[:2] for frame in found] == 2 * [head[:2]]


def audio_format(path: Path) -> str | None:
    """Format name of libsndfile for a suffix, or the suffix of one that libsndfile does not read;
    None for a suffix of no audio format."""
    return _format_of(path.suffix)


@cache
def _format_of(suffix: str) -> str | None:
    name = suffix[1:].upper()
    name = _ALIASES.get(name, name)
    # To read RAW takes more than a suffix.
    known = name in _FOREIGN or (name in soundfile.available_formats() and name != "RAW")
    return name if known else None


@cache
def is_written(form: str) -> bool:
    """Whether files of a format are written: not of those that hold no rate of ours, or need
    another file."""
    return form not in ("SD2", "WVE", "XI") and soundfile.check_format(form)


# ---- A file, and the recordings in it.


class _Forward(soundfile.SoundFile):  # type: ignore[misc]  # it has no types
    """Sound file read from beginning to end: soundfile itself would seek after each block, which
    some codecs cannot, and stop at the length in the header."""

    def seekable(self) -> bool:
        return False


@dataclass(frozen=True)
class Link:
    """Recording in a file. told: its header states its length, so that less means a cut file.
    samples: number that the header states, where libsndfile trusts the size of the file more."""

    open: Callable[[], AbstractContextManager[Any]]  # a _Forward or a _Decoder
    told: bool = True
    samples: int = 0


@dataclass(frozen=True)
class AudioFile:
    """Audio file: rate in Hz, `frames` at that rate, channels, subtype as soundfile names it, and
    whether there are tags such as a title."""

    path: str
    rate: int
    channels: int
    frames: int
    subtype: str
    tagged: bool
    links: Sequence[Link]

    @classmethod
    def open(cls, path: StrPath) -> "AudioFile":
        """Read the headers, and all of a file whose headers prove no length. AudioError for a pipe,
        and a file that is missing, no audio, empty, cut, or joined of unlike recordings."""
        name = os.fspath(path)
        if name.rstrip().endswith("|"):
            raise AudioError("is a pipe; write the audio to a file first")
        if not os.access(name, os.R_OK):
            lost = file_problem(name) if Path(name).is_symlink() else ""
            raise AudioError(lost or "is missing or may not be read (from the current directory)")
        if problem := file_problem(name):
            raise AudioError(problem)
        try:
            return cls._survey(name, _find_links(name))
        except (soundfile.LibsndfileError, OSError) as error:
            try:
                part = partial(_Part, name, 0, Path(name).stat().st_size)
                return cls._survey(name, [Link(partial(_open_decoder, part), told=False)])
            except OSError as other:
                raise AudioError(_refusal(Path(name), error, other)) from other

    @classmethod
    def _survey(cls, name: str, links: Sequence[Link]) -> "AudioFile":
        frames, tagged = 0, False
        kinds: dict[tuple[int, int], str] = {}
        for link in links:
            with link.open() as audio:
                if not RATES[0] <= audio.samplerate <= RATES[1]:
                    raise AudioError(f"has a sampling rate of {audio.samplerate} Hz; damaged?")
                kinds[audio.samplerate, audio.channels] = audio.subtype
                tagged |= any(audio.copy_metadata().values())
                frames += _count(link, audio)
        if len(kinds) > 1:
            raise AudioError(_UNLIKE)
        if not frames:
            raise AudioError(NO_SAMPLES)
        (((rate, channels), subtype),) = kinds.items()
        return cls(name, rate, channels, frames, subtype, tagged, links)

    @classmethod
    def open_mono(cls, path: StrPath) -> "AudioFile":
        """Open a file of a data directory; also AudioError for several channels."""
        found = cls.open(path)
        if found.channels != 1:
            part = "make a file of each, as by: sox FILE NEW.wav remix 1"
            raise AudioError(f"has {found.channels} channels; only mono is read; {part}")
        return found

    @property
    def seconds(self) -> float:
        """Duration."""
        return self.frames / self.rate

    def blocks(self, size: int = 0) -> Iterator["Float64"]:
        """Yield all samples, full scale 1, at most (size, channels) at a time; 0: as few times as
        there are links. AudioError where fewer samples decode than were counted."""
        n = 0
        with _reading():
            for link in self.links:
                with link.open() as audio:
                    for block in _blocks(audio, size or self.frames):
                        n += len(block)
                        yield block
        if n < self.frames:
            raise AudioError(_cut(self.frames, n))


class Sink(io.FileIO):
    """File that audio is written to. libsndfile does not tell where it could not write the last of
    it, as on a full disk; `check` does, behind the end of the audio."""

    _failed: OSError | None = None

    def write(self, data: Any) -> int:
        """Write all, or keep the error for `check`."""
        n = 0
        try:
            while n < len(data):
                n += super().write(data[n:])
        except OSError as error:
            self._failed = error
        return len(data)

    def check(self) -> None:
        """Raise the OSError of a failed write."""
        if self._failed:
            raise self._failed


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except (soundfile.LibsndfileError, OSError) as error:
        raise AudioError(f"cannot be read as audio: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return str(getattr(error, "error_string", error))


def _refusal(path: Path, error: Exception, other: Exception) -> str:
    """Describe why a file cannot be read, from the errors of both libraries."""
    with path.open("rb") as stream:
        kind = container(stream.read(HEAD))
    if kind and getattr(error, "code", 0) == _UNKNOWN_FORMAT:
        return f"cannot be read as audio: {other} (it is {kind}); {_SAVE}"
    return f"cannot be read as audio: {_reason(error)}"


def _cut(told: float, there: float, unit: str = "samples") -> str:
    return f"is truncated or damaged: its header tells of {told} {unit}, {there} are there"


def _count(link: Link, audio: Any) -> int:
    """Samples of a link: as told where the last of these is there; else all are decoded."""
    told: int | None = audio.frames if link.told and audio.frames < _UNKNOWN else None
    if told is not None and told < link.samples:
        raise AudioError(_cut(link.samples, told))
    if told and audio.format == "MP3":  # whose frames are all there
        return told
    with suppress(soundfile.LibsndfileError):  # of a codec that cannot seek
        if told and audio.seek(told - 1) == told - 1 and len(audio.read(1)) == 1:
            return told
    there = 0
    errors = () if told is None else (soundfile.LibsndfileError,)  # in the middle of a cut file
    with suppress(*errors), link.open() as again:
        for block in _blocks(again, _BLOCK):
            there += len(block)
    if told is not None and there < told:
        raise AudioError(_cut(told, there))
    return there


def _blocks(audio: Any, size: int) -> Iterator["Float64"]:
    while len(block := audio.read(size, "float64", always_2d=True)):
        yield block


def _find_links(path: str) -> list[Link]:
    with Path(path).open("rb") as stream:
        head = stream.read(HEAD)
        kind = container(head)
        plain = Link(partial(_Forward, os.fsencode(path)), samples=_told_samples(kind, head))
        if head[:3] == b"ID3":  # before MP3, and also before others
            stream.seek(_id3_size(head))
            kind = container(stream.read(HEAD))
        if head and kind == "" and (head[:3] == b"ID3" or _is_mp3(path)):
            kind = "MP3"
        if found := re.match(_ASF_SIZE, head, re.DOTALL):
            told, there = int.from_bytes(found[1], "little"), os.fstat(stream.fileno()).st_size
            if told > there:  # libraries estimate another length then
                raise AudioError(_cut(told, there, "bytes"))
        stream.seek(0)
        if kind in ("WAV", "RF64"):
            links = _wav_links(path, stream)
        else:
            links = _joined_links(kind, path, stream) if kind in _BEGINS else []
    return links or [plain]


def _is_mp3(path: str) -> bool:
    """Whether libsndfile knows a file as MP3, or its name says so: it may begin within a frame."""
    with suppress(soundfile.LibsndfileError), _Forward(os.fsencode(path)) as audio:
        return bool(audio.format == "MP3")
    return audio_format(Path(path)) == "MP3"


_ASF_SIZE = rb"0&\xb2u.*?\xa1\xdc\xab\x8cG\xa9\xcf\x11\x8e\xe4\0\xc0\x0c Se.{24}(.{8})"
_W64 = rb"fmt \xf3\xac\xd3\x11.{28}(..).*?data\xf3\xac\xd3\x11.{8}(.{8})"


def _told_samples(kind: str, head: bytes) -> int:
    """Samples (a channel) of which a header tells; 0 where it is another kind of header."""
    if kind == "AIFF" and (found := re.search(rb"COMM.{6}(.{4})", head, re.DOTALL)):
        return int.from_bytes(found[1], "big")
    if kind == "NIST SPHERE" and (found := re.search(rb"sample_count -i (\d+)", head)):
        return int(found[1])
    if kind == "AU" and len(head) >= 24:
        _, size, code, _, channels = struct.unpack(">5I", head[4:24])
        width = {1: 1, 2: 1, 3: 2, 4: 3, 5: 4, 6: 4, 7: 8, 27: 1}.get(code, 0) * channels
        return size // width if width and size != 0xFFFFFFFF else 0
    if kind == "W64" and (found := re.search(_W64, head, re.DOTALL)):
        frame, size = (int.from_bytes(group, "little") for group in found.groups())
        return (size - 24) // frame if frame and 24 < size < _UNKNOWN else 0  # size: also of itself
    return 0


# ---- What libsndfile does not read: PyAV, which stops at the first fault.

_OPTIONS = {  # of FFmpeg's libraries
    "format_whitelist": "aac,ac3,aiff,amr,ape,asf,avi,caf,dss,eac3,gsm,matroska,mov,mp3,mpeg,"
    "mpegts,ogg,qcp,tta,wav,wv",  # none of these opens other files, as a play list does
    "protocol_whitelist": "none",
}
_STRICT = {"err_detect": "crccheck+bitstream+buffer+explode"}
_TELLING = {  # FFmpeg's names of containers that tell how long they are
    "aiff", "ape", "asf", "avi", "caf", "matroska,webm", "mov,mp4,m4a,3gp,3g2,mj2", "tta", "wav",
    "wv",
}  # fmt: skip
_GAP = 0.1  # seconds between packets, or at the end, that a clock of a recorder may miss
_DELAY = 0.3  # seconds at both ends that codecs add, and containers have dropped
_LAST_PICTURE = 1.5  # seconds that it may last, where the end is one's
_COVER = 0x400  # of a video track that is one picture
_LOST = "CRC mismatch|ended prematurely|Truncating packet|EBML number|exceeds containing"
_STRUCTURE = {  # tags of MPEG-4 that say nothing of a recording
    "major_brand", "minor_version", "compatible_brands", "handler_name", "vendor_id", "language",
}  # fmt: skip


class _Decoder:
    """Recording that PyAV decodes, read as libsndfile's are; it tells no length."""

    frames, format = 0, ""

    def __init__(self, container: "InputContainer", bare: bool) -> None:
        self._container, self._blocks = container, _decode(container, bare)
        self._held, self.samplerate = next(self._blocks, (np.zeros((0, 1)), RATES[0]))
        self.channels = self._held.shape[1]
        self.subtype = _track(container).codec_context.codec.canonical_name.upper()

    def copy_metadata(self) -> dict[str, str]:
        """Tags of the file and of its audio track."""
        tags = self._container.metadata | self._container.streams.audio[0].metadata
        return {name: value for name, value in tags.items() if name.lower() not in _STRUCTURE}

    def read(self, n: int, *_: object, **__: object) -> "Float64":
        """Up to n samples (n, channels), full scale 1; fewer at the end."""
        held, there = [self._held], len(self._held)
        while there < n and (block := next(self._blocks, None)):
            held.append(block[0])
            there += len(block[0])
        whole = np.concatenate(held)
        self._held = whole[n:]
        return whole[:n]


@contextmanager
def _open_decoder(part: Callable[[], Any], bare: bool = False) -> Iterator[_Decoder]:
    with _open_container(part()) as container:
        yield _Decoder(container, bare)


@contextmanager
def _open_container(part: Any) -> Iterator["InputContainer"]:
    """Open a file; OSError where FFmpeg's libraries do not know it, AudioError for later faults."""
    import av  # most files are read without

    av.logging.set_level(av.logging.PANIC)  # they count errors, and print none
    options = {"container_options": _OPTIONS, "metadata_errors": "replace"}
    try:
        container = _step(partial(av.open, part, "r", **options))
    except av.FFmpegError as error:
        raise OSError(_said(error)) from error
    try:
        with container:
            yield container
    except av.FFmpegError as error:
        raise AudioError(f"is damaged: {_said(error)}; {_SAVE}") from error


def _said(error: Any) -> str:
    return str((error.log or [error.strerror])[-1]).strip().rstrip(".")


def _step(go: Callable[[], T]) -> T:
    """Result of a step of FFmpeg's libraries; AudioError where they only said that they lack some
    of a file."""
    from av.logging import get_last_error

    before, _ = get_last_error()
    found = go()
    count, said = get_last_error()
    if count > before and said and re.search(_LOST, said[2]):
        raise AudioError(f"is truncated or damaged: {said[2].strip()}; {_SAVE}")
    return found


def _decode(container: "InputContainer", bare: bool) -> Iterator[tuple["Float64", int]]:
    """Yield samples (n, channels) and their rate. bare: packets as they are, without what the
    container has libraries drop of them."""
    import av

    rates, to_floats, seconds, due = set(), av.AudioResampler("dblp"), 0.0, 0.0
    codec = _track(container).codec_context
    codec.thread_count, codec.options = 1, _STRICT
    for packet, length in chain(_packets(container), [(None, 0.0)]):
        due += 0 if bare else length
        for frame in codec.decode(av.Packet(bytes(packet)) if bare and packet else packet):
            seconds += frame.samples / frame.sample_rate
            rates.add((frame.sample_rate, frame.layout.name))
            if len(rates) > 1:
                raise AudioError(_UNLIKE)
            if frame.is_corrupt:
                raise AudioError(f"is damaged: a frame is not whole; {_SAVE}")
            for block in to_floats.resample(frame):
                yield np.asarray(block.to_ndarray().T, np.float64), frame.sample_rate
    if seconds < due - _DELAY:
        raise AudioError(f"{_cut(round(due, 1), round(seconds, 1), 'seconds')}; {_SAVE}")


def _track(container: "InputContainer") -> "AudioStream":
    tracks = container.streams.audio
    if not tracks:
        raise AudioError("has no audio track, or is damaged")
    if len(tracks) > 1:
        raise AudioError(f"has {len(tracks)} audio tracks; one is read, so save each as a file")
    if not tracks[0].codec_context:
        raise AudioError(f"is of a codec that nothing here decodes; {_SAVE}")
    return tracks[0]


def _packets(container: "InputContainer") -> Iterator[tuple["Packet[Any]", float]]:
    """Yield the packets of the audio track and their seconds; AudioError where some are damaged or
    not there."""
    track, films = _track(container), container.streams.video
    told, end = _told_seconds(container, track), 0.0
    last = 0.0 if told and not films else None
    timed, tick = container.format.name != "ogg", float(track.time_base or 0)
    packets = container.demux()
    advance = partial(next, packets, None)
    while (packet := _step(advance)) is not None:
        if packet.is_corrupt:
            raise AudioError(f"is truncated or damaged at {end:.1f} seconds; {_SAVE}")
        if not packet.size:
            continue  # which tells of the end
        ours = packet.stream is track
        unit = tick if ours else float(packet.time_base)
        length = (packet.duration or 0) * unit
        if packet.pts is not None:
            begin = packet.pts * unit
            end = max(end, begin + length)
            if ours:
                jump = 0 if last is None else abs(max(begin, 0) - last)  # a codec begins before 0
                if timed and jump > _GAP:
                    raise AudioError(
                        f"is damaged: {begin:.1f} s follow behind {last:.1f} s; {_SAVE}"
                    )
                last = begin + length if length else None
                # FFmpeg tells too little of Vorbis where the length of its windows changes.
                length += 0 if timed or jump > _GAP else jump
        if ours:
            yield packet, length
    slack = _LAST_PICTURE if any(not film.disposition & _COVER for film in films) else _GAP
    if end < told - slack:
        raise AudioError(f"{_cut(round(told, 1), round(end, 1), 'seconds')}; {_SAVE}")


def _told_seconds(container: "InputContainer", track: "AudioStream") -> float:
    """Seconds of which a container tells; 0 where it tells none."""
    if container.format.name not in _TELLING:
        return 0
    length = track.frames if container.format.name == "avi" else track.duration
    if length and track.time_base:
        return float(length * track.time_base)
    return (container.duration or 0) / 1e6


# ---- WAV: a header that tells more, less or nothing of its samples, and what stands behind them.

STREAM_LENGTH = 0x7FFF0000  # bytes; headers of streams of unknown length announce more
_FORMAT = struct.Struct("<HHIIHH")  # code, channels, rate, bytes a second and a frame, bits
_UNPACKED = (1, 3, 0xFFFE)  # whole numbers, floats, extensible
_LAWS = (6, 7)  # A-law, mu-law: a byte a sample
_LONGEST = 2**31  # bytes that are read with one header
_PADDING = 4096  # bytes of zeros that may stand behind samples
_TAGS = (b"TAG", b"ID3", b"APETAGEX")  # that other formats' editors append


class _Part(io.RawIOBase):
    """File of a head and of the bytes begin ... end of another file."""

    def __init__(self, path: str, begin: int, end: int, head: bytes = b"") -> None:
        self._file = Path(path).open("rb")  # noqa: SIM115  # as long as this object
        self._begin, self._head = begin, head
        self._size, self._place = len(head) + end - begin, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._place = (0, self._place, self._size)[whence] + offset
        return self._place

    def tell(self) -> int:
        return self._place

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")[: max(0, self._size - self._place)]
        found = self._head[self._place : self._place + len(view)]
        if more := len(view) - len(found):
            self._file.seek(self._begin + max(0, self._place - len(self._head)))
            found += self._file.read(more)
        view[: len(found)] = found
        self._place += len(found)
        return len(found)


def _open_part(*where: Any) -> _Forward:
    return _Forward(_Part(*where))


def _wav_links(path: str, stream: BinaryIO) -> list[Link]:
    """Links of a WAV or RF64 file; AudioError for a header that contradicts itself, or the file."""
    size, begin, links = os.fstat(stream.fileno()).st_size, 0, list[Link]()
    while begin < size:
        stream.seek(begin)
        if (found := _samples_of_wav(stream)) is None:
            break  # libsndfile says what is wrong
        told, frame = found
        start = stream.tell()
        unknown = told >= STREAM_LENGTH > size - start
        if not unknown and told > size - start:
            unit = "samples" if frame else "bytes of samples"
            raise AudioError(_cut(told // (frame or 1), (size - start) // (frame or 1), unit))
        end = None if unknown else _behind(stream, start + told, size)
        if end is None:  # no chunks follow the samples: these go on
            stream.seek(begin)
            head = stream.read(start - begin - 4)
            most = _LONGEST // frame * frame if frame else _LONGEST
            for place in range(start, size, most):
                n = min(most, size - place)
                about = (path, place, place + n, head + struct.pack("<I", n))
                links.append(Link(partial(_open_part, *about)))
            return links
        links.append(Link(partial(_open_part, path, begin, end)))
        begin = end
    return links if links[1:] else []


def _samples_of_wav(stream: BinaryIO) -> tuple[int, int] | None:
    """Go to the samples of a WAV file; bytes of all that its header tells of, and of a frame (0 for
    a codec). None where there are none."""
    head = stream.read(12)
    if head[8:] != b"WAVE" or (found := find_samples(stream)) is None:
        return None
    told, (code, channels, _, _, frame, bits) = found
    if head[:4] == b"RF64" and told == 0xFFFFFFFF:  # nobody wrote how long it is
        told = 0
    if code in _UNPACKED and frame != channels * -(-bits // 8):
        raise AudioError(
            "has a damaged header: its bytes and bits of a sample contradict each other"
        )
    return told, frame * (code in (*_UNPACKED, *_LAWS))


def find_samples(stream: BinaryIO) -> tuple[int, tuple[int, ...]] | None:
    """Read a WAV file, which may come from a pipe, behind its first 12 bytes up to its samples: the
    bytes that its header tells of, and its format (code, channels, rate, bytes a second and a
    frame, bits; zeros where it tells none). None where there are no samples."""
    form: tuple[int, ...] = (0,) * 6
    long: int | None = None  # 0 where a recorder that was killed did not come to write it
    while len(chunk := stream.read(8)) == 8:
        kind, size = struct.unpack("<4sI", chunk)
        if kind == b"data":
            return size if long is None or size != 0xFFFFFFFF else long, form
        body = stream.read(min(size, _FORMAT.size))
        if kind == b"fmt " and len(body) == _FORMAT.size:
            form = _FORMAT.unpack(body)
        elif kind == b"ds64":
            _, long = struct.unpack("<QQ", body.ljust(16, b"\0"))
        rest = size + size % 2 - len(body)
        if stream.seekable():
            stream.seek(rest, io.SEEK_CUR)
        else:
            stream.read(rest)
    return None


def _behind(stream: BinaryIO, place: int, size: int) -> int | None:
    """Where the file ends that has its samples until `place`: chunks of tags follow, or padding, or
    another file; None where none of these does, and what follows are samples."""
    while size - place >= 8:
        for start in (place + place % 2, place):  # some writers pad no odd chunk
            stream.seek(start)
            kind, told = struct.unpack("<4sI", stream.read(8).ljust(8, b"\0"))
            if kind in (b"RIFF", b"RF64"):
                return start
            if kind.startswith(_TAGS):
                return size
            if size - start <= _PADDING and not any(
                struct.pack("<4sI", kind, told) + stream.read()
            ):
                return size
            if re.fullmatch(rb"[ -~]{4}", kind) and start + 8 + told <= size + 1:
                place = start + 8 + told
                break
        else:
            return None
    return size


# ---- FLAC, Ogg, MP3: joined files, and lengths that are wrong or estimated.

_XING = rb"\xff[\xe2-\xff]..(?:..)?(?:\0{9}|\0{17}|\0{32})(?:Xing|Info)"  # table of contents
_BEGINS = {  # what each of several recordings in a file begins with
    "FLAC": rb"fLaC[\0\x80]\0\0\x22",  # and the length of what follows
    "Ogg": rb"OggS\0\x02.{20}\x01.(?:OpusHead|\x01vorbis|\x7fFLAC|Speex)",
    "MP3": rb"ID3[\x02-\x04].{2}[\0-\x7f]{4}|" + _XING,
}
_TRIMMED = 0.2  # seconds that an Ogg file may tell less than its packets have


def _joined_links(kind: str, path: str, stream: BinaryIO) -> list[Link]:
    """Links of a file; none where it is one recording that libsndfile reads whole."""
    with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        places, behind = [0] if kind == "MP3" else [], 0 if kind == "MP3" else -1
        for match in re.finditer(_BEGINS[kind], content, re.DOTALL):
            if match.start() > behind:
                places.append(match.start())
            behind = match.start() + _id3_size(match[0])
        places.append(len(content))
        if kind == "Ogg":
            deque(_pages(content), maxlen=0)
    found = [_two_links(kind, path, *both) for both in pairwise(places)]
    links = [link for link, _ in found if link]
    if len(links) < len(found):  # all by one library: rates of Opus are libsndfile's idea
        return [link for _, link in found if link]
    return links if len(links) > 1 else []


def _two_links(kind: str, *where: Any) -> tuple[Link | None, Link | None]:
    """Link of a recording by libsndfile, where that reads all of its packets, and by PyAV.
    AudioError where its packets are fewer than its header tells."""
    plain = Link(partial(_open_part, *where))
    if kind == "FLAC":
        return plain, None
    part: Callable[[], Any] = partial(_Part, *where)
    try:
        n, seconds = _measure(part)
    except (AudioError, OSError):
        part = partial(_renumbered, *where)
        n, seconds = _measure(part)
    decoded = Link(partial(_open_decoder, part, bare=True), told=False)
    if kind == "MP3":
        told = _listed(_Part(*where))
        if told and n + 1 < told:
            raise AudioError(_cut(told, n, "frames"))
        return plain if told and n <= told + 1 else None, decoded
    try:
        with plain.open() as audio:
            there = audio.frames / audio.samplerate
    except soundfile.LibsndfileError:
        return None, decoded
    if there > seconds + _TRIMMED:
        raise AudioError(_cut(round(there, 1), round(seconds, 1), "seconds"))
    return plain if there > seconds - _TRIMMED else None, decoded


def _measure(part: Callable[[], Any]) -> tuple[int, float]:
    """Packets, and the seconds that they have together."""
    with _open_container(part()) as container:
        lengths = [length for _, length in _packets(container)]
    return len(lengths), sum(lengths)


def _id3_size(head: bytes) -> int:
    """Bytes of the tags that begin so; 0 for anything else."""
    if head[:3] != b"ID3":
        return 0
    size = 0
    for byte in head[6:10]:
        size = size << 7 | byte & 127
    return 10 + size


def _listed(part: Any) -> int | None:
    """Frames that the table of contents at the beginning of an MP3 file lists; None without one."""
    part.seek(_id3_size(part.read(10)))
    table = _XING + rb"\0\0\0[\x01\x03\x05\x07\t\v\r\x0f](.{4})"
    found = re.search(table, part.read(HEAD), re.DOTALL)
    return int.from_bytes(found[1], "big") if found else None


# ---- Ogg: its pages.

_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def _renumbered(*where: Any) -> io.BytesIO:
    """Ogg file whose pages tell numbers instead of no places of samples; empty for another."""
    pages = list(_pages(_Part(*where).read()))
    if {page[6:14] for page in pages} - {bytes(8), b"\xff" * 8}:
        pages = []
    numbered = enumerate(pages)
    return io.BytesIO(b"".join(_rewritten(page, 6, struct.pack("<q", n)) for n, page in numbered))


def _page_size(content: bytes | mmap.mmap, place: int) -> int:
    """Bytes that a page tells of; those of the shortest where its head is cut."""
    n = int.from_bytes(content[place + 26 : place + 27])
    return 27 + n + sum(content[place + 27 : place + 27 + n])


def _pages(content: bytes | mmap.mmap) -> Iterator[bytes]:
    """Yield the pages; AudioError where the file ends within one."""
    place = size = 0
    while (place := content.find(b"OggS", place + size)) >= 0:
        size, there = _page_size(content, place), len(content) - place
        if size > there:
            raise AudioError(_cut(size, there, "bytes of its last page"))
        yield content[place : place + size]


def _rewritten(page: bytes, at: int, new: bytes) -> bytes:
    """The page with other bytes at a place, and its checksum (zlib's, of reversed bits from 0)."""
    bare = page[:at] + new + page[at + len(new) : 22] + bytes(4) + page[26:]
    found = zlib.crc32(bare.translate(_REVERSED), 0xFFFFFFFF) ^ 0xFFFFFFFF
    return bare[:22] + struct.pack("<I", int(f"{found:032b}"[::-1], 2)) + bare[26:]


def renumber_ogg(file: int, serial: bytes) -> None:
    """Give the stream in an open Ogg file this number (4 bytes) instead of one that was drawn."""
    content = os.pread(file, os.fstat(file).st_size, 0)
    os.pwrite(file, b"".join(_rewritten(page, 14, serial) for page in _pages(content)), 0)
