"""The NIST suite and the white-box study: lists, programs, tables, and both on a small corpus."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile

from local.check_external import main as check_external
from local.keep_results import main as keep_results
from local.make_nist import main as make_nist
from local.protocols.studies import make_segment_lists
from steps.join_xvectors import main as join
from tests.recipes import TEMPLATE, copy_world, run_recipe, take_systems
from tests.refusals import refuses
from tests.report_rows import Figure, read_table
from utils.archives import read_vectors, write_archive
from utils.cli import LossError
from utils.tables import read_map
from utils.trials import read_trials

SPEAKERS = {"a-1": "a", "a-2": "a", "a-3": "a", "b-1": "b", "b-2": "b", "c-1": "c"}


def test_nist_lists_by_hand() -> None:
    """Three, two and one segment of a, b (f) and c (m): c has nobody to be compared with."""
    lists = make_segment_lists(SPEAKERS, {"a": "f", "b": "f", "c": "m"})
    # Ordered pairs of a and b: 5·4; of one speaker 3·2 + 2·1. Half of them once.
    assert (len(lists["trial1"]), lists["trial1"].target.sum()) == (20, 8)
    assert (len(lists["trial2"]), lists["trial2"].target.sum()) == (10, 4)
    cross = lists["cross"]  # 003: two nontargets a target
    assert (len(cross), cross.target.sum()) == (12, 4)
    pairs, once = (
        {*zip(lists[name].enrol, lists[name].trial, strict=True)} for name in ("trial1", "trial2")
    )
    assert ("a-1", "b-2") in pairs and ("b-2", "a-1") in pairs
    assert not any(e == t or "c-1" in (e, t) for e, t in pairs)
    assert once == {(e, t) for e, t in pairs if e < t}
    for enrol, trial, target in zip(cross.enrol, cross.trial, cross.target, strict=True):
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
    refuses("b: has no gender", make_segment_lists, SPEAKERS, {"a": "f", "c": "m"})
    alone = dict.fromkeys(("a-1", "a-2", "a-3"), "a")
    refuses("trial1: no nontarget trial can be made of 3 segments", make_segment_lists, alone)
    refuses("trial1: no target trial", make_segment_lists, {"a-1": "a", "b-1": "b"})


def test_nist_lists_by_the_program(tmp_path, make_data_dir, capsys):
    data = make_data_dir(tmp_path / "data", {"a": 3, "b": 2, "c": 2})
    assert make_nist(["trials", str(data), str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    trials = read_trials(tmp_path / "out/trial1/trials")
    n_target = int(trials.target.sum())
    assert f"trial1  {n_target} target, {len(trials) - n_target} nontarget" in printed
    assert (tmp_path / "out/cross/utt2spk").read_text().startswith("a-000-p1 a\n")
    training = make_data_dir(tmp_path / "training", {"b": 1, "d": 1})
    asked = ["trials", "--training", *map(str, (training, data, tmp_path / "refused"))]
    refuses(r"data: speaker b \(1 in all\) is also in .*training", make_nist, asked)
    assert not (tmp_path / "refused").exists()


def test_xvectors_of_two_runs_are_told_apart(tmp_path: Path) -> None:
    for place, name in enumerate(("one", "two")):
        write_archive(tmp_path / name / "xvector", {"a-1": np.full(3, place, np.float32)})
    out = tmp_path / "out"
    assert join([str(out), f"p1={tmp_path / 'one'}", f"p2={tmp_path / 'two'}"]) == 0
    found = read_vectors(out / "xvector.scp")
    assert {key: float(value[0]) for key, value in found.items()} == {"a-1-p1": 0, "a-1-p2": 1}
    twice = [str(out), f"p1={tmp_path / 'one'}", f"p1={tmp_path / 'two'}"]
    refuses("a-1-p1 is there twice", join, twice)
    refuses("NAME=FOLDER or FOLDER is expected", join, [str(out), "p1="])


def soften(data: Path) -> None:
    """Half as loud, without loss, so that it is not the original."""
    rows = read_map(data / "wav.scp")
    for utt, path in rows.items():
        samples, rate = soundfile.read(data.parent / path)
        soundfile.write(data / f"{utt}.wav", samples / 2, rate, subtype="FLOAT")
    (data / "wav.scp").write_text("".join(f"{utt} {data / utt}.wav\n" for utt in rows))


def test_foreign_speech_is_checked_by_id(tmp_path, make_data_dir, capsys):
    original = make_data_dir(tmp_path / "original", {"a": 2, "b": 2})
    more = make_data_dir(tmp_path / "more", {"a": 2, "b": 3})
    less = make_data_dir(tmp_path / "less", {"a": 1, "b": 2})
    out = tmp_path / "out"
    asked = [str(original), str(more), str(out)]
    refuses("wav.scp: a-000: .* is the original speech, not protected", check_external, asked)
    soften(more)
    lost = r"1 of 4 utterances .* are missing: a-001"
    refuses(lost, check_external, [str(original), str(less), str(out)], kind=LossError)
    assert not out.exists()
    assert check_external(asked) == 0
    assert "left out 1 that" in capsys.readouterr().out
    assert str(more) in (out / "wav.scp").read_text()
    assert (out / "utt2spk").read_text() == (original / "utt2spk").read_text()
    text = (more / "utt2spk").read_text()
    for name in ("utt2spk", "spk2utt", "spk2gender"):
        (more / name).unlink()
    (more / "utt2spk").write_text(text.replace("a-001 a", "a-001 a-0"))
    refuses("a-001 is of a-0, but of a in", check_external, asked)


def test_foreign_speech_in_a_sub_folder_was_a_traceback(tmp_path, make_data_dir):
    original = make_data_dir(tmp_path / "original", {"a": 2, "b": 2})
    outer, inner = (
        make_data_dir(tmp_path / name, {who: 2}) for name, who in (("x", "a"), ("y", "b"))
    )
    for data in (outer, inner):
        soften(data)
    inner.rename(outer / "more")
    text = (outer / "more/wav.scp").read_text().replace(str(inner), str(outer / "more"))
    (outer / "more/wav.scp").write_text(text)
    assert check_external([str(original), str(outer), str(tmp_path / "out")]) == 0


def study(world: Path, folder: Path, script: str, *systems: str) -> Path:
    """A copy of the world with the script of a study and systems that it does not have."""
    copy_world(world, folder)
    (folder / script).symlink_to(TEMPLATE / script)
    take_systems(folder, *systems)
    return folder


@pytest.mark.slow
def test_the_nist_suite_on_a_small_corpus(world: Path, tmp_path: Path) -> None:
    """It trained the encoder of the recipe anew: it named its own sets to be unseen."""
    folder = study(world, tmp_path / "w", "nist.sh")
    asked = ("--evaluators", "tiny/cosine", "--systems", "b2r b2")
    dry = run_recipe(folder, *asked, "--stop-stage", "1", "--dry-run", "full", script="nist.sh")
    assert "up to date: exp/encoders/tiny" in dry.stdout
    theirs = folder / "theirs"
    run_recipe(folder, *asked, "--stop-stage", "0", script="nist.sh")
    shutil.copytree(folder / "data/small_test_nist", theirs)
    soften(theirs)
    asked = (*asked, "--external", f"theirs={theirs}")
    done = run_recipe(folder, *asked, script="nist.sh")
    assert "b2 draws nothing, so there is one profile" in done.stdout
    results = folder / "exp/nist/small_test_nist/results"
    rows = read_table(results / "metrics.csv", Figure)
    found = {(r.system, r.family, r.attacker) for r in rows if r.metric == "eer"}
    assert found == {
        ("original", "trial2", ""), ("b2r", "cross", ""),
        *((system, f"trial{t}", "p1") for system in ("b2", "b2r", "theirs") for t in (1, 2)),
        *(("b2r", f"trial{t}", "p2") for t in (1, 2)),
    }  # fmt: skip
    value = {
        (r.system, r.family, r.metric): r.value
        for r in rows if r.attacker in ("p1", "") and (r.kind, r.gallery) == ("value", "")
    }  # fmt: skip
    # Their "protected" speech is the original, half as loud: a voice is its own nearest.
    assert float(value["theirs", "leakage", "cmc_1"]) == 1.0
    assert value["theirs", "trial2", "eer"] == value["original", "trial2", "eer"]
    assert keep_results([str(results), str(tmp_path / "kept"), "--name", f"{folder}=WORK"]) == 0
    assert (tmp_path / "kept/command.txt").read_text().startswith("./nist.sh --evaluators ")
    text = (results / "RESULTS.md").read_text()
    assert "Seo et al. 2025: VOXLET" in (results / "paper.txt").read_text()
    assert "| *Seo et al. 2025: VOXLET* | 0.373 | 158 | 50.6 | 49.9 |" in text
    # Above chance: (0.875 - 0.459) / (1 - 0.459) and (0.502 - 0.212) / (1 - 0.212).
    assert "| *Seo et al. 2025: Baseline (kNN-VC)* | 0.875 | 0.005 | 0.502 | 76.9 | 36.8 |" in text
    (space,) = re.findall(r"^\| theirs \| tiny/.*0\.0000.*", text, re.M)
    assert space.endswith(" | 100.0 |")
    assert re.search(r"\| b2 \| [\d.]+ \[[\d., ]+\] \| – \|", text)
    assert "nothing to do: all" in run_recipe(folder, *asked, script="nist.sh").stdout
