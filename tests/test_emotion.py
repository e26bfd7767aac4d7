"""Emotions: functionals, the classifier that leaves speakers out, hub models, UAR."""

import json
import math
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import recall_score

from local.compute_utility import main as compute
from local.metrics.utility import recall_figures
from local.protocols.utterances import four_emotions
from local.report_challenge import main as report_challenge
from steps.audio import write_wav
from steps.emotion.functionals import NAMES, Labelled, functionals, recognise_leaving_out
from steps.extract_functionals import main as extract_functionals
from steps.recognise_emotion import main as recognise_emotion
from tests.corpus_trees import ROOT, make_recipe
from tests.refusals import accepts, refuses, refuses_words
from tests.world import HUB_FRONT, RATE, write_speech
from utils.archives import read_vectors
from utils.cli import LossError, UserError
from utils.datadir import load_data_dir
from utils.seeds import make_rng
from utils.tables import read_map, write_file, write_map


def sung(seconds: float = 1, f0: float = 150, rise: float = 0, gap: float = 0) -> np.ndarray:
    """A tone with eight harmonics whose log F0 rises by `rise` a second, with a pause in it."""
    t = np.arange(int(seconds * RATE)) / RATE
    phase = 2 * np.pi * f0 * (t if rise == 0 else (np.exp(rise * t) - 1) / rise)
    wave = sum(np.sin(h * phase) / h for h in range(1, 9)) * 0.1
    middle = len(t) // 2
    wave[middle : middle + int(gap * RATE)] = 0
    return np.asarray(wave)


def named(samples: np.ndarray) -> dict[str, float]:
    return dict(zip(NAMES, functionals(samples).tolist(), strict=True))


def test_pitch_of_a_known_tone():
    flat, rising = named(sung(f0=200.0)), named(sung(rise=0.5))
    assert flat["log_f0_mean"] == pytest.approx(math.log(200), abs=0.01)
    assert flat["log_f0_slope"] == pytest.approx(0, abs=0.02)
    assert rising["log_f0_slope"] == pytest.approx(0.5, abs=0.03)
    # One unbroken run against two around a pause of 0.3 s.
    paused = named(sung(seconds=2.0, gap=0.3))
    assert flat["voiced_runs_a_second"] == pytest.approx(1, abs=0.05)
    assert paused["voiced_runs_a_second"] == pytest.approx(1, abs=0.05)  # 2 in 2 s
    assert paused["voiced_share"] == pytest.approx(0.85, abs=0.06)
    assert flat["voiced_share"] > 0.9


def speaker_set(speakers: str, rng: np.random.Generator) -> Labelled:
    """Four utterances of each speaker, two an emotion, which the first functional tells apart."""
    vectors, utt2spk, utt2emotion = {}, {}, {}
    for spk in speakers:
        for number in range(4):
            utt, emotion = f"{spk}-{number}", ("calm", "wild")[number % 2]
            vectors[utt] = np.zeros(len(NAMES), dtype=np.float32)
            vectors[utt][0] = number % 2 + 0.1 * rng.standard_normal()
            utt2spk[utt], utt2emotion[utt] = spk, emotion
    return Labelled(vectors, utt2spk, utt2emotion)


@pytest.mark.slow
def test_a_speaker_is_never_in_his_own_training():
    train = speaker_set("abcd", make_rng(0, "set"))
    found, settings = recognise_leaving_out(train.functionals, train.utt2spk, [train])
    assert found.idxmax(axis=1).to_dict() == train.utt2emotion
    folds = settings["folds"]
    assert isinstance(folds, list)
    assert [fold["left_out"] for fold in folds] == list("abcd")
    assert {fold["n_train_utts"] for fold in folds} == {12}
    # A speaker with swapped labels: by himself he would be recognised, by the others he is not.
    swap = {"calm": "wild", "wild": "calm"}
    odd = {u: swap[e] if train.utt2spk[u] == "a" else e for u, e in train.utt2emotion.items()}
    sets = [train._replace(utt2emotion=odd)]
    emotions = recognise_leaving_out(train.functionals, train.utt2spk, sets)[0].idxmax(axis=1)
    assert all(emotions[f"a-{n}"] != odd[f"a-{n}"] for n in range(4))


