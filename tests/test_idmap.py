"""IDMap: networks, the loss, and that an index is one voice, whoever else is in its batch."""

from pathlib import Path

import numpy as np
import pytest
import torch

from steps.generators.base import Wanted, load_generator
from steps.generators.identity import identity_vectors
from steps.generators.idmap import (
    MlpModel,
    MlpNetwork,
    MlpNetworkSettings,
    MlpSettings,
    MlpTrainer,
    TripletSampler,
    TripletSettings,
    mlp_loss,
)
from steps.generators.idmap_diff import DiffModel, DiffNetwork, DiffSettings, DiffTrainer, to_score
from steps.generators.training import TrainingVectors, sanity_figures, train_generator
from steps.sources import VoiceKey
from tests.refusals import refuses
from tests.world import run_of, training_vectors
from utils.settings import parse_settings

SMALL = {"identity": 24, "width": 32}


def mlp(**network: object) -> MlpModel:
    torch.manual_seed(0)
    settings = parse_settings(MlpNetworkSettings, {**SMALL, **network}, "x")
    made = MlpNetwork(settings, 16)
    _stir(made)
    return MlpModel(MlpSettings("x", settings), made, 12)


def diff(**network: object) -> DiffModel:
    torch.manual_seed(0)
    values = {"generator": "idmap_diff", "network": {**SMALL, "sizes": [24, 16, 8], **network}}
    settings = parse_settings(DiffSettings, values, "x")
    made = DiffNetwork(settings.network, 16)
    _stir(made)
    return DiffModel(settings, made, 12)


def _stir(network: torch.nn.Module) -> None:
    """Weights and running statistics that are not the initial ones, which hide mistakes."""
    for name, value in network.state_dict().items():
        if value.is_floating_point() and "frequencies" not in name:
            value.add_(0.1 * torch.rand_like(value))


MODELS = {"mlp": mlp, "diff": diff}


@pytest.mark.parametrize("name", MODELS)
def test_a6_the_vector_of_an_index_does_not_depend_on_its_batch(name):
    model = MODELS[name]()
    indices = np.array([5, 2**62, 300, 5, 0], dtype=np.int64)
    together = model.vectors(indices)
    assert together.shape == (5, 16) and together.dtype == np.float32
    alone = np.concatenate([model.vectors(indices[i : i + 1]) for i in range(5)])
    close = {"rtol": 1e-4, "atol": 1e-5 * np.abs(together).max()}  # rounding, no more
    np.testing.assert_allclose(together, alone, **close)
    np.testing.assert_array_equal(together[0], together[3])
    assert not np.allclose(together[0], together[2], atol=1e-2)
    np.testing.assert_allclose(model.vectors(indices[::-1])[::-1], together, **close)


def test_the_folded_mlp_is_the_network_in_evaluation_mode():
    torch.manual_seed(1)
    settings = MlpNetworkSettings(identity=24, width=32)
    network = MlpNetwork(settings, 16)
    _stir(network)
    indices = np.arange(20, 27, dtype=np.int64)
    got = MlpModel(MlpSettings("x", settings), network, 12).vectors(indices)
    e = torch.from_numpy(identity_vectors(indices, 24))
    with torch.no_grad():
        fixed = network.conditioner.fixed.expand(7, 1, -1)
        expected = network.mean + network.scale * network.eval()(e, fixed)[:, 0]
        in_training = network.train()(e, network.conditioner.fixed.expand(7, 2, -1))[:, 0]
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
    assert not np.allclose(got, in_training, atol=1e-3)


def test_the_folded_u_net_is_the_network():
    torch.manual_seed(2)
    values = {"generator": "idmap_diff", "network": dict(SMALL)}
    settings = parse_settings(DiffSettings, values, "x")
    network = DiffNetwork(settings.network, 16).eval()
    _stir(network)
    e = identity_vectors(np.arange(6), 24)
    q = np.random.default_rng(0).standard_normal((6, 16)).astype(np.float32)
    got = network.unet.in_use(network.conditioner)(e)(q, 0.6)
    with torch.no_grad():
        z = network.conditioner(torch.from_numpy(e), network.conditioner.fixed.expand(6, 1, -1))
        expected = network.unet(torch.from_numpy(q), z[:, 0], torch.full((6,), 0.6))
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-4)


def test_the_loss_is_eq_3():
    x = torch.tensor([[[3.0, 4.0]]])
    y = torch.tensor([[[3.0, 4.0], [4.0, -3.0]]])  # equal; at a right angle and 5 sqrt 2 away
    for alpha in (0.0, 0.5, 1.0):
        loss, cosine, distance = mlp_loss(y, x, alpha)
        assert float(loss) == pytest.approx(alpha * 0.5 + (1 - alpha) * 5 * 2**0.5 / 2)
        assert (cosine, distance) == (pytest.approx(0.5), pytest.approx(5 * 2**0.5 / 2))


