"""Segments of the NIST study: dealt by hand, cut from sessions, compared by group and duration."""

from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest
import soundfile

from local.make_nist import main as make_nist
from local.protocols.studies import NominalSegment, deal, make_segment_lists
from steps import audio
from steps.audio import DETECTORS, VAD_FRAME, detect_speech, read_audio, write_wav
from tests.refusals import accepts, refuses, refuses_words
from tests.world import voice
from utils.tables import read_map, write_map


def make_segments(words: list[str]) -> int:
    return make_nist(["segments", *words])


def test_dealt_by_hand():
    """Frames of a second, every second one of speech, from frame 2: 1, 2, 3 in turn, then what
    is left holds 1 only."""
    speech = np.tile([True, False], 9)
    found = deal(speech, 1.0, (1, 2, 3), 2)
    wanted = ((2, 3, 1), (3, 7, 2), (7, 13, 3), (13, 15, 1), (15, 17, 1))
    assert found == [NominalSegment(*frames) for frames in wanted]
    for one in found:
        assert speech[one.start : one.stop].sum() == one.nominal
    assert deal(speech, 1.0, (100,)) == []
    assert deal(speech[:0], 1.0, (1,)) == []
    assert deal(np.ones(100, bool), 0.03, (1,))[0] == NominalSegment(0, 34, 1)  # at least a second


def test_speech_is_found():
    wave = np.concatenate((np.zeros(16000), voice(2.0, 120, 550), np.zeros(32000)))
    speech = detect_speech(wave)
    assert len(speech) == len(wave) // VAD_FRAME
    assert not speech[:30].any() and speech[40:95].mean() > 0.4 and not speech[130:].any()
    assert detect_speech(np.zeros(10)).shape == (0,)


NO_SILERO = "silero-vad is not installed (requirements-silero.txt)"


def test_silero_finds_speech_of_people_and_none_in_noise(corpora):
    pytest.importorskip("silero_vad", reason=NO_SILERO)
    noise = 0.003 * np.random.default_rng(0).standard_normal(48000)
    silero = DETECTORS["silero"]
    files = sorted(corpora.glob("librispeech/test-clean/*/*/*.flac"))[:4]
    assert files
    for path in files:
        speech = read_audio(path.stem, str(path)).samples
        found = silero.detect(np.concatenate((noise, speech)))
        before = len(noise) // silero.frame - 1
        assert not found[:before].any() and found[before:].mean() > 0.6, path


def test_silero_hears_no_speech_in_silence_and_tones():
    pytest.importorskip("silero_vad", reason=NO_SILERO)
    seconds = np.arange(32000) / 16000
    for wave in (np.zeros(32000), 0.3 * np.sin(2 * np.pi * 440 * seconds)):
        assert not DETECTORS["silero"].detect(wave).any()
    assert DETECTORS["silero"].detect(np.zeros(511)).shape == (0,)
    assert DETECTORS["silero"].detect(np.zeros(1024)).shape == (2,)


def test_silero_that_is_not_there_or_another_is_one_line(tmp_path, monkeypatch):
    class Wheel:
        def locate_file(self, path: str) -> Path:
            return tmp_path / Path(path).name

    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    audio._silero.cache_clear()
    monkeypatch.setattr("importlib.metadata.distribution", missing)
    detect, wave = DETECTORS["silero"].detect, np.zeros(1024)
    refuses(r"is not installed; install silero-vad==6\.2\.3", detect, wave)
    monkeypatch.setattr("importlib.metadata.distribution", lambda name: Wheel())
    (tmp_path / Path(audio.SILERO_FILE).name).write_bytes(b"other")
    refuses(r"is not the file of silero-vad 6.2.3; .*--vad webrtc", detect, wave)


def test_durations():
    spk = {"a-1": "a", "a-2": "a", "b-1": "b", "b-2": "b", "c-1": "c", "c-2": "c"}
    seconds = {utt: "10" if utt != "a-2" else "30" for utt in spk}
    lists = make_segment_lists(spk, durations=seconds)
    assert (lists["trial1"].target.sum(), len(lists["trial1"])) == (4, 20)
    del seconds["c-2"]
    refuses("c-2: has no nominal", make_segment_lists, spk, durations=seconds)


def test_sessions_become_segments(tmp_path):
    data, wav = tmp_path / "data", {}
    for i, utt in enumerate(("a-1-1", "a-1-2", "a-2-1", "b-1-1")):
        path = tmp_path / f"{utt}.wav"
        write_wav(path, voice(8.0, 110 + 10 * i, 500, i))
        wav[utt] = str(path)
    write_map(data / "wav.scp", wav)
    write_map(data / "utt2spk", {utt: utt[0] for utt in wav})
    write_map(data / "spk2gender", {"a": "f", "b": "m"})
    write_map(data / "spk2utt", {"a": "a-1-1 a-1-2 a-2-1", "b": "b-1-1"})
    write_map(tmp_path / "sessions", {utt: utt[:3] for utt in wav})
    words = [str(tmp_path / name) for name in ("data", "sessions", "out", "wav")]
    few = ["--seconds", "1", "2", "--least-sessions"]
    accepts(make_segments, *few, "2", *words)
    durations = read_map(tmp_path / "out/utt2duration")
    assert set(read_map(tmp_path / "out/utt2session").values()) == {"a-1", "a-2"}
    assert set(durations.values()) == {"1", "2"}
    for utt, made in read_map(tmp_path / "out/wav.scp").items():
        wave = read_audio(utt, made).samples
        assert len(wave) >= 16000 * int(durations[utt])
    refuses_words("no session of a speaker with 5 sessions", make_segments, *few, "5", *words)
    write_map(tmp_path / "sessions", dict.fromkeys(list(wav)[:3], "s"))
    refuses_words("b-1-1 is not in it; add its session", make_segments, *few, "1", *words)


def test_loud_recordings_at_another_rate_ended_the_segments(tmp_path):
    loud = np.clip(20 * voice(12.0, 120, 500), -1, 1)
    soundfile.write(tmp_path / "a.wav", loud, 22050)
    assert np.abs(read_audio("a", str(tmp_path / "a.wav")).samples).max() > 1
    for name, value in (("wav.scp", tmp_path / "a.wav"), ("utt2spk", "a"), ("utt2session", "s")):
        write_map(tmp_path / "data" / name, {"a": value})
    where = [str(tmp_path / name) for name in ("data", "data/utt2session", "out", "wav")]
    accepts(make_segments, "--seconds", "1", "--least-sessions", "1", *where)
    assert len(read_map(tmp_path / "out/wav.scp")) > 1


def test_segments_of_no_seconds_were_cut_for_ever(tmp_path):
    asked = ["segments", *(str(tmp_path / name) for name in ("data", "sessions", "out", "wav"))]
    refuses_words("a whole number from 1, not '0'", make_nist, *asked, "--seconds", "10", "0")
