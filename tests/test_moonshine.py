"""Moonshine: its files, what it does with speech that is none, without an end, or too long."""

import hashlib
import math
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest

from local.metrics.utility import error_figures
from steps.asr import engines
from steps.asr.engines import DECODER, DIGESTS, ENCODER, FIELD, FRAME, TOKENS, MoonshineRecogniser
from steps.asr.recognisers import NOTES, PADDING, SECONDS, Hypothesis, decode_all
from steps.audio import SAMPLE_RATE, read_audio
from steps.decode import main as decode
from tests.refusals import refuses, refuses_words
from tests.world import or_skip
from utils.arrays import Float64
from utils.tables import read_map


@pytest.fixture(scope="module")
def recogniser() -> MoonshineRecogniser:
    return or_skip(MoonshineRecogniser)


def noise(seconds: float, level: float = 0.1) -> Float64:
    rng = np.random.default_rng(0)
    return level * rng.standard_normal(round(seconds * SAMPLE_RATE))


def test_what_is_no_speech_is_no_traceback(recogniser):
    assert recogniser.recognise("silence", np.zeros(8000)).words == ""
    for name, samples in {
        "a tenth of a second": noise(0.1),
        "one sample": np.ones(1),
        "a tone": 0.3 * np.sin(0.1 * np.arange(32000)),
        "noise": noise(3.0),
        "a click in silence": np.r_[np.zeros(16000), 1.0, np.zeros(16000)],
    }.items():
        heard = recogniser.recognise(name, samples)
        assert len(heard.words) < 200, (name, heard)
        assert recogniser.recognise(name, samples).words == heard.words


