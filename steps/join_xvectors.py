#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Put x-vectors of several runs of one set into one folder, told apart by a suffix.

Each NAME=FOLDER (with xvector.scp) adds <utterance>-NAME. OUT/xvector.scp points at the archives of
the folders; nothing is copied.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils.cli import UserError, make_parser, run_program
from utils.tables import read_map, write_map


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("folders", nargs="+", metavar="NAME=FOLDER")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    joined: dict[str, str] = {}
    for word in args.folders:
        name, given, folder = word.partition("=")
        if not (name and given and folder):
            raise UserError(f"{word!r}: NAME=FOLDER is expected")
        for utt, place in read_map(Path(folder) / "xvector.scp", rest_of_line=True).items():
            if f"{utt}-{name}" in joined:
                raise UserError(f"{folder}: {utt}-{name} is there twice; give each folder a name")
            joined[f"{utt}-{name}"] = place
    write_map(args.out / "xvector.scp", joined)
    print(f"written {len(joined)} x-vectors of {len(args.folders)} folders")
    return 0


if __name__ == "__main__":
    run_program(main)
