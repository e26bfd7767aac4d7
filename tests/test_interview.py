"""Interviews: files of turns and texts, a voice for each person, who stays, and what is removed."""

import errno
import json
import os
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steps.anonymisers.registry import Anonymiser, AsItIs
from steps.protect_folder import main
from steps.sources import FIRST, NOTHING, SystemRun
from steps.standalone import job, people, scenes, turns
from steps.standalone.hearing import Heard
from steps.standalone.people import Scene
from steps.standalone.protection import Work
from steps.standalone.stream import Recording
from steps.standalone.turns import REDACT, Turn
from steps.synthesis.f0 import compute_f0_stats
from tests.recipes import ROOT, put_program
from tests.refusals import accepts, refuses, refuses_file
from tests.test_protect_folder import KEY, SYSTEM, samples, speechlike, write
from utils.cli import LossError
from utils.tables import write_file

# ---- Files as their own tools write them: umlauts, CRLF, overlapping tiers, empty labels, times
# beyond the end of a recording of 4 s.

FILES = ROOT / "tests/turns"


@pytest.mark.parametrize("name", sorted(path.name for path in FILES.iterdir()))
def test_files_of_turns_are_read_and_written_back(tmp_path, name):
    def timed(path: Path) -> list[Turn]:
        return [turn for turn in turns.read_turns(path) if turn.end < turns.NEVER]

    found = timed(FILES / name)
    assert {t[:2] for t in found} - {(3.0, 3.5)} == {(0.5, 2.0), (1.5, 10.0)}
    first = "JÜR" if name == "a.cha" else "Jürgen"
    assert [t.person for t in found if t.person][:2] == [first, "INT"]
    if name == "a.tsv":  # which is never copied
        return
    target, named = tmp_path / name, {first: "P1", "INT": "P2"}
    new = [
        Turn(t.begin + 0.5, t.end + 0.5, named.get(t.person, t.person),
             t.words.replace("Anna Öz", "[name]"), t.channel)
        for t in turns.read(FILES / name) if not turns.is_notes(t.person)
    ]  # fmt: skip
    turns.write(target, "b.wav", new)
    again = timed(target)
    assert {t[:2] for t in again} == {(t.begin + 0.5, t.end + 0.5) for t in found}
    assert {t.person for t in again} - {""} == {"P1", "P2"}
    text = target.read_text("utf-8")
    for hidden in ("Jürgen", "JÜR", "Anna", "Jena", "lastUsed", "34;"):
        assert hidden not in text
    if any(t.words for t in found):
        said = next(t.words for t in again if t.person == "P1")
        assert "Tag" in said and "[name]" in next(t.words for t in again if t.person == "P2")
    if name in ("a.TextGrid", "a.eaf"):
        assert turns.read_spans(target) == [Turn(3.5, 3.7, REDACT, "name")]


# ---- Whose each moment is, and who is in the clear.

some_turns = st.lists(
    st.builds(
        lambda begin, lasts, who: Turn(begin / 100, (begin + lasts) / 100, who),
        st.integers(0, 2000), st.integers(1, 500), st.sampled_from(["A", "B", "C", ""]),
    ), max_size=12,
)  # fmt: skip


@given(some_turns)
def test_every_frame_has_one_owner_and_nobody_protected_is_in_the_clear(drawn):
    loudness = np.random.default_rng(0).random(2200)
    parts = people.shares(drawn, people.clear_of(drawn, {"A"}), loudness)
    owned, others = np.zeros(2200, int), [t for t in drawn if t.person != "A"]
    for who, stretches in parts.items():
        for begin, end in stretches:
            owned[begin:end] += 1
            if who is None:
                guard = people.GUARD - 1e-6
                a, b = begin / 100 - 0.011, end / 100 + 0.011  # with the fades
                assert not any(t.begin - guard < b and a < t.end + guard for t in others)
                assert any(t.person == "A" and t.begin < b and a < t.end for t in drawn)
    assert (owned == 1).all()


def test_overlap_is_of_who_began_and_cuts_lie_in_pauses():
    drawn = [Turn(1, 5, "A"), Turn(2, 3, "B"), Turn(6, 8, "B"), Turn(7.5, 10, "C")]
    loudness = np.ones(1100)
    loudness[540:550] = loudness[820:826] = 0.0
    assert people.overlap(drawn) == pytest.approx(1.5)
    found = people.shares(drawn, (), loudness)
    (a,), (b,), (c,) = found["A"], found["B"], found["C"]
    assert a[0] == 0 and 540 <= a[1] <= 550 and a[1] == b[0]
    assert 820 <= b[1] <= 826 and b[1] == c[0] and c[1] == 1100


# ---- Folders.


@pytest.fixture
def interview(tmp_path: Path) -> Path:
    """A and B in turn, 12 s; they say nothing at the same time."""
    write(tmp_path / "in/talk.wav", speechlike(12.0))
    said = [Turn(at, at + 3, who) for at, who in zip((0, 3, 6, 9), "ABAB", strict=True)]
    turns.write(tmp_path / "in/talk.rttm", "talk", said)
    return tmp_path / "in"


def run(words: str, *paths: object) -> None:
    given = ["--system", SYSTEM, "--nj", 1, "--key", KEY, *shlex.split(words), *paths]
    accepts(main, *given)


def part(begin: float, end: float) -> slice:
    return slice(int(begin * 16000), int(end * 16000))


def told(out: Path, name: str = "talk.wav") -> dict[str, object]:
    return json.loads(out.with_name(f"{out.name}.account.json").read_text())["files"][name]


def alike(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(a, b)[0, 1])


