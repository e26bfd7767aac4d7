"""Speech from a recogniser's content, F0 and an x-vector, by way of WORLD or by HiFi-GAN."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

from steps.asr.recognisers import make_recogniser
from steps.audio import SAMPLE_RATE
from steps.content.extractors import at_frames, at_places, load_extractor
from steps.content.reading import Moved, Reader, RepairingReader, heard_words
from steps.content.units import UnitSettings, make_units
from steps.synthesis import world
from steps.synthesis.base import (
    KEEP,
    REMAINS,
    TIMES,
    ContentMap,
    F0Map,
    Target,
    tilt,
    trained_files,
)
from steps.synthesis.f0 import HIGHEST_HZ, LOWEST_HZ, VOICED_HZ, F0Stats, unbroken
from steps.synthesis.trained import DiscriminatorConfig, TrainedSynthesiser, in_blocks
from steps.training.settings import CropSeconds, RampSettings
from utils import settings as rule
from utils.arrays import Bool, Float32, Float64
from utils.cli import UserError
from utils.settings import read_settings
from utils.tables import StrPath

# ---- Settings of the synthesiser on a recogniser's content (conf/synthesisers/bn_*.yaml).

Channels = Annotated[int, rule.Number(least=1, most=4096)]
Dilation = Annotated[int, rule.Number(least=1, most=64)]
Degree = Annotated[float, rule.Number(least=0, most=2)]


@dataclass(frozen=True)
class BnNetwork:
    """Gated dilated convolutions. condition: values that the x-vector is mapped to. dropout: share
    of values set to 0 in a training step. melody: channels of the network that predicts F0 (`f0:
    predicted` of a system); reader: of the one that reads a text (`reads`); 0: none."""

    channels: Channels = 192
    kernel: rule.OddSize = 3
    dilations: Annotated[tuple[Dilation, ...], rule.Long()] = (1, 2, 4, 8, 1, 2)
    condition: Channels = 64
    dropout: rule.Share = 0.0
    melody: Annotated[int, rule.Number(least=0, most=4096)] = 0
    reader: Annotated[int, rule.Number(least=0, most=4096)] = 0


@dataclass(frozen=True)
class BnAugmentation:
    """Augmentation after which only the x-vector tells the speaker.

    warped: share of crops whose content is that of another vocal tract and pitch (scale, bend: see
    content.draw_warp; pitch: largest change of log F0). centred: share of crops whose content has
    lost its utterance's mean. content_noise: in deviations of a value. xvector_noise: of an
    x-vector of length 1, a value. no_energy: share of crops without their energy.
    """

    warped: rule.Share = 0.5
    scale: Degree = 0.15
    bend: Degree = 0.08
    pitch: Degree = 0.35
    centred: rule.Share = 0.0
    content_noise: Degree = 0.2
    xvector_noise: Degree = 0.02
    no_energy: rule.Share = 0.5


@dataclass(frozen=True)
class BnShaping:
    """Sharpening of the network's envelopes, which are flatter than real ones.

    variance: largest factor on a deviation over the utterance, to reach the speaker's. emphasis: of
    the shape's difference from the mean envelope, its tilt excepted.
    """

    variance: Annotated[float, rule.Number(least=1, most=100)] = 2.5
    emphasis: Degree = 1.0


@dataclass(frozen=True)
class BnHearing:
    """Learning by ear, in the last steps: other voices say the words, and the content's encoder
    measures how much of them is lost (bottleneck_training.py).

    weight: of that in the loss; 0: not used. steps: their number among training.steps. batch,
    crop_seconds: for the speech that others say.
    """

    weight: rule.NotNegative = 0.0
    steps: rule.Count = 400
    batch: Channels = 5
    crop_seconds: CropSeconds = 3.2


@dataclass(frozen=True)
class BnTraining(RampSettings):
    """Training settings; rates of AdamW."""

    batch: Channels = 10
    crop_seconds: CropSeconds = 1.6
    final_rate: rule.Positive = 6e-5
    warm_up: rule.Share = 0.04
    gradient_norm: rule.Positive = 1.0

    def __post_init__(self) -> None:
        if self.final_rate > self.learning_rate:
            raise ValueError(f"final_rate: {self.final_rate:g} is above learning_rate")


@dataclass(frozen=True)
class BnConfig:
    """All settings. content: a name in steps/content/extractors.py. units: in place of it."""

    synthesiser: Annotated[str, rule.OneOf("bn")]
    training: BnTraining
    content: str = "moonshine"
    units: UnitSettings = field(default_factory=UnitSettings)
    network: BnNetwork = field(default_factory=BnNetwork)
    augmentation: BnAugmentation = field(default_factory=BnAugmentation)
    shaping: BnShaping = field(default_factory=BnShaping)
    hearing: BnHearing = field(default_factory=BnHearing)

    def __post_init__(self) -> None:
        if not self.hearing.weight:
            return
        if self.hearing.steps > self.training.steps:
            raise ValueError(f"hearing.steps: {self.hearing.steps} is above training.steps")
        if not self.augmentation.warped and not self.network.reader:
            raise ValueError("hearing.weight: it needs other voices (augmentation.warped above 0)")


# ---- Settings of HiFi-GAN on a recogniser's content (conf/synthesisers/bn_hifigan.yaml).

Rate = Annotated[int, rule.Number(least=2, most=world.HOP)]


@dataclass(frozen=True)
class HifiganNetwork:
    """Generator V1 of HiFi-GAN. channels: before the first upsampling; each halves them. rates: of
    the upsamplings, 160 together. kernels, dilations: of the residual blocks after each. condition,
    melody, reader: see BnNetwork."""

    channels: Channels = 512
    rates: Annotated[tuple[Rate, ...], rule.Long()] = (5, 4, 4, 2)
    kernels: Annotated[tuple[rule.OddSize, ...], rule.Long()] = (3, 7, 11)
    dilations: Annotated[tuple[Dilation, ...], rule.Long()] = (1, 3, 5)
    condition: Channels = 128
    melody: Annotated[int, rule.Number(least=0, most=4096)] = 0
    reader: Annotated[int, rule.Number(least=0, most=4096)] = 0

    def __post_init__(self) -> None:
        if math.prod(self.rates) != world.HOP:
            raise ValueError(f"rates: {math.prod(self.rates)} together; {world.HOP} are needed")
        if self.channels % 2 ** len(self.rates):
            raise ValueError(
                f"channels: {self.channels} is not divisible by {2 ** len(self.rates)}: each of "
                f"{len(self.rates)} layers halves it"
            )


@dataclass(frozen=True)
class HifiganTraining(BnTraining):
    """Training settings; weights are those of the generator's loss (Kong et al. 2020)."""

    batch: Channels = 16
    crop_seconds: CropSeconds = 0.5
    learning_rate: rule.Positive = 2e-4
    final_rate: rule.Positive = 2e-5
    gradient_norm: rule.Positive = 1e3  # of losses weighted by 45; the original has no limit
    feature_weight: rule.NotNegative = 2.0
    spectral_weight: rule.NotNegative = 45.0


