"""Attackers who hear something else than the voice: counts, weights, and their steps of a plan."""

import csv
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from local import compute_metrics, fuse_scores
from local.metrics.leakage import embeddings
from local.metrics.legal import make_side
from local.metrics.verification import fuse, normalise
from steps import extract_channel, score_trials, train_backend
from steps.asr.engines import Phones
from steps.channels import recognised
from steps.channels.recognised import extract_channel as extract
from steps.emotion.functionals import ENERGY, MELODY, functionals
from steps.speaker.backends import CentredCosine, TfidfBackend, learn_idf
from tests.recipes import copy_world, run_recipe
from tests.refusals import accepts, refuses, refuses_words
from tests.scored import trials_of
from utils.archives import read_vectors
from utils.tables import read_json_object, write_map


def test_counts_by_hand() -> None:
    """ "Go, go!" and "go go": two words, GO_ once, O_G, _GO, and the two runs of four."""
    parts = map(recognised.parts_of_text, ("Go, go!", "...", "go go"))
    twice, none, again = recognised.count_parts([*parts])
    assert twice.shape == (recognised.SIZE,) and not none.any()
    assert sorted(twice[twice > 0]) == [1, 1, 1, 1, 1, 2]  # <GO> is there twice
    assert (twice == again).all()
    assert recognised.parts_of_phones([]) == []


def test_places_of_counts_are_the_same_in_every_process() -> None:
    """Python's own hash of a text differs from one process to the next."""
    assert np.flatnonzero(recognised.count_parts([["<GO>", "GO O"]])[0]).tolist() == [1167, 7970]


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
    write_map(tmp_path / "d/utt2spk", {utt: utt[0] for utt in text})
    write_map(tmp_path / "d/spk2utt", {"a": "a-1 a-2", "b": "b-1 b-2"})
    write_map(tmp_path / "trials", {"a-1 a-2": "target", "a-1 b-2": "nontarget"}, blanks=True)
    return tmp_path


def test_words_from_text_to_scores(folder: Path) -> None:
    """Who says the same has 1; an utterance without words has nothing in common with anybody."""
    data, out = folder / "d", folder / "x"
    accepts(extract_channel.main, "words", folder, data, out)
    accepts(train_backend.main, "--idf", out, data, folder / "idf")
    scp, scores = out / "xvector.scp", folder / "scores"
    accepts(score_trials.main, "--backend", folder / "idf", scp, scp, folder / "trials", scores)
    found = [line.split() for line in scores.read_text().splitlines()]
    assert [float(score) for *_, score in found] == pytest.approx([1, 0])
    assert not read_vectors(scp)["b-2"].any()


def test_what_words_refuse(folder: Path) -> None:
    """Each in one line: an utterance that was not recognised, an evaluated person in training."""
    write_map(folder / "text", {"a-1": "x"})
    words = ("words", folder, folder / "d", folder / "x")
    refuses_words("3 of 4 utterances missing", extract_channel.main, *words)


def test_fusion_by_hand() -> None:
    """Scores 1, 3 become -1, 1, whatever their scale; who is alone, or all alike, gives nothing."""
    trials = trials_of([(m, utt, False) for m, utt in zip("ababa", "uuvww", strict=True)])
    heard = np.array([0, 0, 1, 2, 2])
    voice, words = np.array([1.0, 3, 9, 0.1, 0.1]), np.array([200.0, 100, 0, 5, 7])
    assert normalise(heard, voice).tolist() == [-1, 1, 0, 0, 0]
    assert fuse(trials, [voice, words]).tolist() == [0, 0, 0, -1, 1]
    assert fuse(trials, [voice * 5 + 2, words / 3]) == pytest.approx(fuse(trials, [voice, words]))
    assert normalise(heard, np.zeros(5)).tolist() == [0] * 5


def test_what_the_voice_adds_to_the_words(tmp_path: Path) -> None:
    """Two people of one recording each: the words take u for b's, the voice does not, so that
    nobody is mistaken any more: fused 0 %, the words 50 %, -0.5. Beside the words alone the
    difference is 0, and so is its interval."""
    trials = {"a u": "target", "b u": "nontarget", "a v": "nontarget", "b v": "target"}
    voice = {"a u": 9, "b u": 1, "a v": 2, "b v": 4}
    words = {"a u": 0.1, "b u": 0.3, "a v": 0.1, "b v": 0.2}
    for name, table in (("trials", trials), ("voice", voice), ("said", words)):
        write_map(tmp_path / name, table, blanks=True)
    write_map(tmp_path / "utt2spk", {"u": "a", "v": "b"})

    def difference(*scores: str) -> dict[str, object]:
        given = [tmp_path / "trials", tmp_path / "out", *(tmp_path / name for name in scores)]
        accepts(fuse_scores.main, "--words", tmp_path / "said", *given)
        made = tmp_path / "figures.json"
        alone, fused = tmp_path / "out/words", tmp_path / "out/scores"
        of = ["--utt2spk", tmp_path / "utt2spk", "--bootstrap", "20", "--words", alone]
        accepts(compute_metrics.main, "verification", *of, tmp_path / "trials", fused, made)
        return read_json_object(made, "")

    assert difference("voice", "voice", "said")["eer_beside_words"] == -0.5
    same = difference("said")
    assert same["eer_beside_words"] == 0
    assert same["intervals"]["eer_beside_words"] == [0, 0]  # type: ignore[index]


