# SPDX-License-Identifier: Apache-2.0
"""Training of the CTC recogniser (Graves et al., ICML 2006), as the loop needs it."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from rapidfuzz.distance import Levenshtein
from speechbrain.decoders.ctc import ctc_greedy_decode
from speechbrain.nnet.losses import ctc_loss

from steps.asr.ctc_batches import Batch, BatchMaker, fitting_speeds
from steps.asr.ctc_config import CtcConfig
from steps.asr.ctc_network import CtcNetwork
from steps.asr.ctc_units import Units
from steps.asr.text import normalise
from steps.learning.audio import TrainingAudio, hold_out
from steps.learning.devices import check_device
from steps.learning.loop import Trainer, descend, train
from steps.learning.settings import identity
from utils.cli import UserError
from utils.seeds import derive_seed
from utils.settings import to_plain


@dataclass(frozen=True)
class Material:
    """Training data: audio, and the transcript of each of its utterances."""

    audio: TrainingAudio
    texts: Mapping[str, str]


@dataclass
class CtcTrainer(Trainer):
    """Training of the recogniser; valid: utterances of held-out speakers."""

    config: CtcConfig
    seed: int
    device: str
    units: Units
    make: BatchMaker
    valid: Material
    saved = ("network", "optimiser", "rate")
    best_by = "valid_word_errors"

    def __post_init__(self) -> None:
        torch.manual_seed(derive_seed(self.seed, "ctc-weights") % 2**63)
        config = self.plan = self.config.training
        self.network = make_network(self.config, self.units).to(self.device)
        self.optimiser = torch.optim.AdamW(
            self.network.parameters(), config.learning_rate, weight_decay=config.weight_decay
        )
        self.rate = torch.optim.lr_scheduler.OneCycleLR(
            self.optimiser, config.learning_rate, config.steps, pct_start=config.warm_up,
            cycle_momentum=False,
        )  # fmt: skip

    def batch(self, step: int) -> Batch:
        """See Trainer."""
        return self.make(step)

    def update(self, step: int, batch: Batch) -> dict[str, float]:
        """See Trainer."""
        torch.manual_seed(derive_seed(self.seed, "ctc-dropout", str(step)) % 2**63)
        self.network.train()
        limit = self.plan.gradient_norm
        loss = descend(self._loss(batch), self.optimiser, self.network.parameters(), limit)
        self.rate.step()
        return {"loss": loss}

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

    def validate(self) -> dict[str, float]:
        """See Trainer. Greedy hypotheses for the held-out speakers, without a lexicon."""
        audio = self.valid.audio
        if not audio.speakers:
            return {}
        self.network.eval()
        wrong, total = [0, 0], [0, 0]
        for utt in (utt for utts in audio.spk2utt.values() for utt in utts):
            features = self.make.clean(utt, audio.read(utt, 0, audio.lengths[utt]))
            said = write_greedily(
                self.network, self.units, torch.from_numpy(features)[None].to(self.device)
            )
            words, heard = normalise(self.valid.texts[utt]), said.split()
            for place, (true, found) in enumerate(((" ".join(words), said), (words, heard))):
                wrong[place] += Levenshtein.distance(true, found)
                total[place] += len(true)
        errors = wrong[0] / total[0], wrong[1] / total[1]
        logging.info(
            "validation: %.2f %% of the characters and %.2f %% of the words wrong (greedy)",
            100 * errors[0],
            100 * errors[1],
        )
        return {"valid_character_errors": errors[0], "valid_word_errors": errors[1]}


def make_network(config: CtcConfig, units: Units) -> CtcNetwork:
    """Network of some settings, with random weights."""
    return CtcNetwork(config.network, config.features.bins, len(units.tokens))


def write_greedily(network: CtcNetwork, units: Units, features: torch.Tensor) -> str:
    """Words of the most likely token of each frame; features: (1, T, D)."""
    written = network(features, torch.tensor([features.shape[1]], device=features.device))
    return units.decode(ctc_greedy_decode(written, torch.ones(1), blank_id=0)[0])


def select_usable(material: Material, config: CtcConfig) -> Material:
    """Leave out utterances that say nothing or more than their length allows, counted and named."""
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
    """Train; `out` gets training.tsv, checkpoints/, recogniser.yaml; final.pt last.

    UserError: no training data, or checkpoints of another training.
    """
    torch.set_num_threads(1)
    check_device(device)
    material = select_usable(material, config)
    audio, plan = material.audio, config.training
    units = Units.of(config.units, material.texts.values())
    audio_used, held = hold_out(audio, plan.valid_speakers, seed, share=plan.valid_share)
    targets = {utt: units.encode(text) for utt, text in material.texts.items()}
    make = BatchMaker(audio_used, targets, config, seed)
    valid = Material(audio.subset(held), material.texts)
    trainer = CtcTrainer(config, seed, device, units, make, valid)
    logging.info(
        "%d steps, of which each round takes %d; %d tokens: %s",
        plan.steps,
        make.per_round,
        len(units.tokens),
        " ".join(units.tokens),
    )
    settings = to_plain(config)
    parts = (seed, audio.spk2utt, audio.lengths, dict(material.texts))
    train(trainer, out, identity(settings, *parts)).finish(
        "recogniser.yaml",
        settings,
        tokens=list(units.tokens),
        speakers=len(audio_used.speakers),
        hours=round(audio_used.seconds / 3600, 3),
        held_out=held,
    )
