#!/usr/bin/env python3
"""Protect speech while it is spoken: standard input to standard output, block by block.

Input: 16 kHz, one channel, 16 bit, little-endian; bare samples, or a WAV file, found by its first
bytes. The output is of the same kind. One voice speaks from beginning to end; the key decides
which; without --key or --key-file a secret is drawn and forgotten.
How late the output is, and how long the blocks took, is said on standard error at the end.

  arecord -f S16_LE -r 16000 -t raw | steps/protect_stream.py --key-file key | aplay -f S16_LE
"""

import sys
import time
from pathlib import Path
from typing import Annotated

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils.cli import UserError, run_program
from utils.commands import program

DEFAULT = Path(__file__).resolve().parents[1] / "models/bn"


@program
def main(
    *,
    system: Annotated[Path, "The system that protects speech", "SYSTEM"] = DEFAULT,
    key: Annotated[str | None, "The key; others may see it in a list of processes", "TEXT"] = None,
    key_file: Annotated[Path | None, "The file whose first line is the key", "FILE"] = None,
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
    from steps.standalone.job import draw_key, key_number, load_system, read_key
    from steps.standalone.stream import make_live, open_pipe, to_bytes

    if key is not None and key_file is not None:
        raise UserError("--key and --key-file: give one of them")
    given = key if key_file is None else read_key(key_file)
    loaded = load_system(system, key_number(draw_key() if given is None else given))
    live = make_live(
        loaded.anonymiser, VoiceKey("spk", ("stream", "speaker"), ("stream", "speaker")),
        block=block, look_ahead=look_ahead, context=context,
    )  # fmt: skip
    out = sys.stdout.buffer
    head, blocks = open_pipe(sys.stdin.buffer, live.step)
    out.write(head)
    took, n_samples, clipped = [0.0], 0, 0
    for piece in blocks:
        begun = time.perf_counter()
        written, cut = to_bytes(live.push(piece))
        took.append(time.perf_counter() - begun)
        out.write(written)
        out.flush()
        n_samples, clipped = n_samples + len(piece), clipped + cut
    written, cut = to_bytes(live.end())
    out.write(written)
    out.flush()
    seconds = n_samples / SAMPLE_RATE
    print(
        f"protect_stream.py: {seconds:.1f} s of speech; {live.delay / SAMPLE_RATE:.3f} s behind it "
        f"by design, and up to {max(took):.3f} s a block of {block:g} s; real-time factor "
        f"{sum(took) / max(seconds, 1e-9):.3f}; {clipped + cut} samples cut at full scale",
        file=sys.stderr,
    )


if __name__ == "__main__":
    run_program(main)
