"""Common part of all launchers: command line, head and foot of logs, and reports of failures.

Contract (Kaldi's): `LAUNCHER [--option VALUE]... [JOB=FIRST:LAST] LOG COMMAND [ARGUMENT]...`.
"""

import os
import re
import shlex
import signal
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from utils.cli import UserError, clock_time
from utils.orphans import refuse_living_job

OPTIONS = ("max-jobs-run", "mem", "num-threads", "gpu", "time", "config")
TAIL = 20  # lines of the first failing log to show
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_ARRAY = re.compile(r"([A-Za-z_]\w*)=(\d+(?::\d+)?(?:,\d+(?::\d+)?)*)")
_ACCOUNT = re.compile(
    rb"^# Accounting: time=(\d+) threads=(\d+)\n"
    rb"# Ended \(code (\d+)\) at [^\n,]*(?:, elapsed time (\d+(?:\.\d+)?) seconds)?$",
    re.MULTILINE,
)
_FOOT_BYTES = 400  # bytes at the end that hold the foot


@dataclass(frozen=True)
class Request:
    """Parsed command line. `numbers`: of the jobs, ascending; `name` stands for them."""

    options: dict[str, str]
    name: str
    numbers: Sequence[int]
    log: str
    command: list[str]

    def substitute(self, word: str, by: str) -> str:
        """Replace the job's name in `word`, as a token or in braces; `$JOB` is the shell's."""
        if not self.name:
            return word
        name = re.escape(self.name)
        token = rf"(?<!\$)\{{{name}\}}|(?<![A-Za-z0-9$])(?<!\$\{{){name}(?![A-Za-z0-9])"
        return re.sub(token, lambda _: by, word)

    def log_of(self, number: int) -> Path:
        """Path of the log of a job."""
        return Path(self.substitute(self.log, str(number)))

    def count(self, option: str, default: int) -> int:
        """Value of an option that is a whole number."""
        text = self.options.get(option, str(default))
        if not (text.isascii() and text.isdigit()):
            raise UserError(f"--{option} {text}: a whole number is expected")
        return int(text)

    def most(self, default: int) -> int:
        """Number of jobs at a time: --max-jobs-run, or a default."""
        most = self.count("max-jobs-run", default)
        if most < 1:
            raise UserError("--max-jobs-run: at least 1 is needed")
        return most


def parse_request(
    argv: Sequence[str], known: Collection[str] | None = OPTIONS, default_config: str = ""
) -> Request:
    """Parse `[--option value]... [JOB=a:b] log command...`; UserError for anything else.

    JOB may also list numbers and ranges (JOB=1:3,7). `known` None: any option passes, for launchers
    with options in a configuration.
    """
    words = list(argv)
    options: dict[str, str] = {}
    name, numbers = "", [1]
    while words:
        array = _ARRAY.fullmatch(words[0])
        if words[0].startswith("--"):
            option, equals, value = words.pop(0)[2:].partition("=")
            if known is not None and option not in known:
                raise UserError(f"--{option}: no such option; known: --{', --'.join(known)}")
            if not equals and (not words or words[0].startswith("--")):
                raise UserError(f"--{option}: the value is missing")
            options[option] = value if equals else words.pop(0)
        elif array and not name:
            name, numbers = array[1], _parse_numbers(words.pop(0), array[2])
        else:
            break
    if len(words) < 2 or not words[0]:
        raise UserError("a log file and a command are expected; see --help")
    request = Request(options, name, numbers, words[0], words[1:])
    if len(numbers) > 1 and request.substitute(request.log, "1") == request.log:
        raise UserError(
            f"{request.log}: the log of {len(numbers)} jobs must have {name} in its name"
        )
    config = options.get("config", default_config)
    if config and not Path(config).is_file():
        raise UserError(
            f"--config {config}: no such file"
            + ("" if "config" in options else "; link or copy egs/TEMPLATE/conf/slurm.conf there")
        )
    return request


def _parse_numbers(word: str, text: str) -> list[int]:
    numbers: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition(":")
        if not 1 <= int(first) <= int(last or first):
            raise UserError(f"{word}: job numbers go up, from 1")
        numbers.update(range(int(first), int(last or first) + 1))
    return sorted(numbers)


def show_numbers(numbers: Collection[int], range_mark: str = ":") -> str:
    """Write numbers as a list of ranges.

    >>> show_numbers([1, 2, 3, 7])
    '1:3,7'
    """
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(str(a) if a == b else f"{a}{range_mark}{b}" for a, b in ranges)


def clear_logs(request: Request) -> None:
    """Make the logs' folder and remove older logs: a log must be that of *this* call's job.

    Raises UserError for a log that a job still writes, and for anything but a file or device.
    """
    logs = [request.log_of(number) for number in request.numbers]
    for path in logs:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file():
            refuse_living_job(path)
        elif path.exists() and not path.is_char_device():
            raise UserError(
                f"{path}: is neither a file nor a device such as /dev/null; choose another"
            )
    for path in logs:
        if not path.is_char_device():
            path.unlink(missing_ok=True)


