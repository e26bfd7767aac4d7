# SPDX-License-Identifier: Apache-2.0
"""Training of a synthesiser of any structure: every utterance is said again in its own voice.

All that is random is a function of (seed, step), so a run that was stopped and resumed ends with
the same network, to the bit, on the same machine.
"""

import hashlib
import json
import logging
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from steps.speaker.averaging import read_xvectors
from steps.speaker.checkpoints import Checkpoints, save_atomically
from steps.speaker.corpus import TrainingAudio, hold_out
from steps.speaker.encoders import check_device
from steps.synthesis.b1b_config import B1bConfig, B1bTraining
from steps.synthesis.content import draw_warp, extract_content
from steps.synthesis.nsf import pulse_train
from steps.synthesis.nsf_config import NsfConfig, TrainingConfig, to_plain, write_config
from steps.synthesis.trained import FULL_LEVEL, Float32, unit_length
from steps.synthesis.world import HOP, unpack
from utils.archives import ObjectReader
from utils.cli import UserError
from utils.seeds import make_rng
from utils.tables import StrPath, atomic_write

Config = NsfConfig | B1bConfig

LOG_EVERY = 50
VALID_HEADER = "#step\tseconds_cpu\ttrain_loss\tvalid_log_mel\n"
_VALID_CROPS = 2  # a held-out speaker


@dataclass(frozen=True)
class Voices:
    """What a pool knows of speakers: WORLD frames by utterance, unit x-vectors by speaker."""

    frames: ObjectReader
    xvectors: dict[str, Float32]

    @classmethod
    def load(cls, folder: StrPath, audio: TrainingAudio) -> "Voices":
        """Of a pool; UserError where it lacks a speaker or an utterance of the audio."""
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


