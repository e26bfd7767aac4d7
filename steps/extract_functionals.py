#!/usr/bin/env python3
"""Extract functionals of pitch, energy and spectrum, by which emotions are recognised.

DATA needs wav.scp and utt2spk. OUT gets functionals.{ark,scp}: a vector (64,) an utterance, NaN
where a value is not defined (steps/emotion/functionals.py names them); and, where utterances were
lost, skipped.txt (<utterance> <reason>).
"""

import sys
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from steps.options import measure
from utils.commands import program
from utils.options import AllowLoss, DataFolder, OutFolder


@program
def main(data_dir: DataFolder, out: OutFolder, *, allow_loss: AllowLoss = 0) -> None:
    measure("functionals", data_dir, out, allow_loss)
