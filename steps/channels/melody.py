"""Melody of an utterance as one vector: the course of pitch, voicing and energy."""

import numpy as np

from steps.channels.typical import away
from steps.emotion.functionals import MELODY, melody
from steps.speaker.encoders import Samples
from utils.arrays import Float32


class MelodyEncoder:
    """Functionals MELODY (16,) in deviations from what is typical; what an utterance lacks, such as
    pitch where no frame is voiced, is typical, 0."""

    n_whole = 0

    def __init__(self, device: str = "cpu") -> None:
        pass

    def embed(self, samples: Samples) -> Float32:
        found = melody(np.asarray(samples, dtype=np.float64))
        return away(MELODY, found).astype(np.float32)
