"""Heads: small networks on the x-vectors of an encoder that is not trained here.

An attacker who cannot train an encoder trains what comes after it: two layers, taught to tell
people apart whatever their pseudo-voice, with an additive angular margin (Deng et al. 2019).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from steps.speaker.backends import Backend
from steps.training.loop import descend, learning_rate, set_rate
from steps.training.weights import fill_network, load_state
from utils.arrays import Float32, Float64
from utils.cli import UserError
from utils.seeds import derive_seed, make_rng
from utils.tables import sort_ids, write_json

WEIGHTS = "head.pt"


@dataclass(frozen=True)
class HeadConfig:
    """Sizes and training of a head; margin: radian, which grows over the first third."""

    hidden: int = 256
    embedding: int = 192
    dropout: float = 0.2
    steps: int = 1000
    batch: int = 256
    margin: float = 0.2
    scale: float = 30.0
    learning_rate: float = 1e-3
    final_rate: float = 1e-5
    warm_up: float = 0.05
    weight_decay: float = 1e-2


class Head(nn.Module):
    """Network of x-vectors (n, D), centred and of equal length first, to (n, embedding)."""

    def __init__(self, dim: int, config: HeadConfig) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(dim))
        self.layers = nn.Sequential(
            nn.Linear(dim, config.hidden), nn.BatchNorm1d(config.hidden), nn.ReLU(),
            nn.Dropout(config.dropout), nn.Linear(config.hidden, config.embedding),
        )  # fmt: skip

    def forward(self, vectors: Tensor) -> Tensor:
        centred = functional.normalize(vectors - self.get_buffer("mean"), dim=1)
        return self.layers(centred * vectors.shape[1] ** 0.5)

    @torch.inference_mode()
    def apply_to(self, vectors: Float64 | Float32) -> Float32:
        """X-vectors (n, embedding) of others (n, D)."""
        self.eval()
        rows = torch.from_numpy(np.asarray(vectors, np.float32))
        # One at a time: the last bits of a batch's arithmetic depend on its size.
        return np.concatenate([self(row[None]).numpy() for row in rows])


@dataclass(frozen=True)
class HeadBackend:
    """Back end of the x-vectors that a head makes."""

    head: Head
    base: Backend
    dim = None

    def left(self, vectors: Float64, counts: Float64) -> Float64:
        return self.base.left(self.head.apply_to(vectors).astype(np.float64), counts)

    def right(self, vectors: Float64) -> Float64:
        return self.base.right(self.head.apply_to(vectors).astype(np.float64))


def train_head(
    vectors: Mapping[str, Float32], utt2spk: Mapping[str, str], seed: int = 0,
    config: HeadConfig = HeadConfig(),
) -> Head:  # fmt: skip
    """Train a head on x-vectors (D,) of training speakers; every speaker is drawn equally often."""
    keys = sort_ids(vectors)
    names, classes = np.unique([utt2spk[key] for key in keys], return_inverse=True)
    if len(names) < 2:
        raise UserError(f"{len(names)} training speaker(s); a head needs several")
    torch.set_num_threads(1)
    torch.manual_seed(derive_seed(seed, "head-weights") % 2**63)
    rows = torch.from_numpy(np.stack([vectors[key] for key in keys]).astype(np.float32))
    head, of = (
        Head(rows.shape[1], config),
        [np.flatnonzero(classes == n) for n in range(len(names))],
    )
    head.get_buffer("mean").copy_(rows.mean(dim=0))
    centres = nn.Parameter(torch.randn(len(names), config.embedding))
    parameters = [*head.parameters(), centres]
    optimiser = torch.optim.AdamW(parameters, weight_decay=config.weight_decay)
    rng = make_rng(seed, "head-batches")
    head.train()
    for step in range(config.steps):
        set_rate(optimiser, learning_rate(config, step))
        drawn = rng.integers(len(names), size=config.batch)
        places = [of[n][rng.integers(len(of[n]))] for n in drawn]
        margin = config.margin * min(1.0, 3 * step / config.steps)
        made, target = head(rows[np.array(places)]), torch.from_numpy(drawn)
        descend(_margin_loss(made, centres, target, margin, config.scale), optimiser)
    return head


def _margin_loss(
    made: Tensor, centres: Tensor, target: Tensor, margin: float, scale: float
) -> Tensor:
    """Cross entropy of cosines (B, S), the true one's angle widened by the margin."""
    cosine = functional.normalize(made, dim=1) @ functional.normalize(centres, dim=1).T
    own = torch.arange(len(made)), target
    angle = torch.acos(cosine[own].clamp(-1 + 1e-6, 1 - 1e-6))
    widened = cosine.index_put(own, torch.cos((angle + margin).clamp(max=torch.pi)))
    return functional.cross_entropy(scale * widened, target)


def write_head(folder: Path, head: Head, about: Mapping[str, object]) -> None:
    """Write encoder.yaml (what it is and what it was trained on) and, last, the weights."""
    write_json(folder / "encoder.yaml", {"encoder": "head", "trained": dict(about)})
    torch.save(head.state_dict(), folder / WEIGHTS)


def read_head(folder: Path) -> Head:
    """Read a head; UserError where there is none."""
    weights = load_state(folder / WEIGHTS)
    if "mean" not in weights:
        raise UserError(f"{folder / WEIGHTS}: holds no head; train it with steps/train_head.py")
    head = Head(len(weights["mean"]), HeadConfig())
    fill_network(head, weights, folder / WEIGHTS)
    return head
