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
import yaml

from steps.anonymisers.registry import describe_system
from utils.cli import UserError, make_parser, run_program
from utils.options import add_paths
from utils.settings import read_settings
from utils.tables import atomic_write

WITH_PROFILES = ("knn_vc",)  # anonymisers with settings `profiles` and `profile`


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


def change(settings: dict[str, object], word: str, conf: Path) -> None:
    """Set one setting; UserError for what is no NAME=VALUE or leads into a value."""
    name, given, value = word.partition("=")
    *into, last = name.split(".")
    if not given or not all((*into, last)):
        raise UserError(f"{word!r}: NAME=VALUE is expected")
    place: object = settings
    for part in into:
        place = place.get(part) if isinstance(place, dict) else None
    if not isinstance(place, dict):
        raise UserError(f"{conf}: {'.'.join(into)}: is no mapping, so {name} cannot be set")
    try:
        place[last] = yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise UserError(f"{word!r}: the value is not YAML") from error


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    if (args.profile is None) != (args.profiles is None):
        raise UserError("--profile and --profiles go together")
    if args.profile is not None and not 1 <= args.profile <= args.profiles:
        raise UserError(f"--profile {args.profile}: from 1 to {args.profiles}")
    settings, draw = read_settings(args.conf), 0
    for word in args.changes:
        change(settings, word, args.conf)
    if args.profile is not None:
        if settings.get("anonymiser") in WITH_PROFILES:
            settings |= {"profiles": args.profiles, "profile": args.profile}
        else:
            draw = args.profile - 1
    text = f"# {args.conf}, changed by steps/vary_system.py\n"
    text += yaml.safe_dump(settings, sort_keys=False)
    with atomic_write(args.out) as stream:
        stream.write(text)
    try:
        describe_system(args.out)
    except UserError:
        args.out.unlink()
        raise
    print(f"--draw {draw}")
    return 0


if __name__ == "__main__":
    run_program(main)
