# SPDX-License-Identifier: Apache-2.0
"""Training of a speaker encoder: steps, checkpoints, resuming, validation.

All that is random is a function of (seed, step), so a run that was stopped and resumed ends with
the same network, to the bit, on the same machine.
"""

import hashlib
import json
import logging
import math
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from steps.speaker.batches import Batch, BatchMaker, Prefetcher
from steps.speaker.checkpoints import Checkpoints, save_atomically
from steps.speaker.config import EncoderConfig, TrainingConfig, to_plain, write_config
from steps.speaker.corpus import TrainingAudio, hold_out
from steps.speaker.encoders import NetworkEncoder, check_device, load_network
from steps.speaker.networks import EncoderNetwork, TrainingHead, count_parameters
from steps.speaker.validation import ValidationSet, make_validation_set, validation_eer
from utils.cli import UserError
from utils.seeds import derive_seed
from utils.speakers import write_training_speakers
from utils.tables import atomic_write

LOG_EVERY = 50
VALID_HEADER = "#step\tseconds_cpu\ttrain_loss\tvalid_eer_percent\n"


def learning_rate(config: TrainingConfig, step: int) -> float:
    """Linear rise over `warm_up`, then half a cosine down to `final_rate`."""
    n_warm = max(1, round(config.warm_up * config.steps))
    if step < n_warm:
        return config.learning_rate * (step + 1) / n_warm
    progress = (step - n_warm) / max(1, config.steps - n_warm)
    cosine = 0.5 * (1 + math.cos(math.pi * progress))
    return config.final_rate + (config.learning_rate - config.final_rate) * cosine


def margin(config: TrainingConfig, step: int) -> float:
    """Margin (radian) at a step: from 0 to full over `margin_ramp`."""
    n_ramp = config.margin_ramp * config.steps
    return config.margin * (min(1.0, step / n_ramp) if n_ramp > 0 else 1.0)


def make_optimiser(config: TrainingConfig, *modules: nn.Module) -> torch.optim.Optimizer:
    """The optimiser over all parameters of the modules."""
    parameters = [p for module in modules for p in module.parameters()]
    rate, decay = config.learning_rate, config.weight_decay
    if config.optimiser == "sgd":
        return torch.optim.SGD(parameters, rate, config.momentum, weight_decay=decay)
    kind = torch.optim.AdamW if config.optimiser == "adamw" else torch.optim.Adam
    return kind(parameters, rate, weight_decay=decay, fused=True)


def choose_precision(wanted: str, device: str) -> str:
    """float32 or bfloat16; `auto` takes bfloat16 where the processor has instructions for it.

    Elsewhere it is emulated, many times slower than float32.
    """
    if wanted != "auto":
        return wanted
    if device == "cuda":
        fast = torch.cuda.is_bf16_supported()
    else:
        fast = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return "bfloat16" if fast else "float32"


