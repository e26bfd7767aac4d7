"""A text read anew: its phones, how long each lasts, and a recogniser's content for them."""

import ctypes
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from itertools import compress, pairwise
from pathlib import Path
from typing import NamedTuple

import espeakng_loader
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from steps.asr import engines
from steps.asr.recognisers import Recogniser
from steps.audio import SAMPLE_RATE
from steps.content.extractors import ContentLayout
from utils.arrays import Bool, Float32, Float64
from utils.cli import UserError
from utils.settings import read_settings

# ---- Phones of an English text, by eSpeak NG.

SILENCE = "SIL"
_SIGNS = Path(__file__).with_name("phones.yaml")
_VOICE = b"gmw/en-US"
_RETRIEVAL, _DONT_EXIT = 1, 0x8000  # of espeak_Initialize: no sound, no end of the process
_UTF8, _IPA, _PARTED = 1, 2, ord("_") << 8  # of espeak_TextToPhonemes
_ABBREVIATION = re.compile(r"\b(Mr|Mrs|Ms|Dr|St)\.", re.IGNORECASE)
_MARKS = r',;:.!?()"—'
_CLAUSE = re.compile(rf"((?:[^{_MARKS}]|[,:.](?=\w))+)([{_MARKS}]*)")  # 1,000 is one number
_STRESSES = "ˈˌ"
_LONG = re.compile(r"(?<![\d,.])\d{3,}")  # numbers that are said in several ways
_BETWEEN = re.compile(r"(?<=\d)[-–:](?=\d)")  # marks in numbers, which are not said
# Frames of 10 ms: at begin and end of a text, after a comma, after another mark.
_EDGE, _COMMA, _STOP = 12, 20, 35


_PART = 50  # words that are read at once


class Phone(NamedTuple):
    """name: of CMUdict, or SILENCE. stress: 0, 1 main, 2 secondary. ends: whether it ends a word.
    lasts: frames of 10 ms; 0: not known yet."""

    name: str
    stress: int = 0
    ends: bool = True
    lasts: int = 0


@cache
def _signs() -> tuple[tuple[str, ...], frozenset[str], dict[str, str]]:
    """Names of all phones, those of the voiced ones, and the phone of each sign."""
    table = read_settings(_SIGNS)
    voiced, voiceless = table["voiced"], table["voiceless"]
    assert isinstance(voiced, dict) and isinstance(voiceless, dict)
    phone_of = {sign: name for name, signs in (voiced | voiceless).items() for sign in signs}
    return (SILENCE, *sorted(voiced | voiceless)), frozenset(voiced), phone_of


@cache
def _espeak() -> ctypes.CDLL:
    """Start eSpeak NG, once a process; UserError where it does not find its data."""
    library = ctypes.CDLL(espeakng_loader.get_library_path())
    folder = os.fsencode(espeakng_loader.get_data_path())
    if library.espeak_Initialize(_RETRIEVAL, 0, folder, _DONT_EXIT) <= 0:
        raise UserError(f"{os.fsdecode(folder)}: eSpeak NG cannot start; run utils/setup.sh again")
    library.espeak_TextToPhonemes.restype = ctypes.c_char_p
    return library


def phones_of(text: str, *, goes_on: bool = False) -> list[Phone]:
    """Phones of a text in English, with silence around clauses; none for a text without words.

    goes_on: with the silence that begins another text its last one is the pause of its last mark.
    """
    phones = [Phone(SILENCE, lasts=_EDGE)]
    for clause, marks in _CLAUSE.findall(_BETWEEN.sub(" ", _ABBREVIATION.sub(r"\1", text))):
        words = _words_of(clause.lower() if clause.isupper() else clause)
        if words:
            phones += [phone for word in words for phone in word]
            pause = {"": _EDGE, ",": _COMMA}.get(marks[:1], _STOP)
            phones.append(Phone(SILENCE, lasts=pause))
    last = max(_SHORTEST, phones[-1].lasts - _EDGE) if goes_on else _EDGE
    return [*phones[:-1], Phone(SILENCE, lasts=last)] if len(phones) > 1 else []


