"""The driver of recipes: stages, failing steps, dry runs, jobs side by side; utils/recipe.sh."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.recipes import ROOT, Done, link_recipe, put_program, run_recipe, run_words
from tests.refusals import refuses
from tests.toy_recipe import make_toy, stages
from tests.waiting import LIMIT, ended, wait_for
from utils.datadir import write_data_dir
from utils.jobs import UNWRITTEN, Job, Jobs
from utils.orphans import refuse_living_job
from utils.recipe import Row, dependencies, fill, read_script
from utils.tables import write_file

MAKE = "bash make.sh {out} {of}"


def row(out: str, table: str = "made", **values: object) -> dict[str, object]:
    """A step of the plan, as rows.json has it."""
    return {"table": table, "out": out, "of": [], **values}


@pytest.fixture
def recipe(tmp_path: Path):
    def run(body: str, *rows: dict[str, object], options: Sequence[str] = (), **how: Any) -> Done:
        (tmp_path / "make.sh").write_text('mkdir -p "$1"; echo "${@:2}" >"$1/result"')
        script = make_toy(tmp_path, body, *rows)
        return run_words(["bash", str(script), *options], how.get("status"), cwd=tmp_path)

    return run


TWO = (row("exp/a"), row("exp/b", "after", of=["exp/a"]))
TWO_STAGES = stages(f'made "{MAKE}"', f'after "{MAKE}"')


def test_a_second_run_does_nothing_and_says_so(recipe, tmp_path: Path) -> None:
    assert "done: 2 of 2 steps were made" in recipe(TWO_STAGES, *TWO).stdout
    (tmp_path / "said").write_text("women: hidden\nmen: found\n")
    again = recipe(TWO_STAGES, *TWO, status=0).stdout.splitlines()
    assert "nothing to do: all 2 steps were up to date" in again[-4]
    assert [line[20:] for line in again[-3:]] == ["women: hidden", "men: found", "results: here"]


def test_a_pipe_had_a_line_for_each_step(recipe, tmp_path: Path) -> None:
    """364 in the default recipe, and no word on how long it takes. exp/steps.log has them."""
    rows = [row(f"exp/{n}") for n in range(20)]
    recipe(TWO_STAGES, *rows[:5])
    done = recipe(TWO_STAGES, *rows)
    (line,) = re.findall("^.*(?:up to date: |making).*$", done.stdout, re.M)
    assert "1 of 20: up to date: exp/0" in line
    assert "in all: 15 of 20 steps" in done.stdout
    steps = (tmp_path / "exp/steps.log").read_text().splitlines()
    assert [line.split(" ", 2)[2] for line in steps] == [
        f"up to date: exp/{n}" if n < 5 else f"making exp/{n} (not made yet)" for n in range(20)
    ]


def test_a_fresh_clone_would_make_things_anew(recipe) -> None:
    """Said the sum of a dry run of whatever is made of what is not there either."""
    told = recipe(TWO_STAGES, *TWO, options=("--dry-run",)).stdout
    assert "anew" not in told and told.count("(1: not made yet)") == 2


def test_a_terminal_has_one_line_of_progress(recipe, tmp_path: Path) -> None:
    recipe(TWO_STAGES, *TWO, options=("--stop-stage", "1"))
    master, terminal = os.openpty()
    command = ["bash", str(tmp_path / "run.sh")]
    subprocess.run(command, cwd=tmp_path, stdout=terminal, check=True, timeout=LIMIT)
    os.close(terminal)
    said = os.read(master, 100_000).decode()
    assert "\r\x1b[K1 of 2\r\x1b[K" in said and "2 of 2, about 1 min left" in said
    assert "making exp/b" not in said and "done: 1 of 2 steps were made" in said


@pytest.mark.parametrize("stages", [("--stage", "2", "--stop-stage", "1"), ("--stage", "3")])
def test_stages_that_there_are_not_were_up_to_date(recipe, stages: Sequence[str]) -> None:
    done = recipe(TWO_STAGES, *TWO, options=stages, status=2)
    assert "run.sh: --stage, --stop-stage: no stage from " in done.stderr


def test_figures_of_an_earlier_stage_that_is_out_of_date_were_reported_in_silence(recipe, tmp_path):
    (tmp_path / "conf").write_text("one")
    rows = (row("exp/a", of=["conf"]), row("exp/c", of=["conf"]), *TWO[1:])
    assert not recipe(TWO_STAGES, *rows).stderr
    late = ("--stage", "2")
    assert not recipe(TWO_STAGES, *rows, options=late).stderr
    (tmp_path / "conf").write_text("two")
    for more in ((), ("--dry-run", "true")):
        told = recipe(TWO_STAGES, *rows, options=(*late, *more))
        assert "run.sh: what stages before 2 made is out of date, and " in told.stderr
        assert "exp/a (conf changed) and 1 more; run it without --stage" in told.stderr
        assert "nothing to do: all 1 steps were up to date" in told.stdout
    assert not recipe(TWO_STAGES, *rows).stderr


def test_another_corpus_after_stage_0_was_not_taken_in_silence(recipe, tmp_path: Path) -> None:
    body = stages(f'prepared "{MAKE}"', f'made "{MAKE}"', first=0)
    mine, other = (row("data/a", "prepared", of=["--corpus", name]) for name in ("mine", "other"))
    (tmp_path / "data").mkdir()
    of = row("exp/b", of=["data/a"])
    recipe(body, mine, of, status=0)
    assert not recipe(body, mine, of, options=("--stage", "1")).stderr
    told = recipe(body, other, of, options=("--stage", "1")).stderr
    assert "data/a (made by: bash make.sh data/a --corpus mine); run it without" in told


def test_a_dry_run_runs_nothing_and_sees_what_would_follow(recipe, tmp_path: Path) -> None:
    """And its commands can be pasted."""
    recipe(TWO_STAGES, *TWO)
    (tmp_path / "exp/a/result").write_text("changed by hand")
    done = recipe(TWO_STAGES, *TWO, options=("--dry-run", "full"))
    assert "would make exp/a (exp/a: result not as the step left it)" in done.stdout
    assert "would make exp/b (exp/a is made anew)" in done.stdout
    summed = recipe(TWO_STAGES, *TWO, options=("--dry-run",)).stdout
    assert "would make" not in summed
    changed, remade = "a file not as the step left it", "what it is made of is made anew"
    for n, why in ((1, changed), (2, remade)):
        assert re.search(rf"^stage  {n}: 1 of 1 steps.*\(1: {why}\)$", summed, re.M)
    assert "dry run: 2 of 2 steps would be made (--dry-run full lists them)" in summed
    assert (tmp_path / "exp/a/result").read_text() == "changed by hand"
    pasted = [line for line in done.stdout.splitlines() if line.startswith("  ")]
    run_words(["bash", "-c", pasted[-1]], 0, cwd=tmp_path)
    assert (tmp_path / "exp/b/result").read_text() == "exp/a\n"


def test_a_dry_run_shows_what_slurm_would_get(recipe, tmp_path, slurm, monkeypatch):
    for name, value in (slurm | {"cmd_backend": "slurm"}).items():
        monkeypatch.setenv(name, value)
    write_program(tmp_path, "")
    write_file(
        tmp_path / "conf/slurm.conf",
        (ROOT / "egs/TEMPLATE/conf/slurm.conf").read_text() + "default partition=main\n",
    )
    told = recipe(JOBS, row("exp/a", "jobs"), options=("--dry-run",), status=0).stdout
    assert "the first that would be submitted (1 job; mem: the site's default):" in told
    assert "sbatch --export=ALL --partition main" in told and "job.py exp/a" in told


def test_a_dry_run_ends_as_an_error_where_slurm_cannot_be_had(recipe, monkeypatch):
    monkeypatch.setenv("cmd_backend", "slurm")
    done = recipe(TWO_STAGES, *TWO, options=("--dry-run",), status=2)
    assert "2 of 2 steps would be made" in done.stdout and "run.sh: conf/slurm.conf" in done.stderr


PROGRAM = "#!/usr/bin/env python3\nimport os, sys, time\nfrom pathlib import Path\n"
JOBS = stages("jobs './job.py {out}'", "made \"bash -c 'mkdir -p {out}' {of}\"")


def write_program(folder: Path, text: str) -> None:
    put_program(folder / "job.py", PROGRAM + text)


def test_a_job_kept_the_lock_of_another_jobs_log(tmp_path: Path) -> None:
    """So a step that failed beside another was said to be written still, and not put back."""
    write_program(tmp_path, "time.sleep(float(sys.argv[1]))")
    words = [str(tmp_path / "job.py")]
    short = Job([*words, "0.5"], log=tmp_path / "short.log", forks=True)
    jobs, long = Jobs(grace=5), Job([*words, "600"], log=tmp_path / "long.log", forks=True)
    with jobs.watching():
        jobs.start(short)
        jobs.start(long)
        while short.code is None:
            jobs.wait(5)
        refuse_living_job(tmp_path / "short.log")
        refuses("still writes it", refuse_living_job, tmp_path / "long.log")


# What jobs do: they go on, alone; and as prepare.sh does, below a shell that calls the launcher.
HELD = "Path('pid.tmp').write_text(str(os.getpid()))\nos.rename('pid.tmp', 'pid')\ntime.sleep(3600)"
WITHIN = stages("jobs \"bash -c '$cpu_cmd {out}/x.log ./job.py; true'\"")


@pytest.mark.slow
@pytest.mark.parametrize("body", [JOBS, WITHIN])
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_recipe_that_is_stopped_stops_its_jobs(tmp_path: Path, body: str, signum: int) -> None:
    """`kill` reached the recipe only: its launcher, and what that submitted, went on."""
    write_program(tmp_path, HELD)
    script = make_toy(tmp_path, body, row("exp/a", table="jobs"))
    with subprocess.Popen(["bash", str(script)], cwd=tmp_path) as run:
        pid = tmp_path / "pid"
        wait_for(pid.exists)
        run.send_signal(signum)
        assert run.wait(LIMIT) == 128 + signum
    wait_for(lambda: ended(int(pid.read_text())))


def test_two_runs_in_one_folder_took_each_others_files(recipe, tmp_path: Path) -> None:
    """One of them ended with `stamps.py: text: No such file`."""
    (tmp_path / "held.sh").write_text("mkdir -p exp/a; until [[ -f go ]]; do sleep 0.05; done")
    body = stages("made 'bash held.sh'")
    script = make_toy(tmp_path, body, row("exp/a"))
    with subprocess.Popen(["bash", str(script), "--nj", "3"], cwd=tmp_path) as first:
        wait_for((tmp_path / "exp/a").exists)
        planless = recipe(body, row("exp/a", table="no such table"))
        second = recipe(body, row("exp/a"))
        look = recipe(body, row("exp/a"), options=("--dry-run",))
        (tmp_path / "go").touch()
        assert first.wait(LIMIT) == 0
    assert planless.returncode == second.returncode == 2
    assert "another run is at work" in planless.stderr, "it was planned before the lock"
    who = f"pid {first.pid} on {os.uname().nodename} since "
    assert f"another run is at work in this folder (exp/.lock): {who}" in second.stderr
    assert second.stderr.endswith("/run.sh --nj 3; wait, or end it\n")
    assert second.stderr.count("\n") == 1
    assert look.returncode == 0
    assert "nothing to do" in recipe(body, row("exp/a")).stdout


def test_a_recipe_killed_with_9_left_its_jobs(recipe, tmp_path: Path) -> None:
    """One that was held overwrote what the next run had made. The next run waits for its end."""
    text = HELD.replace("time.sleep(3600)", "os.kill(os.getpid(), 19)\n    Path('late').touch()")
    text = "if not Path('go').exists():\n    " + text.replace("\nos", "\n    os")
    write_program(tmp_path, f"{text}\nPath(sys.argv[1]).mkdir(exist_ok=True)\n")
    script = make_toy(tmp_path, JOBS, row("exp/a", table="jobs"))
    with subprocess.Popen(["bash", str(script)], cwd=tmp_path) as first:
        wait_for((tmp_path / "pid").exists)
        first.kill()
    (tmp_path / "go").touch()
    recipe(JOBS, row("exp/a", table="jobs"), status=0)
    assert ended(int((tmp_path / "pid").read_text()))
    assert not (tmp_path / "late").exists()


def test_a_recipe_that_a_recipe_calls_shares_its_lock(recipe, tmp_path: Path) -> None:
    make_toy(tmp_path, TWO_STAGES, row("exp/inner"))
    (tmp_path / "run.sh").rename(tmp_path / "other.sh")
    body = stages(f'made "bash ./other.sh --stage 2 --stop-stage 2" "{MAKE}"')
    recipe(body, row("exp/a"), status=0)
    assert not list((tmp_path / "exp").glob(".partial.*"))


def test_cuda_asks_for_a_gpu_and_a_site_for_memory(recipe, tmp_path: Path) -> None:
    body = """
