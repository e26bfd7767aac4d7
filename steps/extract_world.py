#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""WORLD analysis: pitch, aperiodicity and spectral envelope of every utterance.

DATA needs wav.scp and utt2spk. OUT gets world.{ark,scp}: matrices (T, 42), a row every 10 ms
(T = 1 + samples // 160 at 16 kHz): F0 in Hz (DIO and StoneMask; 0 where unvoiced), the aperiodicity
in dB (D4C, one band), 40 values of the coded envelope (CheapTrick); and, where some were lost,
skipped.txt (<utterance> <reason>). steps/make_voice_pool.py makes target voices of them.
"""

from steps.options import measure
from utils.commands import program
from utils.options import AllowLoss, DataFolder, OutFolder


@program
def main(data: DataFolder, out: OutFolder, *, allow_loss: AllowLoss = 0) -> None:
    measure("world", data, out, allow_loss)