@dataclass(frozen=True)
class HifiganConfig:
    """All settings; see BnConfig."""

    synthesiser: str
    training: HifiganTraining
    content: str = "moonshine"
    units: UnitSettings = field(default_factory=UnitSettings)
    network: HifiganNetwork = field(default_factory=HifiganNetwork)
    discriminators: DiscriminatorConfig = field(default_factory=DiscriminatorConfig)
    augmentation: BnAugmentation = field(default_factory=BnAugmentation)


# ---- Speech from a recogniser's content, F0 and an x-vector by way of WORLD.
#
# The approach is that of Champion et al. 2021 and Liu et al. 2025. A network makes the envelope and
# the aperiodicity of two frames of 5 ms from 10 ms of content (steps/content), F0 and the x-vector.
# It learns from `world.analyse_finely`. Nothing else of the source remains but timing and voicing,
# unless settings keep its energy or aperiodicity. The variance of the envelope over an utterance is
# set to the value predicted for the x-vector's speaker (global variance, Toda et al. 2007), and its
# shape may be emphasised.

N_OUT = world.CODE_DIM + 1  # envelope codes, aperiodicity
LOUD = 8.0  # a frame so far below an utterance's mean log power is not speech
ENERGY_RANGE = (-6.0, 4.0)  # deviations; limit of a frame's log power about the utterance's mean
_MELODY = (1, 3, 9, 27)  # dilations; a frame's F0 depends on 1.6 s around it
_FLAT = 1e-2  # deviation below which a predicted melody counts as none
# Mean power of 800 samples: below the first a source frame is silence; a recording whose loudest
# frame is below the second is raised to it, unless that is below the third, the last bits of 16.
# Recordings of six corpora have a louder one: of FSDD from 5.6e-5, of LibriSpeech from 2e-4.
_QUIET, _FAINT, _LAST_BITS = 1e-7, 5e-5, 2e-9
_READ_LEVEL = 0.05  # root mean square of what is read, whoever was heard
_NO_WORDS = 8000  # samples of silence that a recording without words becomes


