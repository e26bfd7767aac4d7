"""Training of synthesisers on a recogniser's content: on everybody's own voice, and by ear."""

import copy
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyworld
import torch
from torch import Tensor, nn
from torch.nn import functional

from steps.audio import SAMPLE_RATE
from steps.content import reading
from steps.content.extractors import at_frames
from steps.content.units import load_ear
from steps.synthesis.base import trained_files
from steps.synthesis.bottleneck import (
    BnConfig,
    BnEnvelope,
    ContentNetwork,
    Hifigan,
    content_digest,
    fine_f0,
    mean_level,
    shaped,
)
from steps.synthesis.content import Finder, SpeechContents, Stored, wanted_content
from steps.synthesis.f0 import VOICED_HZ, F0Stats, compute_f0_stats, transform_quantised
from steps.synthesis.trained import pulse_train
from steps.synthesis.training import (
    AdversarialTrainer,
    Array,
    CropMaker,
    Crops,
    SpectralLoss,
    SynthesiserTrainer,
    TrainingSpeech,
    draw_part,
    filled,
    stack,
)
from steps.synthesis.world import CODE_DIM, FINE, HOP, SILENCE, WorldFrames, spectrum
from steps.training.audio import TrainingAudio
from steps.training.loop import descend, learning_rate, set_rate
from steps.training.settings import read_config
from steps.training.weights import fill_network, load_state
from utils.arrays import Float32, Float64
from utils.cli import UserError
from utils.seeds import derive_seed, make_rng
from utils.settings import read_settings

# ---- Crops of speech with its content.

WEIGHTS = np.ones(CODE_DIM + 1, np.float32)  # weight among the outputs in the loss
WEIGHTS[1:14] = 2.0
_VARIANCE_WEIGHT = 0.1
_SMALLEST_VARIANCE = 1e-3
_SMALLEST_SD = 1e-2  # of log F0
MELODY_WEIGHT = 0.2
_PARTS = ("melody", "reader")  # of a network, that can be put onto a trained one
LENGTH_WEIGHT = 0.3
_LOUD_ABOVE_SILENCE = 8.0  # log power; below it there is no speech


@dataclass(frozen=True)
class ContentSpeech(TrainingSpeech):
    """Utterances with their content and frames of 5 ms."""

    contents: SpeechContents

    def content(self, utt: str, n_frames: int, *, warped: bool) -> Float32:
        """Content (n_frames, d) at the frames of WORLD."""
        return at_frames(self.contents(utt, warped=warped), self.contents.of, n_frames, HOP)

    def centred(
        self, content: Float32, rng: np.random.Generator, network: ContentNetwork
    ) -> Float32:
        """Content (T, d) of an utterance; in the share of draws that the settings give, with the
        mean of all training speech instead of its own."""
        share = self.config.augmentation.centred
        if not share or rng.random() >= share:
            return content
        return content - content.mean(axis=0) + network.statistic("content_mean").astype(np.float32)


