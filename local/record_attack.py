#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write what an attack was beside its scores: who knows what, sets, seeds, draws, levels, models.

OUT is a JSON file. All is read from what was made (conf.json, pseudo.tsv, encoder.yaml). It is an
error if the sets are not what the attacker is said to have, if enrolment and trials share a draw
that they must not, or if the attacker's training set has a speaker of theirs.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.protocols.attack_record import record_attack
from steps.options import add_backend
from utils.cli import make_parser, run_program
from utils.tables import atomic_write


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument(
        "--attacker", required=True, metavar="NAME",
        help="The attacker's name, as in docs/attackers.md",
    )  # fmt: skip
    parser.add_argument(
        "--enrol", type=Path, required=True, metavar="DATA",
        help="The data directory of the enrolment",
    )  # fmt: skip
    parser.add_argument(
        "--trial", type=Path, required=True, metavar="DATA", help="The data directory of the trials"
    )
    parser.add_argument(
        "--training", type=Path, metavar="DATA",
        help="The protected set that the attacker was trained on",
    )  # fmt: skip
    parser.add_argument(
        "--pairs", type=Path, metavar="DATA",
        help="The protected set whose originals the attacker has, too",
    )  # fmt: skip
    parser.add_argument(
        "--encoder", required=True, metavar="ENCODER", help="The name of the encoder"
    )
    add_backend(parser)
    parser.add_argument("out", type=Path, metavar="OUT")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    record = record_attack(
        args.attacker,
        args.enrol,
        args.trial,
        args.training,
        args.pairs,
        args.encoder,
        args.backend,
        args.asnorm,
    )
    with atomic_write(args.out) as stream:
        json.dump(record, stream, indent=1, ensure_ascii=False)
        stream.write("\n")
    return 0


if __name__ == "__main__":
    run_program(main)