class ContentNetwork(nn.Module):
    """Common part of all networks on content: their inputs, and their own F0.

    `units` stand in place of the content (steps/content/units.py). Buffers hold mean and deviation
    of the content (d), of log F0 and of WORLD's frames (41: envelope codes, aperiodicity; the first
    is the deviation of log power from the utterance's mean, whose own mean is `level`).
    """

    def __init__(self, config: Any, n_content: int, n_xvector: int) -> None:
        """config: has units, and a network with condition and melody."""
        super().__init__()
        self.n_content, self.n_xvector = n_content, n_xvector
        self.units = make_units(config.units, n_content)
        melody, reader = config.network.melody, config.network.reader
        self.melody = Melody(self.units.width, melody) if melody else None
        self.reader = Reader(n_content, reader) if reader else None
        self.n_inputs = self.units.width + 4
        for name, n in (("content", n_content), ("f0", 1), ("out", N_OUT)):
            self.register_buffer(f"{name}_mean", torch.zeros(n))
            self.register_buffer(f"{name}_sd", torch.ones(n))
        self.register_buffer("level", torch.zeros(1))

    def statistic(self, name: str) -> Float64:
        """Buffer as float64."""
        return self.get_buffer(name).cpu().numpy().astype(np.float64)

    def unify(self, inputs: Tensor) -> Tensor:
        """Inputs (B, n_inputs, T) of the layers: inputs (B, n_content + 4, T) of `inputs_of` with
        units for content."""
        content, rest = inputs[:, : self.n_content], inputs[:, self.n_content :]
        return torch.cat((self.units(content), rest), dim=1)

    def predict_f0(self, inputs: Tensor) -> Tensor:
        """Predict log F0 (B, T), in the utterance's deviations from its mean, from inputs (B,
        n_content + 4, T). Only content and voicing count, not the F0 and the energy among the
        inputs."""
        assert self.melody is not None
        content, voiced = inputs[:, : self.n_content], inputs[:, self.n_content, None]
        return self.melody(self.units(content).detach(), voiced)

    def inputs_of(
        self, content: npt.NDArray[Any], f0: npt.NDArray[Any], energy: Float64 | None
    ) -> Float32:
        """Normalised inputs (T, n_content + 4): content (T, d), voiced, log F0, energy (T,) in
        deviations, and a flag for given energy."""
        voiced = f0 > VOICED_HZ
        log_f0 = np.log(np.where(voiced, f0, 1.0))
        mean, sd = float(self.statistic("f0_mean")[0]), float(self.statistic("f0_sd")[0])
        columns = [
            (content - self.statistic("content_mean")) / self.statistic("content_sd"),
            voiced[:, None],
            np.where(voiced, (log_f0 - mean) / sd, 0.0)[:, None],
            np.zeros((len(f0), 1)) if energy is None else energy[:, None],
            np.full((len(f0), 1), float(energy is not None)),
        ]
        return np.hstack(columns).astype(np.float32)

    def energy_of(self, envelope: npt.NDArray[Any]) -> Float64:
        """Log power (T,) of codes (T, 40) less the utterance's mean, in deviations, clipped."""
        power = envelope[:, 0].astype(np.float64)
        relative = (power - mean_level(power)) / self.statistic("out_sd")[0]
        return np.clip(relative, *ENERGY_RANGE)


