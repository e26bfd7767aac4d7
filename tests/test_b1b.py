"""B1.b's structure: shapes, known sources and filters, losses, a few steps of training."""

import shutil
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
import yaml
from test_nsf import keep

from steps.synthesis.b1b import (
    B1bConfig,
    B1bNetwork,
    B1bSynthesiser,
    B1bTraining,
    DiscriminatorConfig,
    FilterBlock,
    GeneratorConfig,
    cut_offs,
    filter_by_sample,
    input_statistics,
    make_sources,
    sinc_filters,
    upsample,
)
from steps.synthesis.base import load_synthesiser
from steps.synthesis.training import (
    B1bTrainer,
    CropMaker,
    Discriminators,
    Judgement,
    LogPowerLoss,
    PoolVoices,
    TrainingSpeech,
    adversarial_loss,
    discriminator_loss,
    feature_loss,
    train_synthesiser,
)
from steps.synthesis.world import analyse
from steps.train_synthesiser import main
from steps.training.settings import read_config
from tests import making
from tests.making import RATE, assert_same_network, audio_of, voice, write_pool
from tests.refusals import refuses
from utils.arrays import Float64
from utils.cli import UserError
from utils.seeds import make_rng

CONF = Path(__file__).resolve().parents[1] / "egs/TEMPLATE/conf/synthesisers/nsf_b1b.yaml"
N_XVECTOR = 5
some_target = partial(making.some_target, N_XVECTOR)
TINY = GeneratorConfig(channels=8, harmonics=3, blocks=2, layers=3, noise_layers=2, narrow=4)
TINY_JUDGES = DiscriminatorConfig((2, 3), 2, (4, 4, 4, 4, 4), (16,) * 7)


def settings(steps: int = 2) -> B1bConfig:
    plan = B1bTraining(steps, batch=2, segment_frames=16, checkpoint_every=1)
    return B1bConfig("b1b", plan, cepstra=7, network=TINY, discriminators=TINY_JUDGES)


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


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three voices, the last too short for a crop."""
    waves = [voice(0.5 if i == 2 else 0.7, 110 + 30 * i, 500 + 60 * i, i) for i in range(3)]
    return write_pool(tmp_path_factory.mktemp("pool"), waves, np.random.default_rng(1), N_XVECTOR)


def write_settings(path: Path, config: B1bConfig) -> None:
    path.write_text(yaml.safe_dump(to_lists(asdict(config))))


def to_lists(values: object) -> object:
    if isinstance(values, dict):
        return {name: to_lists(value) for name, value in values.items()}
    return list(values) if isinstance(values, tuple) else values


@pytest.fixture(scope="module")
def trained(pool: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("b1b")
    write_settings(folder / "conf.yaml", settings())
    assert main([str(x) for x in (folder / "conf.yaml", pool, pool, folder / "out")]) == 0
    return folder / "out"


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
    loss = LogPowerLoss()
    assert float(loss(right, right)) == 0.0
    assert float(loss(-right, right)) == 0.0
    assert float(loss(2 * right, right)) == pytest.approx(3 * np.log(4), rel=1e-3)
    assert np.isfinite(float(loss(torch.zeros_like(right), right)))


def make_trainer(pool: Path) -> tuple[B1bTrainer, CropMaker]:
    audio = audio_of(pool)
    speech = TrainingSpeech(audio, PoolVoices.load(pool, audio), settings(), 0)
    trainer = B1bTrainer(speech, audio.speakers, [])
    ones = np.ones(8 + N_XVECTOR + 1)
    trainer.network.set_statistics(0 * ones, ones)
    return trainer, trainer.make


@pytest.mark.slow
def test_every_parameter_has_a_finite_gradient(pool: Path) -> None:
    trainer, make = make_trainer(pool)
    batch = make(0)
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
def test_training_lowers_the_spectral_loss(pool: Path) -> None:
    trainer, make = make_trainer(pool)
    for group in trainer.optimiser.param_groups:
        group["lr"] = 1e-2
    batch = make(0)
    right = batch["right"]
    losses = []
    for step in range(12):
        losses.append(float(trainer.generator_loss(trainer.say(batch, "x"), right)[1].detach()))
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


@pytest.mark.slow
def test_the_program_trains_and_leaves_what_is_needed(pool: Path, trained: Path) -> None:
    said = yaml.safe_load((trained / "synthesiser.yaml").read_text())
    assert said["trained"]["step"] == 2 and said["trained"]["xvector_dimensions"] == N_XVECTOR
    assert read_config(B1bConfig, trained / "synthesiser.yaml") == settings()
    state = torch.load(trained / "final.pt", weights_only=True)
    assert float(state["of_f0"][0, 0]) == pytest.approx(
        float(np.mean(np.concatenate([f0_of(pool, i) for i in range(3)]))), rel=1e-5
    )
    assert len(list((trained / "checkpoints").glob("step-*.pt"))) == 2


def f0_of(pool: Path, i: int) -> Float64:
    wave, _ = soundfile.read(pool / f"s{i}.wav")
    return analyse(voice(len(wave) / RATE, 110 + 30 * i, 500 + 60 * i, i)).f0


def test_a_resumed_training_ends_with_the_same_bits(
    pool: Path, trained: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(trained, out)
    (out / "checkpoints/step-00000002.pt").unlink()  # as if killed after step 1
    (out / "final.pt").unlink()
    audio = audio_of(pool)
    train_synthesiser(B1bSynthesiser, settings(), audio, pool, out, seed=0)
    assert_same_network(trained, out)
    again = (B1bSynthesiser, settings(), audio, pool, out)
    refuses("other settings, seed or data", train_synthesiser, *again, seed=1)


@pytest.mark.parametrize("n_samples", [1600, 4801, 7999])
def test_the_common_loader_opens_it_and_it_converts(trained: Path, n_samples: int) -> None:
    synthesiser = load_synthesiser(trained)
    assert isinstance(synthesiser, B1bSynthesiser)
    wave = voice(0.6, 120, 500)[:n_samples]
    out = synthesiser.convert(wave, some_target(), keep)
    assert out.shape == wave.shape and out.dtype == np.float64
    assert 0 < np.abs(out).max() <= 0.99 + 1e-9
    assert np.array_equal(out, load_synthesiser(trained).convert(wave, some_target(), keep))
    longer = replace(some_target(), xvector=3 * some_target().xvector)
    assert np.allclose(synthesiser.convert(wave, longer, keep), out, atol=1e-4)
    other = replace(some_target(), xvector=-some_target().xvector)
    assert not np.allclose(synthesiser.convert(wave, other, keep), out, atol=1e-5)


def test_silence_stays_silence(trained: Path) -> None:
    synthesiser = load_synthesiser(trained)
    assert not synthesiser.convert(np.zeros(3200), some_target(), keep).any()
    wave = np.concatenate((voice(0.3, 120, 500), np.zeros(4800)))
    out = synthesiser.convert(wave, some_target(), keep)
    assert np.abs(out[:4800]).max() > 0 and not out[4800 + 2000 :].any()


@pytest.mark.slow
def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a reach longer than a block, so that all that a block needs of others counts."""
    torch.manual_seed(0)
    network = B1bNetwork(replace(TINY, layers=8), 8, N_XVECTOR)
    synthesiser = B1bSynthesiser(replace(settings(), network=network.config), network)
    wave = voice(1.0, 120, 500)
    assert network.reach[0] < 40  # so that blocks in the end do not see the beginning
    whole = synthesiser.convert(wave, some_target(), keep)
    for size in (1, 9):
        monkeypatch.setattr("steps.synthesis.b1b.BLOCK", size)
        parts = synthesiser.convert(wave, some_target(), keep)
        assert np.allclose(parts, whole, atol=1e-4 * np.abs(whole).max())


