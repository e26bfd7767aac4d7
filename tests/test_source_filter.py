"""Source-filters, the small one and B1.b's: sources, filters, losses, trainings, conversion."""

import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch
import yaml

from steps.synthesis.base import load_synthesiser
from steps.synthesis.content import draw_warp, extract_content, warp_matrix
from steps.synthesis.trained import (
    B1bConfig,
    B1bNetwork,
    B1bSynthesiser,
    B1bTraining,
    DiscriminatorConfig,
    FilterBlock,
    GeneratorConfig,
    NsfAugmentation,
    NsfConfig,
    NsfLayers,
    NsfNetwork,
    NsfSynthesiser,
    NsfTraining,
    TrainedSynthesiser,
    apply_filters,
    cut_offs,
    filter_basis,
    filter_by_sample,
    input_statistics,
    make_sources,
    pulse_train,
    sinc_filters,
    upsample,
)
from steps.synthesis.training import (
    Adversary,
    B1bTrainer,
    Discriminators,
    Judgement,
    NsfTrainer,
    SpectralLoss,
    TrainingSpeech,
    adversarial_loss,
    discriminator_loss,
    feature_loss,
    log_power_loss,
    train_synthesiser,
)
from steps.synthesis.world import analyse, extract_f0
from steps.train_synthesiser import main
from steps.training.audio import load_training_audio
from steps.training.settings import read_config
from tests import making
from tests.making import RATE, assert_same_network, audio_of, voice, write_pool
from tests.refusals import refuses
from utils.arrays import Float64

CONF = Path(__file__).resolve().parents[1] / "egs/TEMPLATE/conf/synthesisers"
N_XVECTOR = 6
some_target = partial(making.some_target, N_XVECTOR)
TINY = GeneratorConfig(channels=8, harmonics=3, blocks=2, layers=3, noise_layers=2, narrow=4)
TINY_JUDGES = DiscriminatorConfig((2, 3), 2, (4, 4, 4, 4, 4), (16,) * 7)
SMALL = NsfLayers(24, dilations=(1, 2), condition=8, bands=40, noise_bands=20, encoder_channels=16)
NSF = NsfConfig(
    "nsf",
    NsfTraining(
        30, batch=4, crop_seconds=0.5, learning_rate=1e-2, valid_every=15, checkpoint_every=10
    ),
    network=SMALL,
)
B1B = B1bConfig(
    "b1b",
    B1bTraining(2, batch=2, segment_frames=16, checkpoint_every=1),
    cepstra=7, network=TINY, discriminators=TINY_JUDGES,
)  # fmt: skip
KINDS: dict[str, tuple[type[TrainedSynthesiser], Any]] = {
    "nsf": (NsfSynthesiser, NSF),
    "b1b": (B1bSynthesiser, B1B),
}
each = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six voices of 1 s."""
    waves = [voice(1.0, 100 + 20 * i, 500 + 40 * i, i) for i in range(6)]
    return write_pool(tmp_path_factory.mktemp("pool"), waves, np.random.default_rng(1), N_XVECTOR)


def train(pool: Path, out: Path, kind: str, config: Any, seed: int = 0) -> None:
    train_synthesiser(KINDS[kind][0], config, audio_of(pool), pool, out, seed=seed)


def trainer_of(kind: type[NsfTrainer | B1bTrainer], pool: Path, config: Any) -> Any:
    audio = audio_of(pool)
    return kind(TrainingSpeech.load(pool, audio, config, 0), audio.speakers, [])


@pytest.fixture(scope="module")
def trained(pool: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folder of each kind; B1.b's is made by the program."""
    folder = tmp_path_factory.mktemp("trained")
    train(pool, folder / "nsf", "nsf", replace(NSF, training=replace(NSF.training, steps=10)))
    write_settings(folder / "conf.yaml", asdict(B1B))
    assert main([str(x) for x in (folder / "conf.yaml", pool, pool, folder / "b1b")]) == 0
    return {kind: folder / kind for kind in KINDS}


def write_settings(path: Path, values: object) -> None:
    path.write_text(yaml.safe_dump(to_lists(values)))


