# SPDX-License-Identifier: Apache-2.0
"""Output of a recogniser for the utterances of data directories, beside the truth."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from utils.cli import LossError, UserError
from utils.datadir import describe_difference, load_data_dir
from utils.tables import read_map


@dataclass(frozen=True)
class Recognised:
    """Truth, output and speaker, by utterance."""

    reference: dict[str, str] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    utt2spk: dict[str, str] = field(default_factory=dict)


def read_recognised(
    sets: Iterable[tuple[Path, Path]], table: str, again: str, *, rest_of_line: bool = False
) -> Recognised:
    """Join all sets: pairs of a data directory and a table of the output.

    table: file of the data directory with the truth. again: remedy for missing utterances
    (LossError). UserError: an utterance that is not in the data, or in two sets.
    """
    whole = Recognised()
    for data, path in sets:
        found = load_data_dir(data, need=("utt2spk", table), allow_segments=True)
        said = read_map(path, rest_of_line=rest_of_line)
        difference = describe_difference(said, found.utt2spk, "utterance")
        if found.utt2spk.keys() - said.keys():
            raise LossError(f"{path}: compared with {data}, {difference}; {again}")
        if difference:
            raise UserError(f"{path}: compared with {data}, {difference}")
        if twice := found.utt2spk.keys() & whole.utt2spk.keys():
            raise UserError(f"{data}: {min(twice)} is in another set, too; name each set once")
        whole.reference.update(found.tables[table])
        whole.said.update(said)
        whole.utt2spk.update(found.utt2spk)
    return whole
