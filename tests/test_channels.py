"""Attackers who hear something else than the voice: counts, weights, and their steps of a plan."""

import json
from pathlib import Path

import numpy as np
import pytest

from local import compute_metrics, fuse_scores
from local.metrics.fusion import fuse, normalise
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


def test_fusion_by_hand() -> None:
    """Scores 1, 3 become -1, 1, whatever their scale; who is alone, or all alike, gives nothing."""
    trial = ["u", "u", "v", "w", "w"]
    voice, words = np.array([1.0, 3, 9, 0.1, 0.1]), np.array([200.0, 100, 0, 5, 7])
    assert normalise(trial, voice).tolist() == [-1, 1, 0, 0, 0]
    assert fuse(trial, [voice, words]).tolist() == [0, 0, 0, -1, 1]
    assert fuse(trial, [voice * 5 + 2, words / 3]) == pytest.approx(fuse(trial, [voice, words]))
    assert normalise(trial, np.zeros(5)).tolist() == [0] * 5


def test_what_the_voice_adds_to_the_words(tmp_path: Path) -> None:
    """The words take u for b's, the voice knows it: fused 0 %, the words 50 %, so -0.5. With the
    words alone fused the difference is 0, and so is its interval."""
    trials = {"a u": "target", "b u": "nontarget", "a v": "nontarget", "b v": "target"}
    voice = {"a u": 9, "b u": 1, "a v": 2, "b v": 4}
    words = {"a u": 0.1, "b u": 0.3, "a v": 0.1, "b v": 0.2}
    for name, table in (("trials", trials), ("voice", voice), ("said", words)):
        write_map(tmp_path / name, table, blanks=True)
    write_map(tmp_path / "utt2spk", {"u": "a", "v": "b"})
    paths = {name: str(tmp_path / name) for name in ("trials", "voice", "said", "utt2spk", "out")}

    def difference(*scores: str) -> dict[str, object]:
        given = [paths["trials"], paths["out"], *(paths[name] for name in scores)]
        assert fuse_scores.main(["--words", paths["said"], *given]) == 0
        made = str(tmp_path / "figures.json")
        alone, fused = f"{paths['out']}/words", f"{paths['out']}/scores"
        of = ["--utt2spk", paths["utt2spk"], "--bootstrap", "20", "--words", alone]
        words = ["verification", *of, paths["trials"], fused, made]
        assert compute_metrics.main(words) == 0
        found: dict[str, object] = json.loads(Path(made).read_text())
        return found

    assert difference("voice", "voice", "said")["eer_beside_words"] == -0.5
    same = difference("said")
    assert same["eer_beside_words"] == 0
    assert same["intervals"]["eer_beside_words"] == [0, 0]  # type: ignore[index]