def parts_of(text: str) -> list[str]:
    """Parts of a text of at most _PART words, that end with a sentence where one does."""
    parts = list[list[str]]()
    for sentence in re.findall(r"\S.*?[.!?](?=\s|$)|\S.*", text):
        words = sentence.split()
        for begin in range(0, len(words), _PART):
            more = words[begin : begin + _PART]
            if parts and len(parts[-1]) + len(more) <= _PART:
                parts[-1] += more
            else:
                parts.append(more)
    return [" ".join(part) for part in parts]


def _words_of(clause: str) -> list[list[Phone]]:
    """Words of a clause without marks, as eSpeak NG parts and joins them."""
    library, words = _espeak(), []
    library.espeak_SetVoiceByName(_VOICE)
    data = ctypes.create_string_buffer(clause.encode("utf-8"))
    at = ctypes.c_void_p(ctypes.addressof(data))
    while at.value:  # the library moves it, and sets it to none at the end
        written = library.espeak_TextToPhonemes(ctypes.byref(at), _UTF8, _IPA | _PARTED)
        for word in written.decode("utf-8").split():
            found = [phone for sign in word.split("_") for phone in _phones_of_sign(sign)]
            if found:
                words.append([*found[:-1], found[-1]._replace(ends=True)])
    return words


def _phones_of_sign(written: str) -> list[Phone]:
    """Phones of the signs between two `_`, such as ˈɔːɹ; signs that stand for no phone are left
    out."""
    _, _, phone_of = _signs()
    sign = written.lstrip(_STRESSES)
    stress = _STRESSES.find(written[0]) + 1 if sign != written else 0
    names, at = [], 0
    while at < len(sign):
        known = next((n for n in (2, 1) if sign[at : at + n] in phone_of), 0)
        if known:
            names.append(phone_of[sign[at : at + known]])
        elif sign[at] == "\u0329":  # a syllabic consonant, after it
            names.insert(-1, phone_of["ə"])
        at += known or 1
    return [Phone(name, stress if not i else 0, ends=False) for i, name in enumerate(names)]


def spellings(text: str) -> list[str]:
    """A text as its numbers may have been said: as they are written, and, where one has three
    digits or more, digit by digit, and in pairs.

    >>> spellings("In 1963, 10,000 of 661-9884.")[1:]
    ['In 1 9 6 3, 10,000 of 6 6 1-9 8 8 4.', 'In 19 63, 10,000 of 6 61-98 84.']
    """

    def parted(way: str) -> str:  # by a blank behind what fits
        return _LONG.sub(lambda found: re.sub(way, r"\g<0> ", found[0]), text)

    return list(dict.fromkeys((text, parted(r"\d(?=\d)"), parted(r"\d(?=(\d\d)+(?!\d))"))))


def aligned(aligner: engines.Aligner, utt: str, samples: Float64, text: str) -> list[Phone]:
    """Phones of a text with their lengths in speech (n,) at 16 kHz that says it, and its pauses.

    UserError where the speech does not say the text.
    """
    words = words_of(phones_of(text))
    rest = iter([phone for word in words for phone in word])
    return [
        Phone(SILENCE, lasts=n) if name == SILENCE else next(rest)._replace(lasts=n)
        for name, n in aligner.align(utt, samples, names_of(words))
    ]


def words_of(phones: Sequence[Phone]) -> list[list[Phone]]:
    """Phones of each word, as eSpeak NG joins them ("of the" is one); silences are left out."""
    words: list[list[Phone]] = [[]]
    for phone in phones:
        if phone.name != SILENCE:
            words[-1].append(phone)
            if phone.ends:
                words.append([])
    return words[:-1]


