# SPDX-License-Identifier: Apache-2.0
"""Training of a synthesiser of any structure: every utterance is resynthesised in its own voice."""

import logging
import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from steps.learning.audio import TrainingAudio, hold_out
from steps.learning.devices import check_device
from steps.learning.loop import Trainer, train
from steps.learning.settings import identity
from steps.speaker.averaging import read_xvectors
from steps.synthesis.b1b_config import B1bConfig
from steps.synthesis.content import draw_warp, extract_content
from steps.synthesis.nsf import pulse_train
from steps.synthesis.nsf_config import NsfConfig
from steps.synthesis.trained import FULL_LEVEL, unit_length
from steps.synthesis.world import HOP, unpack
from utils.archives import ObjectReader
from utils.arrays import Float32
from utils.cli import UserError
from utils.seeds import make_rng
from utils.settings import to_plain
from utils.tables import StrPath

Config = NsfConfig | B1bConfig

_VALID_CROPS = 2  # crops of a held-out speaker


@dataclass(frozen=True)
class Voices:
    """Speaker data of a pool: WORLD frames by utterance, unit x-vectors by speaker."""

    frames: ObjectReader
    xvectors: dict[str, Float32]

    @classmethod
    def load(cls, folder: StrPath, audio: TrainingAudio) -> "Voices":
        """Voices of a pool; UserError where it lacks a speaker or an utterance of the audio."""
        path = Path(folder) / "world.scp"
        if not path.is_file():
            raise UserError(f"{path}: is missing; make it with steps/make_voice_pool.py")
        frames = ObjectReader(path)
        xvectors = read_xvectors(folder, "spk_xvector")
        for speaker, utts in audio.spk2utt.items():
            if speaker not in xvectors:
                raise UserError(f"{Path(folder) / 'spk_xvector.scp'}: {speaker} is not in it")
            if missing := [utt for utt in utts if utt not in frames]:
                raise UserError(f"{path}: {missing[0]} is not in it; make the pool of this data")
        unit = {speaker: unit_length(xvectors[speaker]) for speaker in audio.speakers}
        return cls(frames, unit)

    def matrix(self, speakers: Sequence[str]) -> Float32:
        """Unit x-vectors (S, d) of some speakers."""
        return np.stack([self.xvectors[speaker] for speaker in speakers])


@dataclass(frozen=True)
class Batch:
    """Batch of B crops of T frames and n = 160 (T - 1) samples, for `nsf.render`.

    xvectors are of length 1 and without noise; right: (B, n) target signals.
    """

    content: Float32
    f0: Float32
    xvectors: Float32
    pulses: Float32
    noise: Float32
    gate: Float32
    right: Float32

    def to(self, device: str) -> dict[str, Tensor]:
        """Tensors by name."""
        return {name: torch.from_numpy(x).to(device) for name, x in vars(self).items()}


class BatchMaker:
    """Maker of each step's batch: speakers in turn, from a random place in a random utterance."""

    def __init__(self, audio: TrainingAudio, voices: Voices, config: Config, seed: int) -> None:
        self.audio, self.voices, self.config, self.seed = audio, voices, config, seed
        self.n_frames = round(config.training.crop_seconds * 100)

    def __call__(self, step: int) -> Batch:
        """Batch of step 0, 1, ..."""
        rng = make_rng(self.seed, "nsf-batch", str(step))
        n, of = self.config.training.batch, self.audio.speakers
        turn = speakers_in_turn(of, n, step, self.seed, "nsf-round")
        return stack([self.crop(rng, speaker, warp=True) for speaker in turn])

    def crop(self, rng: np.random.Generator, speaker: str, *, warp: bool) -> Batch:
        """One crop (B = 1) of a speaker, filled up with silence after the utterance's end."""
        utts = self.audio.spk2utt[speaker]
        utt = utts[int(rng.integers(len(utts)))]
        frames = unpack(self.voices.frames.matrix(utt))
        augment = self.config.augmentation
        bent = draw_warp(rng, augment.scale, augment.bend) if warp else None
        content = extract_content(frames.envelope, self.config.cepstra, bent)
        spare = len(frames) - 1 - self.n_frames
        start = int(rng.integers(spare + 1)) if spare > 0 else 0
        part = slice(start, min(start + self.n_frames + 1, len(frames)))
        pad = self.n_frames + 1 - (part.stop - start)
        n_samples = self.n_frames * HOP
        known = min(n_samples, self.audio.lengths[utt] - start * HOP)
        right = np.zeros(n_samples, np.float32)
        right[:known] = self.audio.read(utt, start * HOP, known)
        right *= np.float32(FULL_LEVEL * math.exp(-content.level / 2))
        f0 = np.pad(frames.f0[part], (0, pad))
        pulses = pulse_train(f0, n_samples, rng.uniform(0, 2 * np.pi))
        return Batch(
            np.pad(content.features[part], ((0, pad), (0, 0)))[None],
            f0.astype(np.float32)[None],
            self.voices.xvectors[speaker][None],
            pulses.astype(np.float32)[None],
            rng.standard_normal(n_samples, dtype=np.float32)[None],
            np.pad(content.gate[part], (0, pad))[None],
            right[None],
        )


