"""Prosody and quality: by hand, on tones, undefined cases, bad input, and in the report."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from local.compute_utility import main as compute
from local.metrics.utility import KEYS, prosody_figures, read_prosody
from steps.audio import write_wav
from steps.compare_prosody import main as compare_prosody
from steps.extract_contours import main as extract_contours
from steps.synthesis import world
from steps.synthesis.world import compare, compare_contours, correlate_hz, pitch_of_praat
from tests.refusals import accepts, refuses, refuses_words
from tests.world import write_speech
from utils.cli import LossError

NOTHING = {"duration_change": 0.0, "level_change": 0.0, "clipping": 0.0, "clipping_original": 0.0}
RATE = 16000


def sung(semitones: float = 3.0, seconds: float = 1.0, base: float = 150.0) -> np.ndarray:
    """A buzz whose pitch swings by some semitones."""
    t = np.arange(int(seconds * RATE)) / RATE
    f0 = base * 2 ** (semitones / 12 * np.sin(2 * np.pi * 2 * t / seconds))
    phase = 2 * np.pi * np.cumsum(f0) / RATE
    return 0.1 * sum(np.sin(k * phase) / k for k in range(1, 8))


def test_contours_by_hand():
    a = np.array([0.0, 100.0, 200.0, 400.0, 0.0, 150.0])
    b = np.array([0.0, 200.0, 100.0, 400.0, 90.0, 0.0])
    found = compare_contours(a, b, **NOTHING)
    # In octaves above 100 Hz: (0, 1, 2) and (1, 0, 2): covariance 1/3, variances 2/3.
    assert found.f0_correlation == pytest.approx(0.5)
    assert found.voicing_agreement == pytest.approx(4 / 6)
    assert (found.n_frames, found.n_voiced_both) == (6, 3)


def test_undefined_without_common_voicing_or_with_a_monotone():
    a = np.array([0.0, 100.0, 110.0])
    for b in (np.array([90.0, 0.0, 0.0]), np.array([0.0, 90.0, 90.0]), np.zeros(3)):
        assert math.isnan(compare_contours(a, b, **NOTHING).f0_correlation)
    refuses("empty", compare_contours, a, np.zeros(0), **NOTHING)


def row(correlation: float, change: float = 0.0) -> np.ndarray:
    return np.array([correlation, 1.0, change, 0.0, 0.0, 0.0, 10, 5, math.nan])


def test_means_over_utterances_and_intervals_over_speakers():
    table = {"a1": row(0.2, 0.1), "a2": row(0.4, -0.1), "b1": row(0.9), "b2": row(math.nan)}
    utt2spk = {"a1": "a", "a2": "a", "b1": "b", "b2": "b"}
    found = prosody_figures(table, utt2spk, n_bootstrap=200)
    assert found["f0_correlation"] == pytest.approx(0.5)
    assert found["duration_change"] == pytest.approx(0)
    assert found["duration_drift"] == pytest.approx(0.05)
    assert found["n_undefined"] == {"f0_correlation": 1}
    assert found["f0_correlation_per_speaker"] == {"a": pytest.approx(0.3), "b": pytest.approx(0.9)}
    # Two speakers: a resample is a twice, both, or b twice.
    assert found["intervals"]["f0_correlation"] == pytest.approx([0.3, 0.9])  # type: ignore[index]
    nothing = prosody_figures({"a1": row(math.nan)}, utt2spk)
    assert math.isnan(nothing["f0_correlation"])  # type: ignore[arg-type]


def test_M2_the_spread_of_the_challenges_correlation_is_over_utterances():
    """0.2, 0.4 and 0.6 have mean 0.4, deviation sqrt(2/75); a shift of all changes nothing."""
    for shift in (0, 0.1):
        table = {utt: row(0.5) for utt in ("a1", "a2", "b1")}
        for utt, value in zip(table, (0.2, 0.4, 0.6), strict=True):
            table[utt][-1] = value + shift
        found = prosody_figures(table, {"a1": "a", "a2": "a", "b1": "b"})
        assert found["f0_correlation_vpc22"] == pytest.approx(0.4 + shift)
        assert found["f0_correlation_vpc22_std"] == pytest.approx(math.sqrt(2 / 75))
    assert "f0_correlation_vpc22_std" not in prosody_figures({"a1": row(0.5)}, {"a1": "a"})


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Data directories `o` and `p` of two speakers with two utterances; p an octave higher."""
    for name, base in (("o", 110.0), ("p", 220.0)):
        utts = enumerate(("f1-1", "f1-2", "f2-1", "f2-2"))
        write_speech(tmp_path / name, {utt: sung(1 + n, 0.5, base) for n, utt in utts})
    return tmp_path


