# SPDX-License-Identifier: Apache-2.0
"""What a recogniser said of the utterances of data directories, beside what is true."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from utils.cli import LossError, UserError, make_parser
from utils.datadir import describe_difference, load_data_dir
from utils.tables import read_map


@dataclass(frozen=True)
class Recognised:
    """By utterance: what is true, what was recognised, and who speaks."""

    reference: dict[str, str] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    utt2spk: dict[str, str] = field(default_factory=dict)


def get_recognised_parser(doc: str, table: str) -> argparse.ArgumentParser:
    """The command line of a judge of recognisers; `table`: its name of what was said."""
    parser = make_parser(doc)
    parser.add_argument(
        "--bootstrap", type=int, default=0, metavar="N",
        help="resamples of the speakers for 95 %% intervals; 0: none",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the resamples")
    parser.add_argument(
        "--also", type=Path, nargs=2, action="append", default=[], metavar=("DATA", table),
        help="a further set, counted together with the first",
    )  # fmt: skip
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument("said", type=Path, metavar=table)
    parser.add_argument("out", metavar="OUT")
    return parser


def read_recognised(
    args: argparse.Namespace, table: str, again: str, *, rest_of_line: bool = False
) -> Recognised:
    """All sets of a command line of `get_recognised_parser`, together.

    table: file of the data directory that holds what is true. again: what to do where utterances
    are missing (LossError). UserError: an utterance that the data has not, or that two sets have.
    """
    if args.bootstrap < 0:
        raise UserError(f"--bootstrap {args.bootstrap}: a number of resamples from 0 is expected")
    whole = Recognised()
    pairs: Sequence[tuple[Path, Path]] = [(args.data, args.said), *args.also]
    for data, path in pairs:
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
