#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compute Singling Out and legal Linkability (Vauquier et al. 2025) of x-vectors, as JSON.

Not the linkability D_sys of compute_metrics.py: see docs/metrics/legal.md for what is asked, the
keys and the chance levels. x-vectors are .scp or .ark, one an utterance, both sets from one encoder
and without a common utterance: original or protected, as the attacker would hold them (OO, OA, AA).
OUT is a file, or - for standard output. Values are fractions; an undefined one is null, and a
warning says why. Speakers on one side only are left out with a warning.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.metrics.legal import Side, check_sides, legal_metrics, make_side
from local.options import add_bootstrap
from utils.archives import read_vectors
from utils.cli import make_parser, positive, run_program
from utils.options import add_seed
from utils.tables import atomic_write, read_map


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    for side in ("enrol", "trial"):
        parser.add_argument(
            f"--utt2spk-{side}", type=Path, required=True, metavar="F",
            help=f"The table of the {side} utterances' speakers",
        )  # fmt: skip
    parser.add_argument(
        "--conversation-length", type=positive, action="append", metavar="L",
        help="The number of trial utterances that the attacker averages; may be given again (left "
        "out: 1 and 3)",
    )  # fmt: skip
    parser.add_argument(
        "--folds", type=positive, default=50, metavar="N",
        help="The number of random splits into test and calibration conversations, for Singling "
        "Out",
    )  # fmt: skip
    add_bootstrap(parser)
    add_seed(parser)
    parser.add_argument("enrol", type=Path, metavar="ENROL_XVECTORS")
    parser.add_argument("trial", type=Path, metavar="TRIAL_XVECTORS")
    parser.add_argument("out", metavar="OUT")
    return parser


def _read_side(xvectors: Path, utt2spk: Path) -> Side:
    return make_side(
        read_vectors(xvectors), read_map(utt2spk), vectors_path=xvectors, utt2spk_path=utt2spk
    )


def write_json(out: str, figures: Mapping[str, object]) -> None:
    """Write figures to a file, atomically, or to standard output for `-`."""
    text = json.dumps(figures, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if out == "-":
        sys.stdout.write(text)
        return
    with atomic_write(out) as stream:
        stream.write(text)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    enrol = _read_side(args.enrol, args.utt2spk_enrol)
    trial = _read_side(args.trial, args.utt2spk_trial)
    check_sides(enrol, trial, enrol_path=args.enrol, trial_path=args.trial)
    figures = legal_metrics(
        enrol,
        trial,
        lengths=sorted(set(args.conversation_length or (1, 3))),
        n_folds=args.folds,
        n_bootstrap=args.bootstrap,
        seed=args.seed,
    )
    write_json(args.out, figures)
    return 0


if __name__ == "__main__":
    run_program(main)