class BnEnvelope(ContentNetwork):
    """Network from content, F0, energy, x-vector to envelope and aperiodicity, all normalised."""

    def __init__(self, config: BnConfig, n_content: int, n_xvector: int) -> None:
        super().__init__(config, n_content, n_xvector)
        self.shaping = config.shaping
        network = config.network
        width, condition = network.channels, network.condition
        self.first = nn.Conv1d(self.n_inputs, width, network.kernel, padding="same")
        self.speaker = nn.Linear(n_xvector, condition)
        self.gated = nn.ModuleList(
            nn.Conv1d(width, 2 * width, network.kernel, padding="same", dilation=dilation)
            for dilation in network.dilations
        )
        self.conditions = nn.ModuleList(nn.Linear(condition, 2 * width) for _ in network.dilations)
        self.mixed = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in network.dilations)
        self.before_last = nn.Conv1d(width + condition, width, 1)
        self.last = nn.Conv1d(width, N_OUT * world.FINE, 1)
        self.dropout = nn.Dropout(network.dropout)
        self.variance = nn.Sequential(nn.Linear(n_xvector, 64), nn.GELU(), nn.Linear(64, N_OUT))

    def forward(self, inputs: Tensor, speaker: Tensor) -> Tensor:
        """Outputs (B, 41, 2 T), two frames of 5 ms for each of 10, from inputs (B, n_content + 4,
        T) of `inputs_of` and speaker (B, n_xvector) of length 1."""
        who = torch.tanh(4 * self.speaker(speaker))
        hidden = self.dropout(self.first(self.unify(inputs)))
        total = torch.zeros_like(hidden)
        for gated, condition, mixed in zip(self.gated, self.conditions, self.mixed, strict=True):
            value, gate = (gated(hidden) + condition(who)[:, :, None]).chunk(2, dim=1)
            made = mixed(self.dropout(torch.tanh(value) * torch.sigmoid(gate)))
            hidden = (hidden + made) * 0.5**0.5
            total = total + made
        everywhere = who[:, :, None].expand(-1, -1, hidden.shape[2])
        joined = torch.cat((functional.gelu(0.4 * total), everywhere), dim=1)
        made = self.last(functional.gelu(self.before_last(joined)))
        return made.unflatten(1, (N_OUT, world.FINE)).transpose(2, 3).flatten(2)

    def decode(self, made: Tensor, sounds: Tensor) -> tuple[Tensor, Tensor]:
        """Codes (B, T, 40) and aperiodicity in dB (B, T) from outputs (B, T, 41); silence where
        `sounds` (B, T) is not set."""
        out = made * self.get_buffer("out_sd") + self.get_buffer("out_mean")
        power = torch.where(sounds, out[..., 0] + self.get_buffer("level"), world.SILENCE - 1)
        envelope = torch.cat((power[..., None], out[..., 1 : world.CODE_DIM]), dim=-1)
        return envelope, out[..., world.CODE_DIM].clamp(max=0.0)


class Melody(nn.Module):
    """Prediction of F0 from the content and the voicing decisions."""

    def __init__(self, n_content: int, width: int) -> None:
        super().__init__()
        self.first = nn.Conv1d(n_content + 1, width, 5, padding="same")
        self.deeper = nn.ModuleList(
            nn.Conv1d(width, width, 5, padding="same", dilation=dilation) for dilation in _MELODY
        )
        self.last = nn.Conv1d(width, 1, 1)

    def forward(self, content: Tensor, voiced: Tensor) -> Tensor:
        """Content (B, d, T), voiced (B, 1, T) -> log F0 (B, T); see `BnEnvelope.predict_f0`."""
        hidden = functional.gelu(self.first(torch.cat((content, voiced), dim=1)))
        for layer in self.deeper:
            hidden = hidden + functional.gelu(layer(hidden))
        return self.last(hidden)[:, 0]


def mean_level(power: Float64) -> float:
    """Mean log power of the frames that hold speech; of all frames where none does."""
    sounds = power[power > world.SILENCE]
    if not len(sounds):
        return float(power.mean())
    loud = sounds[sounds > sounds.max() - 2 * LOUD]
    return float(loud[loud > loud.mean() - LOUD].mean())


@dataclass(frozen=True)
class SourceFeatures:
    """Features kept from the source, T frames; energy and aperiodicity only where they are kept.

    energy_range: factor of the deviation of log power, where the network predicts that deviation.
    """

    f0: Float64
    sounds: Bool
    energy: Float64 | None
    aperiodicity: Float64 | None
    energy_range: float = 1.0

    def at(self, places: Float64) -> "SourceFeatures":
        """Features at places (U,) of the source, ascending."""
        near = np.rint(places).astype(np.int64)
        energy, noise = (x if x is None else x[near] for x in (self.energy, self.aperiodicity))
        return replace(
            self, f0=self.f0[near], sounds=self.sounds[near], energy=energy, aperiodicity=noise
        )


class Told(NamedTuple):
    """Speech, what became of the source's seconds, by names of `base.TOLD`, and the times of words,
    where they are said in another time than the source's."""

    samples: Float64
    seconds: dict[str, float]
    words: Sequence[Moved] = ()


