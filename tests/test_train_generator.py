"""Training of generators: resuming to the bit, checks that fail, and the programs around it."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from steps.generate_speakers import main as generate
from steps.generators.idmap import MlpTrainer, WganTrainer
from steps.generators.idmap_diff import DiffTrainer
from steps.generators.training import make_training_vectors, problem_of, train_generator
from steps.measure_capacity import main as measure
from steps.train_generator import main as train
from tests.refusals import accepts, refuses, refuses_words
from tests.world import assert_same_network, stopped_at, training_vectors
from utils.archives import read_vectors, write_archive
from utils.cli import LossError
from utils.tables import write_file, write_map

SMALL = {"identity": 24, "width": 32}
LOOP = {"steps": 60, "log_every": 7, "valid_every": 25, "checkpoint_every": 10}
RATE = {"learning_rate": 0.003}
MLP = {"generator": "idmap_mlp", "network": SMALL, "training": {**LOOP, **RATE}}
DIFF = {
    "generator": "idmap_diff",
    "network": {**SMALL, "sizes": [24, 16, 8]},
    "training": {**LOOP, **RATE},
}
WGAN = {"generator": "wgan", "network": {"noise": 8}, "training": {**LOOP, "batch": 16}}
GAN = {**MLP, "training": {**MLP["training"], "loss": "wgan_qc", "identities": 4}}


DATA = training_vectors(each=4)


def steps(values: dict, n: int) -> dict:
    return {**values, "training": {**values["training"], "steps": n}}


def run(values: dict, out: Path) -> None:
    train_generator(values, "conf", DATA, out, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "trainer"),
    [(MLP, MlpTrainer), (DIFF, DiffTrainer), (GAN, MlpTrainer), (WGAN, WganTrainer)],
    ids=["mlp", "diff", "mlp wgan_qc", "wgan"],
)
@pytest.mark.usefixtures("few_indices")
def test_a_stopped_training_ends_with_the_same_bits(tmp_path, values, trainer, monkeypatch):
    monkeypatch.setattr("steps.generators.training.problem_of", lambda *_: "")
    run(values, tmp_path / "whole")
    with stopped_at(37, trainer):
        run(values, tmp_path / "parts")
    assert not (tmp_path / "parts" / "final.pt").exists()
    run(values, tmp_path / "parts")
    assert_same_network(tmp_path / "whole", tmp_path / "parts")
    tables = [(tmp_path / name / "training.tsv").read_text() for name in ("whole", "parts")]
    without_times = [re.sub(r"(?m)^(\S+)\t\S+", r"\1", table) for table in tables]
    assert without_times[0] == without_times[1]


def test_a_training_is_prolonged_and_its_table_is_readable(tmp_path):
    run(MLP, tmp_path)
    run(steps(MLP, 80), tmp_path)
    run(steps(MLP, 80), tmp_path / "whole")
    assert_same_network(tmp_path, tmp_path / "whole")
    header, *rows = (tmp_path / "training.tsv").read_text().splitlines()
    names = header.lstrip("#").split("\t")
    assert names[:5] == ["step", "cpu_seconds", "loss", "cosine", "distance"]
    assert {"norm_ratio", "cosine_seen", "cosine_unseen"} <= set(names)
    cells = [dict(zip(names, row.split("\t"), strict=True)) for row in rows]
    checked = [row["step"] for row in cells if row["norm_ratio"]]
    assert checked == ["25", "50", "60", "75", "80"]
    assert float(cells[-1]["loss"]) < 0.5 * float(cells[0]["loss"])
    said = r"training.steps: 70, but it is at step 80; remove"
    refuses(said, run, steps(MLP, 70), tmp_path)


def test_norms_out_of_bounds_fail_loudly(tmp_path):
    values = {**DIFF, "training": {**steps(DIFF, 20)["training"], "learning_rate": 0.3}}
    refuses(r"times the norm of real ones.*raise training.steps", run, values, tmp_path)
    assert not (tmp_path / "final.pt").exists()
    fine = {"norm_ratio": 0.3, "norm_ratio_seen": 0.9}
    assert problem_of(fine, (0.05, 2.0)) == ""
    assert "unseen" in problem_of({**fine, "norm_ratio": 2.1}, (0.05, 2.0))
    assert "training speakers'" in problem_of({**fine, "norm_ratio_seen": 0.4}, (0.05, 2.0))
    assert problem_of({**fine, "norm_ratio": float("nan")}, (0.05, 2.0))


def test_a_loss_that_is_no_number_stops_the_training(tmp_path):
    values = {**MLP, "training": {**MLP["training"], "learning_rate": 1e20}}
    refuses(r"is (nan|inf) at step \d+: the training has failed", run, values, tmp_path)


def test_means_are_by_speaker_in_c_order():
    made = make_training_vectors(
        {"u3": np.float32([1, 0]), "u1": np.float32([3, 0]), "u2": np.float32([0, 4])},
        {"u1": "b", "u2": "B", "u3": "b"},
    )
    assert made.speakers == ("B", "b") and made.dimension == 2
    np.testing.assert_array_equal(made.means, [[0, 4], [2, 0]])
    assert made.norm == 3.0
    zero = {u: np.zeros(2, np.float32) for u in "ab"}
    one = dict.fromkeys("ab", "a")
    refuses("1 training speakers: at least 2", make_training_vectors, zero, one)
    refuses("are zero", make_training_vectors, zero, {"a": "a", "b": "b"})


def write_inputs(folder: Path) -> None:
    utts = (f"{DATA.speakers[label]}-{n % 4}" for n, label in enumerate(DATA.labels))
    made = dict(zip(utts, DATA.vectors, strict=True))
    write_archive(folder / "xvectors" / "xvector", made)
    write_map(folder / "data/utt2spk", {utt: utt[:3] for utt in made})
    (folder / "conf.yaml").write_text(yaml.safe_dump(MLP))


def test_the_programs_train_generate_and_measure(tmp_path, run_program, capsys):
    write_inputs(tmp_path)
    arguments = (tmp_path / "conf.yaml", tmp_path / "xvectors", tmp_path / "data")
    done = run_program("steps/train_generator.py", *arguments, tmp_path / "g", status=0)
    assert "check: norm_ratio " in done.stderr and "auxiliary_share" in done.stderr
    known = yaml.safe_load((tmp_path / "g" / "generator.yaml").read_text())["trained"]
    assert (known["speakers"], known["utterances"], known["dimension"]) == (12, 48, 16)

    system = tmp_path / "system.yaml"
    asked = {"name": "idmap_mlp"}
    system.write_text(yaml.safe_dump({"anonymiser": "voice_conversion", "generator": asked}))
    for level, n in (("spk", 12), ("utt", 48)):
        system.write_text(yaml.safe_dump({"generator": asked, "level": level, "gender": "any"}))
        out = tmp_path / level
        accepts(generate, "--generator", tmp_path / "g", system, tmp_path / "data", out)
        assert f"made {n} pseudo-speakers for 48 utterances" in capsys.readouterr().out
        made = read_vectors(out / "xvector.scp")
        assert len(made) == 48 and len({vector.tobytes() for vector in made.values()}) == n
        header, *rows = (out / "pseudo.tsv").read_text().splitlines()
        assert header == "#utt\tkey\tidentity_index\tnorm_ratio\ttries\tnearest\tseconds"
        assert len({row.split("\t")[2] for row in rows}) == n
        assert json.loads((out / "conf.json").read_text())["level"] == level

    options = ("--sizes", "100", "2000", "--threshold", "0.5", "--")
    accepts(measure, *options, tmp_path / "g", tmp_path / "capacity")
    rows = [line.split("\t") for line in (tmp_path / "capacity").read_text().splitlines()[1:]]
    assert [row[:2] for row in rows] == [
        *([of, n] for of in ("unseen", "calibrated") for n in ("100", "2000")),
        ["seen", "12"],
        *(["mixed", n] for n in ("100", "2000")),
    ]
    assert abs(float(rows[0][2]) - float(rows[1][2])) < 0.08  # of new indices: flat


@pytest.mark.parametrize("conf", [MLP, {"generator": "psd"}], ids=["network", "psd"])
def test_a_generator_was_trained_on_tested_speakers(tmp_path, conf):
    write_inputs(tmp_path)
    (tmp_path / "conf.yaml").write_text(yaml.safe_dump(conf))
    write_file(tmp_path / "test" / "utt2spk", "u1 other\nu2 s03\n")
    names = ("conf.yaml", "xvectors", "data", "g")
    command = ["--not-speakers-of", tmp_path / "test", *(tmp_path / name for name in names)]
    refuses_words(r"data: speaker s03 \(1 in all\) is also in .*test", train, *command)
    assert not (tmp_path / "g").exists()


def test_bad_input_is_one_line(tmp_path):
    write_inputs(tmp_path)
    conf, xvectors = tmp_path / "conf.yaml", tmp_path / "xvectors"
    with (tmp_path / "data" / "utt2spk").open("a") as stream:
        stream.write("s99-0 s99\n")
    words = (conf, xvectors, tmp_path / "data", tmp_path / "g")
    said = r"1 of 49 utterances have no x-vector \(s99-0\)"
    refuses_words(said, train, *words, kind=LossError)
    assert not (tmp_path / "g").exists()
    conf.write_text("generator: idmap\n")
    said = "generator: 'idmap' is unknown; known: idmap_mlp"
    refuses_words(said, train, "--allow-loss", "1", *words)
