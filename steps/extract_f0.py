#!/usr/bin/env python3
"""Extract F0, one contour an utterance.

DATA needs wav.scp and utt2spk. OUT gets f0.{ark,scp}: vectors (T,) of F0 in Hz, a value every 10 ms
(T = 1 + samples // 160 at 16 kHz), 0 where unvoiced, by DIO and StoneMask (WORLD); and, where
utterances were lost, skipped.txt (<utterance> <reason>).
"""

import sys
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from steps.options import F0Ceiling, F0Floor, f0_limits, measure
from utils.commands import program
from utils.options import AllowLoss, DataFolder, OutFolder


@program
def main(
    data: DataFolder, out: OutFolder, *, f0_floor: F0Floor = 60.0, f0_ceiling: F0Ceiling = 400.0,
    allow_loss: AllowLoss = 0,
) -> None:  # fmt: skip
    measure("f0", data, out, allow_loss, f0_limits(f0_floor, f0_ceiling))
