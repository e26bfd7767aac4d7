#!/usr/bin/env python3
"""Track the pitch of DATA once for all comparisons with it (compare_prosody.py --contours).

OUT gets contours.npz: of each utterance F0 in Hz, by DIO and StoneMask, and by Praat where it is
installed. What cannot be read is left out.
"""

import sys
from pathlib import Path

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from steps.options import F0Ceiling, F0Floor, f0_limits
from utils.commands import program
from utils.options import DataFolder, OutFolder


@program
def main(
    data: DataFolder, out: OutFolder, *, f0_floor: F0Floor = 60.0, f0_ceiling: F0Ceiling = 400.0
) -> None:  # fmt: skip
    from steps.synthesis.world import write_contours
    from utils.cli import progress
    from utils.datadir import load_data_dir

    limits, show = f0_limits(f0_floor, f0_ceiling), progress("extract_contours")
    write_contours(load_data_dir(data).wav, out / "contours.npz", limits, show)
