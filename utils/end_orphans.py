#!/usr/bin/env python3
"""Wait until a process has ended, then end all that it left behind (utils/orphans.py).

  end_orphans.py PID FD

FD is the number of an open file, inherited: who else has this file open for writing is ended.
Recipes and launchers start this; nobody needs to call it.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils.cli import make_parser, natural, positive, run_program
from utils.orphans import watch


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    parser = make_parser(__doc__ or "")
    parser.add_argument("pid", type=positive, metavar="PID")
    parser.add_argument("fd", type=natural, metavar="FD")
    args = parser.parse_args(argv)
    watch(args.pid, args.fd)
    return 0


if __name__ == "__main__":
    run_program(main)
