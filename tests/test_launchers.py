"""Kaldi's launcher contract, without its silent failures: run.py, and slurm.py on a real Slurm."""

import itertools
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.recipes import ROOT, Done, link, run_words
from tests.waiting import LIMIT, ended, wait_for
from utils import launching
from utils import run as local_launcher
from utils import slurm as slurm_launcher

RUN = [sys.executable, str(ROOT / "utils/run.py")]
PRINT_ARGUMENTS = [sys.executable, "-c", "import sys; print(sys.argv[1:])"]

Run = Callable[..., Done]


@pytest.fixture(params=("run.py", pytest.param("slurm.py", marks=pytest.mark.slurm)))
def launcher(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, dict[str, str]]:
    """Name and environment of a launcher; slurm.py finds its conf/slurm.conf."""
    if request.param == "run.py":
        return request.param, dict(os.environ)
    link(tmp_path / "conf/slurm.conf", ROOT / "egs/TEMPLATE/conf/slurm.conf")
    return request.param, request.getfixturevalue("slurm")


@pytest.fixture
def run(launcher: tuple[str, dict[str, str]], tmp_path: Path) -> Run:
    name, environment = launcher

    def call(*arguments: str, status: int | None = None) -> Done:
        words = [sys.executable, str(ROOT / "utils" / name), *arguments]
        return run_words(words, status, cwd=tmp_path, env=environment, timeout=LIMIT)

    return call


def test_logs_have_kaldis_head_and_foot(run, tmp_path):
    done = run("JOB=2:3", "exp/log/x.JOB.log", "bash", "-c", "echo out; printf err >&2")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sorted(p.name for p in (tmp_path / "exp/log").iterdir()) == ["x.2.log", "x.3.log"]
    log = (tmp_path / "exp/log/x.3.log").read_text()
    assert re.fullmatch(
        r"# bash -c 'echo out; printf err >&2'\n# Started at .+\n#\nout\nerr\n"
        r"# Accounting: time=\d+ threads=1\n"  # whole seconds: tools of Kaldi read them so
        r"# Ended \(code 0\) at .+, elapsed time \d+\.\d\d seconds\n",
        log,
    )


def test_job_is_replaced_as_a_token_only(run, tmp_path):
    """run.pl turns /data/MYJOBS/ into /data/MY1S/."""
    words = "/data/MYJOBS/x JOBS split2/JOB x_JOB.ark a{JOB}b JOB $JOB ${JOB}"
    run("JOB=7", "MYJOBS.{JOB}.log", *PRINT_ARGUMENTS, *words.split(), status=0)
    wanted = ["/data/MYJOBS/x", "JOBS", "split2/7", "x_7.ark", "a7b", "7", "$JOB", "${JOB}"]
    assert repr(wanted) in (tmp_path / "MYJOBS.7.log").read_text()
    run("N=1:2", "n.N.log", "bash", "-c", "echo job-$N", status=0)
    assert "job-2\n" in (tmp_path / "n.2.log").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--max-job-run", "2", "x.log", "ls"], "--max-job-run: no such option"),
        (["--mem"], "--mem: the value is missing"),
        (["--mem", "--gpu", "1", "x.log", "ls"], "--mem: the value is missing"),
        (["--num-threads", "two", "x.log", "ls"], "--num-threads two: a whole number is expected"),
        (["--max-jobs-run", "0", "x.log", "ls"], "--max-jobs-run: at least 1"),
        (["--config", "gone.conf", "x.log", "ls"], "--config gone.conf: no such file"),
        (["JOB=3:2", "x.JOB.log", "ls"], "JOB=3:2: job numbers go up, from 1"),
        (["JOB=1:2", "MYJOBS.log", "ls"], "MYJOBS.log: the log of 2 jobs must have JOB in"),
        (["x.log"], "a log file and a command are expected"),
    ],
)  # fmt: skip
def test_option_typos_are_not_swallowed(run, tmp_path, arguments, message):
    done = run(*arguments, status=2)
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} <= {"conf"}


