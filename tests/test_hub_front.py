"""Layers of a model of the hub in front of a speaker encoder, and the attacker of 2026 (DAST)."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from speechbrain.lobes.features import Fbank
from speechbrain.lobes.models.ECAPA_TDNN import ECAPA_TDNN, SERes2NetBlock
from speechbrain.nnet.schedulers import CyclicLRScheduler

from steps import extract_xvectors, train_encoder
from steps.speaker.config import EncoderConfig, fine_tuned
from steps.speaker.encoders import NetworkEncoder, TooShortError, load_encoder
from steps.speaker.features import drop
from steps.speaker.network import EncoderNetwork, match_frames
from steps.speaker.training import EncoderTrainer
from steps.training.audio import TrainingAudio
from steps.training.loop import cyclic_rate
from steps.training.settings import read_config
from tests.refusals import accepts, refuses
from tests.world import NETWORK, make_wavlm
from utils.archives import read_vectors
from utils.seeds import make_rng


def write_conf(path: Path, model: Path, encoder: str = "ecapa", **features: object) -> Path:
    settings = {
        "encoder": encoder,
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
    return make_wavlm(tmp_path_factory.mktemp("wavlm"))


@pytest.mark.slow
@pytest.mark.parametrize("encoder", ["ecapa", "ecapa_dual"])
def test_it_is_trained_saved_and_loaded_again(tmp_path, make_data_dir, model, encoder):
    """The model is left as it is; then the encoder is fine-tuned on other speech."""
    data = make_data_dir(tmp_path / "data", {f"s{i:02d}": 2 for i in range(20)}, seconds=0.8)
    conf = write_conf(tmp_path / "conf.yaml", model, encoder)
    first, second = tmp_path / "first", tmp_path / "second"
    accepts(train_encoder.main, conf, data, first)
    accepts(train_encoder.main, "--init-from", first, first / "encoder.yaml", data, second)
    before = EncoderNetwork(read_config(EncoderConfig, conf)).state_dict()
    after = torch.load(first / "final.pt", weights_only=True)
    front = [name for name in before if name.startswith("front.")]
    changed = [name for name in front if not torch.equal(before[name], after[name])]
    assert changed == ["front.weights"]
    out = tmp_path / "xvectors"
    accepts(extract_xvectors.main, second, data, out)
    vectors = dict(read_vectors(out / "xvector.scp"))
    assert len(vectors) == 40 and all(v.shape == (6,) for v in vectors.values())
    hears = load_encoder(str(second))
    samples = np.random.default_rng(0).standard_normal(16000)
    assert np.array_equal(hears.embed(samples), load_encoder(str(second)).embed(samples))
    assert np.allclose(hears.embed(samples), hears.embed(samples / 9), atol=1e-3)  # normalised
    refuses(r"at least 0\.42 s", hears.embed, samples[:6000], kind=TooShortError)


def test_W7_M7_size_and_settings_of_2026(tmp_path, model):
    """Two epochs of about 355,000 rows of 3 s in batches of 32; vectors of length 1. With a small
    model in the place of WavLM-Large."""
    conf = Path(__file__).resolve().parents[1] / "egs/TEMPLATE/conf/encoders/ecapa_wavlm.yaml"
    text = conf.read_text().replace("microsoft/wavlm-large", str(model))
    (tmp_path / "c.yaml").write_text(text)
    config = read_config(EncoderConfig, tmp_path / "c.yaml")
    tuned = fine_tuned(config).training
    assert config.network.channels == (1024, 1024, 1024, 1024, 3072)
    assert config.network.dropout == 0.3 and config.augmentation.drop
    assert tuned.batch == 32 and tuned.crop_seconds == (3, 3)
    assert (tuned.optimiser, tuned.learning_rate, tuned.weight_decay) == ("adamw", 0.01, 0.01)
    assert tuned.steps * tuned.batch == pytest.approx(2 * 355_000, rel=2e-3)
    assert cyclic_rate(tuned, tuned.steps - 1) == pytest.approx(0.003416, rel=1e-5)
    network = EncoderNetwork(config)
    network(torch.randn(2, 16000), torch.randn(2, 12000)).square().sum().backward()
    learning = [p for p in network.parameters() if p.requires_grad]
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in learning)
    assert not [name for name in network.state_dict() if "model" in name or "banks" in name]
    found = NetworkEncoder(config, network).embed(make_rng(0, "speech").standard_normal(16000) / 10)
    assert np.linalg.norm(found) == pytest.approx(1, abs=1e-6) and len(set(abs(found))) > 2


def test_W7_the_rate_rises_and_falls_again_and_again():
    plan = SimpleNamespace(half_cycle=4, final_rate=0.1, learning_rate=0.5)
    by_hand = [0.2, 0.3, 0.4, 0.5, 0.4, 0.3, 0.2, 0.1, 0.2]
    assert [cyclic_rate(plan, step) for step in range(9)] == pytest.approx(by_hand)
    theirs = CyclicLRScheduler(base_lr=0.1, max_lr=0.5, step_size=4)
    assert [theirs.clr(step + 1) for step in range(9)] == pytest.approx(by_hand)


def test_W7_bands_of_all_and_stretches_of_each_are_dropped():
    crops = np.repeat(make_rng(0, "x").standard_normal((1, 24000)).astype(np.float32), 3, axis=0)
    before = torch.get_rng_state()
    dropped = drop(make_rng(1, "x"), crops)
    assert torch.equal(before, torch.get_rng_state())
    assert np.array_equal(dropped, drop(make_rng(1, "x"), crops))
    silent = dropped == 0
    assert not np.array_equal(silent[0], silent[1])
    kept = ~silent.any(axis=0)
    assert np.array_equal(dropped[0, kept], dropped[1, kept])  # one filter
    for row in silent:
        edges = np.flatnonzero(np.diff(row.astype(int), prepend=0, append=0)).reshape(-1, 2)
        lengths = np.diff(edges).ravel()
        assert 1 <= len(lengths) <= 5 and lengths.min() >= 1000 and lengths.sum() <= 10_000
    noise = make_rng(0, "n").standard_normal((1, 160_000)).astype(np.float32)
    lost = []
    for seed in range(12):
        heard = drop(make_rng(seed, "b"), noise)
        power = np.abs(np.fft.rfft(heard)[0]).reshape(-1)[:80_000].reshape(100, -1).mean(axis=1)
        lost.append(int((power < 0.3 * np.median(power)).sum()))  # hundredths of the band
    assert min(lost) >= 7 and max(lost) <= 3 * 8  # one band to three


def test_W7_frames_of_the_hub_model_are_matched_by_hand():
    x = torch.tensor([[[1.0, 3, 5, 7, 9]]])
    assert match_frames(x, 2).tolist() == [[[2, 7]]]  # two frames, then three
    assert match_frames(x, 4).tolist() == [[[1, 3, 5, 8]]]
    assert match_frames(x, 5).equal(x)
    assert match_frames(x, 7).tolist() == [[[1, 3, 5, 7, 9, 1, 3]]]


def test_W7_the_hub_model_hears_ten_seconds_and_no_augmentation(tmp_path, model):
    path = write_conf(tmp_path / "c.yaml", model, "ecapa_dual")
    settings = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**settings, "augmentation": {"drop": True}}))
    lengths = {"a": 200_000, "b": 20_000}
    cache = {utt: np.full(n, 8192, np.int16) for utt, n in lengths.items()}
    audio = TrainingAudio({}, {"s": ["a"], "t": ["b"]}, lengths, cache)
    trainer = EncoderTrainer(read_config(EncoderConfig, path), 0, "cpu", audio)
    whole, crops, classes = trainer.batch(0)
    assert whole.shape == (4, 160_000) and crops.shape[0] == 4 and crops.shape[1] < 11_300
    speaker = classes // 3  # at three speeds
    assert (whole[speaker == 0] == 0.25).all()
    assert (whole[speaker == 1, :20_000] == 0.25).all() and not whole[speaker == 1, 20_000:].any()
    assert (crops == 0).any(axis=1).all()


SIZES: dict[str, Any] = {
    "channels": [8, 8, 8, 16], "kernel_sizes": [5, 3, 3, 1], "dilations": [1, 2, 3, 1],
    "attention_channels": 4, "se_channels": 4, "lin_neurons": 6, "groups": [1] * 4,
}  # fmt: skip


class Dast(ECAPA_TDNN):  # type: ignore[misc]
    """The network by its authors' names, of SpeechBrain's parts; 16: the width of `model`."""

    def __init__(self) -> None:
        super().__init__(80, **SIZES)
        sizes = [(16, 5, 1), (8, 3, 2), (8, 3, 3)]
        self.blocks_features = torch.nn.ModuleList(
            SERes2NetBlock(wide, 8, kernel_size=kernel, dilation=apart, se_channels=4)
            for wide, kernel, apart in sizes
        )
        self.weighted_sum = torch.nn.ParameterDict({"layer_weights": torch.linspace(0, 1, 2)})

    def forward(self, banks: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        """The vector (1, 1, 6) of filter banks (1, T, 80), and of a hub model's layers."""
        weights = self.weighted_sum["layer_weights"].softmax(0)
        x, y = banks.transpose(1, 2), torch.tensordot(weights, hidden, 1).T[None]
        xs, ys = [], []
        for one, other in zip(self.blocks, self.blocks_features, strict=True):
            x, y = one(x), other(y)
            xs.append(x)
            ys.append(y)
        heard, modelled = torch.cat(xs[1:], dim=1), torch.cat(ys[1:], dim=1)
        modelled = modelled.repeat(1, 1, 9)[:, :, : heard.shape[2]]
        pooled = self.asp_bn(self.asp(self.mfa(heard * modelled)))
        vector: torch.Tensor = self.fc(pooled).transpose(1, 2)
        return vector


