#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Track the pitch of DATA once for all comparisons with it (compare_prosody.py --contours).

OUT gets contours.npz: of each utterance F0 in Hz, by DIO and StoneMask, and by Praat where it is
installed. What cannot be read is left out.
"""

from utils.commands import program
from utils.options import DataFolder, OutFolder


@program
def main(data: DataFolder, out: OutFolder) -> None:
    from steps.synthesis.world import write_contours
    from utils.cli import progress
    from utils.datadir import load_data_dir

    show = progress("extract_contours")
    write_contours(load_data_dir(data).wav, out / "contours.npz", show)
