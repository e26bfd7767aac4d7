"""The account of a protected folder: what it says of keys, files and runs, and its page."""

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from steps.standalone.job import LIMITS, UNMEASURED, fingerprint
from tests.refusals import refuses
from tests.test_protect_folder import KEY, SYSTEM, folder, run, run_until, speechlike, write
from utils.cli import LossError

__all__ = ["folder"]  # a fixture


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def account(tmp_path: Path) -> dict[str, Any]:
    found = json.loads((tmp_path / "out.account.json").read_text())
    assert isinstance(found, dict)
    return found


def test_the_account_says_what_became_of_each_file_and_never_the_key(folder, tmp_path):
    (folder / "broken-1.wav").write_bytes(b"RIFF no audio")
    words = ("--key", KEY, folder, tmp_path / "out")
    refuses("1 of 5 files are not protected", run, *words, kind=LossError)
    told, page = account(tmp_path), (tmp_path / "out.account.html").read_text()
    files = told["files"]
    assert {name: file["status"] for name, file in files.items()} == {
        "anna-1.wav": "done", "anna-2.flac": "done", "broken-1.wav": "failed",
        "sub dir/bert-1.ogg": "done", "sub dir/bert-2.wav": "done",
    }  # fmt: skip
    assert files["anna-1.wav"] == {
        "status": "done", "warnings": [], "seconds": 1.5,
        "source_sha256": digest(folder / "anna-1.wav"),
        "sha256": digest(tmp_path / "out/anna-1.wav"),
    }  # fmt: skip
    assert told["left_out"] == ["notes.txt"] and "left out: notes.txt" in page
    assert "Approved by" in page
    assert files["sub dir/bert-2.wav"]["warnings"] == ["it is silent: is it the right file?"]
    assert "cannot be read" in files["broken-1.wav"]["reason"]
    (once,) = told["runs"]
    assert (once["protected"], once["failed"], once["key"]) == (4, 1, "given")
    assert once["began"] <= once["ended"]
    options = f"--system={SYSTEM} --per=file --key=... --channels=mix --level=one --nj=1"
    called = f"steps/protect_folder.py {options} -- {folder} {tmp_path / 'out'}"
    assert once["command"] == called and called in page
    assert once["key_digest"] == fingerprint(KEY, once["key_digest"].partition(":")[0])
    assert told["per"] == "file"
    assert re.fullmatch("[0-9a-f]{64}", told["system"]["digest"])
    assert KEY not in page + json.dumps(told)
    assert "4 of 5 recordings are protected; 1 could not be protected" in page
    assert all(sentence in page for sentence in told["limits"])
    assert not {p.name for p in (tmp_path / "out").rglob("*account*")}
    assert not re.search(r"https?:|src=|<script", page)


@pytest.mark.parametrize("words", [(), ("--rename",)])
def test_the_account_could_not_show_that_a_folder_is_still_the_same(folder, tmp_path, words):
    """Nor whose content it was made of; digests of sources are never in OUT, and with drawn names
    nothing in the account tells which file became which."""
    out = tmp_path / "out"
    for _ in ("made", "found done"):
        assert run("--key", KEY, *words, folder, out) == 0
        told = account(tmp_path)
        sources = {name: file["source_sha256"] for name, file in told["files"].items()}
        assert sources == {name: digest(folder / name) for name in sources} and len(sources) == 4
        made = [digest(path) for path in out.rglob("[!.]*") if path.is_file()]
        listed = [file["sha256"] for file in told["files"].values() if "sha256" in file]
        assert sorted(listed) == ([] if words else sorted(made))
        assert told.get("sha256") == (sorted(made) if words else None)
        journal = (out / ".protected.jsonl").read_text()
        assert not any(known in journal for known in sources.values())


def test_an_account_is_merged_with_that_of_the_runs_before(folder, tmp_path):
    assert run("--key", KEY, folder, tmp_path / "out") == 0
    (folder / "sub dir/bert-2.wav").unlink()
    write(folder / "carl-1.wav", speechlike(1, 3))
    assert run("--key", KEY, folder, tmp_path / "out") == 0
    told = account(tmp_path)
    assert [one["protected"] for one in told["runs"]] == [4, 1]
    assert told["files"]["anna-1.wav"]["seconds"] == 1.5
    assert {"sub dir/bert-2.wav", "carl-1.wav"} <= told["files"].keys()


def test_an_account_from_before_names_were_drawn_told_which_is_which(folder, tmp_path):
    """A key gives the same results again, whose digests stood beside the names."""
    assert run("--key", KEY, folder, tmp_path / "out") == 0
    shutil.rmtree(tmp_path / "out")
    assert run("--key", KEY, "--rename", folder, tmp_path / "out") == 0
    assert not any("sha256" in file for file in account(tmp_path)["files"].values())


def test_a_file_that_fails_now_was_still_in_the_output(folder, tmp_path):
    """Made from another recording under the same name; and it failed for ever."""
    words, out = ("--key", KEY, folder, tmp_path / "out"), tmp_path / "out"
    assert run(*words) == 0
    (folder / "anna-1.wav").write_bytes(b"RIFF no audio")
    refuses("1 of 4 files are not protected", run, *words, kind=LossError)
    assert not (out / "anna-1.wav").exists()
    assert account(tmp_path)["files"]["anna-1.wav"]["status"] == "failed"
    (folder / "anna-1.wav").unlink()
    assert run(*words) == 0
    assert "anna-1.wav" not in account(tmp_path)["files"]


def test_a_failed_file_kept_remarks_among_those_that_are_protected(folder, tmp_path):
    words = ("--key", KEY, folder, tmp_path / "out")
    assert run(*words) == 0
    (folder / "sub dir/bert-2.wav").write_bytes(b"RIFF no audio")
    refuses("1 of 4 files are not protected", run, *words, kind=LossError)
    assert account(tmp_path)["files"]["sub dir/bert-2.wav"].keys() == {"status", "reason"}
    assert "Remarks on" not in (tmp_path / "out.account.html").read_text()


def test_a_killed_run_left_no_account(folder, tmp_path, monkeypatch):
    """Nor lengths and remarks of what it had made; nor had one that spells IN otherwise."""
    write(folder / "anna-1.wav", np.zeros(24000))
    run_until(monkeypatch, "bert-1.ogg", "--key", KEY, folder, tmp_path / "out")
    assert "The last run has not ended" in (tmp_path / "out.account.html").read_text()
    monkeypatch.chdir(tmp_path)
    assert run("--key", KEY, "in", "out") == 0
    told = account(tmp_path)
    assert [one.get("protected") for one in told["runs"]] == [None, 1]
    assert told["runs"][0]["ended"] is None and told["runs"][1]["ended"]
    assert all("seconds" in file for file in told["files"].values())
    assert told["files"]["anna-1.wav"]["warnings"] == ["it is silent: is it the right file?"]
    page = (tmp_path / "out.account.html").read_text()
    assert "not counted" in page and "The last run has not ended" not in page


@pytest.mark.parametrize("found", ["{", '{"source": "elsewhere"}'])
def test_an_account_of_something_else_begins_anew(folder, tmp_path, found):
    (tmp_path / "out.account.json").write_text(found)
    assert run("--key", KEY, folder, tmp_path / "out") == 0
    assert len(account(tmp_path)["runs"]) == 1


def test_the_account_of_any_system_said_that_it_hides_the_voice():
    """So did that of B2, behind which attackers find nearly everybody."""
    ours = [Path(__file__).parents[1] / "models" / name / LIMITS for name in ("bn", "bn2")]
    assert "This hides" not in "".join(path.read_text() for path in (UNMEASURED, *ours))