def test_a_failure_shows_the_first_failing_log_and_starts_no_more_jobs(run, launcher, tmp_path):
    script = 'for i in $(seq 40); do echo "line $i of $0"; done; exit $(($0 > 1))'
    # Slurm may start job 3 before slurm.py looks again: it then waits until the others are gone.
    waiting = "squeue -h -r -t PENDING -j $SLURM_ARRAY_JOB_ID | grep -q ."
    script = f"if (($0 > 2)); then while {waiting}; do sleep 0.2; done; exit 0; fi; {script}"
    done = run(
        "--max-jobs-run", "1", "JOB=1:5", "log/x.JOB.log", "bash", "-c", script, "JOB", status=1
    )
    lines = done.stderr.splitlines()
    not_started = 3 - (launcher[0] == "slurm.py" and (tmp_path / "log/x.3.log").exists())
    wanted = f"{launcher[0]}: 1 / 5 failed ({not_started} not started), log is in log/x.*.log"
    assert lines[0] == wanted
    assert lines[1].endswith(".py: the end of log/x.2.log:")
    assert len(lines) == 22
    assert lines[-3] == "  line 40 of 2"
    assert lines[-1].startswith("  # Ended (code 1) at ")
    assert not (tmp_path / "log/x.4.log").exists()


@pytest.mark.parametrize("script", ["kill -9 $$", "(kill -9 $BASHPID); exit $?"])
def test_a_killed_job_is_a_failure_and_memory_is_named(run, tmp_path, script):
    done = run("x.log", "bash", "-c", script, status=1)
    assert "Killed (SIGKILL); out of memory?" in done.stderr
    assert "# Ended (code 137)" in (tmp_path / "x.log").read_text()


def test_a_command_that_is_not_there(run):
    done = run("x.log", "echo a; echo b", status=1)
    assert "echo a; echo b: cannot be started" in done.stderr
    assert "use: bash -c" in done.stderr
    assert "# Ended (code 127)" in done.stderr


@pytest.mark.slow
def test_no_more_jobs_than_asked_for_run_at_once(run, tmp_path):
    script = "mkdir running; sleep 0.1; rmdir running"
    run("--max-jobs-run=1", "J=1:4", "x.J.log", "bash", "-ec", script, status=0)
    both_here = "until ls here.1 here.2; do sleep 0.05; done"
    together = f"touch here.$0; {both_here}"
    run("--max-jobs-run=2", "J=1:2", "x.J.log", "bash", "-c", together, "J", status=0)


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_run_py_leaves_no_job_running(tmp_path, signum):
    """SIGTERM to run.pl: its jobs keep running."""
    script = "sleep 3600 & echo $! >pid.JOB.tmp; mv pid.JOB.tmp pid.JOB; wait"
    command = [*RUN, "--max-jobs-run", "2", "JOB=1:3", "x.JOB.log", "bash", "-c", script]
    launcher = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    files = [tmp_path / "pid.1", tmp_path / "pid.2"]
    wait_for(lambda: all(file.exists() for file in files))
    os.kill(launcher.pid, signum)
    _, errors = launcher.communicate(timeout=LIMIT)
    assert launcher.returncode == 128 + signum
    assert f"stopped by {signal.Signals(signum).name}" in errors
    assert not (tmp_path / "x.3.log").exists()
    assert "# Ended (code 143)" in (tmp_path / "x.1.log").read_text()
    grandchildren = [int(file.read_text()) for file in files]
    wait_for(lambda: all(map(ended, grandchildren)))


HERE = "import os, pathlib, sys, time; pathlib.Path(sys.argv[1], str(os.getpid())).touch(); "
# A job with a child that keeps no file of its parent's, and one in a session of its own.
FAMILY = f"""{HERE}
import subprocess
if len(sys.argv) == 3:
    for session in (False, True):
        subprocess.Popen([sys.executable, *sys.orig_argv[1:-1]], start_new_session=session)
time.sleep(3600)
"""


def test_jobs_outlived_a_launcher_that_was_killed_with_9(tmp_path):
    """1 to 3 jobs in 7 of 12 kills, children of jobs among them."""
    pids = tmp_path / "pids"
    pids.mkdir()
    command = ["JOB=1:2", "--max-jobs-run", "2", "x.JOB.log", sys.executable, "-c", FAMILY]
    launcher = subprocess.Popen([*RUN, *command, str(pids), "parent"], cwd=tmp_path)
    wait_for(lambda: len(list(pids.iterdir())) == 6)
    launcher.kill()
    launcher.wait()
    wait_for(lambda: all(ended(int(path.name)) for path in pids.iterdir()))


