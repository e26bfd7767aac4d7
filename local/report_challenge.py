#!/usr/bin/env python3
"""Write what a challenge's own tools would: result_for_rank_<system>, averages and category.

PROTOCOL is a file of conf/protocols, RESULTS folders with a metrics.csv (exp/results of a recipe
for each evaluation), or result files of the challenge, of which averages are printed, too. What the
protocol asks for and nobody measured is named; no average is printed of a set that lacks a split.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils.cli import UserError, make_parser, run_program
from utils.options import add_paths

if TYPE_CHECKING:
    from local.protocols.attackers import Protocol
    from local.report.challenge import Score


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument(
        "--of-system", dest="system", metavar="NAME",
        help="The system of the recipe whose figures are written",
    )  # fmt: skip
    parser.add_argument(
        "--evaluator", metavar="NAME", help="Who listened (left out: the protocol's own)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help="Where result_for_rank_<system> is written"
    )
    add_paths(parser, "protocol")
    parser.add_argument("results", type=Path, nargs="+", metavar="RESULTS")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    from pandas import concat

    from local.protocols.attackers import read_protocol
    from local.report.challenge import read_results, scores_of, write_results
    from local.report.frame import read_metrics
    from local.report.study import write_text

    protocol = read_protocol(args.protocol)
    evaluator = args.evaluator or protocol.evaluators.split()[0]
    files = [path for path in args.results if path.is_file()]
    folders = [path for path in args.results if not path.is_file()]
    scores = [score for path in files for score in read_results(path)]
    if folders:
        if not args.system:
            raise UserError("--of-system: name the system of the recipe whose figures are wanted")
        figures = concat([read_metrics(folder / "metrics.csv") for folder in folders])
        scores += scores_of(figures, protocol, args.system, evaluator)
    if not any(score.protected for score in scores):
        raise UserError(
            f"{args.results[0]}: no figure of {args.system} that {protocol.challenge} asks for "
            f"(attacker {protocol.privacy.attacker}, evaluator {evaluator})"
        )
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        path = args.out / f"result_for_rank_{args.system or 'theirs'}"
        write_text(path, write_results(scores, time.strftime("%d-%m-%y_%H:%M")))
        print(f"{path}: {len(scores)} figures")
    _say(scores, protocol)
    return 0


def _say(scores: "Sequence[Score]", protocol: "Protocol") -> None:
    """Averages, categories, and what is missing."""
    from local.report.challenge import averages, category

    there = {(s.what, s.split) for s in scores if s.protected}
    for name, value in averages(scores, protocol.privacy).items():
        missing = [split for split in protocol.privacy.sets[name] if ("eer", split) not in there]
        if missing:
            print(f"{name}: no average EER: not measured: {' '.join(missing)}")
            continue
        told = f"{name}: average EER {100 * value:.3f} %"
        if protocol.categories:
            n = category(value, protocol.categories)
            least = f" (at least {100 * protocol.categories[n - 1]:.0f} %)" if n else ""
            told += f", category {n} of {len(protocol.categories)}{least}"
        print(told)
    asked = {("wer", s) for s in protocol.words} | {("uar", s) for s in protocol.emotions}
    if lacking := sorted(asked - there):
        print(f"not measured: {', '.join(' of '.join(one) for one in lacking)}")


if __name__ == "__main__":
    run_program(main)
