#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Print which attacks a recipe runs: one a line, in the order in which they are tabulated.

A line is EVALUATOR SYSTEM ATTACKER CONDITION ENROLMENT TRIAL HOW LEVEL: enrolment and trial are `-`
for original speech, else the system; HOW is original, aligned, scratch, finetuned or backend (how
the evaluator was made); LEVEL is that of the protected training set, `-` without one. What was
asked for and does not exist (a white-box attacker without a constant target, ...) is said on
standard error, with why, and counted. SYSTEM_CONF is conf/systems/<system>.yaml. docs/attackers.md
has the table of attackers.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.protocols.attackers import ATTACKERS, LEVELS, System, plan_attacks
from utils.cli import make_parser, run_program


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument(
        "--attackers", default="ignorant aligned lazy_informed",
        help=f"The attackers, with blanks between, of: {' '.join(ATTACKERS)}",
    )  # fmt: skip
    parser.add_argument(
        "--evaluators", required=True,
        help="The evaluators, <encoder>/<back end>, with blanks between",
    )  # fmt: skip
    parser.add_argument(
        "--informed-level", default="utt",
        help="The level of semi-informed attackers' training sets: "
        f"{', '.join(LEVELS)} (as the system)",
    )  # fmt: skip
    parser.add_argument("confs", type=Path, nargs="*", metavar="SYSTEM_CONF")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    from steps.anonymisers.registry import describe_system

    systems = []
    for conf in args.confs:
        described = describe_system(conf)
        systems.append(System(conf.stem, described.level, described.levels))
    plan = plan_attacks(
        args.attackers.split(), systems, args.evaluators.split(), args.informed_level
    )
    for attack in plan.attacks:
        print(attack.line())
    for reason in plan.skipped:
        print(f"attack skipped: {reason}", file=sys.stderr)
    if plan.skipped:
        print(f"attacks: {len(plan.attacks)} planned, {len(plan.skipped)} skipped", file=sys.stderr)
    return 0


if __name__ == "__main__":
    run_program(main)
