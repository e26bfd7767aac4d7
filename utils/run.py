#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run a command on this machine: once, or as an array of jobs, several at a time.

  run.py [--option VALUE]... [JOB=FIRST:LAST] LOG COMMAND [ARGUMENT]...

JOB (any name) stands for the number of the job, in LOG and in the command's words, wherever it is a
token of its own (x.JOB.log, split4/JOB) or is written {JOB}; /data/MYJOBS stays as it is. The job
also finds it in its environment as $JOB. The words are given to the command as they are: no shell
reads them (use: bash -c '...'). Returns when all jobs have ended: 0 when every one returned 0, else
1 with the end of the first failing log. After a failure no more jobs are started. When this program
is stopped (INT, TERM, HUP), its jobs are stopped with it.

Options:
  --max-jobs-run N   jobs at a time (default: number of processors / threads)
  --num-threads N    threads of a job (default: 1)
  --gpu N            GPUs of a job; above 0, one job runs at a time unless --max-jobs-run is given
  --mem X, --time T, --config FILE   for launchers of clusters; without effect here
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils.cli import UserError, run_program

OPTIONS = ("max-jobs-run", "mem", "num-threads", "gpu", "time", "config")
TAIL = 20  # lines of the first failing log that are shown
GRACE = 10  # seconds between asking jobs to stop and killing them
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Request:
    """A parsed command line. `numbers` are the jobs' numbers; `name` stands for them."""

    options: dict[str, str]
    name: str
    numbers: range
    log: str
    command: list[str]

    def substitute(self, word: str, by: str) -> str:
        """`word` with the job's name as a token, or in braces, replaced; `$JOB` is the shell's."""
        if not self.name:
            return word
        name = re.escape(self.name)
        token = rf"(?<!\$)\{{{name}\}}|(?<![A-Za-z0-9$])(?<!\$\{{){name}(?![A-Za-z0-9])"
        return re.sub(token, lambda _: by, word)

    def count(self, option: str, default: int) -> int:
        """The value of an option that is a whole number."""
        text = self.options.get(option, str(default))
        if not (text.isascii() and text.isdigit()):
            raise UserError(f"--{option} {text}: a whole number is expected")
        return int(text)


def parse_request(argv: Sequence[str]) -> Request:
    """Parse `[--option value]... [JOB=a:b] log command...`; UserError for anything else."""
    words = list(argv)
    options: dict[str, str] = {}
    name, numbers = "", range(1, 2)
    while words:
        array = re.fullmatch(r"([A-Za-z_]\w*)=(\d+)(?::(\d+))?", words[0])
        if words[0].startswith("--"):
            option, equals, value = words.pop(0)[2:].partition("=")
            if option not in OPTIONS:
                raise UserError(f"--{option}: no such option; known: --{', --'.join(OPTIONS)}")
            if not equals and (not words or words[0].startswith("--")):
                raise UserError(f"--{option}: the value is missing")
            options[option] = value if equals else words.pop(0)
        elif array and not name:
            name, first, last = array[1], int(array[2]), int(array[3] or array[2])
            if not 1 <= first <= last:
                raise UserError(f"{words[0]}: job numbers go up, from 1")
            numbers = range(first, last + 1)
            words.pop(0)
        else:
            break
    if len(words) < 2 or not words[0]:
        raise UserError("a log file and a command are expected; see --help")
    request = Request(options, name, numbers, words[0], words[1:])
    if len(numbers) > 1 and request.substitute(request.log, "1") == request.log:
        raise UserError(
            f"{request.log}: the log of {len(numbers)} jobs must have {name} in its name"
        )
    if "config" in options and not Path(options["config"]).is_file():
        raise UserError(f"--config {options['config']}: no such file")
    return request