def names_of(words: Sequence[Sequence[Phone]]) -> list[list[str]]:
    """Names of the phones of words."""
    return [[phone.name for phone in word] for word in words]


def written(words: Sequence[Sequence[Phone]], text: str) -> list[list[int]]:
    """Places of what each of `words_of` a text is written as, among what stands between its blanks,
    which eSpeak NG spells otherwise alone than in a clause."""
    alone = names_of([phones_of(word) for word in text.split()])
    spelt = [(x, i) for i, word in enumerate(alone) for x in word if x != SILENCE]
    owners = [(x, i) for i, word in enumerate(names_of(words)) for x in word]
    found = [set[int]() for _ in words]
    one, other = ([x for x, _ in side] for side in (spelt, owners))
    for kind, i, j, begin, end in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        for at, (_, owner) in enumerate(owners[begin:end], i):
            if kind == "insert" and found[owner]:  # such as the r between "never" and "eaten"
                continue
            own = spelt[at : at + 1] if kind == "equal" else spelt[i : max(j, i + 1)]
            found[owner].update(place for _, place in own or spelt[-1:])
    return [sorted(places) for places in found]


# ---- Time of speech that is read in place of other: every word where it was, or as it usually is.

PAUSES = (0, 12, 24, 40, 60)  # frames of 10 ms of a pause between words; longer ones: by 20
_LONGER = 20
_SQUEEZED = 0.6  # least share of a word's own length that stays


def settled(spans: Sequence[tuple[int, int]], least: Sequence[int]) -> list[tuple[int, int]]:
    """First frame of each word, and the one after it, with pauses of few lengths between them.

    A word gives or takes half of the difference on each side, 5 frames at most. A pause stays as it
    is where a word would be shorter than its least, in frames, or than _SQUEEZED of what it was.
    """
    made = [list(span) for span in spans]
    room = [
        max(few, math.ceil(_SQUEEZED * (end - begin)))
        for (begin, end), few in zip(spans, least, strict=True)
    ]
    for i, (before, after) in enumerate(pairwise(made)):
        lasts = after[0] - before[1]
        longer = range(PAUSES[-1], lasts + 2 * _LONGER, _LONGER)
        more = min((*PAUSES, *longer), key=lambda pause: abs(pause - lasts)) - lasts
        first, last = before[1] - more // 2, after[0] + more - more // 2
        if first - before[0] >= room[i] and after[1] - last >= room[i + 1]:
            before[1], after[0] = first, last
    return [(begin, end) for begin, end in made]


def in_place(
    words: Sequence[Sequence[Phone]],
    lasts: Sequence[Float64],
    spans: Sequence[tuple[int, int]],
    n: int,
) -> list[Phone]:
    """Phones and silences, of n frames together, of words in their spans; lasts: a length of each
    phone of each, in any unit, which is scaled to the word's span."""
    made, at = list[Phone](), 0
    for word, shares, (begin, end) in zip(words, lasts, spans, strict=True):
        if begin > at:
            made.append(Phone(SILENCE, lasts=begin - at))
        made += _fitted(word, shares, end - begin)
        at = end
    return [*made, Phone(SILENCE, lasts=n - at)] if n > at else made


def _fitted(word: Sequence[Phone], shares: npt.ArrayLike, n: int) -> list[Phone]:
    """Phones of a word, of n frames together, at least one each."""
    ends = np.cumsum(shares) / np.sum(shares) * (n - len(word))
    frames = np.diff(np.rint(ends), prepend=0).astype(int) + 1
    return [x._replace(lasts=int(k)) for x, k in zip(word, frames, strict=True)]


