"""The listening test: a page that does not give its key away, and figures of the answers."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from local.listening_test import main as listening_test
from local.report.listening import accuracy, d_prime, score
from tests.browser import chromium, opened
from tests.refusals import accepts, refuses, refuses_words
from tests.world import voice, write_speech
from utils.datadir import write_data_dir

RIGHT = {"same": "same", "different": "different"}


def question(kind: str, system: str, answer: str = "") -> dict[str, str]:
    return {"kind": kind, "system": system, "answer": answer}


def key(n: int = 4) -> dict[str, Any]:
    """n pairs of one person and n of two, for original speech and for b2; one clip of each."""
    asked = [
        question("same", system, answer)
        for system in ("original", "b2") for answer in RIGHT for _ in range(n)
    ]  # fmt: skip
    asked += [question("quality", system) for system in ("original", "b2")]
    return {"test": "t", "questions": asked}


def answers(b2: Sequence[str], marks: Sequence[int] = (5, 3), n: int = 4) -> list[Any]:
    """All pairs of original speech right, those of b2 as given, and two marks."""
    return [answer for answer in RIGHT for _ in range(n)] + [*b2, *marks]


def test_d_prime_by_hand():
    """3 of 4 hits and 1 of 4 false alarms: z(3.5/5) - z(1.5/5) = 2 · 0.5244; guessing has 0."""
    assert d_prime(3, 4, 1, 4) == pytest.approx(2 * 0.524401, abs=1e-5)
    assert d_prime(5, 10, 5, 10) == 0.0
    assert d_prime(1, 4, 3, 4) == -d_prime(3, 4, 1, 4)  # whoever swaps the answers
    assert math.isfinite(d_prime(4, 4, 0, 4)) and math.isnan(d_prime(0, 0, 1, 4))


def test_accuracy_has_the_exact_interval():
    """8 of 10: Clopper and Pearson give 0.4439 to 0.9748. Ten listeners who say the same of these
    pairs say no more of other pairs: pooled, the interval began at 0.71."""
    one = np.array([[1.0] * 8 + [0.0] * 2])
    assert accuracy(one)["accuracy_interval"] == pytest.approx([0.4439, 0.9748], abs=1e-4)
    low, high = accuracy(np.repeat(one, 10, axis=0))["accuracy_interval"]  # type: ignore[misc]
    assert low <= 0.6 and high == 1.0
    assert accuracy(np.full((1, 2), math.nan))["accuracy_interval"] is None


def test_figures_by_system():
    """One listener hears b2 through, one takes all pairs for two people; marks are averaged."""
    heard = {
        "a": answers(["same"] * 4 + ["different"] * 4, (5, 3)),
        "b": answers(["different"] * 8, (4, 2)),
    }
    figures = score(key(), heard)
    b2 = figures["systems"]["b2"]  # type: ignore[index]
    assert b2["accuracy"] == 12 / 16 and (b2["n_same"], b2["n_different"]) == (8, 8)
    assert b2["d_prime"] == pytest.approx(d_prime(4, 8, 0, 8))
    assert b2["mos"] == 2.5 and b2["n_marks"] == 2
    low, high = b2["mos_interval"]
    assert low == 2.0 and high == 3.0
    alone = score(key(), {"a": heard["a"]})["systems"]["b2"]  # type: ignore[index]
    assert alone["mos_interval"] is None  # one listener says nothing of others


def test_who_does_not_hear_the_anchors_is_left_out():
    """Half of the pairs of original speech right is guessing."""
    deaf = ["same"] * 8 + ["same"] * 8 + [3, 3]
    good = answers(["same"] * 8)
    assert score(key(), {"deaf": deaf, "good": good})["left_out"] == ["deaf"]
    refuses("no listener has 75 %", score, key(), {"deaf": deaf})
    refuses("no listener has 75 %", score, key(), {"idle": [None] * 16 + [3, 3]})


@pytest.fixture
def speech(tmp_path: Path) -> Path:
    """Original and protected speech of four speakers with three utterances each."""
    for name, shift in (("o", 1.0), ("p", 1.2)):
        waves = {
            f"s{s}-{i}": voice(1.0, shift * (110 + 30 * s), 500 + 40 * i, seed=3 * s + i)
            for s in range(4) for i in range(3)
        }  # fmt: skip
        genders = {f"s{s}": gender for s, gender in enumerate("ffmm")}
        write_speech(tmp_path / name, waves, spk2gender=genders)
    return tmp_path


def made(speech: Path, seed: int = 0) -> tuple[str, dict[str, Any]]:
    out = speech / "test"
    of = ["--speech", "b2", str(speech / "o"), str(speech / "p"), "--seed", str(seed)]
    listening_test(["make", str(out), *of, "--n-pairs", "6", "--n-quality", "2"])
    return (out / "listening.html").read_text(), json.loads((out / "key.json").read_text())


def test_the_page_hides_the_key(speech):
    """Half of each system's pairs are one person's; the page names no system and no utterance."""
    page, truth = made(speech)
    assert "b2" not in page.split('id="clips"')[0] and "s0-" not in page
    for system in ("original", "b2"):
        pairs = [q for q in truth["questions"] if (q["kind"], q["system"]) == ("same", system)]
        assert sorted(q["answer"] for q in pairs) == ["different"] * 3 + ["same"] * 3
        for q in pairs:
            (_, a), (_, b) = (source.rsplit(" ", 1) for source in q["sources"])
            assert a != b and (a[:2] == b[:2]) == (q["answer"] == "same")
            assert (a[1] in "01") == (b[1] in "01")  # of one gender
    bands = [q for q in truth["questions"] if q["system"].endswith("kHz")]
    assert len(bands) == 2
    clips = list(json.loads(page.split('id="clips">')[1].split("</script>")[0]))
    assert clips == sorted(clips)  # their order told system and answer
    assert made(speech)[0] == page and made(speech, seed=1)[1]["test"] != truth["test"]


def test_bad_input(speech, tmp_path):
    """Each has one line that names the file."""
    _, truth = made(speech)
    right = [q["answer"] or 3 for q in truth["questions"]]
    bad: list[tuple[Any, str]] = [
        ({"test": "other", "answers": right}, "answers test other"),
        ({"test": truth["test"], "answers": right[1:]}, "answers are expected"),
        ({"test": truth["test"], "answers": ["maybe", *right[1:]]}, "answer 1 is 'maybe'"),
        ([], "save the answers"),
    ]
    path, scoring = tmp_path / "a.json", (speech / "test/key.json", tmp_path / "out.json")
    for content, match in bad:
        path.write_text(json.dumps(content))
        refuses_words(match, listening_test, "score", *scoring, "--answers", path)
    path.write_text(json.dumps({"test": truth["test"], "listener": "x", "answers": right}))
    twice = ["--answers", path, "--answers", path]
    refuses_words("of x already", listening_test, "score", *scoring, *twice)
    refuses_words("is not a key", listening_test, "score", path, scoring[1], "--answers", path)
    accepts(listening_test, "score", *scoring, "--answers", path)
    assert json.loads(scoring[1].read_text())["systems"]["b2"]["accuracy"] == 1.0
    few = ["--speech", "b2", speech / "few", speech / "few"]
    write_data_dir(speech / "few", {"wav.scp": {"s0-0": "x.wav"}, "utt2spk": {"s0-0": "s0"}})
    refuses_words("two speakers", listening_test, "make", tmp_path / "t", *few)


@pytest.mark.browser
@pytest.mark.slow
def test_answers_are_saved_by_a_browser(speech):
    """Without a request; the file can be scored."""
    _, truth = made(speech)
    with chromium() as running, opened(running, speech / "test/listening.html") as (page, said):
        page.fill("#listener", "Ada")
        for i, q in enumerate(truth["questions"]):
            page.check(f"input[name=q{i}][value='{q['answer'] or 4}']")
        with page.expect_download() as download:
            page.click("#save")
        saved = speech / "answers.json"
        download.value.save_as(saved)
        assert not said
    accepts(
        listening_test, "score", speech / "test/key.json", speech / "f.json", "--answers", saved
    )
    assert json.loads((speech / "f.json").read_text())["systems"]["b2"]["mos"] == 4.0