class ContentCrops(CropMaker):
    """Crops of T frames for networks on content, with frames or signals as targets.

    inputs (B, d + 4, T); xvectors (B, n); sounds (B, T), 0 in silence, else 1; melody (B, T), log
    F0 in the utterance's deviations from its mean, NaN where unvoiced. Then outputs (B, 2 T, 41),
    normalised, and variances (B, 41), the logarithms of those of whole utterances; or signals
    (B, 160 T) at FULL_LEVEL.
    """

    purpose = "bn"

    def __init__(
        self, speech: ContentSpeech, network: ContentNetwork, speakers: Sequence[str], signals: bool
    ) -> None:
        super().__init__(speech, speakers)
        self.network, self.signals = network, signals

    def crop(self, rng: np.random.Generator, speaker: str, *, augmented: bool) -> dict[str, Array]:
        augment, n_frames = self.config.augmentation, self.n_frames
        utt, frames = self.speech.draw(rng, speaker)
        warped = augmented and rng.random() < augment.warped
        content = self.speech.content(utt, len(frames), warped=warped)
        if augmented:
            content = self.speech.centred(content, rng, self.network)
        part = draw_part(rng, len(frames), n_frames)
        energy = self.network.energy_of(frames.envelope)
        given = not augmented or rng.random() >= augment.no_energy
        inputs = self.network.inputs_of(
            content[part], frames.f0[part], energy[part] if given else None
        )
        xvector = self.speech.xvectors[speaker]
        if augmented:
            noise = partial(rng.standard_normal, dtype=np.float32)
            n_content = content.shape[1]
            inputs[:, :n_content] += augment.content_noise * noise((len(inputs), n_content))
            xvector = xvector + augment.xvector_noise * noise(len(xvector))
        return {
            "inputs": filled(inputs, n_frames).T,
            "xvectors": xvector.astype(np.float32),
            "sounds": filled((frames.envelope[part, 0] > SILENCE).astype(np.float32), n_frames),
            "melody": filled(relative_f0(frames.f0)[part], n_frames),
            **self._targets(utt, part, mean_level(frames.envelope[:, 0])),
        }

    def _targets(self, utt: str, part: slice, level: float) -> dict[str, Array]:
        if self.signals:
            return {"signals": self.speech.samples(utt, part.start, self.n_frames, level)}
        frames = self.speech.contents.fine(utt)
        mean, sd = self.network.statistic("out_mean"), self.network.statistic("out_sd")
        scaled = (np.hstack((frames.envelope, frames.aperiodicity)) - mean) / sd
        scaled[:, 0] = self.network.energy_of(frames.envelope)
        outputs: Float32 = scaled.astype(np.float32)
        found = outputs[part.start * FINE : part.stop * FINE]
        return {
            "outputs": filled(found, self.n_frames * FINE),
            "variances": log_variances(outputs, frames),
        }


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
    return np.log(outputs[loud].var(axis=0) + _SMALLEST_VARIANCE).astype(np.float32)


def set_statistics(network: ContentNetwork, speech: ContentSpeech, speakers: Sequence[str]) -> None:
    """Means and deviations over the speech of the training speakers."""
    content, f0, out, levels = [], [], [], []
    for utt in speech.utterances(speakers):
        frames = speech.frames(utt)
        values, power = speech.content(utt, len(frames), warped=False), frames.envelope[:, 0]
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
    network.units.fit(scaled.astype(np.float32), derive_seed(speech.seed, "bn-units"))
    network.get_buffer("out_mean")[0] = 0.0
    network.get_buffer("level").fill_(float(np.mean(levels)))


def take_over(network: ContentNetwork, folder: Path, digest: str) -> tuple[str, bytes]:
    """Copy a trained network into this one, where only the part that it lacks then learns.

    folder: of the trained one. Returns the part, of _PARTS, and the bytes of its weights.
    UserError where it lacks none or both, or its shapes or its content's digest differ.
    """
    conf, weights = trained_files(folder)
    known, state = content_digest(conf), load_state(weights)
    has = {name.split(".")[0] for name in state}
    lacks = [part for part in _PARTS if getattr(network, part) is not None and part not in has]
    if len(lacks) != 1:
        raise UserError(
            f"{folder}: one part is put onto a network without it, by network.melody or "
            f"network.reader; {' and '.join(lacks) or 'none'} would be"
        )
    if known != digest:
        raise UserError(f"{folder}: was trained on other content ({known}) than is here ({digest})")
    if (shaping := read_config(BnConfig, conf).shaping) != network.shaping:
        raise UserError(f"{conf}: {shaping}; that of the part's CONF must be the same")
    own = {x: value for x, value in network.state_dict().items() if x.startswith(f"{lacks[0]}.")}
    fill_network(network, {**state, **own}, weights)
    for name, parameter in network.named_parameters():
        parameter.requires_grad_(name in own)
    return lacks[0], weights.read_bytes()


# ---- Crops of content with the phones that are said.


