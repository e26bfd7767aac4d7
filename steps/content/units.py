# SPDX-License-Identifier: Apache-2.0
"""Hard units in place of content, with less of the manner of speaking, and of the speaker.

`kmeans` is the quantisation of bottleneck features in Liu et al. 2025 ("VQ-BN"): the nearest of n
centres stands for a frame. `scalar` is finite scalar quantisation (Mentzer et al. 2023): a few
values a frame, each of a few levels, learnt together with their user.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn

from utils.arrays import Float32
from utils.bounds import Number, OneOf
from utils.cli import UserError


@dataclass(frozen=True)
class UnitSettings:
    """n: centres of kmeans. values, levels: of scalar, a frame's values and the levels of each."""

    kind: Annotated[str, OneOf("none", "kmeans", "scalar")] = "none"
    n: Annotated[int, Number(least=2, most=4096)] = 200
    values: Annotated[int, Number(least=1, most=512)] = 16
    levels: Annotated[int, Number(least=3, most=255, odd=True)] = 5


class Units(nn.Module):
    """Content (B, d, T) unchanged. width: output values of a frame."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, content: Tensor) -> Tensor:
        """Units (B, width, T) of content (B, d, T)."""
        return content

    def fit(self, frames: Float32, seed: int) -> None:
        """Fit to frames (M, d) the part that the network does not train; here nothing."""


class KMeansUnits(Units):
    """Nearest of n centres in place of each frame."""

    centres: Tensor

    def __init__(self, width: int, n: int) -> None:
        super().__init__(width)
        self.register_buffer("centres", torch.zeros(n, width))

    def forward(self, content: Tensor) -> Tensor:
        """See Units."""
        frames = content.transpose(1, 2)
        # |x - c|² without |x|², which is equal for all centres
        near = frames @ self.centres.T - 0.5 * self.centres.square().sum(dim=1)
        return self.centres[near.argmax(dim=2)].transpose(1, 2)

    def fit(self, frames: Float32, seed: int) -> None:
        """See Units. UserError for fewer frames than centres."""
        from sklearn.cluster import MiniBatchKMeans

        n = len(self.centres)
        if len(frames) < n:
            raise UserError(f"units.n: {n}, but there are {len(frames)} frames of training")
        found = MiniBatchKMeans(n, random_state=seed % 2**32, n_init=1, batch_size=4096)
        self.centres.copy_(torch.from_numpy(found.fit(frames).cluster_centers_))


class ScalarUnits(Units):
    """Values of a projection, bounded and rounded; the gradient passes."""

    def __init__(self, n_content: int, values: int, levels: int) -> None:
        super().__init__(values)
        self.levels = levels
        self.project = nn.Conv1d(n_content, values, 1)

    def forward(self, content: Tensor) -> Tensor:
        """See Units; values are of -1 ... 1."""
        return quantise(self.project(content), self.levels)


def quantise(values: Tensor, n_levels: int) -> Tensor:
    """Bound and round values to `n_levels` (odd) levels in -1 ... 1; the gradient passes.

    Finite scalar quantisation (Mentzer et al. 2023).
    """
    half = (n_levels - 1) / 2
    bounded = torch.tanh(values)
    return bounded + (torch.round(bounded * half) / half - bounded).detach()


def make_units(settings: UnitSettings, n_content: int) -> Units:
    """Make units for content of n_content values a frame."""
    match settings.kind:
        case "kmeans":
            return KMeansUnits(n_content, settings.n)
        case "scalar":
            return ScalarUnits(n_content, settings.values, settings.levels)
    return Units(n_content)
