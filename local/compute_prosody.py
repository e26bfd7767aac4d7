#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compute the figures of prosody and quality of protected speech, as JSON.

PROSODY is the table of steps/compare_prosody.py. OUT gets means over utterances: f0_correlation
(of log F0, -1 to 1), voicing_agreement, duration_change (signed), duration_drift (its size),
clipping and clipping_original (fractions), level_change (dB); by speaker f0_correlation.
`n_undefined` counts the utterances for which a figure is not defined. OUT is a file, or - for
standard output.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.metrics.output import write_figures
from local.metrics.prosody import prosody_figures, read_prosody
from local.options import add_figures
from utils.cli import UserError, make_parser, run_program
from utils.options import add_utt2spk
from utils.tables import read_map


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    add_utt2spk(parser)
    add_figures(parser, "PROSODY")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    table, utt2spk = read_prosody(args.prosody), read_map(args.utt2spk)
    for utt in table:
        if utt not in utt2spk:
            raise UserError(f"{args.utt2spk}: has no utterance {utt}, which {args.prosody} lists")
    figures = prosody_figures(table, utt2spk, n_bootstrap=args.bootstrap, seed=args.seed)
    write_figures(args.out, figures)
    return 0


if __name__ == "__main__":
    run_program(main)
