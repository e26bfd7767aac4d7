"""Voices of eSpeak NG, a speaker each, and the rooms and microphones that they pass."""

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import espeakng_loader
import numpy as np
from scipy import fft

from utils.arrays import Float64, Int16
from utils.cli import UserError
from utils.seeds import make_rng

# ---- eSpeak NG through ctypes: one speaker a process, voices of our own, samples that repeat.
#
# The library and its data come with the package `espeakng-loader`; the system needs nothing.
# What makes the samples repeat:
#
# - the library seeds its noise from the clock, so `espeak_ng_SetRandSeed` is called once after
#   start;
# - it keeps state from one utterance to the next, so a process speaks for one speaker only and
#   always from the speaker's first utterance on (a second `Synthesiser` in one process is an
#   error).

# Voices must be named by their files: names such as `en-gb` are refused together with a variant.
ACCENTS = (
    "gmw/en",
    "gmw/en-029",
    "gmw/en-GB-scotland",
    "gmw/en-GB-x-gbclan",
    "gmw/en-GB-x-gbcwmd",
    "gmw/en-GB-x-rp",
    "gmw/en-US",
    "gmw/en-US-nyc",
)

_SYNCHRONOUS = 2  # AUDIO_OUTPUT_SYNCHRONOUS: the callback runs within espeak_Synth
_DONT_EXIT = 0x8000  # espeakINITIALIZE_DONT_EXIT
_UTF8 = 1  # espeakCHARS_UTF8
_BUFFER_MS = 1000
_RATE = 1  # espeakRATE

_Callback = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p
)
_VARIANT = "own"
_started = False


def _fill_data_folder(folder: Path) -> None:
    """Links to the package's data, without its hundred variants."""
    for part in Path(espeakng_loader.get_data_path()).iterdir():
        if part.name != "voices":
            (folder / part.name).symlink_to(part)
    (folder / "voices" / "!v").mkdir(parents=True)


