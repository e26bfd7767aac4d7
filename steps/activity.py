# SPDX-License-Identifier: Apache-2.0
"""Speech or pause: by energy, and by the detector of WebRTC.

Pauses tell the room, not the speaker. Where every training speaker has one recording, an encoder
that hears them learns to tell rooms apart.
"""

import numpy as np
import numpy.typing as npt

from steps.audio import SAMPLE_RATE

FRAME = SAMPLE_RATE // 100  # 10 ms
CONTEXT = 7  # frames around a loud one that stay with it, itself included
VAD_FRAME = 3 * FRAME  # 30 ms
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


def detect_speech(samples: npt.NDArray[np.floating], strictness: int = 2) -> npt.NDArray[np.bool_]:
    """Which frames (n // 480,) of 30 ms hold speech, of a signal (n,) at 16 kHz, full scale 1.

    The Gaussian mixtures of WebRTC (`webrtcvad`, weights inside), which look back in time.
    strictness: 0 to 3, of the detector.
    """
    import webrtcvad

    detector = webrtcvad.Vad(strictness)
    whole = np.clip(np.rint(samples * 32768), -32768, 32767).astype("<i2")
    frames = whole[: len(whole) // VAD_FRAME * VAD_FRAME].reshape(-1, VAD_FRAME)
    found = [detector.is_speech(frame.tobytes(), SAMPLE_RATE) for frame in frames]
    return np.array(found, np.bool_)
