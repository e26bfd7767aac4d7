#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Protect speech while it is spoken: standard input to standard output, block by block.

Input: 16 kHz, one channel, 16 bit, little-endian; bare samples, or a WAV file, found by its first
bytes. The output is of the same kind. One voice speaks from beginning to end; the key decides
which; without --key or --key-file a secret is drawn and forgotten.
How late the output is, and how long the blocks took, is said on standard error at the end.

  arecord -f S16_LE -r 16000 -t raw | steps/protect_stream.py --key-file key | aplay -f S16_LE
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils.cli import make_parser, run_program

DEFAULT = Path(__file__).resolve().parents[1] / "models/bn"


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument(
        "--system", type=Path, default=DEFAULT, metavar="SYSTEM",
        help="The system that protects speech",
    )  # fmt: skip
    keys = parser.add_mutually_exclusive_group()
    keys.add_argument(
        "--key", metavar="TEXT", help="The key; others may see it in a list of processes"
    )
    keys.add_argument(
        "--key-file", type=Path, metavar="FILE", help="The file whose first line is the key"
    )
    parser.add_argument(
        "--block", type=float, default=0.2, metavar="SECONDS",
        help="The length of a block that is protected at a time, in seconds (0.04 to 0.2)",
    )  # fmt: skip
    parser.add_argument(
        "--look-ahead", type=float, default=0.1, metavar="SECONDS",
        help="How much after a block is heard before it is spoken, in seconds; McAdams hears 0.01",
    )  # fmt: skip
    parser.add_argument(
        "--context", type=float, default=1.0, metavar="SECONDS",
        help="How much before a block is heard again with it, in seconds; McAdams needs none",
    )  # fmt: skip
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    from steps.audio import SAMPLE_RATE
    from steps.folders.job import draw_key, key_number, read_key
    from steps.folders.live import make_live
    from steps.folders.pipes import open_pipe, to_bytes
    from steps.folders.system import load_system
    from steps.keys import Key

    given = args.key if args.key_file is None else read_key(args.key_file)
    system = load_system(args.system, key_number(draw_key() if given is None else given))
    live = make_live(
        system.anonymiser, Key("spk", ("stream", "speaker"), ("stream", "speaker")),
        block=args.block, look_ahead=args.look_ahead, context=args.context,
    )  # fmt: skip
    out = sys.stdout.buffer
    head, blocks = open_pipe(sys.stdin.buffer, live.step)
    out.write(head)
    took, n_samples, clipped = [0.0], 0, 0
    for block in blocks:
        begun = time.perf_counter()
        written, cut = to_bytes(live.push(block))
        took.append(time.perf_counter() - begun)
        out.write(written)
        out.flush()
        n_samples, clipped = n_samples + len(block), clipped + cut
    written, cut = to_bytes(live.end())
    out.write(written)
    out.flush()
    seconds = n_samples / SAMPLE_RATE
    print(
        f"protect_stream.py: {seconds:.1f} s of speech; {live.delay / SAMPLE_RATE:.3f} s behind it "
        f"by design, and up to {max(took):.3f} s a block of {args.block:g} s; real-time factor "
        f"{sum(took) / max(seconds, 1e-9):.3f}; {clipped + cut} samples cut at full scale",
        file=sys.stderr,
    )
    return 0


if __name__ == "__main__":
    run_program(main)
