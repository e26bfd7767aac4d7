# SPDX-License-Identifier: Apache-2.0
"""Faster versions of layers in SpeechBrain's networks, for a processor.

They have the same parameters and, up to rounding, the same results: convolutions of a single frame,
batch normalisation in training, and attentive pooling.
"""

from collections.abc import Iterator
from typing import Any

import torch
from speechbrain.lobes.models.ECAPA_TDNN import AttentiveStatisticsPooling
from torch import Tensor, nn
from torch.nn import functional

_LARGE = 200_000  # numbers from which on a normalisation is worth more calls


class FrameConv(nn.Conv1d):
    """Convolution of one frame, computed as a matrix product, which is faster on a processor."""

    @classmethod
    def of(cls, conv: nn.Conv1d) -> "FrameConv":
        """Make with the parameters of `conv`."""
        made = cls(conv.in_channels, conv.out_channels, 1, device="meta")
        made.weight, made.bias = conv.weight, conv.bias
        return made

    def forward(self, x: Tensor) -> Tensor:
        """Output (B, C', T) of (B, C, T)."""
        if x.device.type != "cpu":
            return super().forward(x)
        assert self.bias is not None
        if x.shape[2] == 1:
            return functional.linear(x[:, :, 0], self.weight[:, :, 0], self.bias)[:, :, None]
        return torch.baddbmm(self.bias[:, None], self.weight[:, :, 0].expand(len(x), -1, -1), x)


class _Normalise(torch.autograd.Function):
    """PyTorch's batch normalisation (B, C, T) with given mean and variance of the batch, (C,).

    PyTorch's own version takes four times as long in training, most of it for these two.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        mean: Tensor,
        variance: Tensor,
        eps: float,
    ) -> Tensor:
        ctx.save_for_backward(x, weight, mean, (variance + eps).rsqrt())
        ctx.eps = eps
        return functional.batch_norm(x, mean, variance, weight, bias, False, eps=eps)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, mean, scale = ctx.saved_tensors
        found = torch.ops.aten.native_batch_norm_backward(
            gradients[0], x, weight, None, None, mean, scale, True, ctx.eps, [True, True, True]
        )
        return *found, None, None, None


class FastBatchNorm(nn.BatchNorm1d):
    """Batch normalisation with mean and variance from each row's sums, added up in float64."""

    @classmethod
    def of(cls, norm: nn.BatchNorm1d) -> "FastBatchNorm":
        """Make with the parameters and running figures of `norm`."""
        made = cls.__new__(cls)
        made.__dict__.update(norm.__dict__)
        return made

    def forward(self, x: Tensor) -> Tensor:
        """Normalise (B, C, T) or (B, C)."""
        large = x.device.type == "cpu" and x.dtype == torch.float32 and x.numel() >= _LARGE
        if not self.training or x.ndim != 3 or not large:
            return super().forward(x)
        with torch.no_grad():
            count = x.shape[0] * x.shape[2]
            mean = x.sum(dim=2).sum(dim=0, dtype=torch.float64) / count
            squares = torch.linalg.vector_norm(x, dim=2).double().square().sum(dim=0) / count
            variance = (squares - mean.square()).clamp(0)
            assert self.running_mean is not None and self.running_var is not None
            assert self.num_batches_tracked is not None and self.momentum is not None
            unbiased = variance * count / max(1, count - 1)
            self.running_mean.lerp_(mean.float(), self.momentum)
            self.running_var.lerp_(unbiased.float(), self.momentum)
            self.num_batches_tracked += 1
        given = (self.weight, self.bias, mean.float(), variance.float(), self.eps)
        normal: Tensor = _Normalise.apply(x, *given)  # type: ignore[no-untyped-call]
        return normal


