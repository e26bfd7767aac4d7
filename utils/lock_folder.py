#!/usr/bin/env python3
"""Lock a recipe's folder for one run, and guard what the run starts; recipes call this.

  lock_folder.py LOCK FD PIPE PID COMMAND

LOCK is the folder's lock file; FD and PIPE are the numbers of it and of a pipe among the open files
of the recipe, process PID. Whatever the recipe starts inherits both, and with FD the lock, which
the kernel frees when the last of them has ended. When the recipe ends, also by SIGKILL, what it
left behind is ended, too. Where another run has the lock, this says who it is and ends with
status 2.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils.cli import make_parser, natural, positive, run_program
from utils.orphans import lock_folder, start_guard


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    parser = make_parser(__doc__ or "")
    parser.add_argument("lock", type=Path, metavar="LOCK")
    parser.add_argument("fd", type=natural, metavar="FD")
    parser.add_argument("pipe", type=natural, metavar="PIPE")
    parser.add_argument("pid", type=positive, metavar="PID")
    parser.add_argument("command", metavar="COMMAND", help="the recipe's command line, to be shown")
    args = parser.parse_args(argv)
    lock_folder(args.lock, args.fd, args.pid, args.command)
    start_guard(args.pid, args.pipe, args.fd)
    return 0


if __name__ == "__main__":
    run_program(main)