class BnSynthesiser(TrainedSynthesiser):
    """Synthesiser on a recogniser's content."""

    settings: ClassVar[type[Any]] = BnConfig
    trainer = "steps.synthesis.bottleneck_training:BnTrainer"
    on_content = True
    network_kind: ClassVar[type[ContentNetwork]] = BnEnvelope
    keeps: ClassVar[tuple[str, ...]] = REMAINS

    def __init__(
        self,
        config: Any,
        network: Any,
        where: StrPath = "synthesiser",
        keep: Sequence[str] = (),
        *,
        own_f0: bool = False,
        reads: str | None = None,
        time: str = TIMES[0],
        doubt: float | None = None,
    ) -> None:
        """keep: parts of base.REMAINS that stay the source's. own_f0: F0 is the network's, within
        the target's range. reads: the recogniser whose words are read anew; time: one of TIMES;
        doubt: see `RepairingReader`; None: nothing is repaired, and in another time words alone
        are left. UserError where the network has no F0 of its own, or cannot read.
        """
        super().__init__(config, network, where)
        for name in keep:
            if name not in self.keeps:
                raise UserError(f"{where}: keep: {name}: this synthesiser makes its own")
        if own_f0 and network.melody is None:
            raise UserError(f"{where}: f0: predicted: it was trained without network.melody")
        if reads and network.reader is None:
            raise UserError(f"{where}: reads: it was trained without network.reader")
        self._recogniser = make_recogniser(reads) if reads else None
        self._repairing: RepairingReader | None = None
        if self._recogniser and (time == KEEP or doubt is not None):
            self._repairing = RepairingReader(
                self._recogniser, network.reader, doubt, in_place=time == KEEP
            )
        self.extractor = load_extractor(config.content)
        self.keep, self._own_f0 = tuple(keep), own_f0

    @classmethod
    def load(cls, folder: StrPath, **options: Any) -> Self:
        """Open as others; UserError also where it was trained on content of other weights."""
        made = super().load(folder, **options)
        known, digest = content_digest(trained_files(Path(folder))[0]), made.extractor.digest
        if known != digest:
            raise UserError(
                f"{folder}: was trained on content of {made.config.content} with other weights "
                f"({known}) than are here ({digest}); train it again"
            )
        return made

    @classmethod
    def make(cls, config: Any, state: dict[str, Tensor]) -> ContentNetwork:
        n_content, n_xvector = len(state["content_mean"]), state["speaker.weight"].shape[1]
        return cls.network_kind(config, n_content, n_xvector)

    def convert(self, wave: Float64, target: Target, f0: F0Map) -> Float64:
        """Only the target's x-vector counts, and its F0 if the network makes F0; the mean power
        stays. What is read has a power of its own, and, unless it is read in its own time, a length
        of its own, also without words."""
        return self.tell(wave, target, f0).samples

    def tell(self, wave: Float64, target: Target, f0: F0Map, language: str | None = None) -> Told:
        """Converted speech, and what became of the source. language: of `RepairingReader.read`."""
        if self._recogniser is not None and self._repairing is None:
            return self.say(self.hear(wave), target, f0)
        level, n_samples, wave = float(np.mean(wave**2)), len(wave), raised(wave)
        content, source, seconds, words = self._found(wave, target.content, language)
        if not source.sounds.any():
            return Told(np.zeros(n_samples), seconds)
        level = _READ_LEVEL**2 if "read" in seconds else level
        n_samples = len(source.f0) * world.HOP if words else n_samples
        made = self._make(content, source, target, f0, n_samples, level)
        return Told(made, seconds, words)

    def hear(self, wave: Float64) -> str:
        """Words that the recogniser finds."""
        assert self._recogniser is not None
        wave = raised(wave)
        if not sounding(wave, 1 + len(wave) // world.HOP).any():
            return ""
        return heard_words(self._recogniser, wave)[0]

    def say(self, text: str, target: Target, f0: F0Map) -> Told:
        """Speech of a text, as the network reads it, as in `tell`; without words some silence."""
        assert self.network.reader is not None
        normal, voiced = self.network.reader.read(text, self.extractor)
        if not len(voiced):
            return Told(np.zeros(_NO_WORDS), {})
        content = self._changed(self._spoken(normal), target.content)
        said = SourceFeatures(voiced * LOWEST_HZ, np.ones(len(voiced), bool), None, None)
        n_samples, seconds = len(voiced) * world.HOP, {"read": len(voiced) / 100}
        return Told(self._make(content, said, target, f0, n_samples, _READ_LEVEL**2), seconds)

    def _make(
        self,
        content: Float32,
        source: SourceFeatures,
        target: Target,
        f0: F0Map,
        n_samples: int,
        level: float,
    ) -> Float64:
        """Speech of a mean power (`level`) from content (T, d), already changed, and what else of
        the source counts."""
        unit, source = self.speaker(target), replace(source, energy_range=target.energy)
        content = at_frames(content, self.extractor, len(source.f0), world.HOP)
        if self._own_f0:
            contour = self._predict_f0(content, source.f0 > VOICED_HZ, target.f0)
        else:
            contour = f0(source.f0)
        if target.slope:
            tilted = np.clip(tilt(contour, target.slope), LOWEST_HZ, HIGHEST_HZ)
            contour = np.where(contour > 0, tilted, 0.0)
        if target.timing is not None:
            places = target.timing(source.f0)
            content, contour = at_places(content, places), f0_at(contour, places)
            n_samples = round(n_samples * len(places) / len(source.f0))
            source = source.at(places)
        inputs = self.network.inputs_of(content, contour, source.energy)
        out = self._say(torch.from_numpy(inputs.T.copy())[None], unit, contour, source, n_samples)
        out *= np.sqrt(level / (float(np.mean(out**2)) or 1.0))
        return self.limited(out)

    def _found(
        self, wave: Float64, change: ContentMap | None, language: str | None
    ) -> tuple[Float32, SourceFeatures, dict[str, float], Sequence[Moved]]:
        """Content (T, d) to be spoken, changed, what else of the source counts, and the seconds and
        words of `tell`."""
        content, source = self._hear(wave)
        if self._repairing is None or not len(content):
            return self._changed(content, change), source, {}, ()
        found = self._repairing.read(wave, self._normal(content), self.extractor, language)
        content = self._changed(content, change)
        if found is None:
            return content, source, {"unread": len(wave) / SAMPLE_RATE}, ()
        if found.places is not None:
            content, source = at_places(content, found.places[0]), source.at(found.places[1])
        read = self._changed(self._spoken(found.content), change)
        heard = found.heard[:, None]
        mixed = np.where(heard > 0, heard * content + (1 - heard) * read, read)
        shares = at_frames(heard, self.extractor, len(found.voiced), world.HOP)
        ours = shares[:, 0] < 0.5
        contour = np.where(ours, found.voiced * LOWEST_HZ, source.f0)
        source = replace(source, f0=contour, sounds=ours | source.sounds)
        return mixed, source, found.seconds, found.words

    def _hear(self, wave: Float64) -> tuple[Float32, SourceFeatures]:
        """Content (T, d) of speech, and what else of it counts."""
        source = self._analyse(wave)
        if not source.sounds.any():
            return np.zeros((0, self.extractor.width), np.float32), source
        return self.extractor(wave), source

    def _normal(self, content: Float32) -> Float64:
        """Deviations (T, d) of content from the mean."""
        mean, sd = (self.network.statistic(f"content_{name}") for name in ("mean", "sd"))
        return (content - mean) / sd

    def _spoken(self, normal: npt.NDArray[np.floating]) -> Float32:
        """Content (T, d) from its deviations from the mean."""
        mean, sd = (self.network.statistic(f"content_{name}") for name in ("mean", "sd"))
        return (mean + sd * normal).astype(np.float32)

    def _changed(self, heard: Float32, change: ContentMap | None) -> Float32:
        """Content (T, d) after a change, if any, that works on deviations from the mean."""
        return heard if change is None else self._spoken(change(self._normal(heard)))

    @torch.no_grad()
    def _say(
        self, inputs: Tensor, unit: Tensor, contour: Float64, source: SourceFeatures, n_samples: int
    ) -> Float64:
        """Speech (n_samples,) from inputs (1, n_content + 4, T), of any power. unit: x-vector (1,
        d). contour: wanted F0 (T,)."""
        sounds = torch.from_numpy(np.repeat(source.sounds, world.FINE))[None]
        made = self.network(inputs, unit).transpose(1, 2).double()
        made = shaped(made, self.network.variance(unit).double(), sounds, self.network.shaping)
        if source.energy is not None:
            made[0, :, 0] = torch.from_numpy(finely(source.energy))
        made[..., 0] *= source.energy_range
        envelope, aperiodicity = self.network.decode(made, sounds)
        noise = aperiodicity[0].numpy()
        if source.aperiodicity is not None:
            noise = finely(source.aperiodicity[:, 0])
        shift = world.FRAME_SHIFT / world.FINE
        frames = world.WorldFrames(fine_f0(contour), envelope[0].numpy(), noise[:, None], shift)
        return world.synthesise(frames, n_samples)

    @torch.no_grad()
    def _predict_f0(self, content: Float32, voiced: Bool, target: F0Stats) -> Float64:
        """F0 (T,) in Hz, with the target's mean and deviation, of content (T, d), voicing (T,)."""
        if not target.n or not voiced.any():
            return np.zeros(len(voiced))
        inputs = self.network.inputs_of(content, voiced * LOWEST_HZ, None)
        made = self.network.predict_f0(torch.from_numpy(inputs.T.copy())[None])[0].numpy()
        shape = made.astype(np.float64) - made[voiced].mean()
        shape /= max(float(shape[voiced].std()), _FLAT)
        log_f0 = target.mean + target.sd * shape
        return np.where(voiced, np.clip(np.exp(log_f0), LOWEST_HZ, HIGHEST_HZ), 0.0)

    def _analyse(self, wave: Float64) -> SourceFeatures:
        energy = aperiodicity = None
        if self.keep:
            frames = world.analyse(wave)
            contour = frames.f0
            if "energy" in self.keep:
                energy = self.network.energy_of(frames.envelope)
            if "aperiodicity" in self.keep:
                aperiodicity = frames.aperiodicity
        else:
            contour = world.extract_f0(wave)
        return SourceFeatures(contour, sounding(wave, len(contour)), energy, aperiodicity)


def finely(values: Float64) -> Float64:
    """Values (T,) of frames of 10 ms at frames of 5 ms (2 T,); the last one is repeated."""
    places = np.arange(world.FINE * len(values)) / world.FINE
    return np.interp(places, np.arange(len(values)), values)


def f0_at(contour: Float64, places: Float64) -> Float64:
    """F0 (n,) in Hz at places (n,) of a contour (T,); 0 where the nearest frame is unvoiced."""
    voiced = contour[np.rint(places).astype(np.int64)] > VOICED_HZ
    return np.where(voiced, np.interp(places, np.arange(len(contour)), unbroken(contour)), 0.0)


def fine_f0(contour: Float64) -> Float64:
    """F0 (2 T,) in Hz at 5 ms from a contour (T,) at 10 ms; 0 stays where it is unvoiced."""
    return finely(unbroken(contour)) * np.repeat(contour > VOICED_HZ, world.FINE)


def raised(wave: Float64) -> Float64:
    """Raise a faint signal to the level of the quietest usual ones; leave any other as it is.

    `sounding` and the encoder of content miss words of fainter ones.
    """
    loudest = float(_energy(wave, 1 + len(wave) // world.HOP).max()) / 800
    return wave * np.sqrt(_FAINT / loudest) if _LAST_BITS < loudest < _FAINT else wave


def sounding(wave: Float64, n_frames: int) -> Bool:
    """Mask (T,) of the frames of a signal that are not digital silence, or nearly so."""
    return _energy(wave, n_frames) > _QUIET * 800


def _energy(wave: Float64, n_frames: int) -> Float64:
    """Sum of the squares of 800 samples around the middle of each frame: (T,)."""
    total = np.concatenate(([0.0], np.cumsum(wave**2)))
    middles = np.arange(n_frames) * world.HOP
    begin, end = (np.clip(middles + by, 0, len(wave)) for by in (-400, 400))
    return total[end] - total[begin]


def shaped(made: Tensor, wanted: Tensor, sounds: Tensor, how: BnShaping) -> Tensor:
    """Outputs (B, T, 41) with their variance over the sounding frames (B, T) raised towards the one
    whose logarithm is `wanted` (B, 41), and then with their shape emphasised.

    Log power and aperiodicity stay as they are.
    """
    weight = sounds.to(made.dtype)[..., None]
    n = weight.sum(dim=1, keepdim=True).clamp(min=1.0)
    mean = (made * weight).sum(dim=1, keepdim=True) / n
    own = ((made - mean).square() * weight).sum(dim=1, keepdim=True) / n
    factor = (wanted[:, None].exp() / own.clamp(min=1e-4)).sqrt().clamp(1.0, how.variance)
    stays = torch.zeros(made.shape[-1], dtype=torch.bool, device=made.device)
    stays[0] = stays[world.CODE_DIM] = True
    factor = factor.masked_fill(stays, 1.0)
    emphasis = torch.where(stays, 1.0, how.emphasis).to(made.dtype)
    emphasis[1] = 1.0
    return (mean + (made - mean) * factor) * emphasis


def content_digest(settings: Path) -> object:
    """Digest of the weights whose content a network was trained on, in its synthesiser.yaml."""
    trained = read_settings(settings).get("trained")
    return trained.get("content_digest") if isinstance(trained, dict) else None


# ---- Waveform from a recogniser's content, F0 and an x-vector by HiFi-GAN.
#
# Source: the generator V1 of HiFi-GAN (Kong et al. 2020), written anew; its frames are those of
# `ContentNetwork`, each with the x-vector. So have Champion et al. 2021 and Liu et al. 2025.

BLOCK = 200  # frames rendered at a time
_SLOPE = 0.1  # of the leaky ReLU
_ENDS = 7  # samples of the first and the last convolution


class ResidualBlock(nn.Module):
    """Residual block on (B, C, n): for each dilation a convolution with it and one without.

    names: of the two lists of layers. norm: of their weights.
    """

    names = ("dilated", "plain")
    norm: Callable[[nn.Module], nn.Module] = staticmethod(weight_norm)

    def __init__(self, channels: int, kernel: int, dilations: Sequence[int]) -> None:
        super().__init__()
        for name, of in zip(self.names, (dilations, [1] * len(dilations)), strict=True):
            layers = [nn.Conv1d(channels, channels, kernel, dilation=d, padding="same") for d in of]
            setattr(self, name, nn.ModuleList(map(self.norm, layers)))

    def forward(self, x: Tensor) -> Tensor:
        for first, second in zip(*(getattr(self, name) for name in self.names), strict=True):
            hidden = first(functional.leaky_relu(x, _SLOPE))
            x = x + second(functional.leaky_relu(hidden, _SLOPE))
        return x


class Upsampling(nn.Module):
    """Stage (B, C, T) -> (B, C / 2, rate T): an upsampling, and the mean of residual blocks."""

    def __init__(self, channels: int, rate: int, network: HifiganNetwork) -> None:
        super().__init__()
        half = channels // 2
        self.upsample = weight_norm(
            nn.ConvTranspose1d(
                channels, half, 2 * rate, rate, padding=(rate + 1) // 2, output_padding=rate % 2
            )
        )
        self.blocks = nn.ModuleList(
            ResidualBlock(half, kernel, network.dilations) for kernel in network.kernels
        )

    def forward(self, x: Tensor) -> Tensor:
        x = self.upsample(functional.leaky_relu(x, _SLOPE))
        return torch.stack([block(x) for block in self.blocks]).mean(dim=0)


class Hifigan(ContentNetwork):
    """Network from content, F0, energy and x-vector to signals of 160 samples a frame."""

    def __init__(self, config: HifiganConfig, n_content: int, n_xvector: int) -> None:
        super().__init__(config, n_content, n_xvector)
        self.settings = network = config.network
        width = network.channels
        self.speaker = nn.Linear(n_xvector, network.condition)
        n_in = self.n_inputs + network.condition
        self.first = weight_norm(nn.Conv1d(n_in, width, _ENDS, padding="same"))
        self.stages = nn.ModuleList(
            Upsampling(width // 2**i, rate, network) for i, rate in enumerate(network.rates)
        )
        self.last = weight_norm(
            nn.Conv1d(width // 2 ** len(network.rates), 1, _ENDS, padding="same")
        )

    @property
    def reach(self) -> int:
        """Frames before and after a frame on which its samples depend, or a few more."""
        kernel, frames, rate = max(self.settings.kernels) // 2, _ENDS // 2 + 2.0, 1
        for by in self.settings.rates:
            rate *= by
            frames += 2 / rate * by + kernel * sum(d + 1 for d in self.settings.dilations) / rate
        return math.ceil(frames)

    def forward(self, inputs: Tensor, speaker: Tensor) -> Tensor:
        """Signals (B, 160 T) within -1 ... 1, from inputs (B, n_content + 4, T) of `inputs_of` and
        speaker (B, n_xvector) of length 1."""
        who = torch.tanh(4 * self.speaker(speaker))
        everywhere = who[:, :, None].expand(-1, -1, inputs.shape[2])
        x = self.first(torch.cat((self.unify(inputs), everywhere), dim=1))
        for stage in self.stages:
            x = stage(x)
        return torch.tanh(self.last(functional.leaky_relu(x, _SLOPE)))[:, 0]


class HifiganSynthesiser(BnSynthesiser):
    """Synthesiser of a trained HiFi-GAN. Nothing in it is random."""

    settings = HifiganConfig
    trainer = "steps.synthesis.bottleneck_training:HifiganTrainer"
    network_kind = Hifigan
    keeps = ("energy",)

    @torch.no_grad()
    def _say(
        self, inputs: Tensor, unit: Tensor, contour: Float64, source: SourceFeatures, n_samples: int
    ) -> Float64:
        def render(seen: slice) -> Tensor:
            return self.network(inputs[:, :, seen], unit)

        return in_blocks(source.sounds, n_samples, BLOCK, (self.network.reach,) * 2, render)
