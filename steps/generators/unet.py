# SPDX-License-Identifier: Apache-2.0
"""U-Nets for diffusion of vectors: dense layers, or convolutions along the vector.

Both take noisy vectors q (n, d), conditions z (n, c) and times t (n,), and return (n, d). Liu et
al. 2025 name the U-Net of Popov et al. (2022), which is for images; how a vector becomes one is not
said.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from steps.generators.calibration import affine, single
from steps.generators.idmap import Conditioner, FoldedConditioner, to_numpy
from utils.arrays import Float32

TIMES = 64  # sines and as many cosines of t
Denoiser = Callable[[Float32, float], Float32]


class TimeFeatures(nn.Module):
    """Time features (n, 2 TIMES) of t (n,) in [0, 1]: sines and cosines, then a layer."""

    frequencies: Tensor

    def __init__(self) -> None:
        super().__init__()
        frequencies = torch.exp(torch.linspace(0.0, math.log(1000.0), TIMES))
        self.register_buffer("frequencies", frequencies)
        self.layer = nn.Linear(2 * TIMES, 2 * TIMES)

    def forward(self, t: Tensor) -> Tensor:
        """See the class."""
        angles = t[:, None] * self.frequencies
        features: Tensor = nn.functional.silu(
            self.layer(torch.cat([angles.sin(), angles.cos()], dim=1))
        )
        return features


class _DenseBlock(nn.Module):
    """Block h + W2 SiLU(W1 (LN(h) (1 + a) + b)), a and b (n, size) from condition and time."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(size, size), nn.Linear(size, size)

    def forward(self, h: Tensor, a: Tensor, b: Tensor) -> Tensor:
        inner = nn.functional.layer_norm(h, h.shape[1:]) * (1 + a) + b
        out: Tensor = h + self.second(nn.functional.silu(self.first(inner)))
        return out


class VectorUnet(nn.Module):
    """Dense layers of three sizes, down and up again, with skips; every block is steered (FiLM)
    by an affine function of z and the time features.
    """

    def __init__(self, dimension: int, condition: int, sizes: tuple[int, int, int]) -> None:
        super().__init__()
        s0, s1, s2 = sizes
        self.block_sizes = (s0, s1, s2, s1, s0)
        self.time = TimeFeatures()
        self.steer_condition = nn.Linear(condition, 2 * sum(self.block_sizes))
        self.steer_time = nn.Linear(2 * TIMES, 2 * sum(self.block_sizes), bias=False)
        self.enter, self.leave = nn.Linear(dimension, s0), nn.Linear(s0, dimension)
        changes = ((s0, s1), (s1, s2), (s2, s1), (s1, s0))
        self.changes = nn.ModuleList(nn.Linear(a, b) for a, b in changes)
        self.blocks = nn.ModuleList(_DenseBlock(size) for size in self.block_sizes)
        nn.init.zeros_(self.leave.weight)

    def forward(self, q: Tensor, z: Tensor, t: Tensor) -> Tensor:
        """See the module."""
        steering = self.steer_condition(z) + self.steer_time(self.time(t))
        pairs = torch.split(steering, [s for size in self.block_sizes for s in (size, size)], dim=1)
        h, skips = self.enter(q), []
        for place, block in enumerate(self.blocks):
            h = block(h, pairs[2 * place], pairs[2 * place + 1])
            if place < 2:
                skips.append(h)
            if place < 4:
                h = self.changes[place](h)
            if place >= 2 and skips:
                h = h + skips.pop()
        out: Tensor = self.leave(h)
        return out

    def in_use(self, conditioner: Conditioner) -> Callable[[Float32], Denoiser]:
        """Denoiser for identity vectors (n, D): a map from (q (n, d), t) to the output (n, d)."""
        return _FoldedVectorUnet(self, conditioner)


class _FoldedVectorUnet:
    """VectorUnet in NumPy, in a third of torch's time for one vector, as calls cost more there than
    arithmetic. The steering of z is computed once a vector, that of t once for all."""

    def __init__(self, unet: VectorUnet, conditioner: Conditioner) -> None:
        def weights(layer: Any) -> tuple[Float32, Float32]:
            return single(to_numpy(layer.weight)), single(to_numpy(layer.bias))

        self._steer = FoldedConditioner(conditioner, unet.steer_condition)
        self._enter, self._leave = weights(unet.enter), weights(unet.leave)
        self._changes = [weights(layer) for layer in unet.changes]
        self._blocks: list[Any] = [(weights(b.first), weights(b.second)) for b in unet.blocks]
        self._sizes = unet.block_sizes
        self._unet, self._of_time = unet, dict[float, Float32]()

    def _time_steering(self, t: float) -> Float32:
        if t not in self._of_time:
            with torch.no_grad():
                steering = to_numpy(self._unet.steer_time(self._unet.time(torch.tensor([t]))))
            at = 0
            for size in self._sizes:  # the 1 of 1 + a
                steering[:, at : at + size] += 1.0
                at += 2 * size
            self._of_time[t] = single(steering)
        return self._of_time[t]

    def __call__(self, e: Float32) -> Denoiser:
        """See VectorUnet.in_use."""
        of_condition = self._steer(e)

        def denoise(q: Float32, t: float) -> Float32:
            with np.errstate(over="ignore"):  # exp of a large -h in _silu: 0 is right
                return self._denoise(q, of_condition + self._time_steering(t))

        return denoise

    def _denoise(self, q: Float32, steering: Float32) -> Float32:
        h, skips, at = affine(q, *self._enter), [], 0
        for place, (first, second) in enumerate(self._blocks):
            size = self._sizes[place]
            inner = _layer_norm(h)
            inner *= steering[:, at : at + size]
            inner += steering[:, at + size : at + 2 * size]
            at += 2 * size
            h = h + affine(_silu(affine(inner, *first)), *second)
            if place < 2:
                skips.append(h)
            if place < 4:
                h = affine(h, *self._changes[place])
            if place >= 2 and skips:
                h += skips.pop()
        return affine(h, *self._leave)


