"""egs/an4/prepare.sh on small trees in AN4's layout, and on the real excerpt."""

from pathlib import Path

import pytest

from tests.corpus_trees import files, make_recipe, prepare, table, write_audio
from utils.datadir import load_data_dir

SPEAKERS = ("fash", "fjam", "fsaf2", "mblw", "mrjc2", "mtje")
SETS = (
    "train",
    "an4_test_enrolls",
    "an4_test_trials_f",
    "an4_test_trials_m",
    "an4_test_trials_mixed",
)
OPTIONS = ("--speakers", 2, "--enrol-utts", 2)


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    return make_recipe(tmp_path / "recipe", "an4")


def write_part(root: Path, part: str, speakers: tuple[str, ...], suffix: str) -> None:
    """A part of the corpus. Training transcriptions have sentence marks, test ones have not."""
    folder = "an4_clstk" if part == "train" else "an4test_clstk"
    ids, lines = [], []
    for spk in speakers:
        for number in range(1, 5):
            name = f"cen{number}-{spk}-b"
            ids.append(f"{folder}/{spk}/{name}\n")
            words = f"TWO SIX {spk.upper()}"
            marked = f"<s> {words} </s>" if part == "train" else words
            lines.append(f"{marked} ({name})\n")
            write_audio(root / "wav" / folder / spk / f"{name}{suffix}")
    (root / "etc").mkdir(exist_ok=True)
    (root / f"etc/an4_{part}.fileids").write_text("".join(ids))
    (root / f"etc/an4_{part}.transcription").write_text("".join(lines))


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    root = tmp_path / "an4"
    root.mkdir()
    write_part(root, "train", SPEAKERS, ".flac")
    return root


def error(recipe: Path, *options: object) -> str:
    done = prepare(recipe, *options)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.mark.slow
def test_sets_made_and_made_again(recipe: Path, corpus: Path) -> None:
    done = prepare(recipe, "--corpus", corpus, *OPTIONS)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (recipe / "data").iterdir()) == sorted(SETS)
    seen: list[str] = []
    for name in SETS[:-1]:  # mixed trials hold those of both genders again
        data = load_data_dir(
            recipe / "data" / name, need=("wav.scp", "utt2dur", "spk2gender", "text")
        )
        seen += data.utt2spk
        for utt, spk in data.utt2spk.items():
            assert utt.startswith(f"{spk}-cen") and utt.endswith(f"-{spk}-b")
            assert (data.text or {})[utt] == f"TWO SIX {spk.upper()}"
            assert (data.spk2gender or {})[spk] == spk[0]
    assert len(seen) == len(set(seen)) == 24  # every utterance in one set
    evaluated = set(table(recipe / "data/an4_test_enrolls/spk2gender"))
    assert sorted(spk[0] for spk in evaluated) == list("ffmm")
    assert set(table(recipe / "data/train/spk2gender")) == set(SPEAKERS) - evaluated
    before = files(recipe / "data")
    assert prepare(recipe, "--corpus", corpus, *OPTIONS).returncode == 0
    assert files(recipe / "data") == before


def test_other_formats_and_the_test_part(recipe: Path, tmp_path: Path) -> None:
    root = tmp_path / "an4"
    root.mkdir()
    write_part(root, "train", ("fash", "fjam", "mblw", "mdcs2"), ".wav")
    write_part(root, "test", ("mtje", "mmap"), ".sph")
    done = prepare(recipe, "--corpus", root, *OPTIONS)
    assert done.returncode == 0, done.stderr
    assert "left out: speaker mdcs2, 4 utterances" in done.stderr
    assert "20 read / 20 written / 0 skipped; 5 speakers" in done.stdout


def test_losses_are_named_counted_and_refused(recipe: Path, corpus: Path) -> None:
    wav = corpus / "wav/an4_clstk"
    (wav / "fash/cen1-fash-b.flac").unlink()
    write_audio(wav / "fash/cen9-fash-b.flac")  # no transcript, no file id
    write_audio(wav / "mtje/cen1-mtje-b.wav", seconds=0.0)
    (wav / "mtje/cen1-mtje-b.flac").unlink()
    (wav / "fjam").rename(wav / "xjam")
    done = prepare(recipe, "--corpus", corpus, *OPTIONS)
    assert done.returncode == 3
    assert "fash-cen1-fash-b: there is no audio file for it\n" in done.stderr
    assert "fash-cen9-fash-b: there is no transcript for " in done.stderr
    assert "mtje/cen1-mtje-b.wav has no samples (zero length)\n" in done.stderr
    assert "xjam-cen1-fjam-b: speaker xjam has gender 'x' in the first letter" in done.stderr
    assert "fjam-cen4-fjam-b: there is no audio file for it\n" in done.stderr
    assert "11 of 29 utterances cannot be used" in done.stderr
    assert not any((recipe / "data").iterdir())


def test_folders_that_are_not_an4(recipe: Path, corpus: Path, tmp_path: Path) -> None:
    assert "--corpus is missing" in error(recipe)
    assert "no such folder" in error(recipe, "--corpus", "nowhere")
    (tmp_path / "empty").mkdir()
    assert "empty/wav: no such folder" in error(recipe, "--corpus", tmp_path / "empty")
    assert "README.md" in error(recipe, "--download", "true")
    assert "4 speakers of gender f are wanted, but only 3" in error(
        recipe, "--corpus", corpus, *OPTIONS, "--speakers", 4
    )
    for path in corpus.rglob("*.flac"):
        path.rename(path.with_suffix(".raw"))
    assert "wav: holds no" in error(recipe, "--corpus", corpus)
    (corpus / "etc/an4_train.fileids").unlink()
    assert "holds neither an4_train.fileids" in error(recipe, "--corpus", corpus)


def test_same_utterance_in_two_formats(recipe: Path, corpus: Path) -> None:
    write_audio(corpus / "wav/an4_clstk/fash/cen1-fash-b.wav")
    message = error(recipe, "--corpus", corpus, *OPTIONS)
    assert "fash-cen1-fash-b: is there twice: " in message


@pytest.mark.slow
@pytest.mark.corpora
def test_the_excerpt(recipe: Path, corpora: Path) -> None:
    done = prepare(recipe, "--corpus", corpora / "an4")
    assert done.returncode == 0, done.stderr
    assert "575 read / 575 written / 0 skipped; 45 speakers, 0.444 h" in done.stdout
    train = load_data_dir(recipe / "data/train")
    assert len(train.spk2utt) == 25
    for gender in "fm":
        data = load_data_dir(recipe / f"data/an4_test_trials_{gender}")
        assert len(data.spk2utt) == 10
        assert not data.spk2utt.keys() & train.spk2utt.keys()
        assert len(data.trials or []) == 10 * len(data.utt2spk)
