"""Speech of another program as a system of a recipe."""

import json
import re
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import soundfile
from conftest import MakeDataDir

from local.protocols.attackers import AttackSet, compare_draws
from steps.anonymise import main
from steps.anonymisers.external import NOTE, find_speech, find_suffix
from steps.anonymisers.registry import describe_system
from steps.audio import write_wav
from steps.protect_by_command import main as by_command
from tests.refusals import accepts, refuses, refuses_words
from utils.tables import read_map, write_file


@pytest.fixture
def data(make_data_dir: MakeDataDir, tmp_path: Path) -> Path:
    return make_data_dir(tmp_path / "set", {"s1": 2, "s2": 1})


@pytest.fixture
def theirs(data: Path, tmp_path: Path) -> Path:
    """Half as loud; the last one longer, and at another rate."""
    folder = tmp_path / "theirs/deep"
    for utt, path in read_map(data / "wav.scp").items():
        samples, rate = soundfile.read(path)
        twice = utt == "s2-000"
        made = np.repeat(samples, 3) if twice else samples
        write_wav(folder / f"{utt}_anon.flac", made / 2, rate * 2 if twice else rate)
    return folder.parent


def protect(tmp_path: Path, data: Path, folder: Path, suffix: str = "_anon") -> Path:
    conf, out = tmp_path / "theirs.yaml", tmp_path / "out"
    conf.write_text(f"anonymiser: external\nfolder: {folder}\nsuffix: '{suffix}'\n")
    assert describe_system(conf).needs == (f"external:{folder}",)
    accepts(main, "--external", folder, conf, data, out, out / "wav")
    return out


def test_it_is_taken_as_it_is(tmp_path, data, theirs):
    out = protect(tmp_path, data, theirs)
    for utt, path in read_map(data / "wav.scp").items():
        made, rate = soundfile.read(out / f"wav/{utt}.wav")
        assert rate == 16000
        if utt != "s2-000":
            assert np.allclose(made, soundfile.read(path)[0] / 2, atol=1e-4)
    before, after = (read_map(folder / "utt2dur") for folder in (data, out))
    assert after["s1-001"] == before["s1-001"]
    assert np.isclose(float(after["s2-000"]), 1.5 * float(before["s2-000"]), rtol=0.01)
    assert "longer or shorter" in (out / "notes.txt").read_text()
    conf = json.loads((out / "conf.json").read_text())
    assert (conf["system"]["anonymiser"], conf["system"]["note"]) == ("external", NOTE)
    side = AttackSet.read(out)  # the record of an attack said that nothing was drawn
    assert str(compare_draws(side, side)["draws"]).startswith("not known")


def test_data_directories_are_taken_too(tmp_path, data, theirs):
    rows = {f"{p.stem}": p for p in theirs.rglob("*.flac")}
    for name in ("one", "two"):
        (tmp_path / "kaldi" / name).mkdir(parents=True)
    for place, (name, path) in enumerate(sorted(rows.items())):
        with (tmp_path / "kaldi" / ("one", "two")[place % 2] / "wav.scp").open("a") as stream:
            stream.write(f"{name} {path}\n")
    assert len(read_map(protect(tmp_path, data, tmp_path / "kaldi") / "wav.scp")) == 3


ONE, OTHER = "deep/s1-000_anon.flac", "deep/s1-001_anon.flac"


def say(samples: np.ndarray | None = None) -> Callable[[Path], None]:
    """Overwrites the first of their files: with the original, if nothing else is given."""

    def overwrite(theirs: Path) -> None:
        original = soundfile.read(theirs.parent / "set/wav/s1-000.wav")[0]
        soundfile.write(theirs / ONE, original if samples is None else samples, 16000)

    return overwrite


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (say(np.full(4800, 0.1)), r"anon\.flac is 0\.3 s long, the original 0\.1 s"),
        (say(), "s1-000_anon.flac is the original speech, not protected"),
        (say(np.zeros(1600)), "digital silence, but the original is speech"),
        (
            lambda x: (x / OTHER).unlink(),
            "1 of 3 utterances lost.*has no audio of utterance s1-001",
        ),
        (lambda x: shutil.copy(x / ONE, x / "s1-001_anon.flac"), "s1-001_anon is there twice"),
        (lambda x: shutil.rmtree(x / "deep"), "holds neither audio nor a wav.scp"),
        (shutil.rmtree, "no such folder"),
    ],
)
def test_bad_input_is_one_line(tmp_path, data, theirs, break_it, said):
    break_it(theirs)
    refuses(said, protect, tmp_path, data, theirs)
    assert not (tmp_path / "out/wav.scp").exists()


