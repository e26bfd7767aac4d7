"""CONTRIBUTING's table of what is added where, with a toy one of each row."""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from torch import Tensor, nn

from local.plan import evaluators
from local.plan.attacks import find_emotions
from local.plan.needs import find_recogniser
from steps import decode, recognise_emotion, score_trials
from steps.anonymisers import registry as anonymisers
from steps.anonymisers.registry import Anonymiser, Description, OutputLevel
from steps.asr import recognisers
from steps.content import extractors
from steps.emotion import functionals as emotions
from steps.emotion.recognisers import RECOGNISERS, EmotionKind
from steps.generators import base as generators
from steps.generators import training as trained
from steps.generators.base import Wanted
from steps.generators.idmap import MlpTrainer
from steps.generators.pool import PoolGenerator
from steps.sources import SourceSpeaker, VoiceKey
from steps.speaker import config, encoders, kinds
from steps.speaker.config import EncoderConfig
from steps.speaker.network import EncoderNetwork
from steps.synthesis import base as synthesisers
from steps.training.settings import read_config
from tests.corpus_trees import ROOT, write_audio
from tests.recipes import link, run_words
from tests.refusals import accepts, refuses, refuses_words
from tests.scored import write_lists
from tests.test_compute_metrics import leakage_files
from tests.test_house import check_links
from tests.world import run_of, training_vectors
from utils.archives import write_archive
from utils.datadir import load_data_dir
from utils.settings import Part
from utils.tables import read_map, write_map

KEY = VoiceKey("spk", ("set", "speaker"))


@dataclass(frozen=True)
class Softer:
    anonymiser: str
    by: Part = 0.5


class ToyAnonymiser(Anonymiser):
    kind = Softer
    level, is_random, output = "const", False, OutputLevel()

    def transform(self, wave: np.ndarray, *_: object) -> tuple[np.ndarray, dict]:
        return wave * self.given.by, {}


@dataclass(frozen=True)
class First:
    name: str


class ToyGenerator(PoolGenerator):
    kind = First

    def generate(self, wanted: Wanted) -> tuple[np.ndarray, dict]:
        return self.pool.vectors[0], {}


class ToyTrainer(MlpTrainer):
    """As IDMap's; its own name is all that is new."""


