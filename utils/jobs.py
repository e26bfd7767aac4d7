"""Jobs on this machine: each in a process group of its own, with a log, until all have ended.

A job is a program that is started, or one of the project's Python programs in a fork of this
process: which has imported what takes long to import, and nothing of the project.
"""

import atexit
import gc
import importlib
import logging
import os
import re
import runpy
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import IO, NoReturn

from utils.cli import UserError
from utils.digests import remembering
from utils.launching import STOP_SIGNALS, Request, log_foot, log_head
from utils.orphans import lock
from utils.stamps import MEMORY, code_of

ROOT = Path(__file__).resolve().parents[1]
UNWRITTEN = 120  # exit status of a program whose last output could not be written
FLOORS = ("egs", "local", "steps", "tests", "utils")
# What many programs import, in seconds altogether.
HEAVY = (
    "numpy", "scipy.signal", "scipy.optimize", "scipy.stats", "soundfile", "kaldiio", "pandas",
    "click", "yaml", "torch",
)  # fmt: skip


@dataclass(eq=False)
class Job:
    """Command with its log; without one it writes where this process does.

    code: exit status, 128 + N of a signal N; None while it runs. forks: whether it is a fork of
    this process. cores, gpu: what it needs, for who shares these.
    """

    words: Sequence[str]
    log: Path | None = None
    number: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)
    threads: int = 1
    forks: bool = False
    cores: int = 1
    gpu: bool = False
    code: int | None = None
    started: float = 0.0
    stream: IO[bytes] | None = None
    process: "subprocess.Popen[bytes] | None" = None


def jobs_of(request: Request, *, forks: bool = False) -> list[Job]:
    """The jobs of a launcher's command line; forks: where they are programs of the project."""
    threads = request.count("num-threads", 1)
    jobs = []
    for number in request.numbers:
        words = [request.substitute(word, str(number)) for word in request.command]
        environment = {request.name: str(number)} if request.name else {}
        log, path = request.log_of(number), Path(words[0])
        ours = forks and path.suffix == ".py" and path.is_file()
        ours = ours and path.resolve().is_relative_to(ROOT)
        gpu = request.count("gpu", 0) > 0
        jobs.append(Job(words, log, number, environment, threads, ours, max(1, threads), gpu))
    return jobs


