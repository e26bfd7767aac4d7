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
from local.measure_evidence import main
from local.metrics.intervals import key
from local.report.select import NAMED, Evidence, Level, judge
from steps.anonymisers.mcadams import McAdams
from steps.protect_folder import main as protect_folder
from steps.quality import Quality
from steps.standalone.job import JOURNAL, Versions, key_number, load_system
from steps.standalone.protection import protect_samples
from steps.standalone.stream import Recording
from tests.refusals import accepts, refuses, refuses_words
from tests.test_protect_folder import KEY, SYSTEM, write
from tests.world import voice
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
    assert " files, 1 at a time: about 0:0" in said.err  # before it begins
    assert told["verdict"] in page
    assert "9 of 9: 100.0 % [47.8, 100.0]" in page  # of five people, two of whom spoke more
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
        own = dict.fromkeys((evidence.KNOWN, evidence.SAID), known(i))
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
    """Half as loud, turned round, late, coded, or under another's name: all are named."""
    out = tmp_path / "out"
    protect("--key-file", folder / "key", *words, folder / "in", out)
    made = Versions(
        out, [Path(path.name) for path in (folder / "in").iterdir()], out.with_name("out.names.tsv")
    ).names
    (out / JOURNAL).unlink()  # as if by another program

    def change(name: str, samples: np.ndarray) -> str:
        soundfile.write(out / made[Path(name)], samples, 16000)
        return str(made[Path(name)])

    def original(name: str) -> np.ndarray:
        return soundfile.read(folder / "in" / name)[0]

    coded = tmp_path / "coded.mp3"
    soundfile.write(coded, original("cat-1.wav"), 16000)
    late = np.concatenate([np.zeros(1400), original("ben-1.wav")[:-1400]])
    wrong = {
        change("ann-1.wav", -0.5 * original("ann-1.wav")): "ann-1.wav",
        change("ben-1.wav", late): "ben-1.wav",
        change("cat-1.wav", soundfile.read(coded)[0][:38400]): "cat-1.wav",
        change("dan-1.wav", original("eve-1.wav")): "eve-1.wav",
    }
    told = measured(folder / "in", out, why="4 files are not what their names say")
    assert {name: own["of"] for name, own in told["wrong"].items()} == wrong
    assert {own["is"] for own in told["wrong"].values()} == {"original"}
    assert {*told["originals"]} == {*wrong}
    assert "4 files of OUT are originals" in told["decision"]["Not hidden"]
    assert told["verdict"].startswith("✗ does not anonymise")
    printed, page = capsys.readouterr().err, beside(out)
    for name, of in wrong.items():
        note = f"{name}: is the original {of}, unprotected"
        assert note in printed and note in page


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


def test_a_copy_counted_as_another_person(copies, capsys):
    ins, out = copies
    (out / JOURNAL).unlink()
    write(ins / "zoe-1.wav", 0.5 * soundfile.read(ins / "ann-1.wav")[0])
    shutil.copy(out / "ann-1.wav", out / "zoe-1.wav")
    told = measured(ins, out, why="1 of 10 recordings were left out")
    assert "zoe-1.wav: is the same recording as" in capsys.readouterr().err
    assert told["copies"] == {"zoe-1.wav": "ann-1.wav"} and len(told["recordings"]) == 9


def test_one_person_under_two_names_is_probably_one() -> None:
    """Where recordings are as near to each other as halves of one: the last is the first's."""
    known = drawn(0)
    found = heard(lambda i: known(0) if i == N - 1 else known(i), drawn(3))
    assert found.doubles == [["00.wav", f"{N - 1}.wav"]]


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