class ReadingCrops(CropMaker):
    """Crops of T frames of content for a reader, in P phones.

    symbols, sizes (B, P), at (B, T), places (B, T, 8): see `reading`; said (B, T, d), content in
    deviations from the utterance's mean; spoken (B, P), 1 where a phone of the crop is not silence;
    known (B, T), 1, and 0 after the end.
    """

    purpose = "bn-reading"

    def __init__(
        self, speech: ContentSpeech, network: ContentNetwork, speakers: Sequence[str],
        phones: Mapping[str, Sequence[reading.Phone]],
    ) -> None:  # fmt: skip
        super().__init__(speech, speakers)
        self.network, self.phones = network, phones
        self.n_frames = round(self.n_frames * HOP / speech.contents.of.hop)

    def crop(self, rng: np.random.Generator, speaker: str, *, augmented: bool) -> dict[str, Array]:
        utt, _ = self.speech.draw(rng, speaker)
        n_all = len(self.speech.contents(utt, warped=False))
        return self.part(utt, draw_part(rng, n_all, self.n_frames))

    def part(self, utt: str, part: slice) -> dict[str, Array]:
        """The crop of at most T frames of content of an utterance."""
        said, phones = self.speech.contents(utt, warped=False), self.phones[utt]
        said = (said - said.mean(axis=0)) / self.network.statistic("content_sd")
        at, places = reading.frames_of(phones, self.speech.contents.of, len(said))
        at, n_phones = at[part], self.n_frames + 2 * reading.MARGIN
        begin, end = max(0, at[0] - reading.MARGIN), at[-1] + 1 + reading.MARGIN
        near = phones[begin:end]
        number = begin + np.arange(len(near))
        spoken = (number >= at[0]) & (number <= at[-1])
        spoken &= [phone.name != reading.SILENCE for phone in near]
        return {
            "symbols": filled(reading.symbols_of(near), n_phones),
            "sizes": filled(reading.sizes_of(near), n_phones),
            "spoken": filled(spoken.astype(np.float32), n_phones),
            "at": filled(at - begin, self.n_frames), "places": filled(places[part], self.n_frames),
            "said": filled(said[part].astype(np.float32), self.n_frames),
            "known": filled(np.ones(len(at), np.float32), self.n_frames),
        }  # fmt: skip

    def around(self, utt: str, part: slice) -> dict[str, Array]:
        """The crop for the frames of 10 ms of a part of an utterance, and where these lie in it:
        before, share (T,), so that each is between two frames of content."""
        of, n_frames = self.speech.contents.of, part.stop - part.start
        n_all = len(self.speech.contents(utt, warped=False))
        times = (part.start + np.arange(n_frames)) * HOP
        where = np.clip((times - of.first) / of.hop, 0, n_all - 1)
        begin = int(where[0])
        where = np.minimum(where - begin, min(self.n_frames, n_all - begin) - 1)
        before = np.minimum(where.astype(np.int64), self.n_frames - 2)
        found = self.part(utt, slice(begin, begin + self.n_frames))
        return {**found, "before": before, "share": (where - before).astype(np.float32)}


def read_part(reader: reading.Reader, x: Crops) -> tuple[Tensor, Tensor]:
    """Content (B, T, d) and logarithms (B, P) of the lengths of phones that a reader makes."""
    phones, lengths = reader.listen(x["symbols"])
    return reader(phones, x["sizes"], x["at"], x["places"]), lengths


def log_spread(off: Tensor) -> Tensor:
    """Half the fall of the log likelihood per value of differences (N, d), as if they were Gaussian
    with one covariance: directions in which they are large count least."""
    spread = off.T @ off / len(off)
    least = _SHRINK * spread.diagonal().mean() * torch.eye(len(spread), device=off.device)
    return torch.logdet(spread + least) / (2 * len(spread))


# ---- Synthesis of WORLD in PyTorch, so that a loss can have a gradient to the frames.
#
# Pulses and noise are filtered by the envelope at minimum phase, in frames of 20 ms every 5 ms. It
# serves training, and `world.synthesise`, which places its pulses more exactly, serves listening.

_SHIFT = HOP // FINE  # samples
_WIDTH, _FFT = 4 * _SHIFT, 1024  # samples
_LOWEST_GAIN = 1e-6  # of the pulses' power; a root has no gradient at 0


