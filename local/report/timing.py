"""Real-time factors: seconds of computing a second of audio, read off the logs of a run.

Only what a log says is a measurement. A stage of which any log is missing, failed, belongs to
another run, or goes on from a stopped one is not measured, and the reason is told.
"""

import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from local.report.frame import TIMINGS
from utils.cli import UserError
from utils.datadir import read_noted
from utils.launching import read_account
from utils.stamps import read_stamp
from utils.tables import is_there, read_map

# Tables of seconds by utterance that a stage may have made: their columns, and what these are.
PARTS = {
    "pseudo.tsv": {"seconds": "transformation alone"},
    "seconds.tsv": {"encoder": "encoder alone", "decoder": "decoder alone"},
}
Row = dict[str, str]  # of TIMINGS
ALL = "all that protects"  # the sum of the stages that whoever protects speech needs
_LOG = re.compile(r"(?P<program>.+?)(?:\.(?P<job>\d+))?\.log")
_RESUMED = re.compile(
    rb"\bresumed at step [1-9]|\b[1-9]\d* of them by a run that was ended before$", re.M
)
_PART = re.compile(r"/split(\d+)/(\d+)$")


@dataclass(frozen=True)
class Stage:
    """A stage of a system. audio: folders with utt2dur, folders: what it made, one each.

    protects: whether it is repeated for all new speech that is protected.
    """

    system: str
    name: str
    audio: Sequence[Path]
    folders: Sequence[Path]
    protects: bool = False


def join_stages(stages: Iterable[Stage]) -> list[Stage]:
    """Stages of one system and name become one, of all their folders; in the order of the first.

    A folder that is named twice, for two evaluators with one encoder, counts once.
    """
    groups: dict[tuple[str, str], list[Stage]] = defaultdict(list)
    for stage in stages:
        groups[stage.system, stage.name].append(stage)
    joined = []
    for (system, name), own in groups.items():
        pairs = [pair for stage in own for pair in zip(stage.audio, stage.folders, strict=True)]
        audio, folders = zip(*dict.fromkeys(pairs), strict=True)
        joined.append(Stage(system, name, audio, folders, own[0].protects))
    return joined


@dataclass(frozen=True)
class Cost:
    """seconds: wall time of all jobs added up; jobs: side by side; threads: of a job, at most."""

    seconds: float
    jobs: int
    threads: int
    hosts: frozenset[str]

    def plus(self, other: "Cost") -> "Cost":
        """Both, one after the other."""
        return Cost(
            self.seconds + other.seconds,
            max(self.jobs, other.jobs),
            max(self.threads, other.threads),
            self.hosts | other.hosts,
        )


def cost_of(folder: Path) -> Cost:
    """What the logs of a finished step say.

    Raises UserError where the step is not finished, or where a log is missing, has no foot, ended
    with an error, went on from a stopped run, or is of another number of jobs (an interrupted run
    before).
    """
    host = _host(folder)
    logs: dict[str, dict[int, Path]] = defaultdict(dict)
    for path in sorted((folder / "log").glob("*.log")):
        if match := _LOG.fullmatch(path.name):
            logs[match["program"]][int(match["job"] or 0)] = path
    if not logs:
        raise UserError(f"{folder}/log: holds no log")
    seconds, most_jobs, threads = 0.0, 0, 0
    for program, found in sorted(logs.items()):
        numbers = _numbers(folder, program, found)
        for number in numbers:
            account = read_account(found[number])
            if account is None or account.code != 0:
                raise UserError(f"{found[number]}: does not end well")
            if _RESUMED.search(found[number].read_bytes()):
                raise UserError(
                    f"{found[number]}: goes on from a stopped run, whose time is not in it"
                )
            seconds += account.seconds
            threads = max(threads, account.threads)
        most_jobs = max(most_jobs, len(numbers))
    return Cost(seconds, most_jobs, threads, frozenset({host}))


def _host(folder: Path) -> str:
    stamp = read_stamp(folder)
    if stamp is None or "host" not in stamp:
        raise UserError(f"{folder}: has no stamp of a finished step")
    return str(stamp["host"])


