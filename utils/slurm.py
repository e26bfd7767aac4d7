#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Run a command as a Slurm job, or as an array of them; the same contract as utils/run.py.

  slurm.py [--option VALUE]... [JOB=FIRST:LAST] LOG COMMAND [ARGUMENT]...

JOB, LOG and the command's words are treated as run.py does it: the job is run.py on the node,
started in the folder of this call after its path.sh, where there is one. Returns when all jobs have
ended: 0 when every one returned 0, else 1 with what happened (FAILED, TIMEOUT, OUT_OF_MEMORY,
CANCELLED, NODE_FAIL ...) and the end of the first failing log. After a failure the jobs that wait
are cancelled. When this program is stopped (INT, TERM, HUP), all that it submitted is cancelled.
Where a limit lets no more jobs into the queue, the others are submitted as places become free.

Options are those of the configuration (--config FILE, by default conf/slurm.conf), which maps them
to sbatch's: usually --mem 4G, --time 8:00:00, --num-threads N, --gpu N, --partition X, --account X.
  --max-jobs-run N   jobs at a time (default: as many as the cluster gives)
  --num-tries N      how often a job that fails is run in all (default: 1); the logs of earlier
                     tries are kept as LOG.bak
"""

import math
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import FrameType

from utils import launching
from utils.cli import UserError, refusing, run_program
from utils.tables import PARTIAL, StrPath, read_lines

# ---- Translation of launcher options to those of sbatch: conf/slurm.conf (Kaldi's language).
#
#     command sbatch --export=ALL       the command that submits; needed
#     option mem=* --mem $0             --mem 4G becomes: --mem 4G
#     option gpu=0                      --gpu 0 becomes nothing: an exact value wins over `*`
#     default gpu=0                     as if --gpu 0 were given
#     # a comment
#
# `--foo-bar` on the command line is the option foo_bar here.

OWN = ("config", "max_jobs_run", "num_tries")  # the launcher's own; no line is needed for them


@dataclass
class SlurmConfig:
    """Parsed configuration: `options` maps (name, value or `*`) to sbatch's words."""

    path: str
    command: list[str] = field(default_factory=list)
    options: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    defaults: dict[str, str] = field(default_factory=dict)

    def submit_words(self, given: dict[str, str]) -> list[str]:
        """Command that submits, with translations of the given options (`num-threads`: 2)."""
        options = {name.replace("-", "_"): value for name, value in given.items()}
        words = list(self.command)
        for name, value in (self.defaults | options).items():
            if name in OWN:
                continue
            rule = self.options.get((name, value), self.options.get((name, "*")))
            if rule is None:
                raise UserError(self._refusal(name, value))
            words += [word.replace("$0", value) for word in rule]
        return words

    def _refusal(self, name: str, value: str) -> str:
        option = name.replace("_", "-")
        if any(known == name for known, _ in self.options):
            values = " ".join(sorted(v for known, v in self.options if known == name))
            return f"--{option} {value}: {self.path} knows only the values {values}"
        known = sorted({*OWN, *(known for known, _ in self.options)})
        names = ", --".join(name.replace("_", "-") for name in known)
        return f"--{option}: no such option in {self.path}; known: --{names}"


def read_slurm_config(path: StrPath) -> SlurmConfig:
    """Read a configuration; UserError names file and line of a fault."""
    config = SlurmConfig(str(path))
    for number, line in read_lines(path):
        text = re.sub(r"(^|\s)#.*", "", line).strip()
        if not text:
            continue
        keyword, _, rest = text.partition(" ")
        rule = re.fullmatch(r"(\w+)=(\S+)\s*(.*)", rest.strip())
        with refusing(f"{path}:{number}: {text!r}: {{}}", ValueError):
            if keyword == "command" and rest.strip():
                config.command = shlex.split(rest)
            elif keyword == "option" and rule:
                config.options[rule[1], rule[2]] = shlex.split(rule[3])
            elif keyword == "default" and rule and not rule[3]:
                config.defaults[rule[1]] = rule[2]
            else:
                raise ValueError("expected: command ..., option name=value ..., default name=value")
    if not config.command:
        raise UserError(f"{path}: has no line 'command sbatch ...'")
    return config