export cpu_cmd="./echo cpu" gpu_cmd="./echo gpu"
job_options=([train_encoder]="--mem 8G")
if in_stage 1 "jobs"; then
  each trained 'steps/train_encoder.py {options} x'
  each made 'steps/score_trials.py x'
fi
"""
    make = 'for word; do [[ $word != exp/* ]] || mkdir -p "${word%%/log/*}"; done'
    put_program(tmp_path / "echo", f'#!/bin/bash\necho "$*"\n{make}\n')
    devices = (["--device", "cuda"], ["--device", "cpu"])
    rows = [row(f"exp/{one[1]}", table="trained", options=one) for one in devices]
    done = recipe(body, *rows, row("exp/a"))
    said = [line for line in done.stdout.splitlines() if line.startswith(("gpu", "cpu"))]
    assert sorted(said) == [
        "cpu --mem 8G exp/cpu/log/train_encoder.log steps/train_encoder.py --device cpu x",
        "cpu exp/a/log/score_trials.log steps/score_trials.py x",
        "gpu --mem 8G exp/cuda/log/train_encoder.log steps/train_encoder.py --device cuda x",
    ]


@pytest.mark.parametrize("nj", ["1", "2", "4"])
def test_conventions_8_a_job_in_the_background_that_failed_was_not_noticed(recipe, tmp_path, nj):
    """And 21: `wait` alone forgets the status. The others end, and only they are stamped."""
    text = "Path(sys.argv[1]).mkdir(exist_ok=True)\ntime.sleep(0.2)\nsys.exit('bad' in sys.argv[1])"
    write_program(tmp_path, text)
    rows = [row(f"exp/{name}", table="jobs") for name in ("good", "bad", "other")]
    done = recipe(JOBS, *rows, row("exp/after"), options=("--nj", nj), status=1)
    assert "stage 1 failed at exp/bad" in done.stderr
    assert "stage 2" not in done.stdout or nj != "1"  # a free one may begin it before `bad` fails
    assert (tmp_path / "exp/good/.done").exists()
    assert not (tmp_path / "exp/bad/.done").exists()


def test_steps_wait_for_what_they_need_and_for_nothing_else(recipe, tmp_path: Path) -> None:
    """An encoder trains while a system protects speech, whose x-vectors wait for both."""
    text = """
