"""Timing of an utterance as one vector: how long each phone lasts, pauses, and the rate.

After Tomashenko et al. 2024, who compare mean durations of phones; here they are values for a back
end, each as far from what is typical.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from steps.channels.typical import away
from utils.arrays import Float64

VOWELS = (
    "AA", "AE", "AH", "AO", "AW", "AY", "EH", "ER", "EY", "IH", "IY", "OW", "OY", "UH", "UW",
)  # fmt: skip
CONSONANTS = (
    "B", "CH", "D", "DH", "F", "G", "HH", "JH", "K", "L", "M", "N", "NG", "P", "R", "S", "SH", "T",
    "TH", "V", "W", "Y", "Z", "ZH",
)  # fmt: skip
PHONES = (*VOWELS, *CONSONANTS)
RHYTHM = (
    "vowels_spread", "consonants_spread", "phones_a_second", "pauses_a_second", "log_pause",
)  # fmt: skip
BY_CHANCE = 2  # a phone's mean is drawn to the typical one as by so many typical phones
FRAMES_A_SECOND = 100

Spoken = tuple[str, int]  # phone, and frames of 10 ms


def read_phones(text: str) -> list[Spoken]:
    """Phones with their frames, of `<phone>:<frames> ...`; what is no phone is a pause, "", one
    after another is one, and those at both ends are left out.

    >>> read_phones("SIL:9 P:11 SIL:8 +NSN+:2 AY:3 SIL:4")
    [('P', 11), ('', 10), ('AY', 3)]
    """
    pairs = [word.rsplit(":", 1) for word in text.split()]
    named = [(name if name in PHONES else "", int(frames)) for name, frames in pairs]
    found: list[Spoken] = []
    for name, frames in named:
        if not name and found and not found[-1][0]:
            frames += found.pop()[1]
        if name or found:
            found.append((name, frames))
    return found[:-1] if found and not found[-1][0] else found


def timing(spoken: Sequence[Spoken]) -> Float64:
    """Timing (44,) of an utterance: of each phone of PHONES the mean of its log durations, drawn to
    the typical mean; RHYTHM. All in typical deviations; what it lacks is typical, 0."""
    phones = [name for name, _ in spoken if name]
    log = np.log([frames for name, frames in spoken if name])
    z = away(phones, log) if phones else log
    which = np.array([PHONES.index(name) for name in phones], dtype=np.int64)
    total, count = (np.bincount(which, w, len(PHONES)) for w in (z, None))
    return np.concatenate([total / (count + BY_CHANCE), away(RHYTHM, rhythm(spoken, z))])


def rhythm(spoken: Sequence[Spoken], z: Float64) -> Float64:
    """Values of RHYTHM: deviations of the durations z of phones, phones in a second of speech, and
    pauses within; NaN where there is nothing to measure."""
    vowel = np.array([name in VOWELS for name, _ in spoken if name], dtype=bool)
    pauses = [frames for name, frames in spoken if not name]
    seconds = sum(frames for _, frames in spoken) / FRAMES_A_SECOND
    spread = [float(own.std()) if len(own) > 1 else np.nan for own in (z[vowel], z[~vowel])]
    speech = seconds - sum(pauses) / FRAMES_A_SECOND
    return np.array([
        *spread,
        len(z) / speech if len(z) else np.nan,
        len(pauses) / seconds if len(z) else np.nan,
        np.log(pauses).mean() if pauses else np.nan,
    ])  # fmt: skip


def cut_phones(spoken: Sequence[Spoken], seconds: float) -> Iterator[list[Spoken]]:
    """Pieces of equal length, of `seconds` to twice that; a phone is where its middle lies. What is
    shorter stays whole."""
    ends = np.cumsum([frames for _, frames in spoken])
    total = int(ends[-1]) if spoken else 0
    pieces = max(1, int(total / (seconds * FRAMES_A_SECOND)))
    middle = ends - np.array([frames for _, frames in spoken]) / 2
    which = np.minimum((middle * pieces / max(total, 1)).astype(np.int64), pieces - 1)
    for number in range(pieces):
        yield [one for one, at in zip(spoken, which, strict=True) if at == number]
