"""Synthesisers: their interface, what they may change of speech, and the trained ones by name."""

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol

import numpy as np

from steps.synthesis.f0 import F0Stats
from utils.arrays import Float64
from utils.cli import UserError
from utils.registry import choose, load
from utils.seeds import Draws
from utils.settings import Ascending, Number, OneOf, Positive, Share, read_settings
from utils.tables import StrPath, need_files

# ---- Changes of content, pitch and energy in the analogues of Seo et al.'s closed systems.
#
# Content: less its mean, clipped, with noise of differential privacy's Laplace mechanism (Dwork and
# Roth 2014), an offset that a profile keeps, or rounded. Pitch and energy: the pseudo-speaker's own
# ranges.

ContentMap = Callable[[Float64], Float64]
"""From content (T, d) in deviations from its mean to the content (T, d) that is spoken."""
_Size = Annotated[float, Number(least=0, most=10, unit="(deviations of the content)")]
_Shift = Annotated[float, Number(least=0, most=1, unit="(log Hz)")]
_Factors = Annotated[tuple[Positive, Positive], Ascending()]


@dataclass(frozen=True)
class ContentChange:
    """centred: share of its mean over the utterance that each value loses: what is constant tells
    the speaker. clip: largest size of a value; 0: none. noise: its mechanism, of `epsilon` for each
    value of a frame by itself. offset: deviation of the one vector that a profile adds to all
    frames. step: values are rounded to its multiples, as units that need no training; 0: none."""

    centred: Share = 0.0
    clip: _Size = 0.0
    noise: Annotated[str, OneOf("none", "laplace")] = "none"
    epsilon: Positive = 10.0
    offset: _Size = 0.0
    step: _Size = 0.0

    def __post_init__(self) -> None:
        if self.noise != "none" and not self.clip:
            raise ValueError(f"noise: {self.noise}: its epsilon holds for values within a clip")

    @property
    def is_random(self) -> bool:
        """Whether a further run gives other content."""
        return self.noise != "none" or self.offset > 0

    def make(self, draws: Draws) -> ContentMap:
        """Change of content of a profile. The noise depends on the content itself, so that equal
        speech gives equal bits, whatever else was spoken."""

        def change(content: Float64) -> Float64:
            made = content.copy()
            if self.centred and len(content):
                made -= self.centred * content.mean(axis=0)
            made = np.clip(made, -self.clip, self.clip) if self.clip else made
            if self.noise != "none":
                spoken = hashlib.sha256(np.ascontiguousarray(content).tobytes()).hexdigest()
                rng = draws.rng("content noise", spoken)
                made = made + rng.laplace(scale=2 * self.clip / self.epsilon, size=made.shape)
            if self.offset:
                rng = draws.rng("content offset")
                made = made + self.offset * rng.standard_normal(made.shape[1])
            return self.step * np.rint(made / self.step) if self.step else made

        return change


@dataclass(frozen=True)
class Ranges:
    """Ranges for each pseudo-speaker's own prosody. pitch_shift: their mean log F0 moves by up to
    this. pitch, energy: factors, from and to, on the deviation of log F0 and of log power. slope:
    log F0 rises or falls by up to this in a second of a phrase."""

    pitch_shift: _Shift = 0.0
    pitch: _Factors = (1.0, 1.0)
    energy: _Factors = (1.0, 1.0)
    slope: _Shift = 0.0

    def draw(self, rng: np.random.Generator) -> tuple[float, float, float, float]:
        """Draw a shift in log Hz, factors of pitch and energy, even in their logarithm, a slope."""
        factors = [
            math.exp(rng.uniform(math.log(low), math.log(high)))
            for low, high in (self.pitch, self.energy)
        ]
        shift = float(rng.uniform(-self.pitch_shift, self.pitch_shift))
        return shift, factors[0], factors[1], float(rng.uniform(-self.slope, self.slope))


MOVES = ("timing", "rate", "pauses")
"""Settings that move speech in time: the last two change its length."""
_KNOT = 60  # frames of 10 ms between two turns of the rate


def draw_timing(rng: np.random.Generator, n_frames: int, most: float) -> Float64:
    """Draw places (T,) in the source, in frames, of the T frames that are spoken.

    The rate changes by up to `most`, a share below 1, in 0.6 s; begin and end stay, and no frame
    moves by more than 0.3 s x `most`.
    """
    knots = np.linspace(0, n_frames - 1, max(2, round(n_frames / _KNOT) + 1))
    offsets = rng.uniform(-most, most, len(knots)) * (knots[1] / 2)
    offsets[[0, -1]] = 0.0
    frames = np.arange(n_frames, dtype=np.float64)
    return np.clip(frames + np.interp(frames, knots, offsets), 0, n_frames - 1)


_PAUSE, _EDGE = 25, 8  # frames of 10 ms: least length without voice, and what of it may be a sound


def pace(rng: np.random.Generator, contour: Float64, rate: float, most: float) -> Float64:
    """Draw places (U,) in the source, in frames, of the U frames that are spoken.

    contour: F0 (T,), 0 unvoiced. rate: factor of speed. A pause lasts up to 1 + most times as
    long, or is as much shorter; beside the rate only pauses change.
    """
    lasts = np.full(len(contour), 1 / rate)
    for begin, end in _pauses(contour):
        factor = math.exp(rng.uniform(-1, 1) * math.log1p(most))
        lasts[begin + _EDGE : end - _EDGE] *= factor
    ends = np.cumsum(lasts)
    spoken = np.arange(max(1, round(ends[-1]))) + 0.5
    return np.interp(spoken, ends - lasts / 2, np.arange(len(contour), dtype=np.float64))


