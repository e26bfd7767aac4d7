# SPDX-License-Identifier: Apache-2.0
"""The one spelling of words: of transcripts to learn from, of hypotheses, when scored."""

import re
import unicodedata

_APOSTROPHES = str.maketrans("’‘ʼ`´", "'''''")
_MARK = re.compile(r"<[^<>\s]*>|\[[^\[\]\s]*\]|\+\+[^+\s]*\+\+|\(\d+\)")
_NOT_IN_A_WORD = re.compile(r"[^\w']|_")


def normalise(text: str) -> list[str]:
    """The words of a text: upper case, no punctuation, nothing that is not said.

    Marks of noises and of the ends (`<s>`, `[NOISE]`, `++UH++`) and numbers of pronunciations
    (`A(2)`) go. Hyphens and all other punctuation part words; an apostrophe stays within a word
    only. Digits stay as they are: neither numbers nor abbreviations are spelt out.

    >>> normalise("<s> Well-known: the boys' and ‘Mary’s’ A(2) [COUGH] 12 </s>")
    ['WELL', 'KNOWN', 'THE', 'BOYS', 'AND', "MARY'S", 'A', '12']
    """
    spoken = _MARK.sub(" ", unicodedata.normalize("NFKC", text).translate(_APOSTROPHES))
    words = (word.strip("'") for word in _NOT_IN_A_WORD.sub(" ", spoken).upper().split())
    return [word for word in words if word]
