#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure how many pseudo-speakers a trained generator can tell apart (004, Fig. 11).

GENERATOR is a folder of steps/train_generator.py, OUT a table: for growing numbers of vectors the
mean cosine over all pairs, the smallest and largest, and, with --threshold, the share of pairs
above it, that is, of pseudo-speakers that an evaluator with this threshold takes for one. Up to
20,000 vectors all pairs are looked at; every later vector is compared with the first 1,000 (the
column `pairs`); the mean is of all pairs always.

Column `indices`: `unseen`, from the number of training speakers on; `seen`, those of the training
speakers, all of them; `mixed`, from 0 on, seen ones first. For new indices, which are independent,
the mean cannot depend on their number; where seen and new ones are mixed it does.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
import numpy as np

from steps.generators.capacity import Capacity, Float32, measure_capacity
from utils.archives import read_vector_file
from utils.cli import UserError, make_parser, run_program
from utils.tables import atomic_write

HEADER = "#indices\tn\tmean\tmin\tmax\tpairs\tabove_threshold\n"


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument(
        "--sizes",
        type=int,
        nargs="+",
        default=[100, 1000, 10000],
        metavar="N",
        help="numbers of vectors, ascending (004: up to 2000000)",
    )
    parser.add_argument(
        "--threshold", type=float, metavar="C", help="cosine, such as an evaluator's at its EER"
    )
    parser.add_argument(
        "--centre", type=Path, metavar="FILE", help="mean.vec of the evaluator, taken off first"
    )
    parser.add_argument("--no-mixed", action="store_true", help="leave out the mixed indices")
    parser.add_argument("generator", type=Path, metavar="GENERATOR")
    parser.add_argument("out", type=Path, metavar="OUT")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    if args.threshold is not None and not -1 <= args.threshold <= 1:
        raise UserError(f"--threshold {args.threshold:g}: a cosine, from -1 to 1, is needed")
    from steps.generators.trained import load_trained

    model = load_trained(args.generator).model
    centre = None if args.centre is None else read_vector_file(args.centre)
    if centre is not None and len(centre) != model.dimension:
        raise UserError(
            f"{args.centre}: {len(centre)} values, and the generator has {model.dimension}"
        )

    def blocks(start: int) -> Iterator[Float32]:
        while True:
            yield model.vectors(np.arange(start, start + 4096, dtype=np.int64))
            start += 4096

    parts = [("unseen", model.n_seen, args.sizes)]
    if model.n_seen > 1:
        parts.append(("seen", 0, [model.n_seen]))
        parts += [] if args.no_mixed else [("mixed", 0, args.sizes)]
    rows = []
    for name, first, sizes in parts:
        for row in measure_capacity(blocks(first), sizes, threshold=args.threshold, centre=centre):
            rows.append(_row(name, row))
            print(rows[-1], end="", flush=True)
    with atomic_write(args.out) as stream:
        stream.write(HEADER + "".join(rows))
    return 0


def _row(name: str, row: Capacity) -> str:
    above = "" if row.above is None else f"{row.above:.3e}"
    figures = f"{row.mean:.5f}\t{row.minimum:.4f}\t{row.maximum:.4f}\t{row.pairs}"
    return f"{name}\t{row.n}\t{figures}\t{above}\n"


if __name__ == "__main__":
    run_program(main)
