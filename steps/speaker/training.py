"""Training of a speaker encoder: batches, validation, and what the loop needs to know."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from steps.audio import SAMPLE_RATE
from steps.speaker.config import EncoderConfig, TrainingConfig
from steps.speaker.encoders import NetworkEncoder, load_network
from steps.speaker.features import Features, augment, change_speed, drop, mask_features
from steps.speaker.network import EncoderNetwork, TrainingHead
from steps.training.audio import TrainingAudio, hold_out
from steps.training.loop import Trainer, cyclic_rate, descend, learning_rate, set_rate, train
from steps.training.settings import identity
from steps.training.weights import choose_precision, digest_of, use_device
from utils.arrays import Float32
from utils.cli import UserError
from utils.datadir import write_training_speakers, write_validation_speakers
from utils.seeds import derive_seed, make_rng
from utils.settings import to_plain

# ---- Equal error rate on held-out training speakers: a curve of the success of training.
#
# Segments of a speaker come from different utterances where there are several; a speaker of one
# utterance gives pieces of it, which are easier to match. No two segments of a speaker share their
# words: draws of one utterance take turns. The figure is for comparing steps of one training, not
# for a table of results.

Embed = Callable[[Float32], Float32]
SEGMENT_SECONDS = 3.0
SEGMENTS = 6  # of a speaker, at most
AS_THEY_ARE: Mapping[str, str] = MappingProxyType({})  # utterances that nobody protected


class ValidationSet(NamedTuple):
    """segments: of 2 to 4 s; speakers: (n,) index of each."""

    segments: list[Float32]
    speakers: npt.NDArray[np.int64]


def make_validation_set(
    audio: TrainingAudio, speakers: Sequence[str], seed: int,
    before: Mapping[str, str] = AS_THEY_ARE,
) -> ValidationSet | None:  # fmt: skip
    """Choose up to SEGMENTS segments a speaker; None if fewer than two speakers have two.

    before: utterance -> its name before protection, of which there may be several draws
    (utt2uniq). The log tells how many segments there are, and how many speakers have one utterance
    alone.
    """
    spoken = {speaker: _draws(audio.spk2utt[speaker], before) for speaker in speakers}
    segments: list[Float32] = []
    owners: list[int] = []
    for owner, speaker in enumerate(speakers):
        utts = spoken[speaker]
        cuts = [_middle(audio, draws[n % len(draws)]) for n, draws in enumerate(utts)]
        cuts = cuts if len(cuts) > 1 else _pieces(audio, utts[0])
        order = make_rng(seed, "encoder-validation", speaker).permutation(len(cuts))[:SEGMENTS]
        if len(order) < 2:
            continue
        segments += [audio.read(*cuts[i]) for i in sorted(order.tolist())]
        owners += [owner] * len(order)
    if len(set(owners)) < 2:
        if speakers:
            logging.warning("no validation: fewer than two of these speakers have two segments")
        return None
    from_one = sum(len(utts) == 1 for utts in spoken.values())
    easy = f" ({from_one} speakers have one utterance, cut in pieces: easier than reality)"
    logging.info("validation: %d segments%s", len(segments), easy if from_one else "")
    return ValidationSet(segments, np.array(owners))


def _draws(utts: Sequence[str], before: Mapping[str, str]) -> list[list[str]]:
    """Draws of each utterance before protection."""
    found: dict[str, list[str]] = {}
    for utt in utts:
        found.setdefault(before.get(utt, utt), []).append(utt)
    return [*found.values()]


def _middle(audio: TrainingAudio, utt: str) -> tuple[str, int, int]:
    length = audio.lengths[utt]
    n_samples = min(length, int(SEGMENT_SECONDS * SAMPLE_RATE))
    return utt, (length - n_samples) // 2, n_samples


def _pieces(audio: TrainingAudio, draws: Sequence[str]) -> list[tuple[str, int, int]]:
    """Cut an utterance into equal pieces of at least 2 s, of its draws in turn."""
    length = min(audio.lengths[utt] for utt in draws)
    n_pieces = max(1, length // (2 * SAMPLE_RATE))
    n_samples = length // n_pieces
    return [(draws[i % len(draws)], i * n_samples, n_samples) for i in range(n_pieces)]


def validation_eer(segments: ValidationSet, embed: Embed) -> float:
    """EER (0 to 1) of the cosine over all pairs of segments."""
    vectors = np.stack([embed(samples) for samples in segments.segments]).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rows, columns = np.triu_indices(len(vectors), k=1)
    scores = (vectors @ vectors.T)[rows, columns]
    return equal_error_rate(scores, segments.speakers[rows] == segments.speakers[columns])


def equal_error_rate(scores: npt.NDArray[np.float64], target: npt.NDArray[np.bool_]) -> float:
    """Mean of miss and false-alarm rate at the threshold where they are closest.

    >>> equal_error_rate(np.array([3.0, 2.0, 1.0, 0.0]), np.array([True, False, True, False]))
    0.5
    """
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(target[order])
    n_accepted = np.arange(1, len(scores) + 1)
    miss = 1 - hits / target.sum()
    false_alarm = (n_accepted - hits) / (~target).sum()
    best = int(np.argmin(np.abs(miss - false_alarm)))
    return float((miss[best] + false_alarm[best]) / 2)


# ---- Training of a speaker encoder, as the loop of steps/training needs it.

EncoderBatch = tuple[npt.NDArray[Any], ...]
HUB_SECONDS = 10.0  # of an utterance, that the hub model of ecapa_dual hears in training


def margin(config: TrainingConfig, step: int) -> float:
    """Margin (radian) at a step: from 0 to full over `margin_ramp`."""
    n_ramp = config.margin_ramp * config.steps
    return config.margin * (min(1.0, step / n_ramp) if n_ramp > 0 else 1.0)


def make_optimiser(config: TrainingConfig, *modules: nn.Module) -> torch.optim.Optimizer:
    """Optimiser over all parameters of the modules that learn."""
    parameters = [p for m in modules for p in m.parameters() if p.requires_grad]
    rate, decay = config.learning_rate, config.weight_decay
    if config.optimiser == "sgd":
        return torch.optim.SGD(parameters, rate, config.momentum, weight_decay=decay)
    kind = torch.optim.AdamW if config.optimiser == "adamw" else torch.optim.Adam
    return kind(parameters, rate, weight_decay=decay, fused=True)


@dataclass
class EncoderTrainer(Trainer):
    """Training of an encoder and its classifier; valid: segments of held-out speakers.

    A batch is features (B, T, D) float32, of kind hub samples (B, n), and classes (B,): speaker x
    speed, speaker * n_speeds + speed. Of ecapa_dual the hub model hears other samples of the same
    utterances, not augmented, with zeros after short ones, and they come first.
    """

    config: EncoderConfig
    seed: int
    device: str
    audio: TrainingAudio
    valid: ValidationSet | None = None
    saved = ("network", "head", "optimiser")
    best_by = "valid_eer_percent"

    def __post_init__(self) -> None:
        self.plan = self.config.training
        self.precision = choose_precision(self.plan.precision, self.device)
        self.features = Features(self.config.features)
        listed = self.audio.spk2utt.values()
        self._shares = [np.cumsum([self.audio.lengths[utt] for utt in utts]) for utts in listed]
        self._speeds = self.config.augmentation.speeds
        self.n_classes = len(self.audio.speakers) * len(self._speeds)
        torch.manual_seed(derive_seed(self.seed, "encoder-weights") % 2**63)
        self.network = EncoderNetwork(self.config).to(self.device)
        self.head = TrainingHead(self.config, self.n_classes).to(self.device)
        self.optimiser = make_optimiser(self.plan, self.network, self.head)

    def batch(self, step: int) -> EncoderBatch:
        rng = make_rng(self.seed, "encoder-batch", str(step))
        n_samples = int(rng.uniform(*self.plan.crop_seconds) * SAMPLE_RATE)
        classes = self._classes(step)
        utts, each = zip(*(self._crop(rng, int(c), n_samples) for c in classes), strict=True)
        crops = np.stack(each)
        if self.config.augmentation.drop:
            crops = drop(rng, crops)
        features = self.features(torch.from_numpy(crops)).numpy()
        if not self.features.passes:
            mask_features(rng, features, self.config.augmentation)
        if self.config.encoder == "ecapa_dual":
            return np.stack([self._excerpt(rng, utt) for utt in utts]), features, classes
        return features, classes

    def _classes(self, step: int) -> npt.NDArray[np.int64]:
        """Every class once, in an order drawn for each round; then the next round."""
        places = np.arange(step * self.plan.batch, (step + 1) * self.plan.batch)
        rounds, inside = np.divmod(places, self.n_classes)
        orders = {
            number: make_rng(self.seed, "encoder-round", str(number)).permutation(self.n_classes)
            for number in set(rounds.tolist())
        }
        return np.array([orders[r][i] for r, i in zip(rounds.tolist(), inside, strict=True)])

    def _crop(self, rng: np.random.Generator, chosen: int, n_samples: int) -> tuple[str, Float32]:
        speaker, speed = divmod(chosen, len(self._speeds))
        n_read = int(np.ceil(n_samples * self._speeds[speed])) + 1
        utt = self._choose(rng, speaker)
        crop = change_speed(self._draw(rng, utt, n_read), self._speeds[speed], n_samples)

        def draw_any() -> Float32:
            other = self._choose(rng, int(rng.integers(len(self.audio.speakers))))
            return self._draw(rng, other, n_samples)

        return utt, augment(rng, crop, self.config.augmentation, draw_any)

    def _choose(self, rng: np.random.Generator, speaker: int) -> str:
        """Draw an utterance of a speaker; longer ones are drawn more often."""
        shares, utts = self._shares[speaker], self.audio.spk2utt[self.audio.speakers[speaker]]
        return utts[int(np.searchsorted(shares, rng.integers(shares[-1]), side="right"))]

    def _draw(self, rng: np.random.Generator, utt: str, n_samples: int) -> Float32:
        """Draw a stretch of an utterance."""
        spare = self.audio.lengths[utt] - n_samples
        start = int(rng.integers(spare + 1)) if spare > 0 else 0
        return self.audio.read(utt, start, n_samples)

    def _excerpt(self, rng: np.random.Generator, utt: str) -> Float32:
        """Draw HUB_SECONDS of an utterance; zeros follow a shorter one."""
        wanted = int(HUB_SECONDS * SAMPLE_RATE)
        part = self._draw(rng, utt, min(wanted, self.audio.lengths[utt]))
        return np.pad(part, (0, wanted - len(part)))

    def update(self, step: int, batch: EncoderBatch) -> dict[str, float]:
        self.network.train()
        self.head.train()
        if self.config.network.dropout:  # the masks of a step, also after a killed run
            torch.manual_seed(derive_seed(self.seed, "encoder-dropout", str(step)) % 2**63)
        rate = cyclic_rate if self.plan.half_cycle else learning_rate
        set_rate(self.optimiser, rate(self.plan, step))
        *heard, classes = (torch.from_numpy(part).to(self.device) for part in batch)
        lower = self.precision == "bfloat16"
        with torch.autocast(self.device, torch.bfloat16, enabled=lower):
            embeddings = self.network(*heard)
        loss = self.head(embeddings.float(), classes, margin(self.plan, step))
        parameters = (*self.network.parameters(), *self.head.parameters())
        return {"loss": descend(loss, self.optimiser, parameters, self.plan.gradient_norm)}

    def validate(self) -> dict[str, float]:
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
    config: EncoderConfig, audio: TrainingAudio, out: Path, *,
    seed: int, device: str = "cpu", n_workers: int = 1, init_from: Path | None = None,
    before: Mapping[str, str] = AS_THEY_ARE,
) -> None:  # fmt: skip
    """Train on `audio`; `out` gets the files in docs/evaluators.md, final.pt last.

    init_from: folder of the encoder to start from; UserError for one of another network. before:
    as in `make_validation_set`.
    """
    use_device(device)
    audio_used, held = hold_out(audio, config.training.valid_speakers, seed)
    valid = make_validation_set(audio, held, seed, before)
    trainer = EncoderTrainer(config, seed, device, audio_used, valid)
    logging.info("%s, %d classes, %s", config.encoder, trainer.n_classes, trainer.precision)
    first = b""
    if init_from is not None:
        trainer.start_from(init_from)
        first = digest_of(trainer.network)
    settings = to_plain(config)
    parts = (seed, audio.spk2utt, audio.lengths, audio.content, first)
    training = train(trainer, out, identity(settings, *parts), n_workers)
    write_training_speakers(out, audio.speakers, init_from)
    write_validation_speakers(out, held, init_from)
    training.finish(
        "encoder.yaml", settings, init_from=init_from and str(init_from),
        speakers=len(audio_used.speakers), hours=round(audio_used.seconds / 3600, 3),
        precision=trainer.precision,
    )  # fmt: skip
