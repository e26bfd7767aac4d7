#!/usr/bin/env python3
"""Call a launcher again where jobs failed, for those jobs only.

  retry.py [--num-tries N] LAUNCHER [--option VALUE]... [JOB=FIRST:LAST] LOG COMMAND [ARGUMENT]...

LAUNCHER (run.py, slurm.py) is given all that follows it. When it returns 1, jobs failed: those
whose logs do not end with code 0 are run again, at most N times in all (default 2); their logs are
kept as LOG.bak. Any other exit status (usage, a signal) is returned at once.
"""

import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils.cli import UserError, run_program
from utils.launching import STOP_SIGNALS, Request, ended_code, parse_request, show_numbers
from utils.orphans import guarded

TRIES = 2
FAILED = 1  # a launcher's exit status: jobs failed


def call(words: Sequence[str]) -> int:
    """Run a launcher; a signal to this program is passed on to it. Its exit status."""
    child: subprocess.Popen[bytes] | None = None
    told = 0

    def pass_on(signum: int, _frame: FrameType | None) -> None:
        nonlocal told
        told = signum
        if child is not None:
            child.send_signal(signum)

    before = {signum: signal.signal(signum, pass_on) for signum in STOP_SIGNALS}
    try:
        # Beside its own session only Ctrl-C in a terminal would reach it twice.
        with guarded():
            child = subprocess.Popen(words, start_new_session=True, close_fds=False)
            if told:  # the signal came while it was being started
                child.send_signal(told)
            code = child.wait()
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
    return 128 - code if code < 0 else code


def failed_jobs(request: Request) -> list[int]:
    """The jobs whose logs do not end with code 0."""
    return [n for n in request.numbers if ended_code(request.log_of(n)) != 0]


def again(launcher: str, request: Request, numbers: Sequence[int]) -> list[str]:
    """The command line for some of the jobs; their logs are moved to <log>.bak."""
    for number in numbers:
        log = request.log_of(number)
        if log.is_file():
            log.replace(log.with_name(f"{log.name}.bak"))
    options = [f"--{name}={value}" for name, value in request.options.items()]
    array = [f"{request.name}={show_numbers(numbers)}"] if request.name else []
    return [launcher, *options, *array, request.log, *request.command]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] in (["--help"], ["-h"]):
        print(__doc__)
        return 0
    tries = str(TRIES)
    if words[:1] == ["--num-tries"]:
        tries, words = words[1] if len(words) > 1 else "", words[2:]
    if not (tries.isascii() and tries.isdigit() and int(tries) >= 1):
        raise UserError(f"--num-tries {tries}: a whole number from 1 is expected")
    if not words or words[0].startswith("-"):
        raise UserError("a launcher is expected, such as run.py or slurm.py; see --help")
    launcher, request = words[0], parse_request(words[1:], None)
    for attempt in range(1, int(tries) + 1):
        try:
            code = call(words)
        except OSError as error:
            raise UserError(f"{launcher}: cannot be started: {error.strerror}") from error
        if code != FAILED or attempt == int(tries):
            return code
        numbers = failed_jobs(request)
        request = replace(request, numbers=numbers)
        if not numbers:
            return code  # it failed otherwise than by a job
        words = again(launcher, request, numbers)
        shown = f"job {show_numbers(numbers)}" if request.name else "the job"
        print(f"retry.py: {shown} again, try {attempt + 1} of {tries}", file=sys.stderr, flush=True)
    return code


if __name__ == "__main__":
    run_program(main)
