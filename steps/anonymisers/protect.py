"""Protection of a data set by an anonymiser: audio file by audio file, then the tables."""

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from steps.anonymisers.registry import Anonymiser
from steps.audio import SAMPLE_RATE, Audio, Losses, read_audio, write_pcm16
from steps.sources import SourceSpeaker, VoiceKey
from utils.cli import UserError
from utils.datadir import DataDir, select, write_data_dir
from utils.tables import StrPath, sort_ids, write_json, write_map, write_timed

# Tables that stay true of protected speech; features and voice activity of the original do not.
KEPT = [
    "utt2spk", "spk2gender", "spk2age", "text", "utt2dur", "utt2lang", "utt2emotion", "enrolls",
    "trials",
]  # fmt: skip


_ROUNDED = 0.02  # seconds of rounding allowed in utt2dur


@dataclass
class Protected(Losses):
    """Result for each utterance. `rows`: utterance -> column of pseudo.tsv -> value. seconds:
    length of the protected audio."""

    files: dict[str, str] = field(default_factory=dict)
    rows: dict[str, dict[str, object]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    n_resampled: int = 0

    def summary(self) -> str:
        """Counts in words."""
        n = len(self.files)
        return (
            f"{n + len(self.skipped)} read, {n} written, {len(self.skipped)} skipped; "
            f"{self.n_resampled} resampled to 16 kHz"
        )


def protect_audio(
    wav: Mapping[str, str],
    keys: Mapping[str, VoiceKey],
    sources: Mapping[str, SourceSpeaker],
    anonymiser: Anonymiser,
    folder: StrPath,
    audio_format: str = "wav",
    progress: Callable[[Iterable[str]], Iterable[str]] = lambda utts: utts,
) -> Protected:
    """Read, transform, level and write each utterance to `folder`/<utterance>.<audio_format>.

    sources: who speaks, by utterance. progress: wraps the utterances, to show progress. Audio that
    cannot be used is skipped, with its reason. UserError for an id that is not a file name, and for
    a file that cannot be written.
    """
    result = Protected()

    def protect(utt: str) -> tuple[Audio, npt.NDArray[np.int16], dict[str, object]]:
        audio = read_audio(utt, wav[utt])
        start = time.perf_counter()
        samples, info = anonymiser.transform(audio.samples, keys[utt], sources[utt])
        seconds = time.perf_counter() - start
        levelled = anonymiser.output.to_pcm16(samples)
        if audio.samples.any() and not levelled.any():
            raise UserError(f"{utt}: the protected signal is digital silence, from speech")
        return audio, levelled, {"key": keys[utt], **info, "seconds": f"{seconds:.4f}"}

    if unfit := [utt for utt in wav if "/" in utt or utt.startswith(".")]:
        raise UserError(
            f"{unfit[0]}: cannot name an audio file; ids with / or a leading . are refused"
        )
    for utt, (audio, levelled, row) in result.each(progress(wav), protect):
        path = f"{os.fspath(folder)}/{utt}.{audio_format}"
        write_pcm16(path, levelled)
        result.files[utt], result.seconds[utt] = path, len(levelled) / SAMPLE_RATE
        result.rows[utt] = row
        result.n_resampled += audio.rate != audio.file_rate
    return result


def write_protected(
    out: Path,
    data: DataDir,
    result: Protected,
    settings: Mapping[str, object],
    notes: Sequence[str] = (),
) -> None:
    """Write conf.json, pseudo.tsv, notes.txt, a data directory; wav.scp last."""
    write_json(out / "conf.json", settings, indent=2, sort_keys=True)
    write_pseudo(out / "pseudo.tsv", result.rows)
    # Notes have ids, so that equal ones of several jobs become one.
    by_id = {hashlib.sha256(note.encode()).hexdigest()[:12]: note for note in notes}
    (out / "notes.txt").unlink(missing_ok=True)
    if by_id:
        write_map(out / "notes.txt", by_id)
    tables = select(data, result.files.keys())
    kept = {name: dict(table) for name, table in tables.items() if name in KEPT}
    for utt, told in kept.get("utt2dur", {}).items():  # unchanged, unless its length differs
        if abs(float(told) - result.seconds[utt]) > _ROUNDED:
            kept["utt2dur"][utt] = f"{result.seconds[utt]:.4f}"
    write_data_dir(out, {**kept, "wav.scp": result.files})


def write_pseudo(path: Path, rows: Mapping[str, Mapping[str, object]]) -> None:
    """Write a header that starts with #, then a line an utterance: id and columns between tabs."""
    columns = next(iter(rows.values()), {})
    write_timed(path, ("utt", *columns), ((utt, *rows[utt].values()) for utt in sort_ids(rows)))
