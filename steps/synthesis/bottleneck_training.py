"""Training of the synthesiser on a recogniser's content: every utterance in its own voice."""

import copy
import logging
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from steps.content.extractors import at_frames
from steps.synthesis.bottleneck import N_OUT, BnConfig, BnEnvelope, ContentNetwork, mean_level
from steps.synthesis.bottleneck_hearing import Ear, HeardMaker
from steps.synthesis.content import Contents, open_contents
from steps.synthesis.f0 import VOICED_HZ
from steps.synthesis.trained import FULL_LEVEL, trained_files
from steps.synthesis.training import Voices, speakers_in_turn
from steps.synthesis.world import CODE_DIM, FINE, HOP, SILENCE, WorldFrames, unpack
from steps.training.audio import TrainingAudio, hold_out
from steps.training.loop import Trainer, descend, learning_rate, set_rate, train
from steps.training.settings import identity, read_config
from steps.training.weights import check_device, fill_network, load_state
from utils.arrays import Float32, Float64
from utils.cli import UserError
from utils.seeds import derive_seed, make_rng
from utils.settings import read_settings, to_plain
from utils.tables import StrPath

WEIGHTS = np.ones(CODE_DIM + 1, np.float32)  # weight among the outputs in the loss
WEIGHTS[1:14] = 2.0
_VARIANCE_WEIGHT = 0.1
_VALID_CROPS = 2  # crops of a held-out speaker
_SMALLEST_VARIANCE = 1e-3
_SMALLEST_SD = 1e-2  # of log F0
MELODY_WEIGHT = 0.2
_MELODY = "melody."  # of the names of its weights
_LOUD_ABOVE_SILENCE = 8.0  # log power; below it there is no speech


@dataclass(frozen=True)
class Crops:
    """B crops of T frames: inputs (B, d + 4, T), x-vectors (B, n), sounds (B, T) 0 in silence, else
    1, melody (B, T) log F0 in the utterance's deviations from its mean (NaN: unvoiced); and the
    requested targets: outputs (B, 2 T, 41) normalised and log variances (B, 41) of whole
    utterances, or signals (B, 160 T) at FULL_LEVEL; empty if not."""

    inputs: Tensor
    xvectors: Tensor
    outputs: Tensor
    sounds: Tensor
    melody: Tensor
    variances: Tensor
    signals: Tensor


@dataclass(frozen=True)
class Material:
    """Utterances, their data in a pool, their content and frames of 5 ms."""

    audio: TrainingAudio
    voices: Voices
    contents: Contents
    config: Any
    seed: int

    def frames(self, utt: str) -> WorldFrames:
        """Frames of an utterance, from the pool."""
        return unpack(self.voices.frames.matrix(utt))

    def content(self, utt: str, n_frames: int, *, warped: bool) -> Float32:
        """Content (n_frames, d) at the frames of WORLD."""
        return at_frames(self.contents(utt, warped=warped), self.contents.of, n_frames, HOP)

    def draw(self, rng: np.random.Generator, speaker: str) -> str:
        """Draw one of a speaker's utterances."""
        utts = self.audio.spk2utt[speaker]
        return utts[int(rng.integers(len(utts)))]

    def samples(self, utt: str, start: int, n_frames: int) -> Float32:
        """Samples of n_frames frames of 10 ms from `start`; silence after the utterance's end."""
        begin, n = start * HOP, n_frames * HOP
        known = max(0, min(n, self.audio.lengths[utt] - begin))
        return np.pad(self.audio.read(utt, begin, known), (0, n - known))

    def utterances(self, speakers: Sequence[str]) -> Iterator[tuple[WorldFrames, Float32]]:
        """Frames and content of every utterance of some speakers, in turn."""
        for utt in (utt for speaker in speakers for utt in self.audio.spk2utt[speaker]):
            frames = self.frames(utt)
            yield frames, self.content(utt, len(frames), warped=False)