def speakers_in_turn(
    speakers: Sequence[str], n: int, step: int, seed: int, purpose: str
) -> list[str]:
    """Speakers (n) of a step: every speaker once, in an order drawn for each round, then the next
    round. purpose: seeds the draw."""
    chosen = []
    for place in range(step * n, (step + 1) * n):
        turn, rank = divmod(place, len(speakers))
        order = make_rng(seed, purpose, str(turn)).permutation(len(speakers))
        chosen.append(speakers[order[rank]])
    return chosen


def stack(batches: list[Batch]) -> Batch:
    """Join several batches to one."""
    return Batch(
        *(np.concatenate(x) for x in zip(*(vars(b).values() for b in batches), strict=True))
    )


@dataclass
class AnyTrainer(Trainer):
    """Training of a synthesiser of any structure on crops; valid: those of held-out speakers.

    The network has n_xvector, the values of its x-vectors.
    """

    config: Any
    seed: int
    device: str
    make: BatchMaker
    valid: Batch | None
    best_by = "valid_log_mel"

    def batch(self, step: int) -> Batch:
        """See Trainer."""
        return self.make(step)

    @abstractmethod
    def distance_on(self, batch: Batch) -> float:
        """Log-mel distance between the network's output and the target of a batch, in nepers."""

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """See Trainer."""
        if self.valid is None:
            return {}
        self.network.eval()
        distance = self.distance_on(self.valid)
        logging.info("validation log-mel distance %.3f", distance)
        return {"valid_log_mel": distance}


@dataclass(frozen=True)
class Run:
    """Inputs of a training; see `nsf_training.train_nsf`."""

    config: Config
    audio: TrainingAudio
    pool: StrPath
    out: Path
    seed: int
    device: str


def run_training(run: Run, begin: Callable[[BatchMaker, Batch | None], AnyTrainer]) -> None:
    """Train any structure, from its last checkpoint on.

    begin: makes the trainer, at step 0, from the crops of the training speakers and those of the
    held-out ones.
    """
    torch.set_num_threads(1)
    check_device(run.device)
    config, seed = run.config, run.seed
    voices = Voices.load(run.pool, run.audio)
    audio, held = hold_out(run.audio, config.training.valid_speakers, seed)
    valid = _validation_batch(BatchMaker(run.audio, voices, config, seed), held)
    trainer = begin(BatchMaker(audio, voices, config, seed), valid)
    settings = to_plain(config)
    xvectors = voices.matrix(run.audio.speakers).tobytes()
    parts = (seed, run.audio.spk2utt, run.audio.lengths, xvectors)
    train(trainer, run.out, identity(settings, *parts)).finish(
        "synthesiser.yaml",
        settings,
        speakers=len(audio.speakers),
        hours=round(audio.seconds / 3600, 3),
        xvector_dimensions=trainer.network.n_xvector,
    )


def _validation_batch(make: BatchMaker, held: list[str]) -> Batch | None:
    rng = make_rng(make.seed, "nsf-validation")
    crops = [make.crop(rng, speaker, warp=False) for speaker in held for _ in range(_VALID_CROPS)]
    return stack(crops) if crops else None
