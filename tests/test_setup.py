"""utils/setup.sh on a checkout that others share."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.recipes import ROOT, Done, link, put_program, run_words


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A checkout that is set up and that nobody may write."""
    for path in (ROOT / "utils/setup.sh", ROOT / "constraints.txt", *ROOT.glob("requirements*")):
        (copy := tmp_path / path.relative_to(ROOT)).parent.mkdir(exist_ok=True)
        shutil.copy(path, copy)
    link(tmp_path / ".venv/bin/python", Path(sys.executable))
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


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A checkout that is not set up, and no Python but those in bin/."""
    (tmp_path / "utils").mkdir()
    for path in (ROOT / "utils/setup.sh", ROOT / "constraints.txt", *ROOT.glob("requirements*")):
        shutil.copy(path, tmp_path / path.relative_to(ROOT))
    for name in ("python3.11", "python3.12", "python3.13", "python3"):
        put(tmp_path, name, "exit 1")
    return tmp_path


def put(folder: Path, name: str, script: str) -> None:
    put_program(folder / "bin" / name, f"#!/bin/sh\n{script}\n")


def begin(folder: Path, **given: str) -> str:
    """What set-up says in a shell that has these programs first."""
    env = {"PATH": f"{folder}/bin:/usr/bin:/bin", **given}
    done = run_words([str(folder / "utils/setup.sh")], 1, cwd="/", env=env)
    return done.stdout + done.stderr


def test_only_one_python_was_taken(bare):
    """Ubuntu's 3.12 and Debian's 3.13 ended in the first command; where there is none, uv brings
    one."""
    assert "neither Python 3.11, 3.12 or 3.13 with its venv module" in begin(bare)
    put(bare, "uv", 'echo "uv $*"; exit 1')
    said = begin(bare)
    assert "setup: no Python 3.11, 3.12 or 3.13 is here; uv brings 3.11\nuv venv --q" in said
    assert "not-there is not Python 3.11, 3.12 or 3.13" in begin(bare, PYTHON="not-there")
    put(bare, "python3.13", 'case $* in *ensurepip*) echo 3.13;; *) echo "made $*"; exit 1;; esac')
    put(bare, "python3.12", "case $* in *ensurepip*) echo 3.14;; *) exit 1;; esac")
    put(bare / ".venv", "python", "exit 1")  # without pip, where somebody stopped it
    assert "made -m venv .venv" in begin(bare)


@pytest.mark.parametrize(
    ("name", "script", "message"),
    [
        ("uname", "echo Darwin", "this machine cannot run it (Darwin, "),
        ("getconf", "exit 1", "another C library"),
        ("getconf", "echo glibc 2.27", "glibc 2.27"),
        ("getconf", "echo glibc 2.31", "no Moonshine, so nothing in models/ works"),
        ("uname", '[ "$1" = -s ] && echo Linux || echo aarch64', "nothing was tested there"),
    ],
)
def test_another_machine_gets_one_clear_line(bare, name, script, message):
    put(bare, name, script)
    said = begin(bare)
    (line,) = [line for line in said.splitlines() if "needs Linux on x86-64" in line]
    assert message in line and ("cannot run" not in line or line == said.strip())
