"""make protect and make evidence: what a user gives reaches the programs as it was typed."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.recipes import ROOT, Done, put_program, run_words

ODD = (
    "Kunde$AB", "$$", "$(shell touch pwned)", "${shell touch pwned}", "`touch pwned`",
    "$(touch pwned)", "a'b\"c", '"; touch pwned; "', "a b ", "#a", "a#b", "%", "a\\", "a\\#", "-x",
    "--help", "a\nb", "a=b:c,d)", "*", "~", "$", "é", "$(IN)", "$@",
)  # fmt: skip
TELL = f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The Makefile, with programs that tell their arguments."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "path.sh").touch()
    put_program(tmp_path / "utils/setup.sh", "#!/bin/sh\n")
    for name in ("steps/protect_folder", "steps/protect_stream", "local/measure_evidence"):
        put_program(tmp_path / f"{name}.py", TELL)
    return tmp_path


def make(project: Path, *words: str, status: int = 0, **given: str) -> Done:
    return run_words(
        ("make", "-s", "--no-print-directory", *words), status, cwd=project,
        env={**os.environ, **given},
    )  # fmt: skip


@pytest.mark.parametrize("odd", ODD)
def test_make_expanded_a_name_with_a_dollar(project, odd):
    """IN='Kunde$AB' protected the folder KundeB, and $(shell ...) was run."""
    names = ("IN", "OUT", "SYSTEM", "PER", "CHANNELS", "LEVEL", "SPEAKERS", "KEY_FILE", "NJ")
    given = {name: f"{odd}{name}" for name in names} | {"IN": odd, "OUT": odd, "KEY_FILE": odd}
    words = [
        f"--system={odd}SYSTEM", f"--per={odd}PER", f"--speakers={odd}SPEAKERS",
        f"--key-file={odd}", f"--nj={odd}NJ",
    ]  # fmt: skip
    own = [f"--channels={odd}CHANNELS", f"--level={odd}LEVEL"]
    for target, more in (("protect", own), ("evidence", [])):
        typed = [f"{name}={value}" for name, value in given.items()]
        make(project, target, *typed, "OTHER=$(shell touch pwned)", status=2)
        for done in (make(project, target, *typed), make(project, target, **given)):
            assert json.loads(done.stdout) == [*words, *more, "--", odd, odd]
    assert not (project / "pwned").exists()


def test_defaults_of_make(project):
    folder = ["--system=models/place", "--per=file", "--channels=mix", "--level=one"]
    for words, expected in (
        (["protect", "IN=a", "OUT=b"], [*folder, "--", "a", "b"]),
        (["protect", "IN=a", "OUT=b", "RENAME=true"], [*folder, "--rename", "--", "a", "b"]),
        (["protect", "IN=a.wav"], [*folder, "--", "a.wav"]),
        (["protect", "IN=-", "OUT=-"], ["--system=models/bn"]),
        (["evidence", "IN=a", "OUT=b", "RENAME=false"], [*folder[:2], "--", "a", "b"]),
    ):
        assert json.loads(make(project, *words).stdout) == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "IN is missing; write make protect IN=folder OUT=folder"),
        (["evidence", "IN=a"], "OUT is missing; write make evidence IN=folder OUT=folder"),
        # What must not be heard went through.
        (["IN=-", "OUT=-", "REDACT=spans"], "nothing is called REDACT=; known: IN= OUT="),
        (["in=a", "out=b"], "nothing is called in= out=; known: IN= OUT="),
        (["IN=a", "OUT=b", "SYSTEMS=s"], "nothing is called SYSTEMS=; known: IN= OUT="),
        *(
            (["IN=a", "OUT=b", f"RENAME={word}"], "RENAME is true or false")
            for word in ("yes", "1", "True", "true false", "%", "$(IN)")
        ),
    ],
)
def test_what_make_cannot_use_was_not_named_in_one_line(project, words, message):
    """`bash: line 1: IN: make ...`; in= and SYSTEMS= counted for nothing, RENAME=yes kept names."""
    words = words if "evidence" in words else ["protect", *words]
    (line,) = make(project, *words, status=2).stderr.splitlines()
    assert f"*** make {words[0]}: {message}" in line
