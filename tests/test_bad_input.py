"""Every program refuses bad input in one line, with exit status 2 and no traceback."""

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.recipes import ROOT


def said(done) -> str:
    """The only line of standard error that is no note; the status is that of bad input."""
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("utils/copy_data_dir.py", ["DATA", "OUT"]),
        ("utils/subset_data_dir.py", ["--n", 1, "DATA", "OUT"]),
        ("steps/anonymise.py", ["egs/TEMPLATE/conf/systems/b2.yaml", "DATA", "OUT", "OUT/wav"]),
        ("steps/make_synthetic_corpus.py", ["--speakers", 2, "OUT", "DATA"]),
    ],
)  # fmt: skip
def test_an_output_that_cannot_be_made(run_program, program, words, tmp_path, make_data_dir):
    data = make_data_dir(tmp_path / "d")
    (tmp_path / "file").touch()
    where = {"DATA": data, "OUT": tmp_path / "file/out", "OUT/wav": tmp_path / "file/out/wav"}
    line = said(run_program(program, *(where.get(str(word), word) for word in words)))
    assert str(tmp_path / "file") in line
    assert "Not a directory" in line or "File exists" in line


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("steps/anonymise.py", ["--allow-loss", -1, "c", "d", "o", "w"]),
        ("utils/fix_data_dir.py", ["--allow-drop", -1, "d"]),
        ("local/compute_utility.py", ["words", "--bootstrap", -5, "d", "t", "o"]),
    ],
)  # fmt: skip
def test_a_negative_number_of_losses_or_resamples(run_program, program, words):
    assert "expected a whole number from 0, not '-" in said(run_program(program, *words))


@pytest.mark.parametrize("broken", ["stdout", "stderr"])
def test_a_program_whose_output_nobody_reads_ended_as_if_done(broken, tmp_path, make_data_dir):
    data = make_data_dir(tmp_path / "d")
    (data / "utt2dur").write_text("unknown 1\n")
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as stream:
        words = [sys.executable, ROOT / "utils/validate_data_dir.py", data]
        streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, broken: stream}
        assert subprocess.run(words, **streams, timeout=60).returncode == 128 + signal.SIGPIPE


def test_settings_of_a_protected_set_that_are_no_object(run_program, tmp_path, make_data_dir):
    data = make_data_dir(tmp_path / "d")
    (data / "conf.json").write_text(json.dumps([]))
    options = ("--attacker", "ignorant", "--enrol", data, "--trial", data, "--encoder", "e")
    done = run_program(
        "local/record_attack.py", *options, "--backend", "cosine", tmp_path / "a.json"
    )
    assert said(done).endswith("conf.json: holds no JSON object; protect the set again")
