"""A corpus of people's own: a table of recordings, or a Kaldi data directory, that runs."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import soundfile

from local.make_data_dir import main
from tests.corpus_trees import ROOT, prepare, table, write_audio
from tests.recipes import TEMPLATE, run_recipe
from utils.cli import UserError

HEADER = "file\tspeaker\tsex\ttext\n"
PEOPLE = {"Anna B": "F", "berta": "female", "C": "f", "dora": "f", "emil": "m", "fritz": "M",
          "gustav": "male", "hans": "m"}  # fmt: skip


def write_table(folder: Path) -> Path:
    """Eight people with four recordings each, the same names of files in two folders of each."""
    lines = []
    for speaker, sex in PEOPLE.items():
        for day in ("day 1", "day2"):
            for n in (1, 2):
                file = f"audio/{speaker}/{day}/{speaker}_{n}.{'wav' if n == 1 else 'opus'}"
                write_audio(folder / file, 1.0)
                lines.append(f"{file}\t{speaker}\t{sex}\tWords of {n}\n")
    (folder / "mine.tsv").write_text(HEADER + "".join(lines))
    return folder / "mine.tsv"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout of links, so that egs/ of the project stays as it is."""
    made = tmp_path / "project"
    (made / "egs").mkdir(parents=True)
    for name in ("utils", "local", "steps", "models", "path.sh", "cmd.sh", "egs/TEMPLATE"):
        (made / name).symlink_to(ROOT / name)
    return made


def new_corpus(root: Path, *words: object, **more: object) -> subprocess.CompletedProcess[str]:
    command = [str(root / "utils/new_corpus.sh"), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)  # type: ignore[call-overload, no-any-return]


def test_a_table_becomes_a_corpus_that_runs(root: Path, tmp_path: Path) -> None:
    """The first stages of the recipe: sets, audio, and speech that McAdams protects."""
    done = new_corpus(root, "mine", write_table(tmp_path / "their speech"))
    assert done.returncode == 0, done.stderr
    assert "32 recordings of 8 speakers (4 f, 4 m)" in done.stdout
    folder = root / "egs/mine"
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
    assert genders == {n.replace(" ", "_"): sex[0].lower().replace("w", "f")
                       for n, sex in PEOPLE.items()}  # fmt: skip


def test_the_template_is_a_recipe_for_such_a_table(tmp_path: Path) -> None:
    folder = tmp_path / "recipe"
    folder.mkdir()
    shutil.copy(TEMPLATE / "prepare.sh", folder)
    for name in ("steps", "utils", "local", "path.sh", "cmd.sh"):
        (folder / name).symlink_to(ROOT / name)
    mine = write_table(tmp_path / "in")
    done = prepare(folder, "--corpus", mine, "--enrol-utts", 2)
    assert done.returncode == 0, done.stderr
    assert "warning: data/train has 4 speakers. Attackers who train on fewer than 50" in done.stderr
    assert "--evaluators" in done.stderr
    trials = folder / "data/mycorpus_test_trials_f/trials"
    assert len(set(table(trials))) == 2 and table(folder / "data/train/text")
    # Another corpus trains: everybody is evaluated.
    shutil.copytree(folder / "data/train", tmp_path / "train")
    done = prepare(folder, "--corpus", mine, "--enrol-utts", 2, "--train-from", tmp_path / "train")
    assert done.returncode == 0, done.stderr
    assert len(set(table(trials))) == 4


Change = Callable[[Path], object]


def line(number: int, old: str, new: str) -> Change:
    """Another text in a line of the table."""

    def change(path: Path) -> None:
        lines = path.read_text().splitlines()
        assert old in lines[number - 1]
        lines[number - 1] = lines[number - 1].replace(old, new)
        path.write_text("\n".join(lines) + "\n")

    return change


BAD: list[tuple[Change, str, int]] = [
    (line(1, "speaker", "who"), "mine.tsv:1: no column speaker; a header line with tabs is", 2),
    (lambda p: p.write_text(p.read_text().replace("\t", ",")), ":1: no column file; a header", 2),
    (lambda p: p.write_text(HEADER), "mine.tsv: lists no utterance", 2),
    (lambda p: p.write_text(""), "mine.tsv:1: no column file", 2),
    (lambda p: p.write_bytes(p.read_bytes().replace(b"\n", b"\r\n")), "dos2unix", 2),
    (lambda p: p.write_bytes(p.read_bytes().replace(b"Words", b"W\xf6rter")), "not UTF-8", 2),
    (line(3, "\tF", ""), "mine.tsv:3: 3 tab-separated fields, but 4 columns", 2),
    (line(6, "\tberta\t", "\tAnna_B\t"), "'Anna B' and 'Anna_B' would both be called Anna_B", 2),
    (line(3, "_2.opus", "_1.wav"), "is listed twice, with the same audio: ", 2),
    (line(3, "_2.opus", "_9.opus"), "Anna B_9.opus is missing", 3),
    (line(2, "\tF\t", "\tx\t"), "speaker Anna_B has several genders", 3),
    (line(2, "\tF\t", "\t\t"), "is not given a gender", 3),
    (line(2, "Words of 1", ""), "there is no transcript for", 3),
    (line(2, "audio/Anna B/day 1/Anna B_1.wav", ""), "there is no audio file for it", 3),
    (line(2, "\tAnna B\t", "\t\t"), "the speaker '' does not begin", 3),
    (lambda p: write_stereo(p.parent / "audio/C/day2/C_1.wav"), "C_1.wav has 2 channels", 3),
]


