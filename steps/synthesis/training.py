"""Training of synthesisers: crops, losses, discriminators; the small source-filter."""

import logging
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torchaudio.functional
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm, weight_norm

from steps.audio import SAMPLE_RATE
from steps.speaker.vectors import read_xvectors
from steps.synthesis.content import draw_warp, extract_content
from steps.synthesis.trained import (
    FULL_LEVEL,
    DiscriminatorConfig,
    NsfNetwork,
    TrainedSynthesiser,
    pulse_train,
    render,
    unit_length,
)
from steps.synthesis.voices import MADE_BY
from steps.synthesis.world import HOP, WorldFrames, frames_of
from steps.training.audio import TrainingAudio, hold_out
from steps.training.loop import Trainer, descend, learning_rate, set_rate, train
from steps.training.settings import identity
from steps.training.weights import use_device
from utils.archives import ObjectReader
from utils.arrays import Float32
from utils.registry import load
from utils.seeds import derive_seed, make_rng
from utils.settings import to_plain
from utils.tables import StrPath, need_files, need_ids

# ---- Crops of training speech: every utterance is resynthesised in its own voice.

Crops = dict[str, Tensor]
"""Batch of B crops, by name; each tensor is (B, ...)."""
Array = npt.NDArray[Any]

STEM = "spk_xvector"
_VALID_CROPS = 2  # crops of a held-out speaker


@dataclass(frozen=True)
class TrainingSpeech:
    """Utterances, their WORLD frames, and the speakers' unit x-vectors, for a training with these
    settings and this seed."""

    audio: TrainingAudio
    world: ObjectReader
    xvectors: dict[str, Float32]
    config: Any
    seed: int

    @classmethod
    def load(
        cls, folder: StrPath, audio: TrainingAudio, config: Any, seed: int
    ) -> "TrainingSpeech":
        """Open a pool; UserError where it lacks a speaker or an utterance of the audio."""
        need_files([Path(folder) / "world.scp"], MADE_BY)
        world, xvectors = ObjectReader(Path(folder) / "world.scp"), read_xvectors(folder, STEM)
        mend = "make the pool of this data"
        need_ids(audio.spk2utt, xvectors, f"{Path(folder) / STEM}.scp", mend)
        need_ids(chain(*audio.spk2utt.values()), world, world.path, mend)
        unit = {speaker: unit_length(xvectors[speaker]) for speaker in audio.speakers}
        return cls(audio, world, unit, config, seed)

    def matrix(self, speakers: Sequence[str]) -> Float32:
        """Unit x-vectors (S, d) of some speakers."""
        return np.stack([self.xvectors[speaker] for speaker in speakers])

    def utterances(self, speakers: Sequence[str]) -> Iterator[str]:
        """Every utterance of some speakers, in turn."""
        return chain.from_iterable(self.audio.spk2utt[speaker] for speaker in speakers)

    def frames(self, utt: str) -> WorldFrames:
        """Frames of an utterance, from the pool."""
        return frames_of(self.world, utt)

    def draw(self, rng: np.random.Generator, speaker: str) -> tuple[str, WorldFrames]:
        """Draw one of a speaker's utterances; also returns its frames."""
        utts = self.audio.spk2utt[speaker]
        utt = utts[int(rng.integers(len(utts)))]
        return utt, self.frames(utt)

    def samples(self, utt: str, start: int, n_frames: int, level: float | None = None) -> Float32:
        """Samples of n_frames frames of 10 ms from `start`; silence after the utterance's end.

        level: mean log power of the utterance's speech, which becomes that of FULL_LEVEL.
        """
        begin, n = start * HOP, n_frames * HOP
        known = max(0, min(n, self.audio.lengths[utt] - begin))
        found = np.pad(self.audio.read(utt, begin, known), (0, n - known))
        return found if level is None else found * np.float32(FULL_LEVEL * math.exp(-level / 2))


