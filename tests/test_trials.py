"""Trial lists and score files: what is read, what is refused, and how the two are joined."""

from pathlib import Path

import numpy as np
import pytest

from tests.refusals import refuses
from utils.trials import (
    Scores,
    Trials,
    _pieces,
    join_scores,
    read_scores,
    read_trials,
    write_scores,
)


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_pairs_are_joined_by_both_ids_not_by_their_concatenation(tmp_path):
    """Conventions 1.9: a dictionary keyed on the two ids run together confuses ab+c with a+bc."""
    trials = read_trials(write(tmp_path / "trials", "ab c target\na bc nontarget\n"))
    scores = read_scores(write(tmp_path / "scores", "a bc 1\nab c 2\n"))
    assert join_scores(trials, scores).tolist() == [2.0, 1.0]


def test_scores_that_are_no_trials_are_left_out_with_a_count(tmp_path, caplog):
    trials = read_trials(write(tmp_path / "trials", "a b target\n"))
    scores = read_scores(write(tmp_path / "scores", "a b 1\nb a 2\nx y 3\n"))
    assert join_scores(trials, scores).tolist() == [1.0]
    assert "2 of 3 scores are for pairs that are not in" in caplog.text


def test_a_trial_without_a_score_is_named_with_its_line(tmp_path):
    """Conventions 2, no. 10: missing keys only warned, and every later line was mislabelled."""
    path = write(tmp_path / "trials", "a b target\na c nontarget\na d nontarget\n")
    trials, scores = read_trials(path), read_scores(write(tmp_path / "scores", "a b 1\nb c 2\n"))
    message = rf"{path}:2: no score for a c .*nor for 1 more"
    refuses(message, join_scores, trials, scores, trials_path=path)


@pytest.mark.parametrize(
    ("content", "line", "fault"),
    [
        ("", 1, "empty"),
        (" \n\n", 1, "empty"),
        ("a b target\na c\n", 2, "2 fields where 3"),
        ("a b target\na c\nnontarget d e nontarget\n", 2, "2 fields where 3"),
        ("a b target extra\n", 1, "4 fields where 3"),
        ("a b target\n\nc d target\n", 2, "0 fields where 3"),
        (b"\xef\xbb\xbfa b target\n", 1, "byte-order mark"),
        ("a b Target\n", 1, "label Target is neither target nor nontarget"),
        ("a b target\na c 1\n", 2, "label 1 is neither"),
        ("a b target\nc d target\na b nontarget\n", 3, r"a b is listed twice \(first on line 1\)"),
        ("a b target\r\na c nontarget\r\n", 1, "Windows line end"),
        (b"a b target\na\0 c target\n", 2, "holds a NUL byte"),
        (b"a b target\n\xff\xfe c target\n", 2, "not UTF-8"),
    ],
)
def test_faulty_trials(tmp_path, content, line, fault):
    path = write(tmp_path / "trials", content)
    refuses(rf"^{path}:{line}: .*{fault}", read_trials, path)


@pytest.mark.parametrize("score", ["nan", "inf", "-inf", "1_000", "abc", "0x10", "1,5", "1e999"])
def test_scores_that_are_not_finite_numbers(tmp_path, score):
    path = write(tmp_path / "scores", f"a_1 b_1 1\na_1 c_1 {score}\n")
    refuses(rf"^{path}:2: score {score} is not a finite number", read_scores, path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("scores", r":4: a b is scored twice \(first on line 1\)"),
        ("none", ": cannot be read: .*No "),
    ],
)  # fmt: skip
def test_faulty_score_files(tmp_path, name, message):
    write(tmp_path / "scores", "a b 1\nb a 1\nc d 3\na b 1\n")
    refuses(f"^{tmp_path / name}{message}", read_scores, tmp_path / name)


