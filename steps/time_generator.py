#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure what a pseudo-speaker costs (004, Table III).

CONF is the YAML file of a system with a `generator`, OUT a JSON file: CPU time of this process (one
thread) over --vectors pseudo-speakers that are asked for one by one, each with a key of its own and
a real source; what is done once (reading, clusters) is not in it. rtf is the time of one vector by
the mean duration of the sources' utterances: what a generator costs where every utterance has its
own pseudo-speaker.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from steps.options import add_sampler, make_sampler
from utils.cli import UserError, make_parser, run_program
from utils.options import add_paths
from utils.tables import atomic_write

WARM_UP = 10  # vectors made before, so that what is loaded at the first one does not count


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument(
        "--vectors", type=int, default=1000, metavar="N",
        help="The number of vectors that are timed",
    )  # fmt: skip
    add_sampler(parser)
    add_paths(parser, "conf", "out")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    if args.vectors < 1:
        raise UserError(f"--vectors {args.vectors}: at least one is needed")
    sampler = make_sampler(args, args.conf)
    for place in range(WARM_UP):
        sampler.vector(args.vectors + place)
    started = time.process_time()
    for place in range(args.vectors):
        sampler.vector(place)
    each = (time.process_time() - started) / args.vectors
    figures = {
        "vectors": args.vectors,
        "cpu_seconds": each,
        "utterances": len(sampler.sources),
        "utterance_seconds": sampler.seconds,
        "rtf": each / sampler.seconds,
        "notes": sampler.generator.notes,
    }
    with atomic_write(args.out) as stream:
        stream.write(json.dumps(figures, indent=1) + "\n")
    print(
        f"{args.vectors} vectors: {1e3 * each:.3g} ms each, real-time factor {figures['rtf']:.3g}"
    )
    return 0


if __name__ == "__main__":
    run_program(main)