def test_each_person_has_a_voice_and_the_account_speaks_of_people(interview, tmp_path, capsys):
    out, one = tmp_path / "out", tmp_path / "one"
    run("--turns beside", interview, out)
    assert "2 people, 4 turns, 0:00 of overlap in one voice" in capsys.readouterr().out
    assert told(out) | {"people": 2, "turns": 4, "seconds_overlap": 0.0} == told(out)
    assert "2 people, 4 turns" in (tmp_path / "out.account.html").read_text()
    run("", interview, one)
    both, alone = samples(out / "talk.wav"), samples(one / "talk.wav")
    assert len(both) == 12 * 16000
    middles = [part(at + 0.5, at + 2.5) for at in (0, 3, 6, 9)]
    near = [alike(both[middle], alone[middle]) for middle in middles]
    # Whoever is A speaks alike in both turns, and B otherwise: not as one voice for all.
    assert abs(near[0] - near[2]) < 0.05 and abs(near[1] - near[3]) < 0.05
    assert min(near) < 0.97
    # A correction is made anew, and nothing else is.
    for made in (0, 1):
        run("--turns beside", interview, out)
        assert f"{made} files protected now" in capsys.readouterr().out
        with (interview / "talk.rttm").open("a") as stream:
            stream.write("SPEAKER talk 1 1.0 0.5 <NA> <NA> C <NA> <NA>\n")
    assert told(out)["people"] == 3


def test_who_is_kept_is_heard_as_they_are_and_nobody_else(interview, tmp_path):
    out, source = tmp_path / "out", samples(interview / "talk.wav")
    run("--turns beside --keep B", interview, out)
    made = samples(out / "talk.wav")
    assert alike(made[part(3.4, 5.6)], source[part(3.4, 5.6)]) > 0.9999
    for place in (part(0.2, 3.28), part(5.72, 9.28)):
        assert alike(made[place], source[place]) < 0.98
    run("--turns beside --protect A", interview, only := tmp_path / "only")
    assert (samples(only / "talk.wav") == made).all()
    (interview / "talk.tsv").write_text("0 3 A\n3 6 B\n6 9 A\n9 12 b\n")
    for words, why in (
        ("beside --keep C", "C: nobody is called so"), ("beside --keep B --protect A", "one of"),
        ("auto --keep B", "--keep"), ("beside --keep B", "b: is this another"),
    ):  # fmt: skip
        if "another" in why:
            (interview / "talk.rttm").unlink()
        refuses(why, run, f"--turns {words}", interview, tmp_path / "no")
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("name", ["posix_fallocate", "fsync"])
def test_a_full_disk_killed_the_run(interview, tmp_path, monkeypatch, name):
    """By a signal, as memory was mapped to a file that had no place yet."""
    real = getattr(os, name)

    def full(file: int, *more: int) -> None:
        if max(os.fstat(file).st_size, *more, 0) > 100_000:  # no account has so much
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(file, *more)

    monkeypatch.setattr(os, name, full)
    refuses("1 of 1", run, "--turns beside", interview, tmp_path / "out", kind=LossError)
    said = (tmp_path / "out.failed.txt").read_text()
    assert "talk.wav: cannot be written: No space left on device" in said
    assert not (tmp_path / "out/talk.wav").exists()


def test_each_channel_has_a_voice_and_its_own_people(tmp_path, capsys):
    """Both channels of a call had one voice."""
    call = np.stack([speechlike(25.0), speechlike(25.0)], 1)  # the same is said
    write(tmp_path / "in/call.wav", call)
    run("--channels each", tmp_path / "in", tmp_path / "out")
    assert "1 files protected now, 0 failed; 2 pseudo-speakers" in capsys.readouterr().out  # not 1
    made = samples(tmp_path / "out/call.wav")
    assert made.shape == call.shape and alike(*made.T) < 0.98
    said = [Turn(0, 12, "A", "", 1), Turn(0, 12, "B", "", 2), Turn(12, 25, "C", "", 2)]
    turns.write(tmp_path / "in/call.rttm", "call", said)
    run("--channels each --turns beside", tmp_path / "in", named := tmp_path / "named")
    row = told(named, "call.wav")  # A and B were said to have one voice while both speak
    assert row["people"] == 3 and row["seconds_overlap"] == 0.0
    assert samples(named / "call.wav").shape == call.shape


class Shorter(Anonymiser):
    """Leaves out what is silent, and a half of the rest."""

    output, keeps_length = AsItIs(), False

    def transform(self, wave, key, source):
        return wave[np.abs(wave) > 1e-3][::2], {}


def test_people_and_channels_have_voices_where_speech_changes_its_length(tmp_path):
    """CHANNELS=each refused systems that change lengths; turns go one after another."""
    call = np.random.default_rng(0).choice([-0.1, 0.1], (32000, 2))
    call[16000:, 1] = 0.0
    write(tmp_path / "call.wav", call)
    system, name = Shorter(None, SystemRun(Path("x"), NOTHING, FIRST)), Path("call.wav")

    def made(channels: str, *said: Turn, spans: tuple[Turn, ...] = ()) -> np.ndarray:
        known = {name: Scene(said, spans)}
        work = Work(tmp_path, tmp_path / "out", system, channels, "source", scenes=known)
        pitches = dict.fromkeys((None, 0, 1), compute_f0_stats([]))
        work.protect("call", name, pitches, lambda _: None)
        return samples(tmp_path / "out/call.wav")

    def n(samples: np.ndarray) -> int:
        return np.count_nonzero(samples.mean(axis=1)) // 2

    said = Turn(0, 1, "A"), Turn(1, 2, "B")
    assert [np.count_nonzero(x) for x in made("each").T] == [16000, 8000]
    # People of a channel follow one another; they were laid over each other.
    loud = [np.count_nonzero(x) for x in made("each", *said).T]
    assert loud == pytest.approx([16000, 8000], abs=2)
    assert len(made("mix", *said)) == pytest.approx(n(call), abs=2)
    found = made("mix", *said, spans=(Turn(0.5, 0.6, REDACT, "name"),))
    wanted = n(call[:4000]) + n(call[13600:]) + 9600  # as long as it was, with its guard
    assert len(found) == pytest.approx(wanted, abs=2)
    tone = found[n(call[:4000]) :][:9600]
    assert alike(tone, people.tone(9600)) > 0.99
    assert np.abs(tone).max() == pytest.approx(0.1, rel=0.05)


