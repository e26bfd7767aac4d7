"""Every program refuses bad input in one line, with exit status 2 and no traceback."""

import json

from tests.cases import cases


def said(done) -> str:
    """The only line of standard error that is no note; the status is that of bad input."""
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-1]


@cases
def test_an_output_that_cannot_be_made(run_program, program, words, tmp_path, make_data_dir):
    data = make_data_dir(tmp_path / "d")
    (tmp_path / "file").touch()
    where = {"DATA": data, "OUT": tmp_path / "file/out", "OUT/wav": tmp_path / "file/out/wav"}
    line = said(run_program(program, *(where.get(str(word), word) for word in words)))
    assert str(tmp_path / "file") in line
    assert "Not a directory" in line or "File exists" in line


@cases
def test_a_negative_number_of_losses_or_resamples(run_program, program, words):
    assert "expected a whole number from 0, not '-" in said(run_program(program, *words))


def test_settings_of_a_protected_set_that_are_no_object(run_program, tmp_path, make_data_dir):
    data = make_data_dir(tmp_path / "d")
    (data / "conf.json").write_text(json.dumps([]))
    options = ("--attacker", "ignorant", "--enrol", data, "--trial", data, "--encoder", "e")
    done = run_program(
        "local/record_attack.py", *options, "--backend", "cosine", tmp_path / "a.json"
    )
    assert said(done).endswith("conf.json: holds no JSON object; protect the set again")
