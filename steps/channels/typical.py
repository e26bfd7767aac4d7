"""Values as far from what is typical of read speech: what an utterance lacks is typical, 0."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from utils.arrays import Float64
from utils.tables import read_headed

# Mean and standard deviation of each value: of phones over the phones, of all else over the
# utterances of 67 people of LibriSpeech (train-clean-100, dev-clean, test-other), one of each.
TABLE = Path(__file__).with_name("typical.tsv")


@cache
def _typical() -> Mapping[str, tuple[float, float]]:
    return {
        name: (float(row["mean"]), float(row["sd"])) for name, row in read_headed(TABLE).items()
    }


def away(names: Sequence[str], values: Float64) -> Float64:
    """Values (n,) less the typical mean of each, in typical deviations; 0 where one is NaN.

    >>> away(["log_pause"], np.array([np.nan])).tolist()
    [0.0]
    """
    mean, deviation = np.array([_typical()[name] for name in names]).T
    return np.nan_to_num((values - mean) / deviation)