def test_what_must_not_be_heard_is_a_tone_before_anything_is_made(interview, tmp_path, capsys):
    spans, out = tmp_path / "spans", tmp_path / "out"
    write_file(spans / "talk.tsv", "4.0\t5.0\tname\n7 7.5 place\n")
    write(interview / "other.wav", speechlike(2.0))
    words = f"--redact {spans}"
    run(words, interview, out)
    tone = samples(out / "talk.wav")[part(3.76, 5.24)]
    power = np.abs(np.fft.rfft(tone * np.hanning(len(tone)))) ** 2
    hertz = np.fft.rfftfreq(len(tone), 1 / 16000)
    assert power[abs(hertz - 440) < 10].sum() > 0.99 * power.sum()
    assert told(out)["removed"] == "name: 1, 1.0 s; place: 1, 0.5 s"
    run(f"{words} --redact-by silence", interview, quiet := tmp_path / "quiet")
    assert not samples(quiet / "talk.wav")[part(3.76, 5.24)].any()
    # Nothing is written for a recording whose spans cannot be its own.
    (spans / "talk.tsv").write_text("11.0\t13.0\tname\n")
    refuses("1 of 2", run, words, interview, late := tmp_path / "late", kind=LossError)
    assert "talk.wav: ends at 12.00 s" in capsys.readouterr().err
    assert [p.name for p in late.glob("*.wav")] == ["other.wav"]
    alone = interview / "talk.wav", tmp_path / "alone.wav"
    refuses("has nothing that must not be heard", run, f"--redact {late}", *alone)


def test_texts_are_copied_without_names(interview, tmp_path, capsys):
    (interview / "talk.srt").write_text(
        "1\n00:00:00,000 --> 00:00:02,900\nA: Hier ist <name>Anna Öz</name>.\n\n"
        "2\n00:00:03,000 --> 00:00:05,900\nBernd: Danke, Anna.\n\n"
        "3\n00:00:06,100 --> 00:00:08,900\nA: Ja, Bernd.\n", "utf-8",
    )  # fmt: skip
    (interview / "talk.rttm").unlink()
    (interview / "talk.vtt").write_text("nothing of the kind")
    run("", interview, tmp_path / "plain")
    err = capsys.readouterr().err
    assert "2 subtitles and transcripts are left out: talk.srt, talk.vtt" in err
    (interview / "talk.vtt").unlink()
    assert "talk.srt" in (tmp_path / "plain.account.html").read_text()
    (interview / "talk.redact.tsv").write_text("3.5\t4.0\tname\n")
    out = tmp_path / "out"
    run("--texts --ends one --turns beside --redact beside", interview, out)
    later = told(out)["seconds_later"]
    assert isinstance(later, float)
    text = (out / "talk.srt").read_text("utf-8")
    assert "P1: Hier ist [name]." in text and "P2: [name]" in text and "P1: Ja, P2." in text
    assert not any(name in text for name in ("Anna", "Bernd"))
    found = turns.read_turns(out / "talk.srt")
    assert found[2].begin == pytest.approx(6.1 + later, abs=0.002)


def test_voices_of_people_who_are_heard_together_are_apart(tmp_path):
    """That of a channel without turns was not from those of people in the other."""
    from steps.standalone.job import load_system

    system = load_system(ROOT / "models/bn2", 7).anonymiser
    drawn = people.draw_voices(system, [["a", "b", "c"], ["c", "d"]], {})
    keys = {who: people.voice_key(name) for who, name in drawn.items()}
    near = [system.apart(keys[a], keys[b]) for a, b in ("ab", "ac", "bc", "cd")]
    assert min(near) > 0.7
    assert people.draw_voices(system, [["a", "b", "c"], ["c", "d"]], {}) == drawn
    write(tmp_path / "call.wav", np.full((16000, 2), 0.1))
    call = Recording.open(tmp_path / "call.wav")
    work = Work(tmp_path, tmp_path, system, "each")
    voices = work._voices("call3", call, Scene((Turn(0, 1, "A", "", 1),), voices={"A": "A"}))
    assert system.apart(*map(people.voice_key, voices.values())) > 0.7


def test_names_of_people_stay_out_of_the_folder(interview, tmp_path):
    """The journal held the labels of PROTECT and KEEP."""
    said = [Turn(0, 5, "Anna Schmidt"), Turn(6, 9, "B")]
    turns.write(interview / "talk.rttm", "talk", said)
    run("--turns beside --protect 'Anna Schmidt'", interview, out := tmp_path / "out")
    for path in out.rglob("*"):
        assert b"Anna" not in path.read_bytes()
    assert json.loads((tmp_path / "out.account.json").read_text())["only"] == "Anna Schmidt"
    refuses("other settings", run, "--turns beside --protect B", interview, out)


def test_texts_fit_the_audio_beside_them_or_are_gone(interview, tmp_path, capsys):
    """A changed or removed copy was not made anew, one of a recording that fails stayed."""
    (interview / "talk.srt").write_text(SRT.format("A: Krebs"))
    out, table = tmp_path / "out", tmp_path / "spans/talk.tsv"
    write_file(table, "1 2\n")
    words = f"--redact {table.parent}"
    run(f"--texts {words}", interview, out)
    (out / "talk.srt").unlink()
    run(f"--texts {words}", interview, out)
    assert (out / "talk.srt").is_file()
    (interview / "talk.srt").write_text(SRT.format("A: <name>Anna</name>"))
    run(f"--texts {words}", interview, out)
    assert "[name]" in (out / "talk.srt").read_text()
    refuses("other settings", run, words, interview, out)
    table.write_text("11 14\n")
    refuses("1 of 1", run, f"--texts {words}", interview, out, kind=LossError)
    assert not [*out.glob("talk*")]
    refuses("rename OUT", run, "--texts", interview / "talk.wav", interview / "talk.WAV")


