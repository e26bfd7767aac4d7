"""Driver of a recipe: makes the steps of its plan that are not up to date, side by side.

A step waits for those whose outputs its commands name. Steps share `nj` cores: a data directory is
cut into parts only where fewer steps than cores can run.
"""

import os
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import islice, pairwise
from pathlib import Path
from shutil import rmtree

from utils import launching
from utils.cli import UserError, refusing
from utils.datadir import load_data_dir
from utils.jobs import Job, Jobs, jobs_of
from utils.orphans import lock_folder, start_guard
from utils.parts import merge_parts, split_data_dir
from utils.recipe import Foreseen, Planned, Row, Script, dependencies, fill, write_plan
from utils.stamps import Step, commit_of_code, read_stamp
from utils.tables import PARTIAL, few, write_json

GRACE = 20.0  # seconds: longer than a launcher needs to cancel its jobs
OWNED, COMMAND = "PSEUDOVOX_OWNED", "PSEUDOVOX_COMMAND"  # in the environment
LOCK = Path("exp/.lock")
STEPS = Path("exp/steps.log")  # of the last run: each step, and why it was made
APART = 10.0  # seconds between two lines on steps
Command = tuple[launching.Request | None, list[Job]]  # a launcher's, or none, and its jobs
Commands = Iterator[Command]  # of a step, one after the other


def clear_line() -> str:
    """Characters that remove the line of progress, which a terminal has."""
    return "\r\x1b[K" if sys.stdout.isatty() else ""


def log(text: str) -> None:
    """Print a line with the time."""
    print(f"{clear_line()}{time.strftime('%Y-%m-%d %H:%M:%S')} {text}", flush=True)


def complain(text: str) -> None:
    """Print a line on standard error."""
    print(f"{clear_line()}{text}", file=sys.stderr)


