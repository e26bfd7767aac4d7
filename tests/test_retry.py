"""utils/retry.py: failed jobs again, and only these."""

import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FAIL_ONCE = "echo $JOB >>ran; [[ $JOB != [24] ]] || mkdir $JOB.tried || exit 0; [[ $JOB != [24] ]]"

Retry = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def retry(run_process, tmp_path: Path) -> Retry:
    return partial(run_process, "utils/retry.py", cwd=tmp_path)


RUN = str(ROOT / "utils/run.py")


def test_only_failed_jobs_run_again(retry: Retry, tmp_path: Path) -> None:
    done = retry(
        RUN, "--max-jobs-run", "4", "JOB=1:4", "x.JOB.log", "bash", "-c", FAIL_ONCE, status=0
    )
    assert sorted((tmp_path / "ran").read_text().split()) == ["1", "2", "2", "3", "4", "4"]
    assert "retry.py: job 2,4 again, try 2 of 2" in done.stderr
    assert "# Ended (code 1)" in (tmp_path / "x.2.log.bak").read_text()
    assert "# Ended (code 0)" in (tmp_path / "x.2.log").read_text()


def test_it_gives_up_after_as_many_tries(retry: Retry, tmp_path: Path) -> None:
    retry("--num-tries", "3", RUN, "x.log", "bash", "-c", "echo >>ran; exit 3", status=1)
    assert (tmp_path / "ran").read_text() == "\n\n\n"


def test_jobs_that_were_not_started_run_too(retry: Retry, tmp_path: Path) -> None:
    (tmp_path / "x.4.log").write_text("# Ended (code 0) at an earlier call\n")
    script = ("x.JOB.log", "bash", "-c", FAIL_ONCE)
    # 4 failed in its first try, the second of the launcher.
    retry(RUN, "--max-jobs-run=1", "JOB=1:4", *script, status=1)
    retry("--num-tries", "1", RUN, "JOB=3,4", *script, status=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--num-tries", "0", RUN, "x.log", "true"], "--num-tries 0: a whole number from 1"),
        (["--num-tries"], "a whole number from 1"),
        ([], "a launcher is expected"),
        (["nowhere.py", "x.log", "true"], "nowhere.py: cannot be started"),
        ([RUN, "--max-jobs-run", "0", "x.log", "true"], "--max-jobs-run: at least 1"),
    ],
)
def test_usage_errors_are_not_retried(
    retry: Retry, tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = retry(*arguments, status=2)
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
