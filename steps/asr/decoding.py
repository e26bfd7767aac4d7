# SPDX-License-Identifier: Apache-2.0
"""Every utterance of a set recognised; a killed run goes on where it was."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from steps.asr.recognisers import Recogniser
from steps.asr.text import normalise
from steps.audio import FloatArray, read_audio
from utils.tables import atomic_write, sort_ids, write_map

JOURNAL = "text.partial"


def decode_all(
    recogniser: Recogniser,
    wav: Mapping[str, str],
    out: Path,
    progress: Callable[[Iterable[str]], Iterator[str]],
) -> int:
    """Write `text` (<utterance> <words>, normalised) and recogniser.json; return utterances kept.

    Each hypothesis is first noted in a journal with the digest of its audio. Where a killed run
    left one of the same recogniser and settings, what it holds of the same audio is kept. UserError
    names audio that cannot be read.
    """
    out.mkdir(parents=True, exist_ok=True)
    (out / "text").unlink(missing_ok=True)
    settings = json.dumps(recogniser.settings, sort_keys=True)
    known = _read_journal(out / JOURNAL, settings)
    found, n_kept = {}, 0
    with (out / JOURNAL).open("w", encoding="utf-8") as journal:
        _note(journal.write, [settings], *(f"{u} {d} {w}" for (u, d), w in known.items()))
        journal.flush()
        for utt in progress(sort_ids(wav)):
            samples = read_audio(utt, wav[utt]).samples
            digest = _digest(samples)
            kept = known.get((utt, digest))
            n_kept += kept is not None
            found[utt] = kept
            if kept is None:
                found[utt] = " ".join(normalise(recogniser.recognise(utt, samples)))
                _note(journal.write, [f"{utt} {digest} {found[utt]}"])
                journal.flush()
    with atomic_write(out / "recogniser.json") as stream:
        json.dump(recogniser.settings, stream, indent=1)
        stream.write("\n")
    write_map(out / "text", found)
    (out / JOURNAL).unlink()
    return n_kept


def _digest(samples: FloatArray) -> str:
    return hashlib.sha256(samples.tobytes()).hexdigest()[:16]


def _note(write: Callable[[str], object], lines: list[str], *more: str) -> None:
    write("".join(f"{line}\n" for line in (*lines, *more)))


def _read_journal(path: Path, settings: str) -> dict[tuple[str, str], str]:
    """(utterance, digest of its audio) -> words; empty where it is of other settings."""
    if not path.is_file():
        return {}
    first, *rows = path.read_text(encoding="utf-8").split("\n")
    if first != settings:
        return {}
    fields = (row.split(" ", 2) for row in rows[:-1])  # the last line was not finished
    return {(row[0], row[1]): row[2] for row in fields if len(row) == 3}