def write_stereo(path: Path) -> None:
    soundfile.write(path, [[0.1, 0.2]] * 1000, 16000)


@pytest.mark.parametrize(("change", "said", "status"), BAD, ids=[said for _, said, _ in BAD])
def test_bad_tables_are_told_by_line_or_file(tmp_path, capsys, change, said, status):
    path = write_table(tmp_path)
    change(path)
    with pytest.raises(UserError) as error:
        main([str(path), str(tmp_path / "out")])
    assert said in f"{capsys.readouterr().err}{error.value}"
    assert error.value.exit_status == status and not (tmp_path / "out").exists()


def write_kaldi(folder: Path) -> Path:
    """Pipes, plain files and segments, of ids that do not all begin with their speaker."""
    write_audio(folder / "wav/long.wav", 4.0)
    write_audio(folder / "wav/b.flac", 1.0)
    data = folder / "data/all"
    data.mkdir(parents=True)
    (data / "wav.scp").write_text("r1 cat wav/long.wav |\nr2 wav/b.flac\n")
    (data / "segments").write_text("a-1 r1 0.5 1.5\na-2 r1 3.0 4.2\nx2 r2 0 -1\n")
    (data / "utt2spk").write_text("a-1 a\na-2 a\nx2 b\n")
    (data / "spk2gender").write_text("a f\nb m\n")
    (data / "text").write_text("a-1 one\na-2 two words\nx2 three\n")
    return data


def test_a_kaldi_directory_with_pipes_and_segments(root: Path, tmp_path: Path) -> None:
    data = write_kaldi(tmp_path)
    done = new_corpus(root, "theirs", data, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    corpus = root / "egs/theirs/corpus"
    rows = [line.split("\t") for line in (corpus / "utterances.tsv").read_text().splitlines()]
    assert rows[0] == ["utt", "speaker", "sex", "file", "text"]
    assert rows[2] == ["a-2", "a", "f", "audio/a-2.flac", "two words"]
    assert rows[3][:2] == ["b-x2", "b"]
    lengths = {p.name: soundfile.info(p).duration for p in (corpus / "audio").iterdir()}
    assert lengths == {"a-1.flac": 1.0, "a-2.flac": 1.0, "b-x2.flac": 1.0}
    source, _ = soundfile.read(tmp_path / "wav/long.wav")
    cut, _ = soundfile.read(corpus / "audio/a-1.flac")
    assert abs(cut - source[8000:24000]).max() < 1e-4
    (data / "segments").unlink()
    (data / "text").unlink()
    (data / "wav.scp").write_text("a-1 cat wav/long.wav |\na-2 wav/long.wav\nx2 wav/b.flac\n")
    done = new_corpus(root, "whole", data, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = (root / "egs/whole/corpus/utterances.tsv").read_text().splitlines()
    assert lines[1:] == ["a-1\ta\tf\taudio/a-1.flac", f"a-2\ta\tf\t{tmp_path}/wav/long.wav",
                         f"b-x2\tb\tm\t{tmp_path}/wav/b.flac"]  # fmt: skip


REFUSED: list[tuple[str, Change, str]] = [
    ("x", lambda d: (d / "wav.scp").write_text("r1 false |\nr2 wav/b.flac\n"),
     "wav.scp: r1: its command ended with status 1"),
    ("x", lambda d: (d / "wav.scp").write_text("r1 echo no |\nr2 wav/b.flac\n"), "r1: "),
    ("x", lambda d: (d / "segments").write_text("a-1 r1 0 1\na-2 r1 5 6\nx2 r2 0 1\n"),
     "a-2 is from 5 to 6 s, and its recording lasts 4.00 s"),
    ("x", lambda d: (d / "spk2gender").unlink(), "spk2gender: is missing"),
    ("x", lambda d: (d / "wav.scp").write_text("r1 wav/gone.wav\nr2 wav/b.flac\n"), "gone.wav"),
    ("Big Name", lambda d: d, "'Big Name': a name has small letters"),
    ("TEMPLATE", lambda d: d, "'TEMPLATE': a name has small letters"),
    ("there", lambda d: d, "egs/there is there; choose another name"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "said"), REFUSED, ids=[r[2] for r in REFUSED])
def test_what_is_no_corpus_leaves_nothing(root, tmp_path, name, change, said):
    (root / "egs/there").mkdir()
    change(data := write_kaldi(tmp_path))
    done = new_corpus(root, name, data, cwd=tmp_path)
    assert done.returncode != 0 and said in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert {path.name for path in (root / "egs").iterdir()} == {"TEMPLATE", "there"}
    assert new_corpus(root, "y", tmp_path / "nothing").returncode == 2