class ToyEncoder(nn.Module):
    """The mean of the features is the vector."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(config.features.bins))

    def forward(self, features: Tensor) -> Tensor:
        return (features * self.scale).mean(dim=1, keepdim=True)


class ToyBackend:
    dim = None

    def left(self, vectors: np.ndarray, counts: np.ndarray) -> np.ndarray:
        return vectors

    def right(self, vectors: np.ndarray) -> np.ndarray:
        return vectors


class ToyRecogniser:
    def __init__(self, word: str) -> None:
        self.settings, self.word = {"recogniser": "toy"}, word

    def recognise(self, utt: str, samples: np.ndarray) -> str:
        return self.word


def toy_emotions(data: Path, **_: object) -> emotions.Recognised:
    utts = load_data_dir(data).utt2spk
    return pd.DataFrame({"glad": 0.75, "sad": 0.25}, list(utts)), {}


class ToyContent:
    width, hop, first, digest = 2, 160, 80, "toy"

    def __init__(self, device: str) -> None:
        pass

    def __call__(self, wave: np.ndarray) -> np.ndarray:
        return np.zeros((len(wave) // self.hop, 2), np.float32)


class ToySynthesiser:
    @classmethod
    def load(cls, folder: Path) -> "ToySynthesiser":
        return cls()


def test_an_anonymiser_is_a_class_a_line_and_a_yaml(tmp_path, monkeypatch):
    monkeypatch.setitem(anonymisers.KINDS, "toy", f"{__name__}:ToyAnonymiser")
    path = tmp_path / "toy.yaml"
    path.write_text("anonymiser: toy\nby: 0.25\n")
    assert anonymisers.describe_system(path) == Description("const")
    made = anonymisers.load_anonymiser(path)
    assert made.transform(np.ones(2), KEY, SourceSpeaker("a"))[0].tolist() == [0.25, 0.25]
    path.write_text("anonymiser: toy\nby: 2\n")
    refuses("by: 2; above 0 and at most 1 is expected", anonymisers.load_anonymiser, path)


def test_a_generator_is_a_class_a_line_and_settings(monkeypatch):
    monkeypatch.setitem(generators.GENERATORS, "toy", f"{__name__}:ToyGenerator")
    made = generators.load_generator({"name": "toy"}, run_of())
    made.fit(np.eye(2), ["b", "a"], [None, None])
    assert made.generate(Wanted(KEY))[0].tolist() == [0.0, 1.0]  # a comes first


@pytest.mark.usefixtures("few_indices")
def test_a_trained_generator_is_a_class_a_line_and_a_yaml(tmp_path, monkeypatch):
    monkeypatch.setitem(trained.TRAINERS, "toy", f"{__name__}:ToyTrainer")
    training = {"steps": 60, "learning_rate": 0.003}
    network = {"identity": 24, "width": 32}
    values = {"generator": "toy", "network": network, "training": training}
    trained.train_generator(values, "toy.yaml", training_vectors(), tmp_path, seed=0)
    made = trained.load_trained(tmp_path, "toy")
    assert made.model.vectors(np.arange(3)).shape == (3, 16)


def test_a_synthesiser_is_a_class_a_line_and_a_yaml(tmp_path, monkeypatch):
    monkeypatch.setitem(synthesisers.STRUCTURES, "toy", f"{__name__}:ToySynthesiser")
    (tmp_path / "final.pt").touch()
    (tmp_path / "synthesiser.yaml").write_text(yaml.safe_dump({"synthesiser": "toy"}))
    assert type(synthesisers.load_synthesiser(tmp_path)).__name__ == "ToySynthesiser"


def test_an_encoder_is_a_class_a_line_and_a_yaml(tmp_path, monkeypatch):
    monkeypatch.setitem(config.STRUCTURES, "toy", f"{__name__}:ToyEncoder")
    layers = {"channels": [1], "kernel_sizes": [1], "dilations": [1], "embedding": 80}
    plain = {"encoder": "toy", "network": layers, "training": {"steps": 1}}
    (tmp_path / "encoder.yaml").write_text(yaml.safe_dump(plain))
    network = EncoderNetwork(read_config(EncoderConfig, tmp_path / "encoder.yaml"))
    torch.save(network.state_dict(), tmp_path / "final.pt")
    noise = np.random.default_rng(0).normal(size=16000)
    assert encoders.load_encoder(str(tmp_path)).embed(noise).shape == (80,)
    (tmp_path / "encoder.yaml").write_text(yaml.safe_dump({**plain, "encoder": "tot"}))
    said = "ecapa, xvector, resemblyzer, pyannote, ecapa_dual, toy; did you mean toy"
    refuses(said, encoders.load_encoder, str(tmp_path))


def test_a_pretrained_encoder_and_content_are_a_class_and_a_line(monkeypatch):
    """An evaluator that is not trained is in --evaluators by its line alone."""
    monkeypatch.setitem(extractors.EXTRACTORS, "toy", f"{__name__}:ToyContent")
    assert extractors.load_extractor("toy")(np.zeros(320)).shape == (2, 2)
    own = kinds.EncoderKind(f"{__name__}:ToyContent", "toy", compared=False, backends=("cosine",))
    for module in (encoders, kinds, evaluators):
        monkeypatch.setattr(module, "ENCODERS", {"toy": own, **kinds.ENCODERS})  # <folder> is last
    assert type(encoders.load_encoder("toy")).__name__ == "ToyContent"
    made = evaluators.find_evaluator("toy/cosine")
    assert (made.encoder.kind, made.scorer) == (own, "cosine")
    refuses("'toy/plda'; toy takes toy/cosine", evaluators.find_evaluator, "toy/plda")


def test_a_back_end_is_a_class_and_a_line(tmp_path, monkeypatch):
    monkeypatch.setitem(kinds.BACKENDS, "toy", kinds.BackendKind(f"{__name__}:ToyBackend"))
    for name, stem in (("a", "spk_xvector"), ("u", "xvector")):
        write_archive(tmp_path / stem, {name: np.float32([1, 2])})
    write_map(tmp_path / "num_utts.ark", {"a": 1})
    (tmp_path / "trials").write_text("a u target\n")
    words = [tmp_path, tmp_path, tmp_path / "trials", tmp_path / "scores"]
    accepts(score_trials.main, "--backend", "toy", *words)
    assert (tmp_path / "scores").read_text() == "a u 5.0\n"


def test_a_recogniser_is_a_class_and_a_line(tmp_path, monkeypatch, make_data_dir):
    kind = recognisers.RecogniserKind(f"{__name__}:ToyRecogniser")
    monkeypatch.setitem(recognisers.RECOGNISERS, "toy:<word>", kind)
    assert find_recogniser("toy:so") == (kind, "")
    data, out = make_data_dir(tmp_path / "data"), tmp_path / "out"
    accepts(decode.main, "toy:so", data, out)
    assert set(read_map(out / "text").values()) == {"so"}
    words = ("--language", "de", "toy:so", data, out)
    refuses_words("toy:so: takes no --language", decode.main, *words)


def test_a_recogniser_of_emotions_is_a_function_and_a_line(tmp_path, monkeypatch, make_data_dir):
    kind = EmotionKind(f"{__name__}:toy_emotions")
    monkeypatch.setitem(RECOGNISERS, "toy", kind)
    assert find_emotions("toy") == kind
    data, out = make_data_dir(tmp_path / "data"), tmp_path / "out"
    accepts(recognise_emotion.main, "toy", data, out)
    assert set(read_map(out / "emotions").values()) == {"glad"}


# Files of a metric and of a family of figures, beside their tests: lines before one that is there.
CARD = {"": "# `toy`: a toy\n\n**Question.** How?\n"}
TITLE = {"  eer: [": '  toy: [a toy, "%", 1, 1, toy]'}
TABLE = "  toys: {title: Toys, family: toy, of: OF, counts: {}, columns: [toy]}"
METRIC = {
    "local/metrics/verification.py": {'            "eer": detection': '            "toy": 0.25,'},
    "local/metrics/measures.yaml": TITLE | {"      - linkability": "      - toy"},
    "docs/metrics/toy.md": CARD,
}
FAMILY = {
    "local/metrics/toy.py": {"": "def toy(*sides, **words): return {'toy': 0.25}"},
    "local/metrics/measures.yaml": TITLE | {"  attacks:": TABLE},
    "docs/metrics/toy.md": CARD,
}
USE = """
import json, sys
from pandas import DataFrame
from local import compute_metrics
from local.report import frame, gather, tables
family, table, out, *words = sys.argv[1:]
assert compute_metrics.main([family, *words, out]) == 0
who = "ignorant" * (table == "attacks")
where = dict(zip(frame.WHERE, ("c", "e_f", "f", "b2", family, who, "e")))
rows, _ = gather._rows(json.load(open(out)), where | {"condition": "OA", "settings": "s"})
figures = frame.with_numbers(DataFrame(rows, columns=[*frame.METRICS], dtype=object))
print(tables.tabulate(tables.SPECS[table], figures).markdown(), tables.cards_table().markdown())
"""
PLAN = """
import os, sys
from pathlib import Path
from tests.plans import make_corpus, plan_case
make_corpus(Path.cwd())
print(plan_case("encoders"))
"""


@pytest.mark.parametrize(
    ("family", "table", "of", "files"),
    [("verification", "attacks", "", METRIC), ("toy", "toys", "scores", FAMILY),
     ("toy", "toys", "vectors", FAMILY)],
)  # fmt: skip
def test_a_metric_and_a_family_are_three_files_and_a_test(tmp_path, family, table, of, files):
    """The index of the cards, which a program writes, is none of them."""
    house, work = tmp_path / "house", tmp_path / "work"
    for name in ("local", "docs/metrics"):
        shutil.copytree(ROOT / name, house / name)
    for name in ("steps", "utils", "tests", "models", "egs"):
        (house / name).symlink_to(ROOT / name)
    assert len(files) == 3
    for name, lines in files.items():
        text = (house / name).read_text() if (house / name).is_file() else ""
        for before, line in lines.items():
            assert before in text
            text = text.replace(before, f"{line}\n{before}".replace("OF", of), 1)
        (house / name).write_text(text)
    lists = write_lists(tmp_path, [float(i) for i in range(30)], [i - 9.0 for i in range(30)])
    speakers = tmp_path / "utt2spk"
    speakers.write_text("".join(f"t{i} s{i % 9}\n" for i in range(60)))
    if of == "vectors":
        speakers, *lists = leakage_files(tmp_path)[1:]
    work.mkdir()

    def told(program: str, *words: object) -> str:
        command = [sys.executable, "-P", "-c", program, *map(str, words)]
        return run_words(command, 0, cwd=work, env={**os.environ, "PYTHONPATH": str(house)}).stdout

    shown = told(USE, family, table, work / "out.json", "--utt2spk", speakers, *lists)
    assert "a toy (%)" in shown.splitlines()[0]
    assert "25.0" in shown.splitlines()[2]
    assert "| [a toy](toy.md) | How? | `toy` |" in shown
    if of:
        assert f"local/compute_metrics.py {family} --utt2spk" in told(PLAN)


PREPARE = """#!/usr/bin/env bash
set -euo pipefail
corpus=
nj=1
download=false
seed=0
. ./path.sh
. utils/parse_options.sh
. utils/corpus.sh
no_download "a toy"
use_corpus "the folder of its audio"
make_work
for file in "$corpus"/*.wav; do
  utt=${file##*/} utt=${utt%.wav}
  printf '%s\t%s\t%s\t%s\n' "$utt" "${utt%-*}" "${utt:0:1}" "$file"