def test_a_copy_stayed_whose_text_was_taken_away(interview, tmp_path):
    """From a folder that is handed on."""
    (interview / "talk.srt").write_text(SRT.format("A: Otto"))
    (interview / "talk.rttm").unlink()
    out = tmp_path / "out"
    run("--texts", interview, out)
    assert "Otto" in (out / "talk.srt").read_text()
    (interview / "talk.srt").unlink()
    run("--texts", interview, out)
    assert {path.name for path in out.iterdir()} == {job.JOURNAL, "talk.wav"}


def test_a_person_was_p1_in_one_text_and_p2_in_another(tmp_path):
    """Where a recording came later that is before the others."""
    words = f"--texts --per speaker --turns {tmp_path / 'turns'}"
    for name, who in (("b", "AB"), ("a", "BA")):
        write(tmp_path / f"in/{name}.wav", speechlike(4.0))
        said = [Turn(2 * at, 2 * at + 2, who[at], f"{at}") for at in (0, 1)]
        turns.write(tmp_path / f"turns/{name}.rttm", name, said)
        turns.write(tmp_path / f"in/{name}.srt", name, said)
        run(words, tmp_path / "in", tmp_path / "out")
    found = [re.findall("P.*", (tmp_path / f"out/{name}.srt").read_text()) for name in "ab"]
    assert found == [["P1: 0", "P2: 1"], ["P2: 0", "P1: 1"]]


def test_a_subtitle_beside_the_recording_was_removed(tmp_path):
    """Where OUT was named as it, in another format, as what was copied before it was made anew."""
    write(tmp_path / "talk.wav", speechlike(1.0))
    source = (tmp_path / "talk.wav").rename(tmp_path / "talk.wave")
    for name in ("talk.srt", "talk.rttm", "two.vtt"):
        (tmp_path / name).write_text("")
    run("", source, tmp_path / "talk.wav")
    run("--texts", source, tmp_path / "two.wav")
    assert {path.name for path in tmp_path.iterdir()} >= {"talk.srt", "talk.rttm", "two.vtt"}


def test_channels_that_are_told_in_words_keep_their_time(tmp_path, monkeypatch, capsys):
    """CHANNELS=each failed where a system says words in another time."""
    real, asked = job.load_system, list[object]()

    def load(path, seed, changes):
        asked.append(dict(changes))
        found = real(path, seed)
        monkeypatch.setattr(found.anonymiser, "tells_words", not changes, raising=False)
        return found

    monkeypatch.setattr(job, "load_system", load)
    write(tmp_path / "in/call.wav", np.stack([speechlike(2.0), speechlike(2.0)], 1))
    run("--channels each", tmp_path / "in", tmp_path / "out")
    assert asked == [{}, {"time": "keep"}] and "--time keep" in capsys.readouterr().err
    assert samples(tmp_path / "out/call.wav").shape == (32000, 2)


@pytest.mark.corpora
@pytest.mark.slow
def test_people_are_found_and_written_to_be_corrected(corpora, tmp_path, capsys):
    from benchmarks.conversations import confusion, converse, readers

    said = readers(corpora / "librispeech/test-clean", 2)
    wave, known = converse(said, 60.0, 3)
    write(tmp_path / "in/talk.wav", wave)
    run("--turns auto --people 2 --turns-only", tmp_path / "in", tmp_path / "out")
    err = capsys.readouterr().err
    assert "2 people" in err and "% of it is clearly of one" in err
    folder = tmp_path / "out.turns"
    found = turns.read_turns(folder / "talk.rttm")
    others = turns.read_turns(folder / "talk.TextGrid")
    assert found == [turn._replace(words="", channel=1) for turn in others]
    assert confusion(known, found, 60.0)[0] < 0.05
    assert not (tmp_path / "out").exists()
    run("", tmp_path / "in", tmp_path / "out")
    assert "about 2 people are heard" in capsys.readouterr().err
    run(f"--turns {folder}", tmp_path / "in", tmp_path / "given")
    assert told(tmp_path / "given")["people"] == 2


# ---- What was heard, or read, that must not be: each row was passed over, or copied, once.

SRT = "1\n00:00:04,000 --> 00:00:05,000\n{}\n"
VTT = "WEBVTT\n\n00:04.000 --> 00:05.000\n{}\n"
CHA = "@UTF8\n@Begin\n{}\n@End\n"
RTTM = "".join(
    f"SPEAKER talk 1 {t} 6 <NA> <NA> {who} <NA> <NA>\n" for t, who in ((0, "A"), (6, "B"))
)


def tiers(*named: tuple[str, float, float, str], end: float = 12.0) -> str:
    """A TextGrid with a tier for each name, and one label in it; `-` is an empty one."""
    rows = ""
    for name, a, b, text in named:
        labels = ((0.0, a, ""), (a, b, text.strip("-")), (b, end, ""))
        rows += f'"IntervalTier"\n"{name}"\n0\n{end}\n3\n'
        rows += "".join(f'{x}\n{y}\n"{z}"\n' for x, y, z in labels)
    about = 'File type = "ooTextFile"\nObject class = "TextGrid"\n\n'
    return f"{about}0\n{end}\n<exists>\n{len(named)}\n{rows}"


POINT = tiers().replace("\n0\n", "\n1\n") + '"TextTier"\n"redact"\n0\n12\n1\n1.0\n"x"\n'