@pytest.fixture
def given(tmp_path: Path, model: Path) -> tuple[Path, Dast]:
    """A folder of weights as DAST publishes them."""
    torch.manual_seed(3)
    network, folder = Dast().eval(), tmp_path / "given"
    folder.mkdir()
    write_conf(folder / "encoder.yaml", model, "ecapa_dual", mean="none")
    state = {f"module.{name}": value for name, value in network.state_dict().items()}
    torch.save({"state_dict": state}, folder / "embedding_model.ckpt")
    return folder, network


@torch.no_grad()
def test_W8_weights_of_speechbrain_and_of_DAST_are_an_encoder(given, tmp_path, model):
    """Each number of them, by a network put together here."""
    from transformers import WavLMModel

    wave = torch.from_numpy(make_rng(0, "speech").standard_normal(12_345).astype(np.float32))
    banks = Fbank(n_mels=80)(wave[None])
    banks = banks - banks.mean(dim=1, keepdim=True)
    hub, layers = WavLMModel.from_pretrained(model).eval(), []
    for layer in hub.encoder.layers:  # each as it leaves it, the last one, too
        layer.register_forward_hook(lambda *given: layers.append(given[2][0][0]))
    hub(torch.nn.functional.layer_norm(wave, wave.shape)[None])
    folder, network = given
    wanted = network(banks, torch.stack(layers)).flatten().numpy()
    assert load_encoder(str(folder)).embed(wave.numpy()) == pytest.approx(wanted, abs=1e-5)
    plain, settings = ECAPA_TDNN(80, **SIZES).eval(), {"kind": "fbank"}
    torch.save(plain.state_dict(), tmp_path / "embedding_model.ckpt")
    network_of = {"encoder": "ecapa", "network": yaml.safe_load(NETWORK), "features": settings}
    text = yaml.safe_dump({**network_of, "training": {"steps": 1}})
    (tmp_path / "encoder.yaml").write_text(text)
    wanted = plain(banks).flatten().numpy()
    assert load_encoder(str(tmp_path)).embed(wave.numpy()) == pytest.approx(wanted, abs=1e-5)


