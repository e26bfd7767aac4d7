# SPDX-License-Identifier: Apache-2.0
"""Interfaces of pseudo-speakers (as a synthesiser sees them) and of synthesisers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from steps.synthesis.changes import ContentMap
from steps.synthesis.f0 import F0Stats
from utils.arrays import Float64

REMAINS = ("energy", "aperiodicity")
"""Parts of the source that a synthesiser on content may keep beside F0 and timing."""
STYLES: dict[str, dict[str, object]] = {
    "source": {"f0": "linear", "keep": ["energy"]},
    "reference": {"f0": "predicted", "keep": []},
}
"""Names for the origin of the prosody, in settings of a system on a recogniser's content."""
SOURCE_SHARE = 0.0
"""Default share of the source's own, moved frames in a conversion on WORLD frames."""
F0Map = Callable[[Float64], Float64]
"""From the source's F0 contour (T,) in Hz, 0 unvoiced, to the wanted contour (T,)."""


@dataclass(frozen=True)
class Target:
    """A pseudo-speaker.

    xvector: (d,) float64. voices: the real voices nearest to it, R pool speakers. weights: (R,) of
    the voices, sum 1. f0: log-F0 statistics of the pseudo-speaker. warp: (40, 40) change of the
    vocal tract, applied to the content of every source converted to this voice, or None; see
    `content.draw_warp`. content: change of the recogniser's content, energy: factor of its log
    power's deviation, both only for synthesisers on a recogniser's content.
    """

    xvector: Float64
    voices: tuple[str, ...]
    weights: Float64
    f0: F0Stats
    warp: Float64 | None = None
    content: ContentMap | None = None
    energy: float = 1.0

    def __post_init__(self) -> None:
        if self.weights.shape != (len(self.voices),):
            raise ValueError(f"{len(self.voices)} voices and weights {self.weights.shape}")


class Synthesiser(Protocol):
    """Conversion of speech to the voice of a target."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Folders that the synthesiser needs (`sources.NEEDS`)."""
        ...

    def convert(self, wave: Float64, target: Target, f0: F0Map) -> Float64:
        """Convert speech (n,) float64 at 16 kHz to (n,) float64 in the target's voice.

        Content and energy contour are the source's; F0 is `f0` applied to the source's contour.
        Silence stays silence. Nothing is random: equal input gives equal bits.
        """
        ...
