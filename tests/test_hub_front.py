"""Layers of a model of the hub in front of a speaker encoder."""

from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from conftest import MakeDataDir

from steps import extract_xvectors, train_encoder
from steps.speaker.config import EncoderConfig, fine_tuned
from steps.speaker.encoders import NetworkEncoder, TooShortError, load_encoder
from steps.speaker.network import EncoderNetwork
from steps.speaker.training import make_optimiser
from steps.training.settings import read_config
from tests.making import NETWORK
from tests.refusals import refuses
from utils.archives import read_vectors
from utils.seeds import make_rng


def make_model(folder: Path, seed: int = 0) -> Path:
    """A small WavLM in the form of the hub, not trained."""
    from transformers import WavLMConfig, WavLMModel

    torch.manual_seed(seed)
    WavLMModel(
        WavLMConfig(
            hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
            num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=2, conv_dim=[8] * 7,
            feat_extract_norm="layer",
        )
    ).save_pretrained(folder)  # fmt: skip
    return folder


def write_conf(path: Path, model: Path, **features: object) -> Path:
    settings = {
        "encoder": "ecapa",
        "network": yaml.safe_load(NETWORK),
        "features": {"kind": "hub", "model": str(model), **features},
        "training": {
            "steps": 4, "batch": 4, "crop_seconds": [0.6, 0.7], "valid_every": 2,
            "checkpoint_every": 2, "minimum_seconds": 0.1, "learning_rate": 0.01,
        },
    }  # fmt: skip
    path.write_text(yaml.safe_dump(settings))
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("wavlm"))


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.1])
def test_it_is_trained_saved_and_loaded_again(tmp_path, make_data_dir, model, share):
    """Left as it is, or learning too, at a part of the rate; then fine-tuned on other speech."""
    data = make_data_dir(tmp_path / "data", {f"s{i:02d}": 2 for i in range(20)}, seconds=0.8)
    conf = write_conf(tmp_path / "conf.yaml", model, fine_tune=share)
    first, second = tmp_path / "first", tmp_path / "second"
    assert train_encoder.main([str(conf), str(data), str(first)]) == 0
    words = ["--init-from", str(first), str(first / "encoder.yaml"), str(data), str(second)]
    assert train_encoder.main(words) == 0
    before = EncoderNetwork(read_config(EncoderConfig, conf)).state_dict()
    after = torch.load(first / "final.pt", weights_only=True)
    front = [name for name in before if name.startswith("front.")]
    changed = [name for name in front if not torch.equal(before[name], after[name])]
    assert "front.weights" in changed
    assert any(name.startswith("front.model.encoder") for name in changed) == (share > 0)
    assert not [name for name in changed if "feature_extractor" in name or name.endswith("digest")]
    out = tmp_path / "xvectors"
    assert extract_xvectors.main([str(second), str(data), str(out)]) == 0
    vectors = dict(read_vectors(out / "xvector.scp"))
    assert len(vectors) == 40 and all(v.shape == (6,) for v in vectors.values())
    encoder = load_encoder(str(second))
    samples = np.random.default_rng(0).standard_normal(16000)
    assert np.array_equal(encoder.embed(samples), load_encoder(str(second)).embed(samples))
    assert np.allclose(encoder.embed(samples), encoder.embed(samples / 9), atol=1e-3)  # normalised
    refuses(r"at least 0\.42 s", encoder.embed, samples[:6000], kind=TooShortError)


def test_the_model_learns_at_a_part_of_the_rate(tmp_path: Path, model: Path) -> None:
    config = read_config(EncoderConfig, write_conf(tmp_path / "c.yaml", model, fine_tune=0.1))
    network = EncoderNetwork(config)
    groups = make_optimiser(config.training, network).param_groups
    assert [group["part"] for group in groups] == [1.0, 0.1]
    learning = [p for p in network.parameters() if p.requires_grad]
    assert sum(len(group["params"]) for group in groups) == len(learning)


def test_W7_M7_size_and_settings_of_2026(tmp_path: Path, model: Path) -> None:
    """Two epochs of about 355,000 rows of 3 s in batches of 32; vectors of length 1. All of it
    learns, with a small model in the place of WavLM-Large."""
    path = Path(__file__).resolve().parents[1] / "egs/TEMPLATE/conf/encoders/ecapa_wavlm.yaml"
    conf = tmp_path / "c.yaml"
    conf.write_text(path.read_text().replace("microsoft/wavlm-large", str(model)))
    config = read_config(EncoderConfig, conf)
    tuned = fine_tuned(config).training
    assert config.network.channels == (1024, 1024, 1024, 1024, 3072)
    assert tuned.batch == 32 and tuned.crop_seconds == (3, 3) and tuned.optimiser == "adamw"
    assert tuned.steps * tuned.batch == pytest.approx(2 * 355_000, rel=2e-3)
    speech = make_rng(0, "speech").standard_normal(16000) / 10
    network = EncoderNetwork(config)
    found = NetworkEncoder(config, network).embed(speech)
    assert np.linalg.norm(found) == pytest.approx(1, abs=1e-6) and len(set(abs(found))) > 2
    network.train()(torch.randn(2, 16000)).square().sum().backward()
    learning = [p for p in network.parameters() if p.requires_grad]
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in learning)
    assert not [name for name in network.state_dict() if "model" in name]


def test_another_model_in_its_place_is_refused(tmp_path: Path, make_data_dir: MakeDataDir) -> None:
    model = make_model(tmp_path / "model")
    data = make_data_dir(tmp_path / "data", {"s1": 2, "s2": 2, "s3": 2}, seconds=0.8)
    conf, out = write_conf(tmp_path / "conf.yaml", model), tmp_path / "out"
    assert train_encoder.main(["--steps", "1", str(conf), str(data), str(out)]) == 0
    make_model(model, seed=1)
    refuses("has other weights than it had then", load_encoder, str(out))


def test_a_model_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    config = read_config(EncoderConfig, write_conf(tmp_path / "c.yaml", Path("/nothing/here")))
    refuses("hub:/nothing/here: cannot be loaded", EncoderNetwork, config)
