"""Spellings in which the words of a recogniser and of a transcript are compared."""

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from typing import cast

_APOSTROPHES = str.maketrans("’‘ʼ`´", "'''''")
_MARK = re.compile(r"<[^<>]*>|\[[^\[\]]*\]|\+\+[^+]*\+\+|\(\d+\)")


def normalise(text: str) -> list[str]:
    """Words of a text: upper case, no punctuation, nothing that is not spoken.

    Marks of noises and of the ends (`<s>`, `[DOOR SLAMS]`, `++UH++`) and numbers of pronunciations
    (`A(2)`) are removed. Hyphens and all other punctuation part words; an apostrophe stays within a
    word only, and so do combining marks, which are vowels or tones. Digits stay as they are:
    neither numbers nor abbreviations are spelt out.

    >>> normalise("<s> Well-known: the boys' and ‘Mary’s’ A(2) [door slams] 12 </s>")
    ['WELL', 'KNOWN', 'THE', 'BOYS', 'AND', "MARY'S", 'A', '12']
    >>> normalise("की, कि का।")
    ['की', 'कि', 'का']
    """
    spoken = _MARK.sub(" ", _folded(text))
    words = (word.strip("'") for word in "".join(map(_in_a_word, spoken)).upper().split())
    return [word for word in words if any(map(str.isalnum, word))]


def _folded(text: str) -> str:
    # NFKC makes a blank and a combining mark of an acute accent. Cf: characters without width.
    folded = unicodedata.normalize("NFKC", text.translate(_APOSTROPHES))
    return "".join(c for c in folded if unicodedata.category(c) != "Cf")


@cache
def _in_a_word(character: str) -> str:
    """The character where it is part of a word, else a blank."""
    is_mark = unicodedata.category(character)[0] == "M"
    return character if character.isalnum() or character == "'" or is_mark else " "


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
    return _whisper()(_MARK.sub(" ", _folded(text))).split()


def normalise_english_digits(text: str) -> list[str]:
    """Normalise with every digit as a word, for digit strings: else one wrong spoils all.

    >>> normalise_english_digits("ONE OH TWO, B twenty-five")
    ['1', '0', '2', 'b', '2', '5']
    """
    return re.sub(r"(\d)", r" \1 ", " ".join(normalise_english(text))).split()


def split_vpc2024(text: str) -> list[str]:
    """Words of a text as VoicePrivacy 2024 compares them: as they are written, in upper case.

    >>> split_vpc2024("It's well-known.")
    ["IT'S", 'WELL-KNOWN.']
    """
    return text.upper().split()


_PUNCTUATION_2026 = re.compile(r'[.,!?;:»«"()\[\]…—–-]')
_CHINESE = re.compile("[\u4e00-\u9fff]")


def split_vpc2026(text: str) -> list[str]:
    """Words of a text as track 2 of VoicePrivacy 2026 compares them: lower case, without its marks
    of punctuation, so that a hyphen joins; Chinese by character, and of these alone.

    >>> split_vpc2026("N'est-ce pas là-bas ?"), split_vpc2026("深 shen1 交 jiao1")
    (["n'estce", 'pas', 'làbas'], ['深', '交'])
    """
    return _CHINESE.findall(text) or _PUNCTUATION_2026.sub("", text.lower()).split()


NORMALISERS: dict[str, Callable[[str], list[str]]] = {
    "english": normalise_english,
    "english_digits": normalise_english_digits,
    "plain": normalise,
    "vpc2024": split_vpc2024,
    "vpc2026": split_vpc2026,
}


def describe_normaliser(name: str) -> str:
    """Describe the normaliser for a result, with the version of its package if it has one.

    >>> describe_normaliser("plain")
    'plain'
    """
    from importlib.metadata import version  # it takes longer to load than all else here

    package = "whisper_normalizer"
    return f"{name}: {package} {version(package)}" if name.startswith("english") else name