def draw_part(rng: np.random.Generator, n_all: int, n: int) -> slice:
    """Draw the place of n of n_all frames; all frames of an utterance that has fewer."""
    start = int(rng.integers(max(1, n_all - n + 1)))
    return slice(start, start + n)


def filled(values: Array, n: int) -> Array:
    """Values (T, ...) of a crop, filled up with zeros to (n, ...)."""
    return np.pad(values, [(0, n - len(values))] + [(0, 0)] * (values.ndim - 1))


def stack(crops: Sequence[dict[str, Array]]) -> Crops:
    """Join crops to a batch."""
    return {name: torch.from_numpy(np.stack([crop[name] for crop in crops])) for name in crops[0]}


class CropMaker(ABC):
    """Maker of each step's batch: speakers in turn, from a random place in a random utterance.

    purpose: begins the names that seed the draws.
    """

    purpose: ClassVar[str]

    def __init__(self, speech: Any, speakers: Sequence[str]) -> None:
        """speech: TrainingSpeech, of at least these speakers."""
        self.speech, self.config, self.speakers = speech, speech.config, speakers
        self.n_frames = round(speech.config.training.crop_seconds * 100)

    def __call__(self, step: int) -> Crops:
        """Batch of step 0, 1, ...: every speaker once, in an order drawn for each round, then the
        next round."""
        seed, n, crops = self.speech.seed, self.config.training.batch, []
        rng = make_rng(seed, f"{self.purpose}-batch", str(step))
        for place in range(step * n, (step + 1) * n):
            turn, rank = divmod(place, len(self.speakers))
            of_round = make_rng(seed, f"{self.purpose}-round", str(turn))
            speaker = self.speakers[of_round.permutation(len(self.speakers))[rank]]
            crops.append(self.crop(rng, speaker, augmented=True))
        return stack(crops)

    def held_out(self, speakers: Sequence[str]) -> Crops | None:
        """Crops of held-out speakers, without augmentation; None without speakers."""
        rng = make_rng(self.speech.seed, f"{self.purpose}-validation")
        each = [speaker for speaker in speakers for _ in range(_VALID_CROPS)]
        return stack([self.crop(rng, who, augmented=False) for who in each]) if each else None

    @abstractmethod
    def crop(self, rng: np.random.Generator, speaker: str, *, augmented: bool) -> dict[str, Array]:
        """One crop of a speaker, filled up with silence after the utterance's end."""


@dataclass
class SynthesiserTrainer(Trainer):
    """Training of a synthesiser of any structure, with crops of `speakers`; held: those held out.

    content, onto, texts: for networks on a recogniser's content. The network has n_xvector, the
    values of its x-vectors; `make` makes crops. parts: what beside settings, seed, audio and
    x-vectors determines the network; known: what else synthesiser.yaml says of the training.
    distance_name: of the distance in training.tsv; log-mel distances are in nepers.
    """

    speech: TrainingSpeech
    speakers: list[str]
    held: list[str]
    device: str = "cpu"
    content: Path | None = None
    onto: Path | None = None
    texts: Mapping[str, str] | None = None
    make: Any = field(init=False)  # CropMaker
    distance_name: ClassVar[str] = "valid_log_mel"
    best_by = "valid_log_mel"

    def __post_init__(self) -> None:
        self.config, self.seed = self.speech.config, self.speech.seed
        self.plan = self.config.training
        self.parts: list[object] = []
        self.known: dict[str, object] = {}
        self.prepare()
        self.network.to(self.device)
        self.valid = self.make.held_out(self.held)

    @abstractmethod
    def prepare(self) -> None:
        """Make the network, `make`, losses, and optimisers."""

    def draw_weights(self, purpose: str) -> None:
        """Seed the weights of the networks that are made from now on."""
        torch.manual_seed(derive_seed(self.seed, purpose) % 2**63)

    @abstractmethod
    def distance_on(self, batch: Crops) -> Tensor:
        """Distance between the network's output and the target of a batch."""

    def batch(self, step: int) -> Any:
        return self.make(step)

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """The distance on held-out speakers."""
        if self.valid is None:
            return {}
        self.network.eval()
        distance = float(self.distance_on(self.valid))
        logging.info("validation distance %.4f", distance)
        return {self.distance_name: distance}

    def on_device(self, batch: Crops) -> Crops:
        """The same batch where the network is."""
        return {name: part.to(self.device) for name, part in batch.items()}


