# SPDX-License-Identifier: Apache-2.0
"""Training of the neural source-filter."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from steps.speaker.corpus import TrainingAudio
from steps.synthesis.nsf import NsfNetwork, render
from steps.synthesis.nsf_config import NsfConfig, TrainingConfig
from steps.synthesis.spectral_loss import SpectralLoss
from steps.synthesis.trained import Float32
from steps.synthesis.training import (
    AnyTrainer,
    Batch,
    Run,
    Voices,
    moving_average,
    run_training,
)
from utils.seeds import derive_seed, make_rng
from utils.tables import StrPath


def learning_rate(config: TrainingConfig, step: int) -> float:
    """Linear rise over `warm_up`, then half a cosine down to `final_rate`."""
    n_warm = max(1, round(config.warm_up * config.steps))
    if step < n_warm:
        return config.learning_rate * (step + 1) / n_warm
    progress = (step - n_warm) / max(1, config.steps - n_warm)
    cosine = 0.5 * (1 + math.cos(math.pi * progress))
    return config.final_rate + (config.learning_rate - config.final_rate) * cosine


class Adversary(nn.Module):
    """Guesses the x-vector (B, d) of the speaker from codes (B, C, T)."""

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
        """1 - cosine of the guess and `speaker` (B, d), meaned.

        Its gradient improves the guess here, and is turned round, times `weight`, for what made the
        codes (Ganin and Lempitsky 2015).
        """
        turned = (1 + weight) * codes.detach() - weight * codes
        hidden = self.layers(turned)
        guess = self.last(torch.cat((hidden.mean(dim=2), hidden.std(dim=2)), dim=1))
        return (1 - nn.functional.cosine_similarity(guess, speaker)).mean()


@dataclass
class Trainer(AnyTrainer):
    """The small source-filter under training; `guess` is 1 - cosine of the adversary's guesses."""

    saved = ("network", "adversary", "optimiser")

    config: NsfConfig
    xvectors: Float32  # (S, d) unit, of the training speakers

    def __post_init__(self) -> None:
        torch.manual_seed(derive_seed(self.seed, "nsf-weights") % 2**63)
        n_xvector = self.xvectors.shape[1]
        self.network = NsfNetwork(self.config.network, self.config.cepstra, n_xvector)
        self.network.set_speakers(self.xvectors)
        self.network.to(self.device)
        self.distance = SpectralLoss(self.config.training.mel_weight).to(self.device)
        self.adversary = Adversary(1 + self.config.network.bottleneck, n_xvector).to(self.device)
        parameters = [*self.network.parameters(), *self.adversary.parameters()]
        training = self.config.training
        self.optimiser = torch.optim.AdamW(
            parameters, training.learning_rate, weight_decay=training.weight_decay
        )

    def update(self, batch: Batch) -> None:
        """One step."""
        self.network.train()
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate(self.config.training, self.step)
        x = batch.to(self.device)
        place = self.network.place(x["xvectors"])
        codes = self.network.encode(x["content"])
        signals = self._say(x, codes, place + self._speaker_noise(batch).to(self.device))
        distance: Tensor = self.distance(signals, x["right"])
        loss = distance
        if weight := self._adversary_weight():
            guess = self.adversary(codes, place, weight)
            loss = distance + guess
            self.guess = moving_average(self.guess, float(guess.detach()))
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.network.parameters(), self.config.training.gradient_norm)
        self.optimiser.step()
        self.check_finite("loss", loss)
        self.loss = moving_average(self.loss, float(distance.detach()))
        self.step += 1

    def _speaker_noise(self, batch: Batch) -> Tensor:
        rng = make_rng(self.seed, "nsf-speaker-noise", str(self.step))
        noise = rng.standard_normal(batch.xvectors.shape, dtype=np.float32)
        return torch.from_numpy(noise * np.float32(self.config.augmentation.xvector_noise))

    def _adversary_weight(self) -> float:
        """By how much the gradient counts at this step."""
        grown = min(1.0, self.step / max(1.0, 0.2 * self.config.training.steps))
        return self.config.augmentation.adversary * grown

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
    """Train on `audio` and what `pool` knows of it.

    `out` gets valid_loss.tsv, checkpoints/, synthesiser.yaml; final.pt last.
    """

    def begin(training: TrainingAudio, voices: Voices) -> Trainer:
        xvectors = np.stack([voices.xvectors[speaker] for speaker in training.speakers])
        return Trainer(config, seed, device, xvectors)

    run_training(Run(config, audio, pool, out, seed, device), begin)
