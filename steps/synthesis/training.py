"""Training of synthesisers of any structure, of the small source-filter, and of B1.b."""

import logging
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from steps.speaker.vectors import read_xvectors
from steps.synthesis.b1b import B1bConfig, B1bNetwork, input_statistics, make_sources
from steps.synthesis.content import draw_warp, extract_content
from steps.synthesis.gan import Adversarial, Discriminators, LogPowerLoss, SpectralLoss
from steps.synthesis.trained import (
    FULL_LEVEL,
    NsfConfig,
    NsfNetwork,
    pulse_train,
    render,
    unit_length,
)
from steps.synthesis.world import HOP, unpack
from steps.training.audio import TrainingAudio, hold_out
from steps.training.loop import Trainer, descend, learning_rate, set_rate, train
from steps.training.settings import identity
from steps.training.weights import check_device
from utils.archives import ObjectReader
from utils.arrays import Float32, Float64
from utils.cli import UserError
from utils.seeds import derive_seed, make_rng
from utils.settings import to_plain
from utils.tables import StrPath

# ---- Training of a synthesiser of any structure: every utterance is resynthesised in its own
# voice.

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
    """Batch of B crops of T frames and n = 160 (T - 1) samples, for `trained.render`.

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
        return self.make(step)

    @abstractmethod
    def distance_on(self, batch: Batch) -> float:
        """Log-mel distance between the network's output and the target of a batch, in nepers."""

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        if self.valid is None:
            return {}
        self.network.eval()
        distance = self.distance_on(self.valid)
        logging.info("validation log-mel distance %.3f", distance)
        return {"valid_log_mel": distance}


@dataclass(frozen=True)
class Run:
    """Inputs of a training; see `train_nsf`."""

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


# ---- Training of the neural source-filter.


class Adversary(nn.Module):
    """Guess of the speaker's x-vector (B, d) from codes (B, C, T)."""

    def __init__(self, n_codes: int, n_xvector: int, channels: int = 64) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(n_codes, channels, 5),
            nn.GELU(),
            nn.Conv1d(channels, channels, 5, dilation=2),
            nn.GELU(),
        )
        self.last = nn.Linear(2 * channels, n_xvector)

    def forward(self, codes: Tensor, speaker: Tensor, weight: float) -> Tensor:
        """Mean of 1 - cosine between the guess and `speaker` (B, d).

        Its gradient improves the guess here, and is reversed, times `weight`, for the network that
        made the codes (Ganin and Lempitsky 2015).
        """
        turned = (1 + weight) * codes.detach() - weight * codes
        hidden = self.layers(turned)
        guess = self.last(torch.cat((hidden.mean(dim=2), hidden.std(dim=2)), dim=1))
        return (1 - nn.functional.cosine_similarity(guess, speaker)).mean()


@dataclass
class NsfTrainer(AnyTrainer):
    """Training of the small source-filter."""

    saved = ("network", "adversary", "optimiser")

    def __post_init__(self) -> None:
        torch.manual_seed(derive_seed(self.seed, "nsf-weights") % 2**63)
        xvectors = self.make.voices.matrix(self.make.audio.speakers)
        n_xvector = xvectors.shape[1]
        self.plan = training = self.config.training
        self.network = NsfNetwork(self.config.network, self.config.cepstra, n_xvector)
        self.network.set_speakers(xvectors)
        self.network.to(self.device)
        self.distance = SpectralLoss(training.mel_weight).to(self.device)
        self.adversary = Adversary(1 + self.config.network.bottleneck, n_xvector).to(self.device)
        parameters = [*self.network.parameters(), *self.adversary.parameters()]
        self.optimiser = torch.optim.AdamW(
            parameters, training.learning_rate, weight_decay=training.weight_decay
        )

    def update(self, step: int, batch: Batch) -> dict[str, float]:
        """adversary: 1 - cosine of its guesses with the speaker."""
        self.network.train()
        set_rate(self.optimiser, learning_rate(self.plan, step))
        x = batch.to(self.device)
        place = self.network.place(x["xvectors"])
        codes = self.network.encode(x["content"])
        noise = self._speaker_noise(step, batch).to(self.device)
        distance: Tensor = self.distance(self._say(x, codes, place + noise), x["right"])
        figures, loss = {"loss": float(distance.detach())}, distance
        if weight := self._adversary_weight(step):
            guess = self.adversary(codes, place, weight)
            figures["adversary"] = float(guess.detach())
            loss = distance + guess
        descend(loss, self.optimiser, self.network.parameters(), self.plan.gradient_norm)
        return figures

    def _speaker_noise(self, step: int, batch: Batch) -> Tensor:
        rng = make_rng(self.seed, "nsf-speaker-noise", str(step))
        noise = rng.standard_normal(batch.xvectors.shape, dtype=np.float32)
        return torch.from_numpy(noise * np.float32(self.config.augmentation.xvector_noise))

    def _adversary_weight(self, step: int) -> float:
        """Factor on the gradient at this step."""
        grown = min(1.0, step / max(1.0, 0.2 * self.plan.steps))
        weight: float = self.config.augmentation.adversary * grown
        return weight

    def _say(self, x: dict[str, Tensor], codes: Tensor, speaker: Tensor) -> Tensor:
        filters = self.network(codes, x["f0"], speaker)
        return render(filters, (x["pulses"], x["noise"]), x["gate"])

    def distance_on(self, batch: Batch) -> float:
        x = batch.to(self.device)
        codes = self.network.encode(x["content"])
        signals = self._say(x, codes, self.network.place(x["xvectors"]))
        return float(self.distance.log_mel_distance(signals, x["right"]))


