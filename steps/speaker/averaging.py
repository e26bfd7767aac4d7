# SPDX-License-Identifier: Apache-2.0
"""Speaker x-vectors: the plain mean of a speaker's utterances, before any centring or scaling."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from utils.archives import ObjectReader, read_vectors
from utils.arrays import Float32, Float64
from utils.cli import LossError, UserError
from utils.datadir import DataDir
from utils.tables import StrPath, is_there, read_map, sort_ids


def read_xvectors(folder: StrPath, name: str = "xvector") -> dict[str, Float32]:
    """Path of `<name>.scp` in a folder of x-vectors; UserError names the program that makes it."""
    return read_vectors(_find_scp(folder, name))


def open_xvectors(folder: StrPath) -> ObjectReader:
    """Open `xvector.scp` of a folder, to read vectors one by one."""
    return ObjectReader(_find_scp(folder, "xvector"))


def _find_scp(folder: StrPath, name: str) -> Path:
    path = Path(folder) / f"{name}.scp"
    if not path.is_file():
        program = "average_xvectors.py" if name == "spk_xvector" else "extract_xvectors.py"
        raise UserError(f"{path}: is missing; make it with steps/{program}")
    return path


def speakers_of(folder: StrPath, data: DataDir) -> dict[str, str]:
    """Read utt2spk of the x-vectors in a folder: its own if it has chunks, else the data's.

    Speakers of chunks must be speakers of the data.
    """
    path = Path(folder) / "utt2spk"
    if not is_there(path):
        return data.utt2spk
    utt2spk = read_map(path)
    if foreign := sorted(set(utt2spk.values()) - set(data.utt2spk.values())):
        raise UserError(f"{path}: {foreign[0]} is no speaker of {data.path}; make the folder again")
    return utt2spk


def check_complete(
    vectors: Mapping[str, Float32] | ObjectReader,
    utt2spk: Mapping[str, str],
    where: StrPath,
    allow_loss: int,
) -> None:
    """Check that each x-vector has a speaker, and at most `allow_loss` utterances lack one."""
    if unknown := [utt for utt in vectors if utt not in utt2spk]:
        raise UserError(
            f"{where}: {len(unknown)} x-vectors of utterances without a speaker in utt2spk, the "
            f"first {unknown[0]}"
        )
    missing = [utt for utt in utt2spk if utt not in vectors]
    if len(missing) > allow_loss:
        raise LossError(
            f"{where}: {len(missing)} of {len(utt2spk)} utterances have no x-vector "
            f"({' '.join(missing[:5])}{' ...' if len(missing) > 5 else ''}); "
            f"--allow-loss is {allow_loss}"
        )


def average_by_speaker(
    vectors: Iterable[tuple[str, Float32]], utt2spk: Mapping[str, str]
) -> tuple[dict[str, Float32], dict[str, int]]:
    """Mean (in float64) and number of the x-vectors of each speaker: (spk -> (d,), spk -> n).

    vectors: (utterance, (d,)), which are added one by one as they come: in C order, as an .scp of
    this project has them, the same x-vectors give the same bytes. As Kaldi's ivector-mean: nothing
    is centred or scaled first. The order matters: averaging vectors of length 1 gives other scores.

    >>> vectors = {"a-1": np.ones(1), "a-2": np.zeros(1)}
    >>> mean, count = average_by_speaker(vectors.items(), {"a-1": "a", "a-2": "a"})
    >>> float(mean["a"][0]), count
    (0.5, {'a': 2})
    """
    sums: dict[str, Float64] = {}
    counts: dict[str, int] = {}
    for utt, vector in vectors:
        speaker = utt2spk[utt]
        if speaker in sums:
            sums[speaker] += vector
        else:
            sums[speaker] = vector.astype(np.float64)
        counts[speaker] = counts.get(speaker, 0) + 1
    speakers = sort_ids(sums)
    means = {speaker: (sums[speaker] / counts[speaker]).astype(np.float32) for speaker in speakers}
    return means, {speaker: counts[speaker] for speaker in speakers}
