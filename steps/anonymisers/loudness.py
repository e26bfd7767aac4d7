# SPDX-License-Identifier: Apache-2.0
"""Level of protected speech: one rule for every system, as level alone can leak who speaks."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from utils.cli import UserError


@dataclass(frozen=True)
class OutputLevel:
    """Rule that the largest sample becomes `peak` of `full_scale`.

    `truncate`: towards zero, as the challenges of 2022 and 2024 do, not to the nearest number.
    """

    peak: float = 0.95
    full_scale: int = 32768
    truncate: bool = False

    def to_pcm16(self, samples: npt.NDArray[np.float64]) -> npt.NDArray[np.int16]:
        """16-bit samples at that level; digital silence stays silent. UserError if not finite."""
        largest = float(np.max(np.abs(samples), initial=0.0))
        if not np.isfinite(largest):
            raise UserError("the protected signal is not finite")
        if largest == 0.0:
            return np.zeros(len(samples), np.int16)
        scaled = samples / largest * (self.peak * self.full_scale)
        whole = np.trunc(scaled) if self.truncate else np.rint(scaled)
        return np.minimum(whole, 32767).astype(np.int16)


@dataclass(frozen=True)
class AsItIs:
    """Rule that keeps another program's level: 1 is full scale, and values above are clipped."""

    def to_pcm16(self, samples: npt.NDArray[np.float64]) -> npt.NDArray[np.int16]:
        """Samples of 16 bit. UserError if not finite."""
        if not np.isfinite(samples).all():
            raise UserError("the protected signal is not finite")
        return np.clip(np.rint(samples * 32768), -32768, 32767).astype(np.int16)
