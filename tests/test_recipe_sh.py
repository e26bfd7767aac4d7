"""utils/recipe.sh: stages, failing steps, dry runs, jobs."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.recipes import Done, run_words
from tests.waiting import LIMIT, ended, wait_for

ROOT = Path(__file__).resolve().parents[1]

HEAD = f"""#!/usr/bin/env bash
set -euo pipefail
stage=0 stop_stage=9 nj=2 list_stages=false
dry_run=false # [full]
. {ROOT}/path.sh
. {ROOT}/cmd.sh
. utils/parse_options.sh
. {ROOT}/utils/recipe.sh
make() {{ mkdir -p "$1"; echo "$*" >"$1/result"; }}
"""


@pytest.fixture
def recipe(tmp_path: Path):
    (tmp_path / "utils").symlink_to(ROOT / "utils")

    def run(body: str, *options: str, status: int | None = None) -> Done:
        (tmp_path / "run.sh").write_text(HEAD + body)
        return run_words(["bash", "./run.sh", *options], status, cwd=tmp_path)

    return run


TWO_STAGES = """
if in_stage 1 "first"; then step exp/a -- make exp/a; fi
if in_stage 2 "second"; then step exp/b -- make exp/b exp/a; fi
recipe_end
"""


def test_a_second_run_does_nothing_and_says_so(recipe) -> None:
    assert "done: 2 of 2 steps were made" in recipe(TWO_STAGES).stdout
    again = recipe(TWO_STAGES, status=0)
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
    done = recipe(TWO_STAGES, "--dry-run", "full")
    assert "would make exp/a (exp/a: result not as the step left it)" in done.stdout
    assert "would make exp/b (exp/a is made anew)" in done.stdout
    summed = recipe(TWO_STAGES, "--dry-run").stdout
    assert "would make" not in summed
    assert re.search(
        r"^stage  1: 1 of 1 steps.*\(1: a file not as the step left it\)$", summed, re.M
    )
    assert re.search(
        r"^stage  2: 1 of 1 steps.*\(1: what it is made of is made anew\)$", summed, re.M
    )
    assert "dry run: 2 of 2 steps would be made (--dry-run full lists them)" in summed
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


@pytest.mark.slow
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
  {how} bash -c 'echo $$ >pid.tmp; mv pid.tmp pid; exec sleep 3600'
  steps_wait
fi
"""
    (tmp_path / "run.sh").write_text(HEAD + body)
    with subprocess.Popen(["bash", "./run.sh"], cwd=tmp_path) as run:
        pid = tmp_path / "pid"
        wait_for(pid.exists)
        if whom != "the recipe":
            children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
            for child in children:
                if b"run.sh" in Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")[1]:
                    os.kill(int(child), signal.SIGTERM)
        run.terminate()
        assert run.wait(LIMIT) != 0
    wait_for(lambda: ended(int(pid.read_text())))


HELD = """
held() { mkdir -p "$1"; while [[ ! -f go ]]; do sleep 0.05; done; make "$@"; }
recipe_start "$command_line"
if in_stage 1 "held"; then step exp/a -- held exp/a; fi
recipe_end
"""


def test_two_runs_in_one_folder_took_each_others_files(recipe, tmp_path: Path) -> None:
    """One of them ended with `stamps.py: text: No such file`."""
    (tmp_path / "run.sh").write_text(HEAD + HELD)
    with subprocess.Popen(["bash", "./run.sh", "--nj", "3"], cwd=tmp_path) as first:
        wait_for((tmp_path / "exp/a").exists)
        second = recipe(HELD)
        looks = [recipe(HELD, "--dry-run"), recipe(HELD, "--list-stages")]
        (tmp_path / "go").touch()
        assert first.wait(LIMIT) == 0
    assert second.returncode == 2
    who = f"pid {first.pid} on {os.uname().nodename} since "
    assert f"another run is at work in this folder (exp/.lock): {who}" in second.stderr
    assert second.stderr.endswith(": ./run.sh --nj 3; wait, or end it\n")
    assert second.stderr.count("\n") == 1
    assert [look.returncode for look in looks] == [0, 0]
    assert "nothing to do" in recipe(HELD).stdout


def test_a_recipe_killed_with_9_left_its_jobs(recipe, tmp_path: Path) -> None:
    """One that was held overwrote what the next run had made. The next run waits for its end."""
    jobs = "echo $$ >pid.tmp; mv pid.tmp pid; kill -STOP $$; echo late >late"
    body = f"""
recipe_start "$command_line"
if in_stage 1 "jobs"; then step exp/a -- job exp/a bash -c '[[ -f go ]] || {{ {jobs}; }}'; fi
recipe_end
"""
    (tmp_path / "run.sh").write_text(HEAD + body)
    with subprocess.Popen(["bash", "./run.sh"], cwd=tmp_path) as first:
        wait_for((tmp_path / "pid").exists)
        first.kill()
    (tmp_path / "go").touch()
    recipe(body, status=0)
    assert ended(int((tmp_path / "pid").read_text()))
    assert not (tmp_path / "late").exists()


def test_a_recipe_that_a_recipe_calls_shares_its_lock(recipe, tmp_path: Path) -> None:
    (tmp_path / "other.sh").write_text(HEAD + 'recipe_start "$command_line"; make exp/inner\n')
    body = """
recipe_start "$command_line"
if in_stage 1 "calls"; then step exp/a -- make exp/a; bash ./other.sh; fi
recipe_end
"""
    recipe(body, status=0)
    assert (tmp_path / "exp/inner/result").exists()
    assert not list((tmp_path / "exp").glob(".partial.*"))


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