CONFIG = "conf/slurm.conf"
FIRST_WAIT, LONGEST_WAIT, GROWTH = 0.1, 4.0, 1.3  # seconds between two looks
LOG_WAIT = 60.0  # a shared file system may show a log so much later than Slurm its end
KILLED_LOG_WAIT = 5.0  # the same for a job that failed: its log is only shown
TRIES = 4  # of a command that the controller did not answer
CANCEL_WAIT = 15.0
CALL_WAIT = 60.0  # for the answer to a command; a controller that hangs is one that does not answer
SUBMIT_WAITS = 3  # times as long: sbatch itself tries for 120 s where all users have too many jobs
PLACE_WAIT = 30.0  # until a job that the queue did not take is tried again, though none ended
POLICY = "violates accounting/QOS policy"
NO_ANSWER = 124  # as timeout(1) exits
IN_LOG, NOT_STARTED = "in the log", "not started"  # IN_LOG: the log says all about the failure
ACTIVE = (
    "PENDING", "RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING",
    "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESIZING", "RESV_DEL_HOLD", "SPECIAL_EXIT",
    "STAGE_OUT",
)  # fmt: skip
ADVICE = {
    "TIMEOUT": "raise --time (cmd.sh, or the defaults of the configuration)",
    "OUT_OF_MEMORY": "raise --mem (cmd.sh, or the defaults of the configuration)",
    "NODE_FAIL": "the node failed, not the job; rerun the same command",
    "PREEMPTED": "another job took the node; rerun the same command",
    "CANCELLED": "somebody cancelled it (scancel), or Slurm did",
    "LOST": "Slurm no longer knows it, and its log has no end",
    "NO LOG": "it completed, but its log is not seen here; is the file system shared?",
}
tell = partial(launching.tell_under, "slurm.py")
Task = tuple[str, str]  # id of the job or array, index in the array or N/A


class FullError(UserError):
    """An array with more jobs than Slurm takes now, or ever; limit: which one, where it says so."""

    def __init__(self, message: str, limit: str) -> None:
        super().__init__(message)
        self.limit = limit


