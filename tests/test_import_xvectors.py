"""x-vectors of another toolkit: steps/import_xvectors.py, `given:<folder>`, and egs/vpc2020."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from steps.import_xvectors import main
from tests.corpus_trees import ROOT, make_recipe, prepare
from tests.recipes import run_words
from tests.refusals import accepts, refuses_words
from utils.archives import read_vectors, write_archive
from utils.cli import LossError
from utils.datadir import write_data_dir
from utils.tables import write_map

SETS = ("libri_test_enrolls", "libri_test_trials_f", "libri_test_trials_m")


def write_xvectors(folder: Path, utts: list[str]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    vectors = {utt: rng.standard_normal(3).astype(np.float32) for utt in utts}
    write_archive(folder / "xvector", vectors)
    return vectors


def write_data(folder: Path, spk2utt: dict[str, list[str]], genders: dict[str, str]) -> None:
    utts = {utt: spk for spk, of in spk2utt.items() for utt in of}
    durations = dict.fromkeys(utts, "4.0")
    write_data_dir(folder, {"utt2spk": utts, "spk2gender": genders, "utt2dur": durations})


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_data(tmp_path / "data", {"a": ["a-1", "a-2"], "b": ["b-1"]}, {"a": "f", "b": "m"})
    return tmp_path / "data"


def test_vectors_of_the_data_are_taken_and_no_others(data, tmp_path):
    given = write_xvectors(tmp_path / "given", ["b-1", "c-1", "a-2", "a-1"])
    (tmp_path / "given/xvector.scp").write_text("a-1 elsewhere/xvector.ark:4\n")  # not to be read
    accepts(main, tmp_path / "given", data, tmp_path / "out")
    taken = read_vectors(tmp_path / "out/xvector.scp")
    assert list(taken) == ["a-1", "a-2", "b-1"]
    for utt, vector in taken.items():
        np.testing.assert_array_equal(vector, given[utt])


def test_what_is_missing_is_named(data, tmp_path):
    write_xvectors(tmp_path / "given", ["a-1", "b-1"])
    command = (tmp_path / "given", data, tmp_path / "out")
    refuses_words("a-2", main, *command, kind=LossError)
    assert not (tmp_path / "out/xvector.scp").exists()
    accepts(main, "--allow-loss", 1, *command)
    assert list(read_vectors(tmp_path / "out/xvector.scp")) == ["a-1", "b-1"]
    refuses_words("neither", main, data, data, tmp_path / "out")


def write_corpus(root: Path) -> None:
    """Ten speakers of each gender in VoicePrivacy's layout, five utterances each."""
    of = {g: {f"{g}{n}": [f"{g}{n}-{u}" for u in range(5)] for n in range(10)} for g in "fm"}
    everybody = of["f"] | of["m"]
    parts = {
        SETS[0]: {spk: utts[:2] for spk, utts in everybody.items()},
        SETS[1]: {spk: utts[2:] for spk, utts in of["f"].items()},
        SETS[2]: {spk: utts[2:] for spk, utts in of["m"].items()},
    }
    for name, spk2utt in parts.items():
        write_data(root / "data" / name, spk2utt, {spk: spk[0] for spk in spk2utt})
        utts = [utt for of_one in spk2utt.values() for utt in of_one]
        write_xvectors(root / "xvectors" / name, utts)
        if name == SETS[0]:
            (root / "data" / name / "enrolls").write_text("".join(f"{utt}\n" for utt in utts))
        else:
            kinds, pairs = ("nontarget", "target"), product(spk2utt, utts)
            trials = {f"{spk} {utt}": kinds[utt.startswith(f"{spk}-")] for spk, utt in pairs}
            write_map(root / "data" / name / "trials", trials, blanks=True)


@pytest.mark.slow
def test_public_xvectors_are_prepared_and_compared(tmp_path):
    write_corpus(tmp_path / "corpus")
    recipe = make_recipe(tmp_path / "recipe", "vpc2020")
    (recipe / "generators.sh").symlink_to(ROOT / "egs/TEMPLATE/generators.sh")
    # Relative links of the corpus do not hold here.
    for link in [p for p in (recipe / "conf").iterdir() if p.is_symlink()]:
        link.unlink()
        link.symlink_to(ROOT / "egs/TEMPLATE/conf" / link.name)
    prepare(recipe, "--corpus", tmp_path / "corpus")
    command = ["./generators.sh", "--nj", "1", "--generators", "random average", "--sizes", "20"]
    run_words([*command, "--vectors", "5"], 0, cwd=recipe)
    table = (recipe / "exp/generators/given:tdnn/results/RESULTS.md").read_text()
    assert "| real | real | 20 |" in table
