"""The NIST suite and the white-box study: lists, programs, tables, and both on a small corpus."""

import csv
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import soundfile

from local.check_external import main as check_external
from local.keep_results import main as keep_results
from local.make_nist_trials import main as make_trials
from local.protocols.studies import make_segment_lists
from local.report.frame import METRICS, with_numbers
from local.report.gather import tabulate_all
from local.report.tables import REID, tabulate
from steps.join_xvectors import main as join
from tests.conftest import MakeDataDir
from tests.test_recipe import LINKS, TINY
from utils.archives import ArchiveWriter, read_vectors
from utils.cli import LossError, UserError
from utils.settings import settings_text
from utils.tables import read_map
from utils.trials import read_trials

ROOT = Path(__file__).resolve().parents[1]
SPEAKERS = {"a-1": "a", "a-2": "a", "a-3": "a", "b-1": "b", "b-2": "b", "c-1": "c"}


def test_nist_lists_by_hand() -> None:
    """Three, two and one segment of a, b (f) and c (m): c has nobody to be compared with."""
    lists = make_segment_lists(SPEAKERS, {"a": "f", "b": "f", "c": "m"})
    # Ordered pairs of a and b: 5·4; of one speaker 3·2 + 2·1. Half of them once.
    assert (len(lists["trial1"]), lists["trial1"].target.sum()) == (20, 8)
    assert (len(lists["trial2"]), lists["trial2"].target.sum()) == (10, 4)
    assert (len(lists["cross"]), lists["cross"].target.sum()) == (
        12,
        4,
    )  # 003: two nontargets a target
    pairs = {(e, t) for e, t in zip(lists["trial1"].enrol, lists["trial1"].trial, strict=True)}
    assert ("a-1", "b-2") in pairs and ("b-2", "a-1") in pairs
    assert not any(e == t or "c-1" in (e, t) for e, t in pairs)
    once = {(e, t) for e, t in zip(lists["trial2"].enrol, lists["trial2"].trial, strict=True)}
    assert once == {(e, t) for e, t in pairs if e < t}
    for enrol, trial, target in zip(
        lists["cross"].enrol, lists["cross"].trial, lists["cross"].target, strict=True
    ):
        assert enrol.endswith("-p1") and trial.endswith("-p1" if target else "-p2")
        assert SPEAKERS[enrol[:-3]] == SPEAKERS[trial[:-3]]
        assert enrol[:-3] != trial[:-3]


def test_nist_lists_heed_sessions_and_genders_and_not_the_order() -> None:
    everybody = make_segment_lists(SPEAKERS)
    assert len(everybody["trial1"]) == 30
    sessions = {utt: "1" if utt.endswith(("1", "2")) else "2" for utt in SPEAKERS}
    lists = make_segment_lists(SPEAKERS, None, sessions)
    assert set(zip(lists["trial2"].enrol, lists["trial2"].trial, strict=True)) == {
        (utt, "a-3") for utt in ("a-1", "a-2")
    } | {("a-3", utt) for utt in ("b-1", "b-2", "c-1")}
    backwards = make_segment_lists(dict(reversed(SPEAKERS.items())))
    assert list(backwards["trial1"].enrol) == list(everybody["trial1"].enrol)


def test_nist_lists_that_cannot_be_made() -> None:
    with pytest.raises(UserError, match="b: has no gender"):
        make_segment_lists(SPEAKERS, {"a": "f", "c": "m"})
    with pytest.raises(UserError, match="trial1: no nontarget trial can be made of 3 segments"):
        make_segment_lists(dict.fromkeys(("a-1", "a-2", "a-3"), "a"))
    with pytest.raises(UserError, match="trial1: no target trial"):
        make_segment_lists({"a-1": "a", "b-1": "b"})