def _layer_norm(h: Float32) -> Float32:
    size = np.float32(h.shape[1])
    mean: Float32 = np.add.reduce(h, axis=1, keepdims=True)
    out = h - mean / size
    squares: Float32 = np.vecdot(out, out)[:, None]
    out /= np.sqrt(squares / size + np.float32(1e-5))
    return out


def _silu(h: Float32) -> Float32:
    share = np.negative(h)
    np.exp(share, out=share)
    share += 1
    out: Float32 = np.divide(h, share, out=share)
    return out


class _ConvBlock(nn.Module):
    """Two of [group norm of 8, Mish, convolution], with the features of the time added between."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.first_norm, self.second_norm = nn.GroupNorm(8, n_in), nn.GroupNorm(8, n_out)
        self.first = nn.Conv1d(n_in, n_out, 3, padding=1)
        self.second = nn.Conv1d(n_out, n_out, 3, padding=1)
        self.time = nn.Linear(2 * TIMES, n_out)
        self.shortcut = nn.Conv1d(n_in, n_out, 1) if n_in != n_out else nn.Identity()

    def forward(self, h: Tensor, time: Tensor) -> Tensor:
        inner = self.first(nn.functional.mish(self.first_norm(h))) + self.time(time)[:, :, None]
        inner = self.second(nn.functional.mish(self.second_norm(inner)))
        out: Tensor = self.shortcut(h) + inner
        return out


class _LinearAttention(nn.Module):
    """Attention along the vector in linear time, four heads of 32, its share learned from 0."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.enter = nn.Conv1d(channels, 3 * 128, 1, bias=False)
        self.leave = nn.Conv1d(128, channels, 1)
        self.share = nn.Parameter(torch.zeros(1))

    def forward(self, h: Tensor) -> Tensor:
        query, key, value = self.enter(h).unflatten(1, (3, 4, 32)).unbind(1)
        context = torch.einsum("nhkp,nhvp->nhkv", key.softmax(dim=3), value)
        mixed = torch.einsum("nhkv,nhkp->nhvp", context, query).flatten(1, 2)
        out: Tensor = h + self.share * self.leave(mixed)
        return out


class Unet1d(nn.Module):
    """Convolutions along a signal of d values: channels q, and two made of the condition's halves
    (u and phi); resolutions d, d/2, d/4 with 1, 2, 4 times the channels, two blocks and linear
    attention at each.
    """

    def __init__(self, dimension: int, condition: int, channels: int) -> None:
        super().__init__()
        self.time = TimeFeatures()
        self.to_channels = nn.Linear(condition, 2 * dimension)
        sizes = [channels, 2 * channels, 4 * channels]
        self.enter, self.leave = nn.Conv1d(3, channels, 3, padding=1), nn.Conv1d(channels, 1, 1)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        for n_in, n_out in zip([channels, *sizes], sizes, strict=False):
            self.down.append(self._level(n_in, n_out))
        for n_below, n_out in ((sizes[2], sizes[1]), (sizes[1], sizes[0])):
            self.up.append(self._level(n_below + n_out, n_out))
        nn.init.zeros_(self.leave.weight)

    @staticmethod
    def _level(n_in: int, n_out: int) -> nn.ModuleList:
        blocks = [_ConvBlock(n_in, n_out), _ConvBlock(n_out, n_out), _LinearAttention(n_out)]
        return nn.ModuleList(blocks)

    def forward(self, q: Tensor, z: Tensor, t: Tensor) -> Tensor:
        """See the module. A vector whose size is no multiple of 4 is padded with zeros."""
        size, time = q.shape[1], self.time(t)
        signals = torch.cat([q[:, None], self.to_channels(z).unflatten(1, (2, size))], dim=1)
        h = self.enter(nn.functional.pad(signals, (0, -size % 4)))
        skips = []
        for place, level in enumerate(self.down):
            h = _through(level, nn.functional.avg_pool1d(h, 2) if place else h, time)
            skips.append(h)
        skips.pop()
        for level in self.up:
            h = nn.functional.interpolate(h, scale_factor=2.0)
            h = _through(level, torch.cat([h, skips.pop()], dim=1), time)
        out: Tensor = self.leave(h)[:, 0, :size]
        return out

    def in_use(self, conditioner: Conditioner) -> Callable[[Float32], Denoiser]:
        """See VectorUnet.in_use; in torch."""

        @torch.no_grad()
        def prepare(e: Float32) -> Denoiser:
            fixed = conditioner.fixed.expand(len(e), 1, -1)
            z = conditioner(torch.from_numpy(e), fixed)[:, 0]

            @torch.no_grad()
            def denoise(q: Float32, t: float) -> Float32:
                out = self(
                    torch.from_numpy(np.asarray(q, dtype=np.float32)), z, torch.full((len(q),), t)
                )
                return np.asarray(out.numpy(), dtype=np.float32)

            return denoise

        return prepare


def _through(level: Any, h: Tensor, time: Tensor) -> Tensor:
    first, second, attention = level
    out: Tensor = attention(second(first(h, time), time))
    return out
