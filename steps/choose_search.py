#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Choose how much a language weighs beside what a trained CTC recogniser hears.

MODEL is a folder of train_recogniser.py, DATA the data directory that it was trained on, LANG a
folder of make_lang.py. The weights that give the fewest wrong words on the speakers whom the
training held out are taken; where it held nobody out, those of MODEL. OUT gets search.yaml, for
decode.py --search, and weights.tsv (what was tried).
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from steps.options import add_device
from utils.cli import make_parser, run_program
from utils.datadir import load_data_dir
from utils.options import add_paths


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    add_device(parser)
    add_paths(parser, "model", "data", "lang", "out")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    data = load_data_dir(args.data, need=("wav.scp", "utt2spk", "text"))
    from steps.asr.choosing import choose_search
    from steps.asr.language import read_language

    print(choose_search(args.model, data, read_language(args.lang), args.out, args.device))
    return 0


if __name__ == "__main__":
    run_program(main)
