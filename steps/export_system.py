#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pack a trained synthesiser and pseudo-speakers into a folder that protect_folder.py takes.

CONF is the system's yaml file, SYNTHESISER a folder of steps/train_synthesiser.py, POOL one of
steps/make_voice_pool.py. OUT gets system.yaml, synthesiser/ (half precision) and pool/: voices that
are nobody's, as far apart as people are, each with a pitch, and no speech of anybody. They are made
of several real speakers of one gender each, or by a trained generator.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils.cli import make_parser, positive, run_program
from utils.options import add_paths, add_seed


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument(
        "--voices", type=positive, default=1000, metavar="N", help="The number of pseudo-speakers"
    )
    parser.add_argument(
        "--averaged", type=positive, default=4, metavar="N",
        help="The number of real speakers in each pseudo-speaker",
    )  # fmt: skip
    parser.add_argument(
        "--generator", type=Path, metavar="DIR",
        help="Take the pseudo-speakers of this trained generator (steps/train_generator.py, on "
        "x-vectors of the encoder that made POOL's), not averages",
    )  # fmt: skip
    add_seed(parser)
    add_paths(parser, "conf", "synthesiser", "pool", "out")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    from steps.folders.export import export_system

    near = export_system(
        args.conf, args.synthesiser, args.pool, args.out,
        n=args.voices, averaged=args.averaged, generator=args.generator, seed=args.seed,
    )  # fmt: skip
    size = sum(path.stat().st_size for path in args.out.rglob("*") if path.is_file())
    print(
        f"{args.out}: {args.voices} pseudo-speakers, {size / 1e6:.1f} MB; {near} are nearer "
        "to a speaker of POOL than 99 of 100 speakers there are to another one"
    )
    return 0


if __name__ == "__main__":
    run_program(main)
