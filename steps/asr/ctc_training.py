# SPDX-License-Identifier: Apache-2.0
"""Training of the CTC recogniser (Graves et al., ICML 2006): steps, checkpoints, validation.

All that is random is a function of (seed, step), so a run that was stopped and resumed ends with
the same network, to the bit, on the same machine.
"""

import hashlib
import json
import logging
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from rapidfuzz.distance import Levenshtein
from speechbrain.decoders.ctc import ctc_greedy_decode
from speechbrain.nnet.losses import ctc_loss
from torch import nn

from steps.asr.ctc_batches import Batch, BatchMaker, fitting_speeds
from steps.asr.ctc_config import CtcConfig, to_plain, write_config
from steps.asr.ctc_network import CtcNetwork
from steps.asr.ctc_units import Units
from steps.asr.text import normalise
from steps.speaker.checkpoints import Checkpoints, save_atomically
from steps.speaker.corpus import TrainingAudio, hold_out
from steps.speaker.encoders import check_device
from steps.speaker.networks import count_parameters
from utils.cli import UserError
from utils.seeds import derive_seed
from utils.tables import atomic_write

LOG_EVERY = 50
VALID_HEADER = "#step\tseconds_cpu\ttrain_loss\tvalid_character_errors\tvalid_word_errors\n"