class _Statistics(torch.autograd.Function):
    """Mean and deviation over time of x (B, C, T), weighted by the softmax of `heard`; (B, 2C).

    heard: (B, C, T), or (B, 1, T) for weights that all channels share. The derivatives are by hand:
    a batch is larger than a processor's cache, so passes over it cost more than their arithmetic,
    and here there are few, utterance by utterance. Weights that channels share have no slope.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, heard: Tensor, eps: float) -> Tensor:
        if ctx.needs_input_grad[1] and heard.shape != x.shape:
            raise ValueError("weights that channels share have no slope here")
        weights = heard.softmax(dim=2)
        mean, spread = (x.new_empty(*x.shape[:2], 1) for _ in range(2))
        for x_, weights_, mean_, spread_ in _pieces(x, weights, mean, spread):
            mean_[:] = (weights_ * x_).sum(dim=2, keepdim=True)
            centred = x_ - mean_
            spread_[:] = centred.square_().mul_(weights_).sum(dim=2, keepdim=True)
        deviation = spread.clamp(eps).sqrt()
        ctx.save_for_backward(x, weights, mean, spread, deviation)
        ctx.eps = eps
        return torch.cat((mean, deviation), dim=1)[:, :, 0]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor | None, None]:  # type: ignore[override]
        x, weights, mean, spread, deviation = ctx.saved_tensors
        of_mean, of_deviation = gradients[0][:, :, None].chunk(2, dim=1)
        of_spread = of_deviation / (2 * deviation) * (spread > ctx.eps)
        of_x = torch.empty_like(x)
        of_heard = torch.empty_like(weights) if ctx.needs_input_grad[1] else None
        whole = (x, weights, mean, spread, of_mean, of_spread, of_x)
        for piece in _pieces(*whole, *([] if of_heard is None else [of_heard])):
            x_, weights_, mean_, spread_, of_mean_, of_spread_, of_x_, *of_heard_ = piece
            centred = x_ - mean_
            weighted = centred * weights_
            torch.mul(of_mean_, weights_, out=of_x_).addcmul_(weighted, 2 * of_spread_)
            if of_heard_:
                torch.mul(of_mean_, weighted, out=of_heard_[0])
                weighted.mul_(centred).addcmul_(weights_, spread_, value=-1)
                of_heard_[0].addcmul_(weighted, of_spread_)
        return of_x, of_heard, None


def _pieces(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Views of the utterances of a batch on a processor, elsewhere the whole batch."""
    if tensors[0].device.type != "cpu":
        return iter([tensors])
    return zip(*(torch.split(tensor, 1) for tensor in tensors), strict=True)


class AttentivePooling(AttentiveStatisticsPooling):  # type: ignore[misc]
    """Mean and deviation weighted by attention, whose input has the plain ones of the utterance.

    These are the same at each frame, so the first layer's output for them is computed once, and not
    for each frame.
    """

    @classmethod
    def of(cls, pooling: AttentiveStatisticsPooling) -> "AttentivePooling":
        """Make with the layers of `pooling`."""
        made = cls.__new__(cls)
        made.__dict__.update(pooling.__dict__)
        return made

    def forward(self, x: Tensor, **_: None) -> Tensor:
        """Pooled (B, 2C, 1) of (B, C, T), all of a length."""
        alike = torch.zeros(len(x), 1, x.shape[2], device=x.device)
        context = self._statistics(x, alike)
        tdnn, conv = self.tdnn, self.tdnn.conv.conv
        each, *both = conv.weight[:, :, 0].split(x.shape[1], dim=1)
        once = functional.linear(context, torch.cat(both, dim=1), conv.bias)
        heard = torch.baddbmm(once[:, :, None], each.expand(len(x), -1, -1), x)
        heard = self.conv(self.tanh(tdnn.dropout(tdnn.norm(tdnn.activation(heard)))))
        return self._statistics(x, heard)[:, :, None]

    def _statistics(self, x: Tensor, heard: Tensor) -> Tensor:
        """(B, 2C)"""
        pooled: Tensor = _Statistics.apply(x.float(), heard.float(), self.eps)  # type: ignore[no-untyped-call]
        return pooled
