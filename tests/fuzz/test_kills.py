"""Recipes killed with SIGKILL at seeded random moments: equal digests, no orphans."""

import hashlib
import os
import random
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.toy_recipe import make_toy, stages
from tests.waiting import LIMIT, wait_for
from utils.datadir import write_data_dir

ROOT = Path(__file__).resolve().parents[2]
KILLS = 20
STAGES = stages(
    "protected 'tests/fuzz/toy_speech.py protect {alpha} {data} {out} {wav}'",
    "counted 'tests/fuzz/toy_speech.py count {alpha} {of}/figures {out}/figures'",
    "summed 'tests/fuzz/toy_speech.py count {alpha} {of}/figures {out}/figures'",
)
PROTECTED = "exp/protected"
ROWS = (
    {"table": "protected", "out": PROTECTED, "data": "data/set", "cut": "utterances",
     "wav": f"{PROTECTED}/wav"},
    {"table": "counted", "out": "exp/left", "of": PROTECTED},
    {"table": "counted", "out": "exp/right", "of": PROTECTED},
    {"table": "summed", "out": "exp/results", "of": "exp/left"},
)  # fmt: skip


def send(pid: int, signum: int) -> None:
    """A signal to a process that may have ended meanwhile."""
    with suppress(ProcessLookupError):
        os.kill(pid, signum)


class Folder:
    """A corpus's folder with a cheap recipe, whose processes are known by their environment."""

    def __init__(self, path: Path) -> None:
        self.path, self.mark = path, f"KILLED_IN={path}"
        path.mkdir()
        (path / "tests").symlink_to(ROOT / "tests")
        make_toy(path, STAGES, *ROWS)
        utts = [f"s{speaker}-{number}" for speaker in range(4) for number in range(4)]
        tables = {"utt2spk": {u: u[:2] for u in utts}, "wav.scp": {u: f"/{u}.wav" for u in utts}}
        write_data_dir(path / "data/set", tables)

    def start(self, alpha: int) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "KILLED_IN": str(self.path)}
        streams = {"stdout": subprocess.DEVNULL, "stderr": (self.path / "errors").open("wb")}
        command, at = ["./run.sh", "--alpha", str(alpha)], self.path
        return subprocess.Popen(command, cwd=at, env=environment, start_new_session=True, **streams)

    def run(self, alpha: int) -> dict[str, str]:
        """To the end; the digests of all that it made, but for logs and stamps.

        What a killed run with the other option had begun may stand beside what is finished again
        (`.results.unfinished`), for that option's next run. Nothing else that is hidden may.
        """
        assert self.start(alpha).wait(LIMIT) == 0, (self.path / "errors").read_text()
        exp = self.path / "exp"
        files = [p for p in exp.rglob("*") if p.is_file() and "log" not in p.parts[-2:]]
        files = [p for p in files if "plan" not in p.parts]
        shown = [p for p in files if not any(x.startswith(".") for x in p.relative_to(exp).parts)]
        for left in ("partial.*", "*.old"):
            assert not list(exp.glob(f".{left}"))
        return {
            str(p.relative_to(self.path)): hashlib.sha256(p.read_bytes()).hexdigest()
            for p in sorted(shown)
            if p.name not in ("cmdline.log", "steps.log")
        }

    def living(self) -> dict[int, str]:
        """Id and command of all processes that descend from a run of this folder."""
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (process / "environ").read_bytes().split(b"\0"):
                    command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    found[int(process.name)] = command
            except OSError:
                continue  # it has just ended
        return found

    def wait_until_all_have_ended(self) -> None:
        wait_for(lambda: not self.living(), shown=self.living)

    def jobs(self, run: int) -> list[int]:
        """Forks of a run that are jobs, each with a process group of its own; its guard has a
        session of its own.

        What it starts on its way, such as git, is in the run's group. Nobody ends that where this
        test has stopped it before there is a guard.
        """
        found = []
        for pid in self.living():
            try:
                found += [pid] if pid != run and os.getsid(pid) == run != os.getpgid(pid) else []
            except ProcessLookupError:
                continue
        return found

    def kill(self, rng: random.Random, alpha: int) -> bool:
        """Start a run and kill it, or a job of it, somewhere; False where it ended before."""
        run = self.start(alpha)
        time.sleep(rng.uniform(0.1, 2.5))
        pids = [run.pid]
        if rng.random() < 0.3:
            pids = self.jobs(run.pid) or pids
        if rng.random() < 0.3:
            for pid in self.jobs(run.pid):
                send(pid, signal.SIGSTOP)  # it would go on whenever somebody lets it
        ended = run.poll() is not None
        if not ended:
            send(rng.choice(pids), signal.SIGKILL)
            if pids != [run.pid]:
                for pid in self.jobs(run.pid):
                    send(pid, signal.SIGCONT)
        status = run.wait(LIMIT)
        self.wait_until_all_have_ended()
        return not ended and status != 0


@pytest.mark.slow
def test_twenty_kills_leave_no_orphan_and_equal_digests(tmp_path: Path) -> None:
    """7 of 12 kills had left 1 to 3 jobs, which wrote into the next run's folder."""
    rng = random.Random(18)
    whole = {alpha: Folder(tmp_path / f"whole{alpha}").run(alpha) for alpha in (1, 2)}
    assert len(whole[1]) == 16 + 4
    assert whole[1].keys() == whole[2].keys()
    assert not set(whole[1].values()) & set(whole[2].values())
    folder = Folder(tmp_path / "killed")
    kills, alpha = 0, 1
    while kills < KILLS:
        kills += folder.kill(rng, alpha)
        if rng.random() < 0.25:
            assert folder.run(alpha) == whole[alpha]
            alpha = 3 - alpha
        elif rng.random() < 0.3:
            alpha = 3 - alpha  # over what a killed run with another option left
    assert folder.run(alpha) == whole[alpha]
    folder.wait_until_all_have_ended()
