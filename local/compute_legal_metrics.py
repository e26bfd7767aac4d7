#!/usr/bin/env python3
"""Compute Singling Out and legal Linkability (Vauquier et al. 2025) of x-vectors, as JSON.

Not the linkability D_sys of compute_metrics.py: see docs/metrics/legal.md for what is asked, the
keys and the chance levels. x-vectors are .scp or .ark, one an utterance, both sets from one encoder
and without a common utterance: original or protected, as the attacker would hold them (OO, OA, AA).
OUT is a file, or - for standard output. Values are fractions; an undefined one is null, and a
warning says why. Speakers on one side only are left out with a warning.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

if __package__ in (None, ""):  # run as a program: reach the floors from any directory
    sys.path[0] = str(Path(__file__).resolve().parents[1])
from local.options import Bootstrap, Figures, write_figures
from utils.cli import positive
from utils.commands import program
from utils.options import Seed


@program
def main(
    enrol_xvectors: Annotated[Path, "The x-vectors that the attacker enrols"],
    trial_xvectors: Annotated[Path, "The x-vectors of the trials"],
    out: Figures, *,
    utt2spk_enrol: Annotated[Path, "The table of the enrol utterances' speakers", "F"],
    utt2spk_trial: Annotated[Path, "The table of the trial utterances' speakers", "F"],
    conversation_length: Annotated[
        Sequence[int], "The number of trial utterances that the attacker averages; may be given "
        "again (left out: 1 and 3)", "L", positive,
    ] = (),
    bootstrap: Bootstrap = 0, seed: Seed = 0,
) -> None:  # fmt: skip
    from local.metrics.legal import check_sides, legal_metrics, make_side
    from utils.archives import read_vectors
    from utils.tables import read_map

    enrol, trial = (
        make_side(read_vectors(path), read_map(table), vectors_path=path, utt2spk_path=table)
        for path, table in ((enrol_xvectors, utt2spk_enrol), (trial_xvectors, utt2spk_trial))
    )
    check_sides(enrol, trial, enrol_path=enrol_xvectors, trial_path=trial_xvectors)
    figures = legal_metrics(
        enrol, trial, lengths=sorted(set(conversation_length or (1, 3))),
        n_bootstrap=bootstrap, seed=seed,
    )  # fmt: skip
    write_figures(out, figures, indent=2)
