"""egs/vctk/prepare.sh: the layouts of VCTK 0.92 and 0.80, different and common sentences, lists."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.corpus_trees import ROOT, files, make_recipe, prepare, table, write_audio
from utils.datadir import load_data_dir

GENDER = {"p225": "F", "p226": "M", "p227": "M", "p228": "F", "p229": "F", "p232": "M", "p315": "M",
          "s5": "F"}  # fmt: skip
EVALUATED = {name: [f"{name}_{s}" for s in ("enrolls", "trials_f", "trials_m", "trials_mixed")]
             for name in ("vctk_test", "vctk_test_common")}  # fmt: skip
NUMBERS = (1, 2, 24, 25, 26, 27, 300)
OPTIONS = ("--speakers", 2, "--enrol-utts", 2)


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    return make_recipe(tmp_path / "vctk", "vctk")


def make_vctk(root: Path, version: str = "0.92") -> Path:
    """A corpus with seven sentences of each speaker; p315 has no transcripts, and of mic1 only."""
    new = version == "0.92"
    lines = ["ID  AGE  GENDER  ACCENTS  REGION COMMENTS"]
    for spk, gender in GENDER.items():
        if not new and spk == "s5":
            continue
        lines.append(
            f"{spk if new else spk.lstrip('p')}  23  {gender}  English    Southern  England"
        )
        for number in NUMBERS:
            utt = f"{spk}_{number:03d}"
            if new:
                for mic in (1,) if spk == "p315" else (1, 2):
                    write_audio(root / f"wav48_silence_trimmed/{spk}/{utt}_mic{mic}.flac")
            elif spk != "p315":
                write_audio(root / f"wav48/{spk}/{utt}.wav")
            if spk != "p315":
                (root / "txt" / spk).mkdir(parents=True, exist_ok=True)
                text = f"Sentence {number}, it's\tread.\r\n"
                (root / f"txt/{spk}/{utt}.txt").write_text(text)
    (root / "speaker-info.txt").write_text("\r\n".join(lines))
    return root


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return make_vctk(tmp_path / "my = corpora/VCTK")


def numbers(data: Path) -> set[int]:
    return {int(utt.split("_")[1]) for utt in table(data / "utt2spk")}


@pytest.mark.slow
def test_both_evaluations_of_version_092(recipe: Path, corpus: Path) -> None:
    done = prepare(recipe, "--corpus", corpus, *OPTIONS, "--nj", 3)
    assert done.returncode == 0, done.stderr
    assert "left out: 7 files of speaker p315" in done.stderr
    sets = {path.name for path in (recipe / "data").iterdir()}
    assert sets == {"train", *EVALUATED["vctk_test"], *EVALUATED["vctk_test_common"]}
    need = ("wav.scp", "utt2dur", "spk2gender", "text")
    for name in sets:
        data = load_data_dir(recipe / "data" / name, need=need)
        for utt, spk in data.utt2spk.items():
            where = corpus / f"wav48_silence_trimmed/{spk}/{utt}_mic2.flac"
            assert utt.startswith(f"{spk}_") and data.wav[utt] == str(where)
            assert (data.text or {})[utt] == f"Sentence {int(utt.split('_')[1])}, it's read."
        assert data.spk2gender == {spk: GENDER[spk].lower() for spk in data.spk2utt}
    enrol, common = (recipe / f"data/{name}_enrolls" for name in EVALUATED)
    assert numbers(enrol) <= {25, 26, 27, 300}
    assert table(enrol / "utt2spk") == table(common / "utt2spk")
    assert table(enrol / "enrolls") == table(common / "enrolls")
    for gender in "fm":
        different, same = (recipe / f"data/{name}_trials_{gender}" for name in EVALUATED)
        assert numbers(different) <= {25, 26, 27, 300} and numbers(same) == {1, 2, 24}
        assert set(table(different / "utt2spk").values()) == set(table(same / "utt2spk").values())
        # 2 enrolled speakers and 2 x 2 different, 2 x 3 common utterances.
        for data, n in ((different, 4), (same, 6)):
            labels = [label for _, _, label in load_data_dir(data).trials or []]
            assert (labels.count("target"), labels.count("nontarget")) == (n, n)
    evaluated = set(table(enrol / "spk2gender"))
    assert set(table(recipe / "data/train/spk2gender")) == GENDER.keys() - evaluated - {"p315"}
    assert numbers(recipe / "data/train") == set(NUMBERS)
    before = files(recipe / "data")
    assert prepare(recipe, "--corpus", corpus, *OPTIONS).returncode == 0
    assert files(recipe / "data") == before
    other = prepare(
        recipe, "--corpus", corpus, *OPTIONS, "--mic", "mic1", "--sentences", "different"
    )
    assert other.returncode == 0
    assert "p225_001_mic1.flac" in "".join(
        (recipe / f"data/{name}/wav.scp").read_text()
        for name in ("train", "vctk_test_common_trials_f")
    ).replace("_mic2", "_mic1")


@pytest.mark.slow
def test_version_080_and_a_training_set_of_another_corpus(recipe: Path, tmp_path: Path) -> None:
    corpus = make_vctk(tmp_path / "VCTK-Corpus", "0.80")
    options = ("--corpus", corpus, "--leave-out", "", *OPTIONS)
    assert prepare(recipe, *options).returncode == 0
    assert set(table(recipe / "data/train/spk2gender").values()) == {"f", "m"}
    train = recipe / "data/train"
    assert all(path.startswith(str(corpus / "wav48")) for path in table(train / "wav.scp").values())
    train.rename(tmp_path / "libri")
    options = (*options[:4], "--speakers", 0, "--enrol-utts", 2)
    done = prepare(recipe, *options, "--train-from", tmp_path / "libri")
    assert done.returncode == 0, done.stderr
    assert table(train / "utt2spk") == table(tmp_path / "libri/utt2spk")
    assert len(table(recipe / "data/vctk_test_enrolls/spk2gender")) == 6
    nobody = prepare(recipe, *options)
    assert nobody.returncode == 2 and "no speaker is left to train with" in nobody.stderr


@pytest.mark.parametrize("suffix", ["", "_mic1"])
@pytest.mark.slow
def test_official_lists(recipe: Path, corpus: Path, tmp_path: Path, suffix: str) -> None:
    """As the challenge packs them: common trials in a folder of their own, ids with microphone."""
    assert prepare(recipe, "--corpus", corpus, *OPTIONS).returncode == 0
    lists = tmp_path / "lists"
    for name in (*EVALUATED["vctk_test"], *EVALUATED["vctk_test_common"][1:]):
        official = name.replace("vctk_test_common_trials", "vctk_test_trials")
        official += "_common" if "common" in name else ""
        shutil.copytree(recipe / "data" / name, lists / official)
        for path in (lists / official).iterdir():
            text = path.read_text()
            for utt in table(recipe / "data" / name / "utt2spk"):
                text = text.replace(utt, utt + suffix) if path.name != "wav.scp" else text
            path.write_text(text)
        (lists / official / "wav.scp").unlink()
    shutil.rmtree(recipe / "data")
    gone = next(iter(table(lists / "vctk_test_trials_f_common/utt2spk")))
    audio = corpus / "wav48_silence_trimmed" / gone.split("_")[0]
    (audio / f"{gone.removesuffix('_mic1')}{suffix or '_mic2'}.flac").unlink()
    done = prepare(recipe, "--corpus", corpus, "--lists", lists)
    assert done.returncode == 0, done.stderr
    assert "trial utterances      f 6 -> 5           m 6 -> 6" in done.stdout
    for name in (*EVALUATED["vctk_test"], *EVALUATED["vctk_test_common"]):
        wav = table(recipe / f"data/{name}/wav.scp")
        assert all(utt.endswith(suffix) for utt in wav)
        assert all(path.endswith(f"{suffix or '_mic2'}.flac") for path in wav.values())
    official = table(lists / "vctk_test_enrolls/enrolls")
    assert table(recipe / "data/vctk_test_enrolls/enrolls") == official
    evaluated = set(table(lists / "vctk_test_enrolls/spk2gender"))
    assert not evaluated & set(table(recipe / "data/train/spk2gender"))
    bad = prepare(recipe, "--corpus", corpus, "--lists", tmp_path)
    assert "vctk_test_enrolls/utt2spk is missing" in bad.stderr


def one_line(done: subprocess.CompletedProcess[str], status: int = 2) -> str:
    assert done.returncode == status
    lines = [line for line in done.stderr.splitlines() if not line.startswith("left out: ")]
    assert len(lines) == 1, lines
    return lines[0]


def test_folders_that_are_not_vctk(recipe: Path, corpus: Path, tmp_path: Path) -> None:
    assert "--corpus is missing" in one_line(prepare(recipe))
    assert "nowhere: no such folder" in one_line(prepare(recipe, "--corpus", "nowhere"))
    assert "speaker-info.txt is missing" in one_line(prepare(recipe, "--corpus", tmp_path))
    of = ("--corpus", corpus)
    assert "known: mic1, mic2" in one_line(prepare(recipe, *of, "--mic", "mic3"))
    assert "known: " in one_line(prepare(recipe, *of, "--sentences", "some"))
    assert "licence page" in one_line(prepare(recipe, "--download", "true"))
    odd = corpus / "wav48_silence_trimmed/p225/take_1.flac"
    write_audio(odd)
    assert f"{odd}: no <speaker>_<number>" in one_line(prepare(recipe, *of))
    odd.unlink()
    lost = prepare(recipe, *of, *OPTIONS, "--leave-out", "", "--mic", "mic1")
    assert lost.returncode == 3
    assert "p315_001: there is no transcript" in lost.stderr
    assert "7 of 56 utterances cannot be used (7 for the transcript)" in lost.stderr
    for path in (corpus / "wav48_silence_trimmed").rglob("*_[0-9]*"):
        if int(path.name.split("_")[1]) > 24:
            path.unlink()
    none = prepare(recipe, *of, *OPTIONS)
    assert none.returncode == 2 and "without them: --sentences common" in none.stderr
    shutil.rmtree(corpus / "wav48_silence_trimmed")
    assert "holds none of wav48_silence_trimmed" in one_line(prepare(recipe, *of))
    assert not any((recipe / "data").iterdir())


@pytest.mark.slow
def test_either_evaluation_can_be_run_first(recipe: Path, corpus: Path) -> None:
    """Both are made at once, and the second run finds them up to date."""
    (recipe / "run.sh").symlink_to(ROOT / "egs/TEMPLATE/run.sh")
    for part in ("encoders", "systems"):
        (recipe / "conf" / part).unlink()
        (recipe / "conf" / part).symlink_to(ROOT / "egs/TEMPLATE/conf" / part)
    said = []
    for evaluation in ("vctk_test_common", "vctk_test"):
        command = ["./run.sh", "--stop-stage", "0", "--corpus", str(corpus)]
        command += ["--evaluation", evaluation]
        command += ["--prepare-options=--speakers 2 --enrol-utts 2"]
        done = subprocess.run(command, cwd=recipe, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert "making data/train" in said[0] and "up to date: data/train" in said[1]


@pytest.mark.slow
@pytest.mark.corpora
def test_the_excerpt(recipe: Path, corpora: Path, tmp_path: Path) -> None:
    """Four speakers, sentences 1 to 24 only; nobody is left to train with."""
    options = ("--corpus", corpora / "vctk", "--sentences", "common", "--speakers", 0)
    options += ("--enrol-utts", 4)
    done = prepare(recipe, *options)
    assert "all: 40 read / 40 written / 0 skipped; 4 speakers" in done.stdout
    assert done.returncode == 2 and "no speaker is left to train with" in done.stderr
    shutil.copytree(recipe / "data/vctk_test_common_enrolls", tmp_path / "other")
    done = prepare(recipe, *options, "--train-from", tmp_path / "other")
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (recipe / "data").iterdir()} == {
        "train", *EVALUATED["vctk_test_common"]
    }  # fmt: skip
    for gender, speakers in (("f", {"p225", "p228"}), ("m", {"p226", "p227"})):
        data = load_data_dir(recipe / f"data/vctk_test_common_trials_{gender}")
        labels = [label for _, _, label in data.trials or []]
        assert (labels.count("target"), labels.count("nontarget")) == (12, 12)
        assert set(data.spk2utt) == speakers
