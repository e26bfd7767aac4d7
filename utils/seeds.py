"""Randomness that does not depend on order: the seed of an item is a hash of what the item is."""

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # NumPy takes longer to load than programs need that only derive seeds
    import numpy as np


def derive_seed(master: int, *names: str) -> int:
    """64-bit seed from the master seed and the names that say what is drawn and for whom.

    The names are length-prefixed before hashing (SHA-256, first 8 bytes), so that ("a", "bc") and
    ("ab", "c") differ. The same names give the same seed on every machine, in every order of calls.

    >>> derive_seed(0, "mcadams", "libri_test_enrolls", "1089") == derive_seed(
    ...     0, "mcadams", "libri_test_enrolls", "1089")
    True
    """
    text = "".join(f"{len(part)}:{part}" for part in (str(master), *names))
    return int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest()[:8], "big")


def make_rng(master: int, *names: str) -> "np.random.Generator":
    """A PCG64 generator seeded by `derive_seed` (see there)."""
    import numpy as np

    return np.random.Generator(np.random.PCG64(derive_seed(master, *names)))
