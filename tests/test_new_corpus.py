"""A corpus of people's own: a table of recordings, or a Kaldi data directory, that runs."""

import shutil
from pathlib import Path

import pytest
import soundfile

from tests.corpus_trees import ROOT, prepare, table, write_audio
from tests.recipes import TEMPLATE, Done, run_recipe, run_words
from utils.tables import write_file

PEOPLE = {"Anna B": "F", "berta": "female", "C": "f", "dora": "f", "emil": "m", "fritz": "M",
          "gustav": "male", "hans": "m"}  # fmt: skip


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight people with four recordings each, the same names of files in two folders of each."""
    lines, folder = [], tmp_path_factory.mktemp("recorded")
    for speaker, sex in PEOPLE.items():
        for day in ("day 1", "day2"):
            for n in (1, 2):
                file = f"audio/{speaker}/{day}/{speaker}_{n}.{'wav' if n == 1 else 'opus'}"
                write_audio(folder / file, 1.0 if day == "day2" else 1.1)
                lines.append(f"{file}\t{speaker}\t{sex}\tWords of {n}\n")
    (folder / "mine.tsv").write_text("file\tspeaker\tsex\ttext\n" + "".join(lines))
    return folder


@pytest.fixture
def mine(recorded: Path, tmp_path: Path) -> Path:
    """A table of theirs, in a folder with a blank."""
    return shutil.copytree(recorded, tmp_path / "their speech") / "mine.tsv"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout of links, so that egs/ of the project stays as it is."""
    made = tmp_path / "project"
    (made / "egs").mkdir(parents=True)
    for name in ("utils", "local", "steps", "models", "path.sh", "cmd.sh", "egs/TEMPLATE"):
        (made / name).symlink_to(ROOT / name)
    return made


def new_corpus(root: Path, *words: object, status: int | None = 0, **more: object) -> Done:
    return run_words([str(root / "utils/new_corpus.sh"), *map(str, words)], status, **more)


@pytest.mark.slow
def test_a_table_becomes_a_corpus_that_runs(root, mine):
    """The first stages of the recipe: sets, audio, and speech that McAdams protects. People of
    another sex are a group of their own."""
    mine.write_text(mine.read_text().replace("\temil\tm\t", "\temil\tDivers\t"))
    done = new_corpus(root, "mine", mine)
    assert "32 recordings of 8 speakers (4 f, 3 m, 1 other)" in done.stdout
    folder = root / "egs/mine"
    assert 'genders="f m mixed"' in (folder / "conf/recipe.conf").read_text()
    assert {p.name for p in folder.iterdir()} == {p.name for p in (ROOT / "egs/an4").iterdir()} - {
        "README.md", "RESULTS.md", "results", "data", "exp",
    } | {"corpus"}  # fmt: skip
    assert all(path.exists() for path in folder.rglob("*"))
    options = ("--prepare-options=--enrol-utts 2", "--systems", "b2", "--nj", "1")
    run_recipe(folder, *options, "--evaluators", "resemblyzer/cosine", "--stop-stage", "1")
    assert "mine_test" in (folder / "conf/recipe.conf").read_text()
    data = {path.name: table(path / "utt2spk") for path in (folder / "data").iterdir()}
    assert {*data} == {"train", *(f"mine_test_{n}" for n in (
        "enrolls", "trials_f", "trials_m", "trials_mixed"))}  # fmt: skip
    every = {utt: spk for part in data.values() for utt, spk in part.items()}
    assert len(every) == 32 and set(every.values()) == {n.replace(" ", "_") for n in PEOPLE}
    assert "Anna_B-Anna_B-day_1-Anna_B_1" not in every and "Anna_B-day_1-Anna_B_1" in every
    genders = {}
    for part in data:
        genders |= table(folder / "data" / part / "spk2gender")
    assert genders == {n.replace(" ", "_"): "other" if n == "emil" else sex[0].lower()
                       for n, sex in PEOPLE.items()}  # fmt: skip
    tried = {n: set(data[f"mine_test_trials_{n}"].values()) for n in ("f", "m", "mixed")}
    assert "emil" in tried["mixed"] and "emil" not in tried["f"] | tried["m"]