def test_foreign_xvectors_and_weights_are_refused(trained: Path, tmp_path: Path) -> None:
    synthesiser = load_synthesiser(trained)
    with pytest.raises(UserError, match=r"x-vectors of 5 dimensions, and the target has 7"):
        synthesiser.convert(voice(0.3, 120, 500), making.some_target(7), keep)
    refuses(r"no synthesiser\.yaml there", load_synthesiser, tmp_path)
    shutil.copy(trained / "synthesiser.yaml", tmp_path)
    torch.save(B1bNetwork(TINY, 3, 4).state_dict(), tmp_path / "final.pt")
    refuses("not the weights", load_synthesiser, tmp_path)


def test_the_configuration_says_the_published_structure() -> None:
    config = read_config(B1bConfig, CONF)
    assert config.network == GeneratorConfig() == GeneratorConfig(64, 8, 5, 10, 5, 16, 31)
    assert config.discriminators == DiscriminatorConfig()
    plan = config.training
    assert (plan.batch, plan.segment_frames, plan.learning_rate) == (32, 32, 1e-4)
    assert (plan.feature_weight, plan.spectral_weight) == (2.0, 45.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"network": {"taps": 30}}, "odd number"),
        ({"network": {"channels": 7}}, "a multiple of 2"),
        ({"network": {"layers": 13}}, "1 to 12"),
        ({"cepstra": 0}, "1 to 39"),
        ({"discriminators": {"scale_channels": [16] * 6 + [8]}}, "a multiple of 16"),
        ({"discriminators": {"period_channels": [4] * 4}}, "a list of 5 values"),
        ({"discriminators": {"periods": [1]}}, "periods: 1; 2 to 65536"),
        ({"training": {"steps": 0}}, "at least 1"),
        ({"training": {"steps": 1, "segment_frames": 4}}, "16 to 3000"),
        ({"training": {"steps": 1, "learning_rate": 0.0}}, "above 0"),
        ({"augmentation": {"scale": 0.6}}, "0 to 0.5"),
        ({"nonsense": 1}, "unknown setting"),
        ({"synthesiser": "nsf"}, "'nsf' is unknown; known: b1b"),
    ],
)
def test_bad_settings_are_refused(tmp_path: Path, change: dict[str, object], message: str) -> None:
    values = {"synthesiser": "b1b", "training": {"steps": 1}, **change}
    (tmp_path / "conf.yaml").write_text(yaml.safe_dump(values))
    refuses(message, read_config, B1bConfig, tmp_path / "conf.yaml")


def test_sources_depend_on_the_seed_only() -> None:
    f0 = np.full(4, 100.0)
    first, second, other = (make_sources(f0, 8, make_rng(seed, "x", "0"))[0] for seed in (1, 1, 2))
    assert np.array_equal(first, second) and not np.array_equal(first, other)