def to_lists(values: object) -> object:
    if isinstance(values, dict):
        return {name: to_lists(value) for name, value in values.items()}
    return list(values) if isinstance(values, tuple) else values


def keep(f0: Float64) -> Float64:
    return f0


def test_pulses_are_equal_harmonics_of_f0() -> None:
    pulses = pulse_train(np.full(101, 200.0), RATE)
    spectrum = np.abs(np.fft.rfft(pulses)) / (RATE / 2)
    n = int(0.49 * RATE / 200)
    assert np.allclose(spectrum[200 : 200 * n + 1 : 200], np.sqrt(2 / n), rtol=1e-6)
    spectrum[0 : 200 * n + 1 : 200] = 0
    assert spectrum.max() < 1e-6
    assert np.sqrt(np.mean(pulses**2)) == pytest.approx(1.0, rel=1e-3)
    assert not pulse_train(np.zeros(11), 1600).any()


def test_filters_are_minimum_phase_and_of_the_magnitude_asked_for() -> None:
    basis = filter_basis(40)
    assert np.allclose(basis.real.sum(axis=0), 1.0, atol=1e-4)  # all bands: a plain gain,
    assert np.allclose(basis.imag.sum(axis=0), 0.0, atol=1e-4)  # without phase
    bands = np.random.default_rng(0).standard_normal(40)
    response = np.fft.irfft(np.exp(bands @ basis))
    assert np.sum(response[:320] ** 2) > 0.9999 * np.sum(response**2)  # causal


def test_filters_of_gain_one_and_open_gates_change_nothing() -> None:
    source = torch.randn(2, 800, generator=torch.Generator().manual_seed(0))
    flat, gate = torch.zeros(2, 6, 321, dtype=torch.complex64), torch.ones(2, 6)
    assert torch.allclose(apply_filters(source, flat, gate), source, atol=1e-5)
    gate[:, 3:] = 0
    out = apply_filters(source, flat, gate)
    assert torch.allclose(out[:, :320], source[:, :320], atol=1e-5)
    assert out[:, 480:].abs().max() < 1e-6  # rounding of the FFT


def test_content_knows_neither_level_nor_channel() -> None:
    """A gain and a fixed filter add a constant to the codes of all frames."""
    envelope = analyse(voice(1.0, 120, 500)).envelope
    plain = extract_content(envelope, 20)
    other = extract_content(envelope + np.linspace(2, -1, 40), 20)
    assert np.allclose(plain.features, other.features, atol=1e-5)
    assert other.level == pytest.approx(plain.level + 2)
    assert np.abs(plain.features.mean(axis=0)).max() < 0.3


def test_a_warp_moves_formants_by_its_factor() -> None:
    assert np.allclose(warp_matrix(np.ones(5)), np.eye(40), atol=1e-9)
    low, high = (analyse(voice(0.5, 110, hz)).envelope.mean(axis=0) for hz in (500.0, 550.0))
    bent = warp_matrix(np.full(5, 1.1)) @ low
    assert np.linalg.norm((bent - high)[1:20]) < 0.5 * np.linalg.norm((low - high)[1:20])
    draws = [draw_warp(np.random.default_rng(seed), 0.1, 0.05) for seed in (1, 1, 2)]
    assert np.array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])


def test_loss_of_equal_signals_is_0_and_does_not_see_the_sign() -> None:
    right = torch.from_numpy(voice(0.5, 120, 500).astype(np.float32))[None]
    loss = SpectralLoss()
    assert float(loss(right, right)) == 0.0
    assert float(loss(-right, right)) == pytest.approx(0.0, abs=1e-5)
    quieter = float(loss.log_mel_distance(right / 2, right))
    assert quieter == pytest.approx(np.log(2), abs=0.05)


def test_the_adversary_learns_and_what_it_looks_at_is_driven_away() -> None:
    torch.manual_seed(0)
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