@pytest.mark.parametrize(("name", "text", "spans"), [
    ("a.csv", "1.0;1.5;place\n2 3\n", [(1, 1.5, "place"), (2, 3, "span")]),
    ("a.csv", "begin,end,kind\n1.0,2.5,PHONE_NUMBER\n", [(1, 2.5, "PHONE_NUMBER")]),
    ("a.tsv", "1,0 2 Anna Li\n", [(1, 2, "span")]),  # the account had the name
    ("a.cha", CHA.format("*INT:\t<name>Anna</name> . \x154000_5000\x15"), [(4, 5, "name")]),
    ("a.cha", CHA.format("*INT: <name>Anna</name> . \x154000_5000\x15"), [(4, 5, "name")]),
    ("a.tsv", "1\t2\tplace\tJena\n", [(1, 2, "place")]),
    ("a.TextGrid", tiers(("redact@INT", 1, 2, "x"), ("redact_2", 3, 4, "y")),
     [(1, 2, "x"), (3, 4, "y")]),
    ("a.TextGrid", tiers(("redact", 1, 2, "Öz"), ("redact", 3, 4, "x"), ("Redact ", 5, 6, "y")),
     [(1, 2, "span"), (3, 4, "x"), (5, 6, "y")]),
    *((name, form.format(words), [(4, 5, "name")])
      for name, form in (("a.srt", SRT), ("a.vtt", VTT)) for words in (
          '<name id="1">Anna</name>', "<NAME>Anna</NAME >", "&lt;name&gt;Anna&lt;/name&gt;",
          "< name >Anna</ name >")),
])  # fmt: skip
def test_every_mark_of_what_must_not_be_heard_counts(tmp_path, name, text, spans):
    (tmp_path / name).write_text(text, "utf-8")
    assert [(s.begin, s.end, s.words) for s in turns.read_spans(tmp_path / name)] == spans


@pytest.mark.parametrize(("name", "time", "text"), [
    ("a.vtt", "00:05.000 --> 00:08.000", "<v INT>Ja <00:06.000>Frau <00:07.000><name>Anna</name>"),
    ("a.vtt", "00:00:05,000 --> 00:00:08,000 align:left", "Ja Frau <name>Anna</name>"),
    ("a.vtt", "0:05.000 --> 0:08.000", "Ja Frau <name>Anna</name>"),
    ("a.srt", "00:00:05 --> 00:00:08", "Ja Frau <name>Anna</name>"),
    ("a.srt", "00:00:05.0-->00:00:08.0", "INT\u00a0: Ja Frau <name>Anna</name>"),
])  # fmt: skip
def test_a_name_was_heard_that_a_cue_of_another_form_marks(tmp_path, name, time, text):
    """A line with times of two words was a cue without words; other forms of times were words of
    the cue before, which was removed in its place."""
    known = "1\n00:00:01.000 --> 00:00:04.000\nB: Ich bin\n42\n\n2\n"
    (tmp_path / name).write_text(f"{known}{time}\n{text}\n", "utf-8")
    first, second = turns.read(tmp_path / name)
    assert first == Turn(1, 4, "B", "Ich bin\n42")
    assert second[:2] == (5, 8) and second.words == "Ja Frau <name>Anna</name>"
    assert turns.read_spans(tmp_path / name) == [Turn(5, 8, REDACT, "name")]
    refuses_file(f"{name}:2: not `<begin> --> <end>`", turns.read, tmp_path / name,
                 "1\n00:00:05:12 --> later\n")  # fmt: skip
    refuses_file("a.vtt:1: behind the empty line .* stands a <name>", turns.read,
                 tmp_path / "a.vtt", "00:01.0 --> 00:02.0\nJa\n\n<name>Anna</name>")  # fmt: skip


@pytest.mark.parametrize(("name", "text", "why"), [
    ("a.tsv", "1.0\t1.0\tname\n", "a span at 1 s ends where it begins"),
    ("a.tsv", "1 nan x", "a.tsv:1: not"), ("a.tsv", "2 1 x", "a.tsv:1"),
    ("a.tsv", "0 1 x\nword", "a.tsv:2"), ("a.tsv", "-1 1 x", "a.tsv:1"),
    ("a.srt", SRT.format("<name>Anna</name> <name>Bo"), "<name> without </name>"),
    ("a.TextGrid", tiers(("redact", 1, 2, "-")), "no label in tier redact"),
    ("a.TextGrid", POINT, "a span at 1 s ends where it begins"),
    ("a.TextGrid", "Anna", "cannot be read as textgrid .[A-Za-z]*.; save"),  # nor its words
    ("a.eaf", "<Anna", "cannot be read as eaf .[A-Za-z]*.; save"),
])  # fmt: skip
def test_spans_that_cannot_be_read_are_refused(tmp_path, name, text, why):
    assert "Anna" not in refuses_file(why, turns.read_spans, tmp_path / name, text)


@pytest.mark.parametrize(("where", "name", "text"), [
    ("spans", "take.tsv", "1 2\n"), ("spans", "talk.xlsx", ""), ("spans", "talk.rttm", RTTM),
    ("in", "talk.redacted.tsv", "1 2\n"), ("in", "Redact talk.txt", "1 2\n"),
    ("in", "talk.en.srt", SRT.format("Ja, <name>Anna</name>")),
])  # fmt: skip
def test_a_file_of_spans_that_is_of_no_use_ends_the_run(interview, tmp_path, where, name, text):
    write_file(tmp_path / where / name, text)
    folder = "beside" if where == "in" else tmp_path / where
    refuses(f"{name}: is of a kind that is not read", run, f"--redact {folder}", interview,
            tmp_path / "no")  # fmt: skip


