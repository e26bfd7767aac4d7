"""utils/recipe.sh: stages, failing steps, dry runs, jobs."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

HEAD = f"""#!/usr/bin/env bash
set -euo pipefail
stage=0 stop_stage=9 nj=2 dry_run=false list_stages=false
. {ROOT}/path.sh
. {ROOT}/cmd.sh
. utils/parse_options.sh
. {ROOT}/utils/recipe.sh
make() {{ mkdir -p "$1"; echo "$*" >"$1/result"; }}
"""


@pytest.fixture
def recipe(tmp_path: Path):
    (tmp_path / "utils").symlink_to(ROOT / "utils")

    def run(body: str, *options: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "run.sh").write_text(HEAD + body)
        return subprocess.run(
            ["bash", "./run.sh", *options], cwd=tmp_path, capture_output=True, text=True
        )

    return run


TWO_STAGES = """
if in_stage 1 "first"; then step exp/a -- make exp/a; fi
if in_stage 2 "second"; then step exp/b -- make exp/b exp/a; fi
recipe_end
"""


def test_a_second_run_does_nothing_and_says_so(recipe) -> None:
    assert "done: 2 of 2 steps were made" in recipe(TWO_STAGES).stdout
    again = recipe(TWO_STAGES)
    assert again.returncode == 0
    assert "nothing to do: all 2 steps were up to date" in again.stdout


def test_stages_are_chosen(recipe, tmp_path: Path) -> None:
    done = recipe(TWO_STAGES, "--stage", "2", "--stop-stage=2")
    assert "stage 2" in done.stdout
    assert "stage 1" not in done.stdout
    assert not (tmp_path / "exp/a").exists()


def test_stages_are_listed_and_nothing_is_run(recipe, tmp_path: Path) -> None:
    done = recipe(TWO_STAGES, "--list-stages")
    assert done.stdout.split() == ["1", "first", "2", "second"]
    assert not (tmp_path / "exp").exists()


def test_a_dry_run_runs_nothing_and_sees_what_would_follow(recipe, tmp_path: Path) -> None:
    recipe(TWO_STAGES)
    (tmp_path / "exp/a/result").write_text("changed by hand")
    done = recipe(TWO_STAGES, "--dry-run")
    assert "would make exp/a (exp/a: result not as the step left it)" in done.stdout
    assert "would make exp/b (exp/a is made anew)" in done.stdout
    assert (tmp_path / "exp/a/result").read_text() == "changed by hand"


def test_a_failure_in_the_middle_of_a_function_stops_the_recipe(recipe, tmp_path: Path) -> None:
    """Conventions 2: `f || exit 1` and `if f` switch `set -e` off inside f."""
    body = """
broken() { false; make "$@"; }
if in_stage 3 "third"; then step exp/a -- broken exp/a; fi
recipe_end
"""
    done = recipe(body)
    assert done.returncode != 0
    assert "stage 3 failed at exp/a" in done.stderr
    assert not (tmp_path / "exp/a/.done").exists()


def test_a_failing_job_stops_the_recipe_and_shows_its_log(recipe) -> None:
    body = """
if in_stage 1 "jobs"; then
  step exp/a -- job exp/a bash -c 'echo the reason; exit 7'
  step exp/b -- make exp/b
fi
"""
    done = recipe(body)
    assert done.returncode != 0
    assert "the reason" in done.stdout + done.stderr
    assert "exp/b" not in done.stdout


@pytest.mark.parametrize("whom", ["the recipe", "its shells by name"])
@pytest.mark.parametrize(
    "how",
    ["step exp/a -- job exp/a", "along step exp/a -- job exp/a", "step exp/a -- within exp/a"],
)
@pytest.mark.usefixtures("recipe")
def test_a_recipe_that_is_stopped_stops_its_jobs(tmp_path: Path, how: str, whom: str) -> None:
    """`kill` reaches the recipe's shell only: its launcher, and what that submitted, went on.

    And `pkill -f run.sh` reaches the shells of its background steps, too, before it can itself.
    """
    body = f"""
# As prepare.sh does: a program of its own, which calls the launcher.
within() {{ bash -c '"$@"; true' - $cpu_cmd "$1/x.log" "${{@:2}}"; }}
if in_stage 1 "jobs"; then
  {how} bash -c 'echo $$ >pid.tmp; mv pid.tmp pid; exec sleep 300'
  steps_wait
fi
"""
    (tmp_path / "run.sh").write_text(HEAD + body)
    with subprocess.Popen(["bash", "./run.sh"], cwd=tmp_path) as run:
        pid = tmp_path / "pid"
        deadline = time.monotonic() + 60
        while not pid.exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        if whom != "the recipe":
            children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
            for child in children:
                if b"run.sh" in Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")[1]:
                    os.kill(int(child), signal.SIGTERM)
        run.terminate()
        assert run.wait(60) != 0
    job = Path(f"/proc/{pid.read_text().strip()}/stat")
    while job.exists() and job.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_mistyped_option_is_an_error(recipe) -> None:
    done = recipe(TWO_STAGES, "--stop-satge", "3")
    assert done.returncode != 0
    assert "stop-satge" in done.stderr


def test_cuda_asks_for_a_gpu_and_a_site_for_memory(recipe, tmp_path: Path) -> None:
    body = """
cpu_cmd="echo cpu" gpu_cmd="echo gpu" job_options=([train_encoder]="--mem 8G")
job exp/a steps/train_encoder.py --device cuda x
job exp/a steps/train_encoder.py --device cpu x
job exp/a steps/score_trials.py x
"""
    assert recipe(body).stdout.splitlines() == [
        "gpu --mem 8G exp/a/log/train_encoder.log steps/train_encoder.py --device cuda x",
        "cpu --mem 8G exp/a/log/train_encoder.log steps/train_encoder.py --device cpu x",
        "cpu exp/a/log/score_trials.log steps/score_trials.py x",
    ]