def test_a_frame_begins_every_384_samples(recogniser):
    encoder = engines.MoonshineEncoder(engines.find_model())
    refuses("894 samples; a frame takes 895", encoder, noise(1)[: FIELD - 1], kind=ValueError)
    for n in (FIELD, FIELD + FRAME - 1, FIELD + FRAME, SAMPLE_RATE):
        assert encoder(noise(1)[:n]).shape == ((n - FIELD) // FRAME + 1, 288)


def test_the_wheels_files_are_those_that_were_tested(tmp_path, monkeypatch):
    class Wheel:
        def locate_file(self, path: str) -> Path:
            return tmp_path

    monkeypatch.setattr("importlib.metadata.distribution", lambda name: Wheel())
    refuses(r"encoder_model.ort: is missing; install .*==0.0.49 again", MoonshineRecogniser)
    for name in DIGESTS:
        (tmp_path / name).write_bytes(b"other")
    refuses(r"is not the file of moonshine-voice 0.0.49 \(sha256", MoonshineRecogniser)
    # In a folder of the user's they may be others, and have to be what they are called.
    assert engines.find_model(tmp_path).digests[TOKENS] == hashlib.sha256(b"other").hexdigest()
    refuses(f"{ENCODER}: onnxruntime does not load it", MoonshineRecogniser, tmp_path)
    refuses("table of tokens", engines.read_tokens, tmp_path / TOKENS)
    (tmp_path / DECODER).unlink()
    refuses(f"{DECODER}: is missing; give a folder that has it", MoonshineRecogniser, tmp_path)


def test_without_the_wheel_it_says_what_to_do(tmp_path, make_data_dir, monkeypatch):
    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.distribution", missing)
    data = make_data_dir(tmp_path / "d")
    said = r"is not installed; .*--asr pocketsphinx"
    refuses_words(said, decode, "moonshine", data, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_repeats_are_cut():
    assert engines.cut_repeats([5, 6, 7]) == ([5, 6, 7], 0)
    assert engines.cut_repeats([5, 6, 6]) == ([5, 6, 6], 0)  # people say "no, no"
    assert engines.cut_repeats([5, 6, 6, 6, 6]) == ([5, 6], 4)
    assert engines.cut_repeats([9, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1]) == ([9, 1, 2, 3], 3)
    assert engines.cut_repeats([]) == ([], 0)


def test_long_speech_is_cut_at_pauses():
    signal = noise(70)
    pauses = (22.0, 41.0, 61.0)
    for pause in pauses:
        at = round(pause * SAMPLE_RATE)
        signal[at : at + 8000] *= 0.01
    pieces = list(engines.cut_at_pauses(signal, 30))
    assert np.array_equal(np.concatenate(pieces), signal)
    ends = np.cumsum([len(piece) for piece in pieces])[:-1] / SAMPLE_RATE
    assert all(pause < end < pause + 0.5 for pause, end in zip((22.0, 41.0), ends, strict=True))
    assert [len(piece) for piece in engines.cut_at_pauses(noise(30), 30)] == [30 * SAMPLE_RATE]
    # A tail is never too short to be heard.
    assert min(len(piece) for piece in engines.cut_at_pauses(noise(30.01), 30)) >= SAMPLE_RATE


class RunsOn:
    """Says one phrase again and again of every other utterance."""

    settings: Mapping[str, object] = {"recogniser": "runs on"}

    def __init__(self) -> None:
        self.n = 0

    def recognise(self, utt: str, samples: Float64) -> Hypothesis:
        self.n += 1
        seconds = {"encoder": 1, "decoder": 2}
        return Hypothesis("Thank\tyou.\n", "cut" if self.n % 2 else "", seconds)


def test_what_was_cut_is_named(tmp_path, make_data_dir):  # type: ignore[no-untyped-def]
    wav = read_map(make_data_dir(tmp_path / "d") / "wav.scp")
    _, notes = decode_all(RunsOn(), wav, tmp_path, iter)
    assert dict(notes) == {"s1-000": "cut", "s2-000": "cut", "s2-002": "cut"}
    assert read_map(tmp_path / NOTES) == notes
    seconds = "#utt\tdecoder\tencoder\ns1-000\t2.0000\t1.0000\n"
    assert (tmp_path / SECONDS).read_text().startswith(seconds)
    assert (tmp_path / "text").read_text().startswith("s1-000 Thank you.\n")
    # What is not so any more is not told any more.
    decode_all(RunsOn(), {"s1-000": wav["s1-000"]}, tmp_path, lambda utts: iter(()))
    assert not (tmp_path / NOTES).exists()


def librispeech(corpora: Path) -> list[tuple[str, Path, str]]:
    """Two utterances of each of 20 test-clean speakers: id, file and words."""
    found = []
    for speaker in sorted((corpora / "librispeech/test-clean").iterdir())[:20]:
        lines = [
            (path.parent, *line.split(" ", 1))
            for path in sorted(speaker.glob("*/*.trans.txt"))
            for line in path.read_text(encoding="utf-8").splitlines()
        ]
        there = [(utt, at / f"{utt}.flac", text) for at, utt, text in lines]
        found += [row for row in there if row[1].is_file()][:2]
    assert len(found) == 40
    return found


@pytest.mark.corpora
@pytest.mark.slow
def test_one_word_in_seventeen_of_librispeech_is_wrong_at_most(corpora, recogniser):
    rows = librispeech(corpora)
    heard = {utt: recogniser.recognise(utt, read_audio(utt, str(p)).samples) for utt, p, _ in rows}
    said = {utt: text for utt, _, text in rows}
    figures = error_figures(said, {u: h.words for u, h in heard.items()}, dict.fromkeys(said, "x"))
    assert figures["wer"] <= 0.06  # type: ignore[operator]
    assert figures["cer"] < figures["wer"]  # type: ignore[operator]
    assert not any(h.note for h in heard.values())


@pytest.mark.corpora
def test_runaway_and_long_speech(corpora, recogniser, monkeypatch):
    utt, path, text = librispeech(corpora)[0]
    samples = read_audio(utt, str(path)).samples[: 8 * SAMPLE_RATE]
    whole = recogniser.recognise(utt, samples)
    assert error_figures({utt: text}, {utt: whole.words}, {utt: "x"})["wer"] < 1  # type: ignore[operator]
    # Twice the same with a pause of a second between, cut there: the same words twice.
    monkeypatch.setattr(engines, "LONGEST", len(samples) / SAMPLE_RATE + 1.4)
    both = recogniser.recognise(utt, np.concatenate([samples, np.zeros(16000), samples]))
    assert len(both.words) > 1.6 * len(whole.words)
    # The network is not asked for more than people can say.
    monkeypatch.setattr(recogniser, "_rate", 0.5)
    cut = recogniser.recognise(utt, samples)
    seconds = len(samples) / SAMPLE_RATE + 2 * PADDING
    assert cut.note == f"no end within {math.ceil(0.5 * seconds)} tokens: cut there"
    assert whole.words.startswith(cut.words)
    assert len(cut.words) < len(whole.words)
