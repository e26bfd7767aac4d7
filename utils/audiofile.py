"""Audio files, opened by what is in them and read from the beginning to the end of what decodes.

A header may tell of more, less or nothing, lengths of compressed audio may be estimates, some
codecs cannot seek, and files are joined by `cat`. So every user of audio reads it here: a file is
a list of links, each a recording that libsndfile reads in one go. What it does not read is read
through ffmpeg, where that is installed.
"""

import io
import mmap
import os
import re
import shlex
import shutil
import struct
import subprocess
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import soundfile

from utils.cli import UserError
from utils.tables import StrPath, file_problem

if TYPE_CHECKING:
    from utils.arrays import Float64


class AudioError(UserError):
    """A fault of an audio file, without its name."""


NO_SAMPLES = "has no samples (zero length)"
RATES = (1000, 768000)  # Hz; a higher rate means a damaged header, and resampling would never end
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
    """Name of the container that a file's first bytes tell of; empty for an unknown one, as of bare
    samples."""
    for pattern, name in _CONTAINERS:
        if pattern.match(head):
            return name
    if (frame := _mpeg_frame(head, 0)) and _mpeg_frame(head, frame.size):
        return "MP3"
    return "AAC" if (size := _aac_size(head)) and _aac_size(head[size:]) else ""


def _aac_size(data: bytes) -> int:
    """Bytes of the ADTS frame that data begins with; 0 where it begins with none."""
    if len(data) < 7 or data[0] != 0xFF or data[1] & 0xF6 != 0xF0:
        return 0
    return (data[3] & 3) << 11 | data[4] << 3 | data[5] >> 5


def audio_format(path: Path) -> str | None:
    """Format name of libsndfile for a suffix, or the suffix of one that only ffmpeg reads; None for
    what is no audio."""
    name = path.suffix[1:].upper()
    name = _ALIASES.get(name, name)
    # To read RAW takes more than a suffix.
    known = name in _FOREIGN or (name in soundfile.available_formats() and name != "RAW")
    return name if known else None


# ---- A file, and the recordings in it.


class _Forward(soundfile.SoundFile):  # type: ignore[misc]  # it has no types
    """Sound file read from beginning to end: soundfile itself would seek after each block, which
    some codecs cannot, and stop at the length in the header."""

    def seekable(self) -> bool:
        return False


