"""Texts read anew: phones, their lengths in speech, the network that reads, and who may use it."""

import multiprocessing
import runpy
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import soundfile
import torch
from test_bn import ROOT, Bands, needs_wheel, no_recogniser, settings, target, trained
from test_content_networks import BandsEar
from test_source_filter import pool

from steps.asr.engines import Aligner, MoonshineRecogniser
from steps.asr.language import normalise_english
from steps.asr.recognisers import Hypothesis
from steps.audio import read_audio
from steps.content.reading import (
    SILENCE,
    Phone,
    agreement,
    aligned,
    frames_of,
    heard_words,
    in_place,
    in_time,
    names_of,
    parts_of,
    phones_of,
    settled,
    sizes_of,
    symbols_of,
    words_of,
    written,
)
from steps.sources import SourceSpeaker, VoiceKey
from steps.standalone.job import load_system
from steps.standalone.times import Span, TimeMap, laid_out
from steps.synthesis import bottleneck, bottleneck_training
from steps.synthesis import content as bn_content
from steps.synthesis.base import load_synthesiser
from steps.synthesis.bottleneck import BnHearing, BnSynthesiser
from steps.synthesis.training import train_synthesiser
from steps.synthetic.corpus import read_aloud
from tests.refusals import refuses, refuses_file
from tests.world import RATE, audio_of, voice
from utils.cli import UserError
from utils.settings import read_settings

__all__ = ["no_recogniser", "pool", "trained"]  # fixtures
TEXT = "A dog barks."


def names(text: str) -> str:
    return " ".join(f"{x.name}{x.stress or ''}{'' if x.ends else '-'}" for x in phones_of(text))


@pytest.mark.parametrize(
    ("text", "phones"),
    [
        ("Yes.", "SIL Y- EH1- S SIL"),
        ("MR. LEE", "SIL M- IH1- S- T- ER L- IY1 SIL"),
        ("No, 5!", "SIL N- OW1 SIL F- AY1- V SIL"),
        ("button", "SIL B- AH1- T- AH- N SIL"),  # a syllabic consonant
        ("(well-known)", "SIL W- EH1- L- N- OW1- N SIL"),
        ("1,000", "SIL W- AH1- N TH- AW1- Z- AH- N- D SIL"),  # was read as 1 and 000
        ("6-1", "SIL S- IH1- K- S W- AH1- N SIL"),  # was read with a dash
        ("", ""),
        ("... !", ""),
        ("“” — 。", ""),
    ],
)
def test_phones_of_a_text(text: str, phones: str) -> None:
    assert names(text) == phones


def test_a_text_pauses_where_its_marks_are() -> None:
    found = phones_of("No, no; no (no) no")
    assert [x.lasts for x in found if x.name == SILENCE] == [12, 20, 35, 35, 35, 12]
    assert {x.lasts for x in found if x.name != SILENCE} == {0}


def test_a_long_text_is_read_in_parts() -> None:
    """Of 50 words at most, which end with a sentence where one does."""
    sentence = "No " * 19 + "no."
    assert parts_of(f"{sentence} {sentence} {sentence}") == [f"{sentence} {sentence}", sentence]
    assert [len(x.split()) for x in parts_of("so " * 120)] == [50, 50, 20]
    assert parts_of("It costs 3.50, he said.  And?") == ["It costs 3.50, he said. And?"]
    assert parts_of("  ") == []


def test_frames_lie_in_the_phones_that_are_said_then() -> None:
    phones = [Phone(SILENCE, lasts=4), Phone("AA", 1, False, 8), Phone("T", 0, True, 4)]
    at, places = frames_of(phones, Bands(), 6)  # middles at 27.9 ms, then every 24 ms
    assert at.tolist() == [0, 1, 1, 1, 2, 2]
    share = [2.79 / 4, 1.19 / 8, 3.59 / 8, 5.99 / 8, 0.39 / 4, 2.79 / 4]
    assert places[:, 0] == pytest.approx(share, abs=2e-3)
    assert places[:, 4] == pytest.approx([0.121, 0.681, 0.441, 0.201, 0.361, 0.121], abs=1e-3)
    assert places[:, 7].tolist() == [1, 0, 0, 0, 0, 0]
    assert sizes_of(phones) == pytest.approx(np.log([0.5, 1, 0.5]))