def in_time(
    phones: Sequence[Phone], kept: Mapping[int, int]
) -> tuple[list[Phone], list[tuple[int, int]]]:
    """Phones in their own lengths, but words of these numbers in so many frames; and the first
    frame of each word, and the one after it."""
    made, word, spans, at = list[Phone](), list[Phone](), list[tuple[int, int]](), 0
    for phone in phones:
        word.append(phone)
        if phone.name != SILENCE and phone.ends:
            if (number := len(spans)) in kept:
                word = _fitted(word, [x.lasts for x in word], kept[number])
            spans.append((at, at + sum(x.lasts for x in word)))
        if phone.ends:  # as silences do
            made += word
            at += sum(x.lasts for x in word)
            word = []
    return made, spans


# ---- Network from phones to their lengths and to content.

MARGIN = 8  # phones on either side that a phone may depend on, and some more
USUAL = 8.0  # frames of 10 ms of a phone
_DILATIONS = (1, 2, 4, 8, 1, 2, 4, 8)
_DROPOUT = 0.2
_LONGEST = 20.0  # frames of 10 ms; a phone's ends further away do not count
_SHORTEST = 2
_PACE = 1.3  # a predicted length is a median, shorter than a mean; slow speech is understood better
_N_PLACES = 8


def symbols_of(phones: Sequence[Phone]) -> npt.NDArray[np.int64]:
    """Numbers (P,), from 1 on, of phones with their stresses, and whether they end a word."""
    place = {name: i for i, name in enumerate(_signs()[0])}
    return np.array([(place[x.name] * 3 + x.stress) * 2 + x.ends + 1 for x in phones], np.int64)


def sizes_of(phones: Sequence[Phone]) -> Float32:
    """Logarithms (P,) of the lengths of phones, in units of the usual length."""
    return np.log([x.lasts / USUAL for x in phones]).astype(np.float32)


def frames_of(
    phones: Sequence[Phone], of: ContentLayout, n: int
) -> tuple[npt.NDArray[np.int64], Float32]:
    """Place among the phones (n,) of each of n frames of content, and where in its phone the frame
    is (n, 8)."""
    lasts = np.array([phone.lasts for phone in phones], np.float64)
    begin = np.concatenate(([0.0], np.cumsum(lasts)[:-1]))
    times = (np.arange(n) * of.hop + of.first) / SAMPLE_RATE * 100
    at = np.searchsorted(begin, times, side="right") - 1
    gone = times - begin[at]
    share, left = np.minimum(gone / lasts[at], 1), np.clip(lasts[at] - gone, 0, _LONGEST) / 10
    gone = np.minimum(gone, _LONGEST) / 10
    silent = np.array([phone.name == SILENCE for phone in phones])[at]
    places = (
        share, share**2, np.sin(np.pi * share), gone, left, np.exp(-3 * gone), np.exp(-3 * left),
        silent,
    )  # fmt: skip
    return at.astype(np.int64), np.stack(places, axis=1).astype(np.float32)


