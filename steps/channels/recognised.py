"""Vectors of utterances, made of what was recognised in them."""

from collections.abc import Collection
from pathlib import Path

from steps.channels.counts import count_parts, parts_of_text
from utils.arrays import Float32
from utils.cli import UserError
from utils.datadir import describe_difference
from utils.tables import read_map, sort_ids

FILES = {"words": "text"}  # where a channel's utterances stand


def read_channel(channel: str, source: Path, utts: Collection[str]) -> dict[str, Float32]:
    """Vectors (d,) of the utterances in C order, by a channel; UserError where one has no line."""
    path = source / FILES[channel]
    said = read_map(path, rest_of_line=True)
    if not said.keys() >= {*utts}:
        why = describe_difference(said, utts, "utterance")
        raise UserError(f"{path}: {why}; recognise all of them")
    ids = sort_ids(utts)
    return dict(zip(ids, count_parts([parts_of_text(said[utt]) for utt in ids]), strict=True))
