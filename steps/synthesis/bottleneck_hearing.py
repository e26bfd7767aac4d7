"""Learning by ear: WORLD's synthesis with a gradient, and what an encoder hears of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyworld
import torch
from torch import Tensor, nn
from torch.nn import functional

from steps.audio import SAMPLE_RATE
from steps.content.units import load_ear
from steps.synthesis.bottleneck import BnEnvelope, ContentNetwork, fine_f0, shaped
from steps.synthesis.f0 import VOICED_HZ, F0Stats, compute_f0_stats, transform_quantised
from steps.synthesis.trained import pulse_train
from steps.synthesis.world import CODE_DIM, FINE, HOP, SILENCE, spectrum
from utils.arrays import Float32, Float64
from utils.seeds import make_rng

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
        clear, full = (_bands(value) for value in (0.0, -1.0))
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
        spectra: Tensor = torch.fft.rfft(frames * self.window, _FFT)
        return spectra

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


def _bands(value: float) -> Float64:
    """Aperiodicity (513,) in dB of a coded value."""
    coded = np.array([[value]])
    decoded: Float64 = pyworld.decode_aperiodicity(coded, SAMPLE_RATE, _FFT)[0]
    return 20 * np.log10(decoded)


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


@dataclass(frozen=True)
class Heard:
    """Batch of B crops of T frames of 10 ms, for others to say.

    inputs (B, d + 4, T) of the source's content and the other's F0, xvectors (B, n) of the others,
    voiced and sounds (B, 2 T), pulses and noise (B, 160 T), and signals (B, 160 T) of the source.
    """

    inputs: Tensor
    xvectors: Tensor
    voiced: Tensor
    sounds: Tensor
    pulses: Tensor
    noise: Tensor
    signals: Tensor


class HeardMaker:
    """Maker of crops of some speakers for others to say, a function of the seed and a name."""

    def __init__(self, material: Any, network: ContentNetwork, speakers: Sequence[str]) -> None:
        """material: from bn_training."""
        self.material, self.network, self.speakers = material, network, speakers
        self._stats: dict[str, F0Stats] = {}

    def __call__(self, name: str, n: int) -> Heard:
        """n crops."""
        rng = make_rng(self.material.seed, "bn-hearing", name)
        crops = [self._crop(rng) for _ in range(n)]
        parts = zip(*crops, strict=True)
        return Heard(*(torch.from_numpy(np.stack(part)) for part in parts))

    def _crop(self, rng: np.random.Generator) -> tuple[Any, ...]:
        material = self.material
        n_frames = round(material.config.hearing.crop_seconds * 100)
        who, other = (self.speakers[int(i)] for i in rng.integers(len(self.speakers), size=2))
        utt = material.draw(rng, who)
        frames = material.frames(utt)
        start = int(rng.integers(max(1, len(frames) - n_frames + 1)))
        part = slice(start, start + n_frames)
        f0 = transform_quantised(frames.f0[part], self._f0(who), self._f0(other))
        content = material.content(utt, len(frames), warped=False)[part]
        inputs = self.network.inputs_of(content, f0, None)
        pad, n_samples = n_frames - len(f0), n_frames * HOP
        f0 = np.pad(f0, (0, pad))
        sounds = np.pad(frames.envelope[part, 0] > SILENCE, (0, pad))
        xvector = material.voices.xvectors[other]
        noise = material.config.augmentation.xvector_noise * rng.standard_normal(len(xvector))
        return (
            np.pad(inputs, ((0, pad), (0, 0))).T.copy(),
            (xvector + noise).astype(np.float32),
            fine_f0(f0) > VOICED_HZ,
            np.repeat(sounds, FINE),
            pulse_train(f0, n_samples, rng.uniform(0, 2 * np.pi)).astype(np.float32),
            rng.standard_normal(n_samples, dtype=np.float32),
            material.samples(utt, start, n_frames),
        )

    def _f0(self, speaker: str) -> F0Stats:
        if speaker not in self._stats:
            utts = self.material.audio.spk2utt[speaker]
            contours = [self.material.frames(utt).f0 for utt in utts]
            self._stats[speaker] = compute_f0_stats(contours)
        return self._stats[speaker]


class Ear(nn.Module):
    """Share of the words that is lost: 0 none, 1 as if only the mean frame were heard."""

    metric: Tensor

    def __init__(self, material: Any, speakers: Sequence[str], device: str) -> None:
        """material: from bn_training, with contents of warped speech."""
        super().__init__()
        self.encode = load_ear(material.config.content, device)
        self.voice = WorldVoice()
        self.register_buffer("metric", torch.from_numpy(metric_of(material, speakers)))
        self.to(device)

    def forward(self, network: BnEnvelope, crops: Heard) -> Tensor:
        """Loss as a number, with a gradient to the network."""
        device = self.metric.device
        inputs, xvectors, voiced, sounds, pulses, noise, signals = (
            part.to(device) for part in vars(crops).values()
        )
        unit = functional.normalize(xvectors, dim=1)
        made = network(inputs, unit).transpose(1, 2)
        made = shaped(made, network.variance(unit).detach(), sounds, network.shaping)
        said = self.voice(
            *network.decode(made, sounds), voiced, self.voice.excite(pulses),
            self.voice.excite(noise),
        )  # fmt: skip
        with torch.no_grad():
            right = self.encode(signals)
        wanted, own = (part.square().mean(dim=1, keepdim=True) for part in (signals, said))
        heard = self.encode(said * (wanted / own.clamp(min=1e-12)).sqrt())
        lost: Tensor = ((heard - right) @ self.metric).square().sum(dim=2).mean()
        return lost


def metric_of(material: Any, speakers: Sequence[str]) -> Float32:
    """Matrix (d, d) that maps a difference of frames to a vector whose squared length is their
    distance.

    The unit is the effect of a change of voice, and the distance of a frame from the mean is 1 on
    average.
    """
    plain, change = [], []
    for utt in (utt for speaker in speakers for utt in material.audio.spk2utt[speaker]):
        own, warped = (material.contents(utt, warped=how)[::_EVERY] for how in (False, True))
        plain.append(own)
        change.append(own - warped)
    frames, moved = (np.concatenate(x).astype(np.float64) for x in (plain, change))
    within = moved.T @ moved / len(moved)
    within += _SHRINK * np.trace(within) / len(within) * np.eye(len(within))
    precision = np.linalg.inv(within)
    away = frames - frames.mean(axis=0)
    mean = float(np.einsum("td,de,te->", away, precision, away, optimize=True)) / len(away)
    return np.linalg.cholesky(precision / mean).astype(np.float32)
