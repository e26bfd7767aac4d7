"""Attackers who hear something else than the voice: counts, weights, and their steps of a plan."""

from pathlib import Path

import numpy as np
import pytest

from steps import extract_channel, score_trials, train_tfidf
from steps.channels.counts import SIZE, count_parts, parts_of_phones, parts_of_text
from steps.speaker.backends import TfidfBackend, learn_idf
from tests.refusals import refuses
from utils.archives import read_vectors
from utils.tables import write_map


def test_counts_by_hand() -> None:
    """ "Go, go!" and "go go": two words, GO_ once, O_G, _GO, and the two runs of four."""
    twice, none = count_parts([parts_of_text("Go, go!"), parts_of_text("...")])
    assert twice.shape == (SIZE,) and not none.any()
    assert sorted(twice[twice > 0]) == [1, 1, 1, 1, 1, 2]  # <GO> is there twice
    assert (twice == count_parts([parts_of_text("go go")])[0]).all()
    assert parts_of_phones([]) == []


def test_places_of_counts_are_the_same_in_every_process() -> None:
    """Python's own hash of a text differs from one process to the next."""
    assert np.flatnonzero(count_parts([["<GO>", "GO O"]])[0]).tolist() == [1167, 7970]


def test_tfidf_by_hand() -> None:
    """Two utterances have a, one of them b and c: ln(3/3) + 1 and ln(3/2) + 1."""
    idf = learn_idf(np.array([[1, 0, 0], [5, 1, 1]], np.float32))
    rare = np.log(1.5) + 1
    assert idf == pytest.approx([1, rare, rare])
    backend = TfidfBackend(idf)
    trial = np.array([[0.0, 1, 0], [0, 0, 0], [2, 0, 0]])
    # Mean counts (1, 2, 0) of 2 utterances are 2 and 4: weights 1 + ln 2, and (1 + ln 4) rare.
    a, b = 1 + np.log(2), (1 + np.log(4)) * rare
    left = backend.left(np.array([[1.0, 2, 0]]), np.array([2.0]))
    expected = [b / np.hypot(a, b), 0, a / np.hypot(a, b)]
    assert (left @ backend.right(trial).T)[0] == pytest.approx(expected)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two people, of whom one says nothing in one utterance."""
    text = {"a-1": "the cat", "a-2": "THE CAT!", "b-1": "a dog", "b-2": ""}
    write_map(tmp_path / "text", text, blanks=True)
    (tmp_path / "d").mkdir()
    write_map(tmp_path / "d/utt2spk", {utt: utt[0] for utt in text})
    write_map(tmp_path / "d/spk2utt", {"a": "a-1 a-2", "b": "b-1 b-2"})
    write_map(tmp_path / "trials", {"a-1 a-2": "target", "a-1 b-2": "nontarget"}, blanks=True)
    return tmp_path


def test_words_from_text_to_scores(folder: Path) -> None:
    """Who says the same has 1; an utterance without words has nothing in common with anybody."""
    data, out = str(folder / "d"), folder / "x"
    assert extract_channel.main(["words", str(folder), data, str(out)]) == 0
    assert train_tfidf.main([str(out), data, str(folder / "idf")]) == 0
    scp, scores = str(out / "xvector.scp"), str(folder / "scores")
    words = ["--backend", str(folder / "idf"), scp, scp, str(folder / "trials"), scores]
    assert score_trials.main(words) == 0
    found = [line.split() for line in Path(scores).read_text().splitlines()]
    assert [float(score) for *_, score in found] == pytest.approx([1, 0])
    assert not read_vectors(scp)["b-2"].any()


def test_what_words_refuse(folder: Path) -> None:
    """Each in one line: an utterance that was not recognised, an evaluated person in training."""
    data, out = str(folder / "d"), str(folder / "x")
    write_map(folder / "text", {"a-1": "x"})
    refuses("3 of 4 utterances missing", extract_channel.main, ["words", str(folder), data, out])
