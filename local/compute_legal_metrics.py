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
from utils.archives import read_vectors
from utils.cli import make_parser, natural, positive, run_program
from utils.tables import atomic_write, read_map


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    for side in ("enrol", "trial"):
        parser.add_argument(
            f"--utt2spk-{side}",
            type=Path,
            required=True,
            metavar="F",
            help=f"of the {side} vectors",
        )
    parser.add_argument(
        "--conversation-length",
        type=positive,
        action="append",
        metavar="L",
        help="trial utterances that the attacker averages; repeat for several (default: 1 and 3)",
    )
    parser.add_argument(
        "--folds",
        type=positive,
        default=50,
        metavar="N",
        help="random splits into test and calibration conversations, for Singling Out",
    )
    parser.add_argument(
        "--bootstrap",
        type=natural,
        default=0,
        metavar="N",
        help="resamples of the speakers for 95 %% intervals; 0: none",
    )
    parser.add_argument("--seed", type=natural, default=0, metavar="S", help="of every draw")
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
