"""The small source-filter: sources, filters, losses, discriminators, training, conversion."""

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from steps.synthesis.base import load_synthesiser
from steps.synthesis.content import draw_warp, extract_content, warp_matrix
from steps.synthesis.trained import (
    DiscriminatorConfig,
    NsfConfig,
    NsfLayers,
    NsfNetwork,
    NsfSynthesiser,
    NsfTraining,
    filter_basis,
    pulse_train,
)
from steps.synthesis.training import (
    Adversary,
    Discriminators,
    Judgement,
    SpectralLoss,
    adversarial_loss,
    discriminator_loss,
    feature_loss,
    train_synthesiser,
)
from steps.synthesis.world import analyse
from steps.train_synthesiser import main
from tests import world
from tests.refusals import accepts, refuses
from tests.world import RATE, assert_same_network, audio_of, voice, write_pool
from utils.arrays import Float64
from utils.settings import to_plain

N_XVECTOR = 6
some_target = partial(world.some_target, N_XVECTOR)
SMALL = NsfLayers(
    24, dilations=(1, 2), condition=8, bands=40, noise_bands=20, bottleneck=4, encoder_channels=16
)
NSF = NsfConfig(
    "nsf",
    NsfTraining(
        30, batch=4, crop_seconds=0.5, learning_rate=1e-2, valid_every=15, checkpoint_every=10
    ),
    network=SMALL,
)


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six voices of 1 s."""
    waves = [voice(1.0, 100 + 20 * i, 500 + 40 * i, i) for i in range(6)]
    return write_pool(tmp_path_factory.mktemp("pool"), waves, np.random.default_rng(1), N_XVECTOR)


def train(pool: Path, out: Path, config: NsfConfig, seed: int = 0) -> None:
    train_synthesiser(NsfSynthesiser, config, audio_of(pool), pool, out, seed=seed)


@pytest.fixture(scope="module")
def trained(pool: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a network of ten steps, made by the program."""
    folder = tmp_path_factory.mktemp("trained")
    config = replace(NSF, training=replace(NSF.training, steps=10))
    (folder / "conf.yaml").write_text(yaml.safe_dump(to_plain(config)))
    accepts(main, folder / "conf.yaml", pool, pool, folder / "nsf")
    return folder / "nsf"


def keep(f0: Float64) -> Float64:
    return f0


def test_pulses_are_equal_harmonics_of_f0():
    pulses = pulse_train(np.full(101, 200.0), RATE)
    spectrum = np.abs(np.fft.rfft(pulses)) / (RATE / 2)
    n = int(0.49 * RATE / 200)
    assert np.allclose(spectrum[200 : 200 * n + 1 : 200], np.sqrt(2 / n), rtol=1e-6)
    spectrum[0 : 200 * n + 1 : 200] = 0
    assert spectrum.max() < 1e-6
    assert np.sqrt(np.mean(pulses**2)) == pytest.approx(1.0, rel=1e-3)
    assert not pulse_train(np.zeros(11), 1600).any()


def test_filters_are_minimum_phase_and_of_the_magnitude_asked_for():
    basis = filter_basis(40)
    assert np.allclose(basis.real.sum(axis=0), 1.0, atol=1e-4)  # all bands: a plain gain,
    assert np.allclose(basis.imag.sum(axis=0), 0.0, atol=1e-4)  # without phase
    bands = np.random.default_rng(0).standard_normal(40)
    response = np.fft.irfft(np.exp(bands @ basis))
    assert np.sum(response[:320] ** 2) > 0.9999 * np.sum(response**2)  # causal


def test_content_knows_neither_level_nor_channel():
    """A gain and a fixed filter add a constant to the codes of all frames."""
    envelope = analyse(voice(1.0, 120, 500)).envelope
    plain = extract_content(envelope, 20)
    other = extract_content(envelope + np.linspace(2, -1, 40), 20)
    assert np.allclose(plain.features, other.features, atol=1e-5)
    assert other.level == pytest.approx(plain.level + 2)
    assert np.abs(plain.features.mean(axis=0)).max() < 0.3


def test_a_warp_moves_formants_by_its_factor():
    assert np.allclose(warp_matrix(np.ones(5)), np.eye(40), atol=1e-9)
    low, high = (analyse(voice(0.5, 110, hz)).envelope.mean(axis=0) for hz in (500.0, 550.0))
    bent = warp_matrix(np.full(5, 1.1)) @ low
    assert np.linalg.norm((bent - high)[1:20]) < 0.5 * np.linalg.norm((low - high)[1:20])
    draws = [draw_warp(np.random.default_rng(seed), 0.1, 0.05) for seed in (1, 1, 2)]
    assert np.array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])


def test_loss_of_equal_signals_is_0_and_does_not_see_the_sign():
    right = torch.from_numpy(voice(0.5, 120, 500).astype(np.float32))[None]
    loss = SpectralLoss()
    assert float(loss(right, right)) == 0.0
    assert float(loss(-right, right)) == pytest.approx(0.0, abs=1e-5)
    quieter = float(loss.log_mel_distance(right / 2, right))
    assert quieter == pytest.approx(np.log(2), abs=0.05)


