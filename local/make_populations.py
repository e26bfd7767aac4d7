#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make populations of simulated speakers, and plans of all their pairs (004, Fig. 9).

The speakers are simulated: fitted to the x-vectors of --sources (steps/speaker/population.py).
Every enrolment utterance is to be compared with every trial utterance, 10 and 25.8 of a speaker.
Without --conf speech is original; with it, x-vectors are those of the system's pseudo-speakers and
a residual (steps/generators/populations.py).

With --real the sources themselves are taken, the first set against all others, and drawn subsets
of their speakers where a size is smaller than their number. Larger sizes are left out.

OUT gets plans/<speakers>.<number>, which local/score_large.py counts, and populations.tsv, a row
for each, from which local/measure_large.py goes on. A stopped run goes on when the same command is
given again: plans that are whole are not made anew.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.protocols.populations import Real, Simulated, fit_sources, read_real, write_rows
from steps.generators.populations import SAME, TWO, Recipe
from steps.options import add_backend, add_sampler, make_sampler
from steps.speaker.backends import load_normalised
from steps.speaker.large import make_plan
from steps.speaker.tiles import Bins
from utils.cli import UserError, make_parser, run_program
from utils.progress import progress
from utils.tables import is_there


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument(
        "--conf", type=Path, metavar="YAML",
        help="The settings of a system with a generator; left out: speech is original",
    )  # fmt: skip
    parser.add_argument("--real", action="store_true", help="Take the sources themselves")
    add_sampler(parser)
    parser.add_argument(
        "--sizes", type=_size, nargs="+", default=[(50, 0), (200, 0), (1000, 0)], metavar="N[:P]",
        help="The numbers of speakers, each with P populations instead of --populations",
    )  # fmt: skip
    parser.add_argument(
        "--populations", type=int, default=5, metavar="N",
        help="The number of populations of each size",
    )  # fmt: skip
    parser.add_argument(
        "--voices", choices=(TWO, SAME), default=TWO,
        help="The pseudo-speakers of a person: one in enrolment and one in trials, or the same in "
        "both",
    )  # fmt: skip
    parser.add_argument(
        "--leak", type=float, default=0.0, metavar="A",
        help="The share of the source speaker that protected x-vectors keep",
    )  # fmt: skip
    add_backend(parser, "cosine")
    parser.add_argument("out", type=Path, metavar="OUT")
    return parser


def _size(text: str) -> tuple[int, int]:
    """Speakers, and populations of them (0: as many as of the others)."""
    size, _, number = text.partition(":")
    if not size.isdecimal() or (":" in text and not (number.isdecimal() and int(number) > 0)):
        raise argparse.ArgumentTypeError(f"expected N or N:P, such as 10000:1, not {text!r}")
    return int(size), int(number or 0)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    sizes = [size for size, _ in args.sizes]
    numbers = [number or args.populations for _, number in args.sizes]
    if min(sizes) < 2 or min(numbers) < 1:
        raise UserError("--sizes from 2 speakers on, --populations from 1 on")
    backend = load_normalised(args.backend, args.asnorm)
    bins = Bins(-1.0, 1.0) if args.backend == "cosine" and not args.asnorm else None
    of: Real | Simulated = read_real(args.sources, args.seed) if args.real else _simulated(args)
    rows = of.rows(sizes, numbers)
    for row in progress("make_populations", unit="populations")(rows):
        plan = row.plan(args.out)
        if not is_there(plan / "plan.json"):
            make_plan(*of.sides(row), backend, folder=plan, bins=bins, seed=args.seed)
    write_rows(args.out, rows)
    print(f"{args.out}: {len(rows)} populations, up to {rows[-1].speakers} speakers")
    return 0


def _simulated(args: argparse.Namespace) -> Simulated:
    sampler = make_sampler(args, args.conf) if args.conf else None
    return Simulated(fit_sources(args.sources), Recipe(sampler, args.voices, args.leak, args.seed))


if __name__ == "__main__":
    run_program(main)