@dataclass(frozen=True)
class Batch:
    """B crops of T frames and n = 160 (T - 1) samples, as `nsf.render` wants them.

    xvectors are of length 1 and without noise; right: (B, n) what should come out.
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
    """Makes the batch of a step: speakers in turn, an utterance and a place in it at random."""

    def __init__(self, audio: TrainingAudio, voices: Voices, config: Config, seed: int) -> None:
        self.audio, self.voices, self.config, self.seed = audio, voices, config, seed
        self.n_frames = round(config.training.crop_seconds * 100)

    def __call__(self, step: int) -> Batch:
        """The batch of step 0, 1, ..."""
        rng = make_rng(self.seed, "nsf-batch", str(step))
        return stack([self.crop(rng, speaker, warp=True) for speaker in self._speakers(step)])

    def _speakers(self, step: int) -> list[str]:
        """Every speaker once, in an order drawn for each round; then the next round."""
        batch, speakers = self.config.training.batch, self.audio.speakers
        chosen = []
        for place in range(step * batch, (step + 1) * batch):
            turn, rank = divmod(place, len(speakers))
            order = make_rng(self.seed, "nsf-round", str(turn)).permutation(len(speakers))
            chosen.append(speakers[order[rank]])
        return chosen

    def crop(self, rng: np.random.Generator, speaker: str, *, warp: bool) -> Batch:
        """One crop (B = 1) of a speaker; where the utterance ends, silence follows."""
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


def stack(batches: list[Batch]) -> Batch:
    """Several as one."""
    return Batch(
        *(np.concatenate(x) for x in zip(*(vars(b).values() for b in batches), strict=True))
    )


@dataclass
class AnyTrainer(ABC):
    """The state of a training of any structure; `step` is the next one.

    Moving averages: `loss`, of the spectra, and `guess`, of who works against the network.
    `restore` takes what `state` gave.
    """

    saved: ClassVar[tuple[str, ...]]  # the attributes that have a state

    config: Any
    seed: int
    device: str
    network: Any = field(init=False, repr=False)  # an nn.Module with n_xvector
    step: int = field(default=0, kw_only=True)
    loss: float = field(default=math.nan, kw_only=True)
    guess: float = field(default=math.nan, kw_only=True)
    cpu_seconds: float = field(default=0.0, kw_only=True)  # of this process, over all runs
    curve: list[tuple[int, float, float, float]] = field(default_factory=list, kw_only=True)

    @abstractmethod
    def update(self, batch: Batch) -> None:
        """One step."""

    @abstractmethod
    def distance_on(self, batch: Batch) -> float:
        """Log-mel distance of what the network makes of a batch, in nepers."""

    @torch.no_grad()
    def validate(self, batch: Batch) -> float:
        """`distance_on` held-out speakers; notes it in the curve."""
        self.network.eval()
        distance = self.distance_on(batch)
        self.curve.append((self.step, self.cpu_seconds, self.loss, distance))
        return distance

    def check_finite(self, what: str, loss: Tensor) -> None:
        """FloatingPointError where a training has lost its way."""
        if not math.isfinite(float(loss.detach())):
            raise FloatingPointError(f"the {what} is {float(loss.detach())} at step {self.step}")

    def state(self) -> dict[str, Any]:
        """All that a resumed run needs."""
        return {name: getattr(self, name).state_dict() for name in self.saved} | {
            "progress": {
                "step": self.step,
                "loss": self.loss,
                "guess": self.guess,
                "cpu_seconds": self.cpu_seconds,
                "curve": [list(point) for point in self.curve],
            },
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        for name in self.saved:
            getattr(self, name).load_state_dict(state[name])
        progress = state["progress"]
        self.step, self.loss, self.guess = progress["step"], progress["loss"], progress["guess"]
        self.cpu_seconds = progress["cpu_seconds"]
        self.curve = [tuple(point) for point in progress["curve"]]


def moving_average(old: float, new: float) -> float:
    """Of a figure of each step; NaN before the first."""
    return new if math.isnan(old) else 0.98 * old + 0.02 * new


def identity(config: Config, audio: TrainingAudio, voices: Voices, seed: int) -> str:
    """Digest of what fixes a training: settings, seed, utterances with lengths, x-vectors."""
    parts = [to_plain(config), seed, audio.spk2utt, audio.lengths]
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode())
    for speaker in audio.speakers:
        digest.update(voices.xvectors[speaker].tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Run:
    """What is trained on what; see `train_nsf`."""

    config: Config
    audio: TrainingAudio
    pool: StrPath
    out: Path
    seed: int
    device: str


def run_training(run: Run, begin: Callable[[TrainingAudio, Voices], AnyTrainer]) -> None:
    """The training of any structure, from its last checkpoint on.

    begin: makes the trainer, at step 0, of the audio that is not held out.
    """
    torch.set_num_threads(1)
    check_device(run.device)
    config = run.config
    voices = Voices.load(run.pool, run.audio)
    training, held = hold_out(run.audio, config.training.valid_speakers, run.seed)
    make = BatchMaker(training, voices, config, run.seed)
    valid = _validation_batch(BatchMaker(run.audio, voices, config, run.seed), held)
    trainer = begin(training, voices)
    n_parameters = sum(p.numel() for p in trainer.network.parameters())
    logging.info(
        "training on %d speakers, %.2f h; validation on %d others: %s",
        len(training.speakers),
        training.seconds / 3600,
        len(held),
        " ".join(held) or "none",
    )
    logging.info("network: %.2f M parameters on %s", n_parameters / 1e6, run.device)
    checkpoints = Checkpoints(
        run.out / "checkpoints",
        identity(config, run.audio, voices, run.seed),
        config.training.keep_checkpoints,
    )
    if (state := checkpoints.load_last()) is not None:
        trainer.restore(state)
        logging.info("resumed at step %d", trainer.step)
    (run.out / "final.pt").unlink(missing_ok=True)
    _take_steps(trainer, config.training, make, valid, checkpoints, run.out)
    _finish(trainer, run, training, n_parameters)


def _validation_batch(make: BatchMaker, held: list[str]) -> Batch | None:
    rng = make_rng(make.seed, "nsf-validation")
    crops = [make.crop(rng, speaker, warp=False) for speaker in held for _ in range(_VALID_CROPS)]
    return stack(crops) if crops else None


def _take_steps(
    trainer: AnyTrainer,
    plan: TrainingConfig | B1bTraining,
    make: BatchMaker,
    valid: Batch | None,
    checkpoints: Checkpoints,
    out: Path,
) -> None:
    started, first = time.monotonic(), trainer.step
    cpu_before, cpu_started = trainer.cpu_seconds, time.process_time()
    while trainer.step < plan.steps:
        trainer.update(make(trainer.step))
        trainer.cpu_seconds = cpu_before + time.process_time() - cpu_started
        last = trainer.step == plan.steps
        if trainer.step % LOG_EVERY == 0 or last:
            _report_progress(trainer, plan.steps, first, time.monotonic() - started)
        if valid is not None and (trainer.step % plan.valid_every == 0 or last):
            distance = trainer.validate(valid)
            logging.info("step %d: validation log-mel distance %.3f", trainer.step, distance)
            _write_curve(trainer, out)
        if trainer.step % plan.checkpoint_every == 0 or last:
            checkpoints.save(trainer.step, trainer.state())


def _report_progress(trainer: AnyTrainer, n_steps: int, first: int, seconds: float) -> None:
    speed = (trainer.step - first) / seconds
    logging.info(
        "step %d of %d, loss %.3f%s, %.2f steps/s, %.0f s left",
        trainer.step,
        n_steps,
        trainer.loss,
        "" if math.isnan(trainer.guess) else f", adversary {trainer.guess:.3f}",
        speed,
        (n_steps - trainer.step) / speed,
    )


def _write_curve(trainer: AnyTrainer, out: Path) -> None:
    with atomic_write(out / "valid_loss.tsv") as stream:
        stream.write(VALID_HEADER)
        stream.writelines(
            f"{step}\t{cpu:.1f}\t{loss:.4f}\t{distance:.4f}\n"
            for step, cpu, loss, distance in trainer.curve
        )


def _finish(trainer: AnyTrainer, run: Run, audio: TrainingAudio, n_parameters: int) -> None:
    trained = {
        "step": trainer.step,
        "seed": trainer.seed,
        "speakers": len(audio.speakers),
        "hours": round(audio.seconds / 3600, 3),
        "parameters": n_parameters,
        "xvector_dimensions": trainer.network.n_xvector,
        "device": trainer.device,
    }
    write_config(run.out / "synthesiser.yaml", run.config, trained=trained)
    weights = {name: value.cpu() for name, value in trainer.network.state_dict().items()}
    save_atomically(run.out / "final.pt", weights)
    logging.info("done: %s (%.1f s of CPU time)", run.out / "final.pt", trainer.cpu_seconds)
