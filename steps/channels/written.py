"""Vectors of a file as it is written, in which nobody listens for a voice: its content."""

import numpy as np

from steps.content.extractors import load_extractor
from steps.speaker.encoders import Samples, TooShortError
from utils.arrays import Float32

# ---- Content: what a recogniser's encoder makes of the file.


class ContentEncoder:
    """Means and deviations (2 d,) over the frames of an extractor of content, at the file's own
    level."""

    n_whole = 0

    def __init__(self, *words: str) -> None:
        """words: an extractor of steps/content (left out: moonshine), and the device."""
        *name, device = words
        self._extract = load_extractor(name[0] if name else "moonshine", device)

    def embed(self, samples: Samples) -> Float32:
        frames = self._extract(np.asarray(samples, np.float64))
        if not len(frames):
            raise TooShortError(f"{len(samples)} samples are too few for a frame of content")
        moments = frames.mean(axis=0, dtype=np.float64), frames.std(axis=0, dtype=np.float64)
        return np.concatenate(moments).astype(np.float32)
