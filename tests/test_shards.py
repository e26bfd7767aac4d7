"""An archive in shards: by hand, and as the jobs of a launcher; killed, continued, merged."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from steps.standalone.shards import Shard
from tests.recipes import ROOT
from tests.refusals import refuses
from tests.test_protect_folder import KEY, SYSTEM, folder, run, speechlike, write
from tests.waiting import wait_for
from utils.cli import LossError
from utils.tables import write_file

__all__ = ["folder"]  # a fixture


def files(out: Path) -> dict[str, bytes]:
    found = (path for path in out.rglob("[!.]*") if path.is_file())
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in found}


def account(out: Path) -> dict[str, dict[str, object]]:
    told = json.loads(out.with_name(f"{out.name}.account.json").read_text())["files"]
    assert isinstance(told, dict)
    return told


@pytest.fixture
def key(tmp_path: Path) -> Path:
    (tmp_path / "key").write_text(f"{KEY}\n")
    return tmp_path / "key"


@pytest.mark.parametrize("words", [(), ("--per", "folder", "--rename")])
def test_shards_make_what_one_run_makes(folder, tmp_path, key, words):
    """Whoever runs them, one run without --shard ends what they began, and an account tells all."""
    given = ("--key-file", key, *words, folder)
    assert run(*given, tmp_path / "whole") == 0
    out = tmp_path / "out"
    for number in (1, 3):  # the second never ran
        assert run("--shard", f"{number}/3", *given, out) == 0
    assert {*files(out).items()} < {*files(tmp_path / "whole").items()}
    assert run(*given, out) == 0
    assert files(out) == files(tmp_path / "whole")
    assert account(out) == account(tmp_path / "whole")
    left = {path.name for path in [*tmp_path.glob("out*"), *out.glob(".*")]}
    names = {"out.names.tsv"} if "--rename" in words else set()
    assert left == {"out", "out.account.json", "out.account.html", ".protected.jsonl"} | names


def test_each_file_is_of_one_shard():
    groups = {f"{n}.wav": n for n in range(100)}
    parts = [Shard(number, 7).own(groups) for number in range(1, 8)]
    assert sorted(name for part in parts for name in part) == sorted(groups)
    assert all(Shard(3, 7).own({name: 0}) == {name: 0} for name in parts[2])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--shard", "0/3"], "expected K/N, such as 3/100"),
        (["--shard", "4/3"], "expected K/N, such as 3/100"),
        (["--shard", "1/2", "--key", KEY], "give --key-file"),
        (["--launcher", "run.py", "--write-key", "k"], "give --key-file"),
        (["--shard", "1/2", "--rename"], "shards draw names by one key"),
        (["--shard", "1/2", "--key-file", "KEY", "--per", "folder"], "with other settings"),
    ],
)
def test_shards_that_would_not_fit_together(folder, tmp_path, key, words, said):
    assert run("--key-file", key, folder, tmp_path / "out") == 0
    given = [key if word == "KEY" else word for word in words]
    refuses(said, run, *given, folder, tmp_path / "out")


def test_a_failed_file_is_named_by_who_ends_the_shards(folder, tmp_path, key, monkeypatch):
    """And it does not keep other shards from being started."""
    monkeypatch.setenv("PATH", f"{ROOT / 'utils'}:{os.environ['PATH']}")
    (folder / "bad.wav").write_bytes(b"RIFF no audio")
    out = tmp_path / "out"
    given = ("--key-file", key, "--launcher", "run.py", "--nj", 3, folder, out)
    refuses("1 of 5 files are not protected", run, *given, kind=LossError)
    assert "bad.wav: cannot be read as audio" in (tmp_path / "out.failed.txt").read_text()
    assert [file["status"] for file in account(out).values()].count("done") == 4


def test_what_a_killed_run_had_begun_to_write_stayed_in_out(folder, tmp_path, key):
    out = tmp_path / "out"
    assert run("--key-file", key, "--shard", "1/2", folder, out) == 0
    begun = out / "sub/2.wav.tmp.node.12.0.wav"
    write_file(begun, b"RIFF")
    assert run("--key-file", key, "--shard", "2/2", folder, out) == 0
    assert begun.is_file()  # another shard may be writing it
    assert run("--key-file", key, folder, out) == 0
    assert not begun.exists()


def test_each_file_was_blamed_where_no_job_had_begun(folder, tmp_path, key):
    given = ("--key-file", key, "--launcher", "false --config x", folder, tmp_path / "out")
    refuses("false --config x: none of its jobs began", run, *given)


@pytest.mark.slow
def test_an_archive_under_slurm_goes_on_after_a_kill(tmp_path, key, slurm):
    source, out = tmp_path / "in", tmp_path / "out"
    for n in range(24):
        write(source / f"{n % 3}/{n}.wav", speechlike(0.4, n))
    words = ["make", "-s", "protect", f"IN={source}", f"OUT={out}", f"SYSTEM={SYSTEM}",
             f"KEY_FILE={key}", "CMD=slurm", "NJ=6"]  # fmt: skip
    with subprocess.Popen(words, cwd=ROOT, env=slurm, start_new_session=True) as begun:
        wait_for(lambda: len(files(out)) > 2)
        os.killpg(begun.pid, signal.SIGKILL)
    wait_for(lambda: not queued(slurm))
    subprocess.run(words, cwd=ROOT, env=slurm, check=True)
    assert run("--key-file", key, source, tmp_path / "whole") == 0
    assert len(files(out)) == 24 and files(out) == files(tmp_path / "whole")
    assert account(out) == account(tmp_path / "whole")
    rows = [json.loads(row) for row in (out / ".protected.jsonl").read_text().splitlines()]
    assert len([row for row in rows if "settings" in row]) == 1


def queued(environment: dict[str, str]) -> bool:
    done = subprocess.run(["squeue", "-h"], env=environment, capture_output=True, check=True)
    return bool(done.stdout)