def log_head(words: Sequence[str]) -> bytes:
    """First lines of a job's log."""
    return os.fsencode(f"# {shlex.join(words)}\n# Started at {time.ctime()}\n#\n")


def log_foot(
    code: int, seconds: float, threads: int, note: str = "", *, explained: bool = False
) -> bytes:
    """Last lines of a job's log; `note` adds to the exit code, and is the whole explanation where
    it is `explained`."""
    note += "" if explained else _explain(code)
    return (
        f"{note}# Accounting: time={round(seconds)} threads={threads}\n"
        f"# Ended (code {code}) at {time.ctime()}, elapsed time {seconds:.2f} seconds\n"
    ).encode()


@dataclass(frozen=True)
class Account:
    """Content of the foot of a job's log. seconds: wall time of the job, start included."""

    seconds: float
    threads: int
    code: int


def read_account(log: Path) -> Account | None:
    """Account in a log's foot, in Kaldi's form; None without a foot, or without a log."""
    found = _ACCOUNT.findall(_end_of(log, _FOOT_BYTES))
    if not found:
        return None
    whole, threads, code, exact = found[-1]
    return Account(float(exact or whole), int(threads), int(code))


def _end_of(log: Path, size: int) -> bytes:
    """Last bytes of a log; none of one that is not written yet."""
    if not log.is_file():  # reading a terminal would wait for it
        return b""
    with suppress(OSError), log.open("rb") as stream:
        stream.seek(max(0, stream.seek(0, os.SEEK_END) - size))
        return stream.read()
    return b""


def _explain(code: int) -> str:
    """Message for an exit code above 128: the job, or a program in its shell, was killed."""
    if code == 128 + signal.SIGKILL:
        return "# Killed (SIGKILL); out of memory? Then run fewer jobs at a time (--nj)\n"
    if code - 128 in signal.valid_signals():
        return f"# Killed ({signal.Signals(code - 128).name})\n"
    return ""


def tell_under(program: str, *lines: str) -> None:
    """Write lines to standard error; the program's name precedes each line that is not indented."""
    for line in lines:
        print(line if line.startswith("  ") else f"{program}: {line}", file=sys.stderr)


def tell_stopped(program: str, signum: int, ending: str) -> int:
    """Report that a signal stopped a program, and its effect; return the program's exit status."""
    tell_under(program, f"stopped by {signal.Signals(signum).name}; {ending}")
    return 128 + signum


def failure_lines(request: Request, failed: Mapping[int, str], not_started: int) -> list[str]:
    """Report the number of failed jobs, and the end of the first failing log.

    failed: job -> reason if the log lacks it, else an empty string.
    """
    numbers = sorted(failed)
    states = ", ".join(f"{number}: {failed[number]}" for number in numbers if failed[number])
    told = [f"{not_started} not started" * (not_started > 0), states]
    more = [f" ({said})" for said in told if said]
    logs = request.substitute(request.log, "*")
    lines = [f"{len(failed)} / {len(request.numbers)} failed{''.join(more)}, log is in {logs}"]
    first = request.log_of(numbers[0])
    if not first.is_file():
        return [*lines, f"{first}: " + ("is not a file" if first.exists() else "was not written")]
    text = first.read_text(encoding="utf-8", errors="replace").splitlines()
    return [*lines, f"the end of {first}:", *(f"  {line}" for line in text[-TAIL:])]


class Progress:
    """Reporter on standard error: once a minute, the number of ended jobs and the time left.

    The time left is given once a job has ended, and assumes that running ones are half done. The
    last progress message of the first of these is appended.
    """

    APART = 60.0
    TAIL = 4096  # bytes of a log to search

    def __init__(self, program: str, request: Request) -> None:
        self.program, self.request = program, request
        self.started = self.last = time.monotonic()

    def tell(self, done: int, running: Sequence[int], more: str = "") -> None:
        """Write a line if the last one is a minute old; running: the numbers of jobs."""
        now = time.monotonic()
        if now - self.last < self.APART:
            return
        self.last = now
        seconds, total = now - self.started, len(self.request.numbers)
        behind = done + len(running) / 2
        left = f", {clock_time(seconds * (total - behind) / behind)} left" if done else ""
        line = f"{done} of {total} jobs ended in {clock_time(seconds)}{left}{more}"
        said = self._last_said(running[0]) if running else ""
        print(f"{self.program}: {self.request.log}: {line}{said}", file=sys.stderr, flush=True)

    def _last_said(self, number: int) -> str:
        """Last line of a job's log with the time left, in the form of programs here."""
        end = _end_of(self.request.log_of(number), self.TAIL).decode(errors="replace")
        said = [line.strip() for line in end.splitlines() if line.rstrip().endswith(" left")]
        return f"; job {number}: {said[-1]}" if said else ""
