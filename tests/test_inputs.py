"""Bad inputs that passed in silence, hung, or ended with a traceback; one test each."""

import copy
import os
import shutil
import struct
from collections.abc import Callable
from dataclasses import make_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch
import yaml

from local import check_external
from local.metrics.leakage import embeddings, leakage
from local.protocols.attackers import AttackSet, describe_encoder
from local.report.gather import origin
from local.report.tables import Table
from local.report.wording import code
from steps import train_backend
from steps.audio import read_audio
from steps.generators import idmap
from steps.generators.idmap import MlpSettings
from steps.generators.idmap_diff import DiffSettings
from steps.import_xvectors import find_archive
from steps.speaker.config import EncoderConfig
from steps.speaker.vectors import speakers_of
from steps.synthesis import trained
from steps.synthesis.f0 import QUANTILES
from steps.synthesis.voices import VoicePool
from steps.training.settings import read_config
from tests.refusals import refuses, refuses_file, refuses_words
from utils import fix_data_dir
from utils.archives import ArchiveWriter, read_vectors, write_archive
from utils.cli import UserError
from utils.datachecks import probe_audio
from utils.datadir import load_data_dir, read_training_speakers
from utils.settings import parse_settings, read_settings
from utils.tables import read_id_lists, read_map
from utils.trials import read_trials

ROOT = Path(__file__).resolve().parents[1]


NO_FILES = ("dangling", "loop", "folder", "fifo")


def make_no_file(path: Path, what: str) -> None:
    """Something that has a file's name and cannot be read as one."""
    path.unlink(missing_ok=True)
    if what == "folder":
        path.mkdir()
    elif what == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(path if what == "loop" else "nowhere")


@pytest.fixture
def wav(tmp_path: Path) -> Path:
    path = tmp_path / "a.wav"
    soundfile.write(path, np.sin(np.arange(16000) / 10) / 2, 16000, subtype="PCM_16")
    return path


def no_audio(path: Path, words: str) -> None:
    assert words in probe_audio(path).problem
    refuses(f"utt: {path}: .*", read_audio, "utt", str(path))


def at(place: int, form: str, value: int) -> Callable[[bytes], bytes]:
    new = struct.pack(form, value)
    return lambda data: data[:place] + new + data[place + len(new) :]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data[:8000], "is truncated"),
        (lambda data: data[:20000], "is truncated"),
        (at(24, "<I", 1), "sampling rate of 1 Hz"),
        (at(24, "<I", 2**31 - 1), "sampling rate of 2147483647 Hz"),
        (at(34, "<H", 1), "bytes and bits of a sample contradict each other"),
        (at(34, "<H", 7), "bytes and bits of a sample contradict each other"),
        (at(34, "<H", 8), "bytes and bits of a sample contradict each other"),
    ],
)
def test_a_wav_that_passed_hung_or_gave_noise(wav, change, words):
    """Truncated, without utt2dur; with an absurd rate; with a header that contradicts itself."""
    wav.write_bytes(change(wav.read_bytes()))
    no_audio(wav, words)


def test_floats_in_units_of_16_bit_were_clipped_to_square_waves(tmp_path):
    path = tmp_path / "a.wav"
    for scale in (3.0, 32768.0):  # the first is only loud
        soundfile.write(path, scale * np.sin(np.arange(8000) / 9), 16000, subtype="FLOAT")
        if scale == 3:
            assert np.abs(read_audio("u", str(path)).samples).max() == pytest.approx(3, abs=0.01)
    refuses("u: .*samples reach 32768 times full scale", read_audio, "u", str(path))


def test_a_truncated_flac_without_utt2dur_passed(tmp_path):
    path = tmp_path / "a.flac"
    noise = np.random.default_rng(1).normal(0, 0.1, 16000)
    soundfile.write(path, noise, 16000)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    no_audio(path, "is truncated or damaged")


@pytest.mark.parametrize("what", NO_FILES)
@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("utt2spk", lambda path: speakers_of(path.parent, load_data_dir(path.parent / "d"))),
        ("spk2gender", lambda path: VoicePool.load(path.parent)),
        ("spklist", lambda path: read_training_speakers(path.parent)),
        ("conf.json", lambda path: AttackSet.read(path.parent)),
        ("encoder.yaml", lambda path: describe_encoder(str(path.parent), ())),
        ("xvector.ark", lambda path: find_archive(path.parent)),
        ("cmdline.log", origin),
    ],
)
def test_what_may_be_absent_was_absent_where_it_is_no_file(
    tmp_path, make_data_dir, name, read, what
):
    """average_xvectors.py averaged all utterances where utt2spk of chunks was a dangling link."""
    data = make_data_dir(tmp_path / "d")
    spk2utt = read_id_lists(data / "spk2utt")
    for table, ids, values in (
        ("xvector", load_data_dir(data).utt2spk, 4),
        ("spk_xvector", spk2utt, 4),
        ("spk_f0", spk2utt, 3 + len(QUANTILES)),
    ):
        write_archive(tmp_path / table, {key: np.ones(values, np.float32) for key in ids})
    for table in ("spk2utt", "utt2spk"):
        shutil.copy(data / table, tmp_path)
    (tmp_path / "world.scp").write_text("")
    make_no_file(tmp_path / name, what)
    refuses(rf"{tmp_path / name}: is ", read, tmp_path / name)