class Slurm:
    """Slurm's commands. They run in sessions of their own, so that Ctrl-C does not cut them off."""

    def __init__(self) -> None:
        self.silent_since: float | None = None

    def call(self, *words: str, waits: int = 1) -> subprocess.CompletedProcess[str]:
        """Run one command; NO_ANSWER where it takes too long. UserError: it is not installed."""
        longest = waits * CALL_WAIT
        try:
            return subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                start_new_session=True,
                timeout=longest,
            )
        except subprocess.TimeoutExpired:
            said = f"{words[0]}: no answer in {longest:g} s"
            return subprocess.CompletedProcess(words, NO_ANSWER, "", said)
        except FileNotFoundError as error:
            raise UserError(f"{words[0]}: not found; is this a machine of the cluster?") from error

    def largest_index(self) -> int:
        """The highest index that an array may have (MaxArraySize - 1), or its most tasks."""
        done = self.call("scontrol", "show", "config")
        found = re.search(r"^MaxArraySize\s*=\s*(\d+)", done.stdout, re.MULTILINE)
        tasks = re.findall(r"max_array_tasks=(\d+)", done.stdout)
        return max(1, min([int(found[1]) - 1 if found else 1000, *map(int, tasks)]))

    def submit(self, words: Sequence[str]) -> str:
        """Submit a job, and return its id. UserError with sbatch's own words where it refuses:
        FullError where fewer jobs, or the same ones later, may be taken."""
        for attempt in range(TRIES):
            done = self.call(*words, waits=SUBMIT_WAITS)
            number = done.stdout.strip().rpartition("\n")[2].partition(";")[0]
            if done.returncode == 0 and number.isdigit():
                return number
            message = " ".join((done.stderr or done.stdout).split()) or "no number of a job is told"
            # Only where nothing can have been submitted: a second try must not submit twice.
            if not re.search(r"Unable to contact|Connection refused", message):
                break
            time.sleep(2**attempt)
        if done.returncode in (0, NO_ANSWER):
            message += "; it may be submitted all the same: look with squeue, and scancel it"
        said = f"not submitted: {message} (command: {shlex.join(words)})"
        limits = r"\b(?:QOS|Assoc)\w+|\b(?:Slurm|Job creation) .*retrying|Invalid job array"
        limit = "".join(re.findall(limits, message)[:1])
        if POLICY in message:
            said += "; ask for less (--mem, --time ...), or rerun it when other jobs have ended"
        if re.search("Submit|retrying|array", limit) or (POLICY in message and not limit):
            raise FullError(said, limit)
        raise UserError(said)

    def states(self, ids: Sequence[str]) -> dict[Task, tuple[str, str]] | None:
        """State and reason of all tasks that Slurm still knows; None where it did not answer."""
        done = self.call(
            "squeue", "-h", "-r", "-t", "all", "-j", ",".join(ids), "-o", "%F|%K|%T|%r"
        )
        if done.returncode != 0 and "Invalid job id" in done.stderr:
            return {}  # forgotten already (MinJobAge)
        if done.returncode != 0:
            return None
        rows = [line.split("|", 3) for line in done.stdout.splitlines()]
        return {(row[0], row[1]): (row[2], row[3]) for row in rows if len(row) == 4}

    def cancel(self, ids: Sequence[str], *options: str) -> None:
        """Cancel jobs; write a line to standard error where that fails."""
        for attempt in range(TRIES):
            done = self.call("scancel", *options, *ids)
            if done.returncode == 0 or "Invalid job id" in done.stderr:
                return
            time.sleep(2**attempt)
        tell(f"could not cancel: {' '.join(done.stderr.split())}; do it: scancel {' '.join(ids)}")


def why_not() -> str:
    """Why no job can be submitted here; an empty string where nothing is known against it."""
    try:
        command = read_slurm_config(CONFIG).command[0]
        if shutil.which(command) is None:
            return f"{command}: not found; is this a machine of the cluster? cmd.sh: cmd_backend"
        done = Slurm().call("sinfo", "--noheader")
    except UserError as error:
        return str(error)
    return ["sinfo failed", *done.stderr.splitlines()][-1] if done.returncode else ""


def scheduler_file(request: launching.Request, suffix: str) -> Path:
    """The job's script (.sh), or Slurm's own output (.log): in `q` beside the log or `log/`."""
    log = Path(request.substitute(request.log, "all"))
    folder = request.log_of(request.numbers[0]).parent
    stem = re.sub(r"[^\w.-]+", "_", log.stem)
    return (folder.parent if folder.name == "log" else folder) / "q" / f"{stem}{suffix}"


def job_script(request: launching.Request) -> bytes:
    """The script of a job. Its argument is the job's number, or +OFFSET of the array's index."""
    words = [str(Path(__file__).resolve().with_name("run.py"))]
    words += ["--num-threads", str(request.count("num-threads", 1))]
    name = f'{request.name}="$number" ' if request.name else ""
    # A job whose recipe has ended ends: the next run may be writing the same files.
    ended = "not begun: the recipe that submitted this job has ended"
    return os.fsencode(
        "#!/usr/bin/env bash\n"
        "number=$1\n"
        "[[ $number != +* ]] || number=$((SLURM_ARRAY_TASK_ID + number))\n"
        f"cd -- {shlex.quote(os.getcwd())} || exit 1\n"  # noqa: PTH109 - as the shell sees it
        f"export {PARTIAL}={shlex.quote(os.environ.get(PARTIAL, ''))}\n"
        f'[[ -z ${PARTIAL} || -d ${PARTIAL} ]] || {{ echo "{ended}" >&2; exit 1; }}\n'
        "[[ ! -f path.sh ]] || . ./path.sh\n"
        f"exec {shlex.join(words)} {name}{shlex.join([request.log, *request.command])}\n"
    )


