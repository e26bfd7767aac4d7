"""large.sh: the same under a real Slurm as on this machine, and after its shards were killed."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from tests.corpus_trees import ROOT, make_recipe, prepare
from tests.test_import_xvectors import write_corpus
from tests.test_recipe_slurm import written
from tests.waiting import LIMIT

COMMAND = ("./large.sh", "--nj", "2", "--voices", "two", "--generators", "random")
OPTIONS = ("--sizes", "30", "--populations", "2", "--bootstrap", "20")


def make_folder(folder: Path) -> Path:
    """egs/vpc2020 on 20 made-up speakers, prepared."""
    write_corpus(folder / "corpus")
    recipe = make_recipe(folder / "recipe", "vpc2020")
    (recipe / "large.sh").symlink_to(ROOT / "egs/TEMPLATE/large.sh")
    # Relative links of the corpus do not hold here.
    for link in [p for p in (recipe / "conf").iterdir() if p.is_symlink()]:
        link.unlink()
        link.symlink_to(ROOT / "egs/TEMPLATE/conf" / link.name)
    prepared = prepare(recipe, "--corpus", folder / "corpus")
    assert prepared.returncode == 0, prepared.stderr
    return recipe


def test_sizes_that_are_none_passed_the_dry_run(tmp_path: Path) -> None:
    recipe = make_recipe(tmp_path / "recipe", "vpc2020")
    (recipe / "large.sh").symlink_to(ROOT / "egs/TEMPLATE/large.sh")
    for option, value, message in (
        ("--sizes", "abc", "--sizes: 'abc'; a whole number from 2 on is expected, or <number>:"),
        ("--sizes", "", "--sizes: names none; a whole number from 2 on is expected"),
        ("--sizes", "50 200:", "--sizes: '200:'; a whole number"),
        ("--sizes", "50:1 1", "--sizes: '1'; a whole number"),
        ("--sizes", "50 200 50:2", "--sizes: 50 is named twice"),
        ("--populations", "0", "--populations: '0'; a whole number above 0 is expected"),
        ("--voices", "two two", "--voices: two is named twice"),
    ):
        command = ["./large.sh", "--dry-run", "--generators=", option, value]
        refused = subprocess.run(command, cwd=recipe, capture_output=True, text=True)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert message in refused.stderr and refused.stderr.count("\n") == 1


def start(recipe: Path, *options: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *OPTIONS, *options],
        cwd=recipe,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def end(started: subprocess.Popen[str]) -> str:
    said, _ = started.communicate()
    print(said[-3000:])
    return said


def curve(recipe: Path, system: str) -> bytes:
    return (recipe / f"exp/large/given:tdnn/given:tdnn+cosine/{system}/curve.tsv").read_bytes()


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recipe's folder after a run on this machine that nothing disturbed."""
    recipe = make_folder(tmp_path_factory.mktemp("local"))
    started = start(recipe)
    end(started)
    assert started.returncode == 0
    return recipe


@pytest.mark.slow
def test_the_same_under_slurm(local: Path, tmp_path: Path, slurm: dict[str, str]) -> None:
    recipe = make_folder(tmp_path)
    started = start(recipe, **slurm, cmd_backend="slurm")
    end(started)
    assert started.returncode == 0
    here, there = written(local), written(recipe)
    assert len(here) > 8
    assert there == here
    assert curve(recipe, "random_two") == curve(local, "random_two")
    scripts = {path.name for path in recipe.glob("exp/large/**/q/*.sh")}
    assert {"populations.sh", "count.all.sh", "curve.sh"} <= scripts


def counting(recipe: Path) -> dict[str, int]:
    """Part (as 1) -> id of the process that counts it in a recipe's folder."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().split(b"\0")
            here = (path / "cwd").readlink() == recipe
        except OSError:
            continue  # it has ended
        if here and words[1:3] == [b"local/large.py", b"count"]:
            found[words[words.index(b"--part") + 1].decode()] = int(path.name)
    return found


def hold_at_checkpoint(recipe: Path, started: subprocess.Popen[str], parts: list[Path]) -> bool:
    """Stop each shard as soon as it has a checkpoint; False where one came to its end before."""
    limit = time.monotonic() + LIMIT
    held: set[str] = set()
    while len(held) < len(parts):
        assert time.monotonic() < limit
        if started.poll() is not None:
            return False
        for number, pid in counting(recipe).items():
            if number not in held and parts[int(number) - 1].exists():
                os.kill(pid, signal.SIGSTOP)
                held.add(number)
    return True


@pytest.mark.slow
def test_killed_shards_go_on_and_end_with_the_same_counts(local: Path, tmp_path: Path) -> None:
    recipe = make_folder(tmp_path)
    folder = recipe / "exp/large/given:tdnn/given:tdnn+cosine/real/plans/20.0"
    parts = [folder / f"part.{number}.of.2.npz" for number in (1, 2)]
    for _ in range(5):  # on a busy machine a shard may end before it can be held
        started = start(recipe, "--checkpoint-seconds", "0")
        if hold_at_checkpoint(recipe, started, parts):
            break
        end(started)
        shutil.rmtree(folder.parents[1])
    else:
        pytest.fail("no run could be held at its first checkpoint")
    for pid in counting(recipe).values():
        os.kill(pid, signal.SIGKILL)
    said = end(started)
    assert started.returncode != 0
    assert "2 / 2 failed" in said
    assert "Killed (SIGKILL)" in said
    done = [int(np.load(part)["done"]) for part in parts]
    assert all(0 < number < 200 for number in done)  # of 20 x 20 cells in two parts
    started = start(recipe, "--generators=", "--stop-stage", "1")
    said = end(started)
    assert started.returncode == 0
    assert "real (interrupted before)" in said
    for number in (1, 2):
        log = folder.parents[1] / f"log/count.{number}.log"
        assert f"part {number} of 2, which went on from a checkpoint: " in log.read_text()
    assert curve(recipe, "real") == curve(local, "real")
