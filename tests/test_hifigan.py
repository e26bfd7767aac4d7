"""HiFi-GAN on a recogniser's content: shapes, blocks, a tiny training, conversion."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from test_bn import Bands, no_recogniser, target
from test_source_filter import N_XVECTOR, pool

from steps.content.units import UnitSettings
from steps.synthesis import bottleneck, training
from steps.synthesis.b1b import DiscriminatorConfig
from steps.synthesis.base import load_synthesiser
from steps.synthesis.bottleneck import (
    Hifigan,
    HifiganConfig,
    HifiganNetwork,
    HifiganSynthesiser,
    HifiganTraining,
)
from steps.training.audio import hold_out
from steps.training.settings import read_config
from tests.making import audio_of, voice
from tests.refusals import refuses

CONF = Path(__file__).resolve().parents[1] / "egs/TEMPLATE/conf/synthesisers/bn_hifigan.yaml"
__all__ = ["no_recogniser", "pool"]  # fixtures
TINY = HifiganNetwork(channels=16, kernels=(3, 5), dilations=(1,), condition=8, melody=4)
JUDGES = DiscriminatorConfig((2,), 1, (4,) * 5, (16,) * 7)


def settings(steps: int) -> HifiganConfig:
    plan = HifiganTraining(
        steps, batch=2, crop_seconds=0.2, valid_every=4, log_every=4,
        valid_speakers=2, learning_rate=2e-3,
    )  # fmt: skip
    units = UnitSettings("scalar", values=6)
    return HifiganConfig("bn_hifigan", plan, "x", units, TINY, JUDGES)


@pytest.fixture
def trained(pool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(training, "hold_out", partial(hold_out, share=0.4))
    training.train_synthesiser(
        HifiganSynthesiser, settings(12), audio_of(pool), pool, tmp_path, seed=0
    )
    return tmp_path


def test_the_published_sizes() -> None:
    config = read_config(HifiganConfig, CONF)
    assert config.network == HifiganNetwork()
    network = Hifigan(config, 288, 256)
    n_first = 512 * 7 * (288 + 4 + 128 - 80)  # V1 has 80 mel bands in
    published = 13.92e6  # of V1 at hop 256
    found = sum(part.numel() for part in network.parameters()) - n_first
    assert found == pytest.approx(published, rel=0.1)


def test_blocks_have_no_seams(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    network = Hifigan(settings(1), Bands.width, N_XVECTOR)
    synthesiser = HifiganSynthesiser(settings(1), network)
    wave = voice(2.0, 120, 550)
    whole = synthesiser.convert(wave, target(), lambda f0: f0)
    monkeypatch.setattr(bottleneck, "BLOCK", 30)
    apart = synthesiser.convert(wave, target(), lambda f0: f0)
    assert len(whole) == len(wave)
    assert np.abs(whole - apart).max() < 1e-4 * np.abs(whole).max()


def test_a_training_makes_it_nearer_to_speech_and_silence_stays(trained: Path) -> None:
    names, *rows = map(str.split, (trained / "training.tsv").read_text().splitlines())
    distances = [float(row[names.index("valid_loss")]) for row in rows]
    assert distances[-1] < 0.8 * distances[0]
    synthesiser = load_synthesiser(trained, keep=("energy",), own_f0=True)
    wave = np.concatenate((voice(0.6, 120, 550), np.zeros(8000)))
    made = synthesiser.convert(wave, target(), lambda f0: f0)
    assert np.isfinite(made).all() and made[:9000].any()
    assert not made[-4000:].any()
    assert (made == synthesiser.convert(wave, target(), lambda f0: f0)).all()
    why = "keep: aperiodicity: this synthesiser makes its own"
    refuses(why, load_synthesiser, trained, keep=("aperiodicity",))
