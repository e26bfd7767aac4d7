#!/usr/bin/env python3
"""Write RESULTS.md of the white-box study (Champion et al. 2021) into a folder of results.

RESULTS is a folder that local/collect_results.py made of the study's figures. The tables are means
and standard deviations over constant targets, beside the paper's; then each target and speaker.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils.cli import make_parser, run_program


def get_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = make_parser(__doc__ or "")
    parser.add_argument(
        "--target", nargs=2, action="append", required=True, metavar=("SYSTEM", "DATA"),
        help="A target's system, and a set that was protected with it; may be given again",
    )  # fmt: skip
    parser.add_argument("results", type=Path, metavar="RESULTS")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    args = get_parser().parse_args(argv)
    from local.report.load import load_results
    from local.report.study import write_text
    from local.report.whitebox import STUDY, Targets, read_target

    voices = {system: read_target(Path(data)) for system, data in args.target}
    found = Targets(load_results(args.results), voices)
    told = found.results.run.get("origin")
    text = STUDY.page(found, told if isinstance(told, dict) else {})
    write_text(args.results / "RESULTS.md", text)
    count = len(found.results.metrics)
    print(f"{count} figures of {len(voices)} targets tabulated in {args.results}")
    return 0


if __name__ == "__main__":
    run_program(main)
