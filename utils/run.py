#!/usr/bin/env python3
"""Run a command on this machine: once, or as an array of jobs, several at a time.

  run.py [--option VALUE]... [JOB=FIRST:LAST] LOG COMMAND [ARGUMENT]...

JOB (any name; JOB=1:3,7 gives a list) stands for the number of the job, in LOG and in the command's
words, wherever it is a token of its own (x.JOB.log, split4/JOB) or is written {JOB}; /data/MYJOBS
stays as it is. The job also finds it in its environment as $JOB. The words are given to the command
as they are: no shell reads them (use: bash -c '...'). Returns when all jobs have ended: 0 when
every one returned 0, else 1 with the end of the first failing log. After a failure no more jobs are
started. When this program is stopped (INT, TERM, HUP) or killed, its jobs are stopped with it. A
log that a job of an earlier call still writes is refused. LOG may be a device such as /dev/null.

Options:
  --max-jobs-run N   jobs at a time (default: number of processors / threads)
  --num-threads N    threads of a job (default: 1)
  --gpu N            GPUs of a job; above 0, one job runs at a time unless --max-jobs-run is given
  --mem X, --time T, --config FILE   for launchers of clusters; without effect here
"""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from utils.cli import UserError, run_program
from utils.launching import (
    STOP_SIGNALS,
    Progress,
    Request,
    clear_logs,
    failure_lines,
    log_foot,
    log_head,
    parse_request,
)
from utils.orphans import guarded, lock

GRACE = 10  # seconds between asking jobs to stop and killing them


def jobs_at_a_time(request: Request) -> int:
    """How many jobs run at once."""
    threads = max(1, request.count("num-threads", 1))
    default = max(1, len(os.sched_getaffinity(0)) // threads)
    return request.most(1 if request.count("gpu", 0) else default)


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
        ended = threading.Event()
        threading.Thread(target=self._tell, args=(ended,), daemon=True).start()
        try:
            self._run(pending)
        finally:
            ended.set()
            self._signal_jobs(signal.SIGKILL)  # there are some only where an error ended this

    def _run(self, pending: list[int]) -> None:
        while pending or self.running:
            failed = any(self.codes.values())
            while pending and len(self.running) < self.most and not (failed or self.stopped_by):
                self._start(pending.pop(0))
                failed = any(self.codes.values())
            if not self.running:
                break
            self._wait()

    def _tell(self, ended: threading.Event) -> None:
        """In a thread of its own, for os.wait returns only when a job ends."""
        progress = Progress("run.py", self.request)
        while not ended.wait(1.0):
            jobs = sorted(job.number for job in list(self.running.values()))
            progress.tell(len(self.codes), jobs)

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
        log = _open_log(request.log_of(number))
        log.write(log_head(words))
        started = time.time()
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                close_fds=False,  # what says whose job it is: the guard's pipe, a recipe's lock
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
        new_line = ""
        if Path(log.name).is_file():
            log.seek(-1, os.SEEK_END)
            new_line = "" if log.read(1) == b"\n" else "\n"
        log.write(log_foot(code, time.time() - started, threads, new_line))
        log.close()
        self.codes[number] = code


def _open_log(path: Path) -> IO[bytes]:
    """A job's log, locked: its job inherits the lock, and keeps it as long as it lives."""
    log = path.open("a+b", buffering=0)
    with suppress(OSError):  # a device, or a file system without locks
        if not lock(log.fileno()):
            raise UserError(f"{path}: another launcher has just begun to write it; choose another")
    return log


def _signal_group(pid: int, signum: int) -> None:
    try:
        os.killpg(pid, signum)
    except ProcessLookupError:
        return  # it has just ended


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    words = sys.argv[1:] if argv is None else list(argv)
    if words[:1] in (["--help"], ["-h"]):
        print(__doc__)
        return 0
    request = parse_request(words)
    most = jobs_at_a_time(request)
    clear_logs(request)
    launcher = Launcher(request, most)
    before: dict[int, Callable[..., object] | int | None] = {
        signum: signal.signal(signum, launcher.stop) for signum in STOP_SIGNALS
    }
    try:
        with guarded():
            launcher.run()
    finally:
        signal.alarm(0)
        for signum, handler in before.items():
            signal.signal(signum, handler)
    if launcher.stopped_by:
        name = signal.Signals(launcher.stopped_by).name
        print(f"run.py: stopped by {name}; its jobs were stopped too", file=sys.stderr)
        return 128 + launcher.stopped_by
    failed = {number: "" for number, code in launcher.codes.items() if code}
    if failed:
        not_started = len(request.numbers) - len(launcher.codes)
        for line in failure_lines(request, failed, not_started):
            print(line if line.startswith("  ") else f"run.py: {line}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    run_program(main)
