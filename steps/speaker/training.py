# SPDX-License-Identifier: Apache-2.0
"""Training of a speaker encoder, as the loop of steps/learning needs it."""

import hashlib
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from steps.learning.audio import TrainingAudio, hold_out
from steps.learning.devices import check_device, choose_precision
from steps.learning.loop import Trainer, descend, learning_rate, set_rate, train
from steps.learning.settings import identity
from steps.speaker.batches import Batch, BatchMaker
from steps.speaker.config import EncoderConfig, TrainingConfig
from steps.speaker.encoders import NetworkEncoder, load_network
from steps.speaker.networks import EncoderNetwork, TrainingHead
from steps.speaker.validation import ValidationSet, make_validation_set, validation_eer
from utils.cli import UserError
from utils.seeds import derive_seed
from utils.settings import to_plain
from utils.speakers import write_training_speakers


def margin(config: TrainingConfig, step: int) -> float:
    """Margin (radian) at a step: from 0 to full over `margin_ramp`."""
    n_ramp = config.margin_ramp * config.steps
    return config.margin * (min(1.0, step / n_ramp) if n_ramp > 0 else 1.0)


def make_optimiser(config: TrainingConfig, *modules: nn.Module) -> torch.optim.Optimizer:
    """Optimiser over all parameters of the modules that learn; a hub model in front of a network
    learns at a part of the rate."""
    fronts = [m.front for m in modules if isinstance(m, EncoderNetwork) and m.front is not None]
    slow = [p for front in fronts for p in front.parameters_of_model()]
    known = {id(p) for p in slow}
    rest = [p for m in modules for p in m.parameters() if p.requires_grad and id(p) not in known]
    parameters: list[dict[str, Any]] = [{"params": rest, "part": 1.0}]
    parameters += [{"params": slow, "part": front.part} for front in fronts if slow]
    rate, decay = config.learning_rate, config.weight_decay
    if config.optimiser == "sgd":
        return torch.optim.SGD(parameters, rate, config.momentum, weight_decay=decay)
    kind = torch.optim.AdamW if config.optimiser == "adamw" else torch.optim.Adam
    return kind(parameters, rate, weight_decay=decay, fused=True)


@dataclass
class EncoderTrainer(Trainer):
    """Training of an encoder and its classifier; valid: segments of held-out speakers."""

    config: EncoderConfig
    seed: int
    device: str
    make: BatchMaker
    valid: ValidationSet | None = None
    saved = ("network", "head", "optimiser")
    best_by = "valid_eer_percent"

    def __post_init__(self) -> None:
        self.plan = self.config.training
        self.precision = choose_precision(self.plan.precision, self.device)
        torch.manual_seed(derive_seed(self.seed, "encoder-weights") % 2**63)
        self.network = EncoderNetwork(self.config).to(self.device)
        self.head = TrainingHead(self.config, self.make.n_classes).to(self.device)
        self.optimiser = make_optimiser(self.plan, self.network, self.head)

    def batch(self, step: int) -> Batch:
        """See Trainer."""
        return self.make(step)

    def update(self, step: int, batch: Batch) -> dict[str, float]:
        """See Trainer."""
        self.network.train()
        self.head.train()
        set_rate(self.optimiser, learning_rate(self.plan, step))
        features = torch.from_numpy(batch.features).to(self.device)
        classes = torch.from_numpy(batch.classes).to(self.device)
        lower = self.precision == "bfloat16"
        with torch.autocast(self.device, torch.bfloat16, enabled=lower):
            embeddings = self.network(features)
        loss = self.head(embeddings.float(), classes, margin(self.plan, step))
        parameters = (*self.network.parameters(), *self.head.parameters())
        return {"loss": descend(loss, self.optimiser, parameters, self.plan.gradient_norm)}

    def validate(self) -> dict[str, float]:
        """See Trainer."""
        if self.valid is None:
            return {}
        encoder = NetworkEncoder(self.config, self.network, self.device)
        eer = 100 * validation_eer(self.valid, encoder.embed)
        logging.info("validation EER %.2f %%", eer)
        return {"valid_eer_percent": eer}

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
    """Train on `audio`; `out` gets the files in docs/evaluators.md, final.pt last.

    init_from: folder of the encoder to start from; UserError for one of another network.
    """
    torch.set_num_threads(1)
    check_device(device)
    audio_used, held = hold_out(audio, config.training.valid_speakers, seed)
    valid = make_validation_set(audio, held, config.training.valid_segments, seed)
    if valid is not None:
        logging.info("validation: %d segments%s", len(valid.segments), _how_easy(valid))
    elif held:
        logging.warning("no validation: fewer than two of these speakers have two segments")
    trainer = EncoderTrainer(config, seed, device, BatchMaker(audio_used, config, seed), valid)
    logging.info("%s, %d classes, %s", config.encoder, trainer.make.n_classes, trainer.precision)
    first = b""
    if init_from is not None:
        trainer.start_from(init_from)
        first = hashlib.sha256((init_from / "final.pt").read_bytes()).digest()
    settings = to_plain(config)
    parts = (seed, audio.spk2utt, audio.lengths, first)
    training = train(trainer, out, identity(settings, *parts), n_workers)
    write_training_speakers(out, audio.speakers, init_from)
    training.finish(
        "encoder.yaml",
        settings,
        init_from=None if init_from is None else str(init_from),
        speakers=len(audio.speakers),
        hours=round(audio.seconds / 3600, 3),
        precision=trainer.precision,
    )


def _how_easy(valid: ValidationSet) -> str:
    if not valid.from_one:
        return ""
    return f" ({valid.from_one} speakers have one utterance, cut in pieces: easier than reality)"