class Reader(nn.Module):
    """Network from phones to the content of a neutral voice: convolutions over phones, and gated
    ones over frames."""

    def __init__(self, n_content: int, width: int) -> None:
        super().__init__()
        self.phones = nn.Embedding(1 + len(_signs()[0]) * 6, width, padding_idx=0)
        self.context = nn.ModuleList(nn.Conv1d(width, width, 5, padding="same") for _ in range(3))
        self.length = nn.Conv1d(width, 1, 1)
        self.size = nn.Linear(1, width)
        self.place = nn.Linear(_N_PLACES, width)
        self.gated = nn.ModuleList(
            nn.Conv1d(width, 2 * width, 3, padding="same", dilation=d) for d in _DILATIONS
        )
        self.mixed = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in _DILATIONS)
        self.last = nn.Sequential(
            nn.Conv1d(width, width, 1), nn.GELU(), nn.Conv1d(width, n_content, 1)
        )
        self.dropout = nn.Dropout(_DROPOUT)

    def listen(self, symbols: Tensor) -> tuple[Tensor, Tensor]:
        """Phones in their context (B, width, P), and logarithms (B, P) of their lengths, in usual
        ones, from symbols (B, P); 0 where there is no phone."""
        hidden = self.phones(symbols).transpose(1, 2)
        for layer in self.context:
            hidden = hidden + functional.gelu(layer(self.dropout(hidden)))
        return hidden, self.length(hidden)[:, 0]

    def forward(self, phones: Tensor, sizes: Tensor, at: Tensor, places: Tensor) -> Tensor:
        """Content (B, T, d), normalised and without its mean, of frames in phones (B, width, P) of
        `listen` with sizes (B, P); at, places (B, T), (B, T, 8): see `frames_of`."""
        sized = phones + self.size(sizes[..., None]).transpose(1, 2)
        hidden = torch.gather(sized, 2, at[:, None].expand(-1, sized.shape[1], -1))
        hidden = hidden + self.place(places).transpose(1, 2)
        total = torch.zeros_like(hidden)
        for gated, mixed in zip(self.gated, self.mixed, strict=True):
            value, gate = gated(self.dropout(hidden)).chunk(2, dim=1)
            made = mixed(torch.tanh(value) * torch.sigmoid(gate))
            hidden = (hidden + made) * 0.5**0.5
            total = total + made
        return self.last(functional.gelu(0.4 * total)).transpose(1, 2)

    @torch.no_grad()
    def lengths(self, phones: Sequence[Phone]) -> Float64:
        """Lengths (P,) of phones, in frames of 10 ms, as they are usually said."""
        logs = self.listen(torch.from_numpy(symbols_of(phones))[None])[1]
        return _PACE * USUAL * np.exp(logs[0].numpy().astype(np.float64))

    def timed(self, phones: Sequence[Phone]) -> list[Phone]:
        """Phones with their usual lengths; those of a known length keep it."""
        lasts = np.rint(self.lengths(phones))
        return [
            x if x.lasts else x._replace(lasts=max(_SHORTEST, int(n)))
            for x, n in zip(phones, lasts, strict=True)
        ]

    def read(self, text: str, of: ContentLayout) -> tuple[Float32, Bool]:
        """Content (T, d), normalised, of a text, and voicing (U,) of its frames of 10 ms; T and U
        are 0 for a text without words."""
        if not (phones := phones_of(text)):
            return np.zeros((0, of.width), np.float32), np.zeros(0, bool)
        return self.say(self.timed(phones), of)

    @torch.no_grad()
    def say(
        self, phones: Sequence[Phone], of: ContentLayout, n: int | None = None
    ) -> tuple[Float32, Bool]:
        """Content (n, d), normalised, of phones with their lengths, and voicing (U,) of their
        frames of 10 ms. n: as many as these last, where it is not given."""
        if n is None:
            n = round(sum(phone.lasts for phone in phones) * SAMPLE_RATE / 100 / of.hop)
        hidden, _ = self.listen(torch.from_numpy(symbols_of(phones))[None])
        given = (torch.from_numpy(x)[None] for x in (sizes_of(phones), *frames_of(phones, of, n)))
        voiced = [phone.name in _signs()[1] for phone in phones]
        content = self(hidden, *given)[0].numpy()
        return content, np.repeat(voiced, [phone.lasts for phone in phones])


# ---- Speech read, in its own time or another: what of it is read, and what stays as heard.

_FADE = 5  # frames of content over which what is read and what is heard are faded into each other
_AGREES = 0.5  # cosine of content as read and as heard of a word that was said
_UNREAD = 0.3  # mean of how sure words are, by their time, below which they are not read
_ENGLISH = re.compile("en(g|glish)?([-_].*)?", re.IGNORECASE)  # en, eng, en-GB, English
_ASKED = 0.6  # the same, below which they are not read if their language is surely another
_LOUD = 0.01  # power beside the mean one of words, from which on a sound between them counts


Moved = tuple[float, float, float, float, str]
"""Begin and end of a word in the source, and in what is said, in seconds, and the word."""


