# SPDX-License-Identifier: Apache-2.0
"""Normalised spellings of words: one to train with, and one to score English with."""

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from typing import cast

_APOSTROPHES = str.maketrans("’‘ʼ`´", "'''''")
_MARK = re.compile(r"<[^<>\s]*>|\[[^\[\]\s]*\]|\+\+[^+\s]*\+\+|\(\d+\)")
_NOT_IN_A_WORD = re.compile(r"[^\w']|_")


def normalise(text: str) -> list[str]:
    """Words of a text: upper case, no punctuation, nothing that is not spoken.

    Marks of noises and of the ends (`<s>`, `[NOISE]`, `++UH++`) and numbers of pronunciations
    (`A(2)`) are removed. Hyphens and all other punctuation part words; an apostrophe stays within a
    word only. Digits stay as they are: neither numbers nor abbreviations are spelt out.

    >>> normalise("<s> Well-known: the boys' and ‘Mary’s’ A(2) [COUGH] 12 </s>")
    ['WELL', 'KNOWN', 'THE', 'BOYS', 'AND', "MARY'S", 'A', '12']
    """
    spoken = _MARK.sub(" ", unicodedata.normalize("NFKC", text).translate(_APOSTROPHES))
    words = (word.strip("'") for word in _NOT_IN_A_WORD.sub(" ", spoken).upper().split())
    return [word for word in words if word]


@cache
def _whisper() -> Callable[[str], str]:
    from whisper_normalizer.english import EnglishTextNormalizer

    return cast(Callable[[str], str], EnglishTextNormalizer())


def normalise_english(text: str) -> list[str]:
    """Words of an English text as Whisper's normaliser spells them (Radford et al., ICML 2023,
    appendix C), so that recognisers that write digits, amounts and punctuation can be compared.

    Before that unspoken marks are removed, as in `normalise`.

    >>> normalise_english("<s> Mr. Grey didn't pay twenty-five dollars -- ++UH++ it's $25.50!")
    ['mister', 'gray', 'did', 'not', 'pay', '$25', 'it', 'is', '$25.50']
    """
    spoken = unicodedata.normalize("NFKC", text).translate(_APOSTROPHES)
    return _whisper()(_MARK.sub(" ", spoken)).split()


def normalise_english_digits(text: str) -> list[str]:
    """Normalise with every digit as a word, for digit strings: else one wrong spoils all.

    >>> normalise_english_digits("ONE OH TWO, B twenty-five")
    ['1', '0', '2', 'b', '2', '5']
    """
    return re.sub(r"(\d)", r" \1 ", " ".join(normalise_english(text))).split()


NORMALISERS: dict[str, Callable[[str], list[str]]] = {
    "english": normalise_english,
    "english_digits": normalise_english_digits,
    "plain": normalise,
}


def describe_normaliser(name: str) -> str:
    """Describe the normaliser for a result, with the version of its package if it has one.

    >>> describe_normaliser("plain")
    'plain'
    """
    return (
        name if name == "plain" else f"{name}: whisper_normalizer {version('whisper_normalizer')}"
    )
