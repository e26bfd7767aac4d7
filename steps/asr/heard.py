# SPDX-License-Identifier: Apache-2.0
"""What a recogniser tells of an utterance beside its words."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Heard:
    """note: what went wrong on the way, where anything did; seconds: of its parts, by name."""

    words: str
    note: str = ""
    seconds: Mapping[str, float] = field(default_factory=dict)
