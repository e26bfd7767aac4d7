# SPDX-License-Identifier: Apache-2.0
"""Output units of the CTC recogniser: characters, each word closed by a mark; or words.

Characters can spell words that no training transcript has, but take hours of speech to learn; words
take minutes, but new words are never recognised.
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
        """Units of transcripts.

        >>> Units.of("characters", ["Ab, a"]).tokens
        ('<blank>', '|', 'A', 'B')
        >>> Units.of("words", ["Ab, a"]).tokens
        ('<blank>', '|', 'A', 'AB')
        """
        words = {word for text in texts for word in normalise(text)}
        found = words if kind == "words" else {letter for word in words for letter in word}
        return cls(kind, (BLANK, END, *sorted(found)))

    def spell(self, text: str) -> list[str]:
        """Split a text into tokens, also those that are not among `tokens`."""
        if self.kind == "words":
            return normalise(text)
        return [token for word in normalise(text) for token in (*word, END)]

    def encode(self, text: str) -> list[int]:
        """Positions of the tokens of a text whose tokens are all known."""
        return [self.tokens.index(token) for token in self.spell(text)]

    def decode(self, places: Sequence[int]) -> str:
        """Words of tokens without blanks; the last may lack its end."""
        between = " " if self.kind == "words" else ""
        text = between.join(self.tokens[place] for place in places)
        return " ".join(text.replace(END, " ").split())


def frames_needed(target: Sequence[int]) -> int:
    """Fewest frames that can give a target: a blank must separate equal neighbours."""
    return len(target) + sum(a == b for a, b in pairwise(target))
