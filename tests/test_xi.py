"""Xi-vector pooling: by hand, the limits of the precision, padding, the whole encoder."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from steps.audio import read_audio
from steps.extract_frames import main
from steps.generators.frames import read_frames
from steps.speaker.config import EncoderConfig, NetworkConfig, TrainingConfig
from steps.speaker.encoders import load_encoder
from steps.speaker.network import EncoderNetwork, XiPooling, pool_frames
from steps.training.loop import save_atomically
from tests.refusals import refuses
from utils.settings import to_plain, write_settings


def pool(
    frames: list[float], precisions: list[float], mean: float = 0.0, precision: float = 1.0
) -> tuple[Tensor, Tensor]:
    """One dimension, one utterance."""
    return pool_frames(
        torch.tensor([[frames]], dtype=torch.float64),
        torch.tensor([[precisions]], dtype=torch.float64).log(),
        torch.tensor([mean], dtype=torch.float64),
        torch.tensor([math.log(precision)], dtype=torch.float64),
    )


def test_by_hand() -> None:
    # (2 * 3 + 5 * 1 + 2 * 10) / (3 + 1 + 2) and precision 6
    found = pool([2.0, 5.0], [3.0, 1.0], mean=10.0, precision=2.0)
    assert float(found[0]) == pytest.approx(31 / 6)
    assert float(found[1].exp()) == pytest.approx(6.0)


@pytest.mark.parametrize("precision", [0.01, 1.0, 100.0])
def test_a9_equal_precisions_give_the_mean_with_the_prior_as_one_more_frame(precision):
    found = pool([1.0, 2.0, 6.0], [precision] * 3, mean=7.0, precision=precision)
    assert float(found[0]) == pytest.approx((1 + 2 + 6 + 7) / 4)
    assert float(found[1].exp()) == pytest.approx(4 * precision)


def test_a9_a_prior_without_weight_leaves_the_plain_mean() -> None:
    assert float(pool([1.0, 2.0, 6.0], [1.0] * 3, 7.0, 1e-12)[0]) == pytest.approx(3.0)


def test_a9_a_huge_precision_on_one_frame_gives_that_frame() -> None:
    found = pool([1.0, -4.0, 6.0], [1.0, 1e12, 1.0], mean=3.0)
    assert float(found[0]) == pytest.approx(-4.0, abs=1e-10)


def test_no_frame_gives_the_prior() -> None:
    empty = torch.zeros(1, 1, 0)
    found = pool_frames(empty, empty, torch.tensor([5.0]), torch.zeros(1))
    torch.testing.assert_close(found[0], torch.tensor([[5.0]]))
    torch.testing.assert_close(found[1].exp(), torch.tensor([[1.0]]))


def test_module_shapes_and_gradients() -> None:
    torch.manual_seed(0)
    pooling = XiPooling(6, 4, hidden=8)
    features = torch.randn(3, 6, 9)
    pooling(features)[0].sum().backward()
    gradients: list[Tensor | None] = [p.grad for p in pooling.parameters()]
    assert all(g is not None and bool(torch.isfinite(g).all()) for g in gradients)
    pooling.eval()
    found = pooling(features[:1, :, :5])
    assert found[0].shape == found[1].shape == (1, 4)


def test_log_precision_stays_finite_where_softplus_underflows() -> None:
    pooling = XiPooling(2, 2, hidden=2).eval()
    torch.nn.init.constant_(pooling.outward.bias, -1e4)  # type: ignore[arg-type]
    found = pooling(torch.ones(1, 2, 3))
    assert bool(torch.isfinite(found[0]).all())
    assert bool(torch.isfinite(found[1]).all())


def encoder_config(final_norm: bool = True, pooling: str = "xi") -> EncoderConfig:
    network = NetworkConfig((8, 8, 8), (3, 3, 1), (1, 2, 1), 5, 4, 4, pooling, 6, final_norm)
    return EncoderConfig("ecapa", network, TrainingConfig(1))


def encoder(final_norm: bool) -> EncoderNetwork:
    torch.manual_seed(0)
    made = EncoderNetwork(encoder_config(final_norm))
    made.train()
    made(torch.randn(16, 40, 80))  # so that running statistics are not 0 and 1
    return made.eval()


@pytest.mark.parametrize("final_norm", [False, True])
@torch.inference_mode()
def test_frames_of_the_encoder_pool_to_its_vector(final_norm: bool) -> None:
    """In the embeddings' space: scaled by the final norm, the prior too."""
    network = encoder(final_norm)
    features = torch.randn(2, 25, 80)
    means, variances = network.frame_gaussians(features)
    pooling = network.body.asp.pooling
    prior_mean = network.final_norm(pooling.prior_mean[None])[0]
    scale = torch.ones(5)
    if final_norm:
        scale = network.final_norm.running_var + network.final_norm.eps
    found = pool_frames(
        means.transpose(1, 2),
        -variances.transpose(1, 2).log(),
        prior_mean,
        pooling.prior_log_precision + scale.log(),
    )
    torch.testing.assert_close(found[0], network(features), atol=1e-5, rtol=1e-4)


def test_frames_of_a_data_directory_are_what_psd_reads(make_data_dir, tmp_path: Path) -> None:
    data = make_data_dir(tmp_path / "data", {"s1": 2, "s2": 1}, seconds=0.4)
    folder = tmp_path / "encoder"
    folder.mkdir()
    write_settings(folder / "encoder.yaml", to_plain(encoder_config()))
    save_atomically(folder / "final.pt", encoder(True).state_dict())
    assert main([str(folder), str(data), str(tmp_path / "out")]) == 0
    table = read_frames(tmp_path / "out", None, "given")
    assert table.speakers.tolist() == ["s1", "s1", "s2"]
    assert table.frames.weights.tolist() == [41, 42, 41]
    samples = read_audio("s1-000", str(data / "wav" / "s1-000.wav")).samples.astype(np.float32)
    means, variances = load_encoder(str(folder)).frames(samples)  # type: ignore[attr-defined]
    np.testing.assert_allclose(table.frames.means[0], means.mean(axis=0), rtol=1e-3, atol=1e-5)
    expected = variances.mean(axis=0) + means.var(axis=0)
    np.testing.assert_allclose(table.frames.variances[0], expected, rtol=1e-3)
    write_settings(folder / "encoder.yaml", to_plain(encoder_config(pooling="attention")))
    other = EncoderNetwork(encoder_config(pooling="attention"))
    save_atomically(folder / "final.pt", other.state_dict())
    refuses("xi pooling is needed", main, [str(folder), str(data), str(tmp_path / "no")])