@pytest.mark.slow
def test_the_template_is_a_recipe_for_such_a_table(tmp_path, mine):
    folder = tmp_path / "recipe"
    folder.mkdir()
    shutil.copy(TEMPLATE / "prepare.sh", folder)
    for name in ("steps", "utils", "local", "path.sh", "cmd.sh"):
        (folder / name).symlink_to(ROOT / name)
    done = prepare(folder, "--corpus", mine, "--enrol-utts", 2)
    assert "warning: data/train has 4 speakers. Attackers who train on fewer than 50" in done.stderr
    assert "--evaluators" in done.stderr
    trials = folder / "data/mycorpus_test_trials_f/trials"
    assert len(set(table(trials))) == 2 and table(folder / "data/train/text")
    # Another corpus trains: everybody is evaluated.
    shutil.copytree(folder / "data/train", tmp_path / "train")
    prepare(folder, "--corpus", mine, "--enrol-utts", 2, "--train-from", tmp_path / "train")
    assert len(set(table(trials))) == 4
    # Half of all women were wanted, also where fewer have recordings enough.
    lines = mine.read_text().splitlines(keepends=True)
    kept = [x for x in lines if not x.startswith(("audio/Anna B/day2", "audio/berta/day2"))]
    for n, sex in enumerate("ffmm"):
        write_audio(mine.parent / f"{n}.wav")
        kept.append(f"{n}.wav\tperson {n}\t{sex}\tWords\n")
    mine.write_text("".join(kept))
    done = prepare(folder, "--corpus", mine, "--enrol-utts", 2)
    assert "6 speakers have too few utterances to be evaluated" in done.stdout
    assert set(table(trials)) == {"C", "dora"}


def test_a_mistyped_sex_and_a_copy_of_a_recording(root, mine):
    """The sex stayed in recipe.conf when the table had been put right. Of a recording and its copy
    one was enrolled, and the other tried."""
    text, copy = mine.read_text(), mine.parent / "C (1).wav"
    shutil.copy(mine.parent / "audio/C/day 1/C_1.wav", copy)
    for wrong, said in (
        (text.replace("\tC\tf\t", "\tC\tw\t"), "mine.tsv: C has sex 'w'; f, m or other is"),
        (f"{text}{copy}\tC\tf\tWords\n", " is a copy of "),
    ):
        mine.write_text(wrong)
        assert said in new_corpus(root, "mine", mine, status=2).stderr
    assert not (root / "egs/mine").exists()


@pytest.mark.slow
def test_a_corrected_table_was_not_noticed(root, mine):
    """Somebody's sex was put right, and "nothing to do: all steps were up to date" was said. A
    mistyped column was passed over in silence."""
    mine.write_text(mine.read_text().replace("text", "Text", 1))
    done = new_corpus(root, "mine", mine)
    assert "mine.tsv: columns that nothing reads: Text" in done.stdout
    folder = root / "egs/mine"
    options = ("--systems=", "--prepare-options=--enrol-utts 2", "--stop-stage", "0")
    run_recipe(folder, *options)
    path = folder / "corpus/utterances.tsv"
    path.write_text(path.read_text().replace("\temil\tm\t", "\temil\tf\t"))
    assert "(corpus changed)" in run_recipe(folder, *options, "--dry-run", "full").stdout


def write_kaldi(folder: Path) -> Path:
    """Pipes, plain files and segments, of ids that do not all begin with their speaker."""
    write_audio(folder / "wav/long.wav", 4.0)
    write_audio(folder / "wav/b.flac", 1.0)
    data = folder / "data/all"
    write_file(data / "wav.scp", "r1 cat wav/long.wav |\nr2 wav/b.flac\n")
    (data / "segments").write_text("a-1 r1 0.5 1.5\na-2 r1 3.0 4.2\nx2 r2 0 -1\n")
    (data / "utt2spk").write_text("a-1 a\na-2 a\nx2 b\n")
    (data / "spk2gender").write_text("a f\nb m\n")
    (data / "spk2age").write_text("a 30\nb 41\n")
    (data / "text").write_text("a-1 one\na-2 two words\nx2 three\n")
    return data


