"""WORLD, the programs around it and copy synthesis: round trips, lengths, hard signals."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from steps.anonymise import main as anonymise
from steps.synthesis.f0 import unbroken
from steps.synthesis.trained import pulse_train
from steps.synthesis.world import (
    HOP,
    analyse,
    analyse_finely,
    extract_f0,
    silent_frames,
    synthesise,
)
from tests.refusals import accepts, refuses
from tests.test_mcadams import resonate

COPY = Path(__file__).resolve().parents[1] / "egs/TEMPLATE/conf/systems/copy.yaml"
RATE = 16000
FORMANTS = [700.0, 1200.0, 2600.0]


def vowel(f0: float, seconds: float = 0.5) -> np.ndarray:
    """Pulses at f0 through three resonances, and a little noise."""
    n = int(seconds * RATE)
    pulses = pulse_train(np.full(2 + n // HOP, f0), n)
    noise = 1e-3 * np.random.default_rng(0).standard_normal(n)
    return 0.6 * resonate(pulses + noise, FORMANTS)


def copy(wave: np.ndarray) -> np.ndarray:
    return synthesise(analyse(wave), len(wave))


def noise(n: int, level: float = 0.1) -> np.ndarray:
    return level * np.random.default_rng(1).standard_normal(n)


@pytest.mark.parametrize("f0", [90.0, 137.3, 220.0, 330.0])
def test_a_vowel_keeps_its_pitch_and_its_formants(f0):
    wave = vowel(f0)
    frames = analyse(wave)
    middle = slice(5, -5)
    assert frames.f0[middle] == pytest.approx(f0, rel=0.02)
    again = analyse(synthesise(frames, len(wave)))
    assert again.f0[middle] == pytest.approx(f0, rel=0.02)
    # By a plain FFT: near each resonance the same harmonic is the strongest.
    for frequency in FORMANTS:
        assert _peak(synthesise(frames, len(wave)), frequency, f0) == _peak(wave, frequency, f0)


def _peak(wave: np.ndarray, near: float, f0: float) -> float:
    """Frequency of the strongest harmonic within 25 % of `near`."""
    part = wave[2000:6000] * np.hanning(4000)
    spectrum, bins = np.abs(np.fft.rfft(part, 16000)), np.fft.rfftfreq(16000, 1 / RATE)
    harmonics = [k * f0 for k in range(1, 60) if abs(k * f0 - near) < 0.25 * near]
    level = [spectrum[np.abs(bins - h) < 0.3 * f0].max() for h in harmonics]
    return harmonics[int(np.argmax(level))]


@pytest.mark.parametrize("mains", [50.0, 60.0])
def test_mains_hum_is_not_taken_for_a_voice(mains):
    """Speakers 103 and 1116 of LibriSpeech had a pitch of 62 Hz in 4 % of their frames."""
    hum = 0.02 * np.sin(2 * np.pi * mains * np.arange(RATE) / RATE)
    wave = np.concatenate((np.zeros(4000), vowel(200.0), np.zeros(4000)))
    f0 = extract_f0(wave + hum)
    assert f0[32:70] == pytest.approx(200.0, rel=0.02)
    assert np.count_nonzero((f0 > 0) & (f0 < 100)) == 0


def test_fine_frames_have_a_pitch_everywhere_and_the_aperiodicity_says_what_is_noise():
    """Copies of DIO's voicing lost words: of 1,576, 102 were wrong, of fine frames 70."""
    gap = slice(RATE // 2, RATE // 2 + 4800)
    wave = np.concatenate((vowel(200.0), noise(4800, 0.05), vowel(100.0)))
    frames = analyse_finely(wave)
    assert len(frames) == 1 + len(wave) // 80
    assert frames.shift == 0.005
    assert frames.f0.min() > 60
    assert frames.f0[10:90] == pytest.approx(200.0, rel=0.02)
    assert frames.f0[-90:-10] == pytest.approx(100.0, rel=0.02)
    assert np.mean(frames.aperiodicity[110:150] > -0.5) > 0.9
    assert np.mean(frames.aperiodicity[10:90] > -0.5) < 0.05
    out = synthesise(frames, len(wave))
    assert np.std(out[gap][400:-400]) == pytest.approx(0.05, rel=0.25)
    assert extract_f0(out)[6:44] == pytest.approx(200.0, rel=0.02)
    for without in (np.zeros(3200), noise(3200)):
        assert not analyse_finely(without).f0.any()
    assert not synthesise(analyse_finely(np.zeros(3200)), 3200).any()
    broken = np.array([0.0, 100.0, 0.0, 400.0, 0.0])
    assert unbroken(broken) == pytest.approx([100, 100, 200, 400, 400])


def test_digital_silence_stays_silent():
    assert not copy(np.zeros(3200)).any()
    assert not copy(np.full(3200, 0.25)).any()  # a constant is no sound
    wave = np.concatenate((np.zeros(4000), noise(4000), np.zeros(4000)))
    out = copy(wave)
    assert not out[:3680].any()
    assert not out[-3680:].any()
    assert np.std(out[4400:7600]) == pytest.approx(0.1, rel=0.25)
    assert not silent_frames(analyse(noise(3200, 2**-15)).envelope).any()  # the last bit is sound


def test_frames_that_end_early_are_followed_by_silence():
    frames = analyse(noise(1600))
    out = synthesise(frames, 4000)
    assert len(out) == 4000
    assert not out[11 * HOP :].any()


@pytest.mark.parametrize("wave", [np.zeros(0), np.array([0.0, np.nan]), np.zeros((2, 2))])
def test_what_is_no_signal_is_an_error(wave):
    refuses("empty, or holds a sample", analyse, wave)


def test_frames_that_are_too_loud_are_an_error():
    frames = analyse(noise(1600))
    loud = replace(frames, envelope=frames.envelope + 1e4)
    refuses("samples that are not finite", synthesise, loud, 1600)


# --- copy synthesis as a system: nothing but the vocoder ---


def signals() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    n = RATE // 5  # 0.2 s
    buzz = np.sign(np.sin(2 * np.pi * 140 * np.arange(n) / RATE))
    return {
        "s1-000": 0.1 * np.diff(rng.standard_normal(n + 1)),  # as of a fricative
        "s1-001": np.zeros(n),
        "s1-002": buzz,  # at full scale throughout
        "s1-003": np.concatenate((np.zeros(1601), 0.3 * buzz)),
        "s1-004": 0.2 * buzz[:1],
    }


def test_the_program_on_hard_input(make_data_dir, tmp_path):
    data, out = make_data_dir(tmp_path / "set", {"s1": 5}), tmp_path / "out"
    for utt, wave in signals().items():
        soundfile.write(data / f"wav/{utt}.wav", wave, RATE, subtype="PCM_16")
    accepts(anonymise, COPY, data, out, out / "wav")
    rows = [line.split("\t") for line in (out / "pseudo.tsv").read_text().splitlines()]
    assert rows[0][:4] == ["#utt", "key", "frames", "voiced"]
    assert {row[1] for row in rows[1:]} == {"const"}
    voiced = {row[0]: int(row[3]) / int(row[2]) for row in rows[1:]}
    assert voiced["s1-000"] < 0.4
    assert voiced["s1-001"] == 0
    assert voiced["s1-002"] > 0.8
    for utt, wave in signals().items():
        samples = soundfile.read(out / f"wav/{utt}.wav", dtype="int16")[0]
        assert len(samples) == len(wave)
        peak = int(np.max(np.abs(samples.astype(int))))
        assert peak == (31130 if utt not in ("s1-001", "s1-004") else 0)  # 0.95 of full scale
    late = soundfile.read(out / "wav/s1-003.wav", dtype="int16")[0]
    assert not late[:1200].any()