def test_symbols_tell_phones_apart() -> None:
    phones = [Phone(SILENCE), Phone("AA", 1, False), Phone("AA", 1), Phone("AA"), Phone("B")]
    assert symbols_of(phones).tolist() == [2, 9, 10, 8, 44]
    assert symbols_of([Phone("ZH", 2)]).tolist() == [240]


def test_alignment_finds_the_words_in_synthetic_speech(tmp_path: Path) -> None:
    aligner, text = Aligner(), "Seven dogs bark, and nobody sleeps."
    fork = multiprocessing.get_context("fork")
    reader = fork.Process(target=read_aloud, args=({"u": text}, tmp_path))
    reader.start()
    reader.join()
    speech, rate = soundfile.read(tmp_path / "u.wav")
    assert rate == RATE
    wave = np.concatenate((np.zeros(RATE // 2), speech, np.zeros(RATE // 2)))
    noise = 1e-4 * np.random.default_rng(0).standard_normal(len(wave))
    found = aligned(aligner, "u", wave + noise, text)
    assert abs(sum(x.lasts for x in found) - len(wave) / 160) < 4
    said = [[x.name for x in of if x.name != SILENCE] for of in (found, phones_of(text))]
    assert said[0] == said[1]
    assert found[0].name == found[-1].name == SILENCE
    assert found[0].lasts == pytest.approx(50, abs=8)
    assert found[-1].lasts == pytest.approx(50, abs=12)
    refuses("u: its speech does not say its text", aligned, aligner, "u", wave[:3000], text)
    refuses("u: its speech does not say its text", aligned, aligner, "u", wave, "...")


@pytest.fixture(scope="module")
def reads(pool: Path, trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network with a melody, and a reader put onto it."""
    base = tmp_path_factory.mktemp("base")
    out, plain = tmp_path_factory.mktemp("reads"), settings(6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bn_content, "load_extractor", lambda name, device="cpu": Bands())
        patch.setattr(bottleneck_training, "load_ear", lambda name, device: BandsEar())
        patch.setattr("steps.asr.engines.Aligner", Halves)
        melody = replace(plain, network=replace(plain.network, melody=8))
        audio = audio_of(pool)
        train_synthesiser(BnSynthesiser, melody, audio, pool, base, seed=0)
        by_ear = BnHearing(weight=1.0, steps=2, batch=2, crop_seconds=0.5)
        config = replace(melody, network=replace(melody.network, reader=8), hearing=by_ear)
        texts = dict.fromkeys(audio.lengths, TEXT)
        train_synthesiser(BnSynthesiser, config, audio, pool, out, seed=0, onto=base, texts=texts)
        lost = tmp_path_factory.mktemp("lost")
        for given, why in (
            ({"onto": base}, "the training data has no text"),
            ({}, "network.reader: it is put onto a trained network"),
            ({"onto": trained, "texts": texts}, "melody and reader would be"),
            ({"onto": out, "texts": texts}, "none would be"),
        ):
            refuses(
                why, train_synthesiser, BnSynthesiser, config, audio, pool, lost, seed=0, **given
            )
    before, after = (torch.load(folder / "final.pt") for folder in (base, out))
    assert all(torch.equal(after[name], part) for name, part in before.items())
    assert {name.partition(".")[0] for name in after.keys() - before.keys()} == {"reader"}
    told: Any = read_settings(out / "synthesiser.yaml")
    assert told["trained"]["onto"]["network"]["melody"] == 8
    return out


class Halves:
    """Aligner: all phones last equally long."""

    def align(self, utt: str, samples: np.ndarray, words: list[list[str]]) -> list[tuple[str, int]]:
        spoken = [name for word in words for name in word]
        return [(name, len(samples) // 160 // len(spoken)) for name in spoken]


class Heard:
    """Recogniser of one text in everything, with these probabilities of its words, if any."""

    def __init__(self, text: str, sure: Sequence[float] = ()) -> None:
        self.text, self.sure = text, sure

    def recognise(self, utt: str, samples: np.ndarray) -> Hypothesis:
        return Hypothesis(self.text, sure=self.sure)


class Steps:
    """Aligner: words of 40 frames, from frame 30 on, 50 apart; none of other signals than fit."""

    def find(self, utt: str, samples: np.ndarray, words: list[list[str]]) -> list[tuple[int, int]]:
        if not words or 50 * len(words) + 30 > len(samples) // 160:
            raise UserError("it does not fit")
        return [(30 + 50 * i, 70 + 50 * i) for i in range(len(words))]


def test_nothing_of_the_source_is_left_but_the_words(reads, monkeypatch):
    said = [TEXT]
    monkeypatch.setattr(bottleneck, "make_recogniser", lambda name: Heard(said[0]))

    def say(wave: np.ndarray) -> np.ndarray:
        synthesiser = load_synthesiser(reads, own_f0=True, reads="some")
        return synthesiser.convert(wave, target(), np.copy)

    one, other = voice(1.0, 120, 550), voice(2.5, 230, 700)
    first = say(one)
    assert np.mean(first**2) == pytest.approx(0.05**2, rel=0.01)
    assert (first == say(0.3 * other)).all()
    assert say(np.zeros(RATE)).tolist() == [0.0] * 8000
    said[0] = "A dog barks, and barks, and barks."
    assert len(say(one)) > 1.5 * len(first)
    said[0] = "..."
    assert say(one).tolist() == [0.0] * 8000


def test_pauses_get_few_lengths_and_words_move_by_at_most_50_ms() -> None:
    """By hand: 14 -> 12, 3 -> 0, 51 -> 60, 70 -> 60, 18 -> 12; 19 stays, as a word is too short to
    give any."""
    spans = [(10, 50), (64, 100), (103, 150), (201, 240), (310, 330), (349, 352), (370, 373)]
    made = settled(spans, [3] * 7)
    assert made[:4] == [(10, 51), (63, 102), (102, 146), (206, 245)]
    assert made[4:] == [(305, 330), (349, 355), (367, 373)]
    assert settled([], []) == []
    rng = np.random.default_rng(0)
    for _ in range(50):
        edges = np.cumsum(rng.integers(1, 90, 12))
        spans = [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]
        moved = np.abs(np.subtract(settled(spans, [1] * 6), spans))
        assert moved.max() <= 5
        assert not moved[0, 0] and not moved[-1, 1]


def test_words_are_said_in_their_place() -> None:
    """Lengths are scaled to a word's own span, silences fill the rest, and the sum is kept."""
    words = words_of(phones_of("No, dogs!"))
    assert names_of(words) == [["N", "OW"], ["D", "AA", "G", "Z"]]
    lasts = [np.array([1.0, 3.0]), np.array([0.1, 50.0, 0.1, 0.1])]
    made = in_place(words, lasts, [(5, 15), (20, 30)], 42)
    assert [(x.name, x.lasts) for x in made] == [
        (SILENCE, 5), ("N", 3), ("OW", 7), (SILENCE, 5), ("D", 1), ("AA", 7), ("G", 1), ("Z", 1),
        (SILENCE, 12),
    ]  # fmt: skip
    assert made[2].ends and made[1].stress == 0
    filled = in_place(words, lasts, [(0, 2), (2, 6)], 6)  # as short as words can be
    assert [x.lasts for x in filled] == [1] * 6


def test_times_are_mapped_between_the_edges_of_words(tmp_path: Path) -> None:
    """By hand: within a word, within the pause before it, at the edges, and behind the end."""
    spans = [Span(1, 2, 0.5, 1, "one"), Span(2, 3, 1, 1.2, "two"), Span(4, 4, 1.6, 1.6)]
    TimeMap(spans).write(tmp_path / "sub" / "a.tsv")
    found = TimeMap.read(tmp_path / "sub" / "a.tsv")
    assert found.spans == spans
    times = [0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 9]
    wanted = [0, 0.25, 0.5, 0.75, 1, 1.1, 1.2, 1.4, 1.6, 1.6]
    assert [*map(found, times)] == pytest.approx(wanted)
    assert TimeMap([])(3) == 0
    for line, why in (("1\t2\tx\t3\tw", ":2: not four times"), ("2\t1\t2\t3\tw", "span 1: begins")):
        refuses_file(why, TimeMap.read, tmp_path / "b.tsv", f"header\n{line}\n")


def test_words_that_are_spelt_together_are_written_as_several() -> None:
    text = "One of the 1,000 — well-known places."
    words = words_of(phones_of(text))
    assert len(words) == 6  # one, of the, one, thousand, well-known, places
    assert written(words, text) == [[0], [1, 2], [3], [3], [5], [6]]
    assert heard_words(Heard("a b"), np.zeros(1)) == ("a b", [1.0, 1.0])


def test_a_word_before_a_vowel_was_written_with_the_next_one() -> None:
    """In OUT.times, where it counted as doubtful with that one: eSpeak NG joins them by an r."""
    for text in ("She had never eaten it.", "The manner of her own letter in it."):
        one_each = [[i] for i, _ in enumerate(text.split())]
        assert written(words_of(phones_of(text)), text) == one_each


def test_words_that_are_read_and_heard_otherwise_do_not_agree() -> None:
    rng = np.random.default_rng(0)
    read = rng.standard_normal((30, 64)).astype(np.float32)
    heard = read + 0.1 * rng.standard_normal((30, 64))
    heard[10:20] = rng.standard_normal((10, 64))
    words = [np.arange(30) // 10 == i for i in (0, 1, 2, 7)]
    found = agreement(read, heard, words)
    assert found[[0, 2, 3]].tolist() == [1, 1, 1]
    assert found[1] < 0.3


@pytest.fixture
def placed(reads: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A synthesiser that reads a text in place, with the toy's read content taken for right."""
    monkeypatch.setattr("steps.asr.engines.Aligner", Steps)
    monkeypatch.setattr(
        "steps.content.reading.agreement", lambda read, heard, words: np.ones(len(words))
    )

    def make(text: str, sure=(), doubt: float | None = 0.5, time="keep") -> Any:
        monkeypatch.setattr(bottleneck, "make_recogniser", lambda name: Heard(text, sure))
        return load_synthesiser(reads, own_f0=True, reads="some", time=time, doubt=doubt)

    return make


def test_reading_in_place_keeps_samples_and_nothing_between_the_words(placed: Any) -> None:
    one, other = voice(3.0, 120, 550), voice(3.0, 230, 700)
    made, told, words = placed(TEXT).tell(one, target(), np.copy)
    assert len(made) == len(one) and not words
    assert told["read"] == pytest.approx(1.16) and not told["heard"]  # pauses of 10 became 12
    assert "unread" not in told
    assert (made == placed(TEXT).convert(0.3 * other, target(), np.copy)).all()
    assert placed(TEXT).tell(np.zeros(RATE), target(), np.copy)[1] == {}


def test_what_is_doubtful_stays_as_it_was_heard(placed: Any) -> None:
    """Only there does the source count; from a doubt on that a setting says; else all is heard."""
    one, other = voice(3.0, 120, 550), voice(3.0, 230, 700)
    sure, text = [1.0, 0.4, 1.0], "Dogs walk slowly."
    first, told, _ = placed(text, sure).tell(one, target(), np.copy)
    second = placed(text, sure).convert(other, target(), np.copy)
    assert told["heard"] == pytest.approx(0.38) and told["read"] == pytest.approx(0.78)
    frames = np.abs(first - second).reshape(-1, 160).max(axis=1)
    assert frames[80:118].max() > 10 * frames[200:].max()
    assert placed(text, sure, doubt=0.7).tell(one, target(), np.copy)[1]["heard"] == 0
    for words, chances in ((text, [0.2, 0.2, 0.4]), ("", []), ("so " * 99, [1.0] * 99)):
        made, told, _ = placed(words, chances).tell(one, target(), np.copy)
        assert told == {"unread": 3.0}
        assert len(made) == len(one)
        assert made.any()


def test_words_in_their_usual_time_are_told_and_doubtful_ones_keep_theirs(placed: Any) -> None:
    """In the time of the words alone but for the doubtful word, whose 40 frames are the source's;
    without repair nothing but the words counts, and what cannot be read keeps its time."""
    one, other, text = voice(3.0, 120, 550), voice(3.0, 230, 700), "Dogs walk slowly."
    lasts: Any = {}
    for sure in ([1.0, 1.0, 1.0], [1.0, 0.4, 1.0]):
        made, told, words = placed(text, sure, time="map").tell(one, target(), np.copy)
        assert [word[:2] for word in words] == [(0.3, 0.7), (0.8, 1.2), (1.3, 1.7)]
        assert [word[4] for word in words] == ["Dogs", "walk", "slowly."]
        assert words[0][2] == 0.12 and words[1][2:4] == (words[0][3], words[2][2])
        assert len(made) == pytest.approx(16000 * (words[2][3] + 0.23))  # a full stop, less 0.12
        lasts[sure[1]] = [end - begin for _, _, begin, end, _ in words]
        assert told["heard"] == (0 if sure[1] == 1 else 0.38)
        again = placed(text, sure, time="map").convert(other, target(), np.copy)
        assert ((made - again) ** 2).any() == (sure[1] != 1)
    assert lasts[0.4][1] == pytest.approx(0.4) != lasts[1.0][1]
    assert lasts[0.4][::2] == pytest.approx(lasts[1.0][::2])
    begin, end = (round(x * 100) for x in words[1][2:4])
    frames = np.abs(made - again).reshape(-1, 160).max(axis=1)
    assert frames[begin:end].max() > 5 * frames[-15:].max()
    made, told, words = placed(text, [0.2, 0.2, 0.4], time="map").tell(one, target(), np.copy)
    assert told == {"unread": 3.0} and not words and len(made) == len(one)
    alone = placed(text, [0.1] * 3, doubt=None, time="map").tell(one, target(), np.copy)
    assert alone.seconds.keys() == {"read"} and not alone.words


def test_unsure_speech_of_a_told_language_asked_whisper(placed, monkeypatch):
    """It took most of the time of synthetic speech. English is read, and no other language."""
    asked = list[str]()
    monkeypatch.setattr("steps.asr.engines.foreign", lambda utt, wave: asked.append(utt) or "de")
    unsure = placed("Dogs walk slowly.", [0.4] * 3, time="map")
    told = {
        language: "read" in unsure.tell(voice(3.0, 120, 550), target(), np.copy, language).seconds
        for language in ("en", "eng", "en-GB", "English", "de", "enm")
    }
    assert [*told.values()] == [True] * 4 + [False] * 2 and not asked
    assert unsure.tell(voice(3.0, 120, 550), target(), np.copy).seconds == {"unread": 3.0}
    assert len(asked) == 1


def test_a_telephone_number_was_said_as_a_whole_number(placed, monkeypatch):
    """Of the ways to say one that which agrees most with what was heard is read."""
    for text, n, number in (("110.", 4, "1 1 0."), ("1610.", 3, "16 10.")):
        monkeypatch.setattr(
            "steps.content.reading.agreement",
            lambda read, heard, words, n=n: np.full(len(words), 0.5 + 0.5 * (len(words) == n)),
        )
        made = placed(f"Call {text}", time="map")
        _, _, words = made.tell(voice(6.0, 120, 550), target(), np.copy)
        assert [word[4] for word in words] == ["Call", *[text] * (n - 1)]
        phones = made.network.reader.timed(phones_of(f"Call {number}", goes_on=True))
        assert [word[2] for word in words] == [begin / 100 for begin, _ in in_time(phones, {})[1]]


def test_phones_last_as_usual_but_in_words_that_are_kept() -> None:
    phones = [x._replace(lasts=x.lasts or 5) for x in phones_of("No, dogs!", goes_on=True)]
    made, spans = in_time(phones, {})
    assert made == phones and [x.lasts for x in made if x.name == SILENCE] == [12, 20, 23]
    assert spans == [(12, 22), (42, 62)]
    made, spans = in_time(phones, {0: 7})
    assert spans == [(12, 19), (39, 59)] and [x.lasts for x in made[:4]] == [12, 3, 4, 20]


def test_a_lever_keeps_lengths_or_pauses_of_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both: all words are where they were."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    program = runpy.run_path(str(ROOT / "benchmarks/compare_levers.py"))
    phones = [x._replace(lasts=x.lasts or 5) for x in phones_of("No, dogs!", goes_on=True)]
    found = SimpleNamespace(words=[(10, 50), (60, 90)], n=120)
    usual = [end - begin for begin, end in in_time(phones, {})[1]]
    for of, lasts, pauses in (
        ({"lengths", "pauses"}, [40, 30], [10, 10]), ({"pauses"}, usual, [10, 10]),
        ({"lengths"}, [40, 30], [12, 20]),
    ):  # fmt: skip
        made, (one, other) = program["in_time"](phones, {}, found, of)
        assert [one[1] - one[0], other[1] - other[0]] == lasts
        assert [one[0], other[0] - one[1]] == pauses
        assert sum(x.lasts for x in made) == other[1] + made[-1].lasts


def test_times_of_pieces_follow_one_another() -> None:
    """What was not read keeps its time, also where its begin was cut off."""
    word = (0.5, 1.0, 0.1, 0.4, "so")
    spans = laid_out([(3.0, 3.0, ()), (2.0, 1.0, [word])])
    assert spans == [(0, 3, 0, 3, ""), (3.5, 4, 3.1, 3.4, "so"), (5, 5, 4, 4, "")]
    found = TimeMap(spans).moved(-2.0, 1.75)
    assert found.spans == [
        (2, 3, 0, 1, ""),
        (3.5, 4, 1.1, pytest.approx(1.4), "so"),
        (5, 5, 1.75, 1.75, ""),
    ]
    assert [found(x) for x in (1, 2.5, 3, 4, 7)] == pytest.approx([0, 0.5, 1, 1.4, 1.75])
    longer = TimeMap(spans).moved(0.5, 4.75)
    assert longer(3.5) == pytest.approx(3.6) and longer(5) == 4.75


def test_only_a_network_with_a_reader_reads(trained: Path) -> None:
    refuses("reads: it was trained without network.reader", load_synthesiser, trained, reads="x")


@needs_wheel
def test_the_shipped_reader_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recogniser finds the words again that models/read says, whatever was the source."""
    monkeypatch.undo()  # the extractor of the other tests
    said = "The old man walked slowly to the river, and nobody knew why he was there."
    model = load_system(ROOT / "models/read", 0).anonymiser
    synthesiser = cast(Any, model)._synthesiser
    synthesiser._recogniser = Heard(said)
    made, _ = model.transform(voice(1.0, 120, 550), VoiceKey("spk", ("s",)), SourceSpeaker("s"))
    heard = MoonshineRecogniser().recognise("u", made).words
    assert normalise_english(heard) == normalise_english(said)
    synthesiser._recogniser = Heard("...")
    made, _ = model.transform(voice(1.0, 120, 550), VoiceKey("spk", ("s",)), SourceSpeaker("s"))
    assert not made.any()
    assert "no words were recognised" in str(model.notes)


@needs_wheel
@pytest.mark.corpora
@pytest.mark.parametrize("time", ["keep", "map"])
def test_words_of_real_speech_are_where_they_were_or_as_the_table_says(corpora, monkeypatch, time):
    """Within 50 ms for 95 % of their ends, by the aligner, and German is not read."""
    monkeypatch.undo()
    system = load_system(ROOT / "models/place", 0, {"time": time}).anonymiser
    recogniser, aligner, far = MoonshineRecogniser(), Aligner(), list[bool]()
    for utt in ("1673-143396-0002", "2086-149220-0008", "2902-9008-0011"):
        wave = read_audio(utt, f"{corpora}/librispeech_dev/audio/{utt}.mp3").samples
        key, source = VoiceKey("spk", (utt,)), SourceSpeaker("s")
        made, told = system.transform(wave, key, source)
        assert (len(made) == len(wave)) == (time == "keep")
        assert told["seconds_unread"] == 0 < told["seconds_read"]
        words = names_of(words_of(phones_of(recogniser.recognise(utt, wave).words)))
        before, after = (np.array(aligner.find(utt, x, words)) for x in (wave, made))
        if time == "map":
            moved = np.array([span[:4] for span in cast(Any, told["words"])]) * 100
            assert (before == np.rint(moved[:, :2])).all()
            before = moved[:, 2:]
        far += (np.abs(after - before) > 5.01).ravel().tolist()
    assert len(far) > 50
    assert np.mean(far) <= 0.05
    assert (made == system.transform(wave, key, source)[0]).all()
    german = read_audio("g", f"{corpora}/emodb/wav/12a02Wa.flac").samples
    assert system.transform(german, key, source)[1]["seconds_read"] == 0
