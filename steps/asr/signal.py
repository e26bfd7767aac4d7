# SPDX-License-Identifier: Apache-2.0
"""Preparation of a signal for a recogniser: constant level, no digital silence, padded ends."""

import numpy as np
import numpy.typing as npt

from steps.audio import SAMPLE_RATE
from utils.arrays import Float64
from utils.seeds import make_rng

LEVEL = 0.05  # root mean square of every utterance, since systems set their own
DITHER = 1e-4  # of full scale, 54 dB below; on digital silence nothing would be recognised
PADDING = 0.2  # seconds of dither at both ends: recordings may be cut close to the word


def condition(utt: str, samples: npt.NDArray[np.floating]) -> Float64 | None:
    """Samples (n,) at 16 kHz at LEVEL, with PADDING and DITHER; None for digital silence.

    The dither is drawn from the utterance's id, so that a signal always gives the same result.
    """
    level = float(np.sqrt(np.mean(samples**2)))
    if level == 0.0:
        return None
    padded = np.pad(samples * (LEVEL / level), round(PADDING * SAMPLE_RATE)).astype(np.float64)
    return padded + DITHER * make_rng(0, "dither", utt).standard_normal(len(padded))
