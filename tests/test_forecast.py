"""local/plan/forecast.py: the time and the disk of a dry run's steps."""

import json
from pathlib import Path

import pytest

from local.plan import forecast
from tests.recipes import TEMPLATE, link
from utils.launching import log_foot
from utils.recipe import Foreseen, Row
from utils.tables import write_file


@pytest.fixture(autouse=True)
def work(here: Path) -> Path:
    link(here / "conf/encoders", TEMPLATE / "conf/encoders")
    write_set("set", 1000)
    return here


def write_set(name: str, seconds: float) -> None:
    write_file(Path("data", name, "utt2dur"), f"u {seconds / 4}\nv {3 * seconds / 4}\n")


def finish(out: str, command: str, *seconds: float, stamped: float = 0) -> None:
    """A step that was made; seconds: of its jobs, by their logs."""
    Path(out, "log").mkdir(parents=True)
    Path(out, "weights").write_bytes(bytes(2_000_000))
    for number, own in enumerate(seconds):
        Path(out, f"log/{number}.log").write_bytes(log_foot(0, own, 1))
    Path(out, ".done").write_text(json.dumps({"command": command.split(), "seconds": stamped}))


def sum_up(*steps: str, nj: int = 2, cut: str = "") -> list[str]:
    """Forecast of steps: stage, output, reason (`-`: up to date), command."""
    found = []
    for stage, out, reason, *command in map(str.split, steps):
        said = reason.strip("-").replace("_", " ")
        row = Row("table", (out,), (), {}, cut, int(stage))
        found.append(Foreseen(row, said, command))
    return forecast.sum_up(found, nj)


def test_time_is_what_it_took_before_or_others_did_or_what_is_stated() -> None:
    finish("exp/a", "steps/train.py one", stamped=600)
    finish("exp/b", "steps/train.py two", 500, 700)
    assert sum_up(
        "2 exp/a a_changed steps/train.py one",  # as before: 600 s, 2 MB
        "2 exp/b - steps/train.py two",
        "2 exp/c not_made_yet steps/train.py three",  # as a and b on average: 900 s
        "5 exp/d not_made_yet steps/anonymise.py conf data/set out",  # 0.1 of 1000 s
        "5 exp/e x_is_made_anew steps/anonymise.py conf data/gone out",  # 60 s
        "7 exp/f not_made_yet steps/unheard.py",
    ) == [
        "stage  2: 2 of 3 steps, about 25 min of CPU time, 4 MB (1: a file changed; 1: not made "
        "yet)",
        "stage  5: 2 of 2 steps, about 3 min of CPU time (1: not made yet; 1: what it is made of "
        "is made anew)",
        "stage  7: 1 of 1 steps (1: not made yet)",
        "in all: 5 of 6 steps, about 28 min of CPU time, 4 MB; about 15 min with 2 jobs at a time, "
        "without 1 of unknown time",
    ]


def test_earlier_steps_of_the_same_model_say_how_long_a_second_of_speech_takes() -> None:
    """And those of others how fast this machine is."""
    write_set("other", 4000)
    finish("exp/a", "steps/extract_xvectors.py hub:m data/set exp/a", 40)  # 20 s are stated
    finish("exp/b", "steps/extract_xvectors.py hub:n data/set exp/b", 20)
    for model, seconds in (("hub:m", 160), ("hub:n", 80), ("hub:o", 120)):
        step = f"3 exp/c not_made_yet steps/extract_xvectors.py {model} data/other exp/c"
        assert f"about {forecast.duration(seconds)} of CPU time" in sum_up(step)[0]


def test_ecapa_full_was_foreseen_to_train_in_ten_minutes_on_a_processor() -> None:
    def of(name: str, more: str = "", device: str = "cpu") -> str:
        words = f"steps/train_encoder.py --device {device} {more} --not-speakers-of data/set"
        return sum_up(f"2 exp/e not_made_yet {words} conf/encoders/{name}.yaml data/none exp/e")[0]

    assert "about 5 min of CPU time" in of("ecapa_mini")
    assert "about 74 s of CPU time" in of("ecapa_mini", "--init-from exp/encoders/ecapa_mini")
    assert "about 17 min of CPU time" in of("xvector_mini")
    assert "about 9 days of CPU time" in of("ecapa_full")
    for unknown in (of("ecapa_wavlm"), of("ecapa_full", device="cuda")):
        assert "CPU time" not in unknown


def test_protected_speech_that_is_not_there_is_as_long_as_the_original() -> None:
    protect = "5 data/set_b not_made_yet steps/anonymise.py conf data/set data/set_b"
    hear = "7 exp/x not_made_yet steps/extract_xvectors.py resemblyzer data/set_b exp/x"
    assert "about 20 s of CPU time" in sum_up(protect, hear)[1]
    write_set("set_c", 2000)
    join = "6 data/both not_made_yet steps/join_draws.py data/both data/set_b data/set_c"
    assert "about 60 s of CPU time" in sum_up(protect, join, hear.replace("set_b", "both"))[2]


def test_wall_time_is_the_longest_chain_or_that_of_all_jobs() -> None:
    finish("exp/a", "steps/train.py", stamped=600)
    first = "2 exp/x not_made_yet steps/train.py"
    then, beside = (
        f"2 exp/{n} not_made_yet steps/train.py {of}" for n, of in (("y", "exp/x"), ("z", ""))
    )
    for steps, minutes in (((first, then), 20), ((first, beside), 10)):
        assert f"about {minutes} min with 2 jobs at a time" in sum_up(*steps)[-1]
    assert "about 5 min with 4 jobs at a time" in sum_up(first, beside, nj=4, cut="utterances")[-1]


def test_nothing_to_do_costs_nothing() -> None:
    assert sum_up("2 exp/a - steps/train.py") == [
        "stage  2: 0 of 1 steps (up to date)",
        "in all: 0 of 1 steps",
    ]
    assert sum_up() == ["in all: 0 of 0 steps"]