def test_the_adversary_learns_and_what_it_looks_at_is_driven_away():
    adversary, speaker = Adversary(3, 5), torch.randn(2, 5)
    codes = torch.randn(2, 3, 40, requires_grad=True)
    weights = list(adversary.parameters())
    found = {}
    for weight in (-1.0, 0.5):  # -1: as if nothing were turned round
        loss = adversary(codes, speaker, weight)
        found[weight] = torch.autograd.grad(loss, [codes, *weights])
    assert torch.allclose(found[0.5][0], -0.5 * found[-1.0][0], atol=1e-6)
    assert found[0.5][0].abs().max() > 1e-6
    for turned, plain in zip(found[0.5][1:], found[-1.0][1:], strict=True):
        assert torch.allclose(turned, plain, atol=1e-6)


def test_shapes_of_verdicts():
    judges = Discriminators(DiscriminatorConfig((2, 11), 3, (4, 8, 8, 8, 4), (16,) * 7))
    verdicts = judges(torch.randn(2, 5120))
    assert [tuple(v.scores.shape) for v in verdicts] == [
        (2, 2 * 32),  # 2560 rows, a third four times: 854, 285, 95, 32
        (2, 11 * 6),  # 466 rows: 156, 52, 18, 6
        (2, 80),
        (2, 41),  # halved: 2561 samples
        (2, 21),
    ]
    assert [len(v.maps) for v in verdicts] == [6, 6, 8, 8, 8]
    assert verdicts[0].maps[0].shape == (2, 4, 854, 2)
    assert verdicts[2].maps[4].shape == (2, 16, 80)
    for length in (2561, 5119):
        assert len(judges(torch.randn(1, length))) == 5


def test_adversarial_losses_by_hand():
    def verdict(*scores: float) -> list[Judgement]:
        values = torch.tensor([scores], dtype=torch.float32)
        return [Judgement(values, (values * 2, values)), Judgement(values, (values,))]

    assert float(discriminator_loss(verdict(1, 1), verdict(0, 0))) == 0
    assert float(discriminator_loss(verdict(0, 1), verdict(2, 0))) == pytest.approx(2 * (0.5 + 2))
    assert float(adversarial_loss(verdict(1, 0))) == pytest.approx(1.0)
    assert float(feature_loss(verdict(1, 0), verdict(0, 0))) == pytest.approx(1.0 + 0.5 + 0.5)


@pytest.mark.slow
def test_a_resumed_training_ends_with_the_same_bits(pool, tmp_path):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    train(pool, whole, NSF)
    shutil.copytree(whole, stopped)
    max((stopped / "checkpoints").glob("*.pt")).unlink()  # as if killed after the one before
    (stopped / "final.pt").unlink()
    train(pool, stopped, NSF)
    assert_same_network(whole, stopped)
    made = load_synthesiser(whole).convert(voice(0.3, 120, 500), some_target(), keep)
    assert np.isfinite(made).all()
    refuses("other settings, seed or data", train, pool, stopped, NSF, seed=1)


def test_the_content_is_seen_through_the_warp_of_the_target(trained):
    synthesiser, wave = load_synthesiser(trained), voice(0.5, 130, 500)
    plain, same, moved = (
        synthesiser.convert(wave, replace(some_target(), warp=warp), keep)
        for warp in (None, warp_matrix(np.ones(5)), warp_matrix(np.full(5, 1.15)))
    )
    # Without a change of the axis the matrix is that of a cosine series read where it was.
    assert np.abs(same - plain).max() < 0.01 * np.abs(moved - plain).max()


def test_silence_stays_silence(trained):
    synthesiser = load_synthesiser(trained)
    assert not synthesiser.convert(np.zeros(3200), some_target(), keep).any()
    wave = np.concatenate((voice(0.5, 120, 500), np.zeros(8000)))
    out = synthesiser.convert(wave, some_target(), keep)
    assert np.abs(out[:8000]).max() > 0.001
    assert not out[8000 + 2000 :].any()


def test_foreign_xvectors_weights_and_folders_are_refused(trained, tmp_path):
    convert, wave = load_synthesiser(trained).convert, voice(0.3, 120, 500)
    other = "x-vectors of 6 dimensions, and the target has 7"
    refuses(other, convert, wave, world.some_target(7), keep)
    zero = replace(some_target(), xvector=np.zeros(N_XVECTOR))
    refuses("is 0 or not finite", convert, wave, zero, keep)
    refuses(r"synthesiser\.yaml: is missing", load_synthesiser, tmp_path)
    shutil.copy(trained / "synthesiser.yaml", tmp_path)
    torch.save(NsfNetwork(NsfLayers(), 20, 4).state_dict(), tmp_path / "final.pt")
    refuses("not the weights", load_synthesiser, tmp_path)