def test_nist_lists_by_the_program(
    tmp_path: Path, make_data_dir: MakeDataDir, capsys: pytest.CaptureFixture[str]
) -> None:
    data = make_data_dir(tmp_path / "data", {"a": 3, "b": 2, "c": 2})
    assert make_trials([str(data), str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    trials = read_trials(tmp_path / "out/trial1/trials")
    n_target = int(trials.target.sum())
    assert f"trial1  {n_target} target, {len(trials) - n_target} nontarget" in printed
    assert (tmp_path / "out/cross/utt2spk").read_text().startswith("a-000-p1 a\n")
    training = make_data_dir(tmp_path / "training", {"b": 1, "d": 1})
    with pytest.raises(UserError, match=r"data: speaker b \(1 in all\) is in .*training, too"):
        make_trials(["--training", str(training), str(data), str(tmp_path / "refused")])
    assert not (tmp_path / "refused").exists()


def test_xvectors_of_two_runs_are_told_apart(tmp_path: Path) -> None:
    for place, name in enumerate(("one", "two")):
        with ArchiveWriter(tmp_path / name / "xvector") as writer:
            writer.write("a-1", np.full(3, place, np.float32))
    out = tmp_path / "out"
    assert join([str(out), f"p1={tmp_path / 'one'}", f"p2={tmp_path / 'two'}"]) == 0
    found = read_vectors(out / "xvector.scp")
    assert {key: float(value[0]) for key, value in found.items()} == {"a-1-p1": 0, "a-1-p2": 1}
    with pytest.raises(UserError, match=r"a-1-p1 is there twice"):
        join([str(out), f"p1={tmp_path / 'one'}", f"p1={tmp_path / 'two'}"])
    with pytest.raises(UserError, match="NAME=FOLDER or FOLDER is expected"):
        join([str(out), "p1="])


def soften(data: Path) -> None:
    """Half as loud, without loss, so that it is not the original."""
    rows = read_map(data / "wav.scp")
    for utt, path in rows.items():
        samples, rate = soundfile.read(data.parent / path)
        soundfile.write(data / f"{utt}.wav", samples / 2, rate, subtype="FLOAT")
    (data / "wav.scp").write_text("".join(f"{utt} {data / utt}.wav\n" for utt in rows))


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        (None, "is the original speech, not protected"),
        (np.zeros(1600), "is digital silence, from speech"),
        (np.full(4800, 0.1), r"is 0\.3 s long, the original 0\.1 s"),
    ],
)
def test_foreign_speech_that_is_none_is_one_line(
    tmp_path: Path, make_data_dir: MakeDataDir, samples: np.ndarray | None, said: str
) -> None:
    original, theirs = make_data_dir(tmp_path / "a"), make_data_dir(tmp_path / "b")
    if samples is not None:
        soften(theirs)
        soundfile.write(theirs / "s2-000.wav", samples, 16000)
    utt = "s1-000" if samples is None else "s2-000"
    with pytest.raises(UserError, match=f"wav.scp: {utt}: .*{said}") as error:
        check_external([str(original), str(theirs), str(tmp_path / "out")])
    assert "\n" not in str(error.value) and not (tmp_path / "out").exists()


def test_foreign_speech_is_checked_by_id(
    tmp_path: Path, make_data_dir: MakeDataDir, capsys: pytest.CaptureFixture[str]
) -> None:
    original = make_data_dir(tmp_path / "original", {"a": 2, "b": 2})
    more = make_data_dir(tmp_path / "more", {"a": 2, "b": 3})
    less = make_data_dir(tmp_path / "less", {"a": 1, "b": 2})
    soften(more)
    out = tmp_path / "out"
    with pytest.raises(LossError, match=r"1 of 4 utterances .* are missing: a-001"):
        check_external([str(original), str(less), str(out)])
    assert not out.exists()
    assert check_external([str(original), str(more), str(out)]) == 0
    assert "left out 1 that" in capsys.readouterr().out
    assert str(more) in (out / "wav.scp").read_text()
    assert (out / "utt2spk").read_text() == (original / "utt2spk").read_text()
    text = (more / "utt2spk").read_text()
    for name in ("utt2spk", "spk2utt", "spk2gender"):
        (more / name).unlink()
    (more / "utt2spk").write_text(text.replace("a-001 a", "a-001 a-0"))
    with pytest.raises(UserError, match="a-001 is of a-0, but of a in"):
        check_external([str(original), str(more), str(out)])