@pytest.mark.parametrize("what", [*NO_FILES, "missing", "pipe", "empty", "cut"])
def test_check_external_took_audio_that_is_not_there(tmp_path, make_data_dir, what):
    original, theirs = make_data_dir(tmp_path / "a"), make_data_dir(tmp_path / "b")
    utt, name = next(iter(read_map(theirs / "wav.scp").items()))
    if what == "pipe":
        scp = (theirs / "wav.scp").read_text()
        (theirs / "wav.scp").write_text(scp.replace(name, f"cat {name} |"))
    elif what in NO_FILES:
        make_no_file(Path(name), what)
    elif what == "missing":
        Path(name).unlink()
    else:
        Path(name).write_bytes(Path(name).read_bytes()[: 50 * (what == "cut")])
    said = rf"{theirs}/wav.scp: {utt}: .*1 of 5 audio files"
    refuses_words(said, check_external.main, original, theirs, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_row_missing_from_pseudo_tsv_was_not_noticed(tmp_path, make_data_dir):
    """Then a draw that enrolment and trials share was not seen, and less time was counted."""
    data, path = make_data_dir(tmp_path / "d"), tmp_path / "d/pseudo.tsv"
    rows = [f"{utt}\tk\n" for utt in load_data_dir(data).utt2spk]
    for lines, words in (
        (rows[1:], r"1 of 5 utterances missing \(s1-000\)"),
        ([*rows, "x\tk\n"], r"1 utterance unknown \(x\)"),
        ([*rows, rows[0]], "listed twice"),
        ([*rows[1:], "s1-000\n"], ":6: 1 fields where"),
    ):
        path.write_text("".join(["#utt\tkey\n", *lines]))
        refuses(f"{path}.*{words}", AttackSet(load_data_dir(data), {"draw": "0"}).draws)
    path.write_text("".join(["#utt\tno\n", *rows]))
    refuses("no column 'key'", AttackSet(load_data_dir(data), {"draw": "0"}).draws)


def test_problems_left_by_fix_data_dir_ended_with_0(tmp_path, make_data_dir):
    data = make_data_dir(tmp_path / "d")
    rows = [line.split() for line in (data / "utt2spk").read_text().splitlines()]
    (data / "spk2utt").unlink()
    (data / "spk2gender").unlink(missing_ok=True)
    (data / "utt2spk").write_text("".join(f"{utt} x{spk}\n" for utt, spk in rows))
    refuses("problems remain", fix_data_dir.main, [str(data)])


def test_blank_lines_at_the_end_of_a_table_were_refused(tmp_path):
    path = tmp_path / "t"
    path.write_text("a b\n\n \t\n")
    assert read_map(path) == {"a": "b"}
    path.write_text("a b target\n\n\n")
    assert len(read_trials(path)) == 1
    refuses_file(":2: 0 fields", read_map, path, "a b\n\nc d\n")


@pytest.mark.parametrize(
    "value", ["!!timestamp 2024-02-30", "!!int abc", "9" * 5000, "[" * 500, "!!float x", "\x01"]
)
def test_a_yaml_value_that_ended_with_a_traceback(tmp_path, value):
    path = tmp_path / "a.yaml"
    refuses_file(str(path), read_settings, path, f"a: {value}\n")


def test_sexagesimal_numbers_and_dates_are_words(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("a: 1:30\nb: 1:30.5\nc: 2024-02-30\nd: 12\ne: 1.5e-3\nf: true\ng: .inf\n")
    found = read_settings(path)
    assert list(found.values()) == ["1:30", "1:30.5", "2024-02-30", 12, 0.0015, True, float("inf")]


def test_whole_numbers_that_begin_with_0_were_octal(tmp_path):
    (tmp_path / "a.yaml").write_text("a: 010\nb: 0\nc: -12\n")
    assert list(read_settings(tmp_path / "a.yaml").values()) == ["010", 0, -12]


def test_1e_3_is_no_number_of_yaml_and_nobody_said_so(tmp_path):
    said = r"'1e-3'; a number, in YAML with a point \(1\.0e-3\), is expected"
    kind = make_dataclass("Kind", [("rate", float)])
    refuses(said, parse_settings, kind, {"rate": "1e-3"}, "a")


def test_an_offset_beyond_an_integer(tmp_path):
    write_archive(tmp_path / "x", {"a": np.ones(3)})
    (tmp_path / "x.scp").write_text(f"a {tmp_path}/x.ark:{'9' * 30}\n")
    refuses("beyond all files", read_vectors, tmp_path / "x.scp")


NETWORKS: dict[str, Callable[[Path], object]] = {
    "encoders/ecapa_mini": partial(read_config, EncoderConfig),
    "encoders/xvector_mini": partial(read_config, EncoderConfig),
    "synthesisers/nsf_mini": partial(read_config, trained.NsfConfig),
    "generators/idmap_mlp": partial(read_config, MlpSettings),
    "generators/idmap_diff": partial(read_config, DiffSettings),
    "generators/wgan": partial(read_config, idmap.WganConfig),
}
SIZES = {
    "network": "channels kernel width identity noise components bands layers",
    "features": "bins", "discriminators": "scales period_channels",
}  # fmt: skip


@pytest.mark.parametrize("size", [0, -1, 10**12])
@pytest.mark.parametrize("conf", NETWORKS)
def test_sizes_of_layers_that_cannot_be(tmp_path, conf, size):
    """Those of one network were looked at; others were asked for 10^12 channels."""
    path = tmp_path / "conf.yaml"
    settings = read_settings(ROOT / f"egs/TEMPLATE/conf/{conf}.yaml")
    n_tried = 0
    for where, name in [(section, name) for section in SIZES for name in SIZES[section].split()]:
        changed = copy.deepcopy(settings)
        changed.setdefault(where, {})[name] = [size] * 5 if name == "period_channels" else size
        path.write_text(yaml.safe_dump(changed))
        try:
            NETWORKS[conf](path)
        except UserError as error:
            n_tried += f"{where}.{name}: {size}; " in str(error) and "65536 is" in str(error)
            assert "\n" not in str(error)
        else:
            pytest.fail(f"{where}.{name}: {size} passed")
    assert n_tried >= 1


@pytest.mark.parametrize("noise", [0.0, 1e-7])
@pytest.mark.parametrize("of_speaker", [True, False])
def test_equal_xvectors_ended_with_a_traceback(tmp_path, make_data_dir, noise, of_speaker):
    """And where rounding told them apart, a back end was learnt from the rounding."""
    data, rng = make_data_dir(tmp_path / "d", {"a": 3, "b": 3, "c": 3}), np.random.default_rng(0)
    voices = {spk: rng.normal(size=6) if of_speaker else np.full(6, 0.1) for spk in "abc"}
    with ArchiveWriter(tmp_path / "xvector") as writer:
        for utt, spk in load_data_dir(data).utt2spk.items():
            vector = voices[spk] * (1 + noise * rng.normal(size=6))
            writer.write(utt, vector.astype(np.float32))
    said = "x-vectors of each speaker are equal; extract them again"
    refuses_words(said, train_backend.main, tmp_path, data, tmp_path / "out")
    assert not (tmp_path / "out").exists()


NAME = "a|b <i>`x`</i> *y*\n_z_ &lt; c\\d const_01_f0"


def test_names_in_results_md_were_not_escaped():
    """A bar or a line break in a name moved all cells after it; HTML in it was shown as such."""
    table = Table(["system", "EER (%)"], [[NAME, "1.0 [0.5, 2.0]"], [code("a`|b"), "–"]])
    assert table.markdown().splitlines() == [
        "| system | EER (%) |",
        "| --- | --- |",
        r"| a\|b \<i>\`x\`\</i> \*y\* \_z\_ \&lt; c\\d const_01_f0 | 1.0 [0.5, 2.0] |",
        r"| ``a`\|b`` | – |",
    ]


def test_leakage_did_not_say_which_utterances_are_missing(caplog):
    rng = np.random.default_rng(0)
    utt2spk = {f"{s}-{i}": s for s in "abc" for i in range(4)}
    vectors = {utt: rng.normal(size=4).astype(np.float32) for utt in utt2spk}
    less = {utt: x for utt, x in vectors.items() if utt not in ("a-1", "b-2")}
    sides = (embeddings(side, utt2spk, path="x", utt2spk_path="u") for side in (vectors, less))
    leakage(*sides)
    assert "2 of 12 utterances missing (a-1 b-2)" in caplog.text


@pytest.mark.parametrize("subtype", ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "ULAW"])
@pytest.mark.parametrize("kind", ["WAV", "WAVEX"])
def test_headers_of_all_kinds_are_taken(tmp_path, kind, subtype):
    path = tmp_path / "a.wav"
    soundfile.write(path, np.sin(np.arange(1600) / 10) / 2, 16000, subtype=subtype, format=kind)
    assert probe_audio(path).problem == ""


@pytest.mark.parametrize("name", ["mean", "deviation", "conditioner.fixed"])
@pytest.mark.parametrize(
    "value", [None, "a", torch.tensor(1.0), torch.zeros(0), torch.full((2,), torch.nan)]
)
def test_vectors_beside_the_weights_were_not_looked_at(tmp_path, name, value):
    """A WGAN's deviation could be a word until a vector was made; a number gave a TypeError."""
    kind: Any = idmap.MlpTrainer if "." in name else idmap.WganTrainer
    values, conf = {"generator": kind.__name__[:-7]}, tmp_path / "generator.yaml"
    weights = kind.network_class(kind.kind("x").network, 2).state_dict()
    assert kind.load(values, conf, weights, 1).dimension == 2
    message = rf"{tmp_path}/final\.pt: ({name}: not a vector|does not hold the weights)"
    refuses(message, kind.load, values, conf, {**weights, name: value}, 1)
