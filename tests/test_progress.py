"""Progress: items go through unchanged; lines in a log are few; a terminal gets a bar."""

import io
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from utils.cli import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def lines(monkeypatch, capsys):
    """Lines of a log of `n` items that take `seconds` each."""

    def told(n: int, seconds: float, *, sized=True, first: float = 0, **how) -> list[str]:
        now = 100.0
        monkeypatch.setattr("utils.cli.time", SimpleNamespace(monotonic=lambda: now))
        seen = []
        for item in progress("x", **how)(range(n) if sized else iter(range(n))):
            seen.append(item)
            now += seconds if item else first or seconds
        assert seen == list(range(n))
        return capsys.readouterr().err.splitlines()

    return told


def test_lines_say_how_much_is_done_and_left(lines):
    assert lines(30, 1.0) == [
        "x: 10 of 30 utterances, 0:20 left",
        "x: 20 of 30 utterances, 0:10 left",
    ]


def test_a_start_of_20_seconds_foretold_40_hours(lines):
    assert lines(7000, 0.01, first=20.0)[:2] == [
        "x: 1 of 7000 utterances, unknown time left",
        "x: 1001 of 7000 utterances, 1:00 left",
    ]


@pytest.mark.parametrize(
    ("n", "seconds", "expected"),
    [
        (9, 1.0, 0),  # shorter than 10 s: nothing to tell
        (1000, 1.0, 17),  # a sign of life; then 60 s come before 10 %: a line a minute
        (300, 1.0, 10),  # then every 10 %
        (100, 0.5, 4),  # 10 % is 5 s: lines stay 10 s apart
        (3, 1000.0, 2),  # one before each later item
        (0, 1.0, 0),
    ],
)  # fmt: skip
def test_lines_are_few(lines, n, seconds, expected):
    assert len(lines(n, seconds)) == expected


def test_what_has_no_length_is_counted(lines):
    assert lines(125, 1.0, sized=False) == [
        "x: 10 utterances in 0:10", "x: 70 utterances in 1:10",
    ]  # fmt: skip


def test_another_unit_and_what_stands_beside_it(lines):
    told = lines(2, 20.0, unit="s", beside=lambda: "2 of 3 files")
    assert told == ["x: 1 of 2 s, 2 of 3 files, unknown time left"]


def test_a_terminal_gets_a_bar(monkeypatch):
    monkeypatch.setattr("sys.stderr", out := Terminal())
    assert list(progress("x", unit="batches")(range(3))) == [0, 1, 2]
    assert re.search(r"x: 100%.*3/3", out.getvalue())
    assert "\r" in out.getvalue()


def test_tqdm_is_not_loaded_for_a_log():
    code = "import sys; from utils.cli import progress; list(progress('x')('abc'))"
    code += "; sys.exit('tqdm' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