def tilt(contour: Float64, slope: float) -> Float64:
    """F0 (T,) that rises by `slope`, in log Hz a second, around the middle of each phrase; 0 stays.

    contour: F0 (T,) in frames of 10 ms, 0 unvoiced. Pauses end phrases.
    """
    made, begin = contour.copy(), 0
    for end, after in [*_pauses(contour), (len(contour), len(contour))]:
        seconds = (np.arange(end - begin) - (end - begin - 1) / 2) / 100
        made[begin:end] *= np.exp(slope * seconds)
        begin = after
    return made


def _pauses(contour: Float64) -> list[list[int]]:
    """First frame of each pause of an F0 contour (T,), and the one after it."""
    edges = np.flatnonzero(np.diff(contour > 0, prepend=True, append=True)).reshape(-1, 2)
    return [edge for edge in edges.tolist() if edge[1] - edge[0] >= _PAUSE]


# ---- Interfaces of pseudo-speakers (as a synthesiser sees them) and of synthesisers.

REMAINS = ("energy", "aperiodicity")
"""Parts of the source that a synthesiser on content may keep beside F0 and timing."""
STYLES: dict[str, dict[str, object]] = {
    "source": {"f0": "linear", "keep": ["energy"]},
    "reference": {"f0": "predicted", "keep": []},
}
"""Names for the origin of the prosody, in settings of a system on a recogniser's content."""
KEEP = "keep"
TIMES = ("map", KEEP)
"""Time of what is read: phones as long as they usually are; or every word in its place."""
WORDS = "words"
"""Name of the times of words that are said in another time, beside columns of pseudo.tsv."""
TOLD = ("read", "heard", "hushed", "unread")
"""Fates of the seconds of speech that is read: words that are read, and words that stay as
they were heard; sounds between words that become pauses; speech that could not be read."""
TOLD_AS = tuple(f"seconds_{what}" for what in TOLD)
"""Their columns of pseudo.tsv, and names in the account."""


def told_as(seconds: Mapping[str, float]) -> dict[str, object]:
    """Columns TOLD_AS of seconds by names of TOLD."""
    told = (round(seconds.get(what, 0.0), 2) for what in TOLD)
    return dict(zip(TOLD_AS, told, strict=True))


F0Map = Callable[[Float64], Float64]
"""From the source's F0 contour (T,) in Hz, 0 unvoiced, to the wanted contour (T,)."""
TimeMap = Callable[[Float64], Float64]
"""From the source's F0 contour (T,) to places (U,) in it, ascending, of the frames spoken."""


@dataclass(frozen=True)
class Target:
    """A pseudo-speaker.

    xvector: (d,) float64. voices: the real voices nearest to it, R pool speakers. weights: (R,) of
    the voices, sum 1. f0: log-F0 statistics of the pseudo-speaker. warp: (40, 40) change of the
    vocal tract, applied to the content of every source converted to this voice, or None; see
    `content.draw_warp`. content: change of the recogniser's content, energy: factor of its log
    power's deviation, timing: which frame is spoken when, slope: see `tilt`; only for synthesisers
    on a recogniser's content.
    """

    xvector: Float64
    voices: tuple[str, ...]
    weights: Float64
    f0: F0Stats
    warp: Float64 | None = None
    content: ContentMap | None = None
    energy: float = 1.0
    timing: TimeMap | None = None
    slope: float = 0.0


class Synthesiser(Protocol):
    """Conversion of speech to the voice of a target."""

    def convert(self, wave: Float64, target: Target, f0: F0Map) -> Float64:
        """Convert speech (n,) float64 at 16 kHz to (n,) float64 in the target's voice.

        Content and energy contour are the source's; F0 is `f0` applied to the source's contour.
        Silence stays silence. Nothing is random: equal input gives equal bits.
        """
        ...


# ---- Trained synthesisers, by name, and the folders of steps/train_synthesiser.py.

# Classes with `load(folder)`, which may have options; see `trained.TrainedSynthesiser`.
STRUCTURES = {
    "nsf": "steps.synthesis.trained:NsfSynthesiser",
    "bn": "steps.synthesis.bottleneck:BnSynthesiser",
    "bn_hifigan": "steps.synthesis.bottleneck:HifiganSynthesiser",
}


def find_structure(path: StrPath, *, on_content: bool = False) -> Any:
    """Class of the `synthesiser` in a settings file; UserError for an unknown one.

    on_content: UserError also for one that is not on a recogniser's content.
    """
    kind = load(choose(STRUCTURES, read_settings(path).get("synthesiser"), path, "synthesiser"))
    if on_content and not kind.on_content:
        raise UserError(f"{path}: synthesiser: this one takes no content of a recogniser")
    return kind


def trained_files(folder: Path) -> tuple[Path, Path]:
    """synthesiser.yaml and the weights (final.pt, or final.safetensors of a model that is handed
    on) of a folder; UserError where one is missing."""
    packed = folder / "final.safetensors"
    weights = packed if packed.is_file() else folder / "final.pt"
    found = folder / "synthesiser.yaml", weights
    need_files(found, "a synthesiser is a folder that steps/train_synthesiser.py finished")
    return found


def load_synthesiser(folder: StrPath, **options: object) -> Synthesiser:
    """Load the synthesiser of whatever structure synthesiser.yaml names; UserError for other
    folders.

    options: for that structure's `load`.
    """
    settings, _ = trained_files(Path(folder))
    return find_structure(settings).load(folder, **options)