def train_synthesiser(
    kind: type[TrainedSynthesiser],
    config: Any,
    audio: TrainingAudio,
    pool: StrPath,
    out: Path,
    *,
    seed: int,
    device: str = "cpu",
    **given: Any,
) -> None:
    """Train on `audio` and its data in `pool`, from the last checkpoint on.

    given: content, onto, texts; see `ContentTrainer`. `out` gets training.tsv, checkpoints/,
    synthesiser.yaml; final.pt last.
    """
    use_device(device)
    speech = TrainingSpeech.load(pool, audio, config, seed)
    training, held = hold_out(audio, config.training.valid_speakers, seed)
    trainer = load(kind.trainer)(speech, training.speakers, held, device, **given)
    settings = to_plain(config)
    xvectors = speech.matrix(audio.speakers).tobytes()
    heard = (audio.spk2utt, audio.lengths, audio.content, xvectors)
    digest = identity(settings, seed, *heard, *trainer.parts)
    # A GPU waits for crops, which a processor makes more slowly.
    workers = 0 if device == "cpu" else max(1, len(os.sched_getaffinity(0)) - 1)
    train(trainer, out, digest, workers).finish(
        "synthesiser.yaml",
        settings,
        speakers=len(training.speakers),
        hours=round(training.seconds / 3600, 3),
        xvector_dimensions=trainer.network.n_xvector,
        **trainer.known,
    )


# ---- Rough perceptual distance of two signals as a loss: spectra of several resolutions.
#
# Source: multi-resolution STFT loss (Yamamoto et al. 2020: spectral convergence and log magnitudes)
# and the L1 distance of log-mel spectra. Phase does not count.

RESOLUTIONS = ((512, 160), (1024, 320), (2048, 640))  # size of FFT and window, hop; in samples
_MEL_FFT, _MEL_HOP, _MEL_BINS = 1024, 320, 80
_FLOOR = 1e-6  # of power; speech has about 0.05 RMS
_MEL_FLOOR = 1e-4  # of magnitude


def magnitudes(signals: Tensor, n_fft: int, hop: int) -> Tensor:
    """STFT magnitudes (B, n_fft // 2 + 1, 1 + n // hop) of signals (B, n), never 0; Hann window."""
    window = torch.hann_window(n_fft, dtype=signals.dtype, device=signals.device)
    spectrum = torch.stft(signals, n_fft, hop, window=window, return_complex=True)
    return torch.sqrt(spectrum.real.square() + spectrum.imag.square() + _FLOOR)


