#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Extract functionals of pitch, energy and spectrum, by which emotions are recognised.

DATA needs wav.scp and utt2spk. OUT gets functionals.{ark,scp}: a vector (64,) an utterance, NaN
where a value is not defined (steps/emotion/functionals.py names them); and, where utterances were
lost, skipped.txt (<utterance> <reason>).
"""

from steps.options import measure
from utils.commands import program
from utils.options import AllowLoss, DataFolder, OutFolder


@program
def main(data_dir: DataFolder, out: OutFolder, *, allow_loss: AllowLoss = 0) -> None:
    measure("functionals", data_dir, out, allow_loss)
