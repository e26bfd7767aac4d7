# SPDX-License-Identifier: Apache-2.0
"""Frames of an utterance as evidence about its speaker, by an encoder with xi pooling.

The mean m = mean_t mu_t and the variance v = mean_t (1/L_t) + var_t(mu_t) of the mixture of an
utterance's frame Gaussians are kept, and their number T. Those of many utterances follow exactly,
so that a corpus needs two vectors an utterance and not one a frame.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from steps.speaker.encoders import Encoder, NetworkEncoder, Samples
from utils.archives import ArchiveWriter
from utils.arrays import Float32
from utils.cli import UserError


class FrameEncoder:
    """Encoder whose vector is (2 d + 1,): mean, variance, and number of frames."""

    n_whole = 0

    def __init__(self, encoder: Encoder, name: str) -> None:
        """Check that an encoder (folder `name`) has xi pooling; UserError otherwise."""
        if not (isinstance(encoder, NetworkEncoder) and encoder.network.has_frame_gaussians):
            raise UserError(
                f"{name}: an encoder with xi pooling is needed (network.pooling: xi); with others "
                "x-vectors of windows stand in: steps/extract_xvectors.py --chunk-seconds 1"
            )
        self.name, self._encoder = encoder.name, encoder

    def embed(self, samples: Samples) -> Float32:
        """See encoders.Encoder."""
        means, variances = (part.astype(np.float64) for part in self._encoder.frames(samples))
        variance = variances.mean(axis=0) + means.var(axis=0)
        return np.concatenate([means.mean(axis=0), variance, [len(means)]]).astype(np.float32)


@dataclass
class FrameWriter:
    """Receiver of the vectors of a FrameEncoder. num_frames: by utterance."""

    means: ArchiveWriter
    variances: ArchiveWriter
    num_frames: dict[str, int] = field(default_factory=dict)

    def write(self, key: str, vector: Float32) -> None:
        """Append the vector (2 d + 1,) of an utterance."""
        size = len(vector) // 2
        self.means.write(key, vector[:size])
        self.variances.write(key, vector[size:-1])
        self.num_frames[key] = int(vector[-1])


@contextmanager
def open_frames(out: Path) -> Iterator[FrameWriter]:
    """Write xvector (the means) and variance (.ark, .scp) to a folder; both .scp appear if the
    `with` block succeeds, else neither does."""
    with ArchiveWriter(out / "xvector") as means, ArchiveWriter(out / "variance") as variances:
        yield FrameWriter(means, variances)
