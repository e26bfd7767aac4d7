# SPDX-License-Identifier: Apache-2.0
"""Output of a recogniser for an utterance beside its words."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Heard:
    """note: a problem on the way, if any; seconds: of its parts, by name."""

    words: str
    note: str = ""
    seconds: Mapping[str, float] = field(default_factory=dict)