CONF = """
corpus_name=small
evaluation=small_test
evaluators="tiny/cosine"
prepare_options="--evaluation small_test --eval-speakers 8 --eval-utterances 4 \
--enrol-utterances 2 --train-speakers 24 --train-utterances 2"
bootstrap=20
nj=1
"""


def make_folder(folder: Path, *scripts: str) -> None:
    for name in LINKS:
        (folder / name).symlink_to(ROOT / name)
    for script in ("run.sh", *scripts):
        (folder / script).symlink_to(ROOT / "egs/TEMPLATE" / script)
    (folder / "prepare.sh").symlink_to(ROOT / "egs/synth/prepare.sh")
    for part in ("encoders", "systems"):
        (folder / "conf" / part).mkdir(parents=True)
    (folder / "conf/recipe.conf").write_text(CONF)
    (folder / "conf/encoders/tiny.yaml").write_text(re.sub(r"steps: 30", "steps: 5", TINY))
    for name in ("mcadams_r", "mcadams", "b2r", "b2", "const_01", "const_01_f0"):
        text = settings_text(ROOT / f"egs/TEMPLATE/conf/systems/{name}.yaml")
        (folder / f"conf/systems/{name}.yaml").write_bytes(text)


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    print(done.stdout[-3000:], done.stderr[-3000:])
    return done


def test_two_systems_of_one_name_or_one_profile_twice_shared_their_folders(tmp_path: Path) -> None:
    """Figures were wrong, and nothing said so; a folder that is missing passed the dry run."""
    make_folder(tmp_path, "nist.sh")
    for name in ("train", "small_test_enrolls", "small_test_trials_f", "small_test_trials_m"):
        (tmp_path / "data" / name).mkdir(parents=True)
    for name in ("p1", "p2"):
        (tmp_path / name).mkdir()
    taken = "is the name of original speech or of another system; choose another name"
    for systems, options, message in (
        ("b2", ["--external", "b2=p1"], f"'b2=p1': b2 {taken}"),
        ("", ["--external", "a=p1 a=p2"], f"'a=p2': a {taken}"),
        ("", ["--external", "original=p1"], f"'original=p1': original {taken}"),
        ("", ["--external", "a=p1,p1"], "--external 'a=p1,p1': p1 is named twice"),
        ("", ["--external", "a=p1,nope"], "there is no folder 'nope'; give the data directory of"),
        ("", ["--external", "a=p1", "--tested", "1 1"], "--tested: 1 is named twice"),
        ("", ["--external", "a=p1", "--tested", ""], "--tested: names none"),
        ("", ["--external", "a=p1", "--tested", "01 1"], "'01'; a whole number above 0"),
    ):
        refused = run(tmp_path, "./nist.sh", "--dry-run", "--systems", systems, *options)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert message in refused.stderr and refused.stderr.count("\n") == 1
    asked = ("--systems", "", "--external", "a=p1,p2 b=p1", "--stage", "5")
    planned = run(tmp_path, "./nist.sh", "--dry-run", *asked)
    assert planned.returncode == 0
    assert "dry run: 1 of 1 steps would be made" in planned.stdout


