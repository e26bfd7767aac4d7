# SPDX-License-Identifier: Apache-2.0
"""Training batches, each a function of (seed, step) alone, made ahead by worker processes.

So a run that was stopped and resumed sees the same batches as one that was not, and their order
does not depend on the number of workers.
"""

import multiprocessing
import os
import queue
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch

from steps.audio import SAMPLE_RATE
from steps.speaker.augmentation import Samples, augment, change_speed, mask_features
from steps.speaker.config import EncoderConfig
from steps.speaker.corpus import TrainingAudio
from steps.speaker.features import Features
from utils.seeds import make_rng

_AHEAD = 4  # batches a worker makes ahead
_PATIENCE = 5.0  # seconds between looks at whether the other process still lives


@dataclass(frozen=True)
class Batch:
    """features: (B, T, D) float32; classes: (B,) int64."""

    features: npt.NDArray[np.float32]
    classes: npt.NDArray[np.int64]


class BatchMaker:
    """Makes the batch of a step. Classes are speaker x speed: speaker * n_speeds + speed."""

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
        """Speakers times speeds."""
        return len(self.audio.speakers) * len(self.config.augmentation.speeds)

    def __call__(self, step: int) -> Batch:
        """The batch of step 0, 1, ..."""
        rng = make_rng(self.seed, "encoder-batch", str(step))
        config = self.config
        n_samples = int(rng.uniform(*config.training.crop_seconds) * SAMPLE_RATE)
        classes = self._classes(step)
        crops = np.stack([self._crop(rng, int(c), n_samples) for c in classes])
        features = self.features(torch.from_numpy(crops)).numpy()
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

    def _crop(self, rng: np.random.Generator, chosen: int, n_samples: int) -> Samples:
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

    def _draw(self, rng: np.random.Generator, speaker: int, n_samples: int) -> Samples:
        """A random stretch of a speaker's speech; longer utterances are drawn more often."""
        utts = self.audio.spk2utt[self.audio.speakers[speaker]]
        shares = self._shares[speaker]
        utt = utts[int(np.searchsorted(shares, rng.integers(shares[-1]), side="right"))]
        spare = self.audio.lengths[utt] - n_samples
        start = int(rng.integers(spare + 1)) if spare > 0 else 0
        return self.audio.read(utt, start, n_samples)


def _work(make: Callable[[int], Batch], steps: range, outbox: Any, parent: int) -> None:
    torch.set_num_threads(1)
    try:
        for step in steps:
            _put(outbox, make(step), parent)
    except Exception:
        _put(outbox, traceback.format_exc(), parent)


def _put(outbox: Any, item: object, parent: int) -> None:
    while os.getppid() == parent:
        try:
            outbox.put(item, timeout=_PATIENCE)
            return
        except queue.Full:
            continue
    os._exit(1)  # the training was killed; nobody will read


class Prefetcher:
    """The batches of some steps in order, made by `n_workers` processes (0: in this one)."""

    def __init__(self, make: Callable[[int], Batch], steps: range, n_workers: int = 1) -> None:
        self._make = make
        self._steps = steps
        # fork: the workers share the decoded audio with this process instead of copying it
        context = multiprocessing.get_context("fork")
        self._boxes = [context.Queue(_AHEAD) for _ in range(n_workers)]
        self._workers = [
            context.Process(
                target=_work,
                args=(make, steps[i::n_workers], box, os.getpid()),
                daemon=True,
            )
            for i, box in enumerate(self._boxes)
        ]

    def __enter__(self) -> Self:
        for worker in self._workers:
            worker.start()
        return self

    def get(self, step: int) -> Batch:
        """The batch of the next step; steps must be asked for in order."""
        if not self._workers:
            return self._make(step)
        place = (step - self._steps.start) % len(self._workers)
        while True:
            try:
                item = self._boxes[place].get(timeout=_PATIENCE)
                break
            except queue.Empty:
                if not self._workers[place].is_alive():
                    raise RuntimeError("the process that makes batches died") from None
        if not isinstance(item, Batch):
            raise RuntimeError(f"the process that makes batches failed:\n{item}")
        return item

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for worker in self._workers:
            worker.terminate()
            worker.join()
