"""The offline corpus: the same bits always, voices of two genders, nothing half-made."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import soundfile

from steps.synthetic.corpus import (
    DIGITS,
    draw_sentence,
    draw_voice,
    pass_channel,
    run_each_apart,
    say_number,
    say_ordinal,
    words_of,
)
from tests.conftest import RunProgram
from tests.corpus_trees import files
from tests.recipes import ROOT, Done
from tests.refusals import refuses
from tests.waiting import LIMIT
from utils.datachecks import validate_data_dir
from utils.datadir import load_data_dir
from utils.seeds import make_rng
from utils.tables import read_map, write_file, write_map


@pytest.fixture(scope="module")
def make(run_program: RunProgram) -> RunProgram:
    """Runs the program with AUDIO folder/corpus and DATA folder/data, in that folder."""

    def run(folder: Path, *options: str, check=True, how: RunProgram = run_program) -> Done:
        folder.mkdir(exist_ok=True)
        words = ["--utterances", "3", *options, "corpus", "data"]
        done = how("steps/make_synthetic_corpus.py", *words, cwd=folder)
        assert done.returncode == 0 or not check, done.stderr
        return done

    return run


@pytest.fixture(scope="module")
def corpus(make: RunProgram, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight speakers, three utterances each, one process at a time."""
    folder = tmp_path_factory.mktemp("synthetic")
    result = make(folder, "--speakers", "8", "--nj", "1")
    assert result.stderr == ""  # eSpeak NG complains there of attributes that it does not know
    return folder


@pytest.mark.slow
def test_the_same_bits_with_two_processes_and_whoever_else_is_made(make, corpus, tmp_path):
    make(tmp_path / "two", "--speakers", "8", "--nj", "2")
    assert files(tmp_path / "two") == files(corpus)
    make(tmp_path / "some", "--first", "3", "--speakers", "2")
    some, every = files(tmp_path / "some" / "corpus"), files(corpus / "corpus")
    assert {name.split("/")[0] for name in some} == {"synf003", "synm003"}
    assert some == {name: every[name] for name in some}


def test_the_data_directory_is_valid_and_true(corpus, monkeypatch):
    monkeypatch.chdir(corpus)
    assert validate_data_dir("data") == []
    data = load_data_dir("data", need=("wav.scp", "utt2spk", "spk2gender", "text", "utt2dur"))
    assert sorted(data.tables["spk2gender"].values()) == ["f"] * 4 + ["m"] * 4
    assert len(data.tables["wav.scp"]) == 24
    for utt, path in data.tables["wav.scp"].items():
        assert utt.startswith(data.tables["utt2spk"][utt] + "-")
        info = soundfile.info(path)
        assert (info.samplerate, info.channels, info.subtype) == (16000, 1, "PCM_16")
        assert abs(info.duration - float(data.tables["utt2dur"][utt])) < 1e-4
        assert 1.5 < info.duration < 7.0
        assert re.fullmatch(r"[A-Z']+( [A-Z']+)+", data.tables["text"][utt])


def test_voices_lie_apart_as_told():
    def lowest_pitch(speakers: int, utts: int, spread: float, within: float) -> list[int]:
        voices = [
            draw_voice(0, f"s{i}", "f", f"s{i}-{j}", spread=spread, within=within)
            for i in range(speakers)
            for j in range(utts)
        ]
        return [int(re.findall(r"pitch (\d+)", voice.variant)[0]) for voice in voices]

    assert np.std(lowest_pitch(50, 1, 0.0, 1.0)) == 0
    assert np.std(lowest_pitch(200, 1, 0.4, 0.0)) < 0.6 * np.std(lowest_pitch(200, 1, 0.8, 0.0))
    assert np.std(lowest_pitch(1, 50, 0.5, 0.0)) == 0
    between, within = np.std(lowest_pitch(200, 1, 0.5, 0.0)), np.std(lowest_pitch(1, 200, 0.5, 0.5))
    assert 0.4 < within / between < 0.6


def test_numbers_are_spelt_as_they_are_said():
    numbers = (0, 13, 20, 45, 100, 312, 1005, 9999)
    assert ", ".join(map(say_number, numbers)) == (
        "zero, thirteen, twenty, forty five, one hundred, three hundred and twelve, "
        "one thousand and five, nine thousand nine hundred and ninety nine"
    )
    refuses("10000", say_number, 10000, kind=ValueError)
    ordinals = [say_ordinal(day) for day in (1, 2, 3, 5, 8, 9, 12, 20, 21, 30, 31)]
    assert " ".join(ordinals) == (
        "first second third fifth eighth ninth twelfth twentieth "
        "twenty first thirtieth thirty first"
    )


def test_sentences_are_rich_and_whole():
    sentences = [draw_sentence(make_rng(0, "test", str(i))) for i in range(2000)]
    words = [words_of(sentence).split() for sentence in sentences]
    assert all(6 <= len(line) <= 13 for line in words)
    assert not [s for s in sentences if re.search(r"[^A-Za-z',.? ]", s)]
    assert len({word for line in words for word in line}) > 450
    assert len({words_of(sentence) for sentence in sentences}) > 1900
    digits = {digit.upper() for digit in DIGITS}
    assert 0.08 < np.mean([set(line) <= digits for line in words]) < 0.16


def test_noise_keeps_its_distance_and_rooms_ring():
    speech = np.zeros(16000)
    speech[4000:8000] = np.sin(2 * np.pi * 500 * np.arange(4000) / 16000)
    tail = {}
    for strength in (0.0, 1.0):
        rng = make_rng(0, "channel", "test")
        recorded = pass_channel(speech, rng, strength, 16000)
        assert len(recorded) == len(speech)
        assert np.max(np.abs(recorded)) <= 0.9
        loud, late = recorded[4500:7500], recorded[8200:9000]
        tail[strength] = np.sqrt(np.mean(late**2) / np.mean(loud**2))
    assert tail[1.0] > 3 * tail[0.0]