def test_paths_of_their_recipe_were_taken_for_those_of_ours(tmp_path, monkeypatch):
    """Both have data/x_anon/wav/u.wav, and a table says so of its own recipe's folder."""
    for name in ("ours", "theirs"):
        write_file(tmp_path / name / "data/x_anon/wav/u.wav", "")
    (tmp_path / "theirs/data/x_anon/wav.scp").write_text("u data/x_anon/wav/u.wav\n")
    monkeypatch.chdir(tmp_path / "ours")
    found = find_speech(tmp_path / "theirs/data", "_anon")
    assert found == {"u": str(tmp_path / "theirs/data/x_anon/wav/u.wav")}


def test_a_factor_of_no_length_was_a_traceback(tmp_path):
    (tmp_path / "c.yaml").write_text("anonymiser: command\ncommand: x {in} {out}\nlonger: 0\n")
    refuses("longer: 0; at least 1 is expected", describe_system, tmp_path / "c.yaml")


def test_a_suffix_is_found_if_it_is_the_only_one():
    find, utts = partial(find_suffix, Path("f")), ["s1-1", "s1-10"]
    assert find(["s1-1_anon", "s1-10_anon", "x"], utts) == "_anon"  # s1-10 is not s1-1 with 0_anon
    assert find(utts, utts) == ""
    refuses("found x1, expected such as s1-1", find, ["x1"], utts)
    said = r"s1-1 is there as s1-1_anon and as s1-1_raw; .*suffix="
    refuses(said, find, ["s1-1_anon", "s1-10_anon", "s1-1_raw"], utts)


PROGRAM = """
import pathlib, sys, soundfile
data, out, seed = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
for line in (data / "wav.scp").read_text().splitlines()[: int(sys.argv[4])]:
    utt, path = line.split()
    samples, rate = soundfile.read(path)
    soundfile.write(out / f"{utt}.wav", samples * (1 + seed % 97) / 200, rate)
"""


@pytest.fixture
def command(tmp_path: Path) -> Callable[..., Path]:
    def with_words(words: str = "{in} {out} {seed} 99") -> Path:
        program, conf = tmp_path / "program.py", tmp_path / "mine.yaml"
        program.write_text(PROGRAM)
        conf.write_text(f"anonymiser: command\ncommand: {sys.executable} {program} {words}\n")
        return conf

    return with_words


def test_a_command_protects_a_set_and_another_draw(tmp_path, data, command):
    conf, made = command(), {}
    for draw in ("0", "1"):
        folder, out = tmp_path / f"made{draw}", tmp_path / f"out{draw}"
        accepts(by_command, "--draw", draw, conf, data, folder)
        accepts(main, "--draw", draw, "--external", folder, conf, data, out, out / "wav")
        made[draw] = soundfile.read(out / "wav/s1-000.wav")[0]
    assert not np.array_equal(made["0"], made["1"])
    told = json.loads((tmp_path / "out1/conf.json").read_text())
    assert told["is_random"] is True and told["system"]["anonymiser"] == "command"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("{in} {out} {seed} 1", "wrote no audio of 2 of 3 utterances: s1-001 s2-000"),
        ("{in} {out} no 9", "ended with status 1; its messages are above"),
        ("{in} there", "has no {out}"),
        ("'{in} {out}", "No closing quotation"),
    ],
)  # fmt: skip
def test_a_command_that_fails_leaves_nothing(tmp_path, data, command, words, said):
    refuses_words(re.escape(said), by_command, command(words), data, tmp_path / "made")
    assert not (tmp_path / "made").exists()
