"""The spelling of words, and what a recogniser knows of a corpus's language."""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from io import StringIO
from pathlib import Path
from typing import cast

from utils.cli import UserError
from utils.tables import is_there, read_json_object, read_lines, write_file, write_json

# ---- Normalised spellings of words: one to train with, and one to score English with.

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


# ---- Language data of a corpus for a recogniser: words, pronunciations, and grammar or model.
#
# A folder: lang.json (kind, counts), lexicon.dict (<word> <phone>...; further pronunciations as
# <word>(2)) and lm.arpa or grammar.jsgf; for the general language of PocketSphinx lang.json only.

LM, GRAMMAR, LEXICON = FILES = "lm.arpa", "grammar.jsgf", "lexicon.dict"
_PRONUNCIATION = re.compile(r"\(\d+\)$")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_NO_WORD = re.compile(r"<[^<>]*>|\{[^{}]*\}|/[^/]*/|[=|()\[\]*+;]")


@dataclass(frozen=True)
class Language:
    """kind: general, trigram, grammar or corpus. files: texts by name, of LM, GRAMMAR and LEXICON
    those that there are; none in the general language. Without LEXICON it is PocketSphinx's own."""

    kind: str
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Digest that changes with all of a recogniser's language data."""
        parts = (self.kind, *(self.files.get(name, "") for name in FILES))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def trigram(texts: Iterable[str]) -> Language:
    """Estimate a trigram model of transcripts by PocketSphinx's method (absolute discounting, 0.5).

    Words that are not in PocketSphinx's dictionary keep their share and are never recognised.
    """
    from pocketsphinx.lm import ArpaBoLM

    lines = [" ".join(normalise(text)).lower() for text in texts]
    if not any(lines):
        raise UserError("a trigram: the transcripts hold no word")
    model = ArpaBoLM(text="\n".join(lines), add_start=True)
    if not model.compute():
        raise UserError("a trigram: the transcripts are too few")
    stream = StringIO()
    model.write(stream)
    arpa = stream.getvalue()
    return Language("trigram", {LM: arpa[arpa.index("\\data\\") :]})


def read_source(source: str) -> Language:
    """Read `general`, a grammar (<name>.jsgf), or a folder such as AN4's: lexicon.dict and lm.arpa.

    UserError for anything else, and for files of another form than their names.
    """
    path = Path(source)
    if source == "general":
        return Language("general")
    if path.suffix == ".jsgf":
        return _checked(path, Language("grammar", {GRAMMAR: _text(path)}))
    if path.is_dir():
        names = LEXICON, LM if is_there(path / LM) else GRAMMAR
        return _checked(path, Language("corpus", {name: _text(path / name) for name in names}))
    raise UserError(
        f"{source}: no language; known: general, trigram, <file>.jsgf, or a folder with "
        f"{LEXICON} and {LM} or {GRAMMAR}"
    )


def _text(path: Path) -> str:
    return "".join(f"{line}\n" for _, line in read_lines(path))


def _checked(path: Path, language: Language) -> Language:
    if not language.files.get(GRAMMAR, "#JSGF").startswith("#JSGF"):
        raise UserError(f"{path}: not a grammar: its first line is not '#JSGF V1.0;'")
    if "\\1-grams:" not in language.files.get(LM, "\\1-grams:"):
        raise UserError(f"{path / LM}: not an ARPA language model: it has no '\\1-grams:'")
    if not vocabulary(language):
        raise UserError(f"{path}: no word of it has a pronunciation in the dictionary")
    return language


def _listed(language: Language) -> set[str] | None:
    """Words of the model or grammar in its spelling; None: the general model's."""
    if LM in language.files:
        # The last one: remarks at the beginning of such files can hold a sample of the format.
        unigrams = language.files[LM].rpartition("\\1-grams:")[2].partition("\\2-grams:")[0]
        return {row[1] for row in map(str.split, unigrams.splitlines()) if len(row) >= 2}
    if GRAMMAR in language.files:
        body = _COMMENT.sub(" ", language.files[GRAMMAR].partition(";")[2])
        body = re.sub(r"\bgrammar\s+[\w.]+;", " ", body)
        return set(re.sub(r"\bpublic\b", " ", _NO_WORD.sub(" ", body)).split())
    return None


def vocabulary(language: Language) -> set[str]:
    """Recognisable words (normalised): listed, and with a pronunciation."""
    return {word for spelt in spelt_words(language) for word in normalise(spelt)}


def spelt_words(language: Language) -> list[str]:
    """Words that are listed and have a pronunciation, in order, in the list's spelling.

    Those of the general language, which no file lists, are in lower case.
    """
    from pocketsphinx import get_model_path

    lexicon = language.files.get(LEXICON)
    if lexicon is None:
        lexicon = _text(Path(get_model_path("en-us/cmudict-en-us.dict")))
    known = {
        _PRONUNCIATION.sub("", line.split()[0]).upper() for line in lexicon.splitlines() if line
    }
    listed = _listed(language)
    if listed is None:
        return sorted(word.lower() for word in _general(known))
    return sorted(word for word in listed if word.upper() in known)


def _general(known: Iterable[str]) -> set[str]:
    """Words that PocketSphinx's own model also has."""
    from pocketsphinx import Config, LogMath, NGramModel, get_model_path

    log_math = LogMath()
    model = NGramModel(Config(), log_math, get_model_path("en-us/en-us.lm.bin"))
    nothing = log_math.get_zero()
    return {word for word in known if model.prob([word.lower()]) > nothing // 2}


def count_unknown(words: set[str], texts: Mapping[str, str]) -> tuple[int, int]:
    """Count (words that are not in the vocabulary, words) of transcripts, every one counted."""
    said = [word for text in texts.values() for word in normalise(text)]
    return sum(word not in words for word in said), len(said)


def write_language(out: Path, language: Language, counts: Mapping[str, object]) -> None:
    """Write the folder; lang.json, with the counts, last."""
    (out / "lang.json").unlink(missing_ok=True)
    for name in FILES:
        (out / name).unlink(missing_ok=True)
    for name, text in language.files.items():
        write_file(out / name, text)
    told = {"kind": language.kind, "digest": language.digest, **counts}
    write_json(out / "lang.json", told)


def read_language(folder: Path) -> Language:
    """Read the files of `write_language`; UserError where there are none."""
    path = folder / "lang.json"
    noted = read_json_object(path, "run make_lang.py")
    if "kind" not in noted:
        raise UserError(f"{path}: not a note of make_lang.py; run it again")
    texts = {name: _text(folder / name) for name in FILES if is_there(folder / name)}
    return Language(str(noted["kind"]), texts)