def some_input(
    n_content: int, n_frames: int, n_harmonics: int, batch: int = 2
) -> tuple[torch.Tensor, ...]:
    """Content, F0 (voiced in the first half), x-vectors, excitation, noise."""
    rng = np.random.default_rng(0)
    f0 = np.where(np.arange(n_frames) < (n_frames + 1) // 2, 150.0, 0.0)
    made = [make_sources(f0, n_harmonics, rng) for _ in range(batch)]
    parts = (
        rng.standard_normal((batch, n_frames, n_content)),
        np.tile(f0, (batch, 1)),
        rng.standard_normal((batch, N_XVECTOR)),
        *(np.stack(part) for part in zip(*made, strict=True)),
    )
    return tuple(torch.from_numpy(part.astype(np.float32)) for part in parts)


@pytest.mark.parametrize(("n_content", "n_frames", "batch"), [(1, 1, 1), (21, 7, 3), (256, 33, 2)])
def test_a_frame_is_160_samples_for_any_content(n_content: int, n_frames: int, batch: int) -> None:
    network = B1bNetwork(TINY, n_content, N_XVECTOR)
    out = network(*some_input(n_content, n_frames, TINY.harmonics, batch))
    assert out.shape == (batch, 160 * n_frames)
    assert torch.isfinite(out).all()


@pytest.mark.slow
def test_the_published_sizes() -> None:
    """A bottleneck of 256 values and an x-vector of 512; counted by hand."""
    network = B1bNetwork(GeneratorConfig(), 256, 512)
    recurrent = 2 * 4 * 32 * (769 + 32 + 2)
    ends = 64 + (64 * 16 + 16) + (16 + 1)
    blocks = 5 * (ends + 10 * 3 * 64 * 64) + (ends + 5 * 3 * 64 * 64)
    found = sum(p.numel() for p in network.parameters())
    assert found == recurrent + (3 * 64 * 64 + 64) + (8 + 1) + blocks
    with torch.device("meta"):
        judges = Discriminators(replace(DiscriminatorConfig()))
    n_judges = sum(p.numel() for p in judges.parameters())
    print(f"\nparameters: generator {found}, discriminators {n_judges}")
    assert 0.85e6 < found < 0.95e6
    assert 70e6 < n_judges < 72e6  # HiFi-GAN: 70.7 M


def test_sines_are_multiples_of_f0_and_silent_where_unvoiced() -> None:
    f0 = np.repeat([200.0, 0.0], 100)
    excitation, noise = make_sources(f0, 8, np.random.default_rng(0))
    assert excitation.shape == (8, 32000) and noise.shape == (32000,)
    spectrum = np.abs(np.fft.rfft(excitation[:, :RATE])) / (RATE / 2)  # bins of 1 Hz
    assert spectrum.argmax(axis=1).tolist() == [200 * k for k in range(1, 9)]
    assert np.allclose(spectrum.max(axis=1), 0.1, rtol=0.01)
    for k in range(8):
        spectrum[k, 200 * (k + 1)] = 0
    assert np.sqrt(np.sum(spectrum**2, axis=1) / 2) == pytest.approx(np.full(8, 0.003), rel=0.05)
    assert excitation[:, RATE:].std(axis=1) == pytest.approx(np.full(8, 0.1 / 3), rel=0.05)
    assert noise.std() == pytest.approx(0.1 / 3, rel=0.05)
    assert (
        np.abs(np.corrcoef(np.vstack((excitation[:, RATE:], noise[RATE:]))) - np.eye(9)).max()
        < 0.05
    )
    assert np.abs(excitation[0, 0]) < 0.02  # the fundamental begins at 0, overtones do not
    starts = np.array([make_sources(f0, 8, np.random.default_rng(s))[0][:, 0] for s in range(9)])
    assert starts[:, 0].std() < 0.01 < 0.03 < starts[:, 1:].std(axis=0).min()


def test_no_sine_lies_above_nyquist() -> None:
    excitation, _ = make_sources(np.full(20, 1500.0), 8, np.random.default_rng(0))
    assert (excitation.std(axis=1) > 0.05).tolist() == [True] * 5 + [False] * 3


@pytest.mark.parametrize("cut_off", [0.1, 0.3, 0.5, 0.9])
def test_merging_filters(cut_off: float) -> None:
    low, high = sinc_filters(torch.tensor([[cut_off]], dtype=torch.float64), 31)
    assert low.shape == high.shape == (1, 1, 31)
    gains = [np.abs(np.fft.rfft(taps[0, 0].numpy(), 2000)) for taps in (low, high)]
    place = round(1000 * cut_off)
    assert gains[0][0] == pytest.approx(1.0, abs=1e-12)
    assert gains[1][-1] == pytest.approx(1.0, abs=1e-12)
    assert gains[0][place] == pytest.approx(0.5, abs=0.06)
    assert gains[1][place] == pytest.approx(0.5, abs=0.06)
    assert gains[1][0] < 0.02 + 0.12 * (cut_off == 0.1)  # 31 taps reach no further down
    assert gains[0][-1] < 0.02 + 0.12 * (cut_off == 0.9)


def test_each_sample_has_its_filter() -> None:
    rng = np.random.default_rng(0)
    signal = rng.standard_normal(200)
    low, high = sinc_filters(torch.tensor([[0.2], [0.8]], dtype=torch.float64), 31)
    taps = torch.cat((low[0].expand(100, 31), high[1].expand(100, 31)))[None]
    found = filter_by_sample(torch.from_numpy(signal)[None], taps)[0].numpy()
    for kernel, part in ((low[0, 0], slice(0, 100)), (high[1, 0], slice(100, 200))):
        assert np.allclose(found[part], np.convolve(signal, kernel.numpy(), "same")[part])


def test_cut_offs_follow_voicing_and_are_smooth() -> None:
    voiced = torch.cat((torch.ones(1, 1600), torch.zeros(1, 1600)), dim=1)
    for u, ends in ((1.0, (0.9, 0.5)), (0.0, (0.7, 0.3)), (-1.0, (0.5, 0.1))):
        found = cut_offs(torch.full((1, 3200), u), voiced)[0]
        assert found.shape == (3200,)
        assert (float(found[0]), float(found[-1])) == pytest.approx(ends, abs=1e-5)
        assert found.diff().abs().max() == pytest.approx(0.4 / 640, rel=1e-3)


def test_upsampling_is_linear_and_keeps_a_constant() -> None:
    assert torch.allclose(upsample(torch.full((1, 2, 3), 0.7)), torch.tensor(0.7), atol=1e-5)
    ramp = upsample(torch.arange(6.0)[None, None])[0, 0]
    assert torch.allclose(ramp[320:640].diff(), torch.tensor(1 / 160), atol=1e-5)


def test_a_block_looks_back_only_and_adds_to_its_input() -> None:
    torch.manual_seed(0)
    block = FilterBlock(8, 4, 4)
    signal, context = torch.randn(1, 200), torch.randn(1, 8, 200)
    plain = block(signal, context)
    changed = signal.clone()
    changed[0, 100] += 1
    moved = (block(changed, context) - plain).abs()[0] > 0
    assert not moved[:100].any() and moved[100] and not moved[100 + 31 :].any()
    assert (plain - signal).abs().max() < 1


def test_shapes_of_verdicts() -> None:
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


def test_adversarial_losses_by_hand() -> None:
    def verdict(*scores: float) -> list[Judgement]:
        values = torch.tensor([scores], dtype=torch.float32)
        return [Judgement(values, (values * 2, values)), Judgement(values, (values,))]

    assert float(discriminator_loss(verdict(1, 1), verdict(0, 0))) == 0
    assert float(discriminator_loss(verdict(0, 1), verdict(2, 0))) == pytest.approx(2 * (0.5 + 2))
    assert float(adversarial_loss(verdict(1, 0))) == pytest.approx(1.0)
    assert float(feature_loss(verdict(1, 0), verdict(0, 0))) == pytest.approx(1.0 + 0.5 + 0.5)


def test_the_spectral_loss_is_of_log_power() -> None:
    right = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 5120)))
    loss = log_power_loss
    assert float(loss(right, right)) == 0.0
    assert float(loss(-right, right)) == 0.0
    assert float(loss(2 * right, right)) == pytest.approx(3 * np.log(4), rel=1e-3)
    assert np.isfinite(float(loss(torch.zeros_like(right), right)))