# ---- Timing and sounds, of phones; melody.

SPOKEN = "SIL:21 P:10 AY:20 SIL:30 +NSN+:5 P:10 SIL:8"


def timing_of(text: str) -> np.ndarray:
    return recognised.timing(recognised.read_phones(text))


def test_timing_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two P of 10 frames (z = (ln 10 - 2) / 0.5) drawn by 2 of four, one AY of 20; 40 frames of
    speech in 75, with one pause of 35 in them."""
    monkeypatch.setattr(recognised, "away", lambda names, values: np.nan_to_num((values - 2) / 0.5))
    names, values = (*recognised.PHONES, *recognised.RHYTHM), timing_of(SPOKEN)
    found = dict(zip(names, values, strict=True))
    z = [(np.log(frames) - 2) / 0.5 for frames in (10, 20)]
    values = {"P": 2 * z[0] / 4, "AY": z[1] / 3, "B": 0.0, "vowels_spread": 0.0}  # of one vowel
    values |= {
        name: (value - 2) / 0.5
        for name, value in (
            ("consonants_spread", 0), ("phones_a_second", 3 / 0.4), ("pauses_a_second", 1 / 0.75),
            ("log_pause", np.log(35)),
        )
    }  # fmt: skip
    assert {name: found[name] for name in values} == pytest.approx(values)


def test_pieces_of_timing() -> None:
    """Nothing is lost, and none is shorter than asked for unless the whole is."""
    spoken = [("P", 10), ("AY", 30), ("", 20), ("B", 40)]
    assert [*recognised.cut_phones(spoken, 0.5)] == [spoken[:2], spoken[2:]]
    assert [*recognised.cut_phones(spoken, 2)] == [spoken]
    assert [*recognised.cut_phones([], 2)] == [[]]


def test_melody_is_that_of_functionals() -> None:
    """Its values are the first of those by which emotions are known; noise has no pitch, and what
    it lacks is typical."""
    time = np.arange(16000) / 16000
    hum = np.sin(2 * np.pi * 150 * time) + 0.3 * np.sin(2 * np.pi * 450 * time)
    noise = np.random.default_rng(0).standard_normal(16000)
    encoder = recognised.MelodyEncoder()
    for wave in (0.1 * hum, 0.01 * noise):
        expected = recognised.away(MELODY, functionals(wave)[: len(MELODY)])
        assert encoder.embed(wave) == pytest.approx(expected, rel=1e-6)
    found = dict(zip(MELODY, encoder.embed(0.1 * hum), strict=True))
    assert found["log_f0_mean"] == pytest.approx((np.log(150) - 4.9993) / 0.3057, abs=0.05)
    assert len(encoder.embed(0.01 * noise)) == 16 and ENERGY[0] in found
    level = encoder.embed(0.5 * hum)
    assert level == pytest.approx(encoder.embed(0.1 * hum), abs=1e-3)
    silence = np.zeros(16000)
    refuses("there is no speech in it", encoder.embed, silence)


@pytest.mark.parametrize("channel", ["words", "sounds", "timing"])
def test_an_utterance_without_anything_is_a_vector_of_zeros(tmp_path: Path, channel: str) -> None:
    """As many as there are is said."""
    write_map(tmp_path / "text", {"a": "P:9 AY:8 SIL:5 P:12", "b": ""}, blanks=True)
    vectors, empty = extract(channel, tmp_path, ["a", "b"])
    assert empty == 1 and vectors["a"].any() and not vectors["b"].any()
    refuses("1 of 2 utterances missing", extract, channel, tmp_path, ["a", "c"])
    if channel != "timing":
        refuses("is of whole utterances", extract, channel, tmp_path, ["a"], 4.0)


@pytest.mark.parametrize("word", ["HELLO", "AY:x", "AY:0"])
def test_words_in_the_place_of_phones_ended_in_a_traceback(tmp_path: Path, word: str) -> None:
    """And a phone of no length in infinite timing."""
    write_map(tmp_path / "text", {"a": "P:9", "b": f"P:9 {word}"}, blanks=True)
    for channel in ("timing", "sounds"):
        refuses(f"text: b: '{word}' is not <phone>:<frames>", extract, channel, tmp_path, ["b"])


def test_phones_have_their_lengths() -> None:
    """All frames of 0.8 s, padded to 1.2 s, are of some phone, whatever was heard before; digital
    silence has none."""
    wave = 0.1 * np.random.default_rng(0).standard_normal(12800)
    wave[:6400] = np.sin(np.arange(6400) / 20) * 0.1
    recogniser = Phones()
    first = recogniser.recognise("u", wave)
    assert recogniser.recognise("v", np.zeros(9000)) == ""
    assert recogniser.recognise("u", wave) == first
    frames = [int(word.rpartition(":")[2]) for word in first.split()]
    assert 110 <= sum(frames) <= 121 and min(frames) > 0


# ---- Bad input: one line, and a figure that is undefined. What cannot be heard at all is said
# before the start: a recogniser of words (test_plan.py), pyannote's network (test_pyannote.py).


def test_an_utterance_without_phones_ended_the_recipe(caplog: pytest.LogCaptureFixture) -> None:
    """Its timing is zero, of which a cosine was an error; it tells nothing, and is said."""
    phones, none = (timing_of(text) for text in (SPOKEN, ""))
    other = timing_of("B:10 AA:40 SIL:5 S:9")
    rows = CentredCosine().right(np.stack([phones, other, none]))
    assert rows[:2] == pytest.approx(CentredCosine().right(np.stack([phones, other])))
    assert not rows[2].any()
    assert caplog.messages == [
        "1 of 3 vectors are zero: there is nothing to compare, and their scores are 0"
    ]
    refuses("2 x-vectors are zero", CentredCosine().right, np.stack([none, none]))
    vectors = {"a-1": phones, "a-2": none, "b-1": other}
    of = {utt: utt[0] for utt in vectors}
    side = make_side(vectors, of, vectors_path="x", utt2spk_path="u")
    assert side.spk2utt == {"a": ["a-1"], "b": ["b-1"]}
    assert embeddings(vectors, of, path="x", utt2spk_path="u").ids == ["a-1", "b-1"]
    assert caplog.messages[1].startswith("x: 1 of 3 x-vectors are zero, such as a-2: nothing")


@pytest.mark.slow
def test_every_channel_attacks(world: Path, tmp_path: Path) -> None:
    """Scores and figures of all channels and fusions; those that learn do so, too, with weights of
    their own. Voices are compared where there are some: not in the file as it is written."""
    folder = copy_world(world, tmp_path / "small")
    heard = ["tiny/plda", "words/tfidf", "sounds/tfidf", "timing/plda", "melody/plda"]
    learnt = ["energy/plda", "level/gaussian", "rhythm/gaussian"]
    fixed = ["energy/cosine", "level/distance"]
    if find_spec("moonshine_voice"):  # it has no wheel everywhere
        learnt, fixed = [*learnt, "content/plda"], [*fixed, "content/cosine"]
    fused = ["fused", "fused_without_words", "fused_learnt"]
    options = ["--systems=b2", "--genders=f", "--attackers=ignorant semi_informed_backend"]
    options += [f"--evaluators={' '.join([*heard, *learnt, *fixed, *fused])}"]
    run_recipe(folder, *options, "--report-audio=false")
    rows = list(csv.DictReader((folder / "exp/results/metrics.csv").open()))
    eers = {(row["evaluator"], row["attacker"]) for row in rows if row["metric"] == "eer"}
    everybody = ("unprotected", "ignorant", "semi_informed_backend")
    assert eers >= {*product([*heard, *learnt, *fused[:2]], everybody)}
    assert eers >= {*product(fixed, everybody[:2])}
    assert eers >= {("fused_learnt", everybody[0]), ("fused_learnt", everybody[2])}
    assert ("fused_learnt", "ignorant") not in eers
    assert {row["evaluator"] for row in rows if row["metric"] == "eer_beside_words"} == {"fused"}
    voices = {row["evaluator"] for row in rows if row["family"] in ("legal", "similarity")}
    assert voices == {"tiny/plda", "timing/plda", "melody/plda"}
    (told,) = (folder / "exp/scores").glob("b2/semi*.fused_learnt/*/*/weights.json")
    weights = read_json_object(told, "")["weights"]
    assert len(weights) > 4 and len(set(weights.values())) == len(weights)
    assert "making" not in run_recipe(folder, *options, "--report-audio=false").stdout
