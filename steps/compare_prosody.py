#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Compare pitch, length and level of protected speech with its original.

DATA and PROTECTED are data directories (wav.scp, utt2spk); every utterance of DATA is compared with
the one of the same id in PROTECTED, which may hold more. OUT gets the table `prosody`, a line an
utterance: correlation of log F0 on frames voiced in both, share of frames with the same voicing
decision, relative change of duration, change of level (dB), share of clipped samples after and
before, frames, frames voiced in both; `-` where undefined. What was lost is in OUT/skipped.txt.
"""

from pathlib import Path
from typing import Annotated

from utils.commands import program
from utils.options import AllowLoss, DataFolder, OutFolder


@program
def main(
    data: DataFolder,
    protected_data: Annotated[Path, "The data directory of the protected speech", "PROTECTED"],
    out: OutFolder, *,
    contours: Annotated[Path | None, "The contours of DATA by extract_contours.py", "FILE"] = None,
    allow_loss: AllowLoss = 0,
) -> None:  # fmt: skip
    from steps.synthesis.world import compare_all
    from utils.cli import progress
    from utils.datadir import load_data_dir

    original, protected = load_data_dir(data), load_data_dir(protected_data)
    show = progress("compare_prosody")
    print(compare_all(original.wav, protected.wav, out, allow_loss, show, contours))