class WorldVoice(nn.Module):
    """Signals from frames, with a gradient. Buffers hold how WORLD decodes its codes."""

    codes: Tensor
    flat: Tensor
    clear: Tensor
    slope: Tensor
    causal: Tensor
    window: Tensor

    def __init__(self) -> None:
        super().__init__()
        # Log power is linear in the codes, the aperiodicity in dB in its one band.
        flat = np.log(spectrum(np.zeros((1, CODE_DIM))))
        coded = np.array([[0.0], [-1.0]])
        clear, full = 20 * np.log10(pyworld.decode_aperiodicity(coded, SAMPLE_RATE, _FFT))
        causal = np.zeros(_FFT)
        causal[0] = causal[_FFT // 2] = 1.0
        causal[1 : _FFT // 2] = 2.0
        for name, values in (
            ("codes", np.log(spectrum(np.eye(CODE_DIM))) - flat),
            ("flat", flat[0]),
            ("clear", clear),
            ("slope", clear - full),
            ("causal", causal),
            ("window", np.hanning(_WIDTH + 1)[:-1]),
        ):
            self.register_buffer(name, torch.from_numpy(values.astype(np.float32)))

    def excite(self, signals: Tensor) -> Tensor:
        """Spectra (B, T, 513) of the frames in excitations (B, 80 T)."""
        padded = functional.pad(signals, (_WIDTH // 2, _WIDTH // 2))
        frames = padded.unfold(1, _WIDTH, _SHIFT)[:, : signals.shape[1] // _SHIFT]
        return torch.fft.rfft(frames * self.window, _FFT)

    def forward(
        self, envelope: Tensor, aperiodicity: Tensor, voiced: Tensor, pulses: Tensor, noise: Tensor
    ) -> Tensor:
        """Signals (B, 80 T) from codes (B, T, 40), aperiodicity in dB and voicing (B, T), and
        spectra of `excite` (B, T, 513)."""
        cepstra = torch.fft.irfft((envelope @ self.codes + self.flat) / 2, _FFT) * self.causal
        response = torch.exp(torch.fft.rfft(cepstra, _FFT))
        decibels = self.clear + self.slope * aperiodicity[..., None]
        share = torch.where(voiced[..., None] > 0, 10 ** (decibels / 20), decibels.new_ones(()))
        tone = torch.sqrt((1 - share.square()).clamp(min=_LOWEST_GAIN))
        frames = torch.fft.irfft((pulses * tone + noise * share) * response, _FFT)
        n = frames.shape[1] * _SHIFT
        length = (frames.shape[1] - 1) * _SHIFT + _FFT
        joined = functional.fold(frames.transpose(1, 2), (1, length), (1, _FFT), stride=(1, _SHIFT))
        return joined[:, 0, 0, _WIDTH // 2 : _WIDTH // 2 + n] * (2 * _SHIFT / _WIDTH)


# ---- Learning by ear: others say the words, and the content's encoder measures whether they are
# left.
#
# Training on everybody's own voice never shows a network how one speaker's words sound in another's
# voice, and an error that costs a word weighs no more than one that nobody hears. Here a training
# speaker's words are said in the voice of another one, by a differentiable synthesis, and the
# encoder's frames of them are compared with those of the source.
#
# The effect of a mere change of voice on the encoder's frames must not count, or the network would
# learn to keep the source's voice: distances are measured in units of it (within-class covariance
# normalisation, Hatch et al. 2006), estimated from the contents of warped speech.

_SHRINK = 0.1  # share of the mean variance added to each variance of a covariance
_EVERY = 3  # every so many frames of content one is used


class OthersCrops:
    """Maker of crops of some speakers for others to say, a function of the seed and a name.

    B crops of T frames of 10 ms: inputs (B, d + 4, T) of the source's content and the other's F0,
    xvectors (B, n) of the others, voiced and sounds (B, 2 T), pulses and noise (B, 160 T), and
    signals (B, 160 T) of the source.
    """

    def __init__(
        self, speech: ContentSpeech, network: ContentNetwork, speakers: Sequence[str],
        reading: ReadingCrops | None = None,
    ) -> None:  # fmt: skip
        """reading: crops also have what a reader needs, see `ReadingCrops.around`."""
        self.speech, self.network, self.speakers = speech, network, speakers
        self.reading = reading
        self._f0 = cache(self._f0_of)

    def __call__(self, name: str, n: int) -> Crops:
        """n crops."""
        rng = make_rng(self.speech.seed, "bn-hearing", name)
        return stack([self._crop(rng) for _ in range(n)])

    def _crop(self, rng: np.random.Generator) -> dict[str, Array]:
        speech, n_frames = self.speech, round(self.speech.config.hearing.crop_seconds * 100)
        who, other = (self.speakers[int(i)] for i in rng.integers(len(self.speakers), size=2))
        utt, frames = speech.draw(rng, who)
        part = draw_part(rng, len(frames), n_frames)
        wanted = transform_quantised(frames.f0[part], self._f0(who), self._f0(other))
        content = speech.content(utt, len(frames), warped=False)
        content = speech.centred(content, rng, self.network)[part]
        inputs = self.network.inputs_of(content, wanted, None)
        f0, n_samples = filled(wanted, n_frames), n_frames * HOP
        xvector = speech.xvectors[other]
        noise = speech.config.augmentation.xvector_noise * rng.standard_normal(len(xvector))
        return {
            "inputs": filled(inputs, n_frames).T,
            "xvectors": (xvector + noise).astype(np.float32),
            "voiced": fine_f0(f0) > VOICED_HZ,
            "sounds": np.repeat(filled(frames.envelope[part, 0] > SILENCE, n_frames), FINE),
            "pulses": pulse_train(f0, n_samples, rng.uniform(0, 2 * np.pi)).astype(np.float32),
            "noise": rng.standard_normal(n_samples, dtype=np.float32),
            "signals": speech.samples(utt, part.start, n_frames),
            **self._read(utt, slice(part.start, part.start + n_frames)),
        }

    def _read(self, utt: str, part: slice) -> dict[str, Array]:
        return {} if self.reading is None else self.reading.around(utt, part)

    def _f0_of(self, speaker: str) -> F0Stats:
        utts = self.speech.audio.spk2utt[speaker]
        return compute_f0_stats([self.speech.frames(utt).f0 for utt in utts])


class Ear(nn.Module):
    """Listener who says which share of the words is lost: 0 none, 1 all but the mean frame."""

    metric: Tensor | None

    def __init__(self, content: str, metric: Float32 | None, device: str) -> None:
        """metric: of `metric_of`; None where only `off` is asked for."""
        super().__init__()
        self.encode = load_ear(content, device)
        self.voice = WorldVoice()
        self.register_buffer("metric", None if metric is None else torch.from_numpy(metric))
        self.to(device)

    def off(self, network: BnEnvelope, x: Crops) -> Tensor:
        """Differences (B, T, d) of the encoder's frames of the crops from those of the source,
        with a gradient to the network and the crops' inputs."""
        unit = functional.normalize(x["xvectors"], dim=1)
        made = network(x["inputs"], unit).transpose(1, 2)
        made = shaped(made, network.variance(unit).detach(), x["sounds"], network.shaping)
        sources = (self.voice.excite(x[name]) for name in ("pulses", "noise"))
        said = self.voice(*network.decode(made, x["sounds"]), x["voiced"], *sources)
        with torch.no_grad():
            right = self.encode(x["signals"])
        wanted, own = (part.square().mean(dim=1, keepdim=True) for part in (x["signals"], said))
        return self.encode(said * (wanted / own.clamp(min=1e-12)).sqrt()) - right

    def forward(self, network: BnEnvelope, crops: Crops) -> Tensor:
        """Loss as a number, with a gradient to the network."""
        assert self.metric is not None
        x = {name: part.to(self.metric.device) for name, part in crops.items()}
        return (self.off(network, x) @ self.metric).square().sum(dim=2).mean()


def metric_of(speech: Any, speakers: Sequence[str]) -> Float32:
    """Matrix (d, d) that maps a difference of frames to a vector whose squared length is their
    distance.

    The unit is the effect of a change of voice, and the distance of a frame from the mean is 1 on
    average.
    """
    plain, change = [], []
    for utt in speech.utterances(speakers):
        own, warped = (speech.contents(utt, warped=how)[::_EVERY] for how in (False, True))
        plain.append(own)
        change.append(own - warped)
    frames, moved = (np.concatenate(x).astype(np.float64) for x in (plain, change))
    within = moved.T @ moved / len(moved)
    within += _SHRINK * np.trace(within) / len(within) * np.eye(len(within))
    precision = np.linalg.inv(within)
    away = frames - frames.mean(axis=0)
    mean = float(np.einsum("td,de,te->", away, precision, away, optimize=True)) / len(away)
    return np.linalg.cholesky(precision / mean).astype(np.float32)


# ---- Training of the networks on content.


class ContentTrainer(SynthesiserTrainer):
    """Training of a network on content; see SynthesiserTrainer.

    kind: its class. signals: whether crops have signals. content: a folder of
    steps/extract_content.py; without it content is found while training. onto: see `take_over`;
    its synthesiser.yaml becomes `trained: onto:` of the new one. only: the part that learns, or
    all does.
    """

    kind: ClassVar[type[ContentNetwork]]
    signals: ClassVar[bool] = False
    only: str = ""
    distance_name = best_by = "valid_loss"

    def prepare(self) -> None:
        audio, config = self.speech.audio, self.config
        wanted = wanted_content(config, self.seed)
        contents = (
            Finder(audio, wanted, self.device, self.plan.cache_gb)
            if self.content is None
            else Stored(self.content, wanted, audio.lengths)
        )
        speech = ContentSpeech(**vars(self.speech), contents=contents)
        if config.network.reader and self.onto is None:
            raise UserError("network.reader: it is put onto a trained network (--onto)")
        digest, n_xvector = contents.of.digest, self.speech.matrix(self.speakers).shape[1]
        self.draw_weights("bn-weights")
        self.network = self.kind(config, contents.of.width, n_xvector)
        self.parts, self.known = [digest], {"content_digest": digest}
        if self.onto is None:
            set_statistics(self.network, speech, self.speakers)
        else:
            self.only, weights = take_over(self.network, self.onto, digest)
            self.parts.append(weights)
            self.known["onto"] = read_settings(trained_files(self.onto)[0])
        # Crops are made on the processor, wherever the network is.
        own = copy.deepcopy(self.network)
        if self.only == "reader":
            phones = self._align(audio)
            self.parts.append([phones[utt] for utt in sorted(phones)])
            self.make = ReadingCrops(speech, own, self.speakers, phones)
        else:
            self.make = ContentCrops(speech, own, self.speakers, self.signals)
        self.prepare_losses(speech)

    def _align(self, audio: TrainingAudio) -> dict[str, list[reading.Phone]]:
        """Phones of every utterance of the training, with their lengths in it."""
        from steps.asr.engines import Aligner

        if self.texts is None:
            raise UserError("network.reader: the training data has no text; it is what is read")
        aligner, every = Aligner(), chain.from_iterable(audio.spk2utt.values())
        read, texts = self.speech.audio.read, self.texts
        return {
            utt: reading.aligned(
                aligner, utt, read(utt, 0, audio.lengths[utt]).astype(np.float64), texts[utt]
            )
            for utt in every
        }

    @abstractmethod
    def prepare_losses(self, speech: ContentSpeech) -> None:
        """Make optimisers, and other state beside the network."""

    def off_melody(self, batch: Crops) -> Tensor:
        """Mean distance of F0 on voiced frames, in deviations."""
        x = self.on_device(batch)
        voiced = ~x["melody"].isnan() & (x["sounds"] > 0)
        made = self.network.predict_f0(x["inputs"])
        total: Tensor = ((made - x["melody"].nan_to_num()).abs() * voiced).sum()
        return total / (voiced.sum() + 1e-9)

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """See SynthesiserTrainer: also the distance of F0."""
        figures = super().validate()
        if self.valid is not None and "melody" in self.valid and self.network.melody is not None:
            figures["valid_melody"] = float(self.off_melody(self.valid))
        return figures


class BnTrainer(ContentTrainer):
    """Training of the network that makes WORLD's frames. Its batches are crops, and in steps by ear
    others' crops, or None."""

    kind = BnEnvelope
    ear: Ear | None = None

    def prepare_losses(self, speech: ContentSpeech) -> None:
        hearing, own = self.config.hearing, self.make.network
        if hearing.weight:
            read = self.make if self.only == "reader" else None
            metric = None if read else metric_of(speech, self.speakers)
            self.ear = Ear(self.config.content, metric, self.device)
            self.others = OthersCrops(speech, own, self.speakers, read)
            held = OthersCrops(speech, own, self.held, read)
            self.valid_others = held("validation", hearing.batch) if self.held else None
        self.optimiser = torch.optim.AdamW(
            self.network.parameters(), self.plan.learning_rate, weight_decay=self.plan.weight_decay
        )
        if self.only == "melody":
            self.best_by = "valid_melody"

    def batch(self, step: int) -> tuple[Crops, Crops | None]:
        hearing = self.config.hearing
        by_ear = self.ear is not None and step >= self.plan.steps - hearing.steps
        return self.make(step), self.others(str(step), hearing.batch) if by_ear else None

    def update(self, step: int, batch: tuple[Crops, Crops | None]) -> dict[str, float]:
        self.network.train(not self.only)
        if self.only:
            getattr(self.network, self.only).train()
        set_rate(self.optimiser, learning_rate(self.plan, step))
        crops, others = batch
        found: dict[str, Tensor] = {}
        if self.only == "melody":
            loss = found["melody"] = self.off_melody(crops)
        elif self.only:
            loss = found["loss"] = self.distance_on(crops)
            if self.ear is not None and others is not None:
                found["lost"] = self._misheard(others)
                loss = loss + self.config.hearing.weight * found["lost"]
        else:
            found["loss"] = self.distance_on(crops)
            guess = self.network.variance(crops["xvectors"].to(self.device))
            found["variance"] = (guess - crops["variances"].to(self.device)).abs().mean()
            loss = found["loss"] + _VARIANCE_WEIGHT * found["variance"]
            if self.network.melody is not None:
                found["melody"] = self.off_melody(crops)
                loss = loss + MELODY_WEIGHT * found["melody"]
            if self.ear is not None and others is not None:
                found["lost"] = self.ear(self.network, others)
                loss = loss + self.config.hearing.weight * found["lost"]
        descend(loss, self.optimiser, self.network.parameters(), self.plan.gradient_norm)
        return {name: float(part.detach()) for name, part in found.items()}

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """See Trainer: also the loss of held-out speakers' words in each other's voice."""
        figures = super().validate()
        if self.ear is not None and self.valid_others is not None:
            heard = self._misheard if self.only else partial(self.ear, self.network)
            figures["valid_lost"] = float(heard(self.valid_others))
        return figures

    def distance_on(self, batch: Crops) -> Tensor:
        """See ContentTrainer: weighted mean over the outputs of speech, in deviations; of a
        reader, see `_misread`."""
        if self.only == "reader":
            return self._misread(self.on_device(batch))
        x, weights = self.on_device(batch), torch.from_numpy(WEIGHTS).to(self.device)
        sounds = x["sounds"].repeat_interleave(FINE, dim=1)
        made = self.network(x["inputs"], x["xvectors"]).transpose(1, 2)
        apart = (made - x["outputs"]).abs() * weights
        return (apart.sum(dim=2) * sounds).sum() / (sounds.sum() * weights.sum() + 1e-9)

    def _misread(self, x: Crops) -> Tensor:
        """Spread of the content that was read, and the error of its lengths."""
        assert self.network.reader is not None
        made, lengths = read_part(self.network.reader, x)
        long = ((lengths - x["sizes"]).square() * x["spoken"]).sum() / x["spoken"].sum()
        return log_spread((made - x["said"])[x["known"] > 0]) + LENGTH_WEIGHT * long

    def _misheard(self, others: Crops) -> Tensor:
        """Spread of what the ear hears, when others say what was read, about the source."""
        assert self.network.reader is not None and self.ear is not None
        x = self.on_device(others)
        made, _ = read_part(self.network.reader, x)
        rows = torch.arange(len(made), device=made.device)[:, None]
        before, share = x["before"], x["share"][..., None]
        content = made[rows, before] * (1 - share) + made[rows, before + 1] * share
        n = content.shape[2]
        x["inputs"] = torch.cat((content.transpose(1, 2), x["inputs"][:, n:]), dim=1)
        return log_spread(self.ear.off(self.network, x).flatten(0, 1))


class HifiganTrainer(AdversarialTrainer, ContentTrainer):
    """Training of HiFi-GAN with discriminators; see `loop.Trainer`. loss: log-mel, nepers."""

    kind = Hifigan
    signals = True

    def prepare_losses(self, speech: ContentSpeech) -> None:
        self.draw_weights("hifigan-weights")
        self.spectral = SpectralLoss().to(self.device).log_mel_distance
        rate, decay = self.plan.learning_rate, self.plan.weight_decay
        self.oppose(lambda x: torch.optim.AdamW(x, rate, betas=(0.8, 0.99), weight_decay=decay))

    def update(self, step: int, batch: Crops) -> dict[str, float]:
        self.network.train()
        for optimiser in (self.optimiser, self.opponent):
            set_rate(optimiser, learning_rate(self.plan, step))
        melody = None if self.network.melody is None else self.off_melody(batch)
        more = 0.0 if melody is None else MELODY_WEIGHT * melody
        figures = self.play(self._made(batch), batch["signals"].to(self.device), more)
        return figures if melody is None else {**figures, "melody": float(melody.detach())}

    def distance_on(self, batch: Crops) -> Tensor:
        """The distance of log-mel spectra, in nepers."""
        return self.spectral(self._made(batch), batch["signals"].to(self.device))

    def _made(self, batch: Crops) -> Tensor:
        return self.network(*(batch[x].to(self.device) for x in ("inputs", "xvectors")))