@pytest.mark.parametrize(("name", "text", "who"), [
    ("a.tsv", "0\t1\tAnna Li\tlaughs\n1\t2\tAnna Li\n", ["Anna Li", "Anna Li"]),
    ("a.tsv", "0 1 Anna  Li\n1 2 Bo\n", ["Anna Li", "Bo"]),
    ("a.csv", 'begin,end,person\n0,1,"Li, Anna"\n"1","2","Li, Bo",x\n', ["Li, Anna", "Li, Bo"]),
])  # fmt: skip
def test_whoever_a_note_stood_beside_was_another(tmp_path, name, text, who):
    """All cells behind the times were the person's name, with quotation marks."""
    (tmp_path / name).write_text(text)
    assert [turn.person for turn in turns.read_turns(tmp_path / name)] == who


@pytest.mark.parametrize("line", [
    "SPEAKER Interview Anna 2 1 0.0 3.0 <NA> <NA> INT <NA> <NA>",
    "SPEAKER my talk 1 0.0 3.0 <NA> <NA> INT <NA>",
    "SPEAKER talk 1 0.0 3.0 <NA> <NA> Anna Schmidt <NA> <NA>",
])  # fmt: skip
def test_a_blank_in_a_name_moved_what_rttm_says(tmp_path, line):
    """Turns had other times and nobody's name; two people of one first name had one voice."""
    refuses_file("a.rttm:1: not .* `_` for blanks", turns.read, tmp_path / "a.rttm", f"{line}\n")


@pytest.mark.parametrize(("files", "words", "why"), [
    ({}, "", "talk.wav: .*/in has no turns of it; write a table"),
    ({"talk.srt": SRT.format("Ja.")}, "", "talk.srt names nobody; write a table"),
    ({"talk.rttm": RTTM, "talk.tsv": "0 3 A\n3 12 B\n"}, "", "talk.tsv: says other turns than"),
    ({"talk.cha": CHA.format("*INT:\tja . \x150_5000\x15\n*B:\tnein .")},
     "--keep INT", "talk.cha: somebody speaks at a time that is not said"),
    ({"talk.tsv": "0 12 A\n"}, "--keep A --channels each", "in which channel"),
    ({"talk.rttm": RTTM, "talk.redact.tsv": "1.0 x name\n"}, "--redact beside",
     "talk.redact.tsv:1"),
    ({"talk.rttm": RTTM, "talk.redact.TextGrid": tiers(("Redaktion", 1, 2, "x"))},
     "--redact {}", "marks nothing; call a tier `redact`"),
])  # fmt: skip
def test_what_is_said_of_a_recording_is_refused_for_it_alone(
    interview, tmp_path, capsys, files, words, why
):
    """A damaged table counted as none where the recording was done before; nobody is kept where
    the turns leave a doubt; and a recording without turns had one voice for all, as TURNS said."""
    out = tmp_path / "out"
    if "beside" in words:
        run("--turns beside --redact beside", interview, out)
    (interview / "talk.rttm").unlink()
    write(interview / "other.wav", speechlike(1.0))
    for name, text in {"other.tsv": "0 1 C\n", **files}.items():
        (interview / name).write_text(text)
    words = f"--turns beside {words.format(interview)}"
    refuses("1 of 2", run, words, interview, out, kind=LossError)
    assert re.search(why, capsys.readouterr().err)
    assert [x.name for x in out.glob("*.wav")] == ["other.wav"]
    (tmp_path / "none").mkdir()
    refuses("other.wav: .*none has no turns of any", run, f"--turns {tmp_path / 'none'}", interview,
            tmp_path / "no")  # fmt: skip


@pytest.mark.parametrize(("name", "cue", "who"), [
    ("a.srt", "- INT: Wie?\n- Gut.", {"INT", ""}),
    ("a.srt", "\u2010 INT: Wie?\n\u2212Gut.", {"INT", ""}),
    ("a.srt", "INT\uff1aWie?\nAnna:Gut", {"INT", "Anna"}),
    ("a.vtt", "<v INT>Wie?</v> Gut.", {"INT", ""}),
    ("a.vtt", "<v A>a</v>\n<v B>b</v>", {"A", "B"}), ("a.srt", "Um 10:30 Uhr", {""}),
    ("a.srt", "Frau Prof. Dr. Anna Maria B. Li: ja", {"Frau Prof. Dr. Anna Maria B. Li"}),
])  # fmt: skip
def test_whoever_is_not_named_in_a_cue_is_somebody(interview, tmp_path, name, cue, who):
    """Behind a dash or </v>, and at a second time of .cha, it counted as of who was named; within a
    line others may be named."""
    (tmp_path / name).write_text((VTT if name == "a.vtt" else SRT).format(cue), "utf-8")
    assert {t.person for t in turns.read_turns(tmp_path / name)} == who
    (tmp_path / "a.cha").write_text("*B:\ta \x150_1000\x15 b \x151000_3000\x15\n")
    assert turns.read_turns(tmp_path / "a.cha")[0][:2] == (0, 3)
    (interview / "talk.rttm").unlink()
    (interview / "talk.srt").write_text(SRT.format("INT: Wie? Anna: Gut."))
    for _ in range(2):  # also where another file says when, and is asked first
        wishes = scenes.Wishes("beside", keep="INT")
        (scene,) = wishes.read(interview, [Path("talk.wav")]).values()
        assert scene.kept == {"INT"} and not scene.clear(None)
        turns.write(interview / "talk.rttm", "talk", [Turn(4, 5, "INT")])


def test_who_is_kept_is_not_clear_where_somebody_speaks_in_another_channel():
    said = (Turn(0, 5, "A", "", 1), Turn(2, 3, "B", "", 2), Turn(4, 4.5, "B", "", 9))
    clear = Scene(said, kept=frozenset("A")).clear(0)
    assert np.allclose(clear, [(0.02, 1.68), (3.32, 3.68), (4.82, 4.98)])


