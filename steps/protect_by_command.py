#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Have a program of the user's own protect a data directory.

CONF (`anonymiser: command`) names the program. OUT becomes a folder with an audio file for each
utterance of DATA; steps/anonymise.py --external OUT takes it. A program that fails, or leaves
utterances out, leaves no OUT.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from steps.anonymisers.command import Command, protect_data, seed_of
from steps.options import add_draws
from utils.cli import UserError, make_parser, run_program
from utils.datadir import load_data_dir
from utils.options import add_paths
from utils.settings import read_settings


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    add_draws(parser)
    add_paths(parser, "conf", "data", "out")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    values = read_settings(args.conf)
    if values.get("anonymiser") != "command":
        raise UserError(f"{args.conf}: anonymiser: command is expected")
    settings = Command.parse(values, args.conf)
    utts = list(load_data_dir(args.data).wav)
    seed = seed_of(args.seed, args.dataset or args.data.name, args.draw)
    protect_data(settings, args.data, args.out, utts, seed)
    print(f"{args.data}: {len(utts)} utterances protected by {settings.command.split()[0]}")
    return 0


if __name__ == "__main__":
    run_program(main)
