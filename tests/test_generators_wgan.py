"""WGAN-QC: duals of the transport, losses, training and resuming, resampling of pseudo-speakers."""

import math
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import torch

from steps.generators.base import Wanted, describe_generator, load_generator
from steps.generators.idmap import (
    WganTrainer,
    critic_loss,
    make_networks,
    quadratic_cost,
    solve_duals,
)
from steps.generators.sampling import WganSettings, WganSpeakers
from steps.generators.training import (
    TrainedFolder,
    TrainingVectors,
    load_trained,
    mean_cosine,
    train_generator,
)
from steps.sources import VoiceKey
from tests.refusals import refuses
from tests.world import around, run_of

SIZE = 6
NETWORK = {"noise": 8}
TRAINING = {"steps": 12, "batch": 16, "learning_rate": 1e-3, "checkpoint_every": 6, "log_every": 6}


def settings(**more: object) -> dict[str, object]:
    network = NETWORK | {name: more.pop(name) for name in list(more) if name in NETWORK}
    return {"generator": "wgan", "network": network, "training": TRAINING | more}


def people(n: int = 10, offset: float = 2.0) -> TrainingVectors:
    rng = np.random.default_rng(3)
    return around(offset + rng.standard_normal((n, SIZE)), 8, rng, 0.3)


# A7: the transport


@pytest.mark.parametrize(("n", "shift"), [(1, 0.0), (7, 0.0), (64, 3.0), (64, 1000.0)])
def test_a7_duals_are_feasible_tight_on_pairs_and_centred(n, shift):
    rng = np.random.default_rng(n)
    cost = quadratic_cost(rng.standard_normal((n, 9)), 0.2 * rng.standard_normal((n, 9)) + shift)
    duals = solve_duals(cost)
    slack = cost - (duals.real[:, None] - duals.fake[None, :])
    scale = max(1.0, float(cost.max()))
    assert slack.min() >= -1e-8 * scale
    assert sorted(duals.match) == list(range(n))
    assert np.abs(slack[duals.match, np.arange(n)]).max() <= 1e-8 * scale
    assert duals.real.mean() - duals.fake.mean() == pytest.approx(duals.cost, abs=1e-9 * scale)
    assert duals.real.mean() + duals.fake.mean() == pytest.approx(0.0, abs=1e-9 * scale)


def test_transport_by_hand():
    # real at 0 and 4, generated at 1 and 6 on a line: K = 1, costs 1/2 ((0-1)^2 + (4-6)^2) / 2
    cost = quadratic_cost(np.array([[0.0], [4.0]]), np.array([[1.0], [6.0]]))
    np.testing.assert_allclose(cost, [[0.5, 18.0], [4.5, 2.0]])
    duals = solve_duals(cost)
    assert duals.match.tolist() == [0, 1]
    assert duals.cost == pytest.approx(1.25)


def test_equal_vectors_cost_nothing_and_undefined_costs_are_refused():
    same = np.ones((5, 3))
    assert solve_duals(quadratic_cost(same, same)).cost == 0.0
    refuses("finite", solve_duals, np.full((2, 2), np.nan), kind=ArithmeticError)


# A7: the losses


