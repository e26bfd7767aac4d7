# SPDX-License-Identifier: Apache-2.0
"""Measurement of every utterance of a data directory into one archive; losses are counted."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from steps.audio import read_audio
from utils.archives import ArchiveWriter
from utils.arrays import Float64
from utils.cli import LossError, UserError
from utils.tables import write_map


@dataclass
class Measured:
    """Counts, and the reason for each skipped utterance."""

    n_written: int = 0
    n_frames: int = 0
    n_resampled: int = 0
    skipped: dict[str, str] = field(default_factory=dict)

    def summary(self, what: str) -> str:
        """Counts in one line; `what` was written."""
        resampled = f" ({self.n_resampled} resampled to 16 kHz)" if self.n_resampled else ""
        return (
            f"read {self.n_written + len(self.skipped)} utterances{resampled} / written "
            f"{self.n_written} {what}, {self.n_frames} frames / skipped {len(self.skipped)}"
        )


def measure_all(
    wav: Mapping[str, str],
    measure: Callable[[Float64], Float64],
    stem: Path,
    allow_loss: int,
    progress: Callable[[Iterable[str]], Iterable[str]] = lambda utts: utts,
) -> Measured:
    """Write `measure` of each signal (n,) at 16 kHz, float32, to `stem`.{ark,scp}, one at a time.

    progress: wraps the utterances, to show progress. Utterances that cannot be read or measured go
    to skipped.txt beside it. LossError beyond `allow_loss`; then, as after every error, there is no
    archive.
    """
    result = Measured()
    stem.parent.mkdir(parents=True, exist_ok=True)
    notes = stem.parent / "skipped.txt"
    stem.with_name(f"{stem.name}.scp").unlink(missing_ok=True)
    notes.unlink(missing_ok=True)
    with ArchiveWriter(stem) as writer:
        for utt in progress(wav):
            try:
                audio = read_audio(utt, wav[utt])
                measured = measure(audio.samples)
            except UserError as error:
                reason = " ".join(str(error).split())
                result.skipped[utt] = reason if utt in reason else f"{utt}: {reason}"
                continue
            writer.write(utt, measured)
            result.n_written += 1
            result.n_frames += len(measured)
            result.n_resampled += audio.rate != audio.file_rate
        if result.skipped:
            write_map(notes, result.skipped)
        _check_losses(result, len(wav), allow_loss)
    return result


def _check_losses(result: Measured, n: int, allow_loss: int) -> None:
    if len(result.skipped) > allow_loss:
        raise LossError(
            f"{len(result.skipped)} of {n} utterances lost, {allow_loss} allowed (--allow-loss); "
            f"the first: {next(iter(result.skipped.values()))}"
        )
