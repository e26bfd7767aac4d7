"""Counts of what is said, hashed into vectors of fixed length: words and letters, or phones."""

from collections.abc import Sequence

import numpy as np

from steps.asr.language import normalise
from utils.arrays import Float32

SIZE = 8192  # counters; what shares one by chance is counted together
LETTERS, PHONES = (3, 4), (1, 2, 3)  # lengths of n-grams


def parts_of_text(text: str) -> list[str]:
    """Words of a text, each in marks, and all runs of 3 and of 4 characters, blanks among them.

    >>> parts_of_text("Go on.")
    ['<GO>', '<ON>', 'GO ', 'O O', ' ON', 'GO O', 'O ON']
    """
    words = normalise(text)
    line = " ".join(words)
    runs = [line[at : at + n] for n in LETTERS for at in range(len(line) - n + 1)]
    return [*(f"<{word}>" for word in words), *runs]


def parts_of_phones(phones: Sequence[str]) -> list[str]:
    """Phones of an utterance, and all runs of 2 and of 3.

    >>> parts_of_phones(["HH", "AH", "L"])
    ['HH', 'AH', 'L', 'HH AH', 'AH L', 'HH AH L']
    """
    return [" ".join(phones[at : at + n]) for n in PHONES for at in range(len(phones) - n + 1)]


def count_parts(utterances: Sequence[Sequence[str]]) -> Float32:
    """Counts (n, SIZE) of the parts of each utterance, by MurmurHash3 (scikit-learn's)."""
    from sklearn.feature_extraction.text import HashingVectorizer

    hashing = HashingVectorizer(
        analyzer=list, n_features=SIZE, norm=None, alternate_sign=False, dtype=np.float32
    )
    counts: Float32 = hashing.transform(utterances).toarray()
    return counts
