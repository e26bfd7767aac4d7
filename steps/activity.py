# SPDX-License-Identifier: Apache-2.0
"""Speech or pause, by energy.

Pauses tell the room, not the speaker. Where every training speaker has one recording, an encoder
that hears them learns to tell rooms apart.
"""

import numpy as np
import numpy.typing as npt

from steps.audio import SAMPLE_RATE

FRAME = SAMPLE_RATE // 100  # 10 ms
CONTEXT = 7  # frames around a loud one that stay with it, itself included
LOUD, QUIET = 95, 5  # percentiles of frame energy that stand for speech and for the floor


def keep_speech(samples: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """The samples without pauses: (n,) -> (m,), m <= n.

    A frame is speech above a threshold of 10 dB over the floor of the recording, but between 25 and
    40 dB under its loud frames, so that noisy speech stays whole.
    """
    n_frames = len(samples) // FRAME
    if n_frames < CONTEXT:
        return samples
    frames = samples[: n_frames * FRAME].reshape(n_frames, FRAME)
    energy = 10 * np.log10(np.mean(np.square(frames, dtype=np.float64), axis=1) + 1e-12)
    loud, quiet = np.percentile(energy, [LOUD, QUIET])
    threshold = np.clip(quiet + 10, loud - 40, loud - 25)
    speech = np.convolve(energy > threshold, np.ones(CONTEXT), "same") > 0
    return frames[speech].reshape(-1)
