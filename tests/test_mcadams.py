"""The McAdams transform: against a plain loop over frames, acceptance, and what can go wrong."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter

from steps.anonymisers import mcadams
from steps.anonymisers.mcadams import (
    EPSILON,
    HOP,
    burg,
    burg_lattice,
    transform,
)
from steps.anonymisers.registry import AsItIs, OutputLevel
from tests.refusals import refuses


def burg_of_one(frame: np.ndarray, order: int) -> np.ndarray:
    """Burg's recursion for one frame, as in a textbook."""
    forward, backward = frame[1:], frame[:-1]
    a = np.array([1.0])
    for _ in range(order):
        k = -2 * (forward @ backward) / (forward @ forward + backward @ backward)
        a = np.append(a, 0.0) + k * np.append(a, 0.0)[::-1]
        forward, backward = (forward + k * backward)[1:], (backward + k * forward)[:-1]
    return a


def plain_loop(x: np.ndarray, alpha: float) -> np.ndarray:
    """Frame by frame and pole by pole, as the challenges write it, with a hop of zeros around."""
    n = len(x)
    x = np.pad(x, (HOP, -n % HOP + HOP)) + EPSILON
    hann = np.hanning(2 * HOP)
    w = np.sqrt(hann / (hann.sum() / HOP))
    y = np.zeros(len(x))
    for m in range(len(x) // HOP - 1):
        frame = w * x[m * HOP : m * HOP + 2 * HOP]
        a = burg_of_one(frame + EPSILON, 20)
        roots = np.roots(a)
        angle = np.minimum(np.abs(np.angle(roots)) ** alpha, np.pi)
        moved = np.abs(roots) * np.exp(1j * np.sign(roots.imag) * angle)
        moved = np.where(roots.imag == 0, roots, moved)
        filtered = lfilter([1.0], np.real(np.poly(moved)), lfilter(a, [1.0], frame))
        y[m * HOP : m * HOP + 2 * HOP] += w * filtered
    return y[HOP : HOP + n]


def vowel(formants: list[float], seconds: float, rng: np.random.Generator) -> np.ndarray:
    """Pulses at 120 Hz and a little noise through resonances (Hz); peak 0.5."""
    source = 0.01 * rng.standard_normal(int(16000 * seconds))
    source[::133] += 1.0
    return resonate(source, formants)


def resonate(source: np.ndarray, formants: list[float]) -> np.ndarray:
    """`source` through resonances (Hz) of 80 Hz bandwidth; peak 0.5."""
    for formant in formants:
        pole = np.exp((-np.pi * 80 + 2j * np.pi * formant) / 16000)
        source = lfilter([1.0], np.real(np.poly([pole, pole.conj()])), source)
    return 0.5 * source / np.max(np.abs(source))


@pytest.fixture(scope="module")
def speech() -> np.ndarray:
    """Vowels, hiss, a plosive, faint noise: what a second of speech is made of."""
    rng = np.random.default_rng(1)
    pieces = [
        vowel([500, 1500, 2500, 3500], 0.25, rng),
        0.05 * rng.standard_normal(1600),
        np.zeros(800),
        vowel([300, 2300, 3000], 0.2, rng),
        0.3 * np.exp(-np.arange(2000) / 200) * rng.standard_normal(2000),
        vowel([700, 1100, 2600], 0.2, rng),
        1e-3 * rng.standard_normal(1237),
    ]
    samples = np.concatenate(pieces)
    return samples + 1e-4 * rng.standard_normal(len(samples))  # recording noise


def relative(a: np.ndarray, b: np.ndarray) -> float:
    """Largest difference when both are brought to a peak of 1, as files are."""
    return float(np.max(np.abs(a / np.max(np.abs(a)) - b / np.max(np.abs(b)))))


@pytest.mark.parametrize("alpha", [0.5, 0.8, 1.0, 1.2])
def test_has_the_samples_of_the_plain_loop(speech, alpha):
    result = transform(speech, alpha)
    assert result.n_slow < 0.1 * result.n_frames
    assert relative(result.samples, plain_loop(speech, alpha)) < 1e-8


def test_acceptance_1_alpha_1_is_the_identity_but_for_the_ripple_of_the_window(speech):
    wave = 0.35 * speech / np.max(np.abs(speech))
    padded = transform(wave, 1.0).samples
    assert np.max(np.abs(padded - wave)) <= 1.1e-3  # edges too
    hann = np.hanning(2 * HOP)
    gain = (hann[:HOP] + hann[HOP:]) * HOP / hann.sum()
    assert np.max(np.abs(padded - np.resize(gain, len(wave)) * (wave + EPSILON))) < 1e-9


def test_acceptance_2_formants_of_a_vowel_move_to_theta_to_the_alpha():
    whispered = resonate(np.random.default_rng(2).standard_normal(160000), [500, 1500])

    def angles(samples: np.ndarray) -> np.ndarray:
        roots = np.roots(burg_of_one(samples, 20))
        return np.sort(np.angle(roots[(roots.imag > 0) & (np.abs(roots) > 0.9)]))

    theta = 2 * np.pi * np.array([500, 1500]) / 16000
    assert angles(whispered) == pytest.approx(theta, rel=0.005)
    assert angles(transform(whispered, 0.8).samples) == pytest.approx(theta**0.8, rel=0.01)


def test_real_poles_stay_and_none_is_dropped():
    rng = np.random.default_rng(3)
    for real in ([], [0.5, -0.3], [0.9, 0.2], [-0.9, -0.8, 0.1, 0.95], [-0.6, 0.0]):
        n_pairs = 10 - len(real) // 2
        upper = rng.uniform(0.5, 0.99, n_pairs) * np.exp(1j * rng.uniform(0.1, 3.0, n_pairs))
        a = np.real(np.poly([*real, *upper, *upper.conj()]))[:, None]
        factors, _ = mcadams.factorise(np.repeat(a, 2, axis=1))
        assert mcadams.expand(factors)[:, 0] == pytest.approx(a[:, 0], abs=1e-10)
        moved = np.abs(upper) * np.exp(1j * np.angle(upper) ** 0.7)
        expected = np.real(np.poly([*real, *moved, *moved.conj()]))
        warped = mcadams.expand(mcadams.warp_angles(factors, 0.7))[:, 0]
        assert warped == pytest.approx(expected, abs=1e-10)


@given(st.integers(0, 2**32), st.integers(1, 12))
def test_factors_multiply_to_the_polynomial(seed, m):
    rng = np.random.default_rng(seed)
    k = np.tanh(rng.standard_normal((2 * m, 5)) * rng.uniform(0.3, 2.0))  # reflection: stable poles
    a = np.ones((1, 5))
    for row in k:
        a = np.concatenate([a, np.zeros((1, 5))])
        a = a + row * a[::-1]
    factors, _ = mcadams.factorise(a)
    assert np.max(np.abs(mcadams.expand(factors) - a) / np.abs(a).max(axis=0)) < 1e-8


def test_frames_that_do_not_settle_go_to_numpy_roots_and_are_counted(speech, monkeypatch):
    expected = transform(speech, 0.8)
    monkeypatch.setattr(mcadams, "MAX_ITERATIONS", 0)
    slow = transform(speech, 0.8)
    assert slow.n_slow == slow.n_frames == expected.n_frames
    assert relative(slow.samples, expected.samples) < 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("block", [1, 2, 3, 7, 50, 100000])
def test_same_bits_whatever_the_block(speech, block):
    expected = transform(speech, 0.8)
    assert np.array_equal(transform(speech, 0.8, block=block).samples, expected.samples)


def test_fast_burg_is_burg(speech):
    frames = np.lib.stride_tricks.sliding_window_view(speech, 320)[::160] * np.hanning(320)
    fast, lattice = burg(frames, 20), burg_lattice(frames, 20)
    assert np.max(np.abs(fast - lattice)) < 1e-6
    assert lattice[:, 7] == pytest.approx(burg_of_one(frames[7], 20), abs=1e-9)


def test_digital_silence_stays_silent_and_does_no_harm_within_speech(speech):
    assert not transform(np.zeros(5000), 0.8).samples.any()
    assert not OutputLevel().to_pcm16(np.zeros(5000)).any()
    wave = speech.copy()
    wave[4000:12000] = 0.0
    samples = transform(wave, 0.8).samples
    assert np.max(np.abs(samples[5000:11000])) < 1e-5
    assert np.max(np.abs(samples)) > 0.1


@pytest.mark.parametrize("alpha", [0.5, 0.8, 1.3])
def test_signals_that_predict_too_well_stay_finite(alpha):
    t = np.arange(4000) / 16000
    tone, chirp = (0.5 * np.sin(2 * np.pi * f * t) for f in (440, 50 + 1500 * t))
    impulse = np.zeros(4000)
    impulse[1000] = 1.0
    alternating = 0.5 * np.cos(np.pi * np.arange(4000))
    for wave in (tone, chirp, impulse, alternating, np.full(4000, 0.25), np.linspace(-1, 1, 4000)):
        assert np.isfinite(transform(wave, alpha).samples).all()


def test_output_levels():
    samples = np.array([0.0, 0.2, -0.5, 0.4999])
    assert OutputLevel().to_pcm16(samples).tolist() == [0, 12452, -31130, 31123]
    assert AsItIs().to_pcm16(np.array([2.0, -0.5])).tolist() == [32767, -16384]
    refuses("not finite", OutputLevel().to_pcm16, np.array([0.0, np.inf]))
