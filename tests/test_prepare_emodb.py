"""egs/emodb/prepare.sh on small trees and on the real excerpt."""

from collections import Counter
from pathlib import Path

import pytest

from tests.corpus_trees import make_recipe, prepare, table, write_audio
from utils.datadir import load_data_dir

SPEAKERS = ("03", "08", "09", "10", "12", "16")
OPTIONS = ("--speakers", 2, "--enrol-utts", 2)


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    return make_recipe(tmp_path / "recipe", "emodb")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    root = tmp_path / "emodb"
    for spk in SPEAKERS:
        for name in ("a01Fa", "a01Wb", "b10Na", "b10Tc", "a05Lb"):
            write_audio(root / f"wav/{spk}{name}.wav")
    return root


def test_sets(recipe: Path, corpus: Path) -> None:
    done = prepare(recipe, "--corpus", corpus, *OPTIONS)
    assert done.returncode == 0, done.stderr
    assert "left out: 6 utterances of boredom (--emotions)" in done.stderr
    sets = (
        "train",
        *(f"emodb_test_{name}" for name in ("enrolls", "trials_f", "trials_m", "trials_mixed")),
    )
    emotion: dict[str, str] = {}
    for name in sets:
        emotion |= table(recipe / "data" / name / "utt2emotion")
    assert len(emotion) == 24
    assert (emotion["03-03a01Fa"], emotion["09-09a01Wb"]) == ("happiness", "anger")
    assert (emotion["08-08b10Na"], emotion["10-10b10Tc"]) == ("neutral", "sadness")
    assert sorted(table(recipe / "data/train/spk2gender").values()) == ["f", "m"]
    data = load_data_dir(recipe / "data/emodb_test_trials_f")
    assert set(data.spk2utt) <= {"08", "09", "16"}
    assert [len(utts) for utts in data.spk2utt.values()] == [2, 2]
    texts = table(recipe / "data/train/text").values()
    assert "Der Lappen liegt auf dem Eisschrank." in texts


@pytest.mark.slow
def test_all_emotions(recipe: Path, corpus: Path) -> None:
    done = prepare(recipe, "--corpus", corpus, *OPTIONS, "--emotions", "boredom anger")
    assert done.returncode == 2  # two utterances a speaker: two are enrolled, none is left
    assert "only 0 have enough utterances" in done.stderr
    for spk in SPEAKERS:
        write_audio(corpus / f"wav/{spk}a07La.wav")
    done = prepare(recipe, "--corpus", corpus, *OPTIONS, "--emotions", "boredom anger")
    assert done.returncode == 0, done.stderr
    assert set(table(recipe / "data/train/utt2emotion").values()) == {"boredom", "anger"}


def test_what_is_not_emodb(recipe: Path, corpus: Path, tmp_path: Path) -> None:
    def error(*options: object, status: int = 2) -> str:
        done = prepare(recipe, *options)
        assert done.returncode == status, done.stderr
        assert not (recipe / "data/train").exists()
        return done.stderr

    assert "--corpus is missing" in error()
    assert "no such folder" in error("--corpus", tmp_path / "nowhere")
    assert "README.md" in error("--download", "true")
    assert "'joy'; known: anger" in error("--corpus", corpus, "--emotions", "joy")
    assert "wav: no such folder" in error("--corpus", corpus / "wav")
    write_audio(corpus / "wav/07a01Fa.wav")
    assert "speaker 07 is not in the list in prepare.sh" in error("--corpus", corpus, status=3)
    write_audio(corpus / "wav/03a03Fa.wav")
    (corpus / "wav/07a01Fa.wav").unlink()
    assert "03-03a03Fa: there is no transcript" in error("--corpus", corpus, status=3)
    (corpus / "wav/03a03Fa.wav").rename(corpus / "wav/03a01Xa.wav")
    assert "03-03a01Xa: its emotion is ''" in error("--corpus", corpus, status=3)
    (corpus / "wav/03a01Xa.wav").rename(corpus / "wav/hello.wav")
    assert "no <speaker><sentence><emotion><version>" in error("--corpus", corpus)


@pytest.mark.corpora
def test_the_excerpt(recipe: Path, corpora: Path) -> None:
    done = prepare(recipe, "--corpus", corpora / "emodb")
    assert done.returncode == 0, done.stderr
    assert "263 read / 263 written / 0 skipped; 8 speakers, 0.202 h" in done.stdout
    sets = [recipe / "data" / name for name in ("train", "emodb_test_enrolls")]
    sets += [recipe / f"data/emodb_test_trials_{gender}" for gender in "fm"]
    counted = Counter(e for path in sets for e in table(path / "utt2emotion").values())
    assert counted == {"anger": 100, "neutral": 63, "happiness": 55, "sadness": 45}