@dataclass
class Trainer:
    """The state of a training; `step` is the next one, `loss` a moving average.

    curve: step, CPU seconds, loss, share of wrong characters and of wrong words in validation.
    """

    config: CtcConfig
    units: Units
    seed: int
    device: str
    step: int = 0
    loss: float = math.nan
    cpu_seconds: float = 0.0  # of this process, over all runs
    curve: list[tuple[int, float, float, float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        torch.manual_seed(derive_seed(self.seed, "ctc-weights") % 2**63)
        config = self.config.training
        self.network = make_network(self.config, self.units).to(self.device)
        self.optimiser = torch.optim.AdamW(
            self.network.parameters(), config.learning_rate, weight_decay=config.weight_decay
        )
        self.rate = torch.optim.lr_scheduler.OneCycleLR(
            self.optimiser, config.learning_rate, config.steps, pct_start=config.warm_up,
            cycle_momentum=False,
        )  # fmt: skip

    def update(self, batch: Batch) -> None:
        """One step."""
        torch.manual_seed(derive_seed(self.seed, "ctc-dropout", str(self.step)) % 2**63)
        self.network.train()
        loss = self._loss(batch)
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.network.parameters(), self.config.training.gradient_norm)
        self.optimiser.step()
        self.rate.step()
        value = float(loss.detach())
        if not math.isfinite(value):
            raise FloatingPointError(f"the loss is {value} at step {self.step}")
        self.loss = value if math.isnan(self.loss) else 0.98 * self.loss + 0.02 * value
        self.step += 1

    def _loss(self, batch: Batch) -> torch.Tensor:
        n_frames = batch.n_frames.to(self.device)
        written = self.network(batch.features.to(self.device), n_frames)
        left = self.network.frames(n_frames)
        n_targets = batch.n_targets.to(self.device)
        loss: torch.Tensor = ctc_loss(
            written,
            batch.targets.to(self.device),
            left / left.max(),
            n_targets / n_targets.max(),
            blank_index=0,
        )
        return loss

    def state(self) -> dict[str, Any]:
        """All that a resumed run needs."""
        return {
            "network": self.network.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "rate": self.rate.state_dict(),
            "progress": {
                "step": self.step,
                "loss": self.loss,
                "cpu_seconds": self.cpu_seconds,
                "curve": [list(point) for point in self.curve],
            },
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self.network.load_state_dict(state["network"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.rate.load_state_dict(state["rate"])
        progress = state["progress"]
        self.step, self.loss = progress["step"], progress["loss"]
        self.cpu_seconds = progress["cpu_seconds"]
        self.curve = [tuple(point) for point in progress["curve"]]


def make_network(config: CtcConfig, units: Units) -> CtcNetwork:
    """The network of some settings, with random weights."""
    return CtcNetwork(config.network, config.features.bins, len(units.tokens))


def write_greedily(network: CtcNetwork, units: Units, features: torch.Tensor) -> str:
    """The words of the most likely token of each frame; features: (1, T, D)."""
    written = network(features, torch.tensor([features.shape[1]], device=features.device))
    return units.decode(ctc_greedy_decode(written, torch.ones(1), blank_id=0)[0])


@dataclass(frozen=True)
class Material:
    """What is learnt from: audio, and what is said in each of its utterances."""

    audio: TrainingAudio
    texts: Mapping[str, str]


def select_usable(material: Material, config: CtcConfig) -> Material:
    """Without utterances that say nothing or more than their length allows, counted and named."""
    units = Units.of(config.units, material.texts.values())
    audio, left_out = material.audio, []
    for utt, n_samples in audio.lengths.items():
        target = units.encode(material.texts[utt])
        if not target or not fitting_speeds(target, n_samples, config):
            left_out.append(utt)
    if left_out:
        logging.warning(
            "%d of %d utterances left out, with no words or too short for them: %s",
            len(left_out),
            len(audio.lengths),
            " ".join(left_out[:10]),
        )
    out = set(left_out)
    spk2utt = {spk: [u for u in utts if u not in out] for spk, utts in audio.spk2utt.items()}
    spk2utt = {spk: utts for spk, utts in spk2utt.items() if utts}
    if not spk2utt:
        raise UserError("no training utterance has words; is text the transcript of the audio?")
    lengths = {utt: audio.lengths[utt] for utts in spk2utt.values() for utt in utts}
    kept = TrainingAudio(audio.wav, spk2utt, lengths, audio.cache, audio.speech_only)
    return Material(kept, {utt: material.texts[utt] for utt in lengths})


def train_ctc(
    config: CtcConfig, material: Material, out: Path, *, seed: int, device: str = "cpu"
) -> None:
    """Train; `out` gets valid_wer.tsv, checkpoints/, recogniser.yaml; final.pt last.

    UserError: nothing to learn from, or checkpoints of another training.
    """
    torch.set_num_threads(1)
    check_device(device)
    material = select_usable(material, config)
    units = Units.of(config.units, material.texts.values())
    training, held = hold_out(
        material.audio,
        config.training.valid_speakers,
        seed,
        share=config.training.valid_share,
    )
    targets = {utt: units.encode(text) for utt, text in material.texts.items()}
    make = BatchMaker(training, targets, config, seed)
    trainer = Trainer(config, units, seed, device)
    logging.info(
        "training on %d speakers, %.2f h, %d steps of which each round takes %d; "
        "validation on %d others: %s",
        len(training.speakers),
        training.seconds / 3600,
        config.training.steps,
        make.per_round,
        len(held),
        " ".join(held) or "none, the corpus has too few speakers",
    )
    logging.info(
        "network: %.2f M parameters, %d tokens: %s",
        count_parameters(trainer.network) / 1e6,
        len(units.tokens),
        " ".join(units.tokens),
    )
    checkpoints = Checkpoints(
        out / "checkpoints",
        identity(config, material, seed),
        config.training.keep_checkpoints,
    )
    if (state := checkpoints.load_last()) is not None:
        trainer.restore(state)
        logging.info("resumed at step %d", trainer.step)
    (out / "final.pt").unlink(missing_ok=True)
    valid = Material(material.audio.subset(held), material.texts)
    _run(trainer, make, valid, checkpoints, out)
    _finish(trainer, training, held, out)


def identity(config: CtcConfig, material: Material, seed: int) -> str:
    """Digest of what fixes a training: settings, seed, utterances with lengths, what they say."""
    audio = material.audio
    parts = [to_plain(config), seed, audio.spk2utt, audio.lengths, dict(material.texts)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _run(
    trainer: Trainer, make: BatchMaker, valid: Material, checkpoints: Checkpoints, out: Path
) -> None:
    config = trainer.config.training
    started, first = time.monotonic(), trainer.step
    cpu_before, cpu_started = trainer.cpu_seconds, time.process_time()
    while trainer.step < config.steps:
        trainer.update(make(trainer.step))
        trainer.cpu_seconds = cpu_before + time.process_time() - cpu_started
        last = trainer.step == config.steps
        if trainer.step % LOG_EVERY == 0 or last:
            speed = (trainer.step - first) / (time.monotonic() - started)
            logging.info(
                "step %d of %d, loss %.3f, %.2f steps/s, %.0f s left",
                trainer.step,
                config.steps,
                trainer.loss,
                speed,
                (config.steps - trainer.step) / speed,
            )
        if valid.audio.speakers and (trainer.step % config.valid_every == 0 or last):
            _validate(trainer, make, valid, out)
        if trainer.step % config.checkpoint_every == 0 or last:
            checkpoints.save(trainer.step, trainer.state())


@torch.no_grad()
def _validate(trainer: Trainer, make: BatchMaker, valid: Material, out: Path) -> None:
    """Greedy hypotheses of the speakers held out, without a lexicon."""
    trainer.network.eval()
    wrong, total = [0, 0], [0, 0]
    for utts in valid.audio.spk2utt.values():
        for utt in utts:
            samples = valid.audio.read(utt, 0, valid.audio.lengths[utt])
            features = torch.from_numpy(make.clean(utt, samples))[None].to(trainer.device)
            said = write_greedily(trainer.network, trainer.units, features)
            words, heard = normalise(valid.texts[utt]), said.split()
            for place, (true, found) in enumerate(((" ".join(words), said), (words, heard))):
                wrong[place] += Levenshtein.distance(true, found)
                total[place] += len(true)
    errors = wrong[0] / total[0], wrong[1] / total[1]
    trainer.curve.append((trainer.step, trainer.cpu_seconds, trainer.loss, *errors))
    logging.info(
        "step %d: validation: %.2f %% of the characters and %.2f %% of the words wrong (greedy)",
        trainer.step,
        100 * errors[0],
        100 * errors[1],
    )
    with atomic_write(out / "valid_wer.tsv") as stream:
        stream.write(VALID_HEADER)
        stream.writelines(
            f"{step}\t{cpu:.1f}\t{loss:.4f}\t{characters:.4f}\t{words:.4f}\n"
            for step, cpu, loss, characters, words in trainer.curve
        )


def _finish(trainer: Trainer, audio: TrainingAudio, held: list[str], out: Path) -> None:
    trained: dict[str, object] = {
        "tokens": list(trainer.units.tokens),
        "step": trainer.step,
        "seed": trainer.seed,
        "speakers": len(audio.speakers),
        "hours": round(audio.seconds / 3600, 3),
        "held_out": held,
        "parameters": count_parameters(trainer.network),
        "device": trainer.device,
    }
    write_config(out / "recogniser.yaml", trainer.config, trained)
    weights = {name: value.cpu() for name, value in trainer.network.state_dict().items()}
    save_atomically(out / "final.pt", weights)
    logging.info(
        "done: %s (step %d, %.1f s of CPU time)",
        out / "final.pt",
        trainer.step,
        trainer.cpu_seconds,
    )
