"""Vectors of utterances, made of what was recognised in them."""

from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np

from steps.channels.counts import count_parts, parts_of_phones, parts_of_text
from steps.channels.timing import cut_phones, read_phones, timing
from utils.arrays import Float32
from utils.cli import UserError
from utils.datadir import describe_difference
from utils.tables import read_map, sort_ids


def extract_channel(
    channel: str, source: Path, utts: Collection[str], chunk_seconds: float | None = None
) -> tuple[dict[str, Float32], int]:
    """Vectors (d,) of the utterances by a channel, in C order, and how many of these hold nothing.
    With chunk_seconds, vectors of pieces (timing only), as steps/extract_xvectors.py names them.

    UserError where source/text lacks an utterance, or another channel shall be cut.
    """
    path = source / "text"
    said = read_map(path, rest_of_line=True)
    if not said.keys() >= {*utts}:
        why = describe_difference(said, utts, "utterance")
        raise UserError(f"{path}: {why}; recognise all of them")
    own = {utt: said[utt] for utt in sort_ids(utts)}
    if channel == "timing":
        vectors = _timing(own, chunk_seconds)
    elif chunk_seconds is not None:
        raise UserError(f"--chunk-seconds: {channel} are counted in whole utterances; leave it out")
    else:
        read = parts_of_text if channel == "words" else _parts_of_sounds
        counts = count_parts([read(text) for text in own.values()])
        vectors = dict(zip(own, counts, strict=True))
    return vectors, sum(not vector.any() for vector in vectors.values())


def _parts_of_sounds(text: str) -> list[str]:
    return parts_of_phones([name for name, _ in read_phones(text) if name])


def _timing(said: Mapping[str, str], chunk_seconds: float | None) -> dict[str, Float32]:
    found: dict[str, Float32] = {}
    for utt, text in said.items():
        spoken = read_phones(text)
        if chunk_seconds is None:
            found[utt] = timing(spoken).astype(np.float32)
            continue
        for number, piece in enumerate(cut_phones(spoken, chunk_seconds)):
            found[f"{utt}-c{number:04d}"] = timing(piece).astype(np.float32)
    return found
