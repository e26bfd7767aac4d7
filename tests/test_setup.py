"""utils/setup.sh on a checkout that others share."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.recipes import ROOT, Done, run_words


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A checkout that is set up and that nobody may write."""
    for path in (ROOT / "utils/setup.sh", ROOT / "constraints.txt", *ROOT.glob("requirements*")):
        (copy := tmp_path / path.relative_to(ROOT)).parent.mkdir(exist_ok=True)
        shutil.copy(path, copy)
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/python").symlink_to(sys.executable)
    for path in tmp_path.glob("requirements*"):
        words = f"cat {path.name} constraints.txt | sha256sum >.venv/.done.{path.name}"
        subprocess.run(words, shell=True, check=True, cwd=tmp_path)
    (tmp_path / ".venv/.setup.lock").touch(0o444)
    (tmp_path / ".venv").chmod(0o555)
    return tmp_path


def set_up(folder: Path, status: int) -> Done:
    """utils/setup.sh, without root's right to write everywhere."""
    bare = ["setpriv", "--bounding-set=-dac_override"] if os.geteuid() == 0 else []
    env = {**os.environ, "PYTHON": "not-there"}
    return run_words([*bare, str(folder / "utils/setup.sh")], status, cwd="/", env=env)


def test_a_shared_checkout_that_was_set_up_ended_with_permission_denied(shared):
    """It took a lock, and asked for a Python to install with."""
    done = set_up(shared, 0)
    assert (done.stdout, done.stderr) == ("setup: .venv is up to date\n", "")


def test_a_shared_checkout_that_is_not_set_up_is_named(shared):
    with (shared / "requirements-silero.txt").open("a") as stream:
        stream.write("more\n")
    done = set_up(shared, 0)  # it may lack
    assert (done.stdout, done.stderr) == (
        "setup: no Silero, so --vad silero is not available; all else is\n", ""
    )  # fmt: skip
    with (shared / "requirements.txt").open("a") as stream:
        stream.write("more\n")
    (line,) = set_up(shared, 1).stderr.splitlines()
    assert line.startswith(f"setup: {shared} is not set up, and you may not write there; its owner")


def test_a_venv_of_a_python_that_others_cannot_run_was_up_to_date(shared):
    """Such as one in root's home: programs took the system's Python, which has no packages."""
    (shared / ".venv/bin/python").unlink()
    (shared / ".venv/bin/python").symlink_to("/root/away/python3.11")
    (line,) = set_up(shared, 1).stderr.splitlines()
    assert "has a Python that you may not run, /root/away/python3.11, and you may not" in line
