# SPDX-License-Identifier: Apache-2.0
"""Data directories and their functionals, checked to have the same utterances."""

from collections.abc import Mapping
from pathlib import Path

from steps.emotion.classifier import Labelled, check_functionals, recognise_leaving_out
from steps.emotion.result import Asked, Recognised
from utils.archives import read_vectors
from utils.arrays import Float32
from utils.cli import UserError
from utils.datadir import describe_difference, load_data_dir


def _read(folder: Path, utts: Mapping[str, str], data: Path) -> dict[str, Float32]:
    path = folder / "functionals.scp"
    if not path.is_file():
        raise UserError(f"{path}: is missing; make it with steps/extract_functionals.py")
    found = read_vectors(path, check_finite=False)
    check_functionals(path, found)
    if difference := describe_difference(found, utts, "utterance"):
        raise UserError(f"{path}: compared with {data}, {difference}; extract them again")
    return found


def read_own(data: Path, folder: Path) -> tuple[dict[str, Float32], dict[str, str]]:
    """Functionals and speaker of each utterance of a data directory; UserError for a mismatch."""
    utt2spk = load_data_dir(data, need=("utt2spk",), allow_segments=True).utt2spk
    return _read(folder, utt2spk, data), utt2spk


def read_labelled(data: Path, folder: Path) -> Labelled:
    """Training set: data directory with utt2emotion, and its functionals."""
    found = load_data_dir(data, need=("utt2spk", "utt2emotion"), allow_segments=True)
    return Labelled(_read(folder, found.utt2spk, data), found.utt2spk, found.tables["utt2emotion"])


def recognise_by_functionals(data: Path, asked: Asked) -> Recognised:
    """Recognise emotions of a data directory by a classifier of the given training sets."""
    if asked.features is None or not asked.training:
        raise UserError("functionals: --features DIR and --train DATA DIR are needed")
    own, utt2spk = read_own(data, asked.features)
    training = [read_labelled(one, folder) for one, folder in asked.training]
    return recognise_leaving_out(own, utt2spk, training, n_folds=asked.n_folds, seed=asked.seed)
