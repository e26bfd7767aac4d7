"""Guards that end all processes of a recipe or launcher with it, even after SIGKILL.

Processes are identified by an open file: recipes and launchers hold a pipe open for writing, which
every process below them inherits through fork and exec. A guard, a separate process, waits until
the watched process has ended, and then ends all that still have the file open, and their children.
This needs Linux's /proc; elsewhere nothing is found or ended.
"""

import fcntl
import logging
import os
import re
import select
import signal
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from utils.cli import UserError

PROC = Path("/proc")
GRACE = 20.0  # seconds between asking and killing: longer than a launcher needs to cancel its jobs
_Process = tuple[int, str]  # its id and start time: ids are reused


def _processes() -> list[int]:
    return [int(path.name) for path in PROC.iterdir() if path.name.isdigit()]


def _writes(pid: int, link: str) -> bool:
    """Whether a process has a file open for writing, named as its /proc/PID/fd names it."""
    with suppress(OSError):  # it has ended, or belongs to another user
        for fd in (PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):  # closed meanwhile
                if str(fd.readlink()) == link:
                    info = (PROC / str(pid) / "fdinfo" / fd.name).read_text()
                    flags = int(info.partition("flags:")[2].split()[0], 8)
                    if flags & os.O_ACCMODE != os.O_RDONLY:
                        return True
    return False


def find_writers(link: str) -> set[int]:
    """Ids of the other processes that have a file open for writing (a path, or `pipe:[N]`)."""
    return {pid for pid in _processes() if pid != os.getpid() and _writes(pid, link)}


def _family(pids: Collection[int], known: Collection[_Process]) -> set[_Process]:
    """Known processes that still live, and all their descendants."""
    parents: dict[int, int] = {}
    processes: dict[int, _Process] = {}
    for pid in _processes():
        with suppress(OSError):
            stat = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
            if stat[0] != "Z":
                parents[pid], processes[pid] = int(stat[1]), (pid, stat[19])
    found = {*pids} | {process[0] for process in processes.values() if process in known}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return {process for pid, process in processes.items() if pid in found and pid != os.getpid()}


def end_writers(fd: int) -> None:
    """End all processes that have the file of `fd` open for writing, and their children.

    They are asked first, because a launcher then cancels its jobs on a cluster.
    """
    link = os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115 - a Path would not keep `pipe:[N]`
    since = time.monotonic()
    asked: set[_Process] = set()
    while family := _family(find_writers(link), asked):
        seconds = time.monotonic() - since
        if seconds > 2 * GRACE:
            return  # the kernel holds them, in a file system that does not answer
        overdue = seconds > GRACE
        for process in family if overdue else family - asked:
            for signum in (signal.SIGKILL,) if overdue else (signal.SIGTERM, signal.SIGCONT):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(process[0], signum)
        asked |= family
        time.sleep(0.05)


def watch(pid: int, fd: int) -> None:
    """Wait until a process has ended, then end all that still have the file of `fd` open."""
    with suppress(ProcessLookupError):  # it has ended before
        process = os.pidfd_open(pid)
        select.select([process], [], [])
        os.close(process)
    end_writers(fd)


def start_guard(fd: int, *kept: int) -> int:
    """Fork a process that watches this one, in a session of its own, so that no Ctrl-C ends it;
    returns its id.

    kept: further files to keep open until it has ended all, such as a lock.
    """
    watched = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for signum in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(signum, signal.SIG_DFL)
        null = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):
            os.dup2(null, standard)
        for other in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208
            if other > 2 and other not in (fd, *kept):
                with suppress(OSError):
                    os.close(other)
        watch(watched, fd)
    finally:
        os._exit(0)


@contextmanager
def guarded() -> Iterator[None]:
    """Context in which processes started with `close_fds=False` end when this process is killed."""
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    guard = start_guard(writing)
    try:
        yield
    finally:
        os.kill(guard, signal.SIGKILL)
        os.waitpid(guard, 0)
        os.close(reading)
        os.close(writing)


def name_processes(pids: Collection[int]) -> str:
    """Describe processes: `pid 12 (sleep 300), pid 13 (...)`."""
    words = []
    for pid in sorted(pids):
        command = b""
        with suppress(OSError):
            command = (PROC / str(pid) / "cmdline").read_bytes()
        shown = " ".join(command.decode(errors="replace").split("\0")).strip()
        words.append(f"pid {pid} ({shown[:80]})")
    return ", ".join(words)


def lock(fd: int, seconds: float = 0, kind: int = fcntl.LOCK_EX) -> bool:
    """Lock an open file; the kernel frees it when the last process that inherited it has ended.
    kind: LOCK_SH where others may have it as well.

    Returns False where another has it, after at most some seconds. Raises OSError where the file
    system has no locks.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.05)
        else:
            return True


def refuse_living_job(log: Path) -> None:
    """Raise a UserError if a job of an earlier run still has its log (utils/run.py locks it)."""
    try:
        with log.open("rb") as stream:
            free = lock(stream.fileno())
    except OSError:
        return  # no log, or no locks here
    if free:
        return
    pids = find_writers(str(log.resolve()))
    who = name_processes(pids) or "on another machine (squeue shows it, scancel ends it)"
    end = f": kill {' '.join(map(str, sorted(pids)))}" if pids else ""
    raise UserError(f"{log}: a job of another run still writes it, {who}; wait, or end it{end}")


def lock_folder(path: Path, command: str) -> int:
    """Lock a recipe's lock file for this process, write the holder and time into it, and return it
    open.

    Raises UserError that names the other run, or a killed run's processes that would not end. A
    file system without locks keeps out only runs of this machine.
    """
    host = os.uname().nodename
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
    try:
        mine = lock(fd)
    except OSError as error:
        logging.warning("%s: cannot be locked: %s", path, error.strerror)
        mine = _read_owner(path, host)[1] not in find_writers(str(path.resolve()))
    if not mine:
        _refuse_living_owner(path, host)
        if not lock(fd, 1.5 * GRACE):  # a guard is ending the processes of the killed run
            _refuse_living_owner(path, host)
            left = find_writers(str(path.resolve()))
            raise UserError(
                f"jobs of a run that was killed are still at work in this folder ({path}): "
                f"{name_processes(left)}; end them: kill -9 {' '.join(map(str, sorted(left)))}"
            )
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    os.ftruncate(fd, 0)
    os.write(fd, f"pid {os.getpid()} on {host} since {since}: {command}\n".encode())
    return fd


def _read_owner(path: Path, host: str) -> tuple[str, int | None]:
    """Holder of a lock file, in words, and the process id if it is of this machine."""
    record = path.read_text(encoding="utf-8", errors="replace").strip()
    match = re.match(r"pid (\d+) on (\S+) since ", record)
    return record, int(match[1]) if match and match[2] == host else None


def _refuse_living_owner(path: Path, host: str) -> None:
    record, pid = _read_owner(path, host)
    if pid is None or pid in find_writers(str(path.resolve())):
        who = record or "it has just begun"
        raise UserError(f"another run is at work in this folder ({path}): {who}; wait, or end it")
