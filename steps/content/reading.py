"""A text read anew: its phones, how long each lasts, and a recogniser's content of them."""

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
_CLAUSE = re.compile(rf"([^{_MARKS}]+)([{_MARKS}]*)")
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
    """Phones of what is written between two `_`, such as ˈɔːɹ; signs of nothing are left out."""
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

WINDOW = 9  # phones that a frame depends on directly, its own in the middle
_DILATIONS = (1, 2, 4, 8, 1, 2, 4, 8)
_DROPOUT = 0.2
_LONGEST = 20.0  # frames of 10 ms; a phone's ends further away do not count
USUAL = 8.0  # frames of 10 ms of a phone
_SHORTEST = 2
_PACE = 1.15  # a predicted length is a median; by this a text lasts as long as people take
_N_PLACES = 7


def windows_of(phones: Sequence[Phone]) -> npt.NDArray[np.int64]:
    """Numbers (P, WINDOW) of the phones about each of P phones; outside there is silence."""
    place = {name: i for i, name in enumerate(_signs()[0])}
    own = [(place[x.name] * 3 + x.stress) * 2 + x.ends for x in phones]
    half = WINDOW // 2
    padded = np.pad(np.array(own, np.int64), half, constant_values=1)
    found = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)
    return found + np.arange(WINDOW) * _n_symbols()


def _n_symbols() -> int:
    return len(_signs()[0]) * 6


def frames_of(
    phones: Sequence[Phone], of: ContentLayout, n: int
) -> tuple[npt.NDArray[np.intp], Float32]:
    """Place among the phones (n,) of each of n frames of content, and where in it the frame is (n,
    7)."""
    lasts = np.array([phone.lasts for phone in phones], np.float64)
    begin = np.concatenate(([0.0], np.cumsum(lasts)[:-1]))
    times = (np.arange(n) * of.hop + of.first) / SAMPLE_RATE * 100
    at = np.searchsorted(begin, times, side="right") - 1
    gone = times - begin[at]
    left = np.clip(lasts[at] - gone, 0, _LONGEST) / 10
    share, gone = np.minimum(gone / lasts[at], 1), np.minimum(gone, _LONGEST) / 10
    silent = np.array([phone.name == SILENCE for phone in phones])[at]
    size = np.log(lasts[at] / USUAL)
    places = (share, gone, left, np.exp(-3 * gone), np.exp(-3 * left), size, silent)
    return at, np.stack(places, axis=1).astype(np.float32)


class Reader(nn.Module):
    """Content of a voice without qualities, from phones: gated dilated convolutions."""

    def __init__(self, n_content: int, width: int) -> None:
        super().__init__()
        self.phones = nn.Embedding(WINDOW * _n_symbols(), width)
        nn.init.normal_(self.phones.weight, std=WINDOW**-0.5)
        self.length = nn.Sequential(
            nn.Dropout(_DROPOUT), nn.Linear(width, width), nn.GELU(),
            nn.Dropout(_DROPOUT), nn.Linear(width, 1),
        )  # fmt: skip
        self.place = nn.Linear(_N_PLACES, width)
        self.gated = nn.ModuleList(
            nn.Conv1d(width, 2 * width, 3, padding="same", dilation=d) for d in _DILATIONS
        )
        self.mixed = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in _DILATIONS)
        self.last = nn.Sequential(
            nn.Conv1d(width, width, 1), nn.GELU(), nn.Conv1d(width, n_content, 1)
        )
        self.dropout = nn.Dropout(_DROPOUT)

    def lengths(self, windows: Tensor) -> Tensor:
        """Logarithms (...) of lengths, in usual ones, of phones with windows (..., WINDOW)."""
        found: Tensor = self.length(self.phones(windows).sum(dim=-2))
        return found[..., 0]

    def forward(self, windows: Tensor, places: Tensor) -> Tensor:
        """Content (B, T, d), normalised and without its mean, of frames with windows (B, T, WINDOW)
        of their phones, and places (B, T, 7) in them."""
        hidden = (self.phones(windows).sum(dim=2) + self.place(places)).transpose(1, 2)
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
        windows = torch.from_numpy(windows_of(phones))
        logs = self.lengths(windows).numpy().astype(np.float64)
        sizes = np.maximum(_SHORTEST, np.rint(_PACE * USUAL * np.exp(logs))).astype(int)
        phones = [
            x if x.lasts else x._replace(lasts=int(n)) for x, n in zip(phones, sizes, strict=True)
        ]
        lasts = [phone.lasts for phone in phones]
        n = round(sum(lasts) * SAMPLE_RATE / 100 / of.hop)
        at, places = frames_of(phones, of, n)
        content = self(windows[at][None], torch.from_numpy(places)[None])[0].numpy()
        voiced = _signs()[1]
        return content, np.repeat([phone.name in voiced for phone in phones], lasts)
