"""A text read anew: its phones, how long each lasts, and a recogniser's content for them."""

import ctypes
import os
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import espeakng_loader
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from steps.audio import SAMPLE_RATE
from steps.content.extractors import ContentLayout
from utils.arrays import Bool, Float32, Float64
from utils.cli import UserError
from utils.settings import read_settings

if TYPE_CHECKING:
    from steps.asr.engines import Aligner

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
# Frames of 10 ms: at begin and end of a text, after a comma, after another mark.
_EDGE, _COMMA, _STOP = 12, 20, 35


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


def phones_of(text: str) -> list[Phone]:
    """Phones of a text in English, with silence around clauses; none for a text without words."""
    phones = [Phone(SILENCE, lasts=_EDGE)]
    for clause, marks in _CLAUSE.findall(_ABBREVIATION.sub(r"\1", text)):
        words = _words_of(clause.lower() if clause.isupper() else clause)
        if words:
            phones += [phone for word in words for phone in word]
            pause = {"": _EDGE, ",": _COMMA}.get(marks[:1], _STOP)
            phones.append(Phone(SILENCE, lasts=pause))
    return [*phones[:-1], Phone(SILENCE, lasts=_EDGE)] if len(phones) > 1 else []


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


def aligned(aligner: "Aligner", utt: str, samples: Float64, text: str) -> list[Phone]:
    """Phones of a text with their lengths in speech (n,) at 16 kHz that says it, and its pauses.

    UserError where the speech does not say the text.
    """
    spoken = [phone for phone in phones_of(text) if phone.name != SILENCE]
    words: list[list[str]] = [[]]
    for phone in spoken:
        words[-1].append(phone.name)
        if phone.ends:
            words.append([])
    rest = iter(spoken)
    return [
        Phone(SILENCE, lasts=n) if name == SILENCE else next(rest)._replace(lasts=n)
        for name, n in aligner.align(utt, samples, words[:-1])
    ]


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
    def read(self, text: str, of: ContentLayout) -> tuple[Float32, Bool]:
        """Content (T, d), normalised, of a text, and voicing (U,) of its frames of 10 ms; T and U
        are 0 for a text without words."""
        phones = phones_of(text)
        if not phones:
            return np.zeros((0, of.width), np.float32), np.zeros(0, bool)
        hidden, logs = self.listen(torch.from_numpy(symbols_of(phones))[None])
        lasts = np.rint(_PACE * USUAL * np.exp(logs[0].numpy().astype(np.float64)))
        phones = [
            x if x.lasts else x._replace(lasts=max(_SHORTEST, int(n)))
            for x, n in zip(phones, lasts, strict=True)
        ]
        n_frames = sum(phone.lasts for phone in phones)
        found = frames_of(phones, of, round(n_frames * SAMPLE_RATE / 100 / of.hop))
        given = (torch.from_numpy(part)[None] for part in (sizes_of(phones), *found))
        content = self(hidden, *given)[0].numpy()
        voiced = [phone.name in _signs()[1] for phone in phones]
        return content, np.repeat(voiced, [phone.lasts for phone in phones])
