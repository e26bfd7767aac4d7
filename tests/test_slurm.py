"""utils/slurm.py on a real Slurm: what ends a job, what a signal leaves, limits of arrays."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.recipes import ROOT, Done, link, put_program, run_words
from tests.refusals import refuses, refuses_file
from tests.slurm_cluster import local_slurm
from tests.waiting import LIMIT, ended, wait_for
from utils.slurm import Slurm, next_array, read_slurm_config, why_not

SLURM_PY = [sys.executable, str(ROOT / "utils/slurm.py")]
CONF = ROOT / "egs/TEMPLATE/conf/slurm.conf"

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path, slurm: dict[str, str]) -> Start:
    link(tmp_path / "conf/slurm.conf", CONF)

    def call(*arguments: str, **environment: str) -> subprocess.Popen[str]:
        env = {**slurm, **environment}
        return subprocess.Popen(
            [*SLURM_PY, *arguments], cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True
        )

    return call


def errors_of(run: subprocess.Popen[str], status: int) -> str:
    """What a launcher said, which ends with this status."""
    _, errors = run.communicate(timeout=LIMIT)
    assert run.returncode == status
    return errors


def test_why_no_job_can_be_submitted(here, monkeypatch):
    monkeypatch.setenv("PATH", str(here))
    assert "conf/slurm.conf" in why_not()
    link(here / "conf/slurm.conf", CONF)
    for name, text, why in (
        ("", "", "sbatch: not found; is this a machine of the cluster?"),
        ("sbatch", "", "sinfo: not found; is this a machine of the cluster?"),
        ("sinfo", "echo 1 >&2; echo no controller >&2; exit 1", "no controller"),
        ("sinfo", "exit 0", ""),
    ):
        if name:
            put_program(here / name, f"#!/bin/sh\n{text}\n")
        assert why_not().startswith(why) and bool(why_not()) == bool(why)


def jobs(slurm: dict[str, str], name: str, states: str = "all") -> list[str]:
    words = ["squeue", "-h", "-r", "-t", states, "-n", name, "-o", "%F"]
    return subprocess.run(words, env=slurm, capture_output=True, text=True).stdout.split()


@pytest.mark.slow
def test_what_killed_a_task_together_with_its_launcher_is_named(start, tmp_path):
    """As the kernel does when memory runs out: nothing is left to write the log's end."""
    with start("killed.log", "bash", "-c", "kill -9 $PPID; sleep 1") as run:
        assert "1 / 1 failed (1: FAILED), log is in killed.log" in errors_of(run, 1)
    assert "# Slurm: FAILED" in (tmp_path / "killed.log").read_text()
    assert "# Ended (code 137)" in (tmp_path / "killed.log").read_text()


@pytest.mark.usefixtures("start")
def test_only_failed_tasks_are_submitted_again(slurm, tmp_path):
    """retry.pl ran all jobs of an array again."""
    script = "echo $JOB >>ran.$JOB; [[ $JOB != 2 || $(wc -l <ran.2) -gt 1 ]]"
    words = [*SLURM_PY, "--num-tries", "2", "JOB=1:3", "again.JOB.log", "bash", "-c", script]
    done = run_words(words, 0, cwd=tmp_path, env=slurm, timeout=LIMIT)
    assert "slurm.py: again.JOB.log: once more, JOB=2; tries left: 1" in done.stderr
    assert "# Ended (code 1)" in (tmp_path / "again.2.log.bak").read_text()
    assert [(tmp_path / f"ran.{n}").read_text() for n in (1, 2, 3)] == ["1\n", "2\n2\n", "3\n"]
    assert len(set(jobs(slurm, "again.all"))) == 2  # arrays: 1-3, then 2 alone


@pytest.mark.slow
def test_a_task_over_its_time_is_named(start, slurm, tmp_path):
    """A minute is the least time that Slurm gives, and the test does not wait for its end."""
    with start("--time", "0:05", "late.log", "sleep", "3600") as run:
        wait_for(lambda: (tmp_path / "late.log").exists())
        words = ["scontrol", "update", f"JobId={jobs(slurm, 'late')[0]}", "EndTime=now+1"]
        subprocess.run(words, env=slurm, check=True)
        errors = errors_of(run, 1)
    assert "1 / 1 failed (1: TIMEOUT)" in errors
    assert "TIMEOUT: raise --time" in errors
    assert "DUE TO TIME LIMIT" in errors