class Synthesiser:
    """Synthesiser eSpeak NG for one speaker: the only one of its process.

    `folder`: empty, with a short path, for the library's data; the caller removes it afterwards.
    `seed`: of the noise in the voice. Raises UserError where the library does not start.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        global _started
        if _started:
            raise RuntimeError("one speaker a process: eSpeak NG keeps state between utterances")
        _started = True
        _fill_data_folder(folder)
        self._variant = folder / "voices" / "!v" / _VARIANT
        self._library = ctypes.CDLL(espeakng_loader.get_library_path())
        self.sample_rate = self._start(folder)
        self._library.espeak_ng_SetRandSeed(ctypes.c_long(seed % 2**31))
        self._chunks: list[bytes] = []
        self._callback = _Callback(self._collect)  # kept, or ctypes would free it
        self._library.espeak_SetSynthCallback(self._callback)

    def _start(self, folder: Path) -> int:
        library, name = self._library, os.fsencode(folder)
        rate = int(library.espeak_Initialize(_SYNCHRONOUS, _BUFFER_MS, name, _DONT_EXIT))
        # A path that is too long is not refused: the library looks for its data elsewhere.
        used = ctypes.c_char_p()
        library.espeak_Info(ctypes.byref(used))
        if rate <= 0 or used.value != name:
            raise UserError(
                f"{folder}: eSpeak NG cannot start from here; "
                "set TMPDIR to a folder with a short path"
            )
        return rate

    def _collect(self, samples: "ctypes._Pointer[ctypes.c_short]", n: int, _events: int) -> int:
        if samples and n > 0:
            self._chunks.append(ctypes.string_at(samples, 2 * n))
        return 0

    def speak(self, text: str, accent: str, variant: str, words_per_minute: int) -> Int16:
        """Speak: samples (n,) int16 at `sample_rate`.

        `accent`: one of ACCENTS. `variant`: text of a voice file that is laid over it.
        """
        self._variant.write_text(variant, encoding="ascii")
        self._check("espeak_SetVoiceByName", f"{accent}+{_VARIANT}".encode("ascii"))
        self._check("espeak_SetParameter", _RATE, words_per_minute, 0)
        self._chunks.clear()
        data = text.encode("utf-8")
        size, zero = ctypes.c_size_t(len(data) + 1), ctypes.c_uint(0)
        self._check("espeak_Synth", data, size, zero, 0, zero, _UTF8, None, None)
        return np.frombuffer(b"".join(self._chunks), dtype=np.int16)

    def _check(self, name: str, *arguments: object) -> None:
        function: Callable[..., int] = getattr(self._library, name)
        status = function(*arguments)
        if status != 0:
            raise UserError(f"eSpeak NG: {name} failed with status {status}")


# ---- Voices: each speaker has one, and speaks a little differently in every utterance.
#
# Two normal distributions, as in two-covariance PLDA: a speaker's parameters lie around the mean of
# the gender, and an utterance's around the speaker's own.

_N_PEAKS = 9  # formants 0 to 8: 1 to 3 make the vowels, 0 lies below F1, 4 and up colour the voice
# eSpeak NG's `pitch LOW HIGH`: the median of running speech lies at LOW x 1.27.
_MEDIAN_OVER_LOW = 1.27


@dataclass(frozen=True)
class GenderTraits:
    """Centre of a gender's voices: median F0 (Hz), formants as a factor on the library's adult
    male, widths of the formants (factor)."""

    f0: float
    formants: float
    widths: float


GENDERS = {"f": GenderTraits(205.0, 1.14, 1.4), "m": GenderTraits(112.0, 0.99, 1.0)}

# Standard deviations between speakers of a gender at spread 1 (natural logarithm, where not said).
_SD_F0 = 0.14
_SD_F0_RANGE = 0.20
_SD_TRACT = 0.05  # length of the vocal tract: all formants together
_SD_FORMANT = 0.06  # each formant by itself
_SD_STRENGTH = 0.30
_SD_WIDTH = 0.25
_SD_TONE_DB = 4.0
_SD_VOICING = 0.20
_SD_CONSONANTS = 0.30
_SD_STRESS = 12.0  # eSpeak NG's units of length
_SD_SPEED = 0.12
_SD_BREATH = 0.80
_SD_FLUTTER = 0.50
_SD_ROUGHNESS = 1.0  # of 7
_BREATH = 3.0  # median strength of the noise in the formants
_MOST_F0, _MOST_FORMANT = 1.7, 1.25  # factors; the library crashes on a very low pitch
_TONE_POINTS = ((600, 170), (1200, 135), (2000, 110), (3200, 110))  # Hz, amplitude


@dataclass(frozen=True)
class Voice:
    """`accent`: name of an eSpeak NG voice; `variant`: text of the voice file laid over it."""

    accent: str
    variant: str
    words_per_minute: int


class _Deviations:
    """Deviates of a voice, drawn in a fixed order: the speaker's own plus the utterance's."""

    def __init__(self, seed: int, speaker: str, utt: str, spread: float, within: float) -> None:
        self._speaker = make_rng(seed, "voice", speaker)
        self._utt = make_rng(seed, "delivery", utt)
        self._spread, self._within = spread, within

    def accent(self) -> str:
        return ACCENTS[int(self._speaker.integers(len(ACCENTS)))]

    def normal(self, sd: float, n: int = 1) -> Float64:
        """Draw (n,), with standard deviation spread x sd between speakers."""
        own, now = self._speaker.standard_normal(n), self._utt.standard_normal(n)
        return np.asarray(self._spread * sd * (own + self._within * now))

    def factor(self, sd: float, n: int = 1, most: float = 3.0) -> Float64:
        """Draw (n,) log-normal, median 1, kept between 1 / most and most."""
        return np.clip(np.exp(self.normal(sd, n)), 1.0 / most, most)


def _percent(values: Float64) -> list[int]:
    return [round(100.0 * float(value)) for value in values]


def _pitch_line(draw: _Deviations, traits: GenderTraits) -> str:
    low = traits.f0 * float(draw.factor(_SD_F0, most=_MOST_F0)[0]) / _MEDIAN_OVER_LOW
    ratio = 1.0 + 0.42 * float(draw.factor(_SD_F0_RANGE)[0])
    return f"pitch {round(low)} {round(low * ratio)}"


def _formant_lines(draw: _Deviations, traits: GenderTraits) -> list[str]:
    tract = draw.factor(_SD_TRACT, most=_MOST_FORMANT)
    frequency = traits.formants * tract * draw.factor(_SD_FORMANT, _N_PEAKS, most=_MOST_FORMANT)
    strength = draw.factor(_SD_STRENGTH, _N_PEAKS)
    width = traits.widths * draw.factor(_SD_WIDTH, _N_PEAKS)
    rows = zip(_percent(frequency), _percent(strength), _percent(width), strict=True)
    return [f"formant {i} {f} {s} {w}" for i, (f, s, w) in enumerate(rows)]


def _tone_line(draw: _Deviations) -> str:
    gains = 10.0 ** (draw.normal(_SD_TONE_DB, len(_TONE_POINTS)) / 20.0)
    points = [
        f"{hertz} {int(np.clip(amplitude * gain, 20, 255))}"
        for (hertz, amplitude), gain in zip(_TONE_POINTS, gains, strict=True)
    ]
    return "tone " + " ".join(points)


def draw_voice(
    seed: int, speaker: str, gender: str, utt: str, *, spread: float, within: float
) -> Voice:
    """Draw the voice of a speaker in an utterance, by their ids, independent of other speakers.

    `spread`: distance of a gender's voices; 0: they differ by accent only, 1: in F0 as people do.
    `within`: distance of a speaker's utterances, as a fraction of that.
    """
    draw, traits = _Deviations(seed, speaker, utt, spread, within), GENDERS[gender]
    accent = draw.accent()
    speed = round(165.0 * float(draw.factor(_SD_SPEED)[0]))
    lines = ["language variant", f"name {speaker}", _pitch_line(draw, traits)]
    lines += _formant_lines(draw, traits)
    lines.append(_tone_line(draw))
    lines.append(f"voicing {_percent(draw.factor(_SD_VOICING))[0]}")
    lines.append("consonants {} {}".format(*_percent(draw.factor(_SD_CONSONANTS, 2))))
    # Always eight numbers: the library leaves missing ones uninitialised.
    breath = _BREATH * draw.factor(_SD_BREATH) * np.linspace(0.3, 1.0, 8)
    lines.append("breath " + " ".join(str(round(float(value))) for value in breath))
    stress = draw.normal(_SD_STRESS, 8)
    lines.append("stressAdd " + " ".join(str(round(float(value))) for value in stress))
    lines.append(f"flutter {round(3.0 * float(draw.factor(_SD_FLUTTER)[0]))}")
    roughness = np.clip(2.0 + draw.normal(_SD_ROUGHNESS), 0.0, 7.0)
    lines.append(f"roughness {round(float(roughness[0]))}")
    return Voice(accent, "\n".join(lines) + "\n", speed)


# ---- Path from mouth to file: room, microphone, noise, level. Drawn anew for every utterance.
#
# A speaker's utterances share nothing of this, so an evaluator cannot tell a speaker by the room.

_EQ_TERMS = 5
_PREDELAY = (0.002, 0.010)  # seconds before the first reflections
_MIN_SNR_DB, _MAX_SNR_DB = 6.0, 50.0  # never none: digital silence upsets recognisers
_PEAK_LIMIT = 0.9


@dataclass(frozen=True)
class Channel:
    """Drawn channel. Times in seconds, levels in dB.

    `equaliser` (5,): dB, cosines over log frequency. `noise_slope`: noise power falls as f**-slope.
    `level_db`: of the whole file, against full scale.
    """

    reverberation_time: float
    direct_to_reverberant_db: float
    equaliser: Float64
    low_cut_hz: float
    snr_db: float
    noise_slope: float
    level_db: float


def draw_channel(rng: np.random.Generator, strength: float) -> Channel:
    """Draw a channel. `strength`: 0 a close microphone, 1 a poor one across a room."""
    terms = rng.standard_normal(_EQ_TERMS) / np.sqrt(np.arange(1, _EQ_TERMS + 1))
    return Channel(
        reverberation_time=0.12 + strength * rng.uniform(0.05, 0.5),
        direct_to_reverberant_db=22.0 - 14.0 * strength + 4.0 * rng.standard_normal(),
        equaliser=4.0 * strength * terms,
        low_cut_hz=rng.uniform(50.0, 50.0 + 100.0 * strength),
        snr_db=float(
            np.clip(38.0 - 20.0 * strength + 4.0 * rng.standard_normal(), _MIN_SNR_DB, _MAX_SNR_DB)
        ),
        noise_slope=rng.uniform(0.0, 1.6),
        level_db=-26.0 + 3.0 * rng.standard_normal(),
    )


def room_response(channel: Channel, rng: np.random.Generator, rate: int) -> Float64:
    """Impulse response (n,): the direct sound, then noise that falls by 60 dB over its length."""
    n = int(channel.reverberation_time * rate)
    start = int(rng.uniform(*_PREDELAY) * rate)
    tail = rng.standard_normal(n) * 10.0 ** (-3.0 * np.arange(n) / n)
    tail[:start] = 0.0
    energy = 10.0 ** (-channel.direct_to_reverberant_db / 10.0)
    tail *= np.sqrt(energy / np.sum(tail**2))
    tail[0] = 1.0
    return tail


def microphone_gain(channel: Channel, frequencies: Float64) -> Float64:
    """Linear gain at each frequency (Hz): the equaliser, and a second-order low cut."""
    octave = np.log2(np.maximum(frequencies, 50.0) / 50.0) / np.log2(8000.0 / 50.0)
    orders = np.arange(1, _EQ_TERMS + 1)[:, None]
    decibel = channel.equaliser @ np.cos(np.pi * orders * octave)
    ratio = (frequencies / channel.low_cut_hz) ** 2
    return np.asarray(10.0 ** (decibel / 20.0) * ratio / np.hypot(1.0, ratio))


def _rms(samples: Float64) -> float:
    return float(np.sqrt(np.mean(samples**2)))


def apply_channel(
    samples: Float64, channel: Channel, rng: np.random.Generator, rate: int
) -> Float64:
    """Record clean speech with its pauses (n,) as (n,), within +-0.9 of full scale."""
    room = room_response(channel, rng, rate)
    n_fft = fft.next_fast_len(len(samples) + len(room), real=True)
    gain = microphone_gain(channel, fft.rfftfreq(n_fft, 1.0 / rate))
    speech = fft.irfft(fft.rfft(samples, n_fft) * fft.rfft(room, n_fft) * gain, n_fft)
    colour = gain * (
        np.maximum(fft.rfftfreq(n_fft, 1.0 / rate), 20.0) ** (-channel.noise_slope / 2.0)
    )
    noise = fft.irfft(fft.rfft(rng.standard_normal(n_fft)) * colour, n_fft)
    speech, noise = speech[: len(samples)], noise[: len(samples)]
    noise *= _rms(speech) / _rms(noise) * 10.0 ** (-channel.snr_db / 20.0)
    recorded = speech + noise
    recorded *= 10.0 ** (channel.level_db / 20.0) / _rms(recorded)
    return np.asarray(recorded * min(1.0, _PEAK_LIMIT / float(np.max(np.abs(recorded)))))
