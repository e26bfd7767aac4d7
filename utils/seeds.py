"""Randomness independent of order: the seed of an item is a hash of the item's name."""

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # NumPy takes longer to load than programs need that only derive seeds
    import numpy as np


def derive_seed(master: int, *names: str) -> int:
    """Derive a 64-bit seed from the master seed and names of the purpose and the item.

    The names are length-prefixed before hashing (SHA-256, first 8 bytes), so that ("a", "bc") and
    ("ab", "c") differ. The same names give the same seed on every machine, in every order of calls.

    >>> derive_seed(0, "mcadams", "libri_test_enrolls", "1089") == derive_seed(
    ...     0, "mcadams", "libri_test_enrolls", "1089")
    True
    """
    text = "".join(f"{len(part)}:{part}" for part in (str(master), *names))
    return int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest()[:8], "big")


def make_rng(master: int, *names: str) -> "np.random.Generator":
    """Generator (PCG64) seeded by `derive_seed` (see there)."""
    import numpy as np

    return np.random.Generator(np.random.PCG64(derive_seed(master, *names)))


@dataclass(frozen=True)
class Draws:
    """Randomness of a system: a master seed, and the number of the independent run, from 0."""

    seed: int = 0
    draw: int = 0

    def rng(self, purpose: str, *names: str) -> "np.random.Generator":
        """Generator for a purpose and an item, such as the `parts` of a pseudo-speaker's key."""
        return make_rng(self.seed, purpose, f"draw {self.draw}", *names)