class CropMaker:
    """Maker of crops of some speakers, each in turn, from a random place in a random utterance.

    signals: make signals as targets, not frames.
    """

    def __init__(
        self, material: Material, network: ContentNetwork, speakers: Sequence[str], signals: bool
    ) -> None:
        self.material, self.network, self.speakers = material, network, speakers
        self.signals = signals
        self.n_frames = round(material.config.training.crop_seconds * 100)

    def __call__(self, step: int) -> Crops:
        """Batch of step 0, 1, ..."""
        seed, n = self.material.seed, self.material.config.training.batch
        rng = make_rng(seed, "bn-batch", str(step))
        turn = speakers_in_turn(self.speakers, n, step, seed, "bn-round")
        return stack([self.crop(rng, speaker, augmented=True) for speaker in turn])

    def crop(self, rng: np.random.Generator, speaker: str, *, augmented: bool) -> Crops:
        """One crop (B = 1), filled up with silence after the utterance's end."""
        material, augment = self.material, self.material.config.augmentation
        utt = material.draw(rng, speaker)
        frames = material.frames(utt)
        warped = augmented and rng.random() < augment.warped
        content = material.content(utt, len(frames), warped=warped)
        start = int(rng.integers(max(1, len(frames) - self.n_frames + 1)))
        part = slice(start, start + self.n_frames)
        energy = self.network.energy_of(frames.envelope)
        given = not augmented or rng.random() >= augment.no_energy
        inputs = self.network.inputs_of(
            content[part], frames.f0[part], energy[part] if given else None
        )
        xvector = material.voices.xvectors[speaker]
        if augmented:
            n_content = content.shape[1]
            inputs[:, :n_content] += augment.content_noise * rng.standard_normal(
                (len(inputs), n_content), dtype=np.float32
            )
            xvector = xvector + augment.xvector_noise * rng.standard_normal(
                len(xvector), dtype=np.float32
            )
        outputs, variances = self.frames_of(utt, part)
        sounds = (frames.envelope[part, 0] > SILENCE).astype(np.float32)
        pad = self.n_frames - len(inputs)
        return Crops(
            torch.from_numpy(np.pad(inputs, ((0, pad), (0, 0))).T[None].copy()),
            torch.from_numpy(xvector.astype(np.float32)[None]),
            torch.from_numpy(outputs[None]),
            torch.from_numpy(np.pad(sounds, (0, pad))[None]),
            torch.from_numpy(np.pad(relative_f0(frames.f0)[part], (0, pad))[None]),
            torch.from_numpy(variances[None]),
            torch.from_numpy(self.signal(utt, frames, start)[None]),
        )

    def signal(self, utt: str, frames: WorldFrames, start: int) -> Float32:
        """Samples of a crop; empty unless signals are requested."""
        if not self.signals:
            return np.zeros(0, np.float32)
        out = self.material.samples(utt, start, self.n_frames)
        return out * np.float32(FULL_LEVEL * np.exp(-mean_level(frames.envelope[:, 0]) / 2))

    def frames_of(self, utt: str, part: slice) -> tuple[Float32, Float32]:
        """Normalised target outputs (2 T, 41) of frames of 10 ms, 0 after the utterance's end, and
        log variances (41,) of the whole utterance; both empty unless frames are requested."""
        if self.signals:
            return np.zeros((0, N_OUT), np.float32), np.zeros(0, np.float32)
        frames = self.material.contents.fine(utt)
        mean, sd = self.network.statistic("out_mean"), self.network.statistic("out_sd")
        scaled = (np.hstack((frames.envelope, frames.aperiodicity)) - mean) / sd
        scaled[:, 0] = self.network.energy_of(frames.envelope)
        outputs: Float32 = scaled.astype(np.float32)
        found = outputs[part.start * FINE : part.stop * FINE]
        pad = self.n_frames * FINE - len(found)
        return np.pad(found, ((0, pad), (0, 0))), log_variances(outputs, frames)


def stack(crops: list[Crops]) -> Crops:
    """Join several batches to one."""
    parts = zip(*(vars(crop).values() for crop in crops), strict=True)
    return Crops(*(torch.cat(part) for part in parts))


def relative_f0(f0: Float64) -> Float32:
    """Log F0 (T,) less its mean, in deviations; NaN where F0 in Hz is 0, unvoiced."""
    voiced = f0 > VOICED_HZ
    log_f0 = np.log(np.where(voiced, f0, np.nan))
    if voiced.any():
        log_f0 = (log_f0 - log_f0[voiced].mean()) / max(float(log_f0[voiced].std()), _SMALLEST_SD)
    return log_f0.astype(np.float32)


def log_variances(outputs: Float32, frames: WorldFrames) -> Float32:
    """Log variances (41,) of the frames of outputs (T, 41) that hold speech."""
    power = frames.envelope[:, 0]
    loud = power > mean_level(power) - 4.0
    variances: Float32 = np.log(outputs[loud].var(axis=0) + _SMALLEST_VARIANCE).astype(np.float32)
    return variances


