# SPDX-License-Identifier: Apache-2.0
"""Who speaks where: nobody that a model is tested on may be among those that it learnt from."""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from utils.cli import UserError
from utils.datadir import load_data_dir
from utils.tables import sort_ids


def add_not_speakers_of(parser: argparse.ArgumentParser) -> None:
    """The option --not-speakers-of DATA, which may be given again."""
    parser.add_argument(
        "--not-speakers-of",
        type=Path,
        action="append",
        default=[],
        metavar="DATA",
        help="evaluation set; an error where one of its speakers is in training, too",
    )


def check_unseen(speakers: Iterable[str], where: Path, tested: Sequence[Path]) -> None:
    """UserError that names the first of `speakers` (of `where`) who speaks in a set of `tested`."""
    training = set(speakers)
    for path in tested:
        common = sort_ids(training & set(load_data_dir(path, need=("utt2spk",)).utt2spk.values()))
        if common:
            raise UserError(
                f"{where}: speaker {common[0]} ({len(common)} in all) is in {path}, too; who is "
                "tested must not be in training: take the speaker out of one of them"
            )