out = Path(sys.argv[1])
for needed in sys.argv[2:]:
    assert Path(needed, "done").exists()
out.mkdir(parents=True, exist_ok=True)
(out / "begun").touch()
other = {"encoder": "protected", "protected": "encoder"}.get(out.name)
limit = time.monotonic() + 600
while other and not Path("exp", other, "begun").exists() and time.monotonic() < limit:
    time.sleep(0.02)
(out / "done").touch()
"""
    write_program(tmp_path, text)
    body = stages("jobs './job.py {out} {of}'", "protected './job.py {out} {of}'")
    rows = [row("exp/encoder", "jobs"), row("exp/protected", "protected"),
            row("exp/xvectors", "jobs", of=["exp/encoder", "exp/protected"])]  # fmt: skip
    recipe(body, *rows, status=0)
    times = {r["out"]: (tmp_path / f"{r['out']}/done").stat().st_mtime for r in rows}
    begun = (tmp_path / "exp/protected/begun").stat().st_mtime
    assert begun <= times["exp/encoder"] <= times["exp/xvectors"]


def test_a_step_belongs_to_the_stage_that_makes_what_it_reads(recipe, tmp_path: Path) -> None:
    """An encoder that learns from protected speech is not of the stage of encoders."""
    rows = (*TWO, row("exp/c", of=["exp/b"]))
    first = recipe(TWO_STAGES, *rows, options=("--stop-stage", "1"), status=0)
    assert "done: 1 of 1 steps were made" in first.stdout
    rest = recipe(TWO_STAGES, *rows, options=("--stage", "2"), status=0)
    assert "exp/c (not made yet)" in (tmp_path / "exp/steps.log").read_text()
    assert "done: 2 of 2 steps" in rest.stdout
    (tmp_path / "exp/b/result").write_text("changed by hand")
    foreseen = recipe(TWO_STAGES, *rows, options=("--dry-run", "full")).stdout
    assert "would make exp/c (exp/b is made anew)" in foreseen  # though its table stands before


def test_what_a_step_waits_for_is_what_its_words_name() -> None:
    outs = [("exp/a",), ("data/s", "data/t"), ("exp/c",), ("exp/d",), ("exp/e",)]
    rows = [Row("t", out, (), {}) for out in outs]
    words = [["exp/d"], [], ["p1=exp/a/x", "data/t/trials"], ["hub:exp/c", "exp"], ["exp/e/y"]]
    assert dependencies(rows, words) == [{3}, set(), {0, 1}, {2}, set()]  # wherever it stands


def test_a_set_is_cut_only_where_steps_are_fewer_than_cores(recipe, tmp_path: Path) -> None:
    utts = {f"{speaker}-1": speaker for speaker in "abcd"}
    tables = {"utt2spk": utts, "wav.scp": dict.fromkeys(utts, "x.wav")}
    write_data_dir(tmp_path / "data/s", tables)
    text = """
