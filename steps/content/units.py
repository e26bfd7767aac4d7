"""Content as hard units, and encoders of content that a gradient passes."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from steps.content.extractors import HubContent
from steps.training.weights import fill_network, graph_values
from utils.arrays import Float32
from utils.cli import UserError
from utils.registry import find
from utils.settings import Number, OneOf

# ---- Hard units in place of content, with less of the manner of speaking, and of the speaker.
#
# `kmeans` is the quantisation of bottleneck features in Liu et al. 2025 ("VQ-BN"): the nearest of n
# centres stands for a frame.


@dataclass(frozen=True)
class UnitSettings:
    """n: centres of kmeans."""

    kind: Annotated[str, OneOf("none", "kmeans")] = "none"
    n: Annotated[int, Number(least=2, most=4096)] = 200


class PlainUnits(nn.Module):
    """Content (B, d, T) unchanged. width: output values of a frame."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, content: Tensor) -> Tensor:
        """Units (B, width, T) of content (B, d, T)."""
        return content

    def fit(self, frames: Float32, seed: int) -> None:
        """Fit to frames (M, d) the part that the network does not train; here nothing."""


class KMeansUnits(PlainUnits):
    """Nearest of n centres in place of each frame."""

    centres: Tensor

    def __init__(self, width: int, n: int) -> None:
        super().__init__(width)
        self.register_buffer("centres", torch.zeros(n, width))

    def forward(self, content: Tensor) -> Tensor:
        frames = content.transpose(1, 2)
        # |x - c|² without |x|², which is equal for all centres
        near = frames @ self.centres.T - 0.5 * self.centres.square().sum(dim=1)
        return self.centres[near.argmax(dim=2)].transpose(1, 2)

    def fit(self, frames: Float32, seed: int) -> None:
        from sklearn.cluster import MiniBatchKMeans

        n = len(self.centres)
        if len(frames) < n:
            raise UserError(f"units.n: {n}, but there are {len(frames)} frames of training")
        found = MiniBatchKMeans(n, random_state=seed % 2**32, n_init=1, batch_size=4096)
        self.centres.copy_(torch.from_numpy(found.fit(frames).cluster_centers_))


def quantise(values: Tensor, n_levels: int) -> Tensor:
    """Bound and round values to `n_levels` (odd) levels in -1 ... 1; the gradient passes.

    Finite scalar quantisation (Mentzer et al. 2023).
    """
    half = (n_levels - 1) / 2
    bounded = torch.tanh(values)
    return bounded + (torch.round(bounded * half) / half - bounded).detach()


def make_units(settings: UnitSettings, n_content: int) -> PlainUnits:
    """Make units for content of n_content values a frame."""
    if settings.kind == "kmeans":
        return KMeansUnits(n_content, settings.n)
    return PlainUnits(n_content)


# ---- Encoders of content with a gradient, for training by ear.
#
# `moonshine`: transformers has the encoder's structure; the weights, of 8 bits, are read out of the
# graph that onnxruntime runs. There every layer's input is also of 8 bits; here it is not, and
# frames of LibriSpeech correlate by 0.9995. `hub:<model>:<layer>`: the model itself.

EARS = {
    "moonshine": "steps.content.units:moonshine_ear",
    "hub:<model>:<layer>": "steps.content.units:hub_ear",
}
_PLAIN = re.compile(r"((?:layers\.\d+\.|layer_norm|conv\d)\S*?)(?:_add_tensor)?")
_LAYER = re.compile(r"/layers\.(\d+)/(self_attn/[qkvo]_proj|mlp/fc[12])/")
_GROUPNORM = {"/groupnorm/Mul_output_0": "weight", "/groupnorm/Add_output_0": "bias"}


EarOf = Callable[[Tensor], Tensor]
"""Frames (B, T, d) of signals (B, n) at 16 kHz, with a gradient; the weights are frozen."""


def moonshine_ear(device: str = "cpu") -> EarOf:
    """Encoder of `extractors.MoonshineContent`.

    UserError if the recogniser is not installed, or has another structure.
    """
    from transformers import MoonshineConfig
    from transformers.models.moonshine.modeling_moonshine import MoonshineEncoder

    from steps.asr.engines import ENCODER, find_model  # not every training needs onnxruntime

    path = find_model().paths[ENCODER]
    encode: Any = MoonshineEncoder(MoonshineConfig())
    fill_network(encode, read_weights(path), path)
    encode.eval().requires_grad_(False).to(device)
    return lambda signals: encode(signals).last_hidden_state


def hub_ear(model: str, layer: str, device: str = "cpu") -> EarOf:
    """Encoder of `extractors.HubContent`; UserError as there."""
    content = HubContent(model, layer, device)
    content.model.requires_grad_(False)
    return content.hidden


def load_ear(name: str, device: str = "cpu") -> EarOf:
    """Load the encoder of a name in extractors.EXTRACTORS; UserError if unknown or unavailable."""
    kind, found = find(EARS, name, "content with an ear")
    return kind(*found, device)


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read weights of the graph in a file, by their names in transformers.

    UserError where it is not such a graph.
    """
    try:
        graph, values = graph_values(path.read_bytes())
        found = {m[1]: values[name] for name in values if (m := _PLAIN.fullmatch(name))}
        for node in (graph.Nodes(i) for i in range(graph.NodesLength())):
            made = node.Outputs(0).decode()
            given = [node.Inputs(i).decode() for i in range(node.InputsLength())]
            if part := _GROUPNORM.get(made):
                found[f"groupnorm.{part}"] = values[given[1]][:, 0]
            elif match := _LAYER.match(made):
                for name in given:
                    if name in values and name.endswith("_quantized"):
                        layer = f"layers.{match[1]}.{match[2].replace('/', '.')}.weight"
                        found[layer] = _dequantised(values, name.removesuffix("_quantized")).T
    except Exception as error:  # flatbuffers raises Python's own errors beyond a file's end
        raise UserError(f"{path}: is not a graph of Moonshine's encoder: {error}") from error
    return {name: torch.from_numpy(np.array(part, np.float32)) for name, part in found.items()}


def _dequantised(values: dict[str, npt.NDArray[Any]], name: str) -> npt.NDArray[Any]:
    zero, scale = values[f"{name}_zero_point"], values[f"{name}_scale"]
    return (values[f"{name}_quantized"].astype(np.float32) - float(zero)) * float(scale)