class Driver:
    """Runs a recipe.

    name: of its script. options: of the script, by name. plan: makes the plan from the files that
    exist. sum_up: sums up the steps of a dry run, with so many jobs at a time.
    """

    def __init__(
        self,
        name: str,
        recipe: str,
        options: Mapping[str, str],
        script: Script,
        plan: Callable[[], Planned],
        sum_up: Callable[[Sequence[Foreseen], int], Sequence[str]],
    ) -> None:
        self.name, self.recipe, self.options = name, recipe, options
        self.script, self.plan, self.sum_up = script, plan, sum_up
        self.dry = options["dry_run"]
        self.is_dry = self.dry != "false"
        self.jobs = Jobs(GRACE)
        self.seen: set[str] = set()  # outputs that are up to date, or were begun
        self.total = 0  # steps of these stages, as far as the plan knows
        self.remade: set[str] = set()  # and those that were made, or would be
        self.since = time.monotonic()
        self.foreseen: list[Foreseen] = []
        self.failed: list[tuple[Row, int]] = []
        self._told: set[object] = set()  # notes and stages
        self._told_at = -APART  # of a step

    @property
    def nj(self) -> int:
        """Number of cores, which the plan has checked."""
        return int(self.options["nj"])

    def run(self) -> int:
        """Run the requested stages; return the exit status. UserError if the script has none of
        them."""
        with refusing("--stage, --stop-stage: {}", ValueError):
            first, last = int(self.options["stage"]), int(self.options["stop_stage"])
            if not any(first <= stage <= last for stage in self.script.titles):
                raise ValueError(f"no stage from {first} to {last}; the last is {self.script.last}")
        with self._owned():
            (planned, rows), planned_at = self._plan(), 0  # which writes settings of others' speech
            self._record()
            if planned.lacking and self.is_dry:  # before hundreds of steps are looked at
                return self._tell_lacking(planned)
            self._tell(planned, rows)
            self._tell_stale(rows, first)
            asked = [row for row in rows if first <= row.stage <= last]
            steps = [] if self.is_dry else [*self._foreseen(asked, set())]
            if any(step.reason for step in steps):
                log(self.sum_up(steps, self.nj)[-1])
            for until in (*self.script.again, last):
                if len(self.remade) > planned_at and not self.is_dry:
                    (planned, rows), planned_at = self._plan(), len(self.remade)
                    self._tell(planned, rows)
                asked = [row for row in rows if first <= row.stage <= last]
                self.total = len(asked)
                left = [row for row in asked if row.stage <= until and row.out not in self.seen]
                self._foresee(left) if self.is_dry else self._make(left)
                if self.failed or self.jobs.stopped_by:
                    return self._report_failure()
            whole = first <= self.script.last <= last and not self.is_dry
            if whole and planned.remembered:
                write_json("exp/plan/options.json", planned.remembered)
            self._end(planned)
        return self._tell_lacking(planned) if self.is_dry else 0

    def _plan(self) -> tuple[Planned, list[Row]]:
        """The plan, and its steps in order."""
        planned = self.plan()
        return planned, self.script.arrange(planned.tables, self.options)

    def _tell(self, planned: Planned, rows: Sequence[Row]) -> None:
        """Log the plan's notes, each once, and leave its tables where people look."""
        for note in planned.notes:
            if note not in self._told:
                log(note)
        self._told.update(planned.notes)
        if not self.is_dry:
            folder = Path("exp/plan") if self.recipe == "run" else Path("exp/plan", self.recipe)
            write_plan(folder, self.script, rows, self.options)

    def _tell_stale(self, rows: Sequence[Row], first: int) -> None:
        """Complain where what earlier stages made is out of date and this run leaves it so. Stage 0
        reads whole corpora, and only its command is looked at."""
        stale: dict[str, str] = {}
        for row in rows:
            if row.stage >= first:
                break
            step, stamp = Step(row.outs, self.words(row), row.maybe), read_stamp(Path(row.out))
            why = step.why(stale) if stamp and row.stage else None
            if stamp and not row.stage and (made := stamp.get("command")) != step.words:
                why = f"made by: {shlex.join(made or ())}"
            stale |= dict.fromkeys(row.outs, why) if why else {}
        if stale:
            told = few([f"{out} ({why})" for out, why in stale.items()], 1)
            complain(
                f"{self.name}: what stages before {first} made is out of date, and so is what this "
                f"run makes of it: {told}; run it without --stage"
            )

    def _tell_stage(self, stage: int) -> None:
        if stage not in self._told:
            self._told.add(stage)
            log(f"stage {stage}: {self.script.titles[stage]}")

    def words(self, row: Row) -> list[str]:
        """All words of a step's commands, as in its stamp."""
        return self.script.words(row, self.options)

    # ---- The folder.

    @contextmanager
    def _owned(self) -> Iterator[None]:
        """Context in which no other run is at work in this folder, and all that is started ends
        with this process. A recipe that a recipe calls shares its lock."""
        if self.is_dry:
            yield
            return
        os.environ[COMMAND] = self.options["command_line"]
        Path("exp").mkdir(exist_ok=True)
        place, partial = str(Path("exp").resolve()), ""
        if os.environ.get(OWNED) != place:
            self._lock()
            os.environ[OWNED] = place
            STEPS.unlink(missing_ok=True)
            for left in Path("exp").glob(".partial.*"):
                rmtree(left)
            partial = tempfile.mkdtemp(prefix=".partial.", dir=Path("exp").absolute())
            os.environ[PARTIAL] = partial
        try:
            yield
        finally:
            if partial:
                rmtree(partial, ignore_errors=True)

    def _record(self) -> None:
        """Log the command of a run that is planned."""
        if not self.is_dry:
            with Path("exp/cmdline.log").open("a") as stream:
                now = time.strftime("%Y-%m-%d %H:%M:%S")
                stream.write(f"{now}  {commit_of_code()}  {self.options['command_line']}\n")

    def _lock(self) -> None:
        """Lock the folder, and start the guard; whatever is started inherits both files."""
        own = lock_folder(LOCK, self.options["command_line"])
        _, pipe = os.pipe()
        for fd in (own, pipe):
            os.set_inheritable(fd, True)
        start_guard(pipe, own)

    # ---- A dry run.

    def _foreseen(self, rows: Sequence[Row], remade: set[str]) -> Iterator[Foreseen]:
        """Yield what would be done of each row; remade: outputs that would be, which grows."""
        for row in rows:
            words = self.words(row)
            reason = Step(row.outs, words, row.maybe).why(remade)
            if reason is not None:
                remade.update(row.outs)
            yield Foreseen(row, reason or "", words)

    def _foresee(self, rows: Sequence[Row]) -> None:
        for step in self._foreseen(rows, self.remade):
            row = step.row
            self._tell_stage(row.stage)
            self.seen.add(row.out)
            self.foreseen.append(step)
            if self.dry == "full" and not step.reason:
                log(f"up to date: {row.out}")
            elif self.dry == "full":
                log(f"would make {row.out} ({step.reason}):")
                for command in self.script.commands(row, self.options):
                    print(f"  {shlex.join(command)}")

    def _make(self, rows: Sequence[Row]) -> None:
        """Make the rows that are not up to date; returns when all have ended."""
        window = _Window(self, rows)
        with self.jobs.watching():
            window.run()

    def tell_step(self, row: Row, reason: str | None) -> None:
        """Record that a step is made, for a reason, or up to date; and say how many are done, and
        the time left: on a terminal one line stands for all, elsewhere there is one in ten seconds.
        """
        self._tell_stage(row.stage)
        self.seen.add(row.out)
        self.remade.update(row.outs if reason is not None else ())
        text = f"up to date: {row.out}" if reason is None else f"making {row.out} ({reason})"
        now = time.monotonic()
        with STEPS.open("a") as stream:
            stream.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n")
        made, minutes = len(self.seen & self.remade), (now - self.since) / 60
        left = minutes / max(made, 1) * (self.total - len(self.seen))
        time_left = f", about {max(1, round(left))} min left" if made else ""
        how_far = f"{len(self.seen)} of {self.total}{time_left}"
        if sys.stdout.isatty():
            print(f"{clear_line()}{how_far}", end="", flush=True)
        elif now - self._told_at >= APART:
            self._told_at = now
            log(f"{how_far}: {text}")

    def launch(
        self, words: Sequence[str], out: str, n: int
    ) -> tuple[launching.Request | None, list[Job]]:
        """Jobs of a command for a step's output; n: how many, with numbers for JOB; 0: one without.

        On this machine the jobs themselves, else their launcher as one job. What is no Python
        program runs here, without a log.
        """
        stem = Path(words[0]).stem
        if not words[0].endswith(".py"):
            return None, [Job(words)]
        cuda = any(pair == ("--device", "cuda") for pair in pairwise(words))
        launcher = os.environ["gpu_cmd" if cuda else "cpu_cmd"].split()
        launcher += self.script.job_options.get(stem, "").split()
        array, name = ([f"JOB=1:{n}"], f"{stem}.JOB.log") if n else ([], f"{stem}.log")
        command = [*launcher[1:], *array, f"{out}/log/{name}", *words]
        if Path(launcher[0]).name != "run.py":
            return None, [Job([launcher[0], *command], cores=n or 1)]
        request = launching.parse_request(command)
        launching.clear_logs(request)
        jobs = jobs_of(request, forks=True)
        for job in jobs:  # --max-jobs-run N: each takes its share of the cores
            job.cores = max(job.cores, self.nj // request.most(self.nj))
        return request, jobs

    def phases(self, row: Row, parts: int) -> Commands:
        """Jobs of a step, one command after the other; parts: of its data, at most."""
        values = {**self.options, **row.values}
        for place, template in enumerate(self.script.programs[row.table]):
            if row.cut and not place:
                data = load_data_dir(str(values["data"]), need=("utt2spk",), allow_segments=True)
                n = split_data_dir(data, parts)
                part = {name: f"{values[name]}/split{n}/JOB" for name in ("data", "out")}
                yield self.launch(fill(template, values | part), row.out, n)
                merge_parts(Path(row.out), n)
            else:
                words = fill(template, values, expand=True)
                yield self.launch(words, row.out, self.nj if "JOB" in words else 0)

    # ---- The end.

    def _report_failure(self) -> int:
        if self.jobs.stopped_by:
            return launching.tell_stopped(
                clear_line() + self.name, self.jobs.stopped_by, "its jobs were stopped too"
            )
        row, status = self.failed[0]
        outs = " ".join(row.out for row, _ in self.failed)
        complain(
            f"{self.name}: stage {row.stage} failed at {outs} (status {status}); the messages are "
            "above. Fix this and rerun the same command: finished steps are not repeated."
        )
        return status

    def _end(self, planned: Planned) -> None:
        """Log what was done in one line, and after the last stage, where its results are."""
        made, total = len(self.seen & self.remade), len(self.seen)
        if self.is_dry and self.dry != "full":
            print("\n".join(self.sum_up(self.foreseen, self.nj)))
        if not made:
            log(f"nothing to do: all {total} steps were up to date")
        elif self.is_dry:
            log(f"dry run: {made} of {total} steps would be made (--dry-run full lists them)")
        else:
            log(f"done: {made} of {total} steps were made, the others were up to date")
        if int(self.options["stop_stage"]) >= self.script.last and not self.is_dry:
            here = Path.cwd()
            rows = planned.tables.rows
            outs = {name: f"{here}/{own[0].out}" for name, own in rows.items() if own}
            file = Path(self.script.file.format_map(outs))
            for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
                log(line)
            log(self.script.results.format_map(outs))

    def _submitted(self) -> Iterator[list[str]]:
        """Yield the launcher's words for each step that would be made and that Slurm would run."""
        for step in self.foreseen:
            row, values = step.row, {**self.options, **step.row.values}
            words = fill(self.script.programs[row.table][0], values)
            if step.reason and words[0].endswith(".py"):
                n = self.nj if row.cut or "JOB" in words else 0
                _, (job,) = self.launch(words, row.out, n)
                yield list(job.words[1:])

    def _tell_lacking(self, planned: Planned) -> int:
        """Report the requested parts that a dry run lacks; return the exit status."""
        lacking = [*planned.lacking]
        launcher, *_ = os.environ["cpu_cmd"].split()  # noqa: SIM112
        if Path(launcher).name == "slurm.py":
            from utils.slurm import show, why_not

            why = why_not()
            lacking += filter(None, [why])
            submitted = (words for words in self._submitted() if not why)
            for words in islice(submitted, 1):
                print(show(words))
        for line in lacking:
            complain(f"{self.name}: {line}")
        return UserError.exit_status if lacking else 0


@dataclass(eq=False)
class _Phase:
    """Command of a step that is being made, by its jobs. left: those that have not ended; then
    `making`, which makes the step, goes on."""

    making: Commands
    jobs: list[Job]
    left: list[Job]
    progress: launching.Progress | None


class _Window:
    """Rows that are made side by side, each after those that it needs."""

    def __init__(self, driver: Driver, rows: Sequence[Row]) -> None:
        self.driver, self.rows = driver, rows
        self.words = [driver.words(row) for row in rows]
        needs = dependencies(rows, self.words)
        self.order = TopologicalSorter(dict(enumerate(needs)))
        self.order.prepare()
        self.ready: list[int] = []  # what waits for nothing any more
        self.stale: list[tuple[int, Step, str]] = []
        self.making: dict[Job, _Phase] = {}  # by each job of theirs that has not ended
        self.queue: list[Job] = []

    def run(self) -> None:
        """Make all; returns when every job has ended."""
        jobs = self.driver.jobs
        while True:
            self._fill()
            self._look()
            self._fill()
            if not self.making and not (self._may_begin() and self.order.is_active()):
                return
            for job in jobs.wait(5.0) if self.making else ():
                self._end(job)
            for phase in {*self.making.values()}:
                if phase.progress is not None:
                    running = [job.number for job in jobs.running.values() if job in phase.left]
                    phase.progress.tell(len(phase.jobs) - len(phase.left), sorted(running))

    def _may_begin(self) -> bool:
        return not (self.driver.failed or self.driver.jobs.stopped_by)

    def _fill(self) -> None:
        """Give stale rows to the cores that are free."""
        while self.stale and self._may_begin() and (free := self._free()) > 0:
            many = len(self.stale) + len(self.ready)
            # The last is also cut for those cores that soon are free.
            parts = free // many if many > 1 else min(2 * free, self.driver.nj)
            self._go_on(self._make(*self.stale.pop(0), max(1, parts)))
        self._start()

    def _look(self) -> None:
        """Look at what waits for nothing any more, in the order of the plan, until there is enough
        for all cores: to look takes time, in which these work."""
        while self._may_begin() and len(self.stale) <= self.driver.nj:
            self.ready = sorted([*self.ready, *self.order.get_ready()])
            if not self.ready:
                return
            place = self.ready.pop(0)
            row = self.rows[place]
            step = Step(row.outs, self.words[place], row.maybe)
            step.settle()
            reason = step.why()
            if reason is None:
                self.driver.tell_step(row, reason)
                self.order.done(place)
            else:
                self.stale.append((place, step, reason))

    def _free(self) -> int:
        """Cores without a job."""
        jobs = [*self.driver.jobs.running.values(), *self.queue]
        return self.driver.nj - sum(job.cores for job in jobs)

    def _make(self, place: int, step: Step, reason: str, parts: int) -> Commands:
        """Make a step: stops at each of its commands until that has ended. One that failed is told
        of, and what it was to replace is put back."""
        driver, row, status = self.driver, self.rows[place], 1
        driver.tell_step(row, reason)
        try:
            step.begin()
            for request, jobs in driver.phases(row, parts):
                yield request, jobs
                failed = {job.number: "" for job in jobs if job.code}
                if driver.jobs.stopped_by or failed:
                    break
            else:
                step.finish()
                self.order.done(place)
                return
            status = next((job.code for job in jobs if job.code and not job.log), 1)
            if request is not None and not driver.jobs.stopped_by:
                not_started = sum(job.code is None for job in jobs)
                complain("\n".join(launching.failure_lines(request, failed, not_started)))
        except UserError as error:
            status = error.exit_status
            complain(f"{driver.name}: {error}")
        for out in step.settle():
            complain(f"{out}: is again as it was before this step")
        driver.failed.append((row, status))

    def _go_on(self, making: Commands) -> None:
        """Go on with a step, whose next command then waits for cores."""
        for request, jobs in making:
            told = request if not sys.stdout.isatty() else None
            progress = launching.Progress(self.driver.name, told) if told else None
            self.queue += jobs
            self.making |= dict.fromkeys(jobs, _Phase(making, jobs, [*jobs], progress))
            return

    def _start(self) -> None:
        """Start what has a core; nothing any more where all is stopped."""
        jobs = self.driver.jobs
        for job in [*self.queue]:
            busy = job.gpu and any(other.gpu for other in jobs.running.values())
            taken = sum(other.cores for other in jobs.running.values())
            if jobs.stopped_by:
                self._end(job)
            elif not busy and (not taken or taken + job.cores <= self.driver.nj):
                self.queue.remove(job)
                jobs.start(job)

    def _end(self, job: Job) -> None:
        """Go on with a step whose jobs have ended; after one that failed no more are started."""
        if job in self.queue:
            self.queue.remove(job)
        phase = self.making.pop(job)
        phase.left.remove(job)
        for other in [other for other in phase.left if other in self.queue and job.code]:
            self._end(other)
        if not phase.left:
            self._go_on(phase.making)
