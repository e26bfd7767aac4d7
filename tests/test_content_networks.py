"""Networks on content beside the plain one: learning by ear, and HiFi-GAN."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from test_bn import CONF, Bands, no_recogniser, settings, target, train
from test_source_filter import N_XVECTOR, pool

from steps.asr.engines import DECODER, MoonshineEncoder, find_model
from steps.content.units import UnitSettings, load_ear, read_weights
from steps.synthesis import bottleneck, bottleneck_training, training
from steps.synthesis.base import load_synthesiser
from steps.synthesis.trained import DiscriminatorConfig, pulse_train
from steps.synthesis.world import WorldFrames, analyse_finely, synthesise
from steps.training.audio import hold_out
from steps.training.settings import read_config
from tests.refusals import refuses
from tests.world import assert_same_network, audio_of, needs_wheel, stopped_at, voice

__all__ = ["no_recogniser", "pool"]  # fixtures


class BandsEar(torch.nn.Module):
    """`Bands` with a gradient."""

    def forward(self, signals: torch.Tensor) -> torch.Tensor:
        window = torch.hann_window(895, periodic=False)
        spectra = torch.fft.rfft(signals.unfold(1, 895, 384) * window).abs()[..., 1:409]
        bands = spectra.unflatten(2, (8, 51)).sum(dim=3) + 1e-9
        return bands / bands.sum(dim=2, keepdim=True)


def heard(steps: int = 12, weight: float = 3.0) -> bottleneck.BnConfig:
    told = settings(steps)
    hearing = bottleneck.BnHearing(weight=weight, steps=steps // 2, batch=3, crop_seconds=0.5)
    return bottleneck.BnConfig("bn", told.training, network=told.network, hearing=hearing)


@pytest.fixture(autouse=True)
def no_ear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bottleneck_training, "load_ear", lambda name, device: BandsEar())


@pytest.mark.slow
@needs_wheel
def test_the_ear_hears_what_onnxruntime_s_encoder_hears():
    wave = np.concatenate((voice(1.0, 120, 550), voice(1.0, 180, 900)))
    signal = torch.from_numpy(wave.astype(np.float32))[None].requires_grad_(True)
    found = load_ear("moonshine")(signal)
    right = MoonshineEncoder(find_model())(wave)
    assert found.shape == (1, *right.shape)
    assert np.corrcoef(found[0].detach().ravel(), right.ravel())[0, 1] > 0.999
    found.square().mean().backward()  # type: ignore[no-untyped-call]
    assert signal.grad is not None
    assert signal.grad.abs().max() > 0


@needs_wheel
def test_a_file_without_the_encoder_is_named(tmp_path):
    broken = tmp_path / "encoder_model.ort"
    broken.write_bytes(b"no graph" * 100)
    refuses(r"encoder_model\.ort: is not a graph of Moonshine", read_weights, broken)
    assert "conv1.weight" not in read_weights(find_model().paths[DECODER])
    refuses("no content with an ear; known: moonshine, hub:", load_ear, "cepstra")


def test_world_with_a_gradient_speaks_like_world():
    wave = voice(1.0, 120, 550)
    frames = analyse_finely(wave)
    n = 200
    envelope = frames.envelope[:n].copy()
    envelope[:, 0] += np.linspace(-2, 2, n)
    voiced = np.arange(n) < 120
    f0, noise = frames.f0[:n] * voiced, frames.aperiodicity[:n]
    right = synthesise(WorldFrames(f0, envelope, noise, 0.005), 80 * n)
    speaks = bottleneck_training.WorldVoice()
    excitations = (pulse_train(f0[::2], 80 * n), np.random.default_rng(0).standard_normal(80 * n))
    pulses, hiss = (speaks.excite(torch.from_numpy(x).float()[None]) for x in excitations)
    codes = torch.from_numpy(envelope).float()[None].requires_grad_(True)
    band = torch.from_numpy(noise[None, :, 0]).float()
    made = speaks(codes, band, torch.from_numpy(voiced)[None], pulses, hiss)
    assert made.shape == (1, 80 * n)

    def levels(signal: np.ndarray) -> np.ndarray:
        """dB of 40 parts of 25 ms, in four bands."""
        power = np.abs(np.fft.rfft(signal.reshape(40, 400))) ** 2
        return 10 * np.log10(np.stack([part.sum(axis=1) for part in np.array_split(power, 4, 1)]))

    inner = slice(1, -1)
    apart = (levels(made[0].detach().numpy()) - levels(right))[:, inner]
    assert abs(apart.mean()) < 0.5
    assert np.abs(apart).mean() < 2.0
    made.square().mean().backward()  # type: ignore[no-untyped-call]
    assert codes.grad is not None
    assert torch.isfinite(codes.grad).all()


def test_what_a_change_of_voice_does_counts_less():
    rng = np.random.default_rng(0)
    plain = rng.standard_normal((9000, 2)).astype(np.float32)
    change = rng.standard_normal((9000, 2)).astype(np.float32) * [2.0, 0.0]

    def contents(utt: str, *, warped: bool) -> np.ndarray:
        return plain - change if warped else plain

    material = SimpleNamespace(utterances=lambda _: ["u"], contents=contents)
    found = bottleneck_training.metric_of(material, ["s"])
    squared = found @ found.T
    # variances of the change 4 and 0, to each a tenth of their mean: 4.2 and 0.2
    assert squared[1, 1] / squared[0, 0] == pytest.approx(21.0, rel=0.05)
    away = (plain - plain.mean(axis=0))[::3]
    assert np.square(away @ found).sum(axis=1).mean() == pytest.approx(1.0, rel=0.01)


@pytest.mark.slow
def test_words_that_others_say_are_heard_better(pool, tmp_path, monkeypatch):
    trainers: list[bottleneck_training.BnTrainer] = []
    plain = bottleneck_training.BnTrainer.prepare

    def prepare(self: bottleneck_training.BnTrainer) -> None:
        trainers.append(self)
        plain(self)

    monkeypatch.setattr(bottleneck_training.BnTrainer, "prepare", prepare)
    for weight in (10.0, 0.0):
        train(pool, tmp_path / str(weight), heard(80, weight))
    by_ear, deaf = trainers
    assert by_ear.ear is not None
    crops = by_ear.others("new ones", 16)
    with torch.no_grad():
        lost, without = (float(by_ear.ear(t.network.eval(), crops)) for t in (by_ear, deaf))
    assert lost < 0.9 * without
    lines = (tmp_path / "10.0/training.tsv").read_text().splitlines()
    where = lines[0].split("\t").index("lost")
    listened = [line.split("\t")[0] for line in lines[1:] if line.split("\t")[where]]
    assert listened == ["42", "48", "50", "54", "60", "66", "72", "78", "80"]  # the second half


@pytest.mark.slow
def test_a_resumed_training_dropped_the_values_of_its_first_steps(pool, tmp_path):
    """With an ear, too, and whatever it hears."""
    plain = heard()
    config = replace(plain, network=replace(plain.network, dropout=0.3))
    train(pool, tmp_path / "whole", config)
    with stopped_at(8, bottleneck_training.BnTrainer):
        train(pool, tmp_path / "stopped", config)
    train(pool, tmp_path / "stopped", config)
    assert_same_network(tmp_path / "whole", tmp_path / "stopped")
    train(pool, tmp_path / "other", config, 1)
    one, two = (torch.load(tmp_path / name / "final.pt") for name in ("whole", "other"))
    assert not torch.equal(one["last.weight"], two["last.weight"])


@pytest.mark.parametrize(("share", "loses"), [(1.0, True), (0.0, False)])
def test_content_loses_its_own_mean_in_the_share_of_draws_that_is_asked(share, loses):
    config = replace(settings(), augmentation=bottleneck.BnAugmentation(centred=share))
    network = bottleneck.BnEnvelope(config, 8, N_XVECTOR)
    network.get_buffer("content_mean").copy_(torch.arange(8.0))
    speech: Any = SimpleNamespace(config=config)
    content = np.random.default_rng(0).standard_normal((50, 8)).astype(np.float32)
    rng = np.random.default_rng(1)
    found = bottleneck_training.ContentSpeech.centred(speech, content, rng, network)
    if loses:
        assert np.allclose(found.mean(axis=0), np.arange(8), atol=1e-5)
        assert np.allclose(found - found.mean(axis=0), content - content.mean(axis=0), atol=1e-5)
    else:  # and no number is drawn, or crops of earlier settings would be others
        assert found is content
        assert rng.random() == np.random.default_rng(1).random()


# --- HiFi-GAN ---

TINY = bottleneck.HifiganNetwork(channels=16, kernels=(3, 5), dilations=(1,), condition=8, melody=4)
JUDGES = DiscriminatorConfig((2,), 1, (4,) * 5, (16,) * 7)


def hifigan_settings(steps: int) -> bottleneck.HifiganConfig:
    plan = bottleneck.HifiganTraining(
        steps, batch=2, crop_seconds=0.2, valid_every=4, log_every=4,
        valid_speakers=2, learning_rate=2e-3,
    )  # fmt: skip
    units = UnitSettings("kmeans", n=6)
    return bottleneck.HifiganConfig("bn_hifigan", plan, "x", units, TINY, JUDGES)


@pytest.fixture
def hifigan(pool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(training, "hold_out", partial(hold_out, share=0.4))
    training.train_synthesiser(
        bottleneck.HifiganSynthesiser, hifigan_settings(20), audio_of(pool), pool, tmp_path, seed=0
    )
    return tmp_path


def test_the_published_sizes_of_hifigan():
    config = read_config(bottleneck.HifiganConfig, CONF / "bn_hifigan.yaml")
    assert config.network == bottleneck.HifiganNetwork()
    network = bottleneck.Hifigan(config, 288, 256)
    n_first = 512 * 7 * (288 + 4 + 128 - 80)  # V1 has 80 mel bands in
    published = 13.92e6  # of V1 at hop 256
    found = sum(part.numel() for part in network.parameters()) - n_first
    assert found == pytest.approx(published, rel=0.1)


def test_blocks_of_hifigan_have_no_seams(monkeypatch):
    network = bottleneck.Hifigan(hifigan_settings(1), Bands.width, N_XVECTOR)
    synthesiser = bottleneck.HifiganSynthesiser(hifigan_settings(1), network)
    wave = voice(2.0, 120, 550)
    whole = synthesiser.convert(wave, target(), lambda f0: f0)
    monkeypatch.setattr(bottleneck, "BLOCK", 30)
    apart = synthesiser.convert(wave, target(), lambda f0: f0)
    assert len(whole) == len(wave)
    assert np.abs(whole - apart).max() < 1e-4 * np.abs(whole).max()


@pytest.mark.slow
def test_a_training_of_hifigan_makes_it_nearer_to_speech_and_silence_stays(hifigan):
    names, *rows = map(str.split, (hifigan / "training.tsv").read_text().splitlines())
    distances = [float(row[names.index("valid_loss")]) for row in rows]
    assert distances[-1] < 0.8 * distances[0]
    synthesiser = load_synthesiser(hifigan, keep=("energy",), own_f0=True)
    wave = np.concatenate((voice(0.6, 120, 550), np.zeros(8000)))
    made = synthesiser.convert(wave, target(), lambda f0: f0)
    assert np.isfinite(made).all() and made[:9000].any()
    assert not made[-4000:].any()
    assert (made == synthesiser.convert(wave, target(), lambda f0: f0)).all()
    why = "keep: aperiodicity: this synthesiser makes its own"
    refuses(why, load_synthesiser, hifigan, keep=("aperiodicity",))