def set_statistics(network: ContentNetwork, material: Material, speakers: Sequence[str]) -> None:
    """Means and deviations over the speech of the training speakers."""
    content, f0, out, levels = [], [], [], []
    for frames, values in material.utterances(speakers):
        power = frames.envelope[:, 0]
        loud = power > SILENCE + _LOUD_ABOVE_SILENCE
        content.append(values[::7])
        f0.append(np.log(frames.f0[frames.f0 > VOICED_HZ]))
        out.append(np.hstack((frames.envelope, frames.aperiodicity))[loud])
        levels.append(mean_level(power))
    for name, parts in (("content", content), ("f0", f0), ("out", out)):
        values = np.concatenate(parts).astype(np.float64)
        mean = torch.from_numpy(np.atleast_1d(values.mean(axis=0)).astype(np.float32))
        sd = torch.from_numpy(np.atleast_1d(values.std(axis=0) + 1e-3).astype(np.float32))
        network.get_buffer(f"{name}_mean").copy_(mean)
        network.get_buffer(f"{name}_sd").copy_(sd)
    scaled = (np.concatenate(content) - network.statistic("content_mean")) / network.statistic(
        "content_sd"
    )
    network.units.fit(scaled.astype(np.float32), derive_seed(material.seed, "bn-units"))
    network.get_buffer("out_mean")[0] = 0.0
    network.get_buffer("level").fill_(float(np.mean(levels)))


def take_over(network: ContentNetwork, folder: Path, digest: str) -> bytes:
    """Copy a trained network into this one, where only the melody then learns.

    folder: of the trained one, which has no melody. Returns the bytes of its weights. UserError
    where its class, its shapes or its content's digest differ from this one's.
    """
    conf, weights = trained_files(folder)
    told = read_settings(conf).get("trained")
    known = told.get("content_digest") if isinstance(told, dict) else None
    state = load_state(weights)
    if network.melody is None or any(name.startswith(_MELODY) for name in state):
        raise UserError(f"{folder}: a melody is put onto a network without one, by network.melody")
    if known != digest:
        raise UserError(f"{folder}: was trained on other content ({known}) than is here ({digest})")
    if (shaping := read_config(BnConfig, conf).shaping) != network.shaping:
        raise UserError(f"{conf}: {shaping}; that of the melody's CONF must be the same")
    own = {name: part for name, part in network.state_dict().items() if name.startswith(_MELODY)}
    fill_network(network, {**state, **own}, weights)
    for name, parameter in network.named_parameters():
        parameter.requires_grad_(name.startswith(_MELODY))
    return weights.read_bytes()


@dataclass
class ContentTrainer(Trainer):
    """A network on content under training; see Trainer. held: the held-out speakers, valid: crops
    of them.

    kind: its class. signals: whether crops have signals.
    """

    kind: ClassVar[type[ContentNetwork]]
    signals: ClassVar[bool] = False
    config: Any
    seed: int
    device: str
    network: Any
    make: CropMaker
    held: list[str]
    valid: Crops | None
    best_by = "valid_loss"

    def __post_init__(self) -> None:
        self.plan = self.config.training
        self.prepare()

    @abstractmethod
    def prepare(self) -> None:
        """Make optimisers, and other state beside the network."""

    def batch(self, step: int) -> Crops:
        return self.make(step)

    @abstractmethod
    def distance_on(self, batch: Crops) -> Tensor:
        """Loss between output and target of a batch."""

    def off_melody(self, batch: Crops) -> Tensor:
        """Mean distance of F0 on voiced frames, in deviations."""
        right = batch.melody.to(self.device)
        voiced = ~right.isnan() & (batch.sounds.to(self.device) > 0)
        made = self.network.predict_f0(batch.inputs.to(self.device))
        total: Tensor = ((made - right.nan_to_num()).abs() * voiced).sum()
        return total / (voiced.sum() + 1e-9)

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """The distance on held-out speakers."""
        if self.valid is None:
            return {}
        self.network.eval()
        figures = {"valid_loss": float(self.distance_on(self.valid))}
        if self.network.melody is not None:
            figures["valid_melody"] = float(self.off_melody(self.valid))
        logging.info("validation distance %.4f", figures["valid_loss"])
        return figures