data, out = map(Path, sys.argv[1:])
out.mkdir(parents=True, exist_ok=True)
(out / "table").write_text((data / "utt2spk").read_text())
"""
    write_program(tmp_path, text)
    body = stages("jobs './job.py {data} {out}'")
    rows = [row(f"exp/{n}", table="jobs", data="data/s", cut="utterances") for n in range(4)]
    recipe(body, rows[0], options=("--nj", "4"), status=0)
    recipe(body, *rows, options=("--nj", "2"), status=0)
    logs = {n: len(list((tmp_path / f"exp/{n}/log").glob("job.*.log"))) for n in range(4)}
    assert logs == {0: 4, 1: 1, 2: 1, 3: 2}  # one core idled while the last was made
    tables = {(tmp_path / f"exp/{n}/table").read_text() for n in range(4)}
    assert tables == {(tmp_path / "data/s/utt2spk").read_text()}


def test_programs_of_the_project_are_forks_with_a_log_and_a_status_of_their_own(recipe, tmp_path):
    """They find what takes long to import imported, and the project's code as it is now."""
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    body = stages("jobs 'tests/toy_job.py {out} JOB'")
    recipe(body, row("exp/a", table="jobs"), options=("--nj", "3"), status=0)
    told = [json.loads((tmp_path / f"exp/a/{n}.json").read_text()) for n in (1, 2, 3)]
    assert [one["JOB"] for one in told] == ["1", "2", "3"]
    assert all(one["numpy"] and not one["driver"] and one["name"] == "__main__" for one in told)
    assert len({one["group"] for one in told}) == 3
    log = (tmp_path / "exp/a/log/toy_job.2.log").read_text()
    assert log.startswith("# tests/toy_job.py exp/a 2\n") and "\nthis is 2\n" in log
    assert "# Ended (code 0)" in log
    body = body.replace("JOB'", "fail'")
    done = recipe(body, row("exp/a", table="jobs"), status=1)
    assert "ValueError: as asked" in done.stderr and "# Ended (code 1)" in done.stderr
    assert (tmp_path / "exp/a/2.json").exists()  # is again as it was


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
        assert {"resemblyzer/cosine", "pyannote/cosine"} <= set(evaluators)


