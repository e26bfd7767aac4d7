"""The CTC recogniser: training that resumes to the bit, its search, the recipe's ctc_retrained."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
import yaml

from local.metrics.utility import error_figures
from steps.asr import ctc
from steps.asr.ctc import (
    IMPOSSIBLE,
    CtcConfig,
    CtcTrainer,
    CtcUnits,
    SearchConfig,
    WordSearch,
    make_word_model,
)
from steps.asr.language import Language, read_source, trigram
from steps.asr.recognisers import make_recogniser
from steps.decode import main as decode
from steps.make_lang import main as make_lang
from steps.train_recogniser import main as train
from steps.training.audio import TrainingAudio
from steps.training.settings import read_config
from tests.making import assert_same_network, stopped_at
from tests.recipes import ROOT, link_recipe, run_recipe
from tests.refusals import refuses, refuses_words
from utils.tables import read_map, write_map

CONFS = sorted((ROOT / "egs/TEMPLATE/conf/asr").glob("*.yaml"))
DIGITS = ROOT / "egs/fsdd/conf/digits.jsgf"
TINY = {
    "recogniser": "ctc",
    "network": {"channels": 24, "dilations": [1], "dropout": 0.0, "stride": 2},
    "features": {"bins": 20},
    "augmentation": {"noise_probability": 0.5, "babble_probability": 0.2},
    "training": {"steps": 4, "batch": 4, "valid_every": 2, "checkpoint_every": 2},
}
GRAMMAR = """#JSGF V1.0;
grammar g;
public <g> = [please] (one | two)+ six;
"""


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(yaml.safe_dump(TINY))
    return path


@pytest.fixture
def data(tmp_path: Path, make_data_dir) -> Path:  # type: ignore[no-untyped-def]
    return make_data_dir(tmp_path / "d", {f"s{n:02d}": 1 for n in range(20)}, seconds=0.4)


def written(units: CtcUnits, text: str) -> torch.Tensor:
    """(T, tokens): a network that is sure of a text; every token thrice, a blank in between."""
    places = [place for token in units.encode(text) for place in (token, token, token, 0)] or [0]
    scores = torch.full((len(places), len(units.tokens)), -6.0)
    scores[torch.arange(len(places)), torch.tensor(places)] = 0.0
    return scores.log_softmax(dim=-1)


def test_units() -> None:
    units = CtcUnits.of("characters", ["go to, the 2nd", "it's"])
    assert units.tokens[:2] == ("<blank>", "|")
    assert units.decode(units.encode("it's the 2nd")) == "IT'S THE 2ND"
    assert units.decode([]) == units.decode([1, 1]) == ""
    assert ctc.frames_needed(units.encode("too")) == 5  # T O blank O |
    words = CtcUnits.of("words", ["go to, the 2nd", "it's"])
    assert words.tokens[2:] == ("2ND", "GO", "IT'S", "THE", "TO")
    assert words.decode(words.encode("it's the 2nd")) == "IT'S THE 2ND"
    assert ctc.frames_needed(words.encode("to to the")) == 4
    config = CtcConfig("ctc", None)  # type: ignore[arg-type]
    assert ctc.fitting_speeds(units.encode("it's the 2nd"), 10_000, config) == [0.9, 1.0, 1.1]
    assert ctc.fitting_speeds(units.encode("it's the 2nd" * 9), 10_000, config) == []


@pytest.mark.parametrize("conf", CONFS, ids=lambda path: path.stem)
def test_the_confs_are_read(conf: Path) -> None:
    config = read_config(CtcConfig, conf)
    network = ctc.CtcNetwork(config.network, config.features.bins, 30).eval()
    features, n_frames = torch.randn(2, 90, config.features.bins), torch.tensor([90, 50])
    features[1, 50:] = 0.0
    both = network(features, n_frames)
    assert both.shape == (2, int(network.frames(n_frames)[0]), 30)
    # What is in a batch beside a signal does not matter.
    alone = network(features[1:, :50], n_frames[1:])
    assert torch.allclose(both[1, : alone.shape[1]], alone[0], atol=1e-5)
    assert torch.allclose(alone.exp().sum(dim=-1), torch.ones(1))


def test_word_models(tmp_path: Path) -> None:
    (tmp_path / "g.jsgf").write_text(GRAMMAR)
    model = make_word_model(read_source(str(tmp_path / "g.jsgf")))

    def score(*words: str) -> float:
        state, total = model.start, 0.0
        for word in words:
            state, value = model.score(state, word)
            total += value
        return total + model.finish(state)

    possible = [score("one", "six"), score("please", "two", "one", "six")]
    assert all(IMPOSSIBLE / 2 < value < 0 for value in possible)
    for words in ((), ("one",), ("six",), ("one", "please", "six"), ("one", "six", "six")):
        assert score(*words) <= IMPOSSIBLE / 2
    learnt = make_word_model(trigram(["go to the house", "go to the boat", "the house"]))
    after, _ = learnt.score(learnt.score(learnt.start, "go")[0], "to")
    assert learnt.score(after, "the")[1] > learnt.score(after, "go")[1]
    assert learnt.likely("the") > learnt.likely("boat")
    assert learnt.finish(learnt.score(after, "house")[0]) > learnt.finish(after)


@pytest.mark.slow
def test_the_search_says_words_of_the_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    units = CtcUnits.of("characters", ["the quick brown fox jumps over the lazy dog"])
    digits = WordSearch(read_source(str(DIGITS)), units, SearchConfig())
    assert (digits.n_words, digits.n_unspelt) == (10, 0)
    assert digits(written(units, "nine")) == "nine"
    assert digits(written(units, "sevn")) == "seven"
    assert digits(written(units, "ninne")) == "nine"
    assert digits(written(units, "four two")) in ("four", "two")  # one digit, says the grammar
    (tmp_path / "g.jsgf").write_text(GRAMMAR)
    six_is_last = read_source(str(tmp_path / "g.jsgf"))
    assert WordSearch(six_is_last, units, SearchConfig())(written(units, "one si")) == "one six"
    house = WordSearch(trigram(["go to the house", "a boat"]), units, SearchConfig())
    assert house(written(units, "go to the hous")) == "go to the house"
    assert house(written(units, "")) == ""
    said = CtcUnits.of("words", ["one two", "nine"])
    numbers = WordSearch(read_source(str(DIGITS)), said, SearchConfig())
    assert (numbers.n_words, numbers.n_unspelt) == (3, 7)
    assert numbers(written(said, "two")) == "two"
    few = CtcUnits.of("characters", ["no one"])
    assert WordSearch(read_source(str(DIGITS)), few, SearchConfig()).n_unspelt == 9
    none = (read_source(str(DIGITS)), CtcUnits.of("characters", ["xyz"]), SearchConfig())
    refuses("no word of the language can be said", WordSearch, *none)
    monkeypatch.setattr(ctc, "BEAM", 1)
    monkeypatch.setattr(ctc, "THRESHOLD", 0.1)  # finds nothing that the grammar has
    assert WordSearch(six_is_last, units, SearchConfig())(written(units, "one")) == ""


def small_language(words: float, end: float, *bigrams: str) -> Language:
    """Three words of this log probability, and the end with that."""
    rows = ["-99 <s> 0", f"{end} </s>", *(f"{words} {word} 0" for word in ("go", "two", "six"))]
    counts = ["ngram 1=5", *([f"ngram 2={len(bigrams)}"] if bigrams else [])]
    more = ["\\2-grams:", *bigrams, ""] if bigrams else []
    lines = ["\\data\\", *counts, "", "\\1-grams:", *rows, "", *more, "\\end\\", ""]
    lexicon = "go G OW\ntwo T UW\nsix S IH K S\n"
    return Language("corpus", {"lm.arpa": "\n".join(lines), "lexicon.dict": lexicon})


def test_an4_a_language_in_which_nothing_is_likeliest_made_every_hypothesis_empty() -> None:
    """AN4's own model has the end after the beginning with certainty, and a word with 1/106."""
    units = CtcUnits.of("characters", ["go two six"])
    language = small_language(-2, -2, "0 <s> </s>")
    said = {"a": "go two", "b": "six six", "c": "two"}
    # Of an uncertain network: every token has a chance at every time.
    heard = {utt: (written(units, text) / 8).log_softmax(dim=-1) for utt, text in said.items()}
    even = WordSearch(language, units, SearchConfig(lm_weight=1.0, word_score=0.0))
    assert {utt: even(scores) for utt, scores in heard.items()} == dict.fromkeys(said, "")
    search = WordSearch(language, units, SearchConfig())
    assert {utt: search(scores) for utt, scores in heard.items()} == said


