#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Protect speech while it is spoken: standard input to standard output, block by block.

Input: 16 kHz, one channel, 16 bit, little-endian; bare samples, or a WAV file, found by its first
bytes. The output is of the same kind. One voice speaks from beginning to end; the key decides
which; without --key or --key-file a secret is drawn and forgotten.
At the end standard error gets the delay of the output and the time that blocks took, also after
Ctrl-C or SIGTERM: the speech heard by then is spoken, and the exit status is 130 or 143.

  arecord -f S16_LE -r 16000 -t raw | steps/protect_stream.py --key-file key | aplay -f S16_LE
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Annotated, TypeVar

from steps.options import LIVE_SYSTEM, KeyFile, KeyText, SafeSystem
from utils.cli import UserError
from utils.commands import program

T = TypeVar("T")


class _Signals:
    """The first SIGINT or SIGTERM ends what is read, at once or when a block is done; a second one
    ends the program."""

    class _Ended(Exception):
        pass

    def __init__(self) -> None:
        self.number, self._reading = 0, False
        self._before = {n: signal.signal(n, self._take) for n in (signal.SIGINT, signal.SIGTERM)}

    def _take(self, number: int, _: FrameType | None) -> None:
        self.number = number
        self.restore()
        if self._reading:
            raise self._Ended

    def restore(self) -> None:
        """Have signals end the program."""
        for number, before in self._before.items():
            signal.signal(number, before)

    def read(self, take: Callable[[], T]) -> T | None:
        """Return the result of a function that reads, or None after a signal."""
        try:
            self._reading = True
            return None if self.number else take()
        except self._Ended:
            return None
        finally:
            self._reading = False


@program
def main(
    *,
    system: SafeSystem = LIVE_SYSTEM, key: KeyText = None, key_file: KeyFile = None,
    block: Annotated[
        float, "The length of a block that is protected at a time, in seconds (0.04 to 0.2)",
        "SECONDS",
    ] = 0.2,
    look_ahead: Annotated[
        float, "How much after a block is heard before it is spoken, in seconds; McAdams hears "
        "0.01", "SECONDS",
    ] = 0.1,
    context: Annotated[
        float, "How much before a block is heard again with it, in seconds; McAdams needs none",
        "SECONDS",
    ] = 1.0,
) -> None:  # fmt: skip
    from steps.audio import SAMPLE_RATE
    from steps.sources import VoiceKey
    from steps.standalone.job import choose_key, key_number, load_system
    from steps.standalone.stream import make_live, open_pipe, to_bytes

    if key is not None and key_file is not None:
        raise UserError("--key and --key-file: give one of them")
    with suppress(OSError, ValueError):
        if key_file is not None and os.path.samestat(key_file.stat(), os.fstat(sys.stdin.fileno())):
            raise UserError(f"{key_file}: standard input is the speech; give the key another way")
    loaded = load_system(system, key_number(choose_key(key, key_file)[0]))
    live = make_live(
        loaded.anonymiser, VoiceKey("spk", ("stream", "speaker"), ("stream", "speaker")),
        block=block, look_ahead=look_ahead, context=context,
    )  # fmt: skip
    out = sys.stdout.buffer
    signals = _Signals()
    took, n_samples, clipped = list[float](), 0, 0
    try:
        opened = signals.read(lambda: open_pipe(sys.stdin.buffer, live.step))
        head, blocks = opened or (b"", iter(()))
        out.write(head)
        more = True
        while more:
            piece = signals.read(lambda: next(blocks, None))
            begun, more = time.perf_counter(), piece is not None
            written, cut = to_bytes(live.end() if piece is None else live.push(piece))
            out.write(written)
            out.flush()
            clipped += cut
            took.append(time.perf_counter() - begun)
            n_samples += 0 if piece is None else len(piece)
    except BrokenPipeError:
        if not signals.number:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())  # the player was ended as well
    finally:
        signals.restore()
    seconds = n_samples / SAMPLE_RATE
    # The end speaks several blocks at once; of speech shorter than a block it does all the work.
    of_blocks = took[:-1] if n_samples >= live.delay else took
    print(
        f"protect_stream.py: {seconds:.1f} s of speech; {live.delay / SAMPLE_RATE:.3f} s behind it "
        f"by design, and up to {max(of_blocks, default=0):.3f} s a block of {block:g} s; real-time "
        f"factor {sum(took) / seconds if seconds else 0:.3f}; {clipped} samples cut at full scale",
        file=sys.stderr,
    )
    if signals.number:
        sys.exit(128 + signals.number)