class Known(torch.nn.Module):
    """D(v) = <a, v> + b: value and gradient are known."""

    def __init__(self, a: list[float], b: float) -> None:
        super().__init__()
        self.a = torch.nn.Parameter(torch.tensor(a, dtype=torch.float64))
        self.b = torch.nn.Parameter(torch.tensor(b, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.a + self.b


def test_critic_loss_by_hand():
    # One real vector (2, 0) and one generated (0, 0): K = 1/2, c = 1/4 * 4 = 1, Hx = 1/2 = -Hv.
    real = torch.tensor([[2.0, 0.0]], dtype=torch.float64)
    fake = torch.zeros(1, 2, dtype=torch.float64)
    total, early, transport = critic_loss(Known([3.0, 4.0], 0.25), real, fake, gamma=0.7)
    at_real, at_fake, root = 6.25, 0.25, 0.5**0.5
    regression = 0.5 * (at_real - 0.5) ** 2 + 0.5 * (at_fake + 0.5) ** 2
    penalty = 0.5 * (5.0 / (2 * root) - 0.5 * root * 2.0) ** 2
    assert early == pytest.approx(regression)
    assert float(total.detach()) == pytest.approx(regression + 4 * root * 0.7 * penalty)
    assert transport == pytest.approx(1.0)
    # the exact potential, D(v) = -1/2 + K <x, v>, has the slope K ||x - v||: the penalty vanishes
    exact, of_exact, _ = critic_loss(Known([1.0, 0.0], -0.5), real, fake, gamma=0.7)
    penalty_of_exact = float(exact.detach()) - of_exact
    assert penalty_of_exact == pytest.approx(0.0, abs=1e-9)


def test_a7_gradients_are_finite_even_where_the_critic_is_flat():
    generator, critic = make_networks(5, SIZE)
    for flat in (False, True):
        if flat:
            for parameter in critic.parameters():
                torch.nn.init.zeros_(parameter)
        fake = generator(torch.randn(8, 5))
        assert fake.shape == (8, SIZE)
        assert critic(fake).shape == (8,)
        critic.zero_grad()
        critic_loss(critic, torch.randn(8, SIZE), fake, 0.1)[0].backward()
        gradients = [p.grad for p in critic.parameters() if p.grad is not None]
        assert gradients
        assert all(bool(torch.isfinite(g).all()) for g in gradients)


def test_a7_on_two_gaussians_the_critic_loss_falls():
    _, critic = make_networks(4, 2)
    of_critic = torch.optim.Adam(critic.parameters(), 1e-3, (0.5, 0.999))
    losses = []
    for _ in range(100):
        real, fake = torch.randn(64, 2) + 3.0, torch.randn(64, 2)
        loss, *_ = critic_loss(critic, real, fake, 0.1)
        of_critic.zero_grad()
        loss.backward()
        of_critic.step()
        losses.append(float(loss.detach()))
    assert np.mean(losses[-20:]) < 0.2 * np.mean(losses[:20])
    with torch.no_grad():  # it rises from the generated to the real ones
        assert float(critic(torch.full((1, 2), 3.0))) > float(critic(torch.zeros(1, 2)))


# training


def test_dimensions_that_never_change_do_not_take_over_the_generated_vectors():
    # Resemblyzer has 19 such dimensions of 256; they held 82 % of the generated deviation.
    data = people()
    data.vectors[:, 2] = 4.0
    data.vectors[:, 3] = 1.0 + 1e-4 * np.arange(len(data.vectors)) / len(data.vectors)
    trainer = WganTrainer.from_settings(settings(), "f", data, seed=0, device="cpu")
    for step in range(12):
        trainer.learn(step)
    made = trainer.finished().vectors(np.arange(50, dtype=np.int64))
    assert (made[:, 2] == 4.0).all()
    assert made[:, 3].std() < 0.1 * np.delete(made, [2, 3], axis=1).std(axis=0).mean()


# pseudo-speakers


class Listed:
    """A model whose vectors are given, in the order of asking."""

    dimension, n_seen = 2, 0

    def __init__(self, *vectors: tuple[float, float]) -> None:
        self._vectors, self.asked = vectors, 0

    def vectors(self, indices: np.ndarray) -> np.ndarray:
        self.asked += 1
        return np.array([self._vectors[(self.asked - 1) % len(self._vectors)]], dtype=np.float32)

    def calibrate(self, vectors: np.ndarray) -> np.ndarray:
        return 10 * vectors


def speakers(model: object, same_person: float = math.nan, **more: object) -> WganSpeakers:
    settings = WganSettings("wgan", **{"centred": False, "norm": "raw", **more})  # type: ignore[arg-type]
    folder = TrainedFolder("wgan", model, 1.0, same_person)
    with patch("steps.generators.training.load_trained", return_value=folder):
        generator = WganSpeakers(settings, run_of(generator=Path()))
    generator.fit(np.eye(2), ["a", "b"], [None, None])
    return generator


X = np.array([1.0, 0.0])
KEY = VoiceKey("spk", ("set", "s1"))


def test_resampling_stops_at_the_first_vector_below_the_threshold():
    generator = speakers(Listed((2.0, 0.0), (1.0, 1.0), (0.0, 3.0), (-1.0, 0.0)))
    y, info = generator.generate(Wanted(KEY, X))
    assert y.tolist() == [0.0, 3.0]
    assert (info["tries"], info["cosine"]) == (3, 0.0)
    assert generator.notes == []


def test_resampling_is_capped_and_keeps_the_lowest_cosine():
    generator = speakers(Listed((2.0, 0.0), (1.0, 1.0), (3.0, 1.0)), tries=3)
    for _ in range(2):
        y, info = generator.generate(Wanted(KEY, X))
        assert y.tolist() == [1.0, 1.0]
        assert (info["tries"], info["cosine"]) == (3, 0.7071)
    assert len(generator.notes) == 1


def test_what_is_kept_is_near_real_speakers_where_all_have_much_in_common():
    # Real speakers at (10, 1) and (10, -1): raw cosines are near 1, so that only what lies off them
    # would be kept; about their mean (10, 0) the other speaker is the opposite.
    listed = Listed((10.0, 0.9), (10.0, -0.9), (-5.0, 3.0))
    generator = speakers(listed, centred=True)
    generator.fit(np.array([[10.0, 1.0], [10.0, -1.0]]), ["a", "b"], [None, None])
    y, info = generator.generate(Wanted(KEY, np.array([10.0, 1.0])))
    assert y.tolist() == pytest.approx([10.0, -0.9])
    assert (info["tries"], info["cosine"]) == (2, -1.0)


def test_a_voice_of_a_wgan_was_somebody():
    """Nearer to a speaker of the pool than two recordings of one person: drawn again, not raw."""
    listed = (1.0, 0.1), (0.6, 0.8), (-1.0, -1.0)
    how = {"same_person": 0.9, "threshold": 1.0, "norm": "calibrated"}
    y, info = speakers(Listed(*listed), **how).generate(Wanted(KEY))  # type: ignore[arg-type]
    assert (y.tolist(), info["tries"], info["nearest"]) == (pytest.approx([6, 8]), 2, 0.8)
    raw = speakers(Listed(*listed), 0.9, threshold=1.0)
    assert raw.generate(Wanted(KEY))[1]["nearest"] == 0.995
    short = speakers(Listed((1.0, 0.1), (1.0, 0.2)), **how, tries=2)  # type: ignore[arg-type]
    assert short.generate(Wanted(KEY))[1]["nearest"] == 0.9806
    assert "nobody's" in short.notes[0]
    # with a source, a voice of nobody comes before one that is less like the source
    both = speakers(Listed((0.1, 1.0), (0.8, 0.6)), 0.9, norm="calibrated", tries=2)
    assert both.generate(Wanted(KEY, X))[1]["cosine"] == 0.8


def test_voices_of_a_wgan_fell_together(tmp_path):
    """They are calibrated, as those of IDMap are; weights from before are trained again."""
    data = people(40, 1.0)
    train_generator(settings(), "wgan.yaml", data, tmp_path, seed=1)
    model = load_trained(tmp_path, "wgan").model
    made = model.vectors(np.arange(400, dtype=np.int64))
    real = mean_cosine(data.means.astype(np.float64))
    assert abs(mean_cosine(made.astype(np.float64)) - real) > 0.1
    used = mean_cosine(model.calibrate(made).astype(np.float64))
    assert used == pytest.approx(real, abs=0.03)

    weights = torch.load(tmp_path / "final.pt")
    torch.save({k: v for k, v in weights.items() if k != "calibration.map"}, tmp_path / "final.pt")
    refuses(r"final\.pt: .*calibration\.map.*train it again", load_trained, tmp_path, "wgan")


@pytest.mark.usefixtures("few_indices")
def test_a_trained_folder_gives_pseudo_speakers_by_key_alone(tmp_path):
    train_generator(settings(), "wgan.yaml", people(), tmp_path, seed=1)
    values: dict[str, object] = {"name": "wgan", "threshold": 0.99}
    assert describe_generator(values, "s.yaml") == ("xvectors", "generator")
    source = -np.ones(SIZE)

    def make(draw: int, *keys: VoiceKey) -> list[np.ndarray]:
        generator = load_generator(values, run_of("s.yaml", 0, draw, generator=tmp_path))
        generator.fit(np.eye(SIZE)[:2], ["a", "b"], ["f", "m"])
        assert generator.is_random
        return [generator.generate(Wanted(key, source))[0] for key in keys]

    one, two = VoiceKey("spk", ("set", "s1")), VoiceKey("spk", ("set", "s2"))
    forward, backward = make(0, one, two), make(0, two, one)
    assert np.array_equal(forward[0], backward[1])
    assert not np.array_equal(forward[0], forward[1])
    assert not np.array_equal(make(1, one)[0], forward[0])


def test_bad_inputs():
    data, how = people(), {"seed": 0, "device": "cpu"}
    few = "wgan.yaml: .*80 x-vectors"
    refuses(few, WganTrainer.from_settings, settings(batch=81), "wgan.yaml", data, **how)