def train_nsf(
    config: NsfConfig,
    audio: TrainingAudio,
    pool: StrPath,
    out: Path,
    *,
    seed: int,
    device: str = "cpu",
) -> None:
    """Train on `audio` and its data in `pool`.

    `out` gets training.tsv, checkpoints/, synthesiser.yaml; final.pt last.
    """

    def begin(make: BatchMaker, valid: Batch | None) -> NsfTrainer:
        return NsfTrainer(config, seed, device, make, valid)

    run_training(Run(config, audio, pool, out, seed, device), begin)


# ---- Training of B1.b's structure against discriminators, on the crops of the small source-filter.


@dataclass
class B1bTrainer(Adversarial, AnyTrainer):
    """B1.b's structure under training. statistics: of the network's inputs
    (`b1b.input_statistics`)."""

    n_xvector: int
    statistics: tuple[Float64, Float64]

    def __post_init__(self) -> None:
        torch.manual_seed(derive_seed(self.seed, "b1b-weights") % 2**63)
        config = self.config
        self.plan = config.training
        self.network = B1bNetwork(config.network, 1 + config.cepstra, self.n_xvector)
        self.network.set_statistics(*self.statistics)
        self.network.to(self.device)
        self.discriminators = Discriminators(config.discriminators).to(self.device)
        rate = config.training.learning_rate
        self.optimiser = torch.optim.Adam(self.network.parameters(), rate)
        self.opponent = torch.optim.Adam(self.discriminators.parameters(), rate)
        self.spectral = LogPowerLoss()
        self.distance = SpectralLoss().to(self.device)

    def update(self, step: int, batch: Batch) -> dict[str, float]:
        """loss: the distance of log power spectra."""
        self.network.train()
        right = torch.from_numpy(batch.right).to(self.device)
        return self.play(self.say(batch, f"step {step}"), right)

    def say(self, batch: Batch, purpose: str) -> Tensor:
        """Signals (B, n) of a batch, without the last frame of a crop, which begins where the crop
        ends. purpose: seeds phases and noise."""
        n_harmonics = self.config.network.harmonics
        sources = [
            make_sources(f0[:-1], n_harmonics, make_rng(self.seed, "b1b-source", purpose, str(i)))
            for i, f0 in enumerate(batch.f0)
        ]
        excitation, noise = (np.stack(part) for part in zip(*sources, strict=True))
        parts = (batch.content[:, :-1], batch.f0[:, :-1], batch.xvectors, excitation, noise)
        signals: Tensor = self.network(*(torch.from_numpy(x).to(self.device) for x in parts))
        return signals

    def distance_on(self, batch: Batch) -> float:
        made = self.say(batch, "validation")
        right = torch.from_numpy(batch.right).to(self.device)
        return float(self.distance.log_mel_distance(made, right))


def training_frames(
    audio: TrainingAudio, voices: Voices, n_cepstra: int
) -> Iterator[tuple[Float32, Float32, Float32]]:
    """Content (T, n), F0 (T,) and x-vector (d,) of each utterance in turn, not bent."""
    for speaker, utts in audio.spk2utt.items():
        for utt in utts:
            frames = unpack(voices.frames.matrix(utt))
            content = extract_content(frames.envelope, n_cepstra)
            yield content.features, frames.f0.astype(np.float32), voices.xvectors[speaker]


def train_b1b(
    config: B1bConfig,
    audio: TrainingAudio,
    pool: StrPath,
    out: Path,
    *,
    seed: int,
    device: str = "cpu",
) -> None:
    """Train on `audio` and its data in `pool`; writes the files of `train_nsf`."""

    def begin(make: BatchMaker, valid: Batch | None) -> B1bTrainer:
        statistics = input_statistics(training_frames(make.audio, make.voices, config.cepstra))
        n_xvector = len(make.voices.xvectors[audio.speakers[0]])
        return B1bTrainer(config, seed, device, make, valid, n_xvector, statistics)

    run_training(Run(config, audio, pool, out, seed, device), begin)