def _numbers(folder: Path, program: str, logs: dict[int, Path]) -> list[int]:
    """The jobs of a program's last run; 0 stands for a job without number.

    How many there were stands in each job's command (.../split<jobs>/<job>): what an interrupted
    run with other jobs left is not counted, and what should be there has to be.
    """
    if 0 in logs:
        return [0]
    if 1 not in logs:
        raise UserError(f"{folder}/log/{program}.1.log: is missing")
    n, _ = _part(logs[1])
    for number in range(1, n + 1):
        if number not in logs:
            raise UserError(f"{folder}/log/{program}.{number}.log: is missing, of {n}")
        if _part(logs[number]) != (n, number):
            raise UserError(f"{logs[number]}: is not of job {number} of {n}")
    return list(range(1, n + 1))


def _part(log: Path) -> tuple[int, int]:
    """(jobs, job) in the command at the head of a log."""
    try:
        with log.open(encoding="utf-8", errors="replace") as stream:
            words = shlex.split(stream.readline().removeprefix("# "))
    except (OSError, ValueError) as error:
        raise UserError(f"{log}: its head cannot be read") from error
    for word in words:
        if match := _PART.search(word):
            return int(match[1]), int(match[2])
    raise UserError(f"{log}: its head does not say of which part of the data it is")


def seconds_of(folders: Iterable[Path]) -> float:
    """Seconds of speech: the sum over the tables utt2dur of some folders."""
    total = 0.0
    for folder in folders:
        total += _sum(read_map(folder / "utt2dur"), f"{folder}/utt2dur", "{} is no duration")
    if total <= 0:
        raise UserError("no audio: its duration is 0 s")
    return total


def _sum(texts: Mapping[str, str], path: object, problem: str) -> float:
    total = 0.0
    for utt, text in texts.items():
        try:
            total += float(text)
        except ValueError as error:
            raise UserError(f"{path}: {utt}: {problem.format(text)}") from error
    return total


def _noted_seconds(stage: Stage, table: str, column: str) -> float:
    """Seconds of a part of a stage, which its program notes for each utterance of its audio."""
    total = 0.0
    for audio, folder in zip(stage.audio, stage.folders, strict=True):
        rows = read_noted(folder / table, (column,), read_map(audio / "utt2dur"))
        texts = {utt: text for utt, (text,) in rows.items()}
        total += _sum(texts, folder / table, "{!r} is no time")
    return total


def measure(stage: Stage, corpus: str, part: tuple[str, str] | None = None) -> Row:
    """A row of the table; where it is not measured, with the reason.

    part: table and column of a part of the stage, without what is around it: start of programs,
    reading, writing.
    """
    name = f"{stage.name}: {PARTS[part[0]][part[1]]}" if part else stage.name
    row = dict.fromkeys(TIMINGS, "") | {"corpus": corpus, "system": stage.system, "stage": name}
    try:
        audio, hosts = seconds_of(stage.audio), frozenset(map(_host, stage.folders))
        seconds = _noted_seconds(stage, *part) if part else 0.0
        costs = [cost_of(folder) for folder in stage.folders]
    except UserError as error:
        return row | {"missing": str(error)}
    cost = Cost(seconds, max(c.jobs for c in costs), 1, hosts) if part else reduce(Cost.plus, costs)
    return row | {
        "rtf": f"{cost.seconds / audio:.6g}", "seconds": f"{cost.seconds:.2f}",
        "audio_seconds": f"{audio:.2f}", "jobs": str(cost.jobs), "threads": str(cost.threads),
        "hosts": " ".join(sorted(cost.hosts)),
    }  # fmt: skip


def timings(stages: Sequence[Stage], corpus: str) -> list[Row]:
    """All rows, of the original speech first, then system by system; after each system's stages the
    sum of those that protect."""
    rows = []
    systems = dict.fromkeys(stage.system for stage in stages)
    for system in sorted(systems, key=lambda name: name != "original"):
        own = [stage for stage in stages if stage.system == system]
        for stage in own:
            rows.append(measure(stage, corpus))
            for table, columns in PARTS.items():
                if all(is_there(folder / table) for folder in stage.folders):
                    rows += [measure(stage, corpus, (table, column)) for column in columns]
        protecting = [stage for stage in own if stage.protects]
        if protecting:
            folders = [folder for stage in protecting for folder in stage.folders]
            rows.append(measure(Stage(system, ALL, protecting[0].audio, folders), corpus))
    return rows
