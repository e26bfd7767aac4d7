# SPDX-License-Identifier: Apache-2.0
"""Speech on a pipe: bare samples, or a WAV file of unknown length."""

import struct
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from steps.audio import SAMPLE_RATE
from utils.arrays import Float64
from utils.cli import UserError

_FULL = 32768
_ENDLESS = 0xFFFFFFFF  # marks an unknown length of a stream
WHAT = "16 kHz, one channel, 16 bit are expected; convert it (sox, ffmpeg) before the pipe"


def open_pipe(stream: BinaryIO, size: int) -> tuple[bytes, Iterator[Float64]]:
    """Header for the output (empty for bare samples), and blocks of `size` samples.

    The last block may be shorter. UserError for a WAV file of another kind, and for half a sample.
    """
    begin = stream.read(4)
    if begin != b"RIFF":
        return b"", _blocks(stream, begin, size)
    _skip_to_samples(stream)
    return _header(), _blocks(stream, b"", size)


def to_bytes(samples: Float64) -> tuple[bytes, int]:
    """Samples of 16 bit of a signal (n,), full scale 1, and the number clipped."""
    whole = np.rint(samples * _FULL)
    cut = int(((whole > _FULL - 1) | (whole < -_FULL)).sum())
    return np.clip(whole, -_FULL, _FULL - 1).astype("<i2").tobytes(), cut


def _blocks(stream: BinaryIO, begin: bytes, size: int) -> Iterator[Float64]:
    waiting = begin
    while True:
        found = stream.read(2 * size - len(waiting))
        waiting += found
        if len(waiting) % 2 and not found:
            raise UserError("standard input: ends within a sample; 16 bit a sample are expected")
        if len(waiting) == 2 * size or not found:
            if waiting:
                yield np.frombuffer(waiting, "<i2").astype(np.float64) / _FULL
            waiting = b""
        if not found:
            return


def _skip_to_samples(stream: BinaryIO) -> None:
    """Read a WAV file, after its first four bytes, up to its samples; UserError if invalid."""
    if stream.read(8)[4:] != b"WAVE":
        raise UserError(f"standard input: RIFF, but no WAV file; {WHAT}")
    known = False
    while True:
        head = stream.read(8)
        if len(head) < 8:
            raise UserError(f"standard input: a WAV file without samples; {WHAT}")
        name, size = struct.unpack("<4sI", head)
        if name == b"data":
            if not known:
                raise UserError(f"standard input: a WAV file without a format; {WHAT}")
            return
        body = stream.read(size + size % 2)
        if name == b"fmt " and len(body) >= 16:
            kind, channels, rate, _, _, bits = struct.unpack("<HHIIHH", body[:16])
            if (kind in (1, 0xFFFE), channels, rate, bits) != (True, 1, SAMPLE_RATE, 16):
                raise UserError(
                    f"standard input: {rate} Hz, {channels} channels, {bits} bit; {WHAT}"
                )
            known = True


def _header() -> bytes:
    shape = struct.pack("<HHIIHH", 1, 1, SAMPLE_RATE, 2 * SAMPLE_RATE, 2, 16)
    return b"".join((
        b"RIFF", struct.pack("<I", _ENDLESS), b"WAVEfmt ", struct.pack("<I", 16), shape,
        b"data", struct.pack("<I", _ENDLESS),
    ))  # fmt: skip
