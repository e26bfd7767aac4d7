# SPDX-License-Identifier: Apache-2.0
"""Training of the neural source-filter."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from steps.learning.audio import TrainingAudio
from steps.learning.loop import descend, learning_rate, set_rate
from steps.synthesis.nsf import NsfNetwork, render
from steps.synthesis.nsf_config import NsfConfig
from steps.synthesis.spectral_loss import SpectralLoss
from steps.synthesis.training import AnyTrainer, Batch, BatchMaker, Run, run_training
from utils.seeds import derive_seed, make_rng
from utils.tables import StrPath


class Adversary(nn.Module):
    """Guess of the speaker's x-vector (B, d) from codes (B, C, T)."""

    def __init__(self, n_codes: int, n_xvector: int, channels: int = 64) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(n_codes, channels, 5),
            nn.GELU(),
            nn.Conv1d(channels, channels, 5, dilation=2),
            nn.GELU(),
        )
        self.last = nn.Linear(2 * channels, n_xvector)

    def forward(self, codes: Tensor, speaker: Tensor, weight: float) -> Tensor:
        """Mean of 1 - cosine between the guess and `speaker` (B, d).

        Its gradient improves the guess here, and is reversed, times `weight`, for the network that
        made the codes (Ganin and Lempitsky 2015).
        """
        turned = (1 + weight) * codes.detach() - weight * codes
        hidden = self.layers(turned)
        guess = self.last(torch.cat((hidden.mean(dim=2), hidden.std(dim=2)), dim=1))
        return (1 - nn.functional.cosine_similarity(guess, speaker)).mean()


@dataclass
class NsfTrainer(AnyTrainer):
    """Training of the small source-filter."""

    saved = ("network", "adversary", "optimiser")

    def __post_init__(self) -> None:
        torch.manual_seed(derive_seed(self.seed, "nsf-weights") % 2**63)
        xvectors = self.make.voices.matrix(self.make.audio.speakers)
        n_xvector = xvectors.shape[1]
        self.plan = training = self.config.training
        self.network = NsfNetwork(self.config.network, self.config.cepstra, n_xvector)
        self.network.set_speakers(xvectors)
        self.network.to(self.device)
        self.distance = SpectralLoss(training.mel_weight).to(self.device)
        self.adversary = Adversary(1 + self.config.network.bottleneck, n_xvector).to(self.device)
        parameters = [*self.network.parameters(), *self.adversary.parameters()]
        self.optimiser = torch.optim.AdamW(
            parameters, training.learning_rate, weight_decay=training.weight_decay
        )

    def update(self, step: int, batch: Batch) -> dict[str, float]:
        """See Trainer. adversary: 1 - cosine of its guesses with the speaker."""
        self.network.train()
        set_rate(self.optimiser, learning_rate(self.plan, step))
        x = batch.to(self.device)
        place = self.network.place(x["xvectors"])
        codes = self.network.encode(x["content"])
        noise = self._speaker_noise(step, batch).to(self.device)
        distance: Tensor = self.distance(self._say(x, codes, place + noise), x["right"])
        figures, loss = {"loss": float(distance.detach())}, distance
        if weight := self._adversary_weight(step):
            guess = self.adversary(codes, place, weight)
            figures["adversary"] = float(guess.detach())
            loss = distance + guess
        descend(loss, self.optimiser, self.network.parameters(), self.plan.gradient_norm)
        return figures

    def _speaker_noise(self, step: int, batch: Batch) -> Tensor:
        rng = make_rng(self.seed, "nsf-speaker-noise", str(step))
        noise = rng.standard_normal(batch.xvectors.shape, dtype=np.float32)
        return torch.from_numpy(noise * np.float32(self.config.augmentation.xvector_noise))

    def _adversary_weight(self, step: int) -> float:
        """Factor on the gradient at this step."""
        grown = min(1.0, step / max(1.0, 0.2 * self.plan.steps))
        weight: float = self.config.augmentation.adversary * grown
        return weight

    def _say(self, x: dict[str, Tensor], codes: Tensor, speaker: Tensor) -> Tensor:
        filters = self.network(codes, x["f0"], speaker)
        return render(filters, (x["pulses"], x["noise"]), x["gate"])

    def distance_on(self, batch: Batch) -> float:
        """See AnyTrainer."""
        x = batch.to(self.device)
        codes = self.network.encode(x["content"])
        signals = self._say(x, codes, self.network.place(x["xvectors"]))
        return float(self.distance.log_mel_distance(signals, x["right"]))


def train_nsf(
    config: NsfConfig,
    audio: TrainingAudio,
    pool: StrPath,
    out: Path,
    *,
    seed: int,
    device: str = "cpu",
) -> None:
    """Train on `audio` and its data in `pool`.

    `out` gets training.tsv, checkpoints/, synthesiser.yaml; final.pt last.
    """

    def begin(make: BatchMaker, valid: Batch | None) -> NsfTrainer:
        return NsfTrainer(config, seed, device, make, valid)

    run_training(Run(config, audio, pool, out, seed, device), begin)