class SpectralLoss(nn.Module):
    """Distance between signals (B, n) and the targets; n of at least 2048 samples."""

    filters: Tensor

    def __init__(self) -> None:
        super().__init__()
        filters = torchaudio.functional.melscale_fbanks(
            _MEL_FFT // 2 + 1, 0.0, SAMPLE_RATE / 2, _MEL_BINS, SAMPLE_RATE
        )
        self.register_buffer("filters", filters, persistent=False)

    def forward(self, signals: Tensor, right: Tensor) -> Tensor:
        """Distance as a number."""
        total = signals.new_zeros(())
        for n_fft, hop in RESOLUTIONS:
            found, wanted = magnitudes(signals, n_fft, hop), magnitudes(right, n_fft, hop)
            convergence = torch.linalg.norm(wanted - found) / torch.linalg.norm(wanted)
            log_distance = (found.log() - wanted.log()).abs().mean()
            total = total + (convergence + log_distance) / len(RESOLUTIONS)
            if (n_fft, hop) == (_MEL_FFT, _MEL_HOP):
                total = total + self._distance(found, wanted)
        return total

    def log_mel_distance(self, signals: Tensor, right: Tensor) -> Tensor:
        """Mean |difference| of log mel magnitudes, a number in nepers."""
        found, wanted = (magnitudes(x, _MEL_FFT, _MEL_HOP) for x in (signals, right))
        return self._distance(found, wanted)

    def _distance(self, found: Tensor, wanted: Tensor) -> Tensor:
        """Mean |difference| of log mel values, from given magnitudes."""
        return (self._log_mel(found) - self._log_mel(wanted)).abs().mean()

    def _log_mel(self, spectrum: Tensor) -> Tensor:
        return (spectrum.transpose(1, 2) @ self.filters).clamp_min(_MEL_FLOOR).log()


# ---- Discriminators of real and synthetic speech, and their losses.
#
# Source: HiFi-GAN (Kong et al. 2020): multi-period and multi-scale discriminators, least-squares
# adversarial losses (Mao et al. 2017), feature matching.

_LEAK = 0.1  # of the leaky ReLU
_STRIDES = (1, 2, 2, 4, 4, 1, 1)  # of the layers over scales
_KERNELS = (15, 41, 41, 41, 41, 41, 5)
_GROUPS = (1, 4, 16, 16, 16, 16, 1)


class Judgement(NamedTuple):
    """Output of one discriminator for B signals. scores: (B, k), 1 for speech, 0 for synthetic.
    maps: of its layers, the scores last."""

    scores: Tensor
    maps: tuple[Tensor, ...]


class PeriodDiscriminator(nn.Module):
    """Discriminator that sees every `period`-th sample of signals (B, n) as one row."""

    def __init__(self, period: int, channels: Sequence[int]) -> None:
        super().__init__()
        self.period, strides = period, [3] * (len(channels) - 1) + [1]
        self.layers = nn.ModuleList(
            weight_norm(nn.Conv2d(n_in, n_out, (5, 1), (stride, 1), padding=(2, 0)))
            for n_in, n_out, stride in zip((1, *channels), channels, strides, strict=False)
        )
        self.last = weight_norm(nn.Conv2d(channels[-1], 1, (3, 1), padding=(1, 0)))

    def forward(self, signals: Tensor) -> Judgement:
        """Scores (B, about n / 81)."""
        missing = -signals.shape[1] % self.period
        x = nn.functional.pad(signals[:, None], (0, missing), "reflect")
        x = x.reshape(len(x), 1, -1, self.period)
        return _judge(x, self.layers, self.last)