class Jobs:
    """Starts jobs and waits for their ends. Signals that stop this process also stop them.

    grace: seconds between asking jobs to stop and killing them. stopped_by: the first such signal.
    """

    def __init__(self, grace: float) -> None:
        self.running: dict[int, Job] = {}
        self.stopped_by = 0
        self._grace, self._kill_at = grace, float("inf")
        self._ended: list[Job] = []
        self._woken, self._wake = -1, -1

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Context in which signals are handled; jobs that still run at its end are killed."""
        self._woken, self._wake = os.pipe()
        for fd in (self._woken, self._wake):
            os.set_blocking(fd, False)
        before = {signum: signal.signal(signum, self._stop) for signum in STOP_SIGNALS}
        before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        old = signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        try:
            yield
        finally:
            self.signal(signal.SIGKILL)  # there are some only where an error ended this
            signal.set_wakeup_fd(old)
            for signum, handler in before.items():
                signal.signal(signum, handler)
            os.close(self._woken)
            os.close(self._wake)

    def _stop(self, signum: int, _frame: FrameType | None) -> None:
        self.stopped_by = self.stopped_by or signum
        self._kill_at = min(self._kill_at, time.monotonic() + self._grace)
        self.signal(signal.SIGTERM)

    def signal(self, signum: int) -> None:
        """Send a signal to the process groups of all jobs."""
        for pid in list(self.running):
            with suppress(ProcessLookupError):  # it has just ended
                os.killpg(pid, signum)

    def start(self, job: Job) -> None:
        """Start a job. One that cannot be started has ended with 126 or 127."""
        if job.log is not None:
            job.stream = _open_log(job.log)
            job.stream.write(log_head(job.words))
        job.started = time.monotonic()
        try:
            pid = self._fork(job) if job.forks else self._spawn(job)
        except OSError as error:
            self._refuse(job, error)
            return
        self.running[pid] = job
        if self.stopped_by:  # the signal came while this job was being started
            self.signal(signal.SIGTERM)

    def _spawn(self, job: Job) -> int:
        job.process = subprocess.Popen(
            job.words,
            stdin=subprocess.DEVNULL,
            stdout=job.stream,
            stderr=job.stream,
            start_new_session=True,
            close_fds=False,  # what says whose job it is: the guard's pipe, a recipe's lock
            env=os.environ | job.environment,
        )
        return job.process.pid

    def _fork(self, job: Job) -> int:
        assert job.stream is not None
        _preload(job.words[0])
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            for other in self.running.values():
                if other.stream is not None:  # its lock says that the other job lives
                    os.close(other.stream.fileno())
            _become(job.words, job.stream.fileno(), job.environment)
        with suppress(OSError):  # it has done so itself
            os.setpgid(pid, pid)
        return pid

    def _refuse(self, job: Job, error: OSError) -> None:
        said = f"run.py: {job.words[0]}: cannot be started: {error.strerror}\n"
        if re.search(r"[\s;|&<>$`]", job.words[0]):
            said += "run.py: no shell reads the command; use: bash -c '...'\n"
        if job.stream is None:
            sys.stderr.write(said)
        else:
            job.stream.write(said.encode())
        self._close(job, 127 if isinstance(error, FileNotFoundError) else 126)

    def wait(self, timeout: float | None = None) -> list[Job]:
        """Jobs that have ended since the last call; none if no job ends within the given
        seconds."""
        if not self._ended:
            soon = max(0.0, self._kill_at - time.monotonic())
            longest = min(timeout, soon) if timeout is not None else soon
            select.select([self._woken], [], [], None if longest == float("inf") else longest)
            with suppress(BlockingIOError):
                os.read(self._woken, 4096)
        if time.monotonic() >= self._kill_at:
            self._kill_at = float("inf")
            self.signal(signal.SIGKILL)
        for pid in list(self.running):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                job = self.running.pop(pid)
                code = os.waitstatus_to_exitcode(status)
                if job.process is not None:
                    job.process.returncode = code
                self._close(job, 128 - code if code < 0 else code)
        ended, self._ended = self._ended, []
        return ended

    def _close(self, job: Job, code: int) -> None:
        job.code = code
        if job.stream is not None and job.log is not None:
            new_line = ""
            if job.log.is_file():
                job.stream.seek(-1, os.SEEK_END)
                new_line = "" if job.stream.read(1) == b"\n" else "\n"
            job.stream.write(log_foot(code, time.monotonic() - job.started, job.threads, new_line))
            job.stream.close()
        self._ended.append(job)


def _open_log(path: Path) -> IO[bytes]:
    """A job's log, locked: its job inherits the lock, and keeps it as long as it lives."""
    log = path.open("a+b", buffering=0)
    with suppress(OSError):  # a device, or a file system without locks
        if not lock(log.fileno()):
            raise UserError(f"{path}: another launcher has just begun to write it; choose another")
    return log


@cache
def _preload(program: str) -> None:
    """Import, once, what forks for a program may import, wherever its code does; they share its
    memory."""
    with remembering(MEMORY):
        files = [ROOT / name for name in code_of(Path(program))]
    code = "".join(path.read_text(encoding="utf-8") for path in files)
    named = set(re.findall(r"^ *(?:from|import) (\w+)", code, re.MULTILINE))
    for name in HEAVY:
        if name.partition(".")[0] in named:
            with suppress(ImportError):
                importlib.import_module(name)
    gc.freeze()


def _become(words: Sequence[str], log: int, environment: Mapping[str, str]) -> NoReturn:
    """Run a program in this process, a fork, as if it had been started."""
    code: object = 1
    try:
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        for signum in (*STOP_SIGNALS, signal.SIGCHLD):
            signal.signal(signum, signal.SIG_DFL)
        null = os.open(os.devnull, os.O_RDONLY)
        for fd, of in ((0, null), (1, log), (2, log)):
            os.dup2(of, fd)
        os.environ.update(environment)
        logging.root.handlers.clear()
        for name in [name for name in sys.modules if name.partition(".")[0] in FLOORS]:
            del sys.modules[name]  # its code is read as it is now, as its stamp says
        sys.argv = [*words]
        runpy.run_path(words[0], run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code or 0
        if not isinstance(code, int):
            print(code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        except BaseException:  # such as a full disk; Python itself ends so
            code = code or UNWRITTEN
        os._exit(code if isinstance(code, int) else 1)
