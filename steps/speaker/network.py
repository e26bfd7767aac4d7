"""The networks of speaker encoders, their layers, pooling, and models of the hub in front."""

import dataclasses
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from speechbrain.lobes.models.ECAPA_TDNN import ECAPA_TDNN, AttentiveStatisticsPooling
from speechbrain.lobes.models.ECAPA_TDNN import Classifier as CosineClassifier
from speechbrain.lobes.models.Xvector import Classifier as SoftmaxClassifier
from speechbrain.lobes.models.Xvector import Xvector
from speechbrain.nnet.CNN import Conv1d
from speechbrain.nnet.losses import AdditiveAngularMargin, LogSoftmaxWrapper
from speechbrain.nnet.normalization import BatchNorm1d
from speechbrain.nnet.pooling import StatisticsPooling
from torch import Tensor, nn
from torch.nn import functional

from steps.speaker.config import STRUCTURES, EncoderConfig, FeatureConfig
from steps.speaker.features import EDGE, Features, subtract_mean
from steps.training.weights import digest_of, hidden_layers, load_state, load_transformer
from utils.cli import UserError
from utils.registry import load

# ---- Faster versions of layers in SpeechBrain's networks, for a processor.
#
# They have the same parameters and, up to rounding, the same results: convolutions of a single
# frame, batch normalisation in training, and attentive pooling.

_LARGE = 200_000  # numbers from which on a normalisation is worth more calls


class FrameConv(nn.Conv1d):
    """Convolution of one frame, computed as a matrix product, which is faster on a processor."""

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
        return _Normalise.apply(x, *given)  # type: ignore[no-untyped-call]


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
    """Mean and deviation weighted by attention, which also hears the unweighted ones.

    The unweighted ones are the same at each frame, so the first layer's output for them is computed
    once, and not for each frame.
    """

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
        return _Statistics.apply(x.float(), heard.float(), self.eps)  # type: ignore[no-untyped-call]


def use_faster_layers(body: nn.Module) -> None:
    """Make layers of SpeechBrain the faster ones, which have the same parameters, in place."""
    for module in body.modules():
        if isinstance(module, Conv1d) and module.kernel_size == 1:
            module.conv.__class__ = FrameConv
        elif isinstance(module, BatchNorm1d):
            module.norm.__class__ = FastBatchNorm
        elif isinstance(module, AttentiveStatisticsPooling):
            module.__class__ = AttentivePooling


# ---- Hidden layers of WavLM, HuBERT or wav2vec 2.0 in front of a speaker encoder.
#
# A learnt weighted mean of the model's layers takes the place of filter banks, as in the attacker
# of VoicePrivacy 2026. The model comes from the Hugging Face hub, or from a folder in its form. It
# is frozen, and not saved with the encoder, but identified by a digest.


class HubFront(nn.Module):
    """Frames (B, T, width), one every 20 ms, of samples (B, n) at 16 kHz."""

    def __init__(self, config: FeatureConfig) -> None:
        super().__init__()
        model = load_transformer(config.model)
        model.config.layerdrop, model.config.apply_spec_augment = 0.0, False  # in training
        self.width = int(model.config.hidden_size)
        self.mean = config.mean
        self.name = config.model
        self.weights = nn.Parameter(torch.zeros(int(model.config.num_hidden_layers)))
        self._left = (model.requires_grad_(requires_grad=False),)  # no part of saved weights
        own = torch.tensor(list(digest_of(model)), dtype=torch.uint8)
        self.register_buffer("digest", own.clone())
        self.register_load_state_dict_post_hook(lambda *_: self._check(own))  # type: ignore[no-untyped-call]

    def _check(self, own: Tensor) -> None:
        """Raise a ValueError if a saved encoder had other weights in front of it."""
        if not torch.equal(self.get_buffer("digest").cpu(), own):
            raise ValueError(f"features.model: {self.name} has other weights than in training")

    def forward(self, samples: Tensor) -> Tensor:
        """Frames (B, T, width) of samples (B, n), all signals of one length."""
        model = self._left[0].to(samples.device)
        with torch.no_grad():
            layers = torch.stack(hidden_layers(model, samples)[1:])
        frames = torch.einsum("l,lbtd->btd", torch.softmax(self.weights, 0), layers)
        return subtract_mean(frames, self.mean)