def next_array(numbers: Sequence[int], size: int, largest: int) -> tuple[int, list[int]]:
    """Offset and jobs of the next array, of at most `size`: number = offset + index.

    An index is the number where that is no larger than the largest index.

    >>> next_array([2, 3, 4, 7], 3, 5), next_array([4, 7, 9, 12], 4, 6)
    ((0, [2, 3, 4]), (3, [4, 7, 9]))
    """
    chosen = numbers[:size]
    offset = 0 if chosen[-1] <= largest else chosen[0] - 1
    return offset, [number for number in chosen if number - offset <= largest]


def show(words: Sequence[str]) -> str:
    """Submission for the words of a launcher: the command of sbatch, with the number
    of jobs, memory and partition as far as they are asked for, and the script."""
    request = launching.parse_request(words, None, CONFIG)
    submit = read_slurm_config(request.options.get("config", CONFIG)).submit_words(request.options)
    asked = " ".join(submit)
    site = [
        f"{what}: the site's default" for what in ("mem", "partition") if f"--{what}" not in asked
    ]
    about = "; ".join([f"{len(request.numbers)} jobs" if request.name else "1 job", *site])
    size = [f"--array={launching.show_numbers(request.numbers, '-')}"] * bool(request.name)
    script = job_script(request).decode(errors="replace")
    return f"the first that would be submitted ({about}):\n{shlex.join([*submit, *size])}\n{script}"