@pytest.mark.slow
def test_the_nist_suite_on_a_small_corpus(tmp_path: Path) -> None:
    make_folder(tmp_path, "nist.sh")
    refused = run(tmp_path, "./nist.sh", "--systems", "b2r")
    assert refused.returncode == 2 and "make it with ./run.sh --stop-stage 0" in refused.stderr
    assert run(tmp_path, "./run.sh", "--stop-stage", "0").returncode == 0
    foreign = f"theirs={tmp_path / 'theirs'}"
    asked = ("./nist.sh", "--systems", "b2r b2", "--external", foreign)
    (tmp_path / "theirs").mkdir()
    assert run(tmp_path, *asked[:3], "--stop-stage", "0").returncode == 0
    shutil.copytree(tmp_path / "data/small_test_nist", tmp_path / "theirs", dirs_exist_ok=True)
    soften(tmp_path / "theirs")
    done = run(tmp_path, *asked)
    assert done.returncode == 0
    assert "b2 draws nothing, so there is one profile" in done.stdout
    results = tmp_path / "exp/nist/small_test_nist/results"
    with (results / "metrics.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    found = {(r["system"], r["attacker"]) for r in rows if r["metric"] == "eer"}
    assert found == {
        ("original", "trial2"), ("b2", "trial1_p1"), ("b2", "trial2_p1"), ("b2r", "cross"),
        *(("b2r", f"trial{t}_p{p}") for t in (1, 2) for p in (1, 2)),
        ("theirs", "trial1_p1"), ("theirs", "trial2_p1"),
    }  # fmt: skip
    value = {(r["system"], r["attacker"], r["metric"]): r["value"] for r in rows}
    # Their "protected" speech is the original, half as loud: a voice is its own nearest.
    assert float(value["theirs", "leakage_p1", "cmc_1"]) == 1.0
    assert value["theirs", "trial2_p1", "eer"] == value["original", "trial2", "eer"]
    assert keep_results([str(results), str(tmp_path / "kept"), "--name", f"{tmp_path}=WORK"]) == 0
    assert (tmp_path / "kept/command.txt").read_text().startswith("./nist.sh --systems ")
    text = (results / "RESULTS.md").read_text()
    assert "| *Seo et al. 2025: VOXLET* | 0.373 | 158 | 50.6 | 49.9 |" in text
    # Above chance: (0.875 - 0.459) / (1 - 0.459) and (0.502 - 0.212) / (1 - 0.212).
    assert "| *Seo et al. 2025: Baseline (kNN-VC)* | 0.875 | 0.005 | 0.502 | 76.9 | 36.8 |" in text
    space = [
        line
        for line in text.splitlines()
        if line.startswith("| theirs | tiny/") and "0.0000" in line
    ]
    assert len(space) == 1 and space[0].endswith(" | 100.0 |")
    assert re.search(r"\| b2 \| [\d.]+ \[[\d., ]+\] \| – \|", text)
    again = run(tmp_path, *asked)
    assert "nothing to do: all" in again.stdout


@pytest.mark.slow
def test_the_nist_suite_does_not_train_the_encoder_of_the_recipe_anew(tmp_path: Path) -> None:
    """It named its own sets to be unseen, another command: what was trained was removed."""
    make_folder(tmp_path, "nist.sh")
    assert run(tmp_path, "./run.sh", "--stop-stage", "2").returncode == 0
    done = run(tmp_path, "./nist.sh", "--systems", "b2r", "--stop-stage", "1", "--dry-run", "full")
    assert done.returncode == 0
    assert "up to date: exp/encoders/tiny" in done.stdout


@pytest.mark.slow
def test_the_aligned_attacker_in_the_recipe(tmp_path: Path) -> None:
    make_folder(tmp_path)
    asked = ("--systems", "b2", "--attackers", "ignorant aligned", "--stop-stage", "9")
    assert run(tmp_path, "./run.sh", *asked).returncode == 0
    folders = sorted((tmp_path / "exp/metrics").glob("*/*/OA/small_test_f"))
    figures, _, missing = tabulate_all(folders, "small")
    assert not missing
    value = {(f["attacker"], f["metric"]): f["value"] for f in figures}
    assert value["aligned", "eer"] != value["ignorant", "eer"]
    for who in ("aligned", "ignorant"):
        assert 0 <= float(value[f"reid_{who}", "reid_top_1"]) <= 1
        assert float(value[f"reid_{who}", "chance_reid_top_1"]) == 0.25
    assert ("legal_aligned", "eer") not in value
    rows = tabulate(REID, with_numbers(pd.DataFrame(figures, columns=[*METRICS]))).rows
    assert {tuple(row[:4]) for row in rows} == {
        ("small_test_f", "b2", who, "OA") for who in ("aligned", "ignorant")
    }
    told = tmp_path / "exp/scores/b2/aligned.tiny+cosine/OA/small_test_f/attacker.json"
    record = json.loads(told.read_text())
    assert record["pairs"]["data"] == "data/small_test_enrolls_b2"
    assert record["training_set"] is None