def jobs_at_a_time(request: Request) -> int:
    """How many jobs run at once."""
    threads = max(1, request.count("num-threads", 1))
    default = max(1, len(os.sched_getaffinity(0)) // threads)
    most = request.count("max-jobs-run", 1 if request.count("gpu", 0) else default)
    if most < 1:
        raise UserError("--max-jobs-run: at least 1 is needed")
    return most


@dataclass
class _Job:
    number: int
    log: IO[bytes]
    started: float
    process: subprocess.Popen[bytes]


@dataclass
class Launcher:
    """Runs the jobs of a request in process groups of their own; collects exit codes by number."""

    request: Request
    most: int
    running: dict[int, _Job] = field(default_factory=dict)
    codes: dict[int, int] = field(default_factory=dict)
    stopped_by: int = 0

    def run(self) -> None:
        """Run until every job has ended, or the running ones after a failure or a signal."""
        pending = list(self.request.numbers)
        while pending or self.running:
            failed = any(self.codes.values())
            while pending and len(self.running) < self.most and not (failed or self.stopped_by):
                self._start(pending.pop(0))
                failed = any(self.codes.values())
            if not self.running:
                break
            self._wait()

    def stop(self, signum: int, _frame: FrameType | None = None) -> None:
        """Handle a signal: ask every job's process group to end, and kill them after a while."""
        self.stopped_by = self.stopped_by or signum
        self._signal_jobs(signal.SIGTERM)
        signal.signal(signal.SIGALRM, lambda *_: self._signal_jobs(signal.SIGKILL))
        signal.alarm(GRACE)

    def _signal_jobs(self, signum: int) -> None:
        for pid in list(self.running):
            _signal_group(pid, signum)

    def _start(self, number: int) -> None:
        request = self.request
        words = [request.substitute(word, str(number)) for word in request.command]
        path = Path(request.substitute(request.log, str(number)))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(f"# {shlex.join(words)}\n# Started at {time.ctime()}\n#\n".encode())
        log = path.open("a+b", buffering=0)
        started = time.time()
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, request.name: str(number)} if request.name else None,
            )
        except OSError as error:
            log.write(f"run.py: {words[0]}: cannot be started: {error.strerror}\n".encode())
            if re.search(r"[\s;|&<>$`]", words[0]):
                log.write(b"run.py: no shell reads the command; use: bash -c '...'\n")
            self._close(number, log, started, 127 if isinstance(error, FileNotFoundError) else 126)
            return
        self.running[process.pid] = _Job(number, log, started, process)
        if self.stopped_by:  # the signal came while this job was being started
            _signal_group(process.pid, signal.SIGTERM)

    def _wait(self) -> None:
        pid, status = os.wait()
        job = self.running.pop(pid, None)
        if job is None:
            return
        code = os.waitstatus_to_exitcode(status)
        job.process.returncode = code
        code = 128 - code if code < 0 else code
        self._close(job.number, job.log, job.started, code)

    def _close(self, number: int, log: IO[bytes], started: float, code: int) -> None:
        threads = self.request.count("num-threads", 1)
        seconds = round(time.time() - started)
        log.seek(-1, os.SEEK_END)
        new_line = "" if log.read(1) == b"\n" else "\n"
        log.write(
            f"{new_line}{_explain(code)}# Accounting: time={seconds} threads={threads}\n"
            f"# Ended (code {code}) at {time.ctime()}\n".encode()
        )
        log.close()
        self.codes[number] = code


def _explain(code: int) -> str:
    """A line on an exit code above 128: the job, or what ran in its shell, was killed."""
    if code == 128 + signal.SIGKILL:
        return "# Killed (SIGKILL); out of memory? Then run fewer jobs at a time (--nj)\n"
    if code - 128 in signal.valid_signals():
        return f"# Killed ({signal.Signals(code - 128).name})\n"
    return ""


def _signal_group(pid: int, signum: int) -> None:
    try:
        os.killpg(pid, signum)
    except ProcessLookupError:
        return  # it has just ended


def report_failure(request: Request, codes: dict[int, int]) -> None:
    """Say on standard error how many jobs failed, and show the end of the first failing log."""
    failed = sorted(number for number, code in codes.items() if code)
    not_started = len(request.numbers) - len(codes)
    first = request.substitute(request.log, str(failed[0]))
    print(
        f"run.py: {len(failed)} / {len(request.numbers)} failed"
        + (f" ({not_started} not started)" if not_started else "")
        + f", log is in {request.substitute(request.log, '*')}",
        file=sys.stderr,
    )
    lines = Path(first).read_text(encoding="utf-8", errors="replace").splitlines()
    print(f"run.py: the end of {first}:", file=sys.stderr)
    for line in lines[-TAIL:]:
        print(f"  {line}", file=sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    words = sys.argv[1:] if argv is None else list(argv)
    if words[:1] in (["--help"], ["-h"]):
        print(__doc__)
        return 0
    request = parse_request(words)
    launcher = Launcher(request, jobs_at_a_time(request))
    before: dict[int, Callable[..., object] | int | None] = {
        signum: signal.signal(signum, launcher.stop) for signum in STOP_SIGNALS
    }
    try:
        launcher.run()
    finally:
        signal.alarm(0)
        for signum, handler in before.items():
            signal.signal(signum, handler)
    if launcher.stopped_by:
        name = signal.Signals(launcher.stopped_by).name
        print(f"run.py: stopped by {name}; its jobs were stopped too", file=sys.stderr)
        return 128 + launcher.stopped_by
    if any(launcher.codes.values()):
        report_failure(request, launcher.codes)
        return 1
    return 0


if __name__ == "__main__":
    run_program(main)