@dataclass(frozen=True)
class Link:
    """Recording in a file. told: its header tells its length, so that less means a cut file.
    samples: what a header tells of that libsndfile believes less than the size of the file."""

    open: Callable[[], AbstractContextManager[_Forward]]
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
            if shutil.which("ffmpeg"):
                with _reading():
                    return cls._survey(name, [Link(partial(_through_ffmpeg, name), told=False)])
            raise AudioError(_refusal(Path(name), error)) from error

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
            raise AudioError("is joined of recordings with unlike rates or channels; part them")
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
        there are links. AudioError where fewer decode than were counted."""
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
        """Raise the OSError of what was not written."""
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


def _refusal(path: Path, error: Exception) -> str:
    with path.open("rb") as stream:
        kind = container(stream.read(HEAD))
    reason = f"cannot be read as audio: {_reason(error)}"
    if not kind and audio_format(path) not in _FOREIGN:
        return reason
    what = f" (it is {kind})" if kind else ""
    names = shlex.join((path.name, f"{path.stem}.wav"))
    return f"{reason.rstrip('.')}{what}; convert it: ffmpeg -i {names}"


def _cut(told: int, there: int, unit: str = "samples") -> str:
    return f"is truncated or damaged: its header tells of {told} {unit}, {there} are there"


def _count(link: Link, audio: _Forward) -> int:
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


def _blocks(audio: _Forward, size: int) -> Iterator["Float64"]:
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
        if kind == "" and (head[:3] == b"ID3" or audio_format(Path(path)) == "MP3"):
            kind = "MP3"  # which begins within a frame
        stream.seek(0)
        known = {"WAV": _wav_links, "RF64": _wav_links, "Ogg": _ogg_links, "MP3": _mpeg_links}
        known["FLAC"] = _flac_links
        links = known[kind](path, stream) if kind in known else []
    return links or [plain]


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


@contextmanager
def _through_ffmpeg(path: str) -> Iterator[_Forward]:
    """Read what ffmpeg decodes; OSError with its first message where it fails, or finds the file
    damaged or cut, for which it has no status with all containers."""
    words = ["ffmpeg", "-v", "error", "-xerror", "-nostdin", "-protocol_whitelist", "file", "-i"]
    words += [f"file:{path}", "-f", "wav", "-c:a", "pcm_s16le", "-"]
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=said) as process,
    ):
        assert process.stdout
        try:
            with _Forward(process.stdout.fileno(), closefd=False) as audio:
                yield audio
            ended = process.stdout.read(1) == b""
            failed = ended and process.wait() != 0
            names = shlex.join((Path(path).name, f"{Path(path).stem}.wav"))
            mend = f"; to take what is there, convert it: ffmpeg -i {names}"
        except soundfile.LibsndfileError:
            ended, failed, mend = True, True, ""
        finally:
            process.kill()
        said.seek(0)
        told = said.read().decode(errors="replace").strip()
        if failed or (ended and "File ended prematurely" in told):
            why = re.sub(r"^\[.*?\] ", "", told.partition("\n")[0])
            raise OSError(f"ffmpeg: {why or 'no audio'}{mend}")


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


# ---- FLAC: joined files.


def _flac_links(path: str, stream: BinaryIO) -> list[Link]:
    """Links of a FLAC file; none where it is one recording."""
    with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        found = re.finditer(rb"fLaC[\0\x80]\0\0\x22", content)  # and the length of what follows
        places = [*(match.start() for match in found), len(content)]
    pairs = [] if len(places) < 3 else pairwise(places)
    return [Link(partial(_open_part, path, begin, end)) for begin, end in pairs]


# ---- Ogg: joined files, and places of pages (granules) that tell another length than the packets.

_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
_BEGINS = 2  # flag of a stream's first page
_SILK, _HYBRID, _CELT = (480, 960, 1920, 2880), (480, 960), (120, 240, 480, 960)  # at 48 kHz


def _ogg_links(path: str, stream: BinaryIO) -> list[Link]:
    """Links of an Ogg file; none where it is one recording whose places are right. AudioError for
    one that ends within a page: no header tells how many there are."""
    content = stream.read()
    last = content.rfind(b"OggS")
    told, there = _page_size(content, last), len(content) - last
    if told > there:
        raise AudioError(_cut(told, there, "bytes of its last page"))
    given = _recordings(content)
    if len(given) == 1 and _mend_places(given[0]) is given[0]:
        return []
    return [Link(partial(_open_ogg, path, number), told=False) for number in range(len(given))]


def _open_ogg(path: str, number: int) -> _Forward:
    pages = _recordings(Path(path).read_bytes())[number]
    return _Forward(io.BytesIO(b"".join(_mend_places(pages))))


def _recordings(content: bytes) -> list[list[bytes]]:
    """Pages of each of the recordings that were joined."""
    parts: list[list[bytes]] = []
    for page in _pages(content):
        if page[5] & _BEGINS and not (parts and parts[-1][-1][5] & _BEGINS):
            parts.append([])
        if parts:
            parts[-1].append(page)
    return parts


def _page_size(content: bytes, place: int) -> int:
    """Bytes that a page tells of; those of the shortest where its head is cut."""
    n = int.from_bytes(content[place + 26 : place + 27])
    return 27 + n + sum(content[place + 27 : place + 27 + n])


def _pages(content: bytes) -> Iterator[bytes]:
    place = content.find(b"OggS")
    while 0 <= place < len(content) - 27:
        size = _page_size(content, place)
        if place + size > len(content):
            return
        yield content[place : place + size]
        place = content.find(b"OggS", place + size)


def _mend_places(pages: list[bytes]) -> list[bytes]:
    """The pages, with other places where theirs are not those of their packets."""
    codec = pages[0][27 + pages[0][26] :][:8]
    if codec != b"OpusHead" and codec[:7] != b"\x01vorbis":
        return pages
    given = [struct.unpack_from("<q", page, 6)[0] for page in pages]
    if codec == b"OpusHead":
        right = _opus_places(pages)
        audio = [both for both in zip(given, right, strict=True) if both[1] > 0]
        late = audio[0][0] - audio[0][1] if len(audio) > 1 else 0  # of one cut from a broadcast
        before = max((place for _, place in audio[:-1]), default=0)
        fits = late >= 0 and all(told - late == place for told, place in audio[:-1])
        fits &= bool(audio) and before < audio[-1][0] - late <= audio[-1][1]  # the end is trimmed
    else:
        told = [place for place in given if place >= 0]
        fits = told == sorted(told) and given[-1] > 0
        # A packet of Vorbis does not tell its length: an endless stream's last place cuts nothing.
        right = [min(place, 0) or -(place > 0) for place in given[:-1]] + [_UNKNOWN]
    if fits:
        return pages
    return [_rewritten(page, 6, struct.pack("<q", n)) for page, n in zip(pages, right, strict=True)]


def _opus_places(pages: Sequence[bytes]) -> list[int]:
    """Place of each page: samples at 48 kHz of the packets that end by then (RFC 7845), 0 for the
    two headers, -1 where none ends."""
    total = number = samples = 0
    inside, found = False, []
    for page in pages:
        place, ended = 27 + page[26], False
        for lace in page[27 : 27 + page[26]]:
            if not inside:
                number += 1
                samples = _opus_samples(page[place : place + 2]) if number > 2 else 0
            place, inside = place + lace, lace == 255
            if not inside:
                ended, total = True, total + samples
        found.append(total if ended else -1)
    return found


def _opus_samples(begin: bytes) -> int:
    """Samples at 48 kHz of the packet that begins so (RFC 6716, 3.1)."""
    if not begin:
        return 0
    kind, code = begin[0] >> 3, begin[0] & 3
    sizes = _SILK if kind < 12 else _HYBRID if kind < 16 else _CELT
    return (1, 2, 2, begin[-1] & 63)[code] * sizes[kind % len(sizes)]


def _rewritten(page: bytes, at: int, new: bytes) -> bytes:
    """The page with other bytes at a place, and its checksum (zlib's, of reversed bits from 0)."""
    bare = page[:at] + new + page[at + len(new) : 22] + bytes(4) + page[26:]
    found = zlib.crc32(bare.translate(_REVERSED), 0xFFFFFFFF) ^ 0xFFFFFFFF
    return bare[:22] + struct.pack("<I", int(f"{found:032b}"[::-1], 2)) + bare[26:]


def renumber_ogg(file: int, serial: bytes) -> None:
    """Give the stream in an open Ogg file this number (4 bytes) instead of one that was drawn."""
    content = os.pread(file, os.fstat(file).st_size, 0)
    os.pwrite(file, b"".join(_rewritten(page, 14, serial) for page in _pages(content)), 0)


# ---- MP3: joined files, and lengths that are estimated from the first frames.

_KBPS = {  # by layer, and whether it is MPEG 1
    (3, True): (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (2, True): (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (3, False): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
_KBPS[2, False] = _KBPS[3, False]
_HZ = (44100, 48000, 32000)  # of MPEG 1; 2 has half of it, 2.5 a quarter


@dataclass(frozen=True)
class _Frame:
    """MPEG frame: its bytes, where a table of contents would stand, and what all frames of a
    recording share."""

    size: int
    contents: int
    kind: tuple[int, int, int, bool]


def _mpeg_frame(data: bytes, place: int) -> _Frame | None:
    head = data[place : place + 4]
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return None
    version, layer = head[1] >> 3 & 3, 4 - (head[1] >> 1 & 3)
    rate, mono = head[2] >> 2 & 3, head[3] >> 6 == 3
    kbps = _KBPS.get((layer, version == 3), ())
    if version == 1 or rate == 3 or not 1 <= head[2] >> 4 <= len(kbps):
        return None
    hz = _HZ[rate] >> (0, 1, 2)[(3, 2, 0).index(version)]
    samples = 576 if layer == 3 and version != 3 else 1152
    size = samples * 125 * kbps[(head[2] >> 4) - 1] // hz + (head[2] >> 1 & 1)
    side = (17 if mono else 32) if version == 3 else 9 if mono else 17
    return _Frame(size, 4 + side, (version, layer, rate, mono))


@dataclass
class _Track:
    """Frames of one recording: places of its table of contents, where it has one, of the first and
    behind the last; listed: their number in that table."""

    toc: int
    begin: int
    end: int
    n: int = 0
    listed: int | None = None


def _mpeg_links(path: str, stream: BinaryIO) -> list[Link]:
    """Links of an MP3 file; none where it is one recording whose header tells its length."""
    content = stream.read()
    tracks, place, kind = list[_Track](), 0, None
    while place < len(content):
        frame = _mpeg_frame(content, place)
        if frame is None or place + frame.size > len(content):
            place = _next_frame(content, place)
            continue
        listed = _listed(content, place, frame)
        if listed is not None or frame.kind != kind:
            behind = place if listed is None else place + frame.size
            tracks.append(_Track(place, behind, behind, -(listed is not None), listed))
        place, kind = place + frame.size, frame.kind
        tracks[-1].end, tracks[-1].n = place, tracks[-1].n + 1
    links = []
    for track in (track for track in tracks if track.n):
        if track.listed is None or track.n > track.listed + 1:
            links.append(Link(partial(_piped, path, track.begin, track.end), told=False))
        elif track.n + 1 < track.listed:
            raise AudioError(_cut(track.listed, track.n, "frames"))
        else:
            links.append(Link(partial(_open_part, path, track.toc, track.end)))
    return [] if len(links) == 1 and links[0].told else links


def _next_frame(content: bytes, place: int) -> int:
    """Where frames go on behind tags, or what else stands there."""
    if content[place : place + 3] == b"ID3":
        return place + _id3_size(content[place : place + 10])
    while (place := content.find(b"\xff", place + 1)) >= 0:
        frame = _mpeg_frame(content, place)
        if frame and _mpeg_frame(content, place + frame.size):
            return place
    return len(content)


def _id3_size(head: bytes) -> int:
    """Bytes of the tags that begin so."""
    size = 0
    for byte in head[6:10]:
        size = size << 7 | byte & 127
    return 10 + size


def _listed(content: bytes, place: int, frame: _Frame) -> int | None:
    """Frames that the table of contents (Xing) in this frame lists; None where there is none."""
    for start in (place + frame.contents, place + frame.contents + 2):  # with a checksum
        name, flags, n = struct.unpack(">4sII", content[start : start + 12].ljust(12, b"\0"))
        if name in (b"Xing", b"Info") and flags & 1:
            return int(n)
    return None


@contextmanager
def _piped(path: str, begin: int, end: int) -> Iterator[_Forward]:
    """Open a stretch of a file as a pipe, of which libsndfile estimates no length."""
    file = Path(path).open("rb")  # noqa: SIM115
    out, into = os.pipe()

    def feed() -> None:
        with suppress(BrokenPipeError), os.fdopen(into, "wb") as stream, file:
            file.seek(begin)
            stream.write(file.read(end - begin))

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    try:
        with _Forward(out, closefd=False) as audio:
            yield audio
    finally:
        os.close(out)
        feeder.join()