@pytest.mark.slow
def test_every_parameter_has_a_finite_gradient(pool: Path) -> None:
    trainer = trainer_of(B1bTrainer, pool, B1B)
    batch = trainer.make(0)
    right = batch["right"]
    made = trainer.say(batch, "test")
    assert made.shape == right.shape == (2, 16 * 160)
    judge = trainer.discriminators.eval()  # else each look changes the spectral norms a little
    loss, distance = trainer.generator_loss(made, right)
    loss.backward()  # type: ignore[no-untyped-call]
    with torch.no_grad():
        parts = adversarial_loss(judge(made)) + 2 * feature_loss(judge(right), judge(made))
    assert torch.allclose(loss, parts + 45 * distance) and float(distance.detach()) > 0
    assert (loss - 45 * distance).item() == pytest.approx(float(parts), rel=0.01)
    trainer.discriminators.zero_grad()
    discriminator_loss(
        trainer.discriminators(right), trainer.discriminators(made.detach())
    ).backward()  # type: ignore[no-untyped-call]
    for module in (trainer.network, trainer.discriminators):
        for name, parameter in module.named_parameters():
            assert parameter.grad is not None and torch.isfinite(parameter.grad).all(), name
            assert parameter.grad.abs().max() > 0, name


@pytest.mark.slow
def test_training_lowers_the_loss(pool: Path) -> None:
    trainer = trainer_of(NsfTrainer, pool, NSF)
    trainer.valid = trainer.make(1000)
    before = trainer.validate()["valid_log_mel"]
    for step in range(30):
        trainer.learn(step)
    assert trainer.validate()["valid_log_mel"] < 0.6 * before
    trainer = trainer_of(B1bTrainer, pool, B1B)
    for group in trainer.optimiser.param_groups:
        group["lr"] = 1e-2
    batch, losses = trainer.make(0), []
    for step in range(12):
        made = trainer.say(batch, "x")
        losses.append(float(trainer.generator_loss(made, batch["right"])[1].detach()))
        trainer.update(step, batch)
    assert losses[-1] < 0.9 * losses[0]