# What Slurm's commands answer on a cluster that has what the test's own node has not, such as
# limits of memory.
FAKE_SQUEUE = """\
case ${0##*/} in
  sbatch) echo 77 ;;
  scontrol) echo 'MaxArraySize = 1001' ;;
  squeue) [[ -f cancelled ]] && two=CANCELLED || two=PENDING
    printf '77|%s|%s|%s\\n' 1 STATE None 2 $two JobArrayTaskLimit ;;
  scancel) echo "$*" >>cancelled ;;
esac
"""


@pytest.mark.slow
def test_states_that_a_test_cluster_does_not_have(tmp_path):
    """The task is named, and the one that waits is cancelled."""
    words = [*SLURM_PY, "--config", str(CONF), "JOB=1:2", "x.JOB.log", "sleep", "3600"]
    runs = {}
    for state in ("OUT_OF_MEMORY", "NODE_FAIL", "PREEMPTED"):  # side by side: all wait for logs
        programs = tmp_path / state / "bin"
        for name in ("sbatch", "scontrol", "squeue", "scancel"):
            put_program(programs / name, "#!/bin/bash\n" + FAKE_SQUEUE.replace("STATE", state))
        env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
        runs[state] = subprocess.Popen(
            words, cwd=tmp_path / state, env=env, stderr=subprocess.PIPE, text=True
        )
    for state, run in runs.items():
        errors = errors_of(run, 1)
        assert f"1 / 2 failed (1 not started) (1: {state})" in errors
        log = (tmp_path / state / "x.1.log").read_text()
        assert f"# Slurm: {state}" in log and "--nj" not in log
        cancelled = (tmp_path / state / "cancelled").read_text()
        assert cancelled.splitlines()[0] == "--state=PENDING 77"
        assert ("raise --mem" in errors) == (state == "OUT_OF_MEMORY")
        said = "NODE_FAIL: the node failed, not the job; rerun the same command"
        assert (said in errors) == (state == "NODE_FAIL")


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_launcher_cancels_what_it_submitted(start, slurm, tmp_path, signum):
    name = f"stopped_{int(signum)}"
    script = "sleep 3600 & echo $! >pid.tmp; mv pid.tmp pid.JOB; wait"
    with start("--max-jobs-run", "1", "JOB=1:3", f"{name}.JOB.log", "bash", "-c", script) as run:
        wait_for((tmp_path / "pid.1").exists)
        os.kill(run.pid, signum)
        errors = errors_of(run, 128 + signum)
    assert f"stopped by {signal.Signals(signum).name}; its jobs were cancelled" in errors
    assert jobs(slurm, f"{name}.all", "PENDING,RUNNING") == []
    child = int((tmp_path / "pid.1").read_text())
    wait_for(lambda: ended(child))


@pytest.mark.slow
def test_a_squeue_that_fails_now_and_then_is_no_failure(start, slurm, tmp_path):
    put_program(
        tmp_path / "bin/squeue",
        f"#!/bin/bash\necho >>{tmp_path}/asked\n[[ $(wc -l <{tmp_path}/asked) -gt 3 ]] "
        "|| { echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1; }\n"
        f'PATH={slurm["PATH"]} exec squeue "$@"\n',
    )
    path = f"{tmp_path}/bin:{slurm['PATH']}"
    asked_often = "until [[ $(wc -l <asked) -gt 3 ]]; do sleep 0.1; done"
    with start("JOB=1:2", "x.JOB.log", "bash", "-c", asked_often, PATH=path) as run:
        assert errors_of(run, 0) == ""


