#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Protect speech while it is spoken: standard input to standard output, block by block.

Input: 16 kHz, one channel, 16 bit, little-endian; bare samples, or a WAV file, found by its first
bytes. The output is of the same kind. One voice speaks from beginning to end; the key decides
which; without --key or --key-file a secret is drawn and forgotten.
How late the output is, and how long the blocks took, is said on standard error at the end.

  arecord -f S16_LE -r 16000 -t raw | steps/protect_stream.py --key-file key | aplay -f S16_LE
"""

import sys
import time
from itertools import chain
from typing import Annotated

from steps.options import LIVE_SYSTEM, KeyFile, KeyText, SafeSystem
from utils.cli import UserError
from utils.commands import program


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
    loaded = load_system(system, key_number(choose_key(key, key_file)[0]))
    live = make_live(
        loaded.anonymiser, VoiceKey("spk", ("stream", "speaker"), ("stream", "speaker")),
        block=block, look_ahead=look_ahead, context=context,
    )  # fmt: skip
    out = sys.stdout.buffer
    head, blocks = open_pipe(sys.stdin.buffer, live.step)
    out.write(head)
    took, n_samples, clipped = list[float](), 0, 0
    for piece in chain(blocks, [None]):
        begun = time.perf_counter()
        written, cut = to_bytes(live.end() if piece is None else live.push(piece))
        out.write(written)
        out.flush()
        clipped += cut
        took.append(time.perf_counter() - begun)
        n_samples += 0 if piece is None else len(piece)
    seconds = n_samples / SAMPLE_RATE
    # The end speaks several blocks at once; of speech shorter than a block it does all the work.
    of_blocks = took[:-1] if n_samples >= live.delay else took
    print(
        f"protect_stream.py: {seconds:.1f} s of speech; {live.delay / SAMPLE_RATE:.3f} s behind it "
        f"by design, and up to {max(of_blocks):.3f} s a block of {block:g} s; real-time factor "
        f"{sum(took) / seconds if seconds else 0:.3f}; {clipped} samples cut at full scale",
        file=sys.stderr,
    )