def test_programs(data):
    out = data / "out"
    accepts(compare_prosody, data / "o", data / "p", out)
    assert set(read_prosody(out / "prosody")) == {"f1-1", "f1-2", "f2-1", "f2-2"}
    options = ["--utt2spk", data / "o/utt2spk", "--bootstrap", "20"]
    accepts(compute, "prosody", *options, out / "prosody", out / "metrics.json")
    figures = json.loads((out / "metrics.json").read_text())
    assert figures["f0_correlation"] > 0.95
    assert (figures["n_speakers"], figures["n_segments"]) == (2, 4)
    assert set(figures["intervals"]) >= {"f0_correlation", "clipping"}


@pytest.mark.parametrize("row", ["1 2 3", "a - - - - - - - -", "inf - - - - - - - -"])
def test_a_row_of_other_than_numbers_was_a_traceback_or_an_infinite_mean(tmp_path, row):
    (path := tmp_path / "prosody").write_text(f"# utterance {' '.join(KEYS)}\nu1 {row}\n")
    refuses(f"prosody: u1: not {len(KEYS)} numbers, or - for none: {row}", read_prosody, path)


def test_the_pitch_of_the_original_was_tracked_for_each_system(data, capsys):
    """Contours that are kept give the same table, also where one of them could not be read."""
    (data / "o/wav/f1-2.wav").write_text("no audio")
    sets, lossy = [str(data / "o"), str(data / "p")], ["--allow-loss", "1"]
    for out in ("one", "two"):
        accepts(extract_contours, data / "o", data / out)
    kept = [(data / out / "contours.npz").read_bytes() for out in ("one", "two")]
    assert kept[0] == kept[1]
    given = ["--contours", str(data / "one/contours.npz")]
    for out, options in (("a", []), ("b", given)):
        accepts(compare_prosody, *options, *lossy, *sets, data / out)
    assert (data / "a/prosody").read_bytes() == (data / "b/prosody").read_bytes()


def test_contours_of_other_audio_were_compared(data, capsys, monkeypatch):
    given, sets = data / "one/contours.npz", [str(data / "o"), str(data / "p"), str(data / "out")]
    command = ["--contours", str(given), *sets]
    monkeypatch.setattr(world, "pitch_of_praat", lambda wave: np.zeros(0))  # not installed
    accepts(extract_contours, data / "o", data / "one")
    monkeypatch.setattr(world, "pitch_of_praat", lambda wave: np.linspace(100, 200))
    accepts(compare_prosody, *command)
    assert read_prosody(data / "out/prosody")["f1-1"][-1] == pytest.approx(1)
    write_wav(data / "o/wav/f1-2.wav", sung(2, 0.4, 110.0))
    refuses("contours.npz: has f1-2 of another length", compare_prosody, command, kind=LossError)
    given.write_bytes(given.read_bytes()[:-50])
    refuses("contours.npz: no contours .*extract them again", compare_prosody, command)


def test_an_utterance_of_nobody(data):
    compare_prosody([str(data / "o"), str(data / "p"), str(data / "out")])
    (data / "utt2spk").write_text("f1-1 f1\n")
    words = ("--utt2spk", data / "utt2spk", data / "out/prosody", "-")
    refuses_words("has no utterance f1-2", compute, "prosody", *words)


def test_the_challenges_pitch_correlation_by_hand():
    """VoicePrivacy 2022: Hz, 0 where unvoiced, after the best delay; so it is not ours."""
    a = np.array([0.0, 100, 110, 120, 0, 0, 0, 0])
    assert correlate_hz(a, np.roll(a, 2)) == pytest.approx(1)
    b = np.array([0.0, 100, 110, 120, 0, 600, 50, 0])  # beyond 75 to 500 Hz there is no voice
    assert correlate_hz(a, b) == pytest.approx(1)
    inverted = np.array([0.0, 120, 110, 100, 0, 0, 0, 0])
    by_hand = np.corrcoef(a, inverted)[0, 1]
    assert correlate_hz(a, inverted) == pytest.approx(by_hand) and by_hand > 0.9  # voicing alone
    assert compare_contours(a, inverted, **NOTHING).f0_correlation == pytest.approx(-1, abs=0.01)
    assert correlate_hz(a, np.zeros(8)) == 0
    assert correlate_hz(a, np.repeat(a, 2)) > 0.9


def test_praat_hears_the_same_melody():
    pytest.importorskip("parselmouth", reason="praat-parselmouth is not installed")
    assert compare(sung(), sung()).f0_correlation_vpc22 == pytest.approx(1)
    assert not len(pitch_of_praat(sung()[:100]))
    assert math.isnan(correlate_hz(np.ones(9), np.ones(0)))


@pytest.mark.parametrize("text", ["", "# other\n", f"# utterance {' '.join(KEYS)}\n"])
def test_bad_tables(tmp_path, text):
    (tmp_path / "prosody").write_text(text)
    refuses(":1: not a table of|:1: the file is empty", read_prosody, tmp_path / "prosody")