def test_auxiliary_utterances_are_of_other_speakers_and_all_of_them():
    data = training_vectors()
    shuffled = np.random.default_rng(1).permutation(len(data.labels))
    data = TrainingVectors(data.speakers, data.vectors[shuffled], data.labels[shuffled])
    sampler = TripletSampler(data, TripletSettings(identities=8, auxiliaries=6), 0)
    seen: dict[int, set[int]] = {}
    for step in range(300):
        speakers, utterances = sampler.draw(step)
        assert len(set(speakers.tolist())) == 8 and utterances.shape == (8, 6)
        for speaker, row in zip(speakers.tolist(), utterances, strict=True):
            assert speaker not in data.labels[row]
            seen.setdefault(speaker, set()).update(row.tolist())
    assert all(len(rows) == 55 for rows in seen.values()) and len(seen) == 12
    np.testing.assert_array_equal(sampler.draw(7)[1], sampler.draw(7)[1])


def test_the_score_follows_from_the_clean_vector():
    rng = np.random.default_rng(0)
    x, noise = rng.standard_normal((2, 3, 4))
    for t in (0.1, 0.5, 1.0):
        g = np.exp(-0.5 * (0.05 * t + 9.975 * t * t))
        q = g * x + np.sqrt(1 - g * g) * noise
        np.testing.assert_allclose(to_score(x, q, t), -noise / np.sqrt(1 - g * g), rtol=1e-9)


@pytest.mark.parametrize(
    ("trainer", "values", "steps"),
    [
        (MlpTrainer, {"training": {"learning_rate": 0.003}}, 150),
        (MlpTrainer, {"training": {"alpha": 1.0}, "network": {**SMALL, "centred": False}}, 300),
        (DiffTrainer, {"network": {**SMALL, "sizes": [48, 32, 16]}}, 250),
    ],
)
@pytest.mark.slow
def test_training_speakers_are_learned(trainer, values, steps):
    data = training_vectors()
    name = "idmap_mlp" if trainer is MlpTrainer else "idmap_diff"
    values = {"generator": name, "network": {**SMALL}, **values}
    made = trainer.from_settings(values, "x", data, seed=0, device="cpu")
    before = sanity_figures(made.finished(), data)["cosine_seen"]
    for step in range(steps):
        made.learn(step)
    after = sanity_figures(made.finished(), data)
    assert after["cosine_seen"] > 0.9 > 0.6 > before


@pytest.mark.slow
def test_the_adversarial_ablation_moves_vectors_towards_the_real_ones():
    data = training_vectors()
    values = {"generator": "idmap_mlp", "network": {**SMALL, "centred": False}}
    values["training"] = {"loss": "wgan_qc", "identities": 8, "auxiliaries": 4}
    made = MlpTrainer.from_settings(values, "x", data, seed=0, device="cpu")
    before = sanity_figures(made.finished(), data)["norm_ratio"]
    figures = [made.learn(step) for step in range(200)]
    assert all(np.isfinite(list(f.values())).all() for f in figures)
    after = sanity_figures(made.finished(), data)["norm_ratio"]
    assert after > 3 * before and before < 0.1  # at first the network puts out next to nothing


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("idmap")
    training = {"steps": 60, "learning_rate": 0.003}
    values = {"generator": "idmap_mlp", "network": SMALL, "training": training}
    train_generator(values, "conf.yaml", training_vectors(), folder, seed=0)
    return folder


def generator(trained: Path, seed: int = 0, draw: int = 0, **settings: object):
    values = {"name": "idmap_mlp", **settings}
    return load_generator(values, run_of("system.yaml", seed, draw, generator=trained))


def test_what_cannot_be_had_is_said(trained):
    made = generator(trained)
    made.fit(np.zeros((3, 16)), ["a", "b", "c"], ["f", "m", None])
    for _ in range(2):
        made.generate(Wanted(VoiceKey("const"), None, "m"))
    assert len(made.notes) == 1 and "no gender to choose" in made.notes[0]
    said, short = "of 16 values, and the pool's have 8", np.zeros((3, 8))
    refuses(said, made.fit, short, ["a", "b", "c"], ["f", "m", None])


def test_a_vector_out_of_bounds_is_refused(trained):
    made = generator(trained)
    made._model._others[-1][0][:] *= 1e3
    refuses("times the norm of real ones", made.generate, Wanted(VoiceKey("const")))


def test_a_folder_of_another_kind_or_none_is_refused(trained):
    said = "a trained idmap_mlp, where a trained idmap_diff is asked for"
    refuses(said, generator, trained, name="idmap_diff")
    refuses("needs --generator DIR", load_generator, {"name": "idmap_mlp"}, run_of())