@dataclass
class Launcher:
    """Submits the jobs of a request and follows each to its end.

    ended: number -> empty where all is well, else what happened; NOT_STARTED: cancelled by us.
    """

    request: launching.Request
    submit_words: list[str]
    slurm: Slurm = field(default_factory=Slurm)
    tasks: dict[Task, int] = field(default_factory=dict)
    ended: dict[int, str] = field(default_factory=dict)
    stopped_by: int = 0
    _first_seen: dict[int, float] = field(default_factory=dict)
    _wake: threading.Event = field(default_factory=threading.Event)
    _cancelled: bool = False
    _told_full: bool = False

    def __post_init__(self) -> None:
        self._progress = launching.Progress("slurm.py", self.request)

    @property
    def ids(self) -> list[str]:
        """Ids of the submitted jobs that have not ended."""
        alive = (task[0] for task, number in self.tasks.items() if number not in self.ended)
        return list(dict.fromkeys(alive))

    def stop(self, signum: int, _frame: FrameType | None = None) -> None:
        """Handle a signal: wake the loop, which cancels everything."""
        self.stopped_by = self.stopped_by or signum
        self._wake.set()

    def run(self) -> None:
        """Submit the jobs, and wait until every one has ended or a signal comes."""
        most = self.request.most(0) if "max-jobs-run" in self.request.options else 0
        todo = list(self.request.numbers)
        size = largest = todo[0] if len(todo) == 1 else self.slurm.largest_index()
        try:
            while todo and not self.stopped_by and not any(self.ended.values()):
                offset, chosen = next_array(todo, size, largest)
                try:
                    self._submit(offset, chosen, most)
                except FullError as error:
                    size = self._make_room(error, len(chosen))
                    largest = size if "array" in error.limit else largest
                    continue
                todo = todo[len(chosen) :]
                size = min(2 * size, largest)
                if most:  # one after the other: Slurm's own limit is one of an array
                    self._wait(len(self.tasks))
            self._wait(len(self.tasks))
        finally:
            if len(self.ended) < len(self.tasks):
                self._cancel_all()

    def _make_room(self, error: FullError, refused: int) -> int:
        """How many jobs to submit next where so many were refused: half, or, after a single one,
        as many as have ended meanwhile."""
        if refused > 1:
            return refused // 2
        if "array" in error.limit or not (error.limit or self.tasks):
            raise error  # the job itself asks for too much, or another one's place
        before = len(self.ended)
        if not self._told_full:
            tell(
                f"{self.request.log}: {len(self.tasks)} of {len(self.request.numbers)} jobs are "
                f"submitted; the others wait for places ({error.limit or POLICY})"
            )
            self._told_full = True
        self._wait(before + 1, PLACE_WAIT)
        return max(1, len(self.ended) - before)

    def _submit(self, offset: int, numbers: Sequence[int], most: int) -> None:
        script = scheduler_file(self.request, ".sh")
        output = str(scheduler_file(self.request, ".log").absolute()).replace("%", "%%")
        words = [*self.submit_words, "--parsable", "--no-requeue", "--job-name", script.stem]
        words += ["--output", output, "--open-mode=append"]
        if len(self.request.numbers) == 1:
            job = self.slurm.submit([*words, str(script), str(self.request.numbers[0])])
            self.tasks[job, "N/A"] = self.request.numbers[0]
            return
        limit = f"%{most}" if most else ""
        indices = launching.show_numbers([number - offset for number in numbers], "-")
        job = self.slurm.submit([*words, f"--array={indices}{limit}", str(script), f"+{offset}"])
        self.tasks.update({(job, str(number - offset)): number for number in numbers})

    def _wait(self, enough: int, longest: float = math.inf) -> None:
        """Follow the jobs until so many have ended in all, a signal came, or the time is over."""
        wait, began = FIRST_WAIT, time.monotonic()
        while not self.stopped_by and time.monotonic() - began < longest:
            states = self.slurm.states(self.ids) if self.ids else {}
            self._note_silence(states is None)
            for task, number in self.tasks.items():
                if number not in self.ended:
                    self._judge(number, states, task)
            if len(self.ended) >= enough:
                return
            if any(self.ended.values()) and not self._cancelled:
                self._cancelled = True
                self.slurm.cancel(self.ids, "--state=PENDING")
            waiting = [reason for state, reason in (states or {}).values() if state == "PENDING"]
            reasons = ", ".join(sorted(set(waiting)))
            more = f", {len(waiting)} waiting ({reasons})" * bool(waiting)
            running = sorted(
                number
                for task, number in self.tasks.items()
                if _state_of(task, states or {}) == "RUNNING"
            )
            self._progress.tell(len(self.ended), running, more)
            self._wake.wait(wait)
            wait = min(LONGEST_WAIT, wait * GROWTH)

    def _judge(self, number: int, states: dict[Task, tuple[str, str]] | None, task: Task) -> None:
        """Note the end of a job, if it ended: by Slurm's state first, else by its log's foot."""
        log = self.request.log_of(number)
        state = None if states is None else _state_of(task, states)
        if state in ACTIVE:
            return
        if state == "CANCELLED" and self._cancelled and not log.exists():
            self.ended[number] = NOT_STARTED
            return
        code = _ended_code(log)
        if code is not None and (state is None or state in ("LOST", "COMPLETED")):
            self.ended[number] = "" if code == 0 else IN_LOG
        elif state is not None:
            since = self._first_seen.setdefault(number, time.monotonic())
            limit = LOG_WAIT if state in ("LOST", "COMPLETED") else KILLED_LOG_WAIT
            if code is None and time.monotonic() - since < limit:
                return
            state = "NO LOG" if state == "COMPLETED" else state
            self.ended[number] = IN_LOG if state == "FAILED" and code else state
            if code is None:
                _close_log(log, state, self.request.count("num-threads", 1))

    def _note_silence(self, silent: bool) -> None:
        """Say so when Slurm has not answered for a minute; the jobs go on meanwhile."""
        now = time.monotonic()
        if not silent:
            self.slurm.silent_since = None
        elif self.slurm.silent_since is None:
            self.slurm.silent_since = now
        elif now - self.slurm.silent_since > LOG_WAIT:
            tell(f"squeue has not answered for {LOG_WAIT:.0f} s; still waiting for {self.ids}")
            self.slurm.silent_since = now

    def _cancel_all(self) -> None:
        self.slurm.cancel(self.ids)
        deadline = time.monotonic() + CANCEL_WAIT
        while time.monotonic() < deadline:
            states = self.slurm.states(self.ids)
            if states is not None and not any(state in ACTIVE for state, _ in states.values()):
                return
            time.sleep(0.2)
        tell(f"cancelled, but not all ended within {CANCEL_WAIT:.0f} s: squeue -j {self.ids}")


