"""Recordings as people have them: each kind that went wrong, one test named after it."""

import io
import os
import re
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from steps.audio import read_audio
from steps.standalone.stream import Recording
from tests.making import voice
from tests.recipes import ROOT
from tests.refusals import refuses
from utils.audiofile import AudioError, AudioFile, _move, _pages
from utils.datachecks import probe_audio

RATE = 16000


def documented() -> list[str]:
    """Commands of docs/protect.md on folders and streams, in order."""
    page = (ROOT / "docs/protect.md").read_text().partition("\n## A model")[0]
    blocks = re.findall(r"```\n(.*?)```", page, re.S)
    return [line for block in blocks for line in block.split("\n")]


@pytest.mark.slow
def test_the_documented_stream_command_put_a_line_before_the_audio(tmp_path: Path) -> None:
    """Documented commands run as they stand, in a checkout with the files that they name."""
    for path in ROOT.iterdir():
        (tmp_path / path.name).symlink_to(path)
    wave = voice(1.0, 120, 550)[:RATE]
    (tmp_path / "recordings").mkdir()
    for name in ("speech.wav", "recordings/anna-1.wav"):
        soundfile.write(tmp_path / name, wave, RATE)
    (tmp_path / "key").write_text("a key of sixteen or more\n")
    (tmp_path / "bin").mkdir()
    for tool, line in (("arecord", "tail -c +45 speech.wav"), ("aplay", "exec cat >played.raw")):
        (tmp_path / "bin" / tool).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / "bin" / tool).chmod(0o755)
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    lines = [line for line in documented() if line and "PER=" not in line]
    assert len(lines) == 4
    for line in lines:
        words = ["bash", "-c", f". ./path.sh && {line}"]
        subprocess.run(words, check=True, cwd=tmp_path, env=os.environ | {"PATH": path})
    assert (tmp_path / "protected.wav").read_bytes()[:4] == b"RIFF"
    assert soundfile.info(tmp_path / "protected.wav").frames == RATE
    assert (tmp_path / "played.raw").stat().st_size == 2 * RATE
    made = np.frombuffer((tmp_path / "played.raw").read_bytes(), "<i2") / 32768
    assert made.any() and np.abs(made[:RATE] - wave).max() > 0.01
    assert soundfile.info(tmp_path / "protected/anna-1.wav").frames == RATE


NOISE = 0.1 * np.random.default_rng(0).standard_normal(RATE)


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
    moved = [_move(*both) for both in zip(pages[2:], map(place, given[2:]), strict=True)]
    return b"".join(pages[:2] + moved)


def of_mp3(n: int) -> tuple[int, int]:
    return n, n + 3 * 1152  # what an encoder adds


MP3 = mp3(NOISE)
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
    "nms": (encoded(NOISE, "WAV", "NMS_ADPCM_32"), (RATE, RATE + 320)),
    "mp3": (mp3(QUIET), 3 * RATE),
    "mp3_joined": (MP3 + mp3(QUIET), 4 * RATE),
    "mp3_tells_half": (
        patched(mp3(NOISE), mp3(NOISE).index(b"Xing") + 8, b"\0\0\0\x08"),
        of_mp3(RATE),
    ),
    "mp3_estimated_too_long": (mp3(QUIET, table=False), of_mp3(3 * RATE)),
    "mp3_estimated_too_short": (mp3(QUIET[::-1], table=False), of_mp3(3 * RATE)),
    "vorbis_joined": (encoded(NOISE, "OGG") + encoded(QUIET, "OGG"), 4 * RATE),
    "opus": (encoded(QUIET, "OGG", "OPUS"), 3 * RATE),
    "opus_joined": (2 * encoded(QUIET, "OGG", "OPUS"), (6 * RATE, 6 * RATE + 640)),
    "opus_in_other_units": (opus(lambda place: place // 3), (3 * RATE, 3 * RATE + 320)),
    "opus_without_places": (opus(lambda _: -1), (3 * RATE, 3 * RATE + 320)),
    "opus_begins_anew": (opus(lambda place: place % 96000), (3 * RATE, 3 * RATE + 320)),
    "opus_of_a_broadcast": (opus(lambda place: place + 10**9), 3 * RATE),
}


@pytest.mark.parametrize("name", LENGTHS)
def test_all_samples_are_read_whatever_the_header_tells(tmp_path: Path, name: str) -> None:
    content, expected = LENGTHS[name]
    (tmp_path / "a").write_bytes(content)
    least, most = expected if isinstance(expected, tuple) else (expected, expected)
    found = AudioFile.open(tmp_path / "a")
    assert least <= found.frames <= most
    assert sum(map(len, found.blocks(1000))) == found.frames
    assert (probe_audio(tmp_path / "a").seconds, found.rate) == (found.seconds, found.rate)
    recording = Recording.open(tmp_path / "a")
    whole = np.concatenate(list(recording.blocks()))
    assert (whole == read_audio("a", str(tmp_path / "a")).samples).all()
    assert np.sqrt(np.mean(whole[-RATE // 2 :] ** 2)) > 1e-5


CUT = {
    "wav": (wav(3), "tells of 48000 samples, 16000 are there"),
    "rf64": (encoded(NOISE, "RF64")[:-8000], "tells of 16000 samples, 12000 are there"),
    "flac": (encoded(NOISE, "FLAC")[:-8000], "tells of 16000 samples, "),
    "gsm": (encoded(NOISE, "WAV", "GSM610")[:-1000], "tells of 3250 bytes of samples, 2250 are"),
    "mp3": (mp3(QUIET)[:-4000], "frames, "),
    "unlike": (wav(1) + encoded(NOISE, "WAV", rate=8000), "joined of recordings with unlike rates"),
    "m4a": (b"\0\0\0\x1cftypM4A rest", r"MPEG-4 .*; convert it: ffmpeg -i 'a' 'a.wav'"),
    "amr": (b"#!AMR\nrest", r"AMR\); convert it: ffmpeg"),
}


@pytest.mark.parametrize("name", CUT)
def test_a_file_of_which_samples_are_lost_is_named(tmp_path: Path, name: str) -> None:
    content, said = CUT[name]
    (tmp_path / "a").write_bytes(content)
    refuses(said, AudioFile.open, tmp_path / "a", kind=AudioError)
    refuses(f"a: .*{said}", Recording.open, tmp_path / "a")
    refuses(f"utt: .*a: .*{said}", read_audio, "utt", str(tmp_path / "a"))