def test_a_word_that_several_frames_hear_was_found_as_often() -> None:
    units = CtcUnits.of("words", ["go two six"])
    heard = torch.zeros(6, len(units.tokens))
    heard[[0, 1, 5], 0] = heard[2:5, units.tokens.index("TWO")] = 5.0
    search = WordSearch(small_language(-0.6, -1), units, SearchConfig(word_score=0.0))
    assert search(heard.log_softmax(dim=-1)) == "two"
    for text in ("go two two six", "six six", ""):
        assert search(written(units, text)) == text


def test_hypotheses_that_the_language_cannot_tell_apart_filled_the_beam(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a language without memory a few hypotheses are enough, however long the utterance."""
    units = CtcUnits.of("words", ["go two six"])
    language = small_language(-0.6, -1)
    torch.manual_seed(0)
    heard = [2.0 * torch.randn(100, len(units.tokens)).log_softmax(dim=-1) for _ in range(3)]

    monkeypatch.setattr(ctc, "THRESHOLD", 1e9)

    def search(beam: int) -> list[str]:
        monkeypatch.setattr(ctc, "BEAM", beam)
        config = SearchConfig(lm_weight=0.1, word_score=2.0)
        return [WordSearch(language, units, config)(scores) for scores in heard]

    wide = search(500)
    assert all(len(words.split()) > 50 for words in wide)
    assert search(8) == wide


def test_a_round_has_every_utterance_once(data: Path, conf: Path) -> None:
    wav, owners = read_map(data / "wav.scp"), read_map(data / "utt2spk")
    lengths = {utt: soundfile.info(path).frames for utt, path in wav.items()}
    audio = TrainingAudio(wav, {spk: [utt] for utt, spk in owners.items()}, lengths)
    units = CtcUnits.of("characters", ["a", "no"])
    texts = {utt: "a no"[number % 3 :] for number, utt in enumerate(sorted(wav))}
    config = read_config(CtcConfig, conf)
    given = (config, 0, "cpu", units, audio, audio.subset([]), texts)
    trainer = CtcTrainer(*given)
    n = trainer.per_round
    rounds = [[trainer.batch(step) for step in range(i * n, (i + 1) * n)] for i in (0, 1)]
    for batches in rounds:
        assert sum(len(features) for features, _ in batches) == 20
    again, _ = CtcTrainer(*given).batch(n + 1)
    assert all(map(torch.equal, again, rounds[1][1][0]))
    assert list(map(len, rounds[0][0][0])) != list(map(len, rounds[1][0][0]))


def test_a_resumed_training_ends_the_same_to_the_bit(data, conf, tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert train([str(conf), str(data), str(whole)]) == 0
    assert len((whole / "training.tsv").read_text().splitlines()) == 3
    with stopped_at(3, CtcTrainer):
        train([str(conf), str(data), str(parts)])
    assert sorted(path.name for path in (parts / "checkpoints").iterdir()) == ["step-00000002.pt"]
    assert not (parts / "final.pt").exists()
    assert train([str(conf), str(data), str(parts)]) == 0
    assert_same_network(whole, parts)
    # With another seed it is another network, and not made of this one's checkpoints.
    refuses_words("other settings, seed or data", train, "--seed", "1", conf, data, parts)


def test_bad_inputs(data: Path, conf: Path, tmp_path: Path) -> None:
    end = (data, tmp_path / "out")
    refuses_words("--steps.*whole number from 1", train, "--steps", 0, conf, *end)
    tested = refuses_words("must not be in", train, "--not-speakers-of", data, conf, *end)
    assert "speaker s00 (20 in all)" in tested
    refuses_words("ctc: needs --model DIR", decode, "ctc", *end)
    refuses_words("takes no --model", decode, "--model", data, "pocketsphinx", *end)
    refuses_words("holds no final.pt", decode, "--model", data, "ctc", *end)
    old = tmp_path / "old"
    old.mkdir()
    (old / "final.pt").touch()
    older = {**TINY, "search": {"beam": 100}, "trained": {"tokens": ["a"]}}
    (old / "recogniser.yaml").write_text(yaml.safe_dump(older))
    refuses_words("unknown setting.*train it again", decode, "--model", old, "ctc", *end)
    write_map(data / "text", dict.fromkeys(read_map(data / "utt2spk"), "--"))
    refuses_words("no training utterance has words", train, conf, *end)
    (data / "text").unlink()
    refuses_words("text: is missing", train, conf, *end)
    assert not (tmp_path / "out/final.pt").exists()


def test_what_cannot_be_learnt_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    config = CtcConfig("ctc", None)  # type: ignore[arg-type]
    lengths = {"a-1": 8000, "a-2": 8000, "b-1": 8000}
    audio = TrainingAudio({}, {"a": ["a-1", "a-2"], "b": ["b-1"]}, lengths)
    kept = ctc.select_usable(audio, {"a-1": "yes", "a-2": "yes " * 40, "b-1": "[NOISE]"}, config)
    assert kept.spk2utt == {"a": ["a-1"]}
    assert "2 of 3 utterances left out" in caplog.text
    assert "a-2 b-1" in caplog.text


def speak(path: Path, words: dict[str, float], speakers: int, per_speaker: int) -> Path:
    """A data directory of tones: a word is its pitch in Hz, 0.2 s; a speaker's own noise."""
    rng = np.random.default_rng(0)
    (path / "wav").mkdir(parents=True)
    rows: dict[str, dict[str, str]] = {name: {} for name in ("wav.scp", "utt2spk", "text")}
    time = np.arange(3200) / 16000
    for utt in (f"s{spk}-{number}" for spk in range(speakers) for number in range(per_speaker)):
        said = rng.choice(list(words), int(rng.integers(1, 4)))
        tones = [np.r_[np.sin(2 * np.pi * words[w] * time), np.zeros(800)] for w in said]
        signal = np.concatenate(tones)
        signal += 0.02 * rng.standard_normal(len(signal))
        soundfile.write(path / f"wav/{utt}.wav", 0.3 * signal, 16000, subtype="PCM_16")
        row = (f"{path}/wav/{utt}.wav", utt.partition("-")[0], " ".join(said))
        for table, value in zip(rows.values(), row, strict=True):
            table[utt] = value
    for name, table in rows.items():
        write_map(path / name, table)
    return path


@pytest.mark.slow
def test_it_learns_words_that_are_tones(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Words of new utterances, greedily and in a language; digital silence says nothing."""
    words = {"one": 300.0, "two": 700.0, "six": 1500.0, "please": 3000.0}
    data = speak(tmp_path / "train", words, 4, 20)
    test = speak(tmp_path / "test", words, 1, 30)
    conf = tmp_path / "conf.yaml"
    calm = {"noise_probability": 0.0, "babble_probability": 0.0, "time_masks": 0, "band_masks": 0}
    changes = {
        "network": {**TINY["network"], "channels": 48},  # type: ignore[dict-item]
        "augmentation": {"speeds": [1.0], **calm},
        "training": {"steps": 350, "learning_rate": 0.005},
    }
    conf.write_text(yaml.safe_dump({**TINY, **changes}))
    assert train([str(conf), str(data), str(tmp_path / "model")]) == 0
    assert make_lang(["trigram", "--train", str(data), str(tmp_path / "lang")]) == 0
    said = read_map(test / "text", rest_of_line=True)
    for options in ([], ["--lang", str(tmp_path / "lang")]):
        out = tmp_path / f"out{len(options)}"
        model = ["--model", str(tmp_path / "model")]
        assert decode([*options, *model, "ctc", str(test), str(out)]) == 0
        heard = read_map(out / "text", rest_of_line=True)
        wer = error_figures(said, heard, dict.fromkeys(said, "s"))["wer"]
        assert isinstance(wer, float) and wer < 0.05
        told = json.loads((out / "recogniser.json").read_text())
        assert (told["recogniser"], told["search"] == "greedy") == ("ctc", not options)
    recogniser = make_recogniser("ctc", model=tmp_path / "model")
    assert recogniser.recognise("a", np.zeros(8000)) == ""
    recogniser.recognise("b", np.full(10, 0.1))  # shorter than a frame


@pytest.fixture
def recipe(tmp_path: Path, make_data_dir) -> Path:  # type: ignore[no-untyped-def]
    """A corpus of noise that is prepared."""
    folder = tmp_path / "egs"
    for number, name in enumerate(("train", "x_enrolls", "x_trials_f")):
        make_data_dir(folder / "data" / name, {f"{number}a": 2, f"{number}b": 2})
    conf = "corpus_name=x\nevaluation=x\ngenders=f\nasr_model=tiny\nasr_lang=trigram\nnj=1\n"
    link_recipe(folder, conf)
    (folder / "conf/asr").mkdir()
    (folder / "conf/asr/tiny.yaml").write_text(yaml.safe_dump(TINY))
    for part in ("encoders", "systems"):
        (folder / "conf" / part).symlink_to(ROOT / "egs/TEMPLATE/conf" / part)
    return folder


@pytest.mark.slow
def test_the_recipe_reports_it(recipe: Path) -> None:
    only = ("--stage", "10", "--stop-stage", "10", "--bootstrap", "10")
    stage_10 = partial(run_recipe, recipe, *only)
    # The trials are not protected yet, but what is learnt from is.
    stage_10("--systems", "b2", "--asr", "ctc ctc_retrained", status=2)
    for training in ("train", "train_b2_const"):
        name = "tiny" if training == "train" else f"tiny.{training}"
        assert (recipe / "exp/recognisers" / name / "final.pt").exists()
    stage_10("--systems=", "--asr", "ctc")
    made = recipe / "exp/metrics/original/utility.ctc/OO/x_f"
    found = json.loads((made / "metrics.json").read_text())
    assert (found["n_segments"], found["n_words"]) == (4, 20)
    assert "%WER " in (made / "log/compute_utility.log").read_text()
    assert "nothing to do: all 4 steps" in stage_10("--systems=", "--asr", "ctc").stdout
