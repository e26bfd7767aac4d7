"""Recordings as people have them: each kind that went wrong, one test named after it."""

import fcntl
import io
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from scipy.signal import resample_poly

from local.metrics.utility import error_figures
from steps.anonymisers.external import find_speech
from steps.audio import read_audio, write_wav
from steps.protect_folder import main as protect_folder
from steps.standalone.job import JOURNAL
from steps.standalone.protection import MARK
from steps.standalone.stream import Recording, open_pipe
from steps.training.audio import TrainingAudio
from tests.recipes import ROOT, put_program
from tests.refusals import refuses, refuses_file
from tests.waiting import wait_for
from tests.world import encoded_by_av, voice
from utils.audiofile import AudioError, AudioFile, _pages, _rewritten, find_samples
from utils.cli import LossError
from utils.datachecks import probe_audio
from utils.tables import write_file

RATE = 16000


def documented() -> list[str]:
    """Commands of docs/protect.md and docs/stream.md on folders and streams, in order."""
    page = (ROOT / "docs/protect.md").read_text().partition("\n## A model")[0]
    page += (ROOT / "docs/stream.md").read_text()
    blocks = re.findall(r"```\n(.*?)```", page, re.S)
    return [line for block in blocks for line in block.split("\n")]


@pytest.mark.slow
def test_the_documented_stream_command_put_a_line_before_the_audio(tmp_path):
    """Documented commands run as they stand, in a checkout with the files that they name."""
    for path in ROOT.iterdir():
        (tmp_path / path.name).symlink_to(path)
    wave = voice(1.0, 120, 550)[:RATE]
    for name in ("speech.wav", "talk.wav", "recordings/anna-1.wav"):
        write_wav(tmp_path / name, wave)
    (tmp_path / "key").write_text("a key of sixteen or more\n")
    for tool, line in (("arecord", "tail -c +45 speech.wav"), ("aplay", "exec cat >played.raw")):
        put_program(tmp_path / "bin" / tool, f"#!/bin/sh\n{line}\n")
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    lines = [line for line in documented() if line and "PER=" not in line]
    assert len(lines) == 5
    for line in lines:
        words = ["bash", "-c", f". ./path.sh && {line}"]
        subprocess.run(words, check=True, cwd=tmp_path, env=os.environ | {"PATH": path})
    assert soundfile.info(tmp_path / "talk.protected.wav").frames >= RATE
    assert (tmp_path / "protected.wav").read_bytes()[:4] == b"RIFF"
    assert soundfile.info(tmp_path / "protected.wav").frames == RATE
    assert (tmp_path / "played.raw").stat().st_size == 2 * RATE
    made = np.frombuffer((tmp_path / "played.raw").read_bytes(), "<i2") / 32768
    assert made.any() and np.abs(made[:RATE] - wave).max() > 0.01
    # With ends of one length.
    assert soundfile.info(tmp_path / "protected/anna-1.wav").frames >= RATE


NOISE = 0.1 * np.random.default_rng(0).standard_normal(RATE)
LONG = np.tile(NOISE, 20)


def encoded(samples: np.ndarray, form: str, subtype: str | None = None, rate: int = RATE) -> bytes:
    stream = io.BytesIO()
    soundfile.write(stream, samples, rate, subtype, format=form)
    return stream.getvalue()


def patched(data: bytes, place: int, new: bytes) -> bytes:
    return data[:place] + new + data[place + len(new) :]


def wav(told: float, behind: bytes = b"") -> bytes:
    """A second whose header tells of so many seconds."""
    return patched(encoded(NOISE, "WAV"), 40, struct.pack("<I", int(told * 2 * RATE))) + behind


def mp3(samples: np.ndarray, *, table: bool = True) -> bytes:
    stream = io.BytesIO()
    soundfile.write(
        stream, samples, RATE, format="MP3", bitrate_mode="VARIABLE", compression_level=0.5
    )
    found = stream.getvalue()
    return found if table else found[found.index(b"\xff\xf3", found.index(b"Xing")) :]


def opus(place: Callable[[int], int]) -> bytes:
    """Three seconds of Opus whose pages tell other places."""
    pages = list(_pages(encoded(np.tile(NOISE, 3), "OGG", "OPUS")))
    given = [struct.unpack_from("<q", page, 6)[0] for page in pages]
    moved = (struct.pack("<q", place(there)) for there in given[2:])
    return b"".join(pages[:2] + list(map(_rewritten, pages[2:], [6] * len(given), moved)))


def of_mp3(n: int) -> tuple[int, int]:
    return n, n + 3 * 1152  # what an encoder adds


