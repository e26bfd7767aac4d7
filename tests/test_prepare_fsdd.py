"""egs/fsdd/prepare.sh on small trees and on the real excerpt; lists of one gender."""

from pathlib import Path

import pytest

from local.protocols.trials import Rules, check_lists, make_lists
from tests.corpus_trees import make_recipe, prepare, table, write_audio
from utils.cli import UserError
from utils.datadir import load_data_dir

SPEAKERS = ("ann_b", "jackson", "theo")
OPTIONS = ("--speakers", 2, "--enrol-utts", 2)
METADATA = """metadata = {
    'ann_b': {
        'gender': 'male',
        'accent': 'USA/neutral',
    },
    'jackson': {'gender': 'male', 'language': 'english'},
    'theo': {
        'gender': 'male',
    },
}
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    return make_recipe(tmp_path / "recipe", "fsdd")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    root = tmp_path / "fsdd"
    for spk in SPEAKERS:
        for digit in (0, 7):
            for index in (0, 11):
                write_audio(root / f"recordings/{digit}_{spk}_{index}.wav")
    (root / "metadata.py").write_text(METADATA)
    return root


def error(recipe: Path, *options: object) -> str:
    done = prepare(recipe, *options)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.mark.parametrize("genders", ["metadata.py", "speakers.tsv"])
def test_sets(recipe: Path, corpus: Path, genders: str) -> None:
    if genders == "speakers.tsv":
        (corpus / "metadata.py").unlink()
        lines = ["speaker\tgender\taccent", *(f"{spk}\tm\tUSA neutral" for spk in SPEAKERS)]
        (corpus / "speakers.tsv").write_text("\n".join(lines) + "\n")
    done = prepare(recipe, "--corpus", corpus, *OPTIONS)
    assert done.returncode == 0, done.stderr
    made = {path.name for path in (recipe / "data").iterdir()}
    assert made == {"train", "fsdd_test_enrolls", "fsdd_test_trials_m"}
    seen: dict[str, str] = {}
    for name in made:
        seen |= table(recipe / "data" / name / "text")
        assert set(table(recipe / "data" / name / "spk2gender").values()) == {"m"}
    assert len(seen) == 12
    assert (seen["ann_b-0-11"], seen["theo-7-0"]) == ("ZERO", "SEVEN")
    # 2 speakers with 2 trial utterances each, in full product
    assert len(load_data_dir(recipe / "data/fsdd_test_trials_m").trials or []) == 8


def test_a_woman_only_trains_and_somebody_unknown_is_named(recipe: Path, corpus: Path) -> None:
    (corpus / "metadata.py").write_text(METADATA.replace("'male', 'lang", "'female', 'lang"))
    done = prepare(recipe, "--corpus", corpus, *OPTIONS)
    assert done.returncode == 0, done.stderr
    assert table(recipe / "data/train/spk2gender") == {"jackson": "f"}
    (corpus / "metadata.py").write_text(METADATA.replace("'theo'", "'other'"))
    done = prepare(recipe, "--corpus", corpus, *OPTIONS)
    assert done.returncode == 3
    assert "speaker theo is not in " in done.stderr


def test_folders_that_are_not_fsdd(recipe: Path, corpus: Path, tmp_path: Path) -> None:
    assert "--corpus is missing" in error(recipe)
    assert "no such folder" in error(recipe, "--corpus", tmp_path / "nowhere")
    assert "README.md" in error(recipe, "--download", "true")
    assert "recordings: no such folder" in error(recipe, "--corpus", corpus / "recordings")
    (corpus / "metadata.py").unlink()
    assert "neither speakers.tsv nor metadata.py" in error(recipe, "--corpus", corpus)


def test_lists_of_one_gender() -> None:
    utt2spk = {f"{spk}-{n}": spk for spk in ("m1", "m2") for n in range(3)}
    rules = Rules(enrol_utts=2, genders=("m",))
    lists = make_lists(utt2spk, {"m1": "m", "m2": "m"}, rules, 0)
    check_lists(lists)
    assert list(lists.trials) == ["m"]
    assert len(lists.trials["m"]) == 4
    with pytest.raises(UserError, match="m2: the gender is f, but lists are made for m only"):
        make_lists(utt2spk, {"m1": "m", "m2": "f"}, rules, 0)


@pytest.mark.corpora
def test_the_excerpt(recipe: Path, corpora: Path) -> None:
    done = prepare(recipe, "--corpus", corpora / "fsdd")
    assert done.returncode == 0, done.stderr
    assert "300 read / 300 written / 0 skipped; 6 speakers, 0.036 h" in done.stdout
    data = load_data_dir(recipe / "data/fsdd_test_trials_m")
    assert (len(data.spk2utt), len(data.utt2spk), len(data.trials or [])) == (4, 160, 640)
