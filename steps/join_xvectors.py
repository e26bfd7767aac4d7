#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Put x-vectors of several sets, or of several runs of one set, into one folder.

Each NAME=FOLDER (with xvector.scp) adds <utterance>-NAME, each FOLDER its utterances as they are
called. OUT/xvector.scp points at the archives of
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
    parser.add_argument("folders", nargs="+", metavar="[NAME=]FOLDER")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    joined: dict[str, str] = {}
    for word in args.folders:
        name, _, folder = word.rpartition("=")
        if not folder or word.startswith("="):
            raise UserError(f"{word!r}: NAME=FOLDER or FOLDER is expected")
        for utt, place in read_map(Path(folder) / "xvector.scp", rest_of_line=True).items():
            new = f"{utt}-{name}" if name else utt
            if new in joined:
                raise UserError(f"{folder}: {new} is there twice; give each folder a name")
            joined[new] = place
    write_map(args.out / "xvector.scp", joined)
    print(f"written {len(joined)} x-vectors of {len(args.folders)} folders")
    return 0


if __name__ == "__main__":
    run_program(main)