@dataclass
class Trainer:
    """The state of a training; `step` is the next one, `loss` a moving average."""

    config: EncoderConfig
    seed: int
    device: str
    n_classes: int
    step: int = 0
    loss: float = math.nan
    cpu_seconds: float = 0.0  # of this process, over all runs
    curve: list[tuple[int, float, float, float]] = field(default_factory=list)
    best: dict[str, Any] | None = None  # eer, step, network of the best validation; keep: best

    def __post_init__(self) -> None:
        self.precision = choose_precision(self.config.training.precision, self.device)
        torch.manual_seed(derive_seed(self.seed, "encoder-weights") % 2**63)
        self.network = EncoderNetwork(self.config).to(self.device)
        self.head = TrainingHead(self.config, self.n_classes).to(self.device)
        self.optimiser = make_optimiser(self.config.training, self.network, self.head)

    def update(self, batch: Batch) -> None:
        """One step."""
        config = self.config.training
        self.network.train()
        self.head.train()
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate(config, self.step)
        features = torch.from_numpy(batch.features).to(self.device)
        classes = torch.from_numpy(batch.classes).to(self.device)
        with self._precision():
            embeddings = self.network(features)
        loss: Tensor = self.head(embeddings.float(), classes, margin(config, self.step))
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        modules = nn.ModuleList([self.network, self.head])
        nn.utils.clip_grad_norm_(modules.parameters(), config.gradient_norm)
        self.optimiser.step()
        value = float(loss.detach())
        if not math.isfinite(value):
            raise FloatingPointError(f"the loss is {value} at step {self.step}")
        self.loss = value if math.isnan(self.loss) else 0.98 * self.loss + 0.02 * value
        self.step += 1

    def _precision(self) -> AbstractContextManager[None]:
        return torch.autocast(self.device, torch.bfloat16, enabled=self.precision == "bfloat16")

    def encoder(self) -> NetworkEncoder:
        """The encoder as it is now."""
        return NetworkEncoder(self.config, self.network, self.device)

    def state(self) -> dict[str, Any]:
        """All that a resumed run needs."""
        return {
            "network": self.network.state_dict(),
            "head": self.head.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "progress": {
                "step": self.step,
                "loss": self.loss,
                "cpu_seconds": self.cpu_seconds,
                "curve": [list(point) for point in self.curve],
            },
            "best": self.best,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        self.network.load_state_dict(state["network"])
        self.head.load_state_dict(state["head"])
        self.optimiser.load_state_dict(state["optimiser"])
        progress = state["progress"]
        self.step, self.loss = progress["step"], progress["loss"]
        self.cpu_seconds = progress["cpu_seconds"]
        self.curve = [tuple(point) for point in progress["curve"]]
        self.best = state["best"]

    def start_from(self, folder: Path) -> None:
        """Take the network of a trained encoder; the classifier stays new."""
        config, network = load_network(folder)
        wanted = (self.config.encoder, self.config.network, self.config.features)
        if (config.encoder, config.network, config.features) != wanted:
            raise UserError(
                f"--init-from {folder}: its network or features are not those of the settings; "
                f"take {folder / 'encoder.yaml'} as CONF"
            )
        self.network.load_state_dict(network.state_dict())

    def note_best(self, eer: float) -> None:
        """Keep a copy of the network when no earlier one did better and the settings want it."""
        wanted = self.config.training.keep == "best"
        if wanted and (self.best is None or eer < self.best["eer"]):
            weights = {name: value.clone() for name, value in self.network.state_dict().items()}
            self.best = {"eer": eer, "step": self.step, "network": weights}


def identity(
    config: EncoderConfig, audio: TrainingAudio, seed: int, init_from: Path | None = None
) -> str:
    """Digest of what fixes a training: settings, seed, utterances with lengths, first weights."""
    parts: list[object] = [to_plain(config), seed, audio.spk2utt, audio.lengths]
    if init_from is not None:
        parts.append(hashlib.sha256((init_from / "final.pt").read_bytes()).hexdigest())
    text = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def train_encoder(
    config: EncoderConfig,
    audio: TrainingAudio,
    out: Path,
    *,
    seed: int,
    device: str = "cpu",
    n_workers: int = 1,
    init_from: Path | None = None,
) -> None:
    """Train on `audio`; `out` gets what docs/evaluators.md lists, final.pt last.

    init_from: folder of the encoder to go on from; UserError for one of another network.
    """
    torch.set_num_threads(1)
    check_device(device)
    training, held = hold_out(audio, config.training.valid_speakers, seed)
    valid = make_validation_set(audio, held, config.training.valid_segments, seed)
    _report_data(training, held, valid)
    make = BatchMaker(training, config, seed)
    trainer = Trainer(config, seed, device, make.n_classes)
    if init_from is not None:
        trainer.start_from(init_from)
    logging.info(
        "network: %s, %.2f M parameters, %d classes, %s on %s",
        config.encoder,
        count_parameters(trainer.network) / 1e6,
        make.n_classes,
        trainer.precision,
        device,
    )
    checkpoints = Checkpoints(
        out / "checkpoints",
        identity(config, audio, seed, init_from),
        config.training.keep_checkpoints,
    )
    if (state := checkpoints.load_last()) is not None:
        trainer.restore(state)
        logging.info("resumed at step %d", trainer.step)
    (out / "final.pt").unlink(missing_ok=True)
    _run(trainer, make, valid, checkpoints, out, n_workers)
    _finish(trainer, audio, out, seed, init_from)


def _report_data(training: TrainingAudio, held: list[str], valid: ValidationSet | None) -> None:
    logging.info("training on %d speakers, %.2f h", len(training.speakers), training.seconds / 3600)
    if valid is None:
        logging.warning("too few speakers to hold any out: there is no validation EER")
        return
    logging.info(
        "validation on %d held-out speakers, %d segments%s: %s",
        len(set(valid.speakers.tolist())),
        len(valid.segments),
        f" ({valid.from_one} speakers have one utterance, cut in pieces: easier than reality)"
        if valid.from_one
        else "",
        " ".join(held),
    )


def _run(
    trainer: Trainer,
    make: BatchMaker,
    valid: ValidationSet | None,
    checkpoints: Checkpoints,
    out: Path,
    n_workers: int,
) -> None:
    config = trainer.config.training
    started, first = time.monotonic(), trainer.step
    cpu_before, cpu_started = trainer.cpu_seconds, time.process_time()
    with Prefetcher(make, range(trainer.step, config.steps), n_workers) as batches:
        while trainer.step < config.steps:
            trainer.update(batches.get(trainer.step))
            trainer.cpu_seconds = cpu_before + time.process_time() - cpu_started
            last = trainer.step == config.steps
            if trainer.step % LOG_EVERY == 0 or last:
                _report_progress(trainer, first, time.monotonic() - started)
            if valid is not None and (trainer.step % config.valid_every == 0 or last):
                _validate(trainer, valid, out)
            if trainer.step % config.checkpoint_every == 0 or last:
                checkpoints.save(trainer.step, trainer.state())


def _report_progress(trainer: Trainer, first: int, seconds: float) -> None:
    n_steps = trainer.config.training.steps
    speed = (trainer.step - first) / seconds
    logging.info(
        "step %d of %d, loss %.3f, %.2f steps/s, %.0f s left",
        trainer.step,
        n_steps,
        trainer.loss,
        speed,
        (n_steps - trainer.step) / speed,
    )


def _validate(trainer: Trainer, valid: ValidationSet, out: Path) -> None:
    encoder = trainer.encoder()
    eer = validation_eer(valid, encoder.embed)
    trainer.note_best(eer)
    trainer.curve.append((trainer.step, trainer.cpu_seconds, trainer.loss, 100 * eer))
    logging.info("step %d: validation EER %.2f %%", trainer.step, 100 * eer)
    with atomic_write(out / "valid_eer.tsv") as stream:
        stream.write(VALID_HEADER)
        stream.writelines(
            f"{step}\t{cpu:.1f}\t{loss:.4f}\t{percent:.3f}\n"
            for step, cpu, loss, percent in trainer.curve
        )


def _finish(
    trainer: Trainer, audio: TrainingAudio, out: Path, seed: int, init_from: Path | None
) -> None:
    weights, step = trainer.network.state_dict(), trainer.step
    if trainer.best is not None:
        step, weights = trainer.best["step"], trainer.best["network"]
    trained = {
        "step": step,
        "kept": trainer.config.training.keep,
        "seed": seed,
        "init_from": None if init_from is None else str(init_from),
        "speakers": len(audio.speakers),
        "hours": round(audio.seconds / 3600, 3),
        "parameters": count_parameters(trainer.network),
        "device": trainer.device,
        "precision": trainer.precision,
    }
    write_config(out / "encoder.yaml", trainer.config, trained=trained)
    write_training_speakers(out, audio.speakers, init_from)
    save_atomically(out / "final.pt", {k: v.cpu() for k, v in weights.items()})
    logging.info(
        "done: %s (step %d, %.1f s of CPU time without workers)",
        out / "final.pt",
        step,
        trainer.cpu_seconds,
    )
