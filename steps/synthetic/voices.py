# SPDX-License-Identifier: Apache-2.0
"""Voices: each speaker has one, and speaks a little differently in every utterance.

Two normal distributions, as in two-covariance PLDA: a speaker's parameters lie around the mean of
the gender, and an utterance's around the speaker's own.
"""

from dataclasses import dataclass

import numpy as np

from steps.synthetic.espeak import ACCENTS
from utils.arrays import Float64
from utils.seeds import make_rng

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