@pytest.mark.slow
def test_a_step_that_failed_deleted_what_was_finished(recipe, tmp_path: Path) -> None:
    """./run.sh without --corpus lost data/train. What the failed step had made is gone on with."""
    (tmp_path / "fill.sh").write_text("""
mkdir -p exp/a exp/b
ls exp/a >>seen
echo "$1" >exp/a/result
[[ -f may ]] || exit 1
echo "$1" >exp/b/result
""")
    body = stages("made 'bash fill.sh {of}'")

    def run(of: str, status: int) -> Done:
        return recipe(body, row("exp/a", also=["exp/b"], of=of), status=status)

    (tmp_path / "may").touch()
    run("old", 0)
    (tmp_path / "may").unlink()
    for _ in range(2):
        assert "exp/a: is again as it was before this step" in run("new", 1).stderr
        assert (tmp_path / "exp/a/result").read_text() == "old\n"
    assert "nothing to do" in run("old", 0).stdout
    assert (tmp_path / "seen").read_text() == "result\n"
    (tmp_path / "may").touch()
    run("new", 0)
    assert (tmp_path / "exp/b/result").read_text() == "new\n"
    left = {".digests", ".lock", "a", "b", "cmdline.log", "plan", "steps.log"}
    assert {path.name for path in (tmp_path / "exp").iterdir()} == left