class Repaired(NamedTuple):
    """Speech that is read, but for what is doubtful. content: (T, d), normalised. voiced: (U,) of
    frames of 10 ms. heard: (T,), share of each frame that should be what was heard. seconds: of the
    source that are `read`, `heard`, and `hushed`, sounds that became pauses. places: of the source,
    where time is another: what was heard when, among its content (T,), and its frames of 10 ms
    (U,); words: their times, then."""

    content: Float32
    voiced: Bool
    heard: Float32
    seconds: dict[str, float]
    places: tuple[Float64, Float64] | None = None
    words: Sequence[Moved] = ()


class RepairingReader:
    """Reading of the words of speech, of which those stay as they were heard that are doubtful."""

    def __init__(
        self, recogniser: Recogniser, reader: Reader, doubt: float | None, *, in_place: bool
    ) -> None:
        """doubt: a word stays as it was heard where the recogniser's probability of it, less where
        content as read and as heard disagree, is below 1 - doubt; None: no word does. in_place:
        whether every word is said where it was; else in its usual time."""
        self._recogniser, self._reader = recogniser, reader
        self._doubt = 1.0 if doubt is None else doubt
        self._aligner, self._in_place = engines.Aligner(), in_place

    def read(
        self, wave: Float64, heard: Float64, of: ContentLayout, language: str | None = None
    ) -> Repaired | None:
        """Read a signal (m,) at 16 kHz, of content heard (T, d), normalised; None where that cannot
        be: it has no words, does not say what was recognised, that is unsure on the whole, or the
        language is not English. Where the language is not given, Whisper, if installed, is asked
        for it where words are less unsure."""
        if language and not _ENGLISH.fullmatch(language):
            return None
        text, probable = heard_words(self._recogniser, wave)
        fits = [fit for one in spellings(text) if (fit := self._fit(wave, one, heard, of))]
        if not fits:
            return None
        spelt, words, found, spans, content, voiced, known = max(
            fits, key=lambda fit: float(np.average(fit.known, weights=np.diff(fit.found)[:, 0]))
        )
        n_frames = 1 + len(wave) * 100 // SAMPLE_RATE
        own = written(words, text)
        certain = np.array([min(probable[i] for i in places) for places in own]) * known
        sure = float(np.average(certain, weights=np.diff(found)[:, 0]))
        if sure < _UNREAD or (sure < _ASKED and not language and engines.foreign("", wave)):
            return None
        doubtful = certain < 1 - self._doubt
        said, kept = _mask(spans, n_frames), _mask(compress(spans, doubtful), n_frames)
        masks = {"read": said & ~kept, "heard": kept, "hushed": ~said & _loud(wave, said)}
        seconds = {what: float(mask.sum()) / 100 for what, mask in masks.items()}
        if self._in_place:
            return Repaired(content, voiced, _shares(kept, len(heard), of), seconds)
        kept_in = {i: found[i][1] - found[i][0] for i in np.flatnonzero(doubtful).tolist()}
        phones, spans = in_time(self._reader.timed(phones_of(spelt, goes_on=True)), kept_in)
        content, voiced = self._reader.say(phones, of)
        shares = _shares(_mask(compress(spans, doubtful), len(voiced)), len(content), of)
        old, new = ([0, *np.ravel(x), n] for x, n in ((found, n_frames), (spans, len(voiced))))
        among = np.interp(_middles(len(content), of), new, old) * SAMPLE_RATE / 100 - of.first
        among = np.clip(among / of.hop, 0, len(heard) - 1)
        frames = np.interp(np.arange(len(voiced)), new, np.minimum(old, n_frames - 1))
        labels = [" ".join(text.split()[i] for i in places) for places in own]
        moved = [
            (a / 100, b / 100, begin / 100, end / 100, label)
            for (a, b), (begin, end), label in zip(found, spans, labels, strict=True)
        ]
        return Repaired(content, voiced, shares, seconds, (among, frames), moved)

    def _fit(self, wave: Float64, text: str, heard: Float64, of: ContentLayout) -> "_Fit | None":
        """The words of a text in a signal; None where it does not say them."""
        words, n_frames = words_of(phones_of(text)), 1 + len(wave) * 100 // SAMPLE_RATE
        try:
            found = self._aligner.find("", wave, names_of(words))
        except UserError:
            return None
        spans = settled(found, [len(word) for word in words])
        usual = self._reader.lengths([phone for word in words for phone in word])  # no pauses
        ends = np.cumsum([len(word) for word in words])
        placed = in_place(words, np.split(usual, ends[:-1]), spans, n_frames)
        content, voiced = self._reader.say(placed, of, len(heard))
        times = np.rint(_middles(len(heard), of))
        known = agreement(content, heard, [(times >= a) & (times < b) for a, b in found])
        return _Fit(text, words, found, spans, content, voiced, known)