done | cat <(printf 'utt\tspk\tgender\taudio\n') - >"$work/all.tsv"
local/make_data_dir.py --nj "$nj" "$work/all.tsv" "$work/all"
local/make_trials.py --seed "$seed" --enrol-utts 1 --speakers 2 --rest data/train \\
  "$work/all" data/toy_test
"""


@pytest.mark.slow
def test_a_corpus_is_a_prepare_sh_and_a_conf(tmp_path):
    """By the commands of egs/README.md, in a house that has no other."""
    link(tmp_path / "egs/TEMPLATE", ROOT / "egs/TEMPLATE")
    for name in ("steps", "utils", "local", "path.sh", "cmd.sh", ".venv"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "recordings.tsv").write_text("file\tspeaker\tsex\na.wav\ta\tf\nb.wav\tb\tm\n")
    text = (ROOT / "egs/README.md").read_text().partition("## Adding a corpus")[2]
    command = text.split("```")[1].partition("\ncd ")[0]  # and not its run
    run_words(["bash", "-euc", command], 0, cwd=tmp_path)
    corpus = tmp_path / "egs/mycorpus"
    check_links(corpus)  # it had no generators
    (corpus / "prepare.sh").write_text(PREPARE)
    conf = corpus / "conf/recipe.conf"
    conf.write_text(conf.read_text() + "\nevaluation=toy_test\n")
    for speaker in ("f1", "f2", "f3", "m1", "m2", "m3"):
        for number in (1, 2, 3):
            write_audio(tmp_path / f"audio/{speaker}-{number}.wav")
    command = ["./run.sh", "--stop-stage", "0", "--corpus", str(tmp_path / "audio")]
    run_words(command, 0, cwd=corpus)
    assert len(load_data_dir(corpus / "data/toy_test_enrolls").utt2spk) == 4
    assert (corpus / "data/toy_test_trials_f/trials").read_text().count(" target") == 4
