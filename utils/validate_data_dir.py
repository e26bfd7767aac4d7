#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""List all that is wrong with data directories, with file, line and advice; exit 2 if anything is.

Checked: fields, encoding, line ends, order (LC_ALL=C), duplicates, values, ids of all files against
utt2spk, spk2utt, speaker ids as beginnings of utterance ids, audio files (there, readable, not
empty, mono, not all the same one), trials (utterances, enrolled speakers, labels) and enrolls.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils.cli import make_parser, run_program
from utils.datachecks import Problem, validate_data_dir
from utils.datafiles import FILES

ALWAYS = ("utt2spk", "spk2utt")


def report(problems: Sequence[Problem], most: int) -> list[str]:
    """One line a problem, errors first; of a kind in one file at most `most` and how many more."""
    groups: dict[tuple[bool, Path, str], list[Problem]] = {}
    for problem in sorted(problems, key=lambda problem: not problem.fatal):
        groups.setdefault((problem.fatal, problem.path, problem.kind), []).append(problem)
    lines: list[str] = []
    for (fatal, _, kind), alike in groups.items():
        word = "error" if fatal else "warning"
        lines += [f"{word}: {problem}" for problem in alike[:most]]
        if len(alike) > most:
            lines.append(f"{word}: {alike[0].path}: {len(alike) - most} more of this kind ({kind})")
    return lines


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__)
    parser.add_argument("--no-wav", action="store_true", help="There may be no wav.scp")
    parser.add_argument("--no-audio", action="store_true", help="Do not open the audio files")
    parser.add_argument(
        "--need", metavar="FILE", action="append", default=[], choices=[*FILES, "trials"],
        help="A further file that must be there, such as text, spk2gender or trials; may be given "
        "again",
    )  # fmt: skip
    parser.add_argument(
        "--models", metavar="DIR",
        help="The data directory of the speakers whom trials may name (left out: E_enrolls beside "
        "E_trials_f and E_trials_m, where it is there)",
    )  # fmt: skip
    parser.add_argument(
        "--most", metavar="N", type=int, default=20,
        help="The number of faults of a kind that are shown of a file",
    )  # fmt: skip
    parser.add_argument("data", metavar="DATA", nargs="+", help="data directories")
    return parser


def validate(data: str, args: argparse.Namespace) -> bool:
    """Tell what is wrong with one; whether it is valid."""
    wav = () if args.no_wav else ("wav.scp",)
    problems = validate_data_dir(
        data,
        need=(*wav, *ALWAYS, *args.need),
        audio=not args.no_audio,
        models=args.models,
    )
    for line in report(problems, args.most):
        print(line, file=sys.stderr)
    n_errors = sum(problem.fatal for problem in problems)
    n_warnings = len(problems) - n_errors
    state = "valid" if n_errors == 0 else "not valid"
    print(f"{data}: {state}: {n_errors} errors, {n_warnings} warnings")
    return n_errors == 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    valid = [validate(data, args) for data in args.data]
    return 0 if all(valid) else 2


if __name__ == "__main__":
    run_program(main)
