"""From a table of utterances to a data directory, and the faults that a table can have."""

from pathlib import Path

import pytest

from local.make_data_dir import main
from tests.corpus_trees import files, write_audio
from tests.refusals import refuses
from utils.cli import LossError
from utils.datachecks import validate_data_dir
from utils.datadir import load_data_dir


def write_table(folder: Path, *rows: str, header: str = "utt spk gender audio text") -> Path:
    path = folder / "table.tsv"
    lines = [header.replace(" ", "\t"), *(row.replace("|", "\t") for row in rows)]
    path.write_bytes("".join(f"{line}\n" for line in lines).encode(errors="surrogateescape"))
    return path


def make(table: Path, out: Path, *options: str) -> None:
    assert main([*options, str(table), str(out)]) == 0


def test_what_is_written(tmp_path, capsys):
    write_audio(tmp_path / "a b.wav", seconds=0.5)
    write_audio(tmp_path / "c.flac", seconds=0.25)
    first = f"s1-2|s1|f|{tmp_path}/a b.wav|  DÉJÀ   VU "
    table = write_table(tmp_path, first, f"s1-1|s1|f|{tmp_path}/c.flac|ONE")
    make(table, tmp_path / "out", "--nj", "2")
    data = load_data_dir(tmp_path / "out", need=("wav.scp", "spk2gender", "text", "utt2dur"))
    assert data.wav == {"s1-1": f"{tmp_path}/c.flac", "s1-2": f"{tmp_path}/a b.wav"}
    assert data.utt2dur == {"s1-1": 0.25, "s1-2": 0.5}
    assert data.text == {"s1-1": "ONE", "s1-2": "DÉJÀ VU"}
    assert data.spk2gender == {"s1": "f"}
    assert validate_data_dir(tmp_path / "out") == []
    printed = capsys.readouterr().out
    assert printed == f"{tmp_path}/out: 2 read / 2 written / 0 skipped; 1 speakers, 0.000 h\n"
    before = files(tmp_path / "out")
    make(write_table(tmp_path, f"s1-1|s1|f|{tmp_path}/c.flac|ONE", first), tmp_path / "out")
    assert files(tmp_path / "out") == before  # whatever the order of the table


def test_a_corpus_without_transcripts_and_genders(tmp_path):
    write_audio(tmp_path / "c.flac")
    table = write_table(tmp_path, f"s1-1|s1|{tmp_path}/c.flac|x", header="utt spk audio channel")
    make(table, tmp_path / "out")
    data = load_data_dir(tmp_path / "out")
    assert data.text is None and data.spk2gender is None


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("s1-2|s1|f||TWO", "s1-2: there is no audio file for it"),
        ("s1-2|s1|f|{wav}|", "s1-2: there is no transcript for {wav}"),
        ("s2-2|s2||{wav}|TWO", "s2-2: speaker s2 is not given a gender"),
        ("s2-2|s2|x|{wav}|TWO", "s2-2: speaker s2 has gender 'x'; f, m or other is expected"),
        ("x-2|s1|f|{wav}|TWO",
         "x-2: the speaker 's1' does not begin the utterance id; call it s1-x-2"),
        ("s1-2||f|{wav}|TWO", "s1-2: the speaker '' does not begin the utterance id"),
        ("s1-2|s1|f|nowhere.wav|TWO", "s1-2: nowhere.wav is missing"),
        ("s1-2|s1|f|{stereo}|TWO", "s1-2: {stereo} has 2 channels"),
    ],
)  # fmt: skip
def test_an_utterance_that_cannot_be_used(tmp_path, capsys, row, message):
    import numpy as np
    import soundfile

    names = {"wav": str(tmp_path / "c.wav"), "stereo": str(tmp_path / "stereo.wav")}
    write_audio(tmp_path / "c.wav")
    soundfile.write(names["stereo"], np.zeros((100, 2)), 16000)
    table = write_table(tmp_path, "s1-1|s1|f|{wav}|ONE".format(**names), row.format(**names))
    said = "out: not written: 1 of 2 utterances cannot be used"
    refuses(said, make, table, tmp_path / "out", kind=LossError)
    assert not (tmp_path / "out").exists()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(f"make_data_dir.py: {message.format(**names)}")
    make(table, tmp_path / "out", "--allow-loss", "1")
    assert list(load_data_dir(tmp_path / "out").utt2spk) == ["s1-1"]
    assert "2 read / 1 written / 1 skipped (1 for the " in capsys.readouterr().out