MP3 = mp3(NOISE)
ID3 = b"ID3\4\0\0\0\1\0\0" + bytes(128 * 128)
LIST = b"LIST" + struct.pack("<I", 12) + b"INFOIART" + bytes(4)
QUIET = np.concatenate((NOISE / 1000, NOISE, NOISE))
LENGTHS = {
    "flac_of_a_pipe": (patched(encoded(NOISE, "FLAC"), 21, b"\xf0" + bytes(4)), RATE),
    "wav_tells_half": (wav(0.5), RATE),
    "wav_tells_nothing": (wav(0), RATE),
    "wav_of_a_pipe": (patched(wav(1), 40, b"\xff" * 4), RATE),
    "wav_with_tags_behind": (wav(1, LIST), RATE),
    "wav_with_mp3_tags_behind": (wav(1, b"TAG" + bytes(125)), RATE),
    "wav_joined": (wav(1) + wav(1), 2 * RATE),
    "gsm": (encoded(NOISE[:8000], "WAV", "GSM610", 8000), (8000, 8320)),
    "g721": (encoded(NOISE, "AU", "G721_32"), (RATE, RATE + 320)),
    "g721_in_wav": (encoded(NOISE, "WAV", "G721_32"), (RATE, RATE + 320)),
    "aiff": (encoded(NOISE, "AIFF"), RATE),
    "aiff_float": (encoded(NOISE, "AIFF", "FLOAT"), RATE),
    "au_law": (encoded(np.stack([NOISE, NOISE], 1)[:, 0], "AU", "ULAW"), RATE),
    "au_of_a_pipe": (patched(encoded(NOISE, "AU", "PCM_24"), 8, b"\xff" * 4), RATE),
    "sphere": (encoded(NOISE, "NIST"), RATE),
    "caf": (encoded(NOISE, "CAF", "ALAC_16"), RATE),
    "nms": (encoded(NOISE, "WAV", "NMS_ADPCM_32"), (RATE, RATE + 320)),
    "mp3": (mp3(QUIET), 3 * RATE),
    "mp3_with_tags": (ID3 + MP3, RATE),
    "mp3_from_within_a_frame": (mp3(QUIET[::-1], table=False)[50:], (2 * RATE, 4 * RATE)),
    "mp3_joined_with_tags": (ID3 + MP3 + ID3 + mp3(QUIET) + b"TAG" + bytes(125), 4 * RATE),
    "flac_joined": (encoded(NOISE, "FLAC") + encoded(QUIET, "FLAC"), 4 * RATE),
    "flac_with_mp3_tags": (ID3 + encoded(NOISE, "FLAC"), RATE),
    "mp3_joined": (MP3 + mp3(QUIET), 4 * RATE),
    "mp3_tells_half": (
        patched(mp3(NOISE), mp3(NOISE).index(b"Xing") + 8, b"\0\0\0\x08"),
        of_mp3(RATE),
    ),
    "mp3_estimated_too_long": (mp3(QUIET, table=False), of_mp3(3 * RATE)),
    "mp3_estimated_too_short": (mp3(QUIET[::-1], table=False), of_mp3(3 * RATE)),
    "vorbis_of_changing_windows_was_truncated": (encoded(1e3 * LONG**5, "OGG"), 20 * RATE),
    "vorbis_joined": (encoded(NOISE, "OGG") + encoded(QUIET, "OGG"), 4 * RATE),
    "opus": (encoded(QUIET, "OGG", "OPUS"), 3 * RATE),
    "opus_joined": (2 * encoded(QUIET, "OGG", "OPUS"), (6 * RATE, 6 * RATE + 640)),
    "opus_in_other_units": (opus(lambda place: place // 3), (3 * RATE, 3 * RATE + 320)),
    "opus_without_places": (opus(lambda _: -1), (3 * RATE, 3 * RATE + 320)),
    "opus_begins_anew": (opus(lambda place: place % 96000), (3 * RATE, 3 * RATE + 320)),
    "opus_of_a_broadcast": (opus(lambda place: place + 10**9), 3 * RATE),
}


@pytest.mark.parametrize("name", LENGTHS)
def test_all_samples_are_read_whatever_the_header_tells(tmp_path, name):
    content, expected = LENGTHS[name]
    path = tmp_path / f"a.{name[:3]}"
    path.write_bytes(content)
    least, most = expected if isinstance(expected, tuple) else (expected, expected)
    found = AudioFile.open(path)
    assert least <= found.frames / (3 if found.rate == 48000 else 1) <= most
    assert sum(map(len, found.blocks(1000))) == found.frames
    assert (found.subtype == "OPUS") == name.startswith("opus")  # what is made of it is Opus, too
    assert (probe_audio(path).seconds, found.rate) == (found.seconds, found.rate)
    recording = Recording.open(path)
    whole = np.concatenate(list(recording.blocks()))
    assert (whole == read_audio("a", str(path)).samples).all()
    assert np.sqrt(np.mean(whole[-RATE // 2 :] ** 2)) > 1e-5


def test_a_wav_of_over_4_gib_lost_what_its_header_cannot_tell(tmp_path):
    n = 5 * 2**30  # bytes; the file has holes
    with (tmp_path / "a.wav").open("wb") as stream:
        stream.write(patched(wav(0)[:44], 40, struct.pack("<I", n % 2**32)))
        stream.truncate(44 + n)
    assert AudioFile.open(tmp_path / "a.wav").frames == n // 2


PAGES = list(_pages(encoded(LONG, "OGG")))
CUT = {
    "wav": (wav(3), "tells of 48000 samples, 16000 are there"),
    "rf64": (encoded(NOISE, "RF64")[:-8000], "tells of 16000 samples, 12000 are there"),
    "aiff": (encoded(NOISE, "AIFF")[:-8000], "tells of 16000 samples, 12000 are there"),
    "au": (encoded(NOISE, "AU")[:-8000], "tells of 16000 samples, 12000 are there"),
    "sphere": (encoded(NOISE, "NIST")[:-8000], "tells of 16000 samples, 12000 are there"),
    "flac": (encoded(NOISE, "FLAC")[:-8000], "tells of 16000 samples, "),
    "flac_joined": ((2 * encoded(NOISE, "FLAC"))[:-8000], "tells of 16000 samples, "),
    "w64": (encoded(NOISE, "W64")[:-8000], "tells of 16000 samples, 12000 are there"),
    "empty": (wav(0)[:44] + LIST, "has no samples"),
    "gsm": (encoded(NOISE, "WAV", "GSM610")[:-1000], "tells of 3250 bytes of samples, 2250 are"),
    "mp3": (mp3(QUIET)[:-4000], "frames, "),
    "vorbis": (encoded(LONG, "OGG")[:-20000], "bytes of its last page, "),
    "opus": (encoded(LONG, "OGG", "OPUS")[:-20000], "bytes of its last page, "),
    "ogg_in_a_head": (encoded(LONG, "OGG") + b"OggS\0", "of 27 bytes of its last page"),
    "unlike": (wav(1) + encoded(NOISE, "WAV", rate=8000), "joined of recordings with unlike rates"),
    "ogg_without_a_page": (b"".join(PAGES[:9] + PAGES[10:]), "tells of 20.0 seconds, 19.1 are"),
    "ogg_with_a_bit": (patched(b"".join(PAGES), 50000, b"bits"), "damaged: CRC mismatch"),
    "m4a": (b"\0\0\0\x1cftypM4A rest", r"MPEG-4 .*; a program that plays it can save"),
    "amr": (b"#!AMR\nrest", "is damaged: .*; a program that plays it can save"),
}


@pytest.mark.parametrize("name", CUT)
def test_a_file_of_which_samples_are_lost_is_named(tmp_path, name):
    content, said = CUT[name]
    refuses_file(said, AudioFile.open, tmp_path / "a", content, kind=AudioError)
    refuses(f"a: .*{said}", Recording.open, tmp_path / "a")
    refuses(f"utt: .*a: .*{said}", read_audio, "utt", str(tmp_path / "a"))


PIPED = {
    "tags": wav(1, LIST + b"id3 " + struct.pack("<I", 3) + b"abc\0"),
    "told_nothing": wav(0),
    "endless": LENGTHS["wav_of_a_pipe"][0],
    "told_more": wav(3),
    "bare": encoded(NOISE, "WAV")[44:],
    "like_mp3": b"\xff\xfb" + encoded(NOISE, "WAV")[46:],
}


@pytest.mark.parametrize("name", PIPED)
def test_tags_behind_samples_were_protected_as_speech(name):
    found = np.concatenate(list(open_pipe(io.BytesIO(PIPED[name]), 3200)[1]))
    assert np.abs(found - NOISE)[1:].max() < 1e-4 and len(found) == RATE


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (encoded(NOISE, "RF64"), "RF64, not a WAV file; 16 kHz"),
        (encoded(NOISE, "FLAC"), "FLAC"), (encoded(NOISE, "OGG"), "Ogg"), (MP3, "MP3"),
        (encoded(NOISE, "AIFF"), "AIFF"), (encoded(NOISE, "W64"), "W64"), (b"#!AMR\n12345", "AMR"),
        (mp3(NOISE, table=False), "MP3"), (2 * b"\xff\xf1P\x80\x01\x1f\xfc1", "AAC"),
        (b"\0\0\0\x1cftypM4A ", "MPEG-4"), (wav(0.5), "tells of 16000 bytes, but more"),
    ],
)  # fmt: skip
def test_other_containers_on_the_pipe_were_taken_for_samples(content, said):
    refuses(f"standard input: .*{said}", lambda: list(open_pipe(io.BytesIO(content), 3200)[1]))


# ---- Folders.

SYSTEM = ROOT / "egs/TEMPLATE/conf/systems/b2r.yaml"
VOICE = voice(1.0, 120, 550)[:RATE]
OPTIONS = ("--system", SYSTEM, "--key", "a key of sixteen")


def protect(folder: Path, *words: object, nj: int = 1) -> dict[str, np.ndarray]:
    """Samples of what the program makes of folder/in, by name."""
    given = (*OPTIONS, "--nj", nj, *words, folder / "in", folder / "out")
    assert protect_folder([str(word) for word in given]) == 0
    return made(folder)


def made(folder: Path) -> dict[str, np.ndarray]:
    out = folder / "out"
    names = [path for path in sorted(out.rglob("*")) if path.is_file() and path.name != JOURNAL]
    return {os.fsdecode(p.relative_to(out)): soundfile.read(os.fsencode(p))[0] for p in names}


def put(path: Path, content: bytes = encoded(VOICE, "WAV")) -> None:
    write_file(path, content)


def power(samples: np.ndarray) -> float:
    return float(np.var(samples))


@pytest.mark.parametrize("share", [-1, -0.9, -0.6])
def test_channels_that_cancel_became_silence(tmp_path, capsys, share):
    half = np.stack([VOICE, VOICE * np.where(np.arange(RATE) < RATE / 2, 1, share)], 1)
    put(tmp_path / "in/whole.wav", encoded(np.stack([VOICE, share * VOICE], 1), "WAV"))
    put(tmp_path / "in/apart.wav", encoded(np.stack([VOICE, NOISE / 9], 1), "WAV"))
    put(tmp_path / "in/later.wav", encoded(np.repeat(half, 4, 0), "WAV"))
    found = protect(tmp_path, "--level", "source")
    assert np.isclose(power(found["whole.wav"]), power(VOICE), rtol=0.05)
    assert power(found["later.wav"][-RATE:]) > 0.1 * power(found["later.wav"][:RATE])
    said = capsys.readouterr().err
    assert "whole.wav: its channels cancel each other; channel 1 is taken" in said
    assert "later.wav: its channels" in said and "apart.wav" not in said
    shutil.rmtree(tmp_path / "out")
    protect(tmp_path, "--channels", "each")
    assert "its channels" not in capsys.readouterr().err  # nothing is mixed


def test_an_offset_of_the_recorder_was_taken_for_loudness(tmp_path):
    quiet = NOISE / 300
    put(tmp_path / "in/room.wav", encoded(quiet + 0.05, "WAV"))
    put(tmp_path / "in/constant.wav", encoded(np.full(RATE, 0.05), "WAV"))
    put(tmp_path / "in/voice.wav", encoded(VOICE / 4, "WAV"))
    put(tmp_path / "in/voice with offset.wav", encoded(VOICE / 4 + 0.05, "WAV"))
    found = protect(tmp_path, "--per", "folder")
    assert np.isclose(power(found["room.wav"]), power(quiet), rtol=0.1)  # is no speech
    assert power(found["constant.wav"]) < 1e-9
    assert np.isclose(power(found["voice with offset.wav"]), power(found["voice.wav"]), rtol=0.02)


def test_protected_opus_was_vorbis_and_not_found_as_external(tmp_path):
    put(tmp_path / "in/PTT-1.opus", encoded(VOICE, "OGG", "OPUS"))
    put(tmp_path / "in/other.ogg", encoded(VOICE, "OGG"))
    found = protect(tmp_path)
    assert {len(wave) for wave in found.values()} == {RATE}
    assert soundfile.info(tmp_path / "out/PTT-1.opus").subtype == "OPUS"
    assert soundfile.info(tmp_path / "out/other.ogg").subtype == "VORBIS"
    assert find_speech(tmp_path / "out")["PTT-1"].endswith("PTT-1.opus")


NAMES = [b"Gespr\xe4ch.wav", b"x" * 251 + b".wav", "\u8a71".encode() * 80 + b".wav", b"A B.WAV"]


def test_names_of_files_as_people_have_them(tmp_path):
    for name in NAMES:
        put(tmp_path / "in" / os.fsdecode(name))
    found = protect(tmp_path)
    assert {os.fsencode(name) for name in found} == set(NAMES)
    assert protect(tmp_path).keys() == found.keys()


def test_folders_that_are_not_utf8_ended_in_a_traceback(tmp_path):
    """Also a remark on such a name; after hours, as the account was written."""
    place = tmp_path / os.fsdecode(b"\xe4")
    put(place / "in" / os.fsdecode(b"\xe4.wve"), encoded(VOICE, "AU"))
    assert protect(place).keys() == {os.fsdecode(b"\xe4.wve.wav")}
    told = json.loads((place / "out.account.json").read_text())
    assert told["out"].endswith(r"\xe4/out") and told["source"].endswith(r"\xe4/in")
    assert told["files"][r"\xe4.wve"]["warnings"] == [r"it became \xe4.wve.wav"]


def test_links_are_followed_once_and_none_vanishes(tmp_path, capsys):
    put(tmp_path / "in/a.wav")
    put(tmp_path / "elsewhere/b.wav")
    put(tmp_path / "in/sub/c.wav")
    (tmp_path / "out").mkdir()
    for name, target in (
        ("in/link", "../elsewhere"), ("in/again", "../elsewhere"), ("in/loop", "."),
        ("in/0", "sub"), ("in/file.wav", "a.wav"), ("in/back", "../out"), ("in/lost", "nowhere"),
    ):  # fmt: skip
        (tmp_path / name).symlink_to(target)
    for _ in range(2):
        refuses("1 of 5 files are not", protect, tmp_path, kind=LossError)
        assert set(made(tmp_path)) == {"a.wav", "sub/c.wav", "again/b.wav", "file.wav"}
        assert "in/lost: is a link that leads nowhere" in capsys.readouterr().err


def test_a_named_pipe_in_the_folder_hung(tmp_path, capsys):
    """So did a device; both are named, and the others are made, also by a run that goes on."""
    put(tmp_path / "in/a.wav")
    os.mkfifo(tmp_path / "in/live.wav")
    (tmp_path / "in/zero.wav").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.path.relpath(tmp_path / "in/s.wav"))
        for _ in range(2):
            refuses("3 of 4 files are not", protect, tmp_path, kind=LossError)
            assert set(made(tmp_path)) == {"a.wav"}
            said = capsys.readouterr().err
            for name in ("live.wav", "zero.wav", "s.wav"):
                assert re.search(f"in/{name}: is no", said)


@pytest.mark.parametrize("per", ["file", "speaker"])
def test_a_folder_that_cannot_be_listed_ended_the_run(tmp_path, capsys, monkeypatch, per):
    put(tmp_path / "in/a-1.wav")
    put(tmp_path / "in/private/b-1.wav")
    plain, access = os.scandir, os.access

    def scan(place):
        if Path(place).name == "private":
            raise PermissionError(13, "Permission denied", os.fspath(place))
        return plain(place)

    monkeypatch.setattr(os, "scandir", scan)
    monkeypatch.setattr(
        os, "access", lambda path, mode: Path(path).name != "private" and access(path, mode)
    )
    refuses("1 of 2 files are not", protect, tmp_path, "--per", per, kind=LossError)
    assert "in/private: is missing or may not be read" in capsys.readouterr().err
    assert set(made(tmp_path)) == {"a-1.wav"}


FOREIGN = {  # FFmpeg's container, codec, rate
    "m4a": ("mp4", "aac", RATE),
    "mov": ("mov", "pcm_s16le", RATE),
    "3gp": ("3gp", "libopencore_amrnb", 8000),
    "amr": ("amr", "libopencore_amrnb", 8000),
    "webm": ("webm", "libopus", RATE),
    "mka": ("matroska", "aac", RATE),
    "wma": ("asf", "wmav2", RATE),
    "aac": ("adts", "aac", RATE),
    "call": ("mp4", "aac", 8000),
    "caf": ("caf", "alac", 22050),
    "mkv": ("matroska", "aac", 8000),
    "ac3": ("ac3", "ac3", 48000),
    "wv": ("wv", "wavpack", RATE),
    "avi": ("avi", "mp3", RATE),
    "mpg": ("mpeg", "mp2", RATE),
}
SECONDS = 4


def foreign(kind: str, **options: Any) -> bytes:
    form, codec, rate = FOREIGN[kind]
    return encoded_by_av(steps(rate), form, codec, rate, **options)


def steps(rate: int) -> np.ndarray:
    """Tones that rise every half second."""
    times = np.arange(SECONDS * rate) / rate
    return 0.3 * np.sin(2 * np.pi * (200 + 100 * np.floor(2 * times)) * times)


@pytest.mark.parametrize("kind", FOREIGN)
def test_other_formats_needed_a_program_that_converts(tmp_path, kind):
    path = tmp_path / "a.wav"  # whatever its name says
    path.write_bytes(foreign(kind, tags={"title": "Anna"} if kind == "m4a" else None))
    found = AudioFile.open(path)
    samples = np.concatenate(list(found.blocks(999)))
    assert np.array_equal(samples, np.concatenate(list(found.blocks())))
    assert found.channels == 1 and found.tagged >= (kind == "m4a")
    assert abs(found.seconds - SECONDS) < 0.15
    given = resample_poly(steps(RATE), found.rate, RATE)
    shape = [np.abs(np.fft.rfft(x[: SECONDS * found.rate], 2**18)) for x in (samples[:, 0], given)]
    assert np.corrcoef(*shape)[0, 1] > 0.9
    part = TrainingAudio({"a": str(path)}, {"s": ["a"]}, {"a": SECONDS * RATE}).read("a", 100, 500)
    assert np.allclose(part, read_audio("a", str(path)).samples[100:600], atol=1e-4)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[: len(data) * 6 // 10 + 50],
    "cut_at_the_end": lambda data: data[: -len(data) // 20],
    "hole": lambda data: data[: len(data) // 2] + data[len(data) * 6 // 10 :],
    "noise": lambda data: patched(
        data, len(data) // 2, random.Random(1).randbytes(len(data) // 10)
    ),
    "zeros": lambda data: patched(data, len(data) // 2, bytes(len(data) // 10)),
}
UNSEEN = {  # these have no checksum there, or only an index
    ("mov", "noise"), ("mov", "zeros"), ("amr", "zeros"), ("3gp", "zeros"),
    ("avi", "cut_at_the_end"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "damage"), [both for both in product(FOREIGN, DAMAGES) if both not in UNSEEN]
)
def test_of_damaged_files_of_other_formats_the_rest_was_taken(tmp_path, kind, damage):
    put(tmp_path / "a", DAMAGES[damage](foreign(kind)))
    refuses("damaged|cannot be read as", AudioFile.open, tmp_path / "a", kind=AudioError)


def test_a_live_webm_that_ends_within_a_packet(tmp_path):
    """It tells no length, as of a browser's recorder."""
    content = foreign("webm", live="1")
    put(tmp_path / "whole", content)
    put(tmp_path / "cut", content[:-5])
    assert AudioFile.open(tmp_path / "whole").seconds == SECONDS
    refuses("ended prematurely", AudioFile.open, tmp_path / "cut", kind=AudioError)


@pytest.mark.parametrize(
    ("tracks", "film", "said"),
    [(0, True, "has no audio track"), (2, False, "has 2 audio tracks"), (1, True, "")],
)
def test_one_of_several_tracks_was_taken(tmp_path, tracks, film, said):
    put(tmp_path / "a.mp4", foreign("m4a", tracks=tracks, film=film))
    if said:
        refuses(said, AudioFile.open, tmp_path / "a.mp4", kind=AudioError)
    else:
        assert abs(AudioFile.open(tmp_path / "a.mp4").seconds - SECONDS) < 0.15


@pytest.mark.parametrize(
    "content",
    [
        "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\n{}\n#EXT-X-ENDLIST\n",
        "ffconcat version 1.0\nfile {}\n",
        "[playlist]\nFile1={}\n",
        "v=0\no=- 0 0 IN IP4 127.0.0.1\nc=IN IP4 127.0.0.1\nm=audio 9 RTP/AVP 0\na={}\n",
    ],
)
@pytest.mark.parametrize("url", ["b.m4a", "file:b.m4a", "http://127.0.0.1:{}/b.m4a"])
def test_a_play_list_opens_no_other_file(here, content, url):
    put(here / "b.m4a", foreign("m4a"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = server.getsockname()[1]
        for name in ("a.m3u8", "a.m4a", "http:a.m4a", "concat:b.m4a|b.m4a"):
            put(here / name, content.format(url.format(port)).encode())
            refuses("cannot be read as audio", AudioFile.open, name, kind=AudioError)
        with pytest.raises(BlockingIOError):
            server.accept()
    put(here / "http:a.m4a", foreign("m4a"))
    assert AudioFile.open("http:a.m4a").frames


def test_formats_that_libsndfile_does_not_read_in_a_folder(tmp_path, capfd):
    """They were left out; now they are read, or named."""
    put(tmp_path / "in/memo.m4a", foreign("m4a"))
    put(tmp_path / "in/memo 2.WMA", b"0&\xb2u random")
    put(tmp_path / "in/memo1.wav")
    put(tmp_path / "in/notes.txt", b"names")
    refuses("1 of 3 files are not", protect, tmp_path, kind=LossError)
    said = capfd.readouterr().err
    assert "1 other files" in said and "memo 2.WMA: cannot be read as audio: " in said
    assert "mov" not in said and "@ 0x" not in said  # no library talks
    assert "ASF (wma)); a program" in (tmp_path / "out.failed.txt").read_text()
    assert made(tmp_path).keys() == {"memo.m4a.wav", "memo1.wav"}


def test_formats_were_written_that_say_another_rate_or_cannot_be_read(tmp_path):
    """Sound Designer's, Psion's and FastTracker's: nobody could hear what was in OUT."""
    for name in soundfile.available_formats().keys() - {"RAW"}:
        put(tmp_path / f"in/{name}.{name.lower()}")
    protect(tmp_path)
    for path in (tmp_path / "out").glob("[!.]*"):
        found = AudioFile.open(path)
        assert (path.name, found.rate, found.frames) == (path.name, RATE, len(VOICE))
    assert {path.name for path in (tmp_path / "out").glob("*.*.wav")} == {
        "SD2.sd2.wav", "WVE.wve.wav", "XI.xi.wav"
    }  # fmt: skip


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file can be longer, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("form", ["FLAC", "OGG"])
def test_a_disk_that_was_full_at_the_last_bytes_left_cut_files(tmp_path, form):
    """libsndfile writes these when it closes a file, and tells nobody that it could not."""
    put(tmp_path / f"in/a.{form.lower()}", encoded(VOICE, form))
    protect(tmp_path)
    path, cut, said = tmp_path / f"out/a.{form.lower()}", tmp_path / "b.flac", "File too large"
    write_wav(cut, NOISE)
    sizes = {name: name.stat().st_size - 50 for name in (path, cut)}
    path.unlink(), cut.unlink()
    with room_for(sizes[path]):
        refuses("1 of 1 files are not", protect, tmp_path, kind=LossError)
    with room_for(sizes[cut]):
        refuses(f"b.flac: cannot be written: {said}", write_wav, cut, NOISE)
    assert not (path.exists() or cut.exists())
    assert f"cannot be written: {said}" in (tmp_path / "out.failed.txt").read_text()


def test_failures_are_listed_beside_the_current_folder(tmp_path, monkeypatch):
    put(tmp_path / "in/a.wav", b"no audio")
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "out")
    words = [str(word) for word in (*OPTIONS, "--nj", 1, "../in", ".")]
    refuses("1 of 1 files are not", protect_folder, words, kind=LossError)
    assert (tmp_path / "out.failed.txt").read_text().startswith("../in/a.wav: cannot be read")


@pytest.mark.slow
def test_more_processes_make_the_same_bytes(tmp_path):
    for number, name in enumerate(("a-1.wav", "a-2.flac", "b-1.ogg", "b-2.opus", "c-1.mp3")):
        samples = np.tile(voice(1.0, 100 + 20 * number, 550), 1 + number % 2)
        kind = {"opus": "OGG"}.get(name[4:], name[4:].upper())
        put(tmp_path / "in" / name, encoded(samples, kind, "OPUS" if "opus" in name else None))
    protect(tmp_path, "--per", "speaker", nj=3)
    (tmp_path / "out").rename(tmp_path / "before")
    protect(tmp_path, "--per", "speaker")
    for path in (tmp_path / "out").iterdir():
        if path.name != JOURNAL:
            assert path.read_bytes() == (tmp_path / "before" / path.name).read_bytes()


def test_files_say_that_they_are_synthetic_and_lose_other_tags(tmp_path, capsys):
    (tmp_path / "in").mkdir()
    for kind in ("WAV", "FLAC", "OGG", "MP3"):
        path = tmp_path / f"in/x.{kind}"
        with soundfile.SoundFile(path, "w", RATE, 1, format=kind) as audio:
            audio.title, audio.artist = "Interview with Anna", "Anna"
            audio.write(VOICE)
    put(tmp_path / "in/bare.au", encoded(VOICE, "AU"))
    protect(tmp_path)
    assert "4 files had tags" in capsys.readouterr().out
    for path in (tmp_path / "out").iterdir():
        assert b"Anna" not in path.read_bytes()
        assert (MARK.encode() in path.read_bytes()) == (path.suffix not in (".au", ".jsonl"))


def test_files_of_floats_told_the_second_at_which_they_were_made(tmp_path):
    """So a key did not give the same file again, and drawn names told an order."""
    for kind in ("wav", "aiff", "caf", "rf64"):
        put(tmp_path / f"in/x.{kind}", encoded(VOICE, kind.upper(), "FLOAT"))
    protect(tmp_path)
    for path in (tmp_path / "out").glob("x.*"):
        assert soundfile.info(path).subtype == "FLOAT" and b"PEAK" not in path.read_bytes().upper()


def test_the_journal_told_when_recordings_were_made(tmp_path):
    put(tmp_path / "in/a.wav")
    protect(tmp_path)
    before = (tmp_path / "out/a.wav").stat().st_mtime_ns
    told = (tmp_path / "out" / JOURNAL).read_text()
    assert str((tmp_path / "in/a.wav").stat().st_mtime_ns)[:8] not in told
    os.utime(tmp_path / "in/a.wav", (1, 1))
    protect(tmp_path)
    assert (tmp_path / "out/a.wav").stat().st_mtime_ns == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "nj"),
    [(signal.SIGINT, 1), (signal.SIGTERM, 1), (signal.SIGINT, 2), (signal.SIGKILL, 2)],
)
def test_a_killed_run_left_half_files_that_play(tmp_path, how, nj):
    put(tmp_path / "in/long.wav", encoded(np.tile(VOICE, 400), "WAV"))
    put(tmp_path / "in/other.flac", encoded(np.tile(VOICE, 400), "FLAC"))
    words = [*OPTIONS, "--nj", nj, tmp_path / "in", tmp_path / "out"]
    program = [sys.executable, ROOT / "steps/protect_folder.py", *words]
    restore = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a shell's background lacks it
    with subprocess.Popen(list(map(str, program)), preexec_fn=restore) as run:
        wait_for(lambda: open_files(tmp_path / "out") or run.poll() is not None)
        run.send_signal(how)
    assert run.returncode in (-how, 130)
    assert [path.name for path in (tmp_path / "out").rglob("*")] == [JOURNAL]
    wait_for(lambda: not open_files(tmp_path / "out"))  # no process goes on


def open_files(folder: Path) -> bool:
    """Whether any process has a file without a name open there."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process has ended, or the file was closed meanwhile
            links = [link.readlink() for link in (process / "fd").iterdir()]
            if any(str(link).startswith(f"{folder}/#") for link in links):
                return True
    return False


def test_two_runs_on_one_folder_are_kept_apart(tmp_path):
    put(tmp_path / "in/a.wav")
    (tmp_path / "out").mkdir()
    with (tmp_path / "out" / JOURNAL).open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        refuses("out: another run writes there", protect, tmp_path)
    assert set(protect(tmp_path)) == {"a.wav"}


@pytest.mark.parametrize("words", [("--key", "Anna"), ("--key-file", "short")])
def test_a_key_that_is_soon_guessed_was_taken(tmp_path, words):
    put(tmp_path / "in/a.wav")
    put(tmp_path / "short", b"fifteen letters\n")
    given = [words[0], str(tmp_path / words[1]) if "file" in words[0] else words[1]]
    folders = [str(tmp_path / name) for name in ("in", "out")]
    refuses("at least 16, or none", protect_folder, [*given, "--system", str(SYSTEM), *folders])


# ---- Languages.


@pytest.mark.parametrize(
    ("said", "heard", "wer"),
    [
        ("की का कि के", "का कि की को", 0.75),  # Hindi
        ("दिल दुल दल देल", "दल दिल देल दुल", 1),  # Hindi
        ("ọkọ̀ ọkọ́", "ọkọ́ ọkọ́", 0.5),  # Yoruba
        ("தமிழ் மிக", "தமிழ மிக", 0.5),  # Tamil
        ("hello [background noise] world", "hello world", 0),
        ("<door slams> a", "a", 0),
        ("ज़रा \u200cसी", "ज़रा सी", 0),
        ("❤️ a", "a", 0),
    ],
)  # fmt: skip
def test_vowel_signs_were_no_letters(said, heard, wer):
    figures = error_figures({"a": said}, {"a": heard}, {"a": "a"}, normaliser="plain")
    assert figures["wer"] == wer


@pytest.mark.parametrize(
    ("text", "normaliser", "said"),
    [
        ("今天天气很好", "plain", "read cer, not wer"),
        ("วันนี้อากาศดี", "plain", "read cer, not wer"),
        ("दिल दुल", "english", "take --spelling plain"),
        ("दिल दुल", "plain", ""),
        ("naïve café", "english", ""),
    ],
)  # fmt: skip
def test_text_without_blanks_was_one_word(caplog, text, normaliser, said):
    error_figures({"a": text}, {"a": text[:4]}, {"a": "a"}, normaliser=normaliser)
    assert said in caplog.text if said else not caplog.text


def test_an_unfinished_rf64_was_taken_for_a_damaged_one():
    """Its recorder was killed before it wrote the length: 0 in ds64 and all ones in data."""
    chunks = [(b"ds64", bytes(28)), (b"fmt ", struct.pack("<HHIIHH", 1, 1, 16000, 32000, 2, 16))]
    body = b"".join(kind + struct.pack("<I", len(held)) + held for kind, held in chunks)
    found = find_samples(io.BytesIO(body + b"data\xff\xff\xff\xff"))
    assert found == (0, (1, 1, 16000, 32000, 2, 16))
