"""utils/forecast.py: the time and the disk of a dry run's steps."""

import json
from pathlib import Path

import pytest

from utils import forecast


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, seconds in (("a", 600), ("b", 1200)):
        (tmp_path / "exp" / name).mkdir(parents=True)
        (tmp_path / f"exp/{name}/.done").write_text(json.dumps({"seconds": seconds}))
        (tmp_path / f"exp/{name}/weights").write_bytes(bytes(2_000_000))
    (tmp_path / "data/set").mkdir(parents=True)
    (tmp_path / "data/set/utt2dur").write_text("u 1000\nv 2000\n")
    return tmp_path


def sum_up(*steps: str) -> list[str]:
    """Of steps: stage, output, reason (`-`: up to date), command."""
    found = []
    for stage, out, reason, *command in map(str.split, steps):
        said = reason.strip("-").replace("_", " ")
        found.append(forecast.Foreseen(int(stage), Path(out), said, command))
    return forecast.sum_up(found)


@pytest.mark.usefixtures("work")
def test_time_is_what_it_took_before_or_others_did_or_what_is_stated() -> None:
    lines = sum_up(
        "2 exp/a a_changed job steps/train.py",  # as before: 600 s, 2 MB
        "2 exp/b - job steps/train.py",
        "2 exp/c not_made_yet job steps/train.py",  # as a and b on average: 900 s
        "5 exp/d not_made_yet over data/set steps/anonymise.py",  # 0.1 of 3000 s
        "5 exp/e x_is_made_anew over data/gone steps/anonymise.py",  # 60 s
        "7 exp/f not_made_yet job steps/unheard.py",
    )
    assert lines == [
        "stage  2: 2 of 3 steps, about 25 min of one core, 4 MB (1: a file changed; 1: not made "
        "yet)",
        "stage  5: 2 of 2 steps, about 6 min of one core (1: not made yet; 1: what it is made of "
        "is made anew)",
        "stage  7: 1 of 1 steps (1: not made yet)",
        "in all: 5 of 6 steps, about 31 min of one core, 4 MB; nothing is known of 1",
    ]


@pytest.mark.usefixtures("work")
def test_nothing_to_do_costs_nothing() -> None:
    assert sum_up("2 exp/a - job steps/train.py") == [
        "stage  2: 0 of 1 steps (up to date)",
        "in all: 0 of 1 steps",
    ]
    assert sum_up() == ["in all: 0 of 0 steps"]