@pytest.mark.slow
def test_W8_fine_tuning_starts_from_given_weights(tmp_path, make_data_dir, given):
    folder, network = given
    data, out = make_data_dir(tmp_path / "data", {"s1": 2, "s2": 2}, seconds=0.8), tmp_path / "out"
    settings = yaml.safe_load((folder / "encoder.yaml").read_text())
    settings["training"] |= {"learning_rate": 1e-9, "final_rate": 0.0, "half_cycle": 9}
    (folder / "encoder.yaml").write_text(yaml.safe_dump(settings))
    accepts(train_encoder.main, "--init-from", folder, folder / "encoder.yaml", data, out)
    trained = torch.load(out / "final.pt", weights_only=True)
    for name, value in network.state_dict().items():
        if "running" not in name and "tracked" not in name and "weighted" not in name:
            assert torch.allclose(trained[f"body.{name}"], value, atol=1e-6), name
    assert load_encoder(str(out))  # final.pt, as this project writes it


def test_W8_weights_of_another_network_are_refused(given):
    folder, network = given
    path = folder / "embedding_model.ckpt"
    mend = "give the weights that fit encoder.yaml, or the settings that fit them"
    state = network.state_dict()
    wrong: list[tuple[object, str]] = [
        (ECAPA_TDNN(80, **SIZES).state_dict(), r"front\.weights is missing"),
        ({**state, "fc.conv.bias": torch.zeros(7)}, r"size mismatch for body\.fc\.conv\.bias"),
        ({**state, "blocks.9.conv.weight": torch.zeros(1)}, r"Unexpected key.*body\.blocks\.9"),
        ({**state, "mfa.norm.norm.bias": torch.full((16,), torch.nan)}, "is not finite"),
        ({4: "x"}, "is missing"),
        ([1, 2], "holds no weights by name"),
    ]
    for saved, said in wrong:
        torch.save(saved, path)
        told = refuses(said, load_encoder, str(folder))
        assert str(path) in told and told.endswith(mend)
    path.write_text("no weights")
    refuses(f"not readable as a saved model; {mend}", load_encoder, str(folder))
    path.unlink()
    refuses("final.pt: is missing; an encoder is a folder", load_encoder, str(folder))


def test_another_model_in_its_place_is_refused(tmp_path, make_data_dir):
    model = make_wavlm(tmp_path / "model")
    data = make_data_dir(tmp_path / "data", {"s1": 2, "s2": 2, "s3": 2}, seconds=0.8)
    conf, out = write_conf(tmp_path / "conf.yaml", model), tmp_path / "out"
    accepts(train_encoder.main, "--steps", "1", conf, data, out)
    make_wavlm(model, seed=1)
    refuses("has other weights than in training", load_encoder, str(out))


def test_a_model_that_is_not_there_is_named(tmp_path):
    config = read_config(EncoderConfig, write_conf(tmp_path / "c.yaml", Path("/nothing/here")))
    refuses("hub:/nothing/here: cannot be loaded", EncoderNetwork, config)