class BnTrainer(ContentTrainer):
    """Training of the network that makes WORLD's frames."""

    kind = BnEnvelope
    ear: Ear | None = None

    def prepare(self) -> None:
        hearing, material, speakers = self.config.hearing, self.make.material, self.make.speakers
        if hearing.weight:
            self.ear = Ear(material, speakers, self.device)
            self.others = HeardMaker(material, self.make.network, speakers)
            held = HeardMaker(material, self.make.network, self.held)
            self.valid_others = held("validation", hearing.batch) if self.held else None
        self.optimiser = torch.optim.AdamW(
            self.network.parameters(), self.plan.learning_rate, weight_decay=self.plan.weight_decay
        )
        self.only_melody = not all(part.requires_grad for part in self.network.parameters())
        if self.only_melody:
            self.best_by = "valid_melody"

    def update(self, step: int, batch: Crops) -> dict[str, float]:
        self.network.train()
        set_rate(self.optimiser, learning_rate(self.plan, step))
        if self.only_melody:
            loss = self.off_melody(batch)
            descend(loss, self.optimiser, self.network.parameters(), self.plan.gradient_norm)
            return {"melody": float(loss.detach())}
        distance = self.distance_on(batch)
        guess = self.network.variance(batch.xvectors.to(self.device))
        missed = guess - batch.variances.to(self.device)
        loss = distance + _VARIANCE_WEIGHT * missed.abs().mean()
        found = {"loss": distance, "variance": missed.abs().mean()}
        if self.network.melody is not None:
            found["melody"] = self.off_melody(batch)
            loss = loss + MELODY_WEIGHT * found["melody"]
        hearing = self.config.hearing
        if self.ear is not None and step >= self.plan.steps - hearing.steps:
            found["lost"] = self.ear(self.network, self.others(str(step), hearing.batch))
            loss = loss + hearing.weight * found["lost"]
        descend(loss, self.optimiser, self.network.parameters(), self.plan.gradient_norm)
        return {name: float(part.detach()) for name, part in found.items()}

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """See Trainer: also the loss of held-out speakers' words in each other's voice."""
        figures = super().validate()
        if self.ear is not None and self.valid_others is not None:
            figures["valid_lost"] = float(self.ear(self.network, self.valid_others))
        return figures

    def distance_on(self, batch: Crops) -> Tensor:
        """See ContentTrainer: weighted mean over the outputs of speech, in deviations."""
        made = self.network(batch.inputs.to(self.device), batch.xvectors.to(self.device))
        weights = torch.from_numpy(WEIGHTS).to(self.device)
        sounds = batch.sounds.to(self.device).repeat_interleave(FINE, dim=1)
        apart = (made.transpose(1, 2) - batch.outputs.to(self.device)).abs() * weights
        total: Tensor = (apart.sum(dim=2) * sounds).sum() / (sounds.sum() * weights.sum() + 1e-9)
        return total


def train_bn(
    config: BnConfig,
    audio: TrainingAudio,
    pool: StrPath,
    out: Path,
    *,
    seed: int,
    device: str = "cpu",
    content: StrPath | None = None,
    onto: Path | None = None,
) -> None:
    """Train on `audio`, its data in `pool`, and its content from a folder where there is one.

    onto: see `take_over`; its synthesiser.yaml becomes `trained: onto:` of the new one. `out` gets
    training.tsv, checkpoints/, synthesiser.yaml; final.pt last.
    """
    train_on_content(BnTrainer, config, audio, pool, out, seed, device, content, onto)


def train_on_content(
    trainer_of: type[ContentTrainer],
    config: Any,
    audio: TrainingAudio,
    pool: StrPath,
    out: Path,
    seed: int,
    device: str,
    content: StrPath | None,
    onto: Path | None = None,
) -> None:
    """Train any network on content; see `train_bn`."""
    torch.set_num_threads(1)
    check_device(device)
    voices = Voices.load(pool, audio)
    training, held = hold_out(audio, config.training.valid_speakers, seed)
    contents = open_contents(content, audio, config, seed, device)
    material = Material(audio, voices, contents, config, seed)
    n_xvector = len(voices.xvectors[training.speakers[0]])
    torch.manual_seed(derive_seed(seed, "bn-weights") % 2**63)
    network = trainer_of.kind(config, contents.of.width, n_xvector)
    parts: list[object] = [seed, audio.spk2utt, audio.lengths]
    parts += [voices.matrix(audio.speakers).tobytes(), contents.of.digest]
    base: dict[str, object] = {}
    if onto is None:
        set_statistics(network, material, training.speakers)
    else:
        parts.append(take_over(network, onto, contents.of.digest))
        base["onto"] = read_settings(trained_files(onto)[0])
    # Crops are made on the processor, wherever the network is.
    make = CropMaker(material, copy.deepcopy(network), training.speakers, trainer_of.signals)
    rng = make_rng(seed, "bn-validation")
    crops = [make.crop(rng, who, augmented=False) for who in held for _ in range(_VALID_CROPS)]
    valid = stack(crops) if crops else None
    trainer = trainer_of(config, seed, device, network.to(device), make, held, valid)
    settings = to_plain(config)
    train(trainer, out, identity(settings, *parts)).finish(
        "synthesiser.yaml",
        settings,
        speakers=len(training.speakers),
        hours=round(training.seconds / 3600, 3),
        xvector_dimensions=n_xvector,
        content_digest=contents.of.digest,
        **base,
    )