class ScaleDiscriminator(nn.Module):
    """Discriminator of signals (B, n) by convolutions of stride 64 altogether.

    normalise: the weights, `weight_norm` or `spectral_norm`.
    """

    def __init__(self, channels: Sequence[int], *, spectral: bool) -> None:
        super().__init__()
        normalise = spectral_norm if spectral else weight_norm
        self.layers = nn.ModuleList(
            normalise(nn.Conv1d(n_in, n_out, kernel, stride, kernel // 2, groups=groups))
            for n_in, n_out, kernel, stride, groups in zip(
                (1, *channels), channels, _KERNELS, _STRIDES, _GROUPS, strict=False
            )
        )
        self.last = normalise(nn.Conv1d(channels[-1], 1, 3, padding=1))

    def forward(self, signals: Tensor) -> Judgement:
        """Scores (B, about n / 64)."""
        return _judge(signals[:, None], self.layers, self.last)


def _judge(x: Tensor, layers: nn.ModuleList, last: nn.Module) -> Judgement:
    maps = []
    for layer in layers:
        x = nn.functional.leaky_relu(layer(x), _LEAK)
        maps.append(x)
    x = last(x)
    return Judgement(x.flatten(1), (*maps, x))


class Discriminators(nn.Module):
    """All discriminators: periods first, then scales; each scale has half the rate of the one
    before.

    The first scale has spectral normalisation, the others weight normalisation.
    """

    def __init__(self, config: DiscriminatorConfig) -> None:
        super().__init__()
        self.periods = nn.ModuleList(
            PeriodDiscriminator(period, config.period_channels) for period in config.periods
        )
        self.scales = nn.ModuleList(
            ScaleDiscriminator(config.scale_channels, spectral=place == 0)
            for place in range(config.scales)
        )
        self.halve = nn.AvgPool1d(4, 2, padding=2)

    def forward(self, signals: Tensor) -> list[Judgement]:
        """Verdicts of all discriminators on signals (B, n)."""
        verdicts = [judge(signals) for judge in self.periods]
        for place, judge in enumerate(self.scales):
            if place:
                signals = self.halve(signals[:, None])[:, 0]
            verdicts.append(judge(signals))
        return verdicts


def discriminator_loss(of_speech: list[Judgement], of_made: list[Judgement]) -> Tensor:
    """Least-squares loss of the discriminators (speech 1, synthetic 0), summed over all of them."""
    parts = [
        (1 - speech.scores).square().mean() + made.scores.square().mean()
        for speech, made in zip(of_speech, of_made, strict=True)
    ]
    return torch.stack(parts).sum()


def adversarial_loss(of_made: list[Judgement]) -> Tensor:
    """Least-squares loss of the generator (signals should get 1), summed over discriminators."""
    return torch.stack([(1 - made.scores).square().mean() for made in of_made]).sum()


def feature_loss(of_speech: list[Judgement], of_made: list[Judgement]) -> Tensor:
    """Mean |difference| of the maps of a layer, summed over layers and discriminators."""
    parts = [
        (wanted.detach() - found).abs().mean()
        for speech, made in zip(of_speech, of_made, strict=True)
        for wanted, found in zip(speech.maps, made.maps, strict=True)
    ]
    return torch.stack(parts).sum()


# ---- Training of a network that makes signals, against discriminators: HiFi-GAN (Kong et al.
# 2020).


class AdversarialTrainer(SynthesiserTrainer):
    """Training of a network that makes signals, against discriminators.

    The settings have feature_weight and spectral_weight. spectral: distance between signals (B, n)
    and the targets.
    """

    spectral: Callable[[Tensor, Tensor], Tensor]
    saved = ("network", "discriminators", "optimiser", "opponent")

    def oppose(self, optimiser: Callable[[Iterator[nn.Parameter]], torch.optim.Optimizer]) -> None:
        """Make the discriminators, and the optimisers of both sides."""
        self.discriminators = Discriminators(self.config.discriminators).to(self.device)
        sides = (self.network, self.discriminators)
        self.optimiser, self.opponent = (optimiser(side.parameters()) for side in sides)

    def play(self, made: Tensor, right: Tensor, more: Tensor | float) -> dict[str, float]:
        """Take one step of the discriminators, then one of the network that made the signals (B,
        n).

        more: further loss of the network. The returned "loss" is the spectral distance.
        """
        guess = discriminator_loss(self.discriminators(right), self.discriminators(made.detach()))
        discriminators = descend(guess, self.opponent)
        with torch.no_grad():
            of_speech = self.discriminators(right)
        of_made = self.discriminators(made)
        distance = self.spectral(made, right)
        loss = (
            adversarial_loss(of_made)
            + self.plan.feature_weight * feature_loss(of_speech, of_made)
            + self.plan.spectral_weight * distance
        )
        limit = self.plan.gradient_norm
        generator = descend(loss + more, self.optimiser, self.network.parameters(), limit)
        return {
            "loss": float(distance.detach()),
            "generator_loss": generator,
            "discriminator_loss": discriminators,
        }


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


class SourceCrops(CropMaker):
    """Crops of T frames and n = 160 (T - 1) samples, for `trained.render`.

    content (B, T, 1 + n), f0, gate (B, T); xvectors (B, d), of length 1 and without noise; pulses,
    noise, right (B, n), the target signals.
    """

    purpose = "nsf"

    def crop(self, rng: np.random.Generator, speaker: str, *, augmented: bool) -> dict[str, Array]:
        utt, frames = self.speech.draw(rng, speaker)
        augment, n_frames = self.config.augmentation, self.n_frames + 1
        warp = draw_warp(rng, augment.scale, augment.bend) if augmented else None
        content = extract_content(frames.envelope, self.config.cepstra, warp)
        part = draw_part(rng, len(frames), n_frames)
        f0, n_samples = filled(frames.f0[part], n_frames), self.n_frames * HOP
        return {
            "content": filled(content.features[part], n_frames),
            "f0": f0.astype(np.float32),
            "xvectors": self.speech.xvectors[speaker],
            "pulses": pulse_train(f0, n_samples, rng.uniform(0, 2 * np.pi)).astype(np.float32),
            "noise": rng.standard_normal(n_samples, dtype=np.float32),
            "gate": filled(content.gate[part], n_frames),
            "right": self.speech.samples(utt, part.start, self.n_frames, content.level),
        }


class NsfTrainer(SynthesiserTrainer):
    """Training of the small source-filter."""

    saved = ("network", "adversary", "optimiser")

    def prepare(self) -> None:
        self.make = SourceCrops(self.speech, self.speakers)
        self.draw_weights("nsf-weights")
        xvectors, training = self.speech.matrix(self.speakers), self.plan
        config, n_xvector = self.config, xvectors.shape[1]
        self.network = NsfNetwork(config.network, config.cepstra, n_xvector)
        self.network.set_speakers(xvectors)
        self.distance = SpectralLoss().to(self.device)
        self.adversary = Adversary(1 + config.network.bottleneck, n_xvector).to(self.device)
        parameters = [*self.network.to(self.device).parameters(), *self.adversary.parameters()]
        self.optimiser = torch.optim.AdamW(
            parameters, training.learning_rate, weight_decay=training.weight_decay
        )

    def update(self, step: int, batch: Crops) -> dict[str, float]:
        """Take one step; `adversary` in the log is 1 - cosine between its guesses and the
        speaker."""
        self.network.train()
        set_rate(self.optimiser, learning_rate(self.plan, step))
        x = self.on_device(batch)
        place = self.network.place(x["xvectors"])
        codes = self.network.encode(x["content"])
        rng, augment = make_rng(self.seed, "nsf-speaker-noise", str(step)), self.config.augmentation
        noise = rng.standard_normal(place.shape, dtype=np.float32)
        noise *= np.float32(augment.xvector_noise)
        speaker = place + torch.from_numpy(noise).to(self.device)
        loss: Tensor = self.distance(self._say(x, codes, speaker), x["right"])
        figures = {"loss": float(loss.detach())}
        # The factor on the adversary's gradient grows over the first fifth.
        if weight := augment.adversary * min(1.0, step / max(1.0, 0.2 * self.plan.steps)):
            guess = self.adversary(codes, place, weight)
            figures["adversary"] = float(guess.detach())
            loss = loss + guess
        descend(loss, self.optimiser, self.network.parameters(), self.plan.gradient_norm)
        return figures

    def _say(self, x: Crops, codes: Tensor, speaker: Tensor) -> Tensor:
        filters = self.network(codes, x["f0"], speaker)
        return render(filters, (x["pulses"], x["noise"]), x["gate"])

    def distance_on(self, batch: Crops) -> Tensor:
        x = self.on_device(batch)
        codes = self.network.encode(x["content"])
        signals = self._say(x, codes, self.network.place(x["xvectors"]))
        return self.distance.log_mel_distance(signals, x["right"])
