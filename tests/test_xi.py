"""Xi-vector pooling: by hand, the limits of the precision, padding, the whole encoder."""

import math

import pytest
import torch
from torch import Tensor

from steps.speaker.xi import Posterior, XiPooling, pool_frames


def pool(
    frames: list[float], precisions: list[float], mean: float = 0.0, precision: float = 1.0
) -> Posterior:
    """One dimension, one utterance."""
    return pool_frames(
        torch.tensor([[frames]], dtype=torch.float64),
        torch.tensor([[precisions]], dtype=torch.float64).log(),
        torch.tensor([mean], dtype=torch.float64),
        torch.tensor([math.log(precision)], dtype=torch.float64),
    )


def test_by_hand() -> None:
    # (2 * 3 + 5 * 1 + 2 * 10) / (3 + 1 + 2) and precision 6; second moment (12 + 25 + 200) / 6
    found = pool([2.0, 5.0], [3.0, 1.0], mean=10.0, precision=2.0)
    assert float(found.mean) == pytest.approx(31 / 6)
    assert float(found.log_precision.exp()) == pytest.approx(6.0)
    assert float(found.deviation) == pytest.approx(math.sqrt(237 / 6 - (31 / 6) ** 2))


@pytest.mark.parametrize("precision", [0.01, 1.0, 100.0])
def test_a9_equal_precisions_give_the_mean_with_the_prior_as_one_more_frame(
    precision: float,
) -> None:
    found = pool([1.0, 2.0, 6.0], [precision] * 3, mean=7.0, precision=precision)
    assert float(found.mean) == pytest.approx((1 + 2 + 6 + 7) / 4)
    assert float(found.log_precision.exp()) == pytest.approx(4 * precision)


def test_a9_a_prior_without_weight_leaves_the_plain_mean() -> None:
    assert float(pool([1.0, 2.0, 6.0], [1.0] * 3, 7.0, 1e-12).mean) == pytest.approx(3.0)


def test_a9_a_huge_precision_on_one_frame_gives_that_frame() -> None:
    found = pool([1.0, -4.0, 6.0], [1.0, 1e12, 1.0], mean=3.0)
    assert float(found.mean) == pytest.approx(-4.0, abs=1e-10)
    assert float(found.deviation) < 1e-4


def test_no_frame_gives_the_prior_and_padding_counts_for_nothing() -> None:
    frames = torch.tensor([[[1.0, 3.0, math.nan]], [[math.inf, 1e9, -1e9]]])
    valid = torch.tensor([[True, True, False], [False, False, False]])
    prior = torch.tensor([5.0])
    found = pool_frames(frames, torch.zeros(2, 1, 3), prior, torch.zeros(1), valid)
    torch.testing.assert_close(found.mean, torch.tensor([[3.0], [5.0]]))
    torch.testing.assert_close(found.log_precision.exp(), torch.tensor([[3.0], [1.0]]))


def test_module_shapes_batching_and_gradients() -> None:
    torch.manual_seed(0)
    pooling = XiPooling(6, 4, hidden=8)
    features = torch.randn(3, 6, 9)
    pooling(features).mean.sum().backward()
    gradients: list[Tensor | None] = [p.grad for p in pooling.parameters()]
    assert all(g is not None and bool(torch.isfinite(g).all()) for g in gradients)
    pooling.eval()
    alone = pooling(features[:1, :, :5])
    padded = pooling(features[:1], torch.arange(9)[None] < 5)
    torch.testing.assert_close(alone.mean, padded.mean)
    torch.testing.assert_close(alone.log_precision, padded.log_precision)
    assert alone.mean.shape == alone.deviation.shape == (1, 4)


def test_log_precision_stays_finite_where_softplus_underflows() -> None:
    pooling = XiPooling(2, 2, hidden=2).eval()
    torch.nn.init.constant_(pooling.outward.bias, -1e4)  # type: ignore[arg-type]
    found = pooling(torch.ones(1, 2, 3))
    assert bool(torch.isfinite(found.mean).all())
    assert bool(torch.isfinite(found.log_precision).all())