def test_a_controller_that_hung_held_the_launcher_for_ever(tmp_path, monkeypatch, capsys):
    """Stand-ins that never answer: looking goes on, submitting says that nobody knows."""
    for name in ("squeue", "sbatch", "scancel"):
        put_program(tmp_path / name, "#!/bin/bash\nexec sleep 60\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("utils.slurm.CALL_WAIT", 0.1)
    monkeypatch.setattr("utils.slurm.TRIES", 1)
    assert Slurm().states(["1"]) is None
    refuses(r"sbatch: no answer in 0.3 s; it may be submitted", Slurm().submit, ["sbatch", "x.sh"])
    put_program(tmp_path / "sbatch", "#!/bin/bash\n")  # a wrapper that tells no number
    refuses("no number of a job is told; it may be submitted", Slurm().submit, ["sbatch", "x.sh"])
    Slurm().cancel(["1"])
    told = "could not cancel: scancel: no answer in 0.1 s; do it: scancel 1"
    assert told in capsys.readouterr().err


def test_a_refusal_has_sbatchs_own_words(start):
    for options, words in (
        (["--gpu", "1"], "Invalid generic resource"),
        (["--partition", "nowhere"], "invalid partition specified: nowhere"),
    ):
        with start(*options, "x.log", "true") as run:
            errors = errors_of(run, 2)
        assert words in errors
        assert errors.count("\n") == 1


@pytest.mark.slow
@pytest.mark.slurm
@pytest.mark.parametrize("limit", [{"max_array_size": 4}, {"max_array_tasks": 3}])
def test_arrays_beyond_the_limit_and_tasks_that_slurm_forgot(tmp_path, limit):
    """Indices to 3, or three tasks; MinJobAge 2 s: squeue forgets, and the logs' feet judge."""
    script = ["bash", "-c", "sleep $((JOB % 3 * 3)); echo this is $JOB"]
    with local_slurm(tmp_path / "slurm", min_job_age=2, **limit) as environment:
        words = [*SLURM_PY, "--config", CONF, "--max-jobs-run", "3", "JOB=1:8", "x.JOB.log"]
        done = run_words([*words, *script], 0, cwd=tmp_path, env=environment, timeout=LIMIT)
    assert not done.stderr
    for number in range(1, 9):
        assert f"this is {number}\n" in (tmp_path / f"x.{number}.log").read_text()


# A cluster that takes so many jobs of a user at a time, and arrays of indices to 6.
FULL = """\
#!/bin/bash
case ${0##*/} in
  sbatch)
    range=1-1 argument=${!#}
    for word; do [[ $word != --array=* ]] || range=${word#--array=}; done
    first=${range%-*} last=${range#*-} queued=$(ls queue | wc -l)
    ((last <= 6)) || { echo "$FAILED Invalid job array specification" >&2; exit 1; }
    ((queued + last - first + 1 <= MOST)) || { printf %s "$REFUSAL" >&2; exit 1; }
    exec 3>&1 >/dev/null 2>&1
    id=$(date +%N)
    for ((i = first; i <= last; i++)); do
      touch "queue/$id|$i|RUNNING|None"
      (SLURM_ARRAY_TASK_ID=$i bash q/x.all.sh "$argument"; rm "queue/$id|$i|RUNNING|None") 3>&- &
    done
    echo "$id" >&3 ;;
  squeue) ls queue; touch asked ;;
  scontrol) exit 1 ;;
esac
"""
FAILED = "sbatch: error: Batch job submission failed:"
REFUSED = (
    f"{FAILED} Job violates accounting/QOS policy (job submit limit, user's size and/or time "
    "limits)\n"
)


def on_a_full_cluster(folder: Path, most: int, refusal: str, jobs: int) -> Done:
    for name in ("sbatch", "squeue", "scontrol", "scancel"):
        put_program(folder / "bin" / name, FULL)
    (folder / "queue").mkdir(exist_ok=True)
    env = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}"}
    env |= {"MOST": str(most), "REFUSAL": refusal, "FAILED": FAILED}
    job = "until [[ -e asked ]]; do sleep 0.1; done; touch done.JOB"  # while it waits for places
    words = [*SLURM_PY, "--config", str(CONF), f"JOB=1:{jobs}", "x.JOB.log", "bash", "-c", job]
    return run_words(words, None, cwd=folder, env=env, timeout=LIMIT)


