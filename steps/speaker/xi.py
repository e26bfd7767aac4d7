# SPDX-License-Identifier: Apache-2.0
"""Pooling of frames by their precision (xi-vector; Lee, Wang and Koshinaka 2021).

Each frame t gives an estimate h_t of the speaker and a log precision l_t, both per dimension. With
a Gaussian prior (m_p, l_p), learned, the speaker is Gaussian given the frames:

    a_t = exp(l_t) / (exp(l_p) + sum_s exp(l_s)),   a_p = exp(l_p) / (the same)
    mean phi = sum_t a_t h_t + a_p m_p,   precision exp(l_p) + sum_t exp(l_t)

Frames with little information (noise, pauses) get a low precision and weigh little. Liu et al. 2025
take the mean as the speaker's vector; their generator PSD also uses the single frames.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Posterior:
    """mean: (B, D). log_precision: (B, D), natural logarithm; the variance is exp(-it).

    deviation: (B, D), square root of sum_t a_t h_t^2 + a_p m_p^2 - phi^2: the spread of the frames.
    """

    mean: Tensor
    log_precision: Tensor
    deviation: Tensor


def pool_frames(
    frames: Tensor,
    log_precision: Tensor,
    prior_mean: Tensor,
    prior_log_precision: Tensor,
) -> Posterior:
    """Posterior of (B, D, T) frames and log precisions under a prior (D,), (D,)."""
    shape = (len(frames), -1, 1)
    logits = torch.cat([log_precision, prior_log_precision[:, None].expand(shape)], dim=2)
    values = torch.cat([frames, prior_mean[:, None].expand(shape)], dim=2)
    weights = torch.softmax(logits, dim=2)
    mean = (weights * values).sum(dim=2)
    # Around the mean, not as a difference of squares, which cancels.
    spread = (weights * (values - mean[:, :, None]).square()).sum(dim=2)
    deviation = spread.clamp_min(1e-12).sqrt()  # the root has no gradient at 0
    return Posterior(mean, torch.logsumexp(logits, dim=2), deviation)


class XiPooling(nn.Module):
    """Layer from frame features (B, C, T) to the speaker's posterior, D dimensions.

    A linear map C -> D gives h_t. l_t = 2 log softplus(W2 BN(ReLU(W1 h_t + b1)) + b2), `hidden`
    units. The prior starts at mean 0 and log precision 0, so a short utterance is drawn towards it.
    """

    def __init__(self, channels: int, size: int, hidden: int = 256) -> None:
        super().__init__()
        self.estimate = nn.Conv1d(channels, size, 1)
        self.inward = nn.Conv1d(size, hidden, 1)
        self.norm = nn.BatchNorm1d(hidden)
        self.outward = nn.Conv1d(hidden, size, 1)
        self.prior_mean = nn.Parameter(torch.zeros(size))
        self.prior_log_precision = nn.Parameter(torch.zeros(size))

    def frame_gaussians(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Means h_t and log precisions l_t, both (B, D, T), of (B, C, T)."""
        means = self.estimate(features)
        hidden = self.norm(functional.relu(self.inward(means)))
        # In bfloat16 the sums over frames would be off by a percent.
        wide = self.prior_mean.dtype
        # The floor keeps the logarithm finite where softplus underflows: a precision of 1e-12.
        positive = functional.softplus(self.outward(hidden).to(wide)).clamp_min(1e-6)
        return means.to(wide), 2.0 * positive.log()

    def forward(self, features: Tensor) -> Posterior:
        """See `pool_frames`."""
        means, log_precision = self.frame_gaussians(features)
        return pool_frames(means, log_precision, self.prior_mean, self.prior_log_precision)
