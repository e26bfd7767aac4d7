#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure how many pseudo-speakers can be told apart (004, Fig. 11).

OUT is a table: for growing numbers of vectors the mean cosine over all pairs, the smallest and
largest, and, with --threshold, the share of pairs above it, that is, of pseudo-speakers that an
evaluator with this threshold takes for one. Up to 20,000 vectors all pairs are looked at; every
later vector is compared with the first 1,000 (the column `pairs`); the mean is of all pairs always.

VOICES is one of three, and the column `indices` says of what the vectors are:

  a folder of steps/train_generator.py with a network: `unseen`, indices from the number of training
    speakers on, as the network makes them; `calibrated`, the same as systems use them; `seen`,
    those of the training speakers, all of them; `mixed`, from 0 on, seen ones first. For new
    indices, which are independent, the mean cannot depend on their number; where seen and new ones
    are mixed it does.
  the YAML file of a system with a generator: `keys`, made-up keys, each with an utterance of
    --sources in turn. Where nothing is drawn there are as many as utterances, and no larger number.
  a folder with spk_xvector.scp: `real`, all of its speakers, to compare with.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
import numpy as np

from steps.generators.capacity import Capacity, measure_capacity
from steps.options import add_sampler, make_sampler
from utils.arrays import Float32
from utils.cli import UserError, make_parser, run_program
from utils.jsonfiles import read_json_object
from utils.options import add_paths
from utils.tables import atomic_write, is_there

HEADER = "#indices\tn\tmean\tmin\tmax\tpairs\tabove_threshold\n"


@dataclass(frozen=True)
class Part:
    """Rows of the table with one word in `indices`: the first vectors of blocks, and how many."""

    indices: str
    blocks: Iterator[Float32]
    sizes: list[int]


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[100, 1000, 10000], metavar="N",
        help="The numbers of vectors, ascending (004: up to 2000000)",
    )  # fmt: skip
    parser.add_argument(
        "--threshold", metavar="C|FILE",
        help="The cosine from which on two voices count as one, such as an evaluator's at its EER, "
        "or a JSON file that has it as `threshold`",
    )  # fmt: skip
    add_sampler(parser, required=False)
    add_paths(parser, "voices", "out")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    threshold = None if args.threshold is None else _threshold(args.threshold)
    if args.voices.is_file():
        parts = _of_system(args)
    elif is_there(args.voices / "spk_xvector.scp"):
        parts = _of_real(args.voices)
    else:
        parts = _of_network(args)
    rows = []
    for part in parts:
        for row in measure_capacity(part.blocks, part.sizes, threshold=threshold):
            rows.append(_row(part.indices, row))
            print(rows[-1], end="", flush=True)
    with atomic_write(args.out) as stream:
        stream.write(HEADER + "".join(rows))
    return 0


def _threshold(text: str) -> float:
    """--threshold: a number, or what is in a file."""
    value: object = text
    if Path(text).is_file():
        try:
            value = read_json_object(text, "give a cosine")["threshold"]
        except KeyError as error:
            raise UserError(f"{text}: no JSON file with a `threshold`") from error
    try:
        number = float(str(value))
    except ValueError as error:
        raise UserError(f"--threshold {text}: neither a cosine nor a file that has one") from error
    if not -1 <= number <= 1:
        raise UserError(f"--threshold {text}: a cosine, from -1 to 1, is needed")
    return number


def _of_network(args: argparse.Namespace) -> list[Part]:
    from steps.generators.trained import load_trained

    model = load_trained(args.voices).model

    def blocks(start: int) -> Iterator[Float32]:
        while True:
            yield model.vectors(np.arange(start, start + 4096, dtype=np.int64))
            start += 4096

    used = (model.calibrate(block) for block in blocks(model.n_seen))
    parts = [Part("unseen", blocks(model.n_seen), args.sizes), Part("calibrated", used, args.sizes)]
    if model.n_seen > 1:
        parts.append(Part("seen", blocks(0), [model.n_seen]))
        parts.append(Part("mixed", blocks(0), args.sizes))
    return parts


def _of_system(args: argparse.Namespace) -> list[Part]:
    sampler = make_sampler(args, args.voices)
    limit, sizes = sampler.limit, args.sizes
    if limit is not None and limit < max(sizes):
        print(f"{args.voices}: nothing is drawn: {limit} pseudo-speakers, one for each source")
        sizes = [*(size for size in sizes if size < limit), limit]
    return [Part("keys", sampler.blocks(), sizes)]


def _of_real(folder: Path) -> list[Part]:
    from steps.generators.speakers import load_pool

    vectors, _, _ = load_pool(folder, None)
    return [Part("real", iter([vectors.astype(np.float32)]), [len(vectors)])]


def _row(name: str, row: Capacity) -> str:
    above = "" if row.above is None else f"{row.above:.3e}"
    figures = f"{row.mean:.5f}\t{row.minimum:.4f}\t{row.maximum:.4f}\t{row.pairs}"
    return f"{name}\t{row.n}\t{figures}\t{above}\n"


if __name__ == "__main__":
    run_program(main)
