"""Resemblyzer's and pyannote's networks in PyTorch: the packages' own vectors, and training."""

import dataclasses
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from steps import train_encoder
from steps.speaker import pyannote
from steps.speaker.config import EncoderConfig
from steps.speaker.encoders import NetworkEncoder, load_encoder, load_network
from steps.speaker.network import EncoderNetwork
from steps.training.settings import read_config
from tests.refusals import accepts, refuses
from tests.world import or_skip

CONFS = Path(__file__).resolve().parents[1] / "egs/TEMPLATE/conf/encoders"
CONF = CONFS / "resemblyzer_tuned.yaml"
pytestmark = pytest.mark.skipif(find_spec("resemblyzer") is None, reason="it is not installed")


def need_pyannote() -> None:
    pytest.importorskip("onnxruntime")
    or_skip(pyannote.find_library)


@pytest.mark.slow
def test_before_training_it_gives_the_vectors_of_the_package():
    """Signals are shorter than a window, of one, and of several with and without a padded last."""
    import resemblyzer

    config, rng = read_config(EncoderConfig, CONF), np.random.default_rng(0)
    features = dataclasses.replace(config.features, speech_only=False)  # pauses stay
    config = dataclasses.replace(config, features=features)
    encoder = NetworkEncoder(config, EncoderNetwork(config))
    package = resemblyzer.VoiceEncoder("cpu", verbose=False)
    for n, loud in ((8000, 0.1), (25600, 0.01), (37000, 0.1), (40000, 0.01), (81234, 0.001)):
        wave = (loud * rng.normal(size=n)).astype(np.float32)
        louder = resemblyzer.audio.normalize_volume(wave, -30, increase_only=True)
        expected = package.embed_utterance(louder)
        np.testing.assert_allclose(encoder.embed(wave), expected, atol=1e-5)


def test_before_training_pyannote_gives_the_vectors_of_onnxruntime():
    """To 1e-4 of their largest value, on speech-like pulses, shorter and longer than a second."""
    need_pyannote()
    config = read_config(EncoderConfig, CONFS / "pyannote_tuned.yaml")
    encoder, package = NetworkEncoder(config, EncoderNetwork(config)), load_encoder("pyannote")
    rng = np.random.default_rng(0)
    for n, pitch in ((8000, 110), (16000, 200), (81234, 150)):
        phase = np.cumsum(pitch * (1 + 0.2 * np.sin(np.arange(n) / 3000))) / 16000
        wave = 0.1 * np.sin(2 * np.pi * phase) ** 9 + 0.003 * rng.normal(size=n)
        expected = package.embed(wave)
        limit = 1e-4 * np.abs(expected).max()
        np.testing.assert_allclose(encoder.embed(wave), expected, rtol=0, atol=limit)


@pytest.mark.parametrize(("name", "size"), [("resemblyzer_tuned", 256), ("pyannote_tuned", 512)])
def test_training_starts_from_the_package_and_is_read_back(name, size, tmp_path, make_data_dir):
    if name == "pyannote_tuned":
        need_pyannote()
    settings = yaml.safe_load((CONFS / f"{name}.yaml").read_text())
    settings["training"] |= {"steps": 2, "batch": 2, "minimum_seconds": 0.1}
    settings["features"]["speech_only"] = False
    conf, out = tmp_path / "conf.yaml", tmp_path / "model"
    conf.write_text(yaml.safe_dump(settings))
    data = make_data_dir(tmp_path / "data", {"a": 2, "b": 2}, seconds=2)
    accepts(train_encoder.main, "--workers", "0", conf, data, out)
    first = dict(EncoderNetwork(read_config(EncoderConfig, conf)).named_parameters())
    for part, value in load_network(out)[1].named_parameters():
        moved = (value - first[part]).abs().max().item()
        assert (0 < moved < 0.02) == first[part].requires_grad, part
    wave = np.random.default_rng(1).normal(size=32000).astype(np.float32)
    vector = load_encoder(str(out)).embed(wave)
    assert vector.shape == (size,) and np.isfinite(vector).all()
    assert torch.get_num_threads() == 1


def test_other_sizes_than_the_package_has_are_refused(tmp_path):
    config = read_config(EncoderConfig, CONF)
    network = dataclasses.replace(config.network, embedding=128)
    refuses("three layers of 256", EncoderNetwork, dataclasses.replace(config, network=network))
    need_pyannote()
    config = read_config(EncoderConfig, CONFS / "pyannote_tuned.yaml")
    config = dataclasses.replace(config, network=network)
    refuses("pyannote has 60 bins, five layers", EncoderNetwork, config)
