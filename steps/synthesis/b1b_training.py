# SPDX-License-Identifier: Apache-2.0
"""Training of B1.b's structure against discriminators, on the crops of the small source-filter."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from steps.learning.audio import TrainingAudio
from steps.synthesis.adversarial import Adversarial
from steps.synthesis.b1b import B1bNetwork, input_statistics, make_sources
from steps.synthesis.b1b_config import B1bConfig
from steps.synthesis.content import extract_content
from steps.synthesis.discriminators import Discriminators
from steps.synthesis.spectral_loss import LogPowerLoss, SpectralLoss
from steps.synthesis.training import (
    AnyTrainer,
    Batch,
    BatchMaker,
    Run,
    Voices,
    run_training,
)
from steps.synthesis.world import unpack
from utils.arrays import Float32, Float64
from utils.seeds import derive_seed, make_rng
from utils.tables import StrPath


@dataclass
class B1bTrainer(Adversarial, AnyTrainer):
    """B1.b's structure under training. statistics: of the network's inputs
    (`b1b.input_statistics`)."""

    n_xvector: int
    statistics: tuple[Float64, Float64]

    def __post_init__(self) -> None:
        torch.manual_seed(derive_seed(self.seed, "b1b-weights") % 2**63)
        config = self.config
        self.plan = config.training
        self.network = B1bNetwork(config.network, 1 + config.cepstra, self.n_xvector)
        self.network.set_statistics(*self.statistics)
        self.network.to(self.device)
        self.discriminators = Discriminators(config.discriminators).to(self.device)
        rate = config.training.learning_rate
        self.optimiser = torch.optim.Adam(self.network.parameters(), rate)
        self.opponent = torch.optim.Adam(self.discriminators.parameters(), rate)
        self.spectral = LogPowerLoss()
        self.distance = SpectralLoss().to(self.device)

    def update(self, step: int, batch: Batch) -> dict[str, float]:
        """See Trainer. loss: the distance of log power spectra."""
        self.network.train()
        right = torch.from_numpy(batch.right).to(self.device)
        return self.play(self.say(batch, f"step {step}"), right)

    def say(self, batch: Batch, purpose: str) -> Tensor:
        """Signals (B, n) of a batch, without the last frame of a crop, which begins where the crop
        ends. purpose: seeds phases and noise."""
        n_harmonics = self.config.network.harmonics
        sources = [
            make_sources(f0[:-1], n_harmonics, make_rng(self.seed, "b1b-source", purpose, str(i)))
            for i, f0 in enumerate(batch.f0)
        ]
        excitation, noise = (np.stack(part) for part in zip(*sources, strict=True))
        parts = (batch.content[:, :-1], batch.f0[:, :-1], batch.xvectors, excitation, noise)
        signals: Tensor = self.network(*(torch.from_numpy(x).to(self.device) for x in parts))
        return signals

    def distance_on(self, batch: Batch) -> float:
        """See AnyTrainer."""
        made = self.say(batch, "validation")
        right = torch.from_numpy(batch.right).to(self.device)
        return float(self.distance.log_mel_distance(made, right))


def training_frames(
    audio: TrainingAudio, voices: Voices, n_cepstra: int
) -> Iterator[tuple[Float32, Float32, Float32]]:
    """Content (T, n), F0 (T,) and x-vector (d,) of each utterance in turn, not bent."""
    for speaker, utts in audio.spk2utt.items():
        for utt in utts:
            frames = unpack(voices.frames.matrix(utt))
            content = extract_content(frames.envelope, n_cepstra)
            yield content.features, frames.f0.astype(np.float32), voices.xvectors[speaker]


def train_b1b(
    config: B1bConfig,
    audio: TrainingAudio,
    pool: StrPath,
    out: Path,
    *,
    seed: int,
    device: str = "cpu",
) -> None:
    """Train on `audio` and its data in `pool`; writes the files of `nsf_training.train_nsf`."""

    def begin(make: BatchMaker, valid: Batch | None) -> B1bTrainer:
        statistics = input_statistics(training_frames(make.audio, make.voices, config.cepstra))
        n_xvector = len(make.voices.xvectors[audio.speakers[0]])
        return B1bTrainer(config, seed, device, make, valid, n_xvector, statistics)

    run_training(Run(config, audio, pool, out, seed, device), begin)
