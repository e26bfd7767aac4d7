# SPDX-License-Identifier: Apache-2.0
"""Training batches of a speaker encoder, each a function of (seed, step) alone."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from steps.audio import SAMPLE_RATE
from steps.learning.audio import TrainingAudio
from steps.speaker.augmentation import augment, change_speed, mask_features
from steps.speaker.config import EncoderConfig
from steps.speaker.features import Features
from utils.arrays import Float32
from utils.seeds import make_rng


@dataclass(frozen=True)
class Batch:
    """features: (B, T, D) float32, of kind hub samples (B, n); classes: (B,) int64."""

    features: npt.NDArray[np.float32]
    classes: npt.NDArray[np.int64]


class BatchMaker:
    """Maker of a step's batch. Classes are speaker x speed: speaker * n_speeds + speed."""

    def __init__(self, audio: TrainingAudio, config: EncoderConfig, seed: int) -> None:
        self.audio = audio
        self.config = config
        self.seed = seed
        self.features = Features(config.features)
        self._shares = [
            np.cumsum([audio.lengths[utt] for utt in utts]) for utts in audio.spk2utt.values()
        ]

    @property
    def n_classes(self) -> int:
        """Number of classes: speakers times speeds."""
        return len(self.audio.speakers) * len(self.config.augmentation.speeds)

    def __call__(self, step: int) -> Batch:
        """Batch of step 0, 1, ..."""
        rng = make_rng(self.seed, "encoder-batch", str(step))
        config = self.config
        n_samples = int(rng.uniform(*config.training.crop_seconds) * SAMPLE_RATE)
        classes = self._classes(step)
        crops = np.stack([self._crop(rng, int(c), n_samples) for c in classes])
        features = self.features(torch.from_numpy(crops)).numpy()
        if not self.features.passes:
            mask_features(rng, features, config.augmentation)
        return Batch(features, classes)

    def _classes(self, step: int) -> npt.NDArray[np.int64]:
        """Every class once, in an order drawn for each round; then the next round."""
        batch, n_classes = self.config.training.batch, self.n_classes
        places = np.arange(step * batch, (step + 1) * batch)
        rounds = {int(r): self._round(int(r)) for r in np.unique(places // n_classes)}
        return np.array([rounds[p // n_classes][p % n_classes] for p in places.tolist()])

    def _round(self, number: int) -> npt.NDArray[np.int64]:
        rng = make_rng(self.seed, "encoder-round", str(number))
        return rng.permutation(self.n_classes).astype(np.int64)

    def _crop(self, rng: np.random.Generator, chosen: int, n_samples: int) -> Float32:
        speeds = self.config.augmentation.speeds
        speaker, speed = divmod(chosen, len(speeds))
        n_read = int(np.ceil(n_samples * speeds[speed])) + 1
        crop = change_speed(self._draw(rng, speaker, n_read), speeds[speed], n_samples)
        n_speakers = len(self.audio.speakers)
        return augment(
            rng,
            crop,
            self.config.augmentation,
            lambda: self._draw(rng, int(rng.integers(n_speakers)), n_samples),
        )

    def _draw(self, rng: np.random.Generator, speaker: int, n_samples: int) -> Float32:
        """Draw a random stretch of a speaker's speech; longer utterances are drawn more often."""
        utts = self.audio.spk2utt[self.audio.speakers[speaker]]
        shares = self._shares[speaker]
        utt = utts[int(np.searchsorted(shares, rng.integers(shares[-1]), side="right"))]
        spare = self.audio.lengths[utt] - n_samples
        start = int(rng.integers(spare + 1)) if spare > 0 else 0
        return self.audio.read(utt, start, n_samples)