@pytest.mark.parametrize(
    ("refusal", "limit"),
    [
        (f"sbatch: error: QOSMaxSubmitJobPerUserLimit\n{REFUSED}", "QOSMaxSubmitJobPerUserLimit"),
        (f"sbatch: error: AssocGrpSubmitJobsLimit\n{REFUSED}", "AssocGrpSubmitJobsLimit"),
        (REFUSED, "violates accounting/QOS policy"),
        (
            "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying\n"
            f"{FAILED} Resource temporarily unavailable\n",
            "Slurm temporarily unable to accept job, sleeping and retrying",
        ),
    ],
)
def test_more_jobs_than_a_user_may_submit_were_refused(tmp_path, refusal, limit):
    """Eight jobs, three places: the recipe ended."""
    done = on_a_full_cluster(tmp_path, 3, refusal, 8)
    assert (done.returncode, len([*tmp_path.glob("done.*")])) == (0, 8), done.stderr
    (line,) = done.stderr.splitlines() or [""]
    assert line.startswith("slurm.py: x.JOB.log: 3 of 8 jobs are submitted; the others wait for")
    assert f"({limit})" in line


def test_arrays_were_refused_where_nobody_says_how_large_they_may_be(tmp_path):
    done = on_a_full_cluster(tmp_path, 99, "", 20)
    assert (done.returncode, done.stderr, len([*tmp_path.glob("done.*")])) == (0, "", 20)


@pytest.mark.parametrize(
    ("refusal", "jobs"),
    [(REFUSED, 1), (REFUSED, 3), (f"sbatch: error: QOSMaxCpuPerJobLimit\n{REFUSED}", 3)],
)
def test_a_job_that_asks_for_more_than_it_may_have_is_not_waited_for(tmp_path, refusal, jobs):
    done = on_a_full_cluster(tmp_path, 0, refusal, jobs)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2 and "; ask for less (--mem, --time ...), or rerun it" in line


def test_next_array():
    numbers, arrays = [*range(1, 2502)], []
    while numbers:
        offset, chosen = next_array(numbers, 1000, 1000)
        arrays.append((offset, chosen[0] - offset, chosen[-1] - offset))
        numbers = numbers[len(chosen) :]
    assert arrays == [(0, 1, 1000), (1000, 1, 1000), (2000, 1, 501)]


def test_configuration_is_kaldis_language(tmp_path):
    path = tmp_path / "slurm.conf"
    path.write_text(
        "# ours\ncommand sbatch --export=PATH # so\noption mem=* --mem-per-cpu $0\noption mem=0\n"
        "option gpu=0 -p shared\noption gpu=* -p gpu --gres=gpu:$0\ndefault gpu=0\n"
    )
    config = read_slurm_config(path)
    assert config.submit_words({}) == ["sbatch", "--export=PATH", "-p", "shared"]
    words = config.submit_words({"gpu": "2", "mem": "4G", "max-jobs-run": "3"})
    assert words == ["sbatch", "--export=PATH", "-p", "gpu", "--gres=gpu:2", "--mem-per-cpu", "4G"]
    assert config.submit_words({"mem": "0", "gpu": "0"}) == config.submit_words({})
    said = "--time: no such option in .*known: --config, --gpu"
    refuses(said, config.submit_words, {"time": "1:0:0"})
    for text, message in (
        ("option mem=* $0\n", "no line 'command"),
        ("command sbatch\noption mem\n", ":2: 'option mem': expected"),
        ("command sbatch 'x\n", ":1: .*No closing quotation"),
    ):
        refuses_file(message, read_slurm_config, path, text)


def test_no_partition_is_assumed():
    assert read_slurm_config(CONF).submit_words({}) == ["sbatch", "--export=ALL"]


def test_without_a_configuration_it_says_where_one_is(tmp_path):
    done = run_words([*SLURM_PY, "x.log", "true"], 2, cwd=tmp_path)
    assert "conf/slurm.conf: no such file; link or copy egs/TEMPLATE/conf/slurm.conf" in done.stderr