def test_a_kaldi_directory_with_pipes_and_segments(root, tmp_path):
    data = write_kaldi(tmp_path)
    new_corpus(root, "theirs", data, cwd=tmp_path)
    corpus = root / "egs/theirs/corpus"
    rows = [line.split("\t") for line in (corpus / "utterances.tsv").read_text().splitlines()]
    assert rows[0] == ["utt", "speaker", "sex", "file", "text", "age"]
    assert rows[2] == ["a-2", "a", "f", "audio/a-2.flac", "two words", "30"]
    assert rows[3][:2] == ["b-x2", "b"]
    lengths = {p.name: soundfile.info(p).duration for p in (corpus / "audio").iterdir()}
    assert lengths == {"a-1.flac": 1.0, "a-2.flac": 1.0, "b-x2.flac": 1.0}
    source, _ = soundfile.read(tmp_path / "wav/long.wav")
    cut, _ = soundfile.read(corpus / "audio/a-1.flac")
    assert abs(cut - source[8000:24000]).max() < 1e-4
    (data / "segments").unlink()
    (data / "text").unlink(), (data / "spk2age").unlink()
    (data / "wav.scp").write_text("a-1 cat wav/long.wav |\na-2 wav/long.wav\nx2 wav/b.flac\n")
    new_corpus(root, "whole", data, cwd=tmp_path)
    new_corpus(root, "y", tmp_path / "nothing", status=2)
    lines = (root / "egs/whole/corpus/utterances.tsv").read_text().splitlines()
    assert lines[1:] == ["a-1\ta\tf\taudio/a-1.flac", f"a-2\ta\tf\t{tmp_path}/wav/long.wav",
                         f"b-x2\tb\tm\t{tmp_path}/wav/b.flac"]  # fmt: skip


def test_two_channels_in_wav_scp_are_told_with_the_cure(root, tmp_path):
    data = write_kaldi(tmp_path)
    soundfile.write(tmp_path / "wav/b.flac", [[0.1, 0.2]] * 16000, 16000)
    done = new_corpus(root, "theirs", data, cwd=tmp_path, status=2)
    assert "wav.scp: r2: " in done.stderr and "b.flac has 2 channels" in done.stderr
    assert f"sox {tmp_path}/wav/b.flac -t wav - remix 1 |" in done.stderr


@pytest.mark.parametrize(
    ("name", "files", "said"),
    [
        ("x", {"utt2spk": "a/1 a\na-2 a\nx2 b\n"}, "utt2spk:1: utterance 'a/1' cannot name a file"),
        ("x", {"wav.scp": "r1 false |\nr2 wav/b.flac\n"},
         "wav.scp: r1: its command ended with status 1"),
        ("x", {"segments": "a-1 r1 0 1\na-2 r1 5 6\nx2 r2 0 1\n"},
         "a-2 is from 5 to 6 s, and its recording lasts 4.00 s"),
        ("x", {"wav.scp": None}, "wav.scp: is missing; a folder of recordings needs a table: tabs"),
        ("x", {"wav.scp": "r1 wav/gone.wav\nr2 wav/b.flac\n"}, "gone.wav"),
        ("Big Name", {}, "'Big Name': a name has small letters"),
        ("there", {}, "egs/there is there; choose another name"),
    ],
)  # fmt: skip
def test_what_is_no_corpus_leaves_nothing(root, tmp_path, name, files, said):
    (root / "egs/there").mkdir()
    data = write_kaldi(tmp_path)
    for file, text in files.items():
        (data / file).write_text(text) if text else (data / file).unlink()
    done = new_corpus(root, name, data, status=None, cwd=tmp_path)
    assert done.returncode != 0 and said in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert {path.name for path in (root / "egs").iterdir()} == {"TEMPLATE", "there"}