def test_statistics_are_of_all_frames() -> None:
    rng = np.random.default_rng(0)
    parts = [
        (rng.standard_normal((n, 3)), 100 * rng.random(n), np.array([n, n % 3], np.float32))
        for n in (5, 7)
    ]
    rows = np.vstack([np.hstack((c, np.tile(x, (len(c), 1)), f[:, None])) for c, f, x in parts])
    mean, sd = input_statistics(parts)
    assert np.allclose(mean, rows.mean(axis=0)) and np.allclose(sd, rows.std(axis=0), atol=1e-6)
    network = B1bNetwork(TINY, 3, 2)
    network.set_statistics(mean, 0 * sd)
    assert network.of_xvectors[1].tolist() == [1, 1]  # values that are always the same
    network.set_statistics(mean, sd)
    assert network.of_xvectors[1].numpy() == pytest.approx(sd[3:5])
    shifted = B1bNetwork(TINY, 3, 2)
    shifted.load_state_dict(network.state_dict())
    shifted.set_statistics(mean + 7, sd)
    content, f0, xvectors = (torch.rand(1, 4, 3), torch.rand(1, 4), torch.rand(1, 2))
    assert torch.allclose(
        network.condition(content, f0, xvectors),
        shifted.condition(content + 7, f0 + 7, xvectors + 7),
        atol=1e-3,
    )


def test_the_program_leaves_what_is_needed(pool: Path, trained: dict[str, Path]) -> None:
    out = trained["b1b"]
    said = yaml.safe_load((out / "synthesiser.yaml").read_text())
    assert said["trained"]["step"] == 2 and said["trained"]["xvector_dimensions"] == N_XVECTOR
    assert read_config(B1bConfig, out / "synthesiser.yaml") == B1B
    state = torch.load(out / "final.pt", weights_only=True)
    f0 = [analyse(voice(1.0, 100 + 20 * i, 500 + 40 * i, i)).f0 for i in range(6)]
    mean = float(np.mean(np.concatenate(f0)))
    assert float(state["of_f0"][0, 0]) == pytest.approx(mean, rel=1e-5)
    assert len(list((out / "checkpoints").glob("step-*.pt"))) == 2


