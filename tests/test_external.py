# SPDX-License-Identifier: Apache-2.0
"""Speech of another program as a system of a recipe."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile
from conftest import MakeDataDir

from local.protocols.attack_record import Side, compare_draws
from steps.anonymise import main
from steps.anonymisers.external import NOTE
from steps.anonymisers.registry import describe_system
from utils.cli import LossError, UserError
from utils.tables import read_map


@pytest.fixture
def data(make_data_dir: MakeDataDir, tmp_path: Path) -> Path:
    return make_data_dir(tmp_path / "set", {"s1": 2, "s2": 1})


@pytest.fixture
def theirs(data: Path, tmp_path: Path) -> Path:
    """Half as loud; the last one longer, and at another rate."""
    folder = tmp_path / "theirs/deep"
    folder.mkdir(parents=True)
    for utt, path in read_map(data / "wav.scp").items():
        samples, rate = soundfile.read(path)
        twice = utt == "s2-000"
        made = np.repeat(samples, 3) if twice else samples
        soundfile.write(folder / f"{utt}_anon.flac", made / 2, rate * 2 if twice else rate)
    return folder.parent


def protect(tmp_path: Path, data: Path, folder: Path, suffix: str = "_anon") -> Path:
    conf, out = tmp_path / "theirs.yaml", tmp_path / "out"
    conf.write_text(f"anonymiser: external\nfolder: {folder}\nsuffix: {suffix}\n")
    assert describe_system(conf).needs == (f"external:{folder}",)
    assert main([str(w) for w in ("--external", folder, conf, data, out, out / "wav")]) == 0
    return out


def test_it_is_taken_as_it_is(tmp_path: Path, data: Path, theirs: Path) -> None:
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
    side = Side.read(out)  # the record of an attack said that nothing was drawn
    assert str(compare_draws(side, side)["draws"]).startswith("not known")


def test_data_directories_are_taken_too(tmp_path: Path, data: Path, theirs: Path) -> None:
    rows = {f"{p.stem}": p for p in theirs.rglob("*.flac")}
    for name in ("one", "two"):
        (tmp_path / "kaldi" / name).mkdir(parents=True)
    for place, (name, path) in enumerate(sorted(rows.items())):
        with (tmp_path / "kaldi" / ("one", "two")[place % 2] / "wav.scp").open("a") as stream:
            stream.write(f"{name} {path}\n")
    assert len(read_map(protect(tmp_path, data, tmp_path / "kaldi") / "wav.scp")) == 3


def lose(theirs: Path, data: Path) -> None:
    (theirs / "deep/s1-001_anon.flac").unlink()


def repeat(theirs: Path, data: Path) -> None:
    shutil.copyfile(theirs / "deep/s1-001_anon.flac", theirs / "s1-001_anon.flac")


def empty(theirs: Path, data: Path) -> None:
    shutil.rmtree(theirs / "deep")


def keep_original(theirs: Path, data: Path) -> None:
    samples, rate = soundfile.read(read_map(data / "wav.scp")["s1-000"])
    soundfile.write(theirs / "deep/s1-000_anon.flac", samples, rate)


def silence(theirs: Path, data: Path) -> None:
    soundfile.write(theirs / "deep/s1-000_anon.flac", np.zeros(1600), 16000)


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lose, "1 of 3 utterances could not be protected.*has no audio of utterance s1-001"),
        (repeat, "s1-001 is there twice"),
        (empty, "holds neither audio nor a wav.scp"),
        (shutil.rmtree, "no such folder"),
        (keep_original, "s1-000_anon.flac is the original speech, not protected"),
        (silence, "digital silence, from speech"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path, data: Path, theirs: Path, break_it: Callable[..., None], said: str
) -> None:
    break_it(*(theirs, data)[: 1 if break_it is shutil.rmtree else 2])
    with pytest.raises((UserError, LossError), match=said) as error:
        protect(tmp_path, data, theirs)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out/wav.scp").exists()
