#!/usr/bin/env -S bash -c 'r=$(readlink -f "$0"); . "${r%/*}/../path.sh"; exec python3 -P "$0" "$@"'
"""Compute the figures of prosody and quality of protected speech, as JSON.

PROSODY is the table of steps/compare_prosody.py. OUT gets means over utterances: f0_correlation
(of log F0, -1 to 1), voicing_agreement, duration_change (signed), duration_drift (its size),
clipping and clipping_original (fractions), level_change (dB); by speaker f0_correlation.
`n_undefined` counts the utterances for which a figure is not defined. OUT is a file, or - for
standard output.
"""

from pathlib import Path
from typing import Annotated

from local.options import Bootstrap, Figures, write_figures
from utils.cli import UserError
from utils.commands import program
from utils.options import Seed, Utt2spk


@program
def main(
    prosody: Annotated[Path, "The table of compare_prosody.py"],
    out: Figures, *, utt2spk: Utt2spk, bootstrap: Bootstrap = 0, seed: Seed = 0,
) -> None:  # fmt: skip
    from local.metrics.utility import prosody_figures, read_prosody
    from utils.tables import read_map

    table, speakers = read_prosody(prosody), read_map(utt2spk)
    if missing := table.keys() - speakers.keys():
        raise UserError(f"{utt2spk}: has no utterance {min(missing)}, which {prosody} lists")
    write_figures(out, prosody_figures(table, speakers, n_bootstrap=bootstrap, seed=seed))
