# SPDX-License-Identifier: Apache-2.0
"""x-vectors of a data directory: whole utterances, or cut into chunks."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from steps.audio import SAMPLE_RATE, read_audio
from steps.speaker.encoders import Encoder, TooShortError, length_sorted_batches
from utils.audiofiles import probe_audio
from utils.cli import LossError, UserError
from utils.tables import write_map

Float32 = npt.NDArray[np.float32]


@dataclass
class Extraction:
    """What was done. utt2spk: of the ids written (`chunked`: of chunks); skipped: utterance ->
    reason."""

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
    batch_seconds: float,
    write: Callable[[str, Float32], None],
    *,
    chunk_seconds: float | None = None,
    progress: Callable[[Iterable[list[int]]], Iterable[list[int]]] = lambda batches: batches,
) -> Extraction:
    """The x-vectors of all utterances; what cannot be used is noted with its reason.

    write: takes each x-vector with its id as soon as there is one, shortest utterances first; none
    is kept.
    progress: wraps the batches (lists of numbers), to show how far it is.
    """
    result, n_whole = Extraction(chunked=chunk_seconds is not None), encoder.n_whole
    lengths = {}
    for utt in utt2spk:
        info = probe_audio(wav[utt])
        if info.problem:
            _skip(result, utt, f"{wav[utt]}: {info.problem}")
        else:
            lengths[utt] = int(info.seconds * SAMPLE_RATE)
    utts = list(lengths)
    limit = int(batch_seconds * SAMPLE_RATE) if encoder.batches else 0
    batches = list(length_sorted_batches([lengths[utt] for utt in utts], limit))
    for batch in progress(batches):
        pieces = list(_read_pieces(result, [utts[i] for i in batch], wav, chunk_seconds))
        for key, utt, vector in _embed(encoder, result, pieces):
            result.utt2spk[key] = utt2spk[utt]
            write(key, vector)
    result.n_whole = encoder.n_whole - n_whole
    return result


def _skip(result: Extraction, utt: str, reason: str) -> None:
    logging.warning("skipped: %s", reason if utt in reason else f"{utt}: {reason}")
    result.skipped[utt] = " ".join(reason.split())


def _read_pieces(
    result: Extraction, utts: Sequence[str], wav: Mapping[str, str], chunk_seconds: float | None
) -> Iterator[tuple[str, str, Float32]]:
    """(id, utterance, samples) of the utterances or of their chunks."""
    for utt in utts:
        try:
            audio = read_audio(utt, wav[utt])
        except UserError as error:
            _skip(result, utt, str(error))
            continue
        result.n_read += 1
        result.n_resampled += audio.file_rate != audio.rate
        samples = audio.samples.astype(np.float32)
        if not samples.any():  # an x-vector of it would count as speech that hides its speaker
            _skip(result, utt, f"{wav[utt]}: digital silence from end to end")
            continue
        if chunk_seconds is None:
            yield utt, utt, samples
            continue
        for number, chunk in enumerate(cut(samples, chunk_seconds)):
            yield f"{utt}-c{number:04d}", utt, chunk


def cut(samples: Float32, chunk_seconds: float) -> list[Float32]:
    """Equal pieces of `chunk_seconds` to twice that; a shorter signal stays whole.

    >>> [len(piece) for piece in cut(np.zeros(80000, np.float32), 2.0)]
    [40000, 40000]
    """
    n_chunks = max(1, int(len(samples) / (chunk_seconds * SAMPLE_RATE)))
    return list(np.array_split(samples, n_chunks))


def _embed(
    encoder: Encoder, result: Extraction, pieces: Sequence[tuple[str, str, Float32]]
) -> Iterator[tuple[str, str, Float32]]:
    """(id, utterance, x-vector) of the pieces that have one."""
    try:
        vectors = encoder.embed_batch([samples for _, _, samples in pieces]) if pieces else []
    except TooShortError as error:
        if len(pieces) == 1:
            _skip(result, pieces[0][1], str(error))
            return
        for piece in pieces:  # find out which
            yield from _embed(encoder, result, [piece])
        return
    for (key, utt, _), vector in zip(pieces, vectors, strict=True):
        if np.isfinite(vector).all():
            yield key, utt, vector
        else:
            _skip(result, utt, "its x-vector is not finite")


def finish(out: Path, result: Extraction, allow_loss: int) -> None:
    """utt2spk of chunks and skipped.txt; LossError when too many utterances were lost.

    To be called before the archive is closed, whose .scp comes last, or not at all.
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