class _Fit(NamedTuple):
    """Text in a signal. words: their phones. found, spans: where they are, and where they are said.
    content, voiced: as read there. known: agreement of each with what was heard."""

    text: str
    words: list[list[Phone]]
    found: list[tuple[int, int]]
    spans: list[tuple[int, int]]
    content: Float32
    voiced: Bool
    known: Float64


def _middles(n: int, of: ContentLayout) -> Float64:
    """Middles (n,) of frames of content, in frames of 10 ms."""
    return (np.arange(n) * of.hop + of.first) / SAMPLE_RATE * 100


def _mask(spans: Iterable[tuple[int, int]], n: int) -> Bool:
    """Mask (n,) of the frames in spans."""
    found = np.zeros(n, bool)
    for begin, end in spans:
        found[begin:end] = True
    return found


def _shares(mask: Bool, n: int, of: ContentLayout) -> Float32:
    """Shares (n,) of frames of content that a mask of frames of 10 ms holds."""
    times = np.rint(_middles(n, of)).astype(int)
    return _faded(mask[np.clip(times, 0, len(mask) - 1)])


def agreement(read: Float32, heard: Float64, words: Sequence[Bool]) -> Float64:
    """Agreement (W,) of content as read and as heard (T, d) over the frames (T,) of each word: 0
    none, 1 from a cosine of _AGREES on; 1 where a word has no frame."""
    one, other = read - read.mean(axis=0), heard - heard.mean(axis=0)
    products = [(one * other).sum(axis=1), (one**2).sum(axis=1), (other**2).sum(axis=1)]
    cross, ours, theirs = np.array([[x[mask].sum() for mask in words] for x in products])
    with np.errstate(invalid="ignore", divide="ignore"):
        cosines = cross / np.sqrt(ours * theirs)
    return np.clip(np.nan_to_num(cosines, nan=1.0) / _AGREES, 0, 1)


def heard_words(recogniser: Recogniser, wave: Float64) -> tuple[str, Sequence[float]]:
    """Words that a recogniser finds in a signal, and its probability of each, 1 where it tells
    none."""
    found = recogniser.recognise("", wave)
    text, sure = (found, ()) if isinstance(found, str) else (found.words, found.sure)
    return text, sure or [1.0] * len(text.split())


def _faded(mask: Bool) -> Float32:
    """Shares (T,) of a mask of frames of content, rising and falling around its edges."""
    window = np.hanning(_FADE + 2)[1:-1]
    padded = np.pad(mask, _FADE // 2, mode="edge")
    return np.convolve(padded, window / window.sum(), "valid").astype(np.float32)


def _loud(wave: Float64, said: Bool) -> Bool:
    """Mask (U,) of frames of 10 ms that are not much softer than words, of which `said` is one."""
    hop = SAMPLE_RATE // 100
    power = np.pad(wave**2, (0, hop * len(said) - len(wave))).reshape(-1, hop).mean(axis=1)
    return power > _LOUD * power[said].mean()
