"""Resemblyzer's network in plain PyTorch, so that it can be tuned: it starts from its own weights.

Three LSTM layers read windows of 1.6 s; the last state of each gives a vector of length 1, and an
utterance the mean of its windows (Wan et al. 2018; the package resemblyzer, whose windows these
are). On the same samples the vectors are those of the package.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from steps.speaker.config import EncoderConfig
from steps.speaker.features import EDGE
from steps.training.weights import load_state
from utils.cli import UserError

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