@pytest.mark.slow
def test_order_and_undefined_values():
    train = speaker_set("abcd", make_rng(1, "set"))
    for vector in train.functionals.values():
        vector[5] = np.nan
    turned = train._replace(functionals=dict(reversed(train.functionals.items())))
    one, other = (recognise_leaving_out(*own[:2], [own])[0] for own in (train, turned))
    assert one.equals(other.loc[one.index])
    refuses("in two training sets", recognise_leaving_out, *train[:2], [train, train])
    one_each = train._replace(utt2emotion={u: "calm" if u < "c" else "wild" for u in train.utt2spk})
    said = "without a, the training speakers are too few, .*only one class"
    refuses(said, recognise_leaving_out, *train[:2], [one_each])
    small = speaker_set("ab", make_rng(1, "set"))
    said = "there are 1 training speakers with 2 emotions"
    refuses(said, recognise_leaving_out, *small[:2], [small])


def figures(out: Path, *words: object) -> dict[str, Any]:
    accepts(compute, "emotions", *words, out)
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def test_uar_by_hand():
    # calm: 3 of 4 right; wild: 1 of 2 right; UAR 0.625, accuracy 4/6.
    reference = dict(zip("abcdef", ["calm"] * 4 + ["wild"] * 2, strict=True))
    recognised = dict(zip("abcdef", ["calm", "calm", "calm", "wild", "wild", "bored"], strict=True))
    utt2spk = dict(zip("abcdef", "112212", strict=True))
    found = recall_figures(reference, recognised, utt2spk, n_bootstrap=100)
    assert found["uar"] == pytest.approx(0.625)
    assert (found["recall_calm"], found["recall_wild"]) == (0.75, 0.5)
    assert (found["chance_uar"], found["n_speakers"], found["n_segments"]) == (0.5, 2, 6)
    assert found["confusion"] == {
        "calm": {"calm": 3, "wild": 1}, "wild": {"wild": 1, "bored": 1},
    }  # fmt: skip
    # Speaker 1: calm 2/2, wild 1/1; speaker 2: calm 1/2, wild 0/1: resamples lie between.
    intervals = found["intervals"]
    assert isinstance(intervals, dict)
    assert intervals["uar"] == pytest.approx([0.25, 1.0])
    swapped = {u: {"1": "2", "2": "1"}[s] for u, s in utt2spk.items()}
    assert recall_figures(reference, recognised, swapped)["uar"] == found["uar"]


