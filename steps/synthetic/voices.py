"""Voices of eSpeak NG, a speaker each, and the rooms and microphones that they pass."""

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path

import espeakng_loader
import numpy as np
from scipy import fft

from utils.arrays import Float64
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
#   always from the speaker's first utterance on (a second `Espeak` in one process is an
#   error).

# Voices must be named by their files: names such as `en-gb` are refused together with a variant.
ACCENTS = [
    f"gmw/en{place}"
    for place in (
        "", "-029", "-GB-scotland", "-GB-x-gbclan", "-GB-x-gbcwmd", "-GB-x-rp", "-US", "-US-nyc",
    )
]  # fmt: skip

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


@dataclass(frozen=True)
class EspeakVoice:
    """`accent`: name of an eSpeak NG voice; `variant`: text of the voice file laid over it."""

    accent: str
    variant: str
    words_per_minute: int


class Espeak:
    """Synthesiser eSpeak NG for one speaker: the only one of its process.

    `folder`: empty, with a short path, for the library's data; the caller removes it afterwards.
    `seed`: of the noise in the voice. Raises UserError where the library does not start.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        global _started
        if _started:
            raise RuntimeError("one speaker a process: eSpeak NG keeps state between utterances")
        _started = True
        # Links to the package's data, without its hundred variants.
        for part in Path(espeakng_loader.get_data_path()).iterdir():
            if part.name != "voices":
                (folder / part.name).symlink_to(part)
        self._variant = folder / "voices" / "!v" / _VARIANT
        self._variant.parent.mkdir(parents=True)
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

    def speak(self, text: str, voice: EspeakVoice) -> Float64:
        """Speak: samples (n,) at `sample_rate`, full scale 1."""
        self._variant.write_text(voice.variant, encoding="ascii")
        self._check("espeak_SetVoiceByName", f"{voice.accent}+{_VARIANT}".encode("ascii"))
        self._check("espeak_SetParameter", _RATE, voice.words_per_minute, 0)
        self._chunks.clear()
        data = text.encode("utf-8")
        size, zero = ctypes.c_size_t(len(data) + 1), ctypes.c_uint(0)
        self._check("espeak_Synth", data, size, zero, 0, zero, _UTF8, None, None)
        return np.frombuffer(b"".join(self._chunks), np.int16) / 2**15

    def _check(self, name: str, *arguments: object) -> None:
        if status := getattr(self._library, name)(*arguments):
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
# Standard deviations between speakers of a gender at spread 1, of natural logarithms but for those
# of tone (dB), stress (eSpeak NG's units of length) and roughness (of 7). tract: all formants
# together, by its length; formant, strength, width: each by itself.
_SD = {
    "f0": 0.14, "range": 0.20, "tract": 0.05, "formant": 0.06, "strength": 0.30, "width": 0.25,
    "tone": 4.0, "voicing": 0.20, "consonants": 0.30, "stress": 12.0, "speed": 0.12, "breath": 0.80,
    "flutter": 0.50, "roughness": 1.0,
}  # fmt: skip
_BREATH = 3.0  # median strength of the noise in the formants
_MOST_F0, _MOST_FORMANT = 1.7, 1.25  # factors; the library crashes on a very low pitch
_TONE_POINTS = ((600, 170), (1200, 135), (2000, 110), (3200, 110))  # Hz, amplitude


class _Deviations:
    """Deviates of a voice, drawn in a fixed order: the speaker's own plus the utterance's."""

    def __init__(self, seed: int, speaker: str, utt: str, spread: float, within: float) -> None:
        self.speaker = make_rng(seed, "voice", speaker)
        self._utt = make_rng(seed, "delivery", utt)
        self._spread, self._within = spread, within

    def normal(self, what: str, n: int = 1) -> Float64:
        """Draw (n,), with standard deviation spread x _SD[what] between speakers."""
        own, now = self.speaker.standard_normal(n), self._utt.standard_normal(n)
        return np.asarray(self._spread * _SD[what] * (own + self._within * now))

    def factor(self, what: str, n: int = 1, most: float = 3.0) -> Float64:
        """Draw (n,) log-normal, median 1, kept between 1 / most and most."""
        return np.clip(np.exp(self.normal(what, n)), 1.0 / most, most)


def _whole(values: Float64) -> str:
    return " ".join(str(round(float(value))) for value in values)


def _formant_lines(draw: _Deviations, traits: GenderTraits) -> list[str]:
    tract = draw.factor("tract", most=_MOST_FORMANT)
    frequency = traits.formants * tract * draw.factor("formant", _N_PEAKS, most=_MOST_FORMANT)
    strength = draw.factor("strength", _N_PEAKS)
    width = traits.widths * draw.factor("width", _N_PEAKS)
    rows = 100.0 * np.column_stack([frequency, strength, width])
    return [f"formant {number} {_whole(row)}" for number, row in enumerate(rows)]


def _tone_line(draw: _Deviations) -> str:
    gains = 10.0 ** (draw.normal("tone", len(_TONE_POINTS)) / 20.0)
    points = [
        f"{hertz} {int(np.clip(amplitude * gain, 20, 255))}"
        for (hertz, amplitude), gain in zip(_TONE_POINTS, gains, strict=True)
    ]
    return "tone " + " ".join(points)


def draw_voice(
    seed: int, speaker: str, gender: str, utt: str, *, spread: float, within: float
) -> EspeakVoice:
    """Draw the voice of a speaker in an utterance, by their ids, independent of other speakers.

    `spread`: distance of a gender's voices; 0: they differ by accent only, 1: in F0 as people do.
    `within`: distance of a speaker's utterances, as a fraction of that.
    """
    draw, traits = _Deviations(seed, speaker, utt, spread, within), GENDERS[gender]
    accent = ACCENTS[int(draw.speaker.integers(len(ACCENTS)))]
    speed = round(165.0 * float(draw.factor("speed")[0]))
    low = traits.f0 * draw.factor("f0", most=_MOST_F0) / _MEDIAN_OVER_LOW
    high = low * (1.0 + 0.42 * draw.factor("range"))
    lines = [  # each draws as it is made
        "language variant",
        f"name {speaker}",
        f"pitch {_whole(low)} {_whole(high)}",
        *_formant_lines(draw, traits),
        _tone_line(draw),
        f"voicing {_whole(100.0 * draw.factor('voicing'))}",
        f"consonants {_whole(100.0 * draw.factor('consonants', 2))}",
        # Always eight numbers: the library leaves missing ones uninitialised.
        f"breath {_whole(_BREATH * draw.factor('breath') * np.linspace(0.3, 1.0, 8))}",
        f"stressAdd {_whole(draw.normal('stress', 8))}",
        f"flutter {_whole(3.0 * draw.factor('flutter'))}",
        f"roughness {_whole(np.clip(2.0 + draw.normal('roughness'), 0.0, 7.0))}",
    ]
    return EspeakVoice(accent, "\n".join(lines) + "\n", speed)


# ---- Path from mouth to file: room, microphone, noise, level. Drawn anew for every utterance.
#
# A speaker's utterances share nothing of this, so an evaluator cannot tell a speaker by the room.

_EQ_TERMS = 5  # cosines over log frequency
_PREDELAY = (0.002, 0.010)  # seconds before the first reflections
_MIN_SNR_DB, _MAX_SNR_DB = 6.0, 50.0  # never none: digital silence upsets recognisers
_PEAK_LIMIT = 0.9


def _room_response(
    rng: np.random.Generator, reverberation_time: float, direct_to_reverberant_db: float, rate: int
) -> Float64:
    """Impulse response (n,): the direct sound, then noise that falls by 60 dB over its length."""
    n = int(reverberation_time * rate)
    start = int(rng.uniform(*_PREDELAY) * rate)
    tail = rng.standard_normal(n) * 10.0 ** (-3.0 * np.arange(n) / n)
    tail[:start] = 0.0
    energy = 10.0 ** (-direct_to_reverberant_db / 10.0)
    tail *= np.sqrt(energy / np.sum(tail**2))
    tail[0] = 1.0
    return tail


def _microphone_gain(equaliser_db: Float64, low_cut_hz: float, frequencies: Float64) -> Float64:
    """Linear gain at each frequency (Hz): the equaliser, and a second-order low cut."""
    octave = np.log2(np.maximum(frequencies, 50.0) / 50.0) / np.log2(8000.0 / 50.0)
    orders = np.arange(1, _EQ_TERMS + 1)[:, None]
    decibel = equaliser_db @ np.cos(np.pi * orders * octave)
    ratio = (frequencies / low_cut_hz) ** 2
    return np.asarray(10.0 ** (decibel / 20.0) * ratio / np.hypot(1.0, ratio))


def _rms(samples: Float64) -> float:
    return float(np.sqrt(np.mean(samples**2)))


def pass_channel(samples: Float64, rng: np.random.Generator, strength: float, rate: int) -> Float64:
    """Record clean speech with its pauses (n,) as (n,), within +-0.9 of full scale.

    The channel is drawn. `strength`: 0 a close microphone, 1 a poor one across a room.
    """
    terms = rng.standard_normal(_EQ_TERMS) / np.sqrt(np.arange(1, _EQ_TERMS + 1))
    reverberation_time = 0.12 + strength * rng.uniform(0.05, 0.5)
    direct_to_reverberant_db = 22.0 - 14.0 * strength + 4.0 * rng.standard_normal()
    low_cut_hz = rng.uniform(50.0, 50.0 + 100.0 * strength)
    snr_db = 38.0 - 20.0 * strength + 4.0 * rng.standard_normal()
    noise_slope = rng.uniform(0.0, 1.6)  # the noise's power falls as f**-slope
    level_db = -26.0 + 3.0 * rng.standard_normal()  # of the whole file, against full scale
    room = _room_response(rng, reverberation_time, direct_to_reverberant_db, rate)
    n_fft = fft.next_fast_len(len(samples) + len(room), real=True)
    frequencies = fft.rfftfreq(n_fft, 1.0 / rate)
    gain = _microphone_gain(4.0 * strength * terms, low_cut_hz, frequencies)
    speech = fft.irfft(fft.rfft(samples, n_fft) * fft.rfft(room, n_fft) * gain, n_fft)
    colour = gain * np.maximum(frequencies, 20.0) ** (-noise_slope / 2.0)
    noise = fft.irfft(fft.rfft(rng.standard_normal(n_fft)) * colour, n_fft)
    speech, noise = speech[: len(samples)], noise[: len(samples)]
    snr = float(np.clip(snr_db, _MIN_SNR_DB, _MAX_SNR_DB))
    noise *= _rms(speech) / _rms(noise) * 10.0 ** (-snr / 20.0)
    recorded = speech + noise
    recorded *= 10.0 ** (level_db / 20.0) / _rms(recorded)
    return np.asarray(recorded * min(1.0, _PEAK_LIMIT / float(np.max(np.abs(recorded)))))
