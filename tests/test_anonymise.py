"""steps/anonymise.py: levels and keys, presets, what is written, and every kind of bad input."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import soundfile

from local.report.gather import settings_of_systems
from steps.anonymise import main
from steps.anonymisers.mcadams import McAdams
from steps.anonymisers.registry import Protected, load_anonymiser, protect_audio, write_protected
from steps.sources import VoiceKey, whole_set
from tests.refusals import accepts, refuses
from tests.world import check_in_parts, pseudo_rows
from utils.cli import LossError
from utils.datadir import DataDir, load_data_dir
from utils.parts import merge_parts
from utils.seeds import Draws
from utils.tables import read_map

SYSTEMS = Path(__file__).resolve().parents[1] / "egs/TEMPLATE/conf/systems"
RANDOM = "anonymiser: mcadams\nalpha_range: [0.7, 0.9]\n"


def conf(folder: Path, text: str) -> Path:
    path = folder / "system.yaml"
    path.write_text(text)
    return path


def protect(system: object, data: Path, out: Path, *options: object) -> dict[str, list[str]]:
    """Run the program; pseudo.tsv without its header and the seconds at the end, by utterance."""
    accepts(main, *options, system, data, out, out / "wav")
    return pseudo_rows(out, "key", "alpha")


def alphas(rows: dict[str, list[str]]) -> dict[str, float]:
    return {utt: float(row[1]) for utt, row in rows.items()}


def test_a_protected_data_directory(make_data_dir, tmp_path):
    data, out = make_data_dir(tmp_path / "set", {"s1": 2, "s2": 2}, seconds=0.2), tmp_path / "out"
    (data / "enrolls").write_text("s1-000\n")
    (data / "trials").write_text("s1 s2-000 nontarget\n")
    (data / "feats.scp").write_text("".join(f"s{n}-00{k} x.ark:5\n" for n in "12" for k in "01"))
    rows = protect(SYSTEMS / "b2r.yaml", data, out, "--seed", 3)
    assert rows["s1-000"][0] == "spk|set|s1"
    for name in ("utt2spk", "spk2utt", "spk2gender", "text", "utt2dur", "enrolls", "trials"):
        assert (out / name).read_text() == (data / name).read_text()
    assert not (out / "feats.scp").exists()  # of the original speech
    wav = dict(line.split() for line in (out / "wav.scp").read_text().splitlines())
    assert wav == {utt: f"{out}/wav/{utt}.wav" for utt in rows}
    for utt, path in wav.items():
        samples, rate = soundfile.read(path, dtype="int16")
        original = soundfile.info(data / "wav" / f"{utt}.wav")
        assert (rate, len(samples)) == (16000, original.frames)
        assert np.max(np.abs(samples.astype(int))) == 31130  # 0.95 of full scale
    settings = json.loads((out / "conf.json").read_text())
    assert settings["is_random"] is True
    assert (settings["dataset"], settings["seed"], settings["draw"]) == ("set", 3, 0)
    assert settings["system"]["alpha_range"] == [0.7, 0.9]


def test_a_system_is_told_the_language_of_each_utterance(make_data_dir, tmp_path, monkeypatch):
    data, told, made = make_data_dir(tmp_path / "set", {"s1": 2}), [], McAdams.transform
    (data / "utt2lang").write_text("s1-000 en\ns1-001 de\n")

    def transform(self, wave, key, source):
        told.append(source.language)
        return made(self, wave, key, source)

    monkeypatch.setattr(McAdams, "transform", transform)
    protect(SYSTEMS / "b2.yaml", data, tmp_path / "out")
    assert told == ["en", "de"]
    assert (tmp_path / "out/utt2lang").read_text() == (data / "utt2lang").read_text()


def test_acceptance_4_enrolment_and_trial_keys_differ_for_b2r_and_not_for_perm(
    make_data_dir, tmp_path
):
    data = make_data_dir(tmp_path / "data", {"s1": 2, "s2": 2})
    perm = conf(tmp_path, RANDOM + "level: perm\n")
    got = {
        (name, dataset): alphas(
            protect(path, data, tmp_path / name / dataset, "--dataset", dataset)
        )
        for name, path in (("b2r", SYSTEMS / "b2r.yaml"), ("perm", perm))
        for dataset in ("x_enrolls", "x_trials_f")
    }
    enrolled, tried = got["b2r", "x_enrolls"], got["b2r", "x_trials_f"]
    assert all(enrolled[utt] != tried[utt] for utt in enrolled)
    assert enrolled["s1-000"] == enrolled["s1-001"] != enrolled["s2-000"]
    assert got["perm", "x_enrolls"] == got["perm", "x_trials_f"]
    assert got["perm", "x_enrolls"]["s1-000"] != got["perm", "x_enrolls"]["s2-000"]


def test_alpha_is_drawn_from_the_range_and_depends_on_seed_draw_and_key_only(tmp_path):
    path = conf(tmp_path, RANDOM)
    keys = [VoiceKey("spk", ("set", str(number))) for number in range(500)]

    def draws(seed: int, draw: int) -> list[float]:
        system = load_anonymiser(path, Draws(seed, draw))
        return [system.coefficient(key) for key in keys]

    first = draws(0, 0)
    assert draws(0, 0) == first
    assert all(one != other for one, other in zip(first, draws(0, 1), strict=True))
    assert all(one != other for one, other in zip(first, draws(1, 0), strict=True))
    assert min(first) >= 0.7
    assert max(first) <= 0.9
    assert np.mean(first) == pytest.approx(0.8, abs=0.01)
    assert np.std(first) == pytest.approx(0.2 / 12**0.5, rel=0.06)


def test_same_bits_whatever_the_split_and_the_order(make_data_dir, tmp_path):
    """A seed that counts sets or jobs changes later voices when one is left out (VPC 2020)."""
    data = make_data_dir(tmp_path / "set", {"s1": 2, "s2": 1}, seconds=0.3)
    check_in_parts(lambda part, out: protect(SYSTEMS / "b2r.yaml", part, out), data, tmp_path)
    assert whole_set(data / "split2/1") == data
    assert whole_set(data / "split1/train") == data / "split1/train"  # of a user's own division


def test_a_deterministic_system_has_no_draws(make_data_dir, tmp_path):
    data = make_data_dir(tmp_path / "set", {"s1": 1})
    system, out = SYSTEMS / "b2.yaml", tmp_path / "out"
    protect(system, data, out)
    assert json.loads((out / "conf.json").read_text())["is_random"] is False
    refuses("draws nothing at random", protect, system, data, out, "--draw", 1)


def test_audio_that_cannot_be_used_is_named_and_counted(make_data_dir, tmp_path, capsys):
    data, out = make_data_dir(tmp_path / "set", {"s1": 3, "s2": 1}), tmp_path / "out"
    (data / "enrolls").write_text("s1-000\ns1-002\n")
    (data / "trials").write_text("s1 s2-000 nontarget\ns1 s1-001 target\n")
    soundfile.write(data / "wav/s1-000.wav", np.zeros(0), 16000)
    (data / "wav/s1-001.wav").write_text("no audio")
    protect(SYSTEMS / "b2.yaml", data, out, "--allow-loss", 2)
    # A tool that skips bad audio must say so, and stop beyond what was allowed (Kaldi's scp,p).
    assert "4 read, 2 written, 2 skipped" in capsys.readouterr().out
    skipped = (out / "skipped.txt").read_text()
    assert [line.split()[0] for line in skipped.splitlines()] == ["s1-000", "s1-001"]
    assert "no samples" in skipped
    assert (out / "enrolls").read_text() == "s1-002\n"
    assert (out / "trials").read_text() == "s1 s2-000 nontarget\n"
    assert len((out / "wav.scp").read_text().splitlines()) == 2
    said, few = r"2 of 4 utterances .* the first: s1-000: .*no samples", ("--allow-loss", 1)
    refuses(said, protect, SYSTEMS / "b2.yaml", data, out, *few, kind=LossError)
    # What an earlier run left no longer looks whole (re-made audio under old tables, VPC 2020).
    assert not (out / "wav.scp").exists()


def test_silence_made_of_speech_counts_as_lost(make_data_dir, tmp_path):
    """A system that writes zeros for some utterances would look more private."""
    data = load_data_dir(make_data_dir(tmp_path / "set", {"s1": 2}))

    class Mutes:
        output = load_anonymiser(SYSTEMS / "b2.yaml").output
        ends = "keep"

        def transform(self, samples: np.ndarray, key: VoiceKey, source: object) -> object:
            return samples * (key == "loud"), {}

    keys = {"s1-000": "loud", "s1-001": "mute"}
    found = protect_audio(data.wav, keys, dict.fromkeys(keys), Mutes(), tmp_path)  # type: ignore[arg-type]
    assert list(found.files) == ["s1-000"]
    assert "s1-001: the protected signal is digital silence" in found.skipped["s1-001"]
    refuses("1 of 2 utterances lost", found.finish, tmp_path, 2, 0, kind=LossError)


def test_bad_arguments(make_data_dir, tmp_path, run_program):
    data, out = make_data_dir(tmp_path / "set", {"s1": 1}), tmp_path / "out"
    bad = {
        r"nowhere.yaml: cannot be read": ["nowhere.yaml", data, out, out],
        r"no such data directory": [SYSTEMS / "b2.yaml", tmp_path / "none", out, out],
        "--draw': expected a whole number": ["--draw", -1, SYSTEMS / "b2.yaml", data, out, out],
        r"--dataset 'a b': ": ["--dataset", "a b", SYSTEMS / "b2.yaml", data, out, out],
    }
    for message, arguments in bad.items():
        done = run_program("steps/anonymise.py", *arguments, status=2)
        assert message in done.stderr
        assert done.stderr.count("\n") == 1
        assert not out.exists()


def test_notes_of_parts_become_one_file_and_reach_the_report(make_data_dir, tmp_path):
    """That a pool was too small to choose from stood in a job's log only."""
    data = load_data_dir(make_data_dir(tmp_path / "set", {"s1": 1, "s2": 1}))
    out = tmp_path / "set_x"
    for number, (utt, notes) in enumerate(
        (("s1-000", ["all were taken", "by cosine"]), ("s2-000", ["by cosine"])), start=1
    ):
        tables = {name: {utt: "x"} for name in ("wav.scp",)} | {"utt2spk": {utt: utt[:2]}}
        part = out / "split2" / str(number)
        result = Protected(files={utt: f"{utt}.wav"}, rows={utt: {"key": "k"}})
        write_protected(part, DataDir(data.path, tables), result, {"system": {}}, notes)
    merge_parts(out, 2)
    notes = ["all were taken", "by cosine"]
    assert sorted(read_map(out / "notes.txt", rest_of_line=True).values()) == notes
    told = settings_of_systems([("x", str(data.path), str(out))])[0]["x"]
    assert isinstance(told, dict)
    assert told["remarks"] == notes


def test_ids_that_are_no_file_names_are_refused(make_data_dir, tmp_path):
    data = make_data_dir(tmp_path / "set", {"s1": 1})
    for name in ("wav.scp", "utt2spk", "spk2utt", "text", "utt2dur"):
        text = re.sub(r"(?<!/)\bs1-000(?=\s)", "s1/../x", (data / name).read_text())
        (data / name).write_text(text)
    said = r"set/utt2spk:1: utterance 's1/\.\./x' cannot name a file"
    refuses(said, protect, SYSTEMS / "b2.yaml", data, tmp_path / "out")