BOTTLENECK = replace(
    NSF, network=replace(SMALL, bottleneck=4), augmentation=NsfAugmentation(adversary=0.5)
)


@pytest.mark.parametrize(
    ("kind", "config"), [pytest.param("nsf", BOTTLENECK, marks=pytest.mark.slow), ("b1b", B1B)]
)
def test_a_resumed_training_ends_with_the_same_bits(pool, tmp_path, kind, config):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    train(pool, whole, kind, config)
    shutil.copytree(whole, stopped)
    max((stopped / "checkpoints").glob("*.pt")).unlink()  # as if killed after the one before
    (stopped / "final.pt").unlink()
    train(pool, stopped, kind, config)
    assert_same_network(whole, stopped)
    made = load_synthesiser(whole).convert(voice(0.3, 120, 500), some_target(), keep)
    assert np.isfinite(made).all()
    refuses("other settings, seed or data", train, pool, stopped, kind, config, seed=1)


WAVES: dict[str, Callable[[], Float64]] = {
    "noise": lambda: 0.1 * np.random.default_rng(0).standard_normal(RATE),
    "0.1 s": lambda: voice(0.6, 120, 500)[:1600],
    "0.2 s": lambda: voice(0.2, 120, 500),
    "a sample more": lambda: voice(0.6, 120, 500)[:4801],
    "no whole frame": lambda: voice(1.0, 120, 500)[: RATE - 57],
    "clipped": lambda: np.clip(50 * voice(0.5, 120, 500), -1, 1),
    "faint": lambda: 1e-4 * voice(0.5, 120, 500),
}


@each
@pytest.mark.parametrize("name", WAVES)
def test_odd_signals_are_converted(trained: dict[str, Path], kind: str, name: str) -> None:
    wave, synthesiser = WAVES[name](), load_synthesiser(trained[kind])
    assert type(synthesiser) is KINDS[kind][0]
    out = synthesiser.convert(wave, some_target(), keep)
    assert out.shape == wave.shape and out.dtype == np.float64
    assert np.isfinite(out).all()
    assert 0 < np.abs(out).max() <= 0.99 + 1e-9


@each
def test_equal_input_gives_equal_bits_and_the_speaker_counts(trained, kind):
    wave, target = voice(0.5, 120, 500), some_target()
    first, again, longer, other = (
        load_synthesiser(trained[kind]).convert(wave, replace(target, xvector=x), keep)
        for x in (target.xvector, target.xvector, 7 * target.xvector, -target.xvector)
    )
    assert np.array_equal(first, again)
    assert np.allclose(longer, first, atol=1e-5)  # the length of the x-vector does not count
    assert not np.allclose(other, first, atol=1e-5)


@pytest.mark.parametrize("factor", [0.7, 1.0, 1.5])
def test_the_pitch_of_the_output_is_the_one_given(trained: dict[str, Path], factor: float) -> None:
    wave = voice(1.0, 140, 520)
    out = load_synthesiser(trained["nsf"]).convert(wave, some_target(), lambda f0: f0 * factor)
    wanted, found = extract_f0(wave) * factor, extract_f0(out)
    both = (wanted > 0) & (found > 0)
    assert both.sum() > 60
    assert np.median(np.abs(found[both] / wanted[both] - 1)) < 0.02


def test_the_content_is_seen_through_the_warp_of_the_target(trained: dict[str, Path]) -> None:
    synthesiser, wave = load_synthesiser(trained["nsf"]), voice(0.5, 130, 500)
    plain = synthesiser.convert(wave, some_target(), keep)
    same = replace(some_target(), warp=warp_matrix(np.ones(5)))
    moved = replace(some_target(), warp=warp_matrix(np.full(5, 1.15)))
    # Without a change of the axis the matrix is that of a cosine series read where it was.
    assert np.allclose(synthesiser.convert(wave, same, keep), plain, atol=1e-3)
    assert not np.allclose(synthesiser.convert(wave, moved, keep), plain, atol=1e-2)


