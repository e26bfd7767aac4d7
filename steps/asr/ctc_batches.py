# SPDX-License-Identifier: Apache-2.0
"""Training batches of the CTC recogniser, each a function of (seed, step) alone."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from steps.asr.ctc_config import CtcConfig
from steps.asr.ctc_units import frames_needed
from steps.asr.signal import PADDING, condition
from steps.audio import SAMPLE_RATE
from steps.learning.audio import TrainingAudio
from steps.speaker.augmentation import augment, change_speed, mask_features
from steps.speaker.features import Features
from utils.arrays import Float32
from utils.seeds import make_rng

_SPREAD = 0.2  # utterances whose lengths differ by up to so much may change places when sorted


@dataclass(frozen=True)
class Batch:
    """features: (B, T, D), zero after each end; n_frames: (B,); targets: (B, longest), 0 beyond."""

    features: torch.Tensor
    n_frames: torch.Tensor
    targets: torch.Tensor
    n_targets: torch.Tensor


def stack(features: list[Float32], targets: list[list[int]]) -> Batch:
    """Join signals (T, D) and their targets to one batch."""
    return Batch(
        torch.nn.utils.rnn.pad_sequence([torch.from_numpy(f) for f in features], batch_first=True),
        torch.tensor([len(f) for f in features]),
        torch.nn.utils.rnn.pad_sequence([torch.tensor(t) for t in targets], batch_first=True),
        torch.tensor([len(t) for t in targets]),
    )


def n_out(n_samples: float, stride: int) -> int:
    """Frames of the network for so many samples, before padding."""
    n_frames = 1 + int(n_samples + 2 * round(PADDING * SAMPLE_RATE)) // 160
    return (n_frames - 1) // stride + 1


class BatchMaker:
    """Maker of a step's batch: utterances of similar length; every one once in a round."""

    def __init__(
        self,
        audio: TrainingAudio,
        targets: Mapping[str, list[int]],
        config: CtcConfig,
        seed: int,
    ) -> None:
        self.audio = audio
        self.targets = targets
        self.config = config
        self.seed = seed
        self.features = Features(config.features)
        self._utts = [utt for utts in audio.spk2utt.values() for utt in utts]
        self._round: tuple[int, list[list[str]]] = (-1, [])

    @property
    def per_round(self) -> int:
        """Number of batches in which every utterance is once."""
        return -(-len(self._utts) // self.config.training.batch)

    def __call__(self, step: int) -> Batch:
        """Batch of step 0, 1, ..."""
        number, place = divmod(step, self.per_round)
        if self._round[0] != number:
            self._round = number, self._draw_round(number)
        utts = self._round[1][place]
        return stack([self.augmented(u, number) for u in utts], [self.targets[u] for u in utts])

    def _draw_round(self, number: int) -> list[list[str]]:
        rng = make_rng(self.seed, "ctc-round", str(number))
        factors = rng.uniform(1 - _SPREAD, 1 + _SPREAD, len(self._utts))
        keys = [self.audio.lengths[u] * f for u, f in zip(self._utts, factors, strict=True)]
        order = [self._utts[i] for i in np.argsort(keys, kind="stable")]
        size = self.config.training.batch
        batches = [order[i : i + size] for i in range(0, len(order), size)]
        return [batches[i] for i in rng.permutation(len(batches))]

    def augmented(self, utt: str, number: int) -> Float32:
        """Features (T, D) of an utterance, augmented for a round."""
        rng = make_rng(self.seed, "ctc-utterance", str(number), utt)
        samples = self.audio.read(utt, 0, self.audio.lengths[utt])
        speeds = fitting_speeds(self.targets[utt], len(samples), self.config)
        samples = change_speed(samples, float(rng.choice(speeds)), len(samples) * 2)
        utts = self._utts
        samples = augment(
            rng,
            samples,
            self.config.augmentation,
            lambda: self.audio.read(utts[int(rng.integers(len(utts)))], 0, len(samples)),
        )
        features = self.clean(utt, samples)[None].copy()
        mask_features(rng, features, self.config.augmentation)
        found: Float32 = features[0]
        return found

    def clean(self, utt: str, samples: Float32) -> Float32:
        """Features (T, D) of a signal."""
        return compute_features(self.features, utt, samples)


def compute_features(features: Features, utt: str, samples: npt.NDArray[np.floating]) -> Float32:
    """Features (T, D) of a signal (n,); of digital silence, those of dither alone."""
    heard = condition(utt, samples)
    if heard is None:
        heard = np.zeros(len(samples) + 2 * round(PADDING * SAMPLE_RATE))
    found: Float32 = features(torch.from_numpy(heard.astype(np.float32))[None])[0].numpy()
    return found


def fitting_speeds(target: list[int], n_samples: int, config: CtcConfig) -> list[float]:
    """Speeds at which a signal is long enough for its target."""
    needed, stride = frames_needed(target), config.network.stride
    speeds = config.augmentation.speeds
    return [speed for speed in speeds if n_out(n_samples / speed, stride) >= needed]
