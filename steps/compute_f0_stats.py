#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Compute the F0 statistics of the speakers of a data directory.

F0_DIR is a folder of steps/extract_f0.py, DATA the data directory (utt2spk; all its utterances
count). OUT gets spk_f0.{ark,scp}: for each speaker the number of voiced frames, mean and standard
deviation of their log F0, and its 101 quantiles from 0 to 1. A speaker without a voiced frame has
zeros, and F0 transforms leave their pitch as it is.
"""

from pathlib import Path
from typing import Annotated

from utils.cli import UserError
from utils.commands import program
from utils.options import AllowLoss, DataFolder, OutFolder


@program
def main(
    f0_dir: Annotated[Path, "The folder of extract_f0.py"],
    data_dir: DataFolder, out: OutFolder, *, allow_loss: AllowLoss = 0,
) -> None:  # fmt: skip
    from steps.synthesis.f0 import open_utterances, speaker_f0_stats, write_f0_stats
    from utils.datadir import load_data_dir

    data, path = load_data_dir(data_dir, need=("utt2spk",)), f0_dir / "f0.scp"
    contours, present, n_lost = open_utterances(path, "extract_f0.py", data, allow_loss)
    if lost := [spk for spk, utts in present.items() if not utts]:
        raise UserError(f"{path}: no utterance of speaker {lost[0]} is in it")
    stats = speaker_f0_stats(present, contours.vector)
    write_f0_stats(out, stats)
    n_unvoiced = sum(not s.n for s in stats.values())
    print(
        f"read {len(data.utt2spk) - n_lost} contours / written {len(stats)} speakers "
        f"({n_unvoiced} without a voiced frame) / skipped {n_lost}"
    )
