# SPDX-License-Identifier: Apache-2.0
"""Training of HiFi-GAN on a recogniser's content: every utterance in its own voice."""

from pathlib import Path

import torch
from torch import Tensor

from steps.learning.audio import TrainingAudio
from steps.learning.loop import learning_rate, set_rate
from steps.synthesis.adversarial import Adversarial
from steps.synthesis.bn_training import MELODY_WEIGHT, ContentTrainer, Crops, train_on_content
from steps.synthesis.discriminators import Discriminators
from steps.synthesis.hifigan import Hifigan
from steps.synthesis.hifigan_config import HifiganConfig
from steps.synthesis.spectral_loss import SpectralLoss
from utils.seeds import derive_seed
from utils.tables import StrPath


class HifiganTrainer(Adversarial, ContentTrainer):
    """Training of HiFi-GAN with discriminators; see `loop.Trainer`. loss: log-mel, nepers."""

    kind = Hifigan
    signals = True

    def prepare(self) -> None:
        """See ContentTrainer."""
        self.gradient_norm = self.plan.gradient_norm
        torch.manual_seed(derive_seed(self.seed, "hifigan-weights") % 2**63)
        self.discriminators = Discriminators(self.config.discriminators).to(self.device)
        self.spectral = SpectralLoss().to(self.device).log_mel_distance
        self.optimiser, self.opponent = (
            torch.optim.AdamW(
                network.parameters(),
                self.plan.learning_rate,
                betas=(0.8, 0.99),
                weight_decay=self.plan.weight_decay,
            )
            for network in (self.network, self.discriminators)
        )

    def update(self, step: int, batch: Crops) -> dict[str, float]:
        """See Trainer."""
        self.network.train()
        for optimiser in (self.optimiser, self.opponent):
            set_rate(optimiser, learning_rate(self.plan, step))
        melody: Tensor | None = None
        if self.network.melody is not None:
            melody = self.off_melody(batch)
        more = 0.0 if melody is None else MELODY_WEIGHT * melody
        figures = self.play(self._made(batch), batch.signals.to(self.device), more)
        return figures if melody is None else {**figures, "melody": float(melody.detach())}

    def distance_on(self, batch: Crops) -> Tensor:
        """See ContentTrainer: log-mel, in nepers."""
        return self.spectral(self._made(batch), batch.signals.to(self.device))

    def _made(self, batch: Crops) -> Tensor:
        signals: Tensor = self.network(batch.inputs.to(self.device), batch.xvectors.to(self.device))
        return signals


def train_hifigan(
    config: HifiganConfig,
    audio: TrainingAudio,
    pool: StrPath,
    out: Path,
    *,
    seed: int,
    device: str = "cpu",
    content: StrPath | None = None,
) -> None:
    """Train as `bn_training.train_bn` does."""
    train_on_content(HifiganTrainer, config, audio, pool, out, seed, device, content)