def test_columns_are_words_or_parts_of_words() -> None:
    values = {"out": "exp/a b", "options": ["--x", "$(y)"], "none": (), "empty": ""}
    words = fill("p {options} {none} --note={empty} {empty} '{out}/z'", values)
    assert words == ["p", "--x", "$(y)", "--note=", "", "exp/a b/z"]
    refuses("there is no column other", fill, "p {other}", values)
    refuses("each t: what are its commands", read_script, ["each\x1ft"])


def test_the_last_output_of_a_fork_was_lost_in_silence(tmp_path: Path) -> None:
    """A full disk as the job's log: Python itself ends with 120."""
    script = tmp_path / "job.py"
    script.write_text("print('the end')")
    fork = f"_become([{str(script)!r}], os.open('/dev/full', os.O_WRONLY), {{}})"
    code = f"import os; from utils.jobs import _become; {fork}"
    environment = {**os.environ, "PYTHONUNBUFFERED": ""}  # so that the last write is at the end
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=False)
    assert done.returncode == UNWRITTEN


@pytest.fixture
def corpus_recipe(tmp_path: Path):
    """run.sh of a corpus whose prepare.sh needs --corpus, as far as stage 0."""
    link_recipe(tmp_path, (ROOT / "egs/synth/conf/recipe.conf").read_text())
    for name in ("encoders", "systems"):
        (tmp_path / "conf" / name).symlink_to(ROOT / "egs/TEMPLATE/conf" / name)
    (tmp_path / "mine").mkdir()
    put_program(tmp_path / "prepare.sh", """#!/usr/bin/env bash
[[ " $* " == *" --corpus "* ]] || { echo "prepare.sh: --corpus is missing" >&2; exit 2; }
mkdir -p data/{train,synth_test_{enrolls,trials_f,trials_m}}
for set in data/*; do echo "$*" >$set/made; done
""")  # fmt: skip

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


@pytest.mark.slow
def test_a_trial_of_a_wrong_label_was_counted(make_data_dir, tmp_path: Path) -> None:
    """Of sets by a prepare.sh of one's own nothing was checked but ids: a figure of 65 trials stood
    there with one that is of the enrolled person and said not to be."""
    conf = "evaluation=e\nsystems=\nevaluators=resemblyzer/cosine\ngenders=f\nnj=1\n"
    recipe = link_recipe(tmp_path / "mine", conf)
    for name, speakers in (("train", "b"), ("e_enrolls", "a"), ("e_trials_f", "a")):
        make_data_dir(tmp_path / "given" / name, {speakers: 2})
    trials = tmp_path / "given/e_trials_f/trials"
    trials.write_text("a a-000 target\na a-001 nontarget\n")
    put_program(recipe / "prepare.sh", "#!/usr/bin/env bash\nmkdir data; cp -r ../given/* data\n")
    said = run_recipe(recipe, "--stop-stage", "1", status=1).stderr
    assert "e_trials_f/trials:2: nontarget, but a-001 is spoken by a and a is enrolled" in said