def copied(folder: Path, *spans: Turn, people: tuple[Turn, ...] = ()) -> tuple[str, scenes.Texts]:
    """Copies of the texts of talk.wav, as one text, and what was left out."""
    talk, scene = Path("talk.wav"), Scene(people, spans)
    texts = scenes.Texts.read(folder, [talk], {talk: scene}, shared=False, wanted=True)
    target = folder / "out/talk.wav"
    target.parent.mkdir()
    texts.copy(talk, target, scene, lambda x: x)
    return "".join(path.read_text("utf-8") for path in sorted(target.parent.iterdir())), texts


def test_texts_hold_no_label_however_it_is_written(tmp_path):
    lines = ["Dr. Schmidt: Ich bin dr. schmidt.", "<i>JÜRGEN:</i>\nJu\u0308rgen, Bo, Jürgens Hut",
             "Bo: <name>Bo</name> hat Krebs", ">> Bo:\nGut, Bo Li", "Bo Li: bo"]  # fmt: skip
    cues = (f"{n}\n00:00:0{n},000 --> 00:00:0{n},600\n{x}\n" for n, x in enumerate(lines, 1))
    (tmp_path / "talk.srt").write_text("\n".join(cues), "utf-8")
    text, _ = copied(tmp_path, Turn(3.0, 3.6, REDACT, "illness"))
    assert re.findall(r"^P.*", text, re.M) == [
        "P1: Ich bin P1.", "P2: P2, P3, P2s Hut", "P3: [illness]", "P3: Gut, P4", "P4: bo"
    ]  # fmt: skip


def test_a_name_with_a_turkish_i_ended_the_run(tmp_path):
    """Which is the same letter in any case, and becomes another when its case is folded."""
    words = "\u0130brahim und \u0131brahim, Ibrahims Hut"
    cue = f"1\n00:00:01,000 --> 00:00:02,000\nIbrahim: {words}\n"
    (tmp_path / "talk.srt").write_text(cue, "utf-8")
    assert "P1: P1 und P1, P1s Hut\n" in copied(tmp_path)[0]


def test_a_name_stayed_where_no_blanks_part_words(tmp_path):
    """王小明 and 민수, whom the particle of a subject follows."""
    words = (
        "\u738b\u5c0f\u660e: \u660e\u5929\u738b\u5c0f\u660e\u4f86\n\ubbfc\uc218: \ubbfc\uc218\uac00"
    )
    (tmp_path / "talk.srt").write_text(SRT.format(words), "utf-8")
    assert "P1: \u660e\u5929P1\u4f86\nP2: P2\uac00\n" in copied(tmp_path)[0]


def test_an_offset_of_elan_was_passed_over(tmp_path):
    """Names were removed where they are not said."""
    text = HOSTILE["talk.eaf"].replace("</LICENSE>", "</LICENSE>{}")
    media = '<MEDIA_DESCRIPTOR MEDIA_URL="file:///x/{}" TIME_ORIGIN="{}"/>'
    refuses_file("offset", turns.read, tmp_path / "a.eaf", text.format(media.format("b.wav", 900)))
    refuses_file("offset", turns.read, tmp_path / "a b.eaf",
                 text.format(media.format("a%20b.wav", 9) + media.format("b.mp4", 0)))  # fmt: skip
    video = text.format(media.format("a.wav", 0) + media.format("a2.mp4", 900))
    (tmp_path / "a.eaf").write_text(video)
    assert turns.read_turns(tmp_path / "a.eaf")


ANNA = [(name, 1.0, 2.0, "Anna") for name in ("Notiz", "Thema")]
HOSTILE = {
    "talk.vtt": "WEBVTT Anna\n\nNOTE Anna\n\nSTYLE\n::cue(.Anna){}\n\nAnna-1\n"
    "00:01.000 --> 00:02.000\n<v INT><c.Anna>Ja</c> <lang Anna>so</lang>\n\nNOTE Anna\n\nAnna-2\n"
    "00:03.000 --> 00:04.000\n\nNOTE Anna: nein\n",
    "talk.srt": '1\n00:00:01,000 --> 00:00:02,000\nINT: <font face="Anna">Ja</font> {Anna}\n',
    "talk.cha": "@UTF8\n@Begin\n@Languages:\tdeu\nAnna\n%com:\tAnna\n@Comment:\tAnna\n"
    "*INT:\tja [% Anna] [= Anna] . \x151000_2000\x15\n%com:\tAnna\n@End\n",
    "talk.TextGrid": tiers(("INT", 1, 2, "ja"), *ANNA, ("Redact", 3, 4, "Anna")),
    "talk.eaf": """<ANNOTATION_DOCUMENT AUTHOR="Anna" DATE="2020-01-01"><LICENSE>Anna</LICENSE>
<HEADER><PROPERTY NAME="x">Anna</PROPERTY></HEADER><TIME_ORDER>
<TIME_SLOT TIME_SLOT_ID="t1" TIME_VALUE="1000"/><TIME_SLOT TIME_SLOT_ID="t2" TIME_VALUE="2000"/>
</TIME_ORDER><TIER TIER_ID="INT" LINGUISTIC_TYPE_REF="Anna" ANNOTATOR="Anna"><ANNOTATION>
<ALIGNABLE_ANNOTATION ANNOTATION_ID="a" TIME_SLOT_REF1="t1" TIME_SLOT_REF2="t2" CVE_REF="Anna">
<ANNOTATION_VALUE>ja</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION></TIER>
<TIER TIER_ID="INT comments" PARTICIPANT="INT" PARENT_REF="INT" LINGUISTIC_TYPE_REF="x"><ANNOTATION>
<REF_ANNOTATION ANNOTATION_ID="b" ANNOTATION_REF="a"><ANNOTATION_VALUE>Anna</ANNOTATION_VALUE>
</REF_ANNOTATION></ANNOTATION></TIER><LINGUISTIC_TYPE LINGUISTIC_TYPE_ID="Anna"/>
<CONTROLLED_VOCABULARY CV_ID="Anna"/></ANNOTATION_DOCUMENT>""",
}


