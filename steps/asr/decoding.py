# SPDX-License-Identifier: Apache-2.0
"""Recognition of every utterance of a set; a killed run is continued."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from steps.asr.heard import Heard
from steps.asr.recognisers import Recogniser
from steps.audio import read_audio
from utils.arrays import Float64
from utils.datafiles import NOTES
from utils.tables import atomic_write, is_there, sort_ids, write_map, write_timed

JOURNAL = "text.partial"
SECONDS = "seconds.tsv"  # seconds of a recogniser's parts, by utterance


@dataclass(frozen=True)
class Decoded:
    """n_kept: utterances already recognised by a killed run; notes: by utterance, problems."""

    n_kept: int
    notes: Mapping[str, str]


def decode_all(
    recogniser: Recogniser,
    wav: Mapping[str, str],
    out: Path,
    progress: Callable[[Iterable[str]], Iterator[str]],
) -> Decoded:
    """Write `text` (<utterance> <words>, as the recogniser spells them), recogniser.json, and a
    recogniser's further output: NOTES, SECONDS.

    Each hypothesis is first noted in a journal with the digest of its audio. If a killed run left
    one of the same recogniser and settings, its entries for the same audio are kept. UserError
    names audio that cannot be read.
    """
    out.mkdir(parents=True, exist_ok=True)
    for name in ("text", NOTES, SECONDS):
        (out / name).unlink(missing_ok=True)
    settings = json.dumps(recogniser.settings, sort_keys=True)
    known = _read_journal(out / JOURNAL, settings)
    found: dict[str, Heard] = {}
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
    with atomic_write(out / "recogniser.json") as stream:
        json.dump(recogniser.settings, stream, indent=1)
        stream.write("\n")
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
    return Decoded(n_kept, notes)


def _hear(recogniser: Recogniser, utt: str, samples: Float64) -> Heard:
    """Words on one line, whatever characters a recogniser uses."""
    heard = recogniser.recognise(utt, samples)
    if isinstance(heard, str):
        heard = Heard(heard)
    printable = "".join(c if c.isprintable() else " " for c in heard.words)
    return replace(heard, words=" ".join(printable.split()))


def _line(utt: str, digest: str, heard: Heard) -> str:
    return f"{utt} {digest} {json.dumps(asdict(heard))}\n"


def _read_journal(path: Path, settings: str) -> dict[tuple[str, str], Heard]:
    """Entries by utterance and digest of its audio; empty where the settings differ."""
    if not is_there(path):
        return {}
    first, *rows = path.read_text(encoding="utf-8").split("\n")
    if first != settings:
        return {}
    fields = (row.split(" ", 2) for row in rows[:-1])  # the last line was not finished
    return {(row[0], row[1]): Heard(**json.loads(row[2])) for row in fields if len(row) == 3}