@pytest.mark.parametrize("size", [1, 30, 1000])
def test_lists_that_are_read_in_pieces_keep_their_rows_and_lines(tmp_path, monkeypatch, size):
    monkeypatch.setattr("utils.trials._PIECE", size)
    rows = [(f"a{i % 3}", f"b{i}", 0.5 * i) for i in range(9)]
    lines = [f"{a} {b} {value}\n" for a, b, value in rows]
    lines[6] = lines[6].replace(" ", "  ")
    path = write(tmp_path / "scores", "".join(lines))
    found = read_scores(path)
    assert [*zip(found.enrol, found.trial, found.score.tolist(), strict=True)] == rows
    write(path, "".join([*lines, "a b\n"]))
    refuses(f"^{path}:10: 2 fields where 3", read_scores, path)
    write(path, "".join([*lines[:5], "a0 b9 1_0\n", *lines[5:]]))
    refuses(f"^{path}:6: score 1_0 is not", read_scores, path)


def test_a_list_with_runs_of_blanks_was_held_as_a_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("utils.trials._PIECE", 2)
    path = write(tmp_path / "scores", "a  b 1\nc d 2\n")
    assert [line for line, _ in _pieces(path)] == [1, 2]


def test_written_scores_are_sorted_and_read_back_exactly(tmp_path):
    rng = np.random.default_rng(1)
    values = np.r_[rng.normal(size=50) * 10.0 ** rng.integers(-300, 300, 50), 0.1, -0.0]
    enrol = [f"Zoë{i % 7}" if i % 2 else f"a{i % 7}" for i in range(len(values))]
    trial = [f"u{i}" for i in range(len(values))]
    write_scores(tmp_path / "scores", Scores(enrol, trial, values))
    lines = (tmp_path / "scores").read_bytes().splitlines()
    assert lines == sorted(lines)
    back = read_scores(tmp_path / "scores")
    rows = {*zip(enrol, trial, values, strict=True)}
    assert {*zip(back.enrol, back.trial, back.score, strict=True)} == rows


@pytest.mark.parametrize(
    ("enrol", "trial", "score", "fault"),
    [
        (["a"], ["b"], [np.nan], "not a finite number"),
        (["a", "a"], ["b", "b"], [1.0, 2.0], "scored twice"),
        (["a b"], ["c"], [1.0], "cannot be an id"),
        ([""], ["c"], [1.0], "cannot be an id"),
    ],
)
def test_nothing_is_written_that_could_not_be_read(tmp_path, enrol, trial, score, fault):
    refuses(fault, write_scores, tmp_path / "scores", Scores(enrol, trial, np.array(score)))
    assert not list(tmp_path.iterdir())


def distances(people: int, utts: int, seed: int, *, gap=0.0, spread=0.0) -> tuple[Trials, Scores]:
    """Scores of each person's model with all utterances, and what belongs to an utterance alone in
    them; target scores are `gap` lower."""
    rng, names = np.random.default_rng(seed), [f"m{i}" for i in range(people)]
    model, utt = (x.ravel() for x in np.meshgrid(range(people), range(people * utts)))
    target = model == utt // utts
    alone = rng.normal(size=len(utt))
    score = alone - gap * target + rng.normal(0, spread, (people, people))[model, utt // utts]
    pairs = [names[i] for i in model.tolist()], [f"u{i}" for i in utt.tolist()]
    return Trials(*pairs, target), Scores(*pairs, score)


def test_scores_that_are_distances_read_as_perfect_privacy(caplog):
    join_scores(*distances(8, 10, 0, gap=1.0), scores_path="mine")
    assert "mine: the EER lies above 50 %, beyond chance" in caplog.text
    assert "are lower scores more alike" in caplog.text


def test_chance_alone_is_not_taken_for_distances(caplog):
    """Nor are few trials, or few people whose many trials go together (but once in a hundred)."""
    for seed in range(100):
        join_scores(*distances(8, 10, seed, spread=0.5))
    assert len(caplog.records) <= 1
    caplog.clear()
    for seed in range(20):
        join_scores(*distances(8, 10, seed, gap=-0.3))
    a_few = Trials(["a", "b", "a"], ["x", "y", "y"], np.array([True, True, False]))
    join_scores(a_few, Scores(a_few.enrol, a_few.trial, np.array([0.0, 0.1, 1.0])))
    assert not caplog.records
