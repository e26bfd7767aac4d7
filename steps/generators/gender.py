# SPDX-License-Identifier: Apache-2.0
"""Gender of the pseudo-speaker."""

import numpy as np

from steps.generators.base import GENDERS
from utils.cli import UserError

POLICIES = ("same", "other", "random")


def choose_gender(policy: str, gender: str | None, rng: np.random.Generator) -> str:
    """Choose f or m for a source of gender f, m, or None where it is not known.

    same and other (the challenge's cross-gender option) look at the source's gender and draw
    nothing. random is a fair coin, independent of the source (Srivastava et al. 2020); to toss it
    once a speaker, seed `rng` with `Key.group_parts`. UserError for an unknown policy, and where
    the gender is needed and not known.
    """
    if policy not in POLICIES:
        raise UserError(f"gender: {policy!r} is unknown; known: {', '.join(POLICIES)}")
    if policy == "random":
        return GENDERS[int(rng.integers(2))]
    if gender not in GENDERS:
        raise UserError(
            f"gender: {policy}: the source's gender is {gender!r}, and f or m is needed; give it "
            "in spk2gender of the data directory"
        )
    return gender if policy == "same" else GENDERS[1 - GENDERS.index(gender)]