def reaching_far() -> TrainedSynthesiser:
    """B1.b whose reach is longer than a block, so that all that a block needs of others counts."""
    torch.manual_seed(0)
    network = B1bNetwork(replace(TINY, layers=8), 8, N_XVECTOR)
    assert network.reach[0] < 40  # so that blocks in the end do not see the beginning
    return B1bSynthesiser(replace(B1B, network=network.config), network)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [("BLOCK", (1, 50)), pytest.param("B1B_BLOCK", (1, 9), marks=pytest.mark.slow)],
)
def test_blocks_change_nothing(trained, monkeypatch, name, sizes):
    synthesiser = reaching_far() if name == "B1B_BLOCK" else load_synthesiser(trained["nsf"])
    wave = voice(1.3, 120, 500)
    whole = synthesiser.convert(wave, some_target(), keep)
    for size in sizes:
        monkeypatch.setattr(f"steps.synthesis.trained.{name}", size)
        parts = synthesiser.convert(wave, some_target(), keep)
        assert np.allclose(parts, whole, atol=1e-4 * np.abs(whole).max())


@each
def test_silence_stays_silence(trained: dict[str, Path], kind: str) -> None:
    synthesiser = load_synthesiser(trained[kind])
    assert not synthesiser.convert(np.zeros(3200), some_target(), keep).any()
    wave = np.concatenate((voice(0.5, 120, 500), np.zeros(8000)))
    out = synthesiser.convert(wave, some_target(), keep)
    assert np.abs(out[:8000]).max() > 0.001 * (kind == "nsf")
    assert not out[8000 + 2000 :].any()


@each
def test_foreign_xvectors_weights_and_folders_are_refused(trained, tmp_path, kind):
    convert, wave = load_synthesiser(trained[kind]).convert, voice(0.3, 120, 500)
    other = "x-vectors of 6 dimensions, and the target has 7"
    refuses(other, convert, wave, making.some_target(7), keep)
    zero = replace(some_target(), xvector=np.zeros(N_XVECTOR))
    refuses("is 0 or not finite", convert, wave, zero, keep)
    refuses(r"synthesiser\.yaml: is missing", load_synthesiser, tmp_path)
    shutil.copy(trained[kind] / "synthesiser.yaml", tmp_path)
    foreign = NsfNetwork(NsfLayers(), 20, 4) if kind == "nsf" else B1bNetwork(TINY, 3, 4)
    torch.save(foreign.state_dict(), tmp_path / "final.pt")
    refuses("not the weights", load_synthesiser, tmp_path)


def test_a_pool_of_other_data_is_refused(pool: Path, tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a.wav", voice(0.6, 120, 500), RATE)
    wav = {"s0-9": str(tmp_path / "a.wav"), "s1-1": f"{pool}/s1.wav"}
    utt2spk = {"s0-9": "s0", "s1-1": "s1"}
    audio = load_training_audio(wav, utt2spk, cache_gb=1.0, minimum_seconds=0.5)
    refuses("s0-9 is not in it", TrainingSpeech.load, pool, audio, NSF, 0)


@pytest.mark.parametrize(
    "path", sorted(set(CONF.glob("nsf_*.yaml")) - {CONF / "nsf_b1b.yaml"}), ids=lambda p: p.name
)
def test_the_configurations_are_valid(path: Path) -> None:
    assert read_config(NsfConfig, path).synthesiser == "nsf"


def test_the_configuration_says_the_published_structure() -> None:
    config = read_config(B1bConfig, CONF / "nsf_b1b.yaml")
    assert config.network == GeneratorConfig() == GeneratorConfig(64, 8, 5, 10, 5, 16, 31)
    assert config.discriminators == DiscriminatorConfig()
    plan = config.training
    assert (plan.batch, plan.segment_frames, plan.learning_rate) == (32, 32, 1e-4)
    assert (plan.feature_weight, plan.spectral_weight) == (2.0, 45.0)
