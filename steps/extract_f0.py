#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Extract F0, one contour an utterance.

DATA needs wav.scp and utt2spk. OUT gets f0.{ark,scp}: vectors (T,) of F0 in Hz, a value every 10 ms
(T = 1 + samples // 160 at 16 kHz), 0 where unvoiced, by DIO and StoneMask (WORLD); and, where
utterances were lost, skipped.txt (<utterance> <reason>).
"""

from steps.options import measure
from utils.commands import program
from utils.options import AllowLoss, DataFolder, OutFolder


@program
def main(data: DataFolder, out: OutFolder, *, allow_loss: AllowLoss = 0) -> None:
    measure("f0", data, out, allow_loss)
