# SPDX-License-Identifier: Apache-2.0
"""What the network of the CTC recogniser writes: characters, each word closed by a mark; or words.

Characters can spell words that no training transcript has, but take hours of speech to learn; words
take minutes, and what was never heard is never said.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from steps.asr.text import normalise

KINDS = ("characters", "words")
BLANK, END = "<blank>", "|"


@dataclass(frozen=True)
class Units:
    """tokens: the blank (place 0), the end of a word (1; unused by words), then all, in order."""

    kind: str
    tokens: tuple[str, ...]

    @classmethod
    def of(cls, kind: str, texts: Iterable[str]) -> "Units":
        """The tokens of transcripts.

        >>> Units.of("characters", ["Ab, a"]).tokens
        ('<blank>', '|', 'A', 'B')
        >>> Units.of("words", ["Ab, a"]).tokens
        ('<blank>', '|', 'A', 'AB')
        """
        words = {word for text in texts for word in normalise(text)}
        found = words if kind == "words" else {letter for word in words for letter in word}
        return cls(kind, (BLANK, END, *sorted(found)))

    def spell(self, text: str) -> list[str]:
        """The tokens of a text, also those that are not among `tokens`."""
        if self.kind == "words":
            return normalise(text)
        return [token for word in normalise(text) for token in (*word, END)]

    def encode(self, text: str) -> list[int]:
        """Places of the tokens of a text whose tokens are all known."""
        return [self.tokens.index(token) for token in self.spell(text)]

    def decode(self, places: Sequence[int]) -> str:
        """The words of tokens without blanks; the last may lack its end."""
        between = " " if self.kind == "words" else ""
        text = between.join(self.tokens[place] for place in places)
        return " ".join(text.replace(END, " ").split())


def frames_needed(target: Sequence[int]) -> int:
    """The fewest frames that can write a target: a blank has to part equal neighbours."""
    return len(target) + sum(a == b for a, b in pairwise(target))
