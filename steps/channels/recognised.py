"""Vectors of utterances beside the voice: counts of what was recognised, timing, and melody."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from steps.asr.language import normalise
from steps.audio import read_audio
from steps.channels.written import rhythm_of
from utils.arrays import Float32, Float64
from utils.cli import UserError, refusing
from utils.datadir import describe_difference
from utils.tables import read_headed, read_map, sort_ids

# ---- Values as far from what is typical of read speech: what an utterance lacks is 0, typical.

# Mean and standard deviation of each value: of phones over the phones, of all else over the
# utterances of 67 people of LibriSpeech (train-clean-100, dev-clean, test-other), one of each.
TABLE = Path(__file__).with_name("typical.tsv")


@cache
def _typical(names: tuple[str, ...]) -> Float64:
    """Typical means and deviations (2, n)."""
    rows = read_headed(TABLE)
    return np.array([[float(rows[name][of]) for name in names] for of in ("mean", "sd")])


def away(names: Sequence[str], values: Float64) -> Float64:
    """Values (n,) less the typical mean of each, in typical deviations; 0 where one is NaN.

    >>> away(["log_pause"], np.array([np.nan])).tolist()
    [0.0]
    """
    mean, deviation = _typical(tuple(names))
    return np.nan_to_num((values - mean) / deviation)


# ---- Counts of what is said, hashed into vectors of fixed length: words and letters, or phones.

SIZE = 8192  # counters; what shares one by chance is counted together
LETTERS, RUNS = (3, 4), (1, 2, 3)  # lengths of n-grams of characters, and of phones


def parts_of_text(text: str) -> list[str]:
    """Words of a text, each in marks, and all runs of 3 and of 4 characters, blanks among them.

    >>> parts_of_text("Go on.")
    ['<GO>', '<ON>', 'GO ', 'O O', ' ON', 'GO O', 'O ON']
    """
    words = normalise(text)
    line = " ".join(words)
    runs = [line[at : at + n] for n in LETTERS for at in range(len(line) - n + 1)]
    return [*(f"<{word}>" for word in words), *runs]


def parts_of_phones(phones: Sequence[str]) -> list[str]:
    """Phones of an utterance, and all runs of 2 and of 3.

    >>> parts_of_phones(["HH", "AH", "L"])
    ['HH', 'AH', 'L', 'HH AH', 'AH L', 'HH AH L']
    """
    return [" ".join(phones[at : at + n]) for n in RUNS for at in range(len(phones) - n + 1)]


def count_parts(utterances: Sequence[Sequence[str]]) -> Float32:
    """Counts (n, SIZE) of the parts of each utterance, by MurmurHash3 (scikit-learn's)."""
    from sklearn.feature_extraction.text import HashingVectorizer

    hashing = HashingVectorizer(
        analyzer=list, n_features=SIZE, norm=None, alternate_sign=False, dtype=np.float32
    )
    return hashing.transform(utterances).toarray()


# ---- Timing of an utterance as one vector: how long each phone lasts, pauses, and the rate.
#
# After Tomashenko et al. 2024, who compare mean durations of phones; here they are values for a
# back end, each as far from what is typical.

VOWELS = ("AA", "AE", "AH", "AO", "AW", "AY", "EH", "ER", "EY", "IH", "IY", "OW", "OY", "UH", "UW")
CONSONANTS = (
    "B", "CH", "D", "DH", "F", "G", "HH", "JH", "K", "L", "M", "N", "NG", "P", "R", "S", "SH", "T",
    "TH", "V", "W", "Y", "Z", "ZH",
)  # fmt: skip
PHONES = (*VOWELS, *CONSONANTS)
RHYTHM = ("vowels_spread", "consonants_spread", "phones_a_second", "pauses_a_second", "log_pause")
BY_CHANCE = 2  # a phone's mean is drawn to the typical one as by so many typical phones
FRAMES_A_SECOND = 100

Spoken = tuple[str, int]  # phone, and frames of 10 ms


def read_phones(text: str) -> list[Spoken]:
    """Phones with their lengths in frames, from `<phone>:<frames> ...`. Anything else is a pause,
    ""; pauses in a row are one, and those at both ends are left out. ValueError for a word of
    another form.

    >>> read_phones("SIL:9 P:11 SIL:8 +NSN+:2 AY:3 SIL:4")
    [('P', 11), ('', 10), ('AY', 3)]
    """
    for word in text.split():
        if not re.fullmatch(r".+:0*[1-9][0-9]*", word):
            raise ValueError(f"{word!r} is not <phone>:<frames>; take steps/decode.py phones")
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
    the typical mean; RHYTHM. All are in typical deviations; a value that the utterance lacks is 0,
    the typical one."""
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
    """Pieces of equal length, of `seconds` to twice that; a phone belongs to the piece that holds
    its middle. A shorter utterance stays whole."""
    ends = np.cumsum([frames for _, frames in spoken])
    total = int(ends[-1]) if spoken else 0
    pieces = max(1, int(total / (seconds * FRAMES_A_SECOND)))
    middle = ends - np.array([frames for _, frames in spoken]) / 2
    which = np.minimum((middle * pieces / max(total, 1)).astype(np.int64), pieces - 1)
    for number in range(pieces):
        yield [one for one, at in zip(spoken, which, strict=True) if at == number]


# ---- Melody of an utterance as one vector: the course of pitch, voicing and energy.


class MelodyEncoder:
    """Functionals MELODY (16,) in typical deviations from the typical values; a functional that an
    utterance lacks, such as pitch where no frame is voiced, is 0, the typical value."""

    n_whole = 0

    def __init__(self, device: str = "cpu") -> None:
        pass

    def embed(self, samples: npt.NDArray[np.floating]) -> Float32:
        from steps.emotion.functionals import MELODY, melody  # the other channels need no WORLD

        found = melody(np.asarray(samples, dtype=np.float64))
        return away(MELODY, found).astype(np.float32)


# ---- Vectors of a set.


def extract_channel(
    channel: str,
    source: Path,
    utts: Collection[str],
    chunk_seconds: float | None = None,
    wav: Mapping[str, str] | None = None,
) -> tuple[dict[str, Float32], int]:
    """Vectors (d,) of the utterances by a channel, in C order, and the number of empty ones.
    With chunk_seconds, vectors of pieces (timing only), as steps/extract_xvectors.py names them.
    wav: the audio of the utterances, which rhythm also needs.

    UserError where source/text lacks an utterance, or another channel shall be cut.
    """
    path = source / "text"
    said = read_map(path, rest_of_line=True)
    if not said.keys() >= {*utts}:
        why = describe_difference(said, utts, "utterance")
        raise UserError(f"{path}: {why}; recognise all of them")
    if channel != "timing" and chunk_seconds is not None:
        raise UserError(f"--chunk-seconds: {channel} is of whole utterances; leave it out")
    own = {utt: said[utt] for utt in sort_ids(utts)}
    if channel == "rhythm":
        heard = ((utt, read_audio(utt, (wav or {})[utt]).samples) for utt in own)
        vectors = {utt: rhythm_of(samples, own[utt]) for utt, samples in heard}
    elif channel == "words":
        vectors = _count({utt: parts_of_text(text) for utt, text in own.items()})
    else:
        spoken: dict[str, list[Spoken]] = {}
        for utt, text in own.items():
            with refusing(f"{path}: {utt}: {{}}", ValueError):
                spoken[utt] = read_phones(text)
        vectors = _timing(spoken, chunk_seconds) if channel == "timing" else _sounds(spoken)
    return vectors, sum(not vector.any() for vector in vectors.values())


def _count(parts: Mapping[str, Sequence[str]]) -> dict[str, Float32]:
    return dict(zip(parts, count_parts([*parts.values()]), strict=True))


def _sounds(said: Mapping[str, Sequence[Spoken]]) -> dict[str, Float32]:
    return _count({utt: parts_of_phones([n for n, _ in own if n]) for utt, own in said.items()})


def _timing(
    said: Mapping[str, Sequence[Spoken]], chunk_seconds: float | None
) -> dict[str, Float32]:
    found: dict[str, Float32] = {}
    for utt, spoken in said.items():
        if chunk_seconds is None:
            found[utt] = timing(spoken).astype(np.float32)
            continue
        for number, piece in enumerate(cut_phones(spoken, chunk_seconds)):
            found[f"{utt}-c{number:04d}"] = timing(piece).astype(np.float32)
    return found
