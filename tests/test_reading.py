"""Texts read anew: phones, their lengths in speech, the network that reads, and who may use it."""

import multiprocessing
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import soundfile
import torch
from test_bn import ROOT, Bands, needs_wheel, no_recogniser, settings, target, trained
from test_content_networks import BandsEar
from test_source_filter import pool

from steps.anonymisers.voice_conversion import VoiceConversion
from steps.asr.engines import Aligner, MoonshineRecogniser
from steps.asr.language import normalise_english
from steps.content.reading import (
    SILENCE,
    Phone,
    aligned,
    frames_of,
    phones_of,
    sizes_of,
    symbols_of,
)
from steps.sources import SourceSpeaker, VoiceKey
from steps.standalone.job import load_system
from steps.synthesis import bottleneck, bottleneck_training
from steps.synthesis import content as bn_content
from steps.synthesis.base import load_synthesiser
from steps.synthesis.bottleneck import BnHearing, BnSynthesiser
from steps.synthesis.training import train_synthesiser
from steps.synthetic.corpus import read_aloud
from tests.refusals import refuses
from tests.world import RATE, audio_of, voice
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
    reader = multiprocessing.get_context("fork").Process(
        target=read_aloud, args=({"u": text}, tmp_path)
    )
    reader.start()
    reader.join()
    speech, rate = soundfile.read(tmp_path / "u.wav")
    assert rate == RATE
    wave = np.concatenate((np.zeros(RATE // 2), speech, np.zeros(RATE // 2)))
    found = aligned(
        aligner, "u", wave + 1e-4 * np.random.default_rng(0).standard_normal(len(wave)), text
    )
    assert abs(sum(x.lasts for x in found) - len(wave) / 160) < 4
    assert [x.name for x in found if x.name != SILENCE] == [
        x.name for x in phones_of(text) if x.name != SILENCE
    ]
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
    """Recogniser of one text in everything."""

    def __init__(self, text: str) -> None:
        self.text = text

    def recognise(self, utt: str, samples: np.ndarray) -> str:
        return self.text


def test_nothing_of_the_source_is_left_but_the_words(
    reads: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = [TEXT]
    monkeypatch.setattr(bottleneck, "make_recogniser", lambda name: Heard(said[0]))
    synthesiser = load_synthesiser(reads, own_f0=True, reads="some")

    def say(wave: np.ndarray) -> np.ndarray:
        return synthesiser.convert(wave, target(), np.copy)

    one, other = voice(1.0, 120, 550), voice(2.5, 230, 700)
    first = say(one)
    assert np.mean(first**2) == pytest.approx(0.05**2, rel=0.01)
    assert (first == say(0.3 * other)).all()
    assert not say(np.zeros(RATE)).any()
    assert len(say(np.zeros(RATE))) == RATE
    said[0] = "A dog barks, and barks, and barks."
    synthesiser = load_synthesiser(reads, own_f0=True, reads="some")
    assert len(say(one)) > 1.5 * len(first)
    said[0] = "..."
    synthesiser = load_synthesiser(reads, own_f0=True, reads="some")
    assert not say(one).any()
    assert len(say(one)) == len(one)


def test_only_a_network_with_a_reader_reads(trained: Path) -> None:
    refuses("reads: it was trained without network.reader", load_synthesiser, trained, reads="x")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("bn_x\nf0: linear\nreads: moonshine", "reads: f0 must be predicted"),
        ("bn_x\nf0: predicted\nkeep: [energy]\nreads: moonshine", "and keep empty"),
        ("world\nreads: moonshine", "reads: this setting belongs to synthesiser: bn_<name>"),
    ],
)
def test_settings_that_reading_does_not_go_with(text: str, why: str, tmp_path: Path) -> None:
    conf = tmp_path / "s.yaml"
    conf.write_text(
        f"anonymiser: voice_conversion\ngenerator: {{name: random}}\nsynthesiser: {text}\n"
    )
    refuses(re.escape(why), VoiceConversion.parse, read_settings(conf), conf)


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