def test_a_speaker_of_two_genders_or_ages_and_many_faults(tmp_path, capsys):
    write_audio(tmp_path / "c.wav")
    path = write_table(tmp_path, "s-1|s|17|x", "s-2|s|18|y", header="utt spk age audio")
    refuses("2 of 2", make, path, tmp_path / "out", kind=LossError)
    assert "s-1: speaker s has several ages" in capsys.readouterr().err
    rows = [f"s1-{n:02d}|s1|{'fm'[n % 2]}|{tmp_path}/c.wav|ONE" for n in range(30)]
    refuses("30 of 30", make, write_table(tmp_path, *rows), tmp_path / "out", kind=LossError)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].endswith("s1-00: speaker s1 has several genders")
    assert lines[20:] == ["make_data_dir.py: and 10 more"]
    refuses(r"correct the corpus$", make, tmp_path / "table.tsv", tmp_path / "out", kind=LossError)
    capsys.readouterr()
    words = (tmp_path / "table.tsv", tmp_path / "out", "--allow-loss", "30")
    refuses("no utterance can be used", make, *words)


def test_a_recording_under_two_ids_was_both_enrolled_and_tried(tmp_path, capsys):
    """Of one person it made targets that are equal, of two people nontargets that are."""
    write_audio(tmp_path / "c.wav")
    (tmp_path / "link.wav").symlink_to("c.wav")
    rows = [
        f"{spk}-{n}|{spk}|f|{tmp_path}/{name}.wav|ONE"
        for spk, n, name in (("s1", 1, "c"), ("s1", 2, "c"), ("s2", 1, "c"), ("s2", 2, "link"))
    ]
    refuses("3 of 4", make, write_table(tmp_path, *rows), tmp_path / "out", kind=LossError)
    told = capsys.readouterr().err
    for utt, name in (("s2-1", "c"), ("s2-2", "link")):
        assert f"{utt}: {tmp_path}/{name}.wav is already that of s1-1" in told


def test_a_name_in_two_normal_forms_was_two_people(tmp_path):
    """macOS names folders in the decomposed form; on the screen both are alike."""
    for name in "ab":
        write_audio(tmp_path / f"{name}.wav")
    rows = ["a.wav|Jos\u00e9|m", "b.wav|Jose\u0301|m"]
    make(write_table(tmp_path, *rows, header="file speaker sex"), tmp_path / "out")
    assert set(load_data_dir(tmp_path / "out").spk2utt) == {"Jos\u00e9"}


@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        ("utt spk", ["s1-1|s1"], r"table\.tsv:1: no column audio"),
        ("utt spk audio", ["s1-1|s1"], r"table\.tsv:2: 2 tab-separated fields, but 3 columns"),
        ("utt spk audio", ["s1 1|s1|a"], r"table\.tsv:2: 's1 1' is not an utterance id"),
        ("utt spk audio", ["s1/1|s1|a"], r"table\.tsv:2: .*'s1/1' cannot .*; call it s1_1"),
        ("utt spk audio", ["s1-1|s1|a", "s1-1|s1|b"], "s1-1: is there twice: a and b"),
        ("utt spk audio", [], "lists no utterance"),
        ("file who", ["a|s"], r"table\.tsv:1: no column speaker; a header line with tabs is"),
        ("file,speaker", ["a,s"], ":1: no column file; a header"),
        ("utt spk audio", ["s1-1|s1|a\r"], "dos2unix"),
        ("utt spk audio", ["s1-1|s1|W\udcf6rter"], "not UTF-8"),  # written as Latin-1
        ("file speaker sex spk", ["a|b|f|c"], "two of the columns file speaker sex spk say"),
        ("utt spk audio text text", ["s-1|s|a|b|c"], "utt spk audio text text say the same"),
        ("file speaker sex", ["a|A b|f", "c|A_b|f"], "'A b' and 'A_b' would both be called A_b"),
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_read(tmp_path, header, rows, message):
    refuses(message, make, write_table(tmp_path, *rows, header=header), tmp_path / "out")