def test_texts_hold_nothing_but_who_says_what_when(tmp_path):
    """Tags, comments, headers, and tiers of notes were copied, and labels of spans; notes and names
    of cues between others were words of the cue before."""
    for name, text in HOSTILE.items():
        (tmp_path / name).write_text(text, "utf-8")
    text, texts = copied(tmp_path, people=(Turn(1, 2, "INT"),))
    assert "Anna" not in text and "INT" not in text and text.lower().count("ja") == 5
    left = {file.name: tiers for file, tiers in texts.notes.items()}
    assert left == {"talk.TextGrid": ["Notiz", "Thema"], "talk.eaf": ["INT comments x"]}
    assert not texts.lost
    assert [t.person for t in turns.read_turns(tmp_path / "talk.TextGrid")] == ["", "INT", "Thema"]


def test_found_turns_that_were_corrected_stay(interview, tmp_path, monkeypatch, capsys):
    """With PEOPLE they were found anew, over what the user had corrected; and neither a correction
    nor a new span counted where the recording was done."""
    heard = Heard((Turn(0, 5, "P1"), Turn(6, 12, "P2")), 1.0, 12.0)
    monkeypatch.setattr(scenes, "find_people", lambda *_: heard)
    spans, out, found = tmp_path / "spans/talk.tsv", tmp_path / "out", tmp_path / "out.turns"
    words = f"--turns auto --people 2 --redact {spans.parent} --redact-by silence"
    write_file(spans, "1.0 2.0 name\n")
    for made in (1, 0):
        run(words, interview, out)
        assert f"{made} files protected now" in capsys.readouterr().out
    spans.write_text("1.0 2.0 name\n7.0 8.0 name\n")
    run(words, interview, out)
    assert not samples(out / "talk.wav")[part(7, 8)].any()
    turns.write(found / "talk.rttm", "talk", [Turn(0, 12, "P1")])
    refuses("1 of 1", run, words, interview, out, kind=LossError)
    assert "talk.TextGrid: says other turns than" in capsys.readouterr().err
    (found / "talk.TextGrid").unlink()
    run(words, interview, out)
    assert "1 of 1 recordings had turns there, which stay" in capsys.readouterr().err
    assert told(out)["people"] == 1 and [x.name for x in found.iterdir()] == ["talk.rttm"]
    os.utime(found / "talk.rttm", (0, 0))
    refuses("1 of 1", run, words, interview, out, kind=LossError)
    assert "is newer than" in capsys.readouterr().err


SLURM = pytest.param("slurm", marks=[pytest.mark.slurm, pytest.mark.slow])


@pytest.mark.parametrize("given", ["said", "auto", "launcher", SLURM])
def test_shards_know_the_people_of_the_whole_folder(
    interview, tmp_path, monkeypatch, capsys, request, given
):
    """With a launcher the console said that 0 of 0 recordings had spans that were removed."""
    launcher = "run.py"
    if given == "slurm":  # whose jobs hear who speaks
        launcher = f"slurm.py --config {ROOT / 'egs/TEMPLATE/conf/slurm.conf'}"
        for name, value in request.getfixturevalue("slurm").items():
            monkeypatch.setenv(name, value)
    else:
        heard = Heard((Turn(0, 1, "P1"), Turn(1, 2, "P2")), 1.0, 2.0)
        monkeypatch.setattr(scenes, "find_people", lambda *_: heard)
    monkeypatch.setenv("PATH", f"{ROOT / 'utils'}:{os.environ['PATH']}")
    for n in range(4):
        write(interview / f"{n}.wav", speechlike(2.0, n))
        (interview / f"{n}.tsv").write_text(f"0 1 A\n1 2 {'BCBD'[n]}\n")
    (interview / "1.redact.tsv").write_text("1.0 1.2 name\n")
    (tmp_path / "key").write_text(KEY)
    asked = "auto" if given in ("auto", "slurm") else "beside --per speaker"
    words = (f"--key-file {tmp_path / 'key'} --system {SYSTEM} --redact beside --texts "
             f"--turns {asked}")  # fmt: skip
    parts = ["--shard 1/2", "--shard 2/2", ""]
    if given in ("launcher", "slurm"):
        parts = [f"--launcher '{launcher}' --nj 2"]
    made, rows, people = [], [], []
    for out, every in (("whole", [""]), ("out", parts)):
        for one in every:
            accepts(main, *shlex.split(f"{words} {one}"), interview, tmp_path / out)
        said = capsys.readouterr().out
        people += re.findall(r"(\d+) people.* turns", said)
        assert "1 of 5 recordings had spans that were removed" in said
        made.append({x.name: x.read_bytes() for x in (tmp_path / out).glob("[!.]*")})
        rows.append(json.loads((tmp_path / f"{out}.account.json").read_text())["files"])
        for row in rows[-1].values():
            row.pop("sure", None)  # of the run that found them
    assert people[0] == people[-1] == (people[0] if given == "slurm" else "10")
    assert made[0] == made[1] and len(made[0]) == 6 and rows[0] == rows[1]


def test_turns_that_shards_heard_name_people_in_texts(interview, tmp_path):
    """Whoever launched them took all files for those of other turns, and removed their texts."""
    out, turn = tmp_path / "out", "SPEAKER talk 1 0.0 1.0 <NA> <NA> S1 <NA> <NA>"
    heard = f"mkdir {out}.turns\necho '{turn}' > {out}.turns/talk.rttm"  # as if they heard them
    put_program(tmp_path / "run", f'#!/bin/sh\n{heard}\nexec {ROOT}/utils/run.py "$@"\n')
    write_file(tmp_path / "key", KEY)
    how = ("--turns", "auto", "--texts", "--launcher", tmp_path / "run", "--nj", 1)
    accepts(main, "--key-file", tmp_path / "key", "--system", SYSTEM, *how, interview, out)
    assert (out / "talk.rttm").is_file()