# ---- Encoder networks (SpeechBrain's ECAPA-TDNN and x-vector TDNN) and their training heads.
#
# SpeechBrain's statistics pooling adds random noise to an embedding; here it adds none. Other parts
# are replaced for speed (steps/speaker/network.py).

MINIMUM_FRAMES = 20  # reflection needs more frames than it pads
LAYERS = ("channels", "kernel_sizes", "dilations")  # of each layer
ECAPA_SIZES = ("attention_channels", "se_channels", "dropout")


class _QuietPooling(StatisticsPooling):  # type: ignore[misc]
    """Mean and standard deviation without the noise that SpeechBrain adds to the mean."""

    def _get_gauss_noise(self, shape_of_tensor: Any, device: Any = "cpu") -> Tensor:
        return torch.zeros(shape_of_tensor, device=device)


class EncoderNetwork(nn.Module):
    """Network from features (B, T, D), or samples (B, n) of the kinds that are, to embeddings
    (B, E)."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.front: HubFront | None = None
        if config.features.kind == "hub":
            self.front = HubFront(config.features)
            features = dataclasses.replace(config.features, bins=self.front.width)
            config = dataclasses.replace(config, features=features)
        dual = config.encoder == "ecapa_dual"
        self._banks = (Features(FeatureConfig()),) if dual else ()  # no part of saved weights
        self.body: nn.Module = load(STRUCTURES[config.encoder])(config)
        self.final_norm: nn.Module = nn.Identity()
        if config.network.final_norm:
            self.final_norm = nn.BatchNorm1d(config.network.embedding, affine=False)
        use_faster_layers(self.body)

    def forward(self, features: Tensor, samples: Tensor | None = None) -> Tensor:
        """Embeddings (B, E) of features (B, T, D), all utterances of one length. samples: input of
        the filter banks of ecapa_dual, where the hub model has another one."""
        heard: Any = features if self.front is None else self.front(features)
        for banks in self._banks:
            heard = banks.to(features.device)(features if samples is None else samples), heard
        return self.final_norm(self.body(heard).squeeze(1))


class DualEcapa(ECAPA_TDNN):  # type: ignore[misc]
    """ECAPA-TDNN of 80 filter banks whose layers are multiplied by those of a second one, of the
    frames of a hub model: DAST, the attacker of VoicePrivacy 2026 (Arefeen et al. 2026).

    The parameters have the names of its authors. width: of the frames.
    """

    def __init__(self, width: int, **sizes: Any) -> None:
        super().__init__(FeatureConfig().bins, **sizes)
        first = {"channels": width, "kernel_sizes": 1, "dilations": 1, "groups": 1}
        longer = sizes | {name: [value, *sizes[name]] for name, value in first.items()}
        self.blocks_features = ECAPA_TDNN(width, **longer).blocks[1:]  # SE-Res2Net alone

    def forward(self, heard: tuple[Tensor, Tensor], **_: None) -> Tensor:
        """Vectors (B, 1, E) of filter banks (B, T, 80) and frames (B, T', width)."""
        found = []
        for given, blocks in zip(heard, (self.blocks, self.blocks_features), strict=True):
            layers = [given.transpose(1, 2)]
            for block in blocks:
                layers.append(block(layers[-1]))
            found.append(torch.cat(layers[2:], dim=1))
        x = self.mfa(found[0] * match_frames(found[1], found[0].shape[2]))
        return self.fc(self.asp_bn(self.asp(x))).transpose(1, 2)


def match_frames(x: Tensor, length: int) -> Tensor:
    """Frames (B, C, length) of (B, C, T) as DAST has them: means of neighbours, of one frame more
    towards the end; too few frames are repeated as a whole."""
    n = x.shape[2]
    if n <= length:
        return x[:, :, torch.arange(length, device=x.device) % n]
    sizes = torch.full((length,), n // length, device=x.device)
    sizes[length - n % length :] += 1
    owner = torch.repeat_interleave(torch.arange(length, device=x.device), sizes)
    return x.new_zeros(*x.shape[:2], length).index_add(2, owner, x) / sizes


def make_ecapa(config: EncoderConfig) -> nn.Module:
    """ECAPA-TDNN with attentive pooling, of features or of filter banks and a hub model."""
    network = config.network
    kind = DualEcapa if config.encoder == "ecapa_dual" else ECAPA_TDNN
    layers = {name: list(getattr(network, name)) for name in LAYERS}
    sizes = {name: getattr(network, name) for name in ECAPA_SIZES}
    groups = [1] * len(network.channels)
    body: nn.Module = kind(
        config.features.bins, lin_neurons=network.embedding, groups=groups, **layers, **sizes
    )
    return body


def make_xvector(config: EncoderConfig) -> nn.Module:
    """X-vector TDNN."""
    network = config.network
    layers = {f"tdnn_{name}": list(getattr(network, name)) for name in LAYERS}
    tdnn: Any = Xvector(
        tdnn_blocks=len(network.channels), lin_neurons=network.embedding,
        in_channels=config.features.bins, **layers,
    )  # fmt: skip
    for block in tdnn.blocks:
        if isinstance(block, StatisticsPooling):
            block.__class__ = _QuietPooling
    return tdnn


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
        """Loss of a batch. margin: radian, of the additive angular margin at this step."""
        outputs: Tensor = self.classifier(embeddings.unsqueeze(1))
        if self.training_config.loss == "softmax":
            return functional.nll_loss(outputs.squeeze(1), classes)
        loss = LogSoftmaxWrapper(AdditiveAngularMargin(margin, self.training_config.scale))
        return loss(outputs, classes.unsqueeze(1))


# ---- Resemblyzer's network in plain PyTorch, so that it can be tuned: with its own weights.
#
# Three LSTM layers read windows of 1.6 s; the last state of each gives a vector of length 1, and an
# utterance the mean of its windows (Wan et al. 2018; the package resemblyzer, whose windows these
# are). On the same samples the vectors are those of the package.

WINDOW, STEP = 160, 77  # frames of 10 ms
LEAST_COVERED = 0.75  # of the last window


class ResemblyzerNetwork(nn.Module):
    """Network from mel power (B, T, 40) to embeddings (B, 1, E) of length 1."""

    def __init__(self, bins: int, size: int, n_layers: int, embedding: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(bins, size, n_layers, batch_first=True)
        self.linear = nn.Linear(size, embedding)

    def forward(self, features: Tensor) -> Tensor:
        """Mean over windows; a signal shorter than one is padded with silence."""
        n_frames = features.shape[1] - EDGE
        starts = range(0, max(1, n_frames - WINDOW + STEP + 1), STEP)
        if len(starts) > 1 and n_frames - 1 - starts[-1] < LEAST_COVERED * WINDOW:
            starts = starts[:-1]
        missing = max(0, starts[-1] + WINDOW - features.shape[1])
        padded = functional.pad(features, (0, 0, 0, missing))
        windows = torch.stack([padded[:, start : start + WINDOW] for start in starts], dim=1)
        _, (state, _) = self.lstm(windows.flatten(0, 1))
        made = functional.normalize(torch.relu(self.linear(state[-1])), dim=1)
        mean = made.view(len(features), len(starts), -1).mean(dim=1, keepdim=True)
        return functional.normalize(mean, dim=2)


def make_resemblyzer(config: EncoderConfig) -> nn.Module:
    """Resemblyzer's network with the weights of its package; UserError where it is missing, or for
    other sizes."""
    spec, network = find_spec("resemblyzer"), config.network
    if spec is None or spec.origin is None:
        raise UserError("resemblyzer: not installed; utils/setup.sh installs it")
    path = Path(spec.origin).with_name("pretrained.pt")
    size, *more = network.channels
    body = ResemblyzerNetwork(config.features.bins, size, 1 + len(more), network.embedding)
    weights: dict[str, Any] = load_state(path)["model_state"]
    try:
        body.load_state_dict({name: weights[name] for name in body.state_dict()})
    except (RuntimeError, KeyError) as error:
        raise UserError(
            "encoder: resemblyzer has three layers of 256 channels, 40 bins and an embedding of 256"
        ) from error
    return body
