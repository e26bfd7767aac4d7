"""Evidence on a folder: halves, attackers who train nothing, what they cannot know, bad input."""

import json
import logging
import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from local.evidence import figures as evidence
from local.evidence import identity
from local.evidence.figures import value
from local.evidence.identity import Identity
from local.measure_evidence import main
from local.metrics.intervals import key
from local.report.measures import Value
from local.report.select import NAMED, Evidence, Level, Verdict, judge
from steps.anonymisers.mcadams import McAdams
from steps.protect_folder import main as protect_folder
from steps.quality import Quality
from steps.standalone.job import JOURNAL, Versions, key_number, load_system
from steps.standalone.protection import protect_samples
from steps.standalone.stream import Recording
from tests.refusals import accepts, refuses, refuses_words
from tests.test_protect_folder import KEY, SYSTEM, write
from tests.world import encoded_by_av, voice
from utils.arrays import Float32
from utils.cli import LossError

Vector = Callable[[int], np.ndarray]
N = 30
BY_SPEAKER = ("--per", "speaker")


class Ear:
    """Hears the spectrum: logarithms of the power in 24 bands."""

    n_whole = 0

    def embed(self, samples: np.ndarray) -> Float32:
        power = np.abs(np.fft.rfft(samples)) ** 2
        bands = np.array_split(power[: len(power) // 2], 24)
        return np.log([band.mean() + 1e-9 for band in bands]).astype(np.float32)


def syllables(seed: int, n: int) -> np.ndarray:
    """Loudness that moves six times a second, as of nobody else's words."""
    steps = 10 ** np.random.default_rng(seed).uniform(-1.5, 0.0, 2 + 6 * n // 16000)
    return np.interp(np.arange(n), 16000 / 6 * np.arange(len(steps)), steps)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder `in` of five people, the last with one recording and others with two, and `out`,
    protected with `key`."""
    made = tmp_path_factory.mktemp("evidence")
    for i, who in enumerate(("ann", "ben", "cat", "dan", "eve")):
        for take in (1, 2)[: 5 - i]:
            samples = voice(2.4, 100 + 40 * i + 7 * take, 500 + 150 * i, take)
            samples *= syllables(10 * i + take, len(samples))
            write(made / f"in/{who}-{take}.wav", samples / np.abs(samples).max() * 0.3)
    (made / "key").write_text(KEY + "\n")
    protect("--key-file", made / "key", made / "in", made / "out")
    return made


@pytest.fixture(autouse=True)
def judges(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Instead of networks, which take seconds to load; intervals of few resamples."""
    monkeypatch.setattr(evidence, "N_BOOTSTRAP", 100)
    monkeypatch.setitem(evidence.EVALUATORS, "ear", "cosine")
    monkeypatch.setattr(evidence, "VOICES", (*evidence.VOICES, "ear"))
    monkeypatch.setattr(identity, "SAME", 0.98)  # as a warp hardly changes these vowels
    monkeypatch.setattr(
        evidence, "load_judges",
        lambda *made: (evidence.Judges({"ear": Ear()}, None, lambda _: Quality(3.0), *made),
                       {"moonshine": "is not installed"}),
    )  # fmt: skip
    yield
    logging.getLogger("local").setLevel(logging.NOTSET)


def protect(*words: object) -> None:
    accepts(protect_folder, "--system", SYSTEM, "--nj", 1, *words)


def run(*words: object) -> int:
    return main([str(word) for word in ("--system", SYSTEM, "--nj", 1, *words)])


def beside(out: Path, kind: str = "html") -> str:
    """The evidence beside OUT."""
    return out.with_name(f"{out.name}.evidence.{kind}").read_text()


def measured(*words: Any, why: str = "") -> dict[str, Any]:
    """Evidence of a run that ends well, or as a loss that says why; the last word is OUT."""
    if why:
        refuses(why, run, *words, kind=LossError)
    else:
        assert run(*words) == 0
    found: dict[str, Any] = json.loads(beside(words[-1], "json"))
    return found


@pytest.fixture
def copies(folder: Path, tmp_path: Path) -> tuple[Path, Path]:
    """IN and OUT, which a test may change."""
    ins, out = (shutil.copytree(folder / side, tmp_path / side) for side in ("in", "out"))
    return ins, out


def test_a_folder_without_labels_has_evidence_beside_it(folder, capsys):
    told = measured(*BY_SPEAKER, "--key-file", folder / "key", folder / "in", folder / "out")
    attacks = {own["attacker"]: own for own in told["attacks"]}
    assert list(attacks) == ["unprotected", "ignorant", "lazy_informed"]
    assert attacks["unprotected"]["recordings"]["named_by_recording"] == 1.0
    assert attacks["ignorant"]["linking"]["n_target"] == 9
    assert attacks["ignorant"]["linking"]["n_nontarget"] == 36
    assert attacks["ignorant"]["recordings"]["chance_named_by_recording"] == pytest.approx(1 / 5)
    assert attacks["ignorant"]["legal"]["chance_legal_linkability"] == pytest.approx(1 / 5)
    assert "fewer than 10 people" in told["not_run"]["aligned"]
    assert told["recordings"]["ann-1.wav"] == told["recordings"]["ann-2.wav"] == "ann"
    page = beside(folder / "out")
    said = capsys.readouterr()
    assert told["verdict"] in said.out
    assert " files, 1 at a time: about 0:2" in said.err  # before it begins
    assert told["verdict"] in page
    assert "9 of 9: 100.0 % [47.8, 100.0]" in page  # of five people, two of whom spoke more
    times = sum(len(own["named"]) for own in told["attacks"][1:])  # not of how many recordings
    assert f"{times} times in all; guessing, they would do so about 4 times" in page
    assert "Not measured: is not installed" in page
    assert "Who else is in the world" in page
    assert page.count("<audio") == 6
    assert not re.search(r"https?:|<script", page)


def test_recordings_of_a_person_were_counted_as_people_in_the_interval() -> None:
    """Of ten people either all of six recordings are named or none: the interval had to be wide."""
    found = {"linking": {"n_segments": 60, "n_target_speakers": 10}}
    attack = evidence.Attack("ignorant", "pyannote", found, Evidence("", ""), 18 * ["some"])
    assert evidence.hits(attack) == "18 of 60: 30.0 % [6.7, 65.2]"  # Clopper and Pearson: 3 of 10
    assert evidence.hits(replace(attack, named=[])) == "0 of 60: 0.0 % [0.0, 30.8]"


def test_without_a_word_on_people_each_recording_is_a_person(folder: Path) -> None:
    bare = measured(folder / "in", folder / "out")["attacks"][0]
    assert bare["linking"]["n_nontarget"] == 72
    assert bare["linking"]["n_target_speakers"] == 9
    page = beside(folder / "out")
    assert "each recording counts as a person" in page
    assert "all people of a recording were taken for one" in page


def heard(
    known: Vector, protected: Vector, n: int = N, encoder: str = "pyannote", watch: Any = iter
) -> evidence.Found:
    """Evidence on n people, whose vectors these functions make."""
    pairs, heard_of, nothing = [], {}, Recording(Path(), None)  # type: ignore[arg-type]
    after = evidence.Use("we read good boots", 3.0, "high")
    for i in range(n):
        before = evidence.Use("we read good books", 4.0, "low" if i < 7 else "high")
        pairs.append(evidence.Pair(f"{i:02d}.wav", f"{i:02d}", nothing, nothing))
        own = {evidence.KNOWN: known(i), evidence.SAID: known(i) + np.float32(0.1) * known(i + N)}
        own |= dict.fromkeys((evidence.PAIR, evidence.PROTECTED), protected(i))
        own[evidence.AGAIN] = protected(i + N)
        heard_of[pairs[i].name] = evidence.Heard({encoder: own}, (before, after))
    return evidence.assess(pairs, heard_of, watch=watch)


def drawn(seed: int) -> Vector:
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((2 * N, 64)).astype(np.float32)
    return lambda i: table[i]


def test_nothing_is_hidden_where_voices_stay() -> None:
    known, shown = drawn(0), []
    found = heard(known, known, watch=lambda names: shown.extend(names) or names)
    assert shown == ["pyannote"]  # no time left was shown
    assert found.verdict.level is Level.NOTHING
    ignorant = next(a for a in found.attacks if a.attacker == "ignorant")
    assert len(ignorant.named) == N
    assert value(ignorant.figures["linking"], "eer").value == 0.0
    assert value(found.words, "wer").value == 0.25
    assert value(found.quality, "mos_drop").value == 1.0
    assert value(found.pitch, "uar").value == 0.5  # all are high after protection


def test_who_hears_nothing_names_by_chance_and_the_verdict_does_not_say_found() -> None:
    found = heard(drawn(0), drawn(3))
    assert found.verdict.level >= Level.UNSHOWN
    assert {a.attacker for a in found.attacks} == {
        "unprotected", "ignorant", "aligned", "lazy_informed",
    }  # fmt: skip
    for attack in found.attacks[1:]:
        assert len(attack.named) <= 4
        assert attack.evidence.bare.high == 0.0


def test_who_finds_people_by_several_recordings_alone_was_said_to_show_no_leak() -> None:
    """Their interval from one recording holds guessing; the test by all recordings does not."""
    found = heard(drawn(0), drawn(3))
    held = Identity(None, Path(), Path(), iter)  # type: ignore[arg-type]
    attack, who = found.protected[1], "lazy-informed (pyannote)"
    assert who in evidence.decide(found, held)["Hidden from"]
    attack.figures["recordings"]["p_value_eer"] = 0.001  # type: ignore[index]
    assert who not in evidence.decide(found, held)["Hidden from"]


def test_a_leak_of_many_recordings_was_chance_as_their_candidates_were_drawn(monkeypatch) -> None:
    """People swapped with those with whom nobody was compared, and few targets were left."""
    own, other = drawn(0), drawn(1)
    leaks = [(own(i % N) * 0.1 + other(i) * 0.9).astype(np.float32) for i in range(2 * N)]
    p = []
    for most in (N * N, 10 * N):
        monkeypatch.setattr(evidence, "MOST_TRIALS", most)
        found = heard(own, leaks.__getitem__)
        p.append(found.protected[0].figures["recordings"]["p_value_eer"])
    assert max(p) < 0.01


def test_a_leak_was_none_beside_a_lower_rate_by_chance() -> None:
    """The p value was that of the lowest equal error rate, whoever else found people."""
    ideal, rate = Value(0.0, 0.0, 0.0), Value(0.38, 0.35, 0.41)
    attacks = [
        evidence.Attack(
            who, "pyannote", {"recordings": {"p_value_eer": p}},
            Evidence(who, "", eer, ideal, several={"1": eer}),
        )
        for who, eer, p in (("ignorant", rate, 0.001), ("aligned", Value(0.37, 0.2, 0.6), 0.4))
    ]  # fmt: skip
    chosen = evidence._chosen(attacks)
    assert chosen == {"1": (replace(rate, low=0.2), 0.002)}
    assert judge([own.evidence for own in attacks], chosen=chosen).level is Level.NOW_AND_THEN


def test_voices_that_become_high_where_they_were_low_tell_it_as_well() -> None:
    found, held = heard(drawn(0), drawn(3)), Identity(None, Path(), Path(), iter)  # type: ignore[arg-type]
    for at, told in ((0.0, True), (0.5, False), (1.0, True)):
        turned = replace(found, pitch={"uar": at, "intervals": {"uar": (at, at)}})
        assert ("low or high" in evidence.decide(turned, held)["Not hidden"]) is told


def test_originals_were_played_of_people_whom_nobody_named() -> None:
    nobody = {"recordings": {"named_per_speaker": {"person a": 0.0}}}
    attack = evidence.Attack("ignorant", "pyannote", nobody, Evidence("", ""))
    found = evidence.Found([attack], Verdict(Level.UNSHOWN, "", None), {}, {}, {}, {}, [])
    silent = Recording(Path(), None)  # type: ignore[arg-type]
    assert not [*evidence.clips(found, [evidence.Pair("a.wav", "a", silent, silent)])]


@pytest.mark.parametrize("bare", [0.0, 0.4])
def test_without_a_learner_or_a_control_evidence_never_says_hides(bare) -> None:
    """Whatever attackers find, and however narrow the intervals are that find nothing."""
    blind = {key("eer", recordings=n): 0.5 for n in ("1", "3", "10", "30", "all")}
    blind |= {NAMED: 1 / N, f"chance_{NAMED}": 1 / N}
    blind |= {"intervals": {name: (value - 0.01, value + 0.01) for name, value in blind.items()}}
    linking = {"n_segments": N, "n_target_speakers": N, "eer": 0.5, "eer_rise": 0.5 - bare}
    linking |= {"intervals": {"eer": (0.49, 0.51), "eer_rise": (0.4, 0.5)}}
    able = {"linking": {"eer": bare, "intervals": {"eer": (bare, bare)}}, "recordings": blind}
    found = {"linking": linking, "recordings": blind}
    names = ("ignorant", "lazy_informed")
    attacks = [evidence._evidence(who, "pyannote", found, able) for who in names]
    assert all(own.several and not own.controlled for own in attacks)
    level = Level.UNJUDGED if bare else Level.UNSHOWN
    assert judge(attacks).level is level


@pytest.mark.parametrize(
    ("seed", "n"),
    [
        (0, 5),
        *(pytest.param(*own, marks=pytest.mark.slow)
          for own in ((1, 5), (2, 5), (14, N), (26, N), (50, N))),
    ],
)  # fmt: skip
def test_a_single_interval_below_half_was_called_a_leak(seed, n, monkeypatch):
    """One of three attackers who hear nothing often has it: a permutation test decides."""
    monkeypatch.setattr(evidence, "N_BOOTSTRAP", 500)
    assert heard(drawn(seed), drawn(seed + 1), n).verdict.level >= Level.UNSHOWN


@pytest.mark.parametrize(
    ("dose", "level"), [(0.1, Level.NOW_AND_THEN), (0.2, Level.OFTEN), (0.4, Level.NOTHING)]
)
def test_a_dosed_leak_is_found(dose: float, level: Level) -> None:
    own, other = drawn(0), drawn(1)

    def leaks(i: int) -> np.ndarray:
        return (dose * own(i % N) + (1 - dose) * other(i)).astype(np.float32)

    assert heard(own, leaks).verdict.level is level


def test_an_aligned_attacker_undoes_a_rotation() -> None:
    """By what the other half of the people teaches; the ignorant one is lost."""
    rng = np.random.default_rng(2)
    few = rng.standard_normal((2 * N, 4)).astype(np.float32) @ rng.standard_normal((4, 64))
    turn = np.linalg.qr(rng.standard_normal((64, 64)))[0]
    turned = (few @ turn).astype(np.float32)
    found = heard(few.astype(np.float32).__getitem__, turned.__getitem__)
    hits = {attack.attacker: len(attack.named) for attack in found.attacks}
    assert hits["aligned"] == N
    assert hits["ignorant"] < N / 2


@pytest.fixture(scope="module")
def bad(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders with something wrong each."""
    made, tmp_path = {}, tmp_path_factory.mktemp("bad")

    def pair(name: str) -> tuple[Path, Path]:
        for side in ("in", "out"):
            made[f"{name}/{side}"] = shutil.copytree(folder / side, tmp_path / name / side)
        return made[f"{name}/in"], made[f"{name}/out"]

    ins, out = pair("cut")
    (ins / "noise.wav").write_bytes(b"RIFF no audio")
    (out / "noise.wav").write_bytes(b"RIFF no audio")
    (out / "ben-1.wav").unlink()
    soundfile.write(out / "cat-1.wav", soundfile.read(out / "cat-1.wav")[0][:34000], 16000)
    for side in (ins, out):
        soundfile.write(side / "dan-1.wav", np.full(16000, 0.1), 16000)
    soundfile.write(out / "ann-1.wav", np.zeros(38400), 16000)
    ins, _ = pair("two_people")
    for path in ins.glob("[!ab]*.wav"):
        path.unlink()
    made["key"], made["other"] = folder / "key", tmp_path / "other"
    made["other"].write_text("another key of many letters\n")
    _, out = pair("drawn")  # a key that the program drew, which the journal cannot check
    (out / JOURNAL).write_text('{"key": "fresh", "settings": {"per": "speaker"}}\n')
    made["mcadams"] = SYSTEM.with_name("b2.yaml")
    return made


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--per speaker two_people/in two_people/out", "fewer than 5 people"),
        ("--key-file other cut/in cut/out", "was protected with another key"),
        ("--key-file other drawn/in drawn/out", "can check a key; leave KEY_FILE out"),
        ("drawn/in drawn/out", "give --per speaker"),
        ("--system mcadams cut/in cut/out", "is not what .* was protected with"),
        ("--speakers key cut/in cut/out", "for --per speaker"),
        # They were P1, P2 ... of all recordings; and of no effect.
        ("--turns auto --per speaker cut/in cut/out", "name people of one recording"),
        ("--turns beside --speakers key --per speaker cut/in cut/out", "leave it out"),
        ("cut/in nowhere", "is not a folder"),
        ("nowhere cut/out", "is not a folder"),
    ],
)
def test_bad_input_is_one_line(bad: dict[str, Path], words: str, said: str) -> None:
    refuses(said, run, *(bad.get(word, word) for word in words.split()))


def test_other_lengths_by_our_own_rate_were_called_no_protected_version(folder, monkeypatch):
    """Of each recording, but of those whose length was nearly kept: these alone were attacked."""
    monkeypatch.setattr(McAdams, "keeps_length", False)
    refuses("changes how long speech is", run, folder / "in", folder / "out")


def test_recordings_whose_ends_were_changed_were_not_compared(folder: Path, tmp_path: Path) -> None:
    """They are, with the part of each recording that its version has: swapped names are found, an
    original is, and so is where versions lie; a folder without an account cannot say."""
    rng = np.random.default_rng(0)
    for i, path in enumerate(sorted((folder / "in").glob("*.wav"))):
        lead, rest = (1e-4 * rng.standard_normal(round(16000 * x)) for x in (i % 3, (i % 4) / 2))
        write(tmp_path / "in" / path.name, np.concatenate((lead, soundfile.read(path)[0], rest)))
    ins, out = tmp_path / "in", tmp_path / "out"
    protect("--key-file", folder / "key", "--ends", "one", ins, out)
    told = measured(*BY_SPEAKER, ins, out)
    assert len(told["recordings"]) == 9 and not told["wrong"]
    attacks = {own["attacker"]: own for own in told["attacks"]}
    assert list(attacks) == ["unprotected", "ignorant", "lazy_informed"]
    shutil.copy(ins / "ben-2.wav", out / "ben-2.wav")
    (out / "ann-1.wav").rename(tmp_path / "other")
    (out / "cat-2.wav").rename(out / "ann-1.wav")
    (tmp_path / "other").rename(out / "cat-2.wav")
    told = measured(*BY_SPEAKER, ins, out, why="not what their names say")
    assert {name: (own["is"], own["of"]) for name, own in told["wrong"].items()} == {
        "ben-2.wav": ("original", "ben-2.wav"),
        "ann-1.wav": ("swapped", "cat-2.wav"),
        "cat-2.wav": ("swapped", "ann-1.wav"),
    }
    (tmp_path / "out.account.json").unlink()
    refuses("out.account.json", run, *BY_SPEAKER, ins, out)


def test_recordings_that_are_said_in_another_time_were_refused(folder, tmp_path, monkeypatch):
    """By the tables of make protect each half is compared with what says it now; an original is
    found, and without its table a version is left out."""
    monkeypatch.setattr(McAdams, "keeps_length", False)
    monkeypatch.setattr(McAdams, "tells_words", True)
    ins, out = tmp_path / "in", tmp_path / "out"
    for i, path in enumerate(sorted((folder / "in").glob("*.wav"))):
        lead = 1e-4 * np.random.default_rng(i).standard_normal(8000 * (i % 3))
        write(ins / path.name, np.concatenate((lead, soundfile.read(path)[0])))
    protect("--key-file", folder / "key", "--ends", "one", ins, out)
    lengths = [{soundfile.info(x / "cat-2.wav").frames} for x in (ins, out)]
    assert lengths[0] != lengths[1]
    told = measured(*BY_SPEAKER, ins, out)
    assert len(told["recordings"]) == 9 and not told["wrong"]
    shutil.copy(ins / "ben-2.wav", out / "ben-2.wav")
    (tmp_path / "out.times/ann-1.wav.tsv").unlink()
    told = measured(*BY_SPEAKER, ins, out, why="1 of 9 recordings were left out")
    assert told["originals"] == ["ben-2.wav"] and "tsv" in told["left_out"]["ann-1.wav"]


def test_recordings_that_cannot_be_compared_are_left_out_and_named(bad, capsys):
    measured(bad["cut/in"], bad["cut/out"], why="5 of 10 recordings were left out")
    told, page = capsys.readouterr().err, beside(bad["cut/out"])
    assert told.count("left out: ") == 5
    for name, why in (
        ("ann-1", "half of it is silent"), ("noise", "cannot be read"),
        ("ben-1", "is missing; protect it"), ("cat-1", "is not a protected version of it"),
        ("dan-1", "is shorter than 2 s"),
    ):  # fmt: skip
        assert re.search(f"left out: .*{name}.wav.*{why}", told) and f"{name}.wav" in page


def test_of_two_names_that_are_written_alike_one_was_lost(folder, tmp_path, capsys):
    """A byte that is no UTF-8, and the way in which it is shown."""
    names = {"ann-1.wav": b"\xe4-1.wav", "ben-2.wav": rb"\xe4-1.wav"}
    for side in ("in", "out"):
        (tmp_path / side).mkdir()
        for path in (folder / side).glob("*.wav"):
            name = os.fsdecode(names.get(path.name, os.fsencode(path.name)))
            shutil.copy(path, tmp_path / side / name)
    given = (tmp_path / "in", tmp_path / "out")
    refuses("1 of 9 recordings were left out", run, *given, kind=LossError)
    assert r"another recording is called \xe4-1.wav" in capsys.readouterr().err


@pytest.mark.parametrize("words", [(), ("--rename",)])
def test_a_recording_that_changed_since_counted_as_hidden(folder, tmp_path, capsys, words):
    """Somebody else speaks in the protected version: nobody could name the right person."""
    ins, out = shutil.copytree(folder / "in", tmp_path / "in"), tmp_path / "out"
    protect("--key-file", folder / "key", *words, ins, out)
    assert not measured(ins, out)["wrong"]
    write(ins / "ben-2.wav", 0.1 * voice(2.4, 150, 600, 7))
    measured(ins, out, why="1 of 9 recordings were left out")
    assert "ben-2.wav: is not what" in capsys.readouterr().err


def test_another_programs_folder_has_no_lazy_informed_attacker(folder, tmp_path):
    for path in (folder / "out").glob("*.wav"):
        write(tmp_path / "out" / path.name, soundfile.read(path)[0])
    out = (tmp_path / "out").rename(tmp_path / os.fsdecode(b"\xe4"))
    refuses_words("is not a folder", main, folder / "in", tmp_path / "nowhere")
    told = measured(folder / "in", out)
    assert told["out"].endswith(r"\xe4")
    assert {own["attacker"] for own in told["attacks"]} == {"unprotected", "ignorant"}
    assert "make protect" in told["not_run"]["lazy_informed"]
    assert told["system"] is None


@pytest.mark.parametrize("words", [(), ("--rename",)])
def test_originals_in_out_were_not_seen(folder, tmp_path, capsys, words):
    """Half as loud, turned round, late, coded, or under another's name: all are named. Versions of
    recordings with an offset were of none."""
    ins, out = shutil.copytree(folder / "in", tmp_path / "in"), tmp_path / "out"
    for name in ("ben-1.wav", "cat-2.wav"):
        samples = soundfile.read(ins / name)[0]
        write(ins / name, samples + 0.3 + 0.02 * np.sin(np.arange(len(samples)) / 800))
    protect("--key-file", folder / "key", *words, ins, out)
    made = Versions(
        out, [Path(path.name) for path in ins.iterdir()], out.with_name("out.names.tsv")
    ).names
    (out / JOURNAL).unlink()  # as if by another program

    def change(name: str, samples: np.ndarray) -> str:
        soundfile.write(out / made[Path(name)], samples, 16000)
        return str(made[Path(name)])

    def original(name: str) -> np.ndarray:
        return soundfile.read(ins / name)[0]

    coded = tmp_path / "coded.mp3"
    soundfile.write(coded, original("cat-1.wav"), 16000)
    late = np.roll(original("ben-1.wav"), 1400)
    wrong = {
        change("ann-1.wav", -0.5 * original("ann-1.wav")): "ann-1.wav",
        change("ben-1.wav", late): "ben-1.wav",
        change("cat-1.wav", soundfile.read(coded)[0][:38400]): "cat-1.wav",
        change("dan-1.wav", original("eve-1.wav")): "eve-1.wav",
    }
    told = measured(ins, out, why="4 files are not what their names say")
    assert {name: own["of"] for name, own in told["wrong"].items()} == wrong
    assert {own["is"] for own in told["wrong"].values()} == {"original"}
    assert {*told["originals"]} == {*wrong}
    assert "4 files of OUT are originals" in told["decision"]["Not hidden"]
    assert told["verdict"].startswith("✗ does not anonymise")
    printed, page = capsys.readouterr().err, beside(out)
    for name, of in wrong.items():
        note = f"{name}: is the original {of}, unprotected"
        assert note in printed and note in page


def test_an_original_beside_its_version_hid_all_files_of_other_names(copies):
    """`ann-1.m4a` would become `ann-1.m4a.wav`, which is there: no such file was looked at."""
    ins, out = copies
    (out / JOURNAL).unlink()  # as if by another program
    coded = encoded_by_av(soundfile.read(ins / "ann-1.wav")[0], "mp4", "aac")
    (ins / "ann-1.wav").unlink()
    (out / "ann-1.wav").rename(out / "ann-1.m4a.wav")
    for side in (ins, out):
        (side / "ann-1.m4a").write_bytes(coded)
    told = measured(ins, out, why="1 files are not what their names say")
    assert told["originals"] == ["ann-1.m4a"] and "ann-1.m4a" in told["recordings"]


def test_files_of_out_that_are_of_no_recording_were_not_named(copies, capsys):
    """One is of nobody in IN, one cannot be read, and one had its name changed."""
    ins, out = copies
    (ins / "ann-1.wav").unlink()
    (out / "more.wav").write_bytes(b"RIFF no audio")
    (out / "ben-2.wav").rename(out / "who.wav")
    told = measured(ins, out, why="0 of 8 recordings .* 3 files are not")
    assert "more.wav: is a version of none of the recordings" in capsys.readouterr().err
    assert {name: (own["is"], own["of"]) for name, own in told["wrong"].items()} == {
        "ann-1.wav": ("strange", ""), "more.wav": ("strange", ""),
        "who.wav": ("swapped", "ben-2.wav"),
    }  # fmt: skip
    assert "ben-2.wav" in told["recordings"]


def test_voices_under_each_others_names_counted_as_hidden(folder, tmp_path):
    """Protected or not: whoever is attacked is whose voice it is, and the names are put right."""
    names = sorted(path.name for path in (folder / "in").iterdir())
    for side, what in (("in", "original"), ("out", "swapped")):
        out = tmp_path / what
        for name, other in zip(names, names[1:] + names[:1], strict=True):
            write(out / name, soundfile.read(folder / side / other)[0])
        told = measured(*BY_SPEAKER, folder / "in", out, why="9 files are not what")
        kinds = {name: own["is"] for name, own in told["wrong"].items()}
        assert kinds == dict.fromkeys(names, what)
        assert told["attacks"][1]["recordings"]["named_by_recording"] > 0.5
        assert told["verdict"].startswith("✗")


def test_overwritten_files_counted_as_what_was_made(copies, capsys):
    """They are heard as they are, which is what would be published, and named."""
    ins, out = copies
    write(out / "ben-1.wav", 0.5 * soundfile.read(out / "ben-1.wav")[0])
    told = measured(ins, out, why="1 files are not what their names say")
    assert "ben-1.wav: was changed after it was made" in capsys.readouterr().err
    assert "ben-1.wav" in told["recordings"]
    assert "find out what changed ben-1.wav" in told["decision"]["Before you publish"]


def test_a_fault_of_a_judge_named_no_file(copies, monkeypatch, capsys):
    """Nor what was wrong with it, where files were compared."""

    def fails(self: evidence.Judges, pair: evidence.Pair, tick: object) -> evidence.Heard:
        if pair.name == "cat-1.wav":
            raise ZeroDivisionError
        return hear(self, pair, lambda _: None)

    hear = evidence.Judges.hear
    monkeypatch.setattr(evidence.Judges, "hear", fails)
    measured(*copies, why="1 of 9 recordings were left out")
    assert re.search("left out: .*cat-1.wav: a fault .*ZeroDivision", capsys.readouterr().err)


@pytest.mark.parametrize(("level", "ends"), [("one", "keep"), ("source", "keep"), ("one", "one")])
def test_the_attacker_with_the_system_heard_another_level(folder, tmp_path, level, ends):
    """They protect as `make protect` does, at the level and with the ends that it writes."""
    write(tmp_path / "in/ben-1.wav", 0.2 * soundfile.read(folder / "in/ben-1.wav")[0])
    words = ("--key-file", folder / "key", "--level", level, "--ends", ends)
    protect(*words, tmp_path / "in", tmp_path / "out")
    samples, made = (soundfile.read(tmp_path / side / "ben-1.wav")[0] for side in ("in", "out"))
    system = load_system(SYSTEM, key_number(KEY)).anonymiser
    again = protect_samples(samples, "ben-1.wav", system, level, ends)
    assert np.abs(again - made).max() < 1e-4


@pytest.mark.parametrize(("per", "n"), [("file", 9), ("speaker", 5)])
def test_the_attacker_with_the_system_had_one_voice_for_all_files(
    folder, tmp_path, monkeypatch, per, n
):
    """Of a person, where protection had one for each, so that their voice stayed in the mean."""
    protect("--key-file", folder / "key", "--per", per, folder / "in", tmp_path / "out")
    voices = list[str]()
    monkeypatch.setattr(
        evidence, "protect_samples", lambda samples, voice, *_: voices.append(voice) or samples
    )
    assert run(*BY_SPEAKER, folder / "in", tmp_path / "out") == 0
    assert len(voices) == 9 and len({*voices}) == n


def test_a_copy_counted_as_another_person(copies, capsys):
    ins, out = copies
    (out / JOURNAL).unlink()
    write(ins / "zoe-1.wav", 0.5 * soundfile.read(ins / "ann-1.wav")[0])
    shutil.copy(out / "ann-1.wav", out / "zoe-1.wav")
    told = measured(ins, out, why="1 of 10 recordings were left out")
    assert "zoe-1.wav: is the same recording as" in capsys.readouterr().err
    assert told["copies"] == {"zoe-1.wav": "ann-1.wav"} and len(told["recordings"]) == 9


def test_one_person_under_two_names_may_be_one() -> None:
    """Where recordings are as near to each other as halves of one: the last is the first's."""
    known = drawn(3)
    found = heard(lambda i: known(0) if i == N - 1 else known(i), drawn(0))
    assert found.doubles == [["00.wav", f"{N - 1}.wav"]]


def test_the_table_of_who_is_one_parted_the_recordings_of_a_person() -> None:
    """And called people one who are less alike than their halves, where others' are too short."""
    person = {name: name[:3] for name in ("ann-1", "ann-2", "ben", "eve", "lea", "max", "zoe-1")}
    known = np.eye(7)[[0, 0, 1, 2, 3, 4, 0]]
    known[5] += 0.75 * known[4]  # max is like lea: 0.6
    said = (
        known + [[0.0], [0.0], [2.0], [2.0], [0.0], [0.0], [0.0]] * np.eye(7)[[5, 5, 5, 6, 5, 5, 5]]
    )
    found = evidence._doubles({"pyannote": {evidence.KNOWN: known, evidence.SAID: said}}, person)
    assert found == [["ann-1", "ann-2", "zoe-1"]]


def test_guests_were_probably_one_person_where_another_has_most_recordings() -> None:
    """Who asks all of them is like the mean, about which the halves of theirs are hardly alike."""
    rng = np.random.default_rng(0)
    voices = rng.standard_normal((31, 64))[[0] * 30 + [*range(1, 31)]]
    known, said = voices + 0.6 * rng.standard_normal((2, *voices.shape))
    person = {f"{i:02d}": "who asks" if i < 30 else f"guest {i}" for i in range(60)}
    heard_of = {"pyannote": {evidence.KNOWN: known, evidence.SAID: said}}
    assert evidence._doubles(heard_of, person) == []


def test_pairs_of_many_recordings_grew_with_their_square(monkeypatch) -> None:
    """Above so many each recording is compared with some people, who are drawn; none is lost."""
    monkeypatch.setattr(evidence, "MOST_TRIALS", 10 * N)
    figures = heard(drawn(0), drawn(0)).attacks[1].figures
    assert figures["linking"]["n_target"] == N
    assert figures["linking"]["n_nontarget"] == 9 * N
    assert figures["recordings"]["named_by_recording"] == 1.0


def test_people_of_an_interview_were_taken_for_one(tmp_path: Path) -> None:
    """Whoever asks in all recordings is one person, and halves are of a person's own turns; who was
    kept as they are is not measured."""
    for i in range(5):
        heights = [(100, 500), (250 + 25 * i, 500 + 130 * i)]
        said = [voice(3.0, *heights[n % 2], 9 * i + n) for n in range(4)]
        wave = np.concatenate(said) * syllables(i, sum(map(len, said)))
        write(tmp_path / f"in/r{i}.wav", wave / np.abs(wave).max() * 0.3)
        rows = [f"{3 * n}\t{3 * n + 3}\t{('INT', f'guest {i}')[n % 2]}\n" for n in range(4)]
        (tmp_path / f"in/r{i}.tsv").write_text("".join(rows))
    ins, turns = tmp_path / "in", (*BY_SPEAKER, "--turns", "beside")

    def people(out: Path, *words: object) -> dict[str, str]:
        protect(*turns, *words, ins, out)
        return measured(*turns, ins, out)["recordings"]

    found = people(tmp_path / "out")
    assert found["r0.wav: INT"] == found["r4.wav: INT"] == "INT"
    assert found["r3.wav: guest 3"] == "guest 3"
    assert len(set(found.values())) == 6
    assert "whoever the turns name" in beside(tmp_path / "out")
    found = people(tmp_path / "kept", "--keep", "INT")
    assert set(found.values()) == {f"guest {i}" for i in range(5)}


def test_who_was_kept_made_each_file_an_original(tmp_path, monkeypatch) -> None:
    """Who asks speaks for as long as files are compared; an original is found all the same."""
    monkeypatch.setattr(identity, "SECONDS", 3.0)
    for i in range(6):
        said = [voice(4.0, *own, 9 * i) for own in ((100, 500), (250 + 25 * i, 500 + 130 * i))]
        wave = np.concatenate(said) * syllables(i, sum(map(len, said)))
        write(tmp_path / f"in/r{i}.wav", wave / np.abs(wave).max() * 0.3)
        (tmp_path / f"in/r{i}.tsv").write_text(f"0\t4\tINT\n4\t8\tguest {i}\n")
    words = (*BY_SPEAKER, "--turns", "beside", tmp_path / "in", tmp_path / "out")
    protect("--keep", "INT", *words)
    assert run(*words) == 0
    shutil.copy(tmp_path / "in/r0.wav", tmp_path / "out/r0.wav")
    assert measured(*words, why="1 files are not what")["originals"] == ["r0.wav"]
