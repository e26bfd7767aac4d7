# SPDX-License-Identifier: Apache-2.0
"""X-vectors of a data directory: whole utterances, or cut into chunks."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from steps.audio import SAMPLE_RATE, read_audio
from steps.speaker.encoders import Encoder, TooShortError
from utils.arrays import Float32
from utils.cli import LossError, UserError
from utils.tables import write_map


@dataclass
class Extraction:
    """Counts. utt2spk: of the ids written (`chunked`: of chunks); skipped: utterance -> reason."""

    chunked: bool
    utt2spk: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    n_read: int = 0
    n_resampled: int = 0
    n_whole: int = 0  # pauses not cut out, see Encoder

    def summary(self) -> str:
        """Counts in one line."""
        whole = f" ({self.n_whole} with their pauses: too short without)" if self.n_whole else ""
        resampled = f" ({self.n_resampled} resampled to 16 kHz)" if self.n_resampled else ""
        return (
            f"read {self.n_read} utterances{resampled} / written {len(self.utt2spk)} x-vectors"
            f"{' of chunks' if self.chunked else ''}{whole} / skipped {len(self.skipped)}"
        )


def extract(
    encoder: Encoder,
    wav: Mapping[str, str],
    utt2spk: Mapping[str, str],
    write: Callable[[str, Float32], None],
    *,
    chunk_seconds: float | None = None,
    progress: Callable[[Iterable[str]], Iterable[str]] = lambda utts: utts,
) -> Extraction:
    """Extract the x-vectors of all utterances; unusable ones are noted with their reason.

    write: gets each x-vector with its id as soon as it is computed; none is kept. progress: wraps
    the utterances, to show progress.
    """
    result, n_whole = Extraction(chunked=chunk_seconds is not None), encoder.n_whole
    for utt in progress(utt2spk):
        for key, samples in _read_pieces(result, utt, wav[utt], chunk_seconds):
            vector = _embed(encoder, result, utt, samples)
            if vector is not None:
                result.utt2spk[key] = utt2spk[utt]
                write(key, vector)
    result.n_whole = encoder.n_whole - n_whole
    return result


def _skip(result: Extraction, utt: str, reason: str) -> None:
    logging.warning("skipped: %s", reason if utt in reason else f"{utt}: {reason}")
    result.skipped[utt] = " ".join(reason.split())


def _read_pieces(
    result: Extraction, utt: str, rxfilename: str, chunk_seconds: float | None
) -> Iterator[tuple[str, Float32]]:
    """Yield (id, samples) of the utterance or of its chunks."""
    try:
        audio = read_audio(utt, rxfilename)
    except UserError as error:
        _skip(result, utt, str(error))
        return
    result.n_read += 1
    result.n_resampled += audio.file_rate != audio.rate
    samples = audio.samples.astype(np.float32)
    if not samples.any():  # its x-vector would count as speech that hides its speaker
        _skip(result, utt, f"{rxfilename}: digital silence from end to end")
    elif chunk_seconds is None:
        yield utt, samples
    else:
        for number, chunk in enumerate(cut(samples, chunk_seconds)):
            yield f"{utt}-c{number:04d}", chunk


def cut(samples: Float32, chunk_seconds: float) -> list[Float32]:
    """Cut into equal pieces of `chunk_seconds` to twice that; a shorter signal stays whole.

    >>> [len(piece) for piece in cut(np.zeros(80000, np.float32), 2.0)]
    [40000, 40000]
    """
    n_chunks = max(1, int(len(samples) / (chunk_seconds * SAMPLE_RATE)))
    return list(np.array_split(samples, n_chunks))


def _embed(encoder: Encoder, result: Extraction, utt: str, samples: Float32) -> Float32 | None:
    """X-vector of the samples, if there is one."""
    try:
        vector = encoder.embed(samples)
    except TooShortError as error:
        _skip(result, utt, str(error))
        return None
    if not np.isfinite(vector).all():
        _skip(result, utt, "its x-vector is not finite")
        return None
    return vector


def finish(out: Path, result: Extraction, allow_loss: int) -> None:
    """Write utt2spk of chunks and skipped.txt; LossError when too many utterances were lost.

    Call it before the archive is closed, whose .scp comes last, or not at all.
    """
    if len(result.skipped) > allow_loss:
        utt, reason = next(iter(result.skipped.items()))
        raise LossError(
            f"{len(result.skipped)} utterances lost, {allow_loss} allowed (--allow-loss); the "
            f"first: {reason if utt in reason else f'{utt}: {reason}'}"
        )
    for name in ("utt2spk", "skipped.txt"):
        (out / name).unlink(missing_ok=True)
    if result.skipped:
        write_map(out / "skipped.txt", result.skipped)
    if result.chunked:
        write_map(out / "utt2spk", result.utt2spk)