# The fourth speaker is whole, but not yet in place.
MAKE_AND_DIE = """
import os, sys
from pathlib import Path
from steps.make_synthetic_corpus import main
rename = Path.rename
def deadly(path, target):
    if target.name == "synf004":
        os.kill(0, 9)
    return rename(path, target)
Path.rename = deadly
main(sys.argv[1:])
"""


@pytest.mark.slow
def test_a_killed_run_leaves_nothing_that_looks_finished(make, corpus, tmp_path):
    write_file(tmp_path / "data" / "wav.scp", "older tables\n")
    options = ["--utterances", "3", "--speakers", "8", "corpus", "data"]
    (tmp_path / "t").mkdir()  # a run that is killed cannot clean up after itself
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path / "t")}
    words = [sys.executable, "-c", MAKE_AND_DIE, *options]
    killed = subprocess.run(words, cwd=tmp_path, env=env, start_new_session=True)
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "data" / "wav.scp").exists()
    every = files(corpus / "corpus")
    for folder in (tmp_path / "corpus").glob("syn*"):
        whole = {f"{folder.name}/{name}": content for name, content in files(folder).items()}
        assert whole == {n: d for n, d in every.items() if n.startswith(f"{folder.name}/")}
    shutil.rmtree(tmp_path / "t")
    result = make(tmp_path, "--speakers", "8")
    assert "8 speakers (5 made now, 3 there before)" in result.stdout
    assert files(tmp_path) == files(corpus)


@pytest.mark.slow
def test_what_is_there_is_kept_and_what_is_damaged_is_made_again(make, corpus, tmp_path):
    make(tmp_path, "--speakers", "4")
    (tmp_path / "corpus/synf001/synf001-002.wav").write_bytes(b"RIFF")
    (tmp_path / "corpus/synm001/synm001-003.wav").unlink()
    result = make(tmp_path, "--speakers", "4")
    assert "4 speakers (2 made now, 2 there before), 12 utterances" in result.stdout
    every = files(corpus / "corpus")
    assert files(tmp_path / "corpus").items() <= every.items()
    other = make(tmp_path, "--speakers", "4", "--channel", "0.1")
    assert "(4 made now, 0 there before)" in other.stdout


@pytest.mark.parametrize(
    "words",
    ["speakers 3", "speakers 0", "first 0", "utterances 0", "spread -1.0", "spread nan",
     "within 3.0", "channel 9.0"],
)  # fmt: skip
def test_senseless_numbers_are_refused(make, words, tmp_path):
    result = make(tmp_path, *f"--{words}".split(), check=False)
    assert result.returncode == 2
    assert result.stderr.startswith(f"make_synthetic_corpus.py: --{words}: give ")
    assert result.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_widest_spread_that_is_allowed_does_not_crash_the_library(make, tmp_path):
    result = make(tmp_path, "--speakers", "16", "--spread", "2", "--within", "2", "--nj", "2")
    assert "16 speakers (16 made now" in result.stdout


@pytest.mark.slow
def test_one_voice_reads_what_there_is_to_read(make_data_dir, run_program, run_process, tmp_path):
    """The control `reading`: the same words, the same bytes; and what cannot be read is named."""
    data = make_data_dir(tmp_path / "data", {"a": 1, "b": 2})

    def read(out: str, *texts: str, how=run_program, status: int = 2) -> str:
        utts = sorted(read_map(data / "utt2spk"))
        write_map(data / "text", dict(zip(utts, texts, strict=False)))
        return how("steps/read_aloud.py", data, tmp_path / out, status=status).stderr

    texts = ("WE READ THIS", "WE READ THIS", "AND THAT OTHER LINE")
    read("out", *texts, how=run_process, status=0)
    first, second, third = (path.read_bytes() for path in sorted((tmp_path / "out").iterdir()))
    assert first[:4] == b"RIFF" and len(third) != len(first)
    assert abs(len(first) - len(second)) < len(first) / 50  # by the same voice
    assert "b-001 has no letters" in read("none", "a", "b", "42")
    (data / "text").unlink()
    done = run_program("steps/read_aloud.py", data, tmp_path / "none", status=2)
    assert "text: is missing" in done.stderr


@pytest.mark.slow
def test_a_long_path_is_refused_not_replaced_by_others(make, run_process, tmp_path, monkeypatch):
    """eSpeak NG silently looks elsewhere for its data when their path is too long for it."""
    long = tmp_path / ("x" * 200)
    long.mkdir()
    monkeypatch.setenv("TMPDIR", str(long))
    result = make(tmp_path / "run", "--speakers", "2", check=False, how=run_process)
    assert result.returncode == 2
    assert "set TMPDIR to a folder with a short path" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "run" / "data").exists()
    assert not list(long.iterdir())


def _end_or_wait(folder: Path, name: str) -> None:
    (folder / name).touch()
    if name == "bad":
        while not (folder / "good").exists():
            time.sleep(0.005)
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(LIMIT)
    (folder / f"{name}.finished").touch()


def test_a_killed_process_is_noticed_and_named(tmp_path):
    """multiprocessing.Pool would wait for ever."""
    items = {name: name for name in ("good", "bad", "later")}
    work = partial(_end_or_wait, tmp_path)
    refuses("bad: its process failed with status -9", run_each_apart, work, items, 2)
    assert {path.name for path in tmp_path.iterdir()} == {"good", "bad"}