def test_uar_where_an_emotion_is_missing(caplog):
    one = recall_figures({"a": "calm"}, {"a": "calm"}, {"a": "1"})
    assert math.isnan(one["uar"])  # type: ignore[arg-type]
    assert one["recall_calm"] == 1
    assert "calm is the only emotion" in caplog.text
    # Speaker 2 alone has no `wild`: a resample of him twice defines no UAR, and is counted.
    reference = {"a": "calm", "b": "wild", "c": "calm"}
    recall_figures(reference, reference, {"a": "1", "b": "1", "c": "2"}, n_bootstrap=50)
    assert "uar is undefined in" in caplog.text


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data directory `d` of four speakers, high voices wild and low ones calm; `train` of two."""
    tmp_path = tmp_path_factory.mktemp("recorded")
    for name, speakers in (("d", "abcd"), ("train", "ef")):
        waves, emotion = {}, {}
        for utt in (f"{spk}-{number}" for spk in speakers for number in range(4)):
            number = int(utt[-1])
            emotion[utt] = ("calm", "wild")[number % 2]
            f0 = (120.0, 260.0)[number % 2] + 3 * number + ord(utt[0]) - 97
            waves[utt] = sung(0.5, f0) + 0.001 * make_rng(0, utt).standard_normal(RATE // 2)
        write_speech(tmp_path / name, waves, utt2emotion=emotion)
        accepts(extract_functionals, tmp_path / name, tmp_path / f"{name}_f")
    return tmp_path


@pytest.fixture
def data(recorded: Path, tmp_path: Path) -> Path:
    return shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)


def options(data: Path) -> list[str]:
    sets = [str(data / name) for name in ("d", "d_f", "train", "train_f")]
    return ["--features", sets[1], "--train", *sets[:2], "--train", *sets[2:]]


@pytest.mark.slow
def test_programs(data):
    assert len(read_vectors(data / "d_f/functionals.scp", check_finite=False)) == 16
    out = data / "out"
    accepts(recognise_emotion, *options(data), "functionals", data / "d", out)
    assert read_map(out / "emotions") == read_map(data / "d/utt2emotion")
    assert (out / "posteriors.tsv").read_text().startswith("#utt\tcalm\twild\na-0\t")
    told = json.loads((out / "recogniser.json").read_text())
    assert {fold["n_train_speakers"] for fold in told["folds"]} == {5}
    words = ("--bootstrap", "20", data / "d", out / "emotions")
    assert figures(out / "a", *words)["uar"] == 1
    # Two sets are counted together: half of `train` is wrong.
    write_map(out / "calm", {f"{s}-{n}": "calm" for s in "ef" for n in range(4)})
    found = figures(out / "b", "--also", data / "train", out / "calm", *words[2:])
    assert (found["n_segments"], found["recall_wild"]) == (24, pytest.approx(8 / 12))


def test_bad_inputs(data):
    end = (data / "d", data / "out")
    refuses_words("no recogniser; known: functionals, hub", recognise_emotion, "gmm", *end)
    said = "--features DIR and --train DATA DIR"
    refuses_words(said, recognise_emotion, "functionals", *end)
    said = "leave --features and --train out"
    refuses_words(said, recognise_emotion, *options(data), "hub:x", *end)
    (data / "train/utt2emotion").unlink()
    refuses_words("utt2emotion: is missing", recognise_emotion, *options(data), "functionals", *end)
    assert not (data / "out").exists()


def test_bad_inputs_of_the_figures(data):
    own = (data / "d", data / "hyp")
    for speakers, said, kind in (
        ("abc", r"hyp: compared with .*d-0", LossError), ("abcdx", "x-0", UserError),
    ):  # fmt: skip
        write_map(data / "hyp", {f"{s}-{n}": "calm" for s in speakers for n in range(4)})
        refuses_words(said, compute, "emotions", *own, "-", kind=kind)
    write_map(data / "hyp", {f"{s}-{n}": "calm" for s in "abcd" for n in range(4)})
    refuses_words("a-0 is also in another set", compute, "emotions", "--also", *own, *own, "-")


HUB_MODEL = """
pretrained_path: {folder}
embedding_model: !new:speechbrain.nnet.pooling.StatisticsPooling
classifier: !new:speechbrain.nnet.linear.Linear {{input_size: 40, n_neurons: 3}}
label_encoder: !new:speechbrain.dataio.encoder.CategoricalEncoder
pretrainer: !new:speechbrain.utils.parameter_transfer.Pretrainer
  {{loadables: {{label_encoder: !ref <label_encoder>}},
  paths: {{label_encoder: !ref <pretrained_path>/label_encoder.txt}}}}
"""
INTERFACE = """
from speechbrain.inference.classifiers import EncoderClassifier

class CustomEncoderWav2vec2Classifier(EncoderClassifier):
    pass
