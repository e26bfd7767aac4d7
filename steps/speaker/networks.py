# SPDX-License-Identifier: Apache-2.0
"""Encoder networks (SpeechBrain's ECAPA-TDNN and x-vector TDNN) and their training heads.

SpeechBrain's statistics pooling adds random noise to an embedding; here it adds none. Other parts
are replaced for speed (steps/speaker/layers.py).
"""

import dataclasses
from typing import Any

import torch
from speechbrain.lobes.models.ECAPA_TDNN import ECAPA_TDNN
from speechbrain.lobes.models.ECAPA_TDNN import Classifier as CosineClassifier
from speechbrain.lobes.models.Xvector import Classifier as SoftmaxClassifier
from speechbrain.lobes.models.Xvector import Xvector
from speechbrain.nnet.CNN import Conv1d
from speechbrain.nnet.losses import AdditiveAngularMargin, LogSoftmaxWrapper
from speechbrain.nnet.normalization import BatchNorm1d
from speechbrain.nnet.pooling import StatisticsPooling
from torch import Tensor, nn
from torch.nn import functional

from steps.speaker.config import STRUCTURES, EncoderConfig
from steps.speaker.front import HubFront
from steps.speaker.layers import AttentivePooling, FastBatchNorm, FrameConv
from steps.speaker.xi import XiPooling
from utils.registry import load

MINIMUM_FRAMES = 20  # reflection needs more frames than it pads


class _QuietPooling(StatisticsPooling):  # type: ignore[misc]
    """Mean and standard deviation without the noise that SpeechBrain adds to the mean."""

    def _get_gauss_noise(self, shape_of_tensor: Any, device: Any = "cpu") -> Tensor:
        return torch.zeros(shape_of_tensor, device=device)


class _XiHead(nn.Module):
    """Pooling in place of ECAPA's attention and later layers: the posterior mean is the vector."""

    def __init__(self, channels: int, size: int, hidden: int) -> None:
        super().__init__()
        self.pooling = XiPooling(channels, size, hidden)
        self.features: Tensor | None = None  # (B, C, T) of the last call, when `keep` is set
        self.keep = False

    def forward(self, x: Tensor, **_: None) -> Tensor:
        """Pool (B, C, T), all of a length, to (B, E, 1)."""
        self.features = x if self.keep else None
        mean: Tensor = self.pooling(x).mean
        return mean.unsqueeze(2)


class EncoderNetwork(nn.Module):
    """Network from features (B, T, D), of kind hub samples (B, n), to embeddings (B, E)."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.front: HubFront | None = None
        if config.features.kind == "hub":
            self.front = HubFront(config.features)
            features = dataclasses.replace(config.features, bins=self.front.width)
            config = dataclasses.replace(config, features=features)
        self.body: nn.Module = load(STRUCTURES[config.encoder])(config)
        self.final_norm: nn.Module = nn.Identity()
        if config.network.final_norm:
            self.final_norm = nn.BatchNorm1d(config.network.embedding, affine=False)
        for module in self.body.modules():
            if isinstance(module, Conv1d) and module.kernel_size == 1:
                module.conv = FrameConv.of(module.conv)
            elif isinstance(module, BatchNorm1d):
                module.norm = FastBatchNorm.of(module.norm)

    def forward(self, features: Tensor) -> Tensor:
        """See the class; all utterances of a batch have the same length."""
        if self.front is not None:
            features = self.front(features)
        embeddings: Tensor = self.final_norm(self.body(features).squeeze(1))
        return embeddings

    @property
    def has_frame_gaussians(self) -> bool:
        """Whether the pooling is xi."""
        return isinstance(getattr(self.body, "asp", None), _XiHead)

    def frame_gaussians(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Estimates of the speaker by each frame, in the space of the embeddings (xi pooling only).

        Features (B, T, D) -> means and variances (B, T, E), for networks in eval mode.
        """
        head = getattr(self.body, "asp", None)
        if not isinstance(head, _XiHead):
            raise ValueError("this network has no xi pooling")
        head.keep = True
        self(features)
        head.keep = False
        assert head.features is not None
        means, log_precision = head.pooling.frame_gaussians(head.features)
        head.features = None
        means, variances = means.transpose(1, 2), torch.exp(-log_precision).transpose(1, 2)
        if isinstance(self.final_norm, nn.BatchNorm1d):
            shape = means.shape
            means = self.final_norm(means.flatten(0, 1)).view(shape)
            assert self.final_norm.running_var is not None
            variances = variances / (self.final_norm.running_var + self.final_norm.eps)
        return means, variances


def make_ecapa(config: EncoderConfig) -> nn.Module:
    """ECAPA-TDNN with attentive or xi pooling."""
    network = config.network
    body: nn.Module = ECAPA_TDNN(
        config.features.bins,
        lin_neurons=network.embedding,
        channels=list(network.channels),
        kernel_sizes=list(network.kernel_sizes),
        dilations=list(network.dilations),
        attention_channels=network.attention_channels,
        res2net_scale=network.res2net_scale,
        se_channels=network.se_channels,
        groups=[1] * len(network.channels),
    )
    if network.pooling == "xi":
        body.asp = _XiHead(network.channels[-1], network.embedding, network.xi_hidden)
        body.asp_bn, body.fc = nn.Identity(), nn.Identity()
    else:
        body.asp = AttentivePooling.of(body.asp)
    return body


def make_xvector(config: EncoderConfig) -> nn.Module:
    """X-vector TDNN."""
    network = config.network
    tdnn: Any = Xvector(
        tdnn_blocks=len(network.channels),
        tdnn_channels=list(network.channels),
        tdnn_kernel_sizes=list(network.kernel_sizes),
        tdnn_dilations=list(network.dilations),
        lin_neurons=network.embedding,
        in_channels=config.features.bins,
    )
    tdnn.blocks = nn.ModuleList(
        _QuietPooling() if isinstance(block, StatisticsPooling) else block for block in tdnn.blocks
    )
    body: nn.Module = tdnn
    return body


class TrainingHead(nn.Module):
    """Loss of embeddings (B, E) and classes (B,). Only used in training."""

    def __init__(self, config: EncoderConfig, n_classes: int) -> None:
        super().__init__()
        self.training_config = config.training
        size = config.network.embedding
        self.classifier: nn.Module
        if config.training.loss == "aam":
            self.classifier = CosineClassifier(size, lin_neurons=size, out_neurons=n_classes)
        else:
            self.classifier = SoftmaxClassifier(
                input_shape=[None, None, size], lin_neurons=size, out_neurons=n_classes
            )

    def forward(self, embeddings: Tensor, classes: Tensor, margin: float) -> Tensor:
        """Set `margin`: radian, of the additive angular margin at this step."""
        outputs: Tensor = self.classifier(embeddings.unsqueeze(1))
        if self.training_config.loss == "softmax":
            return functional.nll_loss(outputs.squeeze(1), classes)
        loss = LogSoftmaxWrapper(AdditiveAngularMargin(margin, self.training_config.scale))
        value: Tensor = loss(outputs, classes.unsqueeze(1))
        return value
