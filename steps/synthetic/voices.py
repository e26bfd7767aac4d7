# SPDX-License-Identifier: Apache-2.0
"""Speakers: a voice is drawn for a speaker id and stays the same whoever else is in the corpus."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from steps.synthetic.espeak import ACCENTS
from utils.seeds import make_rng

_N_PEAKS = 9  # formants 0 to 8: 1 to 3 make the vowels, 0 lies below F1, 4 and up colour the voice
# eSpeak NG's `pitch LOW HIGH`: the median of running speech lies at LOW x 1.27.
_MEDIAN_OVER_LOW = 1.27


@dataclass(frozen=True)
class GenderTraits:
    """What the voices of a gender are drawn around: median F0 (Hz), formants as a factor on the
    library's adult male, widths of the formants (factor)."""

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
_BREATH = 6.0  # mean strength of the noise in the formants
_TONE_POINTS = ((600, 170), (1200, 135), (2000, 110), (3200, 110))  # Hz, amplitude


@dataclass(frozen=True)
class Voice:
    """A speaker's voice. `text`: eSpeak NG voice variant; `words_per_minute`: usual speed."""

    speaker: str
    gender: str
    accent: str
    words_per_minute: float
    text: str


def _percent(values: npt.NDArray[np.float64]) -> list[int]:
    return [round(100.0 * float(value)) for value in values]


def _formant_lines(rng: np.random.Generator, traits: GenderTraits, spread: float) -> list[str]:
    tract = traits.formants * np.exp(spread * _SD_TRACT * rng.standard_normal())
    frequency = tract * np.exp(spread * _SD_FORMANT * rng.standard_normal(_N_PEAKS))
    strength = np.exp(spread * _SD_STRENGTH * rng.standard_normal(_N_PEAKS))
    width = traits.widths * np.exp(spread * _SD_WIDTH * rng.standard_normal(_N_PEAKS))
    rows = zip(_percent(frequency), _percent(strength), _percent(width), strict=True)
    return [f"formant {i} {f} {s} {w}" for i, (f, s, w) in enumerate(rows)]


def _tone_line(rng: np.random.Generator, spread: float) -> str:
    gains = 10.0 ** (spread * _SD_TONE_DB * rng.standard_normal(len(_TONE_POINTS)) / 20.0)
    points = [
        f"{hertz} {int(np.clip(amplitude * gain, 20, 255))}"
        for (hertz, amplitude), gain in zip(_TONE_POINTS, gains, strict=True)
    ]
    return "tone " + " ".join(points)


def _pitch_line(rng: np.random.Generator, traits: GenderTraits, spread: float) -> str:
    median = traits.f0 * np.exp(spread * _SD_F0 * rng.standard_normal())
    low = median / _MEDIAN_OVER_LOW
    ratio = 1.0 + 0.42 * np.exp(spread * _SD_F0_RANGE * rng.standard_normal())
    return f"pitch {round(low)} {round(low * ratio)}"


def draw_voice(seed: int, speaker: str, gender: str, spread: float) -> Voice:
    """The voice of a speaker id. `spread`: how far voices lie apart (0: a gender sounds as one)."""
    rng = make_rng(seed, "voice", speaker)
    traits = GENDERS[gender]
    accent = ACCENTS[int(rng.integers(len(ACCENTS)))]
    speed = 165.0 * np.exp(spread * _SD_SPEED * rng.standard_normal())
    lines = ["language variant", f"name {speaker}", _pitch_line(rng, traits, spread)]
    lines += _formant_lines(rng, traits, spread)
    lines.append(_tone_line(rng, spread))
    voicing = np.exp(spread * _SD_VOICING * rng.standard_normal(1))
    consonants = np.exp(spread * _SD_CONSONANTS * rng.standard_normal(2))
    lines.append(f"voicing {_percent(voicing)[0]}")
    lines.append("consonants {} {}".format(*_percent(consonants)))
    # Always eight numbers: the library leaves what is missing uninitialised.
    breath = _BREATH * rng.gamma(1.0, spread, size=1) * np.linspace(0.3, 1.0, 8)
    lines.append("breath " + " ".join(str(round(float(b))) for b in breath))
    stress = spread * _SD_STRESS * rng.standard_normal(8)
    lines.append("stressAdd " + " ".join(str(round(float(s))) for s in stress))
    lines.append(f"flutter {round(2.0 + 3.0 * spread * float(rng.random()))}")
    lines.append(f"roughness {round(2.0 + 2.0 * spread * float(rng.uniform(-1.0, 1.0)))}")
    return Voice(speaker, gender, accent, float(speed), "\n".join(lines) + "\n")
