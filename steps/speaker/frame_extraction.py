# SPDX-License-Identifier: Apache-2.0
"""What the frames of an utterance say of its speaker, by an encoder with xi pooling.

Of an utterance are kept the mean m = mean_t mu_t and the variance v = mean_t (1/L_t) + var_t(mu_t)
of the mixture of its frames' Gaussians, and their number T. Those of many utterances follow from
these exactly, so that a corpus needs two vectors an utterance and not one a frame.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from steps.speaker.encoders import Encoder, NetworkEncoder, Samples
from steps.speaker.extraction import Extraction, write_extraction
from utils.archives import ArchiveWriter, write_counts
from utils.cli import UserError
from utils.tables import write_map

Float32 = npt.NDArray[np.float32]


class FrameEncoder:
    """An Encoder whose vector is (2 d + 1,): mean, variance, and number of frames."""

    batches = False

    def __init__(self, encoder: Encoder, name: str) -> None:
        """UserError for an encoder (folder `name`) without xi pooling."""
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

    def embed_batch(self, batch: Sequence[Samples]) -> list[Float32]:
        """See encoders.Encoder."""
        return [self.embed(samples) for samples in batch]


def write_frames(out: Path, result: Extraction, allow_loss: int) -> None:
    """xvector (the means) and variance (.ark, .scp), num_frames, utt2spk of a FrameEncoder's.

    LossError when too many were lost.
    """
    whole = result.vectors
    size = len(next(iter(whole.values()), np.zeros(1))) // 2
    result.vectors = {utt: vector[:size] for utt, vector in whole.items()}
    write_extraction(out, result, allow_loss)
    with ArchiveWriter(out / "variance") as writer:
        for utt in sorted(whole):
            writer.write(utt, whole[utt][size:-1])
    write_counts(out / "num_frames", {utt: int(vector[-1]) for utt, vector in whole.items()})
    write_map(out / "utt2spk", result.utt2spk)