def _ended_code(log: Path) -> int | None:
    """Exit code in a log's foot; None without a foot (yet), or without a log."""
    account = launching.read_account(log)
    return None if account is None else account.code


def _state_of(task: Task, states: dict[Task, tuple[str, str]]) -> str:
    """A task's state. Tasks cancelled before they began share one line, of the array as a whole."""
    whole = states.get((task[0], "N/A"), ("LOST", ""))
    return states.get(task, whole)[0]


def _close_log(log: Path, state: str, threads: int) -> None:
    """Give the log of a job that was killed the foot that it could not write itself."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as stream:
        new_line = "\n" if stream.tell() else ""
        note = (
            f"{new_line}# Slurm: {state}{'; ' if state in ADVICE else ''}{ADVICE.get(state, '')}\n"
        )
        killed = 128 + signal.SIGKILL
        stream.write(launching.log_foot(killed, 0, threads, note, explained=state in ADVICE))


def report(launcher: Launcher) -> int:
    """Report the jobs that failed; return the exit status."""
    request = launcher.request
    if launcher.stopped_by:
        return launching.tell_stopped("slurm.py", launcher.stopped_by, "its jobs were cancelled")
    ended = {n: state for n, state in launcher.ended.items() if state != NOT_STARTED}
    failed = {number: state.removeprefix(IN_LOG) for number, state in ended.items() if state}
    if not failed:
        return 0
    not_started = len(request.numbers) - len(ended)
    tell(*launching.failure_lines(request, failed, not_started))
    for state in sorted({*failed.values()} & set(ADVICE)):
        tell(f"{state}: {ADVICE[state]}")
    slurms_own = scheduler_file(request, ".log")
    if any(failed.values()) and slurms_own.exists():
        said = slurms_own.read_text(encoding="utf-8", errors="replace").splitlines()
        for line in said[-3:]:
            tell(f"  {slurms_own}: {line}")
    return 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    words = sys.argv[1:] if argv is None else list(argv)
    if words[:1] in (["--help"], ["-h"]):
        print(__doc__)
        return 0
    request = launching.parse_request(words, None, CONFIG)
    config = read_slurm_config(request.options.get("config", CONFIG))
    for option in ("num-threads", "gpu"):
        request.count(option, 0)
    request.most(1)
    for more in reversed(range(max(1, request.count("num-tries", 1)))):
        status = run_once(request, config.submit_words(request.options))
        failed = [n for n in request.numbers if _ended_code(request.log_of(n)) != 0]
        if status != 1 or not failed or not more:
            break
        request = replace(request, numbers=failed)
        for log in map(request.log_of, failed):
            if log.is_file():
                log.replace(log.with_name(f"{log.name}.bak"))
        again = launching.show_numbers(failed)
        tell(f"{request.log}: once more, JOB={again}; tries left: {more}")
    return status


def run_once(request: launching.Request, submit_words: list[str]) -> int:
    """Run the jobs of a request, each once, and report; return the exit status."""
    launcher = Launcher(request, submit_words)
    launching.clear_logs(request)
    script = scheduler_file(request, ".sh")
    script.parent.mkdir(parents=True, exist_ok=True)
    scheduler_file(request, ".log").unlink(missing_ok=True)  # of an older call
    script.write_bytes(job_script(request))
    before: dict[int, Callable[..., object] | int | None] = {
        signum: signal.signal(signum, launcher.stop) for signum in launching.STOP_SIGNALS
    }
    try:
        launcher.run()
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
    # A network file system asks its server again for a folder that is listed.
    words = (word for word in [*request.command, request.log] if "/" in word and "\n" not in word)
    for folder in {Path(word).parent for word in words}:
        if folder.is_dir():
            os.listdir(folder)  # noqa: PTH208 - opening it is what counts
    return report(launcher)


if __name__ == "__main__":
    run_program(main)