def test_two_jobs_wrote_one_log(tmp_path):
    """A job that an earlier call left is named, and nothing is begun while it lives."""
    leave = [*RUN, "x.log", "bash", "-c", "sleep 3600 & echo $! >pid"]
    run_words(leave, 0, cwd=tmp_path)
    pid = int((tmp_path / "pid").read_text())
    wait_for(lambda: Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sleep"))
    try:
        done = run_words(leave, 2, cwd=tmp_path)
    finally:
        os.kill(pid, signal.SIGKILL)
    assert done.stderr == (
        f"run.py: x.log: a job of another run still writes it, pid {pid} (sleep 3600); "
        f"wait, or end it: kill {pid}\n"
    )


def test_a_task_that_began_late_wrote_into_the_next_run(here, monkeypatch):
    """Nobody had cancelled the tasks of a launcher that was killed with -9."""
    own = here / "exp/.partial.1"
    own.mkdir(parents=True)
    monkeypatch.setenv("PSEUDOVOX_PARTIAL", str(own))
    script = slurm_launcher.job_script(launching.parse_request(["x.log", "touch", "made"]))
    monkeypatch.delenv("PSEUDOVOX_PARTIAL")
    own.rmdir()  # another run of the recipe has begun
    done = subprocess.run(["bash", "-s", "1"], input=script, capture_output=True)
    assert done.returncode == 1
    assert b"the recipe that submitted this job has ended" in done.stderr
    assert not (here / "x.log").exists()
    own.mkdir()
    assert subprocess.run(["bash", "-s", "1"], input=script).returncode == 0
    assert (here / "made").exists()


def test_a_device_given_as_log_was_removed(tmp_path):
    """As root, `run.py /dev/null COMMAND` left the machine without /dev/null."""
    ours, theirs = os.openpty()
    device = tmp_path / "device"
    device.symlink_to(os.ttyname(theirs))
    assert subprocess.run([*RUN, str(device), "echo", "said"]).returncode == 0
    assert device.is_symlink()
    assert b"said" in os.read(ours, 4096)
    os.close(ours)
    os.close(theirs)
    (tmp_path / "x.log").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("x.log", "pipe"):
        done = run_words([*RUN, name, "true"], 2, cwd=tmp_path)
        assert f"run.py: {name}: is neither a file nor a device" in done.stderr


def test_help(run):
    done = run("--help", status=0)
    assert "--max-jobs-run N" in done.stdout


def test_a_clock_that_was_set_back_lost_the_end_of_a_job(tmp_path, monkeypatch):
    """It had taken fewer than 0 seconds, so that slurm.py waited for the end of its log in vain."""
    monkeypatch.setattr("utils.jobs.time.time", itertools.count(2e9, -60).__next__)
    assert local_launcher.main([str(tmp_path / "a.log"), "true"]) == 0
    assert launching.read_account(tmp_path / "a.log")


def test_a_long_job_said_nothing_until_it_had_ended(tmp_path, monkeypatch, capfd):
    """Beside the others' ends, what the first running job says of itself."""
    said, told = tmp_path / "said", tmp_path / "told"
    tell = launching.Progress.tell

    def tell_and_let_it_end(self: launching.Progress, *words: Any) -> None:
        begun = said.exists()
        tell(self, *words)
        if begun:
            told.touch()

    monkeypatch.setattr(launching.Progress, "APART", 0.0)
    monkeypatch.setattr(launching.Progress, "tell", tell_and_let_it_end)
    says = f"echo 'anonymise: 3 of 9 utterances, 0:42 left'; echo more; touch {said}"
    job = f"{says}; until [[ -f {told} ]]; do sleep 0.05; done"
    assert local_launcher.main(["JOB=1:1", str(tmp_path / "a.JOB.log"), "bash", "-c", job]) == 0
    said_by_job = r"a\.JOB\.log: 0 of 1 jobs ended in \d+:\d\d; job 1: anonymise: 3 of 9 utterances"
    error = capfd.readouterr().err
    assert re.search(said_by_job, error)
    # Nothing has ended, so nothing is known of the time left.
    assert not re.search(r"0 of 1 jobs ended in \d+:\d\d,", error)


def test_time_left_takes_running_jobs_to_be_half_done(tmp_path, monkeypatch, capsys):
    """Two jobs side by side, one ended after 75 s: it said 1:15 left, and ended at once."""
    request = launching.parse_request(["JOB=1:2", str(tmp_path / "a.JOB.log"), "true"])
    clock = iter((0.0, 75.0, 130.0, 140.0))
    monkeypatch.setattr(launching, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    progress = launching.Progress("run.py", request)
    progress.tell(1, [2])
    progress.tell(1, [2])  # less than a minute later
    progress.tell(2, [])
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition("log: ")[2] for line in lines] == [
        "1 of 2 jobs ended in 1:15, 0:25 left",
        "2 of 2 jobs ended in 2:20, 0:00 left",
    ]
