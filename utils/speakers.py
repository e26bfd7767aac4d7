# SPDX-License-Identifier: Apache-2.0
"""Separation of speakers: nobody on whom a model is tested may be in its training data."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

from utils.cli import UserError
from utils.datadir import load_data_dir
from utils.tables import atomic_write, is_there, read_rows, sort_ids

TRAINING_SPEAKERS = "spklist"  # in the folder of a model whose training speakers are all known


def check_unseen(speakers: Iterable[str], where: Path, tested: Sequence[Path]) -> None:
    """Raise a UserError that names the first of `speakers` (of `where`) in a set of `tested`."""
    training = set(speakers)
    for path in tested:
        found = load_data_dir(path, need=("utt2spk",)).utt2spk.values()
        check_apart(training, where, set(found), path)


def check_apart(
    training: AbstractSet[str], where: Path, tested: AbstractSet[str], path: Path
) -> None:
    """Raise a UserError for the first training speaker (in `where`) who is tested (in `path`)."""
    if common := sort_ids(training & tested):
        raise UserError(
            f"{where}: speaker {common[0]} ({len(common)} in all) is in {path}, too; who is "
            "tested must not be in training: take the speaker out of one of them"
        )


def write_training_speakers(model: Path, speakers: Iterable[str], *before: Path | None) -> None:
    """Write spklist: training speakers of a model, and of the models `before` behind it.

    There is no list if one of these has unknown training speakers.
    """
    known = set(speakers)
    for found in (read_training_speakers(path) for path in before if path is not None):
        if found is None:
            (model / TRAINING_SPEAKERS).unlink(missing_ok=True)
            return
        known.update(found)
    with atomic_write(model / TRAINING_SPEAKERS) as stream:
        stream.writelines(f"{speaker}\n" for speaker in sort_ids(known))


def read_training_speakers(model: Path) -> list[str] | None:
    """Training speakers of a model; None where it has no list."""
    path = model / TRAINING_SPEAKERS
    return [fields[0] for _, fields in read_rows(path, 1)] if is_there(path) else None