"""


def write_model(folder: Path) -> Path:
    write_file(folder / "hyperparams.yaml", HUB_FRONT + HUB_MODEL.format(folder=folder))
    lines = ["'neu' => 0", "'hap' => 1", "'exc' => 2", "=" * 16, "'starting_index' => 0"]
    (folder / "label_encoder.txt").write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.parametrize("own_interface", [False, True])
def test_a_model_of_the_hub_that_is_here(data, own_interface):
    folder = write_model(data / "model")
    if own_interface:
        (folder / "custom_interface.py").write_text(INTERFACE)
    accepts(recognise_emotion, f"hub:{folder}", data / "d", data / "out")
    header, *rows = (data / "out/posteriors.tsv").read_text().splitlines()
    assert header == "#utt\thappiness\tneutral"
    assert len(rows) == 16
    assert all(sum(map(float, row.split()[1:])) == pytest.approx(1, abs=1e-5) for row in rows)
    assert set(read_map(data / "out/emotions").values()) <= {"happiness", "neutral"}


def test_vpc24_averages_over_folds_by_hand():
    """Fold 1: one of two calm, wild 1: 0.75; fold 2: calm 1, wild 0: 0.5. Pooled: (2/3 + 1/2)/2."""
    felt = {"a": "calm", "b": "calm", "c": "wild", "d": "calm", "e": "wild"}
    heard = {"a": "calm", "b": "wild", "c": "wild", "d": "calm", "e": "calm"}
    folds = {"a": "1", "b": "1", "c": "1", "d": "2", "e": "2"}
    speakers = {"a": "s", "b": "s", "c": "t", "d": "s", "e": "t"}
    found = recall_figures(felt, heard, speakers, folds=folds, n_bootstrap=50)
    assert found["uar_vpc24"] == pytest.approx(0.625)
    assert found["uar"] == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert "uar_vpc24" in found["intervals"]  # type: ignore[operator]
    one = recall_figures(felt, heard, speakers, folds=dict.fromkeys(felt, "1"))
    assert one["uar_vpc24"] == pytest.approx(one["uar"], abs=5e-6)  # rounded, as there
    assert "uar_vpc24" not in recall_figures(felt, heard, speakers)


def test_W12_a_fold_has_the_macro_recall_of_scikit_learn():
    """truth neu, sad; heard neu, ang: 0.333 there, since what was only said has recall 0."""
    felt, heard = {"a": "neu", "b": "sad"}, {"a": "neu", "b": "ang"}
    speakers = dict.fromkeys(felt, "s")
    found = recall_figures(felt, heard, speakers, folds=dict.fromkeys(felt, "1"))
    theirs = recall_score(["neu", "sad"], ["neu", "ang"], average="macro", zero_division=0)
    assert found["uar_vpc24"] == pytest.approx(theirs, abs=5e-6) == pytest.approx(1 / 3, abs=5e-6)
    assert found["uar"] == 0.5 and found["recall_vpc24_sad"] == 0
    two = recall_figures(felt, heard, speakers, folds={"a": "1", "b": "2"})  # 1 and 0 of 2
    assert two["uar_vpc24"] == pytest.approx(0.5) and two["recall_vpc24_neu"] == 1


@pytest.fixture
def iemocap(tmp_path: Path) -> Path:
    """A data directory of the challenges: utt2emo, spk2fold, upper-case genders."""
    folder = tmp_path / "IEMOCAP_dev"
    rows = {"Ses01F-1": "ang", "Ses01F-2": "sad", "Ses02M-1": "hap", "Ses02M-2": "neu"}
    write_map(folder / "utt2emo", rows)
    write_map(folder / "utt2spk", {utt: utt[:6] for utt in rows})
    write_map(folder / "spk2gender", {"Ses01F": "F", "Ses02M": "M"})
    write_map(folder / "spk2fold", {"Ses01F": "1", "Ses02M": "2"})
    return folder


def feel(tmp_path: Path, *emotions: str) -> Path:
    """What was recognised in these utterances."""
    utts = ("Ses01F-1", "Ses01F-2", "Ses02M-1", "Ses02M-2")
    write_map(tmp_path / "emotions", dict(zip(utts, emotions, strict=True)))
    return tmp_path / "emotions"


def test_M3_W5_data_directories_of_IEMOCAP_have_the_mean_over_folds(tmp_path, iemocap):
    heard = feel(tmp_path, "anger", "sadness", "happiness", "happiness")
    found = figures(tmp_path / "out", iemocap, heard)
    assert found["uar_vpc24"] == 0.75 and found["recall_vpc24_happiness"] == 1
    assert load_data_dir(iemocap, need=("utt2spk",)).spk2gender == {"Ses01F": "f", "Ses02M": "m"}
    write_map(iemocap / "spk2fold", {"Ses01F": "1"})
    refuses_words("has no fold of utterance Ses02M-1", compute, "emotions", iemocap, heard, "-")


def test_short_names_of_emotions_were_all_wrong(tmp_path, iemocap):
    heard = feel(tmp_path, "ang", "sad", "happiness", "neu")
    for name in ("utt2emo", "utt2emotion"):
        (iemocap / "utt2emo").replace(iemocap / name)
        assert figures(tmp_path / "out", iemocap, heard)["uar"] == 1


def test_M5_nine_labels_of_emotion2vec_are_four(tmp_path, iemocap):
    nine = "angry disgusted fearful happy neutral other sad surprised <unk>"
    found = four_emotions({label: label for label in nine.split()})
    four = "anger anger sadness happiness neutral neutral sadness neutral neutral"
    assert " ".join(found.values()) == four
    heard = feel(tmp_path, "生气/angry", "fearful", "happy", "other")
    assert figures(tmp_path / "out", "--emotion2vec", iemocap, heard)["uar"] == 1
    refuses("'calm' is not a label of emotion2vec", four_emotions, {"a": "calm"})


@pytest.mark.slow
def test_M3_emotions_of_IEMOCAP_reach_the_challenges_file(tmp_path, iemocap):
    """As docs/protocols.md has it; theirs has wav/ only."""
    utts = sorted(read_map(iemocap / "utt2spk"))
    for place, loud in (("original", 1.0), ("IEMOCAP_dev_mcadams/wav", 0.5)):
        for utt in utts:
            write_wav(tmp_path / place / f"{utt}.wav", loud * sung())
    write_map(iemocap / "wav.scp", {utt: f"{tmp_path}/original/{utt}.wav" for utt in utts})
    write_model(tmp_path / "model")
    recipe = make_recipe(tmp_path / "recipe", "librispeech")
    words = [tmp_path, "_mcadams", "theirs", f"hub:{tmp_path}/model", "IEMOCAP_dev"]
    command = ["local/challenge_emotions.sh", *map(str, words)]
    subprocess.run(command, cwd=recipe, check=True)
    protected = load_data_dir(recipe / "exp/emotion_sets/data/IEMOCAP_dev_mcadams")
    assert protected.tables["utt2emotion"]["Ses01F-1"] == "anger"
    protocol, out = ROOT / "egs/TEMPLATE/conf/protocols/vpc2024.yaml", tmp_path / "out"
    results = recipe / "exp/emotion_sets/results"
    accepts(report_challenge, protocol, results, "--of-system", "theirs", "--out", out)
    told = json.loads((results / "run.json").read_text())["origin"]["command"]
    assert told == " ".join(command)  # it ended behind the folder
    text = (out / "result_for_rank_theirs").read_text()
    assert "UAR ACC_sad ACC_neu ACC_ang ACC_hap" in " ".join(text.split())
    # The model knows neutral and happiness: of each fold it can have one of two right.
    rows = [line.split() for line in text.splitlines() if "IEMOCAP" in line]
    assert [row[3] for row in rows] == ["anon", "original"] and rows[0][5] == rows[0][7] == "0.0"