ALONG = """
each() { step "exp/$1" -- $1 "exp/$1"; }
good() { sleep 0.2; make "$@"; }
bad() { false; make "$@"; }
if in_stage 1 "side by side"; then
  along each good
  along each bad
  along each good
  steps_wait
  log "went on"
fi
recipe_end
"""


@pytest.mark.parametrize("nj", ["1", "2", "4"])
def test_conventions_8_a_job_in_the_background_that_failed_was_not_noticed(
    recipe, tmp_path: Path, nj: str
) -> None:
    """And 21: `wait` alone forgets the status. The others end, and only they are stamped."""
    done = recipe(ALONG, "--nj", nj, status=1)
    assert "exp/bad" in done.stderr
    assert "went on" not in done.stdout
    assert (tmp_path / "exp/good/.done").exists()
    assert not (tmp_path / "exp/bad/.done").exists()


@pytest.mark.parametrize(
    "corpus", sorted(p.parent.parent.name for p in ROOT.glob("egs/*/conf/recipe.conf"))
)
def test_the_default_evaluator_was_weak_and_no_default_attacker_was_aligned(corpus: str) -> None:
    """A reversible pitch shift looked like the best system."""
    texts = [ROOT / "egs/TEMPLATE/run.sh", ROOT / "local/options.sh"]
    texts.append(ROOT / f"egs/{corpus}/conf/recipe.conf")
    found = {}
    for path in texts:
        found.update(re.findall(r'^(attackers|evaluators)="([^"]*)"', path.read_text(), re.M))
    assert found["attackers"].split() == ["ignorant", "aligned", "lazy_informed"]
    evaluators = found["evaluators"].split()
    assert {e.replace("/plda", "/cosine") for e in evaluators} <= set(evaluators)
    if corpus not in ("synth", "vpc2020"):  # synthetic speech; x-vectors of the challenge
        assert "resemblyzer/cosine" in evaluators


@pytest.mark.slow
@pytest.mark.parametrize("how", ["", "along "])
def test_a_step_that_failed_deleted_what_was_finished(recipe, tmp_path: Path, how: str) -> None:
    """./run.sh without --corpus lost data/train. What the failed step had made is gone on with."""
    body = """
each() { step exp/a --also exp/b -- fill "$1"; }
fill() {
  mkdir -p exp/a exp/b
  ls exp/a >>seen
  echo "$1" >exp/a/result
  [[ -f may ]]
  echo "$1" >exp/b/result
}
if in_stage 1 "it"; then HOWeach $1; steps_wait; fi
recipe_end
""".replace("HOW", how)
    (tmp_path / "may").touch()
    recipe(body.replace("$1; steps", "old; steps"), status=0)
    (tmp_path / "may").unlink()
    failing = body.replace("$1; steps", "new; steps")
    for _ in range(2):
        done = recipe(failing, status=1)
        assert "exp/a: is again as it was before this step" in done.stderr
        assert (tmp_path / "exp/a/result").read_text() == "old\n"
    assert "nothing to do" in recipe(body.replace("$1; steps", "old; steps")).stdout
    assert (tmp_path / "seen").read_text() == "result\n"
    (tmp_path / "may").touch()
    recipe(failing, status=0)
    assert (tmp_path / "exp/b/result").read_text() == "new\n"
    assert sorted(path.name for path in (tmp_path / "exp").iterdir()) == [".digests", "a", "b"]


@pytest.fixture
def corpus_recipe(tmp_path: Path):
    """run.sh of a corpus whose prepare.sh needs --corpus, as far as stage 0."""
    for name in ("path.sh", "cmd.sh", "local", "steps", "utils"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "run.sh").symlink_to(ROOT / "egs/TEMPLATE/run.sh")
    (tmp_path / "conf").symlink_to(ROOT / "egs/synth/conf")
    (tmp_path / "mine").mkdir()
    (tmp_path / "prepare.sh").write_text(
        """#!/usr/bin/env bash
[[ " $* " == *" --corpus "* ]] || { echo "prepare.sh: --corpus is missing" >&2; exit 2; }
mkdir -p data/{train,synth_test_{enrolls,trials_f,trials_m}}
for set in data/*; do echo "$*" >$set/made; done
"""
    )
    (tmp_path / "prepare.sh").chmod(0o755)

    def run(*options: str, status: int | None = None) -> Done:
        return run_words(["bash", "./run.sh", "--stop-stage", "0", *options], status, cwd=tmp_path)

    return run


@pytest.mark.slow
def test_options_of_a_finished_stage_0_were_forgotten(corpus_recipe, tmp_path: Path) -> None:
    """A run without --corpus failed, and lost the sets."""
    made = tmp_path / "data/train/made"
    corpus_recipe(status=2)
    corpus_recipe("--corpus", "mine", "--prepare-options=--speakers 8", status=0)
    again = corpus_recipe()
    assert "nothing to do" in again.stdout
    assert "before: --corpus mine --prepare-options='--speakers 8'" in again.stdout
    assert "nothing to do" in corpus_recipe("--corpus=mine", "--genders", "f").stdout
    text = made.read_text()
    corpus_recipe("--corpus=", status=2)
    assert made.read_text() == text
    corpus_recipe("--prepare-options=--speakers 9")
    assert "--corpus mine --speakers 9" in made.read_text()
    (tmp_path / "other").mkdir()
    corpus_recipe("--corpus", "other")
    assert made.read_text().endswith("--corpus other\n")


@pytest.mark.slow
def test_the_other_gender_after_one_was_refused(corpus_recipe) -> None:
    """prepare.sh makes both; `data/..._trials_m: exists and was not made by a recipe`."""
    corpus_recipe("--corpus", "mine", "--genders", "f", status=0)
    assert "nothing to do" in corpus_recipe().stdout
