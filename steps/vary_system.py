#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the settings of a system with some of them changed, and check them.

CONF is a YAML file such as conf/systems/const_01.yaml, OUT the new one, NAME=VALUE a setting in
YAML's words; a dot leads into a mapping: generator.target=7.

With --profile P and --profiles N, OUT is pseudo-profile P of N: systems that know profiles (kNN-VC)
get these settings; of all others a profile is an independent draw. What is printed is the option
that steps/anonymise.py needs: --draw D.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from steps.anonymisers.variation import vary_system
from utils.cli import UserError, make_parser, run_program
from utils.options import add_paths


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument(
        "--profile", type=int, metavar="P", help="The number of the pseudo-profile, from 1"
    )
    parser.add_argument("--profiles", type=int, metavar="N", help="The number of pseudo-profiles")
    add_paths(parser, "conf", "out")
    parser.add_argument("changes", nargs="*", metavar="NAME=VALUE")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    if (args.profile is None) != (args.profiles is None):
        raise UserError("--profile and --profiles go together")
    profile = None if args.profile is None else (args.profile, args.profiles)
    draw = vary_system(args.conf, args.out, args.changes, profile)
    print(f"--draw {draw}")
    return 0


if __name__ == "__main__":
    run_program(main)
